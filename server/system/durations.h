/* How often something happened, and how long it took: a count, a sum, and buckets of powers of two
 * microseconds. Adding one costs a few instructions. */
#ifndef SERVER_DURATIONS_H
#define SERVER_DURATIONS_H

#include <stdint.h>

enum { DURATIONS_BUCKETS = 32 }; /* bucket i: up to 2^i microseconds, the last one: any */

struct durations {
    uint64_t count;
    uint64_t total_ns;
    uint64_t buckets[DURATIONS_BUCKETS];
};

static inline void durations_add(struct durations *durations, uint64_t elapsed_ns) {
    uint64_t us = elapsed_ns / 1000;
    unsigned bucket = us <= 1 ? 0 : 64U - (unsigned)__builtin_clzll(us - 1);
    durations->count++;
    durations->total_ns += elapsed_ns;
    durations->buckets[bucket < DURATIONS_BUCKETS ? bucket : DURATIONS_BUCKETS - 1]++;
}

#endif
