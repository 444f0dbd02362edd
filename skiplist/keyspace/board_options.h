/* The options of a board, what LB.CREATE and `board` lines say of it with its layout; and its state, what happens to it.
 *
 *     board.layout --> options.layout <-- board.layout      boards with equal options share one copy
 *     key, with its state                                 if there is something to keep: changed in place
 *
 * A server may hold a million boards, so a board has no room for its own options: it points to the
 * layout inside its options, and board_options_of leads from there to the rest. The options in use form a set,
 * each stored once with a reference count, and are immutable.
 *
 * A board with a PERIOD rolls over at the end of each. It then gets the options of the new
 * period, where START of the layout's TIME is the period's start.
 *
 * Each option has a row. From it follow what LB.CREATE, LB.ALTER and `board` lines take and the errors they reply, the
 * syntax that COMMAND DOCS and the documentation show, LB.INFO, and the text of an export.
 *
 *     CAP 1000   ->   board_options[BOARD_OPTION_CAP]   ->   options.cap = 1000   ->   "cap" of LB.INFO
 *
 * A new option is a row, a member of struct board_options, and what it does. The row says, too, whether rooms of leagues
 * have it. Where the value is more than a number or a word of the row, its form says so: server/settings/setting_options.c
 * has the functions. */
#ifndef SKIPLIST_BOARD_OPTIONS_H
#define SKIPLIST_BOARD_OPTIONS_H

#include "codec/layout.h"
#include "codec/period.h"
#include "codec/rating.h"
#include "skiplist/keyspace/limits.h"
#include "skiplist/map.h"

#define BOARD_CAP_MAX UINT32_MAX /* the maximum number of members of a board */
/* No ARCHIVE limit: all are kept. */
#define BOARD_ARCHIVES_ALL UINT32_MAX

enum {
    BOARD_FROZEN = 1,
    BOARD_OPENS = 2,    /* opens_ms is given */
    BOARD_CLOSES = 4,   /* closes_ms is */
    BOARD_RATED = 16,   /* matches alone write it */
    BOARD_LEAGUE = 8,   /* of a league: only LB.LEAGUE writes, and league.room is above 0 */
    BOARD_WINDOW = 64,  /* what its members have follows from shares */
    BOARD_TICKETS = 32, /* players' results need a ticket: server/commands/ticketing.h */
};

/* Of fraction_ms; times are from 2000 on, so that seconds are not taken for milliseconds. */
#define BOARD_FRACTION_IS_NOTHING 1
#define BOARD_FRACTION_MIN_MS     INT64_C(946684800000)
#define BOARD_FRACTION_MAX_MS     (INT64_MAX / 2000)

#define BOARD_STALE_MAX_MS (INT64_C(1000000) * 86400 * 1000)

/* Of the board that keeps the members of a league (skiplist/keyspace/league.h). room 0: of any other
 * board; the rest is 0 then. */
struct board_league {
    uint16_t room;       /* members of a room, at the most */
    uint16_t up, down;   /* how many of a room change their tier */
    uint8_t tiers;       /* at least 1 */
    bool idle_goes_down; /* a period without a result takes a member one tier down */
};

enum {
    LEAGUE_ROOM_MAX = 1000, /* members */
    LEAGUE_TIERS_MAX = 255,
};

#define BOARD_WINDOW_MAX 1000

/* WINDOW: the board ranks what its members got in the running period and the count - 1 before it.
 * What they got in one period is a board of its own, the period's share, under the name that the
 * archive of the period has; it has count 0 and is_share. All zero: neither.
 * How they are kept: server/commands/window.h. */
struct board_window {
    uint16_t count; /* 2 .. BOARD_WINDOW_MAX */
    bool is_best;   /* BEST: the best of the shares; else SUM */
    bool is_share;
};

/* HOLD: results that a board keeps without ranking them, until somebody has looked at them.
 *
 *     HOLD PLAYERS OVER 10000 TOP 10 LIMITS AUTO 24 H
 *
 * This is the rule; what is held is in notes of the board: server/commands/guarding.h. */
#define HOLD_TOP_MAX     1000000
#define HOLD_AUTO_MS_MAX (INT64_C(10000) * 86400 * 1000)

/* Zeroed: none. There are no hidden bytes. */
struct hold_rule {
    int64_t over;    /* of OVER, in units of 10^-scale; 0 without */
    int64_t auto_ms; /* of AUTO: whole hours; 0: without */
    uint32_t top;    /* of TOP; 0: without */
    uint8_t scale;   /* the smallest that keeps the value, at most DECIMAL_SCALE_MAX */
    bool has_over;
    bool takes_limits; /* LIMITS: what breaks a limit is held instead of refused */
    bool is_for_all;   /* not for players alone */
};

/* Zeroed except for the layout: a board without options. Down to the index there are no hidden bytes, so that options are
 * compared and hashed as bytes; each member has a row below. */
struct board_options {
    struct period period;        /* PERIOD; zero without one */
    int64_t opens_ms, closes_ms; /* writes are refused before and from then on; 0: no such time */
    int64_t stale_ms;        /* a member whose time is longer ago leaves; 0: none; needs a TIME */
    int64_t period_start_ms; /* of the board's current period; 0: none yet */
    int64_t period_end_ms;
    /* SCORE+FRACTION t: behind the point of a Redis's double is 1 - time / t. BOARD_FRACTION_IS_NOTHING: no time. 0: the
     * double is a score. */
    int64_t fraction_ms;
    struct board_league league;
    struct board_window window;
    uint32_t cap;               /* number of best members that the board keeps; 0: all */
    uint32_t limit;             /* number of members from which on newcomers are refused; 0: none */
    uint32_t archives_max;      /* periods with an archive, or BOARD_ARCHIVES_ALL */
    bool keeps_best;            /* only strictly better results count, increments excepted */
    bool is_created;            /* by LB.CREATE: the board stays when its last member is removed */
    bool archives_are_writable; /* with a PERIOD: its archives are not frozen */
    bool settles;               /* SETTLE YES: an archive has no expiry until it is settled */
    bool copies;      /* COPY: archives are copies, and the board goes on; needs a PERIOD */
    bool is_archive;  /* of a period that has ended: it is to be settled */
    uint8_t guards;   /* BOARD_FROZEN etc.: what can refuse a write; 0: nothing */
    bool is_packed;   /* PACKED: a Redis's double is a key of the layout, not a score */
    bool is_dense;    /* DENSE: the board counts different scores (skiplist/dense.c) */
    bool has_rating;  /* RATING: then `rating` counts, too */
    bool has_limits;  /* LIMITS: then `limits` counts, too */
    bool has_hold;    /* HOLD: then `hold` counts, too */
    bool has_shadows; /* some members see entries of theirs alone: server/commands/ban.h */
    uint8_t unused[3];
    uint32_t index; /* in the set; this and the following fields are private to the set */
    union {
        uint64_t use_count;
        struct board_options *next_gone; /* when nobody uses them any more */
    };
    uint64_t hash;
    /* Matches change the members' records, which are notes of the board (registry.h); who is ranked has a score that
     * follows from the record. */
    struct rating_rule rating;
    struct limits_rule limits;
    struct hold_rule hold;
    struct layout layout; /* last: in the set the allocation ends behind its last field */
};

/* The options of a board of the registry, from its layout. */
static inline const struct board_options *board_options_of(const struct layout *layout) {
    const void *options = (const char *)layout - offsetof(struct board_options, layout);
    return options;
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
static inline bool board_options_have_state(const struct board_options *options) {
    return options->window.count > 0 || options->window.is_share || options->is_archive;
}
/* May members have notes, on the board or not? */
static inline bool board_options_have_notes(const struct board_options *options) {
    return options->has_rating || options->has_limits || options->has_hold || options->has_shadows;
}
static inline bool board_options_are_unsettled(const struct board_options *options,
                                               const struct board_state *state) {
    return options->is_archive && !state->is_settled;
}
/* The state of a board that begins with these options. */
struct board_state board_options_begin_state(const struct board_options *options);
/* What is left of a state where the options become these. */
struct board_state board_options_keep_state(const struct board_options *options,
                                            const struct board_state *state);
/* Can a board with these options have it? */
MUST_CHECK bool board_options_take_state(const struct board_options *options,
                                         const struct board_state *state);

/* Copy options, which may be in a set. */
void board_options_copy(const struct board_options *options, struct board_options *copy);
/* Do two boards with these options behave identically? */
bool board_options_equal(const struct board_options *a, const struct board_options *b);
/* Are the layouts equal except for START, and except for START and tags? */
bool board_options_are_akin(const struct board_options *a, const struct board_options *b);
bool board_options_keys_are_akin(const struct board_options *a, const struct board_options *b);

/* Move options with a PERIOD to the period that contains this time, and START with it. */
void board_options_begin_period(struct board_options *options, int64_t now_ms);
/* The same, but START stays: of a board with members. */
void board_options_enter_period(struct board_options *options, int64_t now_ms);
/* What a write does to a board. */
enum board_write {
    BOARD_WRITE_MEMBERS, /* puts or takes members that it names */
    BOARD_WRITE_WHOLE,   /* takes or stores any */
    BOARD_WRITE_LEAGUE,  /* LB.LEAGUE, on the board of its league */
    BOARD_WRITE_RATED,   /* LB.MATCH and LB.RATE */
    BOARD_WRITE_AWAY,    /* takes members that it names off, with what they have there */
};
/* Why it may not, now. The only question of this kind: whatever writes asks it, whether at once, for a
 * client that waited, or in a pass. */
enum board_refusal {
    BOARD_TAKE, /* it may */
    BOARD_REFUSE_SHARE,
    BOARD_REFUSE_FROZEN,
    BOARD_REFUSE_BEFORE, /* it opens later */
    BOARD_REFUSE_AFTER,  /* it is closed */
    BOARD_REFUSE_LEAGUE,
    BOARD_REFUSE_WINDOW,
    BOARD_REFUSE_RATED,
};
enum board_refusal board_options_find_refusal(const struct board_options *options,
                                              enum board_write write, int64_t now_ms);
static inline enum board_refusal board_options_refuse(const struct board_options *options,
                                                      enum board_write write, int64_t now_ms) {
    return __builtin_expect(options->guards == 0, 1)
               ? BOARD_TAKE
               : board_options_find_refusal(options, write, now_ms);
}
/* Does it last as long as the board is what it is? The others end by a time or by THAW. */
static inline bool board_options_refusal_lasts(enum board_refusal refusal) {
    return refusal == BOARD_REFUSE_LEAGUE || refusal == BOARD_REFUSE_WINDOW ||
           refusal == BOARD_REFUSE_RATED;
}
/* After an update of tzdata: move the period's end to where the zone's calendar has it now. */
void board_options_renew_period(struct board_options *options);
/* Is the period over at this time? Never true without a PERIOD. */
static inline bool board_options_are_over(const struct board_options *options, int64_t now_ms) {
    return options->period.unit != PERIOD_NONE && options->period_end_ms <= now_ms;
}
/* Set archive to the options of the archive of a board that rolls over: no PERIOD, no times, and
 * removed with its last member. It is frozen if the board has a PERIOD and does not say
 * otherwise. */
void board_options_end_period(const struct board_options *options, struct board_options *archive);
/* When the archive's period has ended: at its end, if that is not after now_ms. */
static inline int64_t board_options_ended_ms(const struct board_options *options, int64_t now_ms) {
    return board_options_are_over(options, now_ms) ? options->period_end_ms : now_ms;
}
/* Move a board with a WINDOW, whose period is over at this time, to the period that contains it. If more periods
 * than the WINDOW has would have to leave one after another, the board is to be made anew instead: so from
 * from_ms to the running period there are never more than twice as many. */
void board_options_slide(struct board_options *options, struct board_state *state, int64_t now_ms);
/* Set share to the options of the share of the running period: as those of an archive, but nothing is to be
 * settled yet, and frozen, so that it is written only together with the board. Its from_ms is the period's start. */
void board_options_begin_share(const struct board_options *options, struct board_options *share);
/* How many periods that count have to leave? That the board is to be made anew counts as one. More than `most`
 * are `most`. */
uint32_t board_options_window_behind(const struct board_options *options,
                                     const struct board_state *state, uint32_t most);
/* The options of a copy of the board: without WINDOW, and then without PERIOD; no share. */
void board_options_without_window(const struct board_options *options, struct board_options *copy);
/* When an archive of this period drops out of the newest that are kept; INT64_MAX: never. */
int64_t board_options_archive_end_ms(const struct board_options *options);

/* May a member with key before be overwritten with key after? No, if the board keeps the best and
 * after is not strictly better, ignoring time. */
static inline bool board_options_take(const struct board_options *options, uint64_t before,
                                      uint64_t after) {
    return !options->keeps_best || layout_without_time(&options->layout, after) >
                                       layout_without_time(&options->layout, before);
}

/* Are the options valid: is the layout valid, and is the period a calendar period at whose start the
 * layout's times begin? reason: the first violation. */
MUST_CHECK bool board_options_validate(const struct board_options *options, const char **reason);

struct board_options_set {
    struct map map;        /* (hash of the options, index) */
    struct map_pages list; /* struct board_options * */
    uint32_t count;        /* of the options */
    uint32_t shadow_count; /* with has_shadows */
    uint64_t league_count; /* users of those of leagues */
    uint64_t use_count;    /* of all */
    uint64_t hash_seed;
    struct board_options *gone; /* out of the set, not yet freed */
};

/* hash_seed: random, secret. The set must not be moved in memory. */
void board_options_set_init(struct board_options_set *set, uint64_t hash_seed);
/* Requires that nothing is in use any more. */
void board_options_set_deinit(struct board_options_set *set);

/* The options of the set that equal like, added if missing; increments the reference count. NULL: no
 * memory, nothing changed. */
MUST_CHECK const struct board_options *board_options_hold(struct board_options_set *set,
                                                          const struct board_options *like);
/* Increment the reference count of options in the set. Never fails. */
void board_options_hold_again(struct board_options_set *set, const struct board_options *options);
/* Decrement the reference count. At zero the options leave the set, and are freed by board_options_free_gone: whoever has
 * looked up a board may go on reading its options, though another look-up has given it others. Never fails. options may be
 * NULL. */
void board_options_release(struct board_options_set *set, const struct board_options *options);
/* Free what was released: between two commands. */
void board_options_free_gone(struct board_options_set *set);
/* Is this pointer one of the set's options? */
bool board_options_are_in(const struct board_options_set *set, const struct board_options *options);

/* Check the map, the list and the counts. reason: the first violated invariant. */
MUST_CHECK bool board_options_set_validate(const struct board_options_set *set,
                                           const char **reason);

/* ---- the rows ---- */

enum board_option_form {
    BOARD_FORM_FLAG,   /* the word alone is value */
    BOARD_FORM_YES_NO, /* YES is 1 */
    BOARD_FORM_CHOICE, /* one of two words: 0 and 1 */
    BOARD_FORM_NUMBER, /* minimum .. maximum */
    BOARD_FORM_HOUR,
    BOARD_FORM_TIME, /* given as ISO 8601 or unix milliseconds, kept as the latter; 0: none */
    BOARD_FORM_AGE,  /* a number of units, kept in milliseconds */
    BOARD_FORM_UNIT, /* of a PERIOD, and likewise */
    BOARD_FORM_WEEKDAY,
    BOARD_FORM_DATE,
    BOARD_FORM_ZONE,
    BOARD_FORM_WINDOW,   /* a number, and what the periods are to it */
    BOARD_FORM_FRACTION, /* a time, or nothing */
    BOARD_FORM_POINTER,  /* a zone with a name */
    BOARD_FORM_RATING,   /* a system, and names and values of what is not as usual in it */
    BOARD_FORM_LIMITS,   /* for whom, and limits */
    BOARD_FORM_HOLD,     /* for whom, and which results */
};

/* What else must be there; without it the value is 0. */
enum board_option_needs {
    BOARD_NEEDS_NOTHING,
    BOARD_NEEDS_PERIOD,
    BOARD_NEEDS_WEEK,  /* a PERIOD WEEK */
    BOARD_NEEDS_EVERY, /* a PERIOD of several units */
    BOARD_NEEDS_WINDOW,
    BOARD_NEEDS_SHARE, /* the board of one period of a WINDOW */
    BOARD_NEEDS_LEAGUE,
    BOARD_NEEDS_END, /* an archive */
};

struct board_option {
    const char *word;         /* NULL: it has none */
    const char *wanted;       /* "CAP 'x' is not a valid number of members: 1..4294967295" */
    const char *words[2];     /* of a choice */
    int64_t minimum, maximum; /* of a number */
    int64_t usual;            /* where nothing is said, and what it needs is there */
    const char *none;         /* a word for the usual value, which LB.INFO shows as nil */
    const char *behind; /* "STALE needs a number and a unit: ...", of forms of several words */
    const char *second; /* words of a number's second word */
    const char *alone;  /* what it is called where a WINDOW excludes it; NULL: it does not */
    const char *not_in_rooms; /* why rooms of a league cannot have it; NULL: they can */
    uint8_t code;             /* in files and in the streams of replicas, for ever; 0: is_other */
    uint16_t at; /* where in struct board_options, or struct board_state, its value is */
    uint8_t size;
    uint8_t bit;       /* of the byte there; 0: all of them */
    uint8_t value;     /* of a flag */
    uint8_t form;      /* enum board_option_form */
    uint8_t needs;     /* enum board_option_needs */
    bool is_state;     /* not said by the board's owner: only read back from an export */
    bool is_of_state;  /* its value is in struct board_state */
    bool is_of_league; /* a word of LB.LEAGUE CREATE */
    bool is_of_line;   /* a word of `board` lines alone: what the values of a Redis mean */
    bool is_kept;      /* by an archive, from its board */
    bool is_more;      /* another value of the option before, and given behind it */
    bool may_be_alone; /* without a value it is 1 */
    bool is_other;     /* another word for another value of the row before */
    bool restarts;     /* a new PERIOD begins with the usual value */
};

#define BOARD_OPTION_PERIODS "HOUR | DAY | WEEK | MONTH | YEAR"

#define BOARD_RATING_SYNTAX                                                                        \
    "[RATING system=<ELO | GLICKO2 | OPENSKILL> parameters=[parameter value]...] "
#define BOARD_LIMITS                                                                               \
    "for=<PLAYERS | ALL> [MAX max] [MIN min] [STEP step] "                                         \
    "cooldown=[EVERY count:integer unit=<S | M | H | D>] "                                         \
    "[RESULTS results:integer PER unit=<MINUTE | HOUR | DAY>] "                                    \
    "[GAIN gain PER unit=<MINUTE | HOUR | DAY>] "                                                  \
    "[MINTIME run:integer unit=<S | M | H | D>]"
#define BOARD_LIMITS_SYNTAX(of) " [LIMITS " of "]"
#define BOARD_HOLD                                                                                 \
    "for=<PLAYERS | ALL> [OVER over] [TOP top:integer] broken=[LIMITS] "                           \
    "auto=[AUTO count:integer unit=<H | D>]"
#define BOARD_HOLD_SYNTAX(of) " [HOLD " of "]"

/* ROW(name, member, syntax of `board` lines, of LB.CREATE, of LB.ALTER, of LB.LEAGUE CREATE for its rooms, the rest of the
 * row) */
#define BOARD_OPTIONS_FIRST(ROW)                                                                   \
    ROW(CAP, cap, "[CAP n", "size=[CAP cap:integer", "size=[CAP cap", "", .code = 1,               \
        .word = "CAP", .is_kept = true, .form = BOARD_FORM_NUMBER, .wanted = "number of members",  \
        .minimum = 1, .maximum = BOARD_CAP_MAX, .none = "NONE", .alone = "CAP",                    \
        .not_in_rooms = "CAP and LIMIT are not possible: ROOM limits rooms")                       \
    ROW(LIMIT, limit, " | LIMIT n] ", " | LIMIT limit:integer] ", " | LIMIT limit] ", "",          \
        .code = 2, .word = "LIMIT", .is_kept = true, .form = BOARD_FORM_NUMBER,                    \
        .wanted = "number of members", .minimum = 1, .maximum = BOARD_CAP_MAX, .none = "NONE",     \
        .alone = "LIMIT", .not_in_rooms = "CAP and LIMIT are not possible: ROOM limits rooms")     \
    ROW(KEEP, keeps_best, "[KEEP LAST|BEST] ", "[KEEP <LAST | BEST>] ", "[KEEP <LAST | BEST>] ",   \
        "[KEEP <LAST | BEST>] ", .code = 3, .word = "KEEP", .is_kept = true,                       \
        .form = BOARD_FORM_CHOICE, .words = {"LAST", "BEST"}, .wanted = "LAST or BEST")            \
    ROW(FREEZE, guards, "[FREEZE] ", "[FREEZE] ", "state=[FREEZE", "", .code = 4,                  \
        .word = "FREEZE", .form = BOARD_FORM_FLAG, .bit = BOARD_FROZEN, .value = 1)                \
    ROW(THAW, guards, "", "", " | THAW] ", "", .word = "THAW", .form = BOARD_FORM_FLAG,            \
        .bit = BOARD_FROZEN, .is_other = true)                                                     \
    ROW(OPENS, opens_ms, "[OPENS t] ", "[OPENS time] ", "[OPENS time] ", "", .code = 5,            \
        .word = "OPENS", .form = BOARD_FORM_TIME,                                                  \
        .wanted = "time: ISO 8601 with an offset, or unix milliseconds", .none = "NONE")           \
    ROW(CLOSES, closes_ms, "[CLOSES t] ", "[CLOSES time] ", "[CLOSES time] ", "", .code = 6,       \
        .word = "CLOSES", .form = BOARD_FORM_TIME,                                                 \
        .wanted = "time: ISO 8601 with an offset, or unix milliseconds", .none = "NONE")           \
    ROW(STALE, stale_ms, "[STALE n MINUTE|HOUR|DAY] ",                                             \
        "[STALE count:integer unit=<MINUTE | HOUR | DAY>] ",                                       \
        "[STALE age [unit=<MINUTE | HOUR | DAY>]] ", "", .code = 7, .word = "STALE",               \
        .form = BOARD_FORM_AGE, .wanted = "number of units", .minimum = 1, .maximum = 1000000,     \
        .behind = "a number and a unit: STALE n MINUTE|HOUR|DAY", .second = "MINUTE, HOUR or DAY", \
        .none = "NONE", .alone = "STALE",                                                          \
        .not_in_rooms = "STALE is not possible: whoever leaves a room moves the others' places. "  \
                        "IDLE DOWN is for those who do not come")                                  \
    ROW(SETTLE, settles, "[SETTLE YES|NO] ", "[SETTLE <YES | NO>] ", "[SETTLE <YES | NO>] ",       \
        "[SETTLE <YES | NO>] ", .code = 8, .word = "SETTLE", .form = BOARD_FORM_YES_NO,            \
        .words = {"NO", "YES"}, .wanted = "YES or NO")                                             \
    ROW(DENSE, is_dense, "[DENSE] ", "[DENSE] ", "[DENSE <YES | NO>] ", "[DENSE] ", .code = 39,    \
        .word = "DENSE", .is_kept = true, .form = BOARD_FORM_YES_NO, .words = {"NO", "YES"},       \
        .wanted = "YES or NO", .may_be_alone = true)                                               \
    ROW(RATING, has_rating, "[RATING ELO|GLICKO2|OPENSKILL [name value ...]] ",                    \
        BOARD_RATING_SYNTAX, BOARD_RATING_SYNTAX, "", .code = 40, .word = "RATING",                \
        .is_kept = true, .form = BOARD_FORM_RATING, .wanted = "ELO, GLICKO2 or OPENSKILL",         \
        .alone = "RATING", .not_in_rooms = "a league takes no RATING: its rooms take results")     \
    ROW(PERIOD, period.unit, "[PERIOD HOUR|DAY|WEEK|MONTH|YEAR ",                                  \
        "[PERIOD unit=<" BOARD_OPTION_PERIODS "> ",                                                \
        "[PERIOD unit=<" BOARD_OPTION_PERIODS " | NONE>] ",                                        \
        "[PERIOD unit=<" BOARD_OPTION_PERIODS ">] ", .code = 9, .word = "PERIOD",                  \
        .form = BOARD_FORM_UNIT, .wanted = "HOUR, DAY, WEEK, MONTH or YEAR", .none = "NONE")
#define BOARD_OPTIONS_WHEN(ROW)                                                                    \
    ROW(EVERY, period.every, "[EVERY n] ", "[EVERY units:integer] ", "[EVERY units:integer] ",     \
        "[EVERY units:integer] ", .code = 10, .word = "EVERY", .form = BOARD_FORM_NUMBER,          \
        .wanted = "number of periods in one", .minimum = 1, .maximum = PERIOD_EVERY_MAX,           \
        .usual = 1, .needs = BOARD_NEEDS_PERIOD, .restarts = true)                                 \
    ROW(ON, period.weekday, "[ON weekday] ", "[ON weekday] ", "[ON weekday] ", "[ON weekday] ",    \
        .code = 11, .word = "ON", .form = BOARD_FORM_WEEKDAY,                                      \
        .wanted = "weekday: MON, TUE, WED, THU, FRI, SAT or SUN", .needs = BOARD_NEEDS_WEEK,       \
        .restarts = true)                                                                          \
    ROW(AT, period.hour, "[AT hour] ", "[AT hour:integer] ", "[AT hour:integer] ",                 \
        "[AT hour:integer] ", .code = 12, .word = "AT", .form = BOARD_FORM_HOUR,                   \
        .wanted = "hour of the day", .maximum = 23, .needs = BOARD_NEEDS_PERIOD)                   \
    ROW(FROM, period.from_day, "[FROM date] ", "[FROM date] ", "[FROM date] ", "[FROM date] ",     \
        .code = 13, .word = "FROM", .form = BOARD_FORM_DATE, .wanted = "date: 2026-11-16",         \
        .needs = BOARD_NEEDS_EVERY, .restarts = true)                                              \
    ROW(TZ, period.zone_minutes, "[TZ +08:00|Europe/Berlin] ", "[TZ zone] ", "[TZ zone] ",         \
        "[TZ zone] ", .code = 14, .word = "TZ", .form = BOARD_FORM_ZONE,                           \
        .needs = BOARD_NEEDS_PERIOD,                                                               \
        .wanted = "offset from UTC or name of a time zone: -12:00..+14:00, Europe/Berlin")         \
    ROW(ZONE, period.zone, "", "", "", "", .code = 15, .form = BOARD_FORM_POINTER,                 \
        .needs = BOARD_NEEDS_PERIOD)
#define BOARD_OPTIONS_ARCHIVES(ROW)                                                                \
    ROW(ARCHIVE, archives_max, "[ARCHIVE n] ", "[ARCHIVE periods:integer] ", "[ARCHIVE periods] ", \
        "[ARCHIVE periods:integer] ", .code = 16, .word = "ARCHIVE", .form = BOARD_FORM_NUMBER,    \
        .wanted = "number of periods", .maximum = PERIOD_COUNT_MAX, .usual = BOARD_ARCHIVES_ALL,   \
        .none = "ALL", .needs = BOARD_NEEDS_PERIOD)                                                \
    ROW(ARCHIVED, archives_are_writable, "[ARCHIVED FROZEN|WRITABLE] ",                            \
        "[ARCHIVED <FROZEN | WRITABLE>] ", "[ARCHIVED <FROZEN | WRITABLE>] ",                      \
        "[ARCHIVED <FROZEN | WRITABLE>] ", .code = 17, .word = "ARCHIVED",                         \
        .form = BOARD_FORM_CHOICE, .words = {"FROZEN", "WRITABLE"},                                \
        .wanted = "FROZEN or WRITABLE", .needs = BOARD_NEEDS_PERIOD, .alone = "ARCHIVED WRITABLE")
#define BOARD_OPTIONS_THEN(ROW)                                                                    \
    ROW(COPY, copies, "[COPY] ", "[COPY] ", "[COPY] ", "", .code = 18, .word = "COPY",             \
        .form = BOARD_FORM_FLAG, .value = 1, .needs = BOARD_NEEDS_PERIOD, .restarts = true,        \
        .alone = "COPY", .not_in_rooms = "COPY is not possible: rooms begin anew")                 \
    ROW(WINDOW, window.count, "[WINDOW n SUM|BEST]] ", "[WINDOW window:integer of=<SUM | BEST>]]", \
        "[WINDOW window [of=<SUM | BEST>]]", "", .code = 19, .word = "WINDOW",                     \
        .form = BOARD_FORM_WINDOW, .wanted = "number of periods",                                  \
        .behind = "a number of periods and what they are to it: WINDOW n SUM|BEST",                \
        .second = "SUM or BEST", .minimum = 2, .maximum = BOARD_WINDOW_MAX, .none = "NONE",        \
        .needs = BOARD_NEEDS_PERIOD, .not_in_rooms = "WINDOW is not possible: rooms begin anew")   \
    ROW(WINDOW_OF, window.is_best, "", "", "", "", .code = 20, .is_more = true,                    \
        .form = BOARD_FORM_CHOICE, .words = {"SUM", "BEST"}, .needs = BOARD_NEEDS_WINDOW)          \
    ROW(LIMITS, has_limits, "[LIMITS PLAYERS|ALL limit ...]", BOARD_LIMITS_SYNTAX(BOARD_LIMITS),   \
        BOARD_LIMITS_SYNTAX("limits=<bound=(" BOARD_LIMITS ") | NONE>"), "", .code = 41,           \
        .word = "LIMITS", .is_kept = true, .form = BOARD_FORM_LIMITS, .wanted = "PLAYERS or ALL",  \
        .behind = "limits behind it: MAX, MIN, STEP, EVERY, RESULTS, GAIN or MINTIME",             \
        .none = "NONE")                                                                            \
    ROW(TICKETS, guards, " [TICKETS YES|NO]", " [TICKETS <YES | NO>]", " [TICKETS <YES | NO>]",    \
        "", .code = 42, .word = "TICKETS", .is_kept = true, .form = BOARD_FORM_YES_NO,             \
        .words = {"NO", "YES"}, .wanted = "YES or NO", .bit = BOARD_TICKETS)                       \
    ROW(HOLD, has_hold, " [HOLD PLAYERS|ALL result ...]", BOARD_HOLD_SYNTAX(BOARD_HOLD),           \
        BOARD_HOLD_SYNTAX("hold=<held=(" BOARD_HOLD ") | NONE>"), "", .code = 43, .word = "HOLD",  \
        .is_kept = true, .form = BOARD_FORM_HOLD, .wanted = "PLAYERS or ALL",                      \
        .behind = "OVER, TOP or LIMITS behind it", .none = "NONE", .alone = "HOLD",                \
        .not_in_rooms =                                                                            \
            "HOLD is not possible: who goes up and down follows from the results in rooms")        \
    /* How a Redis that is followed or imported has packed what it keeps as a double. */           \
    ROW(PACKED, is_packed, " [PACKED", "", "", "", .code = 37, .word = "PACKED",                   \
        .is_of_line = true, .form = BOARD_FORM_FLAG, .value = 1)                                   \
    ROW(FRACTION, fraction_ms, " | SCORE+FRACTION [t]] ", "", "", "", .code = 38,                  \
        .word = "SCORE+FRACTION", .is_of_line = true, .form = BOARD_FORM_FRACTION,                 \
        .may_be_alone = true,                                                                      \
        .wanted = "time from 2000 on: ISO 8601 with an offset, or unix milliseconds")
/* What LB.LEAGUE CREATE says of a league; in an export the numbers are behind LEAGUE. */
#define BOARD_OPTIONS_LEAGUE(ROW)                                                                  \
    ROW(LEAGUE, league.room, "", "", "", "(ROOM members:integer) ", .code = 21, .word = "LEAGUE",  \
        .form = BOARD_FORM_NUMBER, .wanted = "number", .maximum = UINT16_MAX, .is_state = true)    \
    ROW(TIERS, league.tiers, "", "", "", "(TIERS tiers:integer) ", .code = 22, .word = "TIERS",    \
        .is_more = true, BOARD_FORM_LEAGUE(1, LEAGUE_TIERS_MAX))                                   \
    ROW(UP, league.up, "", "", "", "(UP members:integer) ", .code = 23, .word = "UP",              \
        .is_more = true, BOARD_FORM_LEAGUE(0, LEAGUE_ROOM_MAX))                                    \
    ROW(DOWN, league.down, "", "", "", "(DOWN members:integer) ", .code = 24, .word = "DOWN",      \
        .is_more = true, BOARD_FORM_LEAGUE(0, LEAGUE_ROOM_MAX))                                    \
    ROW(IDLE, league.idle_goes_down, "", "", "", "[IDLE <STAY | DOWN>] ", .code = 25,              \
        .word = "IDLE", .is_more = true, .form = BOARD_FORM_CHOICE, .maximum = 1,                  \
        .words = {"STAY", "DOWN"}, .wanted = "STAY or DOWN", .is_of_league = true,                 \
        .needs = BOARD_NEEDS_LEAGUE)                                                               \
    ROW(ROOM, league.room, "", "", "", "", .word = "ROOM", .is_other = true,                       \
        BOARD_FORM_LEAGUE(1, LEAGUE_ROOM_MAX))
/* What the board is. */
#define BOARD_OPTIONS_BEING(ROW)                                                                   \
    ROW(IS_SHARE, window.is_share, "", "", "", "", .code = 32, .form = BOARD_FORM_FLAG,            \
        .value = 1)                                                                                \
    ROW(IS_ARCHIVE, is_archive, "", "", "", "", .code = 36, .form = BOARD_FORM_FLAG, .value = 1)   \
    ROW(SHADOWS, has_shadows, "", "", "", "", .code = 44, .is_kept = true,                         \
        .form = BOARD_FORM_FLAG, .value = 1)                                                       \
    ROW(CREATED, is_created, "", "", "", "", .code = 33, .word = "CREATED",                        \
        .form = BOARD_FORM_FLAG, .value = 1, .is_state = true)                                     \
    ROW(STARTED, period_start_ms, "", "", "", "", .code = 34, .word = "STARTED",                   \
        BOARD_FORM_ANY_TIME, .is_state = true, .needs = BOARD_NEEDS_PERIOD)                        \
    ROW(ENDS, period_end_ms, "", "", "", "", .code = 35, .word = "ENDS", BOARD_FORM_ANY_TIME,      \
        .is_state = true, .needs = BOARD_NEEDS_PERIOD)
#define BOARD_OPTIONS(ROW)                                                                         \
    BOARD_OPTIONS_FIRST(ROW)                                                                       \
    BOARD_OPTIONS_WHEN(ROW)                                                                        \
    BOARD_OPTIONS_ARCHIVES(ROW)                                                                    \
    BOARD_OPTIONS_THEN(ROW) BOARD_OPTIONS_LEAGUE(ROW) BOARD_OPTIONS_BEING(ROW)

/* What happens to it: rows as above without syntax for rooms, of struct board_state. */
#define BOARD_STATES(ROW)                                                                          \
    ROW(SETTLED, is_settled, "", "", "", .code = 26, .word = "SETTLED", .form = BOARD_FORM_FLAG,   \
        .value = 1, .is_state = true, .needs = BOARD_NEEDS_END)                                    \
    ROW(UNSETTLED, is_settled, "", "", "", .word = "UNSETTLED", .form = BOARD_FORM_FLAG,           \
        .is_state = true, .is_other = true, .needs = BOARD_NEEDS_END)                              \
    ROW(ENDED, ended_ms, "", "", "", .code = 27, .word = "ENDED", BOARD_FORM_ANY_TIME,             \
        .is_state = true, .needs = BOARD_NEEDS_END)                                                \
    ROW(EXPIRES, settled_expire_ms, "", "", "", .code = 28, .word = "EXPIRES",                     \
        BOARD_FORM_ANY_TIME, .is_state = true, .needs = BOARD_NEEDS_END)                           \
    ROW(COUNTS, from_ms, "", "", "", .code = 29, .word = "COUNTS", BOARD_FORM_ANY_TIME,            \
        .is_state = true, .needs = BOARD_NEEDS_WINDOW)                                             \
    ROW(SHARE, from_ms, "", "", "", .word = "SHARE", BOARD_FORM_ANY_TIME, .is_state = true,        \
        .is_other = true, .needs = BOARD_NEEDS_SHARE)                                              \
    ROW(LEFT, left, "", "", "", .code = 30, .word = "LEFT", .form = BOARD_FORM_NUMBER,             \
        .wanted = "number", .maximum = UINT32_MAX, .is_state = true, .needs = BOARD_NEEDS_WINDOW)  \
    ROW(ANEW, is_anew, "", "", "", .code = 31, .word = "ANEW", .form = BOARD_FORM_FLAG,            \
        .value = 1, .is_state = true, .needs = BOARD_NEEDS_WINDOW)

/* What LB.INFO shows, in its order: of a row its name there and its type, as server/dispatch/shape.h has it. In a map:
 * PERIOD, and what needs it. */
#define BOARD_INFO_FIRST(FIRST, ROW)                                                               \
    FIRST(CAP, "cap", "i?") ROW(KEEP, "keep", "<best|last>") ROW(CREATED, "created", "b")
#define BOARD_INFO_PERIOD(FIRST, ROW)                                                              \
    FIRST(PERIOD, "unit", "<HOUR|DAY|WEEK|MONTH|YEAR>")                                            \
    ROW(TZ, "tz", "s")                                                                             \
    ROW(STARTED, "start", "d")                                                                     \
    ROW(ENDS, "end", "d")                                                                          \
    ROW(ARCHIVE, "archive", "i?")                                                                  \
    ROW(EVERY, "every", "i")                                                                       \
    ROW(ON, "on", "s?")                                                                            \
    ROW(AT, "at", "i")                                                                             \
    ROW(FROM, "from", "s?") ROW(ARCHIVED, "archived", "<frozen|writable>") ROW(COPY, "copy", "b")
#define BOARD_INFO_THEN(FIRST, ROW)                                                                \
    FIRST(LIMIT, "limit", "i?")                                                                    \
    ROW(FREEZE, "frozen", "b")                                                                     \
    ROW(OPENS, "opens", "d?")                                                                      \
    ROW(CLOSES, "closes", "d?")                                                                    \
    ROW(STALE, "stale", "i?'milliseconds'")                                                        \
    ROW(SETTLE, "settle", "b")                                                                     \
    ROW(SETTLED, "settled", "b?'null: no archive'")                                                \
    ROW(ENDED, "ended", "d?")                                                                      \
    ROW(DENSE, "dense", "b")                                                                       \
    ROW(RATING, "rating", "s?")                                                                    \
    ROW(LIMITS, "limits", "s?") ROW(TICKETS, "tickets", "b") ROW(HOLD, "hold", "s?")
#define BOARD_INFO_WINDOW(FIRST, ROW)                                                              \
    FIRST(WINDOW, "periods", "i") ROW(WINDOW_OF, "of", "<sum|best>") ROW(COUNTS, "from", "d")
#define BOARD_INFO_LEAGUE(FIRST, ROW)                                                              \
    FIRST(LEAGUE, "room", "i")                                                                     \
    ROW(TIERS, "tiers", "i")                                                                       \
    ROW(UP, "up", "i") ROW(DOWN, "down", "i") ROW(IDLE, "idle", "<stay|down>")

#define BOARD_FORM_ANY_TIME                                                                        \
    .form = BOARD_FORM_NUMBER, .wanted = "number", .minimum = INT64_MIN, .maximum = INT64_MAX

#define BOARD_FORM_LEAGUE(least, most)                                                             \
    .form = BOARD_FORM_NUMBER, .wanted = "number", .minimum = (least), .maximum = (most),          \
    .is_of_league = true, .needs = BOARD_NEEDS_LEAGUE

#define BOARD_OPTION_ID(name, ...) BOARD_OPTION_##name,
enum board_option_id {
    BOARD_OPTIONS(BOARD_OPTION_ID) BOARD_STATES(BOARD_OPTION_ID) BOARD_OPTION_COUNT
};

/* The syntax: on `board` lines, of LB.CREATE and of LB.ALTER. */
#define BOARD_OPTION_LINE(name, member, line, create, ...)                line
#define BOARD_OPTION_CREATE(name, member, line, create, ...)              create
#define BOARD_OPTION_ALTER(name, member, line, create, alter, ...)        alter
#define BOARD_OPTION_ROOMS(name, member, line, create, alter, rooms, ...) rooms
/* Of LB.LEAGUE CREATE: what is of the league stands before ARCHIVE. */
#define BOARD_OPTIONS_SYNTAX_ROOMS                                                                 \
    BOARD_OPTIONS_FIRST(BOARD_OPTION_ROOMS)                                                        \
    BOARD_OPTIONS_WHEN(BOARD_OPTION_ROOMS)                                                         \
    BOARD_OPTIONS_LEAGUE(BOARD_OPTION_ROOMS)                                                       \
    BOARD_OPTIONS_ARCHIVES(BOARD_OPTION_ROOMS) BOARD_OPTIONS_THEN(BOARD_OPTION_ROOMS)

extern const struct board_option board_options[BOARD_OPTION_COUNT];

/* options: not asked for a row of the state; state: only then, and NULL is a zeroed one. */
int64_t board_options_get(const struct board_option *option, const struct board_options *options,
                          const struct board_state *state);
/* The value that needs no word: 0 where there is not what it needs. */
int64_t board_options_usual(const struct board_option *option, const struct board_options *options);
/* Likewise; NULL: nothing happens. */
void board_options_set(const struct board_option *option, struct board_options *options,
                       struct board_state *state, int64_t value);
/* Can a row have this value, which differs from its usual one? board_options_validate sees more. */
bool board_options_may_be(const struct board_option *option, int64_t value);
/* The row with a code, which is not 0; BOARD_OPTION_COUNT: none. */
size_t board_options_find(uint8_t code);
/* Is there what it needs? */
bool board_options_applies(const struct board_option *option, const struct board_options *options);
/* What of them contradicts the layout or another one, however they came: the error's text. NULL: nothing. */
const char *board_options_find_conflict(const struct board_options *options);
/* The first one that a WINDOW excludes, because it would change members otherwise; NULL: none. */
const struct board_option *board_options_find_alone(const struct board_options *options);
/* Why rooms of a league cannot have them, by the first row that says so; NULL: none does. */
const char *board_options_refuse_rooms(const struct board_options *options);
/* What the guards are by what there is: BOARD_FROZEN and BOARD_TICKETS stay. */
uint8_t board_options_guards(const struct board_options *options);

/* ---- HOLD ---- */

/* Are the numbers in their ranges, and is there a result that it holds? */
MUST_CHECK bool board_options_hold_is_right(const struct hold_rule *rule);
/* Why the first field, or a board without LIMITS, cannot have it, as an error text; NULL: it can. */
const char *board_options_hold_refuse(const struct hold_rule *rule, bool has_limits,
                                      const struct layout_field *lead);
/* OVER: is a value of the first field better than the rule's? */
bool board_options_hold_is_over(const struct hold_rule *rule, const struct layout_field *lead,
                                uint64_t ordinal);

#endif
