/* One client's socket. uv_poll watches the sockets, and this file reads and writes them. So input
 * is read directly into the tick's buffers, unsent output stays in the session, and a descriptor
 * needs only one small handle.
 *
 * pending is empty for most clients most of the time. It holds an incomplete request, the input
 * after a request that must run first (before authentication), or what connection_hold has put
 * back. */
#include "server/loop/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/dispatch/command.h"
#include "server/system/log.h"

enum {
    READ_MAX = 256 * 1024,  /* per tick, for a connection with a long request */
    WRITE_MAX = 512 * 1024, /* per tick */
    PENDING_MIN = 512,
    ARGS_MAX = 1024 * 1024,
    INLINE_SIZE_MAX = 64 * 1024,
    READ_SMALL_MAX = 512,  /* while the queue is full */
    UNKNOWN_ARGS_MAX = 10, /* before authentication */
    UNKNOWN_BULK_MAX = 16 * 1024,
    /* Total input held for it: the longest bulk and some short arguments. */
    UNKNOWN_INPUT_MAX = 17 * 1024,
    UNKNOWN_OUTPUT_MAX = 1024,
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

static void count_pending(struct connection *connection) {
    const struct connection_input *pending = &connection->pending;
    struct session *session = &connection->session;
    session->query_buffer_size = pending->end - pending->begin;
    session->input_memory_size = sizeof *connection - sizeof *session + pending->capacity +
                                 connection->parser.span_capacity * sizeof(struct resp_span);
}

static void on_poll(uv_poll_t *poll, int status, int events);

static struct connection *create(struct tick *tick, int fd) {
    struct connection *connection = memory_allocate_zeroed(sizeof *connection);
    if (connection == NULL) {
        return NULL;
    }
    if (uv_poll_init(tick->loop, &connection->poll, fd) != 0) {
        memory_free(connection);
        return NULL;
    }
    connection->tick = tick;
    connection->poll.data = connection;
    connection->known_at_ms = uv_now(tick->loop);
    return connection;
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
    struct connection *connection = create(tick, fd);
    if (connection == NULL) {
        refuse(tick, fd, "-ERR out of memory\r\n");
        return false;
    }
    if (!is_unix_socket) {
        set_socket_options(fd, &server->settings);
    }
    struct session *session = &connection->session;
    server_update_time(server);
    session_init(session, server->session_next_id++, server->clock.monotonic_ms);
    session->fd = fd;
    session->is_unix_socket = is_unix_socket;
    session->output.size_max = server->settings.output_limit.hard_bytes;
    fill_addresses(session, fd, &peer, is_unix_socket ? unix_path : NULL);
    count_pending(connection);
    server_add_session(server, session);
    connection_update_events(connection);
    log_write(LOG_VERBOSE, "client connected id=%llu addr=%s clients=%u",
              (unsigned long long)session->id, session->address, server->session_count);
    return true;
}

static void free_if_unused(struct connection *connection) {
    if (connection->is_handle_closed && connection->entry_count == 0 && !connection->is_dirty) {
        memory_free(connection);
    }
}

static void on_closed(uv_handle_t *handle) {
    struct connection *connection = handle->data;
    connection->is_handle_closed = true;
    free_if_unused(connection);
}

void connection_release(struct connection *connection) {
    CHECK(connection->entry_count > 0);
    connection->entry_count--;
    free_if_unused(connection);
}

static void free_pending(struct connection *connection) {
    memory_free(connection->pending.at);
    connection->pending = (struct connection_input){0};
    count_pending(connection);
}

void connection_close(struct connection *connection, const char *reason) {
    if (connection->is_closing) {
        return;
    }
    struct session *session = &connection->session;
    struct server *server = connection->tick->server;
    connection->is_closing = true;
    leave_gate(connection);
    if (connection->tick->check_next == connection) {
        connection->tick->check_next = session->next != NULL ? connection_of(session->next) : NULL;
    }
    log_write(LOG_VERBOSE, "client closed id=%llu addr=%s reason=\"%s\" clients=%u",
              (unsigned long long)session->id, session->address, reason, server->session_count - 1);
    server_remove_session(server, session);
    server->stats.connections_closed++;
    int fd = session->fd;
    session_deinit(session);
    resp_parser_deinit(&connection->parser);
    free_pending(connection);
    uv_close((uv_handle_t *)&connection->poll, on_closed);
    close(fd);
}

/* ---- pending input ---- */

/* Free pending if it is empty, or move its contents to the front. No queued request may point into
 * it. */
static void trim_pending(struct connection *connection) {
    struct connection_input *pending = &connection->pending;
    if (pending->begin == pending->end) {
        if (pending->at != NULL) {
            free_pending(connection);
        }
    } else if (pending->begin > 0) {
        pending->end -= pending->begin;
        memmove(pending->at, pending->at + pending->begin, pending->end);
        pending->begin = 0;
    }
}

static bool grow_pending(struct connection *connection, size_t capacity) {
    struct connection_input *pending = &connection->pending;
    char *at = memory_resize(pending->at, capacity);
    if (at == NULL) {
        connection_close(connection, "no memory for its input");
        return false;
    }
    pending->at = at;
    pending->capacity = capacity;
    return true;
}

/* New capacity of a pending buffer that holds size bytes and must take more. */
static size_t pending_capacity(const struct connection *connection, size_t size) {
    size_t capacity = size > PENDING_MIN / 2 ? size * 2 : PENDING_MIN;
    if (capacity > UNKNOWN_INPUT_MAX && !is_known_client(connection)) {
        capacity = size > UNKNOWN_INPUT_MAX ? size : UNKNOWN_INPUT_MAX;
    }
    return capacity;
}

/* Keep the unparsed rest of the input. pending must be empty. */
static bool keep_rest(struct connection *connection, const char *at, size_t size) {
    struct connection_input *pending = &connection->pending;
    CHECK(pending->at == NULL);
    if (!grow_pending(connection, pending_capacity(connection, size))) {
        return false;
    }
    memcpy(pending->at, at, size);
    pending->begin = 0;
    pending->end = size;
    return true;
}

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

/* ---- parsing ---- */

static void queue_entry(struct connection *connection) {
    tick_queue_entry(connection->tick);
    connection->queued++;
    connection->entry_count++;
}

static struct resp_limits limits_for(const struct connection *connection) {
    const struct settings *settings = &connection->tick->server->settings;
    bool is_known = is_known_client(connection);
    return (struct resp_limits){
        .args_max = is_known ? ARGS_MAX : UNKNOWN_ARGS_MAX,
        .bulk_size_max = is_known ? settings->proto_max_bulk_len : UNKNOWN_BULK_MAX,
        .inline_size_max = is_known ? INLINE_SIZE_MAX : UNKNOWN_BULK_MAX,
        .is_authenticated = is_known,
    };
}

/* No complete request follows at parsed. Returns how many bytes of the input are consumed. */
static size_t stop_parsing(struct connection *connection, struct tick_entry *entry,
                           enum resp_status status, size_t parsed, size_t size) {
    if (status == RESP_OUT_OF_MEMORY) {
        connection_close(connection, "no memory for its requests");
    }
    if (status != RESP_ERROR && status != RESP_CLOSE) {
        return parsed;
    }
    entry->command = status == RESP_ERROR ? TICK_PROTOCOL_ERROR : TICK_CLOSE;
    queue_entry(connection);
    connection->is_input_over = true;
    return size;
}

/* Queue the requests in at[0 .. size-1]; returns how many bytes were consumed. May close the
 * connection. Before authentication only one request is parsed at a time, because it may change the
 * limits for the next one. */
static size_t parse_input(struct connection *connection, const char *at, size_t size) {
    struct resp_arena *arguments = tick_arguments(connection->tick);
    const struct resp_limits limits = limits_for(connection);
    size_t parsed = 0;
    connection->is_unparsed = false;
    while (parsed < size) {
        struct tick_entry *entry = tick_next_entry(connection->tick);
        if (entry == NULL) {
            connection_close(connection, "no memory for its requests");
            return parsed;
        }
        size_t used = 0;
        entry->connection = connection;
        entry->input = at + parsed;
        entry->epoch = connection->epoch;
        enum resp_status status =
            resp_parse(&connection->parser, at + parsed, size - parsed, &limits, arguments,
                       &entry->request, &used, &entry->error);
        if (status == RESP_REQUEST) {
            parsed += used;
            entry->command = command_find_request(&entry->request);
            queue_entry(connection);
            if (!limits.is_authenticated) {
                connection->is_unparsed = parsed < size;
                break;
            }
        } else if (status == RESP_SKIP) {
            parsed += used;
        } else {
            if (status == RESP_MORE && !limits.is_authenticated &&
                size - parsed >= UNKNOWN_INPUT_MAX) {
                entry->error = "ERR Protocol error: unauthenticated request length";
                status = RESP_ERROR;
            }
            parsed = stop_parsing(connection, entry, status, parsed, size);
            break;
        }
    }
    connection->region_end = at + parsed;
    return parsed;
}

static void parse_pending(struct connection *connection) {
    struct connection_input *pending = &connection->pending;
    size_t parsed =
        parse_input(connection, pending->at + pending->begin, pending->end - pending->begin);
    if (connection->is_closing) {
        return;
    }
    pending->begin += parsed;
    count_pending(connection);
    if (connection->queued == 0) {
        trim_pending(connection);
    }
}

/* ---- reading ---- */

/* Maximum size of one read. Large senders take turns; while the queue is full, every client may
 * send only a little. */
static size_t read_size_max(const struct connection *connection) {
    if (tick_is_full(connection->tick)) {
        return READ_SMALL_MAX;
    }
    return is_known_client(connection) ? READ_MAX : UNKNOWN_INPUT_MAX;
}

static void end_input(struct connection *connection) {
    connection->is_input_over = true;
    tick_mark_dirty(connection->tick, connection);
}

/* read() with error handling. 0: nothing was read. */
static size_t read_some(struct connection *connection, char *at, size_t room) {
    ssize_t size = read(connection->session.fd, at, room);
    if (size > 0) {
        connection->session.input_bytes += (uint64_t)size;
        connection->tick->server->stats.input_bytes += (uint64_t)size;
        return (size_t)size;
    }
    if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_input(connection);
    }
    return 0;
}

static void read_into_pending(struct connection *connection) {
    struct connection_input *pending = &connection->pending;
    trim_pending(connection);
    size_t room = pending->capacity - pending->end;
    if (room < PENDING_MIN || room < pending->end / 2) {
        size_t capacity = pending_capacity(connection, pending->capacity);
        if (capacity > pending->capacity && !grow_pending(connection, capacity)) {
            return;
        }
        room = pending->capacity - pending->end;
    }
    size_t size_max = read_size_max(connection);
    if (room > 0) {
        size_t size =
            read_some(connection, pending->at + pending->end, room < size_max ? room : size_max);
        if (size == 0) {
            return;
        }
        pending->end += size;
    }
    /* No room: it was filled before RESET made the client unauthenticated, and exceeds the limit
     * for such clients. */
    parse_pending(connection);
}

static void read_into_tick(struct connection *connection) {
    size_t room = 0;
    char *at = tick_input_room(connection->tick, &room);
    if (at == NULL) {
        connection_close(connection, "no memory for its input");
        return;
    }
    size_t size_max = read_size_max(connection);
    size_t size = read_some(connection, at, room < size_max ? room : size_max);
    if (size == 0) {
        return;
    }
    size_t parsed = parse_input(connection, at, size);
    if (connection->is_closing) {
        return;
    }
    tick_input_keep(connection->tick, parsed);
    if (parsed < size && keep_rest(connection, at + parsed, size - parsed)) {
        count_pending(connection);
    }
}

static void read_input(struct connection *connection) {
    if (connection->queued > 0 || connection->is_unparsed || connection->is_input_over ||
        connection->hold != CONNECTION_RUNS || connection->tick->is_draining) {
        return;
    }
    if (connection->pending.at != NULL) {
        read_into_pending(connection);
    } else {
        read_into_tick(connection);
    }
    if (!connection->is_closing && !is_over_query_limit(connection)) {
        client_memory_count(&connection->tick->server->client_memory, &connection->session);
    }
}

/* The socket has an error, and libuv has stopped watching it. Input that arrived before is still
 * read if the connection may read; otherwise the connection is closed, because poll would keep
 * reporting the error. Requests queued in an earlier tick do not run for a closed client. */
static void on_poll_error(struct connection *connection) {
    connection->events = 0;
    if (connection->hold != CONNECTION_RUNS || connection->is_input_over ||
        connection->queued > 0 || connection->is_unparsed || connection->tick->is_draining) {
        connection_close(connection, "connection lost");
        return;
    }
    read_input(connection);
    if (!connection->is_closing) {
        connection_update_events(connection);
    }
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    struct connection *connection = poll->data;
    if (status < 0) {
        on_poll_error(connection);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        connection_finish(connection);
    }
    if ((events & UV_READABLE) != 0 && !connection->is_closing) {
        read_input(connection);
    }
}

void connection_update_events(struct connection *connection) {
    int events = 0;
    if (!connection->is_input_over && connection->hold == CONNECTION_RUNS &&
        !connection->tick->is_draining && !connection->session.is_close_after_reply) {
        events |= UV_READABLE;
    }
    if (connection_sendable_size(connection) > 0) {
        events |= UV_WRITABLE;
    }
    if (events == connection->events) {
        return;
    }
    connection->events = events;
    if (events != 0) {
        uv_poll_start(&connection->poll, events, on_poll);
    } else {
        uv_poll_stop(&connection->poll);
    }
}

/* ---- holding ---- */

/* The waiting requests are in the tick's buffers: copy them to the front of pending. */
static bool put_back(struct connection *connection, const char *input) {
    struct connection_input *pending = &connection->pending;
    size_t region_size = (size_t)(connection->region_end - input);
    size_t rest_size = pending->end - pending->begin;
    char *at = memory_allocate(region_size + rest_size + PENDING_MIN);
    if (at == NULL) {
        connection_close(connection, "no memory for its input");
        return false;
    }
    memcpy(at, input, region_size);
    if (pending->at != NULL) {
        memcpy(at + region_size, pending->at + pending->begin, rest_size);
    }
    memory_free(pending->at);
    *pending = (struct connection_input){
        .at = at,
        .end = region_size + rest_size,
        .capacity = region_size + rest_size + PENDING_MIN,
    };
    return true;
}

void connection_hold(struct connection *connection, const char *input, enum connection_hold hold) {
    struct connection_input *pending = &connection->pending;
    uintptr_t place = (uintptr_t)input;
    uintptr_t pending_at = (uintptr_t)pending->at;
    if (pending->at != NULL && place >= pending_at && place < pending_at + pending->end) {
        pending->begin = (size_t)(place - pending_at);
    } else if (!put_back(connection, input)) {
        return;
    }
    resp_parser_deinit(&connection->parser);
    connection->epoch++;
    connection->queued = 0;
    connection->hold = hold;
    connection->is_unparsed = true;
    /* If the input is at its end, parsing and reading will detect that again. */
    connection->is_input_over = false;
    count_pending(connection);
    tick_mark_dirty(connection->tick, connection);
}

void connection_resume(struct connection *connection) {
    connection->hold = CONNECTION_RUNS;
    connection_finish(connection);
}

/* ---- writing ---- */

/* Is the unsent output over the client's limit? If so, the client is closed. */
static bool is_over_output_limit(struct connection *connection) {
    struct session *session = &connection->session;
    struct server *server = connection->tick->server;
    const struct setting_output_limit *limit = &server->settings.output_limit;
    const char *reason = NULL;
    if (session->output.is_broken) {
        reason = "client-output-buffer-limit";
    } else if (!is_known_client(connection) && session->output.size > UNKNOWN_OUTPUT_MAX) {
        reason = "unread replies before authentication";
    } else if (limit->hard_bytes > 0 && session->output.size > limit->hard_bytes) {
        reason = "client-output-buffer-limit";
    } else if (limit->soft_bytes > 0 && session->output.size > limit->soft_bytes) {
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
              (unsigned long long)session->id, session->address, session->output.size, reason);
    connection_close(connection, reason);
    return true;
}

bool connection_flush(struct connection *connection) {
    struct session *session = &connection->session;
    struct buffer *output = &session->output;
    size_t sendable = connection_sendable_size(connection);
    if (sendable > 0 && !output->is_broken) {
        size_t size = sendable < WRITE_MAX ? sendable : (size_t)WRITE_MAX;
        ssize_t written = write(session->fd, output->at, size);
        if (written < 0 && errno != EAGAIN && errno != EINTR) {
            connection_close(connection, "connection lost");
            return false;
        }
        if (written > 0) {
            buffer_drop_front(output, (size_t)written);
            if (connection->gate.mark_group != 0) {
                connection->gate.free_size -= (size_t)written;
                connection->gate.mark_end -= (size_t)written;
            }
            session->active_at_ms = connection->tick->server->clock.monotonic_ms;
            session->output_bytes += (uint64_t)written;
            connection->tick->server->stats.output_bytes += (uint64_t)written;
        }
    }
    if (output->size == 0 && !output->is_broken) {
        tick_take_buffer(connection->tick, session);
        session->soft_limit_since_ms = 0;
    } else if (is_over_output_limit(connection)) {
        return false;
    }
    if (connection->hold == CONNECTION_HELD_BY_OUTPUT && output->size <= CONNECTION_OUTPUT_LOW) {
        connection->hold = CONNECTION_RUNS;
    } else if (connection->hold == CONNECTION_RUNS && output->size > CONNECTION_OUTPUT_HIGH) {
        connection->hold = CONNECTION_HELD_BY_OUTPUT;
    }
    return true;
}

void connection_finish(struct connection *connection) {
    if (connection->is_closing || !connection_flush(connection)) {
        return;
    }
    struct session *session = &connection->session;
    if (connection->queued == 0) {
        if (connection->is_unparsed && connection->hold == CONNECTION_RUNS &&
            !session->is_close_after_reply) {
            parse_pending(connection);
        } else if (!connection->is_unparsed) {
            trim_pending(connection);
        }
        if (connection->is_closing) {
            return;
        }
        if (connection->is_input_over && connection->queued == 0 && !connection->is_unparsed) {
            session->is_close_after_reply = true;
        }
    }
    if (session->is_close_after_reply && session->output.size == 0) {
        connection_close(connection, "as asked");
        return;
    }
    client_memory_count(&connection->tick->server->client_memory, session);
    connection_update_events(connection);
}

/* Has the time to give the password expired? */
static bool is_late_to_authenticate(struct connection *connection) {
    int64_t timeout_s = connection->tick->server->settings.auth_timeout_s;
    uint64_t now_ms = uv_now(connection->tick->loop);
    if (is_known_client(connection) || timeout_s == 0) {
        connection->known_at_ms = now_ms;
        return false;
    }
    return now_ms - connection->known_at_ms >= (uint64_t)timeout_s * 1000;
}

void connection_check_time(struct connection *connection) {
    const struct session *session = &connection->session;
    const struct server *server = connection->tick->server;
    int64_t timeout_s = server->settings.timeout_s;
    if (session->output.size > 0 && is_over_output_limit(connection)) {
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
