/* LB.AROUND: the records around a member, or around the position that a score would have.
 *
 *     LB.AROUND board MEMBER zoe 5
 *
 *       rank     3   4  [ 5 ]  6   7        count / 2 better ones, the rest after the member
 *       [ 0 ]    1   2   3   4              at either end the window shifts
 *
 * So exactly count records are returned if the board has that many, and the member is one of them.
 */
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_record.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/options.h"

enum { ARG_KIND = 2, ARG_WHERE, ARG_COUNT, ARG_OPTIONS };

struct around {
    bool is_score; /* SCORE; else MEMBER */
    int64_t count;
    struct lb_shape shape;
};

static const struct option_row lb_around_options[] = {
    {"COMP", OPTION_FLAG, offsetof(struct around, shape.is_competition), NULL},
    {"STRINGS", OPTION_FLAG, offsetof(struct around, shape.with_strings), NULL},
    LB_DATA_OPTIONS(struct around, shape.data),
    {0},
};

static bool lb_around_read_arguments(const struct call *call, struct around *around) {
    around->is_score = call_arg_is(call, ARG_KIND, "SCORE");
    if (!around->is_score && !call_arg_is(call, ARG_KIND, "MEMBER")) {
        return call_syntax_error(call);
    }
    if (!call_parse_integer(call, call_arg(call, ARG_COUNT), &around->count)) {
        return false;
    }
    if (around->count < 1) {
        return call_refuse(call, "ERR value is out of range, must be positive");
    }
    return options_read(call, ARG_OPTIONS, around) && lb_data_check(call, &around->shape.data);
}

/* The rank of a new member with this score and 0 in its other fields, if it were added now: after
 * its equals, or (LATEST) before them. If board is NULL, only the score is checked. */
static bool lb_around_find_score(const struct call *call, const struct board *board,
                                 uint32_t *rank) {
    const struct layout *layout = lb_layout(call, board, call_arg(call, 1));
    uint64_t ordinal;
    if (!lb_parse_value(call, &layout->fields[0], call_arg(call, ARG_WHERE), &ordinal)) {
        return false;
    }
    uint64_t worst_key = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
    if (board != NULL) {
        *rank = layout->time.is_latest ? board_count_above(board, lb_best_key(layout, worst_key))
                                       : board_count_from(board, worst_key);
    }
    return true;
}

static struct zset_span lb_around_window(const struct board *board, uint32_t rank, int64_t count) {
    int64_t board_size = board_count(board);
    int64_t size = count < board_size ? count : board_size;
    int64_t first = (int64_t)rank - size / 2;
    first = first > board_size - size ? board_size - size : first;
    first = first < 0 ? 0 : first;
    return (struct zset_span){.rank = (uint32_t)first, .count = (uint32_t)size};
}

static void lb_around_run(struct call *call) {
    struct around around = {.is_score = false};
    uint32_t rank = 0;
    if (!lb_around_read_arguments(call, &around)) {
        return;
    }
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    bool is_there = board != NULL;
    if (around.is_score) {
        if (!lb_around_find_score(call, board, &rank)) {
            return;
        }
    } else {
        struct board_member member;
        is_there = zset_look_up(call, board, call_arg(call, ARG_WHERE), &member);
        rank = is_there ? board_rank_of(board, &member) : 0;
    }
    struct zset_span span = {.count = 0};
    if (is_there) {
        span = lb_around_window(board, rank, around.count);
    }
    lb_reply_span(call, board, span, true, around.shape);
}

static uint64_t lb_around_count_window(const struct cost_view *view) {
    struct around around = {.is_score = false};
    int64_t size = cost_size(view, 1);
    if (!lb_around_read_arguments(view->call, &around)) {
        return 0;
    }
    return lb_data_work(&around.shape.data, (uint64_t)(around.count < size ? around.count : size));
}

const struct command command_lb_around = {
    .name = "LB.AROUND",
    .syntax = "key where=<MEMBER member | SCORE score:double> count:integer [COMP] "
              "[STRINGS] " LB_DATA_SYNTAX,
    .options = lb_around_options,
    .summary = "A window of records around a member, or around the place of a score",
    .complexity = "O(log n + m) for m of the board's n members",
    .flags = COMMAND_READ,
    .member_arg = ARG_WHERE,
    .cost = &(const struct command_cost){.count = lb_around_count_window,
                                         .unit_ns = 90,
                                         .unit = "member returned",
                                         .instead = "fewer of them"},
    .run = lb_around_run,
};
