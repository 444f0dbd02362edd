/* The engine's half of a client. See connection.h.
 *
 * On the engine's own loop, output is written from the session's buffer, and what does not fit the
 * socket stays there. With a thread, output is handed over as it is: a short one is copied into the
 * batch, a long one goes with its buffer. */
#include "server/loop/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/system/log.h"

enum {
    WRITE_MAX = 512 * 1024, /* per tick */
    UNKNOWN_OUTPUT_MAX = 1024,
    HANDED_FREE_MAX = 16 * 1024,
};

/* Unauthenticated clients get smaller limits. */
static bool is_known_client(const struct connection *connection) {
    return server_is_authenticated(connection->tick->server, &connection->session);
}

/* ---- waiting for the disk ---- */

static void leave_gate(struct connection *connection) {
    struct connection_gate *gate = &connection->gate;
    struct tick *tick = connection->tick;
    if (gate->mark_group == 0) {
        return;
    }
    if (gate->previous != NULL) {
        gate->previous->gate.next = gate->next;
    } else {
        tick->gated_first = gate->next;
    }
    if (gate->next != NULL) {
        gate->next->gate.previous = gate->previous;
    }
    *gate = (struct connection_gate){.mark_group = 0};
}

void connection_gate(struct connection *connection, size_t size_before, uint64_t group) {
    struct connection_gate *gate = &connection->gate;
    struct tick *tick = connection->tick;
    size_t size = connection->session.output.size;
    if (gate->mark_group == 0) {
        *gate = (struct connection_gate){.free_size = size_before,
                                         .mark_end = size,
                                         .mark_group = group,
                                         .next = tick->gated_first};
        if (gate->next != NULL) {
            gate->next->gate.previous = connection;
        }
        tick->gated_first = connection;
    } else if (gate->mark_group == group && gate->mark_end == size_before) {
        gate->mark_end = size;
    } else {
        gate->rest_group = group; /* groups only increase */
    }
}

void connection_open_gate(struct connection *connection, uint64_t group) {
    struct connection_gate *gate = &connection->gate;
    while (gate->mark_group != 0 && gate->mark_group <= group) {
        if (gate->rest_group == 0) {
            leave_gate(connection);
            return;
        }
        gate->free_size = gate->mark_end;
        gate->mark_end = connection->session.output.size;
        gate->mark_group = gate->rest_group;
        gate->rest_group = 0;
    }
}

/* ---- open and close ---- */

union socket_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

static void print_address(const union socket_address *address, char *out) {
    char host[INET6_ADDRSTRLEN];
    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host);
        snprintf(out, SESSION_ADDRESS_MAX, "%s:%u", host, ntohs(address->v4.sin_port));
    } else if (address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host);
        snprintf(out, SESSION_ADDRESS_MAX, "[%s]:%u", host, ntohs(address->v6.sin6_port));
    } else {
        snprintf(out, SESSION_ADDRESS_MAX, "?:0");
    }
}

static bool is_loopback(const union socket_address *address) {
    if (address->any.sa_family == AF_INET) {
        return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
    }
    if (address->any.sa_family == AF_INET6) {
        const struct in6_addr *v6 = &address->v6.sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(v6) || (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 127);
    }
    return true;
}

/* Tell a rejected client why. What does not fit the empty socket buffer is not sent. */
static void refuse(struct tick *tick, int fd, const char *text) {
    tick->server->stats.connections_rejected++;
    (void)!write(fd, text, strlen(text));
    close(fd);
}

static const char *refusal(const struct server *server, bool is_local) {
    if (server->session_count >= (uint64_t)server->settings.maxclients) {
        return "-ERR max number of clients reached\r\n";
    }
    if (server->settings.protected_mode && !server_has_password(server) && !is_local) {
        return "-DENIED This server is in protected mode: no password is set, so only clients on "
               "the same machine are let in. To accept clients from elsewhere, set one "
               "('requirepass' in the configuration file, or CONFIG SET requirepass from this "
               "machine), or, in a network that nobody else can reach, switch the protection off "
               "('protected-mode no').\r\n";
    }
    return NULL;
}

static void set_socket_options(int fd, const struct settings *settings) {
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (settings->tcp_keepalive_s > 0) {
        int interval_s = (int)(settings->tcp_keepalive_s / 3);
        int idle_s = (int)settings->tcp_keepalive_s;
        int probes = 3;
        interval_s = interval_s > 0 ? interval_s : 1;
        setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
        setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    }
}

static void fill_addresses(struct session *session, int fd, const union socket_address *peer,
                           const char *unix_path) {
    if (unix_path != NULL) {
        snprintf(session->address, SESSION_ADDRESS_MAX, "%.*s:0", SESSION_ADDRESS_MAX - 3,
                 unix_path);
        snprintf(session->local_address, SESSION_ADDRESS_MAX, "%s", session->address);
        return;
    }
    union socket_address local = {0};
    socklen_t size = sizeof local;
    print_address(peer, session->address);
    getsockname(fd, &local.any, &size);
    print_address(&local, session->local_address);
}

/* What it holds for input, wherever that is. */
static void count_input(struct connection *connection) {
    struct session *session = &connection->session;
    session->query_buffer_size = connection->unfinished_size + connection->held.memory_size;
    session->input_memory_size = sizeof *connection - sizeof *session +
                                 connection->transport_memory_size + connection->held.memory_size;
}

/* ---- telling the transport ---- */

static bool is_stopped(const struct connection *connection) {
    return connection->session.is_close_after_reply;
}

/* What the transport is to know besides its output. */
static void fill_message(struct connection *connection, struct transport_message *message) {
    message->done = connection->done;
    message->is_authenticated = connection->session.is_authenticated;
    message->is_stopped = is_stopped(connection);
    message->is_report_wanted = is_stopped(connection) || connection->tick->is_draining;
    connection->done = 0;
    if (connection->unfinished_size == 0 && connection->transport_memory_size > 0) {
        connection->transport_memory_size = 0; /* it frees what its requests were in */
        count_input(connection);
    }
    connection->was_authenticated = message->is_authenticated;
    connection->was_stopped = message->is_stopped;
    connection->was_draining = connection->tick->is_draining;
}

static bool has_news(const struct connection *connection) {
    return connection->done > 0 || connection->was_stopped != is_stopped(connection) ||
           connection->was_draining != connection->tick->is_draining ||
           connection->was_authenticated != connection->session.is_authenticated;
}

/* No memory for a message: it is tried again in the next tick. */
static void try_again(struct connection *connection) {
    connection->tick->has_more = true;
    tick_mark_dirty(connection->tick, connection);
}

static void tell(struct connection *connection) {
    if (!has_news(connection)) {
        return;
    }
    struct transport *transport = &connection->transport;
    if (!transport->network->has_thread) {
        struct transport_message message = {.transport = transport};
        fill_message(connection, &message);
        message.is_report_wanted = false;
        transport_apply(transport, &message, NULL);
        return;
    }
    struct transport_message *message = network_message(transport->network, transport, 0, NULL);
    if (message == NULL) {
        try_again(connection);
        return;
    }
    fill_message(connection, message);
}

static void tell_close(struct connection *connection) {
    struct transport *transport = &connection->transport;
    struct transport_message own = {.transport = transport, .is_closed = true};
    connection->is_close_told = true;
    if (!transport->network->has_thread) {
        transport_apply(transport, &own, NULL);
        return;
    }
    struct transport_message *message = network_message(transport->network, transport, 0, NULL);
    if (message == NULL) {
        connection->is_close_told = false;
        try_again(connection);
        return;
    }
    message->is_closed = true;
}

/* ---- open and close, continued ---- */

static struct connection *create(struct tick *tick, int fd) {
    struct connection *connection = memory_allocate_zeroed(sizeof *connection);
    if (connection == NULL) {
        return NULL;
    }
    connection->tick = tick;
    connection->known_at_ms = tick->server->clock.monotonic_ms;
    connection->transport.session = &connection->session;
    connection->transport.fd = fd;
    connection->transport.network = tick_least_network(tick);
    return connection;
}

/* false: no memory. */
static bool tell_open(struct connection *connection) {
    struct transport *transport = &connection->transport;
    struct transport_message own = {
        .transport = transport,
        .is_opened = true,
        .is_authenticated = connection->session.is_authenticated,
    };
    connection->was_authenticated = own.is_authenticated;
    if (!transport->network->has_thread) {
        transport_apply(transport, &own, NULL);
        return true;
    }
    struct transport_message *message = network_message(transport->network, transport, 0, NULL);
    if (message != NULL) {
        *message = own;
    }
    return message != NULL;
}

bool connection_open(struct tick *tick, int fd, bool is_unix_socket, const char *unix_path) {
    struct server *server = tick->server;
    server->stats.connections_received++;
    union socket_address peer = {0};
    socklen_t size = sizeof peer;
    getpeername(fd, &peer.any, &size);
    const char *text = refusal(server, is_unix_socket || is_loopback(&peer));
    if (text != NULL) {
        refuse(tick, fd, text);
        return false;
    }
    server_update_time(server);
    struct connection *connection = create(tick, fd);
    if (connection == NULL) {
        refuse(tick, fd, "-ERR out of memory\r\n");
        return false;
    }
    if (!is_unix_socket) {
        set_socket_options(fd, &server->settings);
    }
    struct session *session = &connection->session;
    session_init(session, server->session_next_id++, server->clock.monotonic_ms);
    session->fd = fd;
    session->is_unix_socket = is_unix_socket;
    session->output.size_max = server->settings.output_limit.hard_bytes;
    fill_addresses(session, fd, &peer, is_unix_socket ? unix_path : NULL);
    count_input(connection);
    server_add_session(server, session);
    if (!tell_open(connection)) {
        server_remove_session(server, session);
        session_deinit(session);
        memory_free(connection);
        refuse(tick, fd, "-ERR out of memory\r\n");
        return false;
    }
    connection->transport.network->client_count++;
    log_write(LOG_VERBOSE, "client connected id=%llu addr=%s clients=%u",
              (unsigned long long)session->id, session->address, server->session_count);
    return true;
}

static void free_if_unused(struct connection *connection) {
    if (connection->is_transport_closed && connection->entry_count == 0 && !connection->is_dirty) {
        memory_free(connection);
    }
}

void connection_release(struct connection *connection) {
    CHECK(connection->entry_count > 0);
    connection->entry_count--;
    free_if_unused(connection);
}

void connection_close(struct connection *connection, const char *reason) {
    if (connection->session.is_closed) {
        return;
    }
    struct session *session = &connection->session;
    struct server *server = connection->tick->server;
    session->is_closed = true;
    leave_gate(connection);
    if (connection->tick->check_next == connection) {
        connection->tick->check_next = session->next != NULL ? connection_of(session->next) : NULL;
    }
    log_write(LOG_VERBOSE, "client closed id=%llu addr=%s reason=\"%s\" clients=%u",
              (unsigned long long)session->id, session->address, reason, server->session_count - 1);
    server_remove_session(server, session);
    server->stats.connections_closed++;
    session_deinit(session);
    transaction_clear(&connection->held);
    connection->transport.network->client_count--;
    tell_close(connection);
}

/* ---- input ---- */

static bool is_over_query_limit(struct connection *connection) {
    uint64_t limit = connection->tick->server->settings.client_query_buffer_limit;
    size_t held_size = session_held_size(&connection->session);
    if (limit == 0 || held_size <= limit) {
        return false;
    }
    log_write(LOG_WARNING,
              "client sent too much unfinished input, closing it id=%llu addr=%s bytes=%zu "
              "client-query-buffer-limit=%llu",
              (unsigned long long)connection->session.id, connection->session.address, held_size,
              (unsigned long long)limit);
    connection_close(connection, "client-query-buffer-limit");
    return true;
}

static const char *describe_failure(enum transport_failure failure) {
    static const char *const texts[] = {
        [TRANSPORT_LOST] = "connection lost",
        [TRANSPORT_NO_MEMORY_FOR_INPUT] = "no memory for its input",
        [TRANSPORT_NO_MEMORY_FOR_REQUESTS] = "no memory for its requests",
    };
    return texts[failure];
}

void connection_take_note(const struct transport_note *note) {
    struct connection *connection = connection_of(note->session);
    if ((note->events & TRANSPORT_CLOSED) != 0) {
        connection->is_transport_closed = true;
        free_if_unused(connection);
        return;
    }
    if (connection->session.is_closed) {
        return;
    }
    connection->unfinished_size = note->unfinished_size;
    connection->transport_memory_size = note->memory_size;
    connection->is_input_over |= (note->events & TRANSPORT_INPUT_OVER) != 0;
    count_input(connection);
    client_memory_count(&connection->tick->server->client_memory, &connection->session);
    if ((note->events & TRANSPORT_FAILED) != 0) {
        connection_close(connection, describe_failure(note->failure));
    } else if ((note->events & TRANSPORT_INPUT) == 0 || !is_over_query_limit(connection)) {
        tick_mark_dirty(connection->tick, connection);
    }
}

/* ---- holding ---- */

void connection_hold(struct connection *connection, const struct queue_entry *entry,
                     enum connection_hold hold) {
    struct bytes error = {.at = entry->error, .size = 0};
    struct request request = entry->request;
    if (entry->command == QUEUE_PROTOCOL_ERROR) {
        error.size = strlen(entry->error) + 1;
        request = (struct request){.count = 1, .args = &error};
    } else if (entry->command == QUEUE_CLOSE) {
        request = (struct request){.count = 0};
    }
    if (!transaction_queue(&connection->held, &request, entry->command, 0)) {
        connection_close(connection, "no memory for its input");
        return;
    }
    connection->queued--;
    connection->hold = hold;
    count_input(connection);
    tick_mark_dirty(connection->tick, connection);
}

/* The requests that were held back are to run: they follow what is queued. */
static void queue_held(struct connection *connection) {
    if (connection->hold == CONNECTION_RUNS && connection->held.count > 0 &&
        connection->queued == 0 && !connection->session.is_close_after_reply) {
        if (tick_queue_held(connection->tick, connection)) {
            count_input(connection);
        } else {
            connection_close(connection, "no memory for its input");
        }
    }
}

void connection_resume(struct connection *connection) {
    connection->hold = CONNECTION_RUNS;
    connection_finish(connection);
}

/* ---- writing ---- */

/* The output that counts for the limits. What was just handed over does not, if it is little: it may
 * be in the socket before long, and no limit is so low that a short reply closes the client. */
static size_t limited_size(const struct connection *connection) {
    const struct transport *transport = &connection->transport;
    size_t output_size = connection->session.output.size;
    size_t handed_size = connection_unsent_size(connection) - output_size;
    if (handed_size <= HANDED_FREE_MAX &&
        !atomic_load_explicit(&transport->has_backlog, memory_order_relaxed)) {
        handed_size = 0;
    }
    return output_size + handed_size;
}

/* Is the unsent output over the client's limit? If so, the client is closed. */
static bool is_over_output_limit(struct connection *connection) {
    struct session *session = &connection->session;
    struct server *server = connection->tick->server;
    const struct setting_output_limit *limit = &server->settings.output_limit;
    size_t unsent_size = limited_size(connection);
    const char *reason = NULL;
    if (session->output.is_broken) {
        reason = "client-output-buffer-limit";
    } else if (!is_known_client(connection) && unsent_size > UNKNOWN_OUTPUT_MAX) {
        reason = "unread replies before authentication";
    } else if (limit->hard_bytes > 0 && unsent_size > limit->hard_bytes) {
        reason = "client-output-buffer-limit";
    } else if (limit->soft_bytes > 0 && unsent_size > limit->soft_bytes) {
        if (session->soft_limit_since_ms == 0) {
            session->soft_limit_since_ms = server->clock.monotonic_ms;
        }
        if (server->clock.monotonic_ms - session->soft_limit_since_ms >=
            limit->soft_seconds * 1000) {
            reason = "client-output-buffer-limit, soft";
        }
    } else {
        session->soft_limit_since_ms = 0;
    }
    if (reason == NULL) {
        return false;
    }
    server->stats.unexpected_closed_output++;
    log_write(LOG_WARNING,
              "client does not read, closing it id=%llu addr=%s unsent=%zu limit=\"%s\"",
              (unsigned long long)session->id, session->address, unsent_size, reason);
    connection_close(connection, reason);
    return true;
}

/* size bytes are in the socket or with the transport. */
static void drop_sent(struct connection *connection, size_t size) {
    struct session *session = &connection->session;
    if (connection->gate.mark_group != 0) {
        connection->gate.free_size -= size;
        connection->gate.mark_end -= size;
    }
    session->active_at_ms = connection->tick->server->clock.monotonic_ms;
    session->output_bytes += (uint64_t)size;
}

/* On the engine's own loop. false: the connection was closed. */
static bool write_output(struct connection *connection, size_t sendable) {
    struct session *session = &connection->session;
    size_t size = sendable < WRITE_MAX ? sendable : (size_t)WRITE_MAX;
    ssize_t written = write(session->fd, session->output.at, size);
    network_count_call(&connection->transport.network->writes);
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
        connection_close(connection, "connection lost");
        return false;
    }
    if (written > 0) {
        buffer_drop_front(&session->output, (size_t)written);
        drop_sent(connection, (size_t)written);
        connection->tick->server->stats.output_bytes += (uint64_t)written;
    }
    return true;
}

/* The first size bytes of the output, with their buffer if these are all. NULL: no memory. */
static struct outgoing *take_output(struct buffer *output, size_t size) {
    struct outgoing *outgoing = memory_allocate_zeroed(sizeof *outgoing);
    if (outgoing == NULL) {
        return NULL;
    }
    outgoing->is_engines = true;
    if (size == output->size) {
        outgoing->buffer = *output;
        buffer_init(output, output->size_max);
        return outgoing;
    }
    buffer_append(&outgoing->buffer, output->at, size);
    if (outgoing->buffer.is_broken) {
        buffer_deinit(&outgoing->buffer);
        memory_free(outgoing);
        return NULL;
    }
    buffer_drop_front(output, size);
    return outgoing;
}

/* To the thread that has the socket. */
static void hand_over(struct connection *connection, size_t sendable) {
    struct transport *transport = &connection->transport;
    struct buffer *output = &connection->session.output;
    bool is_copied = sendable <= REPLIES_COPIED_MAX;
    char *bytes = NULL;
    struct transport_message *message =
        network_message(transport->network, transport, is_copied ? sendable : 0, &bytes);
    if (message == NULL) {
        try_again(connection);
        return;
    }
    fill_message(connection, message);
    if (is_copied) {
        memcpy(bytes, output->at, sendable);
        buffer_drop_front(output, sendable);
    } else {
        message->outgoing = take_output(output, sendable);
        if (message->outgoing == NULL) {
            try_again(connection);
            return;
        }
    }
    connection->handed_total += sendable;
    drop_sent(connection, sendable);
    message->is_report_wanted |= connection_unsent_size(connection) > CONNECTION_OUTPUT_LOW;
}

bool connection_flush(struct connection *connection) {
    struct session *session = &connection->session;
    struct buffer *output = &session->output;
    size_t sendable = connection_sendable_size(connection);
    if (sendable > 0 && !output->is_broken) {
        if (connection->transport.network->has_thread) {
            hand_over(connection, sendable);
        } else if (!write_output(connection, sendable)) {
            return false;
        }
    }
    size_t unsent_size = connection_unsent_size(connection);
    session->handed_size = unsent_size - output->size;
    if (output->size == 0 && !output->is_broken) {
        tick_take_buffer(connection->tick, session);
    }
    if (unsent_size == 0 && !output->is_broken) {
        session->soft_limit_since_ms = 0;
    } else if (is_over_output_limit(connection)) {
        return false;
    }
    if (connection->hold == CONNECTION_HELD_BY_OUTPUT && unsent_size <= CONNECTION_OUTPUT_LOW) {
        connection->hold = CONNECTION_RUNS;
    } else if (connection->hold == CONNECTION_RUNS && unsent_size > CONNECTION_OUTPUT_HIGH) {
        connection->hold = CONNECTION_HELD_BY_OUTPUT;
    }
    return true;
}

void connection_finish(struct connection *connection) {
    if (connection->session.is_closed) {
        if (!connection->is_close_told) {
            tell_close(connection);
        }
        free_if_unused(connection);
        return;
    }
    if (!connection_flush(connection)) {
        return;
    }
    struct session *session = &connection->session;
    queue_held(connection);
    if (connection->session.is_closed) {
        return;
    }
    if (connection->is_input_over && connection->queued == 0 && connection->held.count == 0) {
        session->is_close_after_reply = true;
    }
    if (session->is_close_after_reply && connection_unsent_size(connection) == 0) {
        connection_close(connection, "as asked");
        return;
    }
    tell(connection);
    client_memory_count(&connection->tick->server->client_memory, session);
    if (!connection->transport.network->has_thread) {
        transport_want_write(&connection->transport, connection_sendable_size(connection) > 0);
    }
}

/* Has the time to give the password expired? */
static bool is_late_to_authenticate(struct connection *connection) {
    int64_t timeout_s = connection->tick->server->settings.auth_timeout_s;
    int64_t now_ms = connection->tick->server->clock.monotonic_ms;
    if (is_known_client(connection) || timeout_s == 0) {
        connection->known_at_ms = now_ms;
        return false;
    }
    return now_ms - connection->known_at_ms >= timeout_s * 1000;
}

void connection_check_time(struct connection *connection) {
    const struct session *session = &connection->session;
    const struct server *server = connection->tick->server;
    int64_t timeout_s = server->settings.timeout_s;
    if (connection_unsent_size(connection) > 0 && is_over_output_limit(connection)) {
        return;
    }
    if (is_late_to_authenticate(connection) && connection->hold != CONNECTION_HELD_BY_PAUSE) {
        connection_close(connection, "not authenticated within auth-timeout");
        return;
    }
    if (timeout_s > 0 && !session->is_monitor && connection->hold != CONNECTION_HELD_BY_PAUSE &&
        server->clock.monotonic_ms - session->active_at_ms > timeout_s * 1000) {
        connection_close(connection, "idle for longer than timeout");
    }
}
