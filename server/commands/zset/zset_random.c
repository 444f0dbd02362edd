/* ZRANDMEMBER: members drawn uniformly at random (server/commands/draw.h). */
#include "server/commands/draw.h"
#include "server/commands/zset/zset.h"

static const char with_scores[] = "WITHSCORES";

/* At most BOARD_AT_MAX ranks. */
static void zset_random_reply_ranks(const struct call *call, const struct board *board,
                                    const uint32_t *ranks, uint32_t count, enum zset_shape shape) {
    struct board_entry entries[BOARD_AT_MAX];
    board_at_many(board, ranks, count, entries);
    for (uint32_t i = 0; i < count; i++) {
        zset_reply_entry(call, board, &entries[i], shape);
    }
}

static uint32_t zset_random_group_size(int64_t left) {
    return left < BOARD_AT_MAX ? (uint32_t)left : BOARD_AT_MAX;
}

static void zset_random_reply_repeats(const struct call *call, const struct board *board,
                                      int64_t count, enum zset_shape shape) {
    uint32_t ranks[BOARD_AT_MAX];
    zset_reply_header(call, (uint64_t)count, shape);
    for (int64_t left = count; left > 0 && !reply_is_lost(call->reply);) {
        uint32_t drawn = zset_random_group_size(left);
        for (uint32_t i = 0; i < drawn; i++) {
            ranks[i] = draw_below(call, board_count(board));
        }
        zset_random_reply_ranks(call, board, ranks, drawn, shape);
        left -= drawn;
    }
}

static void zset_random_reply_walk(const struct call *call, const struct board *board,
                                   uint32_t count, enum zset_shape shape) {
    zset_reply_header(call, count, shape);
    struct board_cursor cursor;
    struct board_entry entry;
    uint32_t left = board_count(board);
    for (board_seek(board, 0, &cursor); count > 0 && !reply_is_lost(call->reply); left--) {
        bool is_there = board_cursor_read(&cursor, &entry);
        CHECK(is_there);
        if (draw_takes(call, left, count)) {
            zset_reply_entry(call, board, &entry, shape);
            count--;
        }
        board_cursor_next(&cursor);
    }
}

static void zset_random_reply_draws(const struct call *call, const struct board *board,
                                    uint32_t count, enum zset_shape shape) {
    uint32_t *ranks = draw_indexes(call, count, board_count(board));
    if (ranks == NULL) {
        return;
    }
    zset_reply_header(call, count, shape);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i += BOARD_AT_MAX) {
        zset_random_reply_ranks(call, board, &ranks[i], zset_random_group_size(count - i), shape);
    }
    memory_free(ranks);
}

static void zset_random_reply_different(const struct call *call, const struct board *board,
                                        int64_t count, enum zset_shape shape) {
    uint32_t member_count = board_count(board);
    if (count >= member_count) {
        zset_reply_span(call, board, zset_whole(board), true, shape);
    } else if (count == 0) {
        reply_array(call->reply, 0);
    } else if (draw_is_walk(count, member_count)) {
        zset_random_reply_walk(call, board, (uint32_t)count, shape);
    } else {
        zset_random_reply_draws(call, board, (uint32_t)count, shape);
    }
}

static uint64_t zset_random_count_draws(const struct cost_view *view) {
    return draw_work(view, with_scores);
}

static void zset_random_one(const struct call *call) {
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    if (board == NULL || board_count(board) == 0) {
        reply_null(call->reply);
        return;
    }
    reply_bulk(call->reply, board_at(board, draw_below(call, board_count(board))).member);
}

static void zset_random_many(const struct call *call) {
    struct draw draw;
    const struct board *board;
    if (!draw_read(call, with_scores, &draw) || !call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    enum zset_shape shape = draw.with_values ? zset_shape_with_scores(call) : ZSET_MEMBERS;
    if (board == NULL || board_count(board) == 0) {
        reply_array(call->reply, 0);
    } else if (draw.count < 0) {
        zset_random_reply_repeats(call, board, -draw.count, shape);
    } else {
        zset_random_reply_different(call, board, draw.count, shape);
    }
}

static void zrandmember_run(struct call *call) {
    if (call->request->count == 2) {
        zset_random_one(call);
    } else {
        zset_random_many(call);
    }
}

const struct command command_zrandmember = {
    .name = "ZRANDMEMBER",
    .syntax = "key options=[count:integer [WITHSCORES]]",
    .summary = "Members drawn at random: different ones, or (a negative count) with repeats",
    .complexity = "O(m log n) for m of the board's n members, O(n) when m is large",
    .flags = COMMAND_READ,
    .cost = COST(COMMAND_BY_PRODUCT, zset_random_count_draws, 180, 0, "draw",
                 "fewer of them at a time"),
    .run = zrandmember_run,
};
