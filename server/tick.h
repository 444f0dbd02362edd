/* The tick: what happens in one turn of the loop.
 *
 *     poll    connections read and parse; whole requests stand in the queue in arrival order
 *     check   the queue runs, in groups of 16: first the group's cache misses are started all at
 *             once, stage by stage (prefetch.h), then its commands are executed one by one
 *             then one write per client, and bounded steps of background work
 *
 * A tick takes about a millisecond at most: what is left of a long queue runs in the next turn, in
 * the same order. All commands of a tick share one time.
 *
 * Invariant: requests run in the order in which they were queued. What a request of the queue
 * points to, its input and its arguments, stays where it is until it has run (input.h). */
#ifndef SERVER_TICK_H
#define SERVER_TICK_H

#include <uv.h>

#include "server/input.h"
#include "server/server.h"

struct connection;

enum {
    TICK_GROUP = 16,
    TICK_BUFFERS_MAX = 64, /* empty output buffers kept for the next replies */
};

/* Entries of the queue that are no command. */
#define TICK_PROTOCOL_ERROR (UINT32_MAX - 1) /* answer the text, then close */
#define TICK_CLOSE          (UINT32_MAX - 2) /* close without an answer */

struct tick_entry {
    struct connection *connection;
    const char *input; /* the request's first byte */
    struct request request;
    const char *error; /* TICK_PROTOCOL_ERROR */
    uint32_t command;  /* number, COMMAND_NONE, or one of the above */
    uint32_t epoch;    /* run only if it is still the connection's */
};

struct tick {
    uv_loop_t *loop;
    struct server *server;
    uv_check_t check;
    uv_idle_t idle; /* active: there is work left, do not block in poll */
    uv_timer_t second, wake, drain;
    bool is_idle_active;
    int64_t wake_at_ms;         /* what wake is set to; INT64_MAX: not set */
    struct input input;         /* what the requests of the queue lie in */
    struct tick_entry *entries; /* entries[head .. end-1] wait */
    size_t head, end, capacity;
    uint64_t queued_total, done_total;
    struct connection *dirty_first, *dirty_last; /* to be finished at the end of the tick */
    struct connection *gated_first;              /* with output that waits for the disk */
    struct buffer buffers[TICK_BUFFERS_MAX];
    size_t buffer_bytes; /* their capacities together */
    uint32_t buffer_count;
    uint32_t idle_buffer_count; /* of them, not lent within this second */
    int64_t maxclients;         /* that there are descriptors for */
    bool is_pausing;            /* connections are held back by CLIENT PAUSE */
    bool is_draining;           /* nothing is read any more; what is queued is answered */
    bool is_stopping;           /* the loop ends */
    /* Called once, when draining begins: stop accepting. */
    void (*stop_listening)(void *context);
    void *context;
};

/* Zeroed but for stop_listening and context. false: no memory, or libuv failed. */
MUST_CHECK bool tick_init(struct tick *tick, uv_loop_t *loop, struct server *server);
/* After the loop has ended and its handles are closed. */
void tick_deinit(struct tick *tick);

/* Stop: answer what is queued and flush what is unsent, for a bounded time, then close everything.
 * is_now, or a second time: flush nothing. */
void tick_shutdown(struct tick *tick, bool is_now);

/* Turn once without waiting for anything. */
void tick_wake(struct tick *tick);
/* Send what has waited for the disk and need not any more. */
void tick_open_gates(struct tick *tick);

/* Where a connection may read to, what of it is kept, and where arguments go: see input.h. */
MUST_CHECK static inline char *tick_input_room(struct tick *tick, size_t *size) {
    return input_room(&tick->input, size);
}
static inline void tick_input_keep(struct tick *tick, size_t size) {
    input_keep(&tick->input, size);
}
static inline struct resp_arena *tick_arguments(struct tick *tick) {
    return input_arguments(&tick->input);
}

/* The entry behind the queue's last, to be filled in; NULL: no memory. It stands in the queue when
 * tick_queue_entry is called, before the next one is asked for. */
MUST_CHECK struct tick_entry *tick_next_entry(struct tick *tick);
void tick_queue_entry(struct tick *tick);
/* Finish this connection at the end of the tick. */
void tick_mark_dirty(struct tick *tick, struct connection *connection);

/* An empty output buffer for a session that has none, and back again once it is empty. */
void tick_lend_buffer(struct tick *tick, struct session *session);
void tick_take_buffer(struct tick *tick, struct session *session);

#endif
