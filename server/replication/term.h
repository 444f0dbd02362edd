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

#endif
