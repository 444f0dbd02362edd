/* WHERE tag value, WHERENOT tag value, WITHIN tag: reading inside a group of a board's members.
 *
 *     rank             0    1    2    3    4          LB.GET board 1 kim WHERE country DE
 *     country         DE   FR   DE    -   DE           [kim, 2, ...]
 *     member          zoe  ann  bob  eve  kim
 *     rank inside      0         1         2
 *
 * WHERE of the same tag are "or", of different tags "and"; WHERENOT excludes. An empty value stands for the
 * members without one; one that no member has, for nobody. The reply is that of a board that holds
 * only the members of the group: ranks, COMP, PCT, windows and quantiles are those inside. Other members have
 * no record. Where there is no board, no tag is unknown.
 *
 * With WITHIN the group is that of the member asked about: those with its own value, or like it without
 * one, who also match WHERE and WHERENOT. Each member has a group of its own then. */
#ifndef SERVER_COMMAND_LB_FILTER_H
#define SERVER_COMMAND_LB_FILTER_H

#include "server/commands/zset/zset.h"
#include "server/dispatch/syntax.h"
#include "skiplist/tags.h"

enum {
    LB_FILTER_USES_MAX = 1024, /* of WHERE, WHERENOT and WITHIN together */
    LB_FILTER_FEW = 24,        /* choices that need no heap memory */
    /* For the cost of a command: a rank inside a group takes as long as so many members of LB.GET, the way
     * to the group's next member as so many records of LB.RANGE. */
    LB_FILTER_RANKS = 6,
    LB_FILTER_STEPS = 16,
};

/* All share a struct option_uses of this name. */
#define LB_FILTER_SYNTAX "match=[WHERE tag value]... exclude=[WHERENOT tag value]..."
#define LB_FILTER_WITHIN "[WITHIN tag]..."
#define LB_FILTER_BINDINGS(type, name)                                                             \
    {BIND("WHERE", type, name)}, {BIND("WHERENOT", type, name)}, {                                 \
        BIND("WITHIN", type, name)                                                                 \
    }

/* The work of count ranks or steps, beside that of a command without a group: at worst all values are looked at each
 * time, and codes of members are read, which depends on the board's tags and on those of the group. */
uint64_t lb_filter_work(const struct cost_view *view, const struct option_uses *uses, uint64_t unit,
                        uint64_t count);
/* The same of LB.COUNT, which reads all codes of span_count members, unless rows have them. by_mask: BY. */
uint64_t lb_filter_histogram_work(const struct cost_view *view, const struct option_uses *uses,
                                  unsigned by_mask, uint64_t span_count);

/* The group of one command, until its board's next change. All is private but group. */
struct lb_filter {
    const struct board *board;
    struct tag_filter *group; /* NULL with WITHIN, before lb_filter_select */
    struct tag_filter *whole; /* of WITHIN: the group that others are parts of; or NULL */
    unsigned within_mask;     /* tags of WITHIN */
    struct tag_values within; /* whose group it is now */
    /* A rank of the board, and the place among the group's members of who is there, or would be. How far from it the way
     * to another member is shorter than the search for it; 0: it is not known. */
    uint32_t near_rank, near, near_max;
};

/* lb_filter_end follows. false: the error was replied, and nothing needs to be ended. */
MUST_CHECK bool lb_filter_begin(const struct call *call, const struct board *board,
                                const struct option_uses *uses, struct lb_filter *filter);
void lb_filter_end(struct lb_filter *filter);

/* Is a member that has been looked up, and is there, in the group? With WITHIN the group is its own from now on, if
 * so. false: no memory. */
MUST_CHECK bool lb_filter_select(struct lb_filter *filter, const struct board_member *member,
                                 bool *is_in);
/* The group is that of a member with these values from now on: at least those of the tags of a WITHIN,
 * of which there is one. false: no memory. */
MUST_CHECK bool lb_filter_select_values(struct lb_filter *filter, const struct tag_values *values);
/* Has it a WITHIN? */
static inline bool lb_filter_is_within(const struct lb_filter *filter) {
    return filter->within_mask != 0;
}

/* The place among the group's members of who is at this rank, or would be. */
static inline uint32_t lb_filter_rank(const struct lb_filter *filter, uint32_t rank) {
    return tag_group_count(filter->board, filter->group, rank);
}
/* Its members. */
static inline uint32_t lb_filter_count(const struct lb_filter *filter) {
    return lb_filter_rank(filter, board_count(filter->board));
}
/* The ranks inside of those of its members that are in a span of the board. */
static inline struct zset_span lb_filter_span(const struct lb_filter *filter,
                                              struct zset_span span) {
    uint32_t first = lb_filter_rank(filter, span.rank);
    return (struct zset_span){.rank = first,
                              .count = lb_filter_rank(filter, span.rank + span.count) - first};
}
/* A rank of the board near which some of the group, which has `count` members, are going to be looked for. Returns the
 * place there. */
uint32_t lb_filter_begin_near(struct lb_filter *filter, uint32_t rank, uint32_t count);
/* The rank of the group's nth member, which is there. */
uint32_t lb_filter_at(const struct lb_filter *filter, uint32_t nth);
/* The ranks and entries of up to BOARD_AT_MAX members, by their places among the group's; filter NULL: on the board. */
void lb_filter_at_many(const struct board *board, const struct lb_filter *filter,
                       const uint32_t *places, uint32_t count, uint32_t *ranks,
                       struct board_stored *entries);

#endif
