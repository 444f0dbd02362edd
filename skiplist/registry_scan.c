/* Keys that are drawn at random, scanned a step at a time, and visited all at once.
 *
 * A scan goes by hashes, which do not change when keys move. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "skiplist/registry_parts.h"

enum {
    /* A scan step that meets only empty buckets ends all the same. As in Redis. */
    SCAN_STEPS_PER_KEY = 10,
};
/* Where a database's scan is over. */
#define SCAN_END (UINT64_C(1) << 32)

/* 0 .. limit - 1, evenly: the upper half of a product (Lemire, "Fast random integer generation in
 * an interval", 2019; the bias is below 2^-32). */
static uint32_t scale_random(uint64_t random_bits, uint32_t limit) {
    return (uint32_t)(((random_bits >> 32) * limit) >> 32);
}

struct registry_key *registry_random(struct registry *registry, uint32_t database,
                                     uint64_t random_bits, int64_t now_ms) {
    struct database *from = registry_database(registry, database);
    (void)registry_roll_due(registry, now_ms, UINT32_MAX);
    while (from->count > 0) {
        struct registry_key *key = registry_key_at(from, scale_random(random_bits, from->count));
        if (!registry_has_expired(from, key, now_ms)) {
            return key;
        }
        registry_expire(registry, key);
        random_bits = XXH3_64bits_withSeed(&random_bits, sizeof(random_bits), from->hash_seed);
    }
    return NULL;
}

struct scan {
    const struct database *database;
    uint64_t from; /* upper halves of the hashes that this step covers: from .. end - 1 */
    uint64_t end;
    uint64_t met;
    int64_t now_ms;
    registry_visit *visit;
    void *context;
};

static void scan_id(void *context, uint32_t id) {
    struct scan *scan = context;
    if (id >= scan->database->count) {
        return;
    }
    const struct registry_key *key = registry_key_at(scan->database, id);
    uint64_t prefix = registry_hash(scan->database, key) >> 32;
    if (prefix < scan->from || prefix >= scan->end) {
        return;
    }
    scan->met++;
    if (!registry_has_expired(scan->database, key, scan->now_ms)) {
        scan->visit(scan->context, key);
    }
}

uint64_t registry_scan(const struct registry *registry, uint32_t database, uint64_t cursor,
                       uint32_t count, int64_t now_ms, registry_visit *visit, void *context) {
    struct scan scan = {.database = registry_read(registry, database),
                        .end = cursor,
                        .now_ms = now_ms,
                        .visit = visit,
                        .context = context};
    uint64_t met_max = count > 0 ? count : 1;
    uint64_t steps_left = met_max * SCAN_STEPS_PER_KEY;
    while (scan.end < SCAN_END && scan.met < met_max && steps_left > 0) {
        scan.from = scan.end;
        map_scan(&scan.database->map, (uint32_t)scan.from, &scan.end, scan_id, &scan);
        steps_left--;
    }
    return scan.end < SCAN_END ? scan.end : 0;
}

void registry_each(const struct registry *registry, uint32_t database, int64_t now_ms,
                   registry_visit *visit, void *context) {
    const struct database *from = registry_read(registry, database);
    for (uint32_t i = 0; i < from->count; i++) {
        const struct registry_key *key = registry_key_at(from, i);
        if (!registry_has_expired(from, key, now_ms)) {
            visit(context, key);
        }
    }
}
