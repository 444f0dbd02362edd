/* LB.QUANTILE and LB.HIST, sentence by sentence. */
#include "tests/server/zset_fixture.h"

/* The members at these quantiles, one letter each. */
static void expect_members(struct harness *h, const char *line, const char *names) {
    const char *reply = zset_run(h, "%s", line);
    char found[64];
    size_t count = 0;
    for (const char *at = strchr(reply + 1, '['); at != NULL; at = strchr(at + 1, '[')) {
        found[count++] = at[1];
    }
    found[count] = '\0';
    if (strcmp(found, names) != 0) {
        fail_msg("%s: expected %s, answered %s", line, names, reply);
    }
}

ZSET_TEST(quantiles_are_members_by_nearest_rank) {
    zset_expect(h, "LB.ADD k 50 a 40 b 30 c 20 d 10 e", ":5");
    zset_expect(h, "LB.QUANTILE k 0.5", "[[c :2 :1767225600000 :30]]");
    expect_members(h, "LB.QUANTILE k 0 0.2 0.4 0.6 0.8 1", "eedcba");
    expect_members(h, "LB.QUANTILE k 0.200000000000000001 0.199999999999999999 0.8000001", "dea");
    expect_members(h, "LB.QUANTILE k 1 0 1 1.0 1e0 0.01e2", "aeaaaa");
    expect_members(h, "LB.QUANTILE k .000000000000000001 .999999999999999999", "ea");
    zset_expect(h, "LB.ADD one:k 7 z", ":1");
    expect_members(h, "LB.QUANTILE one:k 0 .5 1", "zzz");
}

ZSET_TEST(the_best_is_at_one_on_every_board) {
    zset_expect(h, "LB.ADD laps:k 50 a 40 b 30 c", ":3");
    expect_members(h, "LB.QUANTILE laps:k 1 0.5 0", "cba");
}

ZSET_TEST(a_missing_key_has_no_quantiles) {
    zset_expect(h, "LB.QUANTILE none 0 1", "[nil* nil*]");
    zset_use_resp3(h);
    zset_expect(h, "LB.QUANTILE none 0.5", "[_]");
}

ZSET_TEST(what_is_no_quantile_is_refused) {
    static const char range[] = "-ERR quantile is out of range: 0..1";
    zset_expect(h, "LB.ADD k 50 a", ":1");
    zset_expect(h, "LB.QUANTILE k 0.5 1.000000000000000001", range);
    zset_expect(h, "LB.QUANTILE k -0.1", range);
    zset_expect(h, "LB.QUANTILE none 2", range);
    zset_expect(h, "LB.QUANTILE k 1e400", range);
    zset_expect(h, "LB.QUANTILE k -0", "[[a :0 :1767225600000 :50]]");
    zset_expect(h, "LB.QUANTILE k 0.5 x", "-ERR value is not a valid float");
    zset_expect(h, "LB.QUANTILE k nan", "-ERR value is not a valid float");
    zset_expect(h, "LB.QUANTILE k (0.5", "-ERR value is not a valid float");
    zset_expect(h, "LB.QUANTILE k 0.1234567890123456789",
                "-ERR quantile has too many decimals: at most 18");
}

ZSET_TEST(edges_divide_the_scores) {
    zset_expect(h, "LB.ADD k 50 a 40 b 30 c 30 d 10 e -5 f", ":6");
    zset_expect(h, "LB.HIST k 30", "[:2 :4]");
    zset_expect(h, "LB.HIST k 10 30 40 50", "[:1 :1 :2 :1 :1]");
    zset_expect(h, "LB.HIST k -5 51 1000", "[:0 :6 :0 :0]");
    zset_expect(h, "LB.HIST k -99999999999 99999999999", "[:0 :6 :0]");
    zset_expect(h, "LB.HIST k -18446744073709551615 0 18446744073709551615", "[:0 :1 :5 :0]");
    zset_expect(h, "LB.HIST k -4294967296 4294967295 4294967296", "[:0 :6 :0 :0]");
}

ZSET_TEST(edges_are_scores_also_where_less_is_better) {
    zset_expect(h, "LB.ADD laps:k 50 a 40 b 30 c 30 d 10 e", ":5");
    zset_expect(h, "LB.HIST laps:k 10 30 40", "[:0 :1 :2 :2]");
    zset_expect(h, "LB.HIST laps:k 0 60", "[:0 :5 :0]");
    zset_expect(h, "LB.ADD money:k 1.5 a 2.25 b 2.26 c", ":3");
    zset_expect(h, "LB.HIST money:k 2 2.26 3e0", "[:1 :1 :1 :0]");
    zset_expect(h, "LB.ADD three:k 5 1 7 a 5 0 0 b 6 0 -9 c", ":3");
    zset_expect(h, "LB.HIST three:k 5 6", "[:0 :2 :1]");
}

ZSET_TEST(a_missing_key_has_nobody_in_any_range) {
    zset_expect(h, "LB.HIST none 1 2", "[:0 :0 :0]");
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

ZSET_TEST(edges_must_ascend_and_be_scores) {
    static const char order[] = "-ERR edges must be strictly ascending";
    zset_expect(h, "LB.ADD k 50 a", ":1");
    static const char *const keys[] = {"k", "none"};
    for (int i = 0; i < 2; i++) {
        const char *const lines[][2] = {
            {"1 1", order},
            {"1 3 2", order},
            {"-1 -2", order},
            {"1 2 x", "-ERR value is not a valid float: field 'score'"},
            {"(1 2", "-ERR value is not a valid float: field 'score'"},
            {"1.5", "-ERR value 1.5 has too many decimals: field 'score' keeps 0 (more by SCALE in "
                    "the layout)"},
            {"1 inf", "-ERR value inf is out of range: field 'score' takes "
                      "-4294967296..4294967295"},
        };
        for (size_t line = 0; line < sizeof(lines) / sizeof(lines[0]); line++) {
            zset_expect(h, formatted("LB.HIST %s %s", keys[i], lines[line][0]), lines[line][1]);
        }
    }
}
