/* The queue, and what is done once per turn. See tick.h for the whole.
 *
 * Invariant: entries[head .. end-1] wait, in arrival order, and each of them holds its connection
 * until it has run or is dropped (connection_release). */
#include "server/tick.h"

#include <stdio.h>

#include "server/command.h"
#include "server/connection.h"
#include "server/log.h"
#include "server/persistence.h"
#include "server/prefetch.h"
#include "server/process.h"
#include "server/shutdown.h"

enum {
    ENTRIES_MIN = 256, /* of the queue at first */
    ENTRIES_KEPT_MAX = 65536,
    LENT_CAPACITY_MAX = 256 * 1024,
    LENT_BYTES_MAX = 16 * 1024 * 1024, /* of all buffers that wait to be lent */
    OUTPUT_ROOM_MIN = 16 * 1024, /* for replies that can be sent at once, whatever the limit */
    TICK_BUDGET_NS = 1000000,    /* for running the queue */
    CHORE_BUDGET_NS = 200000,    /* for periods, for expiry, and for freeing */
    DUE_KEYS_MAX = 16,           /* between two looks at the clock */
    FREE_WORK_MAX = 256,
    SECOND_MS = 1000,
    DRAIN_MS = 5000,
};

/* ---- output buffers ---- */

void tick_lend_buffer(struct tick *tick, struct session *session) {
    size_t size_max = tick->server->settings.output_limit.hard_bytes;
    if (size_max > 0 && size_max < OUTPUT_ROOM_MIN) {
        size_max = OUTPUT_ROOM_MIN;
    }
    session->output.size_max = size_max;
    if (session->output.at != NULL || tick->buffer_count == 0 ||
        (size_max > 0 && size_max < LENT_CAPACITY_MAX)) {
        return;
    }
    session->output = tick->buffers[--tick->buffer_count];
    tick->buffer_bytes -= session->output.capacity;
    if (tick->buffer_count < tick->idle_buffer_count) {
        tick->idle_buffer_count = tick->buffer_count;
    }
    session->output.size_max = size_max;
}

void tick_take_buffer(struct tick *tick, struct session *session) {
    if (session->output.at == NULL) {
        return;
    }
    buffer_clear(&session->output);
    size_t capacity = session->output.capacity;
    if (tick->buffer_count < TICK_BUFFERS_MAX && capacity <= LENT_CAPACITY_MAX &&
        tick->buffer_bytes + capacity <= LENT_BYTES_MAX) {
        tick->buffers[tick->buffer_count++] = session->output;
        tick->buffer_bytes += capacity;
        buffer_init(&session->output, session->output.size_max);
    } else {
        buffer_deinit(&session->output);
    }
}

/* Once a second: free the buffers that were not lent since the last time. They are the lowest, for
 * lending takes from the top. */
static void free_idle_buffers(struct tick *tick) {
    uint32_t idle_count = tick->idle_buffer_count;
    for (uint32_t i = 0; i < idle_count; i++) {
        tick->buffer_bytes -= tick->buffers[i].capacity;
        buffer_deinit(&tick->buffers[i]);
    }
    tick->buffer_count -= idle_count;
    memmove(tick->buffers, tick->buffers + idle_count,
            tick->buffer_count * sizeof(tick->buffers[0]));
    tick->idle_buffer_count = tick->buffer_count;
}

/* ---- the queue ---- */

static bool make_room_for_entry(struct tick *tick) {
    if (tick->head > tick->capacity / 2) {
        memmove(tick->entries, tick->entries + tick->head,
                (tick->end - tick->head) * sizeof *tick->entries);
        tick->end -= tick->head;
        tick->head = 0;
        return true;
    }
    size_t capacity = tick->capacity > 0 ? tick->capacity * 2 : ENTRIES_MIN;
    struct tick_entry *entries = memory_resize(tick->entries, capacity * sizeof *entries);
    if (entries == NULL) {
        return false;
    }
    tick->entries = entries;
    tick->capacity = capacity;
    return true;
}

struct tick_entry *tick_next_entry(struct tick *tick) {
    if (tick->end == tick->capacity && !make_room_for_entry(tick)) {
        return NULL;
    }
    return &tick->entries[tick->end];
}

void tick_queue_entry(struct tick *tick) {
    CHECK(tick->end < tick->capacity);
    tick->end++;
    tick->queued_total++;
}

void tick_mark_dirty(struct tick *tick, struct connection *connection) {
    if (connection->is_dirty) {
        return;
    }
    connection->is_dirty = true;
    connection->dirty_next = NULL;
    if (tick->dirty_last != NULL) {
        tick->dirty_last->dirty_next = connection;
    } else {
        tick->dirty_first = connection;
    }
    tick->dirty_last = connection;
}

/* ---- running ---- */

/* Must this request wait for the end of CLIENT PAUSE? */
static bool is_paused(const struct tick *tick, const struct tick_entry *entry) {
    const struct server *server = tick->server;
    if (server->pause == SERVER_PAUSE_NONE || entry->command >= TICK_CLOSE) {
        return false;
    }
    const struct command *command = command_by_index(entry->command);
    return server->pause == SERVER_PAUSE_ALL
               ? (command->flags & COMMAND_NO_PAUSE) == 0
               : (command_needs(&entry->connection->session, command) & COMMAND_WRITE) != 0;
}

static void run_broken(struct session *session, const struct tick_entry *entry,
                       struct reply *reply) {
    if (entry->command == TICK_PROTOCOL_ERROR) {
        reply->is_silent = false;
        reply_error(reply, entry->error);
    }
    session->is_close_after_reply = true;
}

/* Can its answer show what is on the boards? EXEC's can, whatever it runs: that it ran nothing
 * shows that a watched key has changed. */
static bool sees_boards(const struct command *command) {
    return (command->flags & COMMAND_LOADING) == 0 || command == &command_exec;
}

/* Does what this command has answered show what is not on disk yet, as far as it has to be? What it
 * has changed itself, or with appendfsync always whatever it could see. A command that was refused
 * has seen nothing. */
static void gate_reply(const struct tick *tick, const struct tick_entry *entry, size_t size_before,
                       bool has_changed) {
    const struct persistence *persistence = tick->server->persistence;
    struct connection *connection = entry->connection;
    uint64_t group = persistence_last_group(persistence);
    if (group <= persistence_safe_group(persistence) ||
        connection->session.output.size == size_before) {
        return;
    }
    if (has_changed || (persistence_holds_readers(persistence) && entry->command != COMMAND_NONE &&
                        sees_boards(command_by_index(entry->command)))) {
        connection_gate(connection, size_before, group);
    }
}

/* Will it be refused for what keeps the disk from being written to? */
static bool is_refused_write(const struct server *server, const struct tick_entry *entry) {
    return server->write_refusal != NULL && entry->command != COMMAND_NONE &&
           (command_needs(&entry->connection->session, command_by_index(entry->command)) &
            COMMAND_WRITE) != 0;
}

static void run_entry(struct tick *tick, const struct tick_entry *entry, struct reply *reply) {
    struct connection *connection = entry->connection;
    struct session *session = &connection->session;
    connection->queued--;
    tick_mark_dirty(tick, connection);
    tick_lend_buffer(tick, session);
    reply->out = &session->output;
    reply->version = session->protocol;
    if (entry->command == TICK_PROTOCOL_ERROR || entry->command == TICK_CLOSE) {
        run_broken(session, entry, reply);
        return;
    }
    struct server *server = tick->server;
    size_t size_before = session->output.size;
    uint64_t effects_before = server->effect_count;
    bool is_refused = is_refused_write(server, entry);
    command_execute_index(server, session, entry->command, &entry->request, reply);
    if (server->persistence != NULL && !is_refused) {
        gate_reply(tick, entry, size_before, server->effect_count != effects_before);
    }
    /* A client that asks for much and reads little holds up its own requests, no one else's. */
    if (session->output.size > CONNECTION_OUTPUT_HIGH && !session->is_killed) {
        (void)!connection_flush(connection);
    }
}

static void run_or_drop(struct tick *tick, const struct tick_entry *entry, struct reply *reply) {
    struct connection *connection = entry->connection;
    bool is_dropped = connection_is_void(entry);
    if (!is_dropped && connection->session.is_close_after_reply) {
        connection->queued--;
        is_dropped = true;
    }
    if (!is_dropped) {
        if (connection->hold != CONNECTION_RUNS) {
            connection_hold(connection, entry->input, connection->hold);
        } else if (is_paused(tick, entry)) {
            tick->is_pausing = true;
            connection_hold(connection, entry->input, CONNECTION_HELD_BY_PAUSE);
        } else {
            run_entry(tick, entry, reply);
        }
    }
    connection_release(connection);
}

/* The queue is empty. One that grew large for once is not kept. */
static void forget_entries(struct tick *tick) {
    tick->head = 0;
    tick->end = 0;
    if (tick->capacity > ENTRIES_KEPT_MAX) {
        memory_free(tick->entries);
        tick->entries = NULL;
        tick->capacity = 0;
    }
}

/* Run what waits, until the budget is spent. */
static void run_queue(struct tick *tick) {
    uint64_t begin = clock_ticks();
    struct buffer nowhere;
    struct reply reply;
    struct prefetch_group group;
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    while (tick->head < tick->end) {
        size_t waiting = tick->end - tick->head;
        unsigned count = waiting < TICK_GROUP ? (unsigned)waiting : TICK_GROUP;
        if (count > 1) {
            prefetch_entries(tick->server, &tick->entries[tick->head], count, &group);
        }
        tick->server->command_begin_ticks = clock_ticks();
        /* Running them queues nothing, so the entries stay where they are. */
        for (unsigned i = 0; i < count; i++) {
            if (count > 1) {
                prefetch_recall(tick->server, &group, i);
                tick->server->ahead = group.ahead[i];
            }
            run_or_drop(tick, &tick->entries[tick->head++], &reply);
        }
        tick->server->ahead = NULL;
        tick->done_total += count;
        if (clock_ticks_to_ns(tick->server->command_begin_ticks - begin) >= TICK_BUDGET_NS) {
            break;
        }
    }
    if (tick->head == tick->end) {
        forget_entries(tick);
    }
}

/* ---- the end of a tick ---- */

void tick_open_gates(struct tick *tick) {
    uint64_t group = persistence_safe_group(tick->server->persistence);
    struct connection *connection = tick->gated_first;
    while (connection != NULL) {
        struct connection *next = connection->gate.next;
        connection_open_gate(connection, group);
        if (connection_sendable_size(connection) > 0) {
            connection_finish(connection);
        }
        connection = next;
    }
}

static void finish_dirty(struct tick *tick) {
    while (tick->dirty_first != NULL) {
        struct connection *connection = tick->dirty_first;
        tick->dirty_first = connection->dirty_next;
        if (tick->dirty_first == NULL) {
            tick->dirty_last = NULL;
        }
        connection->is_dirty = false;
        if (!connection->session.is_killed) {
            connection_finish(connection);
        }
    }
}

/* Monitors got output without having asked for anything in this tick. */
static void mark_monitors(struct tick *tick) {
    if (tick->server->monitor_count == 0) {
        return;
    }
    for (struct session *session = tick->server->session_first; session != NULL;
         session = session->next) {
        if (session->is_monitor && (session->output.size > 0 || session->output.is_broken)) {
            tick_mark_dirty(tick, connection_of(session));
        }
    }
}

static void close_killed(struct tick *tick) {
    struct session *session = tick->server->session_first;
    while (tick->server->killed_count > 0 && session != NULL) {
        struct session *next = session->next;
        if (session->is_killed) {
            connection_close(connection_of(session), "killed");
        }
        session = next;
    }
}

/* A pause ends by time, by CLIENT UNPAUSE, or with the server. */
static void check_pause_time(struct tick *tick) {
    struct server *server = tick->server;
    if (server->pause != SERVER_PAUSE_NONE &&
        (server->now_ms >= server->pause_until_ms || tick->is_draining)) {
        server->pause = SERVER_PAUSE_NONE;
    }
}

static void resume_paused(struct tick *tick) {
    if (!tick->is_pausing || tick->server->pause != SERVER_PAUSE_NONE) {
        return;
    }
    tick->is_pausing = false;
    struct session *session = tick->server->session_first;
    while (session != NULL) {
        struct session *next = session->next;
        struct connection *connection = connection_of(session);
        if (connection->hold == CONNECTION_HELD_BY_PAUSE) {
            connection_resume(connection);
        }
        session = next;
    }
}

static void note_latency(struct tick *tick, const char *event, uint64_t elapsed_ns) {
    struct server *server = tick->server;
    uint64_t elapsed_ms = elapsed_ns / 1000000;
    int64_t threshold_ms = server->settings.latency_monitor_threshold_ms;
    if (threshold_ms > 0 && elapsed_ms >= (uint64_t)threshold_ms) {
        latency_add(&server->latency, event,
                    elapsed_ms < UINT32_MAX ? (uint32_t)elapsed_ms : UINT32_MAX,
                    server->now_ms / 1000);
    }
}

typedef uint32_t run_due(struct registry *registry, int64_t now_ms, uint32_t keys_max);

/* true: there are more. */
static bool run_some(struct tick *tick, run_due *run, const char *event) {
    uint64_t begin = clock_ticks();
    uint64_t elapsed_ns = 0;
    uint32_t count;
    do {
        count = run(tick->server->registry, tick->server->now_ms, DUE_KEYS_MAX);
        elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin);
    } while (count == DUE_KEYS_MAX && elapsed_ns < CHORE_BUDGET_NS);
    note_latency(tick, event, elapsed_ns);
    return count == DUE_KEYS_MAX;
}

/* Let boards begin anew whose periods are over, and remove keys whose time has come; true: there
 * are more. */
static bool handle_due(struct tick *tick) {
    int64_t due_ms = registry_next_due(tick->server->registry);
    if (due_ms == REGISTRY_NO_EXPIRY || due_ms > tick->server->now_ms || tick->server->is_loading) {
        return false;
    }
    bool has_more = run_some(tick, registry_roll_due, "roll-cycle");
    return run_some(tick, registry_expire_due, "expire-cycle") || has_more;
}

/* Free some of the removed boards, and of watches left behind; true: there is more to free. */
static bool free_some(struct tick *tick) {
    struct server *server = tick->server;
    uint64_t begin = clock_ticks();
    while (registry_free_step(server->registry, FREE_WORK_MAX) ||
           watch_free_step(&server->watches, FREE_WORK_MAX)) {
        if (clock_ticks_to_ns(clock_ticks() - begin) >= CHORE_BUDGET_NS) {
            return true;
        }
    }
    return false;
}

static void on_idle(uv_idle_t *idle) {
    (void)idle; /* that it is active is all it does: poll does not block then */
}

static void set_idle(struct tick *tick, bool is_active) {
    if (tick->is_idle_active == is_active) {
        return;
    }
    tick->is_idle_active = is_active;
    if (is_active) {
        uv_idle_start(&tick->idle, on_idle);
    } else {
        uv_idle_stop(&tick->idle);
    }
}

static void on_wake(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    tick->wake_at_ms = INT64_MAX;
    /* The work is done in check, which must not wait for poll. */
    set_idle(tick, true);
}

/* Wake up for the next expiry, the next end of a period, or the end of a pause. */
static void set_wake(struct tick *tick) {
    const struct server *server = tick->server;
    int64_t at_ms = registry_next_due(server->registry);
    at_ms = at_ms == REGISTRY_NO_EXPIRY ? INT64_MAX : at_ms;
    if (tick->is_pausing && server->pause_until_ms < at_ms) {
        at_ms = server->pause_until_ms;
    }
    if (at_ms == tick->wake_at_ms) {
        return;
    }
    tick->wake_at_ms = at_ms;
    if (at_ms == INT64_MAX) {
        uv_timer_stop(&tick->wake);
        return;
    }
    int64_t wait_ms = at_ms - server->now_ms;
    uv_timer_start(&tick->wake, on_wake, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
}

/* ---- stopping ---- */

static void close_handle(uv_handle_t *handle) {
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* What still waits will not run. */
static void drop_queue(struct tick *tick) {
    for (; tick->head < tick->end; tick->head++) {
        connection_release(tick->entries[tick->head].connection);
    }
    for (; tick->dirty_first != NULL; tick->dirty_first = tick->dirty_first->dirty_next) {
        tick->dirty_first->is_dirty = false;
    }
    tick->dirty_last = NULL;
}

static void stop(struct tick *tick) {
    if (tick->is_stopping) {
        return;
    }
    tick->is_stopping = true;
    drop_queue(tick);
    shutdown_finish(tick->server);
    while (tick->server->session_first != NULL) {
        connection_close(connection_of(tick->server->session_first), "shutdown");
    }
    set_idle(tick, false);
    close_handle((uv_handle_t *)&tick->check);
    close_handle((uv_handle_t *)&tick->idle);
    close_handle((uv_handle_t *)&tick->second);
    close_handle((uv_handle_t *)&tick->wake);
    close_handle((uv_handle_t *)&tick->drain);
}

static void on_drain_over(uv_timer_t *timer) {
    log_write(LOG_WARNING, "shutdown: some clients did not read their replies in time");
    stop(timer->data);
}

void tick_shutdown(struct tick *tick, bool is_now) {
    if (tick->is_stopping) {
        return;
    }
    bool is_second = tick->is_draining;
    tick->is_draining = true;
    if (!is_second) {
        log_write(LOG_NOTICE, "shutdown: clients=%u", tick->server->session_count);
        tick->stop_listening(tick->context);
    }
    if (is_now || is_second) {
        stop(tick);
        return;
    }
    struct session *session = tick->server->session_first;
    for (; session != NULL; session = session->next) {
        connection_update_events(connection_of(session));
    }
    uv_timer_start(&tick->drain, on_drain_over, DRAIN_MS, 0);
    set_idle(tick, true);
}

/* Has every client got all it is to get? */
static bool is_drained(const struct tick *tick) {
    struct session *session = tick->server->session_first;
    for (; session != NULL; session = session->next) {
        const struct connection *connection = connection_of(session);
        if (connection->queued > 0 || connection->is_unparsed || session->output.size > 0) {
            return false;
        }
    }
    return true;
}

static void check_shutdown(struct tick *tick) {
    struct server *server = tick->server;
    if (server->is_shutdown_asked && !tick->is_draining) {
        tick_shutdown(tick, server->is_shutdown_now);
    }
    if (tick->is_draining && !tick->is_stopping && is_drained(tick)) {
        stop(tick);
    }
}

/* ---- the loop's callbacks ---- */

static void on_check(uv_check_t *check) {
    struct tick *tick = check->data;
    struct server *server = tick->server;
    uint64_t begin = clock_ticks();
    server->stats.ticks++;
    server_update_time(server);
    check_pause_time(tick);
    if (tick->head < tick->end) {
        run_queue(tick);
        mark_monitors(tick);
    }
    bool has_more = handle_due(tick);
    if (server->persistence != NULL) {
        has_more |= persistence_end_tick(server->persistence);
    }
    finish_dirty(tick);
    resume_paused(tick);
    close_killed(tick);
    has_more |= free_some(tick);
    if (server->persistence != NULL) {
        has_more |= persistence_step(server->persistence);
    }
    input_give_back(&tick->input, tick->queued_total, tick->done_total);
    uint64_t elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin);
    if (elapsed_ns / 1000 > server->stats.tick_longest_us) {
        server->stats.tick_longest_us = elapsed_ns / 1000;
    }
    note_latency(tick, "tick", elapsed_ns);
    check_shutdown(tick);
    if (!tick->is_stopping) {
        set_idle(tick, has_more || tick->head < tick->end);
        set_wake(tick);
    }
}

static void on_second(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    struct server *server = tick->server;
    server_update_time(server);
    stats_sample(&server->stats, server->now_ms);
    if (server->persistence != NULL) {
        persistence_second(server->persistence);
    }
    free_idle_buffers(tick);
    memory_settle();
    if (server->settings.maxclients != tick->maxclients) { /* CONFIG SET */
        process_raise_descriptor_limit(&server->settings);
        tick->maxclients = server->settings.maxclients;
    }
    struct session *session = server->session_first;
    while (session != NULL) {
        struct session *next = session->next;
        connection_check_time(connection_of(session));
        session = next;
    }
}

void tick_wake(struct tick *tick) {
    set_idle(tick, true);
}

bool tick_init(struct tick *tick, uv_loop_t *loop, struct server *server) {
    tick->loop = loop;
    tick->server = server;
    tick->wake_at_ms = INT64_MAX;
    tick->maxclients = server->settings.maxclients;
    input_init(&tick->input);
    tick->check.data = tick;
    tick->idle.data = tick;
    tick->second.data = tick;
    tick->wake.data = tick;
    tick->drain.data = tick;
    return uv_check_init(loop, &tick->check) == 0 && uv_idle_init(loop, &tick->idle) == 0 &&
           uv_timer_init(loop, &tick->second) == 0 && uv_timer_init(loop, &tick->wake) == 0 &&
           uv_timer_init(loop, &tick->drain) == 0 && uv_check_start(&tick->check, on_check) == 0 &&
           uv_timer_start(&tick->second, on_second, SECOND_MS, SECOND_MS) == 0;
}

void tick_deinit(struct tick *tick) {
    input_deinit(&tick->input);
    while (tick->buffer_count > 0) {
        buffer_deinit(&tick->buffers[--tick->buffer_count]);
    }
    memory_free(tick->entries);
    tick->entries = NULL;
}
