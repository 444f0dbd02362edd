/* LB.COUNT: the number of members of a range, in all or by their tags.
 *
 *     LB.COUNT race 0 999 BY country WHERE class mage
 *       a range of the board -> those of it that match -> counted by value, most first
 *
 *     [[DE, 120], [FR, 87], [nil, 3]]        nil: without a value
 *
 * The range is of the board, also with WHERE: how many of the first thousand play this class. */
#include "protocol/reply.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_filter.h"
#include "server/commands/lb/lb_tag.h"
#include "skiplist/tag_histogram.h"

enum {
    ARG_START = 2,
    BY_MAX = 2,
    /* Of tags with so many bits together each pair has a place of its own: so many of them take the time of one unit. */
    NEAR_BITS = 16,
    NEAR_ROWS = 5,
};

struct count {
    struct option_values range; /* start, stop; at NULL: all */
    bool is_by_score;           /* BYSCORE */
    struct option_uses by;      /* BY */
    struct option_uses filter;  /* WHERE and WHERENOT */
};

/* ---- arguments ---- */

static const struct binding lb_count_bindings[] = {
    {BIND("range", struct count, range)},
    {BIND("BYSCORE", struct count, is_by_score)},
    {BIND("BY", struct count, by)},
    LB_FILTER_BINDINGS(struct count, filter),
    {0},
};

static bool lb_count_read_arguments(const struct call *call, struct count *count) {
    if (!syntax_read(call, count)) {
        return false;
    }
    if (count->is_by_score && count->range.at == NULL) {
        return call_syntax_error(call);
    }
    return count->by.count <= BY_MAX ||
           call_refuse_reason(call, "LB.COUNT takes at most %d BY", (int)BY_MAX);
}

/* If board is NULL, only the texts are checked. growth: number of members to assume in addition. false: the
 * error was replied. */
static bool lb_count_find_span(const struct call *call, const struct count *count,
                               const struct board *board, uint32_t growth, struct zset_span *span) {
    *span = board != NULL ? zset_whole(board) : (struct zset_span){.count = 0};
    if (count->range.at != NULL && !count->is_by_score) {
        return zset_span_of_places(call, board, growth, true, ARG_START, span);
    }
    if (count->range.at != NULL && !lb_span_of_scores(call, board, ARG_START, span)) {
        return false;
    }
    span->count = cost_sum(span->count, growth);
    return true;
}

/* ---- counting by tags ---- */

/* false: the error was replied. */
static bool lb_count_read_by(const struct call *call, const struct count *count,
                             const struct tag_set *tags, unsigned by[BY_MAX]) {
    struct option_uses left = count->by;
    uint32_t index;
    for (uint32_t i = 0; syntax_take_use(call, &left, &index) != NULL; i++) {
        if (!lb_tag_values_find(call, tags, call_arg(call, index + 1), &by[i])) {
            return false;
        }
    }
    return count->by.count < 2 || by[0] != by[1] ||
           call_refuse_format(call, "ERR BY '%s' is given twice", tags->tags[by[0]].name);
}

/* filter: NULL without WHERE. */
static void lb_count_reply_histogram(const struct call *call, const struct count *count,
                                     const struct board *board, const struct lb_filter *filter,
                                     struct zset_span span) {
    enum {
        ROW_ROOM = REPLY_PUT_HEADER_ROOM + BY_MAX * REPLY_PUT_SHORT_ROOM + REPLY_PUT_NUMBER_ROOM
    };
    _Static_assert((int)TAG_VALUE_MAX <= (int)REPLY_PUT_SHORT_MAX, "a value is a short bulk");
    struct tag_histogram made;
    unsigned by[BY_MAX] = {0};
    struct reply *reply = call->reply;
    if (!lb_count_read_by(call, count, &board_layout(board)->tags, by)) {
        return;
    }
    if (!tag_histogram_make(board, filter != NULL ? filter->group : NULL, span.rank,
                            span.rank + span.count, by, count->by.count, &made)) {
        call_out_of_memory(call);
        made.count = 0;
    } else {
        reply_array(reply, made.count);
    }
    for (uint32_t i = 0; i < made.count && !reply_is_lost(reply); i++) {
        char *out = buffer_reserve(reply->out, ROW_ROOM);
        if (out == NULL) {
            break;
        }
        char *end = reply_put_header(out, '*', made.by_count + 1);
        for (uint32_t j = 0; j < made.by_count; j++) {
            struct bytes value = tag_histogram_value(&made, i, j);
            end = value.size > 0 ? reply_put_short_bulk(end, value)
                                 : reply_put_nothing(end, '$', reply->version);
        }
        end = reply_put_header(end, ':', made.rows[i].count);
        buffer_commit(reply->out, (size_t)(end - out));
    }
    tag_histogram_deinit(&made);
}

/* ---- the command ---- */

static void lb_count_reply(const struct call *call, const struct count *count,
                           const struct board *board, const struct lb_filter *filter,
                           struct zset_span span) {
    if (count->by.count > 0) {
        lb_count_reply_histogram(call, count, board, filter, span);
    } else {
        reply_integer(call->reply,
                      filter != NULL ? lb_filter_span(filter, span).count : span.count);
    }
}

static void lb_count_run(struct call *call) {
    struct count count = {.is_by_score = false};
    struct zset_span span;
    struct lb_filter filter;
    const struct board *board;
    if (!lb_count_read_arguments(call, &count) ||
        !call_find_board(call, call_arg(call, 1), &board) ||
        !lb_count_find_span(call, &count, board, 0, &span)) {
        return;
    }
    if (board == NULL) {
        if (count.by.count > 0) {
            reply_array(call->reply, 0);
        } else {
            reply_integer(call->reply, 0);
        }
    } else if (count.filter.count == 0) {
        lb_count_reply(call, &count, board, NULL, span);
    } else if (lb_filter_begin(call, board, &count.filter, &filter)) {
        lb_count_reply(call, &count, board, &filter, span);
        lb_filter_end(&filter);
    }
}

/* With BY: as many different values as are to be expected if those of one tag say nothing of the other's, and what is read for
 * them. */
static uint64_t lb_count_count_rows(const struct cost_view *view) {
    struct count count = {.is_by_score = false};
    unsigned by[BY_MAX] = {0};
    struct zset_span span;
    const struct board *board = cost_board(view, 1);
    if (!lb_count_read_arguments(view->call, &count) || board == NULL) {
        return 1;
    }
    if (count.by.count == 0) {
        return 1 + lb_filter_work(view, &count.filter, 1, count.range.at != NULL ? 2 : 1);
    }
    if (!lb_count_read_by(view->call, &count, &board_layout(board)->tags, by) ||
        !lb_count_find_span(view->call, &count, board, cost_growth(view, 1), &span)) {
        return 1;
    }
    double combinations = 1;
    unsigned by_mask = 0, bits = 0;
    for (uint32_t i = 0; i < count.by.count; i++) {
        combinations *= (double)tags_count_values(board, by[i]) + 1;
        by_mask |= 1U << by[i];
        bits += board_layout(board)->tags.tags[by[i]].bits;
    }
    /* Of n members at random, 1 - exp(-n / combinations) of all combinations: exp by its first terms. */
    double x = span.count / combinations;
    double grown = x + x * x / 2 + x * x * x / 6;
    return (uint64_t)(combinations * grown / (1 + grown)) / (bits <= NEAR_BITS ? NEAR_ROWS : 1) +
           lb_filter_histogram_work(view, &count.filter, by_mask, span.count);
}

const struct command command_lb_count = {
    .name = "LB.COUNT",
    .syntax = "key range=[start stop [BYSCORE]] [BY tag]... " LB_FILTER_SYNTAX,
    .bindings = lb_count_bindings,
    .reply = "i|BY=[@Count]",
    .summary =
        "How many members a board has, or a range of it, by rank or by score, in all or by the "
        "values of one tag or two (BY), the most frequent first",
    .complexity = "O(log n), n being the members of the board; with BY O(m log m) for m different "
                  "values",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_MEMORY, lb_count_count_rows, 150, 0, "value, or pair of values",
                 "one tag at a time, or `WHERE` of one value"),
    .run = lb_count_run,
};
