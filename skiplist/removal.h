/* Private to the skiplist: putting a list in order again where entries have been removed. */
#ifndef SKIPLIST_REMOVAL_H
#define SKIPLIST_REMOVAL_H

#include "skiplist/skiplist.h"

/* The root goes while it has one child only. The list has a root. */
void removal_shrink_root(struct skiplist *list);
/* Merge an index block, not the root, with a neighbour under the same parent, if there is one with
 * room. */
void removal_merge_index(struct skiplist *list, uint32_t id);
/* Give back the memory that a leaf does not need, and merge it with a neighbour when it has become
 * small: what there is no memory for, or no neighbour, is left as it is. */
void removal_settle_leaf(struct skiplist *list, uint32_t id, struct skiplist_owner owner);

#endif
