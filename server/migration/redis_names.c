/* Open addressing, with linear probing and without marks of removed slots: what is behind a removed one moves
 * up. See redis_names.h. */
#include "server/migration/redis_names.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <string.h>

#include "codec/memory.h"

enum { CAPACITY_FIRST = 64 };

void redis_names_clear(struct redis_names *names) {
    memory_free(names->slots);
    *names = (struct redis_names){.seed = names->seed};
}

/* Never 0. */
static uint64_t redis_names_fingerprint(const struct redis_names *names, struct bytes name) {
    uint64_t hash = XXH3_64bits_withSeed(name.at != NULL ? name.at : "", name.size, names->seed);
    return hash != 0 ? hash : 1;
}

/* Where it is, or the free slot where it belongs. */
static uint64_t redis_names_place_of(const struct redis_names *names, uint64_t print) {
    uint64_t mask = names->capacity - 1;
    uint64_t at = print & mask;
    while (names->slots[at] != 0 && names->slots[at] != print) {
        at = (at + 1) & mask;
    }
    return at;
}

static bool redis_names_grow(struct redis_names *names) {
    struct redis_names larger = *names;
    larger.capacity = names->capacity == 0 ? CAPACITY_FIRST : names->capacity * 2;
    larger.slots = memory_allocate_zeroed(larger.capacity * sizeof *larger.slots);
    if (larger.slots == NULL) {
        return false;
    }
    for (uint64_t i = 0; i < names->capacity; i++) {
        if (names->slots[i] != 0) {
            larger.slots[redis_names_place_of(&larger, names->slots[i])] = names->slots[i];
        }
    }
    memory_free(names->slots);
    *names = larger;
    return true;
}

void redis_names_put(struct redis_names *names, struct bytes name) {
    uint64_t print = redis_names_fingerprint(names, name);
    if (names->count * 4 >= names->capacity * 3 && !redis_names_grow(names)) {
        names->is_lost = true;
        return;
    }
    uint64_t *slot = &names->slots[redis_names_place_of(names, print)];
    names->count += *slot == 0;
    *slot = print;
}

static void redis_names_close_gap(struct redis_names *names, uint64_t gap) {
    uint64_t mask = names->capacity - 1;
    for (uint64_t at = (gap + 1) & mask; names->slots[at] != 0; at = (at + 1) & mask) {
        uint64_t home = names->slots[at] & mask;
        /* Not if its home lies behind the gap. */
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            names->slots[gap] = names->slots[at];
            gap = at;
        }
    }
    names->slots[gap] = 0;
}

bool redis_names_remove(struct redis_names *names, struct bytes name) {
    if (names->count == 0) {
        return false;
    }
    uint64_t at = redis_names_place_of(names, redis_names_fingerprint(names, name));
    if (names->slots[at] == 0) {
        return false;
    }
    redis_names_close_gap(names, at);
    names->count--;
    return true;
}

bool redis_names_hold(const struct redis_names *names, struct bytes name) {
    return names->count > 0 &&
           names->slots[redis_names_place_of(names, redis_names_fingerprint(names, name))] != 0;
}
