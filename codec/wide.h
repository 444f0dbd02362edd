/* Wide decimals: exact sums and products of decimals. A sign and a magnitude below 2^127 (any 38
 * digits fit), in units of 10^-scale as in struct decimal.
 *
 *     4.6 * 2.50    46 at scale 1 times 250 at scale 2 is 11500 at scale 3, which prints as 11.5
 *
 * Wide decimals of the same scale compare and add as integers. A result that does not fit is
 * refused, never rounded or wrapped. */
#ifndef CODEC_WIDE_H
#define CODEC_WIDE_H

#include "codec/decimal.h"

__extension__ typedef __int128 wide;

enum {
    WIDE_SCALE_MAX = 2 * DECIMAL_SCALE_MAX, /* of a product */
    WIDE_TEXT_MAX = 44,                     /* sign, 39 digits, a point and a leading zero */
};

static inline wide wide_from_decimal(struct decimal value) {
    return value.is_negative ? -(wide)value.magnitude : (wide)value.magnitude;
}

/* The functions below return false when the result does not fit, and then leave it unchanged. */

/* Both have the same scale. */
MUST_CHECK static inline bool wide_add(wide a, wide b, wide *sum) {
    wide added;
    if (__builtin_add_overflow(a, b, &added)) {
        return false;
    }
    *sum = added;
    return true;
}
/* The scale of the product is the sum of the two scales. */
MUST_CHECK bool wide_multiply(wide value, struct decimal factor, wide *product);
/* The same number in units that are 10^digits times smaller. */
MUST_CHECK bool wide_scale_up(wide value, unsigned digits, wide *scaled);

/* Convert to a decimal at another scale. Errors: DECIMAL_TOO_PRECISE, DECIMAL_OUT_OF_RANGE;
 * *decimal is then left unchanged. */
MUST_CHECK enum decimal_status wide_to_decimal(wide value, unsigned scale, unsigned to_scale,
                                               struct decimal *decimal);

/* Write the shortest exact text, as decimal_print does, to out (room for WIDE_TEXT_MAX); returns
 * its size. scale: 0..WIDE_SCALE_MAX. */
size_t wide_print(char *out, wide value, unsigned scale);

#endif
