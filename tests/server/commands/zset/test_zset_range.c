/* ZRANGE, ZREVRANGE, ZRANGEBYSCORE and ZREVRANGEBYSCORE, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";
static const char no_integer[] = "-ERR value is not an integer or out of range";
static const char no_limit[] = "-ERR min or max is not a float";
static const char limit_alone[] = "-ERR syntax error, LIMIT is only supported in combination with "
                                  "either BYSCORE or BYLEX";

/* As Redis 7 reads them, by strtod. */
ZSET_TEST(limits_may_be_empty_hexadecimal_or_have_spaces_in_front) {
    zset_run(h, "ZADD k -1 m 0 zero 1 one 2 two 16 sixteen");
    zset_expect(h, "ZCOUNT k \"\" +inf", ":4");
    zset_expect(h, "ZCOUNT k ( +inf", ":3");
    zset_expect(h, "ZRANGEBYSCORE k \" 1\" 0x10", "[one two sixteen]");
    zset_expect(h, "ZREVRANGEBYSCORE k 0xf \"( 0x1\"", "[two]");
    zset_expect(h, "ZRANGE k -0x1 (0x0p3 BYSCORE", "[m]");
    zset_expect(h, "LB.RANGE k \"\" ( BYSCORE", "[]");
    static const char *const refused[] = {"\" \"", "\"1 \"", "0x", "\" (1\"", "-", "0x1p"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        zset_expect(h, formatted("ZCOUNT k %s 5", refused[i]), no_limit);
    }
}

/* PHP's clients send doubles so. */
ZSET_TEST(doubles_of_seventeen_digits_are_their_shortest_decimals) {
    zset_expect(h, "LB.CREATE money FIELD score 40 SIGNED SCALE 2", "+OK");
    zset_expect(h, "ZADD money 0.10000000000000001 a -8.1400000000000006 b", ":2");
    zset_expect(h, "ZINCRBY money 0.20000000000000001 a", "0.3");
    zset_expect(h, "LB.ADD money INCR -0.10000000000000001 b", ":1");
    zset_expect(h, "ZSCORE money b", "-8.24");
    zset_expect(h, "ZCOUNT money 0.29999999999999999 0.29999999999999999", ":1");
    zset_expect(h, "ZRANGEBYSCORE money (0.29999999999999999 +inf", "[]");
    zset_expect(h, "ZUNION 1 money WEIGHTS 0.10000000000000001 WITHSCORES", "[b -0.824 a 0.03]");
    zset_expect(h, "ZADD money 0.10000000000000002 a",
                "-ERR value 0.10000000000000002 has too many decimals: field 'score' keeps 2 (more "
                "by SCALE in the layout)");
}

ZSET_TEST(zrange_goes_up_and_zrevrange_down) {
    zset_run(h, "ZADD k 3 c 1 a 2 b");
    zset_expect(h, "ZRANGE k 0 -1", "[a b c]");
    zset_expect(h, "ZREVRANGE k 0 -1", "[c b a]");
    zset_expect(h, "ZRANGE k 0 -1 REV", "[c b a]");
    zset_expect(h, "ZRANGEBYSCORE k -inf +inf", "[a b c]");
    zset_expect(h, "ZREVRANGEBYSCORE k +inf -inf", "[c b a]");
}

ZSET_TEST(the_best_comes_first_in_zrevrange_or_where_less_is_better_in_zrange) {
    zset_run(h, "ZADD k 5 first 5 second 9 best 5 third");
    zset_expect(h, "ZREVRANGE k 0 -1", "[best first second third]");
    zset_expect(h, "ZRANGE k 0 -1", "[third second first best]");
    zset_run(h, "ZADD laps:k 5 first 5 second 2 best 5 third");
    zset_expect(h, "ZRANGE laps:k 0 -1", "[best first second third]");
    zset_expect(h, "ZREVRANGE laps:k 0 -1", "[third second first best]");
    zset_expect(h, "ZRANGEBYSCORE laps:k 5 5 LIMIT 0 2", "[first second]");
    zset_expect(h, "ZREVRANGEBYSCORE laps:k 5 5 LIMIT 0 2", "[third second]");
    zset_expect(h, "ZRANGE laps:k 9 5 BYSCORE REV LIMIT 1 1", "[second]");
}

ZSET_TEST(indexes_are_cut_to_the_board) {
    zset_run(h, "ZADD k 0 a 1 b 2 c 3 d 4 e");
    static const struct {
        const char *start, *stop, *expected;
    } ranges[] = {
        {"0", "0", "[a]"},
        {"1", "3", "[b c d]"},
        {"-2", "-1", "[d e]"},
        {"-100", "1", "[a b]"},
        {"3", "100", "[d e]"},
        {"5", "6", "[]"},
        {"2", "1", "[]"},
        {"-1", "-2", "[]"},
        {"0", "-6", "[]"},
        {"-9223372036854775808", "9223372036854775807", "[a b c d e]"},
        {"9223372036854775807", "-9223372036854775808", "[]"},
        {"9223372036854775807", "9223372036854775807", "[]"},
        {"-9223372036854775808", "-9223372036854775808", "[]"},
        {"4611686018427387903", "-1", "[]"},
        {"-1", "4611686018427387903", "[e]"},
        {"0", "4294967296", "[a b c d e]"},
        {"4294967296", "4294967297", "[]"},
        {"4294967295", "4294967296", "[]"},
        {"-4294967296", "0", "[a]"},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        zset_expect(h, formatted("ZRANGE k %s %s", ranges[i].start, ranges[i].stop),
                    ranges[i].expected);
        zset_expect(h, formatted("ZREVRANGE none %s %s", ranges[i].start, ranges[i].stop), "[]");
    }
    zset_expect(h, "ZREVRANGE k 1 2", "[d c]");
    zset_expect(h, "ZREVRANGE k -2 -1", "[b a]");
}

ZSET_TEST(what_is_no_integer_is_no_index) {
    zset_run(h, "ZADD k 0 a");
    static const char *const texts[] = {"x",
                                        "\"\"",
                                        "1.0",
                                        "+1",
                                        "01",
                                        "-0",
                                        "\" 1\"",
                                        "9223372036854775808",
                                        "1e3",
                                        "inf",
                                        "-9223372036854775809"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        static const char *const lines[] = {"ZRANGE k %s 1",
                                            "ZRANGE k 0 %s",
                                            "ZREVRANGE k %s 1",
                                            "ZREVRANGE none 0 %s",
                                            "ZRANGE none %s 0",
                                            "ZRANGEBYSCORE k 0 1 LIMIT %s 1",
                                            "ZRANGE k 0 1 BYSCORE LIMIT 0 %s"};
        for (size_t j = 0; j < sizeof(lines) / sizeof(lines[0]); j++) {
            const char *blank = strstr(lines[j], "%s");
            zset_expect(
                h, formatted("%.*s%s%s", (int)(blank - lines[j]), lines[j], texts[i], blank + 2),
                no_integer);
        }
    }
}

ZSET_TEST(withscores_is_flat_in_resp2_and_pairs_in_resp3) {
    zset_run(h, "ZADD money:k 1.5 a -2 b");
    static const char *const lines[] = {
        "ZRANGE money:k 0 -1 WITHSCORES", "ZRANGE money:k -inf inf BYSCORE withscores",
        "ZRANGEBYSCORE money:k -5 5 WITHSCORES", "ZRANGEBYSCORE money:k -5 5 LIMIT 0 9 WITHSCORES",
        "ZRANGEBYSCORE money:k -5 5 WITHSCORES LIMIT 0 9"};
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, lines[i], "[b -2 a 1.5]");
    }
    zset_expect(h, "ZREVRANGE money:k 0 -1 WITHSCORES", "[a 1.5 b -2]");
    zset_use_resp3(h);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, lines[i], "[[b ,-2] [a ,1.5]]");
    }
    zset_expect(h, "ZREVRANGEBYSCORE money:k 9 -9 WITHSCORES", "[[a ,1.5] [b ,-2]]");
    zset_expect(h, "ZREVRANGE none 0 -1 WITHSCORES", "[]");
}

ZSET_TEST(ranges_by_score_take_limits_as_zcount_does) {
    zset_run(h, "ZADD k 1 a 2 b 3 c 4 d");
    zset_expect(h, "ZRANGEBYSCORE k 2 3", "[b c]");
    zset_expect(h, "ZRANGEBYSCORE k (2 3", "[c]");
    zset_expect(h, "ZRANGEBYSCORE k 2 (3", "[b]");
    zset_expect(h, "ZRANGEBYSCORE k 2.5 inf", "[c d]");
    zset_expect(h, "ZRANGEBYSCORE k 3 2", "[]");
    zset_expect(h, "ZREVRANGEBYSCORE k (4 2", "[c b]");
    zset_expect(h, "ZREVRANGEBYSCORE k 2 3", "[]");
    zset_expect(h, "ZRANGE k 4 (2 BYSCORE REV", "[d c]");
    zset_expect(h, "ZRANGE k (2 4 BYSCORE", "[c d]");
    zset_expect(h, "ZRANGEBYSCORE k x 3", no_limit);
    zset_expect(h, "ZREVRANGEBYSCORE none 3 x", no_limit);
    zset_expect(h, "ZRANGE k 3 nan BYSCORE", no_limit);
    zset_expect(h, "ZRANGE none 3 x BYSCORE REV", no_limit);
}

ZSET_TEST(limit_skips_and_counts_along_the_walk) {
    zset_run(h, "ZADD k 1 a 2 b 3 c 4 d 5 e");
    static const struct {
        const char *offset, *count, *up, *down;
    } limits[] = {
        {"0", "2", "[b c]", "[d c]"},
        {"1", "2", "[c d]", "[c b]"},
        {"1", "-1", "[c d]", "[c b]"},
        {"0", "-9223372036854775808", "[b c d]", "[d c b]"},
        {"2", "9223372036854775807", "[d]", "[b]"},
        {"0", "4611686018427387903", "[b c d]", "[d c b]"},
        {"0", "0", "[]", "[]"},
        {"3", "1", "[]", "[]"},
        {"-1", "2", "[]", "[]"},
        {"-9223372036854775808", "-1", "[]", "[]"},
        {"4611686018427387903", "1", "[]", "[]"},
        {"9223372036854775807", "9223372036854775807", "[]", "[]"},
        {"4294967296", "1", "[]", "[]"},
        {"0", "4294967296", "[b c d]", "[d c b]"},
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        zset_expect(h,
                    formatted("ZRANGEBYSCORE k 2 4 LIMIT %s %s", limits[i].offset, limits[i].count),
                    limits[i].up);
        zset_expect(
            h, formatted("ZRANGE k 4 2 REV LIMIT %s %s BYSCORE", limits[i].offset, limits[i].count),
            limits[i].down);
        zset_expect(
            h,
            formatted("ZREVRANGEBYSCORE none 4 2 LIMIT %s %s", limits[i].offset, limits[i].count),
            "[]");
    }
    zset_expect(h, "ZRANGEBYSCORE k 1 5 LIMIT 0 1 LIMIT 1 2", "[b c]");
}

ZSET_TEST(limit_needs_byscore_unless_its_count_is_minus_one) {
    zset_run(h, "ZADD k 1 a 2 b");
    zset_expect(h, "ZRANGE k 0 -1 LIMIT 0 1", limit_alone);
    zset_expect(h, "ZREVRANGE k 0 -1 LIMIT 0 1", limit_alone);
    zset_expect(h, "ZRANGE none x y LIMIT 0 1", limit_alone);
    zset_expect(h, "ZRANGE k 0 -1 LIMIT 0 -2", limit_alone);
    zset_expect(h, "ZRANGE k 0 -1 LIMIT 5 -1", "[a b]");
    zset_expect(h, "ZREVRANGE k 0 -1 LIMIT 0 -1", "[b a]");
}

ZSET_TEST(other_words_are_a_syntax_error) {
    zset_run(h, "ZADD k 1 a 2 b");
    static const char *const lines[] = {
        "ZRANGE k 0 -1 FOO",
        "ZRANGE k 0 -1 \"\"",
        "ZRANGE k 0 -1 REV REV",
        "ZRANGE k 0 -1 BYSCORE BYSCORE",
        "ZRANGE k 0 -1 BYLEX BYSCORE",
        "ZRANGE k 0 -1 BYSCORE BYLEX",
        "ZRANGE k 0 -1 BYSCORE LIMIT",
        "ZRANGE k 0 -1 BYSCORE LIMIT 0",
        "ZRANGE k x y FOO",
        "ZREVRANGE k 0 -1 REV",
        "ZREVRANGE k 0 -1 BYSCORE",
        "ZREVRANGE k 0 -1 BYLEX",
        "ZRANGEBYSCORE k 0 1 REV",
        "ZRANGEBYSCORE k 0 1 BYSCORE",
        "ZRANGEBYSCORE k 0 1 LIMIT 1",
        "ZREVRANGEBYSCORE k 1 0 BYLEX",
        "ZREVRANGEBYSCORE k 1 0 WITHSCORE",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, lines[i], syntax);
    }
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES WITHSCORES", "[a 1 b 2]");
    zset_expect(h, "ZRANGE k 0 1 LIMIT 0 x FOO", no_integer);
    zset_expect(h, "ZRANGE k 0", "-ERR wrong number of arguments for 'zrange' command");
    zset_expect(h, "ZREVRANGE k 0", "-ERR wrong number of arguments for 'zrevrange' command");
    zset_expect(h, "ZRANGEBYSCORE k 0",
                "-ERR wrong number of arguments for 'zrangebyscore' command");
    zset_expect(h, "ZREVRANGEBYSCORE k 0",
                "-ERR wrong number of arguments for 'zrevrangebyscore' command");
}

ZSET_TEST(a_long_range_comes_whole) {
    enum { MEMBERS = 5000 };
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "ZADD k %d member:%04d", i * 7919 % MEMBERS, i * 7919 % MEMBERS);
    }
    struct zset_line expected = {0};
    zset_line_add(&expected, "[", 1);
    for (int i = 0; i < MEMBERS; i++) {
        char text[64];
        int size = snprintf(text, sizeof(text), "%smember:%04d %d", i > 0 ? " " : "", i, i);
        zset_line_add(&expected, text, (size_t)size);
    }
    zset_line_add(&expected, "]", 1);
    zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", expected.text);
    zset_expect(h, "ZRANGE k -inf inf BYSCORE WITHSCORES", expected.text);
    zset_expect(h, "ZREVRANGEBYSCORE k 2502 2500 LIMIT 1 2", "[member:2501 member:2500]");
    zset_expect(h, "ZREVRANGE k 4998 -1", "[member:0001 member:0000]");
    free(expected.text);
}

ZSET_TEST(a_silent_client_gets_nothing) {
    zset_run(h, "ZADD k 1 a 2 b");
    h->server.sessions.first->reply_mode = SESSION_REPLY_OFF;
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZRANGE k 0 -1 WITHSCORES"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZRANDMEMBER k -4000000000"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZSCAN k 0"), "");
    assert_string_equal(harness_run(h, h->server.sessions.first, "ZPOPMIN k"), "");
    h->server.sessions.first->reply_mode = SESSION_REPLY_ON;
    zset_expect(h, "ZRANGE k 0 -1", "[b]");
}
