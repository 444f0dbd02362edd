/* See growth.h. */
#include "server/dispatch/growth.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"

struct growth_slot {
    uint64_t hash;  /* of the database and the key */
    uint64_t count; /* members; 0: free */
};

bool growth_begin(struct growth *growth, uint64_t seed, uint32_t key_count) {
    uint64_t slot_count = 4;
    while (slot_count < (uint64_t)key_count * 2) {
        slot_count *= 2;
    }
    *growth = (struct growth){.mask = slot_count - 1, .seed = seed};
    growth->slots = memory_allocate_zeroed(slot_count * sizeof growth->slots[0]);
    return growth->slots != NULL;
}

void growth_end(struct growth *growth) {
    memory_free(growth->slots);
}

uint64_t *growth_of(const struct growth *growth, uint32_t database, struct bytes name) {
    uint64_t hash = XXH3_64bits_withSeed(name.at, name.size, growth->seed + database);
    uint64_t at = hash & growth->mask;
    while (growth->slots[at].count != 0 && growth->slots[at].hash != hash) {
        at = (at + 1) & growth->mask;
    }
    growth->slots[at].hash = hash;
    return &growth->slots[at].count;
}
