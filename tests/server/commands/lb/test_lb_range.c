/* LB.RANGE, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";
static const char no_integer[] = "-ERR value is not an integer or out of range";

static const char a[] = "[a :0 :1767225600000 :40]", b[] = "[b :1 :1767225600000 :30]",
                  c[] = "[c :2 :1767225600000 :30]", d[] = "[d :3 :1767225600000 :20]";

static void fill(struct harness *h) {
    zset_expect(h, "LB.ADD k 40 a 30 b 30 c 20 d", ":4");
}

/* Some of the records above: "ab" is [a b]. */
static void expect_records(struct harness *h, const char *line, const char *names) {
    char expected[512] = "[";
    for (const char *name = names; *name != '\0'; name++) {
        strcat(expected, name > names ? " " : "");
        strcat(expected, *name == 'a' ? a : *name == 'b' ? b : *name == 'c' ? c : d);
    }
    zset_expect(h, line, strcat(expected, "]"));
}

ZSET_TEST(ranks_count_from_the_best) {
    fill(h);
    expect_records(h, "LB.RANGE k 0 -1", "abcd");
    expect_records(h, "LB.RANGE k 1 2", "bc");
    expect_records(h, "LB.RANGE k -1 -1", "d");
    expect_records(h, "LB.RANGE k -2 99", "cd");
    expect_records(h, "LB.RANGE k 2 1", "");
    expect_records(h, "LB.RANGE k 4 9", "");
    expect_records(h, "LB.RANGE k -9 0", "a");
    expect_records(h, "LB.RANGE k -9223372036854775808 9223372036854775807", "abcd");
    expect_records(h, "LB.RANGE k 9223372036854775807 9223372036854775807", "");
}

ZSET_TEST(rev_walks_from_the_worst) {
    fill(h);
    expect_records(h, "LB.RANGE k 0 1 REV", "dc");
    expect_records(h, "LB.RANGE k 0 -1 rev", "dcba");
    expect_records(h, "LB.RANGE k -1 -1 REV", "a");
}

ZSET_TEST(scores_are_limits_in_either_order) {
    fill(h);
    expect_records(h, "LB.RANGE k 30 40 BYSCORE", "abc");
    expect_records(h, "LB.RANGE k 40 30 BYSCORE", "abc");
    expect_records(h, "LB.RANGE k 30 40 BYSCORE REV", "cba");
    expect_records(h, "LB.RANGE k 40 30 BYSCORE REV", "cba");
    expect_records(h, "LB.RANGE k (30 +inf BYSCORE", "a");
    expect_records(h, "LB.RANGE k inf (30 BYSCORE", "a");
    expect_records(h, "LB.RANGE k -inf (30 BYSCORE", "d");
    expect_records(h, "LB.RANGE k (40 -inf byscore", "bcd");
    expect_records(h, "LB.RANGE k 30 30 BYSCORE", "bc");
    expect_records(h, "LB.RANGE k (30 30 BYSCORE", "");
    expect_records(h, "LB.RANGE k (30 (30 BYSCORE", "");
    expect_records(h, "LB.RANGE k 29.5 30.5 BYSCORE", "bc");
    expect_records(h, "LB.RANGE k 50 60 BYSCORE", "");
    expect_records(h, "LB.RANGE k -inf +inf BYSCORE", "abcd");
}

ZSET_TEST(limit_cuts_the_walk_by_score) {
    fill(h);
    expect_records(h, "LB.RANGE k -inf inf BYSCORE LIMIT 1 2", "bc");
    expect_records(h, "LB.RANGE k -inf inf BYSCORE REV LIMIT 1 2", "cb");
    expect_records(h, "LB.RANGE k -inf inf LIMIT 2 -1 BYSCORE", "cd");
    expect_records(h, "LB.RANGE k -inf inf BYSCORE LIMIT -1 2", "");
    expect_records(h, "LB.RANGE k -inf inf BYSCORE LIMIT 9 2", "");
    expect_records(h, "LB.RANGE k -inf inf BYSCORE LIMIT 0 0", "");
    expect_records(h, "LB.RANGE k 0 0 LIMIT 5 -1", "a");
}

ZSET_TEST(less_is_better_where_the_layout_says_so) {
    zset_expect(h, "LB.ADD laps:k 40 a 30 b 30 c 20 d", ":4");
    zset_expect(h, "LB.RANGE laps:k 0 1", "[[d :0 :1767225600000 :20] [b :1 :1767225600000 :30]]");
    zset_expect(h, "LB.RANGE laps:k 30 40 BYSCORE LIMIT 1 9",
                "[[c :2 :1767225600000 :30] [a :3 :1767225600000 :40]]");
    zset_expect(h, "LB.RANGE laps:k 40 30 BYSCORE REV LIMIT 0 1", "[[a :3 :1767225600000 :40]]");
}

ZSET_TEST(comp_and_withkey_go_with_all_of_it) {
    fill(h);
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

ZSET_TEST(a_missing_key_has_no_records) {
    zset_expect(h, "LB.RANGE none 0 -1", "[]");
    zset_expect(h, "LB.RANGE none 0 -1 BYSCORE REV COMP WITHKEY LIMIT 0 5", "[]");
}

ZSET_TEST(wrong_arguments_are_refused) {
    static const char by_score[] =
        "-ERR syntax error, LIMIT is only supported in combination with BYSCORE";
    static const char no_float[] = "-ERR min or max is not a float";
    fill(h);
    static const char *const keys[] = {"k", "none"};
    for (int i = 0; i < 2; i++) {
        static const char *const lines[][2] = {
            {"LB.RANGE %s 0 -1 LIMIT 0 1", by_score},
            {"LB.RANGE %s x -1", no_integer},
            {"LB.RANGE %s 0 1.5", no_integer},
            {"LB.RANGE %s 0 (1", no_integer},
            {"LB.RANGE %s 0 9223372036854775808", no_integer},
            {"LB.RANGE %s x 1 BYSCORE", no_float},
            {"LB.RANGE %s 1 nan BYSCORE", no_float},
            {"LB.RANGE %s 0 1 BYSCORE LIMIT 0", syntax},
            {"LB.RANGE %s 0 1 BYSCORE LIMIT 0 x", no_integer},
            {"LB.RANGE %s 0 1 WITHSCORES", syntax},
            {"LB.RANGE %s 0 1 PCT", syntax},
        };
        for (size_t line = 0; line < sizeof(lines) / sizeof(lines[0]); line++) {
            zset_expect(h, formatted("LB.RANGE %s%s", keys[i], lines[line][0] + 11),
                        lines[line][1]);
        }
    }
}
