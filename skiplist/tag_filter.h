/* Which codes belong to a group (skiplist/tags.h), and where the group is in counts (skiplist/tag_counts.h). */
#ifndef SKIPLIST_TAG_FILTER_H
#define SKIPLIST_TAG_FILTER_H

#include "skiplist/board_parts.h"
#include "skiplist/sheet.h"
#include "skiplist/tags.h"

enum { READER_RANGES = 8, TEST_VALUES = 2 };

/* The values of one tag that match. */
struct filter_test {
    unsigned tag;
    const struct tag_slot *slot;
    bool is_excluding; /* all but these values match */
    uint32_t count;
    uint32_t *values; /* codes of values, ascending, own or on the heap; 0: none */
    uint32_t own[TEST_VALUES];
    uint64_t *set; /* the same as bits, of many values; or NULL */
};

/* Numbers side by side in a combination. */
struct filter_range {
    uint32_t first, count;
};

/* Where the tests of some tags are in the numbers of a combination that has all of these. */
struct filter_reader {
    const struct tag_combination *combination; /* NULL: there is none */
    uint32_t range_count;
    struct filter_range *ranges; /* own, or on the heap */
    struct filter_range own[READER_RANGES];
};

struct tag_filter {
    /* All tests together, where each tag has one value: a code matches if (code & mask) == equal, or is_inverse: if
     * not. */
    bool is_simple, is_inverse;
    bool is_nobody; /* no code matches */
    uint32_t mask, equal;
    unsigned tag_mask;
    uint32_t count;
    struct filter_test tests[TAGS_MAX];
    /* The whole group in rows; or where it has none, each test by itself: 0 is enough to know. */
    struct filter_reader rows, singles[TAGS_MAX];
    /* The whole group in the dense numbers; or without a combination, in the sorted ones of this test's values (NULL:
     * anywhere). */
    struct filter_reader dense;
    const struct filter_test *sorted_test;
};

/* The list's tags; NULL: nobody has a value. */
static inline const struct tags *tag_filter_tags(const struct board *board) {
    return board->is_large ? board->large->list.tags : NULL;
}

bool tag_filter_matches(const struct tag_filter *filter, uint32_t code);
/* The same for values of a combination side by side. */
bool tag_filter_matches_values(const struct tag_filter *filter,
                               const struct tag_combination *combination, uint32_t values);
/* The smallest combination with rows that has these tags; NULL: none. */
const struct tag_combination *tag_filter_choose(const struct tag_counts_plan *plan,
                                                unsigned tag_mask);
/* The group below an index block with these counts, of `count` entries. false: they do not tell. */
bool tag_filter_sum(const struct tag_filter *filter, const struct tag_counts_plan *plan,
                    const struct tag_counts *counts, uint32_t count, uint32_t *sum);
/* What a reader finds in the rows of the children from .. to - 1 together. */
uint32_t tag_filter_sum_children(const struct filter_reader *reader,
                                 const struct tag_counts_plan *plan, struct tag_counts *counts,
                                 uint32_t from, uint32_t to);

#endif
