/* Accepting clients. See acceptor.h. */
#include "server/network/acceptor.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <unistd.h>

#include "codec/list.h"
#include "codec/memory.h"
#include "protocol/proxy_header.h"
#include "server/network/intake.h"

enum { SECOND_MS = 1000 };

static void acceptor_open_spare(struct acceptor *acceptor) {
    acceptor->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

struct acceptor_socket *acceptor_add(struct acceptor *acceptor, int fd, bool is_unix_socket) {
    CHECK(acceptor->socket_count < ACCEPTOR_SOCKETS_MAX && acceptor->intake == NULL);
    struct acceptor_socket *socket = &acceptor->sockets[acceptor->socket_count++];
    *socket = (struct acceptor_socket){.fd = fd, .is_unix_socket = is_unix_socket};
    return socket;
}

static void acceptor_on_clients(uv_poll_t *poll, int status, int events);

/* The zero behind it stays. */
enum { PATH_SIZE_MAX = sizeof(((struct sockaddr_un *)0)->sun_path) - 1 };

struct arrival {
    uv_poll_t poll;
    struct arrival *next, *previous;
    struct acceptor *acceptor;
    struct accepted accepted;
    uint64_t until_ms; /* of the loop's clock */
    bool is_complete;  /* waits for room in a batch */
    size_t size;       /* of the header so far */
    char header[PROXY_HEADER_MAX];
};

/* ---- arrivals ---- */

static void acceptor_on_arrival_closed(uv_handle_t *handle) {
    memory_free(handle->data);
}

/* Its descriptor is the caller's. */
static void acceptor_end_arrival(struct arrival *arrival) {
    struct acceptor *acceptor = arrival->acceptor;
    LIST_PART(acceptor->arrival_first, arrival);
    acceptor->arrival_count--;
    uv_close((uv_handle_t *)&arrival->poll, acceptor_on_arrival_closed);
    if (acceptor->arrival_count == ARRIVALS_MAX - 1) {
        /* There is room for arrivals again. */
        for (unsigned i = 0; acceptor->is_polled && i < acceptor->socket_count; i++) {
            if (acceptor->sockets[i].is_proxied) {
                uv_poll_start(&acceptor->sockets[i].poll, UV_READABLE, acceptor_on_clients);
            }
        }
    }
}

static void acceptor_refuse_arrival(struct arrival *arrival, const char *reason) {
    struct intake *intake = arrival->acceptor->intake;
    const struct accepted accepted = arrival->accepted;
    acceptor_end_arrival(arrival);
    intake_refuse_proxied(intake, &accepted, reason);
}

static void acceptor_set_address(union socket_address *address, enum proxy_header_family family,
                                 const uint8_t *bytes, uint16_t port) {
    *address = (union socket_address){.any.sa_family = AF_UNSPEC};
    if (family == PROXY_HEADER_IPV4) {
        address->v4.sin_family = AF_INET;
        address->v4.sin_port = htons(port);
        memcpy(&address->v4.sin_addr, bytes, sizeof address->v4.sin_addr);
    } else {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_port = htons(port);
        memcpy(&address->v6.sin6_addr, bytes, sizeof address->v6.sin6_addr);
    }
}

/* The client is the one that the header names. */
static void acceptor_take_addresses(struct accepted *accepted, const struct proxy_header *header) {
    accepted->is_proxied = true;
    accepted->proxy = accepted->peer;
    switch (header->family) {
    case PROXY_HEADER_NONE:
        break;
    case PROXY_HEADER_UNIX:
        accepted->peer = (union socket_address){.local.sun_family = AF_UNIX};
        /* It is shown in lists and in the log, where it must not look like something else. */
        const char *path = header->path;
        for (size_t i = 0; i < PATH_SIZE_MAX && path[i] != '\0'; i++) {
            accepted->peer.local.sun_path[i] = path[i] > ' ' && path[i] <= '~' ? path[i] : '?';
        }
        accepted->local = accepted->peer;
        accepted->is_unix_socket = false;
        break;
    case PROXY_HEADER_IPV4:
    case PROXY_HEADER_IPV6:
        acceptor_set_address(&accepted->peer, header->family, header->source, header->source_port);
        acceptor_set_address(&accepted->local, header->family, header->destination,
                             header->destination_port);
        accepted->is_unix_socket = false;
        break;
    }
}

/* false: there is no room for it now. */
static bool acceptor_hand_over(struct arrival *arrival) {
    struct intake *intake = arrival->acceptor->intake;
    if (!intake_may_accept(intake)) {
        return false;
    }
    struct accepted *accepted = intake_next_accepted(intake);
    if (accepted == NULL) {
        acceptor_refuse_arrival(arrival, "no memory");
        return true;
    }
    *accepted = arrival->accepted;
    intake_keep_accepted(intake);
    acceptor_end_arrival(arrival);
    return true;
}

/* Look at what has arrived, and take what belongs to the header. */
static enum proxy_header_status acceptor_read_header(struct arrival *arrival, const char **reason) {
    int fd = arrival->accepted.fd;
    char *at = arrival->header + arrival->size;
    struct proxy_header header;
    size_t used = 0;
    ssize_t seen = recv(fd, at, sizeof arrival->header - arrival->size, MSG_PEEK);
    if (seen < 0 && (errno == EAGAIN || errno == EINTR)) {
        return PROXY_HEADER_MORE;
    }
    *reason = "it closed before its PROXY header was complete";
    if (seen <= 0) {
        return PROXY_HEADER_BAD;
    }
    size_t size = arrival->size + (size_t)seen;
    enum proxy_header_status status = proxy_header_parse(arrival->header, size, &header, &used);
    *reason = "no PROXY header, or a bad one";
    if (status == PROXY_HEADER_BAD) {
        return status;
    }
    size_t taken = (status == PROXY_HEADER_OK ? used : size) - arrival->size;
    if (recv(fd, at, taken, 0) != (ssize_t)taken) {
        return PROXY_HEADER_BAD;
    }
    arrival->size += taken;
    if (status == PROXY_HEADER_OK) {
        acceptor_take_addresses(&arrival->accepted, &header);
    }
    return status;
}

static void acceptor_on_header(uv_poll_t *poll, int status, int events) {
    struct arrival *arrival = poll->data;
    const char *reason = "connection lost";
    (void)events;
    enum proxy_header_status found =
        status < 0 ? PROXY_HEADER_BAD : acceptor_read_header(arrival, &reason);
    if (found == PROXY_HEADER_BAD) {
        acceptor_refuse_arrival(arrival, reason);
    } else if (found == PROXY_HEADER_OK) {
        arrival->is_complete = true;
        uv_poll_stop(poll);
        (void)acceptor_hand_over(arrival);
    }
}

/* ---- polling ---- */

static void acceptor_stop_polling(struct acceptor *acceptor) {
    acceptor->is_polled = false;
    for (unsigned i = 0; i < acceptor->socket_count; i++) {
        uv_poll_stop(&acceptor->sockets[i].poll);
    }
}

void acceptor_resume(struct acceptor *acceptor) {
    struct arrival *next;
    for (struct arrival *arrival = acceptor->arrival_first; arrival != NULL; arrival = next) {
        next = arrival->next;
        if (arrival->is_complete && !acceptor_hand_over(arrival)) {
            break;
        }
    }
    if (acceptor->is_polled || acceptor->is_paused || acceptor->is_closed) {
        return;
    }
    acceptor->is_polled = true;
    for (unsigned i = 0; i < acceptor->socket_count; i++) {
        uv_poll_start(&acceptor->sockets[i].poll, UV_READABLE, acceptor_on_clients);
    }
}

static void acceptor_on_second(uv_timer_t *timer) {
    struct acceptor *acceptor = timer->data;
    uint64_t now_ms = uv_now(acceptor->intake->loop);
    struct arrival *arrival = acceptor->arrival_first;
    while (arrival != NULL) {
        struct arrival *next = arrival->next;
        if (!arrival->is_complete && arrival->until_ms <= now_ms) {
            acceptor_refuse_arrival(arrival, "its PROXY header did not come in time");
        }
        arrival = next;
    }
    if (acceptor->arrival_count == 0) {
        uv_timer_stop(timer);
    }
}

static void acceptor_on_retry(uv_timer_t *timer) {
    struct acceptor *acceptor = timer->data;
    acceptor->is_paused = false;
    if (acceptor->spare_fd < 0) {
        acceptor_open_spare(acceptor);
    }
    acceptor_resume(acceptor);
}

static void acceptor_pause_accepting(struct acceptor *acceptor) {
    enum { RETRY_MS = 100 };
    acceptor->is_paused = true;
    acceptor_stop_polling(acceptor);
    uv_timer_start(&acceptor->retry, acceptor_on_retry, RETRY_MS, 0);
}

/* ---- accepting ---- */

/* accept() has failed. false: no client is waiting, or accepting must pause. */
static bool acceptor_handle_error(struct acceptor *acceptor, const struct acceptor_socket *socket,
                                  int code) {
    if (code == EAGAIN || code == EWOULDBLOCK) {
        return false;
    }
    if (code != EMFILE && code != ENFILE && code != ENOBUFS && code != ENOMEM) {
        return true; /* this client has disconnected; try the next one */
    }
    /* Refuse one client using the spare descriptor. */
    acceptor->intake->turned_away.error = code;
    if (acceptor->spare_fd >= 0) {
        close(acceptor->spare_fd);
        int fd = accept4(socket->fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            close(fd);
            acceptor->intake->turned_away.count++;
        }
        acceptor_open_spare(acceptor);
        if (fd >= 0) {
            return true;
        }
    }
    acceptor_pause_accepting(acceptor);
    return false;
}

/* A client of a listener of proxy-protocol. */
static void acceptor_admit_proxied(struct acceptor *acceptor, const struct accepted *accepted) {
    /* May it send PROXY headers? On a unix socket the permissions have decided. */
    uint8_t address[SUBNET_ADDRESS_SIZE];
    if (!accepted->is_unix_socket &&
        !(subnet_take_address(&accepted->peer.any, address) &&
          subnet_list_has(acceptor->proxies, acceptor->proxy_count, address))) {
        intake_refuse_proxied(acceptor->intake, accepted, "not in proxy-protocol-from");
        return;
    }
    if (!uv_is_active((uv_handle_t *)&acceptor->second)) {
        uv_timer_start(&acceptor->second, acceptor_on_second, SECOND_MS, SECOND_MS);
    }
    struct intake *intake = acceptor->intake;
    struct arrival *arrival = memory_allocate_zeroed(sizeof *arrival);
    if (arrival == NULL || uv_poll_init(intake->loop, &arrival->poll, accepted->fd) != 0) {
        memory_free(arrival);
        intake_refuse_proxied(intake, accepted, "no memory");
        return;
    }
    arrival->poll.data = arrival;
    arrival->acceptor = acceptor;
    arrival->accepted = *accepted;
    arrival->until_ms = uv_now(intake->loop) + acceptor->header_limit_ms;
    LIST_JOIN(acceptor->arrival_first, arrival);
    acceptor->arrival_count++;
    uv_poll_start(&arrival->poll, UV_READABLE, acceptor_on_header);
}

static bool acceptor_accept_one(const struct acceptor_socket *socket) {
    struct acceptor *acceptor = socket->acceptor;
    struct intake *intake = acceptor->intake;
    struct accepted *room = intake_next_accepted(intake);
    if (room == NULL) {
        acceptor_pause_accepting(acceptor);
        return false;
    }
    struct accepted accepted = {.is_unix_socket = socket->is_unix_socket, .is_tls = socket->is_tls};
    socklen_t size = sizeof accepted.peer;
    int fd = accept4(socket->fd, &accepted.peer.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        return acceptor_handle_error(acceptor, socket, errno);
    }
    accepted.fd = fd;
    if (!socket->is_unix_socket) {
        size = sizeof accepted.local;
        getsockname(fd, &accepted.local.any, &size);
        int keepalive_s =
            atomic_load_explicit(&intake->limits->tcp_keepalive_s, memory_order_relaxed);
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        if (keepalive_s > 0) {
            int interval_s = keepalive_s / 3 > 0 ? keepalive_s / 3 : 1;
            int probes = 3;
            setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
            setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_s, sizeof keepalive_s);
            setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
            setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
        }
    }
    if (socket->is_proxied) {
        acceptor_admit_proxied(acceptor, &accepted);
    } else {
        *room = accepted;
        intake_keep_accepted(intake);
    }
    return true;
}

static void acceptor_on_clients(uv_poll_t *poll, int status, int events) {
    const struct acceptor_socket *socket = poll->data;
    struct acceptor *acceptor = socket->acceptor;
    struct intake *intake = acceptor->intake;
    (void)status;
    (void)events;
    if (!intake_may_accept(intake)) {
        acceptor_stop_polling(acceptor);
        return;
    }
    for (int i = 0; i < BATCH_ACCEPTED_MAX && intake_may_accept(intake); i++) {
        if (socket->is_proxied && acceptor->arrival_count == ARRIVALS_MAX) {
            uv_poll_stop(poll); /* until one of them is through, or its time is over */
            return;
        }
        if (!acceptor_accept_one(socket)) {
            return;
        }
    }
}

/* ---- begin and end ---- */

bool acceptor_watch(struct acceptor *acceptor, struct intake *intake) {
    acceptor->intake = intake;
    acceptor->retry.data = acceptor;
    acceptor_open_spare(acceptor);
    acceptor->second.data = acceptor;
    uv_timer_init(intake->loop, &acceptor->retry);
    uv_timer_init(intake->loop, &acceptor->second);
    for (unsigned i = 0; i < acceptor->socket_count; i++) {
        struct acceptor_socket *socket = &acceptor->sockets[i];
        socket->acceptor = acceptor;
        socket->poll.data = socket;
        if (uv_poll_init(intake->loop, &socket->poll, socket->fd) != 0) {
            for (unsigned rest = i; rest < acceptor->socket_count; rest++) {
                close(acceptor->sockets[rest].fd);
            }
            acceptor->socket_count = i;
            return false;
        }
    }
    acceptor_resume(acceptor);
    return true;
}

void acceptor_close(struct acceptor *acceptor) {
    if (acceptor->is_closed) {
        return;
    }
    acceptor->is_closed = true;
    for (unsigned i = 0; i < acceptor->socket_count; i++) {
        if (acceptor->intake != NULL) {
            uv_close((uv_handle_t *)&acceptor->sockets[i].poll, NULL);
        }
        close(acceptor->sockets[i].fd);
    }
    if (acceptor->intake != NULL) {
        while (acceptor->arrival_first != NULL) {
            int fd = acceptor->arrival_first->accepted.fd;
            acceptor_end_arrival(acceptor->arrival_first);
            close(fd);
        }
        uv_close((uv_handle_t *)&acceptor->retry, NULL);
        uv_close((uv_handle_t *)&acceptor->second, NULL);
        if (acceptor->spare_fd >= 0) {
            close(acceptor->spare_fd);
        }
    }
}
