/* Private to the skiplist: its blocks, their memory, and the table of nodes.
 *
 *     id -> segments[id / 4096][id % 4096] -> { block, parent, position, level }
 *
 * skiplist.c finds, inserts, removes and checks, detach.c removes in bulk. Memory allocated here is counted in the list's memory_size. */
#ifndef SKIPLIST_NODES_H
#define SKIPLIST_NODES_H

#include "skiplist/index.h"
#include "skiplist/skiplist.h"

static inline struct index_block *nodes_index(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

static inline struct block *nodes_leaf(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

static inline struct block_links *nodes_links(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

/* An empty index block for this level, with the rows of the list. NULL: no memory. */
MUST_CHECK struct index_block *nodes_create_index(struct skiplist *list, uint32_t capacity,
                                                  unsigned level);
/* Add an existing leaf, which may be NULL, to memory_size; returns it. */
struct block *nodes_adopt_leaf(struct skiplist *list, struct block *block);
/* Bytes of a leaf and its long members. */
size_t nodes_leaf_memory_size(const struct block *block);
/* Free a block of any level, but not a leaf's long members. */
void nodes_destroy(struct skiplist *list, void *block);
/* Move the leaf's entries to another block, which has room for them. */
void nodes_replace_leaf(struct skiplist *list, uint32_t id, struct block *block);
/* The same of an index block, with its sheet. */
void nodes_replace_index(struct skiplist *list, uint32_t id, struct index_block *index);
/* Free the long members among count entries of a leaf, from index on. */
void nodes_free_long(struct skiplist *list, const struct block *block, uint32_t index,
                     uint32_t count);

/* Table size needed for count more ids, after using up the free ids. */
static inline uint64_t nodes_needed(const struct skiplist *list, uint32_t count) {
    return count <= list->free_count ? 0 : (uint64_t)list->node_end + count - list->free_count;
}

/* Make room for count more ids. false: no memory. */
MUST_CHECK bool nodes_reserve(struct skiplist *list, uint32_t count);
/* Assign an id to a block; there must be room. The node has no parent yet. */
uint32_t nodes_take(struct skiplist *list, void *block, unsigned level);
void nodes_give_back(struct skiplist *list, uint32_t id);
/* Bytes of the table and its segments. */
size_t nodes_memory_size(const struct skiplist *list);
/* Free the last segment, but never the first. */
void nodes_free_segment(struct skiplist *list);
/* Free the table and all segments. */
void nodes_free(struct skiplist *list);
/* Compact the ids in use after many have been freed, and free the nodes beyond: at most one block
 * per step gets a new id. Requires that nothing is detached. Never fails.
 *
 * true: another step will make progress. Once it returns false, apart from a few spare ones fewer
 * than half of the ids are free. */
bool nodes_compact_step(struct skiplist *list, struct skiplist_owner owner);

/* Update the position of the children from position on. */
void nodes_renumber(struct skiplist *list, uint32_t id, uint32_t position);
/* Unlink the blocks from first to last from the linked list of their level. */
void nodes_unlink(struct skiplist *list, uint32_t first, uint32_t last);

/* Add delta to the spans on all levels above a block. */
static inline void nodes_add_to_spans(struct skiplist *list, uint32_t id, uint32_t delta) {
    for (uint32_t parent; (parent = skiplist_node(list, id)->parent) != SKIPLIST_NONE;
         id = parent) {
        struct index_block *index = nodes_index(list, parent);
        index_add_span(index, skiplist_node(list, id)->position, delta);
    }
    list->count += delta;
}

/* ---- dense ranks: dense.c, of lists with is_dense ---- */

/* How many entries of a leaf are the first of their score? Is its first one? */
uint32_t dense_count_leaf(const struct skiplist *list, uint32_t leaf);
bool dense_begins(const struct skiplist *list, uint32_t leaf);
/* count entries of a leaf, which are there, have come (by 1), or are about to go (by 0U - 1). */
void dense_note(struct skiplist *list, struct skiplist_place place, uint32_t count, uint32_t by);
/* Add delta to the firsts on all levels above a block. */
void dense_add_above(struct skiplist *list, uint32_t id, uint32_t delta);

/* count entries of a leaf, which are there, are about to go: of a list with has_more. */
void skiplist_note_go(struct skiplist *list, struct skiplist_place place, uint32_t count);

/* ---- rebalancing, of skiplist.c for detach.c ---- */

/* Remove the root while it has a single child. The list must have a root. */
void skiplist_shrink_root(struct skiplist *list);
/* Merge an index block, not the root, with a sibling under the same parent, if one has room. */
void skiplist_merge_index(struct skiplist *list, uint32_t id);
/* Free the memory that a leaf does not need, and merge it with a neighbour if it has become small.
 * Without memory or a suitable neighbour the leaf is left as it is. */
void skiplist_settle_leaf(struct skiplist *list, uint32_t id, struct skiplist_owner owner);

#endif
