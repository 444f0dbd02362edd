/* ZSCAN, HSCAN and SCAN, sentence by sentence: each of a board, of a hash, or of keys. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";
static const char no_integer[] = "-ERR value is not an integer or out of range";

/* What is walked over: its entries are item:<n> with the value 3 n, if they have any. */
struct scanned {
    const char *command, *key; /* SCAN k, or SCAN alone */
    const char *remove;        /* before the name */
    int small;                 /* so many come in one step */
    bool has_values;
};

static const struct scanned board = {"ZSCAN", "k", "ZREM k", 128, true};
static const struct scanned hash = {"HSCAN", "k", "HDEL k", 200, true};
static const struct scanned keys = {"SCAN", "", "DEL", 0, false};

static void add(struct harness *h, const struct scanned *of, const char *name, const char *value) {
    if (of == &board) {
        zset_run(h, "ZADD k %s %s", value, name);
    } else {
        zset_run(h, of == &hash ? "HSET k %s %s" : "HSET %s f %s", name, value);
    }
}

static void add_items(struct harness *h, const struct scanned *of, int count) {
    for (int i = 0; i < count; i++) {
        add(h, of, formatted("item:%d", i), formatted("%d", i * 3));
    }
}

/* One step: the items of a reply "[cursor [item:1 3 item:2 6]]" are counted, others passed over; the
 * next cursor. */
static uint64_t scan(struct harness *h, const struct scanned *of, uint64_t cursor,
                     const char *options, int *counts, int limit) {
    char *at;
    const char *answered =
        zset_run(h, "%s %s %" PRIu64 "%s", of->command, of->key, cursor, options);
    uint64_t next = strtoull(answered + 1, &at, 10);
    assert_memory_equal(at, " [", 2);
    at += 2;
    while (*at != ']') {
        bool is_item = strncmp(at, "item:", 5) == 0;
        long item = strtol(strchr(at, ':') + 1, &at, 10);
        long value = of->has_values ? strtol(at, &at, 10) : item * 3;
        if (is_item) {
            assert_in_range(item, 0, limit - 1);
            assert_int_equal(value, item * 3);
            counts[item]++;
        }
        at += *at == ' ';
    }
    return next;
}

#define EXPECT(line, expected) zset_expect(h, formatted("%s %s", of->command, line), expected)

#define SCAN_TEST(name)                                                                            \
    static void name(struct harness *h, const struct scanned *of);                                 \
    ZSET_TEST(name##_of_a_board) {                                                                 \
        name(h, &board);                                                                           \
    }                                                                                              \
    ZSET_TEST(name##_of_a_hash) {                                                                  \
        name(h, &hash);                                                                            \
    }                                                                                              \
    static void name(struct harness *h, const struct scanned *of)
#define WALK_TEST(name)                                                                            \
    static void name##_of_each(struct harness *h, const struct scanned *of);                       \
    SCAN_TEST(name) {                                                                              \
        name##_of_each(h, of);                                                                     \
    }                                                                                              \
    ZSET_TEST(name##_of_keys) {                                                                    \
        name##_of_each(h, &keys);                                                                  \
    }                                                                                              \
    static void name##_of_each(struct harness *h, const struct scanned *of)

SCAN_TEST(what_is_small_comes_at_once_whatever_count_says) {
    int seen[200] = {0};
    add(h, of, "a", "1");
    add(h, of, "b", "2");
    EXPECT("k 0 COUNT 1", "[0 [a 1 b 2]]");
    EXPECT("none 0", "[0 []]");
    zset_use_resp3(h);
    EXPECT("k 0", "[0 [a 1 b 2]]");
    zset_run(h, "FLUSHALL");
    add_items(h, of, of->small);
    assert_int_equal(scan(h, of, 0, " COUNT 1", seen, of->small), 0);
    for (int i = 0; i < of->small; i++) {
        assert_int_equal(seen[i], 1);
    }
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
    zset_expect(h, "ZADD money:k 1.50 a", ":1");
    zset_expect(h, "ZSCAN money:k 0", "[0 [a 1.5]]");
    zset_expect(h, "DEL k", ":1");
    add_items(h, &board, 128);
    assert_memory_equal(zset_run(h, "ZSCAN k 0 COUNT 1"), "[0 [item:0 0 item:1 3 ", 22);
    zset_run(h, "ZADD k 1000 item:128");
    assert_false(strncmp(zset_run(h, "ZSCAN k 0 COUNT 1"), "[0 ", 3) == 0);
}

WALK_TEST(everything_comes_at_least_once) {
    enum { ITEMS = 3000 };
    static const char *const options[] = {
        "",
        " COUNT 1",
        " COUNT 100",
        " count 9223372036854775807",
        " COUNT 4294967296",
        " MATCH * COUNT 7",
    };
    add_items(h, of, ITEMS);
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        int seen[ITEMS] = {0};
        uint64_t cursor = 0;
        int steps = 0;
        do {
            cursor = scan(h, of, cursor, options[i], seen, ITEMS);
            assert_in_range(++steps, 1, 10 * ITEMS);
        } while (cursor != 0);
        for (int item = 0; item < ITEMS; item++) {
            assert_in_range(seen[item], 1, 1000);
        }
    }
}

/* The odd ones leave while the scan goes on, others come, or both: the table shrinks and grows. */
WALK_TEST(what_stays_comes_while_others_change) {
    enum { ITEMS = 2000 };
    for (int growth = -1; growth <= 1; growth++) {
        int seen[ITEMS] = {0};
        uint64_t cursor = 0;
        int changes = 0;
        zset_run(h, "FLUSHALL");
        add_items(h, of, ITEMS);
        do {
            cursor = scan(h, of, cursor, " MATCH item:* COUNT 7", seen, ITEMS);
            for (int i = 0; i < 20; i++, changes++) {
                if (growth <= 0 && changes < ITEMS / 2) {
                    zset_run(h, "%s item:%d", of->remove, changes * 2 + 1);
                }
                if (growth >= 0) {
                    add(h, of, formatted("other:%d", changes), "7");
                }
            }
        } while (cursor != 0);
        for (int item = 0; item < ITEMS; item += 2) {
            assert_in_range(seen[item], 1, 1000);
        }
    }
}

/* What begins small and grows: the scan is over before or finds what stays. */
WALK_TEST(a_scan_goes_on_when_much_becomes_little) {
    int seen[100] = {0};
    add_items(h, of, 100);
    assert_true(scan(h, of, 0, "", seen, 100) == 0 || of == &keys);
    for (int i = 0; i < 2000; i++) {
        add(h, of, formatted("other:%d", i), "7");
    }
    uint64_t cursor = strtoull(zset_run(h, "%s %s 0", of->command, of->key) + 1, NULL, 10);
    assert_true(cursor > 0);
    zset_run(h, "FLUSHALL");
    add_items(h, of, 2);
    /* From any cursor on, what is left ends. */
    for (int steps = 0; cursor != 0; steps++) {
        assert_in_range(steps, 0, 10);
        cursor = scan(h, of, cursor, "", seen, 100);
    }
}

/* COUNT is a hint: the work of a step is bounded, and the steps together miss nothing. */
WALK_TEST(a_step_is_bounded_whatever_count_is_asked_for) {
    enum { ITEMS = 20000, STEP_MAX = 5000 };
    static int seen[ITEMS];
    uint64_t cursor = 0;
    int steps = 0;
    memset(seen, 0, sizeof(seen));
    add_items(h, of, ITEMS);
    do {
        cursor = scan(h, of, cursor, " COUNT 1000000", seen, ITEMS);
        steps++;
    } while (cursor != 0);
    assert_in_range(steps, ITEMS / STEP_MAX, ITEMS / 500);
    for (int item = 0; item < ITEMS; item++) {
        assert_int_equal(seen[item], 1);
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

SCAN_TEST(match_filters_by_name) {
    add(h, of, "apple", "1");
    add(h, of, "pear", "2");
    add(h, of, "plum", "3");
    EXPECT("k 0 MATCH a*", "[0 [apple 1]]");
    EXPECT("k 0 COUNT 5 match x*", "[0 []]");
    EXPECT("k 0 MATCH x* MATCH p[l]um", "[0 [plum 3]]");
    EXPECT("k 0 MATCH \"\"", "[0 []]");
}

SCAN_TEST(what_is_no_cursor_and_no_option_is_an_error) {
    static const char *const bad[] = {"x",    "-1",  "\"\"", "1x", "\" 1\"", "18446744073709551616",
                                      "0x10", "++1", "+",    "-0", "1.0"};
    static const char *const rows[][2] = {
        {"k 0 FOO", syntax},
        {"k 0 FOO 1", syntax},
        {"k 0 COUNT", syntax},
        {"k 0 MATCH", syntax},
        {"k 0 TYPE zset", syntax},
        {"k 0 COUNT 0", syntax},
        {"k 0 COUNT -9223372036854775808", syntax},
        {"k 0 COUNT x", no_integer},
        {"k 0 COUNT 9223372036854775808", no_integer},
        {"none 0 FOO", "[0 []]"},
        {"k +0", "[0 [a 1]]"},
        {"k 000", "[0 [a 1]]"},
    };
    add(h, of, "a", "1");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        EXPECT(formatted("k %s", bad[i]), "-ERR invalid cursor");
        EXPECT(formatted("none %s FOO", bad[i]), "-ERR invalid cursor");
    }
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        EXPECT(rows[i][0], rows[i][1]);
    }
    EXPECT("k 0 NOVALUES", of == &hash ? syntax : "-ERR NOVALUES option can only be used in HSCAN");
}

ZSET_TEST(a_cursor_from_beyond_ends_the_scan) {
    add_items(h, &board, 500);
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

SCAN_TEST(without_memory_an_error_comes) {
    add_items(h, of, 100);
    assert_string_equal(
        harness_run_failing(h, h->server.sessions.first, formatted("%s k 0", of->command), 1),
        "-OOM out of memory\r\n");
}
