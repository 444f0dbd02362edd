/* LB.HIST: the number of members with a score in each of several ranges.
 *
 *     LB.HIST board 10 20 30
 *
 *          below 10 | 10 up to 20 | 20 up to 30 | 30 and above
 *                   e1            e2            e3                 n edges, n + 1 counts
 *
 * A count is the difference of two ranks: no member is visited. */
#include "server/commands/lb/lb.h"
#include "server/dispatch/cost.h"

enum { FIRST_EDGE = 2, EDGES_MAX = 10000 };

/* Edges are scores with the field's decimals, in ascending order. They may lie outside the field's
 * range. */
static bool lb_hist_check_edges(const struct call *call, const struct layout_field *lead) {
    struct decimal last = {.magnitude = 0};
    if (call->request->count - FIRST_EDGE > EDGES_MAX) {
        return call_refuse_format(call, "ERR LB.HIST takes at most %d edges", (int)EDGES_MAX);
    }
    for (uint32_t i = FIRST_EDGE; i < call->request->count; i++) {
        struct decimal edge;
        if (!lb_parse_decimal(call, lead, call_arg(call, i), &edge)) {
            return false;
        }
        if (i > FIRST_EDGE && decimal_compare(last, edge) >= 0) {
            return call_refuse(call, "ERR edges must be strictly ascending");
        }
        last = edge;
    }
    return true;
}

/* Members with a score of edge or more. */
static uint32_t lb_hist_count_at_or_above(const struct board *board, struct decimal edge) {
    const struct layout *layout = board_layout(board);
    const struct decimal_bound lower = {.kind = DECIMAL_BOUND_VALUE, .value = edge};
    const struct decimal_bound upper = {.kind = DECIMAL_BOUND_HIGHEST};
    uint64_t lowest_key;
    uint64_t highest_key;
    if (!layout_key_range(layout, lower, upper, &lowest_key, &highest_key)) {
        return 0;
    }
    return board_count_from(board, lowest_key) - board_count_above(board, highest_key);
}

static void lb_hist_run(struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    const struct layout_field *lead = &lb_layout(call, board, call_arg(call, 1))->fields[0];
    if (!lb_hist_check_edges(call, lead)) {
        return;
    }
    uint32_t left = board != NULL ? board_count(board) : 0;
    reply_array(call->reply, call->request->count - FIRST_EDGE + 1);
    for (uint32_t i = FIRST_EDGE; i < call->request->count && !reply_is_lost(call->reply); i++) {
        struct decimal edge = {.magnitude = 0};
        bool is_parsed = lb_parse_decimal(call, lead, call_arg(call, i), &edge);
        CHECK(is_parsed);
        uint32_t above = board != NULL ? lb_hist_count_at_or_above(board, edge) : 0;
        reply_integer(call->reply, left - above);
        left = above;
    }
    reply_integer(call->reply, left);
}

const struct command command_lb_hist = {
    .name = "LB.HIST",
    .syntax = "key edge:double...",
    .summary = "How many members have a score below, between and above the given edges, of which "
               "there are "
               "10,000 at most",
    .complexity = "O(log n) for each edge, n being the members of the board",
    .flags = COMMAND_READ | COMMAND_FAST,
    .cost = &(const struct command_cost){.bound = COMMAND_BY_ARGUMENTS,
                                         .count = cost_count_members,
                                         .unit_ns = 650,
                                         .unit = "edge",
                                         .instead = "several commands of a thousand each"},
    .run = lb_hist_run,
};
