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

static void tell(const struct registry *registry, const struct effect *effect) {
    for (const struct effect_listener *listener = registry->listeners; listener != NULL;
         listener = listener->next) {
        listener->receive(listener->context, effect);
    }
}

static struct effect effect_of(const struct registry *registry, enum effect_kind kind,
                               const struct registry_key *key) {
    return (struct effect){
        .kind = kind,
        .key_kind = registry->kinds[key->kind],
        .database = key->database,
        .name = registry_name(key),
        .expire_at_ms = REGISTRY_NO_EXPIRY,
        .key = key,
    };
}

static const struct rules *rules_of_key(const struct registry_key *key) {
    return key->kind == REGISTRY_BOARD ? registry_rules(key) : NULL;
}

/* The same with the rules and the expiry of a key in the keyspace. */
static struct effect effect_in_full(const struct registry *registry, enum effect_kind kind,
                                    const struct registry_key *key) {
    struct effect effect = effect_of(registry, kind, key);
    effect.rules = rules_of_key(key);
    effect.expire_at_ms = registry_expiry(registry, key);
    return effect;
}

/* Report the creation of a key created by a write, before its first effect. */
static void introduce(const struct registry *registry, struct registry_key *key) {
    if (key->is_unreported) {
        key->is_unreported = false;
        struct effect effect = effect_of(registry, EFFECT_CREATE, key);
        effect.rules = rules_of_key(key);
        tell(registry, &effect);
    }
}

void registry_emit_key(const struct registry *registry, enum effect_kind kind,
                       struct registry_key *key) {
    if (registry->listeners != NULL) {
        introduce(registry, key);
        struct effect effect = effect_in_full(registry, kind, key);
        tell(registry, &effect);
    }
}

void registry_emit_removal(const struct registry *registry, struct registry_key *key) {
    if (registry->listeners != NULL) {
        introduce(registry, key);
        struct effect effect = effect_of(registry, EFFECT_REMOVE, key);
        tell(registry, &effect);
    }
}

void registry_emit_move(const struct registry *registry, enum effect_kind kind,
                        const struct registry_key *from, const struct registry_key *key) {
    if (registry->listeners != NULL) {
        struct effect effect = effect_in_full(registry, kind, key);
        effect.database = from->database;
        effect.name = registry_name(from);
        effect.to_database = key->database;
        effect.to_name = registry_name(key);
        tell(registry, &effect);
    }
}

void registry_emit_cut(const struct registry *registry, struct registry_key *key, uint32_t rank,
                       uint32_t count) {
    if (registry->listeners != NULL && count > 0) {
        struct effect effect = effect_of(registry, EFFECT_CUT, key);
        effect.rank = rank;
        effect.count = count;
        tell(registry, &effect);
    }
}

void registry_emit_flush(const struct registry *registry, uint32_t database) {
    if (registry->listeners != NULL) {
        struct effect effect = {
            .kind = EFFECT_FLUSH, .database = database, .expire_at_ms = REGISTRY_NO_EXPIRY};
        tell(registry, &effect);
    }
}

void registry_emit_member(const struct registry *registry, enum effect_kind kind,
                          struct registry_key *key, struct bytes member, uint64_t packed_key) {
    if (registry->listeners != NULL) {
        introduce(registry, key);
        struct effect effect = effect_of(registry, kind, key);
        effect.member = member;
        effect.member_key = packed_key;
        tell(registry, &effect);
    }
}

void registry_report_member(const struct registry *registry, enum effect_kind kind,
                            struct registry_key *key, struct bytes member, struct bytes value) {
    CHECK(key->kind != REGISTRY_BOARD);
    if (registry->listeners != NULL) {
        introduce(registry, key);
        struct effect effect = effect_of(registry, kind, key);
        effect.member = member;
        effect.value = value;
        tell(registry, &effect);
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
