/* LB.COUNT: the number of members of a range, in all or by their tags. LB.ABOVE and LB.CUTS: places by packed keys.
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
#include "skiplist/tag_histogram.h"

enum {
    ARG_START = 2,
    ARG_CUTS_START = 3,
    CUTS_MIN = 2,
    CUTS_MAX = 10000,
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
    .summary = "Count the members of a board, or of a range by rank or by score; BY: for each "
               "value of one tag or two, the most frequent first",
    .complexity = "O(log n), n being the members of the board; with BY O(m log m) for m different "
                  "values",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_MEMORY, lb_count_count_rows, 150, 0, "value, or pair of values",
                 "one tag at a time, or `WHERE` of one value"),
    .run = lb_count_run,
};

/* ---- LB.ABOVE and LB.CUTS ---- */

/* For clients that read one board from several (docs/scale/one-board.md).
 *
 *     rank   0    1    2    3    4        LB.ABOVE board 70 =70 10       1 3 5
 *     key   90   70   70   40   20        LB.CUTS board 3                [0 90] [2 70] [4 20]
 *
 * A packed key is as WITHKEY shows it: a larger one is better, whatever the layout. A count of better members is
 * the rank of the key's first equal, one of better and equal members (=) the rank behind the last. */

struct above {
    struct option_values keys;
    bool is_competition;       /* COMP */
    struct option_uses filter; /* WHERE and WHERENOT */
};

static bool lb_count_check_above(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return lb_check_count(call, ((struct above *)target)->keys.count, CUTS_MAX, "packed keys");
}

static const struct binding lb_above_bindings[] = {
    {BIND("packed-key", struct above, keys), .read = lb_count_check_above},
    {BIND("COMP", struct above, is_competition)},
    LB_FILTER_BINDINGS(struct above, filter),
    {0},
};

/* board may be NULL, and so may filter: without WHERE. */
static void lb_count_reply_above(const struct call *call, const struct above *above,
                                 const struct board *board, const struct lb_filter *filter) {
    reply_array(call->reply, above->keys.count);
    for (uint32_t i = 0; i < above->keys.count && !reply_is_lost(call->reply); i++) {
        uint64_t key = 0;
        bool is_equal;
        const struct layout *layout = board != NULL ? board_layout(board) : NULL;
        bool is_parsed = lb_parse_packed_key(call, layout, above->keys.at[i], &key, &is_equal);
        CHECK(is_parsed);
        uint32_t rank = 0;
        if (board != NULL && is_equal) {
            rank = board_count_from(board,
                                    above->is_competition ? layout_without_time(layout, key) : key);
        } else if (board != NULL) {
            rank = board_count_above(board, above->is_competition ? lb_best_key(layout, key) : key);
        }
        reply_integer(call->reply, filter != NULL ? lb_filter_rank(filter, rank) : rank);
    }
}

static void lb_above_run(struct call *call) {
    struct above above = {.is_competition = false};
    struct lb_filter filter;
    const struct board *board;
    if (!syntax_read(call, &above) || !call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    for (uint32_t i = 0; i < above.keys.count; i++) {
        const struct layout *layout = board != NULL ? board_layout(board) : NULL;
        uint64_t key;
        bool is_equal;
        if (!lb_parse_packed_key(call, layout, above.keys.at[i], &key, &is_equal)) {
            return;
        }
    }
    if (above.filter.count == 0 || board == NULL) {
        lb_count_reply_above(call, &above, board, NULL);
    } else if (lb_filter_begin(call, board, &above.filter, &filter)) {
        tag_filter_expect(filter.group, above.keys.count);
        lb_count_reply_above(call, &above, board, &filter);
        lb_filter_end(&filter);
    }
}

static uint64_t lb_count_above_keys(const struct cost_view *view) {
    struct above above = {.is_competition = false};
    if (!syntax_read(view->call, &above)) {
        return 0;
    }
    uint64_t count = above.keys.count;
    return count + lb_filter_work(view, &above.filter, LB_FILTER_STEPS, count);
}

const struct command command_lb_above = {
    .name = "LB.ABOVE",
    .syntax = "key packed-key... [COMP] " LB_FILTER_SYNTAX,
    .bindings = lb_above_bindings,
    .reply = "[i]",
    .summary = "Count the members that are better than each packed key (=packed-key: or "
               "equal), at most 10,000 keys; COMP: times do not count; WHERE: inside a group "
               "of members with the same tags",
    .complexity = "O(log n) for each packed key, n being the members of the board",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_GROUP, lb_count_above_keys, 350, 0, "packed key",
                 "several commands of a thousand each"),
    .run = lb_above_run,
};

/* ---- LB.CUTS ---- */

struct cuts {
    int64_t count;
    int64_t start, stop;       /* ranks; negative ones count from the end */
    struct option_uses filter; /* WHERE and WHERENOT */
};

/* A count that is out of range is told behind a start and a stop that are no numbers. */
static bool lb_count_read_cuts(const struct call *call, uint32_t index, void *target) {
    struct cuts *cuts = target;
    bool has_range =
        call->request->count > ARG_CUTS_START && !syntax_is_option(call, ARG_CUTS_START);
    if (has_range && call->request->count < ARG_CUTS_START + 2) {
        return call_syntax_error(call);
    }
    if (!call_parse_integer(call, call_arg(call, index), &cuts->count) ||
        (has_range &&
         (!call_parse_integer(call, call_arg(call, ARG_CUTS_START), &cuts->start) ||
          !call_parse_integer(call, call_arg(call, ARG_CUTS_START + 1), &cuts->stop)))) {
        return false;
    }
    return (cuts->count >= CUTS_MIN && cuts->count <= CUTS_MAX) ||
           call_refuse_word(call, call_arg(call, index), "is not a count from 2 to 10000", NULL);
}

static const struct binding lb_cuts_bindings[] = {
    {"count", .read = lb_count_read_cuts},
    LB_FILTER_BINDINGS(struct cuts, filter),
    {0},
};

/* The first member of span, the last one, and those at equal distances in between. */
static void lb_count_reply_cuts(const struct call *call, const struct board *board,
                                const struct lb_filter *filter, struct zset_span span,
                                uint32_t count) {
    uint32_t shown[BOARD_AT_MAX];
    uint32_t ranks[BOARD_AT_MAX];
    struct board_stored entries[BOARD_AT_MAX];
    count = count < span.count ? count : span.count;
    reply_array(call->reply, count);
    for (uint32_t i = 0, group; i < count && !reply_is_lost(call->reply); i += group) {
        group = count - i < BOARD_AT_MAX ? count - i : BOARD_AT_MAX;
        for (uint32_t j = 0; j < group; j++) {
            uint64_t part = count > 1 ? (uint64_t)(i + j) * (span.count - 1) / (count - 1) : 0;
            shown[j] = span.rank + (uint32_t)part;
        }
        lb_filter_at_many(board, filter, shown, group, ranks, entries);
        for (uint32_t j = 0; j < group; j++) {
            char text[BYTES_INTEGER_TEXT_MAX];
            size_t size = layout_key_print(board_layout(board), entries[j].key, text);
            reply_array(call->reply, 2);
            reply_integer(call->reply, shown[j]);
            reply_bulk(call->reply, (struct bytes){.at = text, .size = size});
        }
    }
}

static struct zset_span lb_count_cuts_span(const struct cuts *cuts, uint32_t member_count) {
    struct zset_span whole = {.count = member_count};
    return zset_part_of_indexes(whole, true, cuts->start, cuts->stop);
}

static void lb_cuts_run(struct call *call) {
    struct cuts cuts = {.stop = -1};
    struct lb_filter filter;
    const struct board *board;
    if (!syntax_read(call, &cuts) || !call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    if (board == NULL) {
        reply_array(call->reply, 0);
    } else if (cuts.filter.count == 0) {
        lb_count_reply_cuts(call, board, NULL, lb_count_cuts_span(&cuts, board_count(board)),
                            (uint32_t)cuts.count);
    } else if (lb_filter_begin(call, board, &cuts.filter, &filter)) {
        tag_filter_expect(filter.group, (uint32_t)cuts.count);
        lb_count_reply_cuts(call, board, &filter,
                            lb_count_cuts_span(&cuts, lb_filter_count(&filter)),
                            (uint32_t)cuts.count);
        lb_filter_end(&filter);
    }
}

static uint64_t lb_count_count_cuts(const struct cost_view *view) {
    struct cuts cuts = {.stop = -1};
    if (!syntax_read(view->call, &cuts)) {
        return 0;
    }
    uint64_t size = cost_size(view, 1);
    uint64_t count = (uint64_t)cuts.count < size ? (uint64_t)cuts.count : size;
    return count + lb_filter_work(view, &cuts.filter, LB_FILTER_STEPS, count);
}

const struct command command_lb_cuts = {
    .name = "LB.CUTS",
    .syntax = "key count:integer range=[start:integer stop:integer] " LB_FILTER_SYNTAX,
    .bindings = lb_cuts_bindings,
    .reply = "[@Cut]",
    .summary =
        "Rank and packed key of the first member, the last, and others at equal distances, 2 to "
        "10,000, of a board or a range of ranks; WHERE: inside a group of members with the "
        "same tags",
    .complexity = "O(log n) for each of them, n being the members of the board",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_MEMORY, lb_count_count_cuts, 350, 0, "cut", "a thousand at a time"),
    .run = lb_cuts_run,
};
