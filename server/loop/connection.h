/* One client's socket: bytes in, bytes out.
 *
 * Reading only parses: complete requests are queued in the tick, and an incomplete one stays in
 * `pending`. A connection reads at most once per tick, and not while its requests wait in the
 * queue. So its waiting requests are contiguous in memory: they can be put back (connection_hold)
 * and parsed again later.
 *
 * Life cycle: open -> is_closing (no session, no descriptor) -> freed once libuv has closed the
 * handle and no queue entry refers to it. */
#ifndef SERVER_CONNECTION_H
#define SERVER_CONNECTION_H

#include "server/loop/tick.h"

/* Why a connection is currently neither read nor run. */
enum connection_hold {
    CONNECTION_RUNS,
    CONNECTION_HELD_BY_OUTPUT, /* the client does not read its replies */
    CONNECTION_HELD_BY_PAUSE,  /* CLIENT PAUSE */
};

/* Input that is an incomplete request or not yet parsed: at[begin .. end-1]. */
struct connection_input {
    char *at;
    size_t begin, end, capacity;
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
    uint32_t epoch;       /* entries of an earlier epoch are void */
    enum connection_hold hold;
    uint64_t known_at_ms; /* when it connected or was last seen authenticated; loop time */
    bool is_dirty;
    bool is_unparsed;   /* pending may contain complete requests */
    bool is_input_over; /* end of file, socket error or protocol error: stop reading */
    bool is_closing;
    bool is_handle_closed;
    struct resp_parser parser;
    struct connection_input pending;
    struct connection_gate gate;
    const char *region_end; /* end of the waiting requests' bytes */
    int events;             /* being polled: UV_READABLE, UV_WRITABLE */
    uv_poll_t poll;
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

/* Move the waiting requests, from input on, back into pending, and stop reading until
 * connection_resume. */
void connection_hold(struct connection *connection, const char *input, enum connection_hold hold);
/* Continue after connection_hold. */
void connection_resume(struct connection *connection);
/* Send what may be sent, apply the limits, and continue parsing or close, as the session says. */
void connection_finish(struct connection *connection);
/* Send what may be sent. false: the connection was closed. */
MUST_CHECK bool connection_flush(struct connection *connection);
/* Start or stop reading according to the state. */
void connection_update_events(struct connection *connection);
/* Called once a second: timeouts and the soft output limit. */
void connection_check_time(struct connection *connection);
/* A queue entry that refers to it was removed. */
void connection_release(struct connection *connection);

/* Must this queue entry be skipped? Its connection was closed, or has taken its requests back; the
 * input may already be freed. */
static inline bool connection_is_void(const struct tick_entry *entry) {
    const struct connection *connection = entry->connection;
    return connection->is_closing || connection->epoch != entry->epoch ||
           connection->session.is_killed;
}

/* Hold a client when its unsent output exceeds HIGH; resume it below LOW. */
enum { CONNECTION_OUTPUT_HIGH = 1 << 20, CONNECTION_OUTPUT_LOW = 1 << 19 };

#endif
