/* Numbers that follow from the seed alone. Each part of the simulator has a stream of its
 * own, so that a fault that is left out does not change every other choice. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>

#include "tests/support/random.h"

/* A stream that is named by a number, of a seed. */
static inline struct random sim_random_of(uint64_t seed, uint64_t name) {
    struct random random = {seed * 0x2545f4914f6cdd1dU + name};
    random.state = random_next(&random) ^ (name << 32);
    return random;
}

/* from .. to, both included. */
static inline int64_t sim_random_between(struct random *random, int64_t from, int64_t to) {
    return from + (int64_t)random_below(random, (uint64_t)(to - from) + 1);
}

static inline bool sim_random_chance(struct random *random, unsigned percent) {
    return random_below(random, 100) < percent;
}

#endif
