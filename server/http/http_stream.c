/* Streams: one text after another, of which the newest replaces those that have not begun. */
#include <poll.h>

#include "server/http/http_server_parts.h"

enum {
    PIECE_MAX = 64 * 1024, /* of a stream, at a time */
    SWEEP_MS = 1000,
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
    if (http_exchange_is_waiting(exchange)) {
        LIST_PART(server->waiting_first, exchange);
    }
    LIST_JOIN(server->stream_first, exchange);
    server->stream_count++;
    exchange->stage = HTTP_STREAMS;
    exchange->reply.content_type = "text/event-stream; charset=utf-8";
    http_exchange_resume(exchange);
    return true;
}

/* What the library asks for when the socket takes more. */
static ssize_t http_stream_read(void *own, uint64_t position, char *out, size_t size_max) {
    struct http_exchange *exchange = own;
    (void)position;
    if (exchange->sending != NULL && exchange->sent == exchange->sending->bytes.size) {
        http_text_release(exchange->sending);
        exchange->sending = NULL;
        http_peer_begin_phase(exchange->server, exchange->peer, 0);
    }
    if (exchange->sending == NULL && exchange->pending != NULL) {
        exchange->sending = exchange->pending;
        exchange->pending = NULL;
        exchange->sent = 0;
        http_peer_begin_phase(exchange->server, exchange->peer, HTTP_SEND_LIMIT_MS);
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
    http_exchange_resume(exchange);
}

void http_stream_end(struct http_exchange *exchange) {
    exchange->is_stream_over = true;
    http_exchange_resume(exchange);
}

enum MHD_Result http_stream_send(struct http_exchange *exchange) {
    struct MHD_Response *response = MHD_create_response_from_callback(
        MHD_SIZE_UNKNOWN, PIECE_MAX, http_stream_read, exchange, NULL);
    if (response == NULL) {
        return MHD_NO;
    }
    http_exchange_add_headers(exchange, response);
    enum MHD_Result result = MHD_queue_response(exchange->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}

/* Nobody listens to a suspended connection: those whose other end is closed are looked for. */
void http_stream_sweep(struct http_server *server, int64_t now_ms) {
    nfds_t count = 0;
    if (server->stream_first == NULL || now_ms - server->streams_swept_ms < SWEEP_MS) {
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
            http_peer_cut(each->peer);
            http_stream_end(each);
        }
    }
}
