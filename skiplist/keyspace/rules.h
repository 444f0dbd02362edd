/* The rules of a board: its layout, and the options of LB.CREATE and `board` lines. And its state: what happens to it.
 *
 *     board.layout --> rules.layout <-- board.layout      boards with equal rules share one copy
 *     key, with its state                                 if there is something to keep: changed in place
 *
 * A server may hold a million boards, so a board has no room for its own options: it points to the
 * layout inside its rules, and rules_of leads from there to the rest. The rules in use form a set,
 * each stored once with a reference count, and are immutable.
 *
 * A board with a PERIOD rolls over at the end of each. It then gets the rules of the new
 * period, where START of the layout's TIME is the period's start. */
#ifndef SKIPLIST_RULES_H
#define SKIPLIST_RULES_H

#include "codec/layout.h"
#include "codec/period.h"
#include "skiplist/keyspace/pages.h"
#include "skiplist/map.h"

#define RULES_CAP_MAX UINT32_MAX /* the maximum number of members of a board */
/* No ARCHIVE limit: all are kept. */
#define RULES_ARCHIVES_ALL UINT32_MAX

enum {
    RULES_FROZEN = 1,
    RULES_OPENS = 2,  /* opens_ms is given */
    RULES_CLOSES = 4, /* closes_ms is */
    RULES_LEAGUE = 8, /* of a league: only LB.LEAGUE writes, and league.room is above 0 */
};

#define RULES_STALE_MAX_MS (INT64_C(1000000) * 86400 * 1000)

/* Of the board that keeps the members of a league (skiplist/keyspace/league.h). room 0: of any other
 * board; the rest is 0 then. */
struct rules_league {
    uint16_t room;       /* members of a room, at the most */
    uint16_t up, down;   /* how many of a room change their tier */
    uint8_t tiers;       /* at least 1 */
    bool idle_goes_down; /* a period without a result takes a member one tier down */
};

#define RULES_WINDOW_MAX 1000

/* WINDOW: the board ranks what its members got in the running period and the count - 1 before it.
 * What they got in one period is a board of its own, the period's share, under the name that the
 * archive of the period has; it has count 0 and is_share. All zero: neither.
 * How they are kept: server/commands/window.h. */
struct rules_window {
    uint16_t count; /* 2 .. RULES_WINDOW_MAX */
    bool is_best;   /* BEST: the best of the shares; else SUM */
    bool is_share;
};

/* Zeroed except for the layout: a board without options. Down to the index there are no hidden bytes, so that rules are
 * compared and hashed as bytes; each member has a row in board_options.h. */
struct rules {
    struct period period;        /* PERIOD; zero without one */
    int64_t opens_ms, closes_ms; /* writes are refused before and from then on; 0: no such time */
    int64_t stale_ms;        /* a member whose time is longer ago leaves; 0: none; needs a TIME */
    int64_t period_start_ms; /* of the board's current period; 0: none yet */
    int64_t period_end_ms;
    struct rules_league league;
    struct rules_window window;
    uint32_t cap;               /* number of best members that the board keeps; 0: all */
    uint32_t limit;             /* number of members from which on newcomers are refused; 0: none */
    uint32_t archives_max;      /* periods with an archive, or RULES_ARCHIVES_ALL */
    bool keeps_best;            /* only strictly better results count, increments excepted */
    bool is_created;            /* by LB.CREATE: the board stays when its last member is removed */
    bool archives_are_writable; /* with a PERIOD: its archives are not frozen */
    bool settles;               /* SETTLE YES: an archive has no expiry until it is settled */
    bool copies;     /* COPY: archives are copies, and the board goes on; needs a PERIOD */
    bool is_archive; /* of a period that has ended: it is to be settled */
    uint8_t guards;  /* RULES_FROZEN etc.: what can refuse a write; 0: nothing */
    uint8_t unused;
    uint32_t index; /* in the set; this and the following fields are private to the set */
    union {
        uint64_t use_count;
        struct rules *next_gone; /* when nobody uses them any more */
    };
    uint64_t hash;
    struct layout layout; /* last: in the set the allocation ends behind its last field */
};

/* The rules of a board of the registry, from its layout. */
static inline const struct rules *rules_of(const struct layout *layout) {
    const void *rules = (const char *)layout - offsetof(struct rules, layout);
    return rules;
}

/* What happens to an archive, to a board with a WINDOW, and to a share of one. Other boards have none: it is zeroed. */
struct board_state {
    int64_t from_ms;  /* start of the first period that counts; of a share: of its period */
    int64_t ended_ms; /* of an archive: when its period ended */
    /* Of an unsettled archive of a board with SETTLE YES: the expiry that it gets when it is
     * settled; 0: none. */
    int64_t settled_expire_ms;
    uint32_t left; /* the first so many of the first share's members, by rank, have left already */
    bool is_anew;  /* a share is gone: what the members have is to be computed from those there */
    bool is_settled; /* have the rewards been paid? */
    uint8_t unused[2];
};
static inline bool rules_have_state(const struct rules *rules) {
    return rules->window.count > 0 || rules->window.is_share || rules->is_archive;
}
static inline bool rules_are_unsettled(const struct rules *rules, const struct board_state *state) {
    return rules->is_archive && !state->is_settled;
}
/* The state of a board that begins with these rules. */
struct board_state rules_begin_state(const struct rules *rules);
/* What is left of a state where the rules become these. */
struct board_state rules_keep_state(const struct rules *rules, const struct board_state *state);
/* Can a board with these rules have it? */
MUST_CHECK bool rules_take_state(const struct rules *rules, const struct board_state *state);

/* Copy rules, which may be in a set. */
void rules_copy(const struct rules *rules, struct rules *copy);
/* Do two boards with these rules behave identically? */
bool rules_equal(const struct rules *a, const struct rules *b);
/* Are the layouts equal except for START, and except for START and tags? */
bool rules_are_akin(const struct rules *a, const struct rules *b);
bool rules_keys_are_akin(const struct rules *a, const struct rules *b);

/* Move rules with a PERIOD to the period that contains this time, and START with it. */
void rules_begin_period(struct rules *rules, int64_t now_ms);
/* The same, but START stays: of a board with members. */
void rules_enter_period(struct rules *rules, int64_t now_ms);
/* What a write does to a board. */
enum rules_write {
    RULES_WRITE_MEMBERS, /* puts or takes members that it names */
    RULES_WRITE_WHOLE,   /* takes or stores any */
    RULES_WRITE_LEAGUE,  /* LB.LEAGUE, on the board of its league */
};
/* Why it may not, now. The only question of this kind: whatever writes asks it, whether at once, for a
 * client that waited, or in a pass. */
enum rules_refusal {
    RULES_TAKE, /* it may */
    RULES_REFUSE_SHARE,
    RULES_REFUSE_FROZEN,
    RULES_REFUSE_BEFORE, /* it opens later */
    RULES_REFUSE_AFTER,  /* it is closed */
    RULES_REFUSE_LEAGUE,
    RULES_REFUSE_WINDOW,
};
enum rules_refusal rules_find_refusal(const struct rules *rules, enum rules_write write,
                                      int64_t now_ms);
static inline enum rules_refusal rules_refuse(const struct rules *rules, enum rules_write write,
                                              int64_t now_ms) {
    return __builtin_expect(rules->guards == 0 && rules->window.count == 0, 1)
               ? RULES_TAKE
               : rules_find_refusal(rules, write, now_ms);
}
/* Does it last as long as the board is what it is? The others end by a time or by THAW. */
static inline bool rules_refusal_lasts(enum rules_refusal refusal) {
    return refusal == RULES_REFUSE_LEAGUE || refusal == RULES_REFUSE_WINDOW;
}
/* After an update of tzdata: move the period's end to where the zone's calendar has it now. */
void rules_renew_period(struct rules *rules);
/* Is the period over at this time? Never true without a PERIOD. */
static inline bool rules_are_over(const struct rules *rules, int64_t now_ms) {
    return rules->period.unit != PERIOD_NONE && rules->period_end_ms <= now_ms;
}
/* Set archive to the rules of the archive of a board that rolls over: no PERIOD, no times, and
 * removed with its last member. It is frozen if the board has a PERIOD and does not say
 * otherwise. */
void rules_end_period(const struct rules *rules, struct rules *archive);
/* When the archive's period has ended: at its end, if that is not after now_ms. */
static inline int64_t rules_ended_ms(const struct rules *rules, int64_t now_ms) {
    return rules_are_over(rules, now_ms) ? rules->period_end_ms : now_ms;
}
/* Move a board with a WINDOW, whose period is over at this time, to the period that contains it. If more periods
 * than the WINDOW has would have to leave one after another, the board is to be made anew instead: so from
 * from_ms to the running period there are never more than twice as many. */
void rules_slide(struct rules *rules, struct board_state *state, int64_t now_ms);
/* Set share to the rules of the share of the running period: as those of an archive, but nothing is to be
 * settled yet, and frozen, so that it is written only together with the board. Its from_ms is the period's start. */
void rules_begin_share(const struct rules *rules, struct rules *share);
/* How many periods that count have to leave? That the board is to be made anew counts as one. More than `most`
 * are `most`. */
uint32_t rules_window_behind(const struct rules *rules, const struct board_state *state,
                             uint32_t most);
/* The rules of a copy of the board: without WINDOW, and then without PERIOD; no share. */
void rules_without_window(const struct rules *rules, struct rules *copy);
/* When an archive of this period drops out of the newest that are kept; INT64_MAX: never. */
int64_t rules_archive_end_ms(const struct rules *rules);

/* May a member with key before be overwritten with key after? No, if the board keeps the best and
 * after is not strictly better, ignoring time. */
static inline bool rules_take(const struct rules *rules, uint64_t before, uint64_t after) {
    return !rules->keeps_best ||
           layout_without_time(&rules->layout, after) > layout_without_time(&rules->layout, before);
}

/* Are the rules valid: is the layout valid, and is the period a calendar period at whose start the
 * layout's times begin? reason: the first violation. */
MUST_CHECK bool rules_validate(const struct rules *rules, const char **reason);

struct rules_set {
    struct map map;        /* (hash of the rules, index) */
    struct pages list;     /* struct rules * */
    uint32_t count;        /* of the rules */
    uint32_t stale_count;  /* with a STALE */
    uint64_t league_count; /* users of those of leagues */
    uint64_t use_count;    /* of all */
    uint64_t hash_seed;
    struct rules *gone; /* out of the set, not yet freed */
};

/* hash_seed: random, secret. The set must not be moved in memory. */
void rules_set_init(struct rules_set *set, uint64_t hash_seed);
/* Requires that nothing is in use any more. */
void rules_set_deinit(struct rules_set *set);

/* The rules of the set that equal like, added if missing; increments the reference count. NULL: no
 * memory, nothing changed. */
MUST_CHECK const struct rules *rules_hold(struct rules_set *set, const struct rules *like);
/* Increment the reference count of rules in the set. Never fails. */
void rules_hold_again(struct rules_set *set, const struct rules *rules);
/* Decrement the reference count. At zero the rules leave the set, and are freed by rules_free_gone: whoever has looked up a
 * board may go on reading its rules, though another look-up has given it others. Never fails. rules may be NULL. */
void rules_release(struct rules_set *set, const struct rules *rules);
/* Free what was released: between two commands. */
void rules_free_gone(struct rules_set *set);
/* Is this pointer one of the set's rules? */
bool rules_are_in(const struct rules_set *set, const struct rules *rules);

/* Check the map, the list and the counts. reason: the first violated invariant. */
MUST_CHECK bool rules_set_validate(const struct rules_set *set, const char **reason);

#endif
