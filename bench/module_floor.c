/* What a command of any module costs: one that only replies, and one that opens its key before. Beside boards and
 * the host's own sorted sets in bench/module.py; no part of leaderboard.so. */
#include "server/module/host.h"

#define EXPORT __attribute__((visibility("default")))
EXPORT int RedisModule_OnLoad(struct host_context *ctx, struct host_string **argv, int argc);

static int reply_only(struct host_context *ctx, struct host_string **argv, int argc) {
    (void)argv;
    (void)argc;
    return host_ReplyWithStringBuffer(ctx, "123456", 6);
}

static int open_and_reply(struct host_context *ctx, struct host_string **argv, int argc) {
    struct host_key *key = argc > 1 ? host_OpenKey(ctx, argv[1], HOST_READ) : NULL;
    if (key != NULL) {
        host_CloseKey(key);
    }
    return reply_only(ctx, argv, argc);
}

int RedisModule_OnLoad(struct host_context *ctx, struct host_string **argv, int argc) {
    const char *missing;
    (void)argv;
    (void)argc;
    if (!host_load(ctx, &missing)) {
        return HOST_ERROR;
    }
    host_SetModuleAttribs(ctx, "floor", 1, 1);
    bool is_made =
        host_CreateCommand(ctx, "FLOOR.REPLY", reply_only, "readonly fast", 1, 1, 1) == HOST_OK &&
        host_CreateCommand(ctx, "FLOOR.OPEN", open_and_reply, "readonly fast", 1, 1, 1) == HOST_OK;
    return is_made ? HOST_OK : HOST_ERROR;
}
