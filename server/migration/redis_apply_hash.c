/* Hashes: the source's commands mean what ours do, so their own handlers run; and PUBLISH. */
#include "codec/memory.h"
#include "server/clients/broadcast.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/migration/redis_apply_parts.h"

/* What a reply says that is an error. */
static bool redis_apply_hash_fail_with_reply(struct redis_apply *apply,
                                             const struct request *request) {
    struct bytes reply = {.at = apply->replies.at, .size = apply->replies.size};
    return redis_apply_fail_key(apply, request->args[1], "the source's %s is refused here: %s",
                                bytes_show(request->args[0]).text, bytes_show(reply).text);
}

bool redis_apply_hash(struct redis_apply *apply, const struct request *request) {
    uint32_t index = command_find_original(request->args[0]);
    const struct command *command = index != COMMAND_NONE ? command_by_index(index) : NULL;
    if (command == NULL || command_has_wrong_arity(command, request)) {
        return redis_apply_fail_form(apply, request);
    }
    struct reply reply;
    buffer_clear(&apply->replies);
    reply_init(&reply, &apply->replies, 2);
    struct call call = {
        .request = request,
        .command = command,
        .reply = &reply,
        .registry = apply->registry,
        .session = &apply->session,
        .server = apply->server,
        .now_us = apply->now_us,
        .now_ms = REDIS_APPLY_LONG_AGO,
    };
    if (!redis_apply_check_key(apply, request->args[1])) {
        return false;
    }
    command->run(&call);
    return reply.error_count == 0 || redis_apply_hash_fail_with_reply(apply, request);
}

/* Run a command of this name with the key and the arguments from this one on. */
static bool redis_apply_hash_as(struct redis_apply *apply, const struct request *request,
                                const char *name, uint32_t first) {
    uint32_t count = request->count - first;
    struct bytes *args = memory_allocate((size_t)(2 + count) * sizeof *args);
    if (args == NULL) {
        return redis_apply_fail_memory(apply);
    }
    args[0] = bytes_from_text(name);
    args[1] = request->args[1];
    memcpy(args + 2, request->args + first, count * sizeof *args);
    const struct request other = {.count = 2 + count, .args = args, .size = request->size};
    bool is_done = redis_apply_hash(apply, &other);
    memory_free(args);
    return is_done;
}

/* HSETEX key [FNX | FXX] [a time] FIELDS count field value ...: if it comes, it was done. Fields do not expire
 * here: they go when the source says so, by HDEL. */
bool redis_apply_hsetex(struct redis_apply *apply, const struct request *request) {
    uint32_t at = 2;
    uint64_t count;
    while (at < request->count && !bytes_is(request->args[at], "FIELDS")) {
        at++;
    }
    if (request->count - at < 4 || !bytes_parse_u64(request->args[at + 1], &count) ||
        count > UINT32_MAX || count * 2 != request->count - at - 2) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_hash_as(apply, request, "HSET", at + 2);
}

/* HGETDEL key FIELDS count field ...: Valkey 9.1 sends it as it came, Redis as HDEL. */
bool redis_apply_hgetdel(struct redis_apply *apply, const struct request *request) {
    uint64_t count;
    if (!bytes_is(request->args[2], "FIELDS") || !bytes_parse_u64(request->args[3], &count) ||
        count != request->count - 4) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_hash_as(apply, request, "HDEL", 4);
}

bool redis_apply_publish(struct redis_apply *apply, const struct request *request) {
    (void)publish(apply->server,
                  bytes_is(request->args[0], "SPUBLISH") ? SUBSCRIPTION_SHARD
                                                         : SUBSCRIPTION_CHANNEL,
                  request->args[1], request->args[2]);
    return true;
}
