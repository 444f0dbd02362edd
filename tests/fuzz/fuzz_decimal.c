/* Any text as a number and as a limit. The first byte is the scale, the rest the text. What parses
 * prints, and what is printed parses to the same; a limit agrees with the number it is made of. */
#include "codec/decimal.h"
#include "tests/fuzz/fuzz.h"

static bool is_equal(struct decimal a, struct decimal b) {
    return a.magnitude == b.magnitude && a.is_negative == b.is_negative;
}

static void check_print(struct decimal value, unsigned scale) {
    CHECK(!value.is_negative || value.magnitude > 0);
    char out[DECIMAL_TEXT_MAX];
    struct bytes printed = {.at = out, .size = decimal_print(out, value, scale)};
    CHECK(printed.size > 0);
    CHECK(printed.size <= DECIMAL_TEXT_MAX);
    CHECK(memchr(out, 'e', printed.size) == NULL);
    struct decimal again;
    CHECK(decimal_parse(printed, scale, &again) == DECIMAL_OK);
    CHECK(is_equal(value, again));
}

/* A number that is exact is its own limit on both sides. */
static void check_exact_bound(struct bytes text, unsigned scale, struct decimal value) {
    struct decimal_bound bound;
    bool is_empty;
    for (int is_lower = 0; is_lower < 2; is_lower++) {
        CHECK(decimal_parse_bound(text, scale, DECIMAL_EXACT, is_lower != 0, &bound, &is_empty) ==
              DECIMAL_OK);
        CHECK(bound.kind == DECIMAL_BOUND_VALUE);
        CHECK(is_equal(bound.value, value));
        CHECK(!is_empty);
    }
}

/* The next value above; there is one below 2^64 - 1. */
static struct decimal successor(struct decimal value) {
    if (!value.is_negative) {
        CHECK(value.magnitude < UINT64_MAX);
        value.magnitude++;
        return value;
    }
    value.magnitude--;
    value.is_negative = value.magnitude > 0;
    return value;
}

/* One text as both limits: no value, or one, is on both sides; "(x" leaves x out on both. */
static void check_bounds(struct bytes text, unsigned scale) {
    struct decimal_bound lower;
    struct decimal_bound upper;
    bool lower_is_empty;
    bool upper_is_empty;
    enum decimal_status status =
        decimal_parse_bound(text, scale, DECIMAL_EXACT, true, &lower, &lower_is_empty);
    CHECK(decimal_parse_bound(text, scale, DECIMAL_EXACT, false, &upper, &upper_is_empty) ==
          status);
    CHECK(status == DECIMAL_OK || status == DECIMAL_NOT_A_NUMBER);
    if (status != DECIMAL_OK) {
        return;
    }
    CHECK(lower_is_empty == (lower.kind == DECIMAL_BOUND_HIGHEST));
    CHECK(upper_is_empty == (upper.kind == DECIMAL_BOUND_LOWEST));
    bool is_exclusive = text.size > 0 && text.at[0] == '(';
    if (lower.kind == DECIMAL_BOUND_VALUE && upper.kind == DECIMAL_BOUND_VALUE) {
        check_print(lower.value, scale);
        check_print(upper.value, scale);
        struct decimal between = is_exclusive ? successor(upper.value) : upper.value;
        CHECK(is_equal(between, lower.value) || is_equal(successor(between), lower.value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    unsigned scale = data[0] % (DECIMAL_SCALE_MAX + 1);
    struct bytes text = {.at = (const char *)data + 1, .size = size - 1};
    struct decimal value = {.magnitude = 77, .is_negative = true};
    enum decimal_status status = decimal_parse(text, scale, &value);
    if (status == DECIMAL_OK) {
        check_print(value, scale);
        check_exact_bound(text, scale, value);
    } else {
        CHECK(value.magnitude == 77);
        CHECK(value.is_negative);
    }
    check_bounds(text, scale);
    return 0;
}
