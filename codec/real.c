/* e^x = 2^k * e^r with x = k * ln(2) + r, |r| <= ln(2) / 2, and e^r = 1 + r + r^2/2! + ... + r^13/13!: what is left out
 * is below 2^-57. The terms are summed in pairs, and pairs of pairs, which a CPU does side by side. */
#include "codec/real.h"

#include <float.h>
#include <string.h>

#include "codec/check.h"

#ifdef __FAST_MATH__
#error "-ffast-math changes results from one compiler to the next"
#endif
_Static_assert(FLT_EVAL_METHOD == 0, "doubles are calculated as doubles");
_Static_assert(DBL_MANT_DIG == 53, "a double is IEEE 754's binary64");

#define REAL_BY_LN2 1.4426950408889634 /* 1 / ln(2) */
/* ln(2) in two parts. The first has 42 bits, so that k times it is exact. */
#define REAL_LN2_HIGH 0x1.62e42fefa38p-1
#define REAL_LN2_LOW  0x1.ef35793c7673p-45
/* Adding this leaves no bits behind the point. */
#define REAL_WHOLE       0x1.8p52
#define REAL_ROUND_LIMIT 4611686018427387904.0 /* 2^62 */

enum { EXPONENT_BIAS = 1023, EXPONENT_SHIFT = 52 };

double real_exp(double x) {
    x = x > REAL_EXP_MAX ? REAL_EXP_MAX : x < -REAL_EXP_MAX ? -REAL_EXP_MAX : x;
    double k = (x * REAL_BY_LN2 + REAL_WHOLE) - REAL_WHOLE;
    double r = (x - k * REAL_LN2_HIGH) - k * REAL_LN2_LOW;
    double r2 = r * r;
    double r4 = r2 * r2;
    double r8 = r4 * r4;
    /* (e^r - 1 - r) / r^2 */
    double low = (1.0 / 2 + r * (1.0 / 6)) + r2 * (1.0 / 24 + r * (1.0 / 120));
    double middle = (1.0 / 720 + r * (1.0 / 5040)) + r2 * (1.0 / 40320 + r * (1.0 / 362880));
    double high =
        (1.0 / 3628800 + r * (1.0 / 39916800)) + r2 * (1.0 / 479001600 + r * (1.0 / 6227020800.0));
    double power = 1.0 + (r + r2 * (low + (r4 * middle + r8 * high)));
    uint64_t bits = (uint64_t)((int64_t)k + EXPONENT_BIAS) << EXPONENT_SHIFT;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return power * scale;
}

double real_sqrt(double x) {
    return __builtin_sqrt(x);
}

int64_t real_round(double x) {
    CHECK(x > -REAL_ROUND_LIMIT);
    CHECK(x < REAL_ROUND_LIMIT);
    int64_t whole = (int64_t)x;
    double rest = x - (double)whole;
    return whole + (rest >= 0.5) - (rest <= -0.5);
}
