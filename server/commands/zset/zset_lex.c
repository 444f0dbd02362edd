/* ZLEXCOUNT, ZRANGEBYLEX, ZREVRANGEBYLEX and ZREMRANGEBYLEX. They depend on Redis's order of equal
 * scores by name. Here equal scores are ordered by who reached them first, so these commands reply
 * with an error. */
#include "server/commands/zset/zset.h"

static void lex_run(struct call *call) {
    zset_reply_no_lex(call, call->command->name);
}

#define LEX_LIMIT_ARGUMENT                                                                         \
    {                                                                                              \
        .name = "offset_count", .type = ARGUMENT_BLOCK, .token = "LIMIT",                          \
        .flags = ARGUMENT_OPTIONAL, .children = (const struct argument[]) {                        \
            {.name = "offset", .type = ARGUMENT_INTEGER},                                          \
                {.name = "count", .type = ARGUMENT_INTEGER}, {0},                                  \
        }                                                                                          \
    }

static const struct argument lex_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "min", .type = ARGUMENT_STRING},
    {.name = "max", .type = ARGUMENT_STRING},
    {0},
};

static const struct argument rangebylex_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "min", .type = ARGUMENT_STRING},
    {.name = "max", .type = ARGUMENT_STRING},
    LEX_LIMIT_ARGUMENT,
    {0},
};

static const struct argument revrangebylex_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "max", .type = ARGUMENT_STRING},
    {.name = "min", .type = ARGUMENT_STRING},
    LEX_LIMIT_ARGUMENT,
    {0},
};

const struct command command_zlexcount = {
    .name = "ZLEXCOUNT",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 4,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = lex_arguments,
    .run = lex_run,
};

const struct command command_zrangebylex = {
    .name = "ZRANGEBYLEX",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -4,
    .flags = COMMAND_READ,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = rangebylex_arguments,
    .run = lex_run,
};

const struct command command_zrevrangebylex = {
    .name = "ZREVRANGEBYLEX",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = -4,
    .flags = COMMAND_READ,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = revrangebylex_arguments,
    .run = lex_run,
};

const struct command command_zremrangebylex = {
    .name = "ZREMRANGEBYLEX",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "sorted-set",
    .arity = 4,
    .flags = COMMAND_WRITE,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = lex_arguments,
    .run = lex_run,
};
