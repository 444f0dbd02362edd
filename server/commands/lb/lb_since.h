/* SINCE archive, SINCE LAST: where the members of a reply's records were on another board.
 *
 *     LB.RANGE daily 0 2 SINCE LAST            daily@2026-11-15: kim, ann, zoe
 *     [zoe, 0, ..., 2] [kim, 1, ..., 0] [eve, 2, ..., nil]
 *
 * The element is the member's rank on that board, counted as the record's own: with COMP that of the first
 * member with the same fields there, with DENSE the dense one there, with WHERE, WHERENOT and WITHIN inside the same group there. The
 * tags are those that members had on that board; of WITHIN, the values are those that they have now. Nil:
 * the member was not on it, or not in the group, or there is no such board.
 *
 * LAST is the newest archive of a board with a PERIOD, of the LB_ARCHIVES_MAX periods before the running
 * one. */
#ifndef SERVER_COMMAND_LB_SINCE_H
#define SERVER_COMMAND_LB_SINCE_H

#include "server/commands/lb/lb_filter.h"
#include "skiplist/lookup.h"

/* A look-up on the other board takes as long as so many records of LB.RANGE, and of LB.GET: for the cost
 * of a command. */
enum { LB_SINCE_RECORDS = 4, LB_SINCE_MEMBERS = 4 };

/* Zeroed: not asked for. */
struct lb_since {
    struct bytes name;         /* the option as given */
    const struct board *board; /* the other board; NULL: there is none */
    struct lb_filter *filter;  /* the group on it; NULL without one */
};

#define LB_SINCE_WORD   "SINCE"
#define LB_SINCE_SYNTAX "[" LB_SINCE_WORD " <archive:key | LAST>]"
static inline bool lb_since_is_asked(const struct lb_since *since) {
    return since->name.at != NULL;
}
/* The work that it adds to count records of so many units each. */
static inline uint64_t lb_since_work(const struct cost_view *view, const struct lb_since *since,
                                     const struct option_uses *uses, uint64_t units,
                                     uint64_t count) {
    return lb_since_is_asked(since)
               ? units * count + lb_filter_work(view, uses, LB_FILTER_RANKS, count)
               : 0;
}

/* Find the other board, and the group on it, after board, that of the command's key, was found; board
 * may be NULL. Without the option nothing is done. lb_since_end follows, before which neither board may
 * change. false: the error was replied, and nothing needs to be ended. */
MUST_CHECK bool lb_since_begin(const struct call *call, const struct board *board,
                               const struct option_uses *uses, struct lb_since *since);
void lb_since_end(struct lb_since *since);

struct lb_shape;
/* The elements of count members, at most LOOKUP_GROUP, which have these ranks on board. */
#define LB_SINCE_NOWHERE UINT32_MAX /* nil: no member has this rank */
/* false: no memory. */
MUST_CHECK bool lb_since_find(const struct lb_since *since, const struct board *board,
                              const struct bytes *members, const uint32_t *ranks, unsigned count,
                              const struct lb_shape *shape, uint32_t *since_ranks);
void lb_since_reply(struct reply *reply, uint32_t since_rank);
/* The same where there is room for PUT_NUMBER_ROOM bytes; returns its end. version: as in struct reply. */
char *lb_since_put(char *out, uint32_t since_rank, uint8_t version);

#endif
