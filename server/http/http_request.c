/* What comes: a request, from its first line to the end of its reply. */
#include <stdio.h>
#include <strings.h>
#include <sys/socket.h>

#include "server/http/http_header.h"
#include "server/http/http_server_parts.h"

const char *const http_method_names[HTTP_METHODS] = {"GET",   "HEAD",   "POST",   "PUT",
                                                     "PATCH", "DELETE", "OPTIONS"};

static bool http_request_has_body(const struct http_exchange *exchange) {
    return exchange->method == HTTP_POST || exchange->method == HTTP_PUT ||
           exchange->method == HTTP_PATCH;
}

static size_t http_request_body_max(const struct http_exchange *exchange) {
    size_t body_max = exchange->server->options.body_max;
    return !http_request_has_body(exchange) ? 0 : body_max > 0 ? body_max : HTTP_BODY_MAX;
}

static bool http_request_is_too_long(const struct http_exchange *exchange) {
    const char *size = http_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    uint64_t bytes = 0;
    if (http_exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL) {
        return !http_request_has_body(exchange); /* how long it is, its last chunk says */
    }
    return size != NULL && (!bytes_parse_u64(bytes_from_text(size), &bytes) ||
                            bytes > http_request_body_max(exchange));
}

/* Of two of these, another program on the way may believe the other one. The first is that of HTTP/1.1. */
static const char *const http_request_single[] = {
    MHD_HTTP_HEADER_HOST,         MHD_HTTP_HEADER_CONTENT_LENGTH, MHD_HTTP_HEADER_TRANSFER_ENCODING,
    MHD_HTTP_HEADER_CONTENT_TYPE, MHD_HTTP_HEADER_AUTHORIZATION,  "Idempotency-Key",
};

struct http_request_seen {
    unsigned single;     /* bits: which of those there are */
    const char *doubled; /* one that is there twice; NULL: none */
    const char *at;      /* where the line before ended */
    bool is_odd;
};

/* From MHD_OPTION_CLIENT_DISCIPLINE_LVL on the library itself refuses what follows here. */
#if MHD_VERSION >= 0x00097701
enum { HTTP_REQUEST_IS_RAW = false };
#else
enum { HTTP_REQUEST_IS_RAW = true };
#endif

/* Its strings are where the request was read to, each ended where its line ended, or at a NUL in it. So a NUL, or a
 * line that goes on in the next one, shows as bytes that belong to no string.
 *
 *     "Content-Length: 26\0 9\r\nHost: a\r\n\r\n"
 *                      ^value ^at     ^the next name is not behind at */
static bool http_request_is_line_end(const char *at, const char *next) {
    return at[0] == '\0' && (next == at + 1 || (at[1] == '\0' && next == at + 2));
}

static bool http_request_is_end(const char *at, const char *end) {
    return http_request_is_line_end(at, end - 1) || http_request_is_line_end(at, end - 2);
}

/* Between the method and the target there are blanks, and nothing between the target and the version. */
static bool http_request_is_line(const struct http_exchange *exchange, const char *method,
                                 const char *version) {
    const char *at = method + strlen(method) + 1;
    if (exchange->target == NULL) {
        return true; /* which is refused otherwise */
    }
    return at + strspn(at, " ") == exchange->line &&
           exchange->line + strlen(exchange->target) + 1 == version &&
           strchr(exchange->target, '\r') == NULL;
}

static enum MHD_Result http_request_look_at(void *own, enum MHD_ValueKind kind, const char *name,
                                            const char *value) {
    struct http_request_seen *seen = own;
    (void)kind;
    for (size_t i = 0; i < sizeof http_request_single / sizeof http_request_single[0]; i++) {
        if (strcasecmp(name, http_request_single[i]) == 0) {
            seen->doubled = (seen->single >> i & 1) != 0 ? http_request_single[i] : seen->doubled;
            seen->single |= 1U << i;
        }
    }
    seen->is_odd |= value == NULL || strpbrk(name, " \t\r") != NULL ||
                    strchr(value, '\r') != NULL ||
                    (HTTP_REQUEST_IS_RAW && !http_request_is_line_end(seen->at, name));
    seen->at = seen->is_odd ? seen->at : value + strlen(value);
    return MHD_YES;
}

/* What another program on the way may read otherwise: where the request ends, whom it is for, or from whom it is
 * (RFC 9110, 5.3; RFC 9112, 3.2). Fills in the refusal; false: nothing. */
static bool http_request_is_ambiguous(struct http_exchange *exchange, const char *method,
                                      const char *version) {
    struct http_request_seen seen = {.at = version + strlen(version)};
    bool is_chunked = http_exchange_header(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, http_request_look_at,
                                    &seen);
    if (HTTP_REQUEST_IS_RAW && !seen.is_odd) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
        seen.is_odd = !http_request_is_line(exchange, method, version) || info == NULL ||
                      !http_request_is_end(seen.at, method + info->header_size);
    }
    if (seen.doubled != NULL) {
        http_exchange_fill(exchange, MHD_HTTP_BAD_REQUEST, "the header %s is there twice\n",
                           seen.doubled);
    } else if (seen.is_odd) {
        http_exchange_fill(exchange, MHD_HTTP_BAD_REQUEST,
                           "a header must not go on in a further line, or have NUL or CR in it, or "
                           "blanks in its name\n");
    } else if (is_chunked &&
               http_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH) != NULL) {
        http_exchange_fill(exchange, MHD_HTTP_BAD_REQUEST,
                           "Transfer-Encoding and Content-Length exclude each other\n");
    } else if (is_chunked && strcmp(version, MHD_HTTP_VERSION_1_1) < 0) {
        http_exchange_fill(exchange, MHD_HTTP_BAD_REQUEST,
                           "Transfer-Encoding is of HTTP/1.1 and later\n");
    } else if ((seen.single & 1) == 0 && strcmp(version, MHD_HTTP_VERSION_1_1) >= 0) {
        http_exchange_fill(exchange, MHD_HTTP_BAD_REQUEST,
                           "the header Host is missing, which HTTP/1.1 asks for\n");
    } else {
        return false;
    }
    exchange->reply.is_last = true;
    return true;
}

/* false: it is none that the handler takes. */
static bool http_request_take_method(struct http_exchange *exchange, const char *method) {
    unsigned taken = exchange->server->options.methods | 1U << HTTP_GET | 1U << HTTP_HEAD;
    exchange->method = exchange->server->options.methods != 0 ? HTTP_OTHER : HTTP_GET;
    for (unsigned i = 0; i < HTTP_METHODS; i++) {
        if ((taken >> i & 1) != 0 && strcmp(method, http_method_names[i]) == 0) {
            exchange->method = (enum http_method)i;
            return true;
        }
    }
    return exchange->method == HTTP_OTHER; /* the handler knows which ones the path takes */
}

static bool http_request_is(const struct http_exchange *exchange, const char *name,
                            const char *value) {
    const char *header = http_exchange_header(exchange, name);
    return header == NULL || strcasecmp(header, value) == 0;
}

/* How the body is coded: in chunks or not at all. Fills in the refusal; false: nothing. */
static bool http_request_refuse_coding(struct http_exchange *exchange) {
    if (!http_request_is(exchange, MHD_HTTP_HEADER_TRANSFER_ENCODING, "chunked")) {
        http_exchange_fill(exchange, MHD_HTTP_NOT_IMPLEMENTED,
                           "Transfer-Encoding is chunked, and no other\n");
        exchange->reply.is_last = true;
    } else if (!http_request_is(exchange, MHD_HTTP_HEADER_CONTENT_ENCODING, "identity")) {
        http_exchange_fill(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                           "a body is not compressed here: Content-Encoding is identity\n");
        http_reply_header(&exchange->reply, MHD_HTTP_HEADER_ACCEPT_ENCODING, "identity");
    } else {
        return false;
    }
    return true;
}

static void http_request_refuse_size(struct http_exchange *exchange) {
    http_exchange_fill(exchange, 413, "a body has at most %zu bytes\n",
                       http_request_body_max(exchange));
}

/* Fill in why the request is refused. false: it is not. */
static bool http_request_refuse(struct http_exchange *exchange, const char *method,
                                const char *version) {
    const struct http_server_options *options = &exchange->server->options;
    bool is_known = http_request_take_method(exchange, method);
    if (http_request_is_ambiguous(exchange, method, version)) {
        exchange->stage = HTTP_READY;
        return true;
    }
    if (!http_header_allows_host(http_exchange_header(exchange, MHD_HTTP_HEADER_HOST),
                                 options->hosts)) {
        http_exchange_fill(exchange, 421,
                           "this server does not know itself by that name: ask it by its address, "
                           "or add the name to %s\n",
                           options->hosts_setting);
    } else if (!is_known) {
        http_exchange_fill(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    } else if (http_request_is_too_long(exchange)) {
        if (http_request_has_body(exchange)) {
            http_request_refuse_size(exchange);
        } else {
            http_exchange_fill(exchange, 413, "a request has no body here\n");
        }
    } else if (http_request_refuse_coding(exchange)) {
        /* The reply says why. */
    } else if (!http_peer_begin_request(exchange)) {
        char address[HTTP_ADDRESS_MAX];
        (void)http_exchange_peer(exchange, address);
        http_exchange_fill(exchange, MHD_HTTP_TOO_MANY_REQUESTS,
                           "too many connections from %s: see %s\n", address,
                           options->address_setting);
        exchange->reply.is_last = exchange->peer->is_excess;
    } else if (exchange->target == NULL) {
        http_exchange_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "out of memory\n");
    } else {
        return false;
    }
    exchange->stage = HTTP_READY;
    return true;
}

/* The library calls this first, with what stands behind the method: what it returns is the request's own. */
void *http_request_begin(void *context, const char *target, struct MHD_Connection *connection) {
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
    if (exchange->peer != NULL) {
        exchange->peer->exchange = exchange;
    }
    exchange->line = target;
    exchange->target = memory_allocate(size + 1);
    if (exchange->target != NULL) {
        memcpy(exchange->target, target, size + 1);
    }
    exchange->reply = (struct http_reply){.status = MHD_HTTP_OK, .content_type = HTTP_PLAIN_TEXT};
    buffer_init(&exchange->reply.body, HTTP_REPLY_SIZE_MAX);
    buffer_init(&exchange->body,
                server->options.body_max > 0 ? server->options.body_max : HTTP_BODY_MAX);
    return exchange;
}

/* Only here is a request suspended: the library cannot queue the reply of a connection that is. */
static enum MHD_Result http_request_send_or_suspend(struct http_exchange *exchange) {
    if (exchange->stage == HTTP_STREAMS) {
        return http_stream_send(exchange);
    }
    if (exchange->stage == HTTP_READY) {
        return http_exchange_send(exchange);
    }
    exchange->is_suspended = true;
    MHD_suspend_connection(exchange->connection);
    return MHD_YES;
}

/* false: far more came in chunks than any body has, and nobody waits for the end of it. */
static bool http_request_take_body(struct http_exchange *exchange, const char *at, size_t size) {
    enum { DROPPED_MAX = 1 << 20 };
    struct http_server *server = exchange->server;
    const struct http_server_options *options = &server->options;
    size_t size_max = http_request_body_max(exchange);
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

/* The library calls this when the headers are there, once more for each piece of a body and once when
 * all is there; and again when the connection was resumed. */
enum MHD_Result http_request_take(void *context, struct MHD_Connection *connection,
                                  const char *path, const char *method, const char *version,
                                  const char *upload, size_t *upload_size, void **own) {
    struct http_server *server = context;
    struct http_exchange *exchange = *own;
    (void)connection;
    if (exchange == NULL) {
        return MHD_NO;
    }
    exchange->path = path;
    if (!exchange->is_begun) {
        exchange->is_begun = true;
        bool is_refused = http_request_refuse(exchange, method, version);
        /* From here on it waits for us, unless a body is to come. */
        http_peer_begin_phase(server, exchange->peer,
                              http_request_has_body(exchange) && !is_refused ? HTTP_REQUEST_LIMIT_MS
                                                                             : 0);
        return is_refused ? http_exchange_send(exchange) : MHD_YES;
    }
    if (*upload_size > 0) {
        bool is_taken = http_request_take_body(exchange, upload, *upload_size);
        *upload_size = 0;
        return is_taken ? MHD_YES : MHD_NO;
    }
    if (exchange->stage == HTTP_NEW && server->is_ended) {
        /* In the last run: the library must not be stopped while a request is suspended. */
        http_exchange_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
        return http_exchange_send(exchange);
    }
    if (exchange->stage == HTTP_NEW && exchange->is_too_long) {
        http_request_refuse_size(exchange);
        return http_exchange_send(exchange);
    }
    if (exchange->stage == HTTP_NEW && exchange->body.is_broken) {
        http_exchange_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "busy: too many long requests are there, or no memory\n");
        return http_exchange_send(exchange);
    }
    if (exchange->stage == HTTP_NEW) {
        http_peer_begin_phase(server, exchange->peer, 0);
        server->options.handler->handle(server->options.handler->context, exchange);
    }
    return http_request_send_or_suspend(exchange);
}

void http_request_end(void *context, struct MHD_Connection *connection, void **own,
                      enum MHD_RequestTerminationCode code) {
    struct http_server *server = context;
    struct http_exchange *exchange = *own;
    const struct http_handler *handler = server->options.handler;
    (void)connection;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    http_peer_begin_phase(server, exchange->peer, HTTP_IDLE_LIMIT_MS);
    http_peer_end_request(exchange);
    if (exchange->peer != NULL) {
        exchange->peer->exchange = NULL;
    }
    if (exchange->is_begun && handler->leave != NULL) {
        handler->leave(handler->context, exchange);
    }
    if (http_exchange_is_waiting(exchange)) {
        LIST_PART(server->waiting_first, exchange);
    } else if (exchange->stage == HTTP_STREAMS) {
        LIST_PART(server->stream_first, exchange);
        server->stream_count--;
    }
    http_text_release(exchange->sending);
    http_text_release(exchange->pending);
    server->sending_size -= exchange->counted;
    server->bodies_size -= exchange->received;
    buffer_deinit(&exchange->reply.body);
    buffer_deinit(&exchange->body);
    memory_free(exchange->target);
    memory_free(exchange);
    *own = NULL;
}

/* ---- lengths that are none ---- */

/* Headers are there that the handler has not been shown. */
static bool http_request_is_being_read(const struct http_peer *peer) {
    return peer->exchange != NULL && !peer->exchange->is_begun &&
           MHD_get_connection_info(peer->exchange->connection,
                                   MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE) != NULL;
}

/* One status line, one body, and no more. Over TLS no line: the library has the keys. */
static void http_request_answer_and_end(struct http_exchange *exchange) {
    struct http_reply *reply = &exchange->reply;
    char head[HTTP_ERROR_MAX];
    const char *length = http_exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
    if (length != NULL && length[0] != '\0' && length[strspn(length, "0123456789")] == '\0') {
        http_exchange_fill(exchange, 413, "no body is as long as this Content-Length\n");
    } else {
        http_exchange_fill(exchange, MHD_HTTP_BAD_REQUEST,
                           "Content-Length is a number of bytes, in digits\n");
    }
    int size = snprintf(head, sizeof head,
                        "HTTP/1.1 %u %s\r\nConnection: close\r\nContent-Type: %s\r\n"
                        "Cache-Control: no-store\r\nContent-Length: %zu\r\n\r\n",
                        reply->status, reply->status == 400 ? "Bad Request" : "Content Too Large",
                        reply->content_type, reply->body.size);
    if (exchange->server->options.certificate == NULL && !reply->body.is_broken) {
        (void)!send(exchange->peer->fd, head, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT | MSG_MORE);
        (void)!send(exchange->peer->fd, reply->body.at, reply->body.size,
                    MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    exchange->peer->is_cut = true;
    (void)shutdown(exchange->peer->fd, SHUT_WR);
}

/* A Content-Length that is no number never comes to the handler. The library (0.9.75) answers it with the same head
 * twice, but says in its log before that it will: then the answer is ours, and the library finds a connection that
 * is shut. */
void http_request_log(void *context, const char *format, va_list arguments) {
    const struct http_server *server = context;
    (void)arguments;
    if (strstr(format, "Content-Length") == NULL) {
        return;
    }
    for (struct http_peer *peer = server->peer_first; peer != NULL; peer = peer->next) {
        if (http_request_is_being_read(peer)) {
            http_request_answer_and_end(peer->exchange);
        }
    }
}
