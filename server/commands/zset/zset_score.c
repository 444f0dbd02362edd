/* ZSCORE, ZMSCORE, ZCARD and ZCOUNT: scores by member, and member counts. */
#include "server/commands/zset/zset_reply.h"
#include "server/dispatch/cost.h"
#include "skiplist/lookup.h"

/* A member's score, or nil. board may be NULL. */
static void zset_score_reply_score_of(const struct call *call, const struct board *board,
                                      struct bytes member, const struct lookup *ahead) {
    struct board_member found;
    if (zset_look_up_ahead(board, member, ahead, &found)) {
        zset_reply_score(call, zset_lead(board), layout_ordinal(board_layout(board), found.key, 0));
    } else {
        reply_null(call->reply);
    }
}

static void zscore_run(struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    zset_score_reply_score_of(call, board, call_arg(call, 2), call->ahead);
}

const struct command command_zscore = {
    .name = "ZSCORE",
    .syntax = "key member",
    .summary = "A member's score, exactly as it was given",
    .flags = COMMAND_READ | COMMAND_FAST,
    .member_arg = 2,
    .run = zscore_run,
};

static void zset_score_reply_group(const struct call *call, const struct board *board,
                                   const struct bytes *names, unsigned count) {
    struct lookup ahead[LOOKUP_GROUP];
    lookup_members(board, names, 1, count, ahead);
    for (unsigned i = 0; i < count; i++) {
        zset_score_reply_score_of(call, board, names[i], &ahead[i]);
    }
}

static void zmscore_run(struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    const struct bytes *names = &call->request->args[2];
    uint32_t count = call->request->count - 2;
    bool is_grouped = board != NULL && count >= LOOKUP_OWN_MIN;
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply);) {
        unsigned group_size = is_grouped ? lookup_group_size(count, i) : 1;
        if (is_grouped) {
            zset_score_reply_group(call, board, &names[i], group_size);
        } else {
            zset_score_reply_score_of(call, board, names[i], call->ahead);
        }
        i += group_size;
    }
}

const struct command command_zmscore = {
    .name = "ZMSCORE",
    .syntax = "key member...",
    .summary = "The scores of several members, in the order they are asked for",
    .complexity = "O(m) in the members asked for",
    .flags = COMMAND_READ | COMMAND_FAST,
    .member_arg = 2,
    .member_step = 1,
    .cost = &(const struct command_cost){.bound = COMMAND_BY_ARGUMENTS,
                                         .count = cost_count_members,
                                         .unit_ns = 150,
                                         .unit = "requested member",
                                         .instead = "several commands of a thousand each"},
    .run = zmscore_run,
};

static void zcard_run(struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    reply_integer(call->reply, board != NULL ? board_count(board) : 0);
}

const struct command command_zcard = {
    .name = "ZCARD",
    .syntax = "key",
    .summary = "How many members a board has",
    .flags = COMMAND_READ | COMMAND_FAST,
    .key_access = "RO",
    .run = zcard_run,
};

static void zcount_run(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    struct zset_span span;
    if (zset_span_of_scores(call, call_board(key), call_arg(call, 2), call_arg(call, 3), &span) &&
        call_check_kind(call, key, REGISTRY_BOARD)) {
        reply_integer(call->reply, span.count);
    }
}

const struct command command_zcount = {
    .name = "ZCOUNT",
    .syntax = "key min:double max:double",
    .summary = "How many members have a score between two limits",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = zcount_run,
};
