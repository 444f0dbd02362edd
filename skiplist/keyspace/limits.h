/* LIMITS: what a board takes as a result of a member, by value and by time.
 *
 *     LIMITS PLAYERS MAX 10000 EVERY 10 S RESULTS 50 PER DAY GAIN 5000 PER HOUR
 *
 *     rule, the member's record, result   ->   limits_check   ->   LIMITS: it may, and the record after it
 *                                                                  LIMIT_EVERY: it may not, for 4,000 ms
 *
 * Records are notes of the board (registry.h). A record has what its rule asks for: of EVERY the time of the last result, of
 * RESULTS and GAIN a window, which begins with a result when the last one is over, and what it has counted. A record
 * whose times are all over says nothing any more: limits_is_over. */
#ifndef SKIPLIST_LIMITS_H
#define SKIPLIST_LIMITS_H

#include "codec/layout.h"

enum limit {
    LIMIT_MAX,     /* the value is at most this */
    LIMIT_MIN,     /* at least */
    LIMIT_STEP,    /* at most so much better than the member's result before */
    LIMIT_EVERY,   /* so long after the member's result before */
    LIMIT_RESULTS, /* at most so many in a window */
    LIMIT_GAIN,    /* at most so much better in a window; who is not on the board begins at 0 */
    LIMIT_MINTIME, /* so long after the run began, as its ticket says: server/commands/ticketing.h looks at it */
    LIMITS,
};

/* What a limit has. */
enum {
    LIMIT_HAS_VALUE = 1, /* a decimal, in units of 10^-scale */
    LIMIT_HAS_COUNT = 2,
    LIMIT_HAS_TIME = 4,
};
struct limit_row {
    const char *name;
    uint8_t has;
};
extern const struct limit_row limit_rows[LIMITS];

#define LIMIT_COUNT_MAX   UINT32_MAX
#define LIMIT_TIME_MS_MAX (INT64_C(1000000) * 86400 * 1000)

/* Zeroed: no limits. Of limits that are not there, all is 0. */
struct limits_rule {
    int64_t of[LIMITS];      /* value, or count */
    int64_t time_ms[LIMITS]; /* of EVERY, and of the windows: whole seconds */
    uint8_t scale[LIMITS];   /* of a value: the smallest that keeps it, at most DECIMAL_SCALE_MAX */
    uint8_t has;             /* a bit for each limit */
    bool is_for_all;         /* not for players alone */
};
static inline bool limits_has(const struct limits_rule *rule, enum limit limit) {
    return (rule->has >> limit & 1) != 0;
}
bool limits_equal(const struct limits_rule *a, const struct limits_rule *b);
/* Why the first field cannot have them, as an error text; NULL: it can. */
const char *limits_refuse(const struct limits_rule *rule, const struct layout_field *lead);
/* Are the numbers in their ranges? */
MUST_CHECK bool limits_validate(const struct limits_rule *rule);

/* Of one member; all zero: no result yet. Times are below LIMITS_TIME_MS_END, in the year 3084. */
#define LIMITS_TIME_MS_END (INT64_C(1) << 45)
struct limits_record {
    int64_t last_ms;    /* of EVERY */
    int64_t results_ms; /* when the window of RESULTS began */
    int64_t gain_ms;    /* and that of GAIN */
    uint64_t gained;    /* in units of the first field */
    uint32_t results;
};
enum { LIMITS_RECORD_BYTES_MAX = 6 + 2 * 7 + 5 + 10 };
/* Write what the rule asks for to out; returns the size: 0 if that is nothing. */
size_t limits_pack(const struct limits_rule *rule, const struct limits_record *record,
                   uint8_t out[LIMITS_RECORD_BYTES_MAX]);
/* Read any record, also one that an older rule has written. false: it is none; *record is then zeroed. */
bool limits_unpack(struct bytes note, struct limits_record *record);
/* Does a record change nothing from this time on? */
bool limits_is_over(const struct limits_rule *rule, const struct limits_record *record,
                    int64_t now_ms);

/* A result of a member. */
struct limits_result {
    const struct layout_field *lead;
    uint64_t before, after; /* ordinals; before only if had_result */
    bool had_result;
    bool is_as_before; /* it changes no value: MAX, MIN, STEP and GAIN have nothing to say */
};
/* May it be? The limit that forbids it, and *record as it was; LIMITS: none, and *record is the one after it. *wait_ms: of EVERY,
 * RESULTS and GAIN, after which time the same would do; 0: at no time. */
MUST_CHECK enum limit limits_check(const struct limits_rule *rule,
                                   const struct limits_result *result, int64_t now_ms,
                                   struct limits_record *record, int64_t *wait_ms);
/* How much better it is than what the member had, in units of the first field; a member without a result begins at 0,
 * of an ASC field nowhere. */
uint64_t limits_gain(const struct limits_result *result);

#endif
