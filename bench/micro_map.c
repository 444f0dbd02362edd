/* Micro benchmark of the map from hashes to ids: nanoseconds per operation, one at a time and in
 * groups of 16 whose buckets are fetched first, and bytes per entry.
 *
 *     build/bench/micro_map [entries ...]        default: 1000 10000 100000 1000000 10000000
 *
 * Entry i has the hash mix(i) and the id i / ENTRIES_PER_ID, as the members of a board's leaves
 * have. The best of ROUNDS rounds is printed: what disturbs a round only makes it slower. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "codec/memory.h"
#include "skiplist/map.h"

enum {
    ENTRIES_PER_ID = 24,
    GROUP = 16,
    ROUNDS = 5,
    OPERATIONS = 1 << 18,
};

/* What the map asks back for while it grows. */
struct owner {
    uint32_t entry_count;
};

static volatile uint64_t sink; /* what was read, so that reading is not optimised away */
static uint32_t *chosen;       /* entries that one round works on */

/* splitmix64's finisher. */
static uint64_t mix(uint64_t z) {
    z = (z + 1) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static double now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint32_t owner_hashes(const void *context, uint32_t id, uint64_t *hashes) {
    const struct owner *owner = context;
    uint32_t count = 0;
    for (uint32_t i = id * ENTRIES_PER_ID; i < owner->entry_count && count < ENTRIES_PER_ID; i++)
        hashes[count++] = mix(i);
    return count;
}

static void put(struct map *map, struct owner *owner) {
    uint32_t id = owner->entry_count / ENTRIES_PER_ID;
    if (!map_reserve(map, 1, id + 1)) {
        fprintf(stderr, "micro_map: no memory\n");
        exit(1);
    }
    map_put(map, mix(owner->entry_count), id);
    owner->entry_count++;
}

/* ---- operations on one entry ---- */

typedef void run_one(struct map *map, uint32_t entry);

static void run_find(struct map *map, uint32_t entry) {
    struct map_find find;
    uint32_t id = UINT32_MAX;
    map_find(map, mix(entry), &find);
    while (map_find_next(&find, &id) && id != entry / ENTRIES_PER_ID)
        continue;
    sink += id;
}

static void run_miss(struct map *map, uint32_t entry) {
    struct map_find find;
    uint32_t id;
    map_find(map, mix(entry), &find);
    while (map_find_next(&find, &id))
        sink += id;
}

/* Take an entry out and put it back, as a move between leaves does at the worst. */
static void run_remove_put(struct map *map, uint32_t entry) {
    map_remove(map, mix(entry), entry / ENTRIES_PER_ID);
    map_put(map, mix(entry), entry / ENTRIES_PER_ID);
}

static void run_replace(struct map *map, uint32_t entry) {
    uint32_t id = entry / ENTRIES_PER_ID;
    uint32_t other = id == 0 ? 1 : id - 1;
    map_replace(map, mix(entry), id, other);
    map_replace(map, mix(entry), other, id);
}

static double time_all(struct map *map, run_one *run, bool is_grouped) {
    double begin = now_ns();
    for (int i = 0; i < OPERATIONS; i += GROUP) {
        for (int j = i; j < i + GROUP && is_grouped; j++)
            map_prefetch(map, mix(chosen[j]));
        for (int j = i; j < i + GROUP; j++)
            run(map, chosen[j]);
    }
    return (now_ns() - begin) / OPERATIONS;
}

/* On entries of first .. first + entries - 1. */
static void measure(struct map *map, uint32_t first, uint32_t entries, const char *name,
                    run_one *run) {
    double best[2] = {1e18, 1e18};
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (int is_grouped = 0; is_grouped < 2; is_grouped++) {
            for (uint32_t i = 0; i < OPERATIONS; i++)
                chosen[i] = first + (uint32_t)(mix(round * OPERATIONS + i + 7) % entries);
            double taken = time_all(map, run, is_grouped != 0);
            best[is_grouped] = taken < best[is_grouped] ? taken : best[is_grouped];
        }
    }
    printf("  %-16s %6.1f ns   in groups of %d %6.1f ns\n", name, best[0], GROUP, best[1]);
}

static void run_size(uint32_t entries) {
    struct owner owner = {.entry_count = 0};
    struct map map;
    map_init(&map, owner_hashes, &owner);
    double begin = now_ns();
    while (owner.entry_count < entries)
        put(&map, &owner);
    double taken = (now_ns() - begin) / entries;
    while (map_is_moving(&map))
        if (!map_reserve(&map, 0, entries / ENTRIES_PER_ID + 1))
            break;
    printf("%" PRIu32 " entries\n", entries);
    printf("  %-16s %6.1f ns   growing included; %.2f B an entry\n", "put", taken,
           (double)map_memory_size(&map) / entries);
    measure(&map, 0, entries, "find", run_find);
    measure(&map, entries, entries, "find, not there", run_miss);
    measure(&map, 0, entries, "remove and put", run_remove_put);
    measure(&map, 0, entries, "replace twice", run_replace);
    map_deinit(&map);
}

int main(int argc, char **argv) {
    static const uint32_t usual[] = {1000, 10000, 100000, 1000000, 10000000};
    chosen = calloc(OPERATIONS, sizeof *chosen);
    if (chosen == NULL)
        return 1;
    int count = argc > 1 ? argc - 1 : (int)(sizeof usual / sizeof *usual);
    for (int i = 0; i < count; i++) {
        uint32_t entries = argc > 1 ? (uint32_t)strtoul(argv[i + 1], NULL, 10) : usual[i];
        if (entries < 2 * ENTRIES_PER_ID)
            return 1;
        run_size(entries);
    }
    free(chosen);
    return 0;
}
