/* The server as a whole: TIME DBSIZE FLUSHDB FLUSHALL, and what it keeps on disk. */
#include <stdio.h>

#include "codec/timestamp.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/shutdown.h"
#include "server/dispatch/syntax.h"
#include "server/durability/file_format.h"
#include "server/durability/persistence.h"
#include "server/metrics/figures.h"
#include "server/sessions/job.h"

static void time_run(struct call *call) {
    reply_array(call->reply, 2);
    reply_bulk_format(call->reply, "%lld", (long long)(call->now_us / 1000000));
    reply_bulk_format(call->reply, "%lld", (long long)(call->now_us % 1000000));
}

const struct command command_time = {
    .name = "TIME",
    .reply = "[seconds:s microseconds:s]",
    .summary = "The server's clock: unix seconds, and microseconds of the second",
    .flags = COMMAND_LOADING | COMMAND_FAST,
    .run = time_run,
};

static void dbsize_run(struct call *call) {
    (void)registry_roll_some(call->registry, call->now_ms);
    reply_integer(call->reply, registry_count(call->registry, call->session->database));
}

const struct command command_dbsize = {
    .name = "DBSIZE",
    .reply = "i",
    .summary = "Counts the keys of the database; one that has expired counts until it is removed, "
               "soon after",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_NAMES,
    .run = dbsize_run,
};

/* The variant says whether all databases are flushed. ASYNC and SYNC are the same: boards are
 * always detached, and freed in steps. */
static const struct binding flush_bindings[] = {
    {"flush-type", BINDING_CHOICE, .repeat = BINDING_ONCE}, {0}};

static void flush_run(struct call *call) {
    bool is_all = *(const bool *)call->command->variant;
    unsigned ignored = 0;
    if (syntax_read(call, &ignored)) {
        registry_flush(call->registry, is_all ? REGISTRY_DATABASES : call->session->database);
        reply_ok(call->reply);
    }
}

#define FLUSH_ENTRY(word, what, counted, of, is_all)                                               \
    {                                                                                              \
        .name = (word), .syntax = "flush-type=[ASYNC | SYNC]", .bindings = flush_bindings,         \
        .reply = "<OK>", .summary = "Removes every key of " what,                                  \
        .complexity = "O(n) in the keys; the boards' memory is freed in steps afterwards",         \
        .flags = COMMAND_WRITE, .audit = AUDIT_FLUSH,                                              \
        .cost = COST(COMMAND_NEVER_REFUSED, counted, 30, 0, of, "`DEL` of some keys at a time"),   \
        .variant = &(const bool){is_all}, .run = flush_run                                         \
    }

const struct command command_flushdb =
    FLUSH_ENTRY("FLUSHDB", "the database", cost_count_database, "key of the database", false);
const struct command command_flushall =
    FLUSH_ENTRY("FLUSHALL", "every database", cost_count_databases, "key", true);

static void monitor_run(struct call *call) {
    if (call->session->transaction.is_running) {
        reply_error(call->reply, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    server_set_monitor(call->server, call->session, true);
    reply_ok(call->reply);
}

const struct command command_monitor = {
    .name = "MONITOR",
    .reply = "<OK>",
    .summary = "Stream every command that the server runs from now on",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = monitor_run,
};

/* SAMPLES is accepted but has no effect: the size of a board is known exactly. */
static bool server_commands_check_samples(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return *(int64_t *)target >= 0 || call_syntax_error(call);
}

static const struct binding usage_bindings[] = {
    {"SAMPLES", BINDING_INTEGER, .read = server_commands_check_samples},
    {0},
};

/* Not call_find_key: Redis counts neither a hit nor a miss here. */
static void usage_run(struct call *call) {
    int64_t samples;
    if (!syntax_read(call, &samples)) {
        return;
    }
    const struct registry_key *key =
        registry_find(call->registry, call->session->database, call_arg(call, 2), call->now_ms);
    if (key == NULL) {
        reply_null(call->reply);
        return;
    }
    reply_integer(call->reply, (int64_t)registry_memory_size(call->registry, key));
}

static const struct command memory_usage = {
    .name = "USAGE",
    .syntax = "key [SAMPLES count:integer]",
    .bindings = usage_bindings,
    .reply = "i?",
    .summary = "Bytes that a key and its value take, exactly",
    .flags = COMMAND_READ,
    .key_access = "RO",
    .run = usage_run,
};

static void stats_run(struct call *call) {
    struct reply *reply = call->reply;
    struct figures figures;
    const struct figures_process *memory = &figures.process;
    (void)registry_roll_some(call->registry, call->now_ms);
    figures_look(call->server, &figures);
    reply_map(reply, 12);
    reply_named_integer(reply, "peak.allocated", (int64_t)memory->peak);
    reply_named_integer(reply, "total.allocated", (int64_t)memory->used);
    reply_named_integer(reply, "startup.allocated", (int64_t)figures.memory_startup);
    reply_named_integer(reply, "clients.normal", (int64_t)figures.memory_clients);
    reply_named_integer(reply, "overhead.total", (int64_t)memory->overhead);
    reply_named_integer(reply, "keys.count", (int64_t)figures.all.keys);
    reply_named_integer(reply, "keys.bytes-per-key",
                        (int64_t)(figures.all.keys > 0 ? memory->dataset / figures.all.keys : 0));
    reply_named_integer(reply, "dataset.bytes", (int64_t)memory->dataset);
    reply_bulk_text(reply, "dataset.percentage");
    reply_double(reply, memory->dataset_percent);
    reply_bulk_text(reply, "peak.percentage");
    reply_double(reply, memory->peak_percent);
    reply_bulk_text(reply, "fragmentation");
    reply_double(reply, memory->fragmentation);
    reply_named_integer(reply, "fragmentation.bytes", memory->fragmentation_size);
}

static const struct command memory_stats = {
    .name = "STATS",
    .reply = "(peak.allocated:i total.allocated:i startup.allocated:i clients.normal:i "
             "overhead.total:i keys.count:i keys.bytes-per-key:i dataset.bytes:i "
             "dataset.percentage:n peak.percentage:n fragmentation:n fragmentation.bytes:i)",
    .summary = "What the server's memory is used for",
    .complexity = "O(n) in the clients",
    .run = stats_run,
};

const struct command command_memory = {
    .name = "MEMORY",
    .summary = "What keys and the server take in memory",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&call_help_command, &memory_stats, &memory_usage),
};

/* ---- MODULE ---- */

/* Tools ask which modules there are; what they would look for is built in. */
static void module_list_run(struct call *call) {
    reply_array(call->reply, 0);
}

static const struct command module_list = {
    .name = "LIST",
    .reply = "[o]",
    .summary = "The modules that are loaded: none, an empty array",
    .flags = COMMAND_ADMIN,
    .run = module_list_run,
};

const struct command command_module = {
    .name = "MODULE",
    .summary = "For tools that ask which modules a server has",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&call_help_command, &module_list),
};

/* Persistence: BGSAVE BGREWRITEAOF SAVE LASTSAVE LB.SNAPSHOT SHUTDOWN. Redis has two kinds of snapshots; here BGSAVE and
 * BGREWRITEAOF write the same one, and each replies with Redis's text. */

static void server_commands_reply_status(const struct call *call, enum persistence_status status,
                                         const char *done, const char *busy, const char *error) {
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
static bool server_commands_has_persistence(const struct call *call) {
    return call->server->persistence != NULL ||
           call_refuse(call, "ERR this server runs without a disk: nothing can be saved");
}

static void server_commands_begin_snapshot(const struct call *call, const char *started,
                                           const char *busy) {
    char error[PERSISTENCE_ERROR_MAX];
    if (server_commands_has_persistence(call)) {
        server_commands_reply_status(call,
                                     persistence_begin_snapshot(call->server->persistence, error),
                                     started, busy, error);
    }
}

/* SCHEDULE has no effect: no other kind of job can delay a snapshot. */
static const struct binding bgsave_bindings[] = {{"SCHEDULE", BINDING_FLAG, .repeat = BINDING_ONCE},
                                                 {0}};

static void bgsave_run(struct call *call) {
    bool ignored;
    if (syntax_read(call, &ignored)) {
        server_commands_begin_snapshot(call, "Background saving started",
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
    server_commands_begin_snapshot(call, "Background append only file rewriting started",
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
    if (server_commands_has_persistence(call)) {
        server_commands_reply_status(call, persistence_save(call->server->persistence, error), "OK",
                                     "ERR Background save already in progress", error);
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

static const struct sending *server_commands_sending_of(const struct job *job) {
    return (const struct sending *)job;
}

static bool server_commands_is_client_slow(const struct job *job) {
    return job->session->output.size + job->session->handed_size > UNSENT_MAX;
}

static bool server_commands_is_ready(const struct server *server, const struct job *job);

/* Whoever asked first is first, whatever turns the jobs take. */
static bool server_commands_is_first(const struct server *server, const struct sending *sending) {
    for (const struct job *job = server->jobs.first; job != NULL; job = job->next) {
        if (job->kind->is_ready == server_commands_is_ready &&
            server_commands_sending_of(job)->number < sending->number) {
            return false;
        }
    }
    return true;
}

static bool server_commands_is_ready(const struct server *server, const struct job *job) {
    const struct sending *sending = server_commands_sending_of(job);
    if (!sending->has_begun) {
        return persistence_stream_may_begin(server->persistence) &&
               server_commands_is_first(server, sending);
    }
    bool is_impatient = server->clock.monotonic_ms - sending->taken_at_ms > PATIENCE_MS;
    return server_commands_is_client_slow(job) ? is_impatient
                                               : !persistence_stream_waits(server->persistence);
}

static bool server_commands_step(struct server *server, struct job *job) {
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
    if (server_commands_is_client_slow(job)) {
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

static void server_commands_answer(struct server *server, struct job *job, struct reply *reply) {
    const struct sending *sending = server_commands_sending_of(job);
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

static void server_commands_destroy(struct server *server, struct job *job) {
    if (server_commands_sending_of(job)->has_begun) {
        persistence_stream_end(server->persistence);
    }
    memory_free(job);
}

static const struct job_kind kind = {.is_ready = server_commands_is_ready,
                                     .step = server_commands_step,
                                     .answer = server_commands_answer,
                                     .destroy = server_commands_destroy};

static void snapshot_run(struct call *call) {
    uint64_t number = 0;
    uint32_t count = 0;
    if (!server_commands_has_persistence(call) ||
        !job_list_has_room(call->server, call->session, call->reply)) {
        return;
    }
    for (const struct job *job = call->server->jobs.first; job != NULL; job = job->next) {
        if (job->kind == &kind) {
            uint64_t after = server_commands_sending_of(job)->number + 1;
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
