/* What the benchmarks share: a clock, random numbers, members, the sizes that are asked for. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/random.h"

enum {
    MICRO_DIGITS = 12,      /* of a number, as redis-benchmark writes it */
    MICRO_MEMBER_SIZE = 17, /* of user:000000123456 */
};

/* Nanoseconds since some beginning. */
static inline double micro_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Of this thread: others that run on a loaded machine take nothing from a step. */
static inline double micro_cpu_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline void micro_write_digits(char *out, uint64_t value) {
    for (int i = MICRO_DIGITS - 1; i >= 0; i--) {
        out[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

/* out has room for MICRO_MEMBER_SIZE + 1 bytes; terminated. */
static inline void micro_write_member(char *out, uint64_t number) {
    memcpy(out, "user:000000000000", MICRO_MEMBER_SIZE + 1);
    micro_write_digits(out + MICRO_MEMBER_SIZE - MICRO_DIGITS, number);
}

/* Run for every size of the command line, or for the usual ones. Returns main's result. */
static inline int micro_each_size(int argc, char **argv, void (*run)(uint32_t size)) {
    static const uint32_t usual[] = {1000, 10000, 100000, 1000000, 10000000};
    int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
    for (int i = 0; i < count; i++) {
        uint32_t size = argc > 1 ? (uint32_t)strtoul(argv[i + 1], NULL, 10) : usual[i];
        if (size == 0) {
            fprintf(stderr, "not a size: %s\n", argv[i + 1]);
            return 2;
        }
        run(size);
    }
    return 0;
}

#endif
