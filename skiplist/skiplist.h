/* A span-indexed skiplist of blocks: entries in rank order, found by rank or by key.
 *
 *     level 2   [ .....64 ........................70 ]
 *                    |                            |
 *     level 1   [ 40     24 ] <-> [ 33         20     17 ]      spans: entries below
 *                 |       |         |           |      |
 *     level 0   [leaf]<->[leaf]<->[leaf]  <-> [leaf]<->[leaf]
 *
 * Level 0 is a linked list of leaf blocks (skiplist/block.h), every level above a linked list of
 * index blocks of (key, span, child), and every block knows its parent. Heights come from
 * splitting full blocks, not from tossing coins: no sequence of keys makes it slow. Rank is the
 * place in the leaf plus the spans to the left, level by level upwards, without comparing a key.
 *
 * The key that leads to a child is a separator: the last key of the child to the left is not below
 * it, and the first key of the child itself not above. Removals keep that true, so they never
 * change a separator.
 *
 * Blocks have 32-bit ids. A table of nodes leads from an id to the block and to its parent, so
 * that both can be fetched at the same time. An insertion is reserved first, which gets all the
 * memory it needs; afterwards nothing can fail.
 *
 * Nothing here hashes members; the owner is told when entries come to lie in another block. */
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
    void *block;       /* struct block on level 0, an index block above; NULL: the id is free */
    uint32_t parent;   /* SKIPLIST_NONE: the root; of a free id: the next free one */
    uint16_t position; /* among the parent's children */
    uint16_t level;
};

struct skiplist {
    /* The nodes, SKIPLIST_SEGMENT_NODES in each segment: a table that grew in one piece would have
     * to be copied. A small list has one segment, which grows; a list of one block has its node
     * inside. */
    struct skiplist_node **segments;     /* &first_segment, or a table on the heap */
    struct skiplist_node *first_segment; /* &first_node, or on the heap */
    struct skiplist_node first_node;
    uint32_t node_capacity;
    uint32_t node_end;   /* ids below have been in use */
    uint32_t free_first; /* ids given back, a chain through parent */
    uint32_t free_count;
    uint32_t root;
    uint32_t first; /* leaf */
    uint32_t last;  /* leaf */
    uint32_t count; /* entries */
    size_t memory_size;
    uint32_t dead;  /* the first of the subtrees that were detached; SKIPLIST_NONE: there is none */
    bool is_latest; /* a newcomer stands before its equals, not behind them */
};

/* A place between entries, or the entry behind it. */
struct skiplist_place {
    uint32_t leaf;
    uint32_t index;
};

/* What an insertion has reserved. */
struct skiplist_plan {
    struct skiplist_place place;
    uint8_t change;           /* enum plan_change in skiplist.c */
    uint8_t index_count;      /* spare index blocks */
    struct block *new_block;  /* NULL: the leaf has room */
    struct block *left_block; /* a split: for the half that stays */
    void *indexes[SKIPLIST_LEVELS_MAX];
};

/* count entries, which begin at index in block now, had id from and have id to. */
typedef void skiplist_moved(void *owner, const struct block *block, uint32_t index, uint32_t count,
                            uint32_t from, uint32_t to);
struct skiplist_owner {
    skiplist_moved *moved;
    void *owner;
};

/* The list must stay where it is in memory. Without entries it holds no memory. */
void skiplist_init(struct skiplist *list, bool is_latest);
/* The same with one leaf, whose id is 0 then; NULL: none. It goes over to the list. */
void skiplist_init_leaf(struct skiplist *list, bool is_latest, struct block *leaf);
/* Take its leaf from a list that has but one, or has none: NULL. The list then holds no memory and
 * is as after skiplist_init. */
struct block *skiplist_take_leaf(struct skiplist *list);
/* The leaf of a list made by skiplist_init_leaf that has not got another one; NULL: it is empty. */
struct block *skiplist_only_leaf(const struct skiplist *list);
/* Frees everything, long members too; the list is then as after skiplist_init. */
void skiplist_deinit(struct skiplist *list);
/* The same in steps of about work_max entries; true when all is gone. In between nothing else may
 * be done with the list. */
MUST_CHECK bool skiplist_deinit_step(struct skiplist *list, uint32_t work_max);
/* Make to (just initialised) a copy, with the same ids, but without what is dead. false: no memory;
 * to is then empty. */
MUST_CHECK bool skiplist_copy(const struct skiplist *list, struct skiplist *to);

/* The node of an id below node_end. */
static inline struct skiplist_node *skiplist_node(const struct skiplist *list, uint32_t id) {
    return &list->segments[id >> SKIPLIST_SEGMENT_BITS][id & (SKIPLIST_SEGMENT_NODES - 1)];
}

/* The leaf with this id; NULL when there is none, whatever id is. */
static inline const struct block *skiplist_leaf(const struct skiplist *list, uint32_t id) {
    if (id >= list->node_end)
        return NULL;
    const struct skiplist_node *node = skiplist_node(list, id);
    return node->level == 0 ? (const struct block *)node->block : NULL;
}

/* Where an entry with this key belongs (a list without entries: leaf SKIPLIST_NONE). */
struct skiplist_place skiplist_place_for(const struct skiplist *list, uint64_t key);
/* The place behind all keys above key, or (or_equal) behind all that are not below it. */
struct skiplist_place skiplist_place_above(const struct skiplist *list, uint64_t key,
                                           bool or_equal);
/* The entry at a rank below count. */
struct skiplist_place skiplist_at(const struct skiplist *list, uint32_t rank);
/* Entries before place. */
uint32_t skiplist_rank(const struct skiplist *list, struct skiplist_place place);

/* Get all the memory that an insertion of an entry of this len at place needs. false: there is
 * none, and nothing changed. */
MUST_CHECK bool skiplist_reserve(struct skiplist *list, struct skiplist_place place, uint8_t len,
                                 struct skiplist_plan *plan);
/* Will the insertion make another leaf? */
bool skiplist_adds_leaf(const struct skiplist_plan *plan);
/* Ids will all be below this then. */
uint32_t skiplist_id_end(const struct skiplist *list, const struct skiplist_plan *plan);
/* Bytes by which the table of nodes grows at the most for count more blocks; 0 as long as there
 * is room. */
size_t skiplist_growth_size(const struct skiplist *list, uint32_t count);
/* Give back what was reserved. */
void skiplist_unreserve(struct skiplist *list, struct skiplist_plan *plan);
/* Insert the reserved entry; returns the leaf where it is. A long member's piece goes over to the
 * list. Nothing may have changed since the reservation. */
uint32_t skiplist_insert(struct skiplist *list, struct skiplist_plan *plan,
                         const struct block_entry *entry, struct skiplist_owner owner);

/* Put count entries (1 .. BLOCK_ENTRIES_MAX, BLOCK_HEAP_MAX heap bytes at the most), in order, into
 * a leaf of their own behind all others; their keys are not above any key of the list. Long
 * members' pieces go over to the list. false: no memory, and nothing changed. */
MUST_CHECK bool skiplist_append(struct skiplist *list, const struct block_entry *entries,
                                uint32_t count);

/* Remove count entries of one leaf and free their long members; with keeps_long those go over to
 * the caller. Never fails. */
void skiplist_remove(struct skiplist *list, struct skiplist_place place, uint32_t count,
                     bool keeps_long, struct skiplist_owner owner);
/* Many at once: whole leaves are detached, in time that does not depend on how many they are, and
 * freed later. Until then they are dead: not in the list, but their ids stay in use and
 * skiplist_leaf leads to them. Nothing here fails or needs memory.
 *
 *     skiplist_cut       what the range has of leaves that keep other entries, at either end
 *     skiplist_detach    the leaves in between
 *     skiplist_join      put the list in order again; before that nothing else may be done with it
 *
 *     while ((id = skiplist_dead_leaf(list)) != SKIPLIST_NONE) {
 *         forget the leaf's entries;
 *         skiplist_free_dead_leaf(list);
 *     } */

/* Remove entries of one leaf, which keeps others, and free their long members. */
void skiplist_cut(struct skiplist *list, struct skiplist_place place, uint32_t count);
/* Detach the leaves with count entries (1 at least) from rank on, where the first of them begins;
 * the last one ends with the range. */
void skiplist_detach(struct skiplist *list, uint32_t rank, uint32_t count);
/* Merge what has become small where rank is now the first entry behind those removed. */
void skiplist_join(struct skiplist *list, uint32_t rank, struct skiplist_owner owner);

static inline bool skiplist_has_dead(const struct skiplist *list) {
    return list->dead != SKIPLIST_NONE;
}
/* Is the leaf with this id, which is in use, in the list? Without anything dead it is. */
bool skiplist_is_alive(const struct skiplist *list, uint32_t id);
/* The leaf to be freed next, SKIPLIST_NONE when nothing is dead any more. It stays as it is until
 * it is freed. On the way at most one index block per level is freed. */
uint32_t skiplist_dead_leaf(struct skiplist *list);
/* Free the leaf that skiplist_dead_leaf gave, with its long members; its id may then be used
 * again. */
void skiplist_free_dead_leaf(struct skiplist *list);
/* Entries that are dead, by counting them. */
uint64_t skiplist_count_dead(const struct skiplist *list);

/* Move an entry inside its leaf before what is at index to, with another key that belongs there. */
void skiplist_shift(struct skiplist *list, struct skiplist_place place, uint32_t to, uint64_t key);

/* Fetch the lines in which a lookup searches this leaf, and those that its rank takes. */
void skiplist_prefetch_leaf(const struct skiplist *list, uint32_t id);
/* Search the leaf and fetch the lines of the entry; for a change all that will be moved. false: it
 * is not there. *index: where most likely it is. */
MUST_CHECK bool skiplist_prefetch_entry(const struct skiplist *list, uint32_t id, uint8_t tag,
                                        size_t member_size, bool is_change, uint32_t *index);
/* Fetch the leaf where this key belongs. */
void skiplist_prefetch_place(const struct skiplist *list, uint64_t key);

/* The same for many keys at a time, in four steps, each to be taken for all of them before the
 * next: what one step fetches the next one reads. The levels above the lowest index blocks are few
 * enough to be in the cache. Each returns the id to go on with, which may be old by then.
 *
 *     way        down to the lowest index block, fetch its node
 *     way_index  fetch its fences and spans
 *     way_leaf   find the leaf, fetch its first line
 *     way_end    find the place in the leaf, fetch what an insertion there moves */
uint32_t skiplist_prefetch_way(const struct skiplist *list, uint64_t key);
void skiplist_prefetch_way_index(const struct skiplist *list, uint32_t id);
uint32_t skiplist_prefetch_way_leaf(const struct skiplist *list, uint32_t id, uint64_t key);
/* way_leaf in finer steps, none of which waits for what it has asked for itself:
 *
 *     way_fences  fetch the part of the index block's keys and children where the leaf is
 *     way_child   find the leaf, fetch its node
 *     way_line    fetch its first line
 *     way_keys    fetch its keys */
void skiplist_prefetch_way_fences(const struct skiplist *list, uint32_t id, uint64_t key);
uint32_t skiplist_prefetch_way_child(const struct skiplist *list, uint32_t id, uint64_t key);
void skiplist_prefetch_way_line(const struct skiplist *list, uint32_t id);
void skiplist_prefetch_way_keys(const struct skiplist *list, uint32_t id);
void skiplist_prefetch_way_end(const struct skiplist *list, uint32_t id, uint64_t key);

/* Check all invariants. reason: the first that does not hold. */
MUST_CHECK bool skiplist_validate(const struct skiplist *list, const char **reason);

#endif
