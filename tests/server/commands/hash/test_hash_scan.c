/* HSCAN, sentence by sentence. */
#include "tests/server/zset_fixture.h"

static const char syntax[] = "-ERR syntax error";

static void set_fields(struct harness *h, int count) {
    for (int i = 0; i < count; i++) {
        zset_run(h, "HSET k field:%d %d", i, i * 3);
    }
}

/* Count the fields of a reply "[cursor [field:1 3 field:2 6]]"; the next cursor. */
static uint64_t tally(const char *answered, int *counts, int limit) {
    char *at;
    uint64_t cursor = strtoull(answered + 1, &at, 10);
    assert_int_equal(*at++, ' ');
    assert_int_equal(*at++, '[');
    while (*at != ']') {
        assert_memory_equal(at, "field:", 6);
        long field = strtol(at + 6, &at, 10);
        long value = strtol(at, &at, 10);
        assert_in_range(field, 0, limit - 1);
        assert_int_equal(value, field * 3);
        counts[field]++;
        at += *at == ' ';
    }
    return cursor;
}

ZSET_TEST(a_small_hash_comes_at_once_whatever_count_says) {
    zset_run(h, "HSET k a 1 b 2 c 3");
    zset_expect(h, "HSCAN k 0 COUNT 1", "[0 [a 1 b 2 c 3]]");
    zset_expect(h, "HSCAN none 0", "[0 []]");
    zset_use_resp3(h);
    zset_expect(h, "HSCAN k 0", "[0 [a 1 b 2 c 3]]");
    int seen[200] = {0};
    set_fields(h, 0);
    zset_run(h, "DEL k");
    set_fields(h, 200);
    assert_int_equal(tally(zset_run(h, "HSCAN k 0"), seen, 200), 0);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(seen[i], 1);
    }
}

ZSET_TEST(every_field_comes_at_least_once) {
    enum { FIELDS = 3000 };
    set_fields(h, FIELDS);
    static const char *const options[] = {"",
                                          " COUNT 1",
                                          " COUNT 100",
                                          " count 9223372036854775807",
                                          " COUNT 4294967296",
                                          " MATCH * COUNT 7"};
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        int seen[FIELDS] = {0};
        uint64_t cursor = 0;
        int steps = 0;
        do {
            cursor = tally(zset_run(h, "HSCAN k %" PRIu64 "%s", cursor, options[i]), seen, FIELDS);
            assert_in_range(++steps, 1, 10 * FIELDS);
        } while (cursor != 0);
        for (int field = 0; field < FIELDS; field++) {
            assert_in_range(seen[field], 1, 1000);
        }
    }
}

/* Fields leave and come while the scan goes on, so the table grows and shrinks under it. */
ZSET_TEST(fields_that_stay_come_while_others_change) {
    enum { FIELDS = 2000 };
    static const int growths[] = {-1, 0, 1};
    for (int round = 0; round < 3; round++) {
        zset_run(h, "DEL k");
        set_fields(h, FIELDS);
        int seen[FIELDS] = {0};
        uint64_t cursor = 0;
        int changes = 0;
        do {
            const char *answered = zset_run(h, "HSCAN k %" PRIu64 " MATCH field:*", cursor);
            cursor = tally(answered, seen, FIELDS);
            for (int i = 0; i < 20; i++, changes++) {
                if (growths[round] <= 0 && changes < FIELDS / 2) {
                    zset_run(h, "HDEL k field:%d", changes * 2 + 1);
                }
                if (growths[round] >= 0) {
                    zset_run(h, "HSET k other:%d x", changes);
                }
            }
        } while (cursor != 0);
        for (int field = 0; field < FIELDS; field += 2) {
            assert_in_range(seen[field], 1, 1000);
        }
    }
}

/* What begins small and grows: the scan is over before or finds what stays. */
ZSET_TEST(a_hash_that_becomes_large_or_small_is_scanned_on) {
    int seen[100] = {0};
    set_fields(h, 100);
    assert_int_equal(tally(zset_run(h, "HSCAN k 0"), seen, 100), 0);
    for (int i = 0; i < 2000; i++) {
        zset_run(h, "HSET k other:%d x", i);
    }
    uint64_t cursor = strtoull(zset_run(h, "HSCAN k 0") + 1, NULL, 10);
    assert_true(cursor > 0);
    zset_run(h, "DEL k");
    zset_run(h, "HSET k field:1 3");
    /* From any cursor on, what is left ends. */
    for (int steps = 0; cursor != 0; steps++) {
        assert_in_range(steps, 0, 10);
        cursor = tally(zset_run(h, "HSCAN k %" PRIu64, cursor), seen, 100);
    }
}

/* COUNT is a hint: the work of a step is bounded, and the steps together miss nothing. */
ZSET_TEST(a_step_is_bounded_whatever_count_is_asked_for) {
    enum { FIELDS = 20000, STEP_MAX = 5000 };
    static int seen[FIELDS];
    memset(seen, 0, sizeof(seen));
    set_fields(h, FIELDS);
    uint64_t cursor = 0;
    int steps = 0;
    do {
        cursor = tally(zset_run(h, "HSCAN k %" PRIu64 " COUNT 1000000", cursor), seen, FIELDS);
        steps++;
    } while (cursor != 0);
    assert_in_range(steps, FIELDS / STEP_MAX, FIELDS / 500);
    for (int field = 0; field < FIELDS; field++) {
        assert_int_equal(seen[field], 1);
    }
}

ZSET_TEST(match_filters_by_field) {
    zset_run(h, "HSET k apple 1 pear 2 plum 3");
    zset_expect(h, "HSCAN k 0 MATCH a*", "[0 [apple 1]]");
    zset_expect(h, "HSCAN k 0 COUNT 5 match x*", "[0 []]");
    zset_expect(h, "HSCAN k 0 MATCH x* MATCH p*", "[0 [pear 2 plum 3]]");
}

ZSET_TEST(what_is_no_option_is_an_error) {
    zset_run(h, "HSET k a 1");
    zset_expect(h, "HSCAN k x", "-ERR invalid cursor");
    zset_expect(h, "HSCAN none -1", "-ERR invalid cursor");
    zset_expect(h, "HSCAN k 0 FOO", syntax);
    zset_expect(h, "HSCAN k 0 COUNT", syntax);
    zset_expect(h, "HSCAN k 0 MATCH", syntax);
    zset_expect(h, "HSCAN k 0 TYPE hash", syntax);
    zset_expect(h, "HSCAN k 0 NOVALUES", syntax);
    zset_expect(h, "HSCAN k 0 COUNT 0", syntax);
    zset_expect(h, "HSCAN k 0 COUNT -1", syntax);
    zset_expect(h, "HSCAN k 0 COUNT x", "-ERR value is not an integer or out of range");
    zset_expect(h, "HSCAN none 0 FOO", "[0 []]");
}

ZSET_TEST(without_memory_for_the_fields_an_error_comes) {
    set_fields(h, 100);
    struct bytes args[] = {BYTES("HSCAN"), BYTES("k"), BYTES("0")};
    zset_expect_no_memory(h, args, 3);
}
