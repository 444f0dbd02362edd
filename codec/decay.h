/* Scores that decay: a sum of results, each of which loses half its weight in every half-life.
 *
 *     score(t) = sum of v_i * 2^((t_i - t) / half-life)        v_i came at t_i
 *              = 2^(L - (t - epoch) / half-life)               L = log2(sum of v_i * 2^((t_i - epoch) / half-life))
 *
 * L does not depend on t. It is what is kept, so nothing is rewritten as time goes by, and a larger L is a
 * larger score at every time. What is kept of it is an ordinal:
 *
 *     0          nothing yet: the score is 0
 *     n, n > 0   L = (n - 1) / 2^fraction_bits, with v_i in units (10^-SCALE, so v_i >= 1 and L >= 0)
 *
 * All arithmetic is on integers, with fixed points: no result depends on a machine's floating point.
 * Errors, which tests/codec/test_decay.c compares with decimals of 200 digits:
 *
 *     decay_log2, decay_exp2    below 2^-56 (absolute and relative)
 *     an ordinal's L            each result adds at most 0.52 / 2^fraction_bits, whatever came before it
 *     a score                   so after n results it is off by less than n * 0.37 / 2^fraction_bits of
 *                               itself, and half a unit by rounding. 36 bits, the fewest: less than a part
 *                               in a million after 180,000 results; twice as many with each further bit.
 *
 * The former errors of a sum never grow as it decays or grows: each is a factor on a part of the sum. */
#ifndef CODEC_DECAY_H
#define CODEC_DECAY_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/check.h"

enum {
    DECAY_POINT = 62, /* bits behind the point of decay_log2, decay_exp2 */
    DECAY_FRACTION_BITS_MIN = 36,
    DECAY_FRACTION_BITS_MAX = 48,
    DECAY_COUNT_MAX = 1000000, /* units of a half-life */
};

struct decay {
    int64_t half_life_us; /* 0: scores do not decay; the rest is then 0, too */
    int64_t epoch_us;
    uint32_t count; /* the half-life as it is written: 6 H */
    uint8_t unit;   /* enum layout_unit */
    uint8_t fraction_bits;
};

enum decay_status {
    DECAY_OK = 0,
    DECAY_TOO_LARGE,    /* the score would be above 2^64 - 1 units */
    DECAY_OUTSIDE_TIME, /* before the epoch, or too late for the ordinals */
};

/* 2^DECAY_POINT * log2(number / 2^DECAY_POINT), for numbers of 2^DECAY_POINT .. 2^(DECAY_POINT + 1). */
uint64_t decay_log2(uint64_t number);
/* 2^DECAY_POINT * 2^(number / 2^DECAY_POINT), for numbers below 2^DECAY_POINT: less than twice
 * 2^DECAY_POINT. */
uint64_t decay_exp2(uint64_t number);

/* Bits of an ordinal in front of the fraction, if results come until this long after the epoch. */
unsigned decay_whole_bits(uint64_t half_life_us, uint64_t span_us);
/* The last time that surely has an ordinal, with fields of this width. Saturates. */
int64_t decay_last_us(const struct decay *decay, unsigned bits);

/* The score at this time in units, rounded to the nearest; at most 2^64 - 1. It never falls as ordinals rise. */
uint64_t decay_score(const struct decay *decay, uint64_t ordinal, int64_t time_us);
/* The ordinal after a result at this time, whose sum is not too large at a later one, now. 0 units change nothing,
 * and neither do those that have lost nearly all their weight. Errors: all; *sum is then left unchanged. */
MUST_CHECK enum decay_status decay_add(const struct decay *decay, uint64_t ordinal_max,
                                       uint64_t ordinal, uint64_t units, int64_t time_us,
                                       int64_t now_us, uint64_t *sum);
/* The ordinal of the sum of two scores, at this time (for the error) and any other. Same errors. */
MUST_CHECK enum decay_status decay_join(const struct decay *decay, uint64_t ordinal_max, uint64_t a,
                                        uint64_t b, int64_t time_us, uint64_t *sum);
/* The smallest ordinal whose score at this time is as large. false: there is none. */
MUST_CHECK bool decay_find(const struct decay *decay, uint64_t ordinal_max, uint64_t units,
                           int64_t time_us, uint64_t *ordinal);

#endif
