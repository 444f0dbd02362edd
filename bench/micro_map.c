/* Micro benchmark of the member index alone: nanoseconds per operation, and bytes per entry.
 *
 *     build/bench/micro_map [entries ...]        default: 1000 10000 100000 1000000 10000000
 *
 * Entries are (random hash, id), PER_ID of them to an id, as a board has some tens of members in a
 * block. The best of ROUNDS rounds is printed: what disturbs a round only makes it slower. */
#include <inttypes.h>

#include "bench/micro.h"
#include "codec/memory.h"
#include "skiplist/map.h"

enum {
    PER_ID = 40,
    GROUP = 16,
    ROUNDS = 5,
    OPERATIONS = 1 << 18,
};

static uint64_t *hashes; /* of entry i, whose id is i / PER_ID */
static uint32_t entry_count;
static struct random drawn = {.state = 7};
static volatile uint64_t sink; /* what was read, so that reading is not optimised away */

static uint32_t hashes_of(const void *owner, uint32_t id, uint64_t *out) {
    (void)owner;
    uint32_t first = id * PER_ID;
    uint32_t count = 0;
    while (count < PER_ID && first + count < entry_count) {
        out[count] = hashes[first + count];
        count++;
    }
    return count;
}

static void put(struct map *map, uint32_t entry) {
    if (!map_reserve(map, 1, entry / PER_ID + 1)) {
        fprintf(stderr, "micro_map: no memory\n");
        exit(1);
    }
    entry_count = entry + 1;
    map_put(map, hashes[entry], entry / PER_ID);
}

static void find(const struct map *map, uint32_t entry) {
    struct map_find found;
    uint32_t id = UINT32_MAX;
    map_find(map, hashes[entry], &found);
    while (map_find_next(&found, &id) && id != entry / PER_ID) {}
    sink += id;
}

/* As a block that is divided: the entry leads to another id, and back. */
static void replace(struct map *map, uint32_t entry) {
    uint32_t id = entry / PER_ID;
    uint32_t other = id == 0 ? 0 : id - 1;
    map_replace(map, hashes[entry], id, other);
    map_replace(map, hashes[entry], other, id);
}

static double time_find(const struct map *map, uint32_t group) {
    static uint32_t entries[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++) {
        entries[i] = (uint32_t)(random_next(&drawn) % entry_count);
    }
    double begin = micro_now_ns();
    for (uint32_t i = 0; i + group <= OPERATIONS; i += group) {
        for (uint32_t j = 0; j < group && group > 1; j++) {
            map_prefetch(map, hashes[entries[i + j]]);
        }
        for (uint32_t j = 0; j < group; j++) {
            find(map, entries[i + j]);
        }
    }
    return (micro_now_ns() - begin) / OPERATIONS;
}

static double time_replace(struct map *map) {
    double begin = micro_now_ns();
    for (int i = 0; i < OPERATIONS; i++) {
        replace(map, (uint32_t)(random_next(&drawn) % entry_count));
    }
    return (micro_now_ns() - begin) / OPERATIONS / 2;
}

static double least(double a, double b) {
    return a < b ? a : b;
}

static void run(uint32_t entries) {
    struct map map;
    map_init(&map, hashes_of, NULL);
    entry_count = 0;
    double begin = micro_now_ns();
    for (uint32_t i = 0; i < entries; i++) {
        put(&map, i);
    }
    double put_ns = (micro_now_ns() - begin) / entries;
    double single = 1e18;
    double groups = 1e18;
    double replaced = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        single = least(single, time_find(&map, 1));
        groups = least(groups, time_find(&map, GROUP));
        replaced = least(replaced, time_replace(&map));
    }
    printf("%10" PRIu32 " entries: put %6.1f ns, find %6.1f ns, in groups of %d %6.1f ns, "
           "replace %6.1f ns, %5.2f B an entry\n",
           entries, put_ns, single, GROUP, groups, replaced,
           (double)map_memory_size(&map) / entries);
    map_deinit(&map);
}

static void run_hashes(uint32_t entries) {
    hashes = calloc(entries, sizeof *hashes);
    if (hashes == NULL) {
        exit(1);
    }
    for (uint32_t i = 0; i < entries; i++) {
        hashes[i] = random_next(&drawn);
    }
    run(entries);
    free(hashes);
}

int main(int argc, char **argv) {
    return micro_each_size(argc, argv, run_hashes);
}
