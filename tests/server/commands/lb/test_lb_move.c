/* LB.MOVE, sentence by sentence; and beside a naive twin. */
#include "tests/server/player_fixture.h"
#include "tests/support/random.h"

ZSET_TEST(the_better_result_is_kept_on_every_board) {
    zset_expect(h, "ZADD bare:1 7 old 5 new 6 bob", ":3");
    zset_expect(h, "ZADD bare:2 4 old 5 new", ":2");
    zset_expect(h, "ZADD bare:3 4 old", ":1");
    zset_expect(h, "ZADD laps:1 50 old 60 new", ":2");
    zset_expect(h, "LB.MOVE old new", "[:4 :0]");
    zset_expect(h, "ZRANGE bare:1 0 -1 WITHSCORES", "[bob 6 new 7]");
    zset_expect(h, "ZRANGE bare:2 0 -1 WITHSCORES", "[new 5]");
    zset_expect(h, "ZRANGE bare:3 0 -1 WITHSCORES", "[new 4]");
    zset_expect(h, "ZRANGE laps:1 0 -1 WITHSCORES", "[new 50]");
    zset_expect(h, "LB.MOVE old new BEST", "[:0 :0]");
    assert_int_equal(player_orders(h), 0);
}

ZSET_TEST(a_result_keeps_the_time_at_which_it_was_reached) {
    zset_expect(h, "LB.ADD k AT 1767225600000 7 old", ":1");
    zset_expect(h, "LB.ADD k AT 1767225601000 7 new", ":1");
    zset_expect(h, "LB.MOVE old new", "[:1 :0]");
    zset_expect(h, "LB.GET k 1 new", "[[new :0 :1767225600000 :7]]");
    /* A sum is reached with the later one. */
    zset_expect(h, "LB.ADD k AT 1767225603000 7 old", ":1");
    zset_expect(h, "LB.MOVE old new SUM", "[:1 :0]");
    zset_expect(h, "LB.GET k 1 new", "[[new :0 :1767225603000 :14]]");
    zset_expect(h, "LB.ADD latest:x AT 1767225603000 7 old", ":1");
    zset_expect(h, "LB.ADD latest:x AT 1767225601000 7 new", ":1");
    zset_expect(h, "LB.MOVE old new SUM", "[:1 :0]");
    zset_expect(h, "LB.GET latest:x 1 new", "[[new :0 :1767225603000 :14]]");
}

ZSET_TEST(a_sum_that_does_not_fit_leaves_both) {
    zset_expect(h, "LB.CREATE small FIELD a 3 FIELD b 3 ASC", "+OK");
    zset_expect(h, "LB.ADD small 5 1 old 3 2 new", ":2");
    zset_expect(h, "ZADD bare:1 -5 old 5 new", ":2");
    zset_expect(h, "LB.MOVE old new SUM", "[:1 :1]");
    zset_expect(h, "LB.GET small 2 old new", "[[old :0 nil :5 :1] [new :1 nil :3 :2]]");
    zset_expect(h, "ZRANGE bare:1 0 -1 WITHSCORES", "[new 0]");
    zset_expect(h, "LB.ADD small 1 1 old", ":1");
    zset_expect(h, "LB.MOVE old new SUM", "[:1 :0]");
    zset_expect(h, "LB.GET small 1 new", "[[new :0 nil :4 :3]]");
}

ZSET_TEST(only_matching_boards_of_the_database_change) {
    zset_expect(h, "ZADD a 7 old", ":1");
    zset_expect(h, "ZADD b 7 old", ":1");
    zset_expect(h, "LB.MOVE old new MATCH a", "[:1 :0]");
    zset_expect(h, "ZRANGE b 0 -1", "[old]");
    zset_expect(h, "SELECT 1", "+OK");
    zset_expect(h, "LB.MOVE old new", "[:0 :0]");
}

/* In the module nothing but the pass has looked at the board since. */
ZSET_TEST(an_archive_is_matched_from_the_end_of_its_period_on) {
    zset_expect(h, "LB.CREATE moved FIELD a 9 PERIOD DAY", "+OK");
    zset_expect(h, "LB.CREATE left FIELD a 9 PERIOD DAY", "+OK");
    zset_expect(h, "ZADD moved 7 old", ":1");
    zset_expect(h, "ZADD left 7 old 5 bob", ":2");
    harness_pass_seconds(h, 86400);
    zset_expect(h, "LB.MOVE old new MATCH moved@*", "[:1 :0]");
    zset_expect(h, "ZRANGE moved@2026-01-01 0 -1 WITHSCORES", "[new 7]");
    zset_expect(h, "LB.WHERE bob MATCH left@*", "[[left@2026-01-01 [bob :1 nil :5]]]");
    zset_expect(h, "LB.MOVE new old MATCH moved", "[:0 :0]");
}

ZSET_TEST(a_board_made_by_lb_create_keeps_its_cap) {
    zset_expect(h, "LB.CREATE k FIELD a 9 CAP 2", "+OK");
    zset_expect(h, "ZADD k 7 old 5 bob", ":2");
    zset_expect(h, "LB.MOVE old new", "[:1 :0]");
    zset_expect(h, "ZRANGE k 0 -1", "[bob new]");
}

ZSET_TEST(errors_say_what_is_wrong) {
    zset_expect(h, "LB.MOVE a a", "-ERR a member cannot be moved to itself");
    zset_expect(h, "LB.MOVE a b BEST SUM", "-ERR syntax error");
    zset_expect(h, "LB.MOVE a b LAST", "-ERR syntax error");
    zset_expect(h, "LB.MOVE a \"\"", "-ERR member is 0 bytes long: 1..65536 are allowed");
    assert_int_equal(player_orders(h), 0);
}

/* Each allocation fails in turn: every board is moved or as it was, and none loses a member. */
TEST(without_memory_each_board_is_moved_or_left) {
    bool is_reached = true;
    for (uint64_t nth = 1; is_reached; nth++) {
        static const struct world world = {.steps = {{1, 1, "ZADD k 7 old 5 new 6 bob"}}};
        struct harness *h = make_world(&world);
        uint64_t requests_before = memory_requests();
        const char *answered =
            harness_run_failing(h, h->server.sessions.first, "LB.MOVE old new", nth);
        is_reached = memory_requests() - requests_before >= nth;
        shadow_end(h->shadow); /* which has all its memory */
        if (strncmp(answered, "*2\r\n:1\r\n", 8) == 0) {
            zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[bob 6 new 7]");
        } else {
            zset_expect(h, "ZRANGE k 0 -1 WITHSCORES", "[new 5 bob 6 old 7]");
        }
        harness_destroy(h);
    }
}

TEST(random_boards_are_merged_as_a_naive_twin_says) {
    struct random random = random_begin(__func__);
    void *at;
    zset_start(&at);
    struct harness *h = at;
    for (int round = 0; round < 300; round++) {
        enum { BOARDS = 8 };
        bool is_sum = random_below(&random, 2) == 0;
        int64_t from[BOARDS], to[BOARDS];
        for (int i = 0; i < BOARDS; i++) {
            from[i] = random_below(&random, 3) == 0 ? -1 : (int64_t)random_below(&random, 9);
            to[i] = random_below(&random, 3) == 0 ? -1 : (int64_t)random_below(&random, 9);
            zset_run(h, "DEL fine:%d", i);
            zset_run(h, "ZADD fine:%d 4 bob", i);
            if (from[i] >= 0) {
                zset_run(h, "ZADD fine:%d %d from", i, (int)from[i]);
            }
            if (to[i] >= 0) {
                zset_run(h, "ZADD fine:%d %d to", i, (int)to[i]);
            }
        }
        zset_run(h, "LB.MOVE from to %s", is_sum ? "SUM" : "BEST");
        for (int i = 0; i < BOARDS; i++) {
            int64_t best = from[i] > to[i] ? from[i] : to[i];
            int64_t wanted = is_sum && from[i] >= 0 && to[i] >= 0 ? from[i] + to[i] : best;
            assert_string_equal(zset_run(h, "ZSCORE fine:%d to", i),
                                formatted(wanted >= 0 ? "%d" : "nil", (int)wanted));
            assert_string_equal(zset_run(h, "ZSCORE fine:%d from", i), "nil");
            assert_string_equal(zset_run(h, "ZSCORE fine:%d bob", i), "4");
        }
    }
    harness_tear_down(&at);
}
