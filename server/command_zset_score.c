/* ZSCORE, ZMSCORE, ZCARD and ZCOUNT: scores by member, and how many members there are. */
#include "server/command_zset.h"

/* A member's score, or nil. board may be NULL. */
static void reply_score_of(const struct call *call, const struct board *board,
                           struct bytes member) {
    struct board_member found;
    if (zset_look_up(call, board, member, &found)) {
        zset_reply_score(call, zset_lead(board), layout_ordinal(board_layout(board), found.key, 0));
    } else {
        reply_null(call->reply);
    }
}

static void zscore_run(struct call *call) {
    const struct board *board = call_find_board(call, call_arg(call, 1));
    reply_score_of(call, board, call_arg(call, 2));
}

static const struct argument zscore_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "member", .type = ARGUMENT_STRING},
    {0},
};

const struct command command_zscore = {
    .name = "ZSCORE",
    .summary = "A member's score, exactly as it was given",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 3,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .member_arg = 2,
    .arguments = zscore_arguments,
    .run = zscore_run,
};

static void zmscore_run(struct call *call) {
    const struct board *board = call_find_board(call, call_arg(call, 1));
    reply_array(call->reply, call->request->count - 2);
    for (uint32_t i = 2; i < call->request->count; i++) {
        reply_score_of(call, board, call_arg(call, i));
    }
}

static const struct argument zmscore_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "member", .type = ARGUMENT_STRING, .flags = ARGUMENT_MULTIPLE},
    {0},
};

const struct command command_zmscore = {
    .name = "ZMSCORE",
    .summary = "The scores of several members, in the order they are asked for",
    .complexity = "O(m) in the members asked for",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -3,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .member_arg = 2,
    .member_step = 1,
    .arguments = zmscore_arguments,
    .run = zmscore_run,
};

static void zcard_run(struct call *call) {
    const struct board *board = call_find_board(call, call_arg(call, 1));
    reply_integer(call->reply, board != NULL ? board_count(board) : 0);
}

static const struct argument zcard_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {0},
};

const struct command command_zcard = {
    .name = "ZCARD",
    .summary = "How many members a board has",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 2,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zcard_arguments,
    .run = zcard_run,
};

static void zcount_run(struct call *call) {
    const struct board *board = call_find_board(call, call_arg(call, 1));
    struct zset_span span;
    if (zset_span_of_scores(call, board, call_arg(call, 2), call_arg(call, 3), &span)) {
        reply_integer(call->reply, span.count);
    }
}

static const struct argument zcount_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "min", .type = ARGUMENT_DOUBLE},
    {.name = "max", .type = ARGUMENT_DOUBLE},
    {0},
};

const struct command command_zcount = {
    .name = "ZCOUNT",
    .summary = "How many members have a score between two limits",
    .complexity = "O(log n) in the members of the board",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 4,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zcount_arguments,
    .run = zcount_run,
};
