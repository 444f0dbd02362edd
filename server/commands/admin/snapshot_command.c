/* LB.SNAPSHOT: all boards of all databases as one file, streamed while commands keep running.
 *
 *     LB.SNAPSHOT  -->  $n <bytes>  $n <bytes>  ...  +END group=... time=... boards=... members=...
 *
 * The bytes are those of a base on disk (server/durability/snapshot_file.h), in bulks of any length,
 * and the reply that is none ends them: +END, or an error after which they are worth nothing. The
 * command is a job (server/clients/job.h) that reads persistence's stream as the client takes it. So
 * little is held for a client that reads slowly, and nobody waits for it.
 *
 * One is sent at a time; some more may wait for it, or for a save. */
#include "codec/timestamp.h"
#include "server/clients/job.h"
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/durability/file_format.h"
#include "server/durability/persistence.h"

#include <stdio.h>

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

static const struct sending *snapshot_command_sending_of(const struct job *job) {
    return (const struct sending *)job;
}

static bool snapshot_command_is_client_slow(const struct job *job) {
    return job->session->output.size + job->session->handed_size > UNSENT_MAX;
}

static bool snapshot_command_is_ready(const struct server *server, const struct job *job);

/* Whoever asked first is first, whatever turns the jobs take. */
static bool snapshot_command_is_first(const struct server *server, const struct sending *sending) {
    for (const struct job *job = server->jobs.first; job != NULL; job = job->next) {
        if (job->kind->is_ready == snapshot_command_is_ready &&
            snapshot_command_sending_of(job)->number < sending->number) {
            return false;
        }
    }
    return true;
}

static bool snapshot_command_is_ready(const struct server *server, const struct job *job) {
    const struct sending *sending = snapshot_command_sending_of(job);
    if (!sending->has_begun) {
        return persistence_may_stream(server->persistence) &&
               snapshot_command_is_first(server, sending);
    }
    bool is_impatient = server->clock.monotonic_ms - sending->taken_at_ms > PATIENCE_MS;
    return snapshot_command_is_client_slow(job) ? is_impatient
                                                : !persistence_stream_waits(server->persistence);
}

static void snapshot_command_fail(struct sending *sending, const char *error) {
    sending->is_failed = true;
    if (error != NULL) {
        snprintf(sending->error, sizeof sending->error, "%s", error);
    }
}

/* true: it is over. */
static bool snapshot_command_begin(struct server *server, struct sending *sending) {
    sending->taken_at_ms = server->clock.monotonic_ms;
    switch (persistence_begin_stream(server->persistence, sending->error)) {
    case PERSISTENCE_OK:
        sending->has_begun = true;
        return false;
    case PERSISTENCE_BUSY:
        return false;
    case PERSISTENCE_FAILED:
        break;
    }
    snapshot_command_fail(sending, NULL);
    return true;
}

static void snapshot_command_push(struct server *server, struct session *session,
                                  struct bytes piece) {
    struct buffer *output = server_output(server, session);
    struct reply reply;
    if (output != NULL) {
        reply_init(&reply, output, session->protocol);
        reply_bulk(&reply, piece);
    }
}

static bool snapshot_command_step(struct server *server, struct job *job) {
    struct sending *sending = (struct sending *)job;
    size_t size = 0;
    if (!sending->has_begun) {
        return snapshot_command_begin(server, sending);
    }
    if (snapshot_command_is_client_slow(job)) {
        snapshot_command_fail(sending, "the backup's reader took nothing for a minute");
        return true;
    }
    sending->taken_at_ms = server->clock.monotonic_ms;
    switch (persistence_read_stream(server->persistence, sending->piece, sizeof sending->piece,
                                    &size, sending->error)) {
    case STREAM_PIECE:
        snapshot_command_push(server, job->session,
                              (struct bytes){.at = sending->piece, .size = size});
        return false;
    case STREAM_WAITS:
        return false;
    case STREAM_END:
        return true;
    case STREAM_FAILED:
        break;
    }
    snapshot_command_fail(sending, NULL);
    return true;
}

static void snapshot_command_answer(struct server *server, struct job *job, struct reply *reply) {
    const struct sending *sending = snapshot_command_sending_of(job);
    if (sending->is_failed) {
        reply_error_format(reply, "ERR %s", sending->error);
        return;
    }
    const struct snapshot_footer *streamed = persistence_streamed(server->persistence);
    char time[TIMESTAMP_TEXT_MAX];
    char text[160];
    size_t time_size = timestamp_print(time, (int64_t)streamed->time_us);
    snprintf(text, sizeof text, "END group=%llu time=%.*s boards=%llu members=%llu",
             (unsigned long long)streamed->sequence, (int)time_size, time,
             (unsigned long long)streamed->board_count, (unsigned long long)streamed->member_count);
    reply_simple(reply, text);
}

static void snapshot_command_destroy(struct server *server, struct job *job) {
    if (snapshot_command_sending_of(job)->has_begun) {
        persistence_end_stream(server->persistence);
    }
    memory_free(job);
}

static const struct job_kind kind = {.is_ready = snapshot_command_is_ready,
                                     .step = snapshot_command_step,
                                     .answer = snapshot_command_answer,
                                     .destroy = snapshot_command_destroy};

static bool snapshot_command_has_room(const struct call *call, uint64_t *number) {
    uint32_t count = 0;
    *number = 0;
    for (const struct job *job = call->server->jobs.first; job != NULL; job = job->next) {
        if (job->kind == &kind) {
            uint64_t after = snapshot_command_sending_of(job)->number + 1;
            *number = after > *number ? after : *number;
            count++;
        }
    }
    return count < AT_ONCE_MAX ||
           call_refuse_format(call, "TRYAGAIN %d backups are being read or wait already",
                              (int)AT_ONCE_MAX);
}

static void snapshot_run(struct call *call) {
    uint64_t number;
    if (call->server->persistence == NULL || call->session == NULL) {
        (void)call_refuse(call, "ERR this server runs without a disk: nothing can be saved");
        return;
    }
    if (!jobs_have_room(call->server, call->reply) || !snapshot_command_has_room(call, &number)) {
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
