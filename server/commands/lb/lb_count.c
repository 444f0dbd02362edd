/* LB.COUNT: the number of members of a range, in all or by their tags.
 *
 *     LB.COUNT race 0 999 BY country WHERE class mage
 *       a range of the board -> those of it that match -> counted by value, most first
 *
 *     [[DE, 120], [FR, 87], [nil, 3]]        nil: without a value
 *
 * The range is of the board, also with WHERE: how many of the first thousand play this class. */
#include <endian.h>
#include <stdlib.h>

#include "codec/sort.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_filter.h"
#include "server/commands/lb/lb_tag.h"

enum { ARG_START = 2, BY_MAX = 2 };

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

struct tally_row {
    uint32_t count;
    uint64_t first[BY_MAX];      /* bytes of each value, which decide most comparisons */
    struct bytes values[BY_MAX]; /* of the board; empty: none */
};

struct tally_rows {
    unsigned by[BY_MAX]; /* tags */
    uint32_t by_count;
    struct tally_row *rows;
    uint32_t count, capacity;
    bool is_lost; /* no memory for a row */
};

/* false: the error was replied. */
static bool lb_count_read_by(const struct call *call, const struct count *count,
                             const struct tag_set *tags, struct tally_rows *rows) {
    struct option_uses left = count->by;
    uint32_t index;
    while (syntax_take_use(call, &left, &index) != NULL) {
        if (!lb_tags_find(call, tags, call_arg(call, index + 1), &rows->by[rows->by_count])) {
            return false;
        }
        rows->by_count++;
    }
    return rows->by_count < 2 || rows->by[0] != rows->by[1] ||
           call_refuse_format(call, "ERR BY '%s' is given twice", tags->tags[rows->by[0]].name);
}

static void lb_count_add_row(void *context, const struct tag_values *values, uint32_t count) {
    struct tally_rows *rows = context;
    if (rows->count == rows->capacity && !rows->is_lost) {
        uint32_t capacity = rows->capacity > 0 ? 2 * rows->capacity : 64;
        struct tally_row *grown = memory_resize(rows->rows, capacity * sizeof rows->rows[0]);
        rows->is_lost = grown == NULL;
        rows->rows = grown != NULL ? grown : rows->rows;
        rows->capacity = grown != NULL ? capacity : rows->capacity;
    }
    if (rows->is_lost) {
        return;
    }
    struct tally_row *row = &rows->rows[rows->count++];
    *row = (struct tally_row){.count = count};
    for (uint32_t i = 0; i < rows->by_count; i++) {
        struct bytes value = lb_tags_value(values, rows->by[i]);
        uint64_t first = 0;
        if (value.size > 0) {
            memcpy(&first, value.at, value.size < sizeof first ? value.size : sizeof first);
        }
        row->values[i] = value;
        row->first[i] = be64toh(first); /* in the order of bytes */
    }
}

struct tally_place {
    const struct tally_row *row;
};

/* By the bytes of the values. */
static int lb_count_compare_rows(const void *left, const void *right) {
    const struct tally_row *a = ((const struct tally_place *)left)->row;
    const struct tally_row *b = ((const struct tally_place *)right)->row;
    int order = 0;
    for (uint32_t i = 0; i < BY_MAX && order == 0; i++) {
        order = a->first[i] != b->first[i] ? (a->first[i] < b->first[i] ? -1 : 1)
                                           : bytes_compare(a->values[i], b->values[i]);
    }
    return order;
}

/* The rows, most first; ties by the bytes of the values. To be freed. NULL: no memory. */
static struct tally_place *lb_count_sort_rows(const struct tally_rows *rows) {
    uint32_t count = rows->count;
    struct sort_record *order = memory_allocate(2 * ((size_t)count + 1) * sizeof *order);
    if (order == NULL) {
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i].index = i;
    }
    for (uint32_t by = rows->by_count; by-- > 0;) {
        for (uint32_t i = 0; i < count; i++) {
            order[i].word = rows->rows[order[i].index].first[by];
        }
        sort_records(order, order + count, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        order[i].word = UINT32_MAX - rows->rows[order[i].index].count;
    }
    sort_records(order, order + count, count);
    /* A place takes less than a record: it is written where the records have been read. */
    struct tally_place *sorted = (struct tally_place *)(void *)order;
    for (uint32_t i = 0; i < count; i++) {
        const struct tally_place place = {.row = &rows->rows[order[i].index]};
        memcpy(&sorted[i], &place, sizeof place);
    }
    /* Those whose first bytes are the same. */
    for (uint32_t begin = 0, end; begin < count; begin = end) {
        bool is_sorted = true;
        for (end = begin + 1; end < count && sorted[end].row->count == sorted[begin].row->count &&
                              sorted[end].row->first[0] == sorted[begin].row->first[0];
             end++) {
            is_sorted = is_sorted && lb_count_compare_rows(&sorted[end - 1], &sorted[end]) < 0;
        }
        if (!is_sorted) {
            qsort(&sorted[begin], end - begin, sizeof sorted[0], lb_count_compare_rows);
        }
    }
    return sorted;
}

/* filter: NULL without WHERE. */
static void lb_count_reply_tally(const struct call *call, const struct count *count,
                                 const struct board *board, const struct lb_filter *filter,
                                 struct zset_span span) {
    struct tally_rows rows = {.count = 0};
    unsigned by_mask = 0;
    if (!lb_count_read_by(call, count, &board_layout(board)->tags, &rows)) {
        return;
    }
    for (uint32_t i = 0; i < rows.by_count; i++) {
        by_mask |= 1U << rows.by[i];
    }
    const struct tag_filter *group = filter != NULL ? filter->group : NULL;
    bool is_done = tag_group_tally(board, group, span.rank, span.rank + span.count, by_mask,
                                   lb_count_add_row, &rows) &&
                   !rows.is_lost;
    struct tally_place *sorted = is_done ? lb_count_sort_rows(&rows) : NULL;
    if (sorted == NULL) {
        call_out_of_memory(call);
        rows.count = 0;
    } else {
        reply_array(call->reply, rows.count);
    }
    for (uint32_t i = 0; i < rows.count && !reply_is_lost(call->reply); i++) {
        const struct tally_row *row = sorted[i].row;
        reply_array(call->reply, rows.by_count + 1);
        for (uint32_t j = 0; j < rows.by_count; j++) {
            if (row->values[j].size > 0) {
                reply_bulk(call->reply, row->values[j]);
            } else {
                reply_null(call->reply);
            }
        }
        reply_integer(call->reply, row->count);
    }
    memory_free(sorted);
    memory_free(rows.rows);
}

/* ---- the command ---- */

static void lb_count_reply(const struct call *call, const struct count *count,
                           const struct board *board, const struct lb_filter *filter,
                           struct zset_span span) {
    if (count->by.count > 0) {
        lb_count_reply_tally(call, count, board, filter, span);
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
    struct tally_rows rows = {.count = 0};
    struct zset_span span;
    const struct board *board = cost_board(view, 1);
    if (!lb_count_read_arguments(view->call, &count) || board == NULL) {
        return 1;
    }
    if (count.by.count == 0) {
        return 1 + lb_filter_work(view, &count.filter, 1, count.range.at != NULL ? 2 : 1);
    }
    if (!lb_count_read_by(view->call, &count, &board_layout(board)->tags, &rows) ||
        !lb_count_find_span(view->call, &count, board, cost_growth(view, 1), &span)) {
        return 1;
    }
    double combinations = 1;
    unsigned by_mask = 0;
    for (uint32_t i = 0; i < rows.by_count; i++) {
        combinations *= (double)tags_count_values(board, rows.by[i]) + 1;
        by_mask |= 1U << rows.by[i];
    }
    /* Of n members at random, 1 - exp(-n / combinations) of all combinations: exp by its first terms. */
    double x = span.count / combinations;
    double grown = x + x * x / 2 + x * x * x / 6;
    return (uint64_t)(combinations * grown / (1 + grown)) +
           lb_filter_tally_work(view, &count.filter, by_mask, span.count);
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
    .cost = COST(COMMAND_BY_MEMORY, lb_count_count_rows, 800, 0, "value, or pair of values",
                 "one tag at a time, or `WHERE` of one value"),
    .run = lb_count_run,
};
