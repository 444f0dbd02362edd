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
 * written by two threads: what passes between them is in batches that have one owner at a time, which
 * go through rings (batch.h), and in a few atomic figures that one side writes.
 *
 * Sleeping: whoever has nothing to do says so, looks once more, and sleeps in its loop; the other
 * side wakes it by an event only then. Before that it waits for a moment without sleeping, but only
 * where the answer is likely to come at once, and not where it would take the processor away from
 * those it waits for. */
#ifndef SERVER_NETWORK_H
#define SERVER_NETWORK_H

#include <uv.h>

#include "server/network/batch.h"
#include "server/network/intake.h"
#include "server/network/transport.h"
#include "server/system/worker.h"

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
    struct acceptor *acceptor; /* NULL: none */
    unsigned number;

    /* the network's thread */
    struct intake intake;
    struct replies *used;
    bool is_drained_told, is_stopping;
    int64_t spin_ns;

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

/* Accept nobody and ask for no more input, but of replicas: what was received is still answered, and then is_drained
 * becomes true. */
void network_drain(struct network *network);

#endif
