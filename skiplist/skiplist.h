/* A span-indexed skiplist of blocks: entries in rank order, found by rank or by key.
 *
 *     level 2   [ .....64 ........................70 ]
 *                    |                            |
 *     level 1   [ 40     24 ] <-> [ 33         20     17 ]      spans: entries below
 *                 |       |         |           |      |
 *     level 0   [leaf]<->[leaf]<->[leaf]  <-> [leaf]<->[leaf]
 *
 * Level 0 is a linked list of leaf blocks (skiplist/block.h), every higher level a linked list of
 * index blocks of (key, span, child), and every block has a parent id. The height results from
 * splitting full blocks, not from random levels: no sequence of keys makes the list slow. A rank is
 * the position in the leaf plus the spans to the left, level by level upwards, without comparing a
 * key.
 *
 * The key that leads to a child is a separator: the last key of the child to the left is not below
 * it, and the first key of the child itself is not above it. Removals preserve this, so they never
 * change a separator.
 *
 * Blocks have 32-bit ids. A table of nodes maps an id to the block and to its parent, so that both
 * can be fetched at the same time. An insertion is first reserved, which allocates all the memory
 * it needs; the insertion itself cannot fail.
 *
 * The skiplist does not hash members. A callback informs the owner when entries move to another
 * block. */
#ifndef SKIPLIST_SKIPLIST_H
#define SKIPLIST_SKIPLIST_H

#include "skiplist/block.h"

enum {
    SKIPLIST_LEVELS_MAX = 32,
#ifdef SKIPLIST_TINY
    SKIPLIST_SEGMENT_BITS = 2,
#else
    SKIPLIST_SEGMENT_BITS = 12,
#endif
    SKIPLIST_SEGMENT_NODES = 1 << SKIPLIST_SEGMENT_BITS,
};
/* No block. */
#define SKIPLIST_NONE UINT32_MAX

struct skiplist_node {
    void *block;     /* struct block on level 0, else an index block; NULL: the id is free */
    uint32_t parent; /* SKIPLIST_NONE: the root; free ids: the next free id */
    union {
        struct {
            uint16_t position; /* among the parent's children */
            uint16_t level;
        };
        uint32_t previous_free; /* for free ids */
    };
};

struct tags;

struct skiplist {
    /* The nodes, in segments of SKIPLIST_SEGMENT_NODES: a single array would have to be copied to
     * grow. A small list has one segment, which grows; the node of a list of one block is inside
     * the struct. */
    struct skiplist_node **segments;     /* &first_segment, or a table on the heap */
    struct skiplist_node *first_segment; /* &first_node, or on the heap */
    struct skiplist_node first_node;
    uint32_t node_capacity;
    uint32_t node_end;   /* ids from here on have never been used */
    uint32_t free_first; /* free ids, a linked list through parent and previous_free */
    uint32_t free_count;
    uint32_t root;
    uint32_t first; /* leaf */
    uint32_t last;  /* leaf */
    uint32_t count; /* entries */
    size_t memory_size;
    uint32_t detached; /* first of the detached subtrees; SKIPLIST_NONE: none */
    bool is_latest;    /* a new entry is placed before equal keys, not behind */
    bool is_small;     /* its only leaf is alone (block_is_full_alone) */
    /* skiplist/dense.c: are the entries that are the first of their score counted, and how many are there? A score is
     * the key without so many bits. */
    bool is_dense : 1;
    bool has_more : 1; /* is_dense, or tags */
    uint8_t score_shift;
    uint32_t firsts;
    struct tags *tags; /* skiplist/sheet.h; NULL: no entry has ever had a value */
};

/* tags may be NULL. */
static inline void skiplist_set_tags(struct skiplist *list, struct tags *tags) {
    list->tags = tags;
    list->has_more = list->is_dense || tags != NULL;
}

/* A position between entries, or the entry behind it. */
struct skiplist_place {
    uint32_t leaf;
    uint32_t index;
};

/* Callback: count entries, now in block from index on, have moved from leaf id `from` to `to`. */
typedef void skiplist_moved(void *owner, const struct block *block, uint32_t index, uint32_t count,
                            uint32_t from, uint32_t to);
struct skiplist_owner {
    skiplist_moved *moved;
    void *owner;
};

/* The node of an id. While the list is empty there is none, and its root is SKIPLIST_NONE. */
static inline struct skiplist_node *skiplist_node(const struct skiplist *list, uint32_t id) {
#ifdef SKIPLIST_TINY
    CHECK(id != UINT32_MAX);
#endif
    return &list->segments[id >> SKIPLIST_SEGMENT_BITS][id & (SKIPLIST_SEGMENT_NODES - 1)];
}

/* What has been reserved for an insertion. */
struct skiplist_plan {
    struct skiplist_place place;
    uint8_t change;           /* enum plan_change in skiplist.c */
    uint8_t index_count;      /* spare index blocks */
    uint8_t index_used;       /* of these, so far */
    struct block *new_block;  /* NULL: the leaf has room */
    struct block *left_block; /* split: for the half that stays */
    void *indexes[SKIPLIST_LEVELS_MAX];
};

/* The list must not be moved in memory. An empty list holds no heap memory. */
void skiplist_init(struct skiplist *list, bool is_latest);
/* The same with one leaf, which gets id 0; NULL: empty. The list takes ownership of the leaf. */
void skiplist_init_leaf(struct skiplist *list, bool is_latest, struct block *leaf);
/* Take the only leaf out of a list, or NULL if it is empty; the caller owns the leaf. The list then
 * holds no memory and is in the state after skiplist_init. */
struct block *skiplist_take_leaf(struct skiplist *list);
/* The leaf of a list made by skiplist_init_leaf that has not gained another one; NULL: empty. */
struct block *skiplist_only_leaf(const struct skiplist *list);
/* Free everything but the struct tags, including long members; the list is then in the state after
 * skiplist_init. */
void skiplist_deinit(struct skiplist *list);
/* The same in steps of about work_max entries; true when done. In between the list may not be used
 * otherwise. */
MUST_CHECK bool skiplist_deinit_step(struct skiplist *list, uint32_t work_max);
/* Make `to` (just initialised, and given tags) a copy with the same ids, without detached leaves. false: no memory;
 * to is then empty. */
MUST_CHECK bool skiplist_copy(const struct skiplist *list, struct skiplist *to);

/* The leaf with this id; NULL if there is none, for any id. */
static inline const struct block *skiplist_leaf(const struct skiplist *list, uint32_t id) {
    if (id >= list->node_end) {
        return NULL;
    }
    const struct skiplist_node *node = skiplist_node(list, id);
    return node->level == 0 ? (const struct block *)node->block : NULL;
}

/* Where to insert an entry with this key (empty list: leaf SKIPLIST_NONE). */
struct skiplist_place skiplist_place_for(const struct skiplist *list, uint64_t key);
/* The block on level_min where key (or_equal: behind its equals) belongs; the root if that is not
 * above level_min. */
uint32_t skiplist_block_for(const struct skiplist *list, uint64_t key, bool or_equal,
                            uint32_t level_min);
/* The place behind all keys above key, or (or_equal) above or equal to it. */
struct skiplist_place skiplist_place_above(const struct skiplist *list, uint64_t key,
                                           bool or_equal);
/* The same of many keys, in any order and of a list that is not empty, with overlapping cache misses. */
enum { SKIPLIST_AT_MAX = 16 };
void skiplist_places_above(const struct skiplist *list, const uint64_t *keys, uint32_t count,
                           bool or_equal, struct skiplist_place *places);
/* The entry at a rank below count. */
struct skiplist_place skiplist_at(const struct skiplist *list, uint32_t rank);
/* Descend to the lowest index block and prefetch its spans: place->leaf is that one, and place->index relative to its
 * first entry. Without index blocks, that of the only leaf. */
void skiplist_begin_place(const struct skiplist *list, uint32_t rank, struct skiplist_place *place);
/* The entries at many ranks, in any order, with overlapping cache misses. */
void skiplist_at_many(const struct skiplist *list, const uint32_t *ranks, uint32_t count,
                      struct skiplist_place *places);
/* Number of entries before place. */
uint32_t skiplist_rank(const struct skiplist *list, struct skiplist_place place);
/* The same before all entries below an index block. */
uint32_t skiplist_rank_of_index(const struct skiplist *list, const struct skiplist_node *node);

/* Count entries that are the first of their score from now on, which takes a look at all leaves; false: no memory, and
 * it is as before. dense_end: count no longer; rows go with the blocks that they are in. */
MUST_CHECK bool dense_begin(struct skiplist *list, unsigned score_shift);
void dense_end(struct skiplist *list);
/* How many scores are better than that of an entry that is there? Of a list that counts, or of one leaf. */
uint32_t dense_rank(const struct skiplist *list, struct skiplist_place place);

/* Allocate all the memory needed to insert an entry of this code at place. false: no memory, nothing
 * changed. */
MUST_CHECK bool skiplist_reserve(struct skiplist *list, struct skiplist_place place, uint8_t code,
                                 struct skiplist_plan *plan);
/* After the insertion all ids will be below this. */
uint32_t skiplist_id_end(const struct skiplist *list, const struct skiplist_plan *plan);
/* Upper bound of the bytes by which the table of nodes grows for count more blocks; 0 while there
 * is room. */
size_t skiplist_growth_size(const struct skiplist *list, uint32_t count);
/* Free what was reserved. */
void skiplist_unreserve(struct skiplist *list, struct skiplist_plan *plan);
/* Insert the reserved entry; returns its leaf. The list takes ownership of a long member's
 * allocation. Nothing may have changed since the reservation. */
uint32_t skiplist_insert(struct skiplist *list, struct skiplist_plan *plan,
                         const struct block_entry *entry, struct skiplist_owner owner);

/* Append count entries (1 .. BLOCK_ENTRIES_MAX, at most BLOCK_HEAP_MAX heap bytes), in order, in a
 * new last leaf; their keys are not above any key of the list. The list takes ownership of long
 * members. false: no memory, nothing changed. */
MUST_CHECK bool skiplist_append(struct skiplist *list, const struct block_entry *entries,
                                uint32_t count);

/* Remove count entries of one leaf and free their long members. Never fails. */
void skiplist_remove(struct skiplist *list, struct skiplist_place place, uint32_t count,
                     struct skiplist_owner owner);
/* Remove an entry, whose member has this heap offset in its leaf, after it was inserted elsewhere with
 * the same bytes: a long member belongs to the new entry. Never fails. */
void skiplist_remove_moved(struct skiplist *list, struct skiplist_place place, uint32_t offset,
                           struct skiplist_owner owner);
/* Bulk removal: whole leaves are detached, in time independent of their number, and freed later.
 * Detached leaves are unreachable, but keep their ids, and skiplist_leaf still returns them.
 * Nothing here fails or allocates.
 *
 *     detach_cut       the leaves at either end of the range that keep other entries
 *     detach_leaves    the leaves in between
 *     detach_join      rebalance; until then no other function may be called
 *
 *     while ((id = detach_next_leaf(list)) != SKIPLIST_NONE) {
 *         remove the leaf's entries from the index;
 *         detach_free_leaf(list);
 *     } */

/* Remove entries of one leaf that keeps others, and free their long members. */
void detach_cut(struct skiplist *list, struct skiplist_place place, uint32_t count);
/* Detach the leaves that hold exactly the count entries (at least 1) from rank on. */
void detach_leaves(struct skiplist *list, uint32_t rank, uint32_t count);
/* Merge blocks that have become small; rank is now the first entry behind the removed ones. */
void detach_join(struct skiplist *list, uint32_t rank, struct skiplist_owner owner);

static inline bool skiplist_has_detached(const struct skiplist *list) {
    return list->detached != SKIPLIST_NONE;
}
/* Is the leaf with this id, which is in use, in the list? Always true if nothing is detached. */
bool skiplist_is_alive(const struct skiplist *list, uint32_t id);
/* Might index_nodes_compact_step have work? Only if nothing is detached. Called on every removal, so
 * the test is rough: it ignores the few ids that may stay spare. */
static inline bool skiplist_may_compact(const struct skiplist *list) {
    return (list->free_count > list->node_end / 2 || list->node_capacity / 4 > list->node_end ||
            list->node_capacity - list->node_end >= 2 * SKIPLIST_SEGMENT_NODES) &&
           !skiplist_has_detached(list);
}
/* The next detached leaf to free, SKIPLIST_NONE if there is none. It is unchanged until it is
 * freed. Frees at most one index block per level on the way. */
uint32_t detach_next_leaf(struct skiplist *list);
/* Free the leaf that detach_next_leaf returned, with its long members; its id may then be
 * reused. */
void detach_free_leaf(struct skiplist *list);
/* Count the detached entries. */
uint64_t detach_count(const struct skiplist *list);

/* Check all invariants. reason: the first violated one. */
MUST_CHECK bool skiplist_validate(const struct skiplist *list, const char **reason);

#endif
