/* Keys: all of many narrow layouts, random ones of wide layouts, and known values from other
 * systems. */
#include "tests/support/test.h"

#include "codec/layout.h"
#include "codec/timestamp.h"
#include "tests/support/layout_text.h"
#include "tests/support/random.h"

static struct layout parse(const char *text) {
    struct layout layout;
    char error[LAYOUT_ERROR_MAX] = "";
    if (layout_parse(bytes_from_text(text), &layout, error) != LAYOUT_OK) {
        fail_msg("'%s': %s", text, error);
    }
    return layout;
}

static struct decimal decimal_of(int64_t number) {
    uint64_t magnitude = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    return (struct decimal){.magnitude = magnitude, .is_negative = number < 0};
}

static struct decimal_bound bound_of(struct decimal value) {
    return (struct decimal_bound){.kind = DECIMAL_BOUND_VALUE, .value = value};
}

/* The key of some decimals and a time. */
static uint64_t key_of(const struct layout *layout, const int64_t *decimals, int64_t time_us) {
    uint64_t ordinals[LAYOUT_FIELDS_MAX];
    for (unsigned i = 0; i < layout->field_count; i++) {
        assert_int_equal(
            layout_field_ordinal(&layout->fields[i], decimal_of(decimals[i]), &ordinals[i]),
            LAYOUT_OK);
    }
    uint64_t key;
    assert_int_equal(layout_pack(layout, ordinals, time_us, &key), LAYOUT_OK);
    return key;
}

static int64_t time_of(const char *text) {
    int64_t time_us;
    assert_true(timestamp_parse(bytes_from_text(text), &time_us));
    return time_us;
}

/* ---- Values from the systems users migrate from ---- */

TEST(score_flag_and_seconds_to_the_end_pack_as_their_users_print_them) {
    struct layout layout =
        parse("FIELD score 33 FIELD paid 1 TIME 29 S END 2029-01-01T00:00:00+08:00");
    int64_t time_us = 1571819021259000;
    int64_t early_us = 1571810001259000;
    uint64_t a = key_of(&layout, (int64_t[]){100, 0}, time_us);
    uint64_t b = key_of(&layout, (int64_t[]){200, 0}, time_us);
    uint64_t c = key_of(&layout, (int64_t[]){200, 1}, time_us);
    uint64_t d = key_of(&layout, (int64_t[]){400, 0}, time_us);
    uint64_t e = key_of(&layout, (int64_t[]){200, 1}, early_us);
    assert_int_equal(a, 107664254579);
    assert_int_equal(b, 215038436979);
    assert_int_equal(c, 215575307891);
    assert_int_equal(d, 429786801779);
    assert_int_equal(e, 215575316911);
    assert_true(d > e && e > c && c > b && b > a);
    assert_int_equal(key_of(&layout, (int64_t[]){100, 1}, time_us), 108201125491);
}

TEST(milliseconds_to_the_periods_end_are_stored_as_they_are) {
    struct layout layout = parse("FIELD points 30 TIME 34 MS END 2023-03-05T23:59:59.000+08:00");
    int64_t end_us = time_of("2023-03-05T23:59:59.000+08:00");
    struct random random = random_begin(__func__);
    for (int i = 0; i < 1000; i++) {
        int64_t left_ms = (int64_t)random_below(&random, 1ULL << 34);
        int64_t points = (int64_t)random_below(&random, 1ULL << 30);
        uint64_t key = key_of(&layout, &points, end_us - left_ms * 1000);
        assert_int_equal(key, ((uint64_t)points << 34) | (uint64_t)left_ms);
        int64_t time_ms;
        assert_true(layout_time_ms(&layout, key, &time_ms));
        assert_int_equal(time_ms, end_us / 1000 - left_ms);
    }
    layout = parse("FIELD points 22 TIME 41 MS END 1700000000000");
    int64_t points = 4095;
    assert_int_equal(key_of(&layout, &points, 1699999000000000), (4095ULL << 41) | 1000000);
    assert_int_equal(layout.bits_total, 63);
}

TEST(seconds_since_1970_in_32_bits_are_kept_as_they_are) {
    struct layout layout = parse("FIELD score 32 TIME 32 S START 1970-01-01T00:00:00Z");
    int64_t score = 7;
    uint64_t key = key_of(&layout, &score, 1671111030000000);
    assert_int_equal(key, (7ULL << 32) | (UINT32_MAX - 1671111030U));
    int64_t time_ms;
    assert_true(layout_time_ms(&layout, key, &time_ms));
    assert_int_equal(time_ms, 1671111030000);
}

TEST(days_with_the_latest_first_follow_agrees_and_comments) {
    struct layout layout =
        parse("FIELD agree 22 FIELD comment 22 TIME 20 D START 1970-01-01T00:00:00Z LATEST");
    uint64_t older = key_of(&layout, (int64_t[]){5, 3}, 19000 * 86400000000);
    uint64_t newer = key_of(&layout, (int64_t[]){5, 3}, 19001 * 86400000000);
    uint64_t more_comments = key_of(&layout, (int64_t[]){5, 4}, 0);
    assert_int_equal(older, (5ULL << 42) | (3ULL << 20) | 19000);
    assert_true(newer > older);
    assert_true(more_comments > newer);
}

TEST(a_hand_packed_integer_of_64_bits_is_exact_to_the_last_bit) {
    struct layout layout = parse("FIELD score 64 SIGNED");
    static const int64_t scores[] = {INT64_MIN,           INT64_MIN + 1,       -1,       0, 1,
                                     1309426671287543601, 1309426671287543602, INT64_MAX};
    uint64_t previous = 0;
    for (size_t i = 0; i < COUNT_OF(scores); i++) {
        uint64_t key = key_of(&layout, &scores[i], 0);
        assert_int_equal(key, (uint64_t)scores[i] + (1ULL << 63));
        assert_true(i == 0 || key > previous);
        previous = key;
        struct decimal value =
            layout_field_decimal(&layout.fields[0], layout_ordinal(&layout, key, 0));
        assert_int_equal(decimal_compare(value, decimal_of(scores[i])), 0);
    }
    int64_t time_ms = 77;
    assert_false(layout_time_ms(&layout, previous, &time_ms));
    assert_int_equal(time_ms, 77);
}

/* ---- Every key of narrow layouts ---- */

/* A member as users see it. Comparison: -1, 0, 1 if a ranks worse than, equal to, or better than
 * b. */
struct tuple {
    int64_t decimals[3];
    int64_t unit_index;
};

static int compare_numbers(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_tuples(const struct layout *layout, const struct tuple *a,
                          const struct tuple *b) {
    for (unsigned i = 0; i < layout->field_count; i++) {
        int order = compare_numbers(a->decimals[i], b->decimals[i]);
        if (order != 0) {
            return layout->fields[i].is_ascending ? -order : order;
        }
    }
    int order = compare_numbers(a->unit_index, b->unit_index);
    return layout->time.is_latest ? order : -order;
}

static int64_t number_of(struct decimal value) {
    return value.is_negative ? -(int64_t)value.magnitude : (int64_t)value.magnitude;
}

static struct tuple tuple_of(const struct layout *layout, uint64_t key) {
    uint64_t ordinals[LAYOUT_FIELDS_MAX];
    int64_t time_us;
    layout_unpack(layout, key, ordinals, &time_us);
    struct tuple tuple = {.unit_index = 0};
    for (unsigned i = 0; i < layout->field_count; i++) {
        tuple.decimals[i] = number_of(layout_field_decimal(&layout->fields[i], ordinals[i]));
    }
    if (layout->time.bits > 0) {
        assert_int_equal((time_us - layout->time.start_us) % layout->time.unit_us, 0);
        tuple.unit_index = (time_us - layout->time.start_us) / layout->time.unit_us;
    }
    return tuple;
}

/* Is this lead decimal inside exactly when its key is? For all limits around the field's. */
static void assert_ranges_are_exact(const struct layout *layout) {
    uint64_t key_count = 1ULL << layout->bits_total;
    int64_t low = number_of(layout_field_lowest(&layout->fields[0])) - 2;
    int64_t high = number_of(layout_field_highest(&layout->fields[0])) + 2;
    for (int64_t lower = low; lower <= high; lower++) {
        for (int64_t upper = low; upper <= high; upper++) {
            uint64_t first = 1;
            uint64_t last = 0;
            bool is_any = layout_key_range(layout, bound_of(decimal_of(lower)),
                                           bound_of(decimal_of(upper)), 0, &first, &last);
            assert_true(is_any || (first == 1 && last == 0));
            assert_true(!is_any || (first <= last && last < key_count));
            for (uint64_t key = 0; key < key_count; key++) {
                struct decimal lead =
                    layout_field_decimal(&layout->fields[0], layout_ordinal(layout, key, 0));
                bool is_inside = number_of(lead) >= lower && number_of(lead) <= upper;
                if (is_inside != (first <= key && key <= last)) {
                    fail_msg("key %" PRIu64 " limits %" PRId64 "..%" PRId64, key, lower, upper);
                }
            }
        }
    }
}

static void assert_every_key_is_right(const struct layout *layout) {
    uint64_t key_count = 1ULL << layout->bits_total;
    struct tuple worse = {.unit_index = 0};
    for (uint64_t key = 0; key < key_count; key++) {
        struct tuple tuple = tuple_of(layout, key);
        if (key > 0 && compare_tuples(layout, &tuple, &worse) != 1) {
            fail_msg("key %" PRIu64 " does not rank above the one below it", key);
        }
        worse = tuple;
        int64_t unit_us = layout->time.unit_us;
        int64_t time_us = layout->time.start_us + tuple.unit_index * unit_us;
        assert_int_equal(key_of(layout, tuple.decimals, time_us), key);
        if (layout->time.bits == 0) {
            continue;
        }
        uint64_t stamped;
        assert_int_equal(layout_stamp(layout, key, time_us + unit_us - 1, &stamped), LAYOUT_OK);
        assert_int_equal(stamped, key);
        assert_int_equal(layout_without_time(layout, key), key & ~layout->time.mask);
    }
}

/* Layouts of field_count fields, each of 1..bits_max bits, in all their kinds, by number. */
static bool make_narrow_text(unsigned number, unsigned field_count, unsigned bits_max, char *text) {
    static const char *const kinds[] = {"", " ASC", " SIGNED", " ASC SIGNED"};
    static const char *const times[] = {"", " TIME 1 S", " TIME 2 S LATEST", " TIME 3 H",
                                        " TIME 2 US END -5"};
    for (unsigned i = 0; i < field_count; i++) {
        text += sprintf(text, "%sFIELD f%u %u%s", i == 0 ? "" : " ", i, 1 + number % bits_max,
                        kinds[number / bits_max % 4]);
        number /= bits_max * 4;
    }
    if (number >= COUNT_OF(times)) {
        return false;
    }
    sprintf(text, "%s", times[number]);
    return true;
}

TEST(keys_of_narrow_layouts_order_as_their_tuples_do) {
    static const struct {
        unsigned field_count;
        unsigned bits_max;
    } families[] = {{1, 6}, {2, 3}, {3, 2}};
    unsigned layout_count = 0;
    for (size_t family = 0; family < COUNT_OF(families); family++) {
        char text[LAYOUT_TEXT_MAX];
        for (unsigned number = 0; make_narrow_text(number, families[family].field_count,
                                                   families[family].bits_max, text);
             number++) {
            struct layout layout = parse(text);
            assert_every_key_is_right(&layout);
            layout_count++;
        }
    }
    assert_int_equal(layout_count, 5 * (24 + 144 + 512));
}

TEST(ranges_of_narrow_layouts_hold_exactly_the_values_inside) {
    char text[LAYOUT_TEXT_MAX];
    for (unsigned number = 0; make_narrow_text(number, 1, 4, text); number++) {
        struct layout layout = parse(text);
        assert_ranges_are_exact(&layout);
    }
    for (unsigned number = 0; make_narrow_text(number, 2, 2, text); number++) {
        struct layout layout = parse(text);
        assert_ranges_are_exact(&layout);
    }
}

/* ---- Random keys of wide layouts ---- */

static const char *const wide_texts[] = {
    "FIELD score 33 SIGNED TIME 31 S",
    "FIELD score 64",
    "FIELD score 64 SIGNED",
    "FIELD score 64 ASC",
    "FIELD score 64 ASC SIGNED SCALE 18",
    "FIELD score 63 SIGNED TIME 1 D",
    "FIELD score 1 TIME 63 US START -1000000000000",
    "FIELD score 1 SIGNED ASC TIME 63 US END 0",
    "FIELD score 22 SCALE 2 TIME 41 MS END 2029-01-01T00:00:00+08:00",
    "FIELD score 33 FIELD paid 1 TIME 29 S END 2029-01-01T00:00:00+08:00",
    "FIELD score 34 ASC TIME 30 MS LATEST",
    "FIELD score 40 TIME 24 M START 1900-01-01T00:00:00Z",
    "FIELD score 40 SIGNED TIME 20 H LATEST START 0001-01-01T00:00:00Z",
    "FIELD agree 22 FIELD comment 22 ASC SIGNED TIME 20 D END 9999-12-31T00:00:00Z",
    "FIELD a 8 FIELD b 8 ASC FIELD c 8 SIGNED FIELD d 8 ASC SIGNED FIELD e 31 TIME 1 US",
    "FIELD a 20 FIELD b 20",
};

enum { WIDE_COUNT = COUNT_OF(wide_texts) };

static uint64_t bits_of(uint64_t number, unsigned bits) {
    return bits == 64 ? number : number & ((1ULL << bits) - 1);
}

/* Random, but often at an end of its range. */
static uint64_t random_edge(struct random *random, unsigned bits) {
    uint64_t number = random_next(random) >> random_below(random, 64);
    switch (random_below(random, 4)) {
    case 0:
        return bits_of(number % 3, bits);
    case 1:
        return bits_of(UINT64_MAX - number % 3, bits);
    case 2:
        return bits_of((1ULL << (bits - 1)) + number % 3 - 1, bits);
    default:
        return bits_of(number, bits);
    }
}

static uint64_t random_key(struct random *random, const struct layout *layout) {
    uint64_t key = 0;
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        key |= random_edge(random, field->bits) << field->shift;
    }
    return layout->time.bits == 0 ? key : key | random_edge(random, layout->time.bits);
}

/* As compare_tuples, with decimals of any width and times as they are read. */
static int compare_unpacked(const struct layout *layout, uint64_t a, uint64_t b) {
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        int order = decimal_compare(layout_field_decimal(field, layout_ordinal(layout, a, i)),
                                    layout_field_decimal(field, layout_ordinal(layout, b, i)));
        if (order != 0) {
            return field->is_ascending ? -order : order;
        }
    }
    uint64_t ordinals[LAYOUT_FIELDS_MAX];
    int64_t a_us;
    int64_t b_us;
    layout_unpack(layout, a, ordinals, &a_us);
    layout_unpack(layout, b, ordinals, &b_us);
    return layout->time.is_latest ? compare_numbers(a_us, b_us) : compare_numbers(b_us, a_us);
}

TEST(keys_of_wide_layouts_order_as_their_decimals_and_times_do) {
    struct random random = random_begin(__func__);
    for (size_t text = 0; text < WIDE_COUNT; text++) {
        struct layout layout = parse(wide_texts[text]);
        for (int i = 0; i < 5000; i++) {
            uint64_t a = random_key(&random, &layout);
            uint64_t b = random_key(&random, &layout);
            if (random_below(&random, 2) == 0) {
                b = (a & ~0xffULL) | (b & 0xff);
            }
            if (compare_unpacked(&layout, a, b) != (a > b) - (a < b)) {
                fail_msg("'%s': keys %" PRIu64 " and %" PRIu64, wide_texts[text], a, b);
            }
        }
    }
}

TEST(wide_keys_unpack_and_pack_to_themselves) {
    struct random random = random_begin(__func__);
    for (size_t text = 0; text < WIDE_COUNT; text++) {
        struct layout layout = parse(wide_texts[text]);
        for (int i = 0; i < 5000; i++) {
            uint64_t key = random_key(&random, &layout);
            uint64_t ordinals[LAYOUT_FIELDS_MAX];
            int64_t time_us;
            layout_unpack(&layout, key, ordinals, &time_us);
            uint64_t packed;
            assert_int_equal(layout_pack(&layout, ordinals, time_us, &packed), LAYOUT_OK);
            assert_int_equal(packed, key);
            int64_t time_ms = 0;
            assert_int_equal(layout_time_ms(&layout, key, &time_ms), layout.time.bits > 0);
            int64_t same_time_us = 0;
            assert_int_equal(layout_time_us(&layout, key, &same_time_us), layout.time.bits > 0);
            assert_int_equal(same_time_us, time_us);
            wide past_ms_us = (wide)time_us - (wide)time_ms * 1000;
            assert_true(past_ms_us >= 0 && past_ms_us < 1000);
            unsigned index = (unsigned)random_below(&random, layout.field_count);
            uint64_t ordinal = random_edge(&random, layout.fields[index].bits);
            uint64_t changed = layout_with_ordinal(&layout, key, index, ordinal);
            for (unsigned field = 0; field < layout.field_count; field++) {
                assert_int_equal(layout_ordinal(&layout, changed, field),
                                 field == index ? ordinal : ordinals[field]);
            }
            assert_int_equal(changed & layout.time.mask, key & layout.time.mask);
        }
    }
}

TEST(wide_ranges_hold_exactly_the_values_inside) {
    struct random random = random_begin(__func__);
    unsigned any_count = 0;
    for (size_t text = 0; text < WIDE_COUNT; text++) {
        struct layout layout = parse(wide_texts[text]);
        const struct layout_field *lead = &layout.fields[0];
        for (int i = 0; i < 3000; i++) {
            struct decimal lower = {.magnitude = random_edge(&random, 64)};
            struct decimal upper = {.magnitude = random_edge(&random, lead->bits)};
            lower.is_negative = lower.magnitude > 0 && random_below(&random, 2) == 0;
            upper.is_negative = upper.magnitude > 0 && random_below(&random, 2) == 0;
            uint64_t first = 1;
            uint64_t last = 0;
            any_count +=
                layout_key_range(&layout, bound_of(lower), bound_of(upper), 0, &first, &last);
            uint64_t keys[] = {random_key(&random, &layout), first, last, first - 1, last + 1};
            for (size_t k = 0; k < COUNT_OF(keys); k++) {
                uint64_t key = bits_of(keys[k], layout.bits_total);
                struct decimal value = layout_field_decimal(lead, layout_ordinal(&layout, key, 0));
                bool is_inside =
                    decimal_compare(value, lower) >= 0 && decimal_compare(value, upper) <= 0;
                assert_int_equal(first <= key && key <= last, is_inside);
            }
        }
    }
    assert_true(any_count > 1000);
}

TEST(open_limits_reach_the_ends_of_the_field_and_no_further) {
    const struct decimal_bound lowest = {.kind = DECIMAL_BOUND_LOWEST};
    const struct decimal_bound highest = {.kind = DECIMAL_BOUND_HIGHEST};
    for (size_t text = 0; text < WIDE_COUNT; text++) {
        struct layout layout = parse(wide_texts[text]);
        uint64_t all = bits_of(UINT64_MAX, layout.bits_total);
        uint64_t first = 1;
        uint64_t last = 2;
        assert_false(layout_key_range(&layout, highest, highest, 0, &first, &last));
        assert_false(layout_key_range(&layout, lowest, lowest, 0, &first, &last));
        assert_false(layout_key_range(&layout, highest, lowest, 0, &first, &last));
        assert_int_equal(first, 1);
        assert_int_equal(last, 2);
        assert_true(layout_key_range(&layout, lowest, highest, 0, &first, &last));
        assert_int_equal(first, 0);
        assert_int_equal(last, all);
    }
}

/* ---- Fields ---- */

TEST(a_field_takes_its_range_and_refuses_the_rest) {
    static const struct {
        const char *text;
        const char *lowest;
        const char *highest;
        const char *below; /* NULL: no 64-bit decimal is below */
        const char *above;
    } samples[] = {
        {"FIELD a 1", "0", "1", "-1", "2"},
        {"FIELD a 1 SIGNED", "-1", "0", "-2", "1"},
        {"FIELD a 8 ASC", "0", "255", "-1", "256"},
        {"FIELD a 8 SIGNED SCALE 1", "-12.8", "12.7", "-12.9", "12.8"},
        {"FIELD a 33 SIGNED", "-4294967296", "4294967295", "-4294967297", "4294967296"},
        {"FIELD a 64", "0", "18446744073709551615", "-1", NULL},
        {"FIELD a 64 SIGNED", "-9223372036854775808", "9223372036854775807", "-9223372036854775809",
         "9223372036854775808"},
        {"FIELD a 64 ASC SIGNED SCALE 18", "-9.223372036854775808", "9.223372036854775807",
         "-9.223372036854775809", "9.223372036854775808"},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct layout layout = parse(samples[i].text);
        const struct layout_field *field = &layout.fields[0];
        struct decimal value;
        uint64_t ordinal;
        assert_int_equal(decimal_parse(bytes_from_text(samples[i].lowest), field->scale, &value),
                         DECIMAL_OK);
        assert_int_equal(decimal_compare(value, layout_field_lowest(field)), 0);
        assert_int_equal(layout_field_ordinal(field, value, &ordinal), LAYOUT_OK);
        assert_int_equal(ordinal, 0);
        assert_int_equal(decimal_parse(bytes_from_text(samples[i].highest), field->scale, &value),
                         DECIMAL_OK);
        assert_int_equal(decimal_compare(value, layout_field_highest(field)), 0);
        assert_int_equal(layout_field_ordinal(field, value, &ordinal), LAYOUT_OK);
        assert_int_equal(ordinal, field->mask);
        ordinal = 77;
        const char *const outside[] = {samples[i].below, samples[i].above};
        for (size_t j = 0; j < 2; j++) {
            if (outside[j] == NULL) {
                continue;
            }
            assert_int_equal(decimal_parse(bytes_from_text(outside[j]), field->scale, &value),
                             DECIMAL_OK);
            assert_int_equal(layout_field_ordinal(field, value, &ordinal),
                             LAYOUT_VALUE_OUT_OF_RANGE);
            assert_int_equal(ordinal, 77);
        }
    }
}

static wide wide_of(struct decimal value) {
    return value.is_negative ? -(wide)value.magnitude : (wide)value.magnitude;
}

TEST(adding_is_exact_or_refused) {
    struct random random = random_begin(__func__);
    unsigned refused_count = 0;
    unsigned added_count = 0;
    for (size_t text = 0; text < WIDE_COUNT; text++) {
        struct layout layout = parse(wide_texts[text]);
        const struct layout_field *field = &layout.fields[0];
        for (int i = 0; i < 3000; i++) {
            uint64_t ordinal = random_edge(&random, field->bits);
            unsigned bits = 1 + (unsigned)random_below(&random, 64);
            struct decimal delta = {.magnitude = random_edge(&random, bits)};
            delta.is_negative = delta.magnitude > 0 && random_below(&random, 2) == 0;
            wide expected = wide_of(layout_field_decimal(field, ordinal)) + wide_of(delta);
            bool fits = expected >= wide_of(layout_field_lowest(field)) &&
                        expected <= wide_of(layout_field_highest(field));
            uint64_t sum = 77;
            enum layout_status status = layout_field_add(field, ordinal, delta, &sum);
            assert_int_equal(status, fits ? LAYOUT_OK : LAYOUT_VALUE_OUT_OF_RANGE);
            if (fits) {
                added_count++;
                assert_true(wide_of(layout_field_decimal(field, sum)) == expected);
            } else {
                refused_count++;
                assert_int_equal(sum, 77);
            }
        }
    }
    assert_true(added_count > 1000);
    assert_true(refused_count > 1000);
}

TEST(a_new_member_has_zero_in_every_field_and_no_time) {
    for (size_t text = 0; text < WIDE_COUNT; text++) {
        struct layout layout = parse(wide_texts[text]);
        uint64_t key = layout_zero_key(&layout);
        for (unsigned i = 0; i < layout.field_count; i++) {
            struct decimal value =
                layout_field_decimal(&layout.fields[i], layout_ordinal(&layout, key, i));
            assert_int_equal(value.magnitude, 0);
            assert_false(value.is_negative);
        }
        assert_int_equal(key & layout.time.mask, 0);
    }
}

TEST(an_ordinal_that_is_too_wide_is_not_packed) {
    struct layout layout = parse("FIELD a 3 FIELD b 4 TIME 5 S");
    uint64_t key = 77;
    int64_t start_us = layout.time.start_us;
    assert_int_equal(layout_pack(&layout, (uint64_t[]){8, 0}, start_us, &key),
                     LAYOUT_VALUE_OUT_OF_RANGE);
    assert_int_equal(layout_pack(&layout, (uint64_t[]){7, 16}, start_us, &key),
                     LAYOUT_VALUE_OUT_OF_RANGE);
    assert_int_equal(layout_pack(&layout, (uint64_t[]){7, 15}, start_us - 1, &key),
                     LAYOUT_TIME_OUT_OF_RANGE);
    assert_int_equal(key, 77);
    assert_int_equal(layout_pack(&layout, (uint64_t[]){7, 15}, start_us, &key), LAYOUT_OK);
    assert_int_equal(key, (1 << 12) - 1);
}

/* ---- Time ---- */

TEST(times_are_kept_in_whole_units_from_start_to_end) {
    static const char *const units[] = {"US", "MS", "S", "M", "H", "D"};
    static const int64_t unit_us[] = {1, 1000, 1000000, 60000000, 3600000000, 86400000000};
    struct random random = random_begin(__func__);
    for (size_t unit = 0; unit < 6; unit++) {
        for (int is_latest = 0; is_latest < 2; is_latest++) {
            char text[LAYOUT_TEXT_MAX];
            sprintf(text, "FIELD a 30 TIME 24 %s %s START 1969-12-31T23:59:59.123456Z", units[unit],
                    is_latest ? "LATEST" : "");
            struct layout layout = parse(text);
            int64_t first_us = layout_time_first_us(&layout);
            int64_t last_us = layout_time_last_us(&layout);
            assert_int_equal(first_us, -876544);
            assert_int_equal(last_us, first_us + (1 << 24) * unit_us[unit] - 1);
            uint64_t span_us = (uint64_t)(last_us - first_us + 1);
            for (int i = 0; i < 5000; i++) {
                int64_t time_us = i == 0   ? first_us
                                  : i == 1 ? last_us
                                           : first_us + (int64_t)random_below(&random, span_us);
                int64_t unit_index = (time_us - first_us) / unit_us[unit];
                uint64_t key;
                assert_int_equal(layout_stamp(&layout, 5ULL << 24, time_us, &key), LAYOUT_OK);
                assert_int_equal(key >> 24, 5);
                assert_int_equal(key & layout.time.mask,
                                 is_latest ? unit_index : (1 << 24) - 1 - unit_index);
                uint64_t ordinal;
                int64_t read_us;
                layout_unpack(&layout, key, &ordinal, &read_us);
                assert_int_equal(read_us, first_us + unit_index * unit_us[unit]);
            }
        }
    }
}

TEST(times_outside_are_refused_and_change_nothing) {
    for (size_t text = 0; text < WIDE_COUNT; text++) {
        struct layout layout = parse(wide_texts[text]);
        if (layout.time.bits == 0) {
            continue;
        }
        int64_t first_us = layout_time_first_us(&layout);
        int64_t last_us = layout_time_last_us(&layout);
        uint64_t key = 77;
        assert_int_equal(layout_stamp(&layout, 0, first_us, &key), LAYOUT_OK);
        assert_int_equal(layout_stamp(&layout, 0, last_us, &key), LAYOUT_OK);
        key = 77;
        if (first_us > INT64_MIN) {
            assert_int_equal(layout_stamp(&layout, 0, first_us - 1, &key),
                             LAYOUT_TIME_OUT_OF_RANGE);
            assert_int_equal(layout_stamp(&layout, 0, INT64_MIN, &key), LAYOUT_TIME_OUT_OF_RANGE);
        }
        if (last_us < INT64_MAX) {
            assert_int_equal(layout_stamp(&layout, 0, last_us + 1, &key), LAYOUT_TIME_OUT_OF_RANGE);
            assert_int_equal(layout_stamp(&layout, 0, INT64_MAX, &key), LAYOUT_TIME_OUT_OF_RANGE);
        }
        assert_int_equal(key, 77);
    }
}

TEST(a_time_before_start_is_refused_also_when_any_number_of_units_fits) {
    struct layout layout = parse("FIELD a 1 TIME 63 D START 0");
    uint64_t key = 77;
    assert_int_equal(layout_stamp(&layout, 0, -1, &key), LAYOUT_TIME_OUT_OF_RANGE);
    assert_int_equal(layout_stamp(&layout, 0, INT64_MIN, &key), LAYOUT_TIME_OUT_OF_RANGE);
    assert_int_equal(key, 77);
}

TEST(a_layout_without_time_takes_any_time_and_keeps_none) {
    struct layout layout = parse("FIELD a 30");
    uint64_t key = 0;
    assert_int_equal(layout_stamp(&layout, 12345, INT64_MIN, &key), LAYOUT_OK);
    assert_int_equal(key, 12345);
    assert_int_equal(layout_stamp(&layout, 54321, INT64_MAX, &key), LAYOUT_OK);
    assert_int_equal(key, 54321);
    uint64_t ordinal;
    int64_t time_us = 77;
    layout_unpack(&layout, key, &ordinal, &time_us);
    assert_int_equal(ordinal, 54321);
    assert_int_equal(time_us, 0);
    assert_int_equal(layout_time_first_us(&layout), 0);
    assert_int_equal(layout_time_last_us(&layout), 0);
}

TEST(times_past_64_bits_of_microseconds_saturate) {
    struct layout layout = parse("FIELD a 1 TIME 63 D START 0 LATEST");
    assert_int_equal(layout_time_last_us(&layout), INT64_MAX);
    uint64_t key;
    assert_int_equal(layout_stamp(&layout, 0, INT64_MAX, &key), LAYOUT_OK);
    assert_int_equal(key, 106751991);
    int64_t time_ms;
    assert_true(layout_time_ms(&layout, UINT64_MAX, &time_ms));
    assert_int_equal(time_ms, INT64_MAX / 1000);
    uint64_t ordinal;
    int64_t time_us;
    layout_unpack(&layout, UINT64_MAX, &ordinal, &time_us);
    assert_int_equal(time_us, INT64_MAX);
    /* The sum overflows, though the product does not. */
    layout = parse("FIELD a 1 TIME 63 US START 9223372036854775 LATEST");
    assert_true(layout_time_ms(&layout, UINT64_MAX, &time_ms));
    assert_int_equal(time_ms, INT64_MAX / 1000);
    /* The distance from START to a time needs all 64 bits. */
    layout = parse("FIELD a 1 TIME 63 MS START -9223372036854775 LATEST");
    assert_int_equal(layout_stamp(&layout, 0, INT64_MAX, &key), LAYOUT_OK);
    assert_int_equal(key, 18446744073709550);
    assert_true(layout_time_ms(&layout, key, &time_ms));
    assert_int_equal(time_ms, 9223372036854775);
}

TEST(a_negative_time_reads_as_its_floor_in_milliseconds) {
    struct layout layout = parse("FIELD a 1 TIME 20 US START 1969-12-31T23:59:59.999999Z");
    uint64_t key;
    int64_t time_ms;
    assert_int_equal(layout_stamp(&layout, 0, -1, &key), LAYOUT_OK);
    assert_true(layout_time_ms(&layout, key, &time_ms));
    assert_int_equal(time_ms, -1);
    assert_int_equal(layout_stamp(&layout, 0, 0, &key), LAYOUT_OK);
    assert_true(layout_time_ms(&layout, key, &time_ms));
    assert_int_equal(time_ms, 0);
}

/* ---- Packed keys as text ---- */

static void assert_key_text(const struct layout *layout, uint64_t key, const char *text) {
    char out[BYTES_INTEGER_TEXT_MAX];
    size_t size = layout_key_print(layout, key, out);
    uint64_t parsed = ~key;
    assert_true(bytes_equal((struct bytes){out, size}, bytes_from_text(text)));
    assert_true(layout_key_parse(layout, bytes_from_text(text), &parsed));
    assert_int_equal(parsed, key);
}

static void assert_no_key(const struct layout *layout, const char *text) {
    uint64_t key = 77;
    assert_false(layout_key_parse(layout, bytes_from_text(text), &key));
    assert_int_equal(key, 77);
}

TEST(a_packed_key_is_written_as_the_integer_it_is) {
    struct layout layout = parse("FIELD score 33 FIELD paid 1 TIME 29 S");
    assert_key_text(&layout, 0, "0");
    assert_key_text(&layout, 429786801779, "429786801779");
    assert_key_text(&layout, UINT64_MAX >> 1, "9223372036854775807");
    assert_no_key(&layout, "9223372036854775808");
    assert_no_key(&layout, "18446744073709551616");
    assert_no_key(&layout, "-1");
    layout = parse("FIELD score 64");
    assert_key_text(&layout, UINT64_MAX, "18446744073709551615");
    layout = parse("FIELD a 1");
    assert_key_text(&layout, 1, "1");
    assert_no_key(&layout, "2");
}

TEST(a_packed_key_behind_a_signed_field_is_signed) {
    struct layout layout = parse("FIELD score 64 SIGNED");
    assert_key_text(&layout, 0, "-9223372036854775808");
    assert_key_text(&layout, UINT64_C(1) << 63, "0");
    assert_key_text(&layout, UINT64_MAX, "9223372036854775807");
    assert_no_key(&layout, "9223372036854775808");
    assert_no_key(&layout, "-9223372036854775809");
    layout = parse("FIELD score 5 SIGNED FIELD level 3 SIGNED TIME 4 S");
    int64_t elapsed_s = 3;
    int64_t time_us = time_of("2020-01-01T00:00:00Z") + elapsed_s * 1000000;
    for (int64_t score = -16; score < 16; score++) {
        /* The level's 3 bits are its ordinal: -4 is 0. */
        int64_t packed = score * 128 + (2 + 4) * 16 + (15 - elapsed_s);
        const char *text = formatted("%lld", (long long)packed);
        assert_key_text(&layout, key_of(&layout, (int64_t[]){score, 2}, time_us), text);
    }
    assert_no_key(&layout, "2048");
    assert_no_key(&layout, "-2049");
    layout = parse("FIELD depth 8 SIGNED ASC");
    assert_key_text(&layout, key_of(&layout, (int64_t[]){-128}, 0), "127");
    assert_key_text(&layout, key_of(&layout, (int64_t[]){127}, 0), "-128");
}

TEST(what_is_no_plain_integer_is_no_packed_key) {
    struct layout layout = parse("FIELD score 64 SIGNED");
    static const char *const texts[] = {
        "",    "-",   "+1",  "01",  "-0",  "1.0", "1.3094266712875436e+18", " 1", "1 ",
        "0x1", "inf", "1e3", "--1", "-01", "1_0"};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_no_key(&layout, texts[i]);
    }
    char error[LAYOUT_ERROR_MAX];
    layout_explain_key(&layout, BYTES("1e3\n"), error);
    assert_string_equal(error, "packed key 1e3? is not an integer of this layout's 64 bits: "
                               "-9223372036854775808..9223372036854775807 are allowed");
    layout = parse("FIELD a 8");
    layout_explain_key(&layout, BYTES("256"), error);
    assert_string_equal(error, "packed key 256 is not an integer of this layout's 8 bits: 0..255 "
                               "are allowed");
}

/* ---- Error messages ---- */

TEST(a_fields_text_is_a_decimal_and_infinity_is_out_of_range) {
    struct layout layout = parse("FIELD money 20 SCALE 2");
    const struct layout_field *money = &layout.fields[0];
    struct decimal value = {.magnitude = 77};
    static const char *const infinities[] = {"inf", "-inf", "+Infinity", "1e400"};
    for (size_t i = 0; i < COUNT_OF(infinities); i++) {
        assert_int_equal(layout_field_parse(money, bytes_from_text(infinities[i]), &value),
                         DECIMAL_OUT_OF_RANGE);
    }
    assert_int_equal(layout_field_parse(money, BYTES("(inf"), &value), DECIMAL_NOT_A_NUMBER);
    assert_int_equal(layout_field_parse(money, BYTES("nan"), &value), DECIMAL_NOT_A_NUMBER);
    assert_int_equal(layout_field_parse(money, BYTES(""), &value), DECIMAL_NOT_A_NUMBER);
    assert_int_equal(layout_field_parse(money, BYTES("0.001"), &value), DECIMAL_TOO_PRECISE);
    assert_int_equal(value.magnitude, 77);
    assert_int_equal(layout_field_parse(money, BYTES("-20000.01"), &value), DECIMAL_OK);
    assert_int_equal(value.magnitude, 2000001);
    assert_true(value.is_negative);
}

TEST(a_sum_that_does_not_fit_is_named_with_its_parts) {
    char error[LAYOUT_ERROR_MAX];
    struct layout layout = parse("FIELD money 20 SCALE 2");
    struct decimal delta = {.magnitude = 1048000, .is_negative = true};
    layout_explain_sum(&layout.fields[0], 1050, delta, 0, 0, error);
    assert_string_equal(error, "value 10.5 + -10480 is out of range: field 'money' takes "
                               "0..10485.75");
}

TEST(a_value_that_does_not_fit_is_named_with_its_field_and_range) {
    char error[LAYOUT_ERROR_MAX];
    struct layout layout = parse("FIELD score 33 SIGNED FIELD money 20 SCALE 2");
    const struct layout_field *score = &layout.fields[0];
    layout_explain_value(score, BYTES("4294967296"), DECIMAL_OUT_OF_RANGE, error);
    assert_string_equal(error, "value 4294967296 is out of range: field 'score' takes "
                               "-4294967296..4294967295");
    layout_explain_value(score, BYTES("4294967296"), DECIMAL_OK, error);
    assert_string_equal(error, "value 4294967296 is out of range: field 'score' takes "
                               "-4294967296..4294967295");
    layout_explain_value(score, BYTES("1.5"), DECIMAL_TOO_PRECISE, error);
    assert_string_equal(error, "value 1.5 has too many decimals: field 'score' keeps 0 (round it, "
                               "or more by SCALE in the layout)");
    layout_explain_value(score, BYTES("abc\r\n"), DECIMAL_NOT_A_NUMBER, error);
    assert_string_equal(error, "value is not a valid float");
    layout_explain_value(&layout.fields[1], BYTES("-1"), DECIMAL_OUT_OF_RANGE, error);
    assert_string_equal(error, "value -1 is out of range: field 'money' takes 0..10485.75");
}

TEST(what_a_client_sent_never_breaks_a_message) {
    struct layout layout = parse("FIELD a2345678901234567890123456789012 64 SIGNED SCALE 18 ASC");
    char text[1000];
    memset(text, '9', sizeof(text));
    char error[LAYOUT_ERROR_MAX];
    struct bytes bytes = {.at = text, .size = sizeof(text)};
    layout_explain_value(&layout.fields[0], bytes, DECIMAL_OUT_OF_RANGE, error);
    assert_string_equal(error,
                        "value 9999999999999999999999999999999999999999999999999999999999999... is "
                        "out of range: field 'a2345678901234567890123456789012' takes "
                        "-9.223372036854775808..9.223372036854775807");
    for (int byte = 0; byte < 256; byte++) {
        char one = (char)byte;
        layout_explain_value(&layout.fields[0], (struct bytes){.at = &one, .size = 1},
                             DECIMAL_TOO_PRECISE, error);
        char shown = byte >= 32 && byte < 127 ? one : '?';
        assert_int_equal(error[6], shown);
        assert_memory_equal(error + 7, " has too many", 13);
    }
}

TEST(a_time_that_does_not_fit_is_named_with_the_layouts_range) {
    struct layout layout;
    layout_init_default(&layout);
    char error[LAYOUT_ERROR_MAX];
    layout_explain_time(&layout, time_of("2088-02-01T00:00:00Z"), error);
    assert_string_equal(error,
                        "time 2088-02-01T00:00:00Z is out of range: this layout's TIME takes "
                        "2020-01-01T00:00:00Z..2088-01-19T03:14:07.999999Z");
    layout = parse("FIELD a 1 TIME 63 D");
    layout_explain_time(&layout, INT64_MIN, error);
    assert_string_equal(error, "time -9223372036854776 is out of range: this layout's TIME takes "
                               "2020-01-01T00:00:00Z..9223372036854775");
}

TEST(a_moved_window_is_that_of_the_text) {
    static const char *const units[] = {"US", "MS", "S", "M", "H", "D"};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        int64_t time_us = INT64_C(1795284000000000);
        struct layout layout = parse(formatted("FIELD a 3 TIME 20 %s LATEST", units[i]));
        layout_set_start(&layout, time_us);
        struct layout expected =
            parse(formatted("FIELD a 3 TIME 20 %s START 1795284000000 LATEST", units[i]));
        assert_true(layout_equal(&layout, &expected));
        assert_int_equal(layout_set_end(&layout, time_us), LAYOUT_OK);
        expected = parse(formatted("FIELD a 3 TIME 20 %s END 1795284000000 LATEST", units[i]));
        assert_true(layout_equal(&layout, &expected));
        layout_set_start(&layout, time_us);
        assert_false(layout_equal(&layout, &expected));
    }
    struct layout layout = parse("FIELD a 1 TIME 63 US START 5");
    struct layout before = layout;
    assert_int_equal(layout_set_end(&layout, -5), LAYOUT_TIME_OUT_OF_RANGE);
    assert_true(layout_equal(&layout, &before));
}
