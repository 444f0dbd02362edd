/* ZLEXCOUNT, ZRANGEBYLEX, ZREVRANGEBYLEX and ZREMRANGEBYLEX. They depend on Redis's order of equal
 * scores by name. Here equal scores are ordered by who reached them first, so these commands reply
 * with an error. */
#include "server/commands/zset/zset.h"

static void lex_run(struct call *call) {
    zset_reply_no_lex(call, call->command->name);
}

const struct command command_zlexcount = {
    .name = "ZLEXCOUNT",
    .syntax = "key min max",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = lex_run,
};

const struct command command_zrangebylex = {
    .name = "ZRANGEBYLEX",
    .syntax = "key min max offset_count=[LIMIT offset:integer count:integer]",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .flags = COMMAND_READ,
    .run = lex_run,
};

const struct command command_zrevrangebylex = {
    .name = "ZREVRANGEBYLEX",
    .syntax = "key max min offset_count=[LIMIT offset:integer count:integer]",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .flags = COMMAND_READ,
    .run = lex_run,
};

const struct command command_zremrangebylex = {
    .name = "ZREMRANGEBYLEX",
    .syntax = "key min max",
    .summary = "Replies an error: equal scores are ordered by time here, never by name",
    .flags = COMMAND_WRITE,
    .key_access = "RW delete",
    .run = lex_run,
};
