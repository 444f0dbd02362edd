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

bool draw_read(const struct call *call, const char *word, struct draw *draw) {
    uint32_t arg_count = call->request->count;
    if (!call_parse_integer(call, call_arg(call, 2), &draw->count)) {
        return false;
    }
    if (draw->count == INT64_MIN) {
        return call_refuse_format(
            call, "ERR value is out of range, value must between %" PRId64 " and %" PRId64,
            -INT64_MAX, INT64_MAX);
    }
    draw->with_values = arg_count == 4 && call_arg_is(call, 3, word);
    if (arg_count > 3 && !draw->with_values) {
        return call_syntax_error(call);
    }
    bool is_double_too_many = draw->count < -INT64_MAX / 2 || draw->count > INT64_MAX / 2;
    if ((draw->with_values && is_double_too_many) || draw->count < -REPEATS_MAX) {
        return call_refuse(call, "ERR value is out of range");
    }
    return true;
}

uint64_t draw_work(const struct cost_view *view, const char *word) {
    struct draw draw = {.count = 1};
    uint32_t size = cost_size(view, 1);
    if (view->call->request->count > 2 && !draw_read(view->call, word, &draw)) {
        return 0;
    }
    if (size == 0) {
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

bool draw_is_walk(int64_t count, uint32_t size) {
    return count >= size / WALK_RATIO;
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

uint32_t *draw_indexes(const struct call *call, uint32_t count, uint32_t size) {
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
