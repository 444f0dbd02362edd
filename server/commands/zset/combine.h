/* Unions, intersections and differences of boards, for ZUNION and its relatives: which members are
 * in the result, with what value, and when it was reached.
 *
 *              mon  12 at 09:15 \
 *     ann in                     >  SUM: 19 at 18:02    MAX: 12 at 09:15    DIFF of mon: none
 *              tue   7 at 18:02 /
 *
 * Values are exact: scores times weights, converted to a common scale. Boards may have different
 * layouts. Only lead fields count.
 *
 * The time of a result is when its value was reached:
 *
 *     SUM         the latest of its parts; parts with weight 0 add nothing and are ignored,
 *                 unless all have weight 0
 *     COUNT       as SUM, where each score is 1: how many boards have the member, or their weights
 *     MIN, MAX    that of the chosen part; the earliest of equal ones
 *     DIFF        that of the first board's score
 *
 * A score on a board without a time counts as reached now.
 *
 * Equal values reached at the same time rank by arrival: by the first board of the list that has
 * the member, then by rank on that board (LATEST: the last rank first), which is the order of
 * arrival among its equals.
 *
 * Results are gathered separately; the boards are only read. */
#ifndef SERVER_COMBINE_H
#define SERVER_COMBINE_H

#include "codec/decimal.h"
#include "codec/name.h"
#include "codec/sort.h"
#include "skiplist/board.h"

/* A tally gathers the results of many members.
 *
 *     entries                                   slots
 *     0  ann  12.5  Monday 09:15                hash of zoe -> 1
 *     1  zoe   7    Tuesday 20:40               hash of ann -> 0
 *
 * A result is a wide decimal (all of one tally have the same scale) and the time at which it was
 * reached. Members are borrowed from their boards, which must not change meanwhile. Look-up by
 * member is optional; only then are there slots, an open-addressing hash table. */
struct tally_result {
    wide value;
    int64_t reached_us;
    bool is_weightless; /* for the caller's use */
};

struct tally_entry {
    struct tally_result result;
    const char *member; /* as it is stored; borrowed */
    uint32_t member_size : 24;
    uint32_t member_code : 8;
    uint32_t arrival; /* breaks ties between equal values reached at the same time */
};

struct tally {
    struct tally_entry *entries;
    uint64_t capacity;
    uint32_t count;
    uint64_t *slots; /* half of a hash in the high bits, index + 1 in the low bits; 0: free */
    uint64_t slot_count;
    uint64_t hash_seed;
    /* Used by tally_sort: runs of entries, each in order. */
    struct sort_record *order, *spare;
    struct tally_run *runs; /* what is left of them in a walk: a heap, by their next entries */
    uint32_t run_size, run_count, sorted_count;
    bool is_ascending, is_latest;
};
struct tally_run {
    uint32_t next, left;
};

/* hash_seed must be random and secret: members come from untrusted clients. */
void combine_tally_init(struct tally *tally, uint64_t hash_seed);
void combine_tally_deinit(struct tally *tally);
/* Free a few megabytes of it, which is not used any more: the system takes milliseconds for many. Is there more? */
MUST_CHECK bool combine_tally_free_step(struct tally *tally);

static inline struct name combine_tally_member(const struct tally_entry *entry) {
    return (struct name){entry->member, entry->member_size, entry->member_code};
}

/* Rank the entries: best value first (is_ascending: lowest first), ties by time, earlier first,
 * then by arrival, lower first (is_latest: both reversed). false: out of memory; the entries are
 * unchanged. */
MUST_CHECK bool combine_tally_sort(struct tally *tally, bool is_ascending, bool is_latest);
/* The same in steps, of run_size entries each. tally_sort_step: is it over? */
MUST_CHECK bool combine_tally_sort_begin(struct tally *tally, bool is_ascending, bool is_latest,
                                         uint32_t run_size);
MUST_CHECK bool combine_tally_sort_step(struct tally *tally);

/* Walk the ranks after tally_sort, best first or in reverse: one walk at a time. */
struct tally_walk {
    struct tally *tally;
    bool is_best_first;
};
struct tally_walk combine_tally_walk(struct tally *tally, bool is_best_first);
/* NULL: end of the walk. */
const struct tally_entry *combine_tally_walk_next(struct tally_walk *walk);

enum combine_kind { COMBINE_UNION, COMBINE_INTERSECTION, COMBINE_DIFFERENCE };
enum combine_aggregate { COMBINE_SUM, COMBINE_MIN, COMBINE_MAX, COMBINE_COUNT };

struct combine_source {
    const struct board *board; /* NULL: an empty board */
    struct decimal weight;
    uint8_t weight_scale;
    uint8_t more_digits; /* used by combine.c: from the product's scale to that of the values */
};

/* A walk over a board in order of arrival. */
struct combine_walk {
    struct board_cursor cursor;
    uint32_t count, left;
    bool is_best_first;
};

/* Where combining is; private to combine.c but for the count. */
struct combine_work {
    struct combine_walk walk;
    uint32_t at, source;   /* the walk's number, and whose board is walked */
    bool is_over, is_only; /* only one board has members */
    bool is_counted;       /* only the count is wanted, up to count_max */
    uint64_t count, count_max;
    struct sort_record *order; /* the sources by size */
    uint64_t *marks;           /* by arrival: who of the first board is on another one */
};

struct combine {
    enum combine_kind kind;
    enum combine_aggregate aggregate;
    struct combine_source *sources; /* borrowed; at least 1. A board may appear more than once */
    uint32_t source_count;
    int64_t now_us;
    struct tally tally; /* initialised by the caller, who must deinitialise it in any case */
    /* set by combine_run */
    unsigned scale;      /* of the tally's values */
    struct name culprit; /* COMBINE_OUT_OF_RANGE: the member whose value it is */
    struct combine_work work;
};

enum combine_status {
    COMBINE_OK = 0,
    COMBINE_OUT_OF_MEMORY,
    COMBINE_OUT_OF_RANGE, /* a value does not fit a wide decimal */
};

/* Fill the tally, in order of arrival.
 *
 * A union does one look-up per member of every board, in its own table. An intersection walks the
 * smallest board and looks its members up on the others, smaller boards first. A difference looks
 * up either the first board's members on the others or theirs on the first, whichever is less
 * work. */
MUST_CHECK enum combine_status combine_run(struct combine *combine);
/* The same, or (is_counted) combine_count, in steps of a run of members, between which the boards may not change.
 * combine_end follows, also after an error; is_over: nothing is left to be done. */
MUST_CHECK enum combine_status combine_begin(struct combine *combine, bool is_counted,
                                             uint64_t limit);
MUST_CHECK enum combine_status combine_step(struct combine *combine, bool *is_over);
void combine_end(struct combine *combine);
/* The result of one member, after combine_begin; not its arrival. */
MUST_CHECK enum combine_status combine_member(struct combine *combine, struct bytes member,
                                              struct tally_result *result, bool *is_there);
/* Fill the tally with count members of the first source, starting at rank. */
MUST_CHECK enum combine_status combine_take(struct combine *combine, uint32_t rank, uint32_t count);
/* The size of the intersection, counted up to limit (0: no limit). Fails only with
 * COMBINE_OUT_OF_MEMORY. */
MUST_CHECK enum combine_status combine_count(struct combine *combine, uint64_t limit,
                                             uint64_t *count);

#endif
