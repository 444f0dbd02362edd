/* One client's socket: bytes in, bytes out. A transport belongs to one network (network.h), on whose
 * thread all of this runs; the engine's half of a client is in loop/connection.h.
 *
 * Reading only parses: whole requests go into the network's batch, and what is left of the input
 * stays in `unfinished`. A transport does not read while requests of its are in flight, that is, not
 * yet answered. So a client that sends faster than it is served is slowed down by TCP.
 *
 * With TLS (tls.h) a handshake comes first: until it is over nothing is read, and output waits. */
#ifndef SERVER_TRANSPORT_H
#define SERVER_TRANSPORT_H

#include <stdatomic.h>
#include <unistd.h>
#include <uv.h>

#include "server/network/intake.h"
#include "server/network/tls.h"

/* Input that is an incomplete request or not yet parsed: at[begin .. end-1]. */
struct transport_input {
    char *at;
    size_t begin, end, capacity;
};

struct transport {
    struct intake *intake;
    struct session *session; /* of its other half, which embeds both */
    struct transport *next, *previous;
    struct transport *noted_next;
    unsigned events; /* to be noted in the next batch; enum transport_event */
    enum transport_failure failure;
    int fd;
    int polled;                     /* UV_READABLE, UV_WRITABLE */
    uint32_t in_flight;             /* requests handed over and not yet answered */
    struct ssl_ctx_st *tls_context; /* set before it is opened, which takes it; NULL: no TLS */
    struct tls *tls;                /* NULL: no TLS */
    bool is_shaking;                /* its handshake is not over */
    bool is_authenticated;
    bool is_unparsed;   /* unfinished may hold whole requests */
    bool is_muted;      /* readable, but not to be read before its requests are answered */
    bool is_input_over; /* end of file, a protocol error, or a socket error */
    bool is_stopped;    /* the engine wants no more of it */
    bool is_awaited; /* a replica's: answers wait for what it says, also while the network drains */
    bool is_failed;  /* nothing is read or written any more */
    bool is_ending;  /* closed in our direction; what comes is read away */
    bool is_closing;
    bool is_report_wanted;
    bool is_write_wanted; /* the engine, on its own thread, waits until it is writable */
    struct resp_parser parser;
    struct transport_input unfinished;
    struct outgoing *outgoing_first, *outgoing_last;
    /* Bytes of output written, or dropped at the end. Written here, read by the engine. */
    _Atomic uint64_t written_total;
    _Atomic bool has_backlog; /* the socket takes no more for now; as above */
    uv_poll_t poll;
};

/* Do what the engine says. bytes: the message's output, if it has some. */
void transport_apply(struct transport *transport, const struct transport_message *message,
                     const char *bytes);
/* Stop reading if the network drains, unless it is awaited. */
void transport_update(struct transport *transport);
/* Bytes held for its input. */
size_t transport_memory_size(const struct transport *transport);

/* For the engine, after TRANSPORT_SHAKEN: tls_peer_name. */
static inline const char *transport_peer_name(const struct transport *transport) {
    return tls_peer_name(transport->tls);
}

/* As write(), on the network's thread. */
static inline ssize_t transport_write(struct transport *transport, const char *at, size_t size) {
    return transport->tls == NULL ? write(transport->fd, at, size)
                                  : tls_write(transport->tls, at, size);
}

/* For the engine, of a transport on its own thread: call me when it can be written to
 * (TRANSPORT_WRITTEN). */
static inline void transport_want_write(struct transport *transport, bool is_wanted) {
    if (transport->is_write_wanted != is_wanted) {
        transport->is_write_wanted = is_wanted;
        transport_update(transport);
    }
}

#endif
