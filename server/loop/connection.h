/* The engine's half of a client: its session, its place in the queue, its output until that is
 * handed over, and the limits. The other half has the socket (network/transport.h).
 *
 * Life cycle: open -> session.is_closed -> freed once the transport is closed and no queue
 * entry refers to it. */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include "server/loop/tick.h"
#include "server/network/transport.h"

/* Why a connection is currently neither read nor run. */
enum connection_hold {
    CONNECTION_RUNS,
    CONNECTION_HELD_BY_OUTPUT, /* the client does not read its replies */
    CONNECTION_HELD_BY_PAUSE,  /* CLIENT PAUSE */
};

/* Output that must wait until the changes it shows are on disk. In output order:
 *
 *     [ free_size: may be sent ][ .. mark_end: group mark_group ][ the rest: rest_group, 0: none ]
 */
struct connection_gate {
    size_t free_size, mark_end;
    uint64_t mark_group; /* 0: nothing waits */
    uint64_t rest_group;
    struct connection *previous, *next; /* list of gated connections */
};

struct connection {
    struct session session; /* first: every session of the loop is embedded in a connection */
    struct tick *tick;
    struct connection *dirty_next;
    uint32_t queued;      /* requests in the queue yet to run */
    uint32_t entry_count; /* queue entries that refer to it, including void ones */
    uint32_t done;        /* requests that have run and of which the transport was not yet told */
    enum connection_hold hold;
    int64_t known_at_ms; /* when it connected or was last seen authenticated; monotonic */
    bool is_dirty;
    bool is_input_over; /* it sends no more */
    bool is_close_told; /* the transport knows */
    bool is_transport_closed;
    bool was_authenticated; /* as the transport was told, like the next */
    bool was_stopped, was_draining;
    size_t unfinished_size; /* of the transport, as it last said */
    size_t transport_memory_size;
    uint64_t handed_total;   /* bytes of output handed to the transport */
    struct transaction held; /* requests that were held back, in order */
    struct connection_gate gate;
    struct transport transport;
};

static inline struct connection *connection_of(struct session *session) {
    return (struct connection *)session;
}

/* Take ownership of an accepted, non-blocking socket. false: refused and closed. */
bool connection_open(struct tick *tick, int fd, bool is_unix_socket, const char *unix_path);
/* Output appended since the size was size_before must wait for this group. */
void connection_gate(struct connection *connection, size_t size_before, uint64_t group);
/* Release the output that waits for groups up to this one. */
void connection_open_gate(struct connection *connection, uint64_t group);
/* How many bytes of the output may be sent. */
static inline size_t connection_sendable_size(const struct connection *connection) {
    return connection->gate.mark_group == 0 ? connection->session.output.size
                                            : connection->gate.free_size;
}
/* Close now, dropping unsent output and waiting requests. reason: for the log. */
void connection_close(struct connection *connection, const char *reason);

/* Keep a copy of this request, the next to run, until connection_resume. */
void connection_hold(struct connection *connection, const struct queue_entry *entry,
                     enum connection_hold hold);
/* Continue after connection_hold. */
void connection_resume(struct connection *connection);
/* Send what may be sent, apply the limits, and continue parsing or close, as the session says. */
void connection_finish(struct connection *connection);
/* Send what may be sent. false: the connection was closed. */
MUST_CHECK bool connection_flush(struct connection *connection);
/* What the transport said. */
void connection_take_note(const struct transport_note *note);
/* Called once a second: timeouts and the soft output limit. */
void connection_check_time(struct connection *connection);
/* A queue entry that refers to it was removed. */
void connection_release(struct connection *connection);

/* Bytes of output that are not yet in the socket. */
static inline size_t connection_unsent_size(const struct connection *connection) {
    uint64_t written =
        atomic_load_explicit(&connection->transport.written_total, memory_order_relaxed);
    return connection->session.output.size + (size_t)(connection->handed_total - written);
}

/* Hold a client when its unsent output exceeds HIGH; resume it below LOW. */
enum { CONNECTION_OUTPUT_HIGH = 1 << 20, CONNECTION_OUTPUT_LOW = 1 << 19 };

#endif
