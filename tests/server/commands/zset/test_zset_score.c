/* ZSCORE, ZMSCORE, ZCARD and ZCOUNT, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char no_limit[] = "-ERR min or max is not a float";

ZSET_TEST(zscore_answers_the_score_that_was_given) {
    zset_run(h, "ZADD money:k -12.30 a 0.01 b 0 c");
    zset_expect(h, "ZSCORE money:k a", "-12.3");
    zset_expect(h, "ZSCORE money:k b", "0.01");
    zset_expect(h, "ZSCORE money:k c", "0");
    zset_use_resp3(h);
    zset_expect(h, "ZSCORE money:k a", ",-12.3");
}

ZSET_TEST(a_missing_member_or_key_has_no_score) {
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZSCORE k b", "nil");
    zset_expect(h, "ZSCORE none a", "nil");
    zset_use_resp3(h);
    zset_expect(h, "ZSCORE k b", "_");
    zset_expect(h, "ZSCORE none a", "_");
}

ZSET_TEST(zmscore_answers_in_the_order_asked) {
    zset_run(h, "ZADD k 1 a 2 b 3 c");
    zset_expect(h, "ZMSCORE k c x a c", "[3 nil 1 3]");
    zset_expect(h, "ZMSCORE none c x", "[nil nil]");
    zset_use_resp3(h);
    zset_expect(h, "ZMSCORE k c x a", "[,3 _ ,1]");
}

ZSET_TEST(zcard_counts_members) {
    zset_expect(h, "ZCARD k", ":0");
    zset_run(h, "ZADD k 1 a 2 b 3 c");
    zset_expect(h, "ZCARD k", ":3");
}

ZSET_TEST(an_empty_or_long_member_or_key_is_absent) {
    static char bytes[65537];
    memset(bytes, 'x', sizeof(bytes));
    zset_run(h, "ZADD k 1 a");
    struct session *session = h->server.sessions.first;
    const struct bytes names[] = {{.at = bytes, .size = 0}, {.at = bytes, .size = sizeof(bytes)}};
    for (int i = 0; i < 2; i++) {
        const struct bytes by_member[] = {BYTES("ZSCORE"), BYTES("k"), names[i]};
        assert_string_equal(harness_run_args(h, session, by_member, 3), "$-1\r\n");
        const struct bytes many[] = {BYTES("ZMSCORE"), BYTES("k"), names[i], BYTES("a")};
        assert_string_equal(harness_run_args(h, session, many, 4), "*2\r\n$-1\r\n$1\r\n1\r\n");
        const struct bytes by_key[] = {BYTES("ZSCORE"), names[i], BYTES("a")};
        assert_string_equal(harness_run_args(h, session, by_key, 3), "$-1\r\n");
        const struct bytes card[] = {BYTES("ZCARD"), names[i]};
        assert_string_equal(harness_run_args(h, session, card, 2), ":0\r\n");
    }
}

ZSET_TEST(zcount_counts_between_limits) {
    zset_run(h, "ZADD k -5 a 0 b 1 c 1 d 7 e");
    static const struct {
        const char *min, *max, *count;
    } ranges[] = {
        {"-inf", "+inf", ":5"},
        {"-INF", "Infinity", ":5"},
        {"0", "1", ":3"},
        {"(0", "1", ":2"},
        {"0", "(1", ":1"},
        {"(0", "(1", ":0"},
        {"1", "0", ":0"},
        {"inf", "-inf", ":0"},
        {"(-inf", "(inf", ":5"},
        {"0.5", "1.5", ":2"},
        {"-4.9", "6.9", ":3"},
        {"1e0", "+7.000", ":3"},
        {"-1e400", "1e400", ":5"},
        {"1e400", "-1e400", ":0"},
        {"-1e400", "-1e300", ":0"},
        {"1e-400", "1", ":2"},
        {"-1e-400", "1e-400", ":1"},
        {"4294967295", "4294967296", ":0"},
        {"8", "99999999999", ":0"},
        {"-99999999999", "-6", ":0"},
        {"(7", "inf", ":0"},
        {"-inf", "(-5", ":0"},
        {"7", "7", ":1"},
        {"(7", "7", ":0"},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        zset_expect(h, formatted("ZCOUNT k %s %s", ranges[i].min, ranges[i].max), ranges[i].count);
        zset_expect(h, formatted("ZCOUNT none %s %s", ranges[i].min, ranges[i].max), ":0");
    }
}

ZSET_TEST(limits_are_scores_where_less_is_better_too) {
    zset_run(h, "ZADD laps:k 10 a 20 b 20 c 30 d");
    zset_expect(h, "ZCOUNT laps:k 10 20", ":3");
    zset_expect(h, "ZCOUNT laps:k (10 20", ":2");
    zset_expect(h, "ZCOUNT laps:k 20 (30", ":2");
    zset_expect(h, "ZCOUNT laps:k (20 +inf", ":1");
    zset_expect(h, "ZCOUNT laps:k -inf (20", ":1");
    zset_expect(h, "ZCOUNT laps:k 30 10", ":0");
}

ZSET_TEST(limits_reach_the_ends_of_64_bits) {
    zset_run(h, "ZADD fine:k -9223372036854775808 a 0 b 9223372036854775807 c");
    zset_expect(h, "ZCOUNT fine:k -9223372036854775808 9223372036854775807", ":3");
    zset_expect(h, "ZCOUNT fine:k (-9223372036854775808 (9223372036854775807", ":1");
    zset_expect(h, "ZCOUNT fine:k 9223372036854775806.5 inf", ":1");
    zset_expect(h, "ZCOUNT fine:k 9223372036854775808 inf", ":0");
    zset_expect(h, "ZCOUNT fine:k -inf -9223372036854775809", ":0");
    zset_run(h, "ZADD wide:k 0 a 18446744073709551615 b");
    zset_expect(h, "ZCOUNT wide:k 0 18446744073709551615", ":2");
    zset_expect(h, "ZCOUNT wide:k (0 (18446744073709551615", ":0");
    zset_expect(h, "ZCOUNT wide:k 18446744073709551615 18446744073709551616", ":1");
    zset_expect(h, "ZCOUNT wide:k -1 0", ":1");
}

ZSET_TEST(limits_may_have_more_decimals_than_the_board) {
    zset_run(h, "ZADD money:k 1.01 a 1.02 b -1.01 c");
    zset_expect(h, "ZCOUNT money:k 1.011 1.02", ":1");
    zset_expect(h, "ZCOUNT money:k 1.01 1.0199", ":1");
    zset_expect(h, "ZCOUNT money:k (1.01 1.02", ":1");
    zset_expect(h, "ZCOUNT money:k -1.011 -1.009", ":1");
    zset_expect(h, "ZCOUNT money:k -1.0099 1.0099", ":0");
}

ZSET_TEST(what_is_no_number_is_no_limit) {
    zset_run(h, "ZADD k 1 a");
    static const char *const texts[] = {"x", "nan", "((1", "\"1 \"", "1x", "(nan", "[1", "+", "-"};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        zset_expect(h, formatted("ZCOUNT k %s 2", texts[i]), no_limit);
        zset_expect(h, formatted("ZCOUNT k 2 %s", texts[i]), no_limit);
        zset_expect(h, formatted("ZCOUNT none %s inf", texts[i]), no_limit);
    }
}

ZSET_TEST(the_number_of_arguments_is_checked) {
    zset_expect(h, "ZSCORE k", "-ERR wrong number of arguments for 'zscore' command");
    zset_expect(h, "ZSCORE k a b", "-ERR wrong number of arguments for 'zscore' command");
    zset_expect(h, "ZMSCORE k", "-ERR wrong number of arguments for 'zmscore' command");
    zset_expect(h, "ZCARD", "-ERR wrong number of arguments for 'zcard' command");
    zset_expect(h, "ZCARD k k", "-ERR wrong number of arguments for 'zcard' command");
    zset_expect(h, "ZCOUNT k 1", "-ERR wrong number of arguments for 'zcount' command");
    zset_expect(h, "ZCOUNT k 1 2 3", "-ERR wrong number of arguments for 'zcount' command");
}

ZSET_TEST(reads_count_as_hits_and_misses_once) {
    zset_run(h, "ZADD k 1 a");
    uint64_t hits = h->server.stats.keyspace_hits;
    uint64_t misses = h->server.stats.keyspace_misses;
    static const char *const commands[] = {
        "ZSCORE %s a",  "ZMSCORE %s a b", "ZCARD %s",         "ZCOUNT %s 1 2",
        "ZRANK %s a",   "ZRANGE %s 0 -1", "ZREVRANGE %s 0 1", "ZRANGEBYSCORE %s 1 2",
        "ZSCAN %s 0",   "ZRANDMEMBER %s", "ZRANDMEMBER %s 2", "ZREVRANGEBYSCORE %s 2 1",
        "ZREVRANK %s a"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const char *blank = strstr(commands[i], "%s");
        int before = (int)(blank - commands[i]);
        zset_run(h, "%s", formatted("%.*sk%s", before, commands[i], blank + 2));
        assert_int_equal(h->server.stats.keyspace_hits, ++hits);
        zset_run(h, "%s", formatted("%.*snone%s", before, commands[i], blank + 2));
        assert_int_equal(h->server.stats.keyspace_misses, ++misses);
    }
}
