/* ZRANGE, its older forms ZREVRANGE, ZRANGEBYSCORE and ZREVRANGEBYSCORE, ZRANGESTORE, and ranges by name.
 *
 *     ZREVRANGE board 0 9 WITHSCORES
 *       properties of the command's name -> options -> a span of ranks -> the reply, or a new board
 *
 * All of them select a span (by place or by score) and a direction to walk it. */
#include "server/commands/writing.h"
#include "server/commands/zset/zset_store.h"
#include "server/dispatch/syntax.h"

enum range_by {
    RANGE_UNSAID, /* ZRANGE, before its options are read */
    RANGE_BY_SCORE,
    RANGE_BY_LEX,
    RANGE_BY_PLACE,
};

/* The command's variant, and then its options. */
struct range {
    enum range_by by;
    bool is_stored; /* ZRANGESTORE: a destination precedes the key */
    bool is_reverse;
    bool with_scores;
    int64_t offset; /* LIMIT offset count */
    int64_t count;  /* negative: no limit */
};

static const struct binding range_bindings[] = {
    {BIND("sortby", struct range, by), .repeat = BINDING_ONCE},
    {BIND("REV", struct range, is_reverse), .repeat = BINDING_ONCE},
    {BIND("LIMIT", struct range, offset)},
    {BIND("WITHSCORES", struct range, with_scores)},
    {0},
};

static void zset_range_refuse_lex(const struct call *call, const char *what) {
    reply_error_format(call->reply,
                       "ERR %s is not supported: equal scores are ordered by time, never by name",
                       what);
}

/* Index of the key; it is followed by the limits and then the options. */
static uint32_t zset_range_key_index(const struct range *range) {
    return range->is_stored ? 2 : 1;
}

__attribute__((always_inline)) static inline bool zset_range_read(const struct call *call,
                                                                  struct range *range) {
    *range = *(const struct range *)call->command->variant;
    range->count = -1;
    if (!syntax_read(call, range)) {
        return false;
    }
    if (range->by == RANGE_UNSAID) {
        range->by = RANGE_BY_PLACE;
    }
    /* As in Redis, LIMIT with a count of -1 means no limit, and is always accepted. */
    if (range->count != -1 && range->by == RANGE_BY_PLACE) {
        return call_refuse(call, "ERR syntax error, LIMIT is only supported in combination with "
                                 "either BYSCORE or BYLEX");
    }
    if (range->by == RANGE_BY_LEX) {
        if (range->with_scores) {
            reply_error(call->reply, "ERR syntax error, WITHSCORES not supported in combination "
                                     "with BYLEX");
        } else {
            zset_range_refuse_lex(call, "BYLEX");
        }
        return false;
    }
    return true;
}

/* The requested ranks. If board is NULL, only the arguments are checked. growth: number of members
 * to assume in addition to the board's. */
__attribute__((always_inline)) static inline bool
zset_range_find_span(const struct call *call, const struct range *range, const struct board *board,
                     uint32_t growth, bool is_best_first, struct zset_span *span) {
    uint32_t index = zset_range_key_index(range) + 1;
    if (range->by == RANGE_BY_PLACE) {
        return zset_span_of_places(call, board, growth, is_best_first, index, span);
    }
    /* Reversed limits are given as max and min. */
    struct bytes min = call_arg(call, range->is_reverse ? index + 1 : index);
    struct bytes max = call_arg(call, range->is_reverse ? index : index + 1);
    if (!zset_span_of_scores(call, board, min, max, span)) {
        return false;
    }
    span->count = cost_sum(span->count, growth);
    *span = zset_part_of_limit(*span, is_best_first, range->offset, range->count);
    return true;
}

bool zset_range_find(const struct call *call, const struct registry_key **source,
                     struct zset_span *span) {
    struct range range;
    if (!zset_range_read(call, &range)) {
        return false;
    }
    *source = call_find_key(call, call_arg(call, zset_range_key_index(&range)));
    const struct board *board = call_board(*source);
    bool is_best_first = board != NULL && zset_is_best_first(board, range.is_reverse);
    return zset_range_find_span(call, &range, board, 0, is_best_first, span) &&
           call_check_kind(call, *source, REGISTRY_BOARD);
}

/* The number of members to visit. */
static uint64_t zset_range_count_span(const struct cost_view *view) {
    struct range range;
    struct zset_span span;
    if (!zset_range_read(view->call, &range)) {
        return 0;
    }
    uint32_t key_arg = zset_range_key_index(&range);
    const struct board *board = cost_board(view, key_arg);
    bool is_found =
        zset_range_find_span(view->call, &range, board, cost_growth(view, key_arg), true, &span);
    bool is_in_steps =
        is_found && range.is_stored && !view->call->session->transaction.is_open &&
        zset_combine_steps_are_due_for_span(view->call, cost_key(view, 1), board, span);
    return is_found && !is_in_steps ? span.count : 0;
}

static void zset_range_run(struct call *call) {
    struct range range;
    if (((const struct range *)call->command->variant)->is_stored) {
        const struct registry_key *source;
        const struct board_options *kept;
        struct zset_span stored;
        struct bytes destination = call_arg(call, 1);
        if (!zset_range_find(call, &source, &stored) || !call_check_key(call, destination)) {
            return;
        }
        if (!zset_combine_steps_are_due_for_span(call, call_find_key(call, destination),
                                                 call_board(source), stored)) {
            zset_store_span(call, destination, call_board(source), stored);
        } else if (writing_may_replace(call, destination, &kept)) {
            zset_combine_steps_begin_span(call);
        }
        return;
    }
    if (!zset_range_read(call, &range)) {
        return;
    }
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    const struct board *board = call_board(key);
    bool is_best_first = board != NULL && zset_is_best_first(board, range.is_reverse);
    struct zset_span span;
    if (zset_range_find_span(call, &range, board, 0, is_best_first, &span) &&
        call_check_kind(call, key, REGISTRY_BOARD)) {
        zset_reply_span(call, board, span, is_best_first,
                        range.with_scores ? zset_shape_with_scores(call) : ZSET_MEMBERS);
    }
}

static const struct command_cost paging_cost =
    COST_ROW(COMMAND_BY_MEMORY, zset_range_count_span, 20, 0, "member returned",
             "pages of a few hundred, one after another");

#define RANGE_LIMIT "offset_count=[LIMIT offset:integer count:integer]"
#define RANGE_ENTRY(word, arguments, hidden, what, also, ...)                                      \
    {                                                                                              \
        .name = word, .syntax = arguments, .hidden_syntax = hidden, .bindings = range_bindings,    \
        .reply = "[s]|WITHSCORES=[[member:s score:n]...]", .summary = what,                        \
        .complexity = "O(log n + m) for m of the board's n members" also,                          \
        .flags = COMMAND_READ | COMMAND_OWN_MEMBER, .cost = &paging_cost,                          \
        .variant = &(const struct range){__VA_ARGS__}, .run = zset_range_run                       \
    }

const struct command command_zrange = RANGE_ENTRY(
    "ZRANGE", "key start stop sortby=[BYSCORE | BYLEX] [REV] " RANGE_LIMIT " [WITHSCORES]", NULL,
    "Members by place or by score, from the lowest score up or (REV) the highest down", "",
    .by = RANGE_UNSAID);

/* As in Redis, its LIMIT is refused for what it is, or (-1) is no limit. */
const struct command command_zrevrange = RANGE_ENTRY(
    "ZREVRANGE", "key start:integer stop:integer [WITHSCORES]", RANGE_LIMIT,
    "Members by place, from the highest score down", "", .by = RANGE_BY_PLACE, .is_reverse = true);

const struct command command_zrangebyscore =
    RANGE_ENTRY("ZRANGEBYSCORE", "key min:double max:double [WITHSCORES] " RANGE_LIMIT, NULL,
                "Members with a score between two limits, from the lowest score up",
                ", also with a LIMIT far inside", .by = RANGE_BY_SCORE);

const struct command command_zrevrangebyscore =
    RANGE_ENTRY("ZREVRANGEBYSCORE", "key max:double min:double [WITHSCORES] " RANGE_LIMIT, NULL,
                "Members with a score between two limits, from the highest score down",
                ", also with a LIMIT far inside", .by = RANGE_BY_SCORE, .is_reverse = true);

const struct command command_zrangestore = {
    .name = "ZRANGESTORE",
    .syntax = "dst:key src:key min max sortby=[BYSCORE | BYLEX] [REV] " RANGE_LIMIT,
    .bindings = range_bindings,
    .reply = "i",
    .summary = "Store what ZRANGE would show, each member with its score and its time",
    .complexity = "O(log n + m) for m of the board's n members",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = COST(COMMAND_BY_PRODUCT, zset_range_count_span, 130, 1,
                 "in `MULTI`, or into another layout: member stored",
                 "`COPY`, if it is the whole board"),
    .variant = &(const struct range){.by = RANGE_UNSAID, .is_stored = true},
    .run = zset_range_run,
};

/* ---- by name ---- */

/* These depend on Redis's order of equal scores by name. Here equal scores are ordered by who reached
 * them first, so they reply with an error. */
static void lex_run(struct call *call) {
    zset_range_refuse_lex(call, call->command->name);
}

#define LEX_ENTRY(word, arguments, ...)                                                            \
    {                                                                                              \
        .name = word, .syntax = arguments, .reply = "!",                                           \
        .summary = "Replies an error: equal scores are ordered by time here, never by name",       \
        .run = lex_run, __VA_ARGS__                                                                \
    }

const struct command command_zlexcount = LEX_ENTRY(
    "ZLEXCOUNT", "key min max", .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER);
const struct command command_zrangebylex =
    LEX_ENTRY("ZRANGEBYLEX", "key min max " RANGE_LIMIT, .flags = COMMAND_READ);
const struct command command_zrevrangebylex =
    LEX_ENTRY("ZREVRANGEBYLEX", "key max min " RANGE_LIMIT, .flags = COMMAND_READ);
const struct command command_zremrangebylex =
    LEX_ENTRY("ZREMRANGEBYLEX", "key min max", .flags = COMMAND_WRITE, .key_access = "RW delete");
