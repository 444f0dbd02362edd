#include "skiplist/keyspace/registry_emit.h"

static inline void registry_emit_tell(const struct registry *registry,
                                      const struct effect *effect) {
    for (const struct effect_listener *listener = registry->listeners; listener != NULL;
         listener = listener->next) {
        listener->receive(listener->context, effect);
    }
}

static const struct rules *registry_emit_rules_of_key(const struct registry_key *key) {
    return key->kind == REGISTRY_BOARD ? registry_rules(key) : NULL;
}

/* Complete an effect on this key, and report it. */
static inline __attribute__((always_inline)) void
registry_emit_tell_of(const struct registry *registry, const struct registry_key *key,
                      struct effect *effect) {
    effect->key_kind = registry->kinds[key->kind];
    effect->database = key->database;
    effect->name = registry_name(key);
    effect->key = key;
    registry_emit_tell(registry, effect);
}

/* Report the creation of a key created by a write. */
__attribute__((noinline)) static void registry_emit_introduce(const struct registry *registry,
                                                              struct registry_key *key) {
    key->is_unreported = false;
    registry_emit_tell_of(
        registry, key,
        &(struct effect){.kind = EFFECT_CREATE, .rules = registry_emit_rules_of_key(key)});
}

void registry_emit_to_listeners(const struct registry *registry, struct registry_key *key,
                                struct effect *effect) {
    if (key->is_unreported) {
        registry_emit_introduce(registry, key);
    }
    registry_emit_tell_of(registry, key, effect);
}

void registry_emit_key(const struct registry *registry, enum effect_kind kind,
                       struct registry_key *key) {
    const struct database *database = registry_read(registry, key->database);
    registry_emit(registry, key,
                  (struct effect){.kind = kind,
                                  .rules = registry_emit_rules_of_key(key),
                                  .expire_at_ms = registry_expiry_in(database, key)});
}

void registry_emit_move(const struct registry *registry, enum effect_kind kind,
                        const struct registry_key *from, const struct registry_key *key) {
    const struct database *database = registry_read(registry, key->database);
    registry_emit_tell(registry, &(struct effect){.kind = kind,
                                                  .key_kind = registry->kinds[key->kind],
                                                  .database = from->database,
                                                  .name = registry_name(from),
                                                  .to_database = key->database,
                                                  .to_name = registry_name(key),
                                                  .rules = registry_emit_rules_of_key(key),
                                                  .expire_at_ms = registry_expiry_in(database, key),
                                                  .key = key});
}

void registry_emit_flush(const struct registry *registry, uint32_t database) {
    registry_emit_tell(registry, &(struct effect){.kind = EFFECT_FLUSH, .database = database});
}

void registry_report_member(const struct registry *registry, enum effect_kind kind,
                            struct registry_key *key, struct bytes member, struct bytes value) {
    CHECK(key->kind != REGISTRY_BOARD);
    registry_emit(registry, key, (struct effect){.kind = kind, .member = member, .value = value});
}
