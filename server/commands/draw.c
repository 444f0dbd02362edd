/* ZRANDMEMBER and HRANDFIELD: drawing uniformly at random.
 *
 *     key              one, or nil
 *     key 3            3 different ones (all, if there are fewer), in any order
 *     key -3           3 draws, which may repeat */
#include <inttypes.h>
#include <stdlib.h>

#include "server/commands/zset/zset.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/syntax.h"

/* The arguments. */
struct draw {
    bool is_one; /* no count */
    int64_t count;
    bool with_values; /* the word behind the count was given */
};

/* For a syntax of "options=[count:integer [WORD]]". */
#define DRAW_BINDINGS(word)                                                                        \
    (const struct binding[]) {                                                                     \
        {BIND(word, struct draw, with_values), .repeat = BINDING_ONCE}, {0},                       \
    }

enum { DRAW_GROUP = 16 };
/* What is drawn from. */
struct draw_source {
    const struct call *call;
    const void *value; /* a board, a hash; NULL: size is 0 */
    uint32_t size;
    /* Reply those of these indexes, at most DRAW_GROUP. */
    void (*put)(const struct draw_source *source, const uint32_t *indexes, uint32_t count,
                bool with_values);
    /* Visit all in any order, and reply those that draw_takes, count of them. */
    void (*walk)(const struct draw_source *source, uint32_t count, bool with_values);
};

/* More repeats than any reply could hold; Redis would exhaust its memory. */
#define REPEATS_MAX INT64_C(4294967295)

enum {
    /* What has up to this many times the requested number is walked once; of more, indexes are
     * drawn and sorted. */
    WALK_RATIO = 16,
    /* Walking past one costs a fraction of a draw. */
    WALKED_PER_DRAW = 8,
};

/* false: the error was replied. */
static bool draw_read(const struct call *call, struct draw *draw) {
    *draw = (struct draw){.is_one = call->request->count == 2, .count = 1};
    if (draw->is_one) {
        return true;
    }
    if (!call_parse_integer(call, call_arg(call, 2), &draw->count)) {
        return false;
    }
    if (draw->count == INT64_MIN) {
        return call_refuse_format(
            call, "ERR value is out of range, value must between %" PRId64 " and %" PRId64,
            -INT64_MAX, INT64_MAX);
    }
    if (!syntax_read(call, draw)) {
        return false;
    }
    bool is_double_too_many = draw->count < -INT64_MAX / 2 || draw->count > INT64_MAX / 2;
    if ((draw->with_values && is_double_too_many) || draw->count < -REPEATS_MAX) {
        return call_refuse(call, "ERR value is out of range");
    }
    return true;
}

/* Is it better to walk over all of size and take each one with the remaining probability, than to
 * draw count indexes and sort them? */
static bool draw_is_walk(int64_t count, uint32_t size) {
    return count >= size / WALK_RATIO;
}

/* The number of draws, for the cost of a command. */
static uint64_t draw_work(const struct cost_view *view) {
    struct draw draw;
    uint32_t size = cost_size(view, 1);
    if (!draw_read(view->call, &draw) || size == 0) {
        return 0;
    }
    if (draw.count < 0) {
        return (uint64_t)-draw.count;
    }
    return draw_is_walk(draw.count, size) ? size / WALKED_PER_DRAW : (uint64_t)draw.count;
}

/* 0 .. limit - 1. The bias is below limit / 2^64 * 2^32, that is 2^-32 at worst per draw. */
static uint32_t draw_below(const struct call *call, uint32_t limit) {
    return (uint32_t)(((server_random(call->server) >> 32) * limit) >> 32);
}

static int draw_compare_indexes(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

static uint32_t draw_group_size(int64_t left) {
    return left < DRAW_GROUP ? (uint32_t)left : DRAW_GROUP;
}

/* With values, pairs are flat in RESP2 and arrays in RESP3. */
static void draw_reply_header(const struct call *call, const struct draw *draw, uint64_t count) {
    bool is_flat = draw->with_values && call->reply->version == 2;
    reply_array(call->reply, is_flat ? count * 2 : count);
}

static void draw_reply_different(const struct draw_source *source, const struct draw *draw) {
    const struct call *call = source->call;
    uint32_t count = draw->count < source->size ? (uint32_t)draw->count : source->size;
    if (draw_is_walk(count, source->size)) {
        draw_reply_header(call, draw, count);
        source->walk(source, count, draw->with_values);
        return;
    }
    uint32_t *indexes = memory_allocate(count * sizeof(indexes[0]));
    if (indexes == NULL) {
        call_out_of_memory(call);
        return;
    }
    /* Sorted, until enough of them are distinct. */
    for (uint32_t distinct = 0; distinct < count;) {
        for (uint32_t i = distinct; i < count; i++) {
            indexes[i] = draw_below(call, source->size);
        }
        qsort(indexes, count, sizeof(indexes[0]), draw_compare_indexes);
        distinct = 1;
        for (uint32_t i = 1; i < count; i++) {
            if (indexes[i] != indexes[distinct - 1]) {
                indexes[distinct++] = indexes[i];
            }
        }
    }
    draw_reply_header(call, draw, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i += DRAW_GROUP) {
        source->put(source, &indexes[i], draw_group_size(count - i), draw->with_values);
    }
    memory_free(indexes);
}

/* Draw and reply. */
static void draw_reply(const struct draw_source *source, const struct draw *draw) {
    const struct call *call = source->call;
    if (source->size == 0 && draw->is_one) {
        reply_null(call->reply);
    } else if (draw->is_one) {
        uint32_t index = draw_below(call, source->size);
        source->put(source, &index, 1, false);
    } else if (source->size == 0 || draw->count == 0) {
        reply_array(call->reply, 0);
    } else if (draw->count < 0) {
        uint32_t indexes[DRAW_GROUP];
        draw_reply_header(call, draw, (uint64_t)-draw->count);
        for (int64_t left = -draw->count; left > 0 && !reply_is_lost(call->reply);) {
            uint32_t drawn = draw_group_size(left);
            for (uint32_t i = 0; i < drawn; i++) {
                indexes[i] = draw_below(call, source->size);
            }
            source->put(source, indexes, drawn, draw->with_values);
            left -= drawn;
        }
    } else {
        draw_reply_different(source, draw);
    }
}

/* ---- ZRANDMEMBER ---- */

/* In a walk: is the next one taken, when left are still ahead and count are wanted? Source:
 * Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S. */
static bool draw_takes(const struct call *call, uint32_t left, uint32_t count) {
    return draw_below(call, left) < count;
}

static enum zset_shape draw_member_shape(const struct call *call, bool with_values) {
    return with_values ? zset_shape_with_scores(call) : ZSET_MEMBERS;
}

_Static_assert((int)DRAW_GROUP <= (int)BOARD_AT_MAX, "a group is read at once");
static void draw_member_put(const struct draw_source *source, const uint32_t *ranks, uint32_t count,
                            bool with_values) {
    struct board_stored entries[DRAW_GROUP];
    enum zset_shape shape = draw_member_shape(source->call, with_values);
    board_at_many(source->value, ranks, count, entries);
    for (uint32_t i = 0; i < count; i++) {
        zset_reply_entry(source->call, source->value, &entries[i], shape);
    }
}

static void draw_member_walk(const struct draw_source *source, uint32_t count, bool with_values) {
    const struct call *call = source->call;
    enum zset_shape shape = draw_member_shape(call, with_values);
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
                                               .put = draw_member_put,
                                               .walk = draw_member_walk},
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
    .cost = COST(COMMAND_BY_PRODUCT, draw_work, 300, 0, "draw", "fewer of them at a time"),
    .run = zrandmember_run,
};

/* ---- HRANDFIELD ---- */

static void draw_field_reply_pair(const struct call *call, const struct hash_pair *pair,
                                  bool with_value) {
    if (with_value && call->reply->version > 2) {
        reply_array(call->reply, 2);
    }
    reply_bulk(call->reply, pair->field);
    if (with_value) {
        reply_bulk(call->reply, pair->value);
    }
}

static void draw_field_put(const struct draw_source *source, const uint32_t *indexes,
                           uint32_t count, bool with_value) {
    struct hash_pair pair;
    for (uint32_t i = 0; i < count; i++) {
        hash_at(source->value, indexes[i], &pair);
        draw_field_reply_pair(source->call, &pair, with_value);
    }
}

static void draw_field_walk(const struct draw_source *source, uint32_t count, bool with_value) {
    struct hash_cursor cursor = hash_begin(source->value);
    struct hash_pair pair;
    for (uint32_t left = source->size; count > 0 && !reply_is_lost(source->call->reply); left--) {
        bool is_there = hash_next(&cursor, &pair);
        CHECK(is_there);
        if (draw_takes(source->call, left, count)) {
            draw_field_reply_pair(source->call, &pair, with_value);
            count--;
        }
    }
}

static void hrandfield_run(struct call *call) {
    struct draw draw;
    const struct hash *hash;
    if (draw_read(call, &draw) && call_find_hash(call, call_arg(call, 1), &hash)) {
        draw_reply(&(const struct draw_source){.call = call,
                                               .value = hash,
                                               .size = hash != NULL ? hash_count(hash) : 0,
                                               .put = draw_field_put,
                                               .walk = draw_field_walk},
                   &draw);
    }
}

const struct command command_hrandfield = {
    .name = "HRANDFIELD",
    .syntax = "key options=[count:integer [WITHVALUES]]",
    .bindings = DRAW_BINDINGS("WITHVALUES"),
    .reply = "s?|[s]|WITHVALUES=[[field:s value:s]...]",
    .summary = "Fields drawn at random: different ones, or (a negative count) with repeats",
    .complexity = "O(m) in the fields drawn, O(n) in the fields of the hash when m is large",
    .flags = COMMAND_READ,
    .reads_hash = true,
    .cost = COST(COMMAND_BY_PRODUCT, draw_work, 150, 0, "draw", "fewer of them at a time"),
    .run = hrandfield_run,
};
