/* Running the queue, and the commands that run in steps. See tick_parts.h. */
#include "server/clients/job.h"
#include "server/loop/tick_parts.h"

#include "server/dispatch/command.h"
#include "server/dispatch/commit_wait.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/waiting.h"
#include "server/durability/persistence.h"
#include "server/loop/lookahead.h"

enum {
    TICK_BUDGET_NS = 1000000, /* for running the queue */
    JOB_BUDGET_NS = 200000,   /* for commands that run in steps */
};

/* Must this request wait for the end of CLIENT PAUSE, of a FAILOVER or of a promotion? */
static bool tick_run_is_paused(struct tick *tick, const struct queue_entry *entry) {
    enum server_pause pause = server_pause(tick->server);
    tick_hold_due(tick, pause != SERVER_PAUSE_NONE);
    if (pause == SERVER_PAUSE_NONE || entry->command >= QUEUE_CLOSE ||
        session_is_replica(entry->session)) {
        return false;
    }
    const struct command *command = command_by_index(entry->command);
    unsigned needs = command_needs(entry->session, command);
    return pause == SERVER_PAUSE_ALL ? (command->flags & COMMAND_NO_PAUSE) == 0
           : pause == SERVER_PAUSE_BOARDS
               ? commit_wait_sees_boards(command) || (needs & COMMAND_WRITE) != 0
               : (needs & COMMAND_WRITE) != 0;
}

static void tick_run_run_broken(struct session *session, const struct queue_entry *entry,
                                struct reply *reply) {
    if (entry->command == QUEUE_PROTOCOL_ERROR) {
        reply->is_silent = false;
        reply_error(reply, entry->error);
    }
    session->is_close_after_reply = true;
}

/* Will it be refused because the disk cannot be written? */
static bool tick_run_is_refused_write(const struct server *server,
                                      const struct queue_entry *entry) {
    return server->durability.write_refusal != NULL && entry->command != COMMAND_NONE &&
           (command_needs(entry->session, command_by_index(entry->command)) & COMMAND_WRITE) != 0;
}

static void tick_run_run_entry(struct tick *tick, const struct queue_entry *entry,
                               struct reply *reply) {
    struct session *session = entry->session;
    struct connection *connection = connection_of(session);
    connection->queued--;
    connection_count_done(connection);
    tick_mark_dirty(tick, connection);
    tick_lend_buffer(tick, session);
    reply->out = &session->output;
    session_shape_reply(session, reply);
    if (entry->command == QUEUE_PROTOCOL_ERROR || entry->command == QUEUE_CLOSE) {
        tick_run_run_broken(session, entry, reply);
        return;
    }
    struct server *server = tick->server;
    size_t size_before = session->output.size;
    uint64_t effects_before = server->durability.effect_count;
    uint64_t epoch = replication_answer_epoch(&server->replication);
    bool runs_boards = (session->transaction.flags & (COMMAND_READ | COMMAND_WRITE)) != 0;
    bool is_refused = tick_run_is_refused_write(server, entry), has_changed = false;
    execute_request(server, session, entry->command, &entry->request, reply);
    if (runs_boards) {
        tick_drop_outdated(server, session, epoch);
    }
    if (session->job != NULL) {
        connection->hold = CONNECTION_HELD_BY_JOB;
    }
    if (server->persistence != NULL && !is_refused) {
        has_changed = server->durability.effect_count != effects_before;
        if (has_changed) {
            commit_wait_note_change(server, session);
        }
        tick_hold_output(connection, size_before, has_changed, entry);
        tick->is_behind = has_changed && persistence_is_behind(server->persistence);
    }
    if (server->has_news) {
        if (session->wait.state != WAIT_NONE) {
            connection->hold = CONNECTION_HELD_BY_WAIT;
        } else if (session->awaits_end) {
            connection->hold = CONNECTION_HELD_BY_END;
        }
        tick_take_news(tick, !has_changed && !tick_entry_sees_boards(entry) &&
                                 connection->wait.mark_group == 0);
    }
    /* A client that requests much and reads little delays only its own requests. A client with
     * broken output is closed, and its requests after this one do not run. */
    if ((session->output.size + session->handed_size > CONNECTION_OUTPUT_HIGH ||
         session->output.is_broken) &&
        !session->is_killed) {
        (void)!connection_flush(connection);
    }
}

static void tick_run_run_or_drop(struct tick *tick, const struct queue_entry *entry,
                                 struct reply *reply) {
    struct connection *connection = connection_of(entry->session);
    bool is_dropped = session_is_void(entry->session);
    if (!is_dropped && connection->session.is_close_after_reply) {
        connection->queued--;
        connection_count_done(connection);
        is_dropped = true;
    }
    if (!is_dropped) {
        if (connection->hold != CONNECTION_RUNS || connection->held.count > 0) {
            connection_hold(connection, entry, connection->hold);
        } else if (tick_run_is_paused(tick, entry)) {
            enum server_pause pause = server_pause(tick->server);
            tick->held_by = pause > tick->held_by ? pause : tick->held_by;
            connection_hold(connection, entry, CONNECTION_HELD_BY_PAUSE);
        } else if (tick->server->acl.guard.failure_count > 0 &&
                   connection_begin_auth_wait(connection, entry)) {
            connection_hold(connection, entry, CONNECTION_HELD_BY_GUARD);
        } else {
            tick_run_run_entry(tick, entry, reply);
        }
    }
    connection_release(connection);
}

static uint64_t tick_run_budget_ticks(void) {
    enum { MANY_TICKS = 1 << 20 };
    return (uint64_t)TICK_BUDGET_NS * MANY_TICKS / clock_ticks_to_ns(MANY_TICKS);
}

/* The first batch with a waiting request; there is one. */
static struct batch *tick_run_current_batch(struct tick *tick) {
    while (tick->queue_at->position == tick->queue_at->count) {
        tick->queue_at = tick->queue_at->next;
    }
    return tick->queue_at;
}

/* The next requests of the queue: where they are, or copies of them where they are in several
 * batches. */
static const struct queue_entry *tick_run_next_group(struct tick *tick, unsigned *count) {
    const struct batch *batch = tick_run_current_batch(tick);
    size_t left = batch->count - batch->position;
    *count = left < LOOKAHEAD_GROUP ? (unsigned)left : LOOKAHEAD_GROUP;
    if (left >= LOOKAHEAD_GROUP || left == tick->waiting_count) {
        return &batch->entries[batch->position];
    }
    *count = 0;
    for (; batch != NULL && *count < LOOKAHEAD_GROUP; batch = batch->next) {
        for (size_t i = batch->position; i < batch->count && *count < LOOKAHEAD_GROUP; i++) {
            tick->group[(*count)++] = batch->entries[i];
        }
    }
    return tick->group;
}

/* The first count requests of the queue have run. */
static void tick_run_advance(struct tick *tick, unsigned count) {
    tick->waiting_count -= count;
    tick->done_total += count;
    while (count > 0) {
        struct batch *batch = tick_run_current_batch(tick);
        size_t left = batch->count - batch->position;
        unsigned part = count < left ? count : (unsigned)left;
        batch->position += part;
        count -= part;
    }
}

/* Run count requests from the head of the queue, or fewer if the disk falls behind or the budget is
 * spent. Running them queues nothing before them, so the entries do not move. */
static void tick_run_run_group(struct tick *tick, struct reply *reply, uint64_t end_ticks) {
    struct lookahead_group group;
    unsigned count;
    const struct queue_entry *entries = tick_run_next_group(tick, &count);
    bool is_over = false;
    tick->running = entries;
    if (count > 1) {
        lookahead_entries(tick->server, entries, count, &group);
    }
    tick->server->command_begin_ticks = clock_ticks();
    unsigned done = 0;
    while (done < count && !tick->is_behind && !is_over) {
        if (count > 1) {
            lookahead_recall(tick->server, &group, done);
            tick->server->ahead = group.ahead[done];
        }
        tick->running = &entries[done];
        tick_run_run_or_drop(tick, &entries[done++], reply);
        /* Each command ends by reading the counter, so this is the latest time. */
        is_over = (int64_t)(tick->server->command_begin_ticks - end_ticks) >= 0;
    }
    tick_run_advance(tick, done);
    tick->running = NULL;
    tick->server->ahead = NULL;
}

void tick_run_queue(struct tick *tick) {
    uint64_t end_ticks = clock_ticks() + tick_run_budget_ticks();
    struct buffer nowhere;
    struct reply reply;
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    while (tick->waiting_count > 0 && !tick->is_behind) {
        tick_run_run_group(tick, &reply, end_ticks);
        if (tick->networks[0].has_thread) {
            tick_finish_dirty(tick); /* the threads write while the rest runs */
        }
        if ((int64_t)(tick->server->command_begin_ticks - end_ticks) >= 0) {
            break;
        }
    }
}

bool tick_is_behind(const struct server *server) {
    return server->persistence != NULL && persistence_is_behind(server->persistence);
}

static void tick_run_answer_job(struct tick *tick, struct job *job) {
    struct session *session = job->session;
    struct connection *connection = connection_of(session);
    struct reply reply;
    bool has_changed = job->kind->writes;
    uint64_t epoch = job->epoch;
    tick_lend_buffer(tick, session);
    size_t size_before = session->output.size;
    reply_init(&reply, &session->output, session->protocol);
    job_answer(tick->server, job, &reply);
    if (tick->server->persistence != NULL) {
        if (has_changed) {
            commit_wait_note_change(tick->server, session);
        }
        tick_hold_output(connection, size_before, has_changed, NULL);
        tick_drop_outdated(tick->server, session, epoch);
    }
    connection->hold = CONNECTION_RUNS;
    tick_mark_dirty(tick, connection);
}

bool tick_run_jobs(struct tick *tick) {
    struct server *server = tick->server;
    if (server->jobs.count == 0 && server->jobs.is_resumed) {
        return false;
    }
    bool may_write =
        !tick->is_behind && server_may_change(server) && server->durability.write_refusal == NULL;
    bool has_more = jobs_step(server, JOB_BUDGET_NS, may_write);
    tick->waits_for_memory |= server->jobs.count > 0 && !memory_is_ready();
    for (struct job *job; (job = jobs_find_done(server)) != NULL;) {
        tick_run_answer_job(tick, job);
    }
    return has_more;
}

bool tick_describe_command(const struct tick *tick, struct fault_command *command) {
    const struct queue_entry *running = tick->running;
    if (running == NULL || running->command >= command_count()) {
        return false;
    }
    const struct request *request = &running->request;
    const struct session *session = running->session;
    *command = (struct fault_command){
        .name = command_full_name(running->command),
        .arg_count = request->count,
        .client = session->id,
        .address = session->address,
        .user = session_user_name(session),
        .database = session->database,
    };
    for (uint32_t i = 0; i < request->count && i < FAULT_SIZES_MAX; i++) {
        command->sizes[i] = request->args[i].size;
    }
    return true;
}
