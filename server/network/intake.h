/* What a network's thread gathers for the engine. The room's layers, each of which includes only those before it:
 *
 *     batch.h                         what passes between threads, and how
 *     tls.h
 *     intake.h                        the batch being filled
 *     transport.h  acceptor.h         clients' sockets and listening sockets, which fill it
 *     network.h                       the loop and its thread, which hand it over */
#ifndef SERVER_INTAKE_H
#define SERVER_INTAKE_H

#include <stdatomic.h>
#include <uv.h>

#include "server/network/batch.h"

/* What all networks read and the engine writes. */
struct network_limits {
    _Atomic size_t bulk_size_max; /* proto-max-bulk-len */
    _Atomic bool has_password;
    _Atomic int tcp_keepalive_s;
};

struct intake {
    uv_loop_t *loop; /* of the transports and of the acceptor */
    const struct network_limits *limits;
    uint32_t (*find_command)(const struct request *request);
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
    uint64_t read_bytes, written_bytes; /* since the last batch */
    struct outgoing *written;
    bool is_draining;               /* no more input is wanted */
    _Atomic uint64_t reads, writes; /* system calls, for INFO */
};

/* Free the batches that it has. */
void intake_deinit(struct intake *intake);
/* The batch being filled, a new one if there is none. NULL: no memory. */
struct batch *intake_filling(struct intake *intake);
/* All requests of a batch have run. */
void intake_recycle(struct intake *intake, struct batch *batch);
/* A turn of the loop begins. */
void intake_begin_turn(struct intake *intake);

/* ---- for acceptor.c ---- */

/* Is there room for another client in what the engine has not seen? If not, acceptor_resume is
 * called once there is. */
bool intake_may_accept(const struct intake *intake);
/* Where the next one goes, if intake_may_accept; it counts once it is kept. NULL: no memory. */
MUST_CHECK struct accepted *intake_next_accepted(struct intake *intake);
void intake_keep_accepted(struct intake *intake);
/* Close this client, and let the engine know. reason: a literal. */
void intake_refuse_proxied(struct intake *intake, const struct accepted *accepted,
                           const char *reason);

/* ---- for transport.c ---- */

/* Where to read to: *size bytes, the same until some of it is kept. NULL: no memory. */
MUST_CHECK char *intake_input_room(struct intake *intake, size_t *size);
void intake_input_keep(struct intake *intake, size_t size);
/* The free entry after the last one; it counts once intake_queue_entry is called. NULL: no
 * memory. */
MUST_CHECK struct queue_entry *intake_next_entry(struct intake *intake);
void intake_queue_entry(struct intake *intake);
static inline struct resp_arena *intake_arguments(struct intake *intake) {
    return &intake->filling->arguments;
}
/* Do waiting requests hold so much that only a little more should be read from each client? */
bool intake_is_full(const struct intake *intake);
/* May one more step of a handshake be made in this turn of the loop? Counts it. */
MUST_CHECK bool intake_may_shake(struct intake *intake);
/* Count a system call; only the network's thread does. */
static inline void intake_count_call(_Atomic uint64_t *count) {
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

#endif
