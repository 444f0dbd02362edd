/* A tally gathers the results of many members, for ZUNION and its relatives.
 *
 *     entries                                   slots
 *     0  ann  12.5  Monday 09:15                hash of zoe -> 1
 *     1  zoe   7    Tuesday 20:40               hash of ann -> 0
 *
 * A result is a wide decimal (all of one tally have the same scale) and the time at which it was
 * reached. Members are borrowed from their boards, which must not change meanwhile. Look-up by
 * member (tally_get) is optional; only then are there slots, an open-addressing hash table. */
#ifndef SERVER_TALLY_H
#define SERVER_TALLY_H

#include "codec/decimal.h"
#include "codec/name.h"
#include "codec/sort.h"

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
void tally_init(struct tally *tally, uint64_t hash_seed);
void tally_deinit(struct tally *tally);
/* Free a few megabytes of it, which is not used any more: the system takes milliseconds for many. Is there more? */
MUST_CHECK bool tally_free_step(struct tally *tally);

/* Reserve room for count more entries; with_slots: also for look-up by member. false: out of
 * memory. */
MUST_CHECK bool tally_reserve(struct tally *tally, uint32_t count, bool with_slots);

/* Room for look-up of so many entries in all, so that it need not grow while they come. */
MUST_CHECK bool tally_reserve_slots(struct tally *tally, uint64_t count);

/* Add an entry for a member that has none. The caller fills in the result; arrival is the number of
 * entries before it. Room must be reserved. */
struct tally_entry *tally_add(struct tally *tally, struct name member);

/* Find or add (*is_new) the member's entry. Room must be reserved. In steps, to be run for several
 * members each, so that their cache misses overlap. */
struct tally_find {
    struct name member;
    uint64_t hash;
    uint32_t candidate; /* most likely its entry, or none */
};
void tally_find_slot(const struct tally *tally, struct name member, struct tally_find *find);
void tally_find_entry(const struct tally *tally, struct tally_find *find);
void tally_find_member(const struct tally *tally, const struct tally_find *find);
struct tally_entry *tally_get(struct tally *tally, const struct tally_find *find, bool *is_new);

static inline struct name tally_member(const struct tally_entry *entry) {
    return (struct name){entry->member, entry->member_size, entry->member_code};
}

/* Rank the entries: best value first (is_ascending: lowest first), ties by time, earlier first,
 * then by arrival, lower first (is_latest: both reversed). false: out of memory; the entries are
 * unchanged. */
MUST_CHECK bool tally_sort(struct tally *tally, bool is_ascending, bool is_latest);
/* The same in steps, of run_size entries each. tally_sort_step: is it over? */
MUST_CHECK bool tally_sort_begin(struct tally *tally, bool is_ascending, bool is_latest,
                                 uint32_t run_size);
MUST_CHECK bool tally_sort_step(struct tally *tally);

/* Walk the ranks after tally_sort, best first or in reverse: one walk at a time. */
struct tally_walk {
    struct tally *tally;
    bool is_best_first;
};
struct tally_walk tally_walk(struct tally *tally, bool is_best_first);
/* NULL: end of the walk. */
const struct tally_entry *tally_walk_next(struct tally_walk *walk);

#endif
