/* Reporting effects. Without a listener or a walk this costs one test for each change of a
 * member. */
#include "skiplist/keyspace/effect_listener.h"

#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_parts.h"

/* The pointer to this listener in the list, or the one at the list's end. */
static struct effect_listener **find(struct registry *registry,
                                     const struct effect_listener *listener) {
    struct effect_listener **link = &registry->listeners;
    while (*link != NULL && *link != listener) {
        link = &(*link)->next;
    }
    return link;
}

void effect_listener_add(struct registry *registry, struct effect_listener *listener) {
    struct effect_listener **link = find(registry, listener);
    if (*link == NULL) {
        *link = listener;
        listener->next = NULL;
    }
    registry_observe(registry);
}

void effect_listener_remove(struct registry *registry, struct effect_listener *listener) {
    struct effect_listener **link = find(registry, listener);
    if (*link != NULL) {
        *link = listener->next;
    }
    registry_observe(registry);
}

static inline void tell(const struct registry *registry, const struct effect *effect) {
    for (const struct effect_listener *listener = registry->listeners; listener != NULL;
         listener = listener->next) {
        listener->receive(listener->context, effect);
    }
}

static const struct rules *rules_of_key(const struct registry_key *key) {
    return key->kind == REGISTRY_BOARD ? registry_rules(key) : NULL;
}

/* Complete an effect on this key, and report it. */
static inline __attribute__((always_inline)) void
tell_of(const struct registry *registry, const struct registry_key *key, struct effect *effect) {
    effect->key_kind = registry->kinds[key->kind];
    effect->database = key->database;
    effect->name = registry_name(key);
    effect->key = key;
    tell(registry, effect);
}

/* Report the creation of a key created by a write. */
__attribute__((noinline)) static void introduce(const struct registry *registry,
                                                struct registry_key *key) {
    key->is_unreported = false;
    tell_of(registry, key,
            &(struct effect){.kind = EFFECT_CREATE,
                             .rules = rules_of_key(key),
                             .expire_at_ms = REGISTRY_NO_EXPIRY});
}

/* As tell_of, and before the first effect of a key its creation. */
static inline void emit(const struct registry *registry, struct registry_key *key,
                        struct effect *effect) {
    if (key->is_unreported) {
        introduce(registry, key);
    }
    tell_of(registry, key, effect);
}

void registry_emit_key(const struct registry *registry, enum effect_kind kind,
                       struct registry_key *key) {
    if (registry->listeners != NULL) {
        emit(registry, key,
             &(struct effect){.kind = kind,
                              .rules = rules_of_key(key),
                              .expire_at_ms = registry_expiry(registry, key)});
    }
}

void registry_emit_removal(const struct registry *registry, struct registry_key *key) {
    if (registry->listeners != NULL) {
        emit(registry, key,
             &(struct effect){.kind = EFFECT_REMOVE, .expire_at_ms = REGISTRY_NO_EXPIRY});
    }
}

void registry_emit_move(const struct registry *registry, enum effect_kind kind,
                        const struct registry_key *from, const struct registry_key *key) {
    if (registry->listeners != NULL) {
        tell(registry, &(struct effect){.kind = kind,
                                        .key_kind = registry->kinds[key->kind],
                                        .database = from->database,
                                        .name = registry_name(from),
                                        .to_database = key->database,
                                        .to_name = registry_name(key),
                                        .rules = rules_of_key(key),
                                        .expire_at_ms = registry_expiry(registry, key),
                                        .key = key});
    }
}

void registry_emit_cut(const struct registry *registry, struct registry_key *key, uint32_t rank,
                       uint32_t count) {
    if (registry->listeners != NULL && count > 0) {
        emit(registry, key,
             &(struct effect){.kind = EFFECT_CUT,
                              .rank = rank,
                              .count = count,
                              .expire_at_ms = REGISTRY_NO_EXPIRY});
    }
}

void registry_emit_flush(const struct registry *registry, uint32_t database) {
    if (registry->listeners != NULL) {
        tell(registry, &(struct effect){.kind = EFFECT_FLUSH,
                                        .database = database,
                                        .expire_at_ms = REGISTRY_NO_EXPIRY});
    }
}

void registry_emit_member(const struct registry *registry, enum effect_kind kind,
                          struct registry_key *key, struct bytes member, uint64_t packed_key) {
    if (registry->listeners != NULL) {
        emit(registry, key,
             &(struct effect){.kind = kind,
                              .member = member,
                              .member_key = packed_key,
                              .expire_at_ms = REGISTRY_NO_EXPIRY});
    }
}

void registry_report_member(const struct registry *registry, enum effect_kind kind,
                            struct registry_key *key, struct bytes member, struct bytes value) {
    CHECK(key->kind != REGISTRY_BOARD);
    if (registry->listeners != NULL) {
        emit(registry, key,
             &(struct effect){.kind = kind,
                              .member = member,
                              .value = value,
                              .expire_at_ms = REGISTRY_NO_EXPIRY});
    }
}

/* ---- FILL: a key with all its members ---- */

void effect_fill_begin(struct effect_fill *fill, const struct effect *effect) {
    *fill = (struct effect_fill){.whole = *effect};
}

bool effect_fill_next(struct effect_fill *fill, struct effect *effect) {
    *effect = fill->whole;
    if (fill->next == EFFECT_FILL_CREATE) {
        effect->kind = EFFECT_CREATE;
        fill->next = EFFECT_FILL_EXPIRE;
        return true;
    }
    if (fill->next == EFFECT_FILL_EXPIRE) {
        effect->kind = EFFECT_EXPIRE;
        fill->next = EFFECT_FILL_MEMBERS;
        if (effect->expire_at_ms != REGISTRY_NO_EXPIRY) {
            return true;
        }
    }
    effect->kind = EFFECT_PUT;
    return effect->key_kind->fill(fill, effect);
}
