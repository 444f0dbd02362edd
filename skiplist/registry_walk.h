/* A walk over every board of a registry, in bounded steps between which anything may change: how a
 * snapshot is written beside running commands.
 *
 *     registry_walk_begin(registry);
 *     while (registry_walk_next(registry, entries, 1000, &piece))
 *         write down what it gave; let commands run
 *     registry_walk_end(registry);
 *
 * Board after board, each from its best member to its last. A key is ahead of the walk, open, or
 * done, and whoever hears effects (skiplist/effect.h) asks which: what is ahead needs no writing
 * down, since the walk will come to it.
 *
 *     CREATE, FILL   keys that come to be are done at once
 *     RENAME         a key stays what it was; the walk goes on in the open board under its new name
 *     COPY           of what is done is done, of all others ahead
 *
 * Within the open board every member that no effect has touched since the board's first piece comes
 * once, in the right order. One that was touched may come once, twice or never: its last effect
 * says where it is.
 *
 * There is one walk at a time. Changes pay for it when they are on the open board. */
#ifndef SKIPLIST_REGISTRY_WALK_H
#define SKIPLIST_REGISTRY_WALK_H

#include "skiplist/registry.h"

struct registry_walk_piece {
    const struct registry_key *key;
    uint32_t count; /* entries; an empty board is one piece without any */
    bool is_first;  /* of this board */
    bool is_last;   /* the board is done */
};

enum registry_walk_state {
    REGISTRY_WALK_AHEAD,
    REGISTRY_WALK_OPEN,
    REGISTRY_WALK_DONE, /* or there is no walk */
};

/* All keys are ahead. */
void registry_walk_begin(struct registry *registry);
/* The next entries (entries_max at the most, 1 at least), in rank order, borrowed until the next
 * change. false: every board is done. */
MUST_CHECK bool registry_walk_next(struct registry *registry, struct board_entry *entries,
                                   uint32_t entries_max, struct registry_walk_piece *piece);
/* The walk is over, or given up. */
void registry_walk_end(struct registry *registry);

/* Where the walk is with a key, while an effect is heard too: of one that goes, where it was. */
enum registry_walk_state registry_walk_state(const struct registry *registry,
                                             const struct registry_key *key);
/* The open board, if there is one, begins anew at its first member, with a piece that is not called
 * the first again: it is still open. Whoever hears a CUT may do that too, before its members go. */
void registry_walk_reopen(struct registry *registry);

#endif
