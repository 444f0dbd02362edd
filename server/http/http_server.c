/* See http_server.h.
 *
 * libmicrohttpd runs in our loop: it has an epoll descriptor, which the loop watches, and all of its
 * functions are called on this thread alone. A request that waits for the engine, or for a moment before a
 * refusal, is suspended, and in the list `waiting`. A stream that has nothing to send is suspended, too.
 *
 * Invariant: a suspended request is in one of the lists, and leaves `waiting` when its reply is ready. */
#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/thread_signals.h"
#include "server/http/http_header.h"
#include "server/system/worker.h"

enum {
    WAIT_STEP_MS = 10,
    STREAM_STEP_MS = 25,
    SWEEP_MS = 100,
    STREAM_SWEEP_MS = 1000,
    SILENT_MS = 200,
    PIECE_MAX = 64 * 1024, /* of a stream, at a time */
};

#define PLAIN_TEXT "text/plain; charset=utf-8"

/* A connection, and since when it is in its phase. */
struct peer {
    struct peer *next, *previous;
    int fd;
    int64_t since_ms, limit_ms; /* limit_ms 0: none */
    bool is_cut;
};

struct http_server {
    struct MHD_Daemon *daemon;
    struct asks asks;
    uv_loop_t loop;
    uv_thread_t thread;
    uv_poll_t poll;
    uv_timer_t timer;
    uv_idle_t idle;
    uv_check_t check;
    struct http_server_options options;
    struct peer *peer_first;
    unsigned peer_count;
    struct http_exchange *waiting_first, *stream_first;
    unsigned stream_count;
    size_t sending_size;    /* of replies that are being sent */
    struct pollfd *streams; /* streams_max of them */
    int64_t streams_swept_ms;
    uint64_t timer_ms; /* 0: it does not run */
    _Atomic bool is_stopping;
    bool is_ended;
};

/* ---- texts ---- */

struct http_text *http_text_create(size_t size_max) {
    struct http_text *text = memory_allocate_zeroed(sizeof *text);
    if (text != NULL) {
        text->uses = 1;
        buffer_init(&text->bytes, size_max);
    }
    return text;
}

void http_text_release(struct http_text *text) {
    if (text != NULL && --text->uses == 0) {
        buffer_deinit(&text->bytes);
        memory_free(text);
    }
}

/* ---- replies ---- */

__attribute__((format(printf, 3, 0))) static void
fill(struct http_exchange *exchange, unsigned status, const char *format, va_list arguments) {
    char text[HTTP_ERROR_MAX];
    struct http_reply *reply = &exchange->reply;
    int size = vsnprintf(text, sizeof text, format, arguments);
    (void)size;
    buffer_clear(&reply->body);
    reply->fixed = (struct bytes){.at = NULL};
    reply->status = status;
    reply->content_type = PLAIN_TEXT;
    const struct http_handler *handler = exchange->server->options.handler;
    if (handler->print_refusal != NULL) {
        handler->print_refusal(reply, text);
    } else {
        buffer_append(&reply->body, text, strlen(text));
    }
}

void http_exchange_fill(struct http_exchange *exchange, unsigned status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(exchange, status, format, arguments);
    va_end(arguments);
}

void http_exchange_refuse(struct http_exchange *exchange, unsigned status, const char *format,
                          ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(exchange, status, format, arguments);
    va_end(arguments);
    http_exchange_ready(exchange);
}

void http_reply_header(struct http_reply *reply, const char *name, const char *value) {
    CHECK(reply->header_count < HTTP_HEADERS_MAX);
    reply->headers[reply->header_count++] = (struct http_header){.name = name, .value = value};
}

static void begin_phase(struct http_server *server, struct peer *peer, int64_t limit_ms) {
    if (peer != NULL) {
        peer->since_ms = http_server_now(server);
        peer->limit_ms = limit_ms;
    }
}

static void add_headers(const struct http_exchange *exchange, struct MHD_Response *response) {
    const struct http_reply *reply = &exchange->reply;
    if (reply->content_type != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    }
    if (!reply->is_kept) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                exchange->server->options.takes_posts ? "GET, HEAD, POST"
                                                                      : "GET, HEAD");
    }
    if (reply->status == MHD_HTTP_SERVICE_UNAVAILABLE) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    }
    for (unsigned i = 0; i < reply->header_count; i++) {
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    }
}

/* Those who ask for much and read little do not take all memory. */
static bool has_room_to_send(const struct http_server *server, size_t size) {
    return server->options.sending_max == 0 ||
           server->sending_size + size <= server->options.sending_max;
}

/* The body stays until the exchange is over, which is behind the last byte. The library only reads, though its
 * parameters are not const. */
static struct MHD_Response *create_response(const struct http_reply *reply) {
    return reply->fixed.at != NULL
               ? MHD_create_response_from_buffer(
                     reply->fixed.size, (void *)(uintptr_t)reply->fixed.at, MHD_RESPMEM_PERSISTENT)
               : MHD_create_response_from_buffer(reply->body.size, reply->body.at,
                                                 MHD_RESPMEM_PERSISTENT);
}

static enum MHD_Result send_reply(struct http_exchange *exchange) {
    struct http_reply *reply = &exchange->reply;
    if (reply->body.is_broken) {
        http_exchange_fill(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR,
                           "the reply is too long, or out of memory\n");
    }
    if (!has_room_to_send(exchange->server, reply->body.size)) {
        buffer_deinit(&reply->body);
        http_exchange_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "busy: too many long replies are being sent\n");
    }
    exchange->counted = reply->body.size;
    exchange->server->sending_size += exchange->counted;
    struct MHD_Response *response = create_response(reply);
    if (response == NULL) {
        return MHD_NO;
    }
    add_headers(exchange, response);
    enum MHD_Result result =
        reply->is_login_wanted
            ? MHD_queue_basic_auth_fail_response(exchange->connection, "leaderboard", response)
            : MHD_queue_response(exchange->connection, reply->status, response);
    MHD_destroy_response(response);
    begin_phase(exchange->server, exchange->peer, HTTP_SEND_LIMIT_MS);
    return result;
}

/* ---- requests that wait ---- */

static void set_timer(struct http_server *server);

static void join(struct http_exchange **first, struct http_exchange *exchange) {
    exchange->previous = NULL;
    exchange->next = *first;
    if (*first != NULL) {
        (*first)->previous = exchange;
    }
    *first = exchange;
}

static void part(struct http_exchange **first, struct http_exchange *exchange) {
    if (exchange->previous != NULL) {
        exchange->previous->next = exchange->next;
    } else {
        *first = exchange->next;
    }
    if (exchange->next != NULL) {
        exchange->next->previous = exchange->previous;
    }
    exchange->next = exchange->previous = NULL;
}

static bool is_waiting(const struct http_exchange *exchange) {
    return exchange->stage == HTTP_WAITS || exchange->stage == HTTP_DELAYED;
}

static void wait_in(struct http_exchange *exchange, enum http_stage stage, int64_t wait_ms) {
    struct http_server *server = exchange->server;
    bool was_waiting = is_waiting(exchange);
    CHECK(exchange->stage == HTTP_NEW || was_waiting);
    exchange->stage = stage;
    exchange->due_ms = http_server_now(server) + wait_ms;
    if (was_waiting) {
        return;
    }
    join(&server->waiting_first, exchange);
    set_timer(server);
}

void http_exchange_wait(struct http_exchange *exchange, int64_t wait_ms) {
    wait_in(exchange, HTTP_WAITS, wait_ms);
}

void http_exchange_delay(struct http_exchange *exchange, int64_t delay_ms) {
    wait_in(exchange, HTTP_DELAYED, delay_ms);
}

static void resume(struct http_exchange *exchange) {
    if (exchange->is_suspended) {
        exchange->is_suspended = false;
        MHD_resume_connection(exchange->connection); /* and wakes the loop */
    }
}

void http_exchange_ready(struct http_exchange *exchange) {
    if (is_waiting(exchange)) {
        part(&exchange->server->waiting_first, exchange);
    }
    exchange->stage = HTTP_READY;
    resume(exchange);
}

/* ---- streams ---- */

bool http_exchange_stream(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    if (server->stream_count >= server->options.streams_max) {
        return false;
    }
    if (is_waiting(exchange)) {
        part(&server->waiting_first, exchange);
    }
    join(&server->stream_first, exchange);
    server->stream_count++;
    exchange->stage = HTTP_STREAMS;
    exchange->reply.content_type = "text/event-stream; charset=utf-8";
    resume(exchange);
    set_timer(server);
    return true;
}

/* What the library asks for when the socket takes more. */
static ssize_t read_stream(void *own, uint64_t position, char *out, size_t size_max) {
    struct http_exchange *exchange = own;
    (void)position;
    if (exchange->sending != NULL && exchange->sent == exchange->sending->bytes.size) {
        http_text_release(exchange->sending);
        exchange->sending = NULL;
        begin_phase(exchange->server, exchange->peer, 0);
    }
    if (exchange->sending == NULL && exchange->pending != NULL) {
        exchange->sending = exchange->pending;
        exchange->pending = NULL;
        exchange->sent = 0;
        begin_phase(exchange->server, exchange->peer, HTTP_SEND_LIMIT_MS);
    }
    if (exchange->sending == NULL) {
        if (exchange->is_stream_over) {
            return MHD_CONTENT_READER_END_OF_STREAM;
        }
        exchange->is_suspended = true;
        MHD_suspend_connection(exchange->connection);
        return 0;
    }
    const struct buffer *bytes = &exchange->sending->bytes;
    size_t size = bytes->size - exchange->sent;
    size = size < size_max ? size : size_max;
    memcpy(out, bytes->at + exchange->sent, size);
    exchange->sent += size;
    return (ssize_t)size;
}

void http_stream_put(struct http_exchange *exchange, struct http_text *text) {
    CHECK(exchange->stage == HTTP_STREAMS);
    text->uses++;
    http_text_release(exchange->pending);
    exchange->pending = text;
    resume(exchange);
}

void http_stream_end(struct http_exchange *exchange) {
    exchange->is_stream_over = true;
    resume(exchange);
}

static enum MHD_Result send_stream(struct http_exchange *exchange) {
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, PIECE_MAX, read_stream, exchange, NULL);
    if (response == NULL) {
        return MHD_NO;
    }
    add_headers(exchange, response);
    enum MHD_Result result = MHD_queue_response(exchange->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- for handlers ---- */

int64_t http_server_now(const struct http_server *server) {
    return (int64_t)uv_now(&server->loop);
}

void http_server_ask(struct http_server *server, struct ask *ask) {
    asks_put(&server->asks, ask);
}

struct asks *http_server_asks(struct http_server *server) {
    return &server->asks;
}

unsigned http_server_connections(const struct http_server *server) {
    return server->peer_count;
}

bool http_server_is_secure(const struct http_server *server) {
    return server->options.certificate != NULL;
}

const char *http_exchange_header(const struct http_exchange *exchange, const char *name) {
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

bool http_exchange_peer(const struct http_exchange *exchange, char *text) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info != NULL ? info->client_addr : NULL;
    snprintf(text, HTTP_ADDRESS_MAX, "?");
    if (address != NULL && address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const void *)address;
        inet_ntop(AF_INET, &v4->sin_addr, text, HTTP_ADDRESS_MAX);
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address != NULL && address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const void *)address;
        inet_ntop(AF_INET6, &v6->sin6_addr, text, HTTP_ADDRESS_MAX);
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    return false;
}

bool http_exchange_credentials(const struct http_exchange *exchange, char *user, char *password,
                               bool *has_password) {
    char *given_password = NULL;
    char *given = MHD_basic_auth_get_username_password(exchange->connection, &given_password);
    bool is_fit = given == NULL || (strlen(given) < HTTP_USER_MAX && given_password != NULL &&
                                    strlen(given_password) < HTTP_PASSWORD_MAX);
    *has_password = given != NULL;
    user[0] = password[0] = '\0';
    if (given != NULL && is_fit) {
        snprintf(user, HTTP_USER_MAX, "%s", given);
        snprintf(password, HTTP_PASSWORD_MAX, "%s", given_password);
    }
    MHD_free(given);
    MHD_free(given_password);
    return is_fit;
}

/* ---- what comes ---- */

static bool is_too_long(const struct http_exchange *exchange) {
    const char *size = http_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t bytes = 0;
    if (http_exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
        return true;
    }
    return size != NULL && (!bytes_parse_u64(bytes_from_text(size), &bytes) ||
                            bytes > (exchange->method == HTTP_POST ? HTTP_BODY_MAX : 0));
}

/* Fill in why the request is refused. false: it is not. */
static bool refuse(struct http_exchange *exchange, const char *method) {
    const struct http_server_options *options = &exchange->server->options;
    bool is_post = options->takes_posts && strcmp(method, MHD_HTTP_METHOD_POST) == 0;
    exchange->method = is_post                                     ? HTTP_POST
                       : strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? HTTP_HEAD
                                                                   : HTTP_GET;
    if (!http_header_allows_host(http_exchange_header(exchange, MHD_HTTP_HEADER_HOST),
                                 options->hosts)) {
        http_exchange_fill(exchange, 421,
                           "this server does not know itself by that name: ask it by its address, "
                           "or add the name to %s\n",
                           options->hosts_setting);
    } else if (!is_post && strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
               exchange->method != HTTP_HEAD) {
        http_exchange_fill(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD%s\n",
                           options->takes_posts ? " and POST" : "");
    } else if (is_too_long(exchange)) {
        if (is_post) {
            http_exchange_fill(exchange, 413, "a body has at most %d bytes, not in chunks\n",
                               HTTP_BODY_MAX);
        } else {
            http_exchange_fill(exchange, 413, "a request has no body here\n");
        }
    } else if (exchange->target == NULL) {
        http_exchange_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    } else {
        return false;
    }
    exchange->stage = HTTP_READY;
    return true;
}

/* The library calls this first, with what stands behind the method: what it returns is the request's own. */
static void *begin_exchange(void *context, const char *target, struct MHD_Connection *connection) {
    struct http_server *server = context;
    struct http_exchange *exchange = memory_allocate_zeroed(sizeof *exchange);
    if (exchange == NULL) {
        return NULL;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    size_t size = strlen(target);
    exchange->server = server;
    exchange->connection = connection;
    exchange->peer = info != NULL ? info->socket_context : NULL;
    exchange->target = memory_allocate(size + 1);
    if (exchange->target != NULL) {
        memcpy(exchange->target, target, size + 1);
    }
    exchange->reply = (struct http_reply){.status = MHD_HTTP_OK, .content_type = PLAIN_TEXT};
    buffer_init(&exchange->reply.body, HTTP_REPLY_SIZE_MAX);
    buffer_init(&exchange->body, HTTP_BODY_MAX);
    return exchange;
}

/* Only here is a request suspended: the library cannot queue the reply of a connection that is. */
static enum MHD_Result send_or_suspend(struct http_exchange *exchange) {
    if (exchange->stage == HTTP_STREAMS) {
        return send_stream(exchange);
    }
    if (exchange->stage == HTTP_READY) {
        return send_reply(exchange);
    }
    exchange->is_suspended = true;
    MHD_suspend_connection(exchange->connection);
    return MHD_YES;
}

/* The library calls this when the headers are there, once more for each piece of a body and once when
 * all is there; and again when the connection was resumed. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **own) {
    struct http_server *server = context;
    struct http_exchange *exchange = *own;
    (void)connection;
    (void)version;
    if (exchange == NULL) {
        return MHD_NO;
    }
    exchange->path = path;
    if (!exchange->is_begun) {
        exchange->is_begun = true;
        bool is_refused = refuse(exchange, method);
        /* From here on it waits for us, unless a body is to come. */
        begin_phase(server, exchange->peer,
                    exchange->method == HTTP_POST && !is_refused ? HTTP_REQUEST_LIMIT_MS : 0);
        return is_refused ? send_reply(exchange) : MHD_YES;
    }
    if (*upload_size > 0) {
        buffer_append(&exchange->body, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (exchange->stage == HTTP_NEW) {
        begin_phase(server, exchange->peer, 0);
        server->options.handler->handle(server->options.handler->context, exchange);
    }
    return send_or_suspend(exchange);
}

static void on_completed(void *context, struct MHD_Connection *connection, void **own,
                         enum MHD_RequestTerminationCode code) {
    struct http_server *server = context;
    struct http_exchange *exchange = *own;
    const struct http_handler *handler = server->options.handler;
    (void)connection;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    begin_phase(server, exchange->peer, HTTP_IDLE_LIMIT_MS);
    if (exchange->is_begun && handler->leave != NULL) {
        handler->leave(handler->context, exchange);
    }
    if (is_waiting(exchange)) {
        part(&server->waiting_first, exchange);
    } else if (exchange->stage == HTTP_STREAMS) {
        part(&server->stream_first, exchange);
        server->stream_count--;
    }
    http_text_release(exchange->sending);
    http_text_release(exchange->pending);
    server->sending_size -= exchange->counted;
    buffer_deinit(&exchange->reply.body);
    buffer_deinit(&exchange->body);
    memory_free(exchange->target);
    memory_free(exchange);
    *own = NULL;
}

static void begin_peer(struct http_server *server, struct MHD_Connection *connection, void **own) {
    struct peer *peer = memory_allocate_zeroed(sizeof *peer);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (peer == NULL || info == NULL) {
        memory_free(peer);
        return;
    }
    peer->fd = info->connect_fd;
    begin_phase(server, peer, HTTP_REQUEST_LIMIT_MS);
    peer->next = server->peer_first;
    if (server->peer_first != NULL) {
        server->peer_first->previous = peer;
    }
    server->peer_first = peer;
    server->peer_count++;
    *own = peer;
    set_timer(server);
}

static void end_peer(struct http_server *server, struct peer *peer) {
    if (peer->previous != NULL) {
        peer->previous->next = peer->next;
    } else {
        server->peer_first = peer->next;
    }
    if (peer->next != NULL) {
        peer->next->previous = peer->previous;
    }
    server->peer_count--;
    memory_free(peer);
}

static void on_connection(void *context, struct MHD_Connection *connection, void **own,
                          enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        begin_peer(context, connection, own);
    } else if (*own != NULL) {
        end_peer(context, *own);
        *own = NULL;
    }
}

/* ---- the thread ---- */

static void on_idle(uv_idle_t *idle) {
    (void)idle; /* an active idle handle only keeps poll from blocking */
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    (void)poll; /* the work is done in check */
    (void)status;
    (void)events;
}

/* Nothing has come for so long that it may go where there are many: so those who connect and say
 * nothing do not keep others out. */
static bool is_silent(const struct peer *peer, int64_t now_ms) {
    return (peer->limit_ms == HTTP_REQUEST_LIMIT_MS || peer->limit_ms == HTTP_IDLE_LIMIT_MS) &&
           now_ms - peer->since_ms >= SILENT_MS;
}

static void cut(struct peer *peer) {
    if (!peer->is_cut) {
        peer->is_cut = true;
        (void)shutdown(peer->fd, SHUT_RDWR);
    }
}

/* A peer whose time is over is shut down: the library then sees its end. */
static void sweep_peers(struct http_server *server, int64_t now_ms) {
    bool is_full = server->peer_count > server->options.connections_max * 3 / 4;
    for (struct peer *peer = server->peer_first; peer != NULL; peer = peer->next) {
        bool is_over = peer->limit_ms > 0 && now_ms - peer->since_ms >= peer->limit_ms;
        if (is_over || (is_full && is_silent(peer, now_ms))) {
            cut(peer);
        }
    }
}

/* Nobody listens to a suspended connection: those whose other end is closed are looked for. */
static void sweep_streams(struct http_server *server, int64_t now_ms) {
    nfds_t count = 0;
    if (server->stream_first == NULL || now_ms - server->streams_swept_ms < STREAM_SWEEP_MS) {
        return;
    }
    server->streams_swept_ms = now_ms;
    struct http_exchange *each = server->stream_first;
    for (; each != NULL; each = each->next) {
        int fd = each->peer != NULL ? each->peer->fd : -1;
        server->streams[count++] = (struct pollfd){.fd = fd, .events = POLLRDHUP};
    }
    if (poll(server->streams, count, 0) <= 0) {
        return;
    }
    count = 0;
    for (each = server->stream_first; each != NULL; each = each->next) {
        if (server->streams[count++].revents != 0 && each->peer != NULL) {
            cut(each->peer);
            http_stream_end(each);
        }
    }
}

static void sweep_waiting(struct http_server *server, int64_t now_ms) {
    struct http_exchange *next;
    for (struct http_exchange *each = server->waiting_first; each != NULL; each = next) {
        next = each->next;
        if (now_ms < each->due_ms) {
            continue;
        }
        if (each->stage != HTTP_DELAYED) {
            http_exchange_fill(each, MHD_HTTP_SERVICE_UNAVAILABLE,
                               "busy: the server runs a long command, or has no processor time\n");
        }
        http_exchange_ready(each);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct http_server *server = timer->data;
    const struct http_handler *handler = server->options.handler;
    int64_t now_ms = http_server_now(server);
    sweep_waiting(server, now_ms);
    sweep_peers(server, now_ms);
    sweep_streams(server, now_ms);
    if (handler->step != NULL) {
        handler->step(handler->context, now_ms);
    }
    set_timer(server);
}

/* Every few milliseconds while a request waits, ten times a second while somebody is connected. */
static void set_timer(struct http_server *server) {
    uint64_t step_ms = server->waiting_first != NULL  ? WAIT_STEP_MS
                       : server->stream_first != NULL ? STREAM_STEP_MS
                       : server->peer_first != NULL   ? SWEEP_MS
                                                      : server->options.handler->step_ms;
    if (step_ms == server->timer_ms) {
        return;
    }
    server->timer_ms = step_ms;
    if (step_ms > 0) {
        uv_timer_start(&server->timer, on_timer, step_ms, step_ms);
    } else {
        uv_timer_stop(&server->timer);
    }
}

static void close_handles(struct http_server *server) {
    uv_close((uv_handle_t *)&server->poll, NULL);
    uv_close((uv_handle_t *)&server->timer, NULL);
    uv_close((uv_handle_t *)&server->idle, NULL);
    uv_close((uv_handle_t *)&server->check, NULL);
    asks_detach(&server->asks);
}

static void end(struct http_server *server) {
    const struct http_handler *handler = server->options.handler;
    server->is_ended = true;
    while (server->waiting_first != NULL) {
        http_exchange_fill(server->waiting_first, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "the server ends\n");
        http_exchange_ready(server->waiting_first);
    }
    for (struct http_exchange *each = server->stream_first; each != NULL; each = each->next) {
        http_stream_end(each);
    }
    MHD_run(server->daemon);
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    if (handler->end != NULL) {
        handler->end(handler->context);
    }
    close_handles(server);
}

static void on_check(uv_check_t *check) {
    struct http_server *server = check->data;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    if (server->is_ended) {
        return;
    }
    if (atomic_load_explicit(&server->is_stopping, memory_order_acquire)) {
        end(server);
        return;
    }
    unsigned count;
    do { /* once there is room again, the library listens again at the beginning of a run */
        count = server->peer_count;
        MHD_run(server->daemon);
    } while (server->peer_count < count);
    if (MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES && wait_ms == 0) {
        uv_idle_start(&server->idle, on_idle);
    } else {
        uv_idle_stop(&server->idle);
    }
    set_timer(server);
}

static void run_thread(void *context) {
    struct http_server *server = context;
    thread_signals_begin();
    (void)pthread_setname_np(pthread_self(), "leaderboard-web");
    worker_step_behind();
    uv_run(&server->loop, UV_RUN_DEFAULT);
}

/* ---- beginning and end ---- */

/* The target is kept as it was sent, and the path that the library shows is decoded. */
static struct MHD_Daemon *start_daemon(struct http_server *server, int fd) {
    const struct http_server_options *options = &server->options;
    const struct MHD_OptionItem with_tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem without_tls[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    flags |= options->certificate != NULL ? (unsigned)MHD_USE_TLS : 0;
    return MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, options->connections_max, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HTTP_CONNECTION_SIZE, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server,
        MHD_OPTION_URI_LOG_CALLBACK, begin_exchange, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        options->certificate != NULL ? with_tls : without_tls, MHD_OPTION_END);
}

static bool init_handles(struct http_server *server) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->poll.data = server->timer.data = server->check.data = server;
    if (info == NULL || uv_poll_init(&server->loop, &server->poll, info->epoll_fd) != 0 ||
        uv_timer_init(&server->loop, &server->timer) != 0 ||
        uv_idle_init(&server->loop, &server->idle) != 0 ||
        uv_check_init(&server->loop, &server->check) != 0 ||
        uv_poll_start(&server->poll, UV_READABLE, on_poll) != 0 ||
        uv_check_start(&server->check, on_check) != 0) {
        return false;
    }
    set_timer(server);
    return asks_attach(&server->asks, &server->loop);
}

/* What a program can do nothing about, and that happens to none: out of memory or descriptors in the
 * middle of the start. */
static struct http_server *fail(const char *what, char *error) {
    snprintf(error, HTTP_ERROR_MAX, "cannot serve HTTP: %s", what);
    return NULL;
}

static struct http_server *create(const struct http_server_options *options) {
    struct http_server *server = memory_allocate_zeroed(sizeof *server);
    struct pollfd *streams = memory_allocate_zeroed((options->streams_max + 1) * sizeof *streams);
    if (server == NULL || streams == NULL) {
        memory_free(server);
        memory_free(streams);
        return NULL;
    }
    server->options = *options;
    server->streams = streams;
    return server;
}

struct http_server *http_server_start(int fd, uv_loop_t *engine_loop,
                                      const struct http_server_options *options, char *error) {
    struct http_server *server = create(options);
    if (server == NULL) {
        close(fd);
        return fail("out of memory", error);
    }
    server->daemon = start_daemon(server, fd);
    if (server->daemon == NULL) {
        close(fd);
        memory_free(server->streams);
        memory_free(server);
        return fail(options->certificate != NULL ? "the certificate and its key do not fit"
                                                 : "out of memory or descriptors",
                    error);
    }
    *options->place = server;
    if (uv_loop_init(&server->loop) != 0 ||
        !asks_init(&server->asks, engine_loop, options->handler->engine_context,
                   options->handler->context) ||
        !init_handles(server) || uv_thread_create(&server->thread, run_thread, server) != 0) {
        /* The handles cannot be taken back without turning the engine's loop: the server does not start,
         * and the process ends. */
        return fail("out of memory, descriptors or threads", error);
    }
    return server;
}

static void drop_nothing(void *context, struct ask *ask) {
    (void)context;
    (void)ask;
}

void http_server_stop(struct http_server *server) {
    const struct http_handler *handler = server->options.handler;
    atomic_store_explicit(&server->is_stopping, true, memory_order_release);
    asks_wake_asker(&server->asks);
    uv_thread_join(&server->thread);
    CHECK(uv_loop_close(&server->loop) == 0);
    asks_close(&server->asks, handler->drop != NULL ? handler->drop : drop_nothing);
}

void http_server_destroy(struct http_server *server) {
    asks_deinit(&server->asks);
    memory_free(server->streams);
    memory_free(server);
}
