/* Exact decimals: a sign and a 64-bit magnitude in units of 10^-scale. 12.34 with scale 2 is
 * magnitude 1234. Numbers are never calculated in floating point.
 *
 * Input: optional sign, digits with an optional fraction (at least one digit in all), optional
 * exponent: "3", "+3", "3.0", ".5", "1e6", "4.6E18", "-12e-1". No spaces, hex, inf or nan. Output:
 * the shortest exact decimal, never an exponent, never "-0".
 *
 * Some programs print doubles with 17 digits: 0.1 as 0.10000000000000001 (PHP's clients, printf's
 * %.17g). Where the scale has no room for such a text, it is read as the shortest decimal of the same
 * double, 0.1, if the scale keeps that.
 *
 * Where one double is to be one number (DECIMAL_DOUBLES), every text is read as the double nearest to it, and
 * this as its shortest decimal: 1318516439.8571310, 1318516439.857131 and 1318516439.85713101 are one. Up to
 * 2^52 units of the scale, and so up to 15 digits, all decimals are different doubles, and nothing changes. */
#ifndef CODEC_DECIMAL_H
#define CODEC_DECIMAL_H

#include "codec/bytes.h"

/* Most decimals a field may keep (10^19 is the largest power of ten in 64 bits). */
enum { DECIMAL_SCALE_MAX = 18 };
/* Sign, 20 digits, a point and a leading zero. */
enum { DECIMAL_TEXT_MAX = 24 };

struct decimal {
    uint64_t magnitude;
    bool is_negative; /* never with magnitude 0 */
};

static inline struct decimal decimal_from_i64(int64_t value) {
    return (struct decimal){.magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
                            .is_negative = value < 0};
}

enum decimal_status {
    DECIMAL_OK = 0,
    DECIMAL_NOT_A_NUMBER, /* the text is not of the form above */
    DECIMAL_TOO_PRECISE,  /* a number with non-zero digits beyond the scale */
    DECIMAL_OUT_OF_RANGE, /* a number whose magnitude does not fit in 64 bits */
};

/* Parse text exactly. On error *value is left unchanged. Time is linear in text.size, whatever the
 * exponent. */
MUST_CHECK enum decimal_status decimal_parse(struct bytes text, unsigned scale,
                                             struct decimal *value);

/* The same of the double nearest to the number: see above. *value may still have digits that its double has
 * not: decimal_settle. */
MUST_CHECK enum decimal_status decimal_parse_double(struct bytes text, unsigned scale,
                                                    struct decimal *value);
/* The magnitude of the shortest decimal of the double nearest to this one, if 64 bits have it. Nothing is
 * calculated in floating point. */
uint64_t decimal_settle_long(unsigned scale, uint64_t magnitude);
static inline uint64_t decimal_settle(unsigned scale, uint64_t magnitude) {
    /* Multiples of ten units are further apart than doubles are, up to ten times 2^52 of them. */
    bool is_settled =
        magnitude <= UINT64_C(1) << 52 || (magnitude < UINT64_C(10) << 52 && magnitude % 10 == 0);
    return is_settled ? magnitude : decimal_settle_long(scale, magnitude);
}

/* If text is what %.17g prints of a double that a shorter decimal denotes, too, write this to out (room for
 * DECIMAL_SHORT_MAX); returns its size. 0: it is not. */
enum { DECIMAL_SHORT_MAX = 32 };
size_t decimal_shorten(struct bytes text, char *out);

/* The same at the smallest scale that keeps all digits, at most DECIMAL_SCALE_MAX. On error *value
 * and *scale are left unchanged. */
MUST_CHECK enum decimal_status decimal_parse_exact(struct bytes text, struct decimal *value,
                                                   unsigned *scale);

/* "inf" or "infinity" with an optional sign, case-insensitive. */
MUST_CHECK bool decimal_is_infinity(struct bytes text);

/* One end of a score range: "-inf", "+inf", "inf", "5", "(5" (5 is excluded), "1.5" on a board
 * without decimals. Any number is allowed, because a limit is only compared, never stored. As Redis,
 * which uses strtod, this takes spaces in front of the number, hexadecimal ("0x1.8p3"; its first 16
 * significant digits count), and nothing at all, "" or "(", as 0. */
enum decimal_bound_kind { DECIMAL_BOUND_LOWEST, DECIMAL_BOUND_HIGHEST, DECIMAL_BOUND_VALUE };
struct decimal_bound {
    enum decimal_bound_kind kind;
    struct decimal value;
};

/* Does a number keep its digits, or is it the one of its double? */
enum decimal_kind { DECIMAL_EXACT, DECIMAL_DOUBLES };

/* Parse a limit and convert it to an inclusive one at the given scale. A lower limit is rounded up
 * to the first value inside the range, an upper limit down. Limits beyond 64 bits become LOWEST or
 * HIGHEST. If a lower limit is above every 64-bit magnitude ("inf", "(inf", "1e30"), or an upper
 * limit below, the range is empty: *is_empty is set and the kind is HIGHEST or LOWEST respectively.
 * Error: DECIMAL_NOT_A_NUMBER; *bound
 * and *is_empty are then left unchanged. */
MUST_CHECK enum decimal_status decimal_parse_bound(struct bytes text, unsigned scale,
                                                   enum decimal_kind kind, bool is_lower,
                                                   struct decimal_bound *bound, bool *is_empty);

/* Write the text to out (room for DECIMAL_TEXT_MAX), without a terminator; returns its size. */
size_t decimal_print(char *out, struct decimal value, unsigned scale);

/* -1, 0 or 1 as a is below, equal to or above b (same scale). */
int decimal_compare(struct decimal a, struct decimal b);

/* ---- wide decimals ----
 *
 * Exact sums and products of decimals: a sign and a magnitude below 2^127 (any 38 digits fit), in units of 10^-scale
 * as in struct decimal.
 *
 *     4.6 * 2.50    46 at scale 1 times 250 at scale 2 is 11500 at scale 3, which prints as 11.5
 *
 * Wide decimals of the same scale compare and add as integers. A result that does not fit is
 * refused, never rounded or wrapped. */

__extension__ typedef __int128 wide;

enum {
    DECIMAL_WIDE_SCALE_MAX = 2 * DECIMAL_SCALE_MAX, /* of a product */
    DECIMAL_WIDE_TEXT_MAX = 44, /* sign, 39 digits, a point and a leading zero */
};

static inline wide decimal_to_wide(struct decimal value) {
    return value.is_negative ? -(wide)value.magnitude : (wide)value.magnitude;
}

/* The functions below return false when the result does not fit, and then leave it unchanged. */

/* Both have the same scale. */
MUST_CHECK static inline bool decimal_wide_add(wide a, wide b, wide *sum) {
    wide added;
    if (__builtin_add_overflow(a, b, &added)) {
        return false;
    }
    *sum = added;
    return true;
}
/* The scale of the product is the sum of the two scales. */
MUST_CHECK bool decimal_wide_multiply(wide value, struct decimal factor, wide *product);
/* The same number in units that are 10^digits times smaller. */
MUST_CHECK bool decimal_wide_scale_up(wide value, unsigned digits, wide *scaled);

/* Convert to a decimal at another scale. Errors: DECIMAL_TOO_PRECISE, DECIMAL_OUT_OF_RANGE;
 * *decimal is then left unchanged. */
MUST_CHECK enum decimal_status decimal_from_wide(wide value, unsigned scale, unsigned to_scale,
                                                 struct decimal *decimal);

/* Write the shortest exact text, as decimal_print does, to out (room for DECIMAL_WIDE_TEXT_MAX); returns
 * its size. scale: 0..DECIMAL_WIDE_SCALE_MAX. */
size_t decimal_wide_print(char *out, wide value, unsigned scale);

#endif
