/* Ranges, replies and removals shared by several sorted-set commands. Everything here is in ranks:
 * 0-based, best first, the board's own order. */
#include "server/commands/zset/zset.h"

static struct zset_span empty_span(struct zset_span span) {
    return (struct zset_span){.rank = span.rank, .count = 0};
}

struct zset_span zset_part_of_indexes(struct zset_span span, bool is_best_first, int64_t start,
                                      int64_t stop) {
    int64_t count = span.count;
    start += start < 0 ? count : 0;
    stop += stop < 0 ? count : 0;
    start = start < 0 ? 0 : start;
    stop = stop >= count ? count - 1 : stop;
    if (start > stop) {
        return empty_span(span);
    }
    return zset_part(span, is_best_first, (uint32_t)start, (uint32_t)(stop - start + 1));
}

struct zset_span zset_part_of_limit(struct zset_span span, bool is_best_first, int64_t offset,
                                    int64_t count) {
    if (offset < 0 || offset >= span.count) {
        return empty_span(span);
    }
    int64_t left = span.count - offset;
    int64_t taken = count < 0 || count > left ? left : count;
    return zset_part(span, is_best_first, (uint32_t)offset, (uint32_t)taken);
}

bool zset_span_of_scores(const struct call *call, const struct board *board, struct bytes min,
                         struct bytes max, struct zset_span *span) {
    unsigned scale = board != NULL ? zset_lead(board)->scale : 0;
    struct decimal_bound lower;
    struct decimal_bound upper;
    bool is_empty_below;
    bool is_empty_above;
    if (decimal_parse_bound(min, scale, true, &lower, &is_empty_below) != DECIMAL_OK ||
        decimal_parse_bound(max, scale, false, &upper, &is_empty_above) != DECIMAL_OK) {
        return call_refuse(call, "ERR min or max is not a float");
    }
    *span = (struct zset_span){0};
    uint64_t lowest_key;
    uint64_t highest_key;
    if (board == NULL || is_empty_below || is_empty_above ||
        !layout_key_range(board_layout(board), lower, upper, &lowest_key, &highest_key)) {
        return true;
    }
    span->rank = board_count_above(board, highest_key);
    span->count = board_count_from(board, lowest_key) - span->rank;
    return true;
}

static bool check_size(const struct call *call, const char *what, size_t size, size_t size_max) {
    if (size >= 1 && size <= size_max) {
        return true;
    }
    reply_error_format(call->reply, "ERR %s is %zu bytes long: 1..%zu are allowed", what, size,
                       size_max);
    return false;
}

bool zset_check_key(const struct call *call, struct bytes key) {
    return check_size(call, "key", key.size, REGISTRY_KEY_MAX);
}

bool zset_check_member(const struct call *call, struct bytes member) {
    return check_size(call, "member", member.size, BOARD_MEMBER_MAX);
}

void zset_remove_span(const struct call *call, struct registry_key *key, struct zset_span span) {
    if (span.count > 0) {
        registry_remove_range(call->registry, key, span.rank, span.count);
        zset_remove_if_empty(call, key);
    }
}

void zset_remove_if_empty(const struct call *call, struct registry_key *key) {
    if (board_count(&key->board) == 0 && !registry_rules(key)->is_created) {
        registry_remove(call->registry, key);
    }
}

void zset_reply_no_lex(const struct call *call, const char *what) {
    reply_error_format(call->reply,
                       "ERR %s is not supported: equal scores are ordered by time, never by name",
                       what);
}
