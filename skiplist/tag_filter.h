/* Which codes belong to a group (skiplist/tags.h), and where the group is in counts (skiplist/sheet.h). */
#ifndef SKIPLIST_TAG_FILTER_H
#define SKIPLIST_TAG_FILTER_H

#include "skiplist/large_board.h"
#include "skiplist/sheet.h"
#include "skiplist/tags.h"

enum {
    READER_RANGES = 8,
    TEST_VALUES = 2,
    FILTER_CODES = 16, /* values of all tests together that are compared side by side */
};

/* The values of one tag that match. */
struct filter_test {
    unsigned tag;
    const struct tag_slot *slot;
    bool is_excluding; /* all but these values match */
    uint32_t count;
    bool is_listed;   /* its values are in the filter's codes */
    bool is_borrowed; /* values and set are another filter's */
    uint32_t *values; /* codes of values, ascending, own or on the heap; 0: none */
    uint32_t own[TEST_VALUES];
    uint64_t *set;     /* the same as bits, of many values; or NULL */
    uint32_t set_bits; /* the bit behind the last one, which is 0 */
};

/* Numbers side by side in a combination. */
struct filter_range {
    uint32_t first, count;
};

/* Where the tests of some tags are in the numbers of a combination that has all of these. */
struct filter_reader {
    const struct tag_combination *combination; /* NULL: there is none */
    bool is_inverse;                           /* the ranges are what does not match */
    uint32_t range_count;
    struct filter_range *ranges; /* own, or on the heap */
    struct filter_range own[READER_RANGES];
};

/* How much of the group is in front of each lowest index block: made when so many ranks are expected that it pays, or
 * once ranks inside the group have read as many codes as the list has entries; so that a command, however many ranks it
 * asks for, reads them about twice at most. */
struct filter_marks {
    uint64_t read;     /* codes and sorted numbers, until the marks are made */
    uint32_t expected; /* ranks that are going to be asked for */
    uint32_t count;
    struct filter_mark {
        uint32_t id;
        uint32_t rank, inside; /* of its first entry: on the board, and in the group */
    } * at;                    /* NULL: not made */
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
    /* The values of the tests that are listed, one test after another, as codes have them: of those that have no set, and
     * of others as far as there is room. */
    bool is_listed; /* all tests are */
    uint32_t code_count;
    uint32_t codes[FILTER_CODES];
    /* The whole group in rows; or where it has none, each test by itself: 0 is enough to know. */
    struct filter_reader rows, singles[TAGS_MAX];
    /* Do the numbers of a whole block tell? Without a sorted test all tests are in the dense ones. If the first sorted
     * test takes values in, its list has them. If it leaves values out, the group is the rest, which is what the other
     * tests let pass, without what its list has of these values. The rest is again a sorted test, or it is in dense
     * numbers, or in rows. */
    bool has_sums;
    const struct filter_test
        *sorted[TAG_LISTS_MAX]; /* of the first tag of each list; NULL: it is not read */
    struct filter_reader dense, rest;
    struct filter_marks marks;
};

bool tag_filter_matches(const struct tag_filter *filter, uint32_t code);
/* Does a value of the test's tag? */
bool tag_filter_passes_value(const struct filter_test *test, uint32_t value);
/* Do values of a combination side by side? */
bool tag_filter_matches_values(const struct tag_filter *filter,
                               const struct tag_combination *combination, uint32_t values);
/* The smallest combination with rows that has these tags; NULL: none. */
const struct tag_combination *tag_filter_choose(const struct tag_counts_plan *plan,
                                                unsigned tag_mask);
/* The group below an index block with these counts, of `count` entries, of which in_rest are in filter->rest, if that
 * has a combination. false: they do not tell, or not sooner than the codes. *read: sorted numbers that were read. */
bool tag_filter_sum(const struct tag_filter *filter, const struct tag_counts_plan *plan,
                    const struct tag_counts *counts, uint32_t count, uint32_t in_rest,
                    uint32_t *sum, uint64_t *read);
/* What a reader finds in the rows of an index block for the children from .. to - 1 together. */
uint32_t tag_filter_sum_children(const struct filter_reader *reader,
                                 const struct tag_counts_plan *plan, struct index_block *index,
                                 uint32_t from, uint32_t to);
/* The same of each child by itself. */
void tag_filter_sum_each(const struct filter_reader *reader, const struct tag_counts_plan *plan,
                         struct index_block *index, uint32_t *sums);

#endif
