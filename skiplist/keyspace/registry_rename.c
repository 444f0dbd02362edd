/* Renaming and copying keys. Everything that may fail is reserved first. */
#include "codec/memory.h"
#include "skiplist/keyspace/registry_emit.h"
#include "skiplist/keyspace/registry_roll.h"
#include "skiplist/keyspace/registry_walk.h"

static bool is_named(const struct registry_key *key, uint32_t database, struct bytes name) {
    return key->database == database && bytes_equal(registry_name(key), name);
}

/* Reserve another key with this key's expiry and PERIOD. NULL: no memory. */
static struct registry_key *reserve_successor(struct registry *registry,
                                              const struct registry_key *key, uint32_t to_database,
                                              struct bytes to_name, int64_t now_ms) {
    if (!registry_settle(registry, to_database, to_name, now_ms)) {
        return NULL;
    }
    struct registry_key *successor =
        registry_reserve_key(registry, to_database, (struct registry_new_name){.first = to_name},
                             key->kind, key->expiry_place != EXPIRY_NOWHERE, key->is_periodic);
    if (successor != NULL) {
        successor->is_lasting = key->is_lasting;
    }
    return successor;
}

enum registry_status registry_rename(struct registry *registry, struct registry_key *key,
                                     uint32_t to_database, struct bytes to_name, int64_t now_ms) {
    if (is_named(key, to_database, to_name)) {
        return REGISTRY_OK;
    }
    struct registry_key *successor = reserve_successor(registry, key, to_database, to_name, now_ms);
    if (successor == NULL) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    int64_t expire_at_ms = registry_expiry(registry, key);
    enum registry_walk_state state = registry_walk_state(registry, key);
    registry_move_value(registry, key, successor);
    registry_take(registry, key);
    registry_tell(registry, key->database, registry_name(key));
    registry_put_reserved(registry, successor, state, expire_at_ms, now_ms);
    registry_emit_move(registry, EFFECT_RENAME, key, successor);
    registry_trim(registry_database(registry, key->database));
    memory_free(key);
    return REGISTRY_OK;
}

enum registry_status registry_copy(struct registry *registry, const struct registry_key *key,
                                   uint32_t to_database, struct bytes to_name, int64_t now_ms) {
    if (is_named(key, to_database, to_name)) {
        return REGISTRY_OK;
    }
    struct registry_key *successor = reserve_successor(registry, key, to_database, to_name, now_ms);
    if (successor == NULL) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    if (!registry->kinds[key->kind]->copy(registry, key, successor)) {
        memory_free(successor);
        return REGISTRY_OUT_OF_MEMORY;
    }
    bool is_done = registry_walk_state(registry, key) == REGISTRY_WALK_DONE;
    registry_put_reserved(registry, successor, is_done ? REGISTRY_WALK_DONE : REGISTRY_WALK_AHEAD,
                          registry_expiry(registry, key), now_ms);
    registry_emit_move(registry, EFFECT_COPY, key, successor);
    return REGISTRY_OK;
}
