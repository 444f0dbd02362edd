/* The engine's half of a client. See connection.h.
 *
 * On the engine's own loop, output is written from the session's buffer, and what does not fit the
 * socket stays there. With a thread, output is handed over as it is: a short one is copied into the
 * batch, a long one goes with its buffer. */
#include "server/loop/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/list.h"
#include "codec/subnet.h"
#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/dispatch/command.h"
#include "server/system/log.h"

enum {
    WRITE_MAX = 512 * 1024, /* per tick */
    UNKNOWN_OUTPUT_MAX = 1024,
    HANDED_FREE_MAX = 16 * 1024,
    HANDED_UNSEEN_MAX = 2 * 1024,
    HANDSHAKE_LIMIT_MS = 30 * 1000,
    HANDSHAKE_LOG_MS = 10 * 1000,
    AT_ONCE_MAX = 16, /* tokens whose signatures a thread looks at between two looks at the queue */
};

/* Unauthenticated clients get smaller limits. */
static bool connection_is_known_client(const struct connection *connection) {
    return server_is_authenticated(connection->tick->server, &connection->session);
}

/* ---- waiting for the disk ---- */

static void connection_end_output_wait(struct connection *connection) {
    struct connection_wait *wait = &connection->wait;
    struct tick *tick = connection->tick;
    if (wait->mark_group == 0) {
        return;
    }
    if (wait->previous != NULL) {
        wait->previous->wait.next = wait->next;
    } else {
        tick->waiting_first = wait->next;
    }
    if (wait->next != NULL) {
        wait->next->wait.previous = wait->previous;
    }
    *wait = (struct connection_wait){.mark_group = 0};
}

void connection_withhold_output(struct connection *connection, size_t size_before, uint64_t group,
                                uint64_t shown) {
    struct connection_wait *wait = &connection->wait;
    struct tick *tick = connection->tick;
    size_t size = connection->session.output.size;
    if (wait->mark_group == 0) {
        *wait =
            (struct connection_wait){.free_size = size_before,
                                     .mark_end = size,
                                     .mark_group = group,
                                     .shown = shown,
                                     .epoch = replication_answer_epoch(&tick->server->replication),
                                     .next = tick->waiting_first};
        if (wait->next != NULL) {
            wait->next->wait.previous = connection;
        }
        tick->waiting_first = connection;
    } else if (wait->mark_group == group && wait->mark_end == size_before) {
        wait->mark_end = size;
    } else {
        wait->rest_group = group; /* groups only increase */
    }
    wait->shown = wait->shown == shown ? shown : 0;
}

void connection_free_output(struct connection *connection, uint64_t group) {
    struct connection_wait *wait = &connection->wait;
    while (wait->mark_group != 0 && wait->mark_group <= group) {
        if (wait->rest_group == 0) {
            connection_end_output_wait(connection);
            return;
        }
        wait->free_size = wait->mark_end;
        wait->mark_end = connection->session.output.size;
        wait->mark_group = wait->rest_group;
        wait->rest_group = 0;
    }
}

/* ---- signatures that take long (ed25519), looked at by a thread while the loop goes on ----
 *
 *     tick        connection_verify: the connection is held
 *     thread      jwt_verify, of some at a time
 *     tick        what it found is session.verified; the connection resumes, and its AUTH or HELLO runs
 *
 * Likewise with tickets: what it finds is in player_keys then, and a command with several is held for one after another.
 * The thread begins with the first such token. */

struct verifier_item {
    struct verifier_item *next;
    struct connection *connection; /* NULL: it is gone */
    struct jwt_key key;
    int64_t now_s;
    struct session_verified *found; /* becomes the session's; NULL: it is a ticket */
    struct player_keys *keys;       /* of a ticket: whether it is right is put there */
    size_t token_size;
    char token[JWT_SIZE_MAX];
};

static void connection_verify_some(void *context) {
    const struct verifier *verifier = context;
    for (struct verifier_item *item = verifier->running; item != NULL; item = item->next) {
        const struct bytes token = {.at = item->token, .size = item->token_size};
        if (item->found == NULL) {
            (void)!player_keys_check(item->keys, &item->key, token);
            continue;
        }
        digest_make(token, item->found->digest);
        item->found->key_mark = item->key.mark;
        item->found->status = jwt_verify(&item->key, token, item->now_s, &item->found->claims);
    }
}

static void connection_verifier_start(struct verifier *verifier) {
    if (verifier->worker.is_busy || verifier->first == NULL) {
        return;
    }
    struct verifier_item *last = verifier->first;
    for (unsigned i = 1; i < AT_ONCE_MAX && last->next != NULL; i++) {
        last = last->next;
    }
    verifier->running = verifier->first;
    verifier->first = last->next;
    verifier->last = verifier->first != NULL ? verifier->last : NULL;
    last->next = NULL;
    worker_start(&verifier->worker, connection_verify_some);
}

static void connection_verifier_free(struct verifier_item *item) {
    explicit_bzero(item->token, item->token_size);
    memory_free(item->found);
    memory_free(item);
}

static void connection_verifier_on_done(void *context) {
    struct verifier *verifier = context;
    struct verifier_item *next;
    for (struct verifier_item *item = verifier->running; item != NULL; item = next) {
        struct connection *connection = item->connection;
        next = item->next;
        if (connection != NULL) {
            if (item->found != NULL) {
                memory_free(connection->session.verified);
                connection->session.verified = item->found;
                item->found = NULL;
                connection->is_verified = true;
            }
            connection->verifying = NULL;
            connection_resume(connection);
            tick_wake(connection->tick);
        }
        connection_verifier_free(item);
    }
    verifier->running = NULL;
    connection_verifier_start(verifier);
}

/* Must this token, or ticket, be looked at before the request that has it runs? Then the caller holds the connection, which
 * is resumed. Without memory or threads: no; it is looked at where it is asked for. */
static bool connection_verify(struct connection *connection, struct bytes token, bool is_ticket) {
    struct tick *tick = connection->tick;
    struct verifier *verifier = &tick->verifier;
    const struct settings *settings = &tick->server->settings;
    struct player_keys *keys = &tick->server->acl.player_keys;
    const struct jwt_key *key =
        jwt_choose_key(settings->player_keys, settings->player_key_count, token);
    if (key == NULL || key->algorithm == JWT_HS256 ||
        (is_ticket && player_keys_know(keys, key, token))) {
        return false;
    }
    bool has_thread =
        verifier->worker.is_started || worker_init(&verifier->worker, tick->loop, WORKER_BEHIND,
                                                   connection_verifier_on_done, verifier);
    struct verifier_item *item = has_thread ? memory_allocate(sizeof *item) : NULL;
    struct session_verified *found =
        item != NULL && !is_ticket ? memory_allocate_zeroed(sizeof *found) : NULL;
    if (item == NULL || (found == NULL && !is_ticket)) {
        memory_free(item);
        return false;
    }
    *item = (struct verifier_item){.connection = connection,
                                   .key = *key,
                                   .now_s = tick->server->clock.now_ms / 1000,
                                   .found = found,
                                   .keys = keys,
                                   .token_size = token.size};
    memcpy(item->token, token.at, token.size);
    LIST_APPEND(verifier->first, verifier->last, item);
    connection->verifying = item;
    connection_verifier_start(verifier);
    return true;
}

void connection_stop_verifier(struct verifier *verifier) {
    worker_deinit(&verifier->worker);
    for (struct verifier_item *item = verifier->first; item != NULL; item = verifier->first) {
        verifier->first = item->next;
        connection_verifier_free(item);
    }
}

/* ---- waiting to authenticate ---- */

static void connection_leave_auth_wait(struct connection *connection) {
    struct tick *tick = connection->tick;
    session_unlink(&tick->auth_first, &connection->session, SESSION_AUTHENTICATING);
    connection->is_auth_waiting = false;
    auth_guard_end_wait(&tick->server->acl.guard, auth_guard_address(connection->session.address));
}

/* Does the request give a password, and for which user? Of HELLO in the forms that clients send: HELLO n AUTH name
 * password [SETNAME x]. In any other form a later AUTH may count, so that the name is empty, which no user has. */
static bool connection_has_password(const struct queue_entry *entry, struct bytes *name,
                                    struct bytes *password) {
    const unsigned wanted = COMMAND_NO_AUTH | COMMAND_SECRET;
    const struct request *request = &entry->request;
    unsigned flags = entry->command < command_count() ? command_by_index(entry->command)->flags : 0;
    enum { HELLO_AUTH_COUNT = 5 };
    bool is_hello = (flags & COMMAND_SECRET_AUTH) != 0;
    if ((flags & wanted) != wanted || (is_hello && request->count < HELLO_AUTH_COUNT)) {
        return false;
    }
    bool is_plain = request->count == HELLO_AUTH_COUNT || (request->count == HELLO_AUTH_COUNT + 2 &&
                                                           bytes_is(request->args[5], "SETNAME"));
    *name = is_hello && is_plain && bytes_is(request->args[2], "AUTH") ? request->args[3]
            : is_hello                                                 ? BYTES("")
            : request->count == 2                                      ? BYTES("default")
                                                                       : request->args[1];
    *password = request->count == 2   ? request->args[1]
                : request->count == 3 ? request->args[2]
                : request->count > 4  ? request->args[4]
                                      : BYTES("");
    return true;
}

/* The next ticket of a result whose signature takes long. */
static bool connection_begin_ticket(struct connection *connection,
                                    const struct queue_entry *entry) {
    const struct request *request = &entry->request;
    const unsigned wanted = COMMAND_WRITE | COMMAND_OWN_MEMBER;
    unsigned flags = entry->command < command_count() ? command_by_index(entry->command)->flags : 0;
    enum { FIRST = 2, END = 256 /* behind 64 keys and all options */ };
    const struct session *session = &connection->session;
    uint32_t at = connection->ticket_at > 0 ? connection->ticket_at + 1 : FIRST;
    uint32_t position;
    connection->ticket_at = 0;
    for (; (flags & wanted) == wanted && at + 1 < request->count && at < END; at++) {
        /* Nobody has a thread work for what is refused in any case. */
        if (bytes_is(request->args[at], "TICKET") && session->is_authenticated &&
            (session->is_unlimited ||
             acl_check(session->user, entry->command, &entry->request, &position) == ACL_ALLOWED) &&
            connection_verify(connection, request->args[at + 1], true)) {
            connection->ticket_at = at;
            return true;
        }
    }
    return false;
}

bool connection_begin_auth_wait(struct connection *connection, const struct queue_entry *entry) {
    enum { STEP_MS = 50 }; /* many whose waits end together are resumed in one walk */
    struct tick *tick = connection->tick;
    struct server *server = tick->server;
    struct bytes name;
    struct bytes token;
    if (tick->is_draining) {
        return false;
    }
    if (!connection_has_password(entry, &name, &token)) {
        return server->settings.player_key_count > 0 && connection_begin_ticket(connection, entry);
    }
    bool is_player =
        player_has_token(server, entry->request.count > 2 ? name : BYTES("player"), token);
    /* Nobody guesses a signature: the tokens of others behind this address are not for it to wait for. */
    if (is_player) {
        bool is_verified = connection->is_verified;
        connection->is_verified = false;
        return !is_verified && connection_verify(connection, token, false);
    }
    if (connection->auth_due_ms != 0) {
        connection->auth_due_ms = 0;
        return false;
    }
    int64_t wait_ms = auth_guard_begin_wait(&server->acl.guard, &server->settings,
                                            auth_guard_address(connection->session.address), name,
                                            server->clock.monotonic_ms);
    if (wait_ms == 0) {
        return false;
    }
    int64_t due_ms = server->clock.monotonic_ms + wait_ms;
    connection->auth_due_ms = (due_ms + STEP_MS - 1) / STEP_MS * STEP_MS;
    if (tick->auth_first == NULL || connection->auth_due_ms < tick->auth_due_ms) {
        tick->auth_due_ms = connection->auth_due_ms;
    }
    session_link(&tick->auth_first, &connection->session, SESSION_AUTHENTICATING);
    connection->is_auth_waiting = true;
    return true;
}

void connection_end_auth_waits(struct tick *tick) {
    int64_t now_ms = tick->server->clock.monotonic_ms;
    if (tick->auth_first == NULL || (now_ms < tick->auth_due_ms && !tick->is_draining)) {
        return;
    }
    tick->auth_due_ms = INT64_MAX;
    struct session *session = tick->auth_first;
    while (session != NULL) {
        struct connection *connection = connection_of(session);
        session = session->links[SESSION_AUTHENTICATING].next;
        if (connection->auth_due_ms <= now_ms || tick->is_draining) {
            connection_leave_auth_wait(connection);
            connection_resume(connection);
        } else if (connection->auth_due_ms < tick->auth_due_ms) {
            tick->auth_due_ms = connection->auth_due_ms;
        }
    }
}

/* ---- telling the transport ---- */

/* What it holds for input, wherever that is. */
static void connection_count_input(struct connection *connection) {
    struct session *session = &connection->session;
    session->query_buffer_size = connection->unfinished_size + connection->held.memory_size;
    session->input_memory_size = sizeof *connection - sizeof *session +
                                 connection->transport_memory_size + connection->held.memory_size +
                                 (connection->is_tls ? TLS_MEMORY_SIZE : 0);
}

static bool connection_is_stopped(const struct connection *connection) {
    return connection->session.is_close_after_reply;
}

/* What the transport is to know besides its output. */
static void connection_fill_message(const struct connection *connection,
                                    struct transport_message *message) {
    message->done = connection->done;
    message->is_authenticated = connection->session.is_authenticated;
    message->is_stopped = connection_is_stopped(connection);
    message->is_awaited = session_is_replica(&connection->session);
    message->is_report_wanted = connection_is_stopped(connection) || connection->tick->is_draining;
}

/* It knows what was filled in. */
static void connection_note_told(struct connection *connection) {
    connection->done = 0;
    connection->was_authenticated = connection->session.is_authenticated;
    connection->was_stopped = connection_is_stopped(connection);
    connection->was_draining = connection->tick->is_draining;
    connection->was_awaited = session_is_replica(&connection->session);
    if (connection->unfinished_size == 0 && connection->transport_memory_size > 0) {
        connection->transport_memory_size = 0; /* it frees what its requests were in */
        connection_count_input(connection);
    }
}

/* Without output. false: no memory. */
static bool connection_send_message(const struct connection *connection,
                                    const struct transport_message *message) {
    struct network *network = connection->network;
    if (!network->has_thread) {
        transport_apply(message->transport, message, NULL);
        return true;
    }
    struct transport_message *sent = network_message(network, message->transport, 0, NULL);
    if (sent != NULL) {
        *sent = *message;
    }
    return sent != NULL;
}

/* No memory for a message: it is tried again in the next tick. */
static void connection_try_again(struct connection *connection) {
    connection->tick->has_more = true;
    tick_output_mark_dirty(connection->tick, connection);
}

static void connection_tell(struct connection *connection) {
    struct transport_message message = {.transport = &connection->transport};
    if (connection->done == 0 && connection->was_stopped == connection_is_stopped(connection) &&
        connection->was_draining == connection->tick->is_draining &&
        connection->was_awaited == session_is_replica(&connection->session) &&
        connection->was_authenticated == connection->session.is_authenticated) {
        return; /* there is no news */
    }
    connection_fill_message(connection, &message);
    message.is_report_wanted &= connection->network->has_thread;
    if (connection_send_message(connection, &message)) {
        connection_note_told(connection);
    } else {
        connection_try_again(connection);
    }
}

static void connection_tell_close(struct connection *connection) {
    const struct transport_message message = {
        .transport = &connection->transport,
        .is_closed = true,
    };
    connection->is_close_told = connection_send_message(connection, &message);
    if (!connection->is_close_told) {
        connection_try_again(connection);
    }
}

/* A message that also says what else the transport is to know. false: no memory. */
static bool connection_tell_all(struct connection *connection, struct transport_message message) {
    message.transport = &connection->transport;
    connection_fill_message(connection, &message);
    bool is_told = connection_send_message(connection, &message);
    if (is_told) {
        connection_note_told(connection);
    }
    return is_told;
}

bool connection_end(struct connection *connection) {
    return connection_tell_all(connection, (struct transport_message){.is_ending = true});
}

/* ---- open and close ---- */

void connection_print_address(const union socket_address *address, char out[SESSION_ADDRESS_MAX]) {
    char host[INET6_ADDRSTRLEN];
    if (address->any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address->v4.sin_addr, host, sizeof host);
        snprintf(out, SESSION_ADDRESS_MAX, "%s:%u", host, ntohs(address->v4.sin_port));
    } else if (address->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->v6.sin6_addr, host, sizeof host);
        snprintf(out, SESSION_ADDRESS_MAX, "[%s]:%u", host, ntohs(address->v6.sin6_port));
    } else {
        bool has_path = address->any.sa_family == AF_UNIX && address->local.sun_path[0] != '\0';
        snprintf(out, SESSION_ADDRESS_MAX, "%s:0", has_path ? address->local.sun_path : "?");
    }
}

/* Not of IP: of a unix socket. */
static bool connection_is_loopback(const union socket_address *address) {
    uint8_t bytes[SUBNET_ADDRESS_SIZE];
    return !subnet_take_address(&address->any, bytes) || subnet_is_loopback(bytes);
}

static bool connection_is_full(const struct server *server) {
    return server->sessions.count >= (uint64_t)server->settings.maxclients;
}

static const char *connection_refusal(const struct server *server,
                                      const struct accepted *accepted) {
    if (connection_is_full(server)) {
        return "-ERR max number of clients reached\r\n";
    }
    /* Is the client on this machine? Through a balancer: so must that be. */
    bool is_local = (accepted->is_unix_socket || connection_is_loopback(&accepted->peer)) &&
                    (!accepted->is_proxied || connection_is_loopback(&accepted->proxy));
    if (server->settings.protected_mode && !server_has_password(server) && !is_local) {
        return "-DENIED This server is in protected mode: no password is set, so only clients on "
               "the same machine are let in. To accept clients from elsewhere, set one "
               "('requirepass' in the configuration file, or CONFIG SET requirepass from this "
               "machine), or, in a network that nobody else can reach, switch the protection off "
               "('protected-mode no').\r\n";
    }
    return NULL;
}

static struct connection *connection_create(struct tick *tick, const struct accepted *accepted) {
    struct connection *connection = memory_allocate_zeroed(sizeof *connection);
    if (connection == NULL) {
        return NULL;
    }
    connection->tick = tick;
    connection->known_at_ms = tick->server->clock.monotonic_ms;
    connection->transport.session = &connection->session;
    connection->transport.fd = accepted->fd;
    connection->network = tick_network_find_least(tick);
    connection->transport.intake = &connection->network->intake;
    connection->is_tls = accepted->is_tls;
    connection->is_shaking = accepted->is_tls;
    if (accepted->is_tls) {
        connection->transport.tls_context = tls_context_share(tick->tls->context);
    }
    return connection;
}

static bool connection_refuse(struct tick *tick, const struct accepted *accepted,
                              const char *text) {
    const struct server *server = tick->server;
    int64_t now_ms = server->clock.monotonic_ms;
    tick->server->stats.connections_rejected++;
    if (connection_is_full(server) &&
        (tick->full_logged_at_ms == 0 || now_ms - tick->full_logged_at_ms >= TICK_FULL_LOG_MS)) {
        char address[SESSION_ADDRESS_MAX];
        connection_print_address(&accepted->peer, address);
        tick->full_logged_at_ms = now_ms;
        log_write(
            LOG_WARNING,
            "maxclients reached, rejecting new clients addr=%s maxclients=%lld advice=\"close "
            "clients, then CONFIG SET maxclients; metrics-port still answers\"",
            address, (long long)server->settings.maxclients);
    }
    if (accepted->is_tls) {
        close(accepted->fd); /* before its handshake it understands nothing */
    } else {
        network_refuse(&tick->networks[0], accepted->fd, text);
    }
    return false;
}

bool connection_open(struct tick *tick, const struct accepted *accepted) {
    struct server *server = tick->server;
    server->stats.connections_received++;
    const char *text = connection_refusal(server, accepted);
    if (text != NULL && (!accepted->is_tls || connection_is_full(server))) {
        return connection_refuse(tick, accepted, text);
    }
    struct connection *connection = connection_create(tick, accepted);
    if (connection == NULL) {
        return connection_refuse(tick, accepted, "-ERR out of memory\r\n");
    }
    struct session *session = &connection->session;
    session_init(session, server->sessions.next_id++, server->clock.monotonic_ms);
    session->fd = accepted->fd;
    session->is_unix_socket = accepted->is_unix_socket;
    session->output.size_max = server_output_limit(server, session)->hard_bytes;
    if (accepted->is_unix_socket) {
        const char *path = server->settings.unixsocket;
        snprintf(session->address, SESSION_ADDRESS_MAX, "%.*s:0", SESSION_ADDRESS_MAX - 3,
                 path != NULL ? path : "");
        snprintf(session->local_address, SESSION_ADDRESS_MAX, "%s", session->address);
    } else {
        connection_print_address(&accepted->peer, session->address);
        connection_print_address(&accepted->local, session->local_address);
    }
    connection_count_input(connection);
    bool is_added = server_add_session(server, session);
    session->is_close_after_reply = text != NULL; /* from the first message on */
    if (!is_added ||
        !connection_tell_all(connection, (struct transport_message){.is_opened = true})) {
        if (is_added) {
            server_life_remove_session(server, session);
        }
        session_deinit(session);
        tls_context_release(connection->transport.tls_context);
        memory_free(connection);
        return connection_refuse(tick, accepted, "-ERR out of memory\r\n");
    }
    connection->network->client_count++;
    if (text != NULL) {
        /* With TLS it can only be told after the handshake, for which it needs a place. It is
         * not read. */
        server->stats.connections_rejected++;
        buffer_append(&session->output, text, strlen(text));
        tick_output_mark_dirty(tick, connection);
    }
    log_write(LOG_VERBOSE, "client connected id=%llu addr=%s clients=%u",
              (unsigned long long)session->id, session->address, server->sessions.count);
    return true;
}

static void connection_free_if_unused(struct connection *connection) {
    if (connection->is_transport_closed && connection->entry_count == 0 &&
        !connection->is_in[TICK_DIRTY] && !connection->is_in[TICK_PUSHED]) {
        memory_free(connection);
    }
}

void connection_release(struct connection *connection) {
    CHECK(connection->entry_count > 0);
    connection->entry_count--;
    connection_free_if_unused(connection);
}

void connection_close(struct connection *connection, const char *reason) {
    if (connection->session.is_closed) {
        return;
    }
    struct session *session = &connection->session;
    struct server *server = connection->tick->server;
    session->is_closed = true;
    connection_end_output_wait(connection);
    if (connection->is_auth_waiting) {
        connection_leave_auth_wait(connection);
    }
    if (connection->verifying != NULL) {
        connection->verifying->connection = NULL;
        connection->verifying = NULL;
    }
    if (connection->tick->check_next == connection) {
        connection->tick->check_next = session->next != NULL ? connection_of(session->next) : NULL;
    }
    log_write(LOG_VERBOSE, "client closed id=%llu addr=%s reason=\"%s\" clients=%u",
              (unsigned long long)session->id, session->address, reason,
              server->sessions.count - 1);
    server_life_remove_session(server, session);
    server->stats.connections_closed++;
    session_deinit(session);
    session_transaction_clear(&connection->held);
    connection->network->client_count--;
    connection_tell_close(connection);
}

/* ---- input ---- */

static bool connection_is_over_query_limit(struct connection *connection) {
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

static const char *connection_describe_failure(enum transport_failure failure) {
    static const char *const texts[] = {
        [TRANSPORT_LOST] = "connection lost",
        [TRANSPORT_NO_MEMORY_FOR_INPUT] = "no memory for its input",
        [TRANSPORT_NO_MEMORY_FOR_REQUESTS] = "no memory for its requests",
        [TRANSPORT_NO_HANDSHAKE] = "TLS handshake failed",
        [TRANSPORT_TLS_BROKEN] = "TLS broken",
    };
    return texts[failure];
}

/* Whoever only connects and leaves, as health checks do, is not worth a line. */
static void connection_log_tls_failure(struct connection *connection,
                                       const struct transport_note *note) {
    struct tick *tick = connection->tick;
    int64_t now_ms = tick->server->clock.monotonic_ms;
    if (note->tls_error == NULL) {
        return;
    }
    if (tick->tls_logged_at_ms != 0 && now_ms - tick->tls_logged_at_ms < HANDSHAKE_LOG_MS) {
        tick->tls_unlogged_count++;
        return;
    }
    log_write(LOG_WARNING, "%s, closing the client id=%llu addr=%s error=\"%s\" more=%u",
              connection_describe_failure(note->failure),
              (unsigned long long)connection->session.id, connection->session.address,
              note->tls_error, tick->tls_unlogged_count);
    tick->tls_logged_at_ms = now_ms;
    tick->tls_unlogged_count = 0;
}

void connection_take_note(const struct transport_note *note) {
    struct connection *connection = connection_of(note->session);
    if ((note->events & TRANSPORT_CLOSED) != 0) {
        connection->is_transport_closed = true;
        connection_free_if_unused(connection);
        return;
    }
    if (connection->session.is_closed) {
        return;
    }
    connection->unfinished_size = note->unfinished_size;
    connection->transport_memory_size = note->memory_size;
    connection->is_input_over |= (note->events & TRANSPORT_INPUT_OVER) != 0;
    if ((note->events & TRANSPORT_SHAKEN) != 0) {
        const char *name = transport_peer_name(&connection->transport);
        connection->is_shaking = false;
        if (name != NULL) {
            server_take_certificate(connection->tick->server, &connection->session,
                                    bytes_from_text(name));
        }
    }
    connection_count_input(connection);
    session_memory_count(&connection->tick->server->sessions.memory, &connection->session);
    if ((note->events & TRANSPORT_FAILED) != 0) {
        connection_log_tls_failure(connection, note);
        connection_close(connection, connection_describe_failure(note->failure));
    } else if ((note->events & TRANSPORT_INPUT) == 0 ||
               !connection_is_over_query_limit(connection)) {
        tick_output_mark_dirty(connection->tick, connection);
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
    if (!session_transaction_queue(&connection->held, &request, entry->command, 0)) {
        connection_close(connection, "no memory for its input");
        return;
    }
    connection->queued--;
    connection->hold = hold;
    if (hold == CONNECTION_HELD_BY_PAUSE) {
        server_postpone(connection->tick->server, &connection->session, true);
    }
    if (hold == CONNECTION_HELD_BY_WAIT && connection->held.count > connection->done_ahead) {
        connection->done_ahead++;
        connection->done++;
    }
    connection_count_input(connection);
    tick_output_mark_dirty(connection->tick, connection);
}

void connection_resume(struct connection *connection) {
    connection->hold = CONNECTION_RUNS;
    server_postpone(connection->tick->server, &connection->session, false);
    connection_finish(connection);
}

/* ---- writing ---- */

/* The output that was handed over and is not yet written. A little counts as written: to know it
 * exactly, the engine would have to read what another thread writes after each request. */
static size_t connection_handed_size_of(struct connection *connection) {
    if (connection->handed_total - connection->written_seen <= HANDED_UNSEEN_MAX) {
        return 0;
    }
    connection->written_seen =
        atomic_load_explicit(&connection->transport.written_total, memory_order_relaxed);
    return (size_t)(connection->handed_total - connection->written_seen);
}

/* Is the unsent output over the client's limit? If so, the client is closed. */
static bool connection_is_over_output_limit(struct connection *connection) {
    struct session *session = &connection->session;
    struct server *server = connection->tick->server;
    const struct setting_output_limit *limit = server_output_limit(server, session);
    /* The output that counts for the limits. What was just handed over does not, if it is little: it may be in the
     * socket before long, and no limit is so low that a short reply closes the client. */
    const struct transport *transport = &connection->transport;
    size_t output_size = connection->session.output.size;
    size_t handed_size = connection_handed_size_of(connection);
    if (handed_size > 0 && handed_size <= HANDED_FREE_MAX &&
        !atomic_load_explicit(&transport->has_backlog, memory_order_relaxed)) {
        handed_size = 0;
    }
    size_t unsent_size = output_size + handed_size;
    size_t fed_size = server_output_fed(session);
    const char *reason = NULL;
    unsent_size -= unsent_size < fed_size ? unsent_size : fed_size;
    if (session->output.is_broken) {
        reason = "client-output-buffer-limit";
    } else if (!connection_is_known_client(connection) && unsent_size > UNKNOWN_OUTPUT_MAX) {
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
static void connection_drop_sent(struct connection *connection, size_t size) {
    struct session *session = &connection->session;
    if (connection->wait.mark_group != 0) {
        connection->wait.free_size -= size;
        connection->wait.mark_end -= size;
    }
    session->active_at_ms = connection->tick->server->clock.monotonic_ms;
    session->output_bytes += (uint64_t)size;
}

/* On the engine's own loop. false: the connection was closed. */
static bool connection_write_output(struct connection *connection, size_t sendable) {
    struct session *session = &connection->session;
    size_t size = sendable < WRITE_MAX ? sendable : (size_t)WRITE_MAX;
    ssize_t written = transport_write(&connection->transport, session->output.at, size);
    intake_count_call(&connection->transport.intake->writes);
    if (written < 0 && errno != EAGAIN && errno != EINTR) {
        connection_close(connection, "connection lost");
        return false;
    }
    if (written > 0) {
        buffer_drop_front(&session->output, (size_t)written);
        connection_drop_sent(connection, (size_t)written);
        connection->tick->server->stats.output_bytes += (uint64_t)written;
    }
    return true;
}

/* The first size bytes of the output, with their buffer if these are all. NULL: no memory. */
static struct outgoing *connection_take_output(struct buffer *output, size_t size) {
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
static void connection_hand_over(struct connection *connection, size_t sendable) {
    struct transport *transport = &connection->transport;
    struct buffer *output = &connection->session.output;
    bool is_copied = sendable <= REPLIES_COPIED_MAX;
    char *bytes = NULL;
    struct transport_message *message =
        network_message(connection->network, transport, is_copied ? sendable : 0, &bytes);
    if (message == NULL) {
        connection_try_again(connection);
        return;
    }
    connection_fill_message(connection, message);
    connection_note_told(connection);
    if (is_copied) {
        memcpy(bytes, output->at, sendable);
        buffer_drop_front(output, sendable);
    } else {
        message->outgoing = connection_take_output(output, sendable);
        if (message->outgoing == NULL) {
            connection_try_again(connection);
            return;
        }
    }
    connection->handed_total += sendable;
    connection_drop_sent(connection, sendable);
    message->is_report_wanted |=
        connection_handed_size_of(connection) + output->size > CONNECTION_OUTPUT_LOW;
}

bool connection_flush(struct connection *connection) {
    struct session *session = &connection->session;
    struct buffer *output = &session->output;
    size_t sendable = connection_sendable_size(connection);
    if (sendable > 0 && !output->is_broken) {
        if (connection->network->has_thread) {
            connection_hand_over(connection, sendable);
        } else if (!connection_write_output(connection, sendable)) {
            return false;
        }
    }
    session->handed_size = connection_handed_size_of(connection);
    size_t unsent_size = output->size + session->handed_size;
    if (output->size == 0 && !output->is_broken) {
        tick_output_take_buffer(connection->tick, session);
    }
    if (unsent_size == 0 && !output->is_broken) {
        session->soft_limit_since_ms = 0;
    } else if (connection_is_over_output_limit(connection)) {
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
            connection_tell_close(connection);
        }
        connection_free_if_unused(connection);
        return;
    }
    if (!connection_flush(connection)) {
        return;
    }
    struct session *session = &connection->session;
    if ((session_is_subscriber(session) || connection->hold == CONNECTION_HELD_BY_WAIT) &&
        connection_is_over_query_limit(connection)) {
        return;
    }
    /* The requests that were held back are to run: they follow what is queued. */
    if (connection->hold == CONNECTION_RUNS && connection->held.count > 0 &&
        connection->queued == 0 && !connection->session.is_close_after_reply) {
        if (tick_network_queue_held(connection->tick, connection)) {
            connection_count_input(connection);
        } else {
            connection_close(connection, "no memory for its input");
        }
    }
    if (connection->session.is_closed) {
        return;
    }
    bool is_waited_for = connection->held.count > 0 && connection->hold != CONNECTION_HELD_BY_WAIT;
    if (connection->is_input_over && connection->queued == 0 && !is_waited_for &&
        connection->hold != CONNECTION_HELD_BY_JOB) {
        session->is_close_after_reply = true;
    }
    if (session->is_close_after_reply && connection_unsent_size(connection) == 0) {
        connection_close(connection, "as asked");
        return;
    }
    connection_tell(connection);
    session_memory_count(&connection->tick->server->sessions.memory, session);
    if (!connection->network->has_thread) {
        transport_want_write(&connection->transport, connection_sendable_size(connection) > 0);
    }
}

void connection_check_time(struct connection *connection) {
    const struct session *session = &connection->session;
    const struct server *server = connection->tick->server;
    int64_t timeout_s = server->settings.timeout_s;
    if (connection_unsent_size(connection) > 0 && connection_is_over_output_limit(connection)) {
        return;
    }
    if (connection->is_shaking &&
        server->clock.monotonic_ms - session->created_at_ms >= HANDSHAKE_LIMIT_MS) {
        connection_close(connection, "TLS handshake not finished in time");
        return;
    }
    int64_t late_s = server->settings.auth_timeout_s;
    bool is_anonymous = late_s > 0 && !connection_is_known_client(connection);
    if (!is_anonymous) {
        connection->known_at_ms = server->clock.monotonic_ms;
    } else if (server->clock.monotonic_ms - connection->known_at_ms >= late_s * 1000 &&
               connection->hold != CONNECTION_HELD_BY_PAUSE) {
        connection_close(connection, "not authenticated within auth-timeout");
        return;
    }
    /* All others hear of it with their next request. */
    if (session->player != NULL && session_is_subscriber(session) &&
        player_find_fault(server, session->player) != NULL) {
        connection_close(connection, "player's token is over");
        return;
    }
    if (timeout_s > 0 && !session->is_monitor && !session_is_subscriber(session) &&
        !session_is_replica(session) && connection->hold != CONNECTION_HELD_BY_WAIT &&
        connection->hold != CONNECTION_HELD_BY_JOB &&
        connection->hold != CONNECTION_HELD_BY_PAUSE &&
        server->clock.monotonic_ms - session->active_at_ms > timeout_s * 1000) {
        connection_close(connection, "idle for longer than timeout");
    }
}
