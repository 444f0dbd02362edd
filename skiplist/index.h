/* Private to the skiplist: what is above its leaves, which is index blocks, and the table of nodes; and the memory of
 * all its blocks, which is counted in the list's memory_size. skiplist.c finds, inserts, removes and checks, detach.c
 * removes in bulk.
 *
 * An index block has a few dozen (separator, span, child) in rank order:
 *
 *     +--------+----------------------+-------+----------+------+
 *     | header | fences: every eighth | spans | children | keys |     capacity of each
 *     |  16 B  | key once more        |       |  4 B     | 8 B  |
 *     +--------+----------------------+-------+----------+------+
 *
 * In a list with dense ranks (skiplist/dense.c) a row of firsts, as wide as the spans, is behind these.
 *
 * keys[i] is the separator between children i-1 and i. keys[0] is unused: the separator of the
 * first child is the key that leads to this block. A search reads the fences, about one cache line,
 * and then the eight keys between two of them; a binary search over all keys would read four lines
 * in sequence. A rank query reads spans only. On level 1 a span is the entry count of one leaf and
 * fits in a byte, so all spans together are one line; on higher levels spans are uint32_t.
 *
 * Invariants: fences[i] is keys[INDEX_STRIDE * (i + 1)], or 0 from count on. Keys from count on are
 * 0 up to the next multiple of INDEX_STRIDE (0 is above no key).
 *
 * The table of nodes:
 *
 *     id -> segments[id / 4096][id % 4096] -> { block, parent, position, level } */
#ifndef SKIPLIST_INDEX_H
#define SKIPLIST_INDEX_H

#include "codec/memory.h"
#include "skiplist/skiplist.h"

enum {
#ifdef SKIPLIST_TINY
    INDEX_FANOUT = 4,
    INDEX_FANOUT_FIRST = 2,
    INDEX_STRIDE = 2,
#else
    INDEX_FANOUT = 64,      /* children */
    INDEX_FANOUT_FIRST = 8, /* capacity of a new root */
    INDEX_STRIDE = 8,
#endif
    INDEX_FENCES = INDEX_FANOUT / INDEX_STRIDE - 1,
};

struct sheet;
struct tag_counts;

struct index_block {
    struct block_links links; /* used by skiplist.c */
    uint16_t count;
    uint16_t capacity;   /* a multiple of INDEX_STRIDE */
    uint16_t spans_size; /* with firsts, of both rows */
    bool is_lowest;      /* level 1 */
    bool has_firsts;
    uint64_t fences[INDEX_FENCES];
    /* Used by skiplist/sheet.c, of lists with tags; NULL: none. */
    union {
        struct sheet *sheet;       /* level 1 */
        struct tag_counts *counts; /* above */
    };
};

_Static_assert((int)BLOCK_ENTRIES_MAX <= (int)UINT8_MAX, "a leaf's count fits a byte");

/* An empty index block for this level, with the rows of the list. NULL: no memory. */
MUST_CHECK struct index_block *index_create(struct skiplist *list, uint32_t capacity,
                                            unsigned level);

static inline uint8_t *index_narrow_spans(struct index_block *index) {
    return (uint8_t *)(index + 1);
}

static inline uint32_t *index_wide_spans(struct index_block *index) {
    return (uint32_t *)(void *)(index + 1);
}

static inline uint32_t *index_children(struct index_block *index) {
    return (uint32_t *)(void *)(index_narrow_spans(index) + index->spans_size);
}

static inline uint64_t *index_keys(struct index_block *index) {
    return (uint64_t *)(void *)(index_children(index) + index->capacity);
}

static inline uint32_t index_span(struct index_block *index, uint32_t position) {
    return index->is_lowest ? index_narrow_spans(index)[position]
                            : index_wide_spans(index)[position];
}

static inline void index_set_span(struct index_block *index, uint32_t position, uint32_t span) {
    if (index->is_lowest) {
        index_narrow_spans(index)[position] = (uint8_t)span;
    } else {
        index_wide_spans(index)[position] = span;
    }
}

static inline void index_add_span(struct index_block *index, uint32_t position, uint32_t delta) {
    index_set_span(index, position, index_span(index, position) + delta);
}

/* How many entries below a child are the first of their score. */
static inline void *index_firsts(struct index_block *index) {
    return index_narrow_spans(index) + index->spans_size / 2;
}

static inline uint32_t index_first_count(struct index_block *index, uint32_t position) {
    return index->is_lowest ? ((const uint8_t *)index_firsts(index))[position]
                            : ((const uint32_t *)index_firsts(index))[position];
}

static inline void index_set_firsts(struct index_block *index, uint32_t position, uint32_t firsts) {
    if (index->is_lowest) {
        ((uint8_t *)index_firsts(index))[position] = (uint8_t)firsts;
    } else {
        ((uint32_t *)index_firsts(index))[position] = firsts;
    }
}

static inline void index_add_firsts(struct index_block *index, uint32_t position, uint32_t delta) {
    index_set_firsts(index, position, index_first_count(index, position) + delta);
}

/* Those under the first count children. */
uint32_t index_first_sum(struct index_block *index, uint32_t count);

/* Entries under the first count children: on level 1, on higher levels, and on any level. */
uint32_t index_narrow_sum(struct index_block *index, uint32_t count);
uint32_t index_wide_sum(struct index_block *index, uint32_t count);
uint32_t index_span_sum(struct index_block *index, uint32_t count);

/* Number of fences above limit; the keys to search begin there. */
static inline uint32_t index_fences_above(const struct index_block *index, uint64_t limit) {
    uint32_t above = 0;
#pragma GCC unroll 8 /* two instructions each then, where compilers make a loop of five at -O2 */
    for (int i = 0; i < INDEX_FENCES; i++) {
        above += index->fences[i] > limit;
    }
    return above;
}

/* The last child whose separator is above key, or (or_equal) above or equal to it; the first child
 * if there is none. */
static inline uint32_t index_child_for(struct index_block *index, uint64_t key, bool or_equal) {
    if (or_equal && key == 0) {
        return index->count - 1U;
    }
    /* x >= key is x > key - 1. All comparisons are branch-free: a branch would be mispredicted half
     * the time. */
    uint64_t limit = or_equal ? key - 1 : key;
    uint32_t position = index_fences_above(index, limit) * INDEX_STRIDE;
    const uint64_t *keys = index_keys(index) + position;
    /* Which of the eight children is still unknown, but all are in one line. */
    memory_prefetch(index_children(index) + position);
#pragma GCC unroll 8
    for (int i = 1; i < INDEX_STRIDE; i++) {
        position += keys[i] > limit;
    }
    return position;
}

/* The child that contains the entry at *rank; *rank is then relative to that child. */
uint32_t index_child_at(struct index_block *index, uint32_t *rank);

/* A copy, for this list, of an index block of another. NULL: no memory. */
MUST_CHECK struct index_block *index_copy(struct skiplist *list, const struct index_block *from);

/* Insert a child at position, 0 .. count, without firsts. There must be room. */
void index_insert(struct index_block *index, uint32_t position, uint64_t key, uint32_t span,
                  uint32_t child);
/* Remove count children from position on. */
void index_remove(struct index_block *index, uint32_t position, uint32_t count);
/* Move the children of from, from position on, to the end of to, a block of the same level. There
 * must be room. */
void index_move(struct index_block *to, struct index_block *from, uint32_t position);
/* Change the separator at position, 1 .. count - 1. */
void index_set_key(struct index_block *index, uint32_t position, uint64_t key);

/* Check counts, fences and the keys beyond count. reason: the first violated invariant. */
MUST_CHECK bool index_validate(struct index_block *index, const char **reason);

/* ---- blocks and the table of nodes ---- */

static inline struct index_block *index_at(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

static inline struct block *index_leaf(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

static inline struct block_links *index_links(const struct skiplist *list, uint32_t id) {
    return skiplist_node(list, id)->block;
}

/* Add an existing leaf, which may be NULL, to memory_size; returns it. */
struct block *index_adopt_leaf(struct skiplist *list, struct block *block);
/* Bytes of a leaf and its long members. */
size_t index_leaf_memory_size(const struct block *block);
/* Free a block of any level, but not a leaf's long members. */
void index_destroy(struct skiplist *list, void *block);
/* Move the leaf's entries to another block, which has room for them. */
void index_replace_leaf(struct skiplist *list, uint32_t id, struct block *block);
/* The same of an index block, with its sheet. */
void index_replace(struct skiplist *list, uint32_t id, struct index_block *index);
/* Free the long members among count entries of a leaf, from index on. */
void index_free_long(struct skiplist *list, const struct block *block, uint32_t index,
                     uint32_t count);

/* Table size needed for count more ids, after using up the free ids. */
static inline uint64_t index_nodes_needed(const struct skiplist *list, uint32_t count) {
    return count <= list->free_count ? 0 : (uint64_t)list->node_end + count - list->free_count;
}

/* Make room for count more ids. false: no memory. */
MUST_CHECK bool index_nodes_reserve(struct skiplist *list, uint32_t count);
/* Assign an id to a block; there must be room. The node has no parent yet. */
uint32_t index_node_take(struct skiplist *list, void *block, unsigned level);
void index_node_give_back(struct skiplist *list, uint32_t id);
/* Bytes of the table and its segments. */
size_t index_nodes_memory_size(const struct skiplist *list);
/* Free the last segment, but never the first. */
void index_nodes_free_segment(struct skiplist *list);
/* Free the table and all segments. */
void index_nodes_free(struct skiplist *list);
/* Compact the ids in use after many have been freed, and free the nodes beyond: at most one block
 * per step gets a new id. Requires that nothing is detached. Never fails.
 *
 * true: another step will make progress. Once it returns false, apart from a few spare ones fewer
 * than half of the ids are free. */
bool index_nodes_compact_step(struct skiplist *list, struct skiplist_owner owner);

/* Update the position of the children from position on. */
void index_renumber(struct skiplist *list, uint32_t id, uint32_t position);
/* Unlink the blocks from first to last from the linked list of their level. */
void index_unlink(struct skiplist *list, uint32_t first, uint32_t last);

/* Add delta to the spans on all levels above a block. */
static inline void index_add_above(struct skiplist *list, uint32_t id, uint32_t delta) {
    for (uint32_t parent; (parent = skiplist_node(list, id)->parent) != SKIPLIST_NONE;
         id = parent) {
        struct index_block *index = index_at(list, parent);
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
