/* LB.GET, LB.RANGE, LB.AROUND, LB.QUANTILE and LB.HIST, sentence by sentence. Random ones, on boards of
 * every layout: test_lb_model.c. */
#include "tests/server/zset_fixture.h"
#include "tests/support/errors.h"

static const char syntax[] = "-ERR syntax error";
static const char no_integer[] = "-ERR value is not an integer or out of range";
static const char no_float[] = "-ERR value is not a valid float";
static const char no_score[] = ERROR_NUMBER("score");
static const char too_fine[] = "-ERR value 1.5 has too many decimals: field 'score' keeps 0 (round "
                               "it, or more by SCALE in the layout)";
static const char no_room[] =
    "-ERR value inf is out of range: field 'score' takes -4294967296..4294967295";

/* Six members: scores 60 (a) to 10 (f). */
static void fill(struct harness *h, const char *key) {
    for (int i = 0; i < 6; i++) {
        zset_run(h, "LB.ADD %s %d %c", key, 60 - 10 * i, 'a' + i);
    }
}

/* Each row's line, and the names of the records that it replies, in order: one letter each. */
static void expect_names(struct harness *h, const char *const (*rows)[2], size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *reply = zset_run(h, "%s", rows[i][0]);
        char found[16];
        size_t size = 0;
        for (const char *at = strchr(reply + 1, '['); at != NULL; at = strchr(at + 1, '[')) {
            found[size++] = at[1];
        }
        found[size] = '\0';
        if (strcmp(found, rows[i][1]) != 0) {
            fail_msg("%s: expected %s, answered %s", rows[i][0], rows[i][1], reply);
        }
    }
}

/* Of a key that is there and of one that is not. $ is the key. */
static void expect_refused(struct harness *h, const char *const (*rows)[2], size_t count) {
    fill(h, "k");
    for (size_t i = 0; i < 2 * count; i++) {
        const char *line = rows[i / 2][0], *dollar = strchr(line, '$');
        zset_expect(
            h, formatted("%.*s%s%s", (int)(dollar - line), line, i % 2 ? "none" : "k", dollar + 1),
            rows[i / 2][1]);
    }
}

/* ---- LB.GET and what every record has ---- */

ZSET_TEST(records_come_in_the_order_asked_for_or_sorted_with_the_missing_last) {
    zset_expect(h, "LB.ADD k 10 a 20 b 30 c", ":3");
    zset_expect(h, "LB.GET k 4 a x b a",
                "[[a :2 :1767225600000 :10] nil* [b :1 :1767225600000 :20] "
                "[a :2 :1767225600000 :10]]");
    zset_expect(h, "LB.GET k 6 x a y c b a SORT",
                "[[c :0 :1767225600000 :30] [b :1 :1767225600000 :20] [a :2 :1767225600000 :10] "
                "[a :2 :1767225600000 :10] nil* nil*]");
    zset_expect(h, "LB.GET none 2 a b SORT COMP PCT WITHKEY", "[nil* nil*]");
    zset_use_resp3(h);
    zset_expect(h, "lb.get k 2 x b", "[_ [b :1 :1767225600000 :20]]");
    zset_expect(h, "LB.GET none 1 a", "[_]");
}

ZSET_TEST(what_cannot_be_a_member_is_not_there) {
    static char bytes[65537];
    const struct bytes args[] = {BYTES("LB.GET"),        BYTES("k"), BYTES("3"),
                                 {bytes, sizeof(bytes)}, BYTES(""),  BYTES("a")};
    zset_expect(h, "LB.ADD k 1 a", ":1");
    assert_string_equal(harness_run_args(h, h->server.sessions.first, args, 6),
                        "*3\r\n*-1\r\n*-1\r\n*4\r\n$1\r\na\r\n:0\r\n:1767225600000\r\n:1\r\n");
}

ZSET_TEST(a_record_has_every_field) {
    zset_expect(h, "LB.ADD mixed:k AT 1600000000999 -12.5 3 1 -256 a", ":1");
    zset_expect(h, "LB.GET mixed:k 1 a", "[[a :0 :1600000000000 -12.5 :3 :1 :-256]]");
    zset_expect(h, "LB.ADD bare:k -5 a", ":1");
    zset_expect(h, "LB.GET bare:k 1 a", "[[a :0 nil :-5]]");
    zset_expect(h, "LB.ADD wide:k 9223372036854775807 a 9223372036854775808 b", ":2");
    zset_expect(h, "LB.GET wide:k 2 a b",
                "[[a :1 nil :9223372036854775807] [b :0 nil 9223372036854775808]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.GET mixed:k 1 a", "[[a :0 :1600000000000 ,-12.5 :3 :1 :-256]]");
    zset_expect(h, "LB.GET bare:k 1 a", "[[a :0 _ :-5]]");
    zset_expect(h, "LB.GET wide:k 2 a b",
                "[[a :1 _ :9223372036854775807] [b :0 _ (9223372036854775808]]");
}

ZSET_TEST(times_of_every_kind_are_unix_milliseconds) {
    static const struct {
        const char *key, *at, *shown;
    } times[] = {
        {"old:k", "-2208988800000", "-2208988800000"},
        {"old:k", "-1", "-1"},
        {"old:k", "0", "0"},
        {"old:k", "1767225600001", "1767225600001"},
        {"early:k", "0", "0"},
        {"early:k", "99", "99"},
        {"early:k", "999999999", "999999999"},
        {"early:k", "1000000000", "1000000000"},
        {"early:k", "1099511627775", "1099511627775"},
        {"micro:k", "1577836799001", "1577836799001"},
        {"micro:k", "1577836800000", "1577836800000"},
        {"far:k", "9223372036854775", "9223372022400000"},
        {"daily:k", "1577923199999", "1577836800000"},
        {"paid:k", "1571819021259", "1571819021000"},
    };
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        zset_run(h, "LB.ADD %s AT %s%s 1 a", times[i].key, times[i].at,
                 strcmp(times[i].key, "paid:k") == 0 ? " 1" : "");
        const char *answered = zset_run(h, "LB.GET %s 1 a", times[i].key);
        const char *expected = formatted("[[a :0 :%s :1", times[i].shown);
        assert_memory_equal(answered, expected, strlen(expected));
    }
}

/* Those that begin like now are written faster. */
ZSET_TEST(times_are_shown_alike_whatever_the_clock_shows) {
    static const int64_t clocks_ms[] = {
        -1767225600000,     0, 999999999, 1000000000, 1098765432109, 1767225600000,
        INT64_MAX / 1000000};
    static const char *const times[] = {"0",
                                        "999999999",
                                        "1000000000",
                                        "1999999999",
                                        "2000000000",
                                        "1097999999999",
                                        "1098000000000",
                                        "1098000000001",
                                        "1098999999999",
                                        "1099000000000"};
    enum { TIMES = sizeof times / sizeof times[0] };
    for (int i = 0; i < TIMES; i++) {
        zset_expect(h, formatted("LB.ADD early:k AT %s 1 m%d", times[i], i), ":1");
    }
    for (size_t clock = 0; clock < sizeof clocks_ms / sizeof clocks_ms[0]; clock++) {
        harness_set_clock(h, clocks_ms[clock] * 1000);
        for (int i = 0; i < TIMES; i++) {
            const char *answered = zset_run(h, "LB.GET early:k 1 m%d", i);
            const char *expected = formatted("[[m%d :%d :%s :1]]", i, i, times[i]);
            assert_string_equal(answered, expected);
        }
    }
}

ZSET_TEST(replies_are_byte_for_byte) {
    zset_expect(h, "LB.ADD money:k 12.30 a-member-of-more-than-thirty-two-bytes", ":1");
    const char line[] = "LB.GET money:k 1 a-member-of-more-than-thirty-two-bytes PCT WITHKEY";
    assert_string_equal(harness_run(h, h->server.sessions.first, line),
                        "*1\r\n*6\r\n$38\r\na-member-of-more-than-thirty-two-bytes\r\n:0\r\n"
                        ":1767225600000\r\n$4\r\n12.3\r\n$3\r\n100\r\n$11\r\n20649596415\r\n");
    zset_use_resp3(h);
    assert_string_equal(harness_run(h, h->server.sessions.first, line),
                        "*1\r\n*6\r\n$38\r\na-member-of-more-than-thirty-two-bytes\r\n:0\r\n"
                        ":1767225600000\r\n,12.3\r\n,100\r\n$11\r\n20649596415\r\n");
}

ZSET_TEST(comp_gives_equal_fields_the_best_place) {
    zset_expect(h, "LB.ADD k 30 a", ":1");
    zset_expect(h, "LB.ADD k 20 b", ":1");
    harness_pass_seconds(h, 1);
    zset_expect(h, "LB.ADD k 20 c 20 d 10 e", ":3");
    zset_expect(h, "LB.GET k 5 a b c d e COMP",
                "[[a :0 :1767225600000 :30] [b :1 :1767225600000 :20] [c :1 :1767225601000 :20] "
                "[d :1 :1767225601000 :20] [e :4 :1767225601000 :10]]");
    /* All fields count, and equal keys are equal. */
    zset_expect(h, "LB.ADD paid:k 5 1 a 5 1 b 5 0 c 5 0 d", ":4");
    zset_expect(h, "LB.GET paid:k 4 a b c d comp",
                "[[a :0 :1767225601000 :5 :1] [b :0 :1767225601000 :5 :1] "
                "[c :2 :1767225601000 :5 :0] [d :2 :1767225601000 :5 :0]]");
    zset_expect(h, "LB.ADD latest:k AT 1700000000000 5 a 5 b", ":2");
    zset_expect(h, "LB.ADD latest:k AT 1700000000001 5 c 6 d", ":2");
    zset_expect(h, "LB.GET latest:k 4 a b c d COMP",
                "[[a :1 :1700000000000 :5] [b :1 :1700000000000 :5] [c :1 :1700000000001 :5] "
                "[d :0 :1700000000001 :6]]");
    zset_expect(h, "LB.ADD bare:k 5 a 5 b 4 c", ":3");
    zset_expect(h, "LB.GET bare:k 3 a b c COMP", "[[a :0 nil :5] [b :0 nil :5] [c :2 nil :4]]");
    zset_expect(h, "LB.ADD laps:k 5 a 5 b 6 c 4 d", ":4");
    zset_expect(h, "LB.GET laps:k 4 a b c d COMP SORT",
                "[[d :0 :1767225601000 :4] [a :1 :1767225601000 :5] [b :1 :1767225601000 :5] "
                "[c :3 :1767225601000 :6]]");
}

ZSET_TEST(pct_is_the_share_of_those_who_are_not_better) {
    zset_expect(h, "LB.ADD k 30 a 20 b 10 c", ":3");
    zset_expect(h, "LB.GET k 3 a b c PCT",
                "[[a :0 :1767225600000 :30 100] [b :1 :1767225600000 :20 66.66666666] "
                "[c :2 :1767225600000 :10 33.33333333]]");
    zset_expect(h, "LB.ADD k 0 d 20 e", ":2");
    zset_expect(h, "LB.GET k 2 e d PCT",
                "[[e :2 :1767225600000 :20 60] [d :4 :1767225600000 :0 20]]");
    /* The rank that is shown counts. */
    zset_expect(h, "LB.GET k 2 e d COMP PCT",
                "[[e :1 :1767225600000 :20 80] [d :4 :1767225600000 :0 20]]");
    zset_use_resp3(h);
    zset_expect(h, "LB.GET k 1 e WITHKEY PCT", "[[e :2 :1767225600000 :20 ,60 44907767807]]");
}

ZSET_TEST(options_follow_the_members_in_any_order) {
    zset_expect(h, "LB.ADD k 1 SORT 2 COMP", ":2");
    zset_expect(h, "LB.GET k 2 SORT COMP sort WithKey PCT comp SORT",
                "[[COMP :0 :1767225600000 :2 100 6253062143] "
                "[SORT :1 :1767225600000 :1 50 4105578495]]");
}

ZSET_TEST(n_is_the_number_of_members_that_follow) {
    static const char wrong[] = "-ERR ...";
    static const char *const rows[][2] = {
        {"LB.GET $ 0 a b", wrong},      {"LB.GET $ 3 a b", wrong},
        {"LB.GET $ -1 a b", wrong},     {"LB.GET $ 9223372036854775807 a b", wrong},
        {"LB.GET $ 1 a b", syntax},     {"LB.GET $ x a b", no_integer},
        {"LB.GET $ 1 a LIMIT", syntax},
    };
    expect_refused(h, rows, COUNT_OF(rows));
}

ZSET_TEST(many_members_are_found_in_groups) {
    enum { MEMBERS = 6100, ASKED = 100, STEP = 61, TIED = 7 };
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "LB.ADD k %d m%d", i / TIED, i);
    }
    static char line[ASKED * 12 + 64], expected[ASKED * 40];
    for (int with_sort = 0; with_sort < 2; with_sort++) {
        int size = snprintf(line, sizeof(line), "LB.GET k %d", ASKED);
        int expected_size = snprintf(expected, sizeof(expected), "[");
        for (int i = 0; i < ASKED; i++) {
            size += snprintf(line + size, sizeof(line) - (size_t)size, " m%d", i * STEP);
            int member = (with_sort ? ASKED - 1 - i : i) * STEP;
            int better = MEMBERS - (member / TIED + 1) * TIED;
            expected_size += snprintf(
                expected + expected_size, sizeof(expected) - (size_t)expected_size,
                "%s[m%d :%d :1767225600000 :%d]", i > 0 ? " " : "", member, better, member / TIED);
        }
        strcat(expected, "]");
        strcat(line, with_sort ? " SORT COMP" : " COMP");
        zset_expect(h, line, expected);
    }
}

/* ---- LB.RANGE ---- */

ZSET_TEST(ranks_count_from_the_best_and_scores_are_limits_in_either_order) {
    static const char *const rows[][2] = {
        {"LB.RANGE k 0 -1", "abcdef"},
        {"LB.RANGE k -9 0", "a"},
        {"LB.RANGE k 2 1", ""},
        {"LB.RANGE k 0 1 REV", "fe"},
        {"LB.RANGE k -9223372036854775808 9223372036854775807", "abcdef"},
        {"LB.RANGE k 9223372036854775807 9223372036854775807", ""},
        {"LB.RANGE k 30 40 BYSCORE", "cd"},
        {"LB.RANGE k 40 30 BYSCORE REV", "dc"},
        {"LB.RANGE k inf (30 byscore", "abc"},
        {"LB.RANGE k (40 -inf BYSCORE", "def"},
        {"LB.RANGE k (30 (30 BYSCORE", ""},
        {"LB.RANGE k 29.5 30.5 BYSCORE", "d"},
        {"LB.RANGE k -inf inf BYSCORE REV LIMIT 1 2", "ed"},
        {"LB.RANGE k -inf inf LIMIT 4 -1 BYSCORE", "ef"},
        {"LB.RANGE k -inf inf BYSCORE LIMIT -1 2", ""},
        {"LB.RANGE k 0 0 LIMIT 5 -1", "a"},
        {"LB.RANGE laps:k 0 1", "fe"},
        {"LB.RANGE laps:k 50 60 BYSCORE LIMIT 1 9", "a"},
        {"LB.RANGE none 0 -1 BYSCORE REV COMP WITHKEY LIMIT 0 5", ""},
    };
    fill(h, "k");
    fill(h, "laps:k");
    expect_names(h, rows, COUNT_OF(rows));
}

ZSET_TEST(comp_and_withkey_go_with_all_of_it) {
    zset_expect(h, "LB.ADD k 40 a 30 b 30 c 20 d", ":4");
    zset_expect(h, "LB.RANGE k 2 3 COMP", "[[c :1 :1767225600000 :30] [d :3 :1767225600000 :20]]");
    zset_expect(h, "LB.RANGE k 0 2 REV comp WITHKEY",
                "[[d :3 :1767225600000 :20 44907767807] [c :1 :1767225600000 :30 66382604287] "
                "[b :1 :1767225600000 :30 66382604287]]");
    zset_expect(h, "LB.RANGE k 30 30 BYSCORE COMP LIMIT 1 1", "[[c :1 :1767225600000 :30]]");
}

ZSET_TEST(members_of_every_length_and_fields_of_every_kind) {
    zset_expect(h, "LB.ADD mixed:k AT 1600000000000 1.5 2 1 -3 a", ":1");
    for (int size = 1; size < 400; size += 13) {
        zset_run(h, "LB.ADD mixed:k AT 1600000000000 -204.8 1023 0 255 %0*d", size, 7);
    }
    zset_expect(h, "LB.RANGE mixed:k 0 0", "[[a :0 :1600000000000 1.5 :2 :1 :-3]]");
    zset_use_resp3(h);
    const char *reply = zset_run(h, "LB.RANGE mixed:k 0 -1");
    static const char first[] = "[[a :0 :1600000000000 ,1.5 :2 :1 :-3] [";
    assert_memory_equal(reply, first, strlen(first));
    assert_non_null(strstr(reply, " [7 :31 :1600000000000 ,-204.8 :1023 :0 :255]]"));
}

ZSET_TEST(long_walks_are_whole_in_both_directions) {
    enum { MEMBERS = 5000, TIED = 7 };
    for (int i = 0; i < MEMBERS; i++) {
        zset_run(h, "ZADD k %d m%d", i / TIED, i);
    }
    for (int is_reverse = 0; is_reverse < 2; is_reverse++) {
        const char *reply = zset_run(h, "LB.RANGE k 0 -1 COMP%s", is_reverse ? " REV" : "");
        const char *at = reply + 1;
        for (int i = 0; i < MEMBERS; i++) {
            int rank = is_reverse ? MEMBERS - 1 - i : i;
            /* Ranks of one score run from its first member's on. */
            int score = (MEMBERS - 1) / TIED, last_count = (MEMBERS - 1) % TIED + 1;
            int begin = 0;
            for (int left = rank; left >= (begin == 0 ? last_count : TIED); score--) {
                int count = begin == 0 ? last_count : TIED;
                left -= count;
                begin += count;
            }
            char expected[64];
            int size = snprintf(expected, sizeof(expected), "%s[m%d :%d :1767225600000 :%d]",
                                i > 0 ? " " : "", score * TIED + rank - begin, begin, score);
            assert_memory_equal(at, expected, (size_t)size);
            at += size;
        }
        assert_string_equal(at, "]");
    }
}

ZSET_TEST(ranges_that_make_no_sense_are_refused) {
    static const char by_score[] =
        "-ERR syntax error, LIMIT is only supported in combination with BYSCORE";
    static const char no_limit[] = "-ERR min or max is not a float";
    static const char *const rows[][2] = {
        {"LB.RANGE $ 0 -1 LIMIT 0 1", by_score},
        {"LB.RANGE $ x -1", no_integer},
        {"LB.RANGE $ 0 (1", no_integer},
        {"LB.RANGE $ 0 9223372036854775808", no_integer},
        {"LB.RANGE $ x 1 BYSCORE", no_limit},
        {"LB.RANGE $ 1 nan BYSCORE", no_limit},
        {"LB.RANGE $ 0 1 BYSCORE LIMIT 0", syntax},
        {"LB.RANGE $ 0 1 BYSCORE LIMIT 0 x", no_integer},
        {"LB.RANGE $ 0 1 WITHSCORES", syntax},
        {"LB.RANGE $ 0 1 PCT", syntax},
    };
    expect_refused(h, rows, COUNT_OF(rows));
}

/* ---- LB.AROUND ---- */

ZSET_TEST(the_member_stands_in_the_middle_and_the_window_shifts_at_the_ends) {
    static const char *const rows[][2] = {
        {"LB.AROUND k MEMBER c 3", "bcd"},
        {"LB.AROUND k MEMBER c 1", "c"},
        {"LB.AROUND k member d 5", "bcdef"},
        /* With an even count there is one more better member than worse ones: those to overtake. */
        {"LB.AROUND k MEMBER d 2", "cd"},
        {"LB.AROUND k MEMBER d 4", "bcde"},
        {"LB.AROUND k MEMBER a 3", "abc"},
        {"LB.AROUND k MEMBER f 3", "def"},
        {"LB.AROUND k MEMBER f 9223372036854775807", "abcdef"},
        {"LB.AROUND k MEMBER z 3", ""},
        {"LB.AROUND k MEMBER \"\" 3", ""},
        {"LB.AROUND none MEMBER a 3", ""},
        {"LB.AROUND none SCORE 5 3", ""},
        /* A score has the place that a newcomer would get: after those who have it already. */
        {"LB.AROUND k SCORE 35 2", "cd"},
        {"LB.AROUND k SCORE 40 2", "cd"},
        {"LB.AROUND k SCORE 4294967295 2", "ab"},
        {"LB.AROUND k score -4294967296 3", "def"},
        {"LB.AROUND laps:k SCORE 35 2", "dc"},
        {"LB.AROUND laps:k SCORE 40 2", "cb"},
        {"LB.AROUND latest:k SCORE 40 2", "bc"},
        {"LB.AROUND money:k SCORE 39.99 2", "cd"},
        /* Its other fields are 0. */
        {"LB.AROUND three:k SCORE 5 2", "bc"},
    };
    static const char *const prefixes[] = {"", "laps:", "latest:", "money:"};
    for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
        fill(h, formatted("%sk", prefixes[i]));
    }
    zset_expect(h, "LB.ADD three:k 5 0 1 a 5 0 0 b 5 0 -1 c 4 1 9 d", ":4");
    expect_names(h, rows, COUNT_OF(rows));
    zset_expect(h, "LB.ADD tied 30 a 20 b 20 c 20 d", ":4");
    zset_expect(h, "LB.AROUND tied MEMBER d 2 COMP",
                "[[c :1 :1767225600000 :20] [d :1 :1767225600000 :20]]");
}

ZSET_TEST(surroundings_that_make_no_sense_are_refused) {
    static const char positive[] = "-ERR ... is not a count of 1 or more";
    static const char *const rows[][2] = {
        {"LB.AROUND $ MEMBER a 0", positive},
        {"LB.AROUND $ MEMBER a -9223372036854775808", positive},
        {"LB.AROUND $ MEMBER a x", no_integer},
        {"LB.AROUND $ RANK a 3", syntax},
        {"LB.AROUND $ MEMBER a 3 PCT", syntax},
        {"LB.AROUND $ MEMBER a 3 COMP REV", syntax},
        {"LB.AROUND $ SCORE x 3", no_score},
        {"LB.AROUND $ SCORE 1.5 3", too_fine},
        {"LB.AROUND $ SCORE inf 3", no_room},
    };
    expect_refused(h, rows, COUNT_OF(rows));
}

/* ---- LB.QUANTILE, LB.HIST ---- */

ZSET_TEST(quantiles_are_members_by_nearest_rank) {
    static const char *const rows[][2] = {
        {"LB.QUANTILE k 0 0.2 0.4 0.6 0.8 1", "eedcba"},
        {"LB.QUANTILE k 0.200000000000000001 0.199999999999999999 0.8000001", "dea"},
        {"LB.QUANTILE k 1 0 1 1.0 1e0 0.01e2", "aeaaaa"},
        {"LB.QUANTILE k .000000000000000001 .999999999999999999 -0", "eae"},
        {"LB.QUANTILE one:k 0 .5 1", "zzz"},
        /* The best is at 1 on every board. */
        {"LB.QUANTILE laps:k 1 0.5 0", "cba"},
    };
    zset_expect(h, "LB.ADD k 50 a 40 b 30 c 20 d 10 e", ":5");
    zset_expect(h, "LB.ADD one:k 7 z", ":1");
    zset_expect(h, "LB.ADD laps:k 50 a 40 b 30 c", ":3");
    expect_names(h, rows, COUNT_OF(rows));
    zset_expect(h, "LB.QUANTILE k 0.5", "[[c :2 :1767225600000 :30]]");
    zset_expect(h, "LB.QUANTILE none 0 1", "[nil* nil*]");
    zset_use_resp3(h);
    zset_expect(h, "LB.QUANTILE none 0.5", "[_]");
}

ZSET_TEST(edges_divide_the_scores) {
    static const char *const rows[][2] = {
        {"LB.HIST k 30", "[:2 :4]"},
        {"LB.HIST k 10 30 40 50", "[:1 :1 :2 :1 :1]"},
        {"LB.HIST k -5 51 1000", "[:0 :6 :0 :0]"},
        {"LB.HIST k -18446744073709551615 0 18446744073709551615", "[:0 :1 :5 :0]"},
        {"LB.HIST k -4294967296 4294967295 4294967296", "[:0 :6 :0 :0]"},
        {"LB.HIST laps:k 10 30 40", "[:0 :1 :2 :2]"},
        {"LB.HIST money:k 2 2.26 3e0", "[:1 :1 :1 :0]"},
        {"LB.HIST three:k 5 6", "[:0 :2 :1]"},
        {"LB.HIST none 1 2", "[:0 :0 :0]"},
    };
    zset_expect(h, "LB.ADD k 50 a 40 b 30 c 30 d 10 e -5 f", ":6");
    zset_expect(h, "LB.ADD laps:k 50 a 40 b 30 c 30 d 10 e", ":5");
    zset_expect(h, "LB.ADD money:k 1.5 a 2.25 b 2.26 c", ":3");
    zset_expect(h, "LB.ADD three:k 5 1 7 a 5 0 0 b 6 0 -9 c", ":3");
    zset_expect_each(h, rows);
}

/* So that no request holds the server for long. */
ZSET_TEST(there_are_ten_thousand_edges_or_quantiles_at_most) {
    enum { MOST = 10000 };
    static char edges[MOST + 1][8];
    static struct bytes args[MOST + 3];
    zset_expect(h, "LB.ADD k 50 a", ":1");
    args[0] = BYTES("LB.HIST");
    args[1] = BYTES("k");
    for (int i = 0; i <= MOST; i++) {
        int size = snprintf(edges[i], sizeof edges[i], "%d", i);
        args[2 + i] = (struct bytes){.at = edges[i], .size = (size_t)size};
    }
    const char *reply = harness_run_args(h, s, args, 2 + MOST);
    assert_memory_equal(reply, "*10001\r\n", 8);
    assert_string_equal(harness_run_args(h, s, args, 3 + MOST),
                        "-ERR LB.HIST takes at most 10000 edges\r\n");
    args[0] = BYTES("LB.QUANTILE");
    for (int i = 0; i <= MOST; i++) {
        args[2 + i] = BYTES("0.5");
    }
    assert_memory_equal(harness_run_args(h, s, args, 2 + MOST), "*10000\r\n", 8);
    assert_string_equal(harness_run_args(h, s, args, 3 + MOST),
                        "-ERR LB.QUANTILE takes at most 10000 quantiles\r\n");
}

ZSET_TEST(what_is_no_quantile_and_no_edge_is_refused) {
    static const char range[] = "-ERR ... is not a quantile from 0 to 1";
    static const char order[] = "-ERR edges must be strictly ascending";
    static const char *const rows[][2] = {
        {"LB.QUANTILE $ 0.5 1.000000000000000001", range},
        {"LB.QUANTILE $ -0.1", range},
        {"LB.QUANTILE $ 1e400", range},
        {"LB.QUANTILE $ 0.5 x", no_float},
        {"LB.QUANTILE $ nan", no_float},
        {"LB.QUANTILE $ (0.5", no_float},
        {"LB.QUANTILE $ 0.1234567890123456789", "-ERR quantile has too many decimals: at most 18"},
        {"LB.HIST $ 1 1", order},
        {"LB.HIST $ 1 3 2", order},
        {"LB.HIST $ 1 2 x", no_score},
        {"LB.HIST $ (1 2", no_score},
        {"LB.HIST $ 1.5", too_fine},
        {"LB.HIST $ 1 inf", no_room},
    };
    expect_refused(h, rows, COUNT_OF(rows));
}
