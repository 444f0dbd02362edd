/* Random operations on a registry, of every kind that changes it, as commands do them; and the
 * question whether two registries are equal. To be included behind cmocka.h. */
#ifndef TESTS_SUPPORT_REGISTRY_WORKLOAD_H
#define TESTS_SUPPORT_REGISTRY_WORKLOAD_H

#include <stdio.h>

#include "skiplist/keyspace/registry.h"
#include "tests/support/random.h"

enum { WORKLOAD_NAME_MAX = 64 };

struct workload {
    struct registry *registry;
    struct random random;
    int64_t now_ms;
    uint32_t members_max;    /* put at once */
    uint32_t database_count; /* REGISTRY_DATABASES, unless the test says less */
    bool has_ids;            /* also of results (ONCE) */
    uint64_t failures;       /* for want of memory */
    uint32_t archive_count;  /* made by hand: no two have the same name */
    /* A key that a third of the commands are about; a size of 0: there is none. */
    uint32_t favourite_database;
    size_t favourite_size;
    char favourite[WORKLOAD_NAME_MAX];
};

/* A registry whose new boards behave as the first letters of their names say: LATEST layouts,
 * layouts without a time, periods of all kinds, caps. Some keys hold hashes. */
void workload_begin(struct workload *workload, const char *test_name, uint32_t members_max);
void workload_end(struct workload *workload);
/* One command's worth. Whoever makes allocations fail (memory_fail_at) does it before: the workload
 * takes that back. */
void workload_step(struct workload *workload);
/* The options of new boards whose names begin with this letter: p: any other, l: the latest first, t: no time,
 * c: capped, d, w and m: a period of a day, a week (its archives live for two) or a month (no archives). */
const struct board_options *workload_options(char letter);
/* A registry that would make the same boards. */
struct registry *workload_create_registry(uint64_t hash_seed);

/* Do both have the same keys, boards, order, options and expiries, and hold together? Fails the test
 * if not. */
void workload_assert_equal(const struct registry *a, const struct registry *b);

/* A number that says all of what workload_assert_equal compares: registries with equal ones are
 * taken for equal. */
uint64_t workload_digest(const struct registry *registry);
/* The same without the keys whose names begin so, and without ids of results, which have no names; NULL: of all. */
uint64_t workload_digest_without(const struct registry *registry, const char *prefix);
/* A line for each key, with its digest: for a test that fails, to say which ones differ. */
void workload_print(const struct registry *registry, FILE *out);

#endif
