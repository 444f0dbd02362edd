/* ZUNION, ZINTER and ZDIFF, their STORE forms, and ZINTERCARD.
 *
 *     ZUNIONSTORE week 2 mon tue WEIGHTS 1 2
 *       parse the number of keys -> the options -> find the boards -> combine (combine.h) ->
 *       reply in Redis's order, or store (zset_store.h)
 *
 * Redis orders a result by score, lowest first, and equal scores by name. Here equal scores have
 * the order that ZRANGE would give them on a board with the layout of the first key that exists. */
#include <inttypes.h>

#include "server/commands/zset/zset_combine.h"
#include "server/dispatch/syntax.h"

enum {
    COUNTED_RUNS = 128, /* of at most BOARD_RUN_MAX members: well below a millisecond */
    SHOWN_MAX = 64,     /* bytes of a weight shown in an error */
};

/* The command's variant. */
struct combining {
    enum combine_kind kind;
    bool is_counted; /* ZINTERCARD */
};

bool zset_combine_query_is_stored(const struct call *call) {
    return (call->command->flags & COMMAND_WRITE) != 0;
}

/* ---- parsing ---- */

static bool zset_combine_read_source_count(const struct call *call, uint32_t index, void *target) {
    struct zset_query *query = target;
    int64_t count;
    if (!call_parse_integer(call, call_arg(call, index), &count)) {
        return false;
    }
    if (count < 1) {
        return call_refuse_format(call, "ERR at least 1 input key is needed for '%s' command",
                                  command_full_name(command_index(call->command)));
    }
    if (count > (int64_t)call->request->count - index - 1) {
        return call_syntax_error(call);
    }
    query->first_source = index + 1;
    query->combine.source_count = (uint32_t)count;
    return true;
}

/* The keys: their boards are found before the options are read. */
static bool zset_combine_find_sources(const struct call *call, uint32_t index, void *target) {
    struct zset_query *query = target;
    struct combine *combine = &query->combine;
    if (combine->source_count > QUERY_SOURCES_FEW) {
        combine->sources = memory_allocate(combine->source_count * sizeof(*combine->sources));
        if (combine->sources == NULL) {
            return call_out_of_memory(call);
        }
    }
    for (uint32_t i = 0; i < combine->source_count; i++) {
        combine->sources[i] = (struct combine_source){.weight = {.magnitude = 1}};
    }
    for (uint32_t i = 0; i < combine->source_count; i++) {
        if (!call_find_board(call, call_arg(call, index + i), &combine->sources[i].board)) {
            return false;
        }
    }
    return true;
}

static bool zset_combine_refuse_weight(const struct call *call, struct bytes text,
                                       enum decimal_status status) {
    int shown = bytes_shown_size(text, SHOWN_MAX);
    switch (status) {
    case DECIMAL_TOO_PRECISE:
        return call_refuse_format(call, "ERR weight %.*s has too many decimals: at most %d", shown,
                                  text.at, (int)DECIMAL_SCALE_MAX);
    case DECIMAL_OUT_OF_RANGE:
        return call_refuse_format(call,
                                  "ERR weight %.*s is out of range: its digits, without the point, "
                                  "may be at most %" PRIu64 "",
                                  shown, text.at, UINT64_MAX);
    case DECIMAL_OK:
    case DECIMAL_NOT_A_NUMBER:
        break;
    }
    return call_refuse(call, "ERR weight value is not a float");
}

/* WEIGHTS */
static bool zset_combine_read_weights(const struct call *call, uint32_t index, void *target) {
    struct combine *combine = &((struct zset_query *)target)->combine;
    for (uint32_t i = 0; i < combine->source_count; i++) {
        struct combine_source *source = &combine->sources[i];
        struct bytes text = call_arg(call, index + i);
        char shorter[DECIMAL_SHORT_MAX];
        size_t size = decimal_shorten(text, shorter);
        text = size > 0 ? (struct bytes){.at = shorter, .size = size} : text;
        unsigned scale = 0;
        enum decimal_status status = decimal_parse_exact(text, &source->weight, &scale);
        if (status != DECIMAL_OK) {
            return zset_combine_refuse_weight(call, text, status);
        }
        source->weight_scale = (uint8_t)scale;
    }
    return true;
}

/* LIMIT */
static bool zset_combine_read_limit(const struct call *call, uint32_t index, void *target) {
    int64_t *limit = &((struct zset_query *)target)->limit;
    return (bytes_parse_i64(call_arg(call, index), limit) && *limit >= 0) ||
           call_refuse(call, "ERR LIMIT can't be negative");
}

static const struct binding bindings[] = {
    {"numkeys", .read = zset_combine_read_source_count},
    {"key", .read = zset_combine_find_sources},
    {"WEIGHTS", .read = zset_combine_read_weights},
    {BIND("AGGREGATE", struct zset_query, combine.aggregate)},
    {BIND("WITHSCORES", struct zset_query, with_scores)},
    {"LIMIT", .read = zset_combine_read_limit},
    {0},
};

/* ---- combining ---- */

static void zset_combine_reply_value(const struct call *call, wide value, unsigned scale) {
    struct decimal decimal;
    if (scale <= DECIMAL_SCALE_MAX &&
        wide_to_decimal(value, scale, scale, &decimal) == DECIMAL_OK) {
        reply_decimal(call->reply, decimal, scale);
        return;
    }
    char text[WIDE_TEXT_MAX];
    size_t size = wide_print(text, value, scale);
    reply_decimal_text(call->reply, (struct bytes){.at = text, .size = size});
}

static enum zset_shape zset_combine_shape(const struct call *call, const struct zset_query *query) {
    return query->with_scores ? zset_shape_with_scores(call) : ZSET_MEMBERS;
}

struct tally_walk zset_combine_query_reply_begin(const struct call *call,
                                                 struct zset_query *query) {
    const struct board *board = zset_combine_query_board(query);
    zset_reply_header(call, query->combine.tally.count, zset_combine_shape(call, query));
    return combine_tally_walk(&query->combine.tally,
                              board != NULL && zset_lead(board)->is_ascending);
}

bool zset_combine_query_reply_some(const struct call *call, const struct zset_query *query,
                                   struct tally_walk *walk, uint32_t count) {
    enum zset_shape shape = zset_combine_shape(call, query);
    const struct tally_entry *entry = NULL;
    char room[NAME_TEXT_ROOM];
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply) &&
                         (entry = combine_tally_walk_next(walk)) != NULL;
         i++) {
        if (shape == ZSET_PAIRS) {
            reply_array(call->reply, 2);
        }
        reply_bulk(call->reply, name_text(combine_tally_member(entry), room));
        if (shape != ZSET_MEMBERS) {
            zset_combine_reply_value(call, entry->result.value, query->combine.scale);
        }
    }
    return entry != NULL && !reply_is_lost(call->reply);
}

const struct board *zset_combine_query_board(const struct zset_query *query) {
    const struct board *board = NULL;
    for (uint32_t i = 0; i < query->combine.source_count && board == NULL; i++) {
        board = query->combine.sources[i].board;
    }
    return board;
}

void zset_combine_query_answer(const struct call *call, struct zset_query *query) {
    struct combine *combine = &query->combine;
    uint64_t count = 0;
    enum combine_status status = query->is_counted
                                     ? combine_count(combine, (uint64_t)query->limit, &count)
                                     : combine_run(combine);
    if (status != COMBINE_OK) {
        zset_store_reply_failure(call, combine, status);
    } else if (query->is_counted) {
        reply_integer(call->reply, (int64_t)count);
    } else if (zset_combine_query_is_stored(call)) {
        zset_store_results(call, call_arg(call, 1), combine);
    } else {
        const struct board *board = zset_combine_query_board(query);
        bool is_ascending = board != NULL && zset_lead(board)->is_ascending;
        bool is_latest = board != NULL && board_layout(board)->time.is_latest;
        if (!combine_tally_sort(&combine->tally, is_ascending, is_latest)) {
            call_out_of_memory(call);
            return;
        }
        struct tally_walk walk = zset_combine_query_reply_begin(call, query);
        (void)!zset_combine_query_reply_some(call, query, &walk, UINT32_MAX);
    }
}

bool zset_combine_query_begin(const struct call *call, struct zset_query *query) {
    const struct combining *combining = call->command->variant;
    *query = (struct zset_query){.combine = {.kind = combining->kind, .now_us = call->now_us},
                                 .is_counted = combining->is_counted};
    query->combine.sources = query->few_sources;
    combine_tally_init(&query->combine.tally, call->server->hash_seed);
    return syntax_read(call, query) &&
           (!zset_combine_query_is_stored(call) || call_check_key(call, call_arg(call, 1)));
}

void zset_combine_query_end(struct zset_query *query) {
    combine_end(&query->combine);
    combine_tally_deinit(&query->combine.tally);
    if (query->combine.sources != query->few_sources) {
        memory_free(query->combine.sources);
    }
}

static void zset_combine_run(struct call *call) {
    struct zset_query query;
    struct combine *combine = &query.combine;
    if (!zset_combine_query_begin(call, &query)) {
        zset_combine_query_end(&query);
        return;
    }
    /* The members that are looked at: of an intersection those of the smallest board, on each. */
    uint64_t sum = 0, smallest = UINT64_MAX;
    for (uint32_t i = 0; i < combine->source_count; i++) {
        const struct board *board = combine->sources[i].board;
        uint64_t count = board != NULL ? board_count(board) : 0;
        smallest = count < smallest ? count : smallest;
        sum += count;
    }
    if (combine->kind == COMBINE_INTERSECTION) {
        sum = smallest * combine->source_count;
    } else if (combine->kind == COMBINE_DIFFERENCE && combine->sources[0].board == NULL) {
        sum = 0;
    }
    bool is_long = zset_steps_are_due(call, sum, combine->source_count);
    if (!is_long) {
        zset_combine_query_answer(call, &query);
    } else if (query.limit > 0) {
        /* Count as far as a short command may; a LIMIT is likely to be reached. */
        enum combine_status status = combine_begin(combine, true, (uint64_t)query.limit);
        bool is_over = status != COMBINE_OK;
        for (uint32_t i = 0; i < COUNTED_RUNS && !is_over; i++) {
            status = combine_step(combine, &is_over);
        }
        if (status != COMBINE_OK) {
            zset_store_reply_failure(call, combine, status);
        } else if (is_over) {
            reply_integer(call->reply, (int64_t)combine->work.count);
        }
        combine_end(combine);
        is_long = !is_over;
    }
    if (is_long) {
        zset_steps_begin(call);
    }
    zset_combine_query_end(&query);
}

/* ---- cost ---- */

/* Sizes of the boards named by the arguments. */
struct sizes {
    uint32_t source_count; /* 0: the arguments are malformed */
    uint64_t first, smallest, sum;
};

static struct sizes zset_combine_measure(const struct cost_view *view) {
    struct zset_query query;
    struct sizes sizes = {.smallest = UINT64_MAX};
    if (!zset_combine_read_source_count(view->call, (uint32_t)view->call->command->key_count_arg,
                                        &query)) {
        return sizes;
    }
    sizes.source_count = query.combine.source_count;
    for (uint32_t i = 0; i < sizes.source_count; i++) {
        uint64_t size = cost_size(view, query.first_source + i);
        sizes.first = i == 0 ? size : sizes.first;
        sizes.smallest = size < sizes.smallest ? size : sizes.smallest;
        sizes.sum += size;
    }
    return sizes;
}

/* Outside of MULTI long ones are done in steps. */
static uint64_t zset_combine_count_at_once(const struct cost_view *view, uint64_t members,
                                           uint32_t source_count) {
    return view->call->session->transaction.is_open ||
                   !zset_steps_are_due(view->call, members, source_count)
               ? members
               : 0;
}

/* The overlap of the boards is unknown: assume that half the members are on several boards. */
static uint64_t zset_combine_count_union(const struct cost_view *view) {
    struct sizes sizes = zset_combine_measure(view);
    return zset_combine_count_at_once(view, sizes.sum, sizes.source_count);
}

static uint64_t zset_combine_count_intersection(const struct cost_view *view) {
    struct sizes sizes = zset_combine_measure(view);
    uint64_t members = sizes.source_count > 0 ? sizes.smallest * sizes.source_count : 0;
    return zset_combine_count_at_once(view, members, sizes.source_count);
}

/* The first board's members, and the cheaper of the two ways to look them up (combine.h). */
static uint64_t zset_combine_count_difference(const struct cost_view *view) {
    struct sizes sizes = zset_combine_measure(view);
    uint64_t members = sizes.first;
    if (sizes.source_count >= 2 && sizes.first > 0) {
        uint64_t looking = sizes.first * (sizes.source_count - 1);
        uint64_t marking = sizes.sum - sizes.first;
        members += looking < marking ? looking : marking;
    }
    return zset_combine_count_at_once(view, members, sizes.source_count);
}

/* ---- the commands ---- */

#define COMBINED                                                                                   \
    "numkeys:integer key... [WEIGHTS weight:integer...] [AGGREGATE <SUM | MIN | MAX | COUNT>]"
/* Only in MULTI it is so much; elsewhere nothing. */
#define UNION_COST(grown_key)                                                                      \
    COST(COMMAND_BY_PRODUCT, zset_combine_count_union, 300, grown_key,                             \
         "in `MULTI`: member of all boards",                                                       \
         "store the result once: `ZINCRBY` both boards as points arrive, or `PERIOD` boards")
#define INTERSECTION_COST(ns, grown_key, other)                                                    \
    COST(COMMAND_BY_PRODUCT, zset_combine_count_intersection, ns, grown_key,                       \
         "in `MULTI`: member of the smallest board, for each board", other)
#define DIFFERENCE_COST(ns, grown_key)                                                             \
    COST(COMMAND_BY_PRODUCT, zset_combine_count_difference, ns, grown_key,                         \
         "in `MULTI`: member of the first board, and look-up", IN_PARTS)
#define IN_PARTS                "`LB.GET` or `ZMSCORE` of some members at a time"
#define UNION_COMPLEXITY        "O(n) in the members of all boards"
#define INTERSECTION_COMPLEXITY "O(n k) for n members on the smallest of k boards"
#define DIFFERENCE_COMPLEXITY                                                                      \
    "O(n k) for n members on the first of k boards or, if that is less, O(n + s log n) for s on "  \
    "the others"

const struct command command_zunion = {
    .name = "ZUNION",
    .syntax = COMBINED " [WITHSCORES]",
    .bindings = bindings,
    .reply = "[s]|WITHSCORES=[[member:s score:n]...]",
    .summary =
        "The members of any of several boards, and the sum (or MIN, MAX) of their scores, or "
        "how many boards have them (COUNT)",
    .complexity = UNION_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = UNION_COST(0),
    .variant = &(const struct combining){.kind = COMBINE_UNION},
    .run = zset_combine_run,
};

const struct command command_zunionstore = {
    .name = "ZUNIONSTORE",
    .syntax = "destination:key " COMBINED,
    .bindings = bindings,
    .reply = "i",
    .summary = "Store a union of boards, with the times at which the results were reached",
    .complexity = UNION_COMPLEXITY,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = UNION_COST(1),
    .variant = &(const struct combining){.kind = COMBINE_UNION},
    .run = zset_combine_run,
};

const struct command command_zinter = {
    .name = "ZINTER",
    .syntax = COMBINED " [WITHSCORES]",
    .bindings = bindings,
    .reply = "[s]|WITHSCORES=[[member:s score:n]...]",
    .summary =
        "The members that are on all of several boards, and the sum (or MIN, MAX) of their scores, "
        "or of the boards' weights (COUNT)",
    .complexity = INTERSECTION_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = INTERSECTION_COST(250, 0, IN_PARTS),
    .variant = &(const struct combining){.kind = COMBINE_INTERSECTION},
    .run = zset_combine_run,
};

const struct command command_zinterstore = {
    .name = "ZINTERSTORE",
    .syntax = "destination:key " COMBINED,
    .bindings = bindings,
    .reply = "i",
    .summary = "Store an intersection of boards, with the times at which the results were reached",
    .complexity = INTERSECTION_COMPLEXITY,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = INTERSECTION_COST(300, 1, IN_PARTS),
    .variant = &(const struct combining){.kind = COMBINE_INTERSECTION},
    .run = zset_combine_run,
};

const struct command command_zintercard = {
    .name = "ZINTERCARD",
    .syntax = "numkeys:integer key... [LIMIT limit:integer]",
    .bindings = bindings,
    .reply = "i",
    .summary = "How many members are on all of several boards, counted up to a limit",
    .complexity = INTERSECTION_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = COST(COMMAND_BY_PRODUCT, zset_combine_count_intersection, 60, 0,
                 "in `MULTI`: member of the smallest board, for each board",
                 "`LIMIT`, if it need not be exact"),
    .variant = &(const struct combining){.kind = COMBINE_INTERSECTION, .is_counted = true},
    .run = zset_combine_run,
};

const struct command command_zdiff = {
    .name = "ZDIFF",
    .syntax = "numkeys:integer key... [WITHSCORES]",
    .bindings = bindings,
    .reply = "[s]|WITHSCORES=[[member:s score:n]...]",
    .summary = "The members of the first board that are on none of the others",
    .complexity = DIFFERENCE_COMPLEXITY,
    .flags = COMMAND_READ,
    .cost = DIFFERENCE_COST(110, 0),
    .variant = &(const struct combining){.kind = COMBINE_DIFFERENCE},
    .run = zset_combine_run,
};

const struct command command_zdiffstore = {
    .name = "ZDIFFSTORE",
    .syntax = "destination:key numkeys:integer key...",
    .bindings = bindings,
    .reply = "i",
    .summary =
        "Store the members of the first board that are on none of the others, with their times",
    .complexity = DIFFERENCE_COMPLEXITY,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost = DIFFERENCE_COST(300, 1),
    .variant = &(const struct combining){.kind = COMBINE_DIFFERENCE},
    .run = zset_combine_run,
};
