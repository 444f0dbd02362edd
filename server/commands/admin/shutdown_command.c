/* SHUTDOWN: retire, save everything, then ask the loop to end. If saving fails, the server continues;
 * NOSAVE or FORCE ends it anyway. */
#include "server/dispatch/options.h"
#include "server/dispatch/shutdown.h"

struct shutdown_words {
    bool is_save, is_nosave, is_now, is_force, is_abort;
};

static const struct option_row shutdown_rows[] = {
    {"NOSAVE", OPTION_FLAG, offsetof(struct shutdown_words, is_nosave), NULL},
    {"SAVE", OPTION_FLAG, offsetof(struct shutdown_words, is_save), NULL},
    {"NOW", OPTION_FLAG, offsetof(struct shutdown_words, is_now), NULL},
    {"FORCE", OPTION_FLAG, offsetof(struct shutdown_words, is_force), NULL},
    {"ABORT", OPTION_FLAG, offsetof(struct shutdown_words, is_abort), NULL},
    {0},
};

static bool shutdown_command_begin(struct call *call, const struct shutdown_words *words) {
    const struct shutdown_options options = {
        .ending = words->is_save     ? PERSISTENCE_END_SAVE
                  : words->is_nosave ? PERSISTENCE_END_NOSAVE
                                     : PERSISTENCE_END_AS_SET,
        .is_now = words->is_now,
        .is_force = words->is_force,
    };
    return shutdown_begin(call->server, &options);
}

/* No reply on success: the connection is closed in the end. */
static void shutdown_run(struct call *call) {
    struct server *server = call->server;
    struct shutdown_words words = {0};
    if (!options_read(call, 1, &words)) {
        return;
    }
    if ((words.is_save && words.is_nosave) || (words.is_abort && call->request->count != 2)) {
        call_syntax_error(call);
    } else if (words.is_abort) {
        if (shutdown_abort(server)) {
            reply_ok(call->reply);
        } else {
            reply_error(call->reply, "ERR No shutdown in progress.");
        }
    } else if (!shutdown_command_begin(call, &words)) {
        reply_error(call->reply, "ERR Errors trying to SHUTDOWN. Check logs.");
    } else if (!server->is_shutdown_asked) {
        call->session->awaits_end = true;
        server->has_news = true;
    }
}

const struct command command_shutdown = {
    .name = "SHUTDOWN",
    .syntax = "save-selector=[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    .options = shutdown_rows,
    .summary = "Write to disk what must be kept, then stop the server",
    .complexity = "O(n) in the members of all boards when a snapshot is written, otherwise O(1)",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE | COMMAND_NO_MULTI,
    .audit = AUDIT_SHUTDOWN,
    .run = shutdown_run,
};
