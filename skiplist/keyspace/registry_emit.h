/* Private to the registry: reporting effects. Without a listener or a walk this costs one test for
 * each change of a member. */
#ifndef SKIPLIST_REGISTRY_EMIT_H
#define SKIPLIST_REGISTRY_EMIT_H

#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_parts.h"

/* CREATE, EXPIRE, RULES or FILL of a key. */
void registry_emit_key(const struct registry *registry, enum effect_kind kind,
                       struct registry_key *key);
/* The effect has its kind and its own fields; those of the key are added. Without a listener it is
 * not even built. */
void registry_emit_to_listeners(const struct registry *registry, struct registry_key *key,
                                struct effect *effect);
__attribute__((always_inline)) static inline void
registry_emit(const struct registry *registry, struct registry_key *key, struct effect effect) {
    if (registry->listeners != NULL) {
        registry_emit_to_listeners(registry, key, &effect);
    }
}
/* RENAME or COPY from the key of this name; key is the new one. */
void registry_emit_move(const struct registry *registry, enum effect_kind kind,
                        const struct registry_key *from, const struct registry_key *key);
void registry_emit_flush(const struct registry *registry, uint32_t database);

#endif
