/* Terms: which stretch of history is the newer one. A term is a replication id, and a replication id is
 * a term: 40 hex digits that begin with a counter.
 *
 *     00000000000a  5f1c0d2b9a8e7f34  91c2d0e4a7b3
 *     counter       node              random
 *
 * A server that opens a history takes the counter after the greatest that it knows. So ids compare as
 * text: the greater one was opened by somebody who knew of the smaller one, or they were opened side by
 * side, and then the node decides. Nobody else's node and random digits are the same: an id is never
 * made twice. Redis's ids are 40 random digits: as terms they are of no order, but are valid. */
#ifndef SERVER_TERM_H
#define SERVER_TERM_H

#include "codec/bytes.h"
#include "codec/check.h"

enum {
    TERM_SIZE = 40, /* as REPLICATION_ID_SIZE */
    TERM_COUNTER_SIZE = 12,
    TERM_NODE_SIZE = 16,
    TERM_RANDOM_SIZE = TERM_SIZE - TERM_COUNTER_SIZE - TERM_NODE_SIZE,
};
#define TERM_COUNTER_MAX ((UINT64_C(1) << (4 * TERM_COUNTER_SIZE)) - 1)

struct term {
    char text[TERM_SIZE + 1]; /* 0-9 a-f */
};
/* Before all others: nothing was opened. */
#define TERM_NONE ((struct term){"0000000000000000000000000000000000000000"})

/* How far a history goes. */
struct term_position {
    struct term term; /* of the last group */
    uint64_t group;
};

/* Below 0, 0, above 0: a is older, the same, newer. */
int term_compare(const struct term *a, const struct term *b);
/* The same: by term before group. */
int term_position_compare(const struct term_position *a, const struct term_position *b);
static inline bool term_is_none(const struct term *term) {
    return term_compare(term, &TERM_NONE) == 0;
}
uint64_t term_counter(const struct term *term);
/* The term that a node takes above every one that it knows. random: the lowest 48 bits are used. false:
 * there is none above (the counter of `highest` is TERM_COUNTER_MAX). */
MUST_CHECK bool term_next(const struct term *highest, uint64_t node, uint64_t random,
                          struct term *next);
/* A node's number, as 16 hex digits. false: it is none. */
MUST_CHECK bool term_parse_node(struct bytes text, uint64_t *node);
/* false: it is not 40 hex digits. */
MUST_CHECK bool term_parse(struct bytes text, struct term *term);
/* Can it be a replication id? Also one of a Redis. */
static inline bool term_is_id(struct bytes text) {
    struct term term;
    return term_parse(text, &term);
}

/* ---- decisions ----
 *
 * The decisions of failover without loss (docs/internals/replication.md): who may vote, acknowledge and open,
 * what is safe, and how long readers are answered. Pure functions of their arguments: no clock, no
 * disk, no connection.
 *
 * The same functions in Python (tests/model/decisions.py) are what the model of the protocol is
 * made of; tests/model/run compares the two. Change both. Times are milliseconds of
 * clock_read_ms. */

enum {
    TERM_NODES_MAX = 16,
    TERM_LEASE_MAX_MS = 60000,
};

/* How many nodes, the promoted one included, must have voted for its term before it opens. A write
 * is answered when the master and `replicas` others have it: any so many votes include one of them.
 * replicas < nodes. */
uint32_t term_votes_needed(uint32_t nodes, uint32_t replicas);

/* Whether a node votes for `term`: only upwards (or once more what it has voted for), and not while
 * a master's lease may lean on it. Who has lost durability does not, unless it is released or has
 * nothing at all (group 0): such votes count where all do. */
MUST_CHECK bool term_may_vote(const struct term *term, const struct term *voted,
                              bool has_lost_durability, bool is_released, uint64_t group,
                              int64_t now_ms, int64_t held_until_ms);
/* Whether groups of a master that is open in `term` are taken: nobody older than what was voted
 * for. */
MUST_CHECK bool term_may_take(const struct term *term, const struct term *voted);
/* Whether its groups are acknowledged, and its probes answered. */
MUST_CHECK bool term_may_ack(const struct term *term, const struct term *voted,
                             bool has_lost_durability);

/* The last group that is safe: in the master's own journal as appendfsync asks (disk_group), and
 * acknowledged by `replicas` others in the master's own term. acks: one for each of the others. 0:
 * none is, before that reaches the start mark of its own term (mark_group): groups of older terms
 * may be replaced, however many have them, until one of this term is behind them. */
MUST_CHECK uint64_t term_safe_group(uint64_t disk_group, const uint64_t *acks, uint32_t count,
                                    uint32_t replicas, uint64_t mark_group);

/* Whether the votes of those that have lost durability count, as any of them may have been the only one to
 * acknowledge a write: all others have voted and are connected (vote_count of them), and somebody was told to make do with what
 * is left, by taking its promise away: the promoted node itself, or released_count of the others. Then who
 * opens has lost nothing that any node still has. */
MUST_CHECK bool term_all_count(bool has_lost_durability, bool is_released, uint32_t released_count,
                               uint32_t vote_count, uint32_t nodes);
/* Whether a promoted node opens: votes enough, nobody among those has more than it has, it has not
 * lost durability, and no master's lease leans on it. voted: the positions of those that have voted
 * for its term and count, without its own. has_lost_durability: where all count (term_all_count), false. */
MUST_CHECK bool term_may_open(const struct term_position *position,
                              const struct term_position *voted, uint32_t count, uint32_t nodes,
                              uint32_t replicas, bool has_lost_durability, int64_t now_ms,
                              int64_t held_until_ms);
/* Whether a node that has nothing opens, as the first: all others have voted for it, and have
 * nothing either (empty_count of them). So a node that has lost its disk does not begin anew beside
 * those that remember. */
MUST_CHECK bool term_may_begin(uint64_t group, bool has_lost_durability, uint32_t empty_count,
                               uint32_t nodes, int64_t now_ms, int64_t held_until_ms);

/* When a master stops answering readers: lease_ms after the sending of the newest probe that
 * `replicas` others have answered. sent_ms: for each of them when the newest probe that it has
 * answered was sent; 0: none was. 0: there is no lease. */
MUST_CHECK int64_t term_lease_end(const int64_t *sent_ms, uint32_t count, uint32_t replicas,
                                  int64_t lease_ms);
/* Until when a node that answers a probe at answered_ms votes and opens nothing: longer than the
 * lease, as its clock may run faster than the master's. */
MUST_CHECK int64_t term_hold_end(int64_t answered_ms, int64_t lease_ms);

#endif
