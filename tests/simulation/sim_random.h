/* Numbers that follow from the seed alone: splitmix64. Each part of the simulator has a stream of its
 * own, so that a fault that is left out does not change every other choice. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
    uint64_t state;
};

static inline uint64_t sim_random_u64(struct sim_random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
}

/* A stream that is named by a number, of a seed. */
static inline struct sim_random sim_random_of(uint64_t seed, uint64_t name) {
    struct sim_random random = {seed * 0x2545f4914f6cdd1dU + name};
    random.state = sim_random_u64(&random) ^ (name << 32);
    return random;
}

/* 0 .. count-1; count must not be 0. */
static inline uint64_t sim_random_below(struct sim_random *random, uint64_t count) {
    return sim_random_u64(random) % count;
}

/* from .. to, both included. */
static inline int64_t sim_random_between(struct sim_random *random, int64_t from, int64_t to) {
    return from + (int64_t)sim_random_below(random, (uint64_t)(to - from) + 1);
}

static inline bool sim_random_chance(struct sim_random *random, unsigned percent) {
    return sim_random_below(random, 100) < percent;
}

#endif
