/* See sim_network.h. Sockets are never freed: a schedule is a process of its own. */
#include "tests/simulation/sim_network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_fiber.h"

static struct {
    struct random *random;
    int64_t delay[SIM_MACHINES_MAX][SIM_MACHINES_MAX];
    int64_t rate[SIM_MACHINES_MAX][SIM_MACHINES_MAX];
    bool is_cut[SIM_MACHINES_MAX][SIM_MACHINES_MAX];
    bool is_off[SIM_MACHINES_MAX];
    struct sim_socket *sockets;
    uint64_t numbers;
    int next_port;
} network;

static const int64_t RESEND_NS = 200 * SIM_MS;
static const int64_t CONNECT_GIVES_UP_NS = 20 * SIM_S;

enum { PIECE_MAX = 16 << 10 };

/* What travels: a piece of the stream, or a word of the kernel's. */
struct packet {
    enum { PACKET_BYTES, PACKET_END, PACKET_RESET, PACKET_CONNECT, PACKET_ACCEPTED } kind;
    struct sim_socket *from, *to;
    struct packet *next; /* sent after it by the same end */
    int64_t sent_at, delay;
    size_t size;
    char bytes[];
};

void sim_network_init(struct random *random) {
    memset(&network, 0, sizeof network);
    network.random = random;
    network.next_port = 40000;
    for (int from = 0; from < SIM_MACHINES_MAX; from++) {
        for (int to = 0; to < SIM_MACHINES_MAX; to++) {
            network.delay[from][to] = 200 * SIM_US;
        }
    }
}

void sim_network_set_delay(int from, int to, int64_t ns) {
    network.delay[from][to] = ns;
}

void sim_network_set_rate(int from, int to, int64_t rate) {
    network.rate[from][to] = rate;
}

void sim_network_cut(int from, int to, bool is_cut) {
    network.is_cut[from][to] = is_cut;
}

void sim_network_set_power(int machine, bool is_on) {
    network.is_off[machine] = !is_on;
}

static void sim_socket_change(struct sim_socket *socket) {
    if (socket->on_change != NULL) {
        socket->on_change(socket->context);
    }
}

static void sim_socket_fail(struct sim_socket *socket, int error) {
    if (socket->state == SIM_SOCKET_OPEN || socket->state == SIM_SOCKET_CONNECTS) {
        socket->state = SIM_SOCKET_FAILED;
        socket->error = error;
        socket->peer = NULL;
        sim_socket_change(socket);
    }
}

/* ---- on the way ---- */

static void sim_network_arrive(void *context, uint64_t number);

static bool sim_network_is_blocked(int from, int to) {
    return from != to && (network.is_cut[from][to] || network.is_off[from] || network.is_off[to]);
}

/* The first of what this end has sent arrives next; the others wait for it, also when it is sent again. */
static void sim_network_post_first(struct sim_socket *from) {
    const struct packet *first = from->first_sent;
    int64_t rate = network.rate[from->machine][from->peer_machine];
    int64_t at = first->sent_at + first->delay;
    at = at > sim_now() ? at : sim_now();
    at += rate > 0 && from->machine != from->peer_machine ? (int64_t)first->size * SIM_S / rate : 0;
    sim_at(at, sim_network_arrive, from, 0);
}

static int64_t sim_network_delay(int from, int to) {
    int64_t whole = from == to ? 20 * SIM_US : network.delay[from][to];
    return whole / 2 + sim_random_between(network.random, 0, whole / 2);
}

static void sim_network_send(int kind, struct sim_socket *from, struct sim_socket *to,
                             const void *bytes, size_t size) {
    struct packet *packet = malloc(sizeof *packet + size);
    *packet = (struct packet){.kind = kind, .from = from, .to = to, .size = size};
    packet->sent_at = sim_fiber_now();
    packet->delay = sim_network_delay(from->machine, from->peer_machine);
    if (size > 0) {
        memcpy(packet->bytes, bytes, size);
    }
    if (from->first_sent == NULL) {
        from->first_sent = from->last_sent = packet;
        sim_network_post_first(from);
    } else {
        from->last_sent->next = packet;
        from->last_sent = packet;
    }
}

static void sim_socket_take(struct sim_socket *socket, const char *bytes, size_t size) {
    if (socket->arrived_size + size > socket->arrived_capacity) {
        socket->arrived_capacity = (socket->arrived_size + size) * 2;
        socket->arrived = realloc(socket->arrived, socket->arrived_capacity);
    }
    memcpy(socket->arrived + socket->arrived_size, bytes, size);
    socket->arrived_size += size;
}

static struct sim_socket *sim_network_listener(int machine, int port) {
    for (struct sim_socket *each = network.sockets; each != NULL; each = each->next) {
        if (each->state == SIM_SOCKET_LISTENS && each->machine == machine && each->port == port) {
            return each;
        }
    }
    return NULL;
}

static void sim_network_take_connect(struct sim_socket *client) {
    struct sim_socket *listener = sim_network_listener(client->peer_machine, client->peer_port);
    if (client->state != SIM_SOCKET_CONNECTS) {
        return;
    }
    if (listener == NULL || listener->waiting_count == SIM_ACCEPTS_MAX) {
        sim_network_send(PACKET_RESET, client, client, NULL, 0);
        return;
    }
    struct sim_socket *server = sim_socket_create(listener->machine);
    server->state = SIM_SOCKET_OPEN;
    server->port = listener->port;
    server->peer_machine = client->machine;
    server->peer_port = client->port;
    server->peer = client;
    client->peer = server;
    listener->waiting[listener->waiting_count++] = server;
    sim_socket_change(listener);
    sim_network_send(PACKET_ACCEPTED, server, client, NULL, 0);
}

static void sim_network_take_bytes(const struct packet *packet) {
    struct sim_socket *to = packet->to;
    packet->from->in_flight -= packet->size;
    if (to->state == SIM_SOCKET_CLOSED || to->state == SIM_SOCKET_FAILED) {
        /* Nobody is there any more: this end hears of it. */
        sim_network_send(PACKET_RESET, to, packet->from, NULL, 0);
    } else if (to->state == SIM_SOCKET_OPEN) {
        sim_socket_take(to, packet->bytes, packet->size);
        sim_socket_change(to);
    }
}

/* With the first that this end has sent. */
static void sim_network_end(struct packet *packet) {
    struct sim_socket *from = packet->from;
    from->first_sent = packet->next;
    if (from->first_sent != NULL) {
        sim_network_post_first(from);
    }
    free(packet);
}

static void sim_network_arrive(void *context, uint64_t number) {
    struct sim_socket *from = context;
    struct packet *packet = from->first_sent;
    struct sim_socket *to = packet->to;
    (void)number;
    if (from->has_vanished && packet->kind != PACKET_RESET) {
        sim_network_end(packet);
        return;
    }
    if (sim_network_is_blocked(from->machine, from->peer_machine)) {
        if (packet->kind == PACKET_CONNECT && sim_now() - packet->sent_at > CONNECT_GIVES_UP_NS) {
            sim_socket_fail(from, ETIMEDOUT);
            sim_network_end(packet);
        } else if (from->state != SIM_SOCKET_FAILED) {
            sim_at(sim_now() + RESEND_NS, sim_network_arrive, from, 0);
        } else {
            sim_network_end(packet);
        }
        return;
    }
    switch (packet->kind) {
    case PACKET_CONNECT:
        sim_network_take_connect(from);
        break;
    case PACKET_ACCEPTED:
        if (to->state == SIM_SOCKET_CONNECTS) {
            to->state = SIM_SOCKET_OPEN;
            sim_socket_change(to);
        } else if (to->state == SIM_SOCKET_CLOSED) {
            sim_network_send(PACKET_RESET, to, from, NULL, 0);
        }
        break;
    case PACKET_BYTES:
        sim_network_take_bytes(packet);
        break;
    case PACKET_END:
        if (to->state == SIM_SOCKET_OPEN) {
            to->is_ended = true;
            sim_socket_change(to);
        }
        break;
    case PACKET_RESET:
        sim_socket_fail(to, to->state == SIM_SOCKET_CONNECTS ? ECONNREFUSED : ECONNRESET);
        break;
    }
    sim_network_end(packet);
}

/* ---- ends ---- */

struct sim_socket *sim_socket_create(int machine) {
    struct sim_socket *socket = calloc(1, sizeof *socket);
    socket->machine = machine;
    socket->number = ++network.numbers;
    socket->capacity = (size_t)sim_random_between(network.random, 16 << 10, 256 << 10);
    socket->next = network.sockets;
    network.sockets = socket;
    return socket;
}

int sim_socket_listen(struct sim_socket *socket, int port) {
    if (sim_network_listener(socket->machine, port) != NULL) {
        return -EADDRINUSE;
    }
    socket->state = SIM_SOCKET_LISTENS;
    socket->port = port;
    return 0;
}

int sim_socket_connect(struct sim_socket *socket, int machine, int port) {
    if (network.next_port > 60000) {
        network.next_port = 40000;
    }
    socket->state = SIM_SOCKET_CONNECTS;
    socket->port = network.next_port++;
    socket->peer_machine = machine;
    socket->peer_port = port;
    sim_network_send(PACKET_CONNECT, socket, socket, NULL, 0);
    return -EINPROGRESS;
}

struct sim_socket *sim_socket_accept(struct sim_socket *listener) {
    if (listener->waiting_count == 0) {
        return NULL;
    }
    struct sim_socket *first = listener->waiting[0];
    listener->waiting_count--;
    memmove(listener->waiting, listener->waiting + 1,
            listener->waiting_count * sizeof(struct sim_socket *));
    return first;
}

static size_t sim_socket_room(const struct sim_socket *socket) {
    size_t held = socket->in_flight + (socket->peer != NULL ? socket->peer->arrived_size : 0);
    return held < socket->capacity ? socket->capacity - held : 0;
}

static int sim_socket_take_error(struct sim_socket *socket) {
    int error = socket->error;
    socket->error = 0;
    return error;
}

ssize_t sim_socket_send(struct sim_socket *socket, const void *bytes, size_t size) {
    if (socket->state == SIM_SOCKET_FAILED) {
        int error = sim_socket_take_error(socket);
        return error != 0 ? -error : -EPIPE;
    }
    if (socket->state == SIM_SOCKET_CONNECTS) {
        return -EAGAIN;
    }
    if (socket->state != SIM_SOCKET_OPEN || socket->has_shut) {
        return -EPIPE;
    }
    size_t room = sim_socket_room(socket);
    if (room == 0) {
        return -EAGAIN;
    }
    size = size < room ? size : room;
    for (size_t done = 0; done < size;) {
        size_t piece = size - done < PIECE_MAX ? size - done : PIECE_MAX;
        sim_network_send(PACKET_BYTES, socket, socket->peer, (const char *)bytes + done, piece);
        done += piece;
    }
    socket->in_flight += size;
    return (ssize_t)size;
}

ssize_t sim_socket_receive(struct sim_socket *socket, void *bytes, size_t size, bool is_peeking) {
    if (socket->arrived_size > 0) {
        size = size < socket->arrived_size ? size : socket->arrived_size;
        memcpy(bytes, socket->arrived, size);
        if (!is_peeking) {
            socket->arrived_size -= size;
            memmove(socket->arrived, socket->arrived + size, socket->arrived_size);
            if (socket->peer != NULL) {
                sim_socket_change(socket->peer);
            }
        }
        return (ssize_t)size;
    }
    if (socket->state == SIM_SOCKET_FAILED) {
        return -sim_socket_take_error(socket);
    }
    return socket->is_ended ? 0 : -EAGAIN;
}

void sim_socket_shut(struct sim_socket *socket) {
    if (socket->state == SIM_SOCKET_OPEN && !socket->has_shut) {
        socket->has_shut = true;
        sim_network_send(PACKET_END, socket, socket->peer, NULL, 0);
    }
}

static void sim_socket_unlink(struct sim_socket *socket) {
    for (struct sim_socket **at = &network.sockets; *at != NULL; at = &(*at)->next) {
        if (*at == socket) {
            *at = socket->next;
            return;
        }
    }
}

void sim_socket_close(struct sim_socket *socket, bool vanishes) {
    struct sim_socket *peer = socket->peer;
    if (socket->state == SIM_SOCKET_CLOSED) {
        return;
    }
    for (size_t i = 0; i < socket->waiting_count; i++) {
        sim_socket_close(socket->waiting[i], vanishes);
    }
    if (socket->state == SIM_SOCKET_OPEN && !vanishes) {
        /* With unread bytes the kernel resets. */
        bool is_reset = socket->arrived_size > 0;
        if (is_reset || !socket->has_shut) {
            sim_network_send(is_reset ? PACKET_RESET : PACKET_END, socket, peer, NULL, 0);
        }
    }
    socket->has_vanished = vanishes;
    socket->state = SIM_SOCKET_CLOSED;
    socket->on_change = NULL;
    sim_socket_unlink(socket);
}

bool sim_socket_is_readable(const struct sim_socket *socket) {
    return socket->waiting_count > 0 || socket->arrived_size > 0 || socket->is_ended ||
           socket->state == SIM_SOCKET_FAILED;
}

bool sim_socket_is_writable(const struct sim_socket *socket) {
    return socket->state == SIM_SOCKET_FAILED ||
           (socket->state == SIM_SOCKET_OPEN && sim_socket_room(socket) > 0);
}

void sim_network_reset_one(int machine, int other) {
    struct sim_socket *found[64];
    size_t count = 0;
    for (struct sim_socket *each = network.sockets; each != NULL && count < 64; each = each->next) {
        if (each->state == SIM_SOCKET_OPEN && each->machine == machine && each->peer != NULL &&
            (other < 0 || each->peer_machine == other)) {
            found[count++] = each;
        }
    }
    if (count > 0) {
        struct sim_socket *socket = found[random_below(network.random, count)];
        struct sim_socket *peer = socket->peer;
        sim_socket_fail(socket, ECONNRESET);
        sim_socket_fail(peer, ECONNRESET);
    }
}
