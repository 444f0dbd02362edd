/* A copy of one key's value, made in bounded steps between which anything may change.
 *
 *     registry_mirror_begin(&mirror, registry, key);
 *     while (registry_mirror_step(&mirror, 100) == REGISTRY_MIRROR_MORE)
 *         let commands run
 *     registry_mirror_copy_to(&mirror, ...) or registry_mirror_end(&mirror);
 *
 * The copy is at all times equal to the first entries of the original, in the order in which they
 * arrived: changes of those are repeated in the copy as they happen, all others are met later. So the
 * whole copy is the original as it is at that moment, to the order of equal keys.
 *
 *     original   a b c | d e f        PUT of b: taken from the copy, and put again if it stays before the bar
 *     copy       a b c | */
#ifndef SKIPLIST_REGISTRY_MIRROR_H
#define SKIPLIST_REGISTRY_MIRROR_H

#include "skiplist/block.h"
#include "skiplist/keyspace/effect.h"

/* Entries of a step of some microseconds: those of a board are two leaves then, and have room. */
enum { REGISTRY_MIRROR_STEP = BLOCK_LOADED_MIN + BLOCK_LOADED_MAX };

enum registry_mirror_status {
    REGISTRY_MIRROR_MORE,
    REGISTRY_MIRROR_WHOLE,
    REGISTRY_MIRROR_LOST, /* the key is removed, renamed or has other options, or a hash has lost a field */
    REGISTRY_MIRROR_OUT_OF_MEMORY,
};

/* A member of the original has changed. false: it cannot be noted, and the mirror is lost. */
typedef bool registry_mirror_changed(void *context, struct bytes member);

struct registry_mirror {
    struct registry *registry;
    const struct registry_key *key; /* the original */
    struct registry_key *copy;      /* in no database; NULL: none */
    struct effect_listener listener;
    uint32_t copied_count; /* entries */
    uint64_t last_key;     /* of a board: that of the entry copied last */
    uint32_t notes_left;   /* the notes at indexes below it are to be copied */
    bool has_notes_begun;
    enum registry_mirror_status status;
    registry_mirror_changed *changed; /* of one that is frozen, or only watches; else NULL */
    void *context;
};

/* Add the listener: call between commands, or within one that has reported all its changes. false: no
 * memory. */
MUST_CHECK bool registry_mirror_begin(struct registry_mirror *mirror, struct registry *registry,
                                      const struct registry_key *key);
/* Of a board, without its notes: to read the copy, and neither for copy_to nor for give. */
MUST_CHECK bool registry_mirror_begin_members(struct registry_mirror *mirror,
                                              struct registry *registry,
                                              const struct registry_key *key);
/* Of a board: nothing is copied, and `changed` is told which members of the original change, until that is LOST. */
MUST_CHECK bool registry_mirror_watch(struct registry_mirror *mirror, struct registry *registry,
                                      const struct registry_key *key,
                                      registry_mirror_changed *changed, void *context);
/* Copy up to entries_max more entries. WHOLE stays until an entry is added. After LOST and OUT_OF_MEMORY
 * only the end is left. */
enum registry_mirror_status registry_mirror_step(struct registry_mirror *mirror,
                                                 uint32_t entries_max);
/* Of a board: the copy, which is whole, stays as it is from now on, and `changed` is told which members of the original
 * change. It may still be LOST. */
void registry_mirror_freeze(struct registry_mirror *mirror, registry_mirror_changed *changed,
                            void *context);
/* As registry_copy of the original, with a copy that is whole. The mirror is to be ended afterwards. */
MUST_CHECK enum registry_status registry_mirror_copy_to(struct registry_mirror *mirror,
                                                        uint32_t to_database, struct bytes to_name,
                                                        int64_t now_ms);
/* Move a copy of a board that is whole to another key, which is in no database, and remove the listener. */
void registry_mirror_give(struct registry_mirror *mirror, struct registry_key *to);
/* Remove the listener; what is left of the copy is freed by registry_free_step. */
void registry_mirror_end(struct registry_mirror *mirror);

#endif
