/* What comes: a request, from its first line to the end of its reply. */
#include <strings.h>

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
        return true;
    }
    return size != NULL && (!bytes_parse_u64(bytes_from_text(size), &bytes) ||
                            bytes > http_request_body_max(exchange));
}

/* Of two of these, another program on the way may believe the other one. The first is that of HTTP/1.1. */
static const char *const http_request_single[] = {
    MHD_HTTP_HEADER_HOST,
    MHD_HTTP_HEADER_CONTENT_LENGTH,
    MHD_HTTP_HEADER_CONTENT_TYPE,
    MHD_HTTP_HEADER_AUTHORIZATION,
    "Idempotency-Key",
};

struct http_request_seen {
    unsigned single;     /* bits: which of those there are */
    const char *doubled; /* one that is there twice; NULL: none */
    bool is_odd;
};

/* Where a header goes on in a further line, as no client writes it today, the library may add that line to the name. */
static bool http_request_goes_on(const char *name, const char *begin) {
    size_t size = strlen(begin);
    return strncasecmp(name, begin, size) == 0 && name[size] != '\0';
}

static enum MHD_Result http_request_look_at(void *own, enum MHD_ValueKind kind, const char *name,
                                            const char *value) {
    struct http_request_seen *seen = own;
    (void)kind;
    (void)value;
    for (size_t i = 0; i < sizeof http_request_single / sizeof http_request_single[0]; i++) {
        if (strcasecmp(name, http_request_single[i]) == 0) {
            seen->doubled = (seen->single >> i & 1) != 0 ? http_request_single[i] : seen->doubled;
            seen->single |= 1U << i;
        }
    }
    seen->is_odd |= strpbrk(name, " \t") != NULL ||
                    http_request_goes_on(name, MHD_HTTP_HEADER_CONTENT_LENGTH) ||
                    http_request_goes_on(name, MHD_HTTP_HEADER_TRANSFER_ENCODING);
    return MHD_YES;
}

/* What another program on the way may read otherwise: where the request ends, whom it is for, or from whom it is
 * (RFC 9110, 5.3; RFC 9112, 3.2). Fills in the refusal; false: nothing. */
static bool http_request_is_ambiguous(struct http_exchange *exchange, const char *version) {
    struct http_request_seen seen = {.single = 0};
    (void)MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, http_request_look_at,
                                    &seen);
    if (seen.doubled != NULL) {
        http_exchange_fill(exchange, MHD_HTTP_BAD_REQUEST, "the header %s is there twice\n",
                           seen.doubled);
    } else if (seen.is_odd) {
        http_exchange_fill(
            exchange, MHD_HTTP_BAD_REQUEST,
            "a header must not go on in a further line, or have blanks in its name\n");
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
    exchange->method = HTTP_GET;
    for (unsigned i = 0; i < HTTP_METHODS; i++) {
        if ((taken >> i & 1) != 0 && strcmp(method, http_method_names[i]) == 0) {
            exchange->method = (enum http_method)i;
            return true;
        }
    }
    return false;
}

/* Fill in why the request is refused. false: it is not. */
static bool http_request_refuse(struct http_exchange *exchange, const char *method,
                                const char *version) {
    const struct http_server_options *options = &exchange->server->options;
    bool is_known = http_request_take_method(exchange, method);
    if (http_request_is_ambiguous(exchange, version)) {
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
        http_exchange_fill(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
                           options->methods == 0
                               ? "only GET and HEAD\n"
                               : "only the methods that the header Allow names\n");
    } else if (http_request_is_too_long(exchange)) {
        if (http_request_has_body(exchange)) {
            http_exchange_fill(exchange, 413, "a body has at most %zu bytes, not in chunks\n",
                               http_request_body_max(exchange));
        } else {
            http_exchange_fill(exchange, 413, "a request has no body here\n");
        }
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

static void http_request_take_body(struct http_exchange *exchange, const char *at, size_t size) {
    struct http_server *server = exchange->server;
    const struct http_server_options *options = &server->options;
    if (options->bodies_max > 0 && server->bodies_size + size > options->bodies_max) {
        exchange->body.is_broken = true;
        return;
    }
    server->bodies_size += size;
    exchange->received += size;
    buffer_append(&exchange->body, at, size);
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
        http_request_take_body(exchange, upload, *upload_size);
        *upload_size = 0;
        return MHD_YES;
    }
    if (exchange->stage == HTTP_NEW && server->is_ended) {
        /* In the last run: the library must not be stopped while a request is suspended. */
        http_exchange_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE, "the server ends\n");
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
