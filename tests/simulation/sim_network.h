/* The network between machines: connections as TCP has them.
 *
 * Bytes of one connection arrive in order; each piece takes a time that is drawn anew, so connections
 * overtake each other. A direction holds a bounded number of bytes that were sent and not yet read:
 * a full one takes no more, or a part. What is sent over a cut link waits, and is sent again when the
 * link is mended. A connection whose other end is gone without a word (a power cut) is reset when
 * something is sent to it, once its machine answers again.
 *
 * All calls return -errno for what fails. */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/simulation/sim_random.h"

enum { SIM_MACHINES_MAX = 12, SIM_ACCEPTS_MAX = 128 };

struct packet;

/* One end of a connection, or a listener. */
struct sim_socket {
    enum {
        SIM_SOCKET_NEW,
        SIM_SOCKET_LISTENS,
        SIM_SOCKET_CONNECTS,
        SIM_SOCKET_OPEN,
        SIM_SOCKET_FAILED, /* error says why */
        SIM_SOCKET_CLOSED, /* by its owner: nothing may be done with it */
    } state;
    int machine, port;           /* its own */
    int peer_machine, peer_port; /* of a connection */
    struct sim_socket *peer;     /* NULL: gone, or there is none yet */
    int error;                   /* to be told once, as SO_ERROR has it */
    bool is_ended;               /* the peer sends no more; after what has arrived */
    bool has_shut;               /* sends no more itself */
    bool has_vanished;           /* closed by a power cut: what was on the way from here is lost */
    /* What has arrived and was not read. */
    char *arrived;
    size_t arrived_size, arrived_capacity;
    size_t in_flight;                      /* sent, and not yet arrived at the peer */
    size_t capacity;                       /* of in_flight and the peer's arrived together */
    struct packet *first_sent, *last_sent; /* on their way: they arrive in this order */
    uint64_t number;
    struct sim_socket *waiting[SIM_ACCEPTS_MAX]; /* of a listener: accepted by nobody yet */
    size_t waiting_count;
    /* Called when something may have become readable or writable. */
    void (*on_change)(void *context);
    void *context;
    struct sim_socket *next; /* of all that are open */
};

void sim_network_init(struct random *random);
/* Milliseconds that a piece takes between these machines, half of it to all of it; also while a fault
 * slows the link down. */
void sim_network_set_delay(int from, int to, int64_t ns);
/* Bytes a second of each connection; 0: without a limit. */
void sim_network_set_rate(int from, int to, int64_t rate);
void sim_network_cut(int from, int to, bool is_cut);
/* Off: nothing of it answers. */
void sim_network_set_power(int machine, bool is_on);

struct sim_socket *sim_socket_create(int machine);
int sim_socket_listen(struct sim_socket *socket, int port);
/* -EINPROGRESS. */
int sim_socket_connect(struct sim_socket *socket, int machine, int port);
/* NULL: nobody waits. */
struct sim_socket *sim_socket_accept(struct sim_socket *listener);
ssize_t sim_socket_send(struct sim_socket *socket, const void *bytes, size_t size);
ssize_t sim_socket_receive(struct sim_socket *socket, void *bytes, size_t size, bool is_peeking);
void sim_socket_shut(struct sim_socket *socket);
/* vanishes: the machine has no power, so the peer hears nothing. */
void sim_socket_close(struct sim_socket *socket, bool vanishes);
bool sim_socket_is_readable(const struct sim_socket *socket);
bool sim_socket_is_writable(const struct sim_socket *socket);

/* Reset any connection of this machine with another one (-1: with any). */
void sim_network_reset_one(int machine, int other);

#endif
