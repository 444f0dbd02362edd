/* See http.h.
 *
 * libmicrohttpd runs in our loop: it has an epoll descriptor, which the loop watches, and all of its
 * functions are called on this thread alone. A request that waits for the engine, or for a moment before a
 * refusal, is suspended, and in the list `waiting`. A stream that has nothing to send is suspended, too.
 *
 * Invariant: a suspended request is in one of the lists, and leaves `waiting` when its reply is ready. */
#include "server/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/list.h"
#include "codec/memory.h"
#include "codec/thread_signals.h"
#include "server/system/service.h"
#include "server/system/worker.h"

enum { HTTP_EXCESS_MAX = 16 }; /* connections of an address beyond its limit, which are told so */

/* A connection, and since when it is in its phase. */
struct http_peer {
    struct http_peer *next, *previous;
    int fd;
    struct http_exchange *exchange;       /* of the request that it is at; NULL: none */
    uint8_t address[SUBNET_ADDRESS_SIZE]; /* of the connection */
    uint8_t client[SUBNET_ADDRESS_SIZE];  /* who asks: the same, or whom a proxy names */
    uint8_t shown_client[SUBNET_ADDRESS_SIZE];
    char shown[HTTP_ADDRESS_MAX]; /* that one as text; empty: not yet */
    bool is_proxy;                /* it is one of options.proxies */
    bool is_counted;              /* among the connections of the client's address */
    bool is_excess;               /* the address had enough of them when it came */
    bool is_cut;
    int64_t since_ms, limit_ms; /* limit_ms 0: none */
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
    struct http_peer *peer_first;
    unsigned peer_count;
    struct http_exchange *waiting_first, *stream_first;
    unsigned stream_count;
    unsigned lingering_count; /* of the library's last run: see http_server_take_request */
    size_t sending_size;      /* of replies that are being sent */
    size_t bodies_size;       /* of requests */
    struct pollfd *streams;   /* streams_max of them */
    struct http_spares spares;
    struct http_exchange *spare_first; /* with their bodies; by next */
    unsigned spare_exchange_count;
    int64_t streams_swept_ms, peers_swept_ms;
    uint64_t timer_ms; /* 0: it does not run */
    _Atomic bool is_stopping;
    bool is_ended;
};

/* ---- connections: since when each is in its phase, and how many an address has.
 *
 *     direct      accept: counted, or told that there are too many (is_excess), or refused
 *     by a proxy  each request: counted for the client that X-Forwarded-For names, until its reply is sent
 *
 * An IPv6 network of 64 bits is one address here, as one customer of a provider has that many. */

enum { SILENT_MS = 200, NETWORK_V6_SIZE = 8 };

int64_t http_server_now(const struct http_server *server) {
    return (int64_t)uv_now(&server->loop);
}

/* From now on it has so much time; 0: no limit. peer NULL: nothing. */
static void http_server_begin_phase(struct http_server *server, struct http_peer *peer,
                                    int64_t limit_ms) {
    if (peer != NULL) {
        peer->since_ms = http_server_now(server);
        peer->limit_ms = limit_ms;
    }
}

/* ---- addresses ---- */

static bool http_server_is_proxy(const struct http_server *server, const uint8_t *address) {
    return subnet_list_has(server->options.proxies, server->options.proxy_count, address);
}

/* Of those that count; excess: of those that do not, in place of that. */
static unsigned http_server_count_of(const struct http_server *server, const uint8_t *client,
                                     bool is_excess) {
    size_t size = subnet_is_v4(client) ? SUBNET_ADDRESS_SIZE : NETWORK_V6_SIZE;
    unsigned count = 0;
    for (const struct http_peer *peer = server->peer_first; peer != NULL; peer = peer->next) {
        bool is_wanted = is_excess ? peer->is_excess : peer->is_counted;
        count += is_wanted && memcmp(peer->client, client, size) == 0;
    }
    return count;
}

static bool http_server_has_enough(const struct http_server *server, const uint8_t *client) {
    unsigned most = server->options.address_connections_max; /* 0: any number */
    return most > 0 && !subnet_is_loopback(client) && !http_server_is_proxy(server, client) &&
           http_server_count_of(server, client, false) >= most;
}

/* ---- coming and going ---- */

static enum MHD_Result http_server_accept(void *context, const struct sockaddr *from,
                                          socklen_t size) {
    const struct http_server *server = context;
    uint8_t address[SUBNET_ADDRESS_SIZE];
    (void)size;
    bool is_refused = subnet_take_address(from, address) &&
                      http_server_has_enough(server, address) &&
                      http_server_count_of(server, address, true) >= HTTP_EXCESS_MAX;
    return is_refused ? MHD_NO : MHD_YES;
}

static void http_server_end_request(void *context, struct MHD_Connection *connection, void **own,
                                    enum MHD_RequestTerminationCode code);

/* A connection comes, or goes. */
static void http_server_notify(void *context, struct MHD_Connection *connection, void **own,
                               enum MHD_ConnectionNotificationCode code) {
    struct http_server *server = context;
    struct http_peer *peer = *own;
    if (code != MHD_CONNECTION_NOTIFY_STARTED) {
        *own = NULL;
        if (peer != NULL && peer->exchange != NULL) {
            /* The library (0.9.75) forgets the request when it answers a head that is too long. */
            void *left = peer->exchange;
            http_server_end_request(server, connection, &left, MHD_REQUEST_TERMINATED_WITH_ERROR);
        }
        if (peer != NULL) {
            LIST_PART(server->peer_first, peer);
            server->peer_count--;
            memory_free(peer);
        }
        return;
    }
    /* The library (1.0) answers each question in the same place, so an answer holds up to the next question. */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    int fd = info != NULL ? info->connect_fd : -1;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *from = info != NULL ? info->client_addr : NULL;
    peer = fd >= 0 ? memory_allocate_zeroed(sizeof *peer) : NULL;
    if (peer == NULL) {
        return;
    }
    peer->fd = fd;
    bool has_address = subnet_take_address(from, peer->address);
    memcpy(peer->client, peer->address, sizeof peer->client);
    peer->is_proxy = has_address && http_server_is_proxy(server, peer->address);
    peer->is_excess = has_address && http_server_has_enough(server, peer->address);
    peer->is_counted = !peer->is_excess && !peer->is_proxy;
    http_server_begin_phase(server, peer, HTTP_REQUEST_LIMIT_MS);
    LIST_JOIN(server->peer_first, peer);
    server->peer_count++;
    *own = peer;
}

/* Shut it down: the library then sees its end. */
static void http_server_cut(struct http_peer *peer) {
    if (!peer->is_cut) {
        peer->is_cut = true;
        (void)shutdown(peer->fd, SHUT_RDWR);
    }
}

/* ---- behind proxies ---- */

/* Proxies add a header of their own behind those that came, or their word to the last one. */
static enum MHD_Result http_server_keep_last(void *own, enum MHD_ValueKind kind, const char *name,
                                             const char *value) {
    const char **last = own;
    (void)kind;
    if (value != NULL && strcasecmp(name, HTTP_FORWARDED_FOR) == 0) {
        *last = value;
    }
    return MHD_YES;
}

/* Its request's headers are there: take the client that a proxy names. The last address that is no proxy's; those
 * before it are what somebody says. false: the client's address has too many connections. */
static bool http_server_count_client(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    struct http_peer *peer = exchange->peer;
    const char *value = NULL;
    uint8_t address[SUBNET_ADDRESS_SIZE];
    if (peer == NULL || !peer->is_proxy) {
        return peer == NULL || !peer->is_excess;
    }
    memcpy(peer->client, peer->address, sizeof peer->client);
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, http_server_keep_last,
                                    &value);
    size_t size = value != NULL ? strlen(value) : 0;
    while (http_request_take_forwarded(value, &size, address)) {
        memcpy(peer->client, address, sizeof peer->client);
        if (!http_server_is_proxy(server, address)) {
            break;
        }
    }
    peer->is_counted = !http_server_has_enough(server, peer->client);
    return peer->is_counted;
}

bool http_exchange_peer(const struct http_exchange *exchange, char *text) {
    struct http_peer *peer = exchange->peer;
    if (peer == NULL) {
        snprintf(text, HTTP_ADDRESS_MAX, "?");
        return false;
    }
    if (peer->shown[0] == '\0' ||
        memcmp(peer->shown_client, peer->client, sizeof peer->client) != 0) {
        struct subnet client = {.bits = 8 * SUBNET_ADDRESS_SIZE};
        char shown[SUBNET_TEXT_MAX];
        memcpy(client.address, peer->client, sizeof client.address);
        subnet_print(&client, shown);
        snprintf(peer->shown, sizeof peer->shown, "%s", shown);
        memcpy(peer->shown_client, peer->client, sizeof peer->client);
    }
    memcpy(text, peer->shown, sizeof peer->shown);
    return subnet_is_loopback(peer->address);
}

bool http_exchange_is_local(const struct http_exchange *exchange) {
    static const char *const names[] = {HTTP_FORWARDED_FOR, "Forwarded", "X-Real-IP",
                                        "X-Forwarded-Host"};
    const struct http_peer *peer = exchange->peer;
    if (peer == NULL || !subnet_is_loopback(peer->address) || !subnet_is_loopback(peer->client)) {
        return false;
    }
    for (size_t i = 0; !peer->is_proxy && i < sizeof names / sizeof names[0]; i++) {
        if (http_request_header(exchange, names[i]) != NULL) {
            return false;
        }
    }
    return true;
}

/* ---- replies: how they are filled in, sent, and waited for ---- */

void http_exchange_refuse(struct http_exchange *exchange, unsigned status, const char *format,
                          ...) {
    va_list arguments;
    va_start(arguments, format);
    http_reply_fill_block(exchange, status, format, arguments);
    va_end(arguments);
    http_exchange_ready(exchange);
}

static enum MHD_Result http_server_send(struct http_exchange *exchange) {
    struct http_reply *reply = &exchange->reply;
    if (reply->body.is_broken) {
        http_reply_fill(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR,
                        "the reply is too long, or out of memory\n");
    }
    /* Those who ask for much and read little do not take all memory. */
    struct http_server *server = exchange->server;
    size_t sending_max = server->options.sending_max;
    if (sending_max > 0 && server->sending_size + reply->body.size > sending_max) {
        buffer_deinit(&reply->body);
        http_reply_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                        "busy: too many long replies are being sent\n");
    }
    exchange->counted = reply->body.size;
    server->sending_size += exchange->counted;
    /* The body stays until the exchange is over, which is behind the last byte. The library only reads, though its
     * parameters are not const. */
    struct MHD_Response *response = http_reply_take_spare(&server->spares, exchange);
    if (response != NULL) {
        http_server_begin_phase(server, exchange->peer, HTTP_SEND_LIMIT_MS);
        return MHD_queue_response(exchange->connection, reply->status, response);
    }
    bool is_fixed = reply->fixed.at != NULL;
    response = MHD_create_response_from_buffer(
        is_fixed ? reply->fixed.size : reply->body.size,
        is_fixed ? (void *)(uintptr_t)reply->fixed.at : reply->body.at, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    http_reply_add_headers(exchange, response);
    enum MHD_Result result =
        reply->is_login_wanted
            ? MHD_queue_basic_auth_fail_response(exchange->connection, "leaderboard", response)
            : MHD_queue_response(exchange->connection, reply->status, response);
    MHD_destroy_response(response);
    http_server_begin_phase(server, exchange->peer, HTTP_SEND_LIMIT_MS);
    return result;
}

/* ---- requests that wait ---- */

static bool http_server_is_waiting(const struct http_exchange *exchange) {
    return exchange->stage == HTTP_WAITS || exchange->stage == HTTP_DELAYED;
}

static void http_server_wait_in(struct http_exchange *exchange, enum http_stage stage,
                                int64_t wait_ms) {
    struct http_server *server = exchange->server;
    bool was_waiting = http_server_is_waiting(exchange);
    CHECK(exchange->stage == HTTP_NEW || was_waiting);
    exchange->stage = stage;
    exchange->due_ms = http_server_now(server) + wait_ms;
    if (was_waiting) {
        return;
    }
    LIST_JOIN(server->waiting_first, exchange);
}

void http_exchange_wait(struct http_exchange *exchange, int64_t wait_ms) {
    http_server_wait_in(exchange, HTTP_WAITS, wait_ms);
}

void http_exchange_delay(struct http_exchange *exchange, int64_t delay_ms) {
    http_server_wait_in(exchange, HTTP_DELAYED, delay_ms);
}

static void http_server_on_idle(uv_idle_t *idle) {
    (void)idle; /* an active idle handle only keeps poll from blocking */
}

static void http_server_resume(struct http_exchange *exchange) {
    if (exchange->is_suspended) {
        exchange->is_suspended = false;
        MHD_resume_connection(exchange->connection); /* and wakes the loop */
    } else if (exchange->has_lingered) {
        uv_idle_start(&exchange->server->idle, http_server_on_idle);
    }
}

void http_exchange_ready(struct http_exchange *exchange) {
    if (http_server_is_waiting(exchange)) {
        LIST_PART(exchange->server->waiting_first, exchange);
    }
    exchange->stage = HTTP_READY;
    http_server_resume(exchange);
}

/* ---- streams: one text after another, of which the newest replaces those that have not begun ---- */

enum {
    PIECE_MAX = 64 * 1024, /* of a stream, at a time */
    STREAM_SWEEP_MS = 1000,
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

/* ---- streams ---- */

bool http_exchange_stream(struct http_exchange *exchange) {
    struct http_server *server = exchange->server;
    if (server->stream_count >= server->options.streams_max) {
        return false;
    }
    if (http_server_is_waiting(exchange)) {
        LIST_PART(server->waiting_first, exchange);
    }
    LIST_JOIN(server->stream_first, exchange);
    server->stream_count++;
    exchange->stage = HTTP_STREAMS;
    exchange->reply.content_type = "text/event-stream; charset=utf-8";
    http_server_resume(exchange);
    return true;
}

/* What the library asks for when the socket takes more. */
static ssize_t http_server_read_stream(void *own, uint64_t position, char *out, size_t size_max) {
    struct http_exchange *exchange = own;
    (void)position;
    if (exchange->sending != NULL && exchange->sent == exchange->sending->bytes.size) {
        http_text_release(exchange->sending);
        exchange->sending = NULL;
        http_server_begin_phase(exchange->server, exchange->peer, 0);
    }
    if (exchange->sending == NULL && exchange->pending != NULL) {
        exchange->sending = exchange->pending;
        exchange->pending = NULL;
        exchange->sent = 0;
        http_server_begin_phase(exchange->server, exchange->peer, HTTP_SEND_LIMIT_MS);
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

/* A stream that is suspended has sent all that the library was given. So what its socket takes at once goes past the
 * library, which would be resumed and suspended for it: for a text of 4 KB that is half of the time. TLS is the
 * library's, and so is what the socket does not take. Returns the bytes that were sent. */
static size_t http_server_send_past(const struct http_exchange *exchange, struct bytes text) {
    const struct http_peer *peer = exchange->peer;
    bool may_send = exchange->is_suspended && peer != NULL && !peer->is_cut &&
                    !http_server_is_secure(exchange->server);
    ssize_t sent = may_send ? send(peer->fd, text.at, text.size, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    return sent > 0 ? (size_t)sent : 0;
}

void http_stream_put(struct http_exchange *exchange, struct http_text *text) {
    CHECK(exchange->stage == HTTP_STREAMS);
    size_t sent = http_server_send_past(exchange, buffer_bytes(&text->bytes));
    if (sent == text->bytes.size) {
        return;
    }
    text->uses++;
    if (sent > 0) {
        CHECK(exchange->sending == NULL && exchange->pending == NULL);
        exchange->sending = text;
        exchange->sent = sent;
        http_server_begin_phase(exchange->server, exchange->peer, HTTP_SEND_LIMIT_MS);
    } else {
        http_text_release(exchange->pending);
        exchange->pending = text;
    }
    http_server_resume(exchange);
}

void http_stream_end(struct http_exchange *exchange) {
    exchange->is_stream_over = true;
    http_server_resume(exchange);
}

static enum MHD_Result http_server_send_stream(struct http_exchange *exchange) {
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, PIECE_MAX, http_server_read_stream, exchange, NULL);
    if (response == NULL) {
        return MHD_NO;
    }
    /* It ends with the connection, and is not in chunks: so a text may go past the library (http_server_send_past). */
    (void)MHD_set_response_options(response, MHD_RF_HTTP_VERSION_1_0_ONLY, MHD_RO_END);
    http_reply_add_headers(exchange, response);
    enum MHD_Result result = MHD_queue_response(exchange->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* Nobody listens to a suspended connection: those whose other end is closed are looked for. */
static void http_server_sweep_streams(struct http_server *server, int64_t now_ms) {
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
            http_server_cut(each->peer);
            http_stream_end(each);
        }
    }
}

/* ---- what comes: a request, from its first line to the end of its reply ---- */

static bool http_server_has_body(const struct http_exchange *exchange) {
    return exchange->method == HTTP_POST || exchange->method == HTTP_PUT ||
           exchange->method == HTTP_PATCH;
}

static size_t http_server_body_max(const struct http_exchange *exchange) {
    size_t body_max = exchange->options->body_max;
    return !http_server_has_body(exchange) ? 0 : body_max > 0 ? body_max : HTTP_BODY_MAX;
}

static void http_server_refuse_size(struct http_exchange *exchange) {
    http_reply_fill(exchange, 413, "a body has at most %zu bytes\n",
                    http_server_body_max(exchange));
}

/* ---- answers past the library, which would close the connection without a word, or send two ---- */

/* What is filled in: one status line, one body, and no more; over TLS with the library's keys. */
static void http_server_answer_and_end(struct http_exchange *exchange) {
    struct http_reply *reply = &exchange->reply;
    struct http_peer *peer = exchange->peer;
    char text[2 * HTTP_ERROR_MAX];
    int size =
        snprintf(text, sizeof text,
                 "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: %s\r\n"
                 "Cache-Control: no-store\r\nContent-Length: %zu\r\n\r\n%.*s",
                 reply->status, MHD_get_reason_phrase_for(reply->status), reply->content_type,
                 reply->body.size, (int)reply->body.size, reply->body.at);
    CHECK(size < (int)sizeof text);
    exchange->is_answered = true;
    exchange->is_too_long = true; /* what comes of its body is dropped */
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    if (reply->body.is_broken || peer == NULL || peer->is_cut) {
        return; /* it is closed without a word */
    }
    if (info != NULL) {
        (void)!gnutls_record_send(info->tls_session, text, (size_t)size);
        (void)gnutls_bye(info->tls_session, GNUTLS_SHUT_WR);
    } else {
        (void)!send(peer->fd, text, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    peer->is_cut = true;
    (void)shutdown(peer->fd, SHUT_WR);
}

static void http_server_answer_too_long(struct http_exchange *exchange) {
    bool is_line = exchange->target != NULL && strlen(exchange->target) > HTTP_HEAD_SIZE_MAX / 2;
    http_reply_fill(exchange,
                    is_line ? MHD_HTTP_URI_TOO_LONG : MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
                    "the head of a request has at most %d bytes, where 64 are counted for each "
                    "header and parameter, and cookies twice\n",
                    HTTP_HEAD_SIZE_MAX);
    http_server_answer_and_end(exchange);
}

/* Fill in why the request is refused. false: it is not. */
static bool http_server_refuse(struct http_exchange *exchange, const char *method,
                               const char *version) {
    const struct http_server_options *options = exchange->options;
    unsigned taken = options->methods | 1U << HTTP_GET | 1U << HTTP_HEAD;
    unsigned number = 0;
    while (number < HTTP_METHODS &&
           ((taken >> number & 1) == 0 || strcmp(method, http_method_names[number]) != 0)) {
        number++;
    }
    /* Of others a handler that takes more than two knows which ones the path takes. */
    bool is_known = number != HTTP_OTHER || options->methods != 0;
    exchange->method = is_known ? (enum http_method)number : HTTP_GET;
    exchange->stage = HTTP_READY;
    bool is_ambiguous = http_request_is_ambiguous(exchange, method, version);
    if (http_request_head_is_too_long(
            exchange)) { /* the library has no room for any other answer */
        http_server_answer_too_long(exchange);
        return true;
    }
    if (is_ambiguous) {
        return true;
    }
    const char *length = http_request_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t size = 0;
    bool is_length = length != NULL && bytes_parse_u64(bytes_from_text(length), &size);
    /* How long a chunked body is, its last chunk says. */
    bool is_chunked = http_request_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
    size_t body_max = http_server_body_max(exchange);
    if (!http_request_allows_host(http_request_header(exchange, MHD_HTTP_HEADER_HOST),
                                  options->hosts)) {
        http_reply_fill(exchange, 421,
                        "this server does not know itself by that name: ask it by its address, "
                        "or add the name to %s\n",
                        options->hosts_setting);
    } else if (!is_known) {
        http_reply_fill(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    } else if (is_chunked ? body_max == 0 : length != NULL && !(is_length && size <= body_max)) {
        if (body_max > 0) {
            http_server_refuse_size(exchange);
        } else {
            http_reply_fill(exchange, 413, "a request has no body here\n");
        }
    } else if (http_request_refuse_coding(exchange)) {
        /* The reply says why. */
    } else if (!http_server_count_client(exchange)) {
        char address[HTTP_ADDRESS_MAX];
        (void)http_exchange_peer(exchange, address);
        http_reply_fill(exchange, MHD_HTTP_TOO_MANY_REQUESTS,
                        "too many connections from %s: see %s\n", address,
                        options->address_setting);
        exchange->reply.is_last = exchange->peer->is_excess;
    } else if (exchange->target == NULL) {
        http_reply_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    } else {
        exchange->stage = HTTP_NEW;
        return false;
    }
    return true;
}

/* The library calls this first, with what stands behind the method: what it returns is the request's own. */
static void *http_server_begin_request(void *context, const char *target,
                                       struct MHD_Connection *connection) {
    struct http_server *server = context;
    struct http_exchange *exchange = server->spare_first;
    struct buffer reply_body;
    struct buffer body;
    buffer_init(&reply_body, HTTP_REPLY_SIZE_MAX);
    buffer_init(&body, server->options.body_max > 0 ? server->options.body_max : HTTP_BODY_MAX);
    if (exchange != NULL) {
        server->spare_first = exchange->next;
        server->spare_exchange_count--;
        exchange->reply.body.size_max = reply_body.size_max; /* handlers put in others */
        exchange->body.size_max = body.size_max;
        reply_body = exchange->reply.body;
        body = exchange->body;
    } else if ((exchange = memory_allocate(sizeof *exchange)) == NULL) {
        return NULL;
    }
    memset(exchange, 0, offsetof(struct http_exchange, seen));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    size_t size = strlen(target);
    exchange->server = server;
    exchange->options = &server->options;
    exchange->connection = connection;
    exchange->peer = info != NULL ? info->socket_context : NULL;
    if (exchange->peer != NULL) {
        exchange->peer->exchange = exchange;
    }
    exchange->line = target;
    exchange->target =
        size < sizeof exchange->target_room ? exchange->target_room : memory_allocate(size + 1);
    if (exchange->target != NULL) {
        memcpy(exchange->target, target, size + 1);
    }
    exchange->reply.status = MHD_HTTP_OK;
    exchange->reply.content_type = HTTP_PLAIN_TEXT;
    exchange->reply.body = reply_body;
    exchange->body = body;
    size_t parameters = 0;
    for (const char *at = size < sizeof exchange->target_room ? NULL : target; at != NULL;
         at = strchr(at + 1, '&')) {
        parameters++;
    }
    if (size + parameters * HTTP_RECORD_SIZE > HTTP_HEAD_SIZE_MAX) {
        http_server_answer_too_long(exchange);
    }
    return exchange;
}

/* false: far more came in chunks than any body has, and nobody waits for the end of it. */
static bool http_server_take_body(struct http_exchange *exchange, const char *at, size_t size) {
    enum { DROPPED_MAX = 1 << 20 };
    struct http_server *server = exchange->server;
    const struct http_server_options *options = &server->options;
    size_t size_max = http_server_body_max(exchange);
    if (exchange->is_too_long || exchange->body.size + size > size_max) {
        exchange->is_too_long = true;
        exchange->dropped += size;
        return exchange->dropped <= DROPPED_MAX;
    }
    if (options->bodies_max > 0 && server->bodies_size + size > options->bodies_max) {
        exchange->body.is_broken = true;
        return true;
    }
    server->bodies_size += size;
    exchange->received += size;
    buffer_append(&exchange->body, at, size);
    return true;
}

/* All of it has come. Fills in the refusal; false: nothing. */
static bool http_server_refuse_body(struct http_exchange *exchange) {
    if (exchange->server->is_ended) {
        /* In the last run: the library must not be stopped while a request is suspended. */
        http_reply_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
    } else if (exchange->is_too_long) {
        http_server_refuse_size(exchange);
    } else if (exchange->body.is_broken) {
        http_reply_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                        "busy: too many long requests are there, or no memory\n");
    } else {
        return false;
    }
    return true;
}

/* The library calls this when the headers are there, once more for each piece of a body and once when
 * all is there; and again when the connection was resumed. */
static enum MHD_Result http_server_take_request(void *context, struct MHD_Connection *connection,
                                                const char *path, const char *method,
                                                const char *version, const char *upload,
                                                size_t *upload_size, void **own) {
    struct http_server *server = context;
    struct http_exchange *exchange = *own;
    (void)connection;
    if (exchange == NULL) {
        return MHD_NO;
    }
    exchange->path = path;
    if (!exchange->is_begun) {
        exchange->is_begun = true;
        bool is_refused = exchange->is_answered || http_server_refuse(exchange, method, version);
        if (exchange->is_answered) {
            return MHD_YES; /* the rest of it is read, up to its end */
        }
        /* From here on it waits for us, unless a body is to come. */
        http_server_begin_phase(
            server, exchange->peer,
            http_server_has_body(exchange) && !is_refused ? HTTP_REQUEST_LIMIT_MS : 0);
        return is_refused ? http_server_send(exchange) : MHD_YES;
    }
    if (*upload_size > 0) {
        bool is_taken = http_server_take_body(exchange, upload, *upload_size);
        *upload_size = 0;
        return is_taken ? MHD_YES : MHD_NO;
    }
    if (exchange->is_answered) {
        return MHD_NO;
    }
    if (exchange->stage == HTTP_NEW && http_server_refuse_body(exchange)) {
        return http_server_send(exchange);
    }
    if (exchange->stage == HTTP_NEW) {
        http_server_begin_phase(server, exchange->peer, 0);
        server->options.handler->handle(server->options.handler->context, exchange);
    }
    if (exchange->stage == HTTP_READY) {
        return http_server_send(exchange);
    }
    if (exchange->stage == HTTP_STREAMS) {
        return http_server_send_stream(exchange);
    }
    /* Only here is a request suspended: the library cannot queue the reply of a connection that is. A connection that
     * is suspended and resumed costs it two epoll_ctl and a recv that finds nothing. Left as it is it asks again in its
     * next run, and by then the engine has mostly answered: so only who waits for longer is suspended. */
    if (!exchange->has_lingered) {
        exchange->has_lingered = true;
        server->lingering_count++;
        return MHD_YES;
    }
    exchange->is_suspended = true;
    MHD_suspend_connection(exchange->connection);
    return MHD_YES;
}

static void http_exchange_free(struct http_exchange *exchange) {
    buffer_deinit(&exchange->reply.body);
    buffer_deinit(&exchange->body);
    memory_free(exchange);
}

/* It is used again with its bodies, if these are short: making all of that anew is a tenth of a short request. */
static void http_exchange_give_back(struct http_exchange *exchange) {
    enum { SPARE_EXCHANGES_MAX = 32, SPARE_BODY_MAX = 4096 };
    struct http_server *server = exchange->server;
    struct buffer *bodies[] = {&exchange->reply.body, &exchange->body};
    if (exchange->target != exchange->target_room) {
        memory_free(exchange->target);
    }
    if (server->is_ended || server->spare_exchange_count == SPARE_EXCHANGES_MAX) {
        http_exchange_free(exchange);
        return;
    }
    for (unsigned i = 0; i < 2; i++) {
        buffer_clear(bodies[i]);
        if (bodies[i]->capacity > SPARE_BODY_MAX) {
            buffer_deinit(bodies[i]);
        }
    }
    exchange->next = server->spare_first;
    server->spare_first = exchange;
    server->spare_exchange_count++;
}

static void http_server_end_request(void *context, struct MHD_Connection *connection, void **own,
                                    enum MHD_RequestTerminationCode code) {
    struct http_server *server = context;
    struct http_exchange *exchange = *own;
    const struct http_handler *handler = server->options.handler;
    (void)connection;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    http_server_begin_phase(server, exchange->peer, HTTP_IDLE_LIMIT_MS);
    if (exchange->peer != NULL) {
        exchange->peer->is_counted &= !exchange->peer->is_proxy;
        exchange->peer->exchange = NULL;
    }
    if (exchange->is_begun && handler->leave != NULL) {
        handler->leave(handler->context, exchange);
    }
    if (http_server_is_waiting(exchange)) {
        LIST_PART(server->waiting_first, exchange);
    } else if (exchange->stage == HTTP_STREAMS) {
        LIST_PART(server->stream_first, exchange);
        server->stream_count--;
    }
    if (exchange->spare != NULL) {
        http_reply_give_spare(&server->spares, exchange->spare);
    }
    http_text_release(exchange->sending);
    http_text_release(exchange->pending);
    server->sending_size -= exchange->counted;
    server->bodies_size -= exchange->received;
    http_exchange_give_back(exchange);
    *own = NULL;
}

/* A Content-Length that is no number never comes to the handler, and neither do cookies that are no longer kept twice. The
 * library (0.9.75) answers these with the same head twice, but says in its log before that it will: then the answer is
 * ours, and the library finds a connection that is shut. It is of a request whose headers are there and that the handler
 * has not been shown. */
static void http_server_log(void *context, const char *format, va_list arguments) {
    const struct http_server *server = context;
    bool is_length = strstr(format, "Content-Length") != NULL;
    bool is_error = !is_length && strstr(format, "HTTP response code is %u") != NULL;
    if (!is_length &&
        !(is_error && va_arg(arguments, unsigned) == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE)) {
        return;
    }
    for (struct http_peer *peer = server->peer_first; peer != NULL; peer = peer->next) {
        struct http_exchange *exchange = peer->exchange;
        if (exchange == NULL || exchange->is_begun || exchange->is_answered ||
            MHD_get_connection_info(exchange->connection,
                                    MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) == NULL) {
            continue;
        }
        if (is_error) {
            http_server_answer_too_long(exchange);
            continue;
        }
        const char *length = http_request_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
        bool is_long =
            length != NULL && length[0] != '\0' && length[strspn(length, "0123456789")] == '\0';
        http_reply_fill(exchange, is_long ? 413 : MHD_HTTP_BAD_REQUEST,
                        is_long ? "no body is as long as this Content-Length\n"
                                : "Content-Length is a number of bytes, in digits\n");
        http_server_answer_and_end(exchange);
    }
}

/* ---- for handlers ---- */

void http_server_ask(struct http_server *server, struct ask *ask) {
    http_ask_put(&server->asks, ask);
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

/* ---- the thread ---- */

enum { WAIT_STEP_MS = 10, STREAM_STEP_MS = 25, SWEEP_MS = 100 };

static void http_server_on_poll(uv_poll_t *poll, int status, int events) {
    (void)poll; /* the work is done in check */
    (void)status;
    (void)events;
}

static void http_server_on_timer(uv_timer_t *timer);

/* At the end of each turn of the loop: every few milliseconds while a request waits, ten times a second while somebody
 * is connected. */
static void http_server_set_timer(struct http_server *server) {
    uint64_t step_ms = server->waiting_first != NULL  ? WAIT_STEP_MS
                       : server->stream_first != NULL ? STREAM_STEP_MS
                       : server->peer_first != NULL   ? SWEEP_MS
                                                      : server->options.handler->step_ms;
    if (step_ms == server->timer_ms) {
        return;
    }
    server->timer_ms = step_ms;
    if (step_ms > 0) {
        /* Requests that come and go change the step all the time: a step that has begun is not begun anew. */
        uint64_t left_ms = uv_timer_get_due_in(&server->timer);
        bool is_sooner = uv_is_active((uv_handle_t *)&server->timer) != 0 && left_ms < step_ms;
        uv_timer_start(&server->timer, http_server_on_timer, is_sooner ? left_ms : step_ms,
                       step_ms);
    } else {
        uv_timer_stop(&server->timer);
    }
}

static void http_server_on_timer(uv_timer_t *timer) {
    struct http_server *server = timer->data;
    const struct http_handler *handler = server->options.handler;
    int64_t now_ms = http_server_now(server);
    /* Those that have waited for too long are replied to. */
    struct http_exchange *next;
    for (struct http_exchange *each = server->waiting_first; each != NULL; each = next) {
        next = each->next;
        if (now_ms < each->due_ms) {
            continue;
        }
        if (each->stage != HTTP_DELAYED) {
            http_reply_fill(each, MHD_HTTP_SERVICE_UNAVAILABLE,
                            "busy: the server runs a long command, or has no processor time\n");
        }
        http_exchange_ready(each);
    }
    /* Cut those whose time is over; and where there are many those from whom nothing has come for a while, so that
     * those who connect and say nothing do not keep others out. */
    bool is_full = server->peer_count > server->options.connections_max * 3 / 4;
    bool is_due = now_ms - server->peers_swept_ms >= SWEEP_MS;
    server->peers_swept_ms = is_due ? now_ms : server->peers_swept_ms;
    for (struct http_peer *peer = is_due ? server->peer_first : NULL; peer != NULL;
         peer = peer->next) {
        int64_t passed_ms = now_ms - peer->since_ms;
        bool is_over = peer->limit_ms > 0 && passed_ms >= peer->limit_ms;
        bool is_silent =
            (peer->limit_ms == HTTP_REQUEST_LIMIT_MS || peer->limit_ms == HTTP_IDLE_LIMIT_MS) &&
            passed_ms >= SILENT_MS;
        if (is_over || (is_full && is_silent)) {
            http_server_cut(peer);
        }
    }
    http_server_sweep_streams(server, now_ms);
    if (handler->step != NULL) {
        handler->step(handler->context, now_ms);
    }
    http_ask_send(&server->asks); /* timers may run behind the check */
    http_server_set_timer(server);
}

static void http_server_end(struct http_server *server) {
    const struct http_handler *handler = server->options.handler;
    server->is_ended = true;
    while (server->waiting_first != NULL) {
        http_reply_fill(server->waiting_first, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
        http_exchange_ready(server->waiting_first);
    }
    for (struct http_exchange *each = server->stream_first; each != NULL; each = each->next) {
        http_stream_end(each);
    }
    /* One run takes the replies, and the next one sends what is not sent yet. */
    MHD_run(server->daemon);
    MHD_run(server->daemon);
    MHD_stop_daemon(server->daemon);
    server->daemon = NULL;
    http_reply_destroy_spares(&server->spares);
    struct http_exchange *exchange;
    LIST_TAKE_EACH(server->spare_first, exchange) {
        http_exchange_free(exchange);
    }
    if (handler->end != NULL) {
        handler->end(handler->context);
    }
    uv_close((uv_handle_t *)&server->poll, NULL);
    uv_close((uv_handle_t *)&server->timer, NULL);
    uv_close((uv_handle_t *)&server->idle, NULL);
    uv_close((uv_handle_t *)&server->check, NULL);
    http_ask_detach(&server->asks);
}

static void http_server_on_check(uv_check_t *check) {
    struct http_server *server = check->data;
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    if (server->is_ended) {
        return;
    }
    if (atomic_load_explicit(&server->is_stopping, memory_order_acquire)) {
        http_server_end(server);
        return;
    }
    unsigned count;
    do { /* once there is room again, the library listens again at the beginning of a run */
        count = server->peer_count;
        server->lingering_count = 0;
        MHD_run(server->daemon);
    } while (server->peer_count < count);
    /* For those that linger the library wants to run at once, and an answer wakes the loop. */
    if (server->lingering_count == 0 && MHD_get_timeout(server->daemon, &wait_ms) == MHD_YES &&
        wait_ms == 0) {
        uv_idle_start(&server->idle, http_server_on_idle);
    } else {
        uv_idle_stop(&server->idle);
    }
    http_ask_send(&server->asks);
    http_server_set_timer(server);
}

static void http_server_run_thread(void *context) {
    struct http_server *server = context;
    thread_signals_begin();
    (void)pthread_setname_np(pthread_self(), "leaderboard-web");
    worker_step_behind();
    uv_run(&server->loop, UV_RUN_DEFAULT);
}

/* ---- beginning and end ---- */

/* The target is kept as it was sent, and the path that the library shows is decoded. */
static struct MHD_Daemon *http_server_start_daemon(struct http_server *server, int fd) {
    const struct http_server_options *options = &server->options;
    const struct MHD_OptionItem with_tls[] = {
        {MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)options->certificate},
        {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)options->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0,
         (void *)(uintptr_t) "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"},
        {MHD_OPTION_END, 0, NULL},
    };
    const struct MHD_OptionItem without_tls[] = {{MHD_OPTION_END, 0, NULL}};
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    flags |= options->certificate != NULL ? (unsigned)MHD_USE_TLS : 0;
    return MHD_start_daemon(
        flags, 0, http_server_accept, server, http_server_take_request, server,
        MHD_OPTION_EXTERNAL_LOGGER, http_server_log, server,
#if MHD_VERSION >= 0x00097701
        MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1,
#endif
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, options->connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_CONNECTION_SIZE,
        MHD_OPTION_NOTIFY_COMPLETED, http_server_end_request, server, MHD_OPTION_URI_LOG_CALLBACK,
        http_server_begin_request, server, MHD_OPTION_NOTIFY_CONNECTION, http_server_notify, server,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_ARRAY,
        options->certificate != NULL ? with_tls : without_tls, MHD_OPTION_END);
}

static bool http_server_init_handles(struct http_server *server) {
    const union MHD_DaemonInfo *info =
        MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->poll.data = server->timer.data = server->check.data = server;
    if (info == NULL || uv_poll_init(&server->loop, &server->poll, info->epoll_fd) != 0 ||
        uv_timer_init(&server->loop, &server->timer) != 0 ||
        uv_idle_init(&server->loop, &server->idle) != 0 ||
        uv_check_init(&server->loop, &server->check) != 0 ||
        uv_poll_start(&server->poll, UV_READABLE, http_server_on_poll) != 0 ||
        uv_check_start(&server->check, http_server_on_check) != 0) {
        return false;
    }
    http_server_set_timer(server);
    return http_ask_attach(&server->asks, &server->loop);
}

/* What a program can do nothing about, and that happens to none: out of memory or descriptors in the
 * middle of the start. */
static struct http_server *http_server_fail(const char *what, char *error) {
    snprintf(error, HTTP_ERROR_MAX, "cannot serve HTTP: %s", what);
    return NULL;
}

struct http_server *http_server_start(int fd, uv_loop_t *engine_loop,
                                      const struct http_server_options *options, char *error) {
    struct http_server *server = memory_allocate_zeroed(sizeof *server);
    struct pollfd *streams = memory_allocate_zeroed((options->streams_max + 1) * sizeof *streams);
    if (server == NULL || streams == NULL) {
        memory_free(server);
        memory_free(streams);
        close(fd);
        return http_server_fail("out of memory", error);
    }
    server->options = *options;
    server->streams = streams;
    server->daemon = http_server_start_daemon(server, fd);
    if (server->daemon == NULL) {
        close(fd);
        memory_free(server->streams);
        memory_free(server);
        return http_server_fail(options->certificate != NULL
                                    ? "the certificate and its key do not fit"
                                    : "out of memory or descriptors",
                                error);
    }
    *options->place = server;
    if (uv_loop_init(&server->loop) != 0 ||
        !http_ask_init(&server->asks, engine_loop, options->handler->engine_context,
                       options->handler->context) ||
        !http_server_init_handles(server) ||
        uv_thread_create(&server->thread, http_server_run_thread, server) != 0) {
        /* The handles cannot be taken back without turning the engine's loop: the server does not start,
         * and the process ends. */
        return http_server_fail("out of memory, descriptors or threads", error);
    }
    return server;
}

static void http_server_drop_nothing(void *context, struct ask *ask) {
    (void)context;
    (void)ask;
}

void http_server_stop(struct http_server *server) {
    const struct http_handler *handler = server->options.handler;
    atomic_store_explicit(&server->is_stopping, true, memory_order_release);
    http_ask_wake_asker(&server->asks);
    uv_thread_join(&server->thread);
    CHECK(uv_loop_close(&server->loop) == 0);
    http_ask_close(&server->asks, handler->drop != NULL ? handler->drop : http_server_drop_nothing);
}

void http_server_destroy(struct http_server *server) {
    http_ask_deinit(&server->asks);
    memory_free(server->streams);
    memory_free(server);
}

/* ---- what can fail while the operator still sees the terminal ---- */

enum { BACKLOG = 256 };

int http_listen(const char *family, const char *address, int64_t port, char *error) {
    struct listen_failure failure;
    int fd = service_listen(address, port, BACKLOG, &failure);
    if (fd < 0 && failure.code == 0) {
        snprintf(error, HTTP_ERROR_MAX, "%s-bind: cannot listen on address %.100s: %s", family,
                 address, failure.reason);
    } else if (fd < 0) {
        snprintf(error, HTTP_ERROR_MAX, "%s-port: cannot listen on address %.100s port %lld: %s%s",
                 family, address, (long long)port, failure.reason,
                 failure.code == EADDRINUSE ? "; another program listens there: choose another port"
                                            : "");
    }
    return fd;
}

char *http_read_pem(const char *path, char *error) {
    FILE *file = fopen(path, "re");
    char *text = memory_allocate_zeroed(HTTP_PEM_SIZE_MAX);
    size_t size = 0;
    errno = file != NULL ? ENOMEM : errno;
    if (file != NULL && text != NULL) {
        errno = EIO;
        size = fread(text, 1, HTTP_PEM_SIZE_MAX, file);
    }
    if (size == 0 || size == HTTP_PEM_SIZE_MAX || ferror(file)) {
        snprintf(error, HTTP_ERROR_MAX, "cannot read %.300s: %s", path,
                 size == 0 ? strerror(errno) : "it is too long");
        memory_free(text);
        text = NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}
