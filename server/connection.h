/* One client's socket: bytes in, bytes out.
 *
 * Reading only parses: whole requests go to the tick's queue, an unfinished one stays here in
 * `pending`. At most one read in a tick, and none while requests of the connection wait in the
 * queue; so the waiting ones lie in one contiguous region, which can be put back (connection_hold)
 * and parsed again later.
 *
 * Life: open -> is_closing (no session any more, no descriptor) -> freed, when libuv has let go of
 * the handle and no entry of the queue names it. */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include "server/tick.h"

/* Why a connection is neither read nor run for now. */
enum connection_hold {
    CONNECTION_RUNS,
    CONNECTION_HELD_BY_OUTPUT, /* it does not read its replies */
    CONNECTION_HELD_BY_PAUSE,  /* CLIENT PAUSE */
};

/* Input that is not yet whole requests, or not yet parsed: at[begin .. end-1]. */
struct connection_input {
    char *at;
    size_t begin, end, capacity;
};

/* Output that has to wait until what it shows is on disk. In the order of the output:
 *
 *     [ free_size: may leave ][ .. mark_end: group mark_group ][ the rest: rest_group, 0: none ]
 */
struct connection_gate {
    size_t free_size, mark_end;
    uint64_t mark_group; /* 0: nothing waits */
    uint64_t rest_group;
    struct connection *previous, *next; /* of those that wait */
};

struct connection {
    struct session session; /* first: every session of the loop is a connection's */
    struct tick *tick;
    struct connection *dirty_next;
    uint32_t queued;      /* requests in the queue that are still to run */
    uint32_t entry_count; /* entries in the queue that name it, void ones included */
    uint32_t epoch;       /* entries of an earlier one are void */
    enum connection_hold hold;
    bool is_dirty;
    bool is_unparsed;   /* pending may hold whole requests */
    bool is_input_over; /* end of file, a broken socket or request: nothing more is read */
    bool is_closing;
    bool is_handle_closed;
    struct resp_parser parser;
    struct connection_input pending;
    struct connection_gate gate;
    const char *region_end; /* behind the waiting requests' bytes */
    int events;             /* that are polled: UV_READABLE, UV_WRITABLE */
    uv_poll_t poll;
};

static inline struct connection *connection_of(struct session *session) {
    return (struct connection *)session;
}

/* Take over an accepted, non-blocking socket. false: it is refused, and closed. */
bool connection_open(struct tick *tick, int fd, bool is_unix_socket, const char *unix_path);
/* What was added to the output since it had size_before bytes waits for this group. */
void connection_gate(struct connection *connection, size_t size_before, uint64_t group);
/* What waits for groups up to this one may leave. */
void connection_open_gate(struct connection *connection, uint64_t group);
/* How much of the output may be sent. */
static inline size_t connection_sendable_size(const struct connection *connection) {
    return connection->gate.mark_group == 0 ? connection->session.output.size
                                            : connection->gate.free_size;
}
/* Close now: unsent output and waiting requests are dropped. reason: for the log. */
void connection_close(struct connection *connection, const char *reason);

/* Put the requests that wait, from input on, back into pending, and read no more until
 * connection_resume. */
void connection_hold(struct connection *connection, const char *input, enum connection_hold hold);
/* Go on after a hold. */
void connection_resume(struct connection *connection);
/* Send what can be sent, apply the limits, and go on parsing or close as the session says. */
void connection_finish(struct connection *connection);
/* Send what can be sent; false: the connection was closed. */
MUST_CHECK bool connection_flush(struct connection *connection);
/* Start or stop reading as the state says. */
void connection_update_events(struct connection *connection);
/* Once a second: the idle timeout, the soft output limit. */
void connection_check_time(struct connection *connection);
/* An entry of the queue that names it is gone. */
void connection_release(struct connection *connection);

/* Will this entry of the queue not be run? Its connection has gone, or has taken its requests back;
 * its input may be gone with them. */
static inline bool connection_is_void(const struct tick_entry *entry) {
    const struct connection *connection = entry->connection;
    return connection->is_closing || connection->epoch != entry->epoch ||
           connection->session.is_killed;
}

/* Unsent output above which a client is held, and below which it goes on. */
enum { CONNECTION_OUTPUT_HIGH = 1 << 20, CONNECTION_OUTPUT_LOW = 1 << 19 };

#endif
