/* ZREM, ZREMRANGEBYRANK and ZREMRANGEBYSCORE. A board goes with its last member. */
#include "server/command_zset.h"

static void zrem_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    int64_t removed_count = 0;
    if (key != NULL) {
        for (uint32_t i = 2; i < call->request->count; i++) {
            struct board_member member;
            if (zset_look_up(call, &key->board, call_arg(call, i), &member)) {
                registry_take_member(call->registry, key, &member);
                removed_count++;
            }
        }
        if (removed_count > 0) {
            registry_tell_members(call->registry, key);
            zset_remove_if_empty(call, key);
        }
    }
    reply_integer(call->reply, removed_count);
}

static const struct argument zrem_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "member", .type = ARGUMENT_STRING, .flags = ARGUMENT_MULTIPLE},
    {0},
};

const struct command command_zrem = {
    .name = "ZREM",
    .summary = "Take members off a board",
    .complexity = "O(m * log n) for m of the board's n members",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -3,
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .member_arg = 2,
    .member_step = 1,
    .arguments = zrem_arguments,
    .run = zrem_run,
};

static void remove_span(const struct call *call, struct registry_key *key, struct zset_span span) {
    if (key != NULL) {
        zset_remove_span(call, key, span);
    }
    reply_integer(call->reply, span.count);
}

static void zremrangebyrank_run(struct call *call) {
    int64_t start;
    int64_t stop;
    if (!call_parse_integer(call, call_arg(call, 2), &start) ||
        !call_parse_integer(call, call_arg(call, 3), &stop)) {
        return;
    }
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    struct zset_span span = {0};
    if (key != NULL) {
        span = zset_part_of_indexes(zset_whole(&key->board), zset_is_best_first(&key->board, false),
                                    start, stop);
    }
    remove_span(call, key, span);
}

static const struct argument zremrangebyrank_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "start", .type = ARGUMENT_INTEGER},
    {.name = "stop", .type = ARGUMENT_INTEGER},
    {0},
};

const struct command command_zremrangebyrank = {
    .name = "ZREMRANGEBYRANK",
    .summary = "Take the members of some places off a board, counted from the lowest score",
    .complexity = "O(log n); the members' memory is freed in steps afterwards",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 4,
    .flags = COMMAND_WRITE,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zremrangebyrank_arguments,
    .run = zremrangebyrank_run,
};

static void zremrangebyscore_run(struct call *call) {
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    struct zset_span span;
    if (zset_span_of_scores(call, key != NULL ? &key->board : NULL, call_arg(call, 2),
                            call_arg(call, 3), &span)) {
        remove_span(call, key, span);
    }
}

static const struct argument zremrangebyscore_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "min", .type = ARGUMENT_DOUBLE},
    {.name = "max", .type = ARGUMENT_DOUBLE},
    {0},
};

const struct command command_zremrangebyscore = {
    .name = "ZREMRANGEBYSCORE",
    .summary = "Take the members with a score between two limits off a board",
    .complexity = "O(log n); the members' memory is freed in steps afterwards",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 4,
    .flags = COMMAND_WRITE,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = zremrangebyscore_arguments,
    .run = zremrangebyscore_run,
};
