/* LB.AROUND, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";

/* Six members: scores 60 (a) to 10 (f). */
static void fill(struct harness *h, const char *key) {
    for (int i = 0; i < 6; i++) {
        zset_run(h, "LB.ADD %s %d %c", key, 60 - 10 * i, 'a' + i);
    }
}

/* The records' members, in order. */
static void expect_members(struct harness *h, const char *line, const char *names) {
    const char *reply = zset_run(h, "%s", line);
    char found[16];
    size_t count = 0;
    for (const char *at = strchr(reply + 1, '['); at != NULL; at = strchr(at + 1, '[')) {
        found[count++] = at[1];
    }
    found[count] = '\0';
    if (strcmp(found, names) != 0) {
        fail_msg("%s: expected %s, answered %s", line, names, reply);
    }
}

ZSET_TEST(the_member_stands_in_the_middle) {
    fill(h, "k");
    zset_expect(h, "LB.AROUND k MEMBER c 3",
                "[[b :1 :1767225600000 :50] [c :2 :1767225600000 :40] [d :3 :1767225600000 :30]]");
    expect_members(h, "LB.AROUND k MEMBER c 1", "c");
    expect_members(h, "LB.AROUND k member d 5", "bcdef");
    /* With an even count there is one more better member than worse ones: those to overtake. */
    expect_members(h, "LB.AROUND k MEMBER d 2", "cd");
    expect_members(h, "LB.AROUND k MEMBER d 4", "bcde");
}

ZSET_TEST(the_window_shifts_at_the_ends) {
    fill(h, "k");
    expect_members(h, "LB.AROUND k MEMBER a 3", "abc");
    expect_members(h, "LB.AROUND k MEMBER a 2", "ab");
    expect_members(h, "LB.AROUND k MEMBER f 3", "def");
    expect_members(h, "LB.AROUND k MEMBER e 5", "bcdef");
    expect_members(h, "LB.AROUND k MEMBER b 6", "abcdef");
    expect_members(h, "LB.AROUND k MEMBER f 7", "abcdef");
    expect_members(h, "LB.AROUND k MEMBER f 9223372036854775807", "abcdef");
    expect_members(h, "LB.AROUND k MEMBER a 1", "a");
    expect_members(h, "LB.AROUND k MEMBER f 1", "f");
}

ZSET_TEST(a_score_has_the_place_that_a_newcomer_would_get) {
    fill(h, "k");
    expect_members(h, "LB.AROUND k SCORE 35 2", "cd");
    expect_members(h, "LB.AROUND k score 35 4", "bcde");
    /* After the members that already have this score. */
    expect_members(h, "LB.AROUND k SCORE 40 2", "cd");
    expect_members(h, "LB.AROUND k SCORE 4294967295 2", "ab");
    expect_members(h, "LB.AROUND k SCORE -4294967296 3", "def");
    expect_members(h, "LB.AROUND k SCORE 0 1", "f");
    fill(h, "laps:k");
    expect_members(h, "LB.AROUND laps:k SCORE 35 2", "dc");
    expect_members(h, "LB.AROUND laps:k SCORE 40 2", "cb");
    fill(h, "latest:k");
    expect_members(h, "LB.AROUND latest:k SCORE 40 2", "bc");
    fill(h, "money:k");
    expect_members(h, "LB.AROUND money:k SCORE 39.99 2", "cd");
}

ZSET_TEST(the_other_fields_of_a_newcomer_are_zero) {
    zset_expect(h, "LB.ADD three:k 5 0 1 a 5 0 0 b 5 0 -1 c 4 1 9 d", ":4");
    expect_members(h, "LB.AROUND three:k SCORE 5 2", "bc");
    zset_run(h, "ZADD three:k 5 z");
    expect_members(h, "LB.RANGE three:k 0 -1", "abzcd");
}

ZSET_TEST(comp_shares_the_best_place) {
    zset_expect(h, "LB.ADD k 30 a 20 b 20 c 20 d", ":4");
    zset_expect(h, "LB.AROUND k MEMBER d 2 COMP",
                "[[c :1 :1767225600000 :20] [d :1 :1767225600000 :20]]");
}

ZSET_TEST(who_is_not_there_has_nobody_around) {
    fill(h, "k");
    zset_expect(h, "LB.AROUND k MEMBER z 3", "[]");
    zset_expect(h, "LB.AROUND k MEMBER \"\" 3", "[]");
    zset_expect(h, "LB.AROUND none MEMBER a 3", "[]");
    zset_expect(h, "LB.AROUND none SCORE 5 3", "[]");
}

ZSET_TEST(wrong_arguments_are_refused) {
    static const char positive[] = "-ERR value is out of range, must be positive";
    fill(h, "k");
    static const char *const keys[] = {"k", "none"};
    for (int i = 0; i < 2; i++) {
        const char *const lines[][2] = {
            {"MEMBER a 0", positive},
            {"MEMBER a -1", positive},
            {"MEMBER a -9223372036854775808", positive},
            {"MEMBER a x", "-ERR value is not an integer or out of range"},
            {"RANK a 3", syntax},
            {"MEMBER a 3 WITHKEY", syntax},
            {"MEMBER a 3 COMP REV", syntax},
            {"SCORE x 3", "-ERR value is not a valid float: field 'score'"},
            {"SCORE 1.5 3", "-ERR value 1.5 has too many decimals: field 'score' keeps 0 (more by "
                            "SCALE in the layout)"},
            {"SCORE 4294967296 3", "-ERR value 4294967296 is out of range: field 'score' takes "
                                   "-4294967296..4294967295"},
            {"SCORE inf 3", "-ERR value inf is out of range: field 'score' takes "
                            "-4294967296..4294967295"},
        };
        for (size_t line = 0; line < sizeof(lines) / sizeof(lines[0]); line++) {
            zset_expect(h, formatted("LB.AROUND %s %s", keys[i], lines[line][0]), lines[line][1]);
        }
    }
}
