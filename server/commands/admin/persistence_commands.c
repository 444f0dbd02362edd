/* Persistence: BGSAVE BGREWRITEAOF SAVE LASTSAVE. Redis has two kinds of snapshots; here BGSAVE and
 * BGREWRITEAOF write the same one, and each replies with Redis's text. */
#include "server/dispatch/cost.h"
#include "server/dispatch/shutdown.h"
#include "server/dispatch/syntax.h"
#include "server/durability/persistence.h"

static void persistence_commands_reply_status(const struct call *call,
                                              enum persistence_status status, const char *done,
                                              const char *busy, const char *error) {
    switch (status) {
    case PERSISTENCE_OK:
        reply_simple(call->reply, done);
        return;
    case PERSISTENCE_BUSY:
        reply_error(call->reply, busy);
        return;
    case PERSISTENCE_FAILED:
        reply_error_format(call->reply, "ERR %s", error);
        return;
    }
}

/* false: replied that persistence is not available. */
static bool persistence_commands_has_persistence(const struct call *call) {
    return call->server->persistence != NULL ||
           call_refuse(call, "ERR this server runs without a disk: nothing can be saved");
}

static void persistence_commands_begin_snapshot(const struct call *call, const char *started,
                                                const char *busy) {
    char error[PERSISTENCE_ERROR_MAX];
    if (persistence_commands_has_persistence(call)) {
        persistence_commands_reply_status(
            call, persistence_begin_snapshot(call->server->persistence, error), started, busy,
            error);
    }
}

/* SCHEDULE has no effect: no other kind of job can delay a snapshot. */
static const struct binding bgsave_bindings[] = {{"SCHEDULE", BINDING_FLAG, .repeat = BINDING_ONCE},
                                                 {0}};

static void bgsave_run(struct call *call) {
    bool ignored;
    if (syntax_read(call, &ignored)) {
        persistence_commands_begin_snapshot(call, "Background saving started",
                                            "ERR Background save already in progress");
    }
}

const struct command command_bgsave = {
    .name = "BGSAVE",
    .syntax = "[SCHEDULE]",
    .bindings = bgsave_bindings,
    .reply = "<Background saving started>",
    .summary = "Write a snapshot of all boards to disk in the background",
    .complexity = "O(n) in the members of all boards, in steps between other commands",
    .flags = COMMAND_ADMIN,
    .run = bgsave_run,
};

static void bgrewriteaof_run(struct call *call) {
    persistence_commands_begin_snapshot(
        call, "Background append only file rewriting started",
        "ERR Background append only file rewriting already in progress");
}

const struct command command_bgrewriteaof = {
    .name = "BGREWRITEAOF",
    .reply = "<Background append only file rewriting started>",
    .summary = "Write a snapshot, as BGSAVE does, and start a new journal",
    .complexity = "O(n) in the members of all boards, in steps between other commands",
    .flags = COMMAND_ADMIN,
    .run = bgrewriteaof_run,
};

static void save_run(struct call *call) {
    char error[PERSISTENCE_ERROR_MAX];
    if (persistence_commands_has_persistence(call)) {
        persistence_commands_reply_status(call, persistence_save(call->server->persistence, error),
                                          "OK", "ERR Background save already in progress", error);
    }
}

const struct command command_save = {
    .name = "SAVE",
    .reply = "<OK>",
    .summary = "Write a snapshot of all boards to disk; all clients wait until it is there",
    .complexity = "O(n) in the members of all boards, at once: BGSAVE stops nobody",
    .flags = COMMAND_ADMIN | COMMAND_NO_MULTI,
    .cost = COST(COMMAND_NEVER_REFUSED, cost_count_memory, 200, 0, "member (48 bytes of memory)",
                 "`BGSAVE`"),
    .run = save_run,
};

static void lastsave_run(struct call *call) {
    struct persistence_info info = {.last_save_s = call->server->about.started_at_s};
    if (call->server->persistence != NULL) {
        persistence_describe(call->server->persistence, &info);
    }
    reply_integer(call->reply, info.last_save_s);
}

const struct command command_lastsave = {
    .name = "LASTSAVE",
    .reply = "e",
    .summary = "The unix time of the last snapshot, or of the server's start",
    .flags = COMMAND_LOADING | COMMAND_FAST,
    .run = lastsave_run,
};

/* SHUTDOWN: retire, save everything, then ask the loop to end. If saving fails, the server continues;
 * NOSAVE or FORCE ends it anyway. */
struct shutdown_words {
    bool is_save, is_nosave, is_now, is_force, is_abort;
};

static const struct binding shutdown_bindings[] = {
    {BIND("NOSAVE", struct shutdown_words, is_nosave)},
    {BIND("SAVE", struct shutdown_words, is_save)},
    {BIND("NOW", struct shutdown_words, is_now)},
    {BIND("FORCE", struct shutdown_words, is_force)},
    {BIND("ABORT", struct shutdown_words, is_abort)},
    {0},
};

static bool persistence_commands_begin(struct call *call, const struct shutdown_words *words) {
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
    if (!syntax_read(call, &words)) {
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
    } else if (!persistence_commands_begin(call, &words)) {
        reply_error(call->reply, "ERR Errors trying to SHUTDOWN. Check logs.");
    } else if (!server->ending.is_asked) {
        call->session->awaits_end = true;
        server->has_news = true;
    }
}

const struct command command_shutdown = {
    .name = "SHUTDOWN",
    .syntax = "save-selector=[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
    .bindings = shutdown_bindings,
    .reply = "ABORT=<OK>",
    .summary = "Write to disk what must be kept, then stop the server",
    .complexity = "O(n) in the members of all boards when a snapshot is written, otherwise O(1)",
    .flags = COMMAND_ADMIN | COMMAND_LOADING | COMMAND_NO_PAUSE | COMMAND_NO_MULTI,
    .audit = AUDIT_SHUTDOWN,
    .run = shutdown_run,
};
