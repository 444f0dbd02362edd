/* Sockets are watched by uv_poll, and read and written here by plain system calls. See transport.h.
 *
 * unfinished is empty for most clients most of the time. It holds an incomplete request, or, before
 * authentication, what follows a request that must run first. */
#include "server/network/transport.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/list.h"

enum {
    READ_MAX = 256 * 1024, /* at a time, for a long request */
    WRITE_MAX = 512 * 1024,
    UNFINISHED_MIN = 512,
    ARGS_MAX = 1024 * 1024,
    INLINE_SIZE_MAX = 64 * 1024,
    READ_SMALL_MAX = 512,  /* while many requests wait */
    UNKNOWN_ARGS_MAX = 10, /* before authentication */
    UNKNOWN_BULK_MAX = 16 * 1024,
    /* Total input held for it: the longest bulk and some short arguments. */
    UNKNOWN_INPUT_MAX = 17 * 1024,
};

/* Unauthenticated clients get smaller limits. */
static bool transport_is_known(const struct transport *transport) {
    return transport->is_authenticated ||
           !atomic_load_explicit(&transport->intake->limits->has_password, memory_order_relaxed);
}

size_t transport_memory_size(const struct transport *transport) {
    return transport->unfinished.capacity +
           transport->parser.span_capacity * sizeof(struct resp_span);
}

/* Say this of it in the next batch. */
static void transport_note(struct transport *transport, enum transport_event event) {
    if (transport->events == 0) {
        transport->noted_next = transport->intake->noted;
        transport->intake->noted = transport;
    }
    transport->events |= event;
}

static void transport_fail(struct transport *transport, enum transport_failure failure) {
    transport->failure = failure;
    transport->is_failed = true;
    transport_note(transport, TRANSPORT_FAILED);
}

/* ---- unfinished input ---- */

static void transport_free_unfinished(struct transport *transport) {
    memory_free(transport->unfinished.at);
    transport->unfinished = (struct transport_input){0};
}

/* Free it if it is empty, or move its contents to the front. No request in flight may point into
 * it. */
static void transport_trim_unfinished(struct transport *transport) {
    struct transport_input *unfinished = &transport->unfinished;
    if (unfinished->begin == unfinished->end) {
        if (unfinished->at != NULL) {
            transport_free_unfinished(transport);
            transport_note(transport, TRANSPORT_INPUT);
        }
    } else if (unfinished->begin > 0) {
        unfinished->end -= unfinished->begin;
        memmove(unfinished->at, unfinished->at + unfinished->begin, unfinished->end);
        unfinished->begin = 0;
    }
}

static bool transport_grow_unfinished(struct transport *transport, size_t capacity) {
    struct transport_input *unfinished = &transport->unfinished;
    char *at = memory_resize(unfinished->at, capacity);
    if (at == NULL) {
        transport_fail(transport, TRANSPORT_NO_MEMORY_FOR_INPUT);
        return false;
    }
    unfinished->at = at;
    unfinished->capacity = capacity;
    return true;
}

/* New capacity of a buffer that holds size bytes and must take more. */
static size_t transport_unfinished_capacity(const struct transport *transport, size_t size) {
    size_t capacity = size > UNFINISHED_MIN / 2 ? size * 2 : UNFINISHED_MIN;
    if (capacity > UNKNOWN_INPUT_MAX && !transport_is_known(transport)) {
        capacity = size > UNKNOWN_INPUT_MAX ? size : UNKNOWN_INPUT_MAX;
    }
    return capacity;
}

/* ---- parsing ---- */

static void transport_queue_entry(struct transport *transport) {
    intake_queue_entry(transport->intake);
    transport->in_flight++;
    transport->intake->in_flight++;
}

/* No complete request follows at parsed. Returns how many bytes of the input are consumed. */
static size_t transport_stop_parsing(struct transport *transport, struct queue_entry *entry,
                                     enum resp_status status, size_t parsed, size_t size) {
    if (status == RESP_OUT_OF_MEMORY) {
        transport_fail(transport, TRANSPORT_NO_MEMORY_FOR_REQUESTS);
    }
    if (status != RESP_ERROR && status != RESP_CLOSE) {
        return parsed;
    }
    entry->command = status == RESP_ERROR ? QUEUE_PROTOCOL_ERROR : QUEUE_CLOSE;
    transport_queue_entry(transport);
    transport->is_input_over = true;
    return size;
}

/* Queue the requests in at[0 .. size-1]; returns how many bytes were consumed. Before authentication
 * only one request is parsed at a time, because it may change the limits for the next one. */
static size_t transport_parse_input(struct transport *transport, const char *at, size_t size) {
    struct intake *intake = transport->intake;
    bool known = transport_is_known(transport);
    const struct resp_limits limits = {
        .args_max = known ? ARGS_MAX : UNKNOWN_ARGS_MAX,
        .bulk_size_max = known ? atomic_load_explicit(&transport->intake->limits->bulk_size_max,
                                                      memory_order_relaxed)
                               : UNKNOWN_BULK_MAX,
        .inline_size_max = known ? INLINE_SIZE_MAX : UNKNOWN_BULK_MAX,
        .is_authenticated = known,
    };
    size_t parsed = 0;
    transport->is_unparsed = false;
    while (parsed < size) {
        struct queue_entry *entry = intake_next_entry(intake);
        if (entry == NULL) {
            transport_fail(transport, TRANSPORT_NO_MEMORY_FOR_REQUESTS);
            return parsed;
        }
        size_t used = 0;
        entry->session = transport->session;
        enum resp_status status =
            resp_parse(&transport->parser, at + parsed, size - parsed, &limits,
                       intake_arguments(intake), &entry->request, &used, &entry->error);
        if (status == RESP_REQUEST) {
            parsed += used;
            entry->command = intake->find_command(&entry->request);
            transport_queue_entry(transport);
            if (!limits.is_authenticated) {
                transport->is_unparsed = parsed < size;
                return parsed;
            }
        } else if (status == RESP_SKIP) {
            parsed += used;
        } else {
            if (status == RESP_MORE && !limits.is_authenticated &&
                size - parsed >= UNKNOWN_INPUT_MAX) {
                entry->error = "ERR Protocol error: unauthenticated request length";
                status = RESP_ERROR;
            }
            return transport_stop_parsing(transport, entry, status, parsed, size);
        }
    }
    return parsed;
}

static void transport_parse_unfinished(struct transport *transport) {
    struct transport_input *unfinished = &transport->unfinished;
    unfinished->begin += transport_parse_input(transport, unfinished->at + unfinished->begin,
                                               unfinished->end - unfinished->begin);
    transport_note(transport, TRANSPORT_INPUT);
    if (transport->in_flight == 0) {
        transport_trim_unfinished(transport);
    }
}

/* ---- reading ---- */

/* Maximum size of one read. Large senders take turns; while many requests wait, every client may
 * send only a little. */
static size_t transport_read_size_max(const struct transport *transport) {
    if (intake_is_full(transport->intake)) {
        return READ_SMALL_MAX;
    }
    return transport_is_known(transport) ? READ_MAX : UNKNOWN_INPUT_MAX;
}

/* read() with error handling. 0: nothing was read. */
static size_t transport_read_some(struct transport *transport, char *at, size_t room) {
    struct intake *intake = transport->intake;
    ssize_t size =
        transport->tls == NULL ? read(transport->fd, at, room) : tls_read(transport->tls, at, room);
    intake_count_call(&intake->reads);
    if (size > 0) {
        intake->read_bytes += (uint64_t)size;
        return (size_t)size;
    }
    if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
        transport->is_input_over = true;
        if (size < 0 && transport->tls != NULL) {
            transport_fail(transport, TRANSPORT_TLS_BROKEN);
        }
    }
    return 0;
}

static void transport_read_into_unfinished(struct transport *transport) {
    struct transport_input *unfinished = &transport->unfinished;
    transport_trim_unfinished(transport);
    size_t room = unfinished->capacity - unfinished->end;
    if (room < UNFINISHED_MIN || room < unfinished->end / 2) {
        size_t capacity = transport_unfinished_capacity(transport, unfinished->capacity);
        if (capacity > unfinished->capacity && !transport_grow_unfinished(transport, capacity)) {
            return;
        }
        room = unfinished->capacity - unfinished->end;
    }
    size_t size_max = transport_read_size_max(transport);
    if (room > 0) {
        size_t size = transport_read_some(transport, unfinished->at + unfinished->end,
                                          room < size_max ? room : size_max);
        if (size == 0) {
            return;
        }
        unfinished->end += size;
    }
    /* No room: it was filled before RESET made the client unauthenticated, and exceeds the limit
     * for such clients. */
    transport_parse_unfinished(transport);
}

static void transport_read_into_batch(struct transport *transport) {
    size_t room = 0;
    char *at = intake_input_room(transport->intake, &room);
    if (at == NULL) {
        transport_fail(transport, TRANSPORT_NO_MEMORY_FOR_INPUT);
        return;
    }
    size_t size_max = transport_read_size_max(transport);
    size_t size = transport_read_some(transport, at, room < size_max ? room : size_max);
    if (size == 0) {
        return;
    }
    size_t parsed = transport_parse_input(transport, at, size);
    intake_input_keep(transport->intake, parsed);
    if (parsed < size && !transport->is_failed) {
        struct transport_input *unfinished = &transport->unfinished;
        size -= parsed;
        CHECK(unfinished->at == NULL);
        if (transport_grow_unfinished(transport, transport_unfinished_capacity(transport, size))) {
            memcpy(unfinished->at, at + parsed, size);
            unfinished->begin = 0;
            unfinished->end = size;
            transport_note(transport, TRANSPORT_INPUT);
        }
    }
}

/* Is more input of it wanted at all? */
static bool transport_is_heard(const struct transport *transport) {
    return !transport->is_stopped && (transport->is_awaited || !transport->intake->is_draining);
}

static bool transport_may_read(const struct transport *transport) {
    return transport->in_flight == 0 && !transport->is_unparsed && !transport->is_input_over &&
           !transport->is_failed && transport_is_heard(transport);
}

/* The end of the input is told once everything before it is parsed. */
static void transport_tell_end(struct transport *transport) {
    if (transport->is_input_over && !transport->is_unparsed) {
        transport_note(transport, TRANSPORT_INPUT_OVER);
    }
}

static void transport_read_input(struct transport *transport) {
    if (transport->unfinished.at != NULL) {
        transport_read_into_unfinished(transport);
    } else {
        transport_read_into_batch(transport);
    }
    transport_tell_end(transport);
}

/* ---- writing ---- */

/* Returns how much was written; the rest must wait, or the transport has failed. */
static size_t transport_write_some(struct transport *transport, const char *at, size_t size) {
    struct intake *intake = transport->intake;
    ssize_t written = transport_write(transport, at, size < WRITE_MAX ? size : (size_t)WRITE_MAX);
    intake_count_call(&intake->writes);
    if (written < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            transport_fail(transport, TRANSPORT_LOST);
        }
        return 0;
    }
    intake->written_bytes += (uint64_t)written;
    uint64_t total = atomic_load_explicit(&transport->written_total, memory_order_relaxed);
    atomic_store_explicit(&transport->written_total, total + (size_t)written, memory_order_relaxed);
    return (size_t)written;
}

static void transport_drop_outgoing(struct transport *transport, struct outgoing *outgoing) {
    struct intake *intake = transport->intake;
    if (outgoing->is_engines) {
        outgoing->next = intake->written;
        intake->written = outgoing;
    } else {
        buffer_deinit(&outgoing->buffer);
        memory_free(outgoing);
    }
}

static void transport_note_backlog(struct transport *transport) {
    atomic_store_explicit(&transport->has_backlog, transport->outgoing_first != NULL,
                          memory_order_relaxed);
}

/* Keep a copy of what could not be written. */
static void transport_keep_output(struct transport *transport, const char *at, size_t size) {
    struct outgoing *last = transport->outgoing_last;
    if (last == NULL || last->is_engines) {
        last = memory_allocate(sizeof *last);
        if (last == NULL) {
            transport_fail(transport, TRANSPORT_LOST);
            return;
        }
        last->is_engines = false;
        buffer_init(&last->buffer, 0);
        LIST_APPEND(transport->outgoing_first, transport->outgoing_last, last);
    }
    buffer_append(&last->buffer, at, size);
    if (last->buffer.is_broken) {
        transport_fail(transport, TRANSPORT_LOST);
    }
}

/* Write what waits. */
static void transport_write_outgoing(struct transport *transport) {
    size_t left = WRITE_MAX; /* others have their turn as well */
    while (transport->outgoing_first != NULL && left > 0 && !transport->is_failed) {
        struct outgoing *outgoing = transport->outgoing_first;
        size_t size = outgoing->buffer.size < left ? outgoing->buffer.size : left;
        size_t written = transport_write_some(transport, outgoing->buffer.at, size);
        if (written == 0 && size > 0) {
            break;
        }
        left -= written;
        buffer_drop_front(&outgoing->buffer, written);
        if (outgoing->buffer.size == 0) {
            transport->outgoing_first = outgoing->next;
            if (transport->outgoing_first == NULL) {
                transport->outgoing_last = NULL;
            }
            transport_drop_outgoing(transport, outgoing);
        }
    }
}

static void transport_send_output(struct transport *transport,
                                  const struct transport_message *message, const char *bytes) {
    if (message->size > 0) {
        size_t written = 0;
        if (transport->outgoing_first == NULL) {
            written = transport_write_some(transport, bytes, message->size);
        }
        if (written < message->size && !transport->is_failed) {
            transport_keep_output(transport, bytes + written, message->size - written);
        }
    } else if (message->outgoing != NULL) {
        bool is_first = transport->outgoing_first == NULL;
        LIST_APPEND(transport->outgoing_first, transport->outgoing_last, message->outgoing);
        if (is_first) {
            transport_write_outgoing(transport);
        }
    }
    transport->is_report_wanted |= message->is_report_wanted || transport->outgoing_first != NULL;
    transport_note_backlog(transport);
}

static void transport_report_written(struct transport *transport) {
    if (transport->is_report_wanted && transport->outgoing_first == NULL) {
        transport->is_report_wanted = false;
        transport_note(transport, TRANSPORT_WRITTEN);
    }
}

/* ---- TLS ---- */

/* Is there something to do for which poll does not report input? It is done once the socket can be
 * written to: mostly at once; and a client whose socket is full of replies waits for them first. */
static bool transport_has_hidden_input(const struct transport *transport) {
    return transport_may_read(transport) &&
           (tls_has_input(transport->tls) || tls_wants_write(transport->tls));
}

static void transport_on_handshake(uv_poll_t *poll, int status, int events) {
    struct transport *transport = poll->data;
    (void)events;
    if (status < 0) {
        transport->polled = 0;
        transport_fail(transport, TRANSPORT_LOST);
        return;
    }
    if (transport->is_failed || !intake_may_shake(transport->intake)) {
        return; /* poll reports it again in the next turn */
    }
    switch (tls_handshake(transport->tls)) {
    case TLS_IS_OPEN:
        transport->is_shaking = false;
        transport->polled = 0; /* by transport_on_handshake */
        transport_note(transport, TRANSPORT_SHAKEN);
        if (transport_has_hidden_input(transport)) {
            transport_read_input(transport);
        }
        break;
    case TLS_HAS_FAILED:
        transport_fail(transport, TRANSPORT_NO_HANDSHAKE);
        break;
    case TLS_IS_WAITING:
    default:
        break;
    }
    transport_update(transport);
}

/* ---- events ---- */

static void transport_on_poll(uv_poll_t *poll, int status, int events) {
    struct transport *transport = poll->data;
    if (status < 0) {
        /* The socket has an error, and libuv has stopped watching it. Input that arrived before is
         * still read if it may be; otherwise poll would keep reporting the error. */
        transport->polled = 0;
        if (transport->is_ending || !transport_may_read(transport)) {
            transport_fail(transport, TRANSPORT_LOST);
            return;
        }
        transport_read_input(transport);
        transport_update(transport);
        return;
    }
    if ((events & UV_WRITABLE) != 0) {
        if (transport->is_write_wanted) {
            transport->is_write_wanted = false;
            transport_note(transport, TRANSPORT_WRITTEN);
        }
        if (transport->outgoing_first != NULL) {
            size_t before = atomic_load_explicit(&transport->written_total, memory_order_relaxed);
            transport_write_outgoing(transport);
            transport_note_backlog(transport);
            if (atomic_load_explicit(&transport->written_total, memory_order_relaxed) != before) {
                transport->is_report_wanted = true;
                transport_note(transport, TRANSPORT_WRITTEN);
            }
            transport_report_written(transport);
        }
        if (transport->tls != NULL && (events & UV_READABLE) == 0 &&
            transport_has_hidden_input(transport)) {
            transport_read_input(transport);
        }
    }
    if ((events & UV_READABLE) != 0) {
        if (transport->is_ending) {
            /* Nothing of it is parsed, nor, of TLS, decrypted. When the client has closed, the engine is told. */
            char nowhere[4096];
            ssize_t size = recv(transport->fd, nowhere, sizeof nowhere, 0);
            if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
                transport_fail(transport, TRANSPORT_LOST);
            }
        } else if (transport_may_read(transport)) {
            transport_read_input(transport);
        } else {
            transport->is_muted = true;
        }
    }
    transport_update(transport);
}

void transport_update(struct transport *transport) {
    int polled = 0;
    if (transport->is_closing || transport->polled < 0) {
        return;
    }
    bool is_wanted = !transport->is_muted && transport_is_heard(transport);
    if (!transport->is_failed &&
        (transport->is_ending || (is_wanted && !transport->is_input_over))) {
        polled |= UV_READABLE;
    }
    if ((transport->outgoing_first != NULL || transport->is_write_wanted) &&
        !transport->is_failed) {
        polled |= UV_WRITABLE;
    }
    if (transport->tls != NULL && transport->is_shaking) {
        bool is_over = transport->is_failed || transport->intake->is_draining;
        polled = is_over ? 0 : tls_wants_write(transport->tls) ? UV_WRITABLE : UV_READABLE;
    } else if (transport->tls != NULL && transport_has_hidden_input(transport)) {
        polled |= UV_WRITABLE;
    }
    if (polled == transport->polled) {
        return;
    }
    transport->polled = polled;
    if (polled != 0) {
        uv_poll_start(&transport->poll, polled,
                      transport->is_shaking ? transport_on_handshake : transport_on_poll);
    } else {
        uv_poll_stop(&transport->poll);
    }
}

/* ---- open and close ---- */

static void transport_open(struct transport *transport) {
    struct intake *intake = transport->intake;
    LIST_JOIN(intake->transports, transport);
    transport->poll.data = transport;
    if (uv_poll_init(intake->loop, &transport->poll, transport->fd) != 0) {
        transport->polled = -1; /* there is no handle */
        transport_fail(transport, TRANSPORT_LOST);
    }
    if (transport->tls_context != NULL) {
        transport->tls = tls_create(transport->tls_context, transport->fd);
        tls_context_release(transport->tls_context);
        transport->tls_context = NULL;
        transport->is_shaking = true;
        if (transport->tls == NULL) {
            shutdown(transport->fd, SHUT_RDWR); /* nothing may be sent as it is */
            transport_fail(transport, TRANSPORT_NO_MEMORY_FOR_INPUT);
        }
    }
}

static void transport_on_closed(uv_handle_t *handle) {
    struct transport *transport = handle->data;
    transport_note(transport, TRANSPORT_CLOSED);
}

static void transport_close(struct transport *transport) {
    struct intake *intake = transport->intake;
    struct outgoing *outgoing;
    transport->is_closing = true;
    intake->in_flight -= transport->in_flight;
    transport->in_flight = 0;
    LIST_PART(intake->transports, transport);
    LIST_TAKE_EACH(transport->outgoing_first, outgoing) {
        transport_drop_outgoing(transport, outgoing);
    }
    resp_parser_deinit(&transport->parser);
    transport_free_unfinished(transport);
    transport->is_unparsed = false;
    if (transport->polled < 0) {
        transport_note(transport, TRANSPORT_CLOSED);
    } else {
        uv_close((uv_handle_t *)&transport->poll, transport_on_closed);
    }
    if (transport->tls != NULL) {
        tls_destroy(transport->tls);
        transport->tls = NULL;
    }
    close(transport->fd);
}

void transport_apply(struct transport *transport, const struct transport_message *message,
                     const char *bytes) {
    struct intake *intake = transport->intake;
    if (message->is_opened) {
        transport_open(transport);
    }
    transport->is_authenticated = message->is_authenticated;
    transport->is_stopped |= message->is_stopped;
    transport->is_awaited = message->is_awaited;
    transport->in_flight -= message->done;
    intake->in_flight -= message->done;
    if (message->size > 0 || message->outgoing != NULL || message->is_report_wanted) {
        transport_send_output(transport, message, bytes);
        transport_report_written(transport);
    }
    if (message->is_closed) {
        transport_close(transport);
        return;
    }
    if (message->is_ending) {
        transport->is_ending = true;
        if (transport->tls != NULL) {
            tls_end(transport->tls);
            if (transport->is_shaking) {
                transport->is_shaking = false;
                transport->polled = 0; /* by transport_on_handshake */
            }
        }
        shutdown(transport->fd, SHUT_WR);
    }
    if (transport->in_flight == 0) {
        transport->is_muted = false;
        if (transport->is_unparsed && !transport->is_stopped && !transport->is_failed) {
            transport_parse_unfinished(transport);
            transport_tell_end(transport);
        } else if (transport->unfinished.at != NULL && !transport->is_unparsed) {
            transport_trim_unfinished(transport);
        }
    }
    transport_update(transport);
}
