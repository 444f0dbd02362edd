/* Random numbers for property tests: splitmix64 from a printed seed, so that every failure can be
 * repeated with LEADERBOARD_TEST_SEED=<seed>.
 * Source: Guy L. Steele et al., "Fast splittable pseudorandom number generators", 2014. */
#ifndef TESTS_SUPPORT_RANDOM_H
#define TESTS_SUPPORT_RANDOM_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct random {
    uint64_t state;
};

/* Seed from LEADERBOARD_TEST_SEED, else from the clock; the seed is printed. */
static inline struct random random_begin(const char *test_name) {
    const char *given = getenv("LEADERBOARD_TEST_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    printf("%s: LEADERBOARD_TEST_SEED=%" PRIu64 "\n", test_name, seed);
    return (struct random){.state = seed};
}

static inline uint64_t random_next(struct random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

/* 0 .. limit - 1; limit is at least 1. */
static inline uint64_t random_below(struct random *random, uint64_t limit) {
    return random_next(random) % limit;
}

/* A line with each $<n> replaced by a number below n: "ZADD k $50 m$12". */
static inline void random_line(struct random *random, const char *pattern, char *out, size_t size) {
    size_t used = 0;
    while (*pattern != '\0') {
        size_t plain = strcspn(pattern, "$");
        used += (size_t)snprintf(out + used, size - used, "%.*s", (int)plain, pattern);
        pattern += plain;
        if (*pattern == '$') {
            char *end;
            uint64_t limit = strtoull(pattern + 1, &end, 10);
            used +=
                (size_t)snprintf(out + used, size - used, "%" PRIu64, random_below(random, limit));
            pattern = end;
        }
    }
}

#endif
