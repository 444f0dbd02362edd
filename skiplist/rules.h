/* How a board behaves: its layout, and what LB.CREATE and `board` lines say beside it.
 *
 *     board.layout --> rules.layout <-- board.layout      boards with equal rules share one copy
 *
 * A server may hold a million boards, so a board has no room for options of its own: it points at
 * the layout inside its rules, and rules_of leads from there to the rest. The rules that are in use
 * are in a set, each once, with a count of the boards that use them. Those never change.
 *
 * A board with a PERIOD begins anew with every day, week or month: it is given other rules then,
 * those of the new period, in which the START of its times is the period's. */
#ifndef SKIPLIST_RULES_H
#define SKIPLIST_RULES_H

#include "codec/layout.h"
#include "codec/period.h"
#include "skiplist/map.h"
#include "skiplist/pages.h"

/* ARCHIVE is not said: all are kept. */
#define RULES_ARCHIVES_ALL UINT32_MAX

/* Zeroed but for the layout: a board without options. */
struct rules {
    uint32_t cap;    /* members that the board keeps, the best ones; 0: all */
    bool keeps_best; /* a result must be strictly better than the member's own, or nothing changes;
                      * increments excepted */
    bool is_created; /* by LB.CREATE: it stays when its last member goes */
    /* PERIOD; zero without one. */
    int16_t zone_minutes;
    enum period_unit period;
    uint32_t archives_max;   /* periods that an archive is kept for, or RULES_ARCHIVES_ALL */
    int64_t period_start_ms; /* of the period that the board is in; 0: none yet */
    int64_t period_end_ms;
    uint32_t index; /* in the set; this and what follows is the set's own */
    uint64_t use_count;
    uint64_t hash;
    struct layout layout; /* last: in the set it ends behind its last field */
};

/* The rules of a board of the registry, by its layout. */
static inline const struct rules *rules_of(const struct layout *layout) {
    const void *rules = (const char *)layout - offsetof(struct rules, layout);
    return rules;
}

/* Take a copy, of those in a set too. */
void rules_copy(const struct rules *rules, struct rules *copy);
/* Do two boards with these rules behave in the same way? */
bool rules_equal(const struct rules *a, const struct rules *b);

/* Move rules with a PERIOD to the period that holds this time, and the START of their layout with
 * it. */
void rules_begin_period(struct rules *rules, int64_t now_ms);
/* Is the period over at this time? Never without one. */
static inline bool rules_are_over(const struct rules *rules, int64_t now_ms) {
    return rules->period != PERIOD_NONE && rules->period_end_ms <= now_ms;
}
/* Make archive the rules of what remains of the board when its period is over: without PERIOD, and
 * it goes with its last member. */
void rules_end_period(const struct rules *rules, struct rules *archive);
/* When an archive of this period is no longer one of the newest that are kept; INT64_MAX: never. */
int64_t rules_archive_end_ms(const struct rules *rules);

/* May a member whose key is before be written with the key after? Not when the board keeps the best
 * and after is not strictly better, time not counted. */
static inline bool rules_take(const struct rules *rules, uint64_t before, uint64_t after) {
    return !rules->keeps_best ||
           layout_without_time(&rules->layout, after) > layout_without_time(&rules->layout, before);
}

/* Can boards behave like this: does the layout hold together, and is the period one of the
 * calendar's, with which the layout's times begin? reason: what does not. */
MUST_CHECK bool rules_validate(const struct rules *rules, const char **reason);

struct rules_set {
    struct map map;    /* (hash of the rules, index) */
    struct pages list; /* struct rules * */
    uint32_t count;
    uint64_t use_count; /* of all */
    uint64_t hash_seed;
};

/* hash_seed: random, secret. The set stays where it is. */
void rules_set_init(struct rules_set *set, uint64_t hash_seed);
/* Nothing is in use any more. */
void rules_set_deinit(struct rules_set *set);

/* The rules of the set that are equal to like, put there if they are new, with one user more. NULL:
 * no memory, and nothing changed. */
MUST_CHECK const struct rules *rules_hold(struct rules_set *set, const struct rules *like);
/* One user more of rules that are in the set. Never fails. */
void rules_hold_again(struct rules_set *set, const struct rules *rules);
/* One user less; with the last one the rules go. Never fails. */
void rules_release(struct rules_set *set, const struct rules *rules);
/* Are these very rules in the set? */
bool rules_are_in(const struct rules_set *set, const struct rules *rules);

/* Check the map, the list and the counts. reason: the first claim that does not hold. */
MUST_CHECK bool rules_set_validate(const struct rules_set *set, const char **reason);

#endif
