/* Decimals are exact: against hand-made samples and a twin that works digit by digit. */
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>

#include "codec/decimal.h"
#include "codec/memory.h"
#include "tests/support/random.h"

static struct decimal positive(uint64_t magnitude) {
    return (struct decimal){.magnitude = magnitude};
}

static struct decimal negative(uint64_t magnitude) {
    return (struct decimal){.magnitude = magnitude, .is_negative = true};
}

static void assert_decimal_equal(struct decimal a, struct decimal b) {
    assert_int_equal(a.magnitude, b.magnitude);
    assert_int_equal(a.is_negative, b.is_negative);
    assert_int_equal(decimal_compare(a, b), 0);
}

static void assert_parses(const char *text, unsigned scale, struct decimal expected) {
    struct decimal value;
    enum decimal_status status = decimal_parse(bytes_from_text(text), scale, &value);
    if (status != DECIMAL_OK || value.magnitude != expected.magnitude ||
        value.is_negative != expected.is_negative) {
        fail_msg("'%s' at scale %u: status %d", text, scale, (int)status);
    }
}

static void assert_refused(struct bytes text, unsigned scale, enum decimal_status expected) {
    struct decimal value = {.magnitude = 77, .is_negative = true};
    enum decimal_status status = decimal_parse(text, scale, &value);
    if (status != expected) {
        fail_msg("'%.*s' at scale %u: status %d", (int)text.size, text.at, scale, (int)status);
    }
    assert_int_equal(value.magnitude, 77);
    assert_true(value.is_negative);
}

TEST(numbers_parse_in_every_form) {
    assert_parses("3", 0, positive(3));
    assert_parses("+3", 0, positive(3));
    assert_parses("-3", 0, negative(3));
    assert_parses("3.0", 0, positive(3));
    assert_parses("3.", 0, positive(3));
    assert_parses(".5", 1, positive(5));
    assert_parses("-.5", 1, negative(5));
    assert_parses("1e6", 0, positive(1000000));
    assert_parses("1E+6", 0, positive(1000000));
    assert_parses("4.6E18", 0, positive(4600000000000000000ULL));
    assert_parses("-12e-1", 1, negative(12));
    assert_parses("1200e-2", 0, positive(12));
    assert_parses("0.00012e5", 0, positive(12));
    assert_parses("12.34", 2, positive(1234));
    assert_parses("12.34", 5, positive(1234000));
    assert_parses("1.3094266712875436e+18", 0, positive(1309426671287543600ULL));
}

TEST(zeros_in_front_and_behind_do_not_matter) {
    assert_parses("1.50", 1, positive(15));
    assert_parses("1.5000000000000000000000000000000000000000", 1, positive(15));
    assert_parses("00000000000000000000000000000000000000000000012", 0, positive(12));
    assert_parses("007", 0, positive(7));
    assert_parses("-000.0070", 3, negative(7));
    assert_parses("100e-2", 0, positive(1));
}

TEST(every_zero_is_zero_without_a_sign) {
    static const char *const zeros[] = {
        "0",   "-0",   "+0",    "0.0",      "-.0",       "0.",        "000",
        "0e0", "0e99", "-0e-9", "0e999999", "0e-999999", "0.000e400", "0e99999999999999999999999",
    };
    for (size_t i = 0; i < COUNT_OF(zeros); i++) {
        assert_parses(zeros[i], 0, positive(0));
        assert_parses(zeros[i], DECIMAL_SCALE_MAX, positive(0));
    }
}

TEST(sixty_four_bits_fit_and_no_more) {
    assert_parses("18446744073709551615", 0, positive(UINT64_MAX));
    assert_parses("-18446744073709551615", 0, negative(UINT64_MAX));
    assert_parses("18.446744073709551615", 18, positive(UINT64_MAX));
    assert_parses("1844674407370955161.5e1", 0, positive(UINT64_MAX));
    assert_parses("9999999999999999999", 0, positive(9999999999999999999ULL));
    assert_parses("-9", DECIMAL_SCALE_MAX, negative(9000000000000000000ULL));
    assert_parses("18", DECIMAL_SCALE_MAX, positive(18000000000000000000ULL));
    static const char *const too_wide[] = {
        "18446744073709551616",
        "-18446744073709551616",
        "99999999999999999999",
        "1e20",
        "184467440737095516150",
        "18446744073709551616.5",
        "1e400",
        "-1e400",
        "1e999999999999999999999",
        "0.0001e99999",
        "2e19",
        "1844674407370955161.6e1",
    };
    for (size_t i = 0; i < COUNT_OF(too_wide); i++) {
        assert_refused(bytes_from_text(too_wide[i]), 0, DECIMAL_OUT_OF_RANGE);
    }
    assert_refused(BYTES("18.446744073709551616"), 18, DECIMAL_OUT_OF_RANGE);
    assert_refused(BYTES("19"), 18, DECIMAL_OUT_OF_RANGE);
}

static void assert_parses_at(const char *text, struct decimal expected, unsigned expected_scale) {
    struct decimal value;
    unsigned scale = 99;
    enum decimal_status status = decimal_parse_exact(bytes_from_text(text), &value, &scale);
    if (status != DECIMAL_OK || decimal_compare(value, expected) != 0 || scale != expected_scale) {
        fail_msg("'%s': status %d, scale %u", text, (int)status, scale);
    }
}

TEST(a_number_is_read_at_the_least_scale_that_keeps_it) {
    assert_parses_at("3", positive(3), 0);
    assert_parses_at("-3.0", negative(3), 0);
    assert_parses_at("0.25", positive(25), 2);
    assert_parses_at("2.50", positive(25), 1);
    assert_parses_at("-.5", negative(5), 1);
    assert_parses_at("1e3", positive(1000), 0);
    assert_parses_at("1200e-3", positive(12), 1);
    assert_parses_at("1200e-2", positive(12), 0);
    assert_parses_at("12.5e1", positive(125), 0);
    assert_parses_at("12.5e-1", positive(125), 2);
    assert_parses_at("0.0000", positive(0), 0);
    assert_parses_at("0e-400", positive(0), 0);
    assert_parses_at("0.000000000000000001", positive(1), 18);
    assert_parses_at("1e-18", positive(1), 18);
    assert_parses_at("100e-20", positive(1), 18);
    assert_parses_at("18446744073709551615", positive(UINT64_MAX), 0);
    assert_parses_at("18.446744073709551615", positive(UINT64_MAX), 18);
}

TEST(what_no_scale_keeps_is_refused_and_changes_nothing) {
    static const struct {
        const char *text;
        enum decimal_status status;
    } samples[] = {
        {"x", DECIMAL_NOT_A_NUMBER},
        {"", DECIMAL_NOT_A_NUMBER},
        {"inf", DECIMAL_NOT_A_NUMBER},
        {"nan", DECIMAL_NOT_A_NUMBER},
        {"1e-19", DECIMAL_TOO_PRECISE},
        {"0.1234567890123456789", DECIMAL_TOO_PRECISE},
        {"1e-9223372036854775808", DECIMAL_TOO_PRECISE},
        {"18446744073709551616", DECIMAL_OUT_OF_RANGE},
        {"1844674407370955161.6", DECIMAL_OUT_OF_RANGE},
        {"1e20", DECIMAL_OUT_OF_RANGE},
        {"1e9223372036854775807", DECIMAL_OUT_OF_RANGE},
    };
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct decimal value = positive(77);
        unsigned scale = 99;
        enum decimal_status status =
            decimal_parse_exact(bytes_from_text(samples[i].text), &value, &scale);
        if (status != samples[i].status) {
            fail_msg("'%s': status %d", samples[i].text, (int)status);
        }
        assert_int_equal(value.magnitude, 77);
        assert_int_equal(scale, 99);
    }
}

TEST(any_printed_number_is_read_exactly) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 20000; i++) {
        struct decimal value = {.magnitude = random_next(&random) >> random_below(&random, 64)};
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        char text[DECIMAL_TEXT_MAX];
        struct bytes printed = {.at = text, .size = decimal_print(text, value, scale)};
        struct decimal exact;
        unsigned exact_scale;
        assert_int_equal(decimal_parse_exact(printed, &exact, &exact_scale), DECIMAL_OK);
        assert_true(exact_scale <= scale);
        assert_true(exact_scale == 0 || exact.magnitude % 10 != 0);
        for (; exact_scale < scale; exact_scale++) {
            exact.magnitude *= 10;
        }
        assert_int_equal(exact.magnitude, value.magnitude);
    }
}

TEST(digits_beyond_the_scale_are_too_precise) {
    static const char *const too_precise[] = {
        "1.55",
        "-0.01",
        "0.01",
        "1e-2",
        "1e-400",
        "1e-999999999999999999999999",
        "12345e-3",
        "1.5000000000000000000000000001",
        "18446744073709551.5555",
    };
    for (size_t i = 0; i < COUNT_OF(too_precise); i++) {
        assert_refused(bytes_from_text(too_precise[i]), 1, DECIMAL_TOO_PRECISE);
    }
    assert_refused(BYTES("1.5"), 0, DECIMAL_TOO_PRECISE);
}

TEST(a_double_of_seventeen_digits_is_its_shortest_decimal) {
    assert_parses("0.10000000000000001", 1, positive(1));
    assert_parses("0.10000000000000001", 2, positive(10));
    assert_parses("-0.29999999999999999", 1, negative(3));
    assert_parses("+2.6749999999999998", 3, positive(2675));
    assert_parses("8.1400000000000006", 2, positive(814));
    assert_parses("9.9999999999999995e-08", 7, positive(1));
    assert_parses("1.0000000000000001e-1", 1, positive(1));
    assert_parses("000.10000000000000001000", 1, positive(1));
    assert_parses("90071992547409.938", 2, positive(9007199254740994));
    assert_parses("1700000000.1234560", 6, positive(1700000000123456));
    /* A scale that keeps all digits keeps them. */
    assert_parses("0.10000000000000001", 17, positive(10000000000000001));
}

TEST(other_decimals_beyond_the_scale_stay_too_precise) {
    static const struct {
        const char *text;
        unsigned scale;
    } refused[] = {
        {"0.1", 0},
        {"0.10000000000000001", 0},
        {"0.10000000000000002", 1}, /* another double */
        {"0.1000000000000000", 0},
        {"0.1000000000000001", 1},
        {"0.100000000000000006", 1}, /* 18 digits */
        {"0.1000000000000000055511151231257827", 1},
        {"8.1400000000000005", 2}, /* the same double, which is not printed so */
        {"9007199254740993.5", 0},
        {"4503599627370497.5", 0},
        {"1e-400", 0},
        {"4.9406564584124654e-324", 18},
        {"2.6749999999999998", 2},
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_refused(bytes_from_text(refused[i].text), refused[i].scale, DECIMAL_TOO_PRECISE);
    }
}

/* Decimals of up to 15 digits, by way of a double: each is read as what it was, and as a limit. */
TEST(random_decimals_survive_a_double_of_seventeen_digits) {
    struct random random = random_begin(__func__);
    const uint32_t rounds = test_rounds(200000, 200000);
    unsigned inexact_count = 0;
    for (uint32_t i = 0; i < rounds; i++) {
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX - 2);
        uint64_t limit = 10;
        for (uint64_t digits = random_below(&random, 15); digits > 0; digits--) {
            limit *= 10;
        }
        struct decimal expected = positive(random_below(&random, limit));
        expected.is_negative = expected.magnitude > 0 && random_below(&random, 2) == 0;
        char text[64];
        text[decimal_print(text, expected, scale)] = '\0';
        double value = strtod(text, NULL);
        snprintf(text, sizeof text, random_below(&random, 2) == 0 ? "%.17g" : "%.16e", value);
        inexact_count += strlen(text) > 17;
        assert_parses(text, scale, expected);
        struct decimal_bound bound;
        bool is_empty;
        for (int is_lower = 0; is_lower < 2; is_lower++) {
            assert_int_equal(decimal_parse_bound(bytes_from_text(text), scale, DECIMAL_EXACT,
                                                 is_lower, &bound, &is_empty),
                             DECIMAL_OK);
            assert_int_equal(bound.kind, DECIMAL_BOUND_VALUE);
            assert_decimal_equal(bound.value, expected);
        }
    }
    assert_true(inexact_count > rounds / 2);
}

TEST(text_of_another_form_is_not_a_number) {
    static const struct bytes refused[] = {
        {0},
        BYTES_INIT(""),
        BYTES_INIT("-"),
        BYTES_INIT("+"),
        BYTES_INIT("."),
        BYTES_INIT("-."),
        BYTES_INIT("e5"),
        BYTES_INIT(".e5"),
        BYTES_INIT("1e"),
        BYTES_INIT("1e+"),
        BYTES_INIT("1e-"),
        BYTES_INIT("1e5.0"),
        BYTES_INIT("1e5e5"),
        BYTES_INIT("1.2.3"),
        BYTES_INIT("1..2"),
        BYTES_INIT("--1"),
        BYTES_INIT("+-1"),
        BYTES_INIT(" 1"),
        BYTES_INIT("1 "),
        BYTES_INIT("1,5"),
        BYTES_INIT("0x10"),
        BYTES_INIT("inf"),
        BYTES_INIT("-inf"),
        BYTES_INIT("nan"),
        BYTES_INIT("1\0"),
        BYTES_INIT("abc"),
        BYTES_INIT("1e9999999999999999999999x"),
        BYTES_INIT("(1"),
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_refused(refused[i], 0, DECIMAL_NOT_A_NUMBER);
        assert_refused(refused[i], DECIMAL_SCALE_MAX, DECIMAL_NOT_A_NUMBER);
    }
}

TEST(numbers_of_many_digits_are_read_to_the_end) {
    enum { SIZE = 400, LONG_SIZE = 1 << 20 };
    char text[SIZE];
    struct bytes bytes = {.at = text, .size = SIZE};
    memset(text, '7', SIZE);
    assert_refused(bytes, 0, DECIMAL_OUT_OF_RANGE);
    text[1] = '.';
    assert_refused(bytes, 0, DECIMAL_TOO_PRECISE);
    memset(text + 2, '0', SIZE - 2);
    struct decimal value;
    assert_int_equal(decimal_parse(bytes, 0, &value), DECIMAL_OK);
    assert_decimal_equal(value, positive(7));
    char *long_text = memory_allocate(LONG_SIZE);
    assert_non_null(long_text);
    memset(long_text, '0', LONG_SIZE);
    memcpy(long_text, "0.", 2);
    /* The digit is the (LONG_SIZE - 12)th after the point. */
    memcpy(long_text + LONG_SIZE - 11, "4e001048565", 11);
    struct bytes long_bytes = {.at = long_text, .size = LONG_SIZE};
    assert_int_equal(decimal_parse(long_bytes, 0, &value), DECIMAL_OK);
    assert_decimal_equal(value, positive(40));
    memory_free(long_text);
}

static void assert_prints(struct decimal value, unsigned scale, const char *expected) {
    char out[DECIMAL_TEXT_MAX];
    struct bytes printed = {.at = out, .size = decimal_print(out, value, scale)};
    assert_true(printed.size <= DECIMAL_TEXT_MAX);
    if (!bytes_equal(printed, bytes_from_text(expected))) {
        fail_msg("'%.*s' instead of '%s'", (int)printed.size, out, expected);
    }
}

TEST(the_shortest_exact_text_is_printed) {
    assert_prints(positive(0), 0, "0");
    assert_prints(positive(0), 18, "0");
    assert_prints(positive(1234), 2, "12.34");
    assert_prints(positive(1200), 2, "12");
    assert_prints(positive(1230), 2, "12.3");
    assert_prints(positive(5), 2, "0.05");
    assert_prints(positive(50), 2, "0.5");
    assert_prints(negative(50), 2, "-0.5");
    assert_prints(negative(1), 18, "-0.000000000000000001");
    assert_prints(positive(1000000), 0, "1000000");
    assert_prints(positive(UINT64_MAX), 0, "18446744073709551615");
    assert_prints(negative(UINT64_MAX), 0, "-18446744073709551615");
    assert_prints(negative(UINT64_MAX), 18, "-18.446744073709551615");
    assert_prints(positive(1000000000000000000ULL), 18, "1");
    assert_prints(positive(10000000000000000000ULL), 18, "10");
}

TEST(what_is_printed_parses_to_the_same) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 100000; i++) {
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        struct decimal value = positive(random_next(&random) >> random_below(&random, 64));
        if (random_below(&random, 4) == 0) {
            value.magnitude = value.magnitude / 1000000 * 1000000;
        }
        value.is_negative = value.magnitude > 0 && random_below(&random, 2) == 0;
        char out[DECIMAL_TEXT_MAX];
        struct bytes text = {.at = out, .size = decimal_print(out, value, scale)};
        assert_true(text.size <= DECIMAL_TEXT_MAX);
        struct decimal parsed;
        assert_int_equal(decimal_parse(text, scale, &parsed), DECIMAL_OK);
        assert_decimal_equal(parsed, value);
        const char *point = memchr(out, '.', text.size);
        assert_true(point == NULL || out[text.size - 1] != '0');
    }
}

/* A number of one double: the decimal at the scale, or UINT64_MAX as magnitude if it is refused. */
static struct decimal settled(const char *text, unsigned scale) {
    struct decimal value;
    if (decimal_parse_double(bytes_from_text(text), scale, &value) != DECIMAL_OK) {
        return (struct decimal){.magnitude = UINT64_MAX};
    }
    value.magnitude = decimal_settle(scale, value.magnitude);
    return value;
}

static struct decimal_bound bound_of(const char *text, unsigned scale, bool is_lower) {
    struct decimal_bound bound;
    bool is_empty;
    assert_int_equal(decimal_parse_bound(bytes_from_text(text), scale, DECIMAL_DOUBLES, is_lower,
                                         &bound, &is_empty),
                     DECIMAL_OK);
    assert_false(is_empty);
    assert_int_equal(bound.kind, DECIMAL_BOUND_VALUE);
    return bound;
}

/* The shortest of the texts that denote the double: of 15, 16 or 17 digits, as Python's repr has them. */
static void print_shortest(double number, char *out, size_t size) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, size, "%.*e", digits - 1, number);
        if (strtod(out, NULL) == number) {
            return;
        }
    }
}

/* 1318516439.8571313 as 1.3184395E9 */
static void print_as_java(double number, char *out, size_t size) {
    char text[64];
    print_shortest(number, text, sizeof text);
    char *mark = strchr(text, 'e');
    int power = atoi(mark + 1);
    *mark = '\0';
    snprintf(out, size, "%s%sE%d", text, strchr(text, '.') == NULL ? ".0" : "", power);
}

enum { FORMS = 9, FORM_MAX = 96 };

static void print_forms(double number, char forms[FORMS][FORM_MAX]) {
    print_shortest(number, forms[0], FORM_MAX);
    print_as_java(number, forms[1], FORM_MAX);
    snprintf(forms[2], FORM_MAX, "%.17g", number); /* PHP with serialize_precision 17, printf */
    snprintf(forms[3], FORM_MAX, "%.16e", number);
    snprintf(forms[4], FORM_MAX, "%.18g", number);
    snprintf(forms[5], FORM_MAX, "%.25g", number);
    snprintf(forms[6], FORM_MAX, "%.60f", number); /* all of it */
    snprintf(forms[7], FORM_MAX, "%+.20f", number);
    snprintf(forms[8], FORM_MAX, "%.15g", number);
    if (strtod(forms[8], NULL) != number) {
        memcpy(forms[8], forms[0], FORM_MAX);
    }
}

static double random_double(struct random *random, double lowest, double highest) {
    double number =
        lowest + (highest - lowest) * ((double)(random_next(random) >> 11) / 9007199254740992.0);
    unsigned digits = (unsigned)random_below(random, 12);
    if (digits < 8) { /* as programs round them */
        char text[64];
        snprintf(text, sizeof text, "%.*f", (int)digits, number);
        number = strtod(text, NULL);
    }
    return number;
}

static void assert_one_number(double number, unsigned scale) {
    char forms[FORMS][FORM_MAX];
    char excluded[FORM_MAX + 1] = "(";
    char printed[DECIMAL_TEXT_MAX + 1];
    print_forms(number, forms);
    struct decimal first = settled(forms[0], scale);
    assert_true(first.magnitude != UINT64_MAX);
    /* What is shown is the double again, and no text of it is shorter. */
    printed[decimal_print(printed, first, scale)] = '\0';
    assert_true(strtod(printed, NULL) == number);
    struct decimal exact;
    assert_int_equal(decimal_parse(bytes_from_text(forms[0]), scale, &exact), DECIMAL_OK);
    assert_decimal_equal(first, exact);
    for (int form = 0; form < FORMS; form++) {
        assert_decimal_equal(settled(forms[form], scale), first);
        assert_decimal_equal(bound_of(forms[form], scale, true).value, first);
        assert_decimal_equal(bound_of(forms[form], scale, false).value, first);
        strcpy(excluded + 1, forms[form]);
        assert_int_equal(decimal_compare(bound_of(excluded, scale, true).value, first), 1);
        assert_int_equal(decimal_compare(bound_of(excluded, scale, false).value, first), -1);
    }
    uint64_t bits;
    double next;
    memcpy(&bits, &number, sizeof bits);
    bits += number > 0 ? 1 : UINT64_MAX; /* the next double above */
    memcpy(&next, &bits, sizeof next);
    snprintf(printed, sizeof printed, "%.17g", next);
    struct decimal above = settled(printed, scale);
    assert_true(above.magnitude == UINT64_MAX || decimal_compare(above, first) > 0);
}

TEST(one_double_is_one_number_in_all_its_forms) {
    static const struct {
        double lowest, highest;
        unsigned scale;
    } kinds[] = {{1000000000, 2200000000, 7}, {-2200000000, -1000000000, 7}, {1e12, 2.2e12, 4},
                 {4.6e11, 9.2e11, 7},         {9007199254740992, 9.2e18, 0}, {1e14, 9e14, 4}};
    struct random random = random_begin(__func__);
    const uint32_t rounds = test_rounds(100000, 100000);
    for (uint32_t i = 0; i < rounds; i++) {
        size_t kind = i < rounds * 2 / 5 ? 0 : i % COUNT_OF(kinds);
        assert_one_number(random_double(&random, kinds[kind].lowest, kinds[kind].highest),
                          kinds[kind].scale);
    }
}

TEST(up_to_fifteen_digits_decimals_of_doubles_are_exact) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 100000; i++) {
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        uint64_t magnitude = random_below(&random, 1000000000000000);
        assert_true(decimal_settle(scale, magnitude) == magnitude);
        if (magnitude > 0) {
            assert_true(decimal_settle_long(scale, magnitude) == magnitude);
        }
    }
}

TEST(the_decimal_of_a_double_stays_when_it_is_settled_again) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 100000; i++) {
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        uint64_t magnitude = random_next(&random) >> random_below(&random, 12) | 1;
        uint64_t once = decimal_settle_long(scale, magnitude);
        assert_true(decimal_settle(scale, magnitude) == once);
        assert_true(decimal_settle_long(scale, once) == once);
        char text[2][DECIMAL_TEXT_MAX + 1];
        text[0][decimal_print(text[0], positive(magnitude), scale)] = '\0';
        text[1][decimal_print(text[1], positive(once), scale)] = '\0';
        assert_true(strtod(text[0], NULL) == strtod(text[1], NULL));
    }
}

TEST(halfway_between_two_doubles_the_even_one_is_the_number) {
    /* 2^53 + 1 is halfway between 2^53 and 2^53 + 2; the last of 800 digits decides. */
    char text[820] = "9007199254740993.";
    memset(text + 17, '0', 800);
    assert_decimal_equal(settled(text, 0), positive(9007199254740992));
    text[816] = '1';
    assert_decimal_equal(settled(text, 0), positive(9007199254740994));
}

TEST(a_hexadecimal_limit_is_the_number_of_its_double) {
    assert_decimal_equal(bound_of("0x1.3a5b1dbd70a4p+30", 7, true).value,
                         settled("1318504303.3600006", 7));
}

TEST(values_compare_as_on_a_line) {
    const struct decimal line[] = {
        negative(UINT64_MAX), negative(2), negative(1),          positive(0),
        positive(1),          positive(2), positive(UINT64_MAX),
    };
    int count = COUNT_OF(line);
    for (int a = 0; a < count; a++) {
        for (int b = 0; b < count; b++) {
            assert_int_equal(decimal_compare(line[a], line[b]), (a > b) - (a < b));
        }
    }
}

/* The naive twin: a number is an array of decimal places, and nothing is ever multiplied. */
enum {
    TWIN_PLACES = 400,
    TWIN_ONES = 200, /* places[TWIN_ONES + p] counts units of 10^p */
};

struct twin {
    unsigned char places[TWIN_PLACES];
    bool is_negative;
};

struct random_number {
    char text[80];
    size_t size;
    struct twin twin; /* in units of 10^-scale */
};

/* Create a number's text and store its digits in their places. */
static struct random_number make_number(struct random *random, unsigned scale) {
    struct random_number number = {.size = 0};
    char *at = number.text;
    int whole_count = (int)random_below(random, 24);
    int fraction_count = (int)random_below(random, 24) + (whole_count == 0 ? 1 : 0);
    int exponent = random_below(random, 2) == 0 ? 0 : (int)random_below(random, 61) - 30;
    uint64_t sparse = random_below(random, 3);
    number.twin.is_negative = random_below(random, 2) == 0;
    if (number.twin.is_negative) {
        *at++ = '-';
    } else if (random_below(random, 3) == 0) {
        *at++ = '+';
    }
    for (int place = whole_count - 1; place >= -fraction_count; place--) {
        if (place == -1) {
            *at++ = '.';
        }
        bool is_zero = sparse > 0 && random_below(random, 8) < 6;
        unsigned digit = is_zero ? 0 : (unsigned)random_below(random, 10);
        *at++ = (char)('0' + digit);
        number.twin.places[TWIN_ONES + place + exponent + (int)scale] = (unsigned char)digit;
    }
    if (exponent != 0) {
        at += snprintf(at, 8, "%c%+d", random_below(random, 2) == 0 ? 'e' : 'E', exponent);
    }
    number.size = (size_t)(at - number.text);
    return number;
}

static struct twin twin_from_decimal(struct decimal value) {
    struct twin twin = {.is_negative = value.is_negative};
    for (int place = TWIN_ONES; value.magnitude > 0; place++) {
        twin.places[place] = (unsigned char)(value.magnitude % 10);
        value.magnitude /= 10;
    }
    return twin;
}

static int twin_compare_magnitudes(const struct twin *a, const struct twin *b) {
    for (int place = TWIN_PLACES - 1; place >= 0; place--) {
        if (a->places[place] != b->places[place]) {
            return a->places[place] < b->places[place] ? -1 : 1;
        }
    }
    return 0;
}

static bool twin_is_zero(const struct twin *twin) {
    struct twin zero = {.is_negative = false};
    return twin_compare_magnitudes(twin, &zero) == 0;
}

static int twin_compare(const struct twin *a, const struct twin *b) {
    bool a_is_negative = a->is_negative && !twin_is_zero(a);
    bool b_is_negative = b->is_negative && !twin_is_zero(b);
    if (a_is_negative != b_is_negative) {
        return a_is_negative ? -1 : 1;
    }
    return a_is_negative ? twin_compare_magnitudes(b, a) : twin_compare_magnitudes(a, b);
}

static bool twin_has_fraction(const struct twin *twin) {
    for (int place = 0; place < TWIN_ONES; place++) {
        if (twin->places[place] != 0) {
            return true;
        }
    }
    return false;
}

/* The integer part of the magnitude is above 2^64 - 1. */
static bool twin_is_too_wide(struct twin twin) {
    memset(twin.places, 0, TWIN_ONES);
    struct twin widest = twin_from_decimal(positive(UINT64_MAX));
    return twin_compare_magnitudes(&twin, &widest) > 0;
}

/* Is the text one of 16 or 17 digits that denotes the same double as the value? */
static bool is_printed_double(struct bytes text, struct decimal value, unsigned scale) {
    char copy[512], short_text[DECIMAL_TEXT_MAX + 1];
    size_t digit_count = 0;
    assert_true(text.size < sizeof copy);
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    short_text[decimal_print(short_text, value, scale)] = '\0';
    size_t begin = strspn(copy, "+-0.");
    size_t end = strcspn(copy, "eE");
    for (; end > begin && strchr("0.", copy[end - 1]) != NULL; end--) {}
    for (size_t i = begin; i < end; i++) {
        digit_count += copy[i] != '.';
    }
    return (digit_count == 16 || digit_count == 17) &&
           strtod(copy, NULL) == strtod(short_text, NULL);
}

TEST(random_numbers_parse_as_their_digits_say) {
    struct random random = random_begin(__func__);
    unsigned count_by_status[4] = {0};
    for (int i = 0; i < 40000; i++) {
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        struct random_number number = make_number(&random, scale);
        enum decimal_status expected = twin_is_too_wide(number.twin)     ? DECIMAL_OUT_OF_RANGE
                                       : twin_has_fraction(&number.twin) ? DECIMAL_TOO_PRECISE
                                                                         : DECIMAL_OK;
        /* The text ends at the end of its allocation, so that reading past it is detected. */
        char *exact = memory_allocate(number.size);
        assert_non_null(exact);
        memcpy(exact, number.text, number.size);
        struct bytes text = {.at = exact, .size = number.size};
        struct decimal value;
        enum decimal_status status = decimal_parse(text, scale, &value);
        memory_free(exact);
        if (status == DECIMAL_OK && expected == DECIMAL_TOO_PRECISE &&
            is_printed_double((struct bytes){number.text, number.size}, value, scale)) {
            continue;
        }
        count_by_status[status]++;
        if (status != expected) {
            fail_msg("'%s' at scale %u: status %d", number.text, scale, (int)status);
        }
        if (status == DECIMAL_OK) {
            struct twin parsed = twin_from_decimal(value);
            assert_int_equal(twin_compare(&parsed, &number.twin), 0);
            assert_false(value.is_negative && value.magnitude == 0);
        }
    }
    assert_true(count_by_status[DECIMAL_OK] > 1000);
    assert_true(count_by_status[DECIMAL_TOO_PRECISE] > 1000);
    assert_true(count_by_status[DECIMAL_OUT_OF_RANGE] > 1000);
}

static void assert_bound(const char *text, unsigned scale, bool is_lower,
                         enum decimal_bound_kind kind, struct decimal value, bool is_empty) {
    struct decimal_bound bound;
    bool got_empty = !is_empty;
    enum decimal_status status = decimal_parse_bound(bytes_from_text(text), scale, DECIMAL_EXACT,
                                                     is_lower, &bound, &got_empty);
    if (status != DECIMAL_OK || bound.kind != kind || got_empty != is_empty) {
        fail_msg("'%s': status %d kind %d empty %d", text, (int)status, (int)bound.kind, got_empty);
    }
    if (kind == DECIMAL_BOUND_VALUE) {
        assert_decimal_equal(bound.value, value);
    }
}

static void assert_lower(const char *text, unsigned scale, struct decimal value) {
    assert_bound(text, scale, true, DECIMAL_BOUND_VALUE, value, false);
}

static void assert_upper(const char *text, unsigned scale, struct decimal value) {
    assert_bound(text, scale, false, DECIMAL_BOUND_VALUE, value, false);
}

TEST(a_lower_limit_becomes_the_first_value_inside) {
    assert_lower("5", 0, positive(5));
    assert_lower("(5", 0, positive(6));
    assert_lower("-5", 0, negative(5));
    assert_lower("(-5", 0, negative(4));
    assert_lower("(-1", 0, positive(0));
    assert_lower("0", 0, positive(0));
    assert_lower("(0", 0, positive(1));
    assert_lower("(-0", 0, positive(1));
    assert_lower("1.5", 0, positive(2));
    assert_lower("(1.5", 0, positive(2));
    assert_lower("-1.5", 0, negative(1));
    assert_lower("(-1.5", 0, negative(1));
    assert_lower("-0.5", 0, positive(0));
    assert_lower("(1.5", 1, positive(16));
    assert_lower("1e-400", 0, positive(1));
    assert_lower("-1e-400", 0, positive(0));
    assert_lower("-18446744073709551615.5", 0, negative(UINT64_MAX));
    assert_lower("(-18446744073709551615", 0, negative(UINT64_MAX - 1));
}

TEST(an_upper_limit_becomes_the_last_value_inside) {
    assert_upper("5", 0, positive(5));
    assert_upper("(5", 0, positive(4));
    assert_upper("-5", 0, negative(5));
    assert_upper("(-5", 0, negative(6));
    assert_upper("(1", 0, positive(0));
    assert_upper("0", 0, positive(0));
    assert_upper("(0", 0, negative(1));
    assert_upper("1.5", 0, positive(1));
    assert_upper("(1.5", 0, positive(1));
    assert_upper("-1.5", 0, negative(2));
    assert_upper("0.5", 0, positive(0));
    assert_upper("-0.5", 0, negative(1));
    assert_upper("1e-400", 0, positive(0));
    assert_upper("-1e-400", 0, negative(1));
    assert_upper("18446744073709551615.5", 0, positive(UINT64_MAX));
    assert_upper("(18446744073709551615", 0, positive(UINT64_MAX - 1));
}

TEST(infinite_and_too_wide_limits_are_open_or_leave_nothing_inside) {
    static const char *const high[] = {
        "inf",
        "+inf",
        "INF",
        "Infinity",
        "+infinity",
        "(inf",
        "(+inf",
        "1e30",
        "(1e30",
        "18446744073709551616",
        "1e99999999999999999999",
    };
    static const char *const low[] = {
        "-inf", "-INF", "-Infinity", "(-inf", "-1e30", "(-1e30", "-18446744073709551616",
    };
    for (size_t i = 0; i < COUNT_OF(high); i++) {
        assert_bound(high[i], 0, false, DECIMAL_BOUND_HIGHEST, positive(0), false);
        assert_bound(high[i], 0, true, DECIMAL_BOUND_HIGHEST, positive(0), true);
    }
    for (size_t i = 0; i < COUNT_OF(low); i++) {
        assert_bound(low[i], 0, true, DECIMAL_BOUND_LOWEST, positive(0), false);
        assert_bound(low[i], 0, false, DECIMAL_BOUND_LOWEST, positive(0), true);
    }
    assert_bound("(18446744073709551615", 0, true, DECIMAL_BOUND_HIGHEST, positive(0), true);
    assert_bound("18446744073709551615.5", 0, true, DECIMAL_BOUND_HIGHEST, positive(0), true);
    assert_bound("(-18446744073709551615", 0, false, DECIMAL_BOUND_LOWEST, positive(0), true);
    assert_bound("-18446744073709551615.5", 0, false, DECIMAL_BOUND_LOWEST, positive(0), true);
}

TEST(limits_that_are_no_numbers_are_refused_and_change_nothing) {
    static const struct bytes refused[] = {
        BYTES_INIT(" "),    BYTES_INIT("(  "),   BYTES_INIT(" (1"),   BYTES_INIT("1 "),
        BYTES_INIT("0x"),   BYTES_INIT("0x."),   BYTES_INIT("0x1p"),  BYTES_INIT("0x1g"),
        BYTES_INIT("0x1 "), BYTES_INIT("x1"),    BYTES_INIT("0b1"),   BYTES_INIT("+"),
        BYTES_INIT("(("),   BYTES_INIT("((1"),   BYTES_INIT("(-"),    BYTES_INIT("nan"),
        BYTES_INIT("in"),   BYTES_INIT("infi"),  BYTES_INIT("--inf"), BYTES_INIT("[1"),
        BYTES_INIT("1)"),   BYTES_INIT("inf\0"),
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct decimal_bound bound = {.kind = DECIMAL_BOUND_VALUE, .value = positive(77)};
        bool is_empty = true;
        assert_int_equal(decimal_parse_bound(refused[i], 2, DECIMAL_EXACT, true, &bound, &is_empty),
                         DECIMAL_NOT_A_NUMBER);
        assert_int_equal(bound.kind, DECIMAL_BOUND_VALUE);
        assert_decimal_equal(bound.value, positive(77));
        assert_true(is_empty);
    }
}

/* As Redis 7, which reads them by strtod. */
TEST(limits_may_be_empty_or_hexadecimal_or_have_spaces_in_front) {
    assert_lower("", 2, positive(0));
    assert_upper("", 2, positive(0));
    assert_lower("(", 2, positive(1));
    assert_upper("(", 0, negative(1));
    assert_lower(" \t\n\v\f\r1", 0, positive(1));
    assert_lower("( 1", 0, positive(2));
    assert_bound(" -inf", 0, true, DECIMAL_BOUND_LOWEST, positive(0), false);
    assert_lower("0x10", 0, positive(16));
    assert_lower("-0X1f", 2, negative(3100));
    assert_lower("(+0x10", 1, positive(161));
    assert_lower("0x.8", 1, positive(5));
    assert_lower("0x1.8p3", 0, positive(12));
    assert_lower("0x1p-2", 1, positive(3)); /* 0.25 */
    assert_upper("0x1p-2", 1, positive(2));
    assert_upper("-0x1p-2", 1, negative(3));
    assert_lower("0x1p-100000", 0, positive(1));
    assert_upper("0x0p999999999999999999999", 0, positive(0));
    assert_lower("0xffffffffffffffff", 0, positive(UINT64_MAX));
    assert_lower("0x000000000000000000ffffffffffffffff", 0, positive(UINT64_MAX));
    assert_bound("0x1p64", 0, true, DECIMAL_BOUND_HIGHEST, positive(0), true);
    assert_bound("0x123456789abcdef01", 0, true, DECIMAL_BOUND_HIGHEST, positive(0), true);
    assert_bound("0xffffffffffffffff", 1, false, DECIMAL_BOUND_HIGHEST, positive(0), false);
    assert_bound("-0x1p64", 0, true, DECIMAL_BOUND_LOWEST, positive(0), false);
}

/* Hexadecimal that a double prints is the same limit as its exact decimal. */
TEST(random_hexadecimal_limits_are_what_strtod_reads) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 40000; i++) {
        char hex[64], plain[512], shorter[DECIMAL_SHORT_MAX];
        unsigned scale = (unsigned)random_below(&random, 7);
        double value = ldexp((double)random_below(&random, UINT64_C(1) << 53),
                             (int)random_below(&random, 80) - 70);
        value = random_below(&random, 2) == 0 ? value : -value;
        snprintf(hex, sizeof hex, "%a", value);
        snprintf(plain, sizeof plain, "%.100f", value);
        if (decimal_shorten(bytes_from_text(plain), shorter) > 0) {
            continue;
        }
        for (int is_lower = 0; is_lower < 2; is_lower++) {
            struct decimal_bound a, b;
            bool is_empty_a, is_empty_b;
            assert_int_equal(decimal_parse_bound(bytes_from_text(hex), scale, DECIMAL_EXACT,
                                                 is_lower, &a, &is_empty_a),
                             DECIMAL_OK);
            assert_int_equal(decimal_parse_bound(bytes_from_text(plain), scale, DECIMAL_EXACT,
                                                 is_lower, &b, &is_empty_b),
                             DECIMAL_OK);
            assert_int_equal(a.kind, b.kind);
            assert_int_equal(is_empty_a, is_empty_b);
            if (a.kind == DECIMAL_BOUND_VALUE && decimal_compare(a.value, b.value) != 0) {
                fail_msg("%s is not %s at scale %u", hex, plain, scale);
            }
        }
    }
}

/* The next larger value, which exists below 2^64 - 1. */
static struct decimal successor(struct decimal value) {
    if (value.is_negative) {
        value.magnitude--;
        value.is_negative = value.magnitude > 0;
        return value;
    }
    value.magnitude++;
    return value;
}

static struct decimal opposite(struct decimal value) {
    value.is_negative = value.magnitude > 0 && !value.is_negative;
    return value;
}

/* Is value inside the limit, place by place? */
static bool twin_is_inside(struct decimal value, const struct twin *limit, bool is_lower,
                           bool is_exclusive) {
    struct twin twin = twin_from_decimal(value);
    int order = twin_compare(&twin, limit);
    return is_lower ? order > 0 || (order == 0 && !is_exclusive)
                    : order < 0 || (order == 0 && !is_exclusive);
}

TEST(random_limits_have_the_last_value_inside_and_the_next_one_outside) {
    struct random random = random_begin(__func__);
    unsigned value_count = 0;
    for (int i = 0; i < 40000; i++) {
        unsigned scale = (unsigned)random_below(&random, 4);
        bool is_lower = random_below(&random, 2) == 0;
        bool is_exclusive = random_below(&random, 2) == 0;
        struct random_number number = make_number(&random, scale);
        char text[sizeof(number.text) + 1] = "(";
        memcpy(text + 1, number.text, number.size);
        struct bytes bytes = {.at = text + !is_exclusive, .size = number.size + is_exclusive};
        char shorter[DECIMAL_SHORT_MAX];
        if (decimal_shorten((struct bytes){number.text, number.size}, shorter) > 0) {
            continue; /* it is the limit of its shortest decimal */
        }
        struct decimal_bound bound;
        bool is_empty;
        assert_int_equal(
            decimal_parse_bound(bytes, scale, DECIMAL_EXACT, is_lower, &bound, &is_empty),
            DECIMAL_OK);
        struct decimal widest = positive(UINT64_MAX);
        struct decimal best = is_lower ? widest : opposite(widest);
        assert_int_equal(!is_empty, twin_is_inside(best, &number.twin, is_lower, is_exclusive));
        if (bound.kind != DECIMAL_BOUND_VALUE) {
            bool all_inside = twin_is_inside(opposite(best), &number.twin, is_lower, is_exclusive);
            assert_int_equal(all_inside, !is_empty);
            continue;
        }
        value_count++;
        assert_true(twin_is_inside(bound.value, &number.twin, is_lower, is_exclusive));
        if (decimal_compare(bound.value, opposite(best)) != 0) {
            struct decimal outside =
                is_lower ? opposite(successor(opposite(bound.value))) : successor(bound.value);
            assert_false(twin_is_inside(outside, &number.twin, is_lower, is_exclusive));
        }
    }
    assert_true(value_count > 1000);
}
