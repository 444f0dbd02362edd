/* HINCRBY and HINCRBYFLOAT, sentence by sentence. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(a_missing_field_begins_at_0) {
    zset_expect(h, "HINCRBY k n 5", ":5");
    zset_expect(h, "HINCRBY k n -7", ":-2");
    zset_expect(h, "HINCRBY k m 0", ":0");
    zset_expect(h, "HINCRBYFLOAT k f 1.5", "1.5");
    zset_expect(h, "HGETALL k", "[n -2 m 0 f 1.5]");
}

ZSET_TEST(sums_stay_within_64_bits) {
    zset_expect(h, "HINCRBY k n 9223372036854775807", ":9223372036854775807");
    zset_expect(h, "HINCRBY k n 1", "-ERR increment or decrement would overflow");
    zset_expect(h, "HINCRBY k n -1", ":9223372036854775806");
    zset_expect(h, "HINCRBY k m -9223372036854775808", ":-9223372036854775808");
    zset_expect(h, "HINCRBY k m -1", "-ERR increment or decrement would overflow");
    zset_expect(h, "HMGET k n m", "[9223372036854775806 -9223372036854775808]");
}

ZSET_TEST(what_is_no_whole_number_is_refused) {
    static const char *const texts[] = {"x", "1.5", "1e3", "01", "+1", "-0", "9223372036854775808"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        zset_run(h, "HSET k n %s", texts[i]);
        zset_expect(h, "HINCRBY k n 1", "-ERR hash value is not an integer");
        assert_string_equal(zset_run(h, "HGET k n"), texts[i]);
        assert_string_equal(zset_run(h, "HINCRBY k other %s", texts[i]),
                            "-ERR value is not an integer or out of range");
    }
    zset_run(h, "HSET k n \"\"");
    zset_expect(h, "HINCRBY k n 1", "-ERR hash value is not an integer");
    zset_expect(h, "HLEN k", ":1");
    zset_expect(h, "HINCRBY none n x", "-ERR value is not an integer or out of range");
    zset_expect(h, "EXISTS none", ":0");
}

ZSET_TEST(decimals_are_added_and_written_without_zeros) {
    zset_expect(h, "HINCRBYFLOAT k n 10.50", "10.5");
    zset_expect(h, "HINCRBYFLOAT k n 0.1", "10.6");
    zset_expect(h, "HINCRBYFLOAT k n -5", "5.6");
    zset_expect(h, "HINCRBYFLOAT k n -5.6", "0");
    zset_expect(h, "HINCRBYFLOAT k n -0.0", "0");
    zset_expect(h, "HSET k n 5.0e3", ":0");
    zset_expect(h, "HINCRBYFLOAT k n 2.0e2", "5200");
    zset_expect(h, "HINCRBYFLOAT k n 0x10", "5216");
    zset_expect(h, "HINCRBYFLOAT k n 1e-30", "5216");
    zset_expect(h, "HGET k n", "5216");
    zset_use_resp3(h);
    zset_expect(h, "HINCRBYFLOAT k n 1", "5217");
}

ZSET_TEST(what_is_no_number_is_refused) {
    static const char *const texts[] = {"x",    "1x",     "nan",     "\" 1\"",    "\"1 \"",
                                        "\"\"", "1e5000", "1e-5000", "\"1\\x00\""};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_string_equal(zset_run(h, "HINCRBYFLOAT none n %s", texts[i]),
                            "-ERR value is not a valid float");
        zset_run(h, "HSET k n %s", texts[i]);
        zset_expect(h, "HINCRBYFLOAT k n 1", "-ERR hash value is not a float");
    }
    zset_expect(h, "HINCRBYFLOAT none n inf", "-ERR value is NaN or Infinity");
    zset_expect(h, "HINCRBYFLOAT none n -inf", "-ERR value is NaN or Infinity");
    zset_expect(h, "EXISTS none", ":0");
    zset_run(h, "HSET k n inf");
    zset_expect(h, "HINCRBYFLOAT k n 1", "-ERR increment would produce NaN or Infinity");
    char digits[5200];
    memset(digits, '1', sizeof(digits) - 1);
    digits[sizeof(digits) - 1] = '\0';
    assert_string_equal(zset_run(h, "HINCRBYFLOAT k m %s", digits),
                        "-ERR value is not a valid float");
}

ZSET_TEST(the_largest_sum_is_written_in_full) {
    assert_int_equal(strlen(zset_run(h, "HINCRBYFLOAT k n 1e4932")), 4933);
    assert_int_equal(strlen(zset_run(h, "HGET k n")), 4933);
    zset_expect(h, "HINCRBYFLOAT k n 1.1e4932", "-ERR increment would produce NaN or Infinity");
    assert_int_equal(strlen(zset_run(h, "HINCRBYFLOAT k n -2e4931")), 4932);
}
