/* While copies are in the set, entry->key and value->key are the copy, and the board itself is in set->boards
 * alone, outside of the registry. See working_set.h. */
#include "server/module/working_set.h"
#include "skiplist/keyspace/registry_embedded.h"

static void working_set_copies_discard(struct registry_key *key) {
    registry_embedded_release(module.server.registry, registry_embedded_free(key));
}

/* Of this entry from now on, in the registry. */
static void working_set_copies_set(struct working_key *entry, struct registry_key *key) {
    CHECK(entry->value != NULL);
    entry->key = key;
    entry->value->key = key;
}

static bool working_set_copies_put(struct working_key *entry) {
    struct registry *registry = module.server.registry;
    struct registry_key *copy =
        registry_embedded_copy(registry, entry->key, registry_name(entry->key));
    if (copy == NULL) {
        return false;
    }
    registry_dismiss(registry, entry->key);
    working_set_copies_set(entry, copy);
    CHECK(registry_admit(registry, copy)); /* into the place that is free now */
    return true;
}

bool working_set_copy(struct working_set *set) {
    size_t size = (set->count + (size_t)1) * sizeof(struct registry_key *);
    set->boards = memory_allocate_zeroed(size);
    if (set->boards == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        set->boards[i] = set->keys[i].value != NULL ? set->keys[i].key : NULL;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->boards[i] != NULL && !working_set_copies_put(&set->keys[i])) {
            working_set_drop_copies(set);
            return false;
        }
    }
    registry_embedded_hold_rolls(module.server.registry);
    return true;
}

void working_set_keep_copies(struct working_set *set) {
    for (uint32_t i = 0; set->boards != NULL && i < set->count; i++) {
        if (set->boards[i] != NULL) {
            working_set_copies_discard(set->boards[i]);
        }
    }
    memory_free(set->boards);
    set->boards = NULL;
}

/* All that is in the set, but the boards themselves, if they still are. */
static void working_set_copies_clear(const struct working_set *set) {
    struct registry *registry = module.server.registry;
    struct registry_key *key;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->boards[i] != NULL && set->keys[i].key == set->boards[i]) {
            registry_dismiss(registry, set->boards[i]);
        }
    }
    while ((key = registry_embedded_first(registry)) != NULL) {
        registry_dismiss(registry, key);
        if (key->kind == REGISTRY_BOARD) {
            working_set_copies_discard(key);
        } else {
            memory_free(key); /* it stands for a key of another type */
        }
    }
}

void working_set_drop_copies(struct working_set *set) {
    struct registry *registry = module.server.registry;
    if (set->boards == NULL) {
        return;
    }
    (void)registry_embedded_keep_remains(registry);
    working_set_copies_clear(set);
    for (uint32_t i = 0; i < set->count; i++) {
        struct working_key *entry = &set->keys[i];
        entry->is_changed = false;
        entry->is_replaced = false;
        entry->key = NULL;
        if (set->boards[i] != NULL) {
            working_set_copies_set(entry, set->boards[i]);
            CHECK(registry_admit(registry, entry->key)); /* there was room for it before */
        }
    }
    registry_embedded_hold_rolls(registry);
    memory_free(set->boards);
    set->boards = NULL;
}
