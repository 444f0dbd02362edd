/* The types of the skiplist (skiplist/skiplist.h): the list, its nodes, and positions in it. */
#ifndef SKIPLIST_SKIPLIST_TYPES_H
#define SKIPLIST_SKIPLIST_TYPES_H

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
    struct tags *tags; /* skiplist/sheet.h; NULL: no entry has ever had a value */
};

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

#endif
