/* Persistence: BGSAVE BGREWRITEAOF SAVE LASTSAVE LB.SNAPSHOT SHUTDOWN. Redis has two kinds of snapshots; here BGSAVE and
 * BGREWRITEAOF write the same one, and each replies with Redis's text. */
#include <stdio.h>

#include "codec/timestamp.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/shutdown.h"
#include "server/dispatch/syntax.h"
#include "server/durability/file_format.h"
#include "server/durability/persistence.h"
#include "server/sessions/job.h"

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
    } else {
        const struct shutdown_options options = {
            .ending = words.is_save     ? PERSISTENCE_END_SAVE
                      : words.is_nosave ? PERSISTENCE_END_NOSAVE
                                        : PERSISTENCE_END_AS_SET,
            .is_now = words.is_now,
            .is_force = words.is_force,
        };
        if (!shutdown_begin(server, &options)) {
            reply_error(call->reply, "ERR Errors trying to SHUTDOWN. Check logs.");
        } else if (!server->ending.is_asked) {
            call->session->awaits_end = true;
            server->has_news = true;
        }
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

/* LB.SNAPSHOT: all boards of all databases as one file, streamed while commands keep running.
 *
 *     LB.SNAPSHOT  -->  $n <bytes>  $n <bytes>  ...  +END group=... time=... boards=... members=...
 *
 * The bytes are those of a base on disk (server/durability/snapshot_file.h), in bulks of any length,
 * and the reply that is none ends them: +END, or an error after which they are worth nothing. The
 * command is a job (server/sessions/job.h) that reads persistence's stream as the client takes it. So
 * little is held for a client that reads slowly, and nobody waits for it.
 *
 * One is sent at a time; some more may wait for it, or for a save. */
enum {
    PIECE_MAX = 128 * 1024,
    /* Unsent output below which the next piece is read; of more, the network says when it is sent. */
    UNSENT_MAX = 512 * 1024,
    AT_ONCE_MAX = 4,     /* the one that is sent, and those that wait */
    PATIENCE_MS = 60000, /* with a client that takes nothing */
};

struct sending {
    struct job job;  /* first */
    uint64_t number; /* larger than that of every one before it */
    bool has_begun;  /* its stream is persistence's */
    bool is_failed;
    int64_t taken_at_ms; /* when the client took something last; monotonic */
    char error[PERSISTENCE_ERROR_MAX];
    char piece[PIECE_MAX];
};

static const struct sending *persistence_commands_sending_of(const struct job *job) {
    return (const struct sending *)job;
}

static bool persistence_commands_is_client_slow(const struct job *job) {
    return job->session->output.size + job->session->handed_size > UNSENT_MAX;
}

static bool persistence_commands_is_ready(const struct server *server, const struct job *job);

/* Whoever asked first is first, whatever turns the jobs take. */
static bool persistence_commands_is_first(const struct server *server,
                                          const struct sending *sending) {
    for (const struct job *job = server->jobs.first; job != NULL; job = job->next) {
        if (job->kind->is_ready == persistence_commands_is_ready &&
            persistence_commands_sending_of(job)->number < sending->number) {
            return false;
        }
    }
    return true;
}

static bool persistence_commands_is_ready(const struct server *server, const struct job *job) {
    const struct sending *sending = persistence_commands_sending_of(job);
    if (!sending->has_begun) {
        return persistence_stream_may_begin(server->persistence) &&
               persistence_commands_is_first(server, sending);
    }
    bool is_impatient = server->clock.monotonic_ms - sending->taken_at_ms > PATIENCE_MS;
    return persistence_commands_is_client_slow(job)
               ? is_impatient
               : !persistence_stream_waits(server->persistence);
}

static bool persistence_commands_step(struct server *server, struct job *job) {
    struct sending *sending = (struct sending *)job;
    struct buffer *output;
    struct reply reply;
    size_t size = 0;
    if (!sending->has_begun) {
        enum persistence_status status =
            persistence_stream_begin(server->persistence, sending->error);
        sending->taken_at_ms = server->clock.monotonic_ms;
        sending->has_begun = status == PERSISTENCE_OK;
        sending->is_failed = status == PERSISTENCE_FAILED;
        return sending->is_failed;
    }
    if (persistence_commands_is_client_slow(job)) {
        snprintf(sending->error, sizeof sending->error,
                 "the backup's reader took nothing for a minute");
        sending->is_failed = true;
        return true;
    }
    sending->taken_at_ms = server->clock.monotonic_ms;
    switch (persistence_stream_read(server->persistence, sending->piece, sizeof sending->piece,
                                    &size, sending->error)) {
    case STREAM_PIECE:
        output = server_output(server, job->session);
        if (output != NULL) {
            reply_init(&reply, output, job->session->protocol);
            reply_bulk(&reply, (struct bytes){.at = sending->piece, .size = size});
        }
        return false;
    case STREAM_WAITS:
        return false;
    case STREAM_END:
        return true;
    case STREAM_FAILED:
        break;
    }
    sending->is_failed = true;
    return true;
}

static void persistence_commands_answer(struct server *server, struct job *job,
                                        struct reply *reply) {
    const struct sending *sending = persistence_commands_sending_of(job);
    if (sending->is_failed) {
        reply_error_format(reply, "ERR %s", sending->error);
        return;
    }
    const struct snapshot_footer *streamed = persistence_stream_footer(server->persistence);
    char time[TIMESTAMP_TEXT_MAX];
    char text[160];
    size_t time_size = timestamp_print(time, (int64_t)streamed->time_us);
    snprintf(text, sizeof text, "END group=%llu time=%.*s boards=%llu members=%llu",
             (unsigned long long)streamed->sequence, (int)time_size, time,
             (unsigned long long)streamed->board_count, (unsigned long long)streamed->member_count);
    reply_simple(reply, text);
}

static void persistence_commands_destroy(struct server *server, struct job *job) {
    if (persistence_commands_sending_of(job)->has_begun) {
        persistence_stream_end(server->persistence);
    }
    memory_free(job);
}

static const struct job_kind kind = {.is_ready = persistence_commands_is_ready,
                                     .step = persistence_commands_step,
                                     .answer = persistence_commands_answer,
                                     .destroy = persistence_commands_destroy};

static void snapshot_run(struct call *call) {
    uint64_t number = 0;
    uint32_t count = 0;
    if (!persistence_commands_has_persistence(call) ||
        !job_list_has_room(call->server, call->session, call->reply)) {
        return;
    }
    for (const struct job *job = call->server->jobs.first; job != NULL; job = job->next) {
        if (job->kind == &kind) {
            uint64_t after = persistence_commands_sending_of(job)->number + 1;
            number = after > number ? after : number;
            count++;
        }
    }
    if (count >= AT_ONCE_MAX) {
        (void)call_refuse_format(call, "TRYAGAIN %d backups are being read or wait already",
                                 (int)AT_ONCE_MAX);
        return;
    }
    if (call->reply->is_silent) {
        return; /* it could not be told from a whole one when it fails */
    }
    struct sending *sending = memory_allocate_zeroed(sizeof *sending);
    if (sending == NULL) {
        (void)call_out_of_memory(call);
        return;
    }
    sending->number = number;
    job_begin(call->server, call->session, &kind, false, &sending->job);
    sending->job.streams = true;
}

const struct command command_lb_snapshot = {
    .name = "LB.SNAPSHOT",
    .reply = "s",
    .summary =
        "All boards and hashes of all databases as a backup file, sent in many bulk replies; "
        "`leaderboard-server --backup` reads it",
    .complexity = "O(n) in the members of all boards, in steps between other commands",
    .flags = COMMAND_ADMIN | COMMAND_NO_MULTI,
    .audit = AUDIT_SNAPSHOT,
    .run = snapshot_run,
};
