/* ZRANDMEMBER: members drawn uniformly at random.
 *
 *     ZRANDMEMBER board         one member, or nil
 *     ZRANDMEMBER board 3       3 different members (all, if there are fewer), in any order
 *     ZRANDMEMBER board -3      3 draws, which may repeat */
#include <inttypes.h>
#include <stdlib.h>

#include "server/clients/server.h"
#include "server/commands/zset/zset_reply.h"
#include "server/dispatch/cost.h"

/* More repeats than any reply could hold; Redis would exhaust its memory. */
#define REPEATS_MAX INT64_C(4294967295)

enum {
    /* Boards with up to this many times the requested members are walked once; on larger ones ranks
     * are drawn and sorted. */
    WALK_RATIO = 16,
};

/* 0 .. limit - 1. The bias is below limit / 2^64 * 2^32, that is 2^-32 at worst per draw. */
static uint32_t random_below(const struct call *call, uint32_t limit) {
    return (uint32_t)(((server_random(call->server) >> 32) * limit) >> 32);
}

/* At most BOARD_AT_MAX ranks. */
static void reply_ranks(const struct call *call, const struct board *board, const uint32_t *ranks,
                        uint32_t count, enum zset_shape shape) {
    struct board_entry entries[BOARD_AT_MAX];
    board_at_many(board, ranks, count, entries);
    for (uint32_t i = 0; i < count; i++) {
        zset_reply_entry(call, board, &entries[i], shape);
    }
}

static uint32_t group_size(int64_t left) {
    return left < BOARD_AT_MAX ? (uint32_t)left : BOARD_AT_MAX;
}

static void reply_repeats(const struct call *call, const struct board *board, int64_t count,
                          enum zset_shape shape) {
    uint32_t ranks[BOARD_AT_MAX];
    zset_reply_header(call, (uint64_t)count, shape);
    for (int64_t left = count; left > 0 && !reply_is_lost(call->reply);) {
        uint32_t drawn = group_size(left);
        for (uint32_t i = 0; i < drawn; i++) {
            ranks[i] = random_below(call, board_count(board));
        }
        reply_ranks(call, board, ranks, drawn, shape);
        left -= drawn;
    }
}

/* Walk the board and take each member with the remaining probability. Source: Knuth, The Art of
 * Computer Programming, volume 2, 3.4.2, algorithm S. */
static void reply_walk(const struct call *call, const struct board *board, uint32_t count,
                       enum zset_shape shape) {
    zset_reply_header(call, count, shape);
    struct board_cursor cursor;
    struct board_entry entry;
    uint32_t left = board_count(board);
    for (board_seek(board, 0, &cursor); count > 0 && !reply_is_lost(call->reply); left--) {
        bool is_there = board_cursor_read(&cursor, &entry);
        CHECK(is_there);
        if (random_below(call, left) < count) {
            zset_reply_entry(call, board, &entry, shape);
            count--;
        }
        board_cursor_next(&cursor);
    }
}

static int compare_ranks(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Move the distinct values of sorted ranks to the front; returns their number. */
static uint32_t drop_repeats(uint32_t *ranks, uint32_t count) {
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (ranks[i] != ranks[kept - 1]) {
            ranks[kept++] = ranks[i];
        }
    }
    return kept;
}

/* Draw ranks until enough of them are distinct. */
static void reply_draws(const struct call *call, const struct board *board, uint32_t count,
                        enum zset_shape shape) {
    uint32_t *ranks = memory_allocate(count * sizeof(ranks[0]));
    if (ranks == NULL) {
        call_out_of_memory(call);
        return;
    }
    for (uint32_t drawn = 0; drawn < count; drawn = drop_repeats(ranks, count)) {
        for (uint32_t i = drawn; i < count; i++) {
            ranks[i] = random_below(call, board_count(board));
        }
        qsort(ranks, count, sizeof(ranks[0]), compare_ranks);
    }
    zset_reply_header(call, count, shape);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i += BOARD_AT_MAX) {
        reply_ranks(call, board, &ranks[i], group_size(count - i), shape);
    }
    memory_free(ranks);
}

static void reply_different(const struct call *call, const struct board *board, int64_t count,
                            enum zset_shape shape) {
    uint32_t member_count = board_count(board);
    if (count >= member_count) {
        zset_reply_span(call, board, zset_whole(board), true, shape);
    } else if (count == 0) {
        reply_array(call->reply, 0);
    } else if (count >= member_count / WALK_RATIO) {
        reply_walk(call, board, (uint32_t)count, shape);
    } else {
        reply_draws(call, board, (uint32_t)count, shape);
    }
}

/* Parse count and WITHSCORES, if given. */
static bool read_options(const struct call *call, int64_t *count, enum zset_shape *shape) {
    uint32_t arg_count = call->request->count;
    if (!call_parse_integer(call, call_arg(call, 2), count)) {
        return false;
    }
    if (*count == INT64_MIN) {
        reply_error_format(call->reply,
                           "ERR value is out of range, value must between %" PRId64 " and %" PRId64,
                           -INT64_MAX, INT64_MAX);
        return false;
    }
    bool with_scores = arg_count == 4 && call_arg_is(call, 3, "WITHSCORES");
    if (arg_count > 3 && !with_scores) {
        return call_syntax_error(call);
    }
    bool is_double_too_many = *count < -INT64_MAX / 2 || *count > INT64_MAX / 2;
    if ((with_scores && is_double_too_many) || *count < -REPEATS_MAX) {
        return call_refuse(call, "ERR value is out of range");
    }
    *shape = with_scores ? zset_shape_with_scores(call) : ZSET_MEMBERS;
    return true;
}

/* Walking past a member costs a fraction of a draw. */
enum { WALKED_PER_DRAW = 8 };
static uint64_t count_draws(const struct cost_view *view) {
    int64_t count = 1;
    enum zset_shape shape;
    int64_t size = cost_size(view, 1);
    if (view->call->request->count > 2 && !read_options(view->call, &count, &shape)) {
        return 0;
    }
    if (size == 0) {
        return 0;
    }
    if (count < 0) {
        return (uint64_t)-count;
    }
    bool is_walked = count >= size / WALK_RATIO;
    return (uint64_t)(is_walked ? size / WALKED_PER_DRAW : count);
}

static void random_one(const struct call *call) {
    const struct board *board = call_find_board(call, call_arg(call, 1));
    if (board == NULL || board_count(board) == 0) {
        reply_null(call->reply);
        return;
    }
    reply_bulk(call->reply, board_at(board, random_below(call, board_count(board))).member);
}

static void zrandmember_run(struct call *call) {
    if (call->request->count == 2) {
        random_one(call);
        return;
    }
    int64_t count;
    enum zset_shape shape;
    if (!read_options(call, &count, &shape)) {
        return;
    }
    const struct board *board = call_find_board(call, call_arg(call, 1));
    if (board == NULL || board_count(board) == 0) {
        reply_array(call->reply, 0);
    } else if (count < 0) {
        reply_repeats(call, board, -count, shape);
    } else {
        reply_different(call, board, count, shape);
    }
}

const struct command command_zrandmember = {
    .name = "ZRANDMEMBER",
    .syntax = "key options=[count:integer [WITHSCORES]]",
    .summary = "Members drawn at random: different ones, or (a negative count) with repeats",
    .complexity = "O(m log n) for m of the board's n members, O(n) when m is large",
    .group = "sorted-set",
    .flags = COMMAND_READ,
    .cost = &(const struct command_cost){.count = count_draws,
                                         .unit_ns = 180,
                                         .unit = "draw",
                                         .instead = "fewer of them at a time"},
    .run = zrandmember_run,
};
