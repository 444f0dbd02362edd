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
    CONNECTION_HELD_BY_WAIT,   /* it waits for a key */
    CONNECTION_HELD_BY_JOB,    /* its command runs in steps (sessions/job.h) */
    CONNECTION_HELD_BY_END,    /* SHUTDOWN: the server retires */
    CONNECTION_HELD_BY_GUARD, /* its password is looked at later (server/acl/auth_guard.h), or its token by a thread */
};

/* Output that must wait until the changes it shows may be seen (dispatch/waiting.h). In output order:
 *
 *     [ free_size: may be sent ][ .. mark_end: group mark_group ][ the rest: rest_group, 0: none ]
 */
struct connection_wait {
    size_t free_size, mark_end;
    uint64_t mark_group; /* 0: nothing waits */
    uint64_t rest_group;
    uint64_t epoch; /* of all that waits: it is never sent in another one */
    uint64_t
        shown; /* the one key that all of it shows, and that it has not changed (tick_output.c); 0: unknown */
    struct connection *previous, *next; /* list of connections whose output waits */
};

struct connection {
    struct session session; /* first: every session of the loop is embedded in a connection */
    struct tick *tick;
    struct network *network;             /* of the transport */
    struct connection *next[TICK_LISTS]; /* in the tick's lists */
    uint32_t queued;                     /* requests in the queue yet to run */
    uint32_t entry_count;                /* queue entries that refer to it, including void ones */
    uint32_t done; /* requests that have run and of which the transport was not yet told */
    /* While the client waits for a key, the transport is to read on, and so to find out whether the
     * client is there: so many of the requests that were held back count as done already. */
    uint32_t done_ahead;
    enum connection_hold hold;
    bool is_in[TICK_LISTS];
    bool is_tls;
    bool is_shaking;      /* the handshake of TLS is not over */
    bool is_auth_waiting; /* in the tick's list of those */
    bool is_verified;     /* the token of its next request was looked at */
    bool is_input_over;   /* it sends no more */
    bool is_close_told;   /* the transport knows */
    bool is_transport_closed;
    bool was_authenticated; /* as the transport was told, like the next */
    bool was_stopped, was_draining, was_awaited;
    size_t unfinished_size; /* of the transport, as it last said */
    size_t transport_memory_size;
    uint64_t handed_total;   /* bytes of output handed to the transport */
    uint64_t written_seen;   /* its written_total when the engine last looked */
    struct transaction held; /* requests that were held back, in order */
    struct connection_wait wait;
    struct verifier_item *verifying; /* its token, which a thread looks at; NULL: none */
    uint32_t ticket_at;  /* of its next request the last ticket that was looked at; 0: none */
    int64_t auth_due_ms; /* when its password may be looked at; 0: it waits for nothing */
    int64_t known_at_ms; /* when it connected or was last seen authenticated; monotonic */
    char apart[RING_CACHE_LINE]; /* what two threads write lies on different cache lines */
    struct transport transport;
};

/* Fetch what running a request will need of it. */
static inline void connection_fetch(const struct session *session) {
    enum { LINE = 64 };
    const struct connection *connection = (const struct connection *)session;
    const char *at = (const char *)&session->input_memory_size;
    const char *end = (const char *)&connection->wait.rest_group;
    for (; at < end; at += LINE) {
        __builtin_prefetch(at, 1);
    }
}

static inline struct connection *connection_of(struct session *session) {
    return (struct connection *)session;
}

/* Take ownership of an accepted socket. false: refused; its network closes it. */
bool connection_open(struct tick *tick, const struct accepted *accepted);
/* As CLIENT LIST has it. */
void connection_print_address(const union socket_address *address, char out[SESSION_ADDRESS_MAX]);
/* Output appended since the size was size_before must wait for this group. shown: see struct connection_wait. */
void connection_withhold_output(struct connection *connection, size_t size_before, uint64_t group,
                                uint64_t shown);
/* Release the output that waits for groups up to this one. */
void connection_free_output(struct connection *connection, uint64_t group);
/* How many bytes of the output may be sent. */
static inline size_t connection_sendable_size(const struct connection *connection) {
    return connection->wait.mark_group == 0 ? connection->session.output.size
                                            : connection->wait.free_size;
}
/* Close now, dropping unsent output and waiting requests. reason: for the log. */
void connection_close(struct connection *connection, const char *reason);

/* Its output is sent, and no request of it runs any more: close the socket in our direction, and wait
 * until the client has closed it too. false: no memory. */
MUST_CHECK bool connection_end(struct connection *connection);

/* Keep a copy of this request, the next to run, until connection_resume. */
void connection_hold(struct connection *connection, const struct queue_entry *entry,
                     enum connection_hold hold);
/* A request has run, or will not. */
static inline void connection_count_done(struct connection *connection) {
    if (connection->done_ahead > 0) {
        connection->done_ahead--;
    } else {
        connection->done++;
    }
}
/* Continue after connection_hold. */
void connection_resume(struct connection *connection);
/* Must this AUTH or HELLO, the next to run, wait first? Then it waits from now on, and the caller
 * holds it. Answers so once for each request: it may run when the wait is over. */
bool connection_begin_auth_wait(struct connection *connection, const struct queue_entry *entry);
/* End the thread that looks at their tokens; before the loop ends. */
void connection_stop_verifier(struct verifier *verifier);
/* Resume those whose wait is over. */
void connection_end_auth_waits(struct tick *tick);
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
