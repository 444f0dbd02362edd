/* Real numbers whose bits are the same on every machine: exp as one fixed polynomial, and what IEEE 754 rounds to the
 * nearest by itself, which is + - * / and the square root. libm's exp differs between versions, and between CPUs with
 * and without a fused multiply-add. The Makefile's FLAGS (-ffp-contract=off) keep compilers from fusing.
 *
 * Whoever keeps a result keeps an integer: real_round. */
#ifndef CODEC_REAL_H
#define CODEC_REAL_H

#include <stdint.h>

#define REAL_EXP_MAX 700.0

/* e^x, off by less than one unit of its last place. x beyond -REAL_EXP_MAX .. REAL_EXP_MAX counts as these. */
double real_exp(double x);

/* x >= 0. */
double real_sqrt(double x);

/* The nearest integer, halves away from 0. |x| is below 2^62. */
int64_t real_round(double x);

#endif
