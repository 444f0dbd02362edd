/* A tally: the results of many members while they are gathered, as ZUNION and its kin do.
 *
 *     entries                                   slots
 *     0  ann  12.5  Monday 09:15                hash of zoe -> 1
 *     1  zoe   7    Tuesday 20:40               hash of ann -> 0
 *
 * A result is a wide decimal (all of one tally are of one scale) and the time at which it was
 * reached. Members are borrowed from the boards they come from, which do not change meanwhile.
 * Results are found by member only where the caller asks for that (tally_get); then there are
 * slots, an open hash table. */
#ifndef SERVER_TALLY_H
#define SERVER_TALLY_H

#include "codec/bytes.h"
#include "codec/sort.h"
#include "codec/wide.h"

struct tally_result {
    wide value;
    int64_t reached_us;
    bool is_weightless; /* the caller's */
};

struct tally_entry {
    struct tally_result result;
    const char *member; /* borrowed */
    uint32_t member_size;
    uint32_t arrival; /* decides between equal values reached at the same time */
};

struct tally {
    struct tally_entry *entries;
    uint64_t capacity;
    uint32_t count;
    uint64_t *slots; /* a half of a hash and, below, an index + 1; 0: free */
    uint64_t slot_count;
    uint64_t hash_seed;
    struct sort_record *order; /* of tally_sort */
};

/* hash_seed: random, secret: the members come from strangers. */
void tally_init(struct tally *tally, uint64_t hash_seed);
void tally_deinit(struct tally *tally);

/* Make room for count more entries; with_slots: and for finding them. false: no memory. */
MUST_CHECK bool tally_reserve(struct tally *tally, uint32_t count, bool with_slots);

/* An entry for a member that has none yet; its result is to be filled in, and its arrival is the
 * number of entries before it. There is room. */
struct tally_entry *tally_add(struct tally *tally, struct bytes member);

/* The member's entry; one is added (and *is_new) when it has none. There is room. In steps,
 * each to be taken for some members before the next, so that their cache misses overlap. */
struct tally_find {
    struct bytes member;
    uint64_t hash;
    uint32_t candidate; /* most likely its entry, or none */
};
void tally_find_slot(const struct tally *tally, struct bytes member, struct tally_find *find);
void tally_find_entry(const struct tally *tally, struct tally_find *find);
void tally_find_member(const struct tally *tally, const struct tally_find *find);
struct tally_entry *tally_get(struct tally *tally, const struct tally_find *find, bool *is_new);

static inline struct bytes tally_member(const struct tally_entry *entry) {
    return (struct bytes){.at = entry->member, .size = entry->member_size};
}

/* Rank the entries: the best value first (is_ascending: the least), equal ones by time, earlier
 * first, and then by arrival, lower first (is_latest: both the other way round). false: no memory;
 * the tally is as it was. */
MUST_CHECK bool tally_sort(struct tally *tally, bool is_ascending, bool is_latest);

/* Walk along the ranks, after tally_sort, best first or the other way round. */
struct tally_walk {
    const struct tally *tally;
    uint32_t next;
    bool is_best_first;
};
static inline struct tally_walk tally_walk(const struct tally *tally, bool is_best_first) {
    return (struct tally_walk){.tally = tally, .is_best_first = is_best_first};
}
/* NULL: the walk is over. */
const struct tally_entry *tally_walk_next(struct tally_walk *walk);

#endif
