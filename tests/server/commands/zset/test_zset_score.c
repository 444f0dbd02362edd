/* ZSCORE, ZMSCORE, ZCARD, ZCOUNT, ZRANK and ZREVRANK, sentence by sentence. Random limits and ranks:
 * tests/integration/twin.c and differential.c. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(scores_are_those_that_were_given_and_nil_where_nobody_is) {
    static const char *const resp2[][2] = {
        {"ZSCORE money:k a", "-12.3"},
        {"ZSCORE money:k b", "0.01"},
        {"ZSCORE money:k x", "nil"},
        {"ZSCORE none a", "nil"},
        {"ZMSCORE money:k c x a c", "[0 nil -12.3 0]"},
        {"ZMSCORE none c x", "[nil nil]"},
        {"ZCARD money:k", ":3"},
        {"ZCARD none", ":0"},
    };
    static const char *const resp3[][2] = {
        {"ZSCORE money:k a", ",-12.3"},
        {"ZSCORE money:k x", "_"},
        {"ZSCORE none a", "_"},
        {"ZMSCORE money:k c x a", "[,0 _ ,-12.3]"},
    };
    zset_run(h, "ZADD money:k -12.30 a 0.01 b 0 c");
    zset_expect_each(h, resp2);
    zset_use_resp3(h);
    zset_expect_each(h, resp3);
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
    static const char *const rows[][2] = {
        {"ZCOUNT k -INF Infinity", ":5"},
        {"ZCOUNT k (-inf (inf", ":5"},
        {"ZCOUNT k inf -inf", ":0"},
        {"ZCOUNT k (0 (1", ":0"},
        {"ZCOUNT k 1e0 +7.000", ":3"},
        {"ZCOUNT k -1e400 1e400", ":5"},
        {"ZCOUNT k -1e400 -1e300", ":0"},
        {"ZCOUNT k 1e-400 1", ":2"},
        {"ZCOUNT k -1e-400 1e-400", ":1"},
        {"ZCOUNT k 4294967295 4294967296", ":0"},
        {"ZCOUNT k 8 99999999999", ":0"},
        {"ZCOUNT none -inf inf", ":0"},
        /* Limits are scores where less is better, too. */
        {"ZCOUNT laps:k 10 20", ":3"},
        {"ZCOUNT laps:k (20 +inf", ":1"},
        {"ZCOUNT laps:k -inf (20", ":1"},
        {"ZCOUNT laps:k 30 10", ":0"},
        /* They may have more decimals than the board. */
        {"ZCOUNT money:k 1.011 1.02", ":1"},
        {"ZCOUNT money:k (1.01 1.02", ":1"},
        {"ZCOUNT money:k -1.011 -1.009", ":1"},
        {"ZCOUNT money:k -1.0099 1.0099", ":0"},
    };
    zset_run(h, "ZADD k -5 a 0 b 1 c 1 d 7 e");
    zset_run(h, "ZADD laps:k 10 a 20 b 20 c 30 d");
    zset_run(h, "ZADD money:k 1.01 a 1.02 b -1.01 c");
    zset_expect_each(h, rows);
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

/* ---- ranks ---- */

ZSET_TEST(zrank_counts_from_the_lowest_score_and_zrevrank_from_the_highest) {
    static const char *const rows[][2] = {
        /* Among equals, who came first has the better place. */
        {"ZREVRANK k first", ":0"},
        {"ZREVRANK k third", ":2"},
        {"ZRANK k first", ":2"},
        {"ZRANK k third", ":0"},
        /* Where less is better, ZRANK is the place from the best. */
        {"ZRANK laps:k a", ":0"},
        {"ZRANK laps:k b", ":1"},
        {"ZRANK laps:k c", ":2"},
        {"ZREVRANK laps:k a", ":3"},
        {"ZREVRANK laps:k d", ":0"},
        {"ZRANK laps:k b WITHSCORE", "[:1 20]"},
        {"ZREVRANK laps:k a withscore", "[:3 10]"},
        {"ZRANK k x", "nil"},
        {"ZREVRANK none a", "nil"},
        {"ZRANK k x WITHSCORE", "nil*"},
        {"ZREVRANK none a WITHSCORE", "nil*"},
        {"ZRANK k \"\"", "nil"},
        {"ZRANK k first WITHSCORES", "-ERR syntax error"},
        {"ZREVRANK none a x", "-ERR syntax error"},
        {"ZRANK k first WITHSCORE x", "-ERR wrong number of arguments for 'zrank' command"},
    };
    static const char *const resp3[][2] = {
        {"ZRANK laps:k a WITHSCORE", "[:0 ,10]"},
        {"ZRANK k x", "_"},
        {"ZREVRANK k x WITHSCORE", "_"},
    };
    zset_run(h, "ZADD k 5 first 5 second");
    harness_pass_seconds(h, 5);
    zset_run(h, "ZADD k 5 third");
    zset_run(h, "ZADD laps:k 10 a 20 b 20 c 30 d");
    zset_expect_each(h, rows);
    zset_use_resp3(h);
    zset_expect_each(h, resp3);
}
