/* CAP and KEEP BEST, sentence by sentence: whatever command writes. Random writes, to boards of every
 * layout: lb/test_lb_model.c. */
#include "tests/server/zset_fixture.h"

ZSET_TEST(a_newcomer_worse_than_a_full_boards_last_is_not_kept) {
    zset_expect(h, "LB.CREATE k CAP 3", "+OK");
    zset_expect(h, "ZADD k 30 a 20 b 10 c", ":3");
    zset_expect_unchanged(h, "k", "ZADD k 5 d", ":0");
    zset_expect_unchanged(h, "k", "ZADD k CH 5 d", ":0");
    zset_expect_unchanged(h, "k", "LB.ADD k 5 d", ":0");
    zset_expect_unchanged(h, "k", "LB.ADD k WITHRANK 5 d", "[[nil* nil]]");
    zset_expect_unchanged(h, "k", "ZINCRBY k 5 d", "5");
    zset_expect_unchanged(h, "k", "ZADD k INCR 5 d", "nil");
    zset_expect(h, "ZSCORE k d", "nil");
    zset_expect(h, "ZADD k 15 d", ":1");
    zset_expect(h, "ZREVRANGE k 0 -1", "[a b d]");
    zset_expect(h, "ZINCRBY k 25 c", "25");
    zset_expect(h, "ZREVRANGE k 0 -1", "[a c b]");
    zset_expect(h, "LB.ADD k WITHRANK 27 e", "[[[e :1 :1767225600000 :27] nil]]");
    zset_expect(h, "ZREVRANGE k 0 -1", "[a e c]");
    zset_use_resp3(h);
    zset_expect(h, "ZINCRBY k 5 d", ",5");
    zset_expect(h, "ZADD k INCR 5 d", "_");
}

ZSET_TEST(of_equals_the_first_stays) {
    zset_expect(h, "LB.CREATE k CAP 2", "+OK");
    zset_expect(h, "ZADD k 5 a 5 b 5 c", ":2");
    zset_expect(h, "ZREVRANGE k 0 -1", "[a b]");
    zset_expect(h, "ZADD k 5 d", ":0");
    harness_pass_seconds(h, 60);
    zset_expect(h, "ZADD k 5 d", ":0");
    zset_expect(h, "ZREVRANGE k 0 -1", "[a b]");
    zset_expect(h, "LB.CREATE less FIELD ms 32 ASC TIME 31 S CAP 2", "+OK");
    zset_expect(h, "ZADD less 7 a 5 b 9 c 7 d", ":2");
    zset_expect(h, "ZRANGE less 0 -1", "[b a]");
}

/* Not between its members: c is better than the final score of a. */
ZSET_TEST(a_cap_holds_after_the_whole_command) {
    zset_expect(h, "LB.CREATE k CAP 2", "+OK");
    zset_expect(h, "ZADD k 10 a 9 b", ":2");
    zset_expect(h, "ZADD k 8 c 1 a", ":1");
    zset_expect(h, "ZREVRANGE k 0 -1 WITHSCORES", "[b 9 c 8]");
    zset_expect(h, "ZADD k CH 7 c 20 d 30 e 40 d", ":4");
    zset_expect(h, "ZREVRANGE k 0 -1 WITHSCORES", "[d 40 e 30]");
    zset_expect(h, "LB.ADD k 1 e 5 f 6 g 50 d", ":3");
    zset_expect(h, "ZREVRANGE k 0 -1 WITHSCORES", "[d 50 g 6]");
    zset_expect(h, "LB.ADD k WITHRANK 5 x 60 y", "[[nil* nil] [[y :0 :1767225600000 :60] nil]]");
}

ZSET_TEST(many_members_are_cut_at_once) {
    struct bytes args[2 + 2 * 5000];
    static char texts[2 * 5000][16];
    args[0] = BYTES("ZADD");
    args[1] = BYTES("k");
    for (int i = 0; i < 5000; i++) {
        snprintf(texts[2 * i], sizeof(texts[0]), "%d", i * 7919 % 5000);
        snprintf(texts[2 * i + 1], sizeof(texts[0]), "m%d", i * 7919 % 5000);
        args[2 + 2 * i] = bytes_from_text(texts[2 * i]);
        args[3 + 2 * i] = bytes_from_text(texts[2 * i + 1]);
    }
    zset_expect(h, "LB.CREATE k CAP 1000", "+OK");
    assert_string_equal(
        harness_run_args(h, h->server.sessions.first, args, sizeof(args) / sizeof(args[0])),
        ":1000\r\n");
    zset_expect(h, "ZCARD k", ":1000");
    zset_expect(h, "ZREVRANGE k 998 1001", "[m4001 m4000]");
    while (registry_free_step(h->server.registry, 100)) {}
    assert_true(strtoll(zset_run(h, "MEMORY USAGE k") + 1, NULL, 10) < 40000);
}

ZSET_TEST(only_what_is_strictly_better_changes_a_member) {
    static const char *const losers[] = {
        "ZADD k 9 a",
        "ZADD k CH 10 a",
        "ZADD k XX CH 3 a",
        "ZADD k LT CH 3 a",
        "LB.ADD k 9 a",
        "LB.ADD k 10 a",
        "LB.ADD k SET =9 a",
        "LB.ADD k BEST 10 a",
        "LB.ADD k BEST TOUCH 10 a",
        "LB.ADD k TOUCH * a",
        "LB.ADD k TOUCH 9 a",
        "LB.ADD k AT 1700000000000 9 a",
        "LB.ADD k AT 1700000000000 * a",
        "LB.ADD k KEEPTIME 9 a",
        "LB.ADD k PACKED 0 a",
    };
    zset_expect(h, "LB.CREATE k KEEP BEST", "+OK");
    zset_expect(h, "ZADD k 10 a 5 b", ":2");
    harness_pass_seconds(h, 3600);
    for (size_t i = 0; i < sizeof(losers) / sizeof(losers[0]); i++) {
        zset_expect_unchanged(h, "k", losers[i], ":0");
    }
    zset_expect_unchanged(h, "k", "LB.ADD k WITHRANK 9 a", "[[[a :0 :1767225600000 :10] :0]]");
    zset_expect(h, "ZADD k CH 11 a 4 b", ":1");
    zset_expect(h, "LB.ADD k 12 a", ":1");
    zset_expect(h, "LB.ADD k AT 1700000000000 13 a", ":1");
    zset_expect(h, "LB.GET k 1 a", "[[a :0 :1700000000000 :13]]");
}

ZSET_TEST(less_is_better_where_the_layout_says_so) {
    zset_expect(h, "LB.CREATE k FIELD laps 8 FIELD ms 24 ASC TIME 31 S KEEP BEST", "+OK");
    zset_expect(h, "LB.ADD k 3 61000 a", ":1");
    zset_expect_unchanged(h, "k", "LB.ADD k 3 62000 a", ":0");
    zset_expect_unchanged(h, "k", "LB.ADD k 2 100 a", ":0");
    zset_expect(h, "LB.ADD k 3 60000 a", ":1");
    zset_expect(h, "LB.ADD k 4 99000 a", ":1");
    zset_expect(h, "ZADD k 5 a", ":0");
    zset_expect(h, "LB.GET k 1 a", "[[a :0 :1767225600000 :5 :99000]]");
    zset_expect(h, "LB.CREATE asc FIELD ms 24 ASC KEEP BEST", "+OK");
    zset_expect(h, "ZADD asc 10 a", ":1");
    zset_expect(h, "ZADD asc CH 11 a", ":0");
    zset_expect(h, "ZADD asc CH GT 11 a", ":0");
    zset_expect(h, "ZADD asc CH 9 a", ":1");
}

/* A member that is not written needs no time, so a layout whose window has ended causes no
 * error. */
ZSET_TEST(a_loser_is_no_error_after_the_last_moment) {
    zset_expect(h, "LB.CREATE k FIELD score 20 TIME 10 S START 2026-01-01T00:00:00Z KEEP BEST",
                "+OK");
    zset_expect(h, "ZADD k 10 a", ":1");
    harness_pass_seconds(h, 1024);
    zset_expect_unchanged(h, "k", "ZADD k 9 a", ":0");
    assert_memory_equal(zset_run(h, "ZADD k 11 a"), "-ERR time ", 10);
}

HARNESS_TEST(board_lines_bind_clients_that_know_nothing, "board top:* default CAP 2 KEEP BEST\n") {
    zset_expect(h, "ZADD top:a 1 a 2 b 3 c", ":2");
    zset_expect(h, "ZADD top:a 1 c", ":0");
    zset_expect(h, "ZREVRANGE top:a 0 -1 WITHSCORES", "[c 3 b 2]");
    zset_expect(h, "ZINCRBY top:a 2 d", "2");
    zset_expect(h, "ZREVRANGE top:a 0 -1 WITHSCORES", "[c 3 b 2]");
    /* A renamed board keeps its options; a new board gets those of its name. */
    zset_expect(h, "RENAME top:a other", "+OK");
    zset_expect(h, "ZADD other 1 c 9 z", ":1");
    zset_expect(h, "ZREVRANGE other 0 -1 WITHSCORES", "[z 9 c 3]");
    zset_expect(h, "ZREM other z c", ":2");
    zset_expect(h, "EXISTS other", ":0");
    zset_expect(h, "ZADD other 1 a 2 b 3 c", ":3");
}

ZSET_TEST(whoever_watches_hears_of_what_has_changed_alone) {
    static const char *const samples[][2] = {
        {"ZADD k 1 c", "[:1]"},      {"ZADD k 5 b", "[:1]"},  {"LB.ADD k 5 b", "[:1]"},
        {"ZINCRBY k 1 c", "[:1]"},   {"ZADD k 11 c", "nil*"}, {"LB.ADD k 12 d", "nil*"},
        {"ZADD k 13 e 1 f", "nil*"},
    };
    struct session *other = harness_connect(h);
    zset_expect(h, "LB.CREATE k CAP 2 KEEP BEST", "+OK");
    zset_expect(h, "ZADD k 10 a 9 b", ":2");
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        zset_expect(h, "WATCH k", "+OK");
        harness_run(h, other, samples[i][0]);
        zset_expect(h, "MULTI", "+OK");
        zset_expect(h, "EXISTS k", "+QUEUED");
        zset_expect(h, "EXEC", samples[i][1]);
    }
}
