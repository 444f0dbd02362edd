/* The work done once per tick, when the next one is, running the queue, and the end of the server. See
 * tick.h. */
#include "server/loop/tick.h"

#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/settings_file.h"
#include "server/dispatch/shutdown.h"
#include "server/dispatch/waiting.h"
#include "server/durability/persistence.h"
#include "server/durability/staging.h"
#include "server/loop/connection.h"
#include "server/loop/lookahead.h"
#include "server/replication/replication.h"
#include "server/sessions/board_events.h"
#include "server/sessions/job.h"
#include "server/sessions/once_ids.h"
#include "server/sessions/tracking.h"
#include "server/system/log.h"
#include "skiplist/keyspace/registry_mirror.h"

enum {
    ARCHIVE_LOG_MS = 600000,  /* between two lines that one waits for memory */
    CHORE_BUDGET_NS = 200000, /* for ends of periods, expiry, and freeing */
    FREE_SHARE = 4,           /* freeing may take 1/FREE_SHARE of a longer tick */
    DUE_KEYS_MAX = 16,        /* between two clock readings */
    FREE_WORK_MAX = 256,
    COPIED_MAX = REGISTRY_MIRROR_STEP, /* members, likewise */
    CLOSED_MAX = 64,                   /* clients closed per tick */
    GIVEN_UP_MAX = 256,                /* clients per tick that wait no longer for a key */
    CHECKED_MAX = 128,                 /* clients checked for timeouts per tick */
    OTHERS_MS = 10,                    /* between two looks at whether others have drained */
    LONG_TICK_NS = 1000000,            /* a tick of which the processor time is kept */
    TICK_BUDGET_NS = 1000000,          /* for running the queue */
    JOB_BUDGET_NS = 200000,            /* for commands that run in steps */
    DRAIN_MS = 5000,
    LINGER_MS = 500,
    RETIRED_LOOK_MAX = 16, /* clients: with more, some are surely no balancer's checks */
};

/* ---- running the queue, and commands in steps ---- */

/* While writes wait, nothing may expire or roll over either. */
static void tick_hold_due(struct tick *tick, bool is_held) {
    if (tick->is_due_held != is_held) {
        tick->is_due_held = is_held;
        registry_set_held(tick->server->registry, is_held);
    }
}

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
               ? waiting_sees_boards(command) || (needs & COMMAND_WRITE) != 0
               : (needs & COMMAND_WRITE) != 0;
}

static void tick_run_entry(struct tick *tick, const struct queue_entry *entry,
                           struct reply *reply) {
    struct session *session = entry->session;
    struct connection *connection = connection_of(session);
    connection->queued--;
    connection_count_done(connection);
    tick_output_mark_dirty(tick, connection);
    tick_output_lend_buffer(tick, session);
    reply->out = &session->output;
    session_shape_reply(session, reply);
    if (entry->command == QUEUE_PROTOCOL_ERROR || entry->command == QUEUE_CLOSE) {
        if (entry->command == QUEUE_PROTOCOL_ERROR) {
            reply->is_silent = false;
            reply_error(reply, entry->error);
        }
        session->is_close_after_reply = true;
        return;
    }
    struct server *server = tick->server;
    size_t size_before = session->output.size;
    uint64_t effects_before = server->durability.effect_count;
    uint64_t epoch = replication_answer_epoch(&server->replication);
    bool runs_boards = (session->transaction.flags & (COMMAND_READ | COMMAND_WRITE)) != 0;
    bool is_refused = /* because the disk cannot be written */
        server->durability.write_refusal != NULL && entry->command != COMMAND_NONE &&
        (command_needs(session, command_by_index(entry->command)) & COMMAND_WRITE) != 0;
    bool has_changed = false;
    execute_request(server, session, entry->command, &entry->request, reply);
    if (runs_boards) {
        tick_output_drop_outdated(server, session, epoch);
    }
    if (session->job != NULL) {
        connection->hold = CONNECTION_HELD_BY_JOB;
    }
    if (server->persistence != NULL && !is_refused) {
        has_changed = server->durability.effect_count != effects_before;
        if (has_changed) {
            waiting_note_change(server, session);
        }
        tick_output_hold(connection, size_before, has_changed, entry);
        tick->is_behind = has_changed && persistence_is_behind(server->persistence);
    }
    if (server->has_news) {
        if (session->wait.state != WAIT_NONE) {
            connection->hold = CONNECTION_HELD_BY_WAIT;
        } else if (session->awaits_end) {
            connection->hold = CONNECTION_HELD_BY_END;
        }
        tick_output_take_news(tick, !has_changed && !tick_output_entry_sees_boards(entry) &&
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

static void tick_run_or_drop(struct tick *tick, const struct queue_entry *entry,
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
        } else if (tick->server->acl.guard.failure_count + tick->server->settings.player_key_count >
                       0 &&
                   connection_begin_auth_wait(connection, entry)) {
            connection_hold(connection, entry, CONNECTION_HELD_BY_GUARD);
        } else {
            tick_run_entry(tick, entry, reply);
        }
    }
    connection_release(connection);
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

/* Run count requests from the head of the queue, or fewer if the disk falls behind or the budget is
 * spent. Running them queues nothing before them, so the entries do not move. */
static void tick_run_group(struct tick *tick, struct reply *reply, uint64_t end_ticks) {
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
        tick_run_or_drop(tick, &entries[done++], reply);
        /* Each command ends by reading the counter, so this is the latest time. */
        is_over = (int64_t)(tick->server->command_begin_ticks - end_ticks) >= 0;
    }
    tick->waiting_count -= done;
    tick->done_total += done;
    while (done > 0) {
        struct batch *batch = tick_run_current_batch(tick);
        size_t left = batch->count - batch->position;
        unsigned part = done < left ? done : (unsigned)left;
        batch->position += part;
        done -= part;
    }
    tick->running = NULL;
    tick->server->ahead = NULL;
}

/* Run the queue until the budget is spent; the command that exceeds it is the last. Then replies
 * are sent, and disconnected clients are detected before more of their requests run. */
static void tick_run_queue(struct tick *tick) {
    enum { MANY_TICKS = 1 << 20 };
    uint64_t end_ticks =
        clock_ticks() + (uint64_t)TICK_BUDGET_NS * MANY_TICKS / clock_ticks_to_ns(MANY_TICKS);
    struct buffer nowhere;
    struct reply reply;
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    while (tick->waiting_count > 0 && !tick->is_behind) {
        tick_run_group(tick, &reply, end_ticks);
        if (tick->networks[0].has_thread) {
            tick_output_finish_dirty(tick); /* the threads write while the rest runs */
        }
        if ((int64_t)(tick->server->command_begin_ticks - end_ticks) >= 0) {
            break;
        }
    }
}

static bool tick_is_behind(const struct server *server) {
    return server->persistence != NULL && persistence_is_behind(server->persistence);
}

/* true: there is more to do. */
static bool tick_run_jobs(struct tick *tick) {
    struct server *server = tick->server;
    if (server->jobs.count == 0 && server->jobs.is_resumed) {
        return false;
    }
    bool may_write =
        !tick->is_behind && server_may_change(server) && server->durability.write_refusal == NULL;
    bool has_more = job_list_step(server, JOB_BUDGET_NS, may_write);
    tick->waits_for_memory |= server->jobs.count > 0 && !memory_is_ready();
    for (struct job *job; (job = job_list_find_done(server)) != NULL;) {
        struct session *session = job->session;
        struct connection *connection = connection_of(session);
        struct reply reply;
        bool has_changed = job->kind->writes;
        uint64_t epoch = job->epoch;
        tick_output_lend_buffer(tick, session);
        size_t size_before = session->output.size;
        reply_init(&reply, &session->output, session->protocol);
        job_answer(tick->server, job, &reply);
        if (tick->server->persistence != NULL) {
            if (has_changed) {
                waiting_note_change(tick->server, session);
            }
            tick_output_hold(connection, size_before, has_changed, NULL);
            tick_output_drop_outdated(tick->server, session, epoch);
        }
        connection->hold = CONNECTION_RUNS;
        tick_output_mark_dirty(tick, connection);
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

/* ---- retiring, draining, the end ---- */

void tick_close_handle(uv_handle_t *handle) {
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

static void tick_stop_stop(struct tick *tick) {
    if (tick->is_stopping) {
        return;
    }
    tick->is_stopping = true;
    tick_network_drop_queue(tick);
    tick->server->ending.is_over = true;
    shutdown_finish(tick->server);
    while (tick->server->sessions.first != NULL) {
        connection_close(connection_of(tick->server->sessions.first), "shutdown");
    }
    while (tick->lists[TICK_DIRTY].first != NULL || tick->lists[TICK_PUSHED].first != NULL) {
        (void)tick_output_finish_pushed(tick);
        tick_output_finish_dirty(tick); /* again and again, where memory for a message is missing */
    }
    tick_network_join(tick);
    tick_set_idle(tick, false);
    tick_close_handle((uv_handle_t *)&tick->check);
    tick_close_handle((uv_handle_t *)&tick->idle);
    tick_close_handle((uv_handle_t *)&tick->second);
    tick_close_handle((uv_handle_t *)&tick->wake);
    tick_close_handle((uv_handle_t *)&tick->drain);
}

static void tick_stop_on_drain_over(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    if (!tick->is_lingering) {
        /* Their clients are told nothing, and cannot know what has become of their writes. */
        unsigned count = 0;
        const struct connection *connection = tick->waiting_first;
        for (; connection != NULL; connection = connection->wait.next) {
            count++;
        }
        if (count > 0) {
            log_write(
                LOG_WARNING,
                "shutdown: closing clients whose answers still wait for the disk or for replicas "
                "count=%u waited_ms=%d",
                count, (int)DRAIN_MS);
        } else {
            log_write(LOG_WARNING, "shutdown: some clients did not read their replies in time");
        }
    }
    tick_stop_stop(tick);
}

void tick_shutdown(struct tick *tick, bool is_now) {
    if (tick->is_stopping) {
        return;
    }
    bool is_second = tick->is_draining;
    tick->is_draining = true;
    tick->server->ending.is_asked = true;
    if (!tick->server->ending.retiring.is_begun) {
        tick->server->ending.retiring = (struct server_retiring){
            .is_begun = true,
            .from_id = tick->server->sessions.next_id,
        };
    }
    if (!is_second) {
        log_write(LOG_NOTICE, "shutdown: clients=%u", tick->server->sessions.count);
        tick->stop_listening(tick->context);
        for (unsigned i = 0; i < tick->network_count; i++) {
            network_drain(&tick->networks[i]);
        }
    }
    if (is_now || is_second) {
        tick_stop_stop(tick);
        return;
    }
    struct session *session = tick->server->sessions.first;
    for (; session != NULL; session = session->next) {
        tick_output_mark_dirty(tick, connection_of(session));
    }
    uv_timer_start(&tick->drain, tick_stop_on_drain_over, DRAIN_MS, 0);
    tick_set_idle(tick, true);
}

/* Has every client received the replies to all that it had sent? */
static bool tick_stop_is_drained(const struct tick *tick) {
    if (tick->drain_others != NULL && !tick->drain_others(tick->others)) {
        return false;
    }
    for (unsigned i = 0; i < tick->network_count; i++) {
        if (!tick->networks[i].is_drained) {
            return false;
        }
    }
    struct session *session = tick->server->sessions.first;
    for (; session != NULL; session = session->next) {
        const struct connection *connection = connection_of(session);
        bool is_held = connection->held.count > 0 && connection->hold != CONNECTION_HELD_BY_WAIT &&
                       connection->hold != CONNECTION_HELD_BY_END;
        if (connection->queued > 0 || is_held || connection->hold == CONNECTION_HELD_BY_JOB ||
            connection_unsent_size(connection) > 0) {
            return false;
        }
    }
    return true;
}

static void tick_stop_on_retired(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    tick->server->ending.retiring.is_over = true;
    tick_wake(tick);
}

static void tick_stop_check_retiring(struct tick *tick) {
    struct server *server = tick->server;
    bool is_retiring = server->ending.retiring.is_begun && !server->ending.is_asked;
    bool is_deserted = is_retiring && server->sessions.count <= RETIRED_LOOK_MAX;
    for (const struct session *session = server->sessions.first; is_deserted && session != NULL;
         session = session->next) {
        is_deserted = session->awaits_end; /* only those are connected who wait for the end */
    }
    if (is_retiring && (server->ending.retiring.is_over || is_deserted)) {
        shutdown_end_retiring(server);
        is_retiring = false;
    }
    if (is_retiring != tick->is_retiring) {
        tick->is_retiring = is_retiring;
        if (is_retiring) {
            int64_t left_ms = server->ending.retiring.until_ms - server->clock.monotonic_ms;
            uv_timer_start(&tick->drain, tick_stop_on_retired, left_ms > 0 ? (uint64_t)left_ms : 0,
                           0);
        } else {
            uv_timer_stop(&tick->drain);
        }
    }
}

static void tick_check_shutdown(struct tick *tick) {
    struct server *server = tick->server;
    if ((server->ending.retiring.is_begun || tick->is_retiring) && !tick->is_draining) {
        tick_stop_check_retiring(tick);
    }
    if (server->ending.is_asked && !tick->is_draining) {
        tick_shutdown(tick, server->ending.is_now);
    }
    if (!tick->is_draining || tick->is_stopping) {
        return;
    }
    if (!tick->is_lingering && tick_stop_is_drained(tick)) {
        /* Everybody has their replies. If a client's next request arrived after its socket was
         * closed, TCP would reset the connection, and a reply on its way could be lost: then the
         * client could not know that its request has run, and would repeat it. So the sockets of
         * clients that were active just now are first closed in one direction, and what still
         * comes, which is not run, is read away. */
        int64_t now_ms = tick->server->clock.monotonic_ms;
        struct session *session = tick->server->sessions.first;
        tick->is_lingering = true;
        while (session != NULL) {
            struct session *next = session->next;
            if (session->awaits_end || now_ms - session->active_at_ms > LINGER_MS ||
                !connection_end(connection_of(session))) {
                connection_close(connection_of(session), "shutdown");
            }
            session = next;
        }
        uv_timer_start(&tick->drain, tick_stop_on_drain_over, LINGER_MS, 0);
    }
    if (tick->is_lingering && server->sessions.count == 0) {
        tick_stop_stop(tick);
    }
}

/* ---- the end of a tick ---- */

/* Those who wait are answered, or told that they wait no more; who follows boards, or keeps copies, is told of changes.
 * true: there is more to do. */
static bool tick_serve_waiting(struct tick *tick) {
    struct server *server = tick->server;
    struct replication *replication = &server->replication;
    waiting_serve_opened(server);
    waiting_serve_replicas(server);
    /* What this tick has written counts for a failover, too: the target must have it, and clients their answers. */
    if (replication->failover.state == REPLICATION_FAILOVER_WAITS && server->persistence != NULL) {
        replication->group = persistence_last_group(server->persistence);
        if (sync_holds_answers(&replication->sync)) {
            tick_output_release_answers(tick);
        }
    }
    replication_failover_step(server, tick->waiting_first != NULL);
    replication->has_acks = false;
    bool has_more = waiting_give_up(server, GIVEN_UP_MAX);
    has_more |= waiting_disconnect(server, GIVEN_UP_MAX);
    has_more |= board_events_step(server);
    has_more |= tracking_is_on(&server->tracking) && tracking_step(server);
    if (server->has_news) {
        tick_output_take_news(tick, false);
    }
    return has_more;
}

/* Close killed clients. true: more are left. None of their requests run any more, so the rest can
 * wait for the next tick. */
static bool tick_close_killed(struct tick *tick) {
    for (int i = 0; i < CLOSED_MAX && tick->server->sessions.killed != NULL; i++) {
        connection_close(connection_of(tick->server->sessions.killed), "killed");
    }
    return tick->server->sessions.killed != NULL;
}

/* Close the largest clients until the rest fits maxmemory-clients. true: more are left. */
static bool tick_evict_clients(struct tick *tick) {
    struct server *server = tick->server;
    uint64_t limit = server_client_memory_limit(server);
    for (int i = 0; limit > 0 && server->sessions.memory.total > limit; i++) {
        struct session *session = session_memory_largest(&server->sessions.memory);
        if (session == NULL || i == CLOSED_MAX) {
            return session != NULL;
        }
        /* It may have shrunk: its watches may have been dropped when another client changed a
         * key. */
        uint8_t size_class = session->size_class;
        session_memory_count(&server->sessions.memory, session);
        if (session->size_class < size_class) {
            continue;
        }
        server->stats.clients_evicted++;
        log_write(LOG_WARNING,
                  "clients use too much memory, closing one of the largest id=%llu addr=%s "
                  "bytes=%zu all=%llu maxmemory-clients=%llu",
                  (unsigned long long)session->id, session->address, session->counted_size,
                  (unsigned long long)server->sessions.memory.total, (unsigned long long)limit);
        connection_close(connection_of(session), "maxmemory-clients");
    }
    return false;
}

/* A pause ends on timeout, on CLIENT UNPAUSE, or at shutdown. */
static void tick_check_pause_time(struct tick *tick) {
    struct server *server = tick->server;
    if (server->client_pause.kind != SERVER_PAUSE_NONE &&
        (server->clock.monotonic_ms >= server->client_pause.until_ms || tick->is_draining)) {
        server_end_pause(server);
    }
    if (tick->is_draining) {
        (void)replication_failover_abort(server, "shutdown");
    }
    tick_hold_due(tick, server_pause(server) != SERVER_PAUSE_NONE);
}

/* Also where a pause of all commands ends during a FAILOVER, which goes on pausing writes. */
static void tick_resume_paused(struct tick *tick) {
    if (tick->held_by <= server_pause(tick->server)) {
        return;
    }
    tick->held_by = SERVER_PAUSE_NONE;
    struct session *session = tick->server->sessions.first;
    while (session != NULL) {
        struct session *next = session->next;
        struct connection *connection = connection_of(session);
        if (connection->hold == CONNECTION_HELD_BY_PAUSE) {
            connection_resume(connection);
        }
        session = next;
    }
}

/* Continue the walk over all clients, which starts once a second, a few clients per tick. true:
 * more are left. */
static bool tick_check_times(struct tick *tick) {
    for (int i = 0; i < CHECKED_MAX && tick->check_next != NULL; i++) {
        struct connection *connection = tick->check_next;
        struct session *next = connection->session.next;
        tick->check_next = next != NULL ? connection_of(next) : NULL;
        uint64_t input = connection->session.query_buffer_size;
        uint64_t output = connection->session.output.capacity;
        tick->input_max = input > tick->input_max ? input : tick->input_max;
        tick->output_max = output > tick->output_max ? output : tick->output_max;
        connection_check_time(connection);
        if (tick->check_next == NULL) {
            tick->server->stats.input_buffer_max = tick->input_max;
            tick->server->stats.output_buffer_max = tick->output_max;
        }
    }
    return tick->check_next != NULL;
}

/* Note a time, if what took elapsed_ns was long. */
static void tick_note_latency(struct tick *tick, const char *event, uint64_t elapsed_ns,
                              uint64_t noted_ns) {
    struct server *server = tick->server;
    uint64_t noted_ms = noted_ns / 1000000;
    int64_t threshold_ms = server->settings.latency_monitor_threshold_ms;
    if (threshold_ms > 0 && elapsed_ns / 1000000 >= (uint64_t)threshold_ms) {
        stats_latency_add(&server->latency, event,
                          noted_ms < UINT32_MAX ? (uint32_t)noted_ms : UINT32_MAX,
                          server->clock.now_ms / 1000);
    }
}

typedef uint32_t run_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);

/* true: more work is left. */
static bool tick_run_some(struct tick *tick, run_due *run, const char *event) {
    uint64_t begin = clock_ticks();
    uint64_t elapsed_ns = 0;
    uint32_t count;
    do {
        count = run(tick->server->registry, tick->server->clock.now_ms, DUE_KEYS_MAX);
        elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin);
    } while (count == DUE_KEYS_MAX && elapsed_ns < CHORE_BUDGET_NS);
    tick_note_latency(tick, event, elapsed_ns, elapsed_ns);
    return count == DUE_KEYS_MAX;
}

/* On a full disk no more falls due than it can take later. */
static bool tick_may_run_due(const struct server *server) {
    return server_may_change(server) &&
           (server->persistence == NULL || !persistence_is_full(server->persistence));
}

/* Roll over boards whose periods have ended, and remove expired keys. true: more are left. */
static bool tick_handle_due(struct tick *tick) {
    tick_hold_due(tick,
                  server_pause(tick->server) != SERVER_PAUSE_NONE); /* which commands may change */
    int64_t due_ms = registry_expiry_next_due(tick->server->registry);
    if (tick->server->durability.is_loading || !tick_may_run_due(tick->server)) {
        return false;
    }
    /* The clock has been corrected: report what durations (EXPIRE) have shifted by. */
    uint64_t begin = clock_ticks();
    bool has_more = !tick->is_behind;
    while (has_more && clock_ticks_to_ns(clock_ticks() - begin) < CHORE_BUDGET_NS) {
        has_more = registry_expiry_tell_shifted(tick->server->registry, DUE_KEYS_MAX);
    }
    once_ids_forget_due(tick->server);
    if (due_ms == REGISTRY_NO_EXPIRY || due_ms > tick->server->clock.now_ms) {
        return has_more;
    }
    has_more |= tick_run_some(tick, registry_roll_due, "roll-cycle");
    return tick_run_some(tick, registry_expiry_remove_due, "expire-cycle") || has_more;
}

/* Make archives that are copies, or on a replica what their effects will take. They wait for room below maxmemory. true:
 * more work is left. */
static bool tick_copy_archives(struct tick *tick) {
    const struct server *server = tick->server;
    bool may_change = server_may_change(server) || replication_is_replica(&server->replication);
    uint64_t begin = clock_ticks();
    bool has_more;
    bool is_ready;
    if (server->durability.is_loading || tick->is_behind || !may_change ||
        (server->persistence != NULL && persistence_is_full(server->persistence))) {
        return false;
    }
    uint64_t limit = server->settings.maxmemory;
    uint64_t used = memory_used();
    uint64_t room = limit == 0 ? UINT64_MAX : limit > used ? limit - used : 0;
    if (registry_roll_archive_limit(server->registry, room, server->clock.now_ms)) {
        int64_t now_ms = tick->server->clock.monotonic_ms;
        if (tick->archive_logged_at_ms == 0 ||
            now_ms - tick->archive_logged_at_ms >= ARCHIVE_LOG_MS) {
            tick->archive_logged_at_ms = now_ms;
            log_write(LOG_WARNING,
                      "archive: not copied (PERIOD ... COPY) while maxmemory has no room for it "
                      "used=%zu maxmemory=%llu",
                      memory_used(), (unsigned long long)tick->server->settings.maxmemory);
        }
    }
    if (room == 0) {
        return false;
    }
    do {
        is_ready = memory_is_ready();
        has_more = registry_roll_archive_step(server->registry, server->clock.now_ms,
                                              is_ready ? COPIED_MAX : 0);
    } while (has_more && is_ready && clock_ticks_to_ns(clock_ticks() - begin) < CHORE_BUDGET_NS);
    tick->waits_for_memory |= has_more && !is_ready;
    return has_more && is_ready;
}

/* Free some of the removed boards and the detached watches. true: more are left. Commands that
 * replace large boards take long; the budget grows with the tick, so freeing keeps up with them. */
static bool tick_free_some(struct tick *tick, uint64_t elapsed_ns) {
    struct server *server = tick->server;
    uint64_t begin = clock_ticks();
    uint64_t budget_ns = elapsed_ns / FREE_SHARE;
    budget_ns = budget_ns > CHORE_BUDGET_NS ? budget_ns : CHORE_BUDGET_NS;
    while (registry_free_step(server->registry, FREE_WORK_MAX) ||
           watch_free_step(&server->watches, FREE_WORK_MAX) ||
           watch_free_step(&server->reads, FREE_WORK_MAX) ||
           tracking_free_step(&server->tracking, FREE_WORK_MAX) ||
           subscription_free_step(&server->subscriptions, FREE_WORK_MAX) ||
           subscription_free_step(&server->waits.keys, FREE_WORK_MAX)) {
        if (clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            return true;
        }
    }
    return false;
}

static void tick_on_idle(uv_idle_t *idle) {
    (void)idle; /* an active idle handle only keeps poll from blocking */
}

void tick_set_idle(struct tick *tick, bool is_active) {
    if (tick->is_idle_active == is_active) {
        return;
    }
    tick->is_idle_active = is_active;
    if (is_active) {
        uv_idle_start(&tick->idle, tick_on_idle);
    } else {
        uv_idle_stop(&tick->idle);
    }
}

static void tick_on_wake(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    tick->wake_at_ms = INT64_MAX;
    /* The work is done in check; an active idle handle keeps poll from blocking. */
    tick_set_idle(tick, true);
}

/* The shorter of this wait and the one until a time of the clock that shows now_ms. */
static int64_t tick_sooner(int64_t wait_ms, int64_t due_ms, int64_t now_ms) {
    return due_ms - now_ms < wait_ms ? due_ms - now_ms : wait_ms;
}

/* Until the next expiry, the next end of a period, a board that opens, the end of a pause, or what
 * those who follow boards are told. INT64_MAX: nothing is due. */
static int64_t tick_wait_ms(const struct tick *tick) {
    const struct server *server = tick->server;
    int64_t now_ms = server->clock.now_ms;
    int64_t monotonic_ms = server->clock.monotonic_ms;
    int64_t wait_ms = board_events_wait_ms(server);
    if (tick_may_run_due(server)) {
        int64_t due_ms = registry_expiry_next_due(server->registry);
        wait_ms = due_ms != REGISTRY_NO_EXPIRY ? tick_sooner(wait_ms, due_ms, now_ms) : wait_ms;
        if (server->waits.opens_ms != 0) {
            wait_ms = tick_sooner(wait_ms, server->waits.opens_ms, now_ms);
        }
    }
    if (server->client_pause.kind != SERVER_PAUSE_NONE) {
        wait_ms = tick_sooner(wait_ms, server->client_pause.until_ms, monotonic_ms);
    }
    if (tick->waits_for_memory) {
        wait_ms = tick_sooner(wait_ms, monotonic_ms + 1, monotonic_ms);
    }
    if (tick->is_draining && !tick->is_lingering && tick->drain_others != NULL) {
        wait_ms = tick_sooner(wait_ms, monotonic_ms + OTHERS_MS, monotonic_ms);
    }
    if (tick->auth_first != NULL) {
        wait_ms = tick_sooner(wait_ms, tick->auth_due_ms, monotonic_ms);
    }
    int64_t give_up_ms = wait_next_due_ms(&server->waits);
    if (give_up_ms != REGISTRY_NO_EXPIRY) {
        wait_ms = tick_sooner(wait_ms, give_up_ms, monotonic_ms);
    }
    int64_t failover_ms = replication_failover_due_ms(server);
    return failover_ms != INT64_MAX ? tick_sooner(wait_ms, failover_ms, monotonic_ms) : wait_ms;
}

/* The timer's clock does not follow clock steps: what a step makes due is found by the next tick,
 * within a second. */
static void tick_set_wake(struct tick *tick) {
    int64_t wait_ms = tick_wait_ms(tick);
    int64_t at_ms;
    if (__builtin_add_overflow(tick->server->clock.now_ms, wait_ms, &at_ms)) {
        at_ms = INT64_MAX;
    }
    if (at_ms == tick->wake_at_ms) {
        return;
    }
    tick->wake_at_ms = at_ms;
    if (at_ms == INT64_MAX) {
        uv_timer_stop(&tick->wake);
        return;
    }
    uv_timer_start(&tick->wake, tick_on_wake, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
}

/* ---- the time of a tick ---- */

static uint64_t tick_thread_cpu_ns(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reading the thread's processor time is a system call. So it is read at most once in LONG_TICK_NS
 * before a tick, and once more behind a tick that took as long: what such a tick is said to have
 * used is too much by less than LONG_TICK_NS, and exact where ticks are long or work in steps is left. */
static void tick_begin_time(struct tick *tick, uint64_t begin_ticks) {
    if (tick->is_idle_active || tick->waits_for_memory ||
        clock_ticks_to_ns(begin_ticks - tick->cpu_read_at_ticks) >= LONG_TICK_NS) {
        tick->cpu_read_at_ticks = begin_ticks;
        tick->cpu_ns = tick_thread_cpu_ns();
    }
}

static void tick_end_time(struct tick *tick, uint64_t begin_ticks) {
    struct stats *stats = &tick->server->stats;
    uint64_t elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin_ticks);
    durations_add(&stats->ticks, elapsed_ns);
    if (elapsed_ns >= LONG_TICK_NS) {
        uint64_t now_ns = tick_thread_cpu_ns();
        uint64_t used_ns = now_ns - tick->cpu_ns;
        used_ns = used_ns < elapsed_ns ? used_ns : elapsed_ns;
        tick->cpu_read_at_ticks = clock_ticks();
        tick->cpu_ns = now_ns;
        stats->long_tick_count++;
        stats->long_tick_wall_ns += elapsed_ns;
        stats->long_tick_cpu_ns += used_ns;
        if (elapsed_ns / 1000 > stats->tick_longest_us) {
            stats->tick_longest_cpu_us = used_ns / 1000;
        }
        if (used_ns / 1000 > stats->tick_busiest_us) {
            stats->tick_busiest_us = used_ns / 1000;
        }
        stats->tick_busy_count += used_ns >= LONG_TICK_NS;
        tick_note_latency(tick, "tick", elapsed_ns, elapsed_ns);
        tick_note_latency(tick, "tick-cpu", elapsed_ns, used_ns);
    }
    if (elapsed_ns / 1000 > stats->tick_longest_us) {
        stats->tick_longest_us = elapsed_ns / 1000;
    }
}

/* ---- the loop's callbacks ---- */

static void tick_on_check(uv_check_t *check) {
    struct tick *tick = check->data;
    struct server *server = tick->server;
    uint64_t begin = clock_ticks();
    tick_begin_time(tick, begin);
    worker_wakeup_wake(&tick->network_wake);
    server_update_time(server);
    tick_check_pause_time(tick);
    tick_network_take_batches(tick);
    tick->has_more = false;
    tick->waits_for_memory = false;
    bool has_more = tick->replicator != NULL && replicator_begin_tick(tick->replicator);
    tick->waits_for_memory |=
        server->persistence != NULL && persistence_staging(server->persistence)->waits_for_memory;
    tick->is_behind = tick_is_behind(server);
    if (tick->waiting_count > 0) {
        tick_network_note_requests(tick);
        tick_run_queue(tick);
    }
    has_more |= tick_handle_due(tick);
    has_more |= tick_copy_archives(tick);
    has_more |= tick_run_jobs(tick);
    has_more |= tick_serve_waiting(tick);
    if (tick->replicator != NULL) {
        replicator_close_tick(tick->replicator);
    }
    tick->is_feeding = true;
    if (server->persistence != NULL) {
        has_more |= persistence_end_tick(server->persistence);
    }
    has_more |= tick_output_end_replication(tick);
    tick->is_feeding = false;
    if (server->persistence != NULL && tick_output_must_release_answers(tick)) {
        tick_output_release_answers(tick);
    }
    tick_output_finish_dirty(tick);
    has_more |= tick_output_finish_pushed(tick);
    has_more |= job_list_has_steps(server);
    tick_resume_paused(tick);
    connection_end_auth_waits(tick);
    has_more |= tick_close_killed(tick);
    has_more |= tick_evict_clients(tick);
    has_more |= tick_check_times(tick);
    has_more |= tick_free_some(tick, clock_ticks_to_ns(clock_ticks() - begin));
    if (server->persistence != NULL) {
        has_more |= persistence_step(server->persistence);
    }
    tick_network_release_batches(tick);
    has_more |= tick_network_push_replies(tick);
    tick_end_time(tick, begin);
    tick_check_shutdown(tick);
    if (!tick->is_stopping) {
        /* If the queue waits for the disk, the loop is woken once the disk has caught up. */
        tick_set_idle(tick, has_more || tick->has_more || tick_network_has_batches(tick) ||
                                (tick->waiting_count > 0 && !tick_is_behind(server)));
        tick_set_wake(tick);
    }
}

static void tick_on_second(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    struct server *server = tick->server;
    server_update_time(server);
    tick_network_note(tick);
    stats_sample(&server->stats, server->clock.monotonic_ms);
    if (server->persistence != NULL) {
        persistence_second(server->persistence);
    }
    if (tick->replicator != NULL) {
        replicator_second(tick->replicator);
        tick_set_idle(tick, true); /* what it has to say leaves with a tick */
    }
    server_audit_second(server);
    settings_file_second(server);
    tick_output_free_idle_buffers(tick);
    memory_settle();
    if (tick->check_next == NULL && server->sessions.first != NULL) {
        tick->check_next = connection_of(server->sessions.first);
        tick->input_max = 0;
        tick->output_max = 0;
    }
}

void tick_wake(struct tick *tick) {
    if (!tick->is_stopping) { /* its handles are closed, and a started one would keep the loop */
        tick_set_idle(tick, true);
    }
}

/* ---- networks ---- */

bool tick_init(struct tick *tick, uv_loop_t *loop, struct server *server) {
    tick->loop = loop;
    tick->server = server;
    tick->wake_at_ms = INT64_MAX;
    tick->check.data = tick;
    tick->idle.data = tick;
    tick->second.data = tick;
    tick->wake.data = tick;
    tick->drain.data = tick;
    bool is_ready =
        uv_check_init(loop, &tick->check) == 0 && uv_idle_init(loop, &tick->idle) == 0 &&
        uv_timer_init(loop, &tick->second) == 0 && uv_timer_init(loop, &tick->wake) == 0 &&
        uv_timer_init(loop, &tick->drain) == 0 &&
        uv_check_start(&tick->check, tick_on_check) == 0 &&
        uv_timer_start(&tick->second, tick_on_second, TICK_SECOND_MS, TICK_SECOND_MS) == 0 &&
        tick_network_init(tick);
    tick_network_note(tick);
    server->acl.has_verifier = is_ready;
    return is_ready;
}

void tick_deinit(struct tick *tick) {
    tick_network_take_batches(tick); /* what was closed last */
    tick_network_drop_queue(tick);
    for (unsigned i = 0; i < tick->network_count; i++) {
        network_deinit(&tick->networks[i]);
    }
    memory_free(tick->networks_memory);
    while (tick->buffer_count > 0) {
        buffer_deinit(&tick->buffers[--tick->buffer_count]);
    }
}
