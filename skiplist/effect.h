/* Effects: what a registry's changes amount to, as final values and not as commands.
 *
 *     ZADD daily 700 ann  ---->  CREATE daily, with these rules      (if it was not there)
 *                                PUT daily ann 0x00000341...
 *
 * Whoever listens hears of every change; whoever applies what was heard, in the same order, to a
 * registry that began as this one did, has the same keys, boards, members, order, rules and
 * expiries. Nothing in an effect depends on a clock: what expires or begins anew by its time is
 * told when it is done.
 *
 *     PUT      a member was put or moved: it stands behind its equals (LATEST: before)
 *     TAKE     a member was taken off
 *     CUT      count members from rank on go
 *     CREATE   an empty board came to be
 *     REMOVE   a key went, with its board
 *     FLUSH    a database was emptied
 *     RENAME   a key got another name or database, and may behave otherwise from then on
 *     COPY     the same, and the old one stays
 *     EXPIRE   a key's expiry was set or taken away
 *     RULES    an empty board behaves otherwise
 *     FILL     a key came to be with all that is on its board
 *
 * What stands at a destination is told as REMOVE before. A board that came to be by a write is told
 * (CREATE) just before its first member, and never if it is taken back. A FILL is told by its key
 * alone, since it may be long: who writes it down writes CREATE and every member as a PUT, in rank
 * order (LATEST: in reverse). */
#ifndef SKIPLIST_EFFECT_H
#define SKIPLIST_EFFECT_H

#include "skiplist/registry.h"

enum effect_kind {
    EFFECT_PUT,
    EFFECT_TAKE,
    EFFECT_CUT,
    EFFECT_CREATE,
    EFFECT_REMOVE,
    EFFECT_FLUSH,
    EFFECT_RENAME,
    EFFECT_COPY,
    EFFECT_EXPIRE,
    EFFECT_RULES,
    EFFECT_FILL,
};

/* Everything that it points at is borrowed for the call. */
struct effect {
    enum effect_kind kind;
    uint32_t database;
    uint32_t to_database;      /* RENAME, COPY */
    uint32_t rank, count;      /* CUT */
    struct bytes name;         /* of the key that it is about; RENAME, COPY: of the old one */
    struct bytes to_name;      /* RENAME, COPY */
    struct bytes member;       /* PUT, TAKE */
    uint64_t member_key;       /* PUT */
    int64_t expire_at_ms;      /* EXPIRE, RENAME, COPY, FILL; or REGISTRY_NO_EXPIRY */
    const struct rules *rules; /* CREATE, RULES, RENAME, COPY, FILL: how the board behaves now */
    /* When told: the key. RENAME, COPY: the new one; REMOVE: the one that goes. FLUSH, and effects
     * to be applied: NULL. */
    const struct registry_key *key;
};

/* Hears of effects, CUT before its members go, all others once the change is made. It must not
 * change the registry. */
typedef void registry_hear(void *context, const struct effect *effect);
/* Tell effects from now on; NULL: tell nobody. Between commands. */
void registry_set_effects(struct registry *registry, registry_hear *hear, void *context);

enum effect_status {
    EFFECT_OK = 0,
    EFFECT_OUT_OF_MEMORY,
    EFFECT_IMPOSSIBLE, /* it does not fit what is there, as PUT on a key that is not */
};

/* Apply effects[0 .. count-1] in order, while nobody listens. Nothing expires, begins anew or is
 * pushed out by a CAP but what the effects say. FILL cannot be applied. What goes is buried:
 * registry_free_step.
 *
 * *applied: how many were. Errors: EFFECT_OUT_OF_MEMORY, EFFECT_IMPOSSIBLE; the effect behind those
 * has changed nothing. */
MUST_CHECK enum effect_status effect_apply(struct registry *registry, const struct effect *effects,
                                           uint32_t count, uint32_t *applied);

#endif
