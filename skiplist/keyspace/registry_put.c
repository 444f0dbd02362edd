/* Values that were made beside the database take their name in it, in two steps: reserve, which may fail, and
 * put, which may not. */
#include "skiplist/keyspace/registry_emit.h"
#include "skiplist/keyspace/registry_hash.h"
#include "skiplist/keyspace/registry_roll.h"
#include "skiplist/keyspace/registry_window.h"

struct registry_key *registry_reserve_key(struct registry *registry, uint32_t number,
                                          struct registry_new_name name, uint32_t kind,
                                          bool expires, bool is_periodic) {
    struct database *database = registry_database(registry, number);
    if ((expires && (!expiry_reserve(&database->heaps[HEAP_EXPIRY]) ||
                     !expiry_reserve(&database->heaps[HEAP_LASTING]))) ||
        !registry_database_reserve(database, is_periodic)) {
        return NULL;
    }
    return registry_create_key(number, name, kind, is_periodic);
}

/* Remove an existing key of that name, without giving back what was reserved. NULL: there was none. */
static struct registry_key *registry_put_clear_destination(struct registry *registry,
                                                           const struct registry_key *key,
                                                           int64_t now_ms) {
    struct database *database = registry_database(registry, key->database);
    struct registry_key *old = registry_find_name(database, registry_name(key));
    if (old == NULL) {
        return NULL;
    }
    registry->totals.expired += registry_has_expired(database, old, now_ms);
    registry_take(registry, old);
    registry_free_later(registry, old);
    registry_window_note_taken(registry, old);
    registry_emit(registry, old, (struct effect){.kind = EFFECT_REMOVE});
    return old;
}

struct registry_key *registry_put_over(struct registry *registry, struct registry_key *key,
                                       enum registry_walk_state state, int64_t expire_at_ms,
                                       int64_t now_ms) {
    struct database *database = registry_database(registry, key->database);
    struct registry_key *old = registry_put_clear_destination(registry, key, now_ms);
    registry_put(registry, key, state);
    if (expire_at_ms != REGISTRY_NO_EXPIRY) {
        expiry_put(&database->heaps[key->is_lasting], expire_at_ms, &key->expiry_place);
    }
    registry_trim(database);
    registry_tell(registry, key->database, registry_name(key));
    return old;
}

void registry_put_reserved(struct registry *registry, struct registry_key *key,
                           enum registry_walk_state state, int64_t expire_at_ms, int64_t now_ms) {
    registry_window_note_removed(registry,
                                 registry_put_over(registry, key, state, expire_at_ms, now_ms));
}

static enum registry_status registry_put_owned_board(struct registry *registry, uint32_t database,
                                                     struct bytes name, struct board *board,
                                                     int64_t expire_at_ms, bool is_lasting,
                                                     int64_t now_ms) {
    bool is_periodic = rules_of(board_layout(board))->period.unit != PERIOD_NONE;
    struct registry_key *key =
        registry_reserve_key(registry, database, (struct registry_new_name){.first = name},
                             REGISTRY_BOARD, expire_at_ms != REGISTRY_NO_EXPIRY, is_periodic);
    if (key == NULL) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    key->is_lasting = is_lasting;
    board_move_to(board, &key->board);
    registry_put_reserved(registry, key, REGISTRY_WALK_DONE, expire_at_ms, now_ms);
    registry_emit_key(registry, EFFECT_FILL, key);
    return REGISTRY_OK;
}

enum registry_status registry_put_board(struct registry *registry, uint32_t database,
                                        struct bytes name, struct board *board, int64_t now_ms) {
    return registry_put_board_until(registry, database, name, board, REGISTRY_NO_EXPIRY, false,
                                    now_ms);
}

enum registry_status registry_put_board_until(struct registry *registry, uint32_t database,
                                              struct bytes name, struct board *board,
                                              int64_t expire_at_ms, bool is_lasting,
                                              int64_t now_ms) {
    const struct rules *rules = rules_of(board_layout(board));
    CHECK(rules->cap == 0 || board_count(board) <= rules->cap);
    return registry_settle(registry, database, name, now_ms)
               ? registry_put_owned_board(registry, database, name, board, expire_at_ms, is_lasting,
                                          now_ms)
               : REGISTRY_OUT_OF_MEMORY;
}

enum registry_status registry_put_hash(struct registry *registry, uint32_t database,
                                       struct bytes name, struct hash *hash, int64_t expire_at_ms,
                                       bool is_lasting, int64_t now_ms) {
    if (!registry_settle(registry, database, name, now_ms)) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    struct registry_key *key =
        registry_reserve_key(registry, database, (struct registry_new_name){.first = name},
                             REGISTRY_HASH, expire_at_ms != REGISTRY_NO_EXPIRY, false);
    if (key == NULL) {
        return REGISTRY_OUT_OF_MEMORY;
    }
    key->is_lasting = is_lasting;
    key->hash = *hash;
    *hash = (struct hash){0};
    registry_put_reserved(registry, key, REGISTRY_WALK_DONE, expire_at_ms, now_ms);
    registry_emit_key(registry, EFFECT_FILL, key);
    return REGISTRY_OK;
}

bool registry_may_put(const struct registry *registry, uint32_t database, struct bytes name,
                      const struct rules *rules) {
    size_t size_max =
        rules != NULL && rules->period.unit != PERIOD_NONE ? REGISTRY_KEY_MAX : REGISTRY_NAME_MAX;
    bool has_kind =
        database < REGISTRY_DATABASES ||
        (database < REGISTRY_ALL_DATABASES && (database == REGISTRY_ONCE) == (rules != NULL));
    return has_kind && name.size >= 1 && name.size <= size_max &&
           registry_find_name(registry_read(registry, database), name) == NULL;
}

enum registry_status registry_put_loaded(struct registry *registry, uint32_t database,
                                         struct bytes name, struct board *board,
                                         int64_t expire_at_ms) {
    return registry_put_owned_board(registry, database, name, board, expire_at_ms, false,
                                    INT64_MIN);
}
