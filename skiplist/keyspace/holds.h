/* HOLD: results that a board keeps without ranking them, until somebody has looked at them.
 *
 *     HOLD PLAYERS OVER 10000 TOP 10 LIMITS AUTO 24 H
 *
 * This is the rule; what is held is in notes of the board: server/commands/holding.h. */
#ifndef SKIPLIST_HOLDS_H
#define SKIPLIST_HOLDS_H

#include "codec/layout.h"

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
bool holds_equal(const struct hold_rule *a, const struct hold_rule *b);
/* Are the numbers in their ranges, and is there a result that it holds? */
MUST_CHECK bool holds_validate(const struct hold_rule *rule);
/* Why the first field, or a board without LIMITS, cannot have it, as an error text; NULL: it can. */
const char *holds_refuse(const struct hold_rule *rule, bool has_limits,
                         const struct layout_field *lead);
/* OVER: is a value of the first field better than the rule's? */
bool holds_is_over(const struct hold_rule *rule, const struct layout_field *lead, uint64_t ordinal);

#endif
