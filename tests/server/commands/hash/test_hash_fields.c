/* Commands on the fields of hashes, sentence by sentence. Random ones, beside Redis:
 * tests/integration/differential.c. */
#include "tests/server/zset_fixture.h"

#define PAIRS "-ERR wrong number of arguments for "

ZSET_TEST(fields_are_set_read_and_removed) {
    zset_expect(h, "HSET k name zoe tier gold", ":2");
    zset_expect(h, "HSET k name ann tier gold avatar 7", ":1");
    zset_expect(h, "HGETALL k", "[name ann tier gold avatar 7]");
    /* The last one of equal fields counts. */
    zset_expect(h, "HSET k name kim name zoe", ":0");
    zset_expect(h, "HMSET k avatar 8 last x", "+OK");
    zset_expect(h, "hmset k avatar 9", "+OK");
    zset_expect(h, "HSETNX k tier silver", ":0");
    zset_expect(h, "HSETNX k age 3", ":1");
    zset_expect(h, "HMGET k tier none name tier", "[gold nil zoe gold]");
    zset_expect(h, "HMGET none tier name", "[nil nil]");
    zset_expect(h, "HGET k none", "nil");
    zset_expect(h, "HGET none name", "nil");
    zset_expect(h, "HKEYS k", "[name tier avatar last age]");
    zset_expect(h, "HVALS k", "[zoe gold 9 x 3]");
    zset_expect(h, "HKEYS none", "[]");
    zset_expect(h, "HVALS none", "[]");
    zset_expect(h, "HGETALL none", "[]");
    zset_expect(h, "HLEN k", ":5");
    zset_expect(h, "HLEN none", ":0");
    zset_expect(h, "HEXISTS k age", ":1");
    zset_expect(h, "HEXISTS k none", ":0");
    zset_expect(h, "HEXISTS none name", ":0");
    zset_expect(h, "HSTRLEN k name", ":3");
    zset_expect(h, "HSTRLEN k none", ":0");
    zset_expect(h, "HSTRLEN none name", ":0");
    zset_expect(h, "HSET k a 1 b", PAIRS "'hset' command");
    zset_expect(h, "HMSET k a 1 b", PAIRS "'hmset' command");
    zset_expect(h, "HDEL k name x name", ":1");
    zset_expect(h, "HDEL k x", ":0");
    zset_expect(h, "HDEL k tier last avatar age y", ":4");
    /* The hash goes with its last field. */
    zset_expect(h, "EXISTS k", ":0");
    zset_expect(h, "HDEL k name", ":0");
    /* Fields and values may be empty. */
    zset_expect(h, "HSET k \"\" \"\"", ":1");
    zset_expect(h, "HEXISTS k \"\"", ":1");
    zset_expect(h, "HGET k \"\"", "");
    zset_expect(h, "HSTRLEN k \"\"", ":0");
    zset_expect(h, "HDEL k \"\"", ":1");
    zset_expect(h, "EXISTS k", ":0");
}

ZSET_TEST(the_whole_hash_is_a_map_in_resp3_and_names_and_values_are_arrays) {
    static const char *const rows[][2] = {
        {"HSET k name zoe tier gold", ":2"},
        {"HGETALL k", "{name zoe tier gold}"},
        {"HGETALL none", "{}"},
        {"HKEYS k", "[name tier]"},
        {"HVALS k", "[zoe gold]"},
        {"HGET k none", "_"},
        {"HGET none name", "_"},
        {"HMGET k none name", "[_ zoe]"},
        {"HINCRBYFLOAT k n 1.5", "1.5"},
    };
    zset_use_resp3(h);
    zset_expect_each(h, rows);
}

ZSET_TEST(a_hash_of_many_fields_grows_and_shrinks) {
    enum { FIELDS = 3000 };
    for (int i = 0; i < FIELDS; i++) {
        assert_string_equal(zset_run(h, "HSET k f%d v%d", i, i), ":1");
    }
    for (int i = 0; i < FIELDS; i += 2) {
        assert_string_equal(zset_run(h, "HDEL k f%d", i), ":1");
    }
    assert_string_equal(zset_run(h, "HLEN k"), ":1500");
    for (int i = 0; i < FIELDS; i++) {
        assert_string_equal(zset_run(h, "HGET k f%d", i), formatted(i % 2 != 0 ? "v%d" : "nil", i));
    }
}

ZSET_TEST(a_large_hash_comes_whole) {
    enum { FIELDS = 5000 };
    static bool is_seen[FIELDS];
    memset(is_seen, 0, sizeof(is_seen));
    for (int i = 0; i < FIELDS; i++) {
        zset_run(h, "HSET k %d %d", i, i * 3);
    }
    const char *at = zset_run(h, "HGETALL k") + 1;
    for (int i = 0; i < FIELDS; i++) {
        char *end;
        long field = strtol(at, &end, 10);
        long value = strtol(end, &end, 10);
        assert_in_range(field, 0, FIELDS - 1);
        assert_int_equal(value, field * 3);
        assert_false(is_seen[field]);
        is_seen[field] = true;
        at = end + 1;
    }
}

ZSET_TEST(a_key_has_the_bytes_that_any_key_has) {
    static const char expected[] = "-ERR key is 0 bytes long: 1..65536 are allowed";
    zset_expect(h, "HSET \"\" a 1", expected);
    zset_expect(h, "HSETNX \"\" a 1", expected);
    zset_expect(h, "HINCRBY \"\" a 1", expected);
    zset_expect(h, "HGET \"\" a", "nil");
    zset_expect(h, "DBSIZE", ":0");
}

ZSET_TEST(a_value_of_64_megabytes_is_kept) {
    const size_t size = (size_t)64 << 20;
    OWNED char *value = malloc(size);
    assert_non_null(value);
    memset(value, 'v', size);
    value[size - 1] = 'w';
    struct bytes set[] = {BYTES("HSET"), BYTES("k"), BYTES("f"), {value, size}};
    assert_string_equal(harness_run_args(h, s, set, 4), ":1\r\n");
    assert_string_equal(zset_run(h, "HSTRLEN k f"), ":67108864");
    const char *reply = harness_run(h, s, "HGET k f");
    assert_memory_equal(reply, "$67108864\r\n", 11);
    assert_memory_equal(reply + 11, value, size);
    struct bytes field[] = {BYTES("HSET"), BYTES("k"), {value, size}, BYTES("1")};
    assert_string_equal(harness_run_args(h, s, field, 4), ":1\r\n");
    struct bytes get[] = {BYTES("HGET"), BYTES("k"), {value, size}};
    assert_string_equal(harness_run_args(h, s, get, 3), "$1\r\n1\r\n");
    zset_expect(h, "HLEN k", ":2");
}

/* The reply is given up as soon as its buffer is. */
ZSET_TEST(a_reply_that_nobody_can_read_ends_early) {
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "HSET k field:%d a:value:of:twenty", i);
    }
    static const char *const names[] = {"HGETALL k", "HKEYS k", "HVALS k"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_true(harness_breaks(h, s, names[i], 1000));
    }
}

ZSET_TEST(a_long_command_is_refused_where_the_limit_says_so) {
    for (int i = 0; i < 50000; i++) {
        zset_run(h, "HSET k field:%d a:value:of:twenty", i);
    }
    zset_run(h, "CONFIG SET busy-command-limit 1");
    static const char *const lines[] = {"HGETALL k", "HKEYS k", "HVALS k", "HRANDFIELD k -1000000"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_memory_equal(zset_run(h, "%s", lines[i]), "-TOOLONG", 8);
    }
    zset_expect(h, "HGET k field:7", "a:value:of:twenty");
    zset_expect(h, "HLEN k", ":50000");
    assert_memory_equal(zset_run(h, "HSCAN k 0"), "[", 1);
    /* COPY runs in steps, but not in a transaction. */
    zset_expect(h, "MULTI", "+OK");
    zset_run(h, "COPY k l");
    assert_memory_equal(zset_run(h, "EXEC"), "-EXECABORT", 10);
    zset_expect(h, "EXISTS l", ":0");
    zset_expect(h, "COPY k l", ":1");
    zset_expect(h, "HLEN l", ":50000");
    zset_expect(h, "DEL l", ":1");
    /* Also with what the transaction itself will have put there. */
    zset_expect(h, "MULTI", "+OK");
    zset_run(h, "RENAME k l");
    zset_run(h, "HGETALL l");
    assert_memory_equal(zset_run(h, "EXEC"), "-EXECABORT", 10);
}

/* ---- numbers ---- */

#define OVERFLOW "-ERR increment or decrement would overflow"

ZSET_TEST(a_missing_field_begins_at_0_and_sums_stay_within_64_bits) {
    zset_expect(h, "HINCRBY k n 5", ":5");
    zset_expect(h, "HINCRBY k n -7", ":-2");
    zset_expect(h, "HINCRBY k m 0", ":0");
    zset_expect(h, "HINCRBYFLOAT k f 1.5", "1.5");
    zset_expect(h, "HGETALL k", "[n -2 m 0 f 1.5]");
    zset_expect(h, "DEL k", ":1");
    zset_expect(h, "HINCRBY k n 9223372036854775807", ":9223372036854775807");
    zset_expect(h, "HINCRBY k n 1", OVERFLOW);
    zset_expect(h, "HINCRBY k m -9223372036854775808", ":-9223372036854775808");
    zset_expect(h, "HINCRBY k m -1", OVERFLOW);
    zset_expect(h, "HMGET k n m", "[9223372036854775807 -9223372036854775808]");
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
    zset_expect(h, "HINCRBYFLOAT k n -10.6", "0");
    zset_expect(h, "HINCRBYFLOAT k n -0.0", "0");
    zset_expect(h, "HSET k n 5.0e3", ":0");
    zset_expect(h, "HINCRBYFLOAT k n 2.0e2", "5200");
    zset_expect(h, "HINCRBYFLOAT k n 0x10", "5216");
    zset_expect(h, "HINCRBYFLOAT k n 1e-30", "5216");
    zset_expect(h, "HGET k n", "5216");
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
