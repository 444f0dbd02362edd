/* LB.QUANTILE: the members at quantiles from the worst (0) to the best (1), by nearest rank: of n
 * members, quantile q is the ceil(q * n)th from the worst; quantile 0 is the worst.
 *
 *     n = 5, ranks     4     3     2     1     0
 *     q             0..0.2 ..0.4 ..0.6 ..0.8  ..1
 *
 * q is an exact decimal, so that 0.2 of five members is exactly one member, not two. */
#include <stddef.h>

#include "codec/memory.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_record.h"

enum {
    QUANTILES_MAX = 10000,
    /* Maximum decimals of q: it is stored in units of 10^-18, with 10^18 = Q_UNIT * Q_UNIT. */
    Q_SCALE = 18,
    Q_UNIT = 1000000000,
};

static bool lb_quantile_parse_q(const struct call *call, struct bytes text, uint64_t *q) {
    const uint64_t one = (uint64_t)Q_UNIT * Q_UNIT;
    struct decimal value;
    enum decimal_status status = decimal_parse(text, Q_SCALE, &value);
    if (status == DECIMAL_NOT_A_NUMBER) {
        return call_refuse_word(call, text, "is not a quantile from 0 to 1", NULL);
    }
    if (status == DECIMAL_TOO_PRECISE) {
        return call_refuse_reason(call, "quantile has too many decimals: at most %d", Q_SCALE);
    }
    if (status == DECIMAL_OUT_OF_RANGE || value.is_negative || value.magnitude > one) {
        return call_refuse_word(call, text, "is not a quantile from 0 to 1", NULL);
    }
    *q = value.magnitude;
    return true;
}

/* The place of quantile q among `count` members. */
static uint32_t lb_quantile_place(uint32_t count, uint64_t q) {
    /* ceil(q / 10^18 * count), in two steps that fit 64 bits. */
    uint64_t high = q / Q_UNIT * count;
    uint64_t low = q % Q_UNIT * count;
    uint64_t rest = high % Q_UNIT * Q_UNIT + low;
    const uint64_t one = (uint64_t)Q_UNIT * Q_UNIT;
    uint32_t from_worst = (uint32_t)(high / Q_UNIT + rest / one + (rest % one != 0));
    return count - (from_worst > 0 ? from_worst : 1);
}

struct quantiles {
    struct option_values q;
    struct lb_shape shape;
    struct option_uses filter; /* WHERE and WHERENOT */
};

static bool lb_quantile_check_all(const struct call *call, uint32_t index, void *target) {
    const struct option_values *q = &((struct quantiles *)target)->q;
    uint64_t parsed;
    (void)index;
    for (uint32_t i = 0; i < q->count; i++) {
        if (!lb_quantile_parse_q(call, q->at[i], &parsed)) {
            return false;
        }
    }
    return lb_check_count(call, q->count, QUANTILES_MAX, "quantiles");
}

static const struct binding lb_quantile_bindings[] = {
    {BIND("q", struct quantiles, q), .read = lb_quantile_check_all},
    LB_RECORD_BINDINGS(struct quantiles),
    {0},
};

static bool lb_quantile_read(const struct call *call, struct quantiles *quantiles) {
    *quantiles = (struct quantiles){.q = {0}};
    return syntax_read(call, quantiles) && lb_data_check(call, &quantiles->shape.data);
}

static uint64_t lb_quantile_count_records(const struct cost_view *view) {
    struct quantiles quantiles;
    if (!lb_quantile_read(view->call, &quantiles)) {
        return 0;
    }
    return lb_record_work(view, &quantiles.shape, LB_TAGS_MEMBERS, quantiles.q.count) +
           lb_filter_work(view, &quantiles.filter, LB_FILTER_STEPS, quantiles.q.count);
}

/* filter: NULL without WHERE. */
static void lb_quantile_reply(const struct call *call, const struct quantiles *quantiles,
                              const struct board *board, const struct lb_filter *filter) {
    struct lb_writer writer;
    struct lb_group group;
    uint32_t places[BOARD_AT_MAX], ranks[BOARD_AT_MAX];
    struct board_stored entries[BOARD_AT_MAX];
    uint32_t count = filter != NULL ? lb_filter_count(filter) : board_count(board);
    if (count == 0) {
        lb_record_reply_nils(call, quantiles->q.count);
        return;
    }
    lb_record_begin(call, board, quantiles->shape, &writer);
    lb_record_group_begin(&group);
    reply_array(call->reply, quantiles->q.count);
    for (uint32_t i = 0, size; i < quantiles->q.count && !reply_is_lost(call->reply); i += size) {
        size = quantiles->q.count - i < BOARD_AT_MAX ? quantiles->q.count - i : BOARD_AT_MAX;
        for (uint32_t j = 0; j < size; j++) {
            uint64_t q = 0;
            bool is_parsed = lb_quantile_parse_q(call, quantiles->q.at[i + j], &q);
            CHECK(is_parsed);
            places[j] = lb_quantile_place(count, q);
        }
        lb_filter_at_many(board, filter, places, size, ranks, entries);
        for (uint32_t j = 0; j < size; j++) {
            uint32_t shown_rank =
                writer.shape.is_dense ? board_dense_rank(board, ranks[j]) : places[j];
            lb_record_group_add_stored(&writer, &group, entries[j].member, entries[j].key, ranks[j],
                                       shown_rank);
        }
    }
    lb_record_group_write(&writer, &group);
}

static void lb_quantile_run(struct call *call) {
    struct quantiles quantiles;
    struct lb_filter filter;
    const struct board *board;
    if (!lb_quantile_read(call, &quantiles)) {
        return;
    }
    if (!call_find_board(call, call_arg(call, 1), &board) ||
        !lb_record_begin_ranks(call, board, &quantiles.filter, &quantiles.shape)) {
        return;
    }
    if (board == NULL) {
        lb_record_reply_nils(call, quantiles.q.count);
    } else if (quantiles.filter.count == 0) {
        lb_quantile_reply(call, &quantiles, board, NULL);
    } else if (lb_filter_begin(call, board, &quantiles.filter, &filter)) {
        tag_filter_expect(filter.group, quantiles.q.count);
        lb_quantile_reply(call, &quantiles, board, &filter);
        lb_filter_end(&filter);
    }
}

const struct command command_lb_quantile = {
    .name = "LB.QUANTILE",
    .syntax = "key q:double... [DENSE] [STRINGS] " LB_FILTER_SYNTAX " [TAGS] " LB_DATA_SYNTAX,
    .bindings = lb_quantile_bindings,
    .reply = "[@Record?]",
    .summary =
        "The members at given quantiles, from the worst (0) to the best (1); WHERE: inside a "
        "group of members with the same tags",
    .complexity = "O(log n) for each quantile, n being the members of the board",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_GROUP, lb_quantile_count_records, 700, 0, "quantile",
                 "several commands of a thousand each"),
    .run = lb_quantile_run,
};

/* LB.HIST: the number of members with a score in each of several ranges.
 *
 *     LB.HIST board 10 20 30
 *
 *          below 10 | 10 up to 20 | 20 up to 30 | 30 and above
 *                   e1            e2            e3                 n edges, n + 1 counts
 *
 * A count is the difference of two ranks: no member is visited. */
enum { EDGES_MAX = 10000, EDGES_OWN = 128 };

struct edges {
    struct option_values at;
    struct option_uses filter; /* WHERE and WHERENOT */
    struct decimal *values;    /* of the edges: own, or on the heap */
    struct decimal own[EDGES_OWN];
};

static bool lb_quantile_check_edge_count(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return lb_check_count(call, ((struct edges *)target)->at.count, EDGES_MAX, "edges");
}

static const struct binding lb_hist_bindings[] = {
    {BIND("edge", struct edges, at), .read = lb_quantile_check_edge_count},
    LB_FILTER_BINDINGS(struct edges, filter),
    {0},
};

/* Members whose key is above one or (is_equal) not below it. Of two such ends one is the same for all edges. */
struct edge_end {
    bool is_known;
    uint64_t key;
    uint32_t count;
};

/* For each of some keys. filter: NULL without WHERE. end: the last one that was the same for all. */
static void lb_quantile_count_to(const struct board *board, const struct lb_filter *filter,
                                 const uint64_t *keys, uint32_t count, bool is_equal,
                                 struct edge_end *end, uint32_t *counts) {
    uint32_t same = 0;
    while (same < count && keys[same] == keys[0]) {
        same++;
    }
    if (same < count || !end->is_known || end->key != keys[0]) {
        board_count_many(board, keys, same < count ? count : 1, is_equal, counts);
        if (filter != NULL) {
            tag_group_count_many(board, filter->group, same < count ? count : 1, counts);
        }
    }
    if (same == count) {
        *end = (struct edge_end){true, keys[0],
                                 end->is_known && end->key == keys[0] ? end->count : counts[0]};
        for (uint32_t i = 0; i < count; i++) {
            counts[i] = end->count;
        }
    }
}

/* Members with a score of each of some edges or more. */
static void lb_quantile_count_at_or_above(const struct call *call, const struct board *board,
                                          const struct lb_filter *filter,
                                          const struct decimal *edges, uint32_t count,
                                          struct edge_end ends[2], uint32_t *above) {
    const struct decimal_bound upper = {.kind = DECIMAL_BOUND_HIGHEST};
    uint64_t lowest[BOARD_AT_MAX], highest[BOARD_AT_MAX];
    uint32_t from[BOARD_AT_MAX], better[BOARD_AT_MAX], which[BOARD_AT_MAX], here = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct decimal_bound lower = {.kind = DECIMAL_BOUND_VALUE, .value = edges[i]};
        above[i] = 0;
        which[here] = i;
        here += layout_key_range(board_layout(board), lower, upper, call->now_us, &lowest[here],
                                 &highest[here]);
    }
    if (here > 0) {
        lb_quantile_count_to(board, filter, lowest, here, true, &ends[0], from);
        lb_quantile_count_to(board, filter, highest, here, false, &ends[1], better);
    }
    for (uint32_t i = 0; i < here; i++) {
        above[which[i]] = from[i] - better[i];
    }
}

/* board may be NULL, and so may filter: without WHERE. */
static void lb_quantile_reply_edges(const struct call *call, const struct edges *edges,
                                    const struct board *board, const struct lb_filter *filter) {
    uint32_t left = filter != NULL  ? lb_filter_count(filter)
                    : board != NULL ? board_count(board)
                                    : 0;
    struct edge_end ends[2] = {{.is_known = false}};
    uint32_t above[BOARD_AT_MAX] = {0}, count;
    reply_array(call->reply, edges->at.count + 1);
    for (uint32_t begin = 0; begin < edges->at.count && !reply_is_lost(call->reply);
         begin += count) {
        count = edges->at.count - begin < BOARD_AT_MAX ? edges->at.count - begin : BOARD_AT_MAX;
        if (board != NULL) {
            lb_quantile_count_at_or_above(call, board, filter, &edges->values[begin], count, ends,
                                          above);
        }
        for (uint32_t i = 0; i < count; i++) {
            reply_integer(call->reply, left - above[i]);
            left = above[i];
        }
    }
    reply_integer(call->reply, left);
}

static void lb_quantile_reply_hist(const struct call *call, const struct edges *edges,
                                   const struct board *board) {
    struct lb_filter filter;
    const struct layout_field *lead = &lb_layout(call, board, call_arg(call, 1))->fields[0];
    /* They are scores with the field's decimals, in ascending order. They may lie outside its range. */
    for (uint32_t i = 0; i < edges->at.count; i++) {
        struct decimal *edge = &edges->values[i];
        if (!lb_parse_decimal(call, lead, edges->at.at[i], edge)) {
            return;
        }
        if (i > 0 && decimal_compare(edge[-1], *edge) >= 0) {
            (void)call_refuse(call, "ERR edges must be strictly ascending");
            return;
        }
    }
    if (edges->filter.count == 0 || board == NULL) {
        lb_quantile_reply_edges(call, edges, board, NULL);
    } else if (lb_filter_begin(call, board, &edges->filter, &filter)) {
        tag_filter_expect(filter.group, edges->at.count);
        lb_quantile_reply_edges(call, edges, board, &filter);
        lb_filter_end(&filter);
    }
}

static void lb_hist_run(struct call *call) {
    struct edges edges;
    const struct board *board;
    memset(&edges, 0, offsetof(struct edges, own));
    if (!syntax_read(call, &edges) || !call_find_board(call, call_arg(call, 1), &board)) {
        return;
    }
    edges.values = edges.at.count <= EDGES_OWN
                       ? edges.own
                       : memory_allocate(edges.at.count * sizeof edges.values[0]);
    if (edges.values == NULL) {
        call_out_of_memory(call);
        return;
    }
    lb_quantile_reply_hist(call, &edges, board);
    if (edges.values != edges.own) {
        memory_free(edges.values);
    }
}

static uint64_t lb_quantile_count_edges(const struct cost_view *view) {
    struct edges edges;
    memset(&edges, 0, offsetof(struct edges, own));
    if (!syntax_read(view->call, &edges)) {
        return 0;
    }
    return edges.at.count + lb_filter_work(view, &edges.filter, LB_FILTER_STEPS, edges.at.count);
}

const struct command command_lb_hist = {
    .name = "LB.HIST",
    .syntax = "key edge:double... " LB_FILTER_SYNTAX,
    .bindings = lb_hist_bindings,
    .reply = "[i]",
    .summary = "Count the members below, between and above the given edges, at most 10,000 "
               "of them; WHERE: inside a group of members with the same tags",
    .complexity = "O(log n) for each edge, n being the members of the board",
    .flags = COMMAND_READ | COMMAND_OWN_MEMBER,
    .cost = COST(COMMAND_BY_GROUP, lb_quantile_count_edges, 650, 0, "edge",
                 "several commands of a thousand each"),
    .run = lb_hist_run,
};
