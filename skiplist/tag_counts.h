/* How many entries below an index block have which values.
 *
 *     country, class, platform: 8, 4 and 3 bits        counted are, of each index block
 *         country                    256 numbers
 *         class, platform            128 numbers       (and class, and platform)
 *         country, class, platform   32,768 numbers, or where that is too many: those that are not 0, sorted
 *
 * A plan says which combinations of tags are counted. A group is looked up in the smallest that has all of its
 * tags; where there is none, the codes of the sheets are read. Values in a combination are side by side, the
 * tag with the most bits first. */
#ifndef SKIPLIST_TAG_COUNTS_H
#define SKIPLIST_TAG_COUNTS_H

#include "codec/check.h"
#include "codec/tag_set.h"

enum {
    TAG_COMBINATIONS_MAX = 2 * TAGS_MAX,
#ifdef SKIPLIST_TINY
    TAG_DENSE_BITS_LOW = 3,
    TAG_DENSE_BITS_HIGH = 4,
    TAG_DENSE_BITS_ALL = 5,
#else
    TAG_DENSE_BITS_LOW = 8,   /* a combination of more bits is not counted on level 1 */
    TAG_DENSE_BITS_HIGH = 12, /* nor above, but for that of all tags, which is sparse then */
    TAG_DENSE_BITS_ALL = 15,
#endif
};

struct tags;
struct tag_slot;

struct tag_combination {
    unsigned tag_mask;
    uint8_t count;
    uint8_t bits;
    bool is_sparse;
    uint8_t tags[TAGS_MAX];   /* the most significant first */
    uint8_t shifts[TAGS_MAX]; /* of each tag in the order of the layout: where its value is */
    uint32_t offset;          /* of its numbers among the dense ones */
};

struct tag_counts_plan {
    uint32_t number; /* another one for each plan */
    uint32_t count;
    uint32_t size;  /* dense numbers */
    bool is_narrow; /* of level 1: 16 bits each */
    struct tag_combination at[TAG_COMBINATIONS_MAX];
};

/* One combination of values that entries have. */
struct tag_count {
    uint32_t values;
    uint32_t count;
};

struct tag_counts {
    uint32_t number; /* of its plan */
    uint32_t sparse_count, sparse_capacity;
    struct tag_count *sparse; /* in the order of values; none is counted 0 times */
    uint32_t dense[];         /* uint16_t if the plan is narrow */
};

/* Choose for tags with these bits. The number becomes another one. */
void tag_counts_plan(struct tag_counts_plan *plan, const struct tag_slot *const *slots,
                     uint32_t count, bool is_narrow);
/* The values of a code side by side. */
uint32_t tag_counts_values(const struct tags *tags, const struct tag_combination *combination,
                           uint32_t code);

/* All 0. NULL: no memory. */
MUST_CHECK struct tag_counts *tag_counts_create(const struct tag_counts_plan *plan);
void tag_counts_destroy(struct tag_counts *counts); /* may be NULL */
size_t tag_counts_memory_size(const struct tag_counts *counts);
/* `more` entries (as uint32_t: 0U - n is n fewer) with this code. false: no memory; the counts are then wrong. */
MUST_CHECK bool tag_counts_add(const struct tags *tags, const struct tag_counts_plan *plan,
                               struct tag_counts *counts, uint32_t code, uint32_t more);
static inline uint32_t tag_counts_dense(const struct tag_counts_plan *plan,
                                        const struct tag_counts *counts, uint32_t index) {
    return plan->is_narrow ? ((const uint16_t *)(const void *)counts->dense)[index]
                           : counts->dense[index];
}
/* The first sparse count whose values are not below these. */
uint32_t tag_counts_find(const struct tag_counts *counts, uint32_t values);

#endif
