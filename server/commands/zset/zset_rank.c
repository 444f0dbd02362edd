/* ZRANK and ZREVRANK: a member's place, counted from the lowest or from the highest score. */
#include "server/commands/zset/zset_reply.h"

static void zset_rank_reply_missing(const struct call *call, bool with_score) {
    if (with_score) {
        reply_null_array(call->reply);
    } else {
        reply_null(call->reply);
    }
}

static void rank_run(struct call *call) {
    bool is_reverse = *(const bool *)call->command->variant;
    bool with_score = call->request->count == 4;
    if (call->request->count > 4) {
        reply_error_format(call->reply, "ERR wrong number of arguments for '%s' command",
                           is_reverse ? "zrevrank" : "zrank");
        return;
    }
    if (with_score && !call_arg_is(call, 3, "WITHSCORE")) {
        call_syntax_error(call);
        return;
    }
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    struct board_member member;
    if (!zset_look_up(call, board, call_arg(call, 2), &member)) {
        zset_rank_reply_missing(call, with_score);
        return;
    }
    if (with_score) {
        reply_array(call->reply, 2);
    }
    reply_integer(call->reply, zset_place(board, is_reverse, board_rank_of(board, &member)));
    if (with_score) {
        zset_reply_score(call, zset_lead(board),
                         layout_ordinal(board_layout(board), member.key, 0));
    }
}

const struct command command_zrank = {
    .name = "ZRANK",
    .syntax = "key member [WITHSCORE]",
    .summary = "A member's place, counted from 0 at the lowest score",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_READ | COMMAND_FAST,
    .member_arg = 2,
    .variant = &(const bool){false},
    .run = rank_run,
};

const struct command command_zrevrank = {
    .name = "ZREVRANK",
    .syntax = "key member [WITHSCORE]",
    .summary = "A member's place, counted from 0 at the highest score",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_READ | COMMAND_FAST,
    .member_arg = 2,
    .variant = &(const bool){true},
    .run = rank_run,
};
