/* Removed keys and flushed databases, on their way to being freed in steps.
 *
 * Burial must not fail, so nothing is allocated for it: a removed key is linked through itself,
 * and a flushed database through a record that was made with its first key. Boards with remains are
 * chained through their member indexes; a board may be buried or renamed meanwhile. */
#include "codec/memory.h"
#include "skiplist/registry_parts.h"

enum {
    /* What burying and freeing one key costs, in members: the key, the board, its first block. */
    KEY_WORK = 2,
    /* What freeing a segment of a map costs, in members. */
    SEGMENT_WORK = MAP_SEGMENT_BUCKETS / 8 + 1,
    /* The least that a board is asked to free at a time. */
    DYING_WORK_MIN = 32,
};

/* ---- burying ---- */

void registry_bury(struct registry *registry, struct registry_key *key) {
    key->next_buried = registry->buried;
    registry->buried = key;
    registry->buried_count++;
}

void registry_bury_database(struct registry *registry, struct database *database) {
    struct grave *grave = database->grave;
    *grave = (struct grave){.next = registry->graves,
                            .map = database->map,
                            .list = database->list,
                            .expiry_entries = database->expiry.entries,
                            .roll_entries = database->rolls.entries,
                            .count = database->count};
    registry->graves = grave;
    registry->buried_count += database->count;
    database->grave = NULL;
}

/* ---- freeing ---- */

/* The last key of the first grave. The heaps' pages, which hold more than one entry each, are gone
 * long before the keys are. */
static struct registry_key *exhume(struct registry *registry) {
    struct grave *grave = registry->graves;
    struct registry_key *key = *registry_list_at(&grave->list, --grave->count);
    pages_trim(&grave->list, grave->count * (uint64_t)sizeof(struct registry_key *));
    pages_trim(&grave->expiry_entries, 1);
    pages_trim(&grave->roll_entries, 1);
    if (grave->count == 0) {
        registry->graves = grave->next;
        pages_deinit(&grave->expiry_entries);
        pages_deinit(&grave->roll_entries);
        memory_free(grave);
    }
    return key;
}

/* The key to be freed next; false: none is buried. */
static bool pick_dying(struct registry *registry) {
    if (registry->dying != NULL) {
        return true;
    }
    if (registry->buried != NULL) {
        registry->dying = registry->buried;
        registry->buried = registry->dying->next_buried;
    } else if (registry->graves != NULL) {
        registry->dying = exhume(registry);
    } else {
        return false;
    }
    registry->dying_count = board_count(&registry->dying->board) + (uint64_t)KEY_WORK;
    return true;
}

static uint64_t less(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* Free a segment of a flushed database's map; false: there is none. A grave's map goes before its
 * keys, and nothing asks it for hashes any more. */
static bool free_grave_map(struct registry *registry) {
    return registry->graves != NULL && !map_deinit_step(&registry->graves->map);
}

/* Free some of the key that is being freed; returns what work that was. */
static uint64_t free_dying(struct registry *registry, uint64_t work_max) {
    struct registry_key *key = registry->dying;
    uint64_t work = registry->dying_count < work_max ? registry->dying_count : work_max;
    const struct rules *rules = registry_rules(key);
    bool is_gone = board_deinit_step(&key->board, (uint32_t)work);
    /* The board may find more to do than its members told: their index, and what remains of
     * others. */
    registry->dying_count = less(registry->dying_count, work);
    if (registry->dying_count < DYING_WORK_MIN) {
        registry->dying_count = DYING_WORK_MIN;
    }
    if (is_gone) {
        rules_release(&registry->rules, rules);
        memory_free(key);
        registry->dying = NULL;
        registry->buried_count--;
        registry->freed_count++;
    }
    return work;
}

bool registry_free_step(struct registry *registry, uint32_t work_max) {
    uint64_t work_left = work_max;
    while (work_left > 0) {
        if (free_grave_map(registry)) {
            work_left = less(work_left, SEGMENT_WORK);
        } else if (pick_dying(registry)) {
            work_left -= free_dying(registry, work_left);
        } else {
            break;
        }
    }
    if (work_left > 0 && registry->remains.first != NULL) {
        (void)board_free_step(registry->remains.first, (uint32_t)work_left);
    }
    return registry->buried_count > 0 || registry->remains.first != NULL;
}

uint64_t registry_buried_count(const struct registry *registry) {
    return registry->buried_count;
}

uint64_t registry_freed_count(const struct registry *registry) {
    return registry->freed_count;
}
