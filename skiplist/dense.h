/* Dense ranks: how many different scores are above an entry's.
 *
 *     key       900    700    700    120        a score is the key without its time: key >> score_shift
 *     first      *      *             *         another score than the entry before it
 *     dense      0      1      1      2         first entries up to it, less one
 *
 * Two keys side by side tell whether an entry is first, so leaves store nothing. The index blocks of a list with
 * is_dense have a row of firsts beside their spans: of each child, how many entries below it are first. A list of one
 * leaf has no row, and counts its keys.
 *
 * skiplist.c and detach.c call this where entries come and go; their own code moves firsts with spans. Nothing here
 * fails but dense_begin. */
#ifndef SKIPLIST_DENSE_H
#define SKIPLIST_DENSE_H

#include "skiplist/nodes.h"

/* Count from now on, in work for all leaves; false: no memory, and it is as before. */
MUST_CHECK bool dense_begin(struct skiplist *list, unsigned score_shift);
/* Count no longer. Rows go with the blocks that they are in. */
void dense_end(struct skiplist *list);

/* The dense rank of an entry that is there. */
uint32_t dense_rank(const struct skiplist *list, struct skiplist_place place);
/* How many entries of a leaf are first. */
uint32_t dense_count_leaf(const struct skiplist *list, uint32_t leaf);
/* Is the leaf's first entry the first of its score? */
bool dense_begins(const struct skiplist *list, uint32_t leaf);

/* count entries of a leaf, which are there, have come (by 1), or are about to go (by 0U - 1). */
void dense_note(struct skiplist *list, struct skiplist_place place, uint32_t count, uint32_t by);
/* Add delta to the firsts on all levels above a block. */
void dense_add_above(struct skiplist *list, uint32_t id, uint32_t delta);

#endif
