/* The queue, and the work done once per tick. See tick.h.
 *
 * Invariant: the queue's batches are in order of arrival, and a batch's entries before its position
 * have run. Each waiting entry holds a reference to its connection until it has run or is dropped
 * (connection_release). */
#include "server/loop/tick.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/gate.h"
#include "server/dispatch/shutdown.h"
#include "server/dispatch/waiting.h"
#include "server/durability/persistence.h"
#include "server/loop/connection.h"
#include "server/loop/lookahead.h"
#include "server/loop/shown.h"
#include "server/replication/failover.h"
#include "server/system/log.h"

enum {
    LENT_CAPACITY_MAX = 256 * 1024,
    LENT_BYTES_MAX = 16 * 1024 * 1024, /* total capacity of the buffers available for lending */
    TICK_BUDGET_NS = 1000000,          /* for running the queue */
    CHORE_BUDGET_NS = 200000,          /* for ends of periods, expiry, and freeing */
    JOB_BUDGET_NS = 200000,            /* for commands that run in steps */
    FREE_SHARE = 4,                    /* freeing may take 1/FREE_SHARE of a longer tick */
    DUE_KEYS_MAX = 16,                 /* between two clock readings */
    FREE_WORK_MAX = 256,
    CLOSED_MAX = 64,            /* clients closed per tick */
    GIVEN_UP_MAX = 256,         /* clients per tick that wait no longer for a key */
    PUSHED_MAX = 128,           /* clients per tick to which pushes alone are sent */
    CHECKED_MAX = 128,          /* clients checked for timeouts per tick */
    STRANGER_OUTPUT_MAX = 2048, /* room for replies before authentication */
    SECOND_MS = 1000,
    LONG_TICK_NS = 1000000, /* a tick of which the processor time is kept */
    DRAIN_MS = 5000,
    LINGER_MS = 500,
    RETIRED_LOOK_MAX = 16, /* clients: with more, some are surely no balancer's checks */
    FULL_LOG_MS = 60000,
};

/* ---- output buffers ---- */

void tick_lend_buffer(struct tick *tick, struct session *session) {
    size_t size_max = server_is_authenticated(tick->server, session)
                          ? server_output_room(tick->server, session)
                          : STRANGER_OUTPUT_MAX;
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

/* Keep an empty buffer for lending, or free it. */
static void tick_keep_buffer(struct tick *tick, struct buffer *buffer) {
    buffer_clear(buffer);
    if (tick->buffer_count < TICK_BUFFERS_MAX && buffer->capacity <= LENT_CAPACITY_MAX &&
        tick->buffer_bytes + buffer->capacity <= LENT_BYTES_MAX) {
        tick->buffers[tick->buffer_count++] = *buffer;
        tick->buffer_bytes += buffer->capacity;
        buffer_init(buffer, buffer->size_max);
    } else {
        buffer_deinit(buffer);
    }
}

void tick_take_buffer(struct tick *tick, struct session *session) {
    if (session->output.at == NULL) {
        return;
    }
    if (session->output.size_max == STRANGER_OUTPUT_MAX) {
        buffer_clear(&session->output);
        return; /* too small for lending */
    }
    tick_keep_buffer(tick, &session->output);
}

/* Once a second: free the buffers that were not lent since the last call. They are at the bottom,
 * because lending takes from the top. */
static void tick_free_idle_buffers(struct tick *tick) {
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

/* Of a batch that another thread has filled; otherwise the connections were just used. */
static void tick_fetch_connections(const struct batch *batch, size_t begin, size_t end) {
    if (batch->network == NULL || !batch->network->has_thread) {
        return;
    }
    for (size_t i = begin; i < end && i < batch->count; i++) {
        connection_fetch(batch->entries[i].session);
    }
}

static void tick_append_batch(struct tick *tick, struct batch *batch) {
    enum { FETCHED_AHEAD = 4 };
    tick_fetch_connections(batch, 0, FETCHED_AHEAD);
    for (size_t i = 0; i < batch->count;) {
        struct session *session = batch->entries[i].session;
        struct connection *connection = connection_of(session);
        uint32_t count = 0;
        size_t size = 0;
        for (; i < batch->count && batch->entries[i].session == session; i++) {
            tick_fetch_connections(batch, i + FETCHED_AHEAD, i + FETCHED_AHEAD + 1);
            size += batch->entries[i].request.size;
            count++;
        }
        connection->queued += count;
        connection->entry_count += count;
        session->input_bytes += size;
    }
    batch->next = NULL;
    if (tick->queue_last != NULL) {
        tick->queue_last->next = batch;
    } else {
        tick->queue_first = batch;
    }
    tick->queue_last = batch;
    if (tick->queue_at == NULL) {
        tick->queue_at = batch;
    }
    tick->waiting_count += batch->count;
}

/* Requests that were held back run from a batch of their own. */
struct held_batch {
    struct batch batch; /* first */
    struct transaction requests;
};

bool tick_queue_held(struct tick *tick, struct connection *connection) {
    struct transaction *held = &connection->held;
    size_t count = held->count;
    struct held_batch *requests = memory_allocate_zeroed(sizeof *requests);
    struct queue_entry *entries = memory_allocate(count * sizeof *entries);
    if (requests == NULL || entries == NULL) {
        memory_free(requests);
        memory_free(entries);
        return false;
    }
    const struct transaction_request *request = held->first;
    for (size_t i = 0; i < count; i++, request = request->next) {
        entries[i] = (struct queue_entry){
            .session = &connection->session,
            .request = request->request,
            .command = request->command,
        };
        if (request->command == QUEUE_PROTOCOL_ERROR) {
            entries[i].error = request->args[0].at;
        }
    }
    requests->batch.entries = entries;
    requests->batch.count = count;
    requests->requests = *held;
    *held = (struct transaction){.is_open = false};
    uint64_t input_bytes = connection->session.input_bytes;
    tick_append_batch(tick, &requests->batch);
    connection->session.input_bytes = input_bytes; /* they were counted when they came */
    tick->has_more = true;
    return true;
}

/* All its entries have run or were dropped. */
static void tick_release_batch(struct batch *batch) {
    if (batch->network != NULL) {
        network_give_back(batch->network, batch);
        return;
    }
    transaction_clear(&((struct held_batch *)batch)->requests);
    memory_free(batch->entries);
    memory_free(batch);
}

static void tick_release_batches(struct tick *tick) {
    while (tick->queue_first != NULL && tick->queue_first->position == tick->queue_first->count) {
        struct batch *batch = tick->queue_first;
        tick->queue_first = batch->next;
        if (tick->queue_first == NULL) {
            tick->queue_last = NULL;
        }
        if (tick->queue_at == batch) {
            tick->queue_at = batch->next;
        }
        tick_release_batch(batch);
    }
}

static void tick_log_turned_away(struct tick *tick, int error) {
    int64_t now_ms = tick->server->clock.monotonic_ms;
    if (tick->full_logged_at_ms != 0 && now_ms - tick->full_logged_at_ms < FULL_LOG_MS) {
        return;
    }
    tick->full_logged_at_ms = now_ms;
    log_write(LOG_WARNING,
              "no descriptor left, rejecting new clients error=\"%s\" advice=\"raise the limit "
              "(ulimit -n) or lower maxclients\"",
              strerror(error));
}

static void tick_log_proxy_refusals(struct tick *tick, const struct proxy_refusals *refusals) {
    char address[SESSION_ADDRESS_MAX];
    int64_t now_ms = tick->server->clock.monotonic_ms;
    tick->server->stats.connections_rejected += refusals->count;
    tick->proxy_refused_count += refusals->count;
    if (tick->proxy_logged_at_ms != 0 && now_ms - tick->proxy_logged_at_ms < SECOND_MS) {
        return;
    }
    connection_print_address(&refusals->peer, address);
    log_write(LOG_WARNING,
              "client refused on a listener of proxy-protocol addr=%s reason=\"%s\" count=%u",
              address, refusals->reason, tick->proxy_refused_count);
    tick->proxy_logged_at_ms = now_ms;
    tick->proxy_refused_count = 0;
}

static void tick_take_accepted(struct tick *tick, const struct batch *batch) {
    for (unsigned i = 0; i < batch->accepted_count; i++) {
        if (tick->is_draining) {
            close(batch->accepted[i].fd);
        } else {
            (void)connection_open(tick, &batch->accepted[i]);
        }
    }
    tick->server->stats.connections_rejected += batch->turned_away.count;
    if (batch->proxy_refusals.count > 0) {
        tick_log_proxy_refusals(tick, &batch->proxy_refusals);
    }
    if (batch->turned_away.error != 0) {
        tick_log_turned_away(tick, batch->turned_away.error);
    }
}

/* Take what the networks have for the engine. */
static void tick_take_batches(struct tick *tick) {
    struct stats *stats = &tick->server->stats;
    for (unsigned i = 0; i < tick->network_count; i++) {
        struct network *network = &tick->networks[i];
        struct batch *batch;
        while ((batch = network_take(network)) != NULL) {
            stats->input_bytes += batch->read_bytes;
            stats->output_bytes += batch->written_bytes;
            while (batch->written != NULL) {
                struct outgoing *outgoing = batch->written;
                batch->written = outgoing->next;
                tick_keep_buffer(tick, &outgoing->buffer);
                memory_free(outgoing);
            }
            network_reclaim(network, batch);
            tick_append_batch(tick, batch);
            for (unsigned note = 0; note < batch->note_count; note++) {
                connection_take_note(&batch->notes[note]);
            }
            tick_take_accepted(tick, batch);
        }
    }
}

static bool tick_has_batches(struct tick *tick) {
    for (unsigned i = 0; i < tick->network_count; i++) {
        if (network_has_batch(&tick->networks[i])) {
            return true;
        }
    }
    return false;
}

/* Hand over the replies. true: some must wait for the next tick. */
static bool tick_push_replies(struct tick *tick) {
    bool is_waiting = false;
    for (unsigned i = 0; i < tick->network_count; i++) {
        is_waiting |= tick->networks[i].has_thread && network_push(&tick->networks[i]);
    }
    return is_waiting;
}

struct network *tick_least_network(struct tick *tick) {
    struct network *least = &tick->networks[0];
    for (unsigned i = 1; i < tick->network_count; i++) {
        if (tick->networks[i].client_count < least->client_count) {
            least = &tick->networks[i];
        }
    }
    return least;
}

/* What the networks need to know. */
static void tick_publish_limits(struct tick *tick) {
    const struct server *server = tick->server;
    atomic_store_explicit(&tick->limits.bulk_size_max, server->settings.proto_max_bulk_len,
                          memory_order_relaxed);
    atomic_store_explicit(&tick->limits.has_password, server_has_password(server),
                          memory_order_relaxed);
    atomic_store_explicit(&tick->limits.tcp_keepalive_s, (int)server->settings.tcp_keepalive_s,
                          memory_order_relaxed);
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

static void tick_finish(struct connection *connection) {
    if (!connection->session.is_killed || connection->session.is_closed) {
        connection_finish(connection);
    }
}

static void tick_finish_dirty(struct tick *tick) {
    tick_publish_limits(tick); /* before the replies of CONFIG SET leave */
    while (tick->dirty_first != NULL) {
        struct connection *connection = tick->dirty_first;
        tick->dirty_first = connection->dirty_next;
        if (tick->dirty_first == NULL) {
            tick->dirty_last = NULL;
        }
        connection->is_dirty = false;
        tick_finish(connection);
    }
}

/* ---- output that nobody asked for ---- */

static void tick_mark_pushed(struct tick *tick, struct connection *connection) {
    if (connection->is_pushed) {
        return;
    }
    connection->is_pushed = true;
    connection->pushed_next = NULL;
    if (tick->pushed_last != NULL) {
        tick->pushed_last->pushed_next = connection;
    } else {
        tick->pushed_first = connection;
    }
    tick->pushed_last = connection;
}

/* May replies leave that wait for a disk that is full, and show nothing that is not on it? With sync-replicas they wait
 * for other servers, too. */
static bool tick_is_stuck(const struct server *server) {
    enum sync_state state = server->replication.sync.state;
    return (state == SYNC_OFF || state == SYNC_REPLICA) &&
           persistence_is_stuck(server->persistence);
}

/* Who waited for keys that have changed is served. Clients have received output without asking. It may show changes of the command that ran, so it
 * waits for them as that command's reply does. is_harmless: that command has seen no boards, and none of its client's
 * replies waits. */
static void tick_take_news(struct tick *tick, bool is_harmless) {
    struct server *server = tick->server;
    uint64_t effects_before = server->durability.effect_count;
    server->has_news = false;
    waiting_serve(server);
    is_harmless &= server->durability.effect_count == effects_before;
    while (server->pushed_first != NULL) {
        struct session *session = server->pushed_first;
        struct connection *connection = connection_of(session);
        server_end_push(server, session);
        if ((connection->hold == CONNECTION_HELD_BY_WAIT && session->wait.state == WAIT_NONE) ||
            (connection->hold == CONNECTION_HELD_BY_END && !session->awaits_end)) {
            connection->hold = CONNECTION_RUNS;
        }
        if (server->persistence != NULL && session->output.size > session->pushed_from) {
            uint64_t group = persistence_last_group(server->persistence);
            if (group > gate_free_group(server) && !(is_harmless && tick_is_stuck(server))) {
                connection_gate(connection, session->pushed_from, group, 0);
            }
        }
        tick_mark_pushed(tick, connection);
        if (session->output.size + session->handed_size > CONNECTION_OUTPUT_HIGH) {
            (void)!connection_flush(connection);
        }
    }
}

/* ---- running ---- */

/* While writes wait, nothing may expire or roll over either. */
static inline void tick_hold_due(struct tick *tick, bool is_held) {
    if (tick->is_due_held != is_held) {
        tick->is_due_held = is_held;
        registry_set_held(tick->server->registry, is_held);
    }
}

/* Must this request wait for the end of CLIENT PAUSE, of a FAILOVER or of a promotion? */
static bool tick_is_paused(struct tick *tick, const struct queue_entry *entry) {
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
               ? gate_sees_boards(command) || (needs & COMMAND_WRITE) != 0
               : (needs & COMMAND_WRITE) != 0;
}

static void tick_run_broken(struct session *session, const struct queue_entry *entry,
                            struct reply *reply) {
    if (entry->command == QUEUE_PROTOCOL_ERROR) {
        reply->is_silent = false;
        reply_error(reply, entry->error);
    }
    session->is_close_after_reply = true;
}

static bool tick_entry_sees_boards(const struct queue_entry *entry) {
    return entry->command != COMMAND_NONE && gate_sees_boards(command_by_index(entry->command));
}

/* Gate the reply if it may show changes that must be on disk first: the command's own changes or,
 * with appendfsync always, any that it could see. A refused command has seen none. entry NULL: it could see all. */
static void tick_gate_output(struct connection *connection, size_t size_before, bool has_changed,
                             const struct queue_entry *entry) {
    struct server *server = connection->tick->server;
    uint64_t group = persistence_last_group(server->persistence);
    if (group <= gate_free_group(server) || connection->session.output.size == size_before) {
        return;
    }
    bool holds_readers = gate_holds_readers(server);
    if (has_changed || (holds_readers && entry == NULL)) {
        connection_gate(connection, size_before, group, 0);
    } else if (holds_readers && entry != NULL && tick_entry_sees_boards(entry) &&
               !(tick_is_stuck(server) &&
                 !shown_is_unwritten(server->persistence, &connection->session, entry))) {
        connection_gate(connection, size_before, group, shown_key(&connection->session, entry));
    }
}

/* What began in an epoch that is over by now has seen or changed what is not decided here any more: a job,
 * or a transaction that has ended the epoch itself. Its client is closed without an answer. */
static void tick_drop_outdated(struct server *server, struct session *session, uint64_t epoch) {
    if (epoch != replication_answer_epoch(&server->replication)) {
        server_kill_session(server, session);
    }
}

/* Will it be refused because the disk cannot be written? */
static bool tick_is_refused_write(const struct server *server, const struct queue_entry *entry) {
    return server->durability.write_refusal != NULL && entry->command != COMMAND_NONE &&
           (command_needs(entry->session, command_by_index(entry->command)) & COMMAND_WRITE) != 0;
}

static void tick_run_entry(struct tick *tick, const struct queue_entry *entry,
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
        tick_run_broken(session, entry, reply);
        return;
    }
    struct server *server = tick->server;
    size_t size_before = session->output.size;
    uint64_t effects_before = server->durability.effect_count;
    uint64_t epoch = replication_answer_epoch(&server->replication);
    bool runs_boards = (session->transaction.flags & (COMMAND_READ | COMMAND_WRITE)) != 0;
    bool is_refused = tick_is_refused_write(server, entry), has_changed = false;
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
            gate_note_change(server, session);
        }
        tick_gate_output(connection, size_before, has_changed, entry);
        tick->is_behind = has_changed && persistence_is_behind(server->persistence);
    }
    if (server->has_news) {
        if (session->wait.state != WAIT_NONE) {
            connection->hold = CONNECTION_HELD_BY_WAIT;
        } else if (session->awaits_end) {
            connection->hold = CONNECTION_HELD_BY_END;
        }
        tick_take_news(tick, !has_changed && !tick_entry_sees_boards(entry) &&
                                 connection->gate.mark_group == 0);
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
        } else if (tick_is_paused(tick, entry)) {
            enum server_pause pause = server_pause(tick->server);
            tick->held_by = pause > tick->held_by ? pause : tick->held_by;
            connection_hold(connection, entry, CONNECTION_HELD_BY_PAUSE);
        } else if (tick->server->auth_guard.failure_count > 0 &&
                   connection_begin_auth_wait(connection, entry)) {
            connection_hold(connection, entry, CONNECTION_HELD_BY_GUARD);
        } else {
            tick_run_entry(tick, entry, reply);
        }
    }
    connection_release(connection);
}

static uint64_t tick_budget_ticks(void) {
    enum { MANY_TICKS = 1 << 20 };
    return (uint64_t)TICK_BUDGET_NS * MANY_TICKS / clock_ticks_to_ns(MANY_TICKS);
}

/* The first batch with a waiting request; there is one. */
static struct batch *tick_current_batch(struct tick *tick) {
    while (tick->queue_at->position == tick->queue_at->count) {
        tick->queue_at = tick->queue_at->next;
    }
    return tick->queue_at;
}

/* The next requests of the queue: where they are, or copies of them where they are in several
 * batches. */
static const struct queue_entry *tick_next_group(struct tick *tick, unsigned *count) {
    const struct batch *batch = tick_current_batch(tick);
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
static void tick_advance(struct tick *tick, unsigned count) {
    tick->waiting_count -= count;
    tick->done_total += count;
    while (count > 0) {
        struct batch *batch = tick_current_batch(tick);
        size_t left = batch->count - batch->position;
        unsigned part = count < left ? count : (unsigned)left;
        batch->position += part;
        count -= part;
    }
}

/* Run count requests from the head of the queue, or fewer if the disk falls behind or the budget is
 * spent. Running them queues nothing before them, so the entries do not move. */
static void tick_run_group(struct tick *tick, struct reply *reply, uint64_t end_ticks) {
    struct lookahead_group group;
    unsigned count;
    const struct queue_entry *entries = tick_next_group(tick, &count);
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
    tick_advance(tick, done);
    tick->running = NULL;
    tick->server->ahead = NULL;
}

/* Run the queue until the budget is spent; the command that exceeds it is the last. Then replies
 * are sent, and disconnected clients are detected before more of their requests run. */
static void tick_run_queue(struct tick *tick) {
    uint64_t end_ticks = clock_ticks() + tick_budget_ticks();
    struct buffer nowhere;
    struct reply reply;
    buffer_init(&nowhere, 0);
    reply_init(&reply, &nowhere, 2);
    while (tick->waiting_count > 0 && !tick->is_behind) {
        tick_run_group(tick, &reply, end_ticks);
        if (tick->networks[0].has_thread) {
            tick_finish_dirty(tick); /* the threads write while the rest runs */
        }
        if ((int64_t)(tick->server->command_begin_ticks - end_ticks) >= 0) {
            break;
        }
    }
}

static bool tick_is_behind(const struct server *server) {
    return server->persistence != NULL && persistence_is_behind(server->persistence);
}

/* ---- commands that run in steps ---- */

static void tick_answer_job(struct tick *tick, struct job *job) {
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
            gate_note_change(tick->server, session);
        }
        tick_gate_output(connection, size_before, has_changed, NULL);
        tick_drop_outdated(tick->server, session, epoch);
    }
    connection->hold = CONNECTION_RUNS;
    tick_mark_dirty(tick, connection);
}

/* true: there is more to do. */
static bool tick_run_jobs(struct tick *tick) {
    struct server *server = tick->server;
    if (server->jobs.count == 0 && server->jobs.is_resumed) {
        return false;
    }
    bool may_write =
        !tick->is_behind && server_may_change(server) && server->durability.write_refusal == NULL;
    bool has_more = jobs_step(server, JOB_BUDGET_NS, may_write);
    for (struct job *job; (job = jobs_find_done(server)) != NULL;) {
        tick_answer_job(tick, job);
    }
    return has_more;
}

/* ---- the end of a tick ---- */

void tick_open_gates(struct tick *tick) {
    if (tick->is_feeding) {
        tick->server->owes_gates = true;
        return; /* when replicas were sent what the answers show */
    }
    tick->server->owes_gates = false;
    uint64_t group = gate_open_group(tick->server);
    struct connection *connection = tick->gated_first;
    tick->gate_epoch = replication_answer_epoch(&tick->server->replication);
    bool is_partial = connection != NULL && tick_is_stuck(tick->server);
    while (connection != NULL) {
        struct connection *next = connection->gate.next;
        if (connection->gate.epoch != tick->gate_epoch) {
            connection_close(connection,
                             "its answer waits for a history that is not decided here any more");
            connection = next;
            continue;
        }
        uint64_t shown = is_partial ? connection->gate.shown : 0;
        bool is_free = shown != 0 && !persistence_is_unwritten(tick->server->persistence, shown);
        connection_open_gate(connection, is_free ? UINT64_MAX : group);
        if (connection_sendable_size(connection) > 0) {
            connection_finish(connection);
        }
        connection = next;
    }
    if (tick->open_gates != NULL) {
        tick->open_gates(tick->gates);
    }
}

/* With replicas, answers wait for what these are sent. With sync-replicas acknowledgements come in any tick, and
 * the lease ends in any. Else the disk tells. */
static bool tick_must_open_gates(const struct tick *tick) {
    const struct replication *replication = &tick->server->replication;
    return tick->server->owes_gates || sync_is_gating(&replication->sync) ||
           tick->gate_epoch != replication_answer_epoch(replication);
}

/* What this tick has written counts, too: the target must have it, and clients their answers. */
static void tick_step_failover(struct tick *tick) {
    struct server *server = tick->server;
    struct replication *replication = &server->replication;
    if (replication->failover.state == REPLICATION_FAILOVER_WAITS && server->persistence != NULL) {
        replication->group = persistence_last_group(server->persistence);
        if (sync_is_gating(&replication->sync)) {
            tick_open_gates(tick);
        }
    }
    failover_step(server, tick->gated_first != NULL);
}

/* Send what clients received without asking, to some of them. true: more are left. */
static bool tick_finish_pushed(struct tick *tick) {
    for (int i = 0; i < PUSHED_MAX && tick->pushed_first != NULL; i++) {
        struct connection *connection = tick->pushed_first;
        tick->pushed_first = connection->pushed_next;
        if (tick->pushed_first == NULL) {
            tick->pushed_last = NULL;
        }
        connection->is_pushed = false;
        tick_finish(connection);
    }
    return tick->pushed_first != NULL;
}

/* Close killed clients. true: more are left. None of their requests run any more, so the rest can
 * wait for the next tick. */
static bool tick_close_killed(struct tick *tick) {
    for (int i = 0; i < CLOSED_MAX && tick->server->killed_first != NULL; i++) {
        connection_close(connection_of(tick->server->killed_first), "killed");
    }
    return tick->server->killed_first != NULL;
}

/* Close the largest clients until the rest fits maxmemory-clients. true: more are left. */
static bool tick_evict_clients(struct tick *tick) {
    struct server *server = tick->server;
    uint64_t limit = server_client_memory_limit(server);
    for (int i = 0; limit > 0 && server->client_memory.total > limit; i++) {
        struct session *session = client_memory_largest(&server->client_memory);
        if (session == NULL || i == CLOSED_MAX) {
            return session != NULL;
        }
        /* It may have shrunk: its watches may have been dropped when another client changed a
         * key. */
        uint8_t size_class = session->size_class;
        client_memory_count(&server->client_memory, session);
        if (session->size_class < size_class) {
            continue;
        }
        server->stats.clients_evicted++;
        log_write(LOG_WARNING,
                  "clients use too much memory, closing one of the largest id=%llu addr=%s "
                  "bytes=%zu all=%llu maxmemory-clients=%llu",
                  (unsigned long long)session->id, session->address, session->counted_size,
                  (unsigned long long)server->client_memory.total, (unsigned long long)limit);
        connection_close(connection_of(session), "maxmemory-clients");
    }
    return false;
}

/* A pause ends on timeout, on CLIENT UNPAUSE, or at shutdown. */
static void tick_check_pause_time(struct tick *tick) {
    struct server *server = tick->server;
    if (server->pause != SERVER_PAUSE_NONE &&
        (server->clock.monotonic_ms >= server->pause_until_ms || tick->is_draining)) {
        server_end_pause(server);
    }
    if (tick->is_draining) {
        (void)failover_abort(server, "shutdown");
    }
    tick_hold_due(tick, server_pause(server) != SERVER_PAUSE_NONE);
}

/* Also where a pause of all commands ends during a FAILOVER, which goes on pausing writes. */
static void tick_resume_paused(struct tick *tick) {
    if (tick->held_by <= server_pause(tick->server)) {
        return;
    }
    tick->held_by = SERVER_PAUSE_NONE;
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

static void tick_note_buffers(struct tick *tick, const struct session *session) {
    uint64_t input = session->query_buffer_size;
    uint64_t output = session->output.capacity;
    tick->input_max = input > tick->input_max ? input : tick->input_max;
    tick->output_max = output > tick->output_max ? output : tick->output_max;
}

/* Continue the walk over all clients, which starts once a second, a few clients per tick. true:
 * more are left. */
static bool tick_check_times(struct tick *tick) {
    for (int i = 0; i < CHECKED_MAX && tick->check_next != NULL; i++) {
        struct connection *connection = tick->check_next;
        struct session *next = connection->session.next;
        tick->check_next = next != NULL ? connection_of(next) : NULL;
        tick_note_buffers(tick, &connection->session);
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
        latency_add(&server->latency, event,
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

/* The clock has been corrected: report what durations (EXPIRE) have shifted by. true: more are left. */
static bool tick_tell_durations(const struct tick *tick) {
    uint64_t begin = clock_ticks();
    bool has_more = false;
    while (!tick->is_behind) {
        has_more = registry_tell_durations(tick->server->registry, DUE_KEYS_MAX);
        if (!has_more || clock_ticks_to_ns(clock_ticks() - begin) >= CHORE_BUDGET_NS) {
            break;
        }
    }
    return has_more;
}

/* Roll over boards whose periods have ended, and remove expired keys. true: more are left. */
static bool tick_handle_due(struct tick *tick) {
    tick_hold_due(tick,
                  server_pause(tick->server) != SERVER_PAUSE_NONE); /* which commands may change */
    int64_t due_ms = registry_next_due(tick->server->registry);
    if (tick->server->durability.is_loading || !tick_may_run_due(tick->server)) {
        return false;
    }
    bool has_more = tick_tell_durations(tick);
    if (due_ms == REGISTRY_NO_EXPIRY || due_ms > tick->server->clock.now_ms) {
        return has_more;
    }
    has_more |= tick_run_some(tick, registry_roll_due, "roll-cycle");
    return tick_run_some(tick, registry_expire_due, "expire-cycle") || has_more;
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

static void tick_set_idle(struct tick *tick, bool is_active) {
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

/* Wake up for the next expiry, the next end of a period, a board that opens, the end of a pause, or
 * what those who follow boards are told. The timer's clock does not follow clock steps: what a step
 * makes due is found by the next tick, within a second. */
static void tick_set_wake(struct tick *tick) {
    const struct server *server = tick->server;
    int64_t at_ms = registry_next_due(server->registry);
    bool is_still = !server_may_change(server);
    at_ms = at_ms == REGISTRY_NO_EXPIRY || !tick_may_run_due(server) ? INT64_MAX : at_ms;
    if (server->waits.opens_ms != 0 && server->waits.opens_ms < at_ms && !is_still) {
        at_ms = server->waits.opens_ms;
    }
    if (server->pause != SERVER_PAUSE_NONE &&
        server->pause_until_ms - server->clock.monotonic_ms < at_ms - server->clock.now_ms) {
        at_ms = server->pause_until_ms - server->clock.monotonic_ms + server->clock.now_ms;
    }
    if (tick->auth_first != NULL &&
        tick->auth_due_ms - server->clock.monotonic_ms < at_ms - server->clock.now_ms) {
        at_ms = tick->auth_due_ms - server->clock.monotonic_ms + server->clock.now_ms;
    }
    int64_t give_up_ms = wait_next_due_ms(&server->waits);
    if (give_up_ms != REGISTRY_NO_EXPIRY &&
        give_up_ms - server->clock.monotonic_ms < at_ms - server->clock.now_ms) {
        at_ms = give_up_ms - server->clock.monotonic_ms + server->clock.now_ms;
    }
    int64_t follow_ms = follow_wait_ms(server);
    if (follow_ms != INT64_MAX && follow_ms < at_ms - server->clock.now_ms) {
        at_ms = server->clock.now_ms + follow_ms;
    }
    int64_t failover_ms = failover_due_ms(server);
    if (failover_ms != INT64_MAX &&
        failover_ms - server->clock.monotonic_ms < at_ms - server->clock.now_ms) {
        at_ms = failover_ms - server->clock.monotonic_ms + server->clock.now_ms;
    }
    if (at_ms == tick->wake_at_ms) {
        return;
    }
    tick->wake_at_ms = at_ms;
    if (at_ms == INT64_MAX) {
        uv_timer_stop(&tick->wake);
        return;
    }
    int64_t wait_ms = at_ms - server->clock.now_ms;
    uv_timer_start(&tick->wake, tick_on_wake, wait_ms > 0 ? (uint64_t)wait_ms : 1, 0);
}

/* ---- stopping ---- */

static void tick_close_handle(uv_handle_t *handle) {
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* Waiting requests are dropped without running. */
static void tick_drop_queue(struct tick *tick) {
    for (struct batch *batch = tick->queue_first; batch != NULL; batch = batch->next) {
        for (; batch->position < batch->count; batch->position++) {
            connection_release(connection_of(batch->entries[batch->position].session));
        }
    }
    tick->waiting_count = 0;
    tick_release_batches(tick);
}

/* The threads close their sockets and end. */
static void tick_join_networks(struct tick *tick) {
    for (unsigned i = 0; i < tick->network_count; i++) {
        if (tick->networks[i].has_thread) {
            network_join(&tick->networks[i]);
        }
    }
    if (tick->networks[0].has_thread) {
        wakeup_close(&tick->network_wake);
        wakeup_deinit(&tick->network_wake);
        tick_close_handle((uv_handle_t *)&tick->prepare);
    }
}

static void tick_stop(struct tick *tick) {
    if (tick->is_stopping) {
        return;
    }
    tick->is_stopping = true;
    tick_drop_queue(tick);
    shutdown_finish(tick->server);
    while (tick->server->session_first != NULL) {
        connection_close(connection_of(tick->server->session_first), "shutdown");
    }
    while (tick->dirty_first != NULL || tick->pushed_first != NULL) {
        (void)tick_finish_pushed(tick);
        tick_finish_dirty(tick); /* again and again, where memory for a message is missing */
    }
    tick_join_networks(tick);
    tick_set_idle(tick, false);
    tick_close_handle((uv_handle_t *)&tick->check);
    tick_close_handle((uv_handle_t *)&tick->idle);
    tick_close_handle((uv_handle_t *)&tick->second);
    tick_close_handle((uv_handle_t *)&tick->wake);
    tick_close_handle((uv_handle_t *)&tick->drain);
}

static void tick_on_drain_over(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    if (!tick->is_lingering) {
        log_write(LOG_WARNING, "shutdown: some clients did not read their replies in time");
    }
    tick_stop(tick);
}

void tick_shutdown(struct tick *tick, bool is_now) {
    if (tick->is_stopping) {
        return;
    }
    bool is_second = tick->is_draining;
    tick->is_draining = true;
    tick->server->is_shutdown_asked = true;
    if (!tick->server->retiring.is_begun) {
        tick->server->retiring = (struct server_retiring){
            .is_begun = true,
            .from_id = tick->server->session_next_id,
        };
    }
    if (!is_second) {
        log_write(LOG_NOTICE, "shutdown: clients=%u", tick->server->session_count);
        tick->stop_listening(tick->context);
        for (unsigned i = 0; i < tick->network_count; i++) {
            network_drain(&tick->networks[i]);
        }
    }
    if (is_now || is_second) {
        tick_stop(tick);
        return;
    }
    struct session *session = tick->server->session_first;
    for (; session != NULL; session = session->next) {
        tick_mark_dirty(tick, connection_of(session));
    }
    uv_timer_start(&tick->drain, tick_on_drain_over, DRAIN_MS, 0);
    tick_set_idle(tick, true);
}

/* Has every client received the replies to all that it had sent? */
static bool tick_is_drained(const struct tick *tick) {
    for (unsigned i = 0; i < tick->network_count; i++) {
        if (!tick->networks[i].is_drained) {
            return false;
        }
    }
    struct session *session = tick->server->session_first;
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

/* Everybody has their replies. If a client's next request arrived after its socket was closed, TCP
 * would reset the connection, and a reply on its way could be lost: then the client could not know that
 * its request has run, and would repeat it. So the sockets of clients that were active just now are
 * first closed in one direction, and what still comes, which is not run, is read away. */
static void tick_linger(struct tick *tick) {
    int64_t now_ms = tick->server->clock.monotonic_ms;
    struct session *session = tick->server->session_first;
    tick->is_lingering = true;
    while (session != NULL) {
        struct session *next = session->next;
        if (session->awaits_end || now_ms - session->active_at_ms > LINGER_MS ||
            !connection_end(connection_of(session))) {
            connection_close(connection_of(session), "shutdown");
        }
        session = next;
    }
    uv_timer_start(&tick->drain, tick_on_drain_over, LINGER_MS, 0);
}

static void tick_on_retired(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    tick->server->retiring.is_over = true;
    tick_wake(tick);
}

/* Are only those connected who wait for the end? */
static bool tick_is_deserted(const struct server *server) {
    if (server->session_count > RETIRED_LOOK_MAX) {
        return false;
    }
    const struct session *session = server->session_first;
    while (session != NULL && session->awaits_end) {
        session = session->next;
    }
    return session == NULL;
}

static void tick_check_retiring(struct tick *tick) {
    struct server *server = tick->server;
    bool is_retiring = server->retiring.is_begun && !server->is_shutdown_asked;
    if (is_retiring && (server->retiring.is_over || tick_is_deserted(server))) {
        shutdown_end_retiring(server);
        is_retiring = false;
    }
    if (is_retiring != tick->is_retiring) {
        tick->is_retiring = is_retiring;
        if (is_retiring) {
            int64_t left_ms = server->retiring.until_ms - server->clock.monotonic_ms;
            uv_timer_start(&tick->drain, tick_on_retired, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
        } else {
            uv_timer_stop(&tick->drain);
        }
    }
}

static void tick_check_shutdown(struct tick *tick) {
    struct server *server = tick->server;
    if ((server->retiring.is_begun || tick->is_retiring) && !tick->is_draining) {
        tick_check_retiring(tick);
    }
    if (server->is_shutdown_asked && !tick->is_draining) {
        tick_shutdown(tick, server->is_shutdown_now);
    }
    if (!tick->is_draining || tick->is_stopping) {
        return;
    }
    if (!tick->is_lingering && tick_is_drained(tick)) {
        tick_linger(tick);
    }
    if (tick->is_lingering && server->session_count == 0) {
        tick_stop(tick);
    }
}

/* Requests that come soon after each other are waited for without sleeping. */
static void tick_note_requests(struct tick *tick) {
    if (tick->spin_ns > 0) {
        uint64_t now_ns = uv_hrtime();
        tick->is_request_near = now_ns - tick->requests_at_ns < (uint64_t)tick->spin_ns;
        tick->requests_at_ns = now_ns;
    }
}

/* ---- the time of a tick ---- */

static uint64_t tick_thread_cpu_ns(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Reading the thread's processor time is a system call. So it is read at most once in LONG_TICK_NS before a
 * tick, and once more behind a tick that took as long: what such a tick is said to have used is too much by
 * less than LONG_TICK_NS, and exact where ticks are long. */
static void tick_begin_time(struct tick *tick, uint64_t begin_ticks) {
    if (clock_ticks_to_ns(begin_ticks - tick->cpu_read_at_ticks) >= LONG_TICK_NS) {
        tick->cpu_read_at_ticks = begin_ticks;
        tick->cpu_ns = tick_thread_cpu_ns();
    }
}

static void tick_end_long(struct tick *tick, uint64_t elapsed_ns) {
    struct stats *stats = &tick->server->stats;
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
    tick_note_latency(tick, "tick", elapsed_ns, elapsed_ns);
    tick_note_latency(tick, "tick-cpu", elapsed_ns, used_ns);
}

static void tick_end_time(struct tick *tick, uint64_t begin_ticks) {
    struct stats *stats = &tick->server->stats;
    uint64_t elapsed_ns = clock_ticks_to_ns(clock_ticks() - begin_ticks);
    durations_add(&stats->ticks, elapsed_ns);
    if (elapsed_ns >= LONG_TICK_NS) {
        tick_end_long(tick, elapsed_ns);
    }
    if (elapsed_ns / 1000 > stats->tick_longest_us) {
        stats->tick_longest_us = elapsed_ns / 1000;
    }
}

/* ---- replication ---- */

static bool tick_begin_replication(struct tick *tick) {
    return tick->replicator != NULL && tick->replicate_begin(tick->replicator);
}

/* What replicas are sent leaves before the replies: a change that is answered is in their sockets, and
 * outlives this process. */
static bool tick_end_replication(struct tick *tick) {
    if (tick->replicator == NULL) {
        return false;
    }
    bool has_more = tick->replicate_end(tick->replicator);
    struct replica *replica = tick->server->replication.replicas;
    while (replica != NULL) {
        struct replica *next = replica->next; /* finishing may close this one */
        struct connection *connection = connection_of(replica->session);
        if (replica->session->output.size > 0) {
            struct network *network = connection->transport.network;
            tick_finish(connection);
            has_more |= network->has_thread && network_push(network);
        }
        replica = next;
    }
    return has_more;
}

/* ---- the loop's callbacks ---- */

static void tick_on_check(uv_check_t *check) {
    struct tick *tick = check->data;
    struct server *server = tick->server;
    uint64_t begin = clock_ticks();
    tick_begin_time(tick, begin);
    wakeup_wake(&tick->network_wake);
    server_update_time(server);
    tick_check_pause_time(tick);
    tick_take_batches(tick);
    tick->has_more = false;
    bool has_more = tick_begin_replication(tick);
    tick->is_behind = tick_is_behind(server);
    if (tick->waiting_count > 0) {
        tick_note_requests(tick);
        tick_run_queue(tick);
    }
    has_more |= tick_handle_due(tick);
    has_more |= tick_run_jobs(tick);
    waiting_serve_opened(server);
    waiting_serve_replicas(server);
    tick_step_failover(tick);
    server->replication.has_acks = false;
    has_more |= waiting_give_up(server, GIVEN_UP_MAX);
    has_more |= waiting_disconnect(server, GIVEN_UP_MAX);
    has_more |= follow_step(server);
    if (server->has_news) {
        tick_take_news(tick, false);
    }
    if (tick->replicator != NULL) {
        tick->replicate_close(tick->replicator);
    }
    tick->is_feeding = true;
    if (server->persistence != NULL) {
        has_more |= persistence_end_tick(server->persistence);
    }
    has_more |= tick_end_replication(tick);
    tick->is_feeding = false;
    if (server->persistence != NULL && tick_must_open_gates(tick)) {
        tick_open_gates(tick);
    }
    tick_finish_dirty(tick);
    has_more |= tick_finish_pushed(tick);
    has_more |= jobs_have_steps(server);
    tick_resume_paused(tick);
    connection_end_auth_waits(tick);
    has_more |= tick_close_killed(tick);
    has_more |= tick_evict_clients(tick);
    has_more |= tick_check_times(tick);
    has_more |= tick_free_some(tick, clock_ticks_to_ns(clock_ticks() - begin));
    if (server->persistence != NULL) {
        has_more |= persistence_step(server->persistence);
    }
    tick_release_batches(tick);
    has_more |= tick_push_replies(tick);
    tick_end_time(tick, begin);
    tick_check_shutdown(tick);
    if (!tick->is_stopping) {
        /* If the queue waits for the disk, the loop is woken once the disk has caught up. */
        tick_set_idle(tick, has_more || tick->has_more || tick_has_batches(tick) ||
                                (tick->waiting_count > 0 && !tick_is_behind(server)));
        tick_set_wake(tick);
    }
}

static void tick_note_networks(struct tick *tick) {
    struct stats *stats = &tick->server->stats;
    stats->network_count = tick->network_count;
    for (unsigned i = 0; i < tick->network_count; i++) {
        struct network *network = &tick->networks[i];
        stats->networks[i] = (struct stats_network){
            .client_count = network->client_count,
            .reads = atomic_load_explicit(&network->reads, memory_order_relaxed),
            .writes = atomic_load_explicit(&network->writes, memory_order_relaxed),
        };
    }
}

static void tick_on_second(uv_timer_t *timer) {
    struct tick *tick = timer->data;
    struct server *server = tick->server;
    server_update_time(server);
    tick_note_networks(tick);
    stats_sample(&server->stats, server->clock.monotonic_ms);
    if (server->persistence != NULL) {
        persistence_second(server->persistence);
    }
    if (tick->replicator != NULL) {
        tick->replicate_second(tick->replicator);
        tick_set_idle(tick, true); /* what it has to say leaves with a tick */
    }
    audit_second(server);
    tick_free_idle_buffers(tick);
    memory_settle();
    if (tick->check_next == NULL && server->session_first != NULL) {
        tick->check_next = connection_of(server->session_first);
        tick->input_max = 0;
        tick->output_max = 0;
    }
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

void tick_wake(struct tick *tick) {
    if (!tick->is_stopping) { /* its handles are closed, and a started one would keep the loop */
        tick_set_idle(tick, true);
    }
}

/* ---- networks ---- */

static bool tick_has_requests(void *context) {
    return tick_has_batches(context);
}

/* Before the loop waits: see ring.h. */
static void tick_on_prepare(uv_prepare_t *prepare) {
    struct tick *tick = prepare->data;
    if (tick->is_idle_active) {
        return;
    }
    if (tick->is_request_near) {
        tick->is_request_near = wakeup_spin(tick->spin_ns, tick_has_requests, tick);
    }
    wakeup_sleep(&tick->network_wake);
    if (tick_has_batches(tick)) {
        tick_set_idle(tick, true);
    }
}

/* How long to wait without sleeping: not where there are fewer processors than threads, whose time
 * that would take. */
static int64_t tick_spin_time(unsigned thread_count) {
    enum { SPIN_NS = 50000 };
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) != 0) {
        return 0;
    }
    return CPU_COUNT(&set) > (int)thread_count ? SPIN_NS : 0;
}

static struct network_options tick_options_of(struct tick *tick) {
    return (struct network_options){
        .limits = &tick->limits,
        .find_command = command_find_request,
        .acceptor = tick->acceptor,
        .engine_wake = &tick->network_wake,
        .spin_ns = tick->spin_ns,
    };
}

static bool tick_start_networks(struct tick *tick, unsigned count) {
    tick->spin_ns = tick_spin_time(count);
    tick->prepare.data = tick;
    if (!wakeup_init(&tick->network_wake, tick->loop) ||
        uv_prepare_init(tick->loop, &tick->prepare) != 0 ||
        uv_prepare_start(&tick->prepare, tick_on_prepare) != 0) {
        return false;
    }
    struct network_options options = tick_options_of(tick);
    for (unsigned i = 0; i < count; i++) {
        options.number = i + 1;
        if (!network_start(&tick->networks[i], &options)) {
            return false;
        }
        options.acceptor = NULL; /* the first one's */
        tick->network_count++;
    }
    return true;
}

static bool tick_init_networks(struct tick *tick) {
    unsigned count = (unsigned)tick->server->settings.io_threads;
    count = count > 1 ? count : 1;
    tick->networks_memory = memory_allocate_zeroed((count + 1) * sizeof *tick->networks);
    if (tick->networks_memory == NULL) {
        return false;
    }
    uintptr_t at = ((uintptr_t)tick->networks_memory + RING_CACHE_LINE - 1) &
                   ~(uintptr_t)(RING_CACHE_LINE - 1);
    tick->networks = (struct network *)at;
    tick_publish_limits(tick);
    if (count > 1) {
        return tick_start_networks(tick, count);
    }
    const struct network_options options = tick_options_of(tick);
    tick->network_count = 1;
    return network_init(&tick->networks[0], tick->loop, &options);
}

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
        uv_timer_start(&tick->second, tick_on_second, SECOND_MS, SECOND_MS) == 0 &&
        tick_init_networks(tick);
    tick_note_networks(tick);
    return is_ready;
}

void tick_deinit(struct tick *tick) {
    tick_take_batches(tick); /* what was closed last */
    tick_drop_queue(tick);
    for (unsigned i = 0; i < tick->network_count; i++) {
        network_deinit(&tick->networks[i]);
    }
    memory_free(tick->networks_memory);
    while (tick->buffer_count > 0) {
        buffer_deinit(&tick->buffers[--tick->buffer_count]);
    }
}
