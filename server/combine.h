/* Unions, intersections and differences of boards, for ZUNION and its kin: who is in the result,
 * with what value, reached when.
 *
 *              mon  12 at 09:15 \
 *     ann in                     >  SUM: 19 at 18:02    MAX: 12 at 09:15    DIFF of mon: none
 *              tue   7 at 18:02 /
 *
 * Values are exact: scores times weights, brought to one scale. Boards may differ in all of their
 * layouts. Only lead fields count.
 *
 * The time of a value is that at which it was reached:
 *   SUM       the latest of its parts'; parts with a weight of 0 add nothing and have no say,
 * unless all are such MIN, MAX  that of the part that was chosen; of equal ones the earliest DIFF
 * that of the first board's score A score on a board without a time counts as reached now.
 *
 * Equal values reached at the same time rank by arrival: by the first board of the list that has
 * the member, and on it by rank (LATEST: the last rank first), which is the order of arrival among
 * its equals.
 *
 * Results are gathered aside; the boards are only read. */
#ifndef SERVER_COMBINE_H
#define SERVER_COMBINE_H

#include "server/tally.h"
#include "skiplist/board.h"

enum combine_kind { COMBINE_UNION, COMBINE_INTERSECTION, COMBINE_DIFFERENCE };
enum combine_aggregate { COMBINE_SUM, COMBINE_MIN, COMBINE_MAX };

struct combine_source {
    const struct board *board; /* NULL: nobody is on it */
    struct decimal weight;
    uint8_t weight_scale;
    uint8_t more_digits; /* combine.c's: from the product's scale to that of the values */
};

struct combine {
    enum combine_kind kind;
    enum combine_aggregate aggregate;
    struct combine_source *sources; /* borrowed; 1 at least. A board may come more than once */
    uint32_t source_count;
    int64_t now_us;
    struct tally tally; /* initialised by the caller, and deinitialised in any case */
    /* what combine_run finds out */
    unsigned scale;       /* of the tally's values */
    struct bytes culprit; /* COMBINE_OUT_OF_RANGE: whose value it is */
};

enum combine_status {
    COMBINE_OK = 0,
    COMBINE_OUT_OF_MEMORY,
    COMBINE_OUT_OF_RANGE, /* a value does not fit a wide decimal */
};

/* Fill the tally, in order of arrival.
 *
 * A union takes one look-up for every member of every board, in a table of its own. An intersection
 * walks the smallest board and looks its members up on the others, the smaller ones first. A
 * difference looks the first board's members up on the others, or theirs on the first, whichever
 * is less work. */
MUST_CHECK enum combine_status combine_run(struct combine *combine);
/* Fill it with count members of the first source, from a rank on. */
MUST_CHECK enum combine_status combine_take(struct combine *combine, uint32_t rank, uint32_t count);
/* How many are in the intersection, counted up to limit (0: all). COMBINE_OUT_OF_MEMORY only. */
MUST_CHECK enum combine_status combine_count(struct combine *combine, uint64_t limit,
                                             uint64_t *count);

#endif
