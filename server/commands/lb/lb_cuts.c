/* LB.ABOVE and LB.CUTS: places by packed keys, for clients that read one board from several (docs/scale/one-board.md).
 *
 *     rank   0    1    2    3    4        LB.ABOVE board 70 =70 10       1 3 5
 *     key   90   70   70   40   20        LB.CUTS board 3                [0 90] [2 70] [4 20]
 *
 * A packed key is as WITHKEY shows it: a larger one is better, whatever the layout. A count of better members is
 * the rank of the key's first equal, one of better and equal members (=) the rank behind the last. */
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_filter.h"

enum { ARG_START = 3, CUTS_MIN = 2, CUTS_MAX = 10000 };

/* ---- LB.ABOVE ---- */

struct above {
    struct option_values keys;
    bool is_competition;       /* COMP */
    struct option_uses filter; /* WHERE and WHERENOT */
};

static bool lb_cuts_check_key_count(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return lb_check_count(call, ((struct above *)target)->keys.count, CUTS_MAX, "packed keys");
}

static const struct binding lb_above_bindings[] = {
    {BIND("packed-key", struct above, keys), .read = lb_cuts_check_key_count},
    {BIND("COMP", struct above, is_competition)},
    LB_FILTER_BINDINGS(struct above, filter),
    {0},
};

/* board may be NULL, and so may filter: without WHERE. */
static void lb_cuts_reply_above(const struct call *call, const struct above *above,
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
        lb_cuts_reply_above(call, &above, board, NULL);
    } else if (lb_filter_begin(call, board, &above.filter, &filter)) {
        tag_filter_expect(filter.group, above.keys.count);
        lb_cuts_reply_above(call, &above, board, &filter);
        lb_filter_end(&filter);
    }
}

static uint64_t lb_cuts_count_keys(const struct cost_view *view) {
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
    .summary =
        "How many members are better than each packed key, of which there are 10,000 at most, or "
        "(=packed-key) at least as good; COMP: whatever their times; WHERE: inside a group of "
        "members with the same tags",
    .complexity = "O(log n) for each packed key, n being the members of the board",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_GROUP, lb_cuts_count_keys, 350, 0, "packed key",
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
static bool lb_cuts_read_count(const struct call *call, uint32_t index, void *target) {
    struct cuts *cuts = target;
    bool has_range = call->request->count > ARG_START && !syntax_is_option(call, ARG_START);
    if (has_range && call->request->count < ARG_START + 2) {
        return call_syntax_error(call);
    }
    if (!call_parse_integer(call, call_arg(call, index), &cuts->count) ||
        (has_range && (!call_parse_integer(call, call_arg(call, ARG_START), &cuts->start) ||
                       !call_parse_integer(call, call_arg(call, ARG_START + 1), &cuts->stop)))) {
        return false;
    }
    return (cuts->count >= CUTS_MIN && cuts->count <= CUTS_MAX) ||
           call_refuse_word(call, call_arg(call, index), "is not a count from 2 to 10000", NULL);
}

static const struct binding lb_cuts_bindings[] = {
    {"count", .read = lb_cuts_read_count},
    LB_FILTER_BINDINGS(struct cuts, filter),
    {0},
};

/* The first member of span, the last one, and those at equal distances in between. */
static void lb_cuts_reply(const struct call *call, const struct board *board,
                          const struct lb_filter *filter, struct zset_span span, uint32_t count) {
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

static struct zset_span lb_cuts_span(const struct cuts *cuts, uint32_t member_count) {
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
        lb_cuts_reply(call, board, NULL, lb_cuts_span(&cuts, board_count(board)),
                      (uint32_t)cuts.count);
    } else if (lb_filter_begin(call, board, &cuts.filter, &filter)) {
        tag_filter_expect(filter.group, (uint32_t)cuts.count);
        lb_cuts_reply(call, board, &filter, lb_cuts_span(&cuts, lb_filter_count(&filter)),
                      (uint32_t)cuts.count);
        lb_filter_end(&filter);
    }
}

static uint64_t lb_cuts_count_cuts(const struct cost_view *view) {
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
    .cost = COST(COMMAND_BY_MEMORY, lb_cuts_count_cuts, 350, 0, "cut", "a thousand at a time"),
    .run = lb_cuts_run,
};
