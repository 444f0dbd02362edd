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
 * How this room works: connection.h is the engine's half of a client, the end of this header says what is in which file.
 *
 * Invariant: requests run in queue order. What a queued request points to, its input and its
 * arguments, does not move until it has run (network/batch.h). */
#ifndef SERVER_TICK_H
#define SERVER_TICK_H

#include <uv.h>

#include "server/loop/lookahead.h"
#include "server/network/network.h"
#include "server/network/tls.h"
#include "server/sessions/server.h"
#include "server/system/fault.h"
#include "server/system/worker.h"

struct connection;
struct verifier_item;

/* Lists of connections. */
enum tick_list {
    TICK_DIRTY,  /* to be finished at the end of the tick */
    TICK_PUSHED, /* with output that they did not ask for */
    TICK_LISTS,
};

/* Signatures of tokens, on a thread (connection.c). Zero-initialised: nothing was asked for yet. */
struct verifier {
    struct worker worker;
    struct verifier_item *first, *last; /* those that wait for the thread, oldest first */
    struct verifier_item *running;      /* those that the thread works at */
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
    struct connection
        *waiting_first;         /* connections whose output waits (server/dispatch/waiting.h) */
    uint64_t release_epoch;     /* of the answers in it that may leave */
    struct session *auth_first; /* SESSION_AUTHENTICATING */
    int64_t auth_due_ms;        /* when the first of them may; monotonic */
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
    struct verifier verifier;
    struct replicator *replicator; /* NULL: none */
    /* Called by tick_output_release_answers, for answers that wait elsewhere. NULL: there are none. */
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
void tick_output_release_answers(struct tick *tick);

/* The network with the fewest clients. */
struct network *tick_network_find_least(struct tick *tick);
/* Queue the requests that the connection has held back. false: no memory. */
MUST_CHECK bool tick_network_queue_held(struct tick *tick, struct connection *connection);
/* Finish this connection at the end of the tick. */
void tick_output_mark_dirty(struct tick *tick, struct connection *connection);

/* Lend an empty output buffer to a session that has none, and take it back once it is empty. */
void tick_output_lend_buffer(struct tick *tick, struct session *session);
void tick_output_take_buffer(struct tick *tick, struct session *session);

/* ---- of this room alone ---- *
 *
 *     tick.c           the loop's callbacks, running the queue, the end
 *     tick_network.c   the networks, and the queue of what they bring
 *     tick_output.c    output: lending buffers, what waits, what leaves */

enum { TICK_SECOND_MS = 1000, TICK_FULL_LOG_MS = 60000 };

/* ---- tick_network.c ---- */

void tick_network_release_batches(struct tick *tick);
/* Take what the networks have for the engine. */
void tick_network_take_batches(struct tick *tick);
bool tick_network_has_batches(struct tick *tick);
/* Hand over the replies. true: some must wait for the next tick. */
bool tick_network_push_replies(struct tick *tick);
/* What the networks need to know. */
void tick_network_publish_limits(struct tick *tick);
/* Waiting requests are dropped without running. */
void tick_network_drop_queue(struct tick *tick);
/* The threads close their sockets and end. */
void tick_network_join(struct tick *tick);
/* Requests that come soon after each other are waited for without sleeping. */
void tick_network_note_requests(struct tick *tick);
void tick_network_note(struct tick *tick);
bool tick_network_init(struct tick *tick);

/* ---- tick_output.c ---- */

/* Keep an empty buffer for lending, or free it. */
void tick_output_keep_buffer(struct tick *tick, struct buffer *buffer);
/* Once a second: free the buffers that were not lent since the last call. They are at the bottom,
 * because lending takes from the top. */
void tick_output_free_idle_buffers(struct tick *tick);
void tick_output_finish_dirty(struct tick *tick);
/* Serve clients that waited for keys which have changed. Clients have received output without
 * asking for it: it may show changes of the command that ran, so it waits as that command's reply
 * does. is_harmless: that command has seen no boards, and none of its client's replies waits. */
void tick_output_take_news(struct tick *tick, bool is_harmless);
bool tick_output_entry_sees_boards(const struct queue_entry *entry);
/* Hold the reply back if it may show changes that must be on disk first: the command's own changes or,
 * with appendfsync always, any that it could see. A refused command has seen none. entry NULL: it
 * could see all. */
void tick_output_hold(struct connection *connection, size_t size_before, bool has_changed,
                      const struct queue_entry *entry);
/* What began in an epoch that is over by now has seen or changed what is not decided here any more:
 * a job, or a transaction that has ended the epoch itself. Its client is closed without an answer.
 */
void tick_output_drop_outdated(struct server *server, struct session *session, uint64_t epoch);
/* With replicas, answers wait for what these are sent. With sync-replicas acknowledgements come in
 * any tick, and the lease ends in any. Else the disk tells. */
bool tick_output_must_release_answers(const struct tick *tick);
/* Send what clients received without asking, to some of them. true: more are left. */
bool tick_output_finish_pushed(struct tick *tick);
/* What replicas are sent leaves before the replies: a change that is answered is in their sockets,
 * and outlives this process. */
bool tick_output_end_replication(struct tick *tick);

/* ---- tick.c ---- */

void tick_set_idle(struct tick *tick, bool is_active);
void tick_close_handle(uv_handle_t *handle);

#endif
