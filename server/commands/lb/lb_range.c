/* LB.RANGE: the records of a range, by rank or by score, best first or (REV) worst first.
 *
 *     LB.RANGE board 0 9                       the ten best
 *     LB.RANGE board 100 200 BYSCORE REV       all members from 100 to 200, worst first
 *       options -> a span of ranks -> the records
 *
 * By rank, start and stop are places of the walk, as in ZRANGE. By score they are the two limits of
 * the range, in either order, because the one that the walk starts at depends on the layout and on
 * REV, which callers need not know. */
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_record.h"

enum { FIRST_OPTION = 4 };

struct range {
    bool is_by_score; /* BYSCORE */
    bool is_reverse;  /* REV */
    int64_t offset;   /* LIMIT offset count */
    int64_t count;    /* negative: no limit */
    struct lb_shape shape;
    struct option_uses filter; /* WHERE and WHERENOT */
};

static const struct binding lb_range_bindings[] = {
    {BIND("BYSCORE", struct range, is_by_score)},
    {BIND("REV", struct range, is_reverse)},
    {BIND("LIMIT", struct range, offset)},
    LB_RECORD_BINDINGS(struct range),
    {0},
};

static bool lb_range_read_options(const struct call *call, struct range *range) {
    if (!syntax_read(call, range) || !lb_data_check(call, &range->shape.data)) {
        return false;
    }
    /* As in ZRANGE, a count of -1 means no limit, and is always accepted. */
    if (range->count != -1 && !range->is_by_score) {
        return call_refuse_reason(
            call, "syntax error, LIMIT is only supported in combination with BYSCORE");
    }
    return true;
}

/* The requested ranks. If board is NULL, only the arguments are checked. growth: number of members
 * to assume in addition to the board's. */
static bool lb_range_find_span(const struct call *call, const struct range *range,
                               const struct board *board, uint32_t growth, struct zset_span *span) {
    bool is_best_first = !range->is_reverse;
    if (!range->is_by_score) {
        return zset_span_of_places(call, board, growth, is_best_first, 2, span);
    }
    if (!lb_span_of_scores(call, board, 2, span)) {
        return false;
    }
    span->count = cost_sum(span->count, growth);
    *span = zset_part_of_limit(*span, is_best_first, range->offset, range->count);
    return true;
}

/* The same inside a group: span is of ranks inside it. */
static bool lb_range_find_inside(const struct call *call, const struct range *range,
                                 const struct lb_filter *filter, uint32_t growth,
                                 struct zset_span *span) {
    bool is_best_first = !range->is_reverse;
    int64_t start;
    int64_t stop;
    if (range->is_by_score) {
        if (!lb_span_of_scores(call, filter->board, 2, span)) {
            return false;
        }
        *span = lb_filter_span(filter, *span);
        span->count = cost_sum(span->count, growth);
        *span = zset_part_of_limit(*span, is_best_first, range->offset, range->count);
        return true;
    }
    if (!call_parse_integer(call, call_arg(call, 2), &start) ||
        !call_parse_integer(call, call_arg(call, 3), &stop)) {
        return false;
    }
    struct zset_span whole = {.count = cost_sum(lb_filter_count(filter), growth)};
    *span = zset_part_of_indexes(whole, is_best_first, start, stop);
    return true;
}

static void lb_range_run(struct call *call) {
    struct range range = {.count = -1};
    struct zset_span span;
    if (!lb_range_read_options(call, &range)) {
        return;
    }
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board) ||
        !lb_record_begin_ranks(call, board, &range.filter, &range.shape)) {
        return;
    }
    if (range.filter.count > 0 && board != NULL) {
        struct lb_filter filter;
        if (lb_filter_begin(call, board, &range.filter, &filter)) {
            if (lb_range_find_inside(call, &range, &filter, 0, &span)) {
                lb_record_reply_filter_span(call, &filter, span, !range.is_reverse, range.shape);
            }
            lb_filter_end(&filter);
        }
    } else if (lb_range_find_span(call, &range, board, 0, &span)) {
        lb_record_reply_span(call, board, span, !range.is_reverse, range.shape);
    }
    lb_record_since_end(&range.shape.since);
}

/* With COMP and REV each record may take a descent from the root. */
enum { COMPETITION_UNITS = 4 };
static uint64_t lb_range_count_span(const struct cost_view *view) {
    struct range range = {.count = -1};
    struct zset_span span;
    const struct board *board = cost_board(view, 1);
    uint32_t growth = cost_growth(view, 1);
    if (!lb_range_read_options(view->call, &range) ||
        !lb_range_find_span(view->call, &range, board, growth, &span)) {
        return 0;
    }
    bool is_slow = range.shape.is_competition && range.is_reverse;
    uint64_t count = span.count;
    if (range.filter.count > 0) {
        /* The group's own span: that of the board may be far too long. */
        struct lb_filter filter;
        count = growth;
        if (board != NULL && lb_filter_begin(view->call, board, &range.filter, &filter)) {
            bool is_found = lb_range_find_inside(view->call, &range, &filter, growth, &span);
            count = is_found ? span.count : 0;
            lb_filter_end(&filter);
        }
    }
    return lb_record_work(view, &range.shape, LB_TAGS_RECORDS,
                          count * (is_slow ? COMPETITION_UNITS : 1)) +
           lb_filter_work(view, &range.filter, LB_FILTER_STEPS, count) +
           lb_since_work(view, &range.shape.since, &range.filter, LB_SINCE_RECORDS, count);
}

const struct command command_lb_range = {
    .name = "LB.RANGE",
    .syntax = "key start stop [BYSCORE] [REV] offset_count=[LIMIT offset:integer count:integer] "
              "[COMP] [DENSE] [WITHKEY] [STRINGS] " LB_FILTER_SYNTAX " " LB_RECORD_SYNTAX,
    .bindings = lb_range_bindings,
    .key_option = LB_SINCE_WORD,
    .reply = "[@Record]",
    .summary =
        "Records by rank or by score, best first or (REV) worst first; WHERE: inside a group "
        "of members with the same tags; SINCE: with the rank on another board",
    .complexity = "O(log n + m) for m of the board's n members, also with a LIMIT far inside; with "
                  "COMP and REV O(log n) more for every change of fields",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_MEMORY, lb_range_count_span, 80, 0, "member returned",
                 "pages of a few hundred, one after another"),
    .run = lb_range_run,
};

/* LB.AROUND: the records around a member, or around the position that a score or a packed key would have.
 *
 *     LB.AROUND board MEMBER zoe 5
 *
 *       rank     3   4  [ 5 ]  6   7        count / 2 better ones, the rest after the member
 *       [ 0 ]    1   2   3   4              at either end the window shifts
 *
 * So exactly count records are returned if the board has that many, and the member is one of them.
 */
enum { ARG_WHERE = 3 };

struct around {
    enum around_where { AROUND_MEMBER, AROUND_SCORE, AROUND_PACKED } where;
    int64_t count;
    struct lb_shape shape;
    struct option_uses filter; /* WHERE, WHERENOT and WITHIN */
};

static bool lb_range_check_count(const struct call *call, uint32_t index, void *target) {
    return ((struct around *)target)->count >= 1 ||
           call_refuse_word(call, call_arg(call, index), "is not a count of 1 or more", NULL);
}

static const struct binding lb_around_bindings[] = {
    {BIND("where", struct around, where)},
    {BIND("count", struct around, count), .read = lb_range_check_count},
    LB_RECORD_BINDINGS(struct around),
    {0},
};

static bool lb_range_read_arguments(const struct call *call, struct around *around) {
    return syntax_read(call, around) && lb_data_check(call, &around->shape.data);
}

/* The rank of a new member with this score and 0 in its other fields, if it were added now: after
 * its equals, or (LATEST) before them. If board is NULL, only the score is checked. */
static bool lb_range_find_score(const struct call *call, const struct board *board,
                                uint32_t *rank) {
    const struct layout *layout = lb_layout(call, board, call_arg(call, 1));
    uint64_t ordinal;
    if (!lb_parse_score(call, &layout->fields[0], call_arg(call, ARG_WHERE), &ordinal)) {
        return false;
    }
    uint64_t worst_key = layout_with_ordinal(layout, layout_zero_key(layout), 0, ordinal);
    if (board != NULL) {
        *rank = layout->time.is_latest ? board_count_above(board, lb_best_key(layout, worst_key))
                                       : board_count_from(board, worst_key);
    }
    return true;
}

/* The rank of the packed key's first equal, or (=) behind the last. If board is NULL, only the key is checked. */
static bool lb_range_find_packed(const struct call *call, const struct board *board,
                                 uint32_t *rank) {
    uint64_t key;
    bool is_equal;
    const struct layout *layout = board != NULL ? board_layout(board) : NULL;
    if (!lb_parse_packed_key(call, layout, call_arg(call, ARG_WHERE), &key, &is_equal)) {
        return false;
    }
    if (board != NULL) {
        *rank = is_equal ? board_count_from(board, key) : board_count_above(board, key);
    }
    return true;
}

/* member_count: of the board, or of the group. */
static struct zset_span lb_range_window(uint32_t member_count, uint32_t rank, int64_t count) {
    int64_t size = count < member_count ? count : member_count;
    int64_t first = (int64_t)rank - size / 2;
    first = first > member_count - size ? member_count - size : first;
    first = first < 0 ? 0 : first;
    return (struct zset_span){.rank = (uint32_t)first, .count = (uint32_t)size};
}

/* rank: where the window is on the board; member: who is asked about, and is there; NULL: nobody. */
static void lb_range_reply_window_inside(const struct call *call, const struct around *around,
                                         const struct board *board, uint32_t rank,
                                         const struct board_member *member) {
    struct lb_filter filter;
    struct zset_span span = {.count = 0};
    bool is_in = around->where != AROUND_MEMBER;
    if (!lb_filter_begin(call, board, &around->filter, &filter)) {
        return;
    }
    if (around->where != AROUND_MEMBER && lb_filter_is_within(&filter)) {
        reply_error(call->reply, around->where == AROUND_SCORE
                                     ? "ERR WITHIN needs MEMBER: a score has no tags"
                                     : "ERR WITHIN needs MEMBER: a packed key has no tags");
    } else if (member != NULL && !lb_filter_select(&filter, member, &is_in)) {
        call_out_of_memory(call);
    } else {
        if (is_in) {
            uint32_t count = lb_filter_count(&filter);
            span =
                lb_range_window(count, lb_filter_begin_near(&filter, rank, count), around->count);
        }
        lb_record_reply_filter_span(call, &filter, span, true, around->shape);
    }
    lb_filter_end(&filter);
}

static void lb_range_reply_window(const struct call *call, const struct around *around,
                                  const struct board *board) {
    struct board_member member;
    uint32_t rank = 0;
    bool is_there = board != NULL;
    if (around->where != AROUND_MEMBER) {
        if (!(around->where == AROUND_SCORE ? lb_range_find_score
                                            : lb_range_find_packed)(call, board, &rank)) {
            return;
        }
    } else {
        is_there = zset_look_up(call, board, call_arg(call, ARG_WHERE), &member);
        rank = is_there ? board_rank_of(board, &member) : 0;
    }
    if (around->filter.count > 0 && board != NULL) {
        lb_range_reply_window_inside(call, around, board, rank,
                                     is_there && around->where == AROUND_MEMBER ? &member : NULL);
        return;
    }
    struct zset_span span = {.count = 0};
    if (is_there) {
        span = lb_range_window(board_count(board), rank, around->count);
    }
    lb_record_reply_span(call, board, span, true, around->shape);
}

static void lb_around_run(struct call *call) {
    struct around around = {.count = 0};
    if (!lb_range_read_arguments(call, &around)) {
        return;
    }
    const struct board *board;
    if (!call_find_board(call, call_arg(call, 1), &board) ||
        !lb_record_begin_ranks(call, board, &around.filter, &around.shape)) {
        return;
    }
    lb_range_reply_window(call, &around, board);
    lb_record_since_end(&around.shape.since);
}

static uint64_t lb_range_count_window(const struct cost_view *view) {
    struct around around = {.count = 0};
    int64_t size = cost_size(view, 1);
    if (!lb_range_read_arguments(view->call, &around)) {
        return 0;
    }
    uint64_t count = (uint64_t)(around.count < size ? around.count : size);
    return lb_record_work(view, &around.shape, LB_TAGS_RECORDS, count) +
           lb_filter_work(view, &around.filter, LB_FILTER_STEPS, count) +
           lb_since_work(view, &around.shape.since, &around.filter, LB_SINCE_RECORDS, count);
}

const struct command command_lb_around = {
    .name = "LB.AROUND",
    .syntax = "key where=<MEMBER member | SCORE score:double | PACKED packed-key> count:integer "
              "[COMP] [DENSE] [WITHKEY] [STRINGS] " LB_FILTER_SYNTAX " " LB_FILTER_WITHIN
              " " LB_RECORD_SYNTAX,
    .bindings = lb_around_bindings,
    .key_option = LB_SINCE_WORD,
    .reply = "[@Record]",
    .summary = "A window of records around a member, or around the place of a score or of a packed "
               "key; WHERE and WITHIN: inside a group of members with the same tags; SINCE: with "
               "the rank on "
               "another board",
    .complexity = "O(log n + m) for m of the board's n members",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .member_arg = ARG_WHERE,
    .cost =
        COST(COMMAND_BY_MEMORY, lb_range_count_window, 80, 0, "member returned", "fewer of them"),
    .run = lb_around_run,
};
