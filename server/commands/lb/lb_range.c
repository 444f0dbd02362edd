/* LB.RANGE: the records of a range, by rank or by score, best first or (REV) worst first.
 *
 *     LB.RANGE board 0 9                       the ten best
 *     LB.RANGE board 100 200 BYSCORE REV       all members from 100 to 200, worst first
 *       options -> a span of ranks -> the records
 *
 * By rank, start and stop are places of the walk, as in ZRANGE. By score they are the two limits of
 * the range, in either order, because the one that the walk starts at depends on the layout and on
 * REV, which callers need not know. */
#include "server/commands/lb/lb_record.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/options.h"

enum { FIRST_OPTION = 4 };

struct range {
    bool is_by_score; /* BYSCORE */
    bool is_reverse;  /* REV */
    int64_t offset;   /* LIMIT offset count */
    int64_t count;    /* negative: no limit */
    struct lb_shape shape;
};

static const struct option_row lb_range_options[] = {
    {"BYSCORE", OPTION_FLAG, offsetof(struct range, is_by_score), NULL},
    {"REV", OPTION_FLAG, offsetof(struct range, is_reverse), NULL},
    {"LIMIT", OPTION_INTEGERS, offsetof(struct range, offset), NULL},
    {"COMP", OPTION_FLAG, offsetof(struct range, shape.is_competition), NULL},
    {"WITHKEY", OPTION_FLAG, offsetof(struct range, shape.with_key), NULL},
    {"STRINGS", OPTION_FLAG, offsetof(struct range, shape.with_strings), NULL},
    LB_DATA_OPTIONS(struct range, shape.data),
    {0},
};

static bool lb_range_read_options(const struct call *call, struct range *range) {
    if (!options_read(call, FIRST_OPTION, range) || !lb_data_check(call, &range->shape.data)) {
        return false;
    }
    /* As in ZRANGE, a count of -1 means no limit, and is always accepted. */
    if (range->count != -1 && !range->is_by_score) {
        return call_refuse(call,
                           "ERR syntax error, LIMIT is only supported in combination with BYSCORE");
    }
    return true;
}

static bool lb_range_find_by_score(const struct call *call, const struct board *board,
                                   struct zset_span *span) {
    struct bytes start = call_arg(call, 2);
    struct bytes stop = call_arg(call, 3);
    if (!zset_span_of_scores(call, board, start, stop, span)) {
        return false;
    }
    /* Unless both limits are equal, one of the two orders yields an empty span. */
    return span->count > 0 || zset_span_of_scores(call, board, stop, start, span);
}

/* The requested ranks. If board is NULL, only the arguments are checked. growth: number of members
 * to assume in addition to the board's. */
static bool lb_range_find_span(const struct call *call, const struct range *range,
                               const struct board *board, uint32_t growth, struct zset_span *span) {
    bool is_best_first = !range->is_reverse;
    if (!range->is_by_score) {
        return zset_span_of_places(call, board, growth, is_best_first, 2, span);
    }
    if (!lb_range_find_by_score(call, board, span)) {
        return false;
    }
    span->count = cost_sum(span->count, growth);
    *span = zset_part_of_limit(*span, is_best_first, range->offset, range->count);
    return true;
}

static void lb_range_run(struct call *call) {
    struct range range = {.count = -1};
    struct zset_span span;
    if (!lb_range_read_options(call, &range)) {
        return;
    }
    const struct board *board;
    if (call_find_board(call, call_arg(call, 1), &board) &&
        lb_range_find_span(call, &range, board, 0, &span)) {
        lb_reply_span(call, board, span, !range.is_reverse, range.shape);
    }
}

/* With COMP and REV each record may take a descent from the root. */
enum { COMPETITION_UNITS = 4 };
static uint64_t lb_range_count_span(const struct cost_view *view) {
    struct range range = {.count = -1};
    struct zset_span span;
    if (!lb_range_read_options(view->call, &range) ||
        !lb_range_find_span(view->call, &range, cost_board(view, 1), cost_growth(view, 1), &span)) {
        return 0;
    }
    bool is_slow = range.shape.is_competition && range.is_reverse;
    return lb_data_work(&range.shape.data,
                        (uint64_t)span.count * (is_slow ? COMPETITION_UNITS : 1));
}

const struct command command_lb_range = {
    .name = "LB.RANGE",
    .syntax = "key start stop [BYSCORE] [REV] offset_count=[LIMIT offset:integer count:integer] "
              "[COMP] [WITHKEY] [STRINGS] " LB_DATA_SYNTAX,
    .options = lb_range_options,
    .summary = "Records by rank or by score, best first or (REV) worst first",
    .complexity = "O(log n + m) for m of the board's n members, also with a LIMIT far inside; with "
                  "COMP and REV O(log n) more for every change of fields",
    .flags = COMMAND_READ,
    .cost = &(const struct command_cost){.count = lb_range_count_span,
                                         .unit_ns = 90,
                                         .unit = "member returned",
                                         .instead = "pages of a few hundred, one after another"},
    .run = lb_range_run,
};
