/* ZRANGE, its older forms ZREVRANGE, ZRANGEBYSCORE and ZREVRANGEBYSCORE, and ZRANGESTORE.
 *
 *     ZREVRANGE board 0 9 WITHSCORES
 *       what the command's name fixes -> options -> a span of ranks -> the reply, or a new board
 *
 * All of them are one question: which neighbours (by place or by score), walked which way. */
#include "server/command_zset_store.h"

enum range_by {
    RANGE_UNSAID, /* ZRANGE, before its options are read */
    RANGE_BY_PLACE,
    RANGE_BY_SCORE,
    RANGE_BY_LEX,
};

struct range {
    enum range_by by;
    bool is_stored;          /* ZRANGESTORE: a destination stands before the key */
    bool is_direction_fixed; /* by the command's name: REV is no option */
    bool is_reverse;
    bool with_scores;
    int64_t offset; /* LIMIT offset count */
    int64_t count;  /* negative: no limit */
};

/* Read the option at *index and what belongs to it. false: the error is answered. */
static bool read_option(const struct call *call, struct range *range, uint32_t *index) {
    struct bytes word = call_arg(call, *index);
    uint32_t left = call->request->count - *index - 1;
    if (bytes_is(word, "WITHSCORES") && !range->is_stored) {
        range->with_scores = true;
    } else if (bytes_is(word, "LIMIT") && left >= 2) {
        if (!call_parse_integer(call, call_arg(call, *index + 1), &range->offset) ||
            !call_parse_integer(call, call_arg(call, *index + 2), &range->count)) {
            return false;
        }
        *index += 2;
    } else if (bytes_is(word, "REV") && !range->is_direction_fixed) {
        range->is_reverse = true;
        range->is_direction_fixed = true;
    } else if (bytes_is(word, "BYSCORE") && range->by == RANGE_UNSAID) {
        range->by = RANGE_BY_SCORE;
    } else if (bytes_is(word, "BYLEX") && range->by == RANGE_UNSAID) {
        range->by = RANGE_BY_LEX;
    } else {
        call_syntax_error(call);
        return false;
    }
    return true;
}

/* Where the key stands; its limits and then the options follow. */
static uint32_t key_index(const struct range *range) {
    return range->is_stored ? 2 : 1;
}

static bool read_options(const struct call *call, struct range *range) {
    for (uint32_t index = key_index(range) + 3; index < call->request->count; index++) {
        if (!read_option(call, range, &index)) {
            return false;
        }
    }
    if (range->by == RANGE_UNSAID) {
        range->by = RANGE_BY_PLACE;
    }
    /* As in Redis, LIMIT with a count of -1 is no limit, and so passes anywhere. */
    if (range->count != -1 && range->by == RANGE_BY_PLACE) {
        reply_error(call->reply, "ERR syntax error, LIMIT is only supported in combination with "
                                 "either BYSCORE or BYLEX");
        return false;
    }
    if (range->by == RANGE_BY_LEX) {
        if (range->with_scores) {
            reply_error(call->reply, "ERR syntax error, WITHSCORES not supported in combination "
                                     "with BYLEX");
        } else {
            zset_reply_no_lex(call, "BYLEX");
        }
        return false;
    }
    return true;
}

/* The ranks that are asked for. board may be NULL: then the arguments alone are checked. */
static bool find_span(const struct call *call, const struct range *range, const struct board *board,
                      bool is_best_first, struct zset_span *span) {
    struct bytes first = call_arg(call, key_index(range) + 1);
    struct bytes second = call_arg(call, key_index(range) + 2);
    if (range->by == RANGE_BY_PLACE) {
        int64_t start;
        int64_t stop;
        if (!call_parse_integer(call, first, &start) || !call_parse_integer(call, second, &stop)) {
            return false;
        }
        struct zset_span whole = board != NULL ? zset_whole(board) : (struct zset_span){0};
        *span = zset_part_of_indexes(whole, is_best_first, start, stop);
        return true;
    }
    /* Reversed limits are given as max and min. */
    struct bytes min = range->is_reverse ? second : first;
    struct bytes max = range->is_reverse ? first : second;
    if (!zset_span_of_scores(call, board, min, max, span)) {
        return false;
    }
    *span = zset_part_of_limit(*span, is_best_first, range->offset, range->count);
    return true;
}

static void run(const struct call *call, struct range range) {
    range.count = -1;
    if (!read_options(call, &range)) {
        return;
    }
    const struct board *board = call_find_board(call, call_arg(call, key_index(&range)));
    bool is_best_first = board != NULL && zset_is_best_first(board, range.is_reverse);
    struct zset_span span;
    if (!find_span(call, &range, board, is_best_first, &span)) {
        return;
    }
    if (!range.is_stored) {
        zset_reply_span(call, board, span, is_best_first,
                        range.with_scores ? zset_shape_with_scores(call) : ZSET_MEMBERS);
    } else if (zset_check_key(call, call_arg(call, 1))) {
        zset_store_span(call, call_arg(call, 1), board, span);
    }
}

#define WITHSCORES_ARGUMENT                                                                        \
    {                                                                                              \
        .name = "withscores", .type = ARGUMENT_PURE_TOKEN, .token = "WITHSCORES",                  \
        .flags = ARGUMENT_OPTIONAL                                                                 \
    }
#define LIMIT_ARGUMENT                                                                             \
    {                                                                                              \
        .name = "offset_count", .type = ARGUMENT_BLOCK, .token = "LIMIT",                          \
        .flags = ARGUMENT_OPTIONAL, .children = (const struct argument[]) {                        \
            {.name = "offset", .type = ARGUMENT_INTEGER},                                          \
                {.name = "count", .type = ARGUMENT_INTEGER}, {0},                                  \
        }                                                                                          \
    }

#define SORTBY_ARGUMENT                                                                            \
    {                                                                                              \
        .name = "sortby", .type = ARGUMENT_ONEOF, .flags = ARGUMENT_OPTIONAL,                      \
        .children = (const struct argument[]) {                                                    \
            {.name = "byscore", .type = ARGUMENT_PURE_TOKEN, .token = "BYSCORE"},                  \
                {.name = "bylex", .type = ARGUMENT_PURE_TOKEN, .token = "BYLEX"}, {0},             \
        }                                                                                          \
    }
#define REV_ARGUMENT                                                                               \
    { .name = "rev", .type = ARGUMENT_PURE_TOKEN, .token = "REV", .flags = ARGUMENT_OPTIONAL }

static void zrange_run(struct call *call) {
    run(call, (struct range){.by = RANGE_UNSAID});
}

static const struct argument zrange_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "start", .type = ARGUMENT_STRING},
    {.name = "stop", .type = ARGUMENT_STRING},
    SORTBY_ARGUMENT,
    REV_ARGUMENT,
    LIMIT_ARGUMENT,
    WITHSCORES_ARGUMENT,
    {0},
};

const struct command command_zrange = {
    .name = "ZRANGE",
    .summary = "Members by place or by score, from the lowest score up or (REV) the highest down",
    .complexity = "O(log n + m) for m of the board's n members",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -4,
    .flags = COMMAND_READ,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zrange_arguments,
    .run = zrange_run,
};

static void zrangestore_run(struct call *call) {
    run(call, (struct range){.by = RANGE_UNSAID, .is_stored = true});
}

static const struct argument zrangestore_arguments[] = {
    {.name = "dst", .type = ARGUMENT_KEY},
    {.name = "src", .type = ARGUMENT_KEY},
    {.name = "min", .type = ARGUMENT_STRING},
    {.name = "max", .type = ARGUMENT_STRING},
    SORTBY_ARGUMENT,
    REV_ARGUMENT,
    LIMIT_ARGUMENT,
    {0},
};

const struct command command_zrangestore = {
    .name = "ZRANGESTORE",
    .summary = "Store what ZRANGE would show, each member with its score and its time",
    .complexity = "O(log n + m) for m of the board's n members",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -5,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .first_key = 1,
    .last_key = 2,
    .key_step = 1,
    .arguments = zrangestore_arguments,
    .run = zrangestore_run,
};

static void zrevrange_run(struct call *call) {
    run(call, (struct range){.by = RANGE_BY_PLACE, .is_direction_fixed = true, .is_reverse = true});
}

static const struct argument zrevrange_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "start", .type = ARGUMENT_INTEGER},
    {.name = "stop", .type = ARGUMENT_INTEGER},
    WITHSCORES_ARGUMENT,
    {0},
};

const struct command command_zrevrange = {
    .name = "ZREVRANGE",
    .summary = "Members by place, from the highest score down",
    .complexity = "O(log n + m) for m of the board's n members",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -4,
    .flags = COMMAND_READ,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zrevrange_arguments,
    .run = zrevrange_run,
};

static void zrangebyscore_run(struct call *call) {
    run(call, (struct range){.by = RANGE_BY_SCORE, .is_direction_fixed = true});
}

static const struct argument zrangebyscore_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "min", .type = ARGUMENT_DOUBLE},
    {.name = "max", .type = ARGUMENT_DOUBLE},
    WITHSCORES_ARGUMENT,
    LIMIT_ARGUMENT,
    {0},
};

const struct command command_zrangebyscore = {
    .name = "ZRANGEBYSCORE",
    .summary = "Members with a score between two limits, from the lowest score up",
    .complexity = "O(log n + m) for m of the board's n members, also with a LIMIT far inside",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -4,
    .flags = COMMAND_READ,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zrangebyscore_arguments,
    .run = zrangebyscore_run,
};

static void zrevrangebyscore_run(struct call *call) {
    run(call, (struct range){.by = RANGE_BY_SCORE, .is_direction_fixed = true, .is_reverse = true});
}

static const struct argument zrevrangebyscore_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "max", .type = ARGUMENT_DOUBLE},
    {.name = "min", .type = ARGUMENT_DOUBLE},
    WITHSCORES_ARGUMENT,
    LIMIT_ARGUMENT,
    {0},
};

const struct command command_zrevrangebyscore = {
    .name = "ZREVRANGEBYSCORE",
    .summary = "Members with a score between two limits, from the highest score down",
    .complexity = "O(log n + m) for m of the board's n members, also with a LIMIT far inside",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -4,
    .flags = COMMAND_READ,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zrevrangebyscore_arguments,
    .run = zrevrangebyscore_run,
};
