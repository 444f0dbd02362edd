/* Replies: how they are filled in, sent, and waited for. */
#include <stdio.h>

#include "server/http/http_server_parts.h"

/* ---- replies ---- */

__attribute__((format(printf, 3, 0))) static void
http_exchange_fill_block(struct http_exchange *exchange, unsigned status, const char *format,
                         va_list arguments) {
    char text[HTTP_ERROR_MAX];
    struct http_reply *reply = &exchange->reply;
    int size = vsnprintf(text, sizeof text, format, arguments);
    (void)size;
    buffer_clear(&reply->body);
    reply->fixed = (struct bytes){.at = NULL};
    reply->status = status;
    reply->content_type = HTTP_PLAIN_TEXT;
    const struct http_handler *handler = exchange->server->options.handler;
    if (handler->print_refusal != NULL) {
        handler->print_refusal(exchange, text);
    } else {
        buffer_append(&reply->body, text, strlen(text));
    }
}

void http_exchange_fill(struct http_exchange *exchange, unsigned status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    http_exchange_fill_block(exchange, status, format, arguments);
    va_end(arguments);
}

void http_exchange_refuse(struct http_exchange *exchange, unsigned status, const char *format,
                          ...) {
    va_list arguments;
    va_start(arguments, format);
    http_exchange_fill_block(exchange, status, format, arguments);
    va_end(arguments);
    http_exchange_ready(exchange);
}

void http_reply_header(struct http_reply *reply, const char *name, const char *value) {
    CHECK(reply->header_count < HTTP_HEADERS_MAX);
    reply->headers[reply->header_count++] = (struct http_header){.name = name, .value = value};
}

static void http_exchange_add_allowed(const struct http_exchange *exchange,
                                      struct MHD_Response *response) {
    enum { ALLOWED_MAX = 64 };
    char text[ALLOWED_MAX] = "";
    unsigned allowed = exchange->reply.allowed;
    if (allowed == 0) {
        allowed = exchange->server->options.methods | 1U << HTTP_GET | 1U << HTTP_HEAD;
    }
    for (size_t i = 0; i < HTTP_METHODS; i++) {
        if ((allowed >> i & 1) != 0) {
            size_t size = strlen(text);
            snprintf(text + size, sizeof text - size, "%s%s", size > 0 ? ", " : "",
                     http_method_names[i]);
        }
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, text);
}

void http_exchange_add_headers(const struct http_exchange *exchange,
                               struct MHD_Response *response) {
    const struct http_reply *reply = &exchange->reply;
    if (reply->content_type != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply->content_type);
    }
    if (!reply->is_kept) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    }
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    if (reply->status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        http_exchange_add_allowed(exchange, response);
    }
    if (reply->is_last) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (reply->status == MHD_HTTP_SERVICE_UNAVAILABLE || reply->retry_s > 0) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%u", reply->retry_s > 0 ? reply->retry_s : 1);
        MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, seconds);
    }
    for (unsigned i = 0; i < reply->header_count; i++) {
        MHD_add_response_header(response, reply->headers[i].name, reply->headers[i].value);
    }
}

/* Those who ask for much and read little do not take all memory. */
static bool http_exchange_has_room_to_send(const struct http_server *server, size_t size) {
    return server->options.sending_max == 0 ||
           server->sending_size + size <= server->options.sending_max;
}

/* The body stays until the exchange is over, which is behind the last byte. The library only reads, though its
 * parameters are not const. */
static struct MHD_Response *http_exchange_create_response(const struct http_reply *reply) {
    return reply->fixed.at != NULL
               ? MHD_create_response_from_buffer(
                     reply->fixed.size, (void *)(uintptr_t)reply->fixed.at, MHD_RESPMEM_PERSISTENT)
               : MHD_create_response_from_buffer(reply->body.size, reply->body.at,
                                                 MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result http_exchange_send(struct http_exchange *exchange) {
    struct http_reply *reply = &exchange->reply;
    if (reply->body.is_broken) {
        http_exchange_fill(exchange, MHD_HTTP_INTERNAL_SERVER_ERROR,
                           "the reply is too long, or out of memory\n");
    }
    if (!http_exchange_has_room_to_send(exchange->server, reply->body.size)) {
        buffer_deinit(&reply->body);
        http_exchange_fill(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                           "busy: too many long replies are being sent\n");
    }
    exchange->counted = reply->body.size;
    exchange->server->sending_size += exchange->counted;
    struct MHD_Response *response = http_exchange_create_response(reply);
    if (response == NULL) {
        return MHD_NO;
    }
    http_exchange_add_headers(exchange, response);
    enum MHD_Result result =
        reply->is_login_wanted
            ? MHD_queue_basic_auth_fail_response(exchange->connection, "leaderboard", response)
            : MHD_queue_response(exchange->connection, reply->status, response);
    MHD_destroy_response(response);
    http_peer_begin_phase(exchange->server, exchange->peer, HTTP_SEND_LIMIT_MS);
    return result;
}
/* ---- requests that wait ---- */

bool http_exchange_is_waiting(const struct http_exchange *exchange) {
    return exchange->stage == HTTP_WAITS || exchange->stage == HTTP_DELAYED;
}

static void http_exchange_wait_in(struct http_exchange *exchange, enum http_stage stage,
                                  int64_t wait_ms) {
    struct http_server *server = exchange->server;
    bool was_waiting = http_exchange_is_waiting(exchange);
    CHECK(exchange->stage == HTTP_NEW || was_waiting);
    exchange->stage = stage;
    exchange->due_ms = http_server_now(server) + wait_ms;
    if (was_waiting) {
        return;
    }
    LIST_JOIN(server->waiting_first, exchange);
}

void http_exchange_wait(struct http_exchange *exchange, int64_t wait_ms) {
    http_exchange_wait_in(exchange, HTTP_WAITS, wait_ms);
}

void http_exchange_delay(struct http_exchange *exchange, int64_t delay_ms) {
    http_exchange_wait_in(exchange, HTTP_DELAYED, delay_ms);
}

void http_exchange_resume(struct http_exchange *exchange) {
    if (exchange->is_suspended) {
        exchange->is_suspended = false;
        MHD_resume_connection(exchange->connection); /* and wakes the loop */
    }
}

void http_exchange_ready(struct http_exchange *exchange) {
    if (http_exchange_is_waiting(exchange)) {
        LIST_PART(exchange->server->waiting_first, exchange);
    }
    exchange->stage = HTTP_READY;
    http_exchange_resume(exchange);
}

void http_exchange_sweep(struct http_server *server, int64_t now_ms) {
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

/* ---- for handlers ---- */

const char *http_exchange_header(const struct http_exchange *exchange, const char *name) {
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
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
