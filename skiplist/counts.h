/* Keeping the counts of index blocks (skiplist/tag_counts.h) true while entries and blocks come, go and move.
 *
 * Counts may always be missing: without memory they are dropped, and whoever reads counts anew what is missing, within
 * limits, or goes by the children and their sheets. Of an index block the numbers of single children may be unknown. */
#ifndef SKIPLIST_COUNTS_H
#define SKIPLIST_COUNTS_H

#include "skiplist/sheet.h"

/* Entries that one call of a reader may count anew, for those that come after it: about a millisecond. */
enum { COUNTS_READER_WORK = 128 << 10 };

/* What is counted of an index block above level 1. Where it is not known it is counted, which takes from *work_left,
 * in entries. NULL: more than is left, or no memory. */
struct tag_counts *counts_of(const struct skiplist *list, uint32_t id, uint32_t *work_left);
/* Count what its numbers of this child are; counts_know_child: unless they are known. The same. */
MUST_CHECK bool counts_count_child(const struct skiplist *list, uint32_t id,
                                   struct tag_counts *counts, uint32_t child, uint32_t *work_left);
MUST_CHECK static inline bool counts_know_child(const struct skiplist *list, uint32_t id,
                                                struct tag_counts *counts, uint32_t child,
                                                uint32_t *work_left) {
    return (counts->unknown >> child & 1) == 0 ||
           counts_count_child(list, id, counts, child, work_left);
}

/* Begin to count what is above a leaf, while there is little to count. */
void counts_begin(const struct skiplist *list, uint32_t leaf);
/* Add entries (as uint32_t: 0U - n is n fewer) to all counts above a leaf, before its sheet and the spans change. */
void counts_add_above(const struct skiplist *list, uint32_t leaf, uint32_t code, uint32_t more);

/* Start the cache misses of counts_add_above, which is going to be called. */
void counts_prefetch(const struct skiplist *list, uint32_t leaf, uint32_t code);

/* An index block above level 1 is being split: `at` children stay. The one for whose sake it is done, which is in
 * neither yet, goes right, or left. */
void counts_split(struct skiplist *list, uint32_t left, struct index_block *right, uint32_t at,
                  bool goes_right);
/* The right one's children come behind those of the left one. */
void counts_merge(struct tags *tags, struct index_block *left, struct index_block *right);
/* A child has come to an index block; it has taken entries from its left neighbour. */
void counts_put_child(struct skiplist *list, uint32_t id, uint32_t position);
/* Children have gone, with what was below them. */
void counts_remove_children(struct skiplist *list, uint32_t id, uint32_t position, uint32_t count);
/* What the parent knows of this block, if anything, is not so any more. */
void counts_forget_in_parent(struct skiplist *list, uint32_t id);
/* Forget the counts of an index block above level 1; of a block and of all above it. */
void counts_forget(struct tags *tags, struct index_block *index);
void counts_drop(struct skiplist *list, uint32_t id);

/* Count anew, and compare. NULL: all is right, or what is wrong. */
const char *counts_check(const struct skiplist *list, uint32_t id);

#endif
