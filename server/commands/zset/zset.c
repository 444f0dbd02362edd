/* Ranges and removals shared by several sorted-set commands. Ranges are in ranks: 0-based, best first, the
 * board's own order. Replies are in zset_reply.c. */
#include "server/commands/zset/zset.h"

static struct zset_span zset_empty_span(struct zset_span span) {
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
        return zset_empty_span(span);
    }
    return zset_part(span, is_best_first, (uint32_t)start, (uint32_t)(stop - start + 1));
}

struct zset_span zset_part_of_limit(struct zset_span span, bool is_best_first, int64_t offset,
                                    int64_t count) {
    if (offset < 0 || offset >= span.count) {
        return zset_empty_span(span);
    }
    int64_t left = span.count - offset;
    int64_t taken = count < 0 || count > left ? left : count;
    return zset_part(span, is_best_first, (uint32_t)offset, (uint32_t)taken);
}

bool zset_span_of_scores(const struct call *call, const struct board *board, struct bytes min,
                         struct bytes max, struct zset_span *span) {
    static const struct layout_field any = {.bits = 64}; /* for its texts alone */
    const struct layout_field *lead = board != NULL ? zset_lead(board) : &any;
    struct decimal_bound lower;
    struct decimal_bound upper;
    bool is_empty_below;
    bool is_empty_above;
    bool has_min = layout_field_parse_bound(lead, min, true, &lower, &is_empty_below) == DECIMAL_OK;
    if (!has_min ||
        layout_field_parse_bound(lead, max, false, &upper, &is_empty_above) != DECIMAL_OK) {
        return call_refuse_word(call, has_min ? max : min, "is not a score",
                                "ERR min or max is not a float");
    }
    *span = (struct zset_span){0};
    uint64_t lowest_key;
    uint64_t highest_key;
    if (board == NULL || is_empty_below || is_empty_above ||
        !layout_key_range(board_layout(board), lower, upper, call->now_us, &lowest_key,
                          &highest_key)) {
        return true;
    }
    span->rank = board_count_above(board, highest_key);
    span->count = board_count_from(board, lowest_key) - span->rank;
    return true;
}

bool zset_check_member(const struct call *call, struct bytes member) {
    return zset_is_member(member) ||
           call_refuse_format(call, "ERR member is %zu bytes long: 1..%d are allowed", member.size,
                              (int)BOARD_MEMBER_MAX);
}

bool zset_refuse_value(const struct call *call, const struct layout_field *field, struct bytes text,
                       enum decimal_status status) {
    char error[LAYOUT_ERROR_MAX];
    const char *taking = status == DECIMAL_NOT_A_NUMBER
                             ? NULL
                             : setting_board_find_taking(&call->server->settings, field, text);
    layout_explain_value(field, text, status, error);
    return taking == NULL ? call_refuse_format(call, "ERR %s", error)
                          : call_refuse_format(call, "ERR %s; LB.CREATE key LAYOUT %s takes it",
                                               error, taking);
}

bool zset_refuse_sum(const struct call *call, const struct layout_field *field, uint64_t ordinal,
                     struct decimal delta, int64_t time_us) {
    char error[LAYOUT_ERROR_MAX];
    layout_explain_sum(field, ordinal, delta, time_us, call->now_us, error);
    return call_refuse_format(call, "ERR %s", error);
}

void zset_remove_span(const struct call *call, struct registry_key *key, struct zset_span span,
                      const char *event) {
    if (span.count > 0) {
        registry_board_cut(call->registry, key, span.rank, span.count);
        zset_end_removal(call, key, event);
    }
}

void zset_end_removal(const struct call *call, struct registry_key *key, const char *event) {
    call_notify(call, SETTING_EVENT_ZSET, event, registry_name(key));
    if (board_count(&key->board) == 0 && !registry_options(key)->is_created) {
        call_notify(call, SETTING_EVENT_GENERIC, "del", registry_name(key));
        registry_remove(call->registry, key);
    }
}

void zset_reply_no_lex(const struct call *call, const char *what) {
    reply_error_format(call->reply,
                       "ERR %s is not supported: equal scores are ordered by time, never by name",
                       what);
}
