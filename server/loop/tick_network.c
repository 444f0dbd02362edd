/* The queue, and the networks that fill it. See tick.h.
 *
 * Invariant: the queue's batches are in order of arrival, and a batch's entries before its position
 * have run. Each waiting entry holds a reference to its connection until it has run or is dropped
 * (connection_release). */
#include "server/loop/connection.h"

#include <sched.h>
#include <unistd.h>

#include "codec/list.h"
#include "server/dispatch/command.h"
#include "server/dispatch/waiting.h"
#include "server/system/log.h"

/* Of a batch that another thread has filled; otherwise the connections were just used. */
static void tick_network_fetch_connections(const struct batch *batch, size_t begin, size_t end) {
    if (batch->network == NULL || !batch->network->has_thread) {
        return;
    }
    for (size_t i = begin; i < end && i < batch->count; i++) {
        connection_fetch(batch->entries[i].session);
    }
}

static void tick_network_append_batch(struct tick *tick, struct batch *batch) {
    enum { FETCHED_AHEAD = 4 };
    tick_network_fetch_connections(batch, 0, FETCHED_AHEAD);
    for (size_t i = 0; i < batch->count;) {
        struct session *session = batch->entries[i].session;
        struct connection *connection = connection_of(session);
        uint32_t count = 0;
        size_t size = 0;
        for (; i < batch->count && batch->entries[i].session == session; i++) {
            tick_network_fetch_connections(batch, i + FETCHED_AHEAD, i + FETCHED_AHEAD + 1);
            size += batch->entries[i].request.size;
            count++;
        }
        connection->queued += count;
        connection->entry_count += count;
        session->input_bytes += size;
    }
    LIST_APPEND(tick->queue_first, tick->queue_last, batch);
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

bool tick_network_queue_held(struct tick *tick, struct connection *connection) {
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
    tick_network_append_batch(tick, &requests->batch);
    connection->session.input_bytes = input_bytes; /* they were counted when they came */
    tick->has_more = true;
    return true;
}

void tick_network_release_batches(struct tick *tick) {
    while (tick->queue_first != NULL && tick->queue_first->position == tick->queue_first->count) {
        struct batch *batch = tick->queue_first;
        tick->queue_first = batch->next;
        if (tick->queue_first == NULL) {
            tick->queue_last = NULL;
        }
        if (tick->queue_at == batch) {
            tick->queue_at = batch->next;
        }
        /* All its entries have run or were dropped. */
        if (batch->network != NULL) {
            network_give_back(batch->network, batch);
        } else {
            session_transaction_clear(&((struct held_batch *)batch)->requests);
            memory_free(batch->entries);
            memory_free(batch);
        }
    }
}

static void tick_network_take_accepted(struct tick *tick, const struct batch *batch) {
    int64_t now_ms = tick->server->clock.monotonic_ms;
    for (unsigned i = 0; i < batch->accepted_count; i++) {
        if (tick->is_draining) {
            close(batch->accepted[i].fd);
        } else {
            (void)connection_open(tick, &batch->accepted[i]);
        }
    }
    tick->server->stats.connections_rejected += batch->turned_away.count;
    if (batch->proxy_refusals.count > 0) {
        char address[SESSION_ADDRESS_MAX];
        tick->server->stats.connections_rejected += batch->proxy_refusals.count;
        tick->proxy_refused_count += batch->proxy_refusals.count;
        if (tick->proxy_logged_at_ms == 0 || now_ms - tick->proxy_logged_at_ms >= TICK_SECOND_MS) {
            connection_print_address(&batch->proxy_refusals.peer, address);
            log_write(
                LOG_WARNING,
                "client refused on a listener of proxy-protocol addr=%s reason=\"%s\" count=%u",
                address, batch->proxy_refusals.reason, tick->proxy_refused_count);
            tick->proxy_logged_at_ms = now_ms;
            tick->proxy_refused_count = 0;
        }
    }
    if (batch->turned_away.error != 0) {
        if (tick->full_logged_at_ms == 0 || now_ms - tick->full_logged_at_ms >= TICK_FULL_LOG_MS) {
            tick->full_logged_at_ms = now_ms;
            log_write(
                LOG_WARNING,
                "no descriptor left, rejecting new clients error=\"%s\" advice=\"raise the limit "
                "(ulimit -n) or lower maxclients\"",
                strerror(batch->turned_away.error));
        }
    }
}

void tick_network_take_batches(struct tick *tick) {
    struct stats *stats = &tick->server->stats;
    for (unsigned i = 0; i < tick->network_count; i++) {
        struct network *network = &tick->networks[i];
        struct batch *batch;
        struct outgoing *outgoing;
        while ((batch = network_take(network)) != NULL) {
            stats->input_bytes += batch->read_bytes;
            stats->output_bytes += batch->written_bytes;
            LIST_TAKE_EACH(batch->written, outgoing) {
                tick_output_keep_buffer(tick, &outgoing->buffer);
                memory_free(outgoing);
            }
            network_reclaim(network, batch);
            tick_network_append_batch(tick, batch);
            for (unsigned note = 0; note < batch->note_count; note++) {
                connection_take_note(&batch->notes[note]);
            }
            tick_network_take_accepted(tick, batch);
        }
    }
}

bool tick_network_has_batches(struct tick *tick) {
    for (unsigned i = 0; i < tick->network_count; i++) {
        if (network_has_batch(&tick->networks[i])) {
            return true;
        }
    }
    return false;
}

bool tick_network_push_replies(struct tick *tick) {
    bool is_waiting = false;
    for (unsigned i = 0; i < tick->network_count; i++) {
        is_waiting |= tick->networks[i].has_thread && network_push(&tick->networks[i]);
    }
    return is_waiting;
}

struct network *tick_network_find_least(struct tick *tick) {
    struct network *least = &tick->networks[0];
    for (unsigned i = 1; i < tick->network_count; i++) {
        if (tick->networks[i].client_count < least->client_count) {
            least = &tick->networks[i];
        }
    }
    return least;
}

void tick_network_publish_limits(struct tick *tick) {
    const struct server *server = tick->server;
    atomic_store_explicit(&tick->limits.bulk_size_max, server->settings.proto_max_bulk_len,
                          memory_order_relaxed);
    atomic_store_explicit(&tick->limits.has_password, server_has_password(server),
                          memory_order_relaxed);
    atomic_store_explicit(&tick->limits.tcp_keepalive_s, (int)server->settings.tcp_keepalive_s,
                          memory_order_relaxed);
}

void tick_network_drop_queue(struct tick *tick) {
    for (struct batch *batch = tick->queue_first; batch != NULL; batch = batch->next) {
        for (; batch->position < batch->count; batch->position++) {
            connection_release(connection_of(batch->entries[batch->position].session));
        }
    }
    tick->waiting_count = 0;
    tick_network_release_batches(tick);
}

void tick_network_join(struct tick *tick) {
    for (unsigned i = 0; i < tick->network_count; i++) {
        if (tick->networks[i].has_thread) {
            network_join(&tick->networks[i]);
        }
    }
    if (tick->networks[0].has_thread) {
        worker_wakeup_close(&tick->network_wake);
        worker_wakeup_deinit(&tick->network_wake);
        tick_close_handle((uv_handle_t *)&tick->prepare);
    }
}

void tick_network_note_requests(struct tick *tick) {
    if (tick->spin_ns > 0) {
        uint64_t now_ns = uv_hrtime();
        tick->is_request_near = now_ns - tick->requests_at_ns < (uint64_t)tick->spin_ns;
        tick->requests_at_ns = now_ns;
    }
}

void tick_network_note(struct tick *tick) {
    struct stats *stats = &tick->server->stats;
    stats->network_count = tick->network_count;
    for (unsigned i = 0; i < tick->network_count; i++) {
        struct network *network = &tick->networks[i];
        stats->networks[i] = (struct stats_network){
            .client_count = network->client_count,
            .reads = atomic_load_explicit(&network->intake.reads, memory_order_relaxed),
            .writes = atomic_load_explicit(&network->intake.writes, memory_order_relaxed),
        };
    }
}

static bool tick_network_has_requests(void *context) {
    return tick_network_has_batches(context);
}

/* Before the loop waits: see batch.h. */
static void tick_network_on_prepare(uv_prepare_t *prepare) {
    struct tick *tick = prepare->data;
    if (tick->is_idle_active) {
        return;
    }
    if (tick->is_request_near) {
        tick->is_request_near = worker_wakeup_spin(tick->spin_ns, tick_network_has_requests, tick);
    }
    worker_wakeup_sleep(&tick->network_wake);
    if (tick_network_has_batches(tick)) {
        tick_set_idle(tick, true);
    }
}

static struct network_options tick_network_options_of(struct tick *tick) {
    return (struct network_options){
        .limits = &tick->limits,
        .find_command = command_find_request,
        .acceptor = tick->acceptor,
        .engine_wake = &tick->network_wake,
        .spin_ns = tick->spin_ns,
    };
}

bool tick_network_init(struct tick *tick) {
    unsigned count = (unsigned)tick->server->settings.io_threads;
    count = count > 1 ? count : 1;
    tick->networks_memory = memory_allocate_zeroed((count + 1) * sizeof *tick->networks);
    if (tick->networks_memory == NULL) {
        return false;
    }
    uintptr_t at = ((uintptr_t)tick->networks_memory + RING_CACHE_LINE - 1) &
                   ~(uintptr_t)(RING_CACHE_LINE - 1);
    tick->networks = (struct network *)at;
    tick_network_publish_limits(tick);
    if (count > 1) {
        /* No waiting without sleep where there are fewer processors than threads, whose time that would take. */
        enum { SPIN_NS = 50000 };
        cpu_set_t set;
        CPU_ZERO(&set);
        bool has_room = sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > (int)count;
        tick->spin_ns = has_room ? SPIN_NS : 0;
        tick->prepare.data = tick;
        if (!worker_wakeup_init(&tick->network_wake, tick->loop) ||
            uv_prepare_init(tick->loop, &tick->prepare) != 0 ||
            uv_prepare_start(&tick->prepare, tick_network_on_prepare) != 0) {
            return false;
        }
        struct network_options options = tick_network_options_of(tick);
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
    const struct network_options options = tick_network_options_of(tick);
    tick->network_count = 1;
    return network_init(&tick->networks[0], tick->loop, &options);
}
