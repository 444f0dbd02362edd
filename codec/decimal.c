/* The text is parsed once, from left to right, and is not converted to a double:
 *
 *     -0012.3400e+1   scale 2
 *        ^  ^
 *        |  point
 *        first significant digit: 2 whole digits + exponent 1 + scale 2 = 5 digits are kept
 *
 * The kept digits form the magnitude; the digits to the right of them must be zero. An exponent is
 * only added to a digit count, so a large one costs nothing. Only a text that does not fit is asked
 * whether a double was printed (decimal_shorten), or which one is the nearest (decimal_parse_double). */
#include "codec/decimal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* More digits than any text has, yet small enough that sums of a few do not overflow. */
#define EXPONENT_LIMIT ((int64_t)1 << 60)

__extension__ typedef unsigned __int128 wide_magnitude;

/* 2^64 - 1 has 20 digits. */
enum { MAGNITUDE_DIGITS_MAX = 20 };
/* Decimals of up to 15 digits denote different doubles; 17 digits tell all doubles apart. */
enum { DOUBLE_DIGITS_MIN = 15, DOUBLE_DIGITS_MAX = 17, DOUBLE_POWER_MAX = 300 };
/* Halfway between two doubles above 10^-18, the smallest unit, is a number of no more digits. */
enum { HALFWAY_DIGITS_MAX = 120, SCIENTIFIC_MAX = HALFWAY_DIGITS_MAX + 16 };

/* A number truncated at the scale. */
struct cut_number {
    uint64_t magnitude; /* rounded towards zero */
    bool is_negative;
    bool is_inexact;  /* non-zero digits were cut off */
    bool is_too_wide; /* the magnitude does not fit, and is not set */
};

/* The parts of a number's text. */
struct number_text {
    struct bytes mantissa; /* digits with at most one point */
    size_t point;          /* index in mantissa; mantissa.size if there is none */
    int64_t exponent;
    bool is_negative;
};

static bool decimal_is_digit(char byte) {
    return (unsigned char)byte - (unsigned)'0' <= 9;
}

/* Read "[+-]digits" to the end of text; saturates. */
static bool decimal_parse_exponent(struct bytes text, int64_t *exponent) {
    size_t i = 0;
    bool is_negative = false;
    if (i < text.size && (text.at[i] == '+' || text.at[i] == '-')) {
        is_negative = text.at[i] == '-';
        i++;
    }
    if (i == text.size) {
        return false;
    }
    int64_t sum = 0;
    for (; i < text.size; i++) {
        if (!decimal_is_digit(text.at[i])) {
            return false;
        }
        sum = sum * 10 + (text.at[i] - '0');
        if (sum > EXPONENT_LIMIT / 10) {
            sum = EXPONENT_LIMIT / 10;
        }
    }
    *exponent = is_negative ? -sum : sum;
    return true;
}

static bool decimal_split_number(struct bytes text, struct number_text *number) {
    if (text.size == 0) {
        return false;
    }
    number->is_negative = text.at[0] == '-';
    size_t begin = number->is_negative || text.at[0] == '+' ? 1 : 0;
    size_t i = begin;
    size_t digit_count = 0;
    bool has_point = false;
    for (; i < text.size; i++) {
        if (decimal_is_digit(text.at[i])) {
            digit_count++;
        } else if (text.at[i] == '.' && !has_point) {
            has_point = true;
            number->point = i - begin;
        } else {
            break;
        }
    }
    number->mantissa = (struct bytes){.at = text.at + begin, .size = i - begin};
    if (!has_point) {
        number->point = number->mantissa.size;
    }
    if (digit_count == 0) {
        return false;
    }
    number->exponent = 0;
    if (i == text.size) {
        return true;
    }
    if (text.at[i] != 'e' && text.at[i] != 'E') {
        return false;
    }
    return decimal_parse_exponent((struct bytes){.at = text.at + i + 1, .size = text.size - i - 1},
                                  &number->exponent);
}

static bool decimal_append_digit(uint64_t *magnitude, unsigned digit) {
    return !__builtin_mul_overflow(*magnitude, 10, magnitude) &&
           !__builtin_add_overflow(*magnitude, digit, magnitude);
}

static struct cut_number decimal_cut_at_scale(const struct number_text *number, unsigned scale) {
    struct cut_number cut = {.is_negative = number->is_negative};
    struct bytes mantissa = number->mantissa;
    size_t i = 0;
    while (i < mantissa.size && (mantissa.at[i] == '0' || mantissa.at[i] == '.')) {
        i++;
    }
    if (i == mantissa.size) {
        return cut;
    }
    /* To the right of the point, skipped zeros reduce the number of kept digits. */
    int64_t whole_count = (int64_t)number->point - (int64_t)i + (i > number->point ? 1 : 0);
    int64_t kept_count = whole_count + number->exponent + (int64_t)scale;
    if (kept_count > MAGNITUDE_DIGITS_MAX) {
        cut.is_too_wide = true;
        return cut;
    }
    for (; i < mantissa.size; i++) {
        if (mantissa.at[i] == '.') {
            continue;
        }
        unsigned digit = (unsigned)(mantissa.at[i] - '0');
        if (kept_count <= 0) {
            cut.is_inexact |= digit != 0;
        } else if (!decimal_append_digit(&cut.magnitude, digit)) {
            cut.is_too_wide = true;
            return cut;
        }
        kept_count--;
    }
    for (; kept_count > 0; kept_count--) {
        if (!decimal_append_digit(&cut.magnitude, 0)) {
            cut.is_too_wide = true;
            return cut;
        }
    }
    return cut;
}

/* ---- doubles that were printed ---- */

/* A number as "d.ddde+xx", with digits_max digits as printf's %.*e prints them; *is_cut: it has more, and one
 * more here stands for them. out: SCIENTIFIC_MAX. false: it is 0, or its power of ten is larger than that of any
 * score. */
static bool decimal_print_scientific(const struct number_text *number, int digits_max, char *out,
                                     bool *is_cut) {
    char digits[HALFWAY_DIGITS_MAX + 2];
    int count = 0;
    int64_t power = (int64_t)number->point + number->exponent; /* of the first digit, plus one */
    *is_cut = false;
    for (size_t i = 0; i < number->mantissa.size; i++) {
        char digit = number->mantissa.at[i];
        if (digit == '.' || (count == 0 && digit == '0')) {
            power -= digit == '0' && count == 0;
        } else if (count < digits_max) {
            digits[count++] = digit;
        } else {
            *is_cut |= digit != '0';
        }
    }
    if (count == 0 || power - 1 > DOUBLE_POWER_MAX || power - 1 < -DOUBLE_POWER_MAX) {
        return false;
    }
    memset(digits + count, '0', (size_t)(digits_max - count));
    count = digits_max;
    if (*is_cut) {
        digits[count++] = '1';
    }
    snprintf(out, SCIENTIFIC_MAX, "%c.%.*se%+03d", digits[0], count - 1, digits + 1,
             (int)(power - 1));
    return true;
}

/* The shortest text, of at least DOUBLE_DIGITS_MIN digits, that denotes a double above 0. Any text of 15 digits
 * that does is the only one of so many; of 16 digits the nearest. digits_max: 0 is returned if it has more. */
static size_t decimal_print_double(double value, bool is_negative, int digits_max, char *out) {
    for (int count = DOUBLE_DIGITS_MIN; count <= digits_max; count++) {
        int size =
            snprintf(out, DECIMAL_SHORT_MAX, "%s%.*e", is_negative ? "-" : "", count - 1, value);
        double shorter = strtod(out + is_negative, NULL);
        if (shorter == value) {
            return (size_t)size;
        }
    }
    return 0;
}

/* Only what a program prints of a double is one. */
static size_t decimal_shorten_digits(const struct number_text *number, char *out) {
    char text[SCIENTIFIC_MAX];
    char printed[DECIMAL_SHORT_MAX];
    bool is_cut;
    if (!decimal_print_scientific(number, DOUBLE_DIGITS_MAX, text, &is_cut) || is_cut) {
        return 0;
    }
    double value = strtod(text, NULL);
    snprintf(printed, sizeof printed, "%.*e", DOUBLE_DIGITS_MAX - 1, value);
    if (strcmp(printed, text) != 0) {
        return 0; /* no program prints this double so */
    }
    int digit_count = DOUBLE_DIGITS_MAX; /* the point is between the first and the second */
    while (digit_count > 1 && text[digit_count] == '0') {
        digit_count--;
    }
    return decimal_print_double(value, number->is_negative, digit_count - 1, out);
}

size_t decimal_shorten(struct bytes text, char *out) {
    struct number_text number;
    return decimal_split_number(text, &number) ? decimal_shorten_digits(&number, out) : 0;
}

/* The number at the scale; if it does not fit, the shortest one that denotes the same double. */
static struct cut_number decimal_cut_number(const struct number_text *number, unsigned scale,
                                            enum decimal_kind kind) {
    char text[DECIMAL_SHORT_MAX];
    struct number_text shorter;
    struct cut_number cut = decimal_cut_at_scale(number, scale);
    if (cut.is_inexact && !cut.is_too_wide) {
        size_t size = 0;
        char digits[SCIENTIFIC_MAX];
        bool is_cut;
        if (kind != DECIMAL_DOUBLES) {
            size = decimal_shorten_digits(number, text);
        } else if (decimal_print_scientific(number, HALFWAY_DIGITS_MAX, digits, &is_cut)) {
            /* Every number is one, of the double nearest to it. */
            size = decimal_print_double(strtod(digits, NULL), number->is_negative,
                                        DOUBLE_DIGITS_MAX, text);
        }
        if (size > 0 && decimal_split_number((struct bytes){.at = text, .size = size}, &shorter)) {
            struct cut_number other = decimal_cut_at_scale(&shorter, scale);
            cut = other.is_inexact || other.is_too_wide ? cut : other;
        }
    }
    return cut;
}

/* ---- decimals of doubles ---- */

enum {
    MANTISSA_BITS = 53,
    SETTLED_STEP_MAX = 10000, /* doubles are at most 2^64 / 2^52 units apart */
};

static int decimal_bit_count(uint64_t number) {
    return 64 - __builtin_clzll(number);
}

/* A double: mantissa * 2^-shift, in units of the scale mantissa * power * 2^-shift. */
struct nearest_double {
    uint64_t mantissa; /* of MANTISSA_BITS */
    int shift;
};

/* The one nearest to magnitude / power, of which neither is 0. */
static struct nearest_double decimal_find_double(uint64_t magnitude, uint64_t power) {
    int shift = MANTISSA_BITS - decimal_bit_count(magnitude) + decimal_bit_count(power);
    for (;; shift--) {
        wide_magnitude dividend = (wide_magnitude)magnitude << (shift > 0 ? shift : 0);
        wide_magnitude divisor = (wide_magnitude)power << (shift < 0 ? -shift : 0);
        wide_magnitude quotient = dividend / divisor;
        if (quotient >> MANTISSA_BITS != 0) {
            continue; /* once at most */
        }
        wide_magnitude twice = (dividend - quotient * divisor) << 1;
        uint64_t mantissa = (uint64_t)quotient;
        mantissa += twice > divisor || (twice == divisor && (mantissa & 1) != 0);
        if (mantissa >> MANTISSA_BITS != 0) {
            return (struct nearest_double){.mantissa = mantissa >> 1, .shift = shift - 1};
        }
        return (struct nearest_double){.mantissa = mantissa, .shift = shift};
    }
}

static uint64_t decimal_power_of_ten(unsigned digits) {
    uint64_t power = 1;
    for (; digits > 0; digits--) {
        power *= 10;
    }
    return power;
}

/* In quarters of the distance between doubles: what lies between its neighbours' halves is read as the double;
 * the number of most zeros is its shortest, and of these the nearest one. */
uint64_t decimal_settle_long(unsigned scale, uint64_t magnitude) {
    CHECK(scale <= DECIMAL_SCALE_MAX && magnitude > 0);
    uint64_t power = decimal_power_of_ten(scale);
    struct nearest_double nearest = decimal_find_double(magnitude, power);
    bool is_odd = (nearest.mantissa & 1) != 0;
    bool is_closer_below = nearest.mantissa == UINT64_C(1) << (MANTISSA_BITS - 1);
    int shift = nearest.shift + 2;
    wide_magnitude unit = (wide_magnitude)power << (shift < 0 ? -shift : 0);
    wide_magnitude center = unit * nearest.mantissa * 4;
    shift = shift < 0 ? 0 : shift;
    wide_magnitude ones = ((wide_magnitude)1 << shift) - 1;
    /* Of a number halfway between two doubles the even one is the nearest. */
    wide_magnitude limit = (center + unit * 2 - (is_odd ? 1 : 0)) >> shift;
    uint64_t highest = limit > UINT64_MAX ? UINT64_MAX : (uint64_t)limit;
    uint64_t lowest =
        (uint64_t)((center - unit * (is_closer_below ? 1 : 2) + (is_odd ? 1 : 0) + ones) >> shift);
    uint64_t step = 1;
    while (step < SETTLED_STEP_MAX && highest - highest % (step * 10) >= lowest) {
        step *= 10;
    }
    uint64_t below = highest - highest % step;
    while (below - lowest >= step && ((wide_magnitude)below << shift) > center) {
        below -= step;
    }
    /* Of two that are as near, programs print the one whose last digit is even. */
    wide_magnitude up = ((wide_magnitude)below << shift) + ((wide_magnitude)step << shift) - center;
    wide_magnitude down = center - ((wide_magnitude)below << shift);
    bool is_above = up < down || (up == down && (below / step) % 2 != 0);
    return is_above && highest - below >= step ? below + step : below;
}

/* ---- values ---- */

/* Fast path for nearly every number clients send: a few plain digits. false: not such a number. */
static bool decimal_parse_short_integer(struct bytes text, unsigned scale, struct decimal *value) {
    size_t sign_size = text.size > 0 && text.at[0] == '-' ? 1 : 0;
    /* Any 19 digits fit in 64 bits, and the scale appends digits. */
    if (text.size == sign_size || text.size - sign_size + scale > 19) {
        return false;
    }
    uint64_t sum = 0;
    for (size_t i = sign_size; i < text.size; i++) {
        unsigned digit = (unsigned char)text.at[i] - (unsigned)'0';
        if (digit > 9) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    for (; scale > 0; scale--) {
        sum *= 10;
    }
    value->magnitude = sum;
    value->is_negative = sign_size > 0 && sum > 0;
    return true;
}

static enum decimal_status decimal_parse_kind(struct bytes text, unsigned scale,
                                              enum decimal_kind kind, struct decimal *value) {
    CHECK(scale <= DECIMAL_SCALE_MAX);
    if (decimal_parse_short_integer(text, scale, value)) {
        return DECIMAL_OK;
    }
    struct number_text number;
    if (!decimal_split_number(text, &number)) {
        return DECIMAL_NOT_A_NUMBER;
    }
    struct cut_number cut = decimal_cut_number(&number, scale, kind);
    if (cut.is_too_wide) {
        return DECIMAL_OUT_OF_RANGE;
    }
    if (cut.is_inexact) {
        return DECIMAL_TOO_PRECISE;
    }
    value->magnitude = cut.magnitude;
    value->is_negative = cut.is_negative && cut.magnitude > 0;
    return DECIMAL_OK;
}

enum decimal_status decimal_parse(struct bytes text, unsigned scale, struct decimal *value) {
    return decimal_parse_kind(text, scale, DECIMAL_EXACT, value);
}

enum decimal_status decimal_parse_double(struct bytes text, unsigned scale, struct decimal *value) {
    return decimal_parse_kind(text, scale, DECIMAL_DOUBLES, value);
}

/* Number of decimals needed; at least 0. */
static int64_t decimal_needed_scale(const struct number_text *number) {
    struct bytes mantissa = number->mantissa;
    while (mantissa.size > 0 &&
           (mantissa.at[mantissa.size - 1] == '0' || mantissa.at[mantissa.size - 1] == '.')) {
        mantissa.size--;
    }
    if (mantissa.size == 0) {
        return 0;
    }
    /* Negative without a fraction: trailing zeros were cut off before the point. */
    int64_t behind_point = (int64_t)mantissa.size - (int64_t)number->point;
    behind_point -= mantissa.size > number->point ? 1 : 0;
    return behind_point > number->exponent ? behind_point - number->exponent : 0;
}

enum decimal_status decimal_parse_exact(struct bytes text, struct decimal *value, unsigned *scale) {
    struct number_text number;
    if (!decimal_split_number(text, &number)) {
        return DECIMAL_NOT_A_NUMBER;
    }
    int64_t needed = decimal_needed_scale(&number);
    if (needed > DECIMAL_SCALE_MAX) {
        return DECIMAL_TOO_PRECISE;
    }
    enum decimal_status status = decimal_parse(text, (unsigned)needed, value);
    if (status == DECIMAL_OK) {
        *scale = (unsigned)needed;
    }
    return status;
}

/* ---- limits ---- */

static bool decimal_parse_infinity(struct bytes text, bool *is_negative) {
    if (text.size == 0) {
        return false;
    }
    *is_negative = text.at[0] == '-';
    size_t sign_size = *is_negative || text.at[0] == '+' ? 1 : 0;
    struct bytes word = {.at = text.at + sign_size, .size = text.size - sign_size};
    if (word.size == 3 && memcmp(word.at, "inf", 3) == 0) { /* as nearly all write it */
        return true;
    }
    return word.size > 0 && bytes_lower(word.at[0]) == 'i' &&
           (bytes_is(word, "inf") || bytes_is(word, "infinity"));
}

bool decimal_is_infinity(struct bytes text) {
    bool is_negative;
    return decimal_parse_infinity(text, &is_negative);
}

/* ---- hexadecimal limits: mantissa * 2^power ---- */

/* The digits up to the first that is none: *i. false: there is none. */
static bool decimal_read_hex_digits(struct bytes text, size_t *i, uint64_t *mantissa,
                                    int64_t *power) {
    bool has_point = false, has_digit = false;
    for (*mantissa = 0, *power = 0; *i < text.size; ++*i) {
        int digit = bytes_hex_value(text.at[*i]);
        if (text.at[*i] == '.' && !has_point) {
            has_point = true;
            continue;
        }
        if (digit < 0) {
            break;
        }
        has_digit = true;
        bool is_kept = *mantissa >> 60 == 0;
        *mantissa = is_kept ? *mantissa << 4 | (unsigned)digit : *mantissa;
        *power += is_kept ? (has_point ? -4 : 0) : (has_point ? 0 : 4);
    }
    return has_digit;
}

static bool decimal_parse_hex(struct bytes text, bool is_negative, unsigned scale,
                              enum decimal_kind kind, struct cut_number *cut) {
    size_t i = 2;
    uint64_t mantissa;
    int64_t power, exponent = 0;
    if (text.size < 3 || text.at[0] != '0' || bytes_lower(text.at[1]) != 'x' ||
        !decimal_read_hex_digits(text, &i, &mantissa, &power)) {
        return false;
    }
    if (i < text.size &&
        (bytes_lower(text.at[i]) != 'p' ||
         !decimal_parse_exponent((struct bytes){.at = text.at + i + 1, .size = text.size - i - 1},
                                 &exponent))) {
        return false;
    }
    *cut = (struct cut_number){.is_negative = is_negative};
    if (kind == DECIMAL_DOUBLES && mantissa != 0 && power + exponent > -DOUBLE_POWER_MAX &&
        power + exponent < DOUBLE_POWER_MAX) {
        char digits[DECIMAL_SHORT_MAX];
        struct number_text number;
        snprintf(digits, sizeof digits, "0x%" PRIx64 "p%d", mantissa, (int)(power + exponent));
        double denoted = strtod(digits, NULL);
        size_t size = decimal_print_double(denoted, is_negative, DOUBLE_DIGITS_MAX, digits);
        CHECK(decimal_split_number((struct bytes){.at = digits, .size = size}, &number));
        *cut = decimal_cut_at_scale(&number, scale);
        return true;
    }
    wide_magnitude value = mantissa;
    for (; scale > 0; scale--) {
        value *= 10; /* 64 bits and 18 digits fit */
    }
    power += exponent;
    if (value == 0 || power <= -128) {
        cut->is_inexact = value != 0;
    } else if (power < 0) {
        cut->is_inexact = (value & (((wide_magnitude)1 << -power) - 1)) != 0;
        value >>= -power;
    } else if (power >= 64 || value > UINT64_MAX >> power) {
        cut->is_too_wide = true;
    } else {
        value <<= power;
    }
    cut->is_too_wide |= power > -128 && value > UINT64_MAX;
    cut->magnitude = power > -128 && !cut->is_too_wide ? (uint64_t)value : 0;
    return true;
}

/* A limit's number, as strtod reads it. false: it is none. */
static bool decimal_parse_limit(struct bytes text, unsigned scale, enum decimal_kind kind,
                                struct cut_number *cut) {
    struct number_text number;
    if (text.size == 0) {
        *cut = (struct cut_number){.magnitude = 0};
        return true;
    }
    if (decimal_split_number(text, &number)) {
        *cut = decimal_cut_number(&number, scale, kind);
        return true;
    }
    bool is_negative = text.at[0] == '-';
    size_t sign_size = is_negative || text.at[0] == '+' ? 1 : 0;
    text = (struct bytes){.at = text.at + sign_size, .size = text.size - sign_size};
    return decimal_parse_hex(text, is_negative, scale, kind, cut);
}

/* The smallest value within a lower limit. */
static struct decimal_bound decimal_round_up(struct cut_number cut, bool is_exclusive) {
    if (cut.is_too_wide) {
        return (struct decimal_bound){.kind = cut.is_negative ? DECIMAL_BOUND_LOWEST
                                                              : DECIMAL_BOUND_HIGHEST};
    }
    struct decimal_bound bound = {.kind = DECIMAL_BOUND_VALUE};
    bool is_zero = cut.magnitude == 0 && !cut.is_inexact;
    if (cut.is_negative && !is_zero) {
        /* Truncation has already rounded a negative number up. */
        bool steps = is_exclusive && !cut.is_inexact;
        bound.value.magnitude = cut.magnitude - (steps ? 1 : 0);
        bound.value.is_negative = bound.value.magnitude > 0;
        return bound;
    }
    bool steps = is_exclusive || cut.is_inexact;
    if (steps && cut.magnitude == UINT64_MAX) {
        bound.kind = DECIMAL_BOUND_HIGHEST;
        return bound;
    }
    bound.value.magnitude = cut.magnitude + (steps ? 1 : 0);
    return bound;
}

enum decimal_status decimal_parse_bound(struct bytes text, unsigned scale, enum decimal_kind kind,
                                        bool is_lower, struct decimal_bound *bound,
                                        bool *is_empty) {
    CHECK(scale <= DECIMAL_SCALE_MAX);
    bool is_exclusive = text.size > 0 && text.at[0] == '(';
    if (is_exclusive) {
        text.at++;
        text.size--;
    }
    /* As isspace in the C locale. All of it: only an empty text is 0, spaces alone are no
     * number. */
    struct bytes rest = text;
    while (rest.size > 0 && (rest.at[0] == ' ' || (rest.at[0] >= '\t' && rest.at[0] <= '\r'))) {
        rest.at++;
        rest.size--;
    }
    text = rest.size > 0 ? rest : text;
    bool is_negative;
    if (decimal_parse_infinity(text, &is_negative)) {
        bound->kind = is_negative ? DECIMAL_BOUND_LOWEST : DECIMAL_BOUND_HIGHEST;
        *is_empty = is_negative != is_lower;
        return DECIMAL_OK;
    }
    if (!is_exclusive && kind == DECIMAL_EXACT &&
        decimal_parse_short_integer(text, scale, &bound->value)) {
        bound->kind = DECIMAL_BOUND_VALUE;
        *is_empty = false;
        return DECIMAL_OK;
    }
    struct cut_number cut;
    if (!decimal_parse_limit(text, scale, kind, &cut)) {
        return DECIMAL_NOT_A_NUMBER;
    }
    if (kind == DECIMAL_DOUBLES && !cut.is_too_wide && !cut.is_inexact) {
        cut.magnitude = decimal_settle(scale, cut.magnitude);
    }
    /* A limit from above is rounded as its negative from below. */
    cut.is_negative = cut.is_negative == is_lower;
    *bound = decimal_round_up(cut, is_exclusive);
    *is_empty = bound->kind == DECIMAL_BOUND_HIGHEST;
    if (!is_lower && bound->kind == DECIMAL_BOUND_VALUE) {
        bound->value.is_negative = bound->value.magnitude > 0 && !bound->value.is_negative;
    } else if (!is_lower) {
        bound->kind =
            bound->kind == DECIMAL_BOUND_LOWEST ? DECIMAL_BOUND_HIGHEST : DECIMAL_BOUND_LOWEST;
    }
    return DECIMAL_OK;
}

/* decimal_print of a magnitude of any width, given as digits (at least 1, no leading zeros except "0" itself). out must
 * have room for digit_count + scale + 3 bytes. */
static size_t decimal_print_digits(char *out, bool is_negative, const char *digits,
                                   size_t digit_count, unsigned scale) {
    char *at = out;
    if (is_negative) {
        *at++ = '-';
    }
    size_t fraction_count = digits[0] != '0' ? scale : 0;
    while (fraction_count > 0 && digits[digit_count - 1] == '0') {
        digit_count--;
        fraction_count--;
    }
    /* digits[0 .. digit_count-1] includes fraction_count decimals. */
    size_t whole_count = digit_count > fraction_count ? digit_count - fraction_count : 0;
    if (whole_count == 0) {
        *at++ = '0';
    }
    memcpy(at, digits, whole_count);
    at += whole_count;
    if (fraction_count > 0) {
        size_t zero_count = fraction_count - (digit_count - whole_count);
        *at++ = '.';
        memset(at, '0', zero_count);
        at += zero_count;
        memcpy(at, digits + whole_count, digit_count - whole_count);
        at += digit_count - whole_count;
    }
    return (size_t)(at - out);
}

size_t decimal_print(char *out, struct decimal value, unsigned scale) {
    if (scale == 0) {
        *out = '-';
        char *at = value.is_negative ? out + 1 : out;
        return (size_t)(at - out) + bytes_print_u64(at, value.magnitude);
    }
    char digits[BYTES_INTEGER_TEXT_MAX];
    size_t digit_count = bytes_print_u64(digits, value.magnitude);
    return decimal_print_digits(out, value.is_negative, digits, digit_count, scale);
}

int decimal_compare(struct decimal a, struct decimal b) {
    if (a.is_negative != b.is_negative) {
        return a.is_negative ? -1 : 1;
    }
    if (a.magnitude == b.magnitude) {
        return 0;
    }
    return (a.magnitude < b.magnitude) != a.is_negative ? -1 : 1;
}

/* ---- wide decimals ----
 *
 * Magnitudes are multiplied and divided as unsigned numbers: signed 128-bit overflow checks would
 * need a runtime library that not every compiler provides. */

enum { POWER_DIGITS_MAX = 19 }; /* 10^19 is the largest power of ten in 64 bits */

static wide_magnitude decimal_wide_magnitude(wide value) {
    return value < 0 ? -(wide_magnitude)value : (wide_magnitude)value;
}

static wide decimal_wide_signed(wide_magnitude value, bool is_negative) {
    return is_negative ? -(wide)value : (wide)value;
}

static bool decimal_wide_multiply_magnitude(wide_magnitude value, uint64_t factor,
                                            wide_magnitude *product) {
    wide_magnitude high = (value >> 64) * factor;
    wide_magnitude low = (wide_magnitude)(uint64_t)value * factor;
    /* value is below 2^127, so high cannot overflow. */
    wide_magnitude carried = high + (low >> 64);
    if (carried >> 63 != 0) {
        return false;
    }
    *product = carried << 64 | (uint64_t)low;
    return true;
}

bool decimal_wide_multiply(wide value, struct decimal factor, wide *product) {
    wide_magnitude result;
    if (!decimal_wide_multiply_magnitude(decimal_wide_magnitude(value), factor.magnitude,
                                         &result)) {
        return false;
    }
    *product = decimal_wide_signed(result, (value < 0) != factor.is_negative);
    return true;
}

bool decimal_wide_scale_up(wide value, unsigned digits, wide *scaled) {
    wide_magnitude result = decimal_wide_magnitude(value);
    while (digits > 0) {
        unsigned step = digits < POWER_DIGITS_MAX ? digits : POWER_DIGITS_MAX;
        if (!decimal_wide_multiply_magnitude(result, decimal_power_of_ten(step), &result)) {
            return false;
        }
        digits -= step;
    }
    *scaled = decimal_wide_signed(result, value < 0);
    return true;
}

enum decimal_status decimal_from_wide(wide value, unsigned scale, unsigned to_scale,
                                      struct decimal *decimal) {
    bool is_exact = true;
    if (to_scale > scale && !decimal_wide_scale_up(value, to_scale - scale, &value)) {
        return DECIMAL_OUT_OF_RANGE;
    }
    wide_magnitude result = decimal_wide_magnitude(value);
    for (unsigned digits = to_scale < scale ? scale - to_scale : 0; digits > 0;) {
        unsigned step = digits < POWER_DIGITS_MAX ? digits : POWER_DIGITS_MAX;
        uint64_t power = decimal_power_of_ten(step);
        is_exact = is_exact && result % power == 0;
        result /= power;
        digits -= step;
    }
    if (result >> 64 != 0) {
        return DECIMAL_OUT_OF_RANGE;
    }
    if (!is_exact) {
        return DECIMAL_TOO_PRECISE;
    }
    decimal->magnitude = (uint64_t)result;
    decimal->is_negative = value < 0;
    return DECIMAL_OK;
}

size_t decimal_wide_print(char *out, wide value, unsigned scale) {
    CHECK(scale <= DECIMAL_WIDE_SCALE_MAX);
    wide_magnitude left = decimal_wide_magnitude(value);
    uint64_t power = decimal_power_of_ten(POWER_DIGITS_MAX);
    char digits[2 * BYTES_INTEGER_TEXT_MAX];
    /* Below 2^127, so the head has at most 20 digits. */
    size_t digit_count = bytes_print_u64(digits, (uint64_t)(left >= power ? left / power : left));
    if (left >= power) {
        /* Nineteen more digits, with leading zeros. */
        uint64_t tail = (uint64_t)(left % power);
        for (unsigned i = POWER_DIGITS_MAX; i > 0; i--) {
            digits[digit_count + i - 1] = (char)('0' + tail % 10);
            tail /= 10;
        }
        digit_count += POWER_DIGITS_MAX;
    }
    return decimal_print_digits(out, value < 0, digits, digit_count, scale);
}
