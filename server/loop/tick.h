/* The tick: one iteration of the loop.
 *
 *     poll    connections read and parse; complete requests are queued in arrival order
 *     check   the queue runs, in groups of 16: first the group's cache misses are started
 *             together, stage by stage (prefetch.h), then its commands run one by one;
 *             then one write per client, and bounded steps of background work
 *
 * A tick takes about a millisecond at most. It ends early when it has gathered as many bytes of
 * effects as are written to disk at once. The rest of a long queue runs in the next tick, in the
 * same order. All commands of a tick share one time.
 *
 * Invariant: requests run in queue order. What a queued request points to, its input and its
 * arguments, does not move until it has run (input.h). */
#ifndef SERVER_TICK_H
#define SERVER_TICK_H

#include <uv.h>

#include "server/clients/server.h"
#include "server/loop/input.h"

struct connection;

enum {
    TICK_GROUP = 16,
    TICK_BUFFERS_MAX = 64, /* empty output buffers kept for the next replies */
};

/* Queue entries that are not commands. */
#define TICK_PROTOCOL_ERROR (UINT32_MAX - 1) /* reply with the error, then close */
#define TICK_CLOSE          (UINT32_MAX - 2) /* close without a reply */

struct tick_entry {
    struct connection *connection;
    const char *input; /* first byte of the request */
    struct request request;
    const char *error; /* TICK_PROTOCOL_ERROR */
    uint32_t command;  /* number, COMMAND_NONE, or one of the above */
    uint32_t epoch;    /* void unless equal to the connection's epoch */
};

struct tick {
    uv_loop_t *loop;
    struct server *server;
    uv_check_t check;
    uv_idle_t idle; /* active: work is left, do not block in poll */
    uv_timer_t second, wake, drain;
    bool is_idle_active;
    int64_t wake_at_ms;         /* when wake fires; INT64_MAX: not set */
    struct input input;         /* holds the queued requests' bytes and arguments */
    struct tick_entry *entries; /* entries[head .. end-1] are waiting */
    size_t head, end, capacity;
    uint64_t queued_total, done_total;
    struct connection *dirty_first, *dirty_last; /* to be finished at the end of the tick */
    struct connection *gated_first;              /* connections whose output waits for the disk */
    struct buffer buffers[TICK_BUFFERS_MAX];
    size_t buffer_bytes; /* sum of their capacities */
    uint32_t buffer_count;
    uint32_t idle_buffer_count;     /* how many were not lent within this second */
    struct connection *check_next;  /* next in the walk over all clients, once a second */
    uint64_t input_max, output_max; /* largest buffers of any client in this walk so far */
    bool is_behind;        /* the disk is behind: the queue waits (persistence_is_behind) */
    bool is_pausing;       /* CLIENT PAUSE holds connections back */
    bool is_running_queue; /* entries[head - 1] is running, or the group before it is being
                              prefetched */
    bool is_draining;      /* no more reads; queued requests are answered */
    bool is_stopping;      /* the loop is ending */
    /* Called once when draining begins, to stop accepting. */
    void (*stop_listening)(void *context);
    void *context;
};

/* *tick is zero-initialised except stop_listening and context. false: out of memory, or libuv
 * failed. */
MUST_CHECK bool tick_init(struct tick *tick, uv_loop_t *loop, struct server *server);
/* Call after the loop has ended and its handles are closed. */
void tick_deinit(struct tick *tick);

/* Shut down: answer queued requests and flush unsent output for a bounded time, then close
 * everything. is_now, or a second call: do not flush. */
void tick_shutdown(struct tick *tick, bool is_now);

/* Full name of the running command; NULL: none. Async-signal-safe. */
const char *tick_running_command(const struct tick *tick);
/* Run one iteration without blocking in poll. */
void tick_wake(struct tick *tick);
/* Send output that no longer has to wait for the disk. */
void tick_open_gates(struct tick *tick);

/* Input space for a connection, how much of it to keep, and the arena for arguments: see
 * input.h. */
MUST_CHECK static inline char *tick_input_room(struct tick *tick, size_t *size) {
    return input_room(&tick->input, size);
}
static inline void tick_input_keep(struct tick *tick, size_t size) {
    input_keep(&tick->input, size);
}
static inline struct resp_arena *tick_arguments(struct tick *tick) {
    return input_arguments(&tick->input);
}

/* The free entry after the last one of the queue, for the caller to fill in. NULL: out of memory.
 * It is queued by tick_queue_entry, which must be called before asking for the next one. */
MUST_CHECK struct tick_entry *tick_next_entry(struct tick *tick);
void tick_queue_entry(struct tick *tick);
/* Is the queue so full that only a little more should be read from each client? */
bool tick_is_full(const struct tick *tick);
/* Finish this connection at the end of the tick. */
void tick_mark_dirty(struct tick *tick, struct connection *connection);

/* Lend an empty output buffer to a session that has none, and take it back once it is empty. */
void tick_lend_buffer(struct tick *tick, struct session *session);
void tick_take_buffer(struct tick *tick, struct session *session);

#endif
