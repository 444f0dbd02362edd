/* Persistence: BGSAVE BGREWRITEAOF SAVE LASTSAVE. Redis has two kinds of snapshots; here BGSAVE and
 * BGREWRITEAOF write the same one, and each replies with Redis's text. */
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/dispatch/cost.h"
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
static void bgsave_run(struct call *call) {
    uint32_t count = call->request->count;
    if (count > 2 || (count == 2 && !call_arg_is(call, 1, "SCHEDULE"))) {
        call_syntax_error(call);
        return;
    }
    persistence_commands_begin_snapshot(call, "Background saving started",
                                        "ERR Background save already in progress");
}

const struct command command_bgsave = {
    .name = "BGSAVE",
    .syntax = "[SCHEDULE]",
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
    .summary = "Write a snapshot of all boards to disk; all clients wait until it is there",
    .complexity = "O(n) in the members of all boards, at once: BGSAVE stops nobody",
    .flags = COMMAND_ADMIN | COMMAND_NO_MULTI,
    .cost = &(const struct command_cost){.bound = COMMAND_NEVER_REFUSED,
                                         .count = cost_count_memory,
                                         .unit_ns = 450,
                                         .unit = "member (48 bytes of memory)",
                                         .instead = "`BGSAVE`"},
    .run = save_run,
};

static void lastsave_run(struct call *call) {
    struct persistence_info info = {.last_save_s = call->server->started_at_s};
    if (call->server->persistence != NULL) {
        persistence_describe(call->server->persistence, &info);
    }
    reply_integer(call->reply, info.last_save_s);
}

const struct command command_lastsave = {
    .name = "LASTSAVE",
    .summary = "The unix time of the last snapshot, or of the server's start",
    .flags = COMMAND_LOADING | COMMAND_FAST,
    .run = lastsave_run,
};
