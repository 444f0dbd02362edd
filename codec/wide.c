/* Magnitudes are multiplied and divided as unsigned numbers: signed 128-bit overflow checks would
 * need a runtime library that not every compiler provides. */
#include "codec/wide.h"

__extension__ typedef unsigned __int128 magnitude;

enum { POWER_DIGITS_MAX = 19 }; /* 10^19 is the largest power of ten in 64 bits */

static magnitude wide_magnitude_of(wide value) {
    return value < 0 ? -(magnitude)value : (magnitude)value;
}

static wide wide_with_sign(magnitude value, bool is_negative) {
    return is_negative ? -(wide)value : (wide)value;
}

static uint64_t wide_power_of_ten(unsigned digits) {
    uint64_t power = 1;
    for (; digits > 0; digits--) {
        power *= 10;
    }
    return power;
}

static bool wide_multiply_magnitude(magnitude value, uint64_t factor, magnitude *product) {
    magnitude high = (value >> 64) * factor;
    magnitude low = (magnitude)(uint64_t)value * factor;
    /* value is below 2^127, so high cannot overflow. */
    magnitude carried = high + (low >> 64);
    if (carried >> 63 != 0) {
        return false;
    }
    *product = carried << 64 | (uint64_t)low;
    return true;
}

bool wide_multiply(wide value, struct decimal factor, wide *product) {
    magnitude result;
    if (!wide_multiply_magnitude(wide_magnitude_of(value), factor.magnitude, &result)) {
        return false;
    }
    *product = wide_with_sign(result, (value < 0) != factor.is_negative);
    return true;
}

bool wide_scale_up(wide value, unsigned digits, wide *scaled) {
    magnitude result = wide_magnitude_of(value);
    while (digits > 0) {
        unsigned step = digits < POWER_DIGITS_MAX ? digits : POWER_DIGITS_MAX;
        if (!wide_multiply_magnitude(result, wide_power_of_ten(step), &result)) {
            return false;
        }
        digits -= step;
    }
    *scaled = wide_with_sign(result, value < 0);
    return true;
}

enum decimal_status wide_to_decimal(wide value, unsigned scale, unsigned to_scale,
                                    struct decimal *decimal) {
    bool is_exact = true;
    if (to_scale > scale && !wide_scale_up(value, to_scale - scale, &value)) {
        return DECIMAL_OUT_OF_RANGE;
    }
    magnitude result = wide_magnitude_of(value);
    for (unsigned digits = to_scale < scale ? scale - to_scale : 0; digits > 0;) {
        unsigned step = digits < POWER_DIGITS_MAX ? digits : POWER_DIGITS_MAX;
        uint64_t power = wide_power_of_ten(step);
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

size_t wide_print(char *out, wide value, unsigned scale) {
    CHECK(scale <= WIDE_SCALE_MAX);
    magnitude left = wide_magnitude_of(value);
    uint64_t power = wide_power_of_ten(POWER_DIGITS_MAX);
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
