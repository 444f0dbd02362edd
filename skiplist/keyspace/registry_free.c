/* Deferred freeing of removed keys and flushed databases, in steps.
 *
 * Queueing must not fail, so it allocates nothing: a removed key is linked through itself, and a
 * flushed database through a record allocated with its first key. Boards with remains are linked
 * through their member indexes; such a board may be queued or renamed meanwhile. */
#include "codec/memory.h"
#include "skiplist/keyspace/registry_parts.h"

enum {
    /* Cost of freeing a segment of a map, in members. */
    SEGMENT_WORK = MAP_SEGMENT_BUCKETS / 8 + 1,
};

/* ---- queueing ---- */

void registry_free_later(struct registry *registry, struct registry_key *key) {
    key->next_unfreed = registry->unfreed;
    registry->unfreed = key;
    registry->unfreed_count++;
}

void registry_free_database_later(struct registry *registry, struct database *database) {
    struct flushed_keys *flushed = database->flushed;
    *flushed = (struct flushed_keys){.next = registry->flushed_first,
                                     .map = database->map,
                                     .list = database->list,
                                     .expiry_entries = database->expiry.entries,
                                     .lasting_entries = database->lasting.entries,
                                     .roll_entries = database->rolls.entries,
                                     .count = database->count};
    registry->flushed_first = flushed;
    registry->unfreed_count += database->count;
    database->flushed = NULL;
}

/* ---- freeing ---- */

/* Take the last key out of the first flushed database. The pages of its heaps hold several entries
 * each, so they are freed long before the keys are. */
static struct registry_key *take_flushed_key(struct registry *registry) {
    struct flushed_keys *flushed = registry->flushed_first;
    struct registry_key *key = *registry_list_at(&flushed->list, --flushed->count);
    pages_trim(&flushed->list, flushed->count * (uint64_t)sizeof(struct registry_key *));
    pages_trim(&flushed->expiry_entries, 1);
    pages_trim(&flushed->lasting_entries, 1);
    pages_trim(&flushed->roll_entries, 1);
    if (flushed->count == 0) {
        registry->flushed_first = flushed->next;
        pages_deinit(&flushed->expiry_entries);
        pages_deinit(&flushed->lasting_entries);
        pages_deinit(&flushed->roll_entries);
        memory_free(flushed);
    }
    return key;
}

/* Select the next key to free; false: nothing is queued. */
static bool pick_partly_freed(struct registry *registry) {
    if (registry->partly_freed != NULL) {
        return true;
    }
    if (registry->unfreed != NULL) {
        registry->partly_freed = registry->unfreed;
        registry->unfreed = registry->partly_freed->next_unfreed;
    } else if (registry->flushed_first != NULL) {
        registry->partly_freed = take_flushed_key(registry);
    } else {
        return false;
    }
    return true;
}

static uint32_t less(uint32_t a, uint32_t b) {
    return a > b ? a - b : 0;
}

/* Free a segment of a flushed database's map; false: there is none. The map is freed before the
 * keys, and nothing asks it for hashes any more. */
static bool free_flushed_map(struct registry *registry) {
    return registry->flushed_first != NULL && !map_deinit_step(&registry->flushed_first->map);
}

/* Free a part of the current key; returns the work done. */
static uint32_t free_some_of_key(struct registry *registry, uint32_t work) {
    struct registry_key *key = registry->partly_freed;
    if (registry->kinds[key->kind]->free_step(registry, key, &work)) {
        memory_free(key);
        registry->partly_freed = NULL;
        registry->unfreed_count--;
        registry->freed_count++;
    }
    return work;
}

bool registry_free_step(struct registry *registry, uint32_t work_max) {
    uint32_t work_left = work_max;
    while (work_left > 0) {
        if (free_flushed_map(registry)) {
            work_left = less(work_left, SEGMENT_WORK);
        } else if (pick_partly_freed(registry)) {
            work_left = less(work_left, free_some_of_key(registry, work_left));
        } else {
            break;
        }
    }
    if (work_left > 0 && registry->remains.first != NULL) {
        (void)board_free_step(registry->remains.first, work_left);
    }
    return registry->unfreed_count > 0 || registry->remains.first != NULL;
}

uint64_t registry_unfreed_count(const struct registry *registry) {
    return registry->unfreed_count;
}

uint64_t registry_freed_count(const struct registry *registry) {
    return registry->freed_count;
}
