/* Receiving the effects of a registry (skiplist/keyspace/effect.h), and listing those of a FILL. */
#ifndef SKIPLIST_EFFECT_LISTENER_H
#define SKIPLIST_EFFECT_LISTENER_H

#include "skiplist/keyspace/effect.h"

/* Owned by the caller, and borrowed while it is added. receive gets every effect: CUT before the
 * members are removed, all others after the change. It must not change the registry or its
 * listeners. */
struct effect_listener {
    void (*receive)(void *context, const struct effect *effect);
    void *context;
    struct effect_listener *next; /* private */
};

/* Listeners receive effects in the order in which they were added. Adding one that is there, or
 * removing one that is not, does nothing. Call between commands only. */
void effect_listener_add(struct registry *registry, struct effect_listener *listener);
void effect_listener_remove(struct registry *registry, struct effect_listener *listener);

/* Iterates over the effects of a FILL, inside the listener. Only `whole` is given; the rest is
 * zeroed. */
struct effect_fill {
    struct effect whole; /* the FILL, borrowed as it is */
    enum { EFFECT_FILL_CREATE, EFFECT_FILL_EXPIRE, EFFECT_FILL_MEMBERS } next;
    /* The state of the key's kind, zeroed at first. */
    bool has_begun;
    bool is_reverse;
    uint32_t left; /* members */
    struct board_cursor cursor;
    bool has_values, has_tags_left; /* of the board; of the member, which is this one */
    struct bytes member;
    char rooms[2][NAME_TEXT_ROOM]; /* for its text, and that of the member before */
    char values[TAG_VALUES_PACKED_MAX];
    const void *at; /* of other kinds: the next member */
};
/* false: no effects left. The member of an effect stays until the one behind the next PUT. */
MUST_CHECK bool effect_fill_next(struct effect_fill *fill, struct effect *effect);

#endif
