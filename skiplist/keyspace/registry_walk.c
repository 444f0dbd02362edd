/* A walk stores nothing in the keys, and may be abandoned at any time: what is ahead of it is what is ahead of its pass. */
#include "skiplist/keyspace/registry_walk.h"

#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_parts.h"

/* ---- keys ---- */

void registry_walk_begin(struct registry *registry) {
    registry_walk_end(registry);
    registry->walk.is_going = true;
    registry_observe(registry);
    registry_pass_begin(registry, &registry->walk.pass, 0, REGISTRY_ALL_DATABASES);
}

void registry_walk_end(struct registry *registry) {
    registry_pass_end(registry, &registry->walk.pass);
    registry->walk = (struct registry_walk){.open = NULL};
    registry_observe(registry);
}

enum registry_walk_state registry_walk_state(const struct registry *registry,
                                             const struct registry_key *key) {
    if (key == registry->walk.taken) {
        return registry->walk.taken_state;
    }
    if (key == registry->walk.open) {
        return REGISTRY_WALK_OPEN;
    }
    return key->index < registry->walk.pass.left[key->database] ? REGISTRY_WALK_AHEAD
                                                                : REGISTRY_WALK_DONE;
}

void registry_walk_note_taken(struct registry *registry, const struct registry_key *key) {
    enum registry_walk_state state = registry_walk_state(registry, key);
    registry->walk.taken = key;
    registry->walk.taken_state = state;
    if (state == REGISTRY_WALK_OPEN) {
        registry->walk.open = NULL;
    }
}

void registry_walk_note_put(struct registry *registry, const struct registry_key *key,
                            enum registry_walk_state state) {
    /* A removed key may have had the same address. */
    if (registry->walk.taken == key) {
        registry->walk.taken = NULL;
    }
    if (state == REGISTRY_WALK_OPEN) {
        registry->walk.open = key;
    }
}

void registry_walk_reopen(struct registry *registry) {
    registry->walk.cursor = (struct key_cursor){.rank = 0};
}

/* ---- walking ---- */

/* Open the next key that is ahead. false: none left. */
static bool registry_walk_open_next(struct registry *registry) {
    struct registry_walk *walk = &registry->walk;
    if (!walk->is_going) {
        return false;
    }
    walk->pass.database = 0; /* a key that is ahead may have been moved to any database */
    walk->open = registry_pass_next(registry, &walk->pass, INT64_MIN);
    walk->has_begun = false;
    registry_walk_reopen(registry);
    return walk->open != NULL;
}

bool registry_walk_next(struct registry *registry, void *entries, uint32_t entries_max,
                        struct registry_walk_piece *piece) {
    struct registry_walk *walk = &registry->walk;
    CHECK(entries_max > 0);
    if (walk->open == NULL && !registry_walk_open_next(registry)) {
        return false;
    }
    *piece = (struct registry_walk_piece){
        .key = walk->open, .rank = walk->cursor.rank, .is_first = !walk->has_begun};
    piece->count = registry->kinds[piece->key->kind]->walk(piece->key, &walk->cursor, entries,
                                                           entries_max, &piece->is_last);
    walk->has_begun = true;
    if (piece->is_last) {
        walk->open = NULL;
    }
    return true;
}

/* ---- validation ---- */

const char *registry_check_walk(const struct registry *registry) {
    const struct registry_walk *walk = &registry->walk;
    if (walk->open == NULL) {
        return NULL;
    }
    if (walk->open->index < walk->pass.left[walk->open->database]) {
        return "registry: the open key is ahead of the walk";
    }
    return registry->kinds[walk->open->kind]->check(registry, walk->open, &walk->cursor);
}
