/* PROXY headers of clients that were just accepted. See arrival.h. */
#include "server/network/arrival.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "codec/memory.h"
#include "protocol/proxy_header.h"
#include "server/network/network.h"

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

/* ---- the end of one ---- */

static void arrival_on_closed(uv_handle_t *handle) {
    memory_free(handle->data);
}

/* Its descriptor is the caller's. */
static void arrival_end(struct arrival *arrival) {
    struct acceptor *acceptor = arrival->acceptor;
    if (arrival->previous != NULL) {
        arrival->previous->next = arrival->next;
    } else {
        acceptor->arrival_first = arrival->next;
    }
    if (arrival->next != NULL) {
        arrival->next->previous = arrival->previous;
    }
    acceptor->arrival_count--;
    uv_close((uv_handle_t *)&arrival->poll, arrival_on_closed);
    if (acceptor->arrival_count == ARRIVALS_MAX - 1) {
        acceptor_resume_proxied(acceptor);
    }
}

static void arrival_refuse(struct arrival *arrival, const char *reason) {
    struct network *network = arrival->acceptor->network;
    const struct accepted accepted = arrival->accepted;
    arrival_end(arrival);
    network_refuse_proxied(network, &accepted, reason);
}

/* ---- the header ---- */

static void arrival_set_address(union socket_address *address, enum proxy_header_family family,
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

/* It is shown in lists and in the log, where it must not look like something else. */
static void arrival_take_path(char *out, const char *path) {
    for (size_t i = 0; i < PATH_SIZE_MAX && path[i] != '\0'; i++) {
        out[i] = path[i] > ' ' && path[i] <= '~' ? path[i] : '?';
    }
}

/* The client is the one that the header names. */
static void arrival_take_addresses(struct accepted *accepted, const struct proxy_header *header) {
    accepted->is_proxied = true;
    accepted->proxy = accepted->peer;
    switch (header->family) {
    case PROXY_HEADER_NONE:
        break;
    case PROXY_HEADER_UNIX:
        accepted->peer = (union socket_address){.local.sun_family = AF_UNIX};
        arrival_take_path(accepted->peer.local.sun_path, header->path);
        accepted->local = accepted->peer;
        accepted->is_unix_socket = false;
        break;
    case PROXY_HEADER_IPV4:
    case PROXY_HEADER_IPV6:
        arrival_set_address(&accepted->peer, header->family, header->source, header->source_port);
        arrival_set_address(&accepted->local, header->family, header->destination,
                            header->destination_port);
        accepted->is_unix_socket = false;
        break;
    }
}

/* false: there is no room for it now. */
static bool arrival_hand_over(struct arrival *arrival) {
    struct network *network = arrival->acceptor->network;
    if (!network_may_accept(network)) {
        return false;
    }
    struct accepted *accepted = network_next_accepted(network);
    if (accepted == NULL) {
        arrival_refuse(arrival, "no memory");
        return true;
    }
    *accepted = arrival->accepted;
    network_keep_accepted(network);
    arrival_end(arrival);
    return true;
}

/* Look at what has arrived, and take what belongs to the header. */
static enum proxy_header_status arrival_read_header(struct arrival *arrival, const char **reason) {
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
        arrival_take_addresses(&arrival->accepted, &header);
    }
    return status;
}

static void arrival_on_readable(uv_poll_t *poll, int status, int events) {
    struct arrival *arrival = poll->data;
    const char *reason = "connection lost";
    (void)events;
    enum proxy_header_status found =
        status < 0 ? PROXY_HEADER_BAD : arrival_read_header(arrival, &reason);
    if (found == PROXY_HEADER_BAD) {
        arrival_refuse(arrival, reason);
    } else if (found == PROXY_HEADER_OK) {
        arrival->is_complete = true;
        uv_poll_stop(poll);
        (void)arrival_hand_over(arrival);
    }
}

/* ---- all ---- */

void arrival_begin(struct acceptor *acceptor, const struct accepted *accepted) {
    struct network *network = acceptor->network;
    struct arrival *arrival = memory_allocate_zeroed(sizeof *arrival);
    if (arrival == NULL || uv_poll_init(network->loop, &arrival->poll, accepted->fd) != 0) {
        memory_free(arrival);
        network_refuse_proxied(network, accepted, "no memory");
        return;
    }
    arrival->poll.data = arrival;
    arrival->acceptor = acceptor;
    arrival->accepted = *accepted;
    arrival->until_ms = uv_now(network->loop) + acceptor->header_limit_ms;
    arrival->next = acceptor->arrival_first;
    if (arrival->next != NULL) {
        arrival->next->previous = arrival;
    }
    acceptor->arrival_first = arrival;
    acceptor->arrival_count++;
    uv_poll_start(&arrival->poll, UV_READABLE, arrival_on_readable);
}

void arrival_resume(struct acceptor *acceptor) {
    struct arrival *arrival = acceptor->arrival_first;
    while (arrival != NULL) {
        struct arrival *next = arrival->next;
        if (arrival->is_complete && !arrival_hand_over(arrival)) {
            return;
        }
        arrival = next;
    }
}

void arrival_check_time(struct acceptor *acceptor) {
    uint64_t now_ms = uv_now(acceptor->network->loop);
    struct arrival *arrival = acceptor->arrival_first;
    while (arrival != NULL) {
        struct arrival *next = arrival->next;
        if (!arrival->is_complete && arrival->until_ms <= now_ms) {
            arrival_refuse(arrival, "its PROXY header did not come in time");
        }
        arrival = next;
    }
}

void arrival_close_all(struct acceptor *acceptor) {
    while (acceptor->arrival_first != NULL) {
        int fd = acceptor->arrival_first->accepted.fd;
        arrival_end(acceptor->arrival_first);
        close(fd);
    }
}
