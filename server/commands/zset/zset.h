/* Shared by the sorted-set commands: Redis's order on a board, and ranges.
 *
 * Redis walks a sorted set from the lowest score up, or (REV) from the highest down. A board is
 * stored best first. On a board where higher is better (DESC):
 *
 *     rank             0      1      2      3
 *     score          900    700    700    120
 *     place, REV       0      1      2      3     the walk goes best first
 *     place            3      2      1      0     its exact reverse
 *
 * Where lower is better (ASC) the two walks are swapped. zset_part is the only mapping between
 * places and ranks; everything else (ZRANK, ZPOPMIN, LIMIT ...) uses it. */
#ifndef SERVER_COMMAND_ZSET_H
#define SERVER_COMMAND_ZSET_H

#include "server/dispatch/cost.h"
#include "skiplist/lookup.h"

/* A range of ranks: rank .. rank + count - 1. */
struct zset_span {
    uint32_t rank;
    uint32_t count;
};

static inline const struct layout_field *zset_lead(const struct board *board) {
    return &board_layout(board)->fields[0];
}

/* Does Redis's walk (or its reverse) go from best to worst on this board? */
static inline bool zset_is_best_first(const struct board *board, bool is_reverse) {
    return is_reverse != zset_lead(board)->is_ascending;
}

static inline struct zset_span zset_whole(const struct board *board) {
    return (struct zset_span){.rank = 0, .count = board_count(board)};
}

/* Map places place .. place + count - 1 of a walk over span to ranks. They must be within span. */
static inline struct zset_span zset_part(struct zset_span span, bool is_best_first, uint32_t place,
                                         uint32_t count) {
    uint32_t better_count = is_best_first ? place : span.count - place - count;
    return (struct zset_span){.rank = span.rank + better_count, .count = count};
}

/* The place of a rank in a walk over the whole board: zset_part is its own inverse. */
static inline uint32_t zset_place(const struct board *board, bool is_reverse, uint32_t rank) {
    return zset_part(zset_whole(board), zset_is_best_first(board, is_reverse), rank, 1).rank;
}

/* Redis's start and stop as places of a walk over span: negative ones count from the end, and the
 * range is clamped to the span. */
struct zset_span zset_part_of_indexes(struct zset_span span, bool is_best_first, int64_t start,
                                      int64_t stop);
/* LIMIT offset count of a walk over span: a negative count means no limit, a negative offset yields
 * an empty span. */
struct zset_span zset_part_of_limit(struct zset_span span, bool is_best_first, int64_t offset,
                                    int64_t count);

/* The places between the two indexes at args[index]. If board is NULL, only the texts are checked,
 * and the span is empty. growth: number of members to assume in addition to the board's. false: the
 * error was replied. */
MUST_CHECK static inline bool zset_span_of_places(const struct call *call,
                                                  const struct board *board, uint32_t growth,
                                                  bool is_best_first, uint32_t index,
                                                  struct zset_span *span) {
    int64_t start;
    int64_t stop;
    if (!call_parse_integer(call, call_arg(call, index), &start) ||
        !call_parse_integer(call, call_arg(call, index + 1), &stop)) {
        return false;
    }
    struct zset_span whole = board != NULL ? zset_whole(board) : (struct zset_span){0};
    whole.count = cost_sum(whole.count, growth);
    *span = zset_part_of_indexes(whole, is_best_first, start, stop);
    return true;
}

/* The members with a score between two limits ("5", "(5", "-inf"). If board is NULL, only the texts
 * are checked, and the span is empty. false: the error was replied. */
MUST_CHECK bool zset_span_of_scores(const struct call *call, const struct board *board,
                                    struct bytes min, struct bytes max, struct zset_span *span);

/* Can this be a member? Other names are never on a board. */
static inline bool zset_is_member(struct bytes member) {
    return member.size >= 1 && member.size <= BOARD_MEMBER_MAX;
}
/* Is it valid for a new member? false: the error was replied. */
MUST_CHECK bool zset_check_name(const struct call *call, struct bytes member);
/* And may the client change it (call_check_own)? */
MUST_CHECK bool zset_check_member(const struct call *call, struct bytes member);

/* Reply why a text is not a value of the field, or a sum is out of its range; return false. */
bool zset_refuse_value(const struct call *call, const struct layout_field *field, struct bytes text,
                       enum decimal_status status);
bool zset_refuse_sum(const struct call *call, const struct layout_field *field, uint64_t ordinal,
                     struct decimal delta, int64_t time_us);

/* Look up a name, which may be invalid as a member, on a board, which may be NULL. ahead: what was
 * prefetched for it, or NULL. false: not found. */
MUST_CHECK static inline bool zset_look_up_ahead(const struct board *board, struct bytes name,
                                                 const struct lookup *ahead,
                                                 struct board_member *member) {
    if (board == NULL || !zset_is_member(name)) {
        return false;
    }
    board_look_up(board, name, ahead, member);
    return member->is_there;
}
/* The same for the call's own member. */
MUST_CHECK static inline bool zset_look_up(const struct call *call, const struct board *board,
                                           struct bytes name, struct board_member *member) {
    return zset_look_up_ahead(board, name, lookup_on(call->ahead, board), member);
}

/* Remove span from the key's board, and the key with its last member if a write created it. Clients
 * are notified of the event. */
void zset_remove_span(const struct call *call, struct registry_key *key, struct zset_span span,
                      const char *event);
/* Members were removed, and the registry knows: notify clients of the event, and remove the key if
 * its board is empty and was not created by LB.CREATE. */
void zset_end_removal(const struct call *call, struct registry_key *key, const char *event);

/* An integer of at least 1. false: the error was replied. */
MUST_CHECK bool zset_pop_read_positive(const struct call *call, uint32_t index, const char *error,
                                       int64_t *value);
/* Seconds; *due_ms is REGISTRY_NO_EXPIRY for 0. false: the error was replied. */
MUST_CHECK bool zset_pop_read_timeout(const struct call *call, struct bytes text, int64_t *due_ms);
/* What ZMPOP, ZMOVE and those that wait take: from which end, and how many. */
struct zset_taking {
    struct option_values keys; /* of ZMPOP and BZMPOP */
    enum zset_taken { ZSET_MIN, ZSET_MAX, ZSET_BY_SCORE } where;
    int64_t count; /* COUNT; 0: not given */
};
extern const struct binding zset_taking_bindings[];
/* None of the keys has members: wait until one has. A transaction does not wait. */
void zset_pop_wait_for(const struct call *call, struct option_values keys, int64_t due_ms,
                       bool is_reverse, int64_t count);

/* Reply with the error for anything that asks for order by name. */
/* The score in a packed key. */
static inline void zset_reply_score(const struct call *call, const struct layout_field *lead,
                                    uint64_t ordinal) {
    reply_decimal(call->reply, layout_field_decimal_at(lead, ordinal, call->now_us), lead->scale);
}

/* How a reply lists members. */
enum zset_shape {
    ZSET_MEMBERS, /* members only */
    ZSET_FLAT,    /* member, score, member, score */
    ZSET_PAIRS,   /* [member, score], [member, score] */
};
/* WITHSCORES as in Redis: pairs in RESP3, flat in RESP2. */
static inline enum zset_shape zset_shape_with_scores(const struct call *call) {
    return call->reply->version == 3 ? ZSET_PAIRS : ZSET_FLAT;
}
/* The header of an array of count members in that shape. */
void zset_reply_header(const struct call *call, uint64_t count, enum zset_shape shape);
/* One member in that shape. */
void zset_reply_entry(const struct call *call, const struct board *board,
                      const struct board_stored *entry, enum zset_shape shape);
/* Every member of span, header included. */
void zset_reply_span(const struct call *call, const struct board *board, struct zset_span span,
                     bool is_best_first, enum zset_shape shape);

#endif
