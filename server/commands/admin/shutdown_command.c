/* SHUTDOWN: save everything, then ask the loop to end. If saving fails, the server continues;
 * NOSAVE or FORCE ends it anyway. */
#include "server/dispatch/options.h"
#include "server/dispatch/shutdown.h"

struct shutdown_options {
    bool is_save, is_nosave, is_now, is_force, is_abort;
};

static const struct option_row shutdown_rows[] = {
    {"NOSAVE", OPTION_FLAG, offsetof(struct shutdown_options, is_nosave), NULL},
    {"SAVE", OPTION_FLAG, offsetof(struct shutdown_options, is_save), NULL},
    {"NOW", OPTION_FLAG, offsetof(struct shutdown_options, is_now), NULL},
    {"FORCE", OPTION_FLAG, offsetof(struct shutdown_options, is_force), NULL},
    {"ABORT", OPTION_FLAG, offsetof(struct shutdown_options, is_abort), NULL},
    {0},
};

/* FORCE shuts down even if saving fails; the failure is logged. */
static bool prepare(struct server *server, const struct shutdown_options *options) {
    enum persistence_ending ending = options->is_save     ? PERSISTENCE_END_SAVE
                                     : options->is_nosave ? PERSISTENCE_END_NOSAVE
                                                          : PERSISTENCE_END_AS_SET;
    return shutdown_prepare(server, ending) || options->is_force;
}

/* No reply on success: the connection is closed. */
static void shutdown_run(struct call *call) {
    struct shutdown_options options = {0};
    if (!options_read(call, 1, &options)) {
        return;
    }
    if ((options.is_save && options.is_nosave) || (options.is_abort && call->request->count != 2)) {
        call_syntax_error(call);
    } else if (options.is_abort) {
        reply_error(call->reply, "ERR No shutdown in progress.");
    } else if (!prepare(call->server, &options)) {
        reply_error(call->reply, "ERR Errors trying to SHUTDOWN. Check logs.");
    } else {
        call->server->is_shutdown_asked = true;
        call->server->is_shutdown_now = options.is_now;
    }
}

const struct command command_shutdown = {
    .name = "SHUTDOWN",
    .syntax = "save-selector=[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    .options = shutdown_rows,
    .summary = "Write to disk what must be kept, then stop the server",
    .complexity = "O(n) in the members of all boards when a snapshot is written, otherwise O(1)",
    .group = "server",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE | COMMAND_NO_MULTI,
    .run = shutdown_run,
};
