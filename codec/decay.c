/* Logarithms and powers of 2 by the same table: a number of 1 up to 2 is a product of some of 1 + 2^-1,
 * 1 + 2^-2, ..., each at most once, and its logarithm is the sum of theirs (Briggs, 1624; J.-M. Muller,
 * Elementary Functions, chapter 8). Multiplying by 1 + 2^-k is a shift and an addition. Behind the 31st
 * factor the rest is below 2^-31, where log2(1 + r) is r / ln(2) and 2^f is 1 + f * ln(2), but for squares
 * below 2^-62.
 *
 * Errors: each of 31 products is cut off at 2^-62, each of 31 entries of the table, too, and both of the last
 * step's products and its square: below 2^-56 in all. */
#include "codec/decay.h"

#include "codec/decimal.h"

#define DECAY_ONE (UINT64_C(1) << DECAY_POINT)
/* 2^62 * ln(2) and 2^62 / ln(2), rounded down. */
#define DECAY_LN2        UINT64_C(3196577161300663914)
#define DECAY_ONE_BY_LN2 UINT64_C(6653256548922161245)

enum { DECAY_STEPS = 31, UNITS_BITS = 64 };

__extension__ typedef unsigned __int128 decay_product;

/* 2^62 * log2(1 + 2^-k), rounded down, by tests/codec/decay_cases.py. */
static const uint64_t decay_logs[DECAY_STEPS + 1] = {
    0, /* k begins at 1 */
    UINT64_C(2697663385880076775),
    UINT64_C(1484631294131014398),
    UINT64_C(783640753332765647),
    UINT64_C(403351162126124447),
    UINT64_C(204731739545776358),
    UINT64_C(103153330606121624),
    UINT64_C(51776576860734091),
    UINT64_C(25938654877364701),
    UINT64_C(12981968116705993),
    UINT64_C(6494150392542292),
    UINT64_C(3247867552377825),
    UINT64_C(1624131961909234),
    UINT64_C(812115539479148),
    UINT64_C(406070160882997),
    UINT64_C(203038178416421),
    UINT64_C(101519863725576),
    UINT64_C(50760125495084),
    UINT64_C(25380111155985),
    UINT64_C(12690067680149),
    UINT64_C(6345036865619),
    UINT64_C(3172519189196),
    UINT64_C(1586259783695),
    UINT64_C(793129939121),
    UINT64_C(396564981379),
    UINT64_C(198282493644),
    UINT64_C(99141247560),
    UINT64_C(49570623965),
    UINT64_C(24785312028),
    UINT64_C(12392656025),
    UINT64_C(6196328015),
    UINT64_C(3098164008),
};

/* All in units of 2^-62. */
static uint64_t decay_multiply(uint64_t a, uint64_t b) {
    return (uint64_t)((decay_product)a * b >> DECAY_POINT);
}

/* All bits, or none: half of the steps are taken at random, and a branch would be guessed wrong. */
static inline uint64_t decay_all_if(bool is_so) {
    return 0 - (uint64_t)is_so;
}

uint64_t decay_log2(uint64_t number) {
    uint64_t product = DECAY_ONE;
    uint64_t log = 0;
    CHECK(number >= DECAY_ONE && number <= 2 * DECAY_ONE);
    if (number == 2 * DECAY_ONE) {
        return DECAY_ONE;
    }
    for (unsigned k = 1; k <= DECAY_STEPS; k++) {
        uint64_t next = product + (product >> k);
        uint64_t taken = decay_all_if(next <= number);
        product = (product & ~taken) | (next & taken);
        log += decay_logs[k] & taken;
    }
    uint64_t rest = ((number - product) << DECAY_STEPS) / (product >> DECAY_STEPS);
    return log + decay_multiply(rest, DECAY_ONE_BY_LN2);
}

uint64_t decay_exp2(uint64_t number) {
    uint64_t product = DECAY_ONE;
    CHECK(number < DECAY_ONE);
    for (unsigned k = 1; k <= DECAY_STEPS; k++) {
        uint64_t taken = decay_all_if(number >= decay_logs[k]);
        product += product >> k & taken;
        number -= decay_logs[k] & taken;
    }
    uint64_t power = product + decay_multiply(product, decay_multiply(number, DECAY_LN2));
    return power < 2 * DECAY_ONE ? power : 2 * DECAY_ONE - 1;
}

/* ---- scores, in units of the field ---- */

/* mantissa / 2^62 * 2^exponent; a mantissa is 1 up to 2. Exact to 2^-56 of itself. */
struct score {
    uint64_t mantissa;
    int64_t exponent;
};

/* Half-lives since the epoch, in units of 2^-62. */
static wide decay_elapsed(const struct decay *decay, int64_t time_us) {
    return ((wide)time_us - decay->epoch_us) * (wide)DECAY_ONE / decay->half_life_us;
}

/* units is not 0. */
static struct score decay_score_of_units(uint64_t units) {
    unsigned exponent = UNITS_BITS - 1 - (unsigned)__builtin_clzll(units);
    return (struct score){
        .mantissa = exponent <= DECAY_POINT ? units << (DECAY_POINT - exponent) : units >> 1,
        .exponent = exponent,
    };
}

/* ordinal is not 0. */
static struct score decay_score_of_ordinal(const struct decay *decay, uint64_t ordinal,
                                           wide elapsed) {
    wide log = ((wide)(ordinal - 1) << (DECAY_POINT - decay->fraction_bits)) - elapsed;
    return (struct score){
        .mantissa = decay_exp2((uint64_t)log & (DECAY_ONE - 1)),
        .exponent = (int64_t)(log >> DECAY_POINT),
    };
}

static struct score decay_sum(struct score a, struct score b) {
    struct score larger = a.exponent >= b.exponent ? a : b;
    struct score other = a.exponent >= b.exponent ? b : a;
    uint64_t distance = (uint64_t)(larger.exponent - other.exponent);
    larger.mantissa += distance <= DECAY_POINT ? other.mantissa >> distance : 0;
    if (larger.mantissa >= 2 * DECAY_ONE) {
        larger.mantissa >>= 1;
        larger.exponent++;
    }
    return larger;
}

/* In units of 2^-62. */
static wide decay_log_of(struct score score) {
    return (wide)score.exponent * (wide)DECAY_ONE + decay_log2(score.mantissa);
}

/* A score at a time, which may be too large then, but not at a later one. */
static enum decay_status decay_pack(const struct decay *decay, uint64_t ordinal_max,
                                    struct score score, wide elapsed, wide elapsed_now,
                                    uint64_t *ordinal) {
    unsigned dropped_bits = DECAY_POINT - decay->fraction_bits;
    wide log = decay_log_of(score) + elapsed;
    wide rounded = (log + ((wide)1 << (dropped_bits - 1))) >> dropped_bits;
    if (score.exponent >= UNITS_BITS && log - elapsed_now >= UNITS_BITS * (wide)DECAY_ONE) {
        return DECAY_TOO_LARGE;
    }
    if (log < 0 || rounded >= (wide)ordinal_max) {
        return DECAY_OUTSIDE_TIME;
    }
    *ordinal = (uint64_t)rounded + 1;
    return DECAY_OK;
}

/* ---- widths ---- */

unsigned decay_whole_bits(uint64_t half_life_us, uint64_t span_us) {
    uint64_t half_lives = span_us / half_life_us + 1;
    unsigned bits = 0;
    /* Of a sum below 2^64 units. */
    for (decay_product logs = (decay_product)half_lives + UNITS_BITS; logs > 0; logs >>= 1) {
        bits++;
    }
    return bits;
}

int64_t decay_last_us(const struct decay *decay, unsigned bits) {
    wide half_lives = ((wide)1 << (bits - decay->fraction_bits)) - 1 - UNITS_BITS;
    wide last_us = half_lives * decay->half_life_us + decay->epoch_us;
    return last_us > INT64_MAX ? INT64_MAX : (int64_t)last_us;
}

/* ---- reading and adding ---- */

uint64_t decay_score(const struct decay *decay, uint64_t ordinal, int64_t time_us) {
    if (ordinal == 0) {
        return 0;
    }
    struct score score = decay_score_of_ordinal(decay, ordinal, decay_elapsed(decay, time_us));
    if (score.exponent >= UNITS_BITS) {
        return UINT64_MAX;
    }
    if (score.exponent < -1) {
        return 0;
    }
    unsigned left = (unsigned)(score.exponent + 1); /* 2 * units: for rounding */
    decay_product doubled = left > DECAY_POINT
                                ? (decay_product)score.mantissa << (left - DECAY_POINT)
                                : score.mantissa >> (DECAY_POINT - left);
    decay_product units = (doubled + 1) >> 1;
    return units > UINT64_MAX ? UINT64_MAX : (uint64_t)units;
}

enum decay_status decay_add(const struct decay *decay, uint64_t ordinal_max, uint64_t ordinal,
                            uint64_t units, int64_t time_us, int64_t now_us, uint64_t *sum) {
    if (time_us < decay->epoch_us) {
        return DECAY_OUTSIDE_TIME;
    }
    if (units == 0) {
        *sum = ordinal;
        return DECAY_OK;
    }
    wide elapsed = decay_elapsed(decay, time_us);
    struct score score = decay_score_of_units(units);
    if (ordinal > 0) {
        score = decay_sum(score, decay_score_of_ordinal(decay, ordinal, elapsed));
    }
    return decay_pack(decay, ordinal_max, score, elapsed,
                      now_us > time_us ? decay_elapsed(decay, now_us) : elapsed, sum);
}

enum decay_status decay_join(const struct decay *decay, uint64_t ordinal_max, uint64_t a,
                             uint64_t b, int64_t time_us, uint64_t *sum) {
    if (a == 0 || b == 0) {
        *sum = a > b ? a : b;
        return DECAY_OK;
    }
    wide elapsed = decay_elapsed(decay, time_us);
    struct score score = decay_sum(decay_score_of_ordinal(decay, a, elapsed),
                                   decay_score_of_ordinal(decay, b, elapsed));
    return decay_pack(decay, ordinal_max, score, elapsed, elapsed, sum);
}

bool decay_find(const struct decay *decay, uint64_t ordinal_max, uint64_t units, int64_t time_us,
                uint64_t *ordinal) {
    if (units == 0) {
        *ordinal = 0;
        return true;
    }
    /* Half a unit less is rounded up to it: (2 * units - 1) / 2. */
    bool has_room = units <= UINT64_MAX / 2;
    struct score score = decay_score_of_units(has_room ? 2 * units - 1 : units);
    score.exponent -= has_room;
    wide log = decay_log_of(score) + decay_elapsed(decay, time_us);
    wide near = log >> (DECAY_POINT - decay->fraction_bits);
    uint64_t found = near < 0 ? 1 : near >= (wide)ordinal_max ? ordinal_max : (uint64_t)near + 1;
    /* The logarithm is as exact as an ordinal or better: these are few steps. */
    while (found < ordinal_max && decay_score(decay, found, time_us) < units) {
        found++;
    }
    while (found > 1 && decay_score(decay, found - 1, time_us) >= units) {
        found--;
    }
    *ordinal = found;
    return decay_score(decay, found, time_us) >= units;
}
