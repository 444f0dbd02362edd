/* Accepting clients, and opening the sockets on which they come. See acceptor.h. */
#include "server/network/acceptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/list.h"
#include "codec/memory.h"
#include "protocol/proxy_header.h"
#include "server/network/intake.h"
#include "server/system/log.h"
#include "server/system/service.h"

enum { SECOND_MS = 1000, SOCKET_MODE_MASK = 0777, PROXY_HEADER_LIMIT_MS = 5000 };

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

/* ---- opening ---- */

/* Returns where its address is to be written, as shown in the log. */
static char *acceptor_add_named(struct listeners *listeners, int fd,
                                const struct settings *settings, const char *name, bool is_tls) {
    char *address = listeners->addresses[listeners->acceptor.socket_count];
    bool is_unix_socket = strcmp(name, "unixsocket") == 0;
    struct acceptor_socket *socket = acceptor_add(&listeners->acceptor, fd, is_unix_socket);
    socket->is_proxied = settings_has_address(&settings->proxied, name);
    socket->is_tls = is_tls;
    return address;
}

/* ---- opening those of TCP ---- */

static bool acceptor_is_absent_address(int code) {
    return code == EADDRNOTAVAIL || code == EAFNOSUPPORT || code == EPROTONOSUPPORT ||
           code == ESOCKTNOSUPPORT || code == EPFNOSUPPORT;
}

static void acceptor_explain_tcp(const char *name, long long port,
                                 const struct listen_failure *failure, char *error) {
    int code = failure->code;
    if (code == 0) {
        snprintf(error, SETTING_ERROR_MAX, "cannot listen on address %s: %s", name,
                 failure->reason);
        return;
    }
    const char *advice = "";
    if (code == EADDRINUSE) {
        advice = "; another program listens there: stop it, or choose another port";
    } else if (code == EACCES) {
        advice = "; ports below 1024 need a privilege: choose another port";
    } else if (acceptor_is_absent_address(code)) {
        advice = "; no such address on this machine ('-' in front of it makes it optional)";
    }
    snprintf(error, SETTING_ERROR_MAX, "cannot listen on address %s port %lld: %s%s", name, port,
             failure->reason, advice);
}

static bool acceptor_open_tcp(struct listeners *listeners, const char *bind,
                              const struct settings *settings, bool is_tls, char *error) {
    long long port = is_tls ? settings->tls_port : settings->port;
    bool is_optional = bind[0] == '-';
    const char *name = is_optional ? bind + 1 : bind;
    struct listen_failure failure;
    int fd = service_listen(name, port, (int)settings->tcp_backlog, &failure);
    if (fd < 0) {
        acceptor_explain_tcp(name, port, &failure, error);
        return is_optional && (failure.code == 0 || acceptor_is_absent_address(failure.code));
    }
    snprintf(acceptor_add_named(listeners, fd, settings, bind, is_tls), LISTENER_ADDRESS_MAX,
             "%.100s port %lld%s", name, port, is_tls ? " tls" : "");
    return true;
}

/* ---- opening the unix socket ---- */

/* Is the file a socket without a listener (left by a server that was killed)? */
static bool acceptor_is_stale_socket(const struct sockaddr_un *address) {
    struct stat status;
    if (lstat(address->sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    bool is_refused = connect(fd, (const struct sockaddr *)address, sizeof *address) != 0 &&
                      errno == ECONNREFUSED;
    close(fd);
    return is_refused;
}

/* No client can connect before listen(), so the mode applies from the first client on. */
static bool acceptor_bind_unix(int fd, const struct sockaddr_un *address,
                               const struct settings *settings) {
    const struct sockaddr *any = (const struct sockaddr *)address;
    if (bind(fd, any, sizeof *address) != 0) {
        if (errno != EADDRINUSE) {
            return false;
        }
        if (!acceptor_is_stale_socket(address) || unlink(address->sun_path) != 0) {
            errno = EADDRINUSE;
            return false;
        }
        if (bind(fd, any, sizeof *address) != 0) {
            return false;
        }
    }
    mode_t mode = (mode_t)(settings->unixsocketperm & SOCKET_MODE_MASK);
    if ((mode != 0 && chmod(address->sun_path, mode) != 0) ||
        listen(fd, (int)settings->tcp_backlog) != 0) {
        int code = errno;
        unlink(address->sun_path);
        errno = code;
        return false;
    }
    return true;
}

static bool acceptor_open_unix(struct listeners *listeners, const struct settings *settings,
                               char *error) {
    const char *path = settings->unixsocket;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        snprintf(error, SETTING_ERROR_MAX, "unixsocket: the path is longer than %zu bytes: %.200s",
                 sizeof address.sun_path - 1, path);
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || !acceptor_bind_unix(fd, &address, settings)) {
        int code = errno;
        const char *advice = code == EADDRINUSE ? "; another server listens there, or it is not a "
                                                  "socket: remove the file or choose another path"
                                                : "";
        snprintf(error, SETTING_ERROR_MAX, "cannot listen on unix socket %s: %s%s", path,
                 strerror(code), advice);
        if (fd >= 0) {
            close(fd);
        }
        return false;
    }
    snprintf(acceptor_add_named(listeners, fd, settings, "unixsocket", false), LISTENER_ADDRESS_MAX,
             "%s", path);
    snprintf(listeners->unix_path, sizeof listeners->unix_path, "%s", path);
    return true;
}

/* ---- sockets that the service manager has opened ---- */

/* The option of a socket; -1: fd is no socket. */
static int acceptor_option_of(int fd, int option) {
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/* "127.0.0.1 port 6379", "::1 port 6379", the path of a unix socket. */
static bool acceptor_print_address(int fd, char *out, bool *is_unix_socket) {
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    char host[64], port[16];
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        return false;
    }
    *is_unix_socket = address.ss_family == AF_UNIX;
    if (*is_unix_socket) {
        const struct sockaddr_un *local = (const struct sockaddr_un *)(const void *)&address;
        const char *path = local->sun_path[0] == '\0' ? "@" : local->sun_path;
        snprintf(out, LISTENER_ADDRESS_MAX, "%s", path);
        return true;
    }
    if (getnameinfo((const struct sockaddr *)&address, size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return false;
    }
    snprintf(out, LISTENER_ADDRESS_MAX, "%s port %s", host, port);
    return true;
}

/* A stream socket that listens; the one named "tls" for clients with TLS. As for a socket of the
 * server's own, proxy-protocol names its address or says unixsocket. */
static bool acceptor_take_socket(struct listeners *listeners, const struct settings *settings,
                                 const struct service_socket *given, char *error) {
    char address[LISTENER_ADDRESS_MAX], name[LISTENER_ADDRESS_MAX];
    bool is_unix_socket;
    bool is_tls = strcmp(given->name, "tls") == 0;
    if (is_tls && settings->tls_port == 0) {
        snprintf(error, SETTING_ERROR_MAX,
                 "the service manager's socket \"tls\" needs tls-port and tls-cert-file in the "
                 "configuration");
        return false;
    }
    if (acceptor_option_of(given->fd, SO_TYPE) != SOCK_STREAM ||
        acceptor_option_of(given->fd, SO_ACCEPTCONN) != 1 ||
        !acceptor_print_address(given->fd, address, &is_unix_socket)) {
        snprintf(error, SETTING_ERROR_MAX,
                 "the service manager's socket \"%s\" is no listening stream socket; set "
                 "ListenStream= and Accept=no in the socket unit",
                 given->name);
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(address, " "), address);
    snprintf(acceptor_add_named(listeners, given->fd, settings,
                                is_unix_socket ? "unixsocket" : name, is_tls),
             LISTENER_ADDRESS_MAX, "%.120s%s", address, is_tls ? " tls" : "");
    return true;
}

static bool acceptor_open_all(struct listeners *listeners, const struct settings *settings,
                              char *error) {
    for (uint32_t i = 0; settings->port != 0 && i < settings->bind.count; i++) {
        if (!acceptor_open_tcp(listeners, settings->bind.at[i], settings, false, error)) {
            return false;
        }
    }
    for (uint32_t i = 0; settings->tls_port != 0 && i < settings->bind.count; i++) {
        if (!acceptor_open_tcp(listeners, settings->bind.at[i], settings, true, error)) {
            return false;
        }
    }
    if (settings->unixsocket != NULL && settings->unixsocket[0] != '\0' &&
        !acceptor_open_unix(listeners, settings, error)) {
        return false;
    }
    if (listeners->acceptor.socket_count == 0) {
        snprintf(error, SETTING_ERROR_MAX,
                 "nothing to listen on: set bind and port or tls-port, or unixsocket");
        return false;
    }
    return true;
}

/* ---- all that the settings name ---- */

bool acceptor_listen(struct listeners *listeners, const struct settings *settings, char *error) {
    struct service_socket given[SERVICE_SOCKETS_MAX];
    unsigned count = service_take_sockets(given);
    *listeners = (struct listeners){.acceptor.spare_fd = -1};
    listeners->acceptor.header_limit_ms = PROXY_HEADER_LIMIT_MS;
    listeners->acceptor.proxy_count = settings->proxies.count;
    memcpy(listeners->acceptor.proxies, settings->proxies.at, sizeof settings->proxies.at);
    bool is_open = count > 0 || acceptor_open_all(listeners, settings, error);
    for (unsigned i = 0; i < count; i++) {
        is_open = is_open && acceptor_take_socket(listeners, settings, &given[i], error);
        if (!is_open) {
            close(given[i].fd);
        }
    }
    if (!is_open) {
        acceptor_end_listening(listeners);
    }
    return is_open;
}

void acceptor_log(const struct listeners *listeners) {
    for (unsigned i = 0; i < listeners->acceptor.socket_count; i++) {
        log_write(LOG_NOTICE, "listening address=\"%s\"", listeners->addresses[i]);
    }
}

void acceptor_leave(struct listeners *listeners) {
    if (listeners->unix_path[0] != '\0') {
        unlink(listeners->unix_path);
    }
    listeners->unix_path[0] = '\0';
}

void acceptor_end_listening(struct listeners *listeners) {
    acceptor_leave(listeners);
    acceptor_close(&listeners->acceptor);
}
