/* From the host's arguments to a handler, and back. See host_run.h. */
#include "server/module/host_run.h"

#include "server/commands/ban.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/loop/lookahead.h"
#include "server/module/host_data.h"
#include "server/module/host_effects.h"
#include "server/module/host_job.h"
#include "server/module/host_notify.h"
#include "server/module/host_period.h"
#include "server/module/host_reply.h"
#include "server/module/host_state.h"
#include "server/module/host_wait.h"

enum {
    ARGS_INLINE = 64,
    OUTPUT_KEPT_MAX = 256 * 1024, /* of a longer reply the buffer is freed */
};

static struct {
    struct host_stage stage;
    struct host_stage *running;
    struct buffer output;
    struct bytes args[ARGS_INLINE];
} current;

struct host_stage *host_run_stage(void) {
    return current.running;
}

static int host_run_refuse_arity(struct host_context *ctx, uint32_t index) {
    char text[COMMAND_FULL_NAME_MAX + 64];
    snprintf(text, sizeof text, "ERR wrong number of arguments for '%s' command",
             command_full_name(index));
    return host_ReplyWithError(ctx, text);
}

/* The host asks where the keys are (COMMAND GETKEYS, cluster, ACL). */
static int host_run_tell_positions(struct host_context *ctx, const struct command *command,
                                   const struct request *request) {
    uint32_t *positions = memory_allocate(request->count * sizeof *positions);
    int count = positions != NULL ? command_key_positions(command, request, positions) : -1;
    for (int i = 0; i < count; i++) {
        host_KeyAtPos(ctx, (int)positions[i]);
    }
    memory_free(positions);
    return HOST_OK;
}

static bool host_run_put_on_stage(struct host_stage *stage, const struct command *command,
                                  const struct request *request, struct host_string **argv) {
    bool is_counted = (command->flags & COMMAND_MOVABLE_KEYS) != 0;
    if (!is_counted && command->last_key == command->first_key) {
        int at = command->first_key;
        return at == 0 || host_stage_key(stage, argv[at], request->args[at]);
    }
    uint32_t *positions = memory_allocate(request->count * sizeof *positions);
    if (positions == NULL) {
        return false;
    }
    int count = command_key_positions(command, request, positions);
    bool is_staged = true;
    for (int i = 0; i < count && is_staged; i++) {
        is_staged = host_stage_key(stage, argv[positions[i]], request->args[positions[i]]);
    }
    memory_free(positions);
    return is_staged;
}

/* The members of the request on the board of its first key.
 *
 * A member, its rank and the place of its new score are in different parts of memory. A write fetches them at once,
 * as the server does for a group of requests. A read goes from one to the next, and the host is asked meanwhile. */
struct members {
    unsigned count;
    struct lookup ahead[LOOKUP_OWN_MIN];
};

static bool host_run_is_reading(const struct command *command) {
    return (command->flags & COMMAND_WRITE) == 0;
}

static void host_run_begin_members(const struct command *command, const struct request *request,
                                   const struct host_stage *stage, struct members *members) {
    const struct board *board = host_stage_first_board(stage);
    members->count = board != NULL ? lookahead_begin(command, request, board, members->ahead) : 0;
}

/* NULL: nothing was begun, or several. */
static const struct lookup *host_run_finish_members(const struct command *command,
                                                    const struct request *request,
                                                    struct members *members) {
    if (members->count == 0) {
        return NULL;
    }
    if (host_run_is_reading(command)) {
        lookup_run(members->ahead, members->count, LOOKUP_ENTRY);
    } else {
        lookahead_finish(&module.server, command, request, members->ahead, members->count);
    }
    return &members->ahead[0];
}

static void host_run_handler(const struct command *command, const struct request *request,
                             struct members *members, struct reply *reply) {
    struct server *server = &module.server;
    struct call call = {
        .request = request,
        .command = command,
        .reply = reply,
        .registry = server->registry,
        .session = &module.session,
        .server = server,
        .ahead = host_run_finish_members(command, request, members),
        .now_us = server->clock.now_us,
        .now_ms = server->clock.now_ms,
    };
    if (!module.is_cluster || !host_period_refuses(&call)) {
        command->run(&call);
    }
}

bool host_run_on(struct host_context *ctx, struct host_string *name, bool writes,
                 void (*run)(void *context), void *context) {
    struct host_stage *stage = &current.stage;
    CHECK(current.running == NULL);
    host_stage_begin(stage, ctx, writes, false);
    current.running = stage;
    host_effects_begin(stage);
    bool is_staged = host_stage_key(stage, name, host_bytes(name));
    if (is_staged) {
        run(context);
    }
    host_effects_end();
    host_stage_end(stage);
    current.running = NULL;
    host_notify_flush(ctx);
    return is_staged;
}

/* A job has begun: its first steps, and if that was not all, its client waits. */
static int host_run_job(struct host_context *ctx) {
    struct reply reply;
    if (!host_job_run(ctx)) {
        return HOST_OK;
    }
    reply_init(&reply, &current.output, module.session.protocol);
    job_answer(&module.server, module.session.job, &reply);
    host_reply(ctx, &current.output);
    return HOST_OK;
}

static const char *host_run_find_refusal(const struct command *command) {
    if ((command->flags & COMMAND_NO_MULTI) == 0) {
        return NULL;
    }
    if (module.session.transaction.is_running) {
        return "ERR Command not allowed inside a transaction";
    }
    return host_job_reserve() ? NULL : "OOM out of memory";
}

/* What is asked of the host of each client. */
static void host_run_read_client(struct host_context *ctx) {
    int flags = host_GetContextFlags(ctx);
    module.context = ctx;
    module.session.protocol = (flags & HOST_IS_RESP3) != 0 ? 3 : 2;
    module.session.transaction.is_running =
        (flags & (HOST_IN_MULTI | HOST_IN_SCRIPT | HOST_DENIES_BLOCKING)) != 0;
    module.wait.is_asked = false;
}

static void host_run_on_stage(struct host_context *ctx, const struct command *command,
                              const struct request *request, struct host_string **argv) {
    struct host_stage *stage = &current.stage;
    struct members members;
    struct reply reply;
    bool is_staged = host_run_put_on_stage(stage, command, request, argv);
    host_run_begin_members(command, request, stage, &members);
    unsigned read_count = host_run_is_reading(command) ? members.count : 0;
    host_stage_close_lent(stage);
    lookup_run(members.ahead, read_count, LOOKUP_NODE);
    host_run_read_client(ctx);
    lookup_run(members.ahead, read_count, LOOKUP_LEAF);
    module_update_time();
    buffer_clear(&current.output);
    reply_init(&reply, &current.output, module.session.protocol);
    const char *refusal = is_staged ? host_run_find_refusal(command) : "OOM out of memory";
    if (refusal == NULL) {
        host_run_handler(command, request, &members, &reply);
    } else {
        reply_error(&reply, refusal);
    }
}

/* HOST_ERROR: it has to wait, and nothing was replied. */
static int host_run_staged(struct host_context *ctx, const struct command *command,
                           const struct request *request, struct host_string **argv) {
    struct host_stage *stage = &current.stage;
    bool writes = !host_run_is_reading(command);
    if (writes && ban_exists(module.server.registry)) {
        module_update_time();
        host_state_expire();
    }
    host_stage_begin(stage, ctx, writes, false);
    current.running = stage;
    host_effects_begin(stage);
    host_run_on_stage(ctx, command, request, argv);
    host_effects_end();
    host_state_replicate(ctx);
    host_stage_end(stage);
    current.running = NULL;
    host_notify_flush(ctx);
    host_data_clear();
    if (module.session.job != NULL) {
        return host_run_job(ctx);
    }
    module_free_step();
    if (module.wait.is_asked) {
        module.wait.first_key = (uint32_t)(module.wait.names - request->args);
        return HOST_ERROR;
    }
    host_reply(ctx, &current.output);
    if (current.output.capacity > OUTPUT_KEPT_MAX) {
        buffer_deinit(&current.output);
    }
    return HOST_OK;
}

static int host_run_run(struct host_context *ctx, struct host_string **argv, int argc,
                        uint32_t index) {
    const struct command *command = command_by_index(index);
    struct bytes *args = current.args;
    int status;
    if (argc > ARGS_INLINE) {
        args = memory_allocate((size_t)argc * sizeof *args);
        if (args == NULL) {
            return host_ReplyWithError(ctx, "OOM out of memory");
        }
    }
    for (int i = 0; i < argc; i++) {
        args[i] = host_bytes(argv[i]);
    }
    const struct request request = {.count = (uint32_t)argc, .args = args};
    bool is_counted = (command->flags & COMMAND_MOVABLE_KEYS) != 0;
    if (is_counted && host_IsKeysPositionRequest(ctx)) {
        status = host_run_tell_positions(ctx, command, &request);
    } else if (command_has_wrong_arity(command, &request)) {
        status = host_run_refuse_arity(ctx, index);
    } else {
        status = host_run_staged(ctx, command, &request, argv);
    }
    if (args != current.args) {
        memory_free(args);
    }
    return status;
}

int host_run(struct host_context *ctx, struct host_string **argv, int argc, uint32_t index) {
    return host_run_run(ctx, argv, argc, index) == HOST_OK ? HOST_OK : host_wait(ctx, argv);
}

/* Redis 7.0 propagates what a waiting client's attempt has done only if the client got something, and
 * ends itself when it finds the rest later (handleClientsBlockedOnKeys). The attempt may end a period,
 * and meet an expired key. Any call that may propagate ("!") does it. */
static void host_run_propagate_attempt(struct host_context *ctx) {
    struct host_call_reply *reply = host_Call(ctx, "PING", "!");
    if (reply != NULL) {
        host_FreeCallReply(reply);
    }
}

int host_run_again(struct host_context *ctx, struct host_string **argv, int argc) {
    enum { PREFIX_SIZE = 3 }; /* "LB." */
    struct bytes name = host_bytes(argv[0]);
    CHECK(name.size > PREFIX_SIZE);
    const struct command *command =
        command_find((struct bytes){.at = name.at + PREFIX_SIZE, .size = name.size - PREFIX_SIZE});
    CHECK(command != NULL);
    int status = host_run_run(ctx, argv, argc, command_index(command));
    if (status != HOST_OK) {
        host_run_propagate_attempt(ctx);
    }
    return status;
}
