/* How many entries below an index block have which values: of each index block above level 1.
 *
 *     country, class, platform: 8, 4 and 3 bits
 *     country                    256 rows          a row: a number for each child of the index block
 *     class, platform            128 rows          (and class, and platform)
 *     country, class, platform   32,768 numbers for all children together
 *     clan, guild                where that is too many: a list of those that are not 0, sorted, and the latest
 *                                apart, until they are merged with them
 *     guild                      a second list, without the largest tag, if the next one has many values, too
 *
 * A plan says which combinations of tags have rows, dense numbers and lists. A rank inside a group is the sum of a row
 * up to a child; where no row has all tags of the group, children are asked for their own numbers, and on level 1 the
 * codes of the sheets are read. Values in a combination are side by side, the tag with the most bits first; so each
 * list is in the order of its first tag, and those of one value are found at once. */
#ifndef SKIPLIST_TAG_COUNTS_H
#define SKIPLIST_TAG_COUNTS_H

#include "codec/check.h"
#include "codec/tag.h"
#include "skiplist/index.h"

enum {
    TAG_COMBINATIONS_MAX = 2 * TAGS_MAX,
    TAG_LISTS_MAX =
        2, /* of the TAGS_BITS_MAX bits, no third tag has too many for rows, and dense numbers */
#ifdef SKIPLIST_TINY
    TAG_ROW_BITS = 3,
    TAG_DENSE_BITS = 5,
    TAG_LATEST_MAX = 3,
    TAG_SORTED_MAX = 24,
    TAG_FILL_CHILDREN = 1,
#else
    TAG_ROW_BITS = 8,    /* a combination of more bits has no rows, */
    TAG_DENSE_BITS = 15, /* nor dense numbers */
    TAG_LATEST_MAX = 128,
    TAG_SORTED_MAX = 128 << 10, /* a list of more is not kept */
    TAG_FILL_CHILDREN = 4,      /* counted in one step */
#endif
};
#define TAG_COUNTS_BEGUN (UINT32_C(1) << 31)

struct skiplist;
struct tags;
struct tag_slot;

struct tag_combination {
    unsigned tag_mask;
    uint8_t count;
    uint8_t bits;
    uint8_t tags[TAGS_MAX];   /* the most significant first */
    uint8_t shifts[TAGS_MAX]; /* of each tag in the order of the layout: where its value is */
    uint32_t first_row;
};

struct tag_counts_plan {
    uint32_t number; /* another one for each plan */
    uint32_t row_count, combination_count;
    struct tag_combination combinations[TAG_COMBINATIONS_MAX]; /* that have rows */
    struct tag_combination dense;                              /* what has dense numbers */
    /* Of the first list all tags, of the second all but the largest; 0: dense numbers have all. */
    uint32_t list_count;
    struct tag_combination lists[TAG_LISTS_MAX];
};

/* One combination of values that entries have. */
struct tag_count {
    uint32_t values;
    uint32_t count;
};

/* In the order of values, each either sorted or in the latest; some may be counted 0 times. */
struct tag_list {
    uint32_t sorted_count, latest_count, zero_count;
    bool is_crowded; /* has nothing, as it was too much */
    struct tag_count *sorted;
    struct tag_count *latest; /* NULL: not yet needed */
    size_t memory_size;       /* of both */
};

struct tag_counts {
    uint32_t
        number; /* of its plan; with TAG_COUNTS_BEGUN: they are not known yet (tag_counts_fill) */
    struct tag_list lists[TAG_LISTS_MAX];
    uint64_t unknown; /* bit i: the numbers of child i in the rows are not known */
    bool is_narrow;   /* rows have 16 bits: children are of level 1 */
    uint8_t begun;    /* so many of the first children are counted, while not all are */
    /* The dense numbers; then the rows. */
    uint32_t dense[];
};

_Static_assert(INDEX_FANOUT <= 64, "a set of children is a uint64_t");

/* Choose for tags with these bits. The number becomes another one. */
void tag_counts_plan(struct tag_counts_plan *plan, const struct tag_slot *const *slots,
                     uint32_t count);

/* Where a code is counted. A member that moves is counted in several blocks, so this is computed once. */
struct tag_places {
    uint32_t number; /* of the plan; 0: nothing is here */
    uint32_t code;
    uint32_t dense, lists[TAG_LISTS_MAX];
    uint32_t rows[TAG_COMBINATIONS_MAX];
};

/* NULL: no memory. */
MUST_CHECK struct tag_counts *tag_counts_copy(const struct tag_counts_plan *plan,
                                              const struct tag_counts *counts);
size_t tag_counts_memory_size(const struct tag_counts *counts);

/* The rows of a combination's values, and what they have of one child. */
static inline void *tag_counts_row(const struct tag_counts_plan *plan, struct tag_counts *counts,
                                   uint32_t row) {
    uint32_t *rows = counts->dense + (UINT32_C(1) << plan->dense.bits);
    return counts->is_narrow ? (void *)((uint16_t *)(void *)rows + (size_t)row * INDEX_FANOUT)
                             : (void *)(rows + (size_t)row * INDEX_FANOUT);
}
static inline uint32_t tag_counts_at(const struct tag_counts_plan *plan, struct tag_counts *counts,
                                     uint32_t row, uint32_t child) {
    const void *at = tag_counts_row(plan, counts, row);
    return counts->is_narrow ? ((const uint16_t *)at)[child] : ((const uint32_t *)at)[child];
}
/* The first of sorted numbers whose values are not below these. */
uint32_t tag_counts_find(const struct tag_count *sorted, uint32_t count, uint32_t values);

/* ---- of the index blocks of a list: kept true while entries and blocks come, go and move ----
 *
 * Counts may always be missing: without memory they are dropped, and whoever reads counts anew what is missing, within
 * limits, or goes by the children and their sheets. Of an index block the numbers of single children may be unknown. */

/* Entries that one call of a reader may count anew, for those that come after it: about a millisecond. */
enum { TAG_COUNTS_READER_WORK = 128 << 10 };

/* What is counted of an index block above level 1. Where it is not known it is counted, which takes from *work_left,
 * in entries. NULL: more than is left, or no memory. */
struct tag_counts *tag_counts_of(const struct skiplist *list, uint32_t id, uint32_t *work_left);
/* The same in steps, between which entries and blocks may come, go and move: some children's entries, or the rows of one
 * child. Takes from *work_left what it was, or all. true: there is nothing to do any more, or no memory for it. */
MUST_CHECK bool tag_counts_fill(const struct skiplist *list, uint32_t id, uint32_t *work_left);
/* Count what its numbers of this child are; tag_counts_know_child: unless they are known. The same. */
MUST_CHECK bool tag_counts_count_child(const struct skiplist *list, uint32_t id,
                                       struct tag_counts *counts, uint32_t child,
                                       uint32_t *work_left);
MUST_CHECK static inline bool tag_counts_know_child(const struct skiplist *list, uint32_t id,
                                                    struct tag_counts *counts, uint32_t child,
                                                    uint32_t *work_left) {
    return (counts->unknown >> child & 1) == 0 ||
           tag_counts_count_child(list, id, counts, child, work_left);
}

/* Begin to count what is above a leaf, while there is little to count. */
void tag_counts_begin(const struct skiplist *list, uint32_t leaf);
/* Add entries (as uint32_t: 0U - n is n fewer) to all counts above a leaf, before its sheet and the spans change. */
void tag_counts_add_above(const struct skiplist *list, uint32_t leaf, uint32_t code, uint32_t more);

/* Start the cache misses of tag_counts_add_above, which is going to be called. */
void tag_counts_prefetch(const struct skiplist *list, uint32_t leaf, uint32_t code);

/* An index block above level 1 is being split: `at` children stay. The one for whose sake it is done, which is in
 * neither yet, goes right, or left. */
void tag_counts_split(struct skiplist *list, uint32_t left, struct index_block *right, uint32_t at,
                      bool goes_right);
/* The right one's children come behind those of the left one. */
void tag_counts_merge(struct tags *tags, struct index_block *left, struct index_block *right);
/* A child has come to an index block; it has taken entries from its left neighbour. */
void tag_counts_put_child(struct skiplist *list, uint32_t id, uint32_t position);
/* Children have gone, with what was below them. */
void tag_counts_remove_children(struct skiplist *list, uint32_t id, uint32_t position,
                                uint32_t count);
/* What the parent knows of this block, if anything, is not so any more. */
void tag_counts_forget_in_parent(struct skiplist *list, uint32_t id);
/* Forget the counts of an index block above level 1; of a block and of all above it. */
void tag_counts_forget(struct tags *tags, struct index_block *index);
void tag_counts_drop(struct skiplist *list, uint32_t id);

/* Count anew, and compare. NULL: all is right, or what is wrong. */
const char *tag_counts_check(const struct skiplist *list, uint32_t id);

#endif
