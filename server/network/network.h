/* A network: a loop that reads and writes the sockets of some clients. With io-threads 1 there is
 * one, on the engine's own loop; otherwise each has a thread, and the engine has none of the
 * sockets.
 *
 *     network thread 1  <--- ring of batches, one each way --->  engine thread  <---> disk threads
 *     network thread 2  <-------------------------------------->
 *     sockets, parsing                                           boards, sessions, replies
 *
 * The first network accepts for all (acceptor.h): the engine chooses each client's network.
 *
 * Who owns what: a transport, its socket and its unfinished input belong to the network's thread; a
 * connection, its session and its output belong to the engine until they are handed over. Nothing is
 * written by two threads: what passes between them is in batches (batch.h) that have one owner at a
 * time, in rings (ring.h), and in a few atomic figures that one side writes.
 *
 * Sleeping: whoever has nothing to do says so, looks once more, and sleeps in its loop; the other
 * side wakes it by an event only then. Before that it waits for a moment without sleeping, but only
 * where the answer is likely to come at once, and not where it would take the processor away from
 * those it waits for. */
#ifndef SERVER_NETWORK_H
#define SERVER_NETWORK_H

#include <uv.h>

#include "server/network/batch.h"
#include "server/network/ring.h"
#include "server/network/transport.h"
#include "server/network/wakeup.h"

/* What all networks read and the engine writes. */
struct network_limits {
    _Atomic size_t bulk_size_max; /* proto-max-bulk-len */
    _Atomic bool has_password;
    _Atomic int tcp_keepalive_s;
};

/* What a network is made with. All is borrowed. */
struct network_options {
    const struct network_limits *limits;
    uint32_t (*find_command)(const struct request *request);
    struct acceptor *acceptor; /* NULL: it accepts nobody */
    /* With a thread: */
    struct wakeup *engine_wake; /* sent when a batch has come */
    int64_t spin_ns;
    unsigned number; /* for the thread's name */
};

struct network {
    uv_loop_t *loop;
    const struct network_limits *limits;
    uint32_t (*find_command)(const struct request *request);
    struct acceptor *acceptor; /* NULL: none */
    unsigned number;

    /* the network's thread */
    struct transport *transports;
    struct transport *noted; /* those with events for the next batch */
    struct batch *filling;   /* NULL: none yet */
    struct batch *spare;
    struct input_piece *spare_pieces;
    unsigned spare_count, spare_piece_count, piece_count;
    uint32_t in_flight;    /* requests of all its transports */
    int handshakes_left;   /* steps that may still be made in this turn of the loop */
    unsigned accepted_out; /* clients accepted, in batches that have not come back */
    struct turned_away turned_away;
    struct proxy_refusals proxy_refusals;
    uint64_t read_bytes, written_bytes;
    struct outgoing *written;
    struct replies *used;
    bool is_draining, is_drained_told, is_stopping;
    int64_t spin_ns;
    _Atomic uint64_t reads, writes; /* system calls, for INFO */

    /* a network with a thread of its own */
    bool has_thread, is_joined;
    uv_thread_t thread;
    uv_loop_t own_loop;
    struct wakeup wake;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_idle_t idle;
    struct ring to_engine;
    struct ring to_network;

    /* the engine */
    struct wakeup *engine_wake;
    struct replies *replies;                      /* being filled */
    struct replies *waiting_first, *waiting_last; /* the ring was full */
    struct replies *free_replies;
    struct batch *done_first; /* to go back with the next replies */
    unsigned done_count, free_replies_count;
    uint32_t client_count;
    bool is_drained;
};

/* ---- the engine ---- */

/* On the engine's own loop, without a thread. false: libuv failed. */
MUST_CHECK bool network_init(struct network *network, uv_loop_t *loop,
                             const struct network_options *options);
/* With a thread, which runs then. false: no memory or no thread; nothing is left behind, and the
 * acceptor is closed. */
MUST_CHECK bool network_start(struct network *network, const struct network_options *options);
/* The thread closes all sockets and ends; what it still says is to be taken afterwards. */
void network_join(struct network *network);
/* Free what it holds. All its batches must be back (network_give_back). */
void network_deinit(struct network *network);

/* The next batch; NULL: none. It is the caller's until network_give_back. */
struct batch *network_take(struct network *network);
bool network_has_batch(struct network *network);
/* All entries have run. */
void network_give_back(struct network *network, struct batch *batch);
/* Free what a batch has brought back. */
void network_reclaim(struct network *network, struct batch *batch);

/* A zeroed message to fill in, with room for size bytes (at most REPLIES_COPIED_MAX) of output, which
 * *bytes points to; of a network without a thread: NULL always. NULL: no memory; try again later.
 * It is sent by the next network_push, or before. */
MUST_CHECK struct transport_message *
network_message(struct network *network, struct transport *transport, size_t size, char **bytes);
/* Hand over what was gathered. true: the network has yet to make room for the rest; call again. */
bool network_push(struct network *network);

/* Send text to a client that is refused, and close its socket. What does not fit the empty socket
 * buffer is not sent. */
void network_refuse(struct network *network, int fd, const char *text);

/* Accept nobody and ask for no more input: what was received is still answered, and then is_drained
 * becomes true. */
void network_drain(struct network *network);

/* ---- for acceptor.c ---- */

/* Is there room for another client in what the engine has not seen? If not, acceptor_resume is
 * called once there is. */
bool network_may_accept(const struct network *network);
/* Where the next one goes, if network_may_accept; it counts once it is kept. NULL: no memory. */
MUST_CHECK struct accepted *network_next_accepted(struct network *network);
void network_keep_accepted(struct network *network);
/* Close this client, and let the engine know. reason: a literal. */
void network_refuse_proxied(struct network *network, const struct accepted *accepted,
                            const char *reason);

/* ---- for transport.c ---- */

/* Where to read to: *size bytes, the same until some of it is kept. NULL: no memory. */
MUST_CHECK char *network_input_room(struct network *network, size_t *size);
void network_input_keep(struct network *network, size_t size);
/* The free entry after the last one; it counts once network_queue_entry is called. NULL: no
 * memory. */
MUST_CHECK struct queue_entry *network_next_entry(struct network *network);
void network_queue_entry(struct network *network);
static inline struct resp_arena *network_arguments(struct network *network) {
    return &network->filling->arguments;
}
/* Do waiting requests hold so much that only a little more should be read from each client? */
bool network_is_full(const struct network *network);
/* May one more step of a handshake be made in this turn of the loop? Counts it. */
MUST_CHECK bool network_may_shake(struct network *network);
/* Count a system call; only the network's thread does. */
static inline void network_count_call(_Atomic uint64_t *count) {
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}
/* Say this of the transport in the next batch. */
void network_note(struct network *network, struct transport *transport, enum transport_event event);

#endif
