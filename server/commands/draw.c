/* Drawing at random. See draw.h. */
#include "server/commands/draw.h"

#include <inttypes.h>
#include <stdlib.h>

/* More repeats than any reply could hold; Redis would exhaust its memory. */
#define REPEATS_MAX INT64_C(4294967295)

enum {
    /* What has up to this many times the requested number is walked once; of more, indexes are
     * drawn and sorted. */
    WALK_RATIO = 16,
    /* Walking past one costs a fraction of a draw. */
    WALKED_PER_DRAW = 8,
};

bool draw_read(const struct call *call, struct draw *draw) {
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

uint64_t draw_work(const struct cost_view *view) {
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

uint32_t draw_below(const struct call *call, uint32_t limit) {
    return (uint32_t)(((server_random(call->server) >> 32) * limit) >> 32);
}

static int draw_compare_indexes(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a;
    uint32_t right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Move the distinct values of sorted indexes to the front; returns their number. */
static uint32_t draw_drop_repeats(uint32_t *indexes, uint32_t count) {
    uint32_t kept = 1;
    for (uint32_t i = 1; i < count; i++) {
        if (indexes[i] != indexes[kept - 1]) {
            indexes[kept++] = indexes[i];
        }
    }
    return kept;
}

/* count different indexes below size, in order, to be freed. count is at least 1 and much smaller
 * than size. NULL: the error was replied. */
static uint32_t *draw_indexes(const struct call *call, uint32_t count, uint32_t size) {
    uint32_t *indexes = memory_allocate(count * sizeof(indexes[0]));
    if (indexes == NULL) {
        call_out_of_memory(call);
        return NULL;
    }
    /* Until enough of them are distinct. */
    for (uint32_t drawn = 0; drawn < count; drawn = draw_drop_repeats(indexes, count)) {
        for (uint32_t i = drawn; i < count; i++) {
            indexes[i] = draw_below(call, size);
        }
        qsort(indexes, count, sizeof(indexes[0]), draw_compare_indexes);
    }
    return indexes;
}

static uint32_t draw_group_size(int64_t left) {
    return left < DRAW_GROUP ? (uint32_t)left : DRAW_GROUP;
}

static void draw_reply_repeats(const struct draw_source *source, const struct draw *draw) {
    uint32_t indexes[DRAW_GROUP];
    for (int64_t left = -draw->count; left > 0 && !reply_is_lost(source->call->reply);) {
        uint32_t drawn = draw_group_size(left);
        for (uint32_t i = 0; i < drawn; i++) {
            indexes[i] = draw_below(source->call, source->size);
        }
        source->put(source, indexes, drawn, draw->with_values);
        left -= drawn;
    }
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
    uint32_t *indexes = draw_indexes(call, count, source->size);
    if (indexes == NULL) {
        return;
    }
    draw_reply_header(call, draw, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i += DRAW_GROUP) {
        source->put(source, &indexes[i], draw_group_size(count - i), draw->with_values);
    }
    memory_free(indexes);
}

void draw_reply(const struct draw_source *source, const struct draw *draw) {
    const struct call *call = source->call;
    if (source->size == 0 && draw->is_one) {
        reply_null(call->reply);
    } else if (draw->is_one) {
        uint32_t index = draw_below(call, source->size);
        source->put(source, &index, 1, false);
    } else if (source->size == 0 || draw->count == 0) {
        reply_array(call->reply, 0);
    } else if (draw->count < 0) {
        draw_reply_header(call, draw, (uint64_t)-draw->count);
        draw_reply_repeats(source, draw);
    } else {
        draw_reply_different(source, draw);
    }
}
