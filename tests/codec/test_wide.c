/* Wide decimals are exact: against hand-made samples and a twin that works digit by digit, as on
 * paper. */
#include "tests/support/test.h"

#include "codec/decimal.h"
#include "tests/support/random.h"

/* ---- the twin: digits, lowest first ---- */

enum { DIGITS = 96 };

struct paper {
    unsigned char digits[DIGITS];
    bool is_negative;
};

static int length(const struct paper *number) {
    int count = DIGITS;
    while (count > 1 && number->digits[count - 1] == 0) {
        count--;
    }
    return count;
}

static struct paper paper_of(wide value) {
    struct paper number = {.is_negative = value < 0};
    for (int i = 0; value != 0; i++) {
        int digit = (int)(value % 10);
        number.digits[i] = (unsigned char)(digit < 0 ? -digit : digit);
        value /= 10;
    }
    return number;
}

static struct paper times(const struct paper *a, const struct paper *b) {
    struct paper product = {.is_negative = a->is_negative != b->is_negative};
    for (int i = 0; i < length(a); i++) {
        int carry = 0;
        for (int j = 0; i + j < DIGITS; j++) {
            int sum = product.digits[i + j] + a->digits[i] * b->digits[j] + carry;
            product.digits[i + j] = (unsigned char)(sum % 10);
            carry = sum / 10;
        }
    }
    return product;
}

/* a + b, or a - b when the signs differ. */
static struct paper plus(const struct paper *a, const struct paper *b) {
    bool is_sum = a->is_negative == b->is_negative;
    struct paper result = {.is_negative = a->is_negative};
    int carry = 0;
    for (int i = 0; i < DIGITS; i++) {
        int digit = a->digits[i] + (is_sum ? b->digits[i] : -b->digits[i]) + carry;
        carry = digit < 0 ? -1 : digit / 10;
        result.digits[i] = (unsigned char)((digit + 10) % 10);
    }
    if (carry < 0) {
        return plus(b, a);
    }
    return result;
}

/* The text of a number whose lowest scale digits are decimals. */
static size_t write_paper(const struct paper *number, unsigned scale, char *out) {
    int high = length(number) > (int)scale + 1 ? length(number) : (int)scale + 1;
    int low = 0;
    size_t size = 0;
    while (low < (int)scale && number->digits[low] == 0) {
        low++;
    }
    if (number->is_negative) {
        out[size++] = '-';
    }
    for (int i = high - 1; i >= low; i--) {
        if (i == (int)scale - 1) {
            out[size++] = '.';
        }
        out[size++] = (char)('0' + number->digits[i]);
    }
    return size;
}

static void assert_is(wide value, unsigned scale, const struct paper *number) {
    char text[DECIMAL_WIDE_TEXT_MAX + 1];
    char expected[2 * DIGITS];
    size_t size = decimal_wide_print(text, value, scale);
    assert_in_range(size, 1, DECIMAL_WIDE_TEXT_MAX);
    size_t expected_size = write_paper(number, scale, expected);
    if (size != expected_size || memcmp(text, expected, size) != 0) {
        fail_msg("%.*s, not %.*s", (int)size, text, (int)expected_size, expected);
    }
}

/* ---- samples ---- */

__extension__ typedef unsigned __int128 bits127;

static wide widest(void) {
    return (wide)(((bits127)1 << 127) - 1);
}

/* Of any size up to 127 bits. */
static wide random_wide(struct random *random) {
    bits127 bits = (bits127)random_next(random) << 64 | random_next(random);
    wide value = (wide)(bits >> (1 + random_below(random, 127)));
    return random_below(random, 2) == 0 ? -value : value;
}

static struct decimal random_factor(struct random *random) {
    struct decimal factor = {.magnitude = random_next(random) >> random_below(random, 64)};
    factor.is_negative = factor.magnitude > 0 && random_below(random, 2) == 0;
    return factor;
}

static void assert_prints(wide value, unsigned scale, const char *expected) {
    char text[DECIMAL_WIDE_TEXT_MAX + 1];
    text[decimal_wide_print(text, value, scale)] = '\0';
    assert_string_equal(text, expected);
}

/* ---- tests ---- */

TEST(the_shortest_exact_text_is_printed) {
    assert_prints(0, 0, "0");
    assert_prints(0, 36, "0");
    assert_prints(11500, 3, "11.5");
    assert_prints(-11500, 3, "-11.5");
    assert_prints(-5, 1, "-0.5");
    assert_prints(1, 36, "0.000000000000000000000000000000000001");
    assert_prints(widest(), 0, "170141183460469231731687303715884105727");
    assert_prints(-widest(), 36, "-170.141183460469231731687303715884105727");
    assert_prints(-widest() - 1, 0, "-170141183460469231731687303715884105728");
    assert_prints((wide)10000000000000000000U, 0, "10000000000000000000");
    assert_prints((wide)10000000000000000000U * 7, 19, "7");
}

TEST(what_fits_64_bits_prints_as_a_decimal_does) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 20000; i++) {
        struct decimal value = random_factor(&random);
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        char expected[DECIMAL_TEXT_MAX];
        char text[DECIMAL_WIDE_TEXT_MAX];
        size_t size = decimal_print(expected, value, scale);
        assert_int_equal(decimal_wide_print(text, decimal_to_wide(value), scale), size);
        assert_memory_equal(text, expected, size);
    }
}

TEST(products_and_sums_are_those_on_paper) {
    struct random random = random_begin(__func__);
    const struct paper last = paper_of(widest());
    int fitting = 0;
    for (int i = 0; i < 20000; i++) {
        wide value = random_wide(&random);
        wide other = random_wide(&random);
        struct decimal factor = random_factor(&random);
        unsigned scale = (unsigned)random_below(&random, DECIMAL_WIDE_SCALE_MAX + 1);
        struct paper a = paper_of(value);
        struct paper b = paper_of(decimal_to_wide(factor));
        struct paper product = times(&a, &b);
        struct paper magnitude = product;
        magnitude.is_negative = true;
        struct paper room = plus(&last, &magnitude); /* below 0: it does not fit */
        wide result = 77;
        bool fits = decimal_wide_multiply(value, factor, &result);
        assert_int_equal(fits, !room.is_negative || length(&room) == 1);
        if (fits) {
            product.is_negative = product.is_negative && result != 0;
            assert_is(result, scale, &product);
            fitting++;
        } else {
            assert_true(result == 77);
        }
        b = paper_of(other);
        struct paper sum = plus(&a, &b);
        if (decimal_wide_add(value, other, &result)) {
            sum.is_negative = sum.is_negative && result != 0;
            assert_is(result, scale, &sum);
        }
    }
    assert_in_range(fitting, 5000, 19000);
}

TEST(sums_that_do_not_fit_are_refused) {
    wide sum = 7;
    assert_false(decimal_wide_add(widest(), 1, &sum));
    assert_false(decimal_wide_add(-widest() - 1, -1, &sum));
    assert_true(sum == 7);
    assert_true(decimal_wide_add(widest(), -widest(), &sum));
    assert_true(sum == 0);
}

TEST(scaling_up_is_multiplying_by_ten) {
    struct random random = random_begin(__func__);
    const struct decimal ten = {.magnitude = 10};
    for (int i = 0; i < 5000; i++) {
        wide value = random_wide(&random);
        unsigned digits = (unsigned)random_below(&random, DECIMAL_WIDE_SCALE_MAX + 1);
        wide expected = value;
        bool fits = true;
        for (unsigned left = digits; left > 0 && fits; left--) {
            fits = decimal_wide_multiply(expected, ten, &expected);
        }
        wide scaled = 77;
        assert_int_equal(decimal_wide_scale_up(value, digits, &scaled), fits);
        assert_true(scaled == (fits ? expected : 77));
    }
}

TEST(a_decimal_of_another_scale_is_the_same_number_or_refused) {
    static const struct {
        wide value;
        unsigned scale, to_scale;
        enum decimal_status status;
        struct decimal expected;
    } samples[] = {
        {1250, 3, 2, DECIMAL_OK, {.magnitude = 125}},
        {-1250, 3, 2, DECIMAL_OK, {.magnitude = 125, .is_negative = true}},
        {1250, 3, 1, DECIMAL_TOO_PRECISE, {0}},
        {-1250, 3, 0, DECIMAL_TOO_PRECISE, {0}},
        {3, 0, 18, DECIMAL_OK, {.magnitude = UINT64_C(3000000000000000000)}},
        {19, 0, 18, DECIMAL_OUT_OF_RANGE, {0}},
        {UINT64_MAX, 5, 5, DECIMAL_OK, {.magnitude = UINT64_MAX}},
        {(wide)UINT64_MAX + 1, 5, 5, DECIMAL_OUT_OF_RANGE, {0}},
        {-(wide)UINT64_MAX - 1, 5, 5, DECIMAL_OUT_OF_RANGE, {0}},
        {0, 36, 0, DECIMAL_OK, {0}},
        {1, 36, 18, DECIMAL_TOO_PRECISE, {0}},
        {(wide)UINT64_C(1000000000000000000) * UINT64_C(1000000000000000000),
         36,
         0,
         DECIMAL_OK,
         {.magnitude = 1}},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct decimal decimal = {.magnitude = 77};
        assert_int_equal(
            decimal_from_wide(samples[i].value, samples[i].scale, samples[i].to_scale, &decimal),
            samples[i].status);
        bool is_ok = samples[i].status == DECIMAL_OK;
        assert_int_equal(decimal.magnitude, is_ok ? samples[i].expected.magnitude : 77);
        assert_int_equal(decimal.is_negative, is_ok && samples[i].expected.is_negative);
    }
}

TEST(a_decimal_comes_back_from_a_larger_scale) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 20000; i++) {
        struct decimal value = random_factor(&random);
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        unsigned digits = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        struct decimal back = {0};
        wide scaled = 0;
        assert_true(decimal_wide_scale_up(decimal_to_wide(value), digits, &scaled));
        assert_int_equal(decimal_from_wide(scaled, scale + digits, scale, &back), DECIMAL_OK);
        assert_int_equal(decimal_compare(value, back), 0);
    }
}
