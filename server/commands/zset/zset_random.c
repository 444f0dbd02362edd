/* ZRANDMEMBER: members drawn uniformly at random (server/commands/draw.h). */
#include "server/commands/draw.h"
#include "server/commands/zset/zset.h"

static enum zset_shape zset_random_shape(const struct call *call, bool with_values) {
    return with_values ? zset_shape_with_scores(call) : ZSET_MEMBERS;
}

_Static_assert((int)DRAW_GROUP <= (int)BOARD_AT_MAX, "a group is read at once");
static void zset_random_put(const struct draw_source *source, const uint32_t *ranks, uint32_t count,
                            bool with_values) {
    struct board_stored entries[DRAW_GROUP];
    enum zset_shape shape = zset_random_shape(source->call, with_values);
    board_at_many(source->value, ranks, count, entries);
    for (uint32_t i = 0; i < count; i++) {
        zset_reply_entry(source->call, source->value, &entries[i], shape);
    }
}

static void zset_random_walk(const struct draw_source *source, uint32_t count, bool with_values) {
    const struct call *call = source->call;
    enum zset_shape shape = zset_random_shape(call, with_values);
    struct board_cursor cursor;
    struct board_stored entry;
    uint32_t left = source->size;
    for (board_cursor_seek(source->value, 0, &cursor); count > 0 && !reply_is_lost(call->reply);
         left--) {
        bool is_there = board_cursor_read(&cursor, &entry);
        CHECK(is_there);
        if (draw_takes(call, left, count)) {
            zset_reply_entry(call, source->value, &entry, shape);
            count--;
        }
        board_cursor_next(&cursor);
    }
}

static void zrandmember_run(struct call *call) {
    struct draw draw;
    const struct board *board;
    if (draw_read(call, &draw) && call_find_board(call, call_arg(call, 1), &board)) {
        draw_reply(&(const struct draw_source){.call = call,
                                               .value = board,
                                               .size = board != NULL ? board_count(board) : 0,
                                               .put = zset_random_put,
                                               .walk = zset_random_walk},
                   &draw);
    }
}

const struct command command_zrandmember = {
    .name = "ZRANDMEMBER",
    .syntax = "key options=[count:integer [WITHSCORES]]",
    .bindings = DRAW_BINDINGS("WITHSCORES"),
    .reply = "s?|[s]|WITHSCORES=[[member:s score:n]...]",
    .summary = "Members drawn at random: different ones, or (a negative count) with repeats",
    .complexity = "O(m log n) for m of the board's n members, O(n) when m is large",
    .flags = COMMAND_READ,
    .cost = COST(COMMAND_BY_PRODUCT, draw_work, 180, 0, "draw", "fewer of them at a time"),
    .run = zrandmember_run,
};
