/* Deferred freeing of removed keys and flushed databases, in steps.
 *
 * What a command has looked up, another look-up of the same command may remove, by an expiry or the end of a period.
 * Therefore nothing is freed within a command, neither keys nor options; and the value of a key that is gone, with all its
 * members or fields, not before registry_free_step, which runs between commands. A key that was found stays: the time of a
 * command is one, so nothing falls due for it a second time. Members of a board that stays are another matter: a name or a
 * cursor is good until the board is written to.
 *
 * Queueing must not fail, so it allocates nothing: a removed key is linked through itself, and a
 * flushed database through a record allocated with its first key. Boards with remains are linked
 * through their member indexes; such a board may be queued or renamed meanwhile. */

#include "codec/memory.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_private.h"

/* Under the address sanitizer a key that waits to be freed is poisoned at the end of the command that has removed it,
 * but for its value and its link: who holds it over commands is noticed. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISONS
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(POISONS)
#include <sanitizer/asan_interface.h>

static void registry_free_poison(const struct registry *registry) {
    struct registry_key *key = registry->unfreed;
    while (key != NULL && !__asan_address_is_poisoned(key->name_at)) {
        ASAN_POISON_MEMORY_REGION(key->name_at,
                                  key->kind == REGISTRY_HASH || key->has_notes
                                      ? key->name_size
                                      : memory_size(key) - offsetof(struct registry_key, name_at));
        key = key->next_unfreed;
    }
}
#else
static void registry_free_poison(const struct registry *registry) {
    (void)registry;
}
#endif

enum {
    /* Cost of freeing a segment of a map, in members. */
    SEGMENT_WORK = MAP_SEGMENT_BUCKETS / 8 + 1,
};

/* ---- queueing ---- */

void registry_free_later(struct registry *registry, struct registry_key *key) {
    key->next_unfreed = registry->unfreed;
    registry->unfreed = key;
    registry->totals.unfreed++;
}

void registry_free_shell(struct registry *registry, struct registry_key *key) {
    key->next_unfreed = registry->shells;
    registry->shells = key;
}

void registry_free_after_command(struct registry *registry) {
    while (registry->shells != NULL) {
        struct registry_key *key = registry->shells;
        registry->shells = key->next_unfreed;
#ifdef SKIPLIST_TINY
        /* Who still reads it is to notice. */
        void *piece = registry_piece(key);
        memset(piece, 0xdd, (size_t)(key->name_at + key->name_size - (char *)piece));
        memory_free(piece);
#else
        registry_free_key(key);
#endif
    }
    board_options_free_gone(&registry->options);
    registry_free_poison(registry);
}

void registry_free_database_later(struct registry *registry, struct database *database) {
    struct flushed_keys *flushed = database->flushed;
    *flushed = (struct flushed_keys){.next = registry->flushed_first, .database = *database};
    registry->flushed_first = flushed;
    registry->totals.unfreed += database->count;
}

/* ---- freeing ---- */

/* Select the next key to free; false: nothing is queued. */
static bool registry_free_pick_partly_freed(struct registry *registry) {
    struct flushed_keys *flushed = registry->flushed_first;
    if (registry->partly_freed != NULL) {
        return true;
    }
    if (registry->unfreed != NULL) {
        registry->partly_freed = registry->unfreed;
        registry->unfreed = registry->partly_freed->next_unfreed;
        return true;
    }
    if (flushed == NULL) {
        return false;
    }
    /* The last key of the first flushed database. The pages of its heaps hold several entries each, so they are freed
     * long before the keys are. */
    struct database *database = &flushed->database;
    registry->partly_freed = registry_key_at(database, --database->count);
    map_pages_trim(&database->list, database->count * (uint64_t)sizeof(struct registry_key *));
    for (uint32_t i = 0; i < HEAPS; i++) {
        map_pages_trim(&database->heaps[i].entries, database->count > 0);
    }
    if (database->count == 0) {
        registry->flushed_first = flushed->next;
        memory_free(flushed);
    }
    return true;
}

bool registry_free_step(struct registry *registry, uint32_t work_max) {
    uint32_t work_left = work_max;
    registry_free_after_command(registry);
    while (work_left > 0) {
        uint32_t work = work_left;
        /* The map of a flushed database is freed before the keys, and nothing asks it for hashes any more. */
        if (registry->flushed_first != NULL &&
            !map_deinit_step(&registry->flushed_first->database.map)) {
            work = SEGMENT_WORK;
        } else if (registry_free_pick_partly_freed(registry)) {
            struct registry_key *key = registry->partly_freed;
            if (registry->kinds[key->kind]->free_step(registry, key, &work)) {
                registry_free_key(key);
                registry->partly_freed = NULL;
                registry->totals.unfreed--;
                registry->totals.freed++;
            }
        } else {
            break;
        }
        work_left -= work < work_left ? work : work_left;
    }
    if (work_left > 0 && registry->remains.first != NULL) {
        (void)board_free_step(registry->remains.first, work_left);
    }
    return registry->totals.unfreed > 0 || registry->remains.first != NULL;
}
