/* ZSCORE ZMSCORE ZCARD ZCOUNT, ZRANK ZREVRANK: scores and places by member, and member counts. */
#include "server/commands/zset/zset.h"
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
    .reply = "n?",
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
    .reply = "[n?]",
    .summary = "The scores of several members, in the order they are asked for",
    .complexity = "O(m) in the members asked for",
    .flags = COMMAND_READ | COMMAND_FAST,
    .member_arg = 2,
    .member_step = 1,
    .cost = COST(COMMAND_BY_ARGUMENTS, cost_count_members, 150, 0, "requested member",
                 "several commands of a thousand each"),
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
    .reply = "i",
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
    .reply = "i",
    .summary = "How many members have a score between two limits",
    .complexity = "O(log n) in the members of the board",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = zcount_run,
};

static void zset_score_reply_missing(const struct call *call, bool with_score) {
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
        call_refuse_arity(call);
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
        zset_score_reply_missing(call, with_score);
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

#define RANK_ENTRY(word, what, ...)                                                                \
    {                                                                                              \
        .name = word, .syntax = "key member [WITHSCORE]",                                          \
        .reply = "i?|WITHSCORE=[rank:i score:n]?", .summary = what,                                \
        .complexity = "O(log n) in the members of the board",                                      \
        .flags = COMMAND_READ | COMMAND_FAST, .member_arg = 2,                                     \
        .variant = &(const bool){__VA_ARGS__}, .run = rank_run                                     \
    }

const struct command command_zrank =
    RANK_ENTRY("ZRANK", "A member's place, counted from 0 at the lowest score", false);
const struct command command_zrevrank =
    RANK_ENTRY("ZREVRANK", "A member's place, counted from 0 at the highest score", true);
