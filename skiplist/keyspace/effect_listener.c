#include "skiplist/keyspace/effect_listener.h"

#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_parts.h"

/* The pointer to this listener in the list, or the one at the list's end. */
static struct effect_listener **effect_listener_find(struct registry *registry,
                                                     const struct effect_listener *listener) {
    struct effect_listener **link = &registry->listeners;
    while (*link != NULL && *link != listener) {
        link = &(*link)->next;
    }
    return link;
}

void effect_listener_add(struct registry *registry, struct effect_listener *listener) {
    struct effect_listener **link = effect_listener_find(registry, listener);
    if (*link == NULL) {
        *link = listener;
        listener->next = NULL;
    }
    registry_observe(registry);
}

void effect_listener_remove(struct registry *registry, struct effect_listener *listener) {
    struct effect_listener **link = effect_listener_find(registry, listener);
    if (*link != NULL) {
        *link = listener->next;
    }
    registry_observe(registry);
}

/* ---- FILL: a key with all its members ---- */

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
