/* A leaf block: a few dozen entries in rank order, in one allocation; if it is all there is, a few hundred.
 *
 *     +--------+-----------------+-----------------+---------------------------------------+
 *     | header | marks, 2 B each | keys, 8 B each  | members, one after the other,         |
 *     |  16 B  | room: capacity  | room: capacity  | heap_size bytes                       |
 *     +--------+-----------------+-----------------+---------------------------------------+
 *
 * All three arrays are in the same order, best first. A member is its name's form (codec/name.h). A
 * mark is one byte of the member's hash (the tag) and the form's code, which says how many bytes are
 * stored. A lookup compares all tags at once and then, nearly always, a single member. The offset of
 * a member is the sum of the sizes before it; a block knows if all have one size. A member longer than NAME_TEXT_MAX bytes has its own
 * allocation; its code is NAME_LONG and its heap bytes are a pointer and a size.
 *
 * A block is allocated for its entries and one or two more. So a half-full block costs half, and
 * neighbours need not share entries to save memory. It is reallocated often; the pool makes that
 * cheap.
 *
 * A block does not compute hashes and knows no other blocks. */
#ifndef SKIPLIST_BLOCK_H
#define SKIPLIST_BLOCK_H

#include "codec/name.h"

enum {
#ifdef SKIPLIST_TINY
    BLOCK_ENTRIES_MAX = 4,
    BLOCK_CAPACITY_MIN = 4,
    BLOCK_HEAP_MAX = 3 * NAME_TEXT_MAX,
    BLOCK_LOADED_MIN = 2,
    BLOCK_LOADED_MAX = 3,
    BLOCK_GROW_ENTRIES = 1,
    BLOCK_SPARE_MAX = 3,
    BLOCK_ALONE_ENTRIES_MAX = 10,
    BLOCK_ALONE_HEAP_MAX = 8 * NAME_TEXT_MAX,
#else
    BLOCK_ENTRIES_MAX = 48, /* at most 63: a set of entries is a uint64_t bitmap */
    BLOCK_CAPACITY_MIN = 8, /* entries the smallest block has room for */
    BLOCK_HEAP_MAX = 1024,  /* at least 3 * NAME_TEXT_MAX: either half of a split has room */
    /* Entries of a block that is loaded. Full ones would split at the first entry that comes, all of them, and hold less
     * than what random growth leaves then; equally filled ones would split in waves (board_append). */
    BLOCK_LOADED_MIN = 28,
    BLOCK_LOADED_MAX = 45,
    BLOCK_GROW_ENTRIES = 2, /* entries of room added when a block grows */
    BLOCK_SPARE_MAX = 3,    /* a block with more free entries than this shrinks */
    /* Of a block that is all there is (a small board). An index costs a board of 100 as much as
     * its members, and moving 4 KiB less than an index does. */
    BLOCK_ALONE_ENTRIES_MAX = 240,
    BLOCK_ALONE_HEAP_MAX = 6144,
#endif
    BLOCK_LONG_SIZE = 12, /* heap bytes of a long member: pointer and uint32_t size */
};

/* Ids of the neighbours on the same level of the skiplist. */
struct block_links {
    uint32_t next;     /* the block with the next worse entries */
    uint32_t previous; /* the block with the next better entries */
};

struct block {
    struct block_links links; /* used by skiplist.c */
    uint16_t heap_used;
    uint16_t heap_size;
    uint8_t count;
    uint8_t capacity;   /* entries */
    uint8_t long_count; /* entries with NAME_LONG */
    uint8_t only_code;  /* of all entries, whose offsets need no sum then; 0: they differ, or may */
};

/* One entry as stored in a block. at: block_heap_size(code) bytes. */
struct block_entry {
    uint64_t key;
    const char *at;
    uint8_t tag;
    uint8_t code;
};

/* tag | code << 8 */
static inline const uint16_t *block_marks(const struct block *block) {
    return (const uint16_t *)(const void *)(block + 1);
}

/* Number of marks allocated: a multiple of 4, so that the keys behind them are aligned. */
static inline uint32_t block_mark_room(uint32_t capacity) {
    return (capacity + 3) & ~UINT32_C(3);
}

static inline const uint64_t *block_keys(const struct block *block) {
    return (const uint64_t *)(const void *)(block_marks(block) + block_mark_room(block->capacity));
}

static inline const char *block_heap(const struct block *block) {
    return (const char *)(block_keys(block) + block->capacity);
}

static inline uint8_t block_tag(const struct block *block, uint32_t index) {
    return (uint8_t)block_marks(block)[index];
}

static inline uint8_t block_code(const struct block *block, uint32_t index) {
    return (uint8_t)(block_marks(block)[index] >> 8);
}

/* Heap bytes of an entry with this code. */
static inline uint32_t block_heap_size(uint8_t code) {
    return code == NAME_LONG ? BLOCK_LONG_SIZE : name_stored_size(code);
}

/* Heap offset of the member at index; index may be count. */
uint32_t block_offset_of_mixed(const struct block *block, uint32_t index); /* the slow path */
static inline uint32_t block_offset(const struct block *block, uint32_t index) {
    return block->only_code != 0 ? index * block_heap_size(block->only_code)
                                 : block_offset_of_mixed(block, index);
}

/* The long member stored in these heap bytes. */
struct name block_long_member(const char *heap_bytes);
/* The member of this code at these heap bytes. */
static inline struct name block_member_at(uint8_t code, const char *heap_bytes) {
    return code == NAME_LONG ? block_long_member(heap_bytes)
                             : (struct name){heap_bytes, name_stored_size(code), code};
}
/* The member at index, with its known offset. */
static inline struct name block_member(const struct block *block, uint32_t index, uint32_t offset) {
    return block_member_at(block_code(block, index), block_heap(block) + offset);
}

/* The entry at index, with its known offset; valid until the next change. */
static inline struct block_entry block_get(const struct block *block, uint32_t index,
                                           uint32_t offset) {
    return (struct block_entry){
        .key = block_keys(block)[index],
        .at = block_heap(block) + offset,
        .tag = block_tag(block, index),
        .code = block_code(block, index),
    };
}

/* Find a member by its tag; false: not in this block. offset: its heap offset. */
MUST_CHECK bool block_find(const struct block *block, uint8_t tag, struct bytes member,
                           uint32_t *index, uint32_t *offset);

/* Is this member at index? index may be out of range. offset: its heap offset. */
MUST_CHECK bool block_has(const struct block *block, uint32_t index, uint8_t tag,
                          struct bytes member, uint32_t *offset);

/* The first entry with this tag, most likely the right one. For prefetching. */
MUST_CHECK bool block_find_tag(const struct block *block, uint8_t tag, uint32_t *index);

/* Number of keys above key, or (or_equal) above or equal to it; keys are in descending order. */
static inline uint32_t block_keys_above(const uint64_t *keys, uint32_t count, uint64_t key,
                                        bool or_equal) {
    if (count == 0 || (or_equal && key == 0)) {
        return count;
    }
    /* x >= key is x > key - 1. */
    uint64_t limit = or_equal ? key - 1 : key;
    uint32_t low = 0;
    /* Branch-free binary search: a branch on the comparison would be mispredicted half the time. */
    for (uint32_t size = count, half; size > 1; size -= half) {
        half = size / 2;
        low += half & (0U - (uint32_t)(keys[low + half - 1] > limit));
    }
    return low + (keys[low] > limit);
}

/* An empty block with room for at least this many entries and heap bytes; it also uses any slack
 * the allocator provides; memory_free frees it. NULL: no memory. */
MUST_CHECK struct block *block_create(uint32_t entries, uint32_t heap_size);

/* Allocate a long member and write its heap bytes (BLOCK_LONG_SIZE). false: no memory. */
MUST_CHECK bool block_long_create(struct name member, char *heap_bytes);
void block_long_destroy(const char *heap_bytes);
/* Replace the heap bytes of the long member at this offset. */
void block_long_set(struct block *block, uint32_t offset, const char *heap_bytes);
/* Allocated bytes of a long member. */
size_t block_long_memory_size(const char *heap_bytes);

/* block_is_full_for: must the block be split before an entry of this code fits? block_is_full_alone:
 * the same of a block that is alone; one with long members has no more room than others, so that what
 * is beyond can be copied without allocating. block_has_room: does it fit without growing the block? */
bool block_is_full_for(const struct block *block, uint8_t code);
bool block_is_full_alone(const struct block *block, uint8_t code);
/* Does it hold more than a block may that is not alone? */
static inline bool block_is_over(const struct block *block) {
    return block->count > BLOCK_ENTRIES_MAX || block->heap_used > BLOCK_HEAP_MAX;
}
static inline bool block_has_room(const struct block *block, uint8_t code) {
    return block->count < block->capacity &&
           block->heap_used + block_heap_size(code) <= (uint32_t)block->heap_size;
}
/* Would all entries of both blocks fit into one and leave some room? */
bool block_may_merge(const struct block *a, const struct block *b);
/* Is most of the block's memory unused? */
bool block_is_wasteful(const struct block *block);

/* An empty block with room for the entries of block and for growth; the next entry has this code.
 * NULL: no memory. */
MUST_CHECK struct block *block_create_grown(const struct block *block, uint8_t code);

/* Where to split a full block: entries from here on go to the new block. 1 .. count - 1. */
uint32_t block_split_index(const struct block *block);

/* Insert an entry at index. There must be room. */
void block_insert(struct block *block, uint32_t index, const struct block_entry *entry);
/* Remove entries; long members are not freed. */
void block_remove(struct block *block, uint32_t index, uint32_t count);
/* Remove the entry at index, whose member has this offset. */
void block_remove_one(struct block *block, uint32_t index, uint32_t offset);
/* Move the entry at from, with a new key, before the entry that was at to. 0 .. count. */
void block_shift(struct block *block, uint32_t from, uint32_t to, uint64_t key);
/* Copy entries into another block, before the entry at index there. There must be room. */
void block_copy(struct block *block, uint32_t index, const struct block *from, uint32_t from_index,
                uint32_t count);

/* Check counts, sizes and the order of keys. reason: the first violated invariant. */
MUST_CHECK bool block_validate(const struct block *block, const char **reason);

/* A run: consecutive entries of a board in one block, read in place. Walks over many members (such as the top 100) proceed
 * run by run, so that per-block work is done once per block.
 *
 *     board_cursor_seek(board, rank, &cursor);
 *     while (board_cursor_run(&cursor, is_best_first, left, &run))
 *         for (left -= run.count; block_run_read(&run, &key, &member);)
 *             ...
 *
 * Valid until the next change of the board. While one is read the next block is prefetched. */
enum { BLOCK_RUN_MAX = BLOCK_ENTRIES_MAX };

struct block_run {
    const uint16_t *marks; /* of the next entry; backwards: behind it */
    const uint64_t *keys;
    const char *members;
    uint32_t count; /* entries left */
    bool is_best_first;
    bool is_of_one_code; /* all of them; else they may be of several */
};

/* Read the next entry. false: the run is finished. is_best_first must be the run's; if it is a
 * constant, the compiler generates a loop for each direction. */
MUST_CHECK static inline bool block_run_read_to(struct block_run *run, bool is_best_first,
                                                uint64_t *key, struct name *member) {
    if (run->count == 0) {
        return false;
    }
    run->count--;
    if (!is_best_first) {
        run->marks--;
        run->keys--;
    }
    uint8_t code = (uint8_t)(*run->marks >> 8);
    *key = *run->keys;
    if (!is_best_first) {
        run->members -= block_heap_size(code);
    }
    const char *at = run->members;
    if (is_best_first) {
        run->marks++;
        run->keys++;
        run->members += block_heap_size(code);
    }
    *member = block_member_at(code, at);
    return true;
}

MUST_CHECK static inline bool block_run_read(struct block_run *run, uint64_t *key,
                                             struct name *member) {
    return block_run_read_to(run, run->is_best_first, key, member);
}

#endif
