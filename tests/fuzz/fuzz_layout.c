/* Any text as a layout: refused with one line, or a layout that holds together, prints and parses
 * back to itself, and keeps its keys. The keys come from the text too. */
#include "codec/layout.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/layout_text.h"

static void check_message(const char *error) {
    size_t size = strnlen(error, LAYOUT_ERROR_MAX);
    CHECK(size > 0);
    CHECK(size < LAYOUT_ERROR_MAX);
    for (size_t i = 0; i < size; i++) {
        CHECK(error[i] >= ' ' && error[i] <= '~');
    }
}

static void check_text(const struct layout *layout) {
    const char *reason;
    CHECK(layout_validate(layout, &reason));
    char text[LAYOUT_TEXT_MAX];
    char text_again[LAYOUT_TEXT_MAX];
    char error[LAYOUT_ERROR_MAX];
    struct layout again;
    struct bytes printed = {.at = text, .size = layout_print(layout, text)};
    CHECK(printed.size < LAYOUT_TEXT_MAX);
    CHECK(layout_parse(printed, &again, error) == LAYOUT_OK);
    CHECK(layout_equal(layout, &again));
    struct bytes printed_again = {.at = text_again, .size = layout_print(&again, text_again)};
    CHECK(bytes_equal(printed, printed_again));
}

/* What is added is there, whatever the key was and whenever it is added. */
static void check_sum(const struct layout_field *lead, uint64_t ordinal, int64_t time_us) {
    char error[LAYOUT_ERROR_MAX];
    struct decimal delta = {.magnitude = ordinal};
    uint64_t sum;
    if (layout_field_add_at(lead, ordinal, delta, time_us, time_us, &sum) != LAYOUT_OK) {
        layout_explain_sum(lead, ordinal, delta, time_us, time_us, error);
        check_message(error);
        return;
    }
    CHECK(sum <= lead->mask);
    CHECK(sum >= ordinal);
    CHECK(layout_field_join(lead, sum, ordinal, time_us, &sum) != LAYOUT_OK || sum <= lead->mask);
}

/* Exactly the keys with the same lead are in its range; where it decays, those with the same score. */
static void check_range(const struct layout *layout, uint64_t key, int64_t time_us) {
    const struct layout_field *lead = &layout->fields[0];
    struct decimal_bound bound = {
        .kind = DECIMAL_BOUND_VALUE,
        .value = layout_field_decimal_at(lead, layout_ordinal(layout, key, 0), time_us),
    };
    uint64_t first;
    uint64_t last;
    CHECK(layout_key_range(layout, bound, bound, time_us, &first, &last));
    CHECK(first <= key && key <= last);
    if (!layout_field_decays(lead)) {
        CHECK(last - first == (1ULL << lead->shift) - 1);
        return;
    }
    check_sum(lead, layout_ordinal(layout, key, 0), time_us);
    for (int i = 0; i < 2; i++) {
        uint64_t end = i == 0 ? first : last;
        struct decimal value =
            layout_field_decimal_at(lead, layout_ordinal(layout, end, 0), time_us);
        CHECK(decimal_compare(value, bound.value) == 0);
    }
}

static void check_key(const struct layout *layout, uint64_t key) {
    key &= UINT64_MAX >> (64 - layout->bits_total);
    uint64_t ordinals[LAYOUT_FIELDS_MAX];
    int64_t time_us;
    uint64_t rebuilt = layout_zero_key(layout);
    layout_unpack(layout, key, ordinals, &time_us);
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        uint64_t ordinal = ordinals[i];
        if (!layout_field_decays(field)) {
            struct decimal value = layout_field_decimal(field, ordinals[i]);
            enum layout_status status = layout_field_ordinal(field, value, &ordinal);
            if (field->is_double && status == LAYOUT_VALUE_OUT_OF_RANGE) {
                return; /* the nearest double is outside the field */
            }
            CHECK(status == LAYOUT_OK);
        }
        if (field->is_double && ordinal != ordinals[i]) {
            /* No board has this key: the nearest double's is gone on with, which is its own nearest one. */
            CHECK(layout_field_ordinal(field, layout_field_decimal(field, ordinal), &ordinals[i]) ==
                  LAYOUT_OK);
            key = layout_with_ordinal(layout, key, i, ordinals[i]);
        }
        CHECK(ordinal == layout_ordinal(layout, key, i));
        rebuilt = layout_with_ordinal(layout, rebuilt, i, ordinal);
    }
    CHECK(rebuilt == layout_without_time(layout, key));
    /* A time that saturates is read as the last one there is. */
    if (time_us < INT64_MAX) {
        CHECK(layout_pack(layout, ordinals, time_us, &rebuilt) == LAYOUT_OK);
        CHECK(rebuilt == key);
    }
    check_range(layout, key, time_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct bytes text = {.at = (const char *)data, .size = size};
    struct layout layout;
    char error[LAYOUT_ERROR_MAX];
    if (layout_parse(text, &layout, error) != LAYOUT_OK) {
        check_message(error);
        return 0;
    }
    check_text(&layout);
    for (size_t i = 0; i + sizeof(uint64_t) <= size; i++) {
        uint64_t key;
        memcpy(&key, data + i, sizeof(key));
        check_key(&layout, key);
        check_key(&layout, key * 0x9e3779b97f4a7c15ULL);
        layout_explain_time(&layout, (int64_t)key, error);
        check_message(error);
    }
    check_key(&layout, 0);
    check_key(&layout, UINT64_MAX);
    layout_explain_value(&layout.fields[0], text, DECIMAL_OUT_OF_RANGE, error);
    check_message(error);
    return 0;
}
