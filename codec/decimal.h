/* Exact decimals: a sign and a 64-bit magnitude, counted in units of 10^-scale. 12.34 with
 * scale 2 is magnitude 1234. No floating point anywhere.
 *
 * Text in: optional sign, digits with an optional fraction (one digit at least in all), optional
 * exponent: "3", "+3", "3.0", ".5", "1e6", "4.6E18", "-12e-1". No spaces, no hex, no inf, no nan.
 * Text out: the shortest exact decimal, never an exponent, never "-0". */
#ifndef CODEC_DECIMAL_H
#define CODEC_DECIMAL_H

#include "codec/bytes.h"

/* Digits after the point that a field may keep (10^19 is the largest power of ten in 64 bits). */
enum { DECIMAL_SCALE_MAX = 18 };
/* Sign, 20 digits, a point and a leading zero. */
enum { DECIMAL_TEXT_MAX = 24 };

struct decimal {
    uint64_t magnitude;
    bool is_negative; /* never with magnitude 0 */
};

enum decimal_status {
    DECIMAL_OK = 0,
    DECIMAL_NOT_A_NUMBER, /* the text is not of the form above */
    DECIMAL_TOO_PRECISE,  /* a number, with non-zero digits beyond the scale */
    DECIMAL_OUT_OF_RANGE, /* a number whose magnitude does not fit 64 bits */
};

/* Parse text exactly. On any error *value is left unchanged. Time is linear in text.size,
 * whatever the exponent says. */
MUST_CHECK enum decimal_status decimal_parse(struct bytes text, unsigned scale,
                                             struct decimal *value);

/* The same at the least scale that keeps all of its digits, DECIMAL_SCALE_MAX at the most. On any
 * error *value and *scale are left unchanged. */
MUST_CHECK enum decimal_status decimal_parse_exact(struct bytes text, struct decimal *value,
                                                   unsigned *scale);

/* One end of a range of scores: "-inf", "+inf", "inf", "5", "(5" (5 itself is outside), "1.5" on
 * a board without decimals. Any number is allowed here: a limit compares, it is not stored. */
enum decimal_bound_kind { DECIMAL_BOUND_LOWEST, DECIMAL_BOUND_HIGHEST, DECIMAL_BOUND_VALUE };
struct decimal_bound {
    enum decimal_bound_kind kind;
    struct decimal value;
};

/* Parse a limit and turn it into an inclusive one at the given scale: a lower limit is rounded up
 * to the first value inside, an upper one down; limits past 64 bits become LOWEST or HIGHEST.
 * A lower limit above every 64-bit magnitude ("inf", "(inf", "1e30") or an upper one below leaves
 * nothing inside: *is_empty, and the kind is then HIGHEST or LOWEST.
 * "inf" and "infinity" may have a sign and are any case.
 * Error: DECIMAL_NOT_A_NUMBER; *bound and *is_empty are then left unchanged. */
MUST_CHECK enum decimal_status decimal_parse_bound(struct bytes text, unsigned scale, bool is_lower,
                                                   struct decimal_bound *bound, bool *is_empty);

/* Write the text to out (room for DECIMAL_TEXT_MAX), no terminator; returns its size. */
size_t decimal_print(char *out, struct decimal value, unsigned scale);

/* The same for a magnitude of any width, given by its digits (1 at least, no leading zeros but "0"
 * itself): out has room for them and scale + 3 bytes more. */
size_t decimal_print_digits(char *out, bool is_negative, const char *digits, size_t digit_count,
                            unsigned scale);

/* -1, 0 or 1 as a is below, equal to or above b (same scale). */
int decimal_compare(struct decimal a, struct decimal b);

#endif
