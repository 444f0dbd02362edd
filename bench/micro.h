/* What the micro benchmarks share: a clock, random numbers, and the best of some rounds. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Nanoseconds since some beginning. */
static inline double micro_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* splitmix64, as in tests/support/random.h, from a fixed seed: every run draws the same. */
static inline uint64_t micro_random(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

#endif
