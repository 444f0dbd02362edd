/* The tick: one iteration of the loop.
 *
 *     poll    connections read and parse; complete requests are queued in arrival order
 *     check   the queue runs, in groups of 16: first the group's cache misses are started
 *             together, stage by stage (lookahead.h), then its commands run one by one;
 *             then one write per client, and bounded steps of background work
 *
 * A tick takes about a millisecond at most. It ends early when it has gathered as many bytes of
 * effects as are written to disk at once. The rest of a long queue runs in the next tick, in the
 * same order. All commands of a tick share one time.
 *
 * How this room works: connection.h is the engine's half of a client, listener.h opens the sockets
 * that the networks accept from, tick_parts.h lists the files that a tick is cut into.
 *
 * Invariant: requests run in queue order. What a queued request points to, its input and its
 * arguments, does not move until it has run (network/batch.h). */
#ifndef SERVER_TICK_H
#define SERVER_TICK_H

#include <uv.h>

#include "server/clients/server.h"
#include "server/loop/lookahead.h"
#include "server/loop/tls_settings.h"
#include "server/network/network.h"
#include "server/system/fault.h"

struct connection;

/* Lists of connections. */
enum tick_list {
    TICK_DIRTY,  /* to be finished at the end of the tick */
    TICK_PUSHED, /* with output that they did not ask for */
    TICK_LISTS,
};

enum { TICK_BUFFERS_MAX = 64 }; /* empty output buffers kept for the next replies */

struct tick {
    uv_loop_t *loop;
    struct server *server;
    uv_check_t check;
    uv_idle_t idle; /* active: work is left, do not block in poll */
    uv_timer_t second, wake, drain;
    bool is_idle_active;
    int64_t wake_at_ms;       /* when wake fires; INT64_MAX: not set */
    int64_t stale_at_ms;      /* when the next pass of STALE begins; monotonic */
    struct network *networks; /* one on this loop, or several with threads of their own */
    void *networks_memory;    /* where they are, at a multiple of a cache line */
    unsigned network_count;
    struct network_limits limits;
    /* Several networks: */
    struct wakeup network_wake;
    uv_prepare_t prepare;
    int64_t spin_ns;
    uint64_t requests_at_ns; /* when the last requests came */
    bool is_request_near;    /* and they came soon after the ones before */
    bool has_more;           /* something is to be tried again in the next tick */
    bool waits_for_memory;   /* the same, a millisecond later (memory_is_ready) */
    /* The queue: batches in order of arrival. */
    struct batch *queue_first, *queue_last;
    struct batch *queue_at; /* no request before it waits; NULL: the queue is empty */
    uint64_t waiting_count; /* entries in it yet to run */
    struct queue_entry group[LOOKAHEAD_GROUP]; /* copies, where a group is of several batches */
    const struct queue_entry *running;         /* NULL: none */
    uint64_t done_total;
    struct {
        struct connection *first, *last;
    } lists[TICK_LISTS];
    struct connection *waiting_first; /* connections whose output waits (commit_wait.h) */
    uint64_t release_epoch;           /* of the answers in it that may leave */
    struct session *auth_first;       /* SESSION_AUTHENTICATING */
    int64_t auth_due_ms;              /* when the first of them may; monotonic */
    struct buffer buffers[TICK_BUFFERS_MAX];
    size_t buffer_bytes; /* sum of their capacities */
    uint32_t buffer_count;
    uint32_t idle_buffer_count;     /* how many were not lent within this second */
    struct connection *check_next;  /* next in the walk over all clients, once a second */
    uint64_t input_max, output_max; /* largest buffers of any client in this walk so far */
    bool is_feeding; /* what replicas are sent is not in their sockets yet: no answer leaves */
    bool is_behind;  /* the disk is behind: the queue waits (persistence_is_behind) */
    enum server_pause held_by;    /* the strongest pause that holds a connection back */
    bool is_due_held;             /* registry_set_held */
    bool is_retiring;             /* the server still serves: see dispatch/shutdown.h */
    bool is_draining;             /* no more reads, but of replicas; queued requests are answered */
    bool is_lingering;            /* all replies are sent: clients are to close */
    bool is_stopping;             /* the loop is ending */
    int64_t full_logged_at_ms;    /* of monotonic_ms; 0: never */
    int64_t archive_logged_at_ms; /* one waits for memory; as above */
    int64_t tls_logged_at_ms;     /* a handshake that failed; as above */
    unsigned tls_unlogged_count;
    int64_t proxy_logged_at_ms;   /* likewise, of clients refused for their PROXY header */
    unsigned proxy_refused_count; /* since then */
    /* When the thread's processor time was read last, in clock_ticks, and what it was. */
    uint64_t cpu_read_at_ticks, cpu_ns;
    /* The listening sockets, or NULL. From tick_init on they are the first network's. */
    struct acceptor *acceptor;
    const struct tls_settings *tls; /* NULL: no listening socket is for TLS */
    struct replicator *replicator;  /* NULL: none */
    /* Called by tick_release_answers, for answers that wait elsewhere. NULL: there are none. */
    void (*release_others)(void *others);
    /* Called while the server drains: begin to drain, and say whether all is answered that came before. NULL: there is
     * nothing. */
    bool (*drain_others)(void *others);
    void *others;
    /* Called once when draining begins. */
    void (*stop_listening)(void *context);
    void *context;
};

/* *tick is zero-initialised except acceptor, tls, stop_listening and context. false: out of memory,
 * or libuv failed. */
MUST_CHECK bool tick_init(struct tick *tick, uv_loop_t *loop, struct server *server);
/* Call after the loop has ended and its handles are closed. */
void tick_deinit(struct tick *tick);

/* Shut down: answer queued requests and flush unsent output for a bounded time, then close
 * everything. is_now, or a second call: do not flush. */
void tick_shutdown(struct tick *tick, bool is_now);

/* The command that runs; false: none. Async-signal-safe. */
bool tick_describe_command(const struct tick *tick, struct fault_command *command);
/* Run one iteration without blocking in poll. */
void tick_wake(struct tick *tick);
/* Send output that no longer has to wait, and close whose answers are never to be sent. */
void tick_release_answers(struct tick *tick);

/* The network with the fewest clients. */
struct network *tick_least_network(struct tick *tick);
/* Queue the requests that the connection has held back. false: no memory. */
MUST_CHECK bool tick_queue_held(struct tick *tick, struct connection *connection);
/* Finish this connection at the end of the tick. */
void tick_mark_dirty(struct tick *tick, struct connection *connection);

/* Lend an empty output buffer to a session that has none, and take it back once it is empty. */
void tick_lend_buffer(struct tick *tick, struct session *session);
void tick_take_buffer(struct tick *tick, struct session *session);

#endif
