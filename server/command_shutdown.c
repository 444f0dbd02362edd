/* SHUTDOWN: ask the loop to end. Boards live in memory alone, so there is nothing to save, and a
 * client that asks to save is told so instead of losing what it wanted kept. */
#include "server/command.h"
#include "server/server.h"

struct shutdown_options {
    bool is_save, is_nosave, is_now, is_force, is_abort;
};

static bool parse_options(const struct call *call, struct shutdown_options *options) {
    for (uint32_t i = 1; i < call->request->count; i++) {
        if (call_arg_is(call, i, "SAVE")) {
            options->is_save = true;
        } else if (call_arg_is(call, i, "NOSAVE")) {
            options->is_nosave = true;
        } else if (call_arg_is(call, i, "NOW")) {
            options->is_now = true;
        } else if (call_arg_is(call, i, "FORCE")) {
            options->is_force = true;
        } else if (call_arg_is(call, i, "ABORT")) {
            options->is_abort = true;
        } else {
            return false;
        }
    }
    return !(options->is_save && options->is_nosave) &&
           !(options->is_abort && call->request->count != 2);
}

/* No reply when it works: the connection closes. */
static void shutdown_run(struct call *call) {
    struct shutdown_options options = {0};
    if (!parse_options(call, &options)) {
        call_syntax_error(call);
    } else if (options.is_abort) {
        reply_error(call->reply, "ERR No shutdown in progress.");
    } else if (options.is_save) {
        reply_error(call->reply, "ERR Boards are kept in memory only and cannot be saved. Use "
                                 "SHUTDOWN NOSAVE to stop without saving.");
    } else {
        call->server->is_shutdown_asked = true;
        call->server->is_shutdown_now = options.is_now;
    }
}

static const struct argument shutdown_save_arguments[] = {
    {.name = "nosave", .type = ARGUMENT_PURE_TOKEN, .token = "NOSAVE"},
    {.name = "save", .type = ARGUMENT_PURE_TOKEN, .token = "SAVE"},
    {0},
};
static const struct argument shutdown_arguments[] = {
    {.name = "save-selector",
     .type = ARGUMENT_ONEOF,
     .flags = ARGUMENT_OPTIONAL,
     .children = shutdown_save_arguments},
    {.name = "now", .type = ARGUMENT_PURE_TOKEN, .token = "NOW", .flags = ARGUMENT_OPTIONAL},
    {.name = "force", .type = ARGUMENT_PURE_TOKEN, .token = "FORCE", .flags = ARGUMENT_OPTIONAL},
    {.name = "abort", .type = ARGUMENT_PURE_TOKEN, .token = "ABORT", .flags = ARGUMENT_OPTIONAL},
    {0},
};
const struct command command_shutdown = {
    .name = "SHUTDOWN",
    .summary = "Stop the server; what the boards hold is gone",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "server",
    .arity = -1,
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE | COMMAND_NO_MULTI,
    .arguments = shutdown_arguments,
    .run = shutdown_run,
};
