/* ZSCAN, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";
static const char bad_cursor[] = "-ERR invalid cursor";

static void add_members(struct harness *h, int count) {
    for (int i = 0; i < count; i++) {
        zset_run(h, "ZADD k %d member:%d", i * 3, i);
    }
}

/* Count the members of a reply "[cursor [member:1 3 member:2 6]]"; the next cursor. */
static uint64_t tally(const char *answered, int *counts, int limit) {
    char *at;
    uint64_t cursor = strtoull(answered + 1, &at, 10);
    assert_int_equal(*at++, ' ');
    assert_int_equal(*at++, '[');
    while (*at != ']') {
        assert_memory_equal(at, "member:", 7);
        long member = strtol(at + 7, &at, 10);
        long score = strtol(at, &at, 10);
        assert_in_range(member, 0, limit - 1);
        assert_int_equal(score, member * 3);
        counts[member]++;
        at += *at == ' ';
    }
    return cursor;
}

ZSET_TEST(a_small_board_comes_at_once) {
    zset_run(h, "ZADD money:k 1.50 a");
    zset_expect(h, "ZSCAN money:k 0", "[0 [a 1.5]]");
    zset_expect(h, "ZSCAN none 0", "[0 []]");
    zset_use_resp3(h);
    zset_expect(h, "ZSCAN money:k 0", "[0 [a 1.5]]");
}

/* As in Redis, and as ZRANGE has it. */
ZSET_TEST(a_small_board_comes_in_order) {
    zset_expect(h, "ZADD k 30 c 10 a 20 b 20 d", ":4");
    zset_expect(h, "ZRANGE k 0 -1", "[a d b c]");
    zset_expect(h, "ZSCAN k 0", "[0 [a 10 d 20 b 20 c 30]]");
    zset_expect(h, "ZSCAN k 0 MATCH [ac] COUNT 1", "[0 [a 10 c 30]]");
    zset_expect(h, "LB.CREATE laps FIELD ms 32 ASC", "+OK");
    zset_expect(h, "ZADD laps 30 c 10 a 20 b", ":3");
    zset_expect(h, "ZSCAN laps 0", "[0 [a 10 b 20 c 30]]");
    zset_run(h, "DEL k");
    add_members(h, 128);
    assert_memory_equal(zset_run(h, "ZSCAN k 0 COUNT 1"), "[0 [member:0 0 member:1 3 ", 26);
    zset_run(h, "ZADD k 1000 member:128");
    assert_false(strncmp(zset_run(h, "ZSCAN k 0 COUNT 1"), "[0 ", 3) == 0);
}

ZSET_TEST(every_member_comes_at_least_once) {
    enum { MEMBERS = 3000 };
    add_members(h, MEMBERS);
    static const char *const options[] = {"",
                                          " COUNT 1",
                                          " COUNT 100",
                                          " count 9223372036854775807",
                                          " COUNT 4294967296",
                                          " MATCH * COUNT 7"};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        int seen[MEMBERS] = {0};
        uint64_t cursor = 0;
        int steps = 0;
        do {
            cursor = tally(zset_run(h, "ZSCAN k %" PRIu64 "%s", cursor, options[i]), seen, MEMBERS);
            assert_in_range(++steps, 1, 10 * MEMBERS);
        } while (cursor != 0);
        for (int member = 0; member < MEMBERS; member++) {
            assert_in_range(seen[member], 1, 1000);
        }
    }
}

ZSET_TEST(members_that_stay_come_while_others_change) {
    enum { MEMBERS = 2000 };
    add_members(h, MEMBERS);
    int seen[MEMBERS] = {0};
    uint64_t cursor = 0;
    int changes = 0;
    do {
        cursor = tally(zset_run(h, "ZSCAN k %" PRIu64, cursor), seen, MEMBERS);
        /* The odd ones leave while the scan goes on. */
        for (int i = 0; i < 20 && changes < MEMBERS / 2; i++, changes++) {
            zset_run(h, "ZREM k member:%d", changes * 2 + 1);
        }
    } while (cursor != 0);
    for (int member = 0; member < MEMBERS; member += 2) {
        assert_in_range(seen[member], 1, 1000);
    }
}

/* COUNT is a hint: the work of a step is bounded, and the steps together miss nothing. */
ZSET_TEST(a_step_is_bounded_whatever_count_is_asked_for) {
    enum { MEMBERS = 20000, STEP_MAX = 5000 };
    static int seen[MEMBERS];
    memset(seen, 0, sizeof(seen));
    add_members(h, MEMBERS);
    uint64_t cursor = 0;
    int steps = 0;
    do {
        cursor = tally(zset_run(h, "ZSCAN k %" PRIu64 " COUNT 1000000", cursor), seen, MEMBERS);
        steps++;
    } while (cursor != 0);
    assert_in_range(steps, MEMBERS / STEP_MAX, MEMBERS / 500);
    for (int member = 0; member < MEMBERS; member++) {
        assert_int_equal(seen[member], 1);
    }
}

/* The cost of matching counts, too, even on a small board. */
ZSET_TEST(a_long_pattern_makes_steps_smaller) {
    char pattern[1025] = "*";
    memset(pattern + 1, '?', sizeof(pattern) - 3);
    pattern[sizeof(pattern) - 2] = 'x';
    static const int sizes[] = {30, 2000};
    for (int i = 0; i < 2; i++) {
        zset_run(h, "DEL k");
        for (int member = 0; member < sizes[i]; member++) {
            zset_run(h, "ZADD k %d %03000d", member, member);
        }
        uint64_t cursor = 0;
        int steps = 0;
        do {
            cursor = strtoull(
                zset_run(h, "ZSCAN k %" PRIu64 " COUNT 1000000 MATCH %s", cursor, pattern) + 1,
                NULL, 10);
            steps++;
        } while (cursor != 0);
        assert_in_range(steps, sizes[i] / 10, sizes[i]);
    }
}

ZSET_TEST(match_filters_by_name) {
    zset_run(h, "ZADD k 1 apple 2 pear 3 plum");
    zset_expect(h, "ZSCAN k 0 MATCH a*", "[0 [apple 1]]");
    zset_expect(h, "ZSCAN k 0 COUNT 5 match x*", "[0 []]");
    zset_expect(h, "ZSCAN k 0 MATCH x* MATCH a[p]ple", "[0 [apple 1]]");
    zset_expect(h, "ZSCAN k 0 MATCH \"\"", "[0 []]");
}

ZSET_TEST(cursors_are_unsigned_integers) {
    zset_run(h, "ZADD k 1 a");
    static const char *const bad[] = {"x",    "-1",  "\"\"", "1x", "\" 1\"", "18446744073709551616",
                                      "0x10", "++1", "+",    "-0", "1.0"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        zset_expect(h, formatted("ZSCAN k %s", bad[i]), bad_cursor);
        zset_expect(h, formatted("ZSCAN none %s FOO", bad[i]), bad_cursor);
    }
    zset_expect(h, "ZSCAN k +0", "[0 [a 1]]");
    zset_expect(h, "ZSCAN k 000", "[0 [a 1]]");
}

ZSET_TEST(a_cursor_from_beyond_ends_the_scan) {
    add_members(h, 500);
    static const char *const cursors[] = {"18446744073709551615", "9223372036854775807",
                                          "4611686018427387903", "281474976710656"};
    for (size_t i = 0; i < sizeof(cursors) / sizeof(cursors[0]); i++) {
        zset_expect(h, formatted("ZSCAN k %s", cursors[i]), "[0 []]");
    }
    /* Any smaller cursor may be sent. */
    zset_run(h, "ZSCAN k 281474976710655");
    zset_run(h, "ZSCAN k 4294967295");
    zset_run(h, "ZSCAN k 4294967296");
}

ZSET_TEST(other_options_are_errors) {
    zset_run(h, "ZADD k 1 a");
    zset_expect(h, "ZSCAN k 0 FOO", syntax);
    zset_expect(h, "ZSCAN k 0 FOO 1", syntax);
    zset_expect(h, "ZSCAN k 0 COUNT", syntax);
    zset_expect(h, "ZSCAN k 0 MATCH", syntax);
    zset_expect(h, "ZSCAN k 0 TYPE zset", syntax);
    zset_expect(h, "ZSCAN k 0 COUNT 0", syntax);
    zset_expect(h, "ZSCAN k 0 COUNT -1", syntax);
    zset_expect(h, "ZSCAN k 0 COUNT -9223372036854775808", syntax);
    zset_expect(h, "ZSCAN k 0 COUNT x", "-ERR value is not an integer or out of range");
    zset_expect(h, "ZSCAN k 0 COUNT 9223372036854775808",
                "-ERR value is not an integer or out of range");
    zset_expect(h, "ZSCAN k 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN");
    zset_expect(h, "ZSCAN none 0 FOO", "[0 []]");
}

ZSET_TEST(without_memory_for_the_members_an_error_comes) {
    add_members(h, 100);
    struct bytes args[] = {BYTES("ZSCAN"), BYTES("k"), BYTES("0")};
    zset_expect_no_memory(h, args, 3);
}
