/* LIMITS: results against a twin that keeps all results of a member, and counts them anew for each. */
#include "tests/support/test.h"

#include "skiplist/keyspace/limits.h"
#include "tests/support/random.h"

enum { RESULTS = 400, SECOND = 1000, NOW = 1767225600 };
static const int64_t begin_ms = (int64_t)NOW * SECOND;

/* A field of points with one decimal, or of lap times, of which the smaller is better. */
static const struct layout_field *field_of(struct layout *layout, bool is_ascending) {
    struct bytes points[] = {BYTES("FIELD"),  BYTES("points"), BYTES("32"),
                             BYTES("SIGNED"), BYTES("SCALE"),  BYTES("1")};
    struct bytes laps[] = {BYTES("FIELD"), BYTES("lap"), BYTES("20"), BYTES("ASC")};
    char error[LAYOUT_ERROR_MAX];
    assert_int_equal(is_ascending ? layout_parse_words(laps, COUNT_OF(laps), layout, error)
                                  : layout_parse_words(points, COUNT_OF(points), layout, error),
                     LAYOUT_OK);
    return &layout->fields[0];
}

static uint64_t ordinal_of(const struct layout_field *lead, int64_t value) {
    uint64_t ordinal;
    assert_int_equal(layout_field_ordinal(lead, decimal_from_i64(value), &ordinal), LAYOUT_OK);
    return ordinal;
}

/* ---- the twin ---- */

struct twin_result {
    int64_t time_ms, gain;
};
struct twin {
    struct twin_result results[RESULTS];
    int count;
    int64_t value;
    bool has_value;
};

/* What the window that is open at a time has counted; *begin: when it began, 0: none is. */
static int64_t twin_count(const struct twin *twin, int64_t window_ms, int64_t now_ms, bool of_gain,
                          int64_t *begin) {
    int64_t sum = 0;
    *begin = 0;
    for (int i = 0; i < twin->count; i++) {
        const struct twin_result *result = &twin->results[i];
        if (of_gain && result->gain == 0) {
            continue;
        }
        if (*begin == 0 || result->time_ms >= *begin + window_ms) {
            *begin = result->time_ms;
            sum = 0;
        }
        sum += of_gain ? result->gain : 1;
    }
    if (*begin != 0 && now_ms >= *begin + window_ms) {
        *begin = 0;
        return 0;
    }
    return sum;
}

static enum limit twin_check(const struct limits_rule *rule, struct twin *twin, bool is_ascending,
                             int64_t value, int64_t now_ms, int64_t *wait_ms) {
    int64_t change = is_ascending ? twin->value - value : value - twin->value;
    int64_t gain = twin->has_value ? change : is_ascending ? 0 : value;
    int64_t unit = is_ascending ? 1 : 10; /* of rules, which say whole numbers here */
    int64_t begin;
    gain = gain > 0 ? gain : 0;
    *wait_ms = 0;
    if (limits_has(rule, LIMIT_MAX) && value > rule->of[LIMIT_MAX] * unit) {
        return LIMIT_MAX;
    }
    if (limits_has(rule, LIMIT_MIN) && value < rule->of[LIMIT_MIN] * unit) {
        return LIMIT_MIN;
    }
    if (limits_has(rule, LIMIT_STEP) && twin->has_value && gain > rule->of[LIMIT_STEP] * unit) {
        return LIMIT_STEP;
    }
    if (limits_has(rule, LIMIT_EVERY) && twin->count > 0) {
        *wait_ms = twin->results[twin->count - 1].time_ms + rule->time_ms[LIMIT_EVERY] - now_ms;
        if (*wait_ms > 0) {
            return LIMIT_EVERY;
        }
        *wait_ms = 0;
    }
    if (limits_has(rule, LIMIT_RESULTS) && twin_count(twin, rule->time_ms[LIMIT_RESULTS], now_ms,
                                                      false, &begin) >= rule->of[LIMIT_RESULTS]) {
        *wait_ms = begin + rule->time_ms[LIMIT_RESULTS] - now_ms;
        return LIMIT_RESULTS;
    }
    if (limits_has(rule, LIMIT_GAIN)) {
        int64_t most = rule->of[LIMIT_GAIN] * unit;
        if (twin_count(twin, rule->time_ms[LIMIT_GAIN], now_ms, true, &begin) + gain > most) {
            *wait_ms = gain <= most ? begin + rule->time_ms[LIMIT_GAIN] - now_ms : 0;
            return LIMIT_GAIN;
        }
    }
    twin->results[twin->count++] = (struct twin_result){now_ms, gain};
    twin->value = value;
    twin->has_value = true;
    return LIMITS;
}

static struct limits_rule draw_rule(struct random *random) {
    static const int64_t units[] = {60 * SECOND, 3600 * SECOND, 86400 * SECOND};
    struct limits_rule rule = {.is_for_all = random_below(random, 2) == 0};
    while (rule.has == 0) {
        rule.has = (uint8_t)random_below(random, 1U << LIMITS);
    }
    for (unsigned limit = 0; limit < LIMITS; limit++) {
        uint8_t has = limits_has(&rule, limit) ? limit_rows[limit].has : 0;
        if ((has & (LIMIT_HAS_VALUE | LIMIT_HAS_COUNT)) != 0) {
            rule.of[limit] = limit == LIMIT_MIN ? (int64_t)random_below(random, 20)
                                                : 1 + (int64_t)random_below(random, 120);
        }
        if ((has & LIMIT_HAS_TIME) != 0) {
            rule.time_ms[limit] = has == LIMIT_HAS_TIME
                                      ? (1 + (int64_t)random_below(random, 30)) * SECOND
                                      : units[random_below(random, 3)];
        }
    }
    assert_true(limits_validate(&rule));
    return rule;
}

TEST(results_are_taken_and_refused_as_by_one_who_keeps_them_all) {
    struct random random = random_begin("results");
    for (int round = 0; round < 400; round++) {
        struct layout layout;
        bool is_ascending = random_below(&random, 3) == 0;
        const struct layout_field *lead = field_of(&layout, is_ascending);
        struct limits_rule rule = draw_rule(&random);
        struct twin twin = {.count = 0};
        char note[LIMITS_RECORD_BYTES_MAX];
        size_t size = 0;
        int64_t now_ms = begin_ms;
        for (int i = 0; i < RESULTS; i++) {
            int64_t value = (int64_t)random_below(&random, is_ascending ? 130 : 1300);
            struct limits_record record = {.last_ms = 0};
            struct limits_result result = {.lead = lead,
                                           .after = ordinal_of(lead, value),
                                           .before =
                                               twin.has_value ? ordinal_of(lead, twin.value) : 0,
                                           .had_result = twin.has_value};
            int64_t wait_ms;
            int64_t twin_wait_ms;
            assert_true(size == 0 || limits_unpack((struct bytes){note, size}, &record));
            enum limit limit = limits_check(&rule, &result, now_ms, &record, &wait_ms);
            assert_int_equal(limit,
                             twin_check(&rule, &twin, is_ascending, value, now_ms, &twin_wait_ms));
            assert_int_equal(wait_ms, twin_wait_ms);
            if (limit == LIMITS) {
                uint8_t packed[LIMITS_RECORD_BYTES_MAX];
                size = limits_pack(&rule, &record, packed);
                memcpy(note, packed, size);
            } else if (wait_ms > 0 && random_below(&random, 2) == 0) {
                now_ms += wait_ms; /* what was said of the time is so */
                continue;
            }
            now_ms += (int64_t)random_below(&random, random_below(&random, 20) == 0 ? 86400 * SECOND
                                                                                    : 20 * SECOND);
        }
    }
}

/* ---- clocks, changed rules, bytes ---- */

TEST(a_clock_that_is_set_back_makes_nobody_wait) {
    struct layout layout;
    const struct layout_field *lead = field_of(&layout, false);
    struct limits_rule rule = {
        .has = 1U << LIMIT_EVERY | 1U << LIMIT_RESULTS,
        .of = {[LIMIT_RESULTS] = 1},
        .time_ms = {[LIMIT_EVERY] = 10 * SECOND, [LIMIT_RESULTS] = 60 * SECOND}};
    struct limits_record record = {.last_ms = 0};
    struct limits_result result = {.lead = lead, .after = ordinal_of(lead, 5)};
    int64_t wait_ms;
    assert_int_equal(limits_check(&rule, &result, begin_ms + 86400 * SECOND, &record, &wait_ms),
                     LIMITS);
    assert_int_equal(limits_check(&rule, &result, begin_ms, &record, &wait_ms), LIMITS);
    assert_int_equal(limits_check(&rule, &result, begin_ms + SECOND, &record, &wait_ms),
                     LIMIT_EVERY);
    assert_int_equal(wait_ms, 9 * SECOND);
    assert_int_equal(limits_check(&rule, &result, begin_ms + 10 * SECOND, &record, &wait_ms),
                     LIMIT_RESULTS);
    assert_int_equal(wait_ms, 50 * SECOND);
}

TEST(a_record_is_over_when_none_of_its_times_counts) {
    struct limits_rule rule = {.has = 1U << LIMIT_EVERY | 1U << LIMIT_GAIN,
                               .of = {[LIMIT_GAIN] = 5},
                               .time_ms = {[LIMIT_EVERY] = SECOND, [LIMIT_GAIN] = 60 * SECOND}};
    struct limits_record record = {.last_ms = begin_ms, .gain_ms = begin_ms, .gained = 3};
    assert_false(limits_is_over(&rule, &record, begin_ms + SECOND));
    assert_false(limits_is_over(&rule, &record, begin_ms + 60 * SECOND - 1));
    assert_true(limits_is_over(&rule, &record, begin_ms + 60 * SECOND));
}

TEST(a_rule_that_changes_takes_of_the_record_what_it_knows) {
    struct limits_rule every = {.has = 1U << LIMIT_EVERY, .time_ms = {[LIMIT_EVERY] = SECOND}};
    struct limits_record record = {.last_ms = begin_ms, .results_ms = begin_ms, .results = 7};
    struct limits_record read;
    uint8_t packed[LIMITS_RECORD_BYTES_MAX];
    size_t size = limits_pack(&every, &record, packed);
    assert_int_equal(size, 6);
    assert_true(limits_unpack((struct bytes){(const char *)packed, size}, &read));
    assert_int_equal(read.last_ms, begin_ms);
    assert_int_equal(read.results, 0);
}

/* None, one about now, or any. */
static int64_t draw_time(struct random *random) {
    uint64_t kind = random_below(random, 3);
    return kind == 0   ? 0
           : kind == 1 ? begin_ms + (int64_t)random_below(random, UINT64_C(100) * 86400 * SECOND)
                       : (int64_t)random_below(random, LIMITS_TIME_MS_END);
}

TEST(a_record_is_small_while_its_windows_are) {
    struct limits_rule rule = {.has = 1U << LIMIT_EVERY | 1U << LIMIT_RESULTS | 1U << LIMIT_GAIN};
    struct limits_record record = {.last_ms = begin_ms,
                                   .results_ms = begin_ms - 86400 * SECOND,
                                   .results = 100,
                                   .gain_ms = begin_ms - 86400 * SECOND,
                                   .gained = 16000};
    uint8_t packed[LIMITS_RECORD_BYTES_MAX];
    assert_int_equal(limits_pack(&rule, &record, packed), 17);
}

TEST(any_bytes_are_a_record_or_none_and_a_record_is_read_as_it_was_written) {
    struct random random = random_begin("bytes");
    for (int round = 0; round < 20000; round++) {
        struct limits_rule rule = draw_rule(&random);
        struct limits_record record = {
            .last_ms = draw_time(&random),
            .results_ms = draw_time(&random),
            .gain_ms = draw_time(&random),
            .results = (uint32_t)(random_next(&random) >> random_below(&random, 64)),
            .gained = random_next(&random) >> random_below(&random, 64),
        };
        struct limits_record read;
        uint8_t packed[LIMITS_RECORD_BYTES_MAX];
        size_t size = limits_pack(&rule, &record, packed);
        assert_true(size <= sizeof packed);
        assert_int_equal(size > 0,
                         limits_unpack((struct bytes){(const char *)packed, size}, &read));
        assert_int_equal(read.last_ms, limits_has(&rule, LIMIT_EVERY) ? record.last_ms : 0);
        assert_int_equal(read.results, limits_has(&rule, LIMIT_RESULTS) ? record.results : 0);
        assert_int_equal(read.results_ms, limits_has(&rule, LIMIT_RESULTS) ? record.results_ms : 0);
        assert_int_equal(read.gained, limits_has(&rule, LIMIT_GAIN) ? record.gained : 0);
        assert_int_equal(read.gain_ms, limits_has(&rule, LIMIT_GAIN) ? record.gain_ms : 0);
        for (size_t i = 0; i < size; i++) {
            packed[i] = (uint8_t)random_next(&random);
        }
        (void)!limits_unpack((struct bytes){(const char *)packed, random_below(&random, size + 1)},
                             &read);
    }
}

TEST(values_that_no_field_could_have_are_no_rule) {
    struct limits_rule rule = {.has = 1U << LIMIT_STEP, .of = {[LIMIT_STEP] = 0}};
    struct layout layout;
    const struct layout_field *lead = field_of(&layout, true);
    assert_false(limits_validate(&rule));
    rule.of[LIMIT_STEP] = 15;
    rule.scale[LIMIT_STEP] = 1;
    assert_true(limits_validate(&rule));
    assert_non_null(limits_refuse(&rule, lead));
    rule = (struct limits_rule){.has = 1U << LIMIT_MAX | 1U << LIMIT_MIN,
                                .of = {[LIMIT_MAX] = -1, [LIMIT_MIN] = 1}};
    assert_non_null(limits_refuse(&rule, lead));
    rule.has = 1U << LIMITS;
    assert_false(limits_validate(&rule));
}
