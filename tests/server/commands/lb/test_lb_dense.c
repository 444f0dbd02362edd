/* DENSE: the option that has a board count its different scores, and the word that shows ranks by them. Ranks themselves
 * on boards of every layout: test_lb_model.c; while scores come and go: tests/skiplist/test_dense.c. */
#include "tests/server/zset_fixture.h"

static const char no_dense[] =
    "-ERR board does not count its different scores: LB.ALTER key DENSE YES";

/* zoe 30, ann and bob 20, kim 10. */
static void fill(struct harness *h, const char *key) {
    zset_expect(h, formatted("LB.ADD %s 30 zoe 20 ann 20 bob 10 kim", key), ":4");
}

ZSET_TEST(members_of_equal_score_share_a_rank_and_the_next_is_one_more) {
    zset_expect(h, "LB.CREATE k DENSE", "+OK");
    zset_expect(h, "LB.ADD k 30 zoe 20 ann", ":2");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD k 20 bob 10 kim", ":2");
    zset_expect(h, "LB.RANGE k 0 -1 DENSE",
                "[[zoe :0 :1767225600000 :30] [ann :1 :1767225600000 :20] "
                "[bob :1 :1767225601000 :20] [kim :2 :1767225601000 :10]]");
    zset_expect(h, "LB.RANGE k 0 1 REV DENSE",
                "[[kim :2 :1767225601000 :10] [bob :1 :1767225601000 :20]]");
    zset_expect(h, "LB.RANGE k 15 25 BYSCORE DENSE LIMIT 1 5", "[[bob :1 :1767225601000 :20]]");
    zset_expect(h, "LB.GET k 3 kim none bob SORT DENSE",
                "[[bob :1 :1767225601000 :20] [kim :2 :1767225601000 :10] nil*]");
    zset_expect(h, "LB.AROUND k MEMBER kim 2 DENSE",
                "[[bob :1 :1767225601000 :20] [kim :2 :1767225601000 :10]]");
    zset_expect(h, "LB.AROUND k SCORE 20 1 DENSE", "[[kim :2 :1767225601000 :10]]");
    zset_expect(h, "LB.QUANTILE k 0 1 DENSE",
                "[[kim :2 :1767225601000 :10] [zoe :0 :1767225600000 :30]]");
    /* Places stay those of the order; PCT is of the different scores. */
    zset_expect(
        h, "LB.GET k 2 ann kim DENSE PCT",
        "[[ann :1 :1767225600000 :20 66.66666666] [kim :2 :1767225601000 :10 33.33333333]]");
    zset_expect(h, "ZREM k ann", ":1");
    zset_expect(h, "ZREM k bob", ":1");
    zset_expect(h, "LB.GET k 1 kim DENSE", "[[kim :1 :1767225601000 :10]]");
}

ZSET_TEST(all_fields_make_a_score_and_the_time_does_not) {
    zset_expect(h, "LB.CREATE k LAYOUT paid DENSE", "+OK");
    zset_expect(h, "LB.ADD k 5 1 a 5 1 b 5 0 c 4 1 d", ":4");
    zset_expect(h, "LB.RANGE k 0 -1 DENSE",
                "[[a :0 :1767225600000 :5 :1] [b :0 :1767225600000 :5 :1] "
                "[c :1 :1767225600000 :5 :0] [d :2 :1767225600000 :4 :1]]");
    zset_expect(h, "LB.CREATE bare LAYOUT bare DENSE", "+OK");
    zset_expect(h, "LB.ADD bare 5 a 5 b 4 c", ":3");
    zset_expect(h, "LB.GET bare 2 b c DENSE", "[[b :0 nil :5] [c :1 nil :4]]");
    zset_expect(h, "LB.CREATE laps LAYOUT laps DENSE", "+OK");
    zset_expect(h, "LB.ADD laps 5 a 5 b 4 c", ":3");
    zset_expect(h, "LB.GET laps 2 b c DENSE",
                "[[b :1 :1767225600000 :5] [c :0 :1767225600000 :4]]");
}

ZSET_TEST(what_cannot_be_asked_for_is_refused) {
    static const char group[] =
        "-ERR DENSE is a rank on the whole board: it excludes WHERE, WHERENOT and WITHIN";
    static const char *const rows[][2] = {
        {"LB.GET k 1 ann DENSE", no_dense},
        {"LB.RANGE k 0 -1 DENSE", no_dense},
        {"LB.AROUND k MEMBER ann 2 DENSE", no_dense},
        {"LB.QUANTILE k 0.5 DENSE", no_dense},
        {"LB.ALTER k TAG country 8 DENSE YES", "+OK"},
        {"LB.GET k 1 ann DENSE COMP", "-ERR COMP and DENSE exclude each other"},
        {"LB.GET k 1 ann DENSE WITHIN country", group},
        {"LB.RANGE k 0 -1 DENSE WHERE country DE", group},
        {"LB.AROUND k MEMBER ann 2 DENSE WHERENOT country DE", group},
        {"LB.QUANTILE k 0.5 DENSE WHERE country DE", group},
        {"LB.RANGE none 0 -1 DENSE WHERE country DE", group},
        {"LB.RANGE none 0 -1 DENSE", "[]"},
        {"LB.GET none 1 ann DENSE", "[nil*]"},
        {"LB.QUANTILE none 1 DENSE", "[nil*]"},
        {"LB.ALTER k DENSE x", "-ERR DENSE 'x' is unknown: use YES or NO (LB.ALTER key ...)"},
        {"LB.ALTER k DENSE YES DENSE NO", "-ERR DENSE may be given only once (LB.ALTER key ...)"},
    };
    fill(h, "k");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        zset_expect(h, rows[i][0], rows[i][1]);
    }
}

/* Of a board of one leaf, and of many. */
ZSET_TEST(a_board_begins_and_ends_to_count) {
    enum { MEMBERS = 1000, SHARING = 3 };
    fill(h, "small");
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "LB.ADD large %d m%d", i / SHARING, i);
    }
    for (int round = 0; round < 2; round++) {
        zset_expect(h, "LB.GET small 1 kim DENSE", no_dense);
        zset_expect(h, "LB.GET large 1 m0 DENSE", no_dense);
        zset_expect(h, "LB.ALTER small DENSE YES", "+OK");
        zset_expect(h, "LB.ALTER large DENSE", "+OK");
        zset_expect(h, "LB.GET small 1 kim DENSE", "[[kim :2 :1767225600000 :10]]");
        zset_expect(h, "LB.GET large 2 m0 m999 DENSE",
                    "[[m0 :333 :1767225600000 :0] [m999 :0 :1767225600000 :333]]");
        zset_expect_part(h, "LB.INFO large", "dense :1");
        zset_expect(h, "LB.ALTER small DENSE NO", "+OK");
        zset_expect(h, "LB.ALTER large DENSE NO", "+OK");
        zset_expect_part(h, "LB.INFO large", "dense :0");
        /* While nobody counts, scores come and go. */
        zset_expect(h, "LB.ADD large 500 m1", ":1");
        zset_expect(h, "LB.ADD large 0 m1", ":1");
    }
}

ZSET_TEST(copies_and_renamed_and_restored_boards_count_as_well) {
    zset_expect(h, "LB.CREATE k DENSE", "+OK");
    fill(h, "k");
    zset_expect(h, "COPY k copy", ":1");
    zset_expect(h, "RENAME k moved", "+OK");
    zset_expect(h, "LB.GET copy 1 kim DENSE", "[[kim :2 :1767225600000 :10]]");
    zset_expect(h, "LB.GET moved 1 kim DENSE", "[[kim :2 :1767225600000 :10]]");
    zset_expect(h, "LB.ROLL moved then", ":4");
    zset_expect(h, "LB.GET then 1 kim DENSE", "[[kim :2 :1767225600000 :10]]");
    zset_expect(h, "LB.ADD moved 10 kim", ":1");
    zset_expect(h, "LB.GET moved 1 kim DENSE SINCE then", "[[kim :0 :1767225600000 :10 :2]]");
    /* The other board has to count, too. */
    fill(h, "plain");
    zset_expect(h, "LB.GET moved 1 kim DENSE SINCE plain",
                "-ERR board of SINCE does not count its different scores: LB.ALTER key DENSE YES");
}

ZSET_TEST(a_board_of_its_own_that_is_stored_into_counts_what_is_stored) {
    zset_expect(h, "LB.CREATE k DENSE", "+OK");
    fill(h, "a");
    zset_expect(h, "ZUNIONSTORE k 2 a k", ":4");
    zset_expect(h, "LB.GET k 2 bob kim DENSE",
                "[[bob :1 :1767225600000 :20] [kim :2 :1767225600000 :10]]");
    zset_expect(h, "ZRANGESTORE k a 0 1", ":2");
    zset_expect(h, "LB.RANGE k 0 -1 DENSE",
                "[[bob :0 :1767225600000 :20] [kim :1 :1767225600000 :10]]");
}

ZSET_TEST(rooms_of_a_league_count_if_it_says_so) {
    zset_expect(h, "LB.LEAGUE CREATE weekly DENSE PERIOD WEEK ROOM 30 TIERS 3 UP 5 DOWN 5", "+OK");
    zset_expect_part(h, "LB.LEAGUE ADD weekly INCR 20 ann", ":1");
    zset_expect_part(h, "LB.LEAGUE ADD weekly INCR 20 bob", ":1");
    zset_expect_part(h, "LB.LEAGUE ADD weekly INCR 10 kim", ":1");
    zset_expect_part(h, "LB.INFO {weekly}:rooms", "dense :1");
    zset_expect_part(h, "LB.RANGE {weekly}:1:1 0 -1 DENSE", "[kim :1 ");
}

/* CAP and STALE take members off. */
ZSET_TEST(who_leaves_the_board_leaves_the_count) {
    zset_expect(h, "LB.CREATE k CAP 2 DENSE", "+OK");
    zset_expect(h, "LB.ADD k 30 zoe 20 ann 20 bob 10 kim", ":2");
    zset_expect(h, "LB.RANGE k 0 -1 DENSE",
                "[[zoe :0 :1767225600000 :30] [ann :1 :1767225600000 :20]]");
    zset_expect(h, "LB.ALTER k CAP NONE STALE 1 HOUR", "+OK");
    harness_pass_seconds(h, 1800);
    zset_expect(h, "LB.ADD k 10 kim", ":1");
    harness_pass_seconds(h, 1900);
    shadow_end(h->shadow); /* there members leave by a timer */
    harness_drop_stale(h);
    zset_expect(h, "LB.GET k 1 kim DENSE", "[[kim :0 :1767227400000 :10]]");
}
