/* A walk over every key of a registry, in bounded steps between which anything may change. Used
 * to write a snapshot while commands run.
 *
 *     registry_walk_begin(registry);
 *     while (registry_walk_next(registry, entries, 1000, &piece))
 *         write the entries; let commands run
 *     registry_walk_end(registry);
 *
 * Keys are walked one after another, boards from their best member to their last. A key is ahead of
 * the walk, open, or done, and effect listeners (skiplist/keyspace/effect.h) can ask which: changes
 * to keys ahead need not be recorded, because the walk will include them.
 *
 *     CREATE, FILL   new keys are done at once
 *     RENAME         a key keeps its state; the walk continues in the open board
 *     COPY           a copy of a done key is done, any other is ahead
 *
 * What was returned of the open board, with the changes of it (registry_walk_trim), is at all times its first entries as
 * they are then, in their order: so what is written down as it comes gives the board, and nothing is met twice.
 *
 * Hashes are walked from their last field to the first, in pieces of limited bytes. Every field that
 * is there is returned at least once, with the value it then has, as struct hash_pair. Likewise a board's notes, behind
 * members and perhaps before others: a NOTE that takes one away may be of a member that has none yet.
 *
 * There is one walk at a time. Only changes on the open board cost more. */
#ifndef SKIPLIST_REGISTRY_WALK_H
#define SKIPLIST_REGISTRY_WALK_H

#include "skiplist/keyspace/effect.h"

struct registry_walk_piece {
    const struct registry_key *key;
    uint32_t count; /* entries; an empty value is one piece with 0 entries */
    uint32_t rank;  /* of the first one, on a board: its tags are those of tags_at */
    bool is_notes;  /* of a board: its entries are notes, as struct hash_pair */
    bool is_first;  /* the first piece of this key */
    bool is_last;   /* the last piece of this key */
};

/* Start: all keys are ahead. */
void registry_walk_begin(struct registry *registry);
/* The next entries (at most entries_max, which is at least 1), borrowed until the next change, with
 * room for so many of any kind: those of a board are struct board_stored, in rank order; of a hash
 * struct hash_pair. false: all
 * keys are done. */
MUST_CHECK bool registry_walk_next(struct registry *registry, void *entries, uint32_t entries_max,
                                   struct registry_walk_piece *piece);
/* End or abandon the walk. */
void registry_walk_end(struct registry *registry);

/* Inside an effect listener: what an effect changes of what has been returned, the first entries of the open board
 * among it. false: nothing, as the walk will meet it.
 *
 *     a b c | d e f     PUT of d before the bar: PUT, has_come    PUT of b behind it: TAKE    CUT of b to e: of b and c
 */
struct registry_walk_change {
    struct effect effect;
    bool has_come; /* a PUT: the member was not among them, and its tags are new there, too */
};
MUST_CHECK bool registry_walk_trim(const struct registry *registry, const struct effect *effect,
                                   struct registry_walk_change *change);

#endif
