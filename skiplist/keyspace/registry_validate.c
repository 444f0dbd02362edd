/* Checks of a whole registry: its databases, its passes, and the value of each key by its kind. */
#include "skiplist/keyspace/registry_private.h"

static const char *registry_validate_passes(const struct registry *registry) {
    for (const struct registry_pass *pass = registry->passes; pass != NULL; pass = pass->next) {
        for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES; i++) {
            if (pass->left[i] > registry_read(registry, i)->count) {
                return "registry: more keys are ahead of a pass than there are";
            }
        }
    }
    return NULL;
}

static const char *registry_validate_walk(const struct registry *registry) {
    const struct registry_walk *walk = &registry->walk;
    if (walk->open == NULL) {
        return NULL;
    }
    if (walk->open->index < walk->pass.left[walk->open->database]) {
        return "registry: the open key is ahead of the walk";
    }
    return registry->kinds[walk->open->kind]->check(registry, walk->open, &walk->cursor);
}

/* The scheduled end of its period. */
static const char *registry_validate_roll(const struct database *database,
                                          const struct registry_key *key) {
    if (!key->is_periodic) {
        return NULL;
    }
    const void *at = (const char *)key + registry_tail_offset(key->name_size);
    const struct registry_tail *tail = at;
    const struct expiry *rolls = &database->heaps[tail->roll_heap];
    if (tail->key != key || tail->roll_place >= rolls->count) {
        return "registry: a key's tail is another one's, or its place is outside the heap";
    }
    int64_t end_ms = registry_options(key)->period_end_ms;
    int64_t time_ms =
        expiry_has(rolls, &tail->roll_place) ? expiry_time_ms(rolls, tail->roll_place) : INT64_MIN;
    return time_ms == end_ms || (tail->roll_heap == HEAP_COPIES && time_ms > end_ms)
               ? NULL
               : "registry: a key does not wait for the end of its period";
}

static const char *registry_validate_key(const struct registry *registry, uint32_t number,
                                         uint32_t index) {
    const struct database *database = registry_read(registry, number);
    const struct registry_key *key = registry_key_at(database, index);
    if (key->index != index || key->database != number) {
        return "registry: a key does not stand where it thinks";
    }
    if (registry_find_name(database, registry_name(key)) != key) {
        return "registry: a key is not found by its name";
    }
    if (key->expiry_place != EXPIRY_NOWHERE &&
        !expiry_has(&database->heaps[key->is_lasting], &key->expiry_place)) {
        return "registry: a key has no entry in the heap, or another one's";
    }
    if (registry->kinds[key->kind] == NULL) {
        return "registry: a key is of no kind";
    }
    const char *wrong = registry_validate_roll(database, key);
    return wrong != NULL ? wrong : registry->kinds[key->kind]->check(registry, key, NULL);
}

static const char *registry_validate_database(const struct registry *registry, uint32_t number,
                                              uint64_t *boards) {
    const struct database *database = registry_read(registry, number);
    uint32_t expiring_count = 0;
    uint32_t periodic_count = 0;
    uint32_t own_count = 0;
    uint64_t member_count = 0;
    uint64_t unsettled_count = 0;
    uint64_t behind_count = 0;
    for (uint32_t i = 0; i < database->count; i++) {
        const char *wrong = registry_validate_key(registry, number, i);
        if (wrong != NULL) {
            return wrong;
        }
        const struct registry_key *key = registry_key_at(database, i);
        expiring_count += key->expiry_place != EXPIRY_NOWHERE;
        periodic_count += key->is_periodic;
        if (key->kind == REGISTRY_BOARD) {
            own_count++;
            member_count += board_count(&key->board);
            unsettled_count +=
                board_options_are_unsettled(registry_options(key), registry_state(key));
            behind_count += board_options_window_behind(registry_options(key), registry_state(key),
                                                        BOARD_WINDOW_MAX);
        }
    }
    *boards += own_count;
    if (own_count != database->board_count || member_count != database->member_count) {
        return "registry: boards or members are not counted right";
    }
    if (unsettled_count != database->unsettled_count || behind_count != database->behind_count) {
        return "registry: unsettled archives, or periods that have to leave, are not counted right";
    }
    if (expiring_count != registry_expiry_count(registry, number) ||
        periodic_count != database->heaps[HEAP_ROLLS].count + database->heaps[HEAP_COPIES].count) {
        return "registry: a heap holds more than the keys";
    }
    if (database->count > 0 && (registry->used_databases >> number & 1) == 0) {
        return "registry: a database with keys counts as unused";
    }
    if (map_count(&database->map) != database->count) {
        return "registry: the map holds more or less than the keys";
    }
    const char *reason = NULL;
    if (database->heaps[HEAP_LASTING].offset_ms != registry->offset_ms) {
        return "registry: a heap of durations has another offset";
    }
    bool is_valid = map_validate(&database->map, &reason);
    for (uint32_t i = 0; i < HEAPS && is_valid; i++) {
        is_valid = expiry_validate(&database->heaps[i], &reason);
    }
    return reason;
}

/* Count the boards among the keys that are not freed yet, and all of these keys. */
static uint64_t registry_validate_unfreed(const struct registry *registry, uint64_t *board_count) {
    uint64_t count = 0;
    const struct registry_key *partly_freed = registry->partly_freed;
    if (partly_freed != NULL) {
        *board_count += partly_freed->kind == REGISTRY_BOARD;
        count++;
    }
    for (const struct registry_key *key = registry->unfreed; key != NULL; key = key->next_unfreed) {
        *board_count += key->kind == REGISTRY_BOARD;
        count++;
    }
    for (const struct flushed_keys *flushed = registry->flushed_first; flushed != NULL;
         flushed = flushed->next) {
        for (uint32_t i = 0; i < flushed->database.count; i++) {
            *board_count += registry_key_at(&flushed->database, i)->kind == REGISTRY_BOARD;
        }
        count += flushed->database.count;
    }
    return count;
}

bool registry_validate(const struct registry *registry, const char **reason) {
    uint64_t board_count = 0;
    if (!board_options_set_validate(&registry->options, reason)) {
        return false;
    }
    const char *wrong = registry_validate_passes(registry);
    if (wrong == NULL) {
        wrong = registry_validate_walk(registry);
    }
    for (uint32_t i = 0; i < REGISTRY_ALL_DATABASES && wrong == NULL; i++) {
        wrong = registry_validate_database(registry, i, &board_count);
    }
    uint64_t unfreed = registry_validate_unfreed(registry, &board_count);
    board_count += registry->archiving.mirror != NULL;
    if (wrong == NULL && unfreed != registry->totals.unfreed) {
        wrong = "registry: unfreed keys are not counted right";
    } else if (wrong == NULL && board_count != registry->options.use_count) {
        wrong = "registry: options have more or fewer users than there are boards";
    }
    return check_passed(wrong, reason);
}
