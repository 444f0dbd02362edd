/* ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZPOPMIN, ZPOPMAX and ZMPOP, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char no_integer[] = "-ERR value is not an integer or out of range";
static const char no_limit[] = "-ERR min or max is not a float";
static const char not_positive[] = "-ERR value is out of range, must be positive";
static const char syntax[] = "-ERR syntax error";
static const char no_keys[] = "-ERR numkeys should be greater than 0";
static const char no_count[] = "-ERR count should be greater than 0";

ZSET_TEST(a_board_goes_with_its_last_member) {
    static const char *const lines[] = {
        "ZREM k a b x", "ZREMRANGEBYRANK k 0 -1", "ZREMRANGEBYSCORE k -inf inf", "ZPOPMIN k 2",
        "ZPOPMAX k 5",  "ZMPOP 1 k MIN COUNT 2",
    };
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        zset_expect(h, "ZADD k 1 a 2 b", ":2");
        assert_int_equal(registry_count(h->server.registry, 0), 1);
        zset_run(h, "%s", lines[i]);
        assert_null(zset_board(h, "k"));
        assert_int_equal(registry_count(h->server.registry, 0), 0);
    }
}

/* What is removed from a board of four members, and which of them are left. */
ZSET_TEST(ranges_of_ranks_and_scores_are_removed) {
    static const struct {
        const char *line, *removed, *left;
    } rows[] = {
        {"ZREMRANGEBYRANK k -1 -1", ":1", "[a b c]"},
        {"ZREMRANGEBYRANK k -100 1", ":2", "[c d]"},
        {"ZREMRANGEBYRANK k 2 1", ":0", "[a b c d]"},
        {"ZREMRANGEBYRANK k -9223372036854775808 0", ":1", "[b c d]"},
        {"ZREMRANGEBYRANK k 3 9223372036854775807", ":1", "[a b c]"},
        {"ZREMRANGEBYRANK k 9223372036854775807 -9223372036854775808", ":0", "[a b c d]"},
        {"ZREMRANGEBYRANK k 4294967296 4294967297", ":0", "[a b c d]"},
        {"ZREMRANGEBYRANK none 0 -1", ":0", "[a b c d]"},
        {"ZREMRANGEBYSCORE k (2 3", ":1", "[a b d]"},
        {"ZREMRANGEBYSCORE k -inf (4", ":3", "[d]"},
        {"ZREMRANGEBYSCORE k 3.5 +inf", ":1", "[a b c]"},
        {"ZREMRANGEBYSCORE k 3 2", ":0", "[a b c d]"},
        {"ZREMRANGEBYSCORE k 1e400 inf", ":0", "[a b c d]"},
        {"ZREMRANGEBYSCORE none 1 2", ":0", "[a b c d]"},
        {"ZREM k a x a c", ":2", "[b d]"},
        {"ZREM k \"\" y", ":0", "[a b c d]"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_run(h, "ZADD k 1 a 2 b 3 c 4 d");
        zset_expect(h, rows[i].line, rows[i].removed);
        zset_expect(h, "ZRANGE k 0 -1", rows[i].left);
    }
}

ZSET_TEST(among_equals_the_last_to_come_is_the_lowest_unless_less_is_better) {
    static const char *const rows[][2] = {
        {"ZREMRANGEBYRANK k 0 0", ":1"},
        {"ZREVRANGE k 0 -1", "[first second third]"},
        {"ZPOPMAX k", "[first 5]"},
        {"ZPOPMIN k", "[third 5]"},
        {"ZREMRANGEBYRANK laps:k 0 1", ":2"},
        {"ZREMRANGEBYSCORE laps:k (10 20", ":1"},
        {"ZRANGE laps:k 0 -1", "[d e]"},
        {"ZPOPMIN laps:k", "[d 30]"},
        {"ZMPOP 1 laps:k MAX COUNT 5", "[laps:k [[e 30]]]"},
    };
    zset_run(h, "ZADD k 5 first 5 second 5 third 5 fourth");
    zset_run(h, "ZADD laps:k 10 a 20 b 20 c 30 d 30 e");
    zset_expect_each(h, rows);
}

ZSET_TEST(wrong_arguments_remove_nothing) {
    static const char *const rows[][2] = {
        {"ZREMRANGEBYRANK k x 1", no_integer},
        {"ZREMRANGEBYRANK k 0 9223372036854775808", no_integer},
        {"ZREMRANGEBYRANK none 0 x", no_integer},
        {"ZREMRANGEBYRANK k +0 1", no_integer},
        {"ZREMRANGEBYRANK k 0 01", no_integer},
        {"ZREMRANGEBYSCORE k x 1", no_limit},
        {"ZREMRANGEBYSCORE none 1 nan", no_limit},
        {"ZPOPMIN k -1", not_positive},
        {"ZPOPMAX k -9223372036854775808", not_positive},
        {"ZPOPMIN k x", not_positive},
        {"ZPOPMAX k 1.5", not_positive},
        {"ZPOPMIN none 9223372036854775808", not_positive},
        {"ZPOPMIN k +1", not_positive},
        {"ZPOPMAX k 01", not_positive},
        {"ZPOPMIN k \" 1\"", not_positive},
        {"ZPOPMIN k 0", "[]"},
        {"ZPOPMIN none 9223372036854775807", "[]"},
        {"ZPOPMIN k 1 2", syntax},
        {"ZPOPMAX k x 2", syntax},
        {"ZMPOP 0 k MIN", no_keys},
        {"ZMPOP -9223372036854775808 k MIN", no_keys},
        {"ZMPOP 9223372036854775808 k MIN", no_keys},
        {"ZMPOP x k MIN", no_keys},
        {"ZMPOP 1 k MIN COUNT 0", no_count},
        {"ZMPOP 1 k MIN COUNT -1", no_count},
        {"ZMPOP 1 k MIN COUNT 9223372036854775808", no_count},
        {"ZMPOP 1 none MAX COUNT x", no_count},
        {"ZMPOP 1 k MIN COUNT 1.0", no_count},
        {"ZMPOP 1 k MIN COUNT 1e0", no_count},
        {"ZMPOP +1 k MIN", no_keys},
        {"ZMPOP 2 k MIN", syntax},
        {"ZMPOP 1 k k MIN", syntax},
        {"ZMPOP 9223372036854775807 k MIN", syntax},
        {"ZMPOP 4294967297 k MIN", syntax},
        {"ZMPOP 2147483647 k MIN", syntax},
        {"ZMPOP 1 k FOO", syntax},
        {"ZMPOP 1 k MIN FOO 1", syntax},
        {"ZMPOP 1 k MIN MIN", syntax},
        {"ZMPOP 1 k MIN COUNT", syntax},
        {"ZMPOP 1 k MIN COUNT 1 COUNT 2", syntax},
    };
    zset_run(h, "ZADD k 1 a 2 b");
    zset_expect_each_unchanged(h, "k", rows);
}

ZSET_TEST(removal_needs_no_memory) {
    for (int i = 0; i < 3000; i++) {
        zset_run(h, "ZADD k %d member:%d", i % 97, i);
    }
    for (int i = 0; i < 3000; i++) {
        const char *line = formatted("ZREM k member:%d", i);
        assert_string_equal(harness_run_failing(h, s, line, 1), ":1\r\n");
    }
    assert_null(zset_board(h, "k"));
}

/* ---- pops ---- */

ZSET_TEST(without_a_count_resp3_is_flat_with_one_it_is_pairs) {
    zset_use_resp3(h);
    zset_run(h, "ZADD k 1 a 2 b 3 c 4 d");
    zset_expect(h, "ZPOPMIN k", "[a ,1]");
    zset_expect(h, "ZPOPMIN k 1", "[[b ,2]]");
    zset_expect(h, "ZPOPMAX k 0", "[]");
    zset_expect(h, "ZPOPMAX k 9", "[[d ,4] [c ,3]]");
    zset_expect(h, "ZPOPMAX k", "[]");
    zset_expect(h, "ZPOPMAX k 9", "[]");
}

ZSET_TEST(absurd_counts_take_all) {
    static const char *const counts[] = {"9223372036854775807", "4611686018427387903", "4294967296",
                                         "4294967298"};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        zset_run(h, "ZADD k 1 a 2 b 3 c");
        zset_expect(h, formatted("ZPOPMAX k %s", counts[i]), "[c 3 b 2 a 1]");
        zset_run(h, "ZADD k 1 a 2 b 3 c");
        zset_expect(h, formatted("ZMPOP 1 k MIN COUNT %s", counts[i]), "[k [[a 1] [b 2] [c 3]]]");
    }
}

ZSET_TEST(zmpop_takes_from_the_first_board_that_has_members) {
    static const char *const rows[][2] = {
        {"ZMPOP 3 none k l MIN", "[k [[a 1]]]"},
        {"ZMPOP 3 k k l max count 5", "[k [[c 3] [b 2]]]"},
        {"ZMPOP 3 none k l MIN", "[l [[x 1]]]"},
        {"ZMPOP 3 none k l MIN", "nil*"},
    };
    zset_run(h, "ZADD k 1 a 2 b 3 c");
    zset_run(h, "ZADD l 1 x 2 y");
    zset_expect(h, "ZREM l y", ":1");
    zset_expect_each(h, rows);
    zset_run(h, "ZADD l 1 x");
    zset_use_resp3(h);
    zset_expect(h, "ZMPOP 2 k l MAX", "[l [[x ,1]]]");
    zset_expect(h, "ZMPOP 2 k l MAX", "_");
}

ZSET_TEST(a_pop_whose_reply_cannot_be_kept_takes_nothing) {
    for (int i = 0; i < 1000; i++) {
        zset_run(h, "ZADD k %d member:%d", i, i);
    }
    OWNED char *before = zset_dump(h, "k");
    assert_true(harness_breaks(h, s, "ZPOPMIN k 900", 1000));
    OWNED char *after = zset_dump(h, "k");
    assert_string_equal(before, after);
}
