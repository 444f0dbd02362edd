/* Private to the skiplist: rebalancing after entries have been removed. */
#ifndef SKIPLIST_REMOVAL_H
#define SKIPLIST_REMOVAL_H

#include "skiplist/skiplist_types.h"

/* Remove the root while it has a single child. The list must have a root. */
void removal_shrink_root(struct skiplist *list);
/* Merge an index block, not the root, with a sibling under the same parent, if one has room. */
void removal_merge_index(struct skiplist *list, uint32_t id);
/* Free the memory that a leaf does not need, and merge it with a neighbour if it has become small.
 * Without memory or a suitable neighbour the leaf is left as it is. */
void removal_settle_leaf(struct skiplist *list, uint32_t id, struct skiplist_owner owner);

#endif
