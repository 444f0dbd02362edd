/* Opening sockets and accepting clients.
 *
 * accept() continues after errors: clients that have already disconnected (ECONNABORTED, EPROTO)
 * are skipped. When out of descriptors, the spare descriptor is closed in order to accept and close
 * the waiting clients; otherwise the listener would stay readable and the loop would spin. */
#include "server/loop/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "server/system/log.h"

enum {
    ACCEPT_MAX = 256, /* per tick */
    FULL_LOG_MS = 60000,
    SOCKET_MODE_MASK = 0777,
};

/* ---- TCP ---- */

static bool is_absent_address(int code) {
    return code == EADDRNOTAVAIL || code == EAFNOSUPPORT || code == EPROTONOSUPPORT ||
           code == ESOCKTNOSUPPORT || code == EPFNOSUPPORT;
}

/* Listen at one resolved address. -1: see errno. */
static int listen_at(const struct addrinfo *info, int backlog) {
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -1;
    }
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (info->ai_family == AF_INET6) {
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    }
    if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, backlog) != 0) {
        int code = errno;
        close(fd);
        errno = code;
        return -1;
    }
    return fd;
}

/* "*" and "::*" stand for all addresses of their family. */
static const char *host_of(const char *name) {
    if (strcmp(name, "*") == 0) {
        return "0.0.0.0";
    }
    return strcmp(name, "::*") == 0 ? "::" : name;
}

static void explain_tcp(const char *name, long long port, int code, char *error) {
    const char *advice = "";
    if (code == EADDRINUSE) {
        advice = "; another program listens there: stop it, or choose another port";
    } else if (code == EACCES) {
        advice = "; ports below 1024 need a privilege: choose another port";
    } else if (is_absent_address(code)) {
        advice = "; no such address on this machine ('-' in front of it makes it optional)";
    }
    snprintf(error, SETTING_ERROR_MAX, "cannot listen on address %s port %lld: %s%s", name, port,
             strerror(code), advice);
}

static bool open_tcp(struct listeners *listeners, const char *bind, const struct settings *settings,
                     char *error) {
    bool is_optional = bind[0] == '-';
    const char *name = is_optional ? bind + 1 : bind;
    char port[16];
    snprintf(port, sizeof port, "%lld", (long long)settings->port);
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int status = getaddrinfo(host_of(name), port, &hints, &found);
    if (status != 0) {
        snprintf(error, SETTING_ERROR_MAX, "cannot listen on address %s: %s", name,
                 gai_strerror(status));
        return is_optional;
    }
    int fd = -1;
    for (struct addrinfo *info = found; info != NULL && fd < 0; info = info->ai_next) {
        fd = listen_at(info, (int)settings->tcp_backlog);
    }
    int code = errno;
    freeaddrinfo(found);
    if (fd < 0) {
        explain_tcp(name, (long long)settings->port, code, error);
        return is_optional && is_absent_address(code);
    }
    struct listener *listener = &listeners->items[listeners->count++];
    *listener = (struct listener){.fd = fd};
    snprintf(listener->address, sizeof listener->address, "%.100s port %s", name, port);
    return true;
}

/* ---- the unix socket ---- */

/* Is the file a socket without a listener (left by a server that was killed)? */
static bool is_stale_socket(const struct sockaddr_un *address) {
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
static bool bind_unix(int fd, const struct sockaddr_un *address, const struct settings *settings) {
    const struct sockaddr *any = (const struct sockaddr *)address;
    if (bind(fd, any, sizeof *address) != 0) {
        if (errno != EADDRINUSE) {
            return false;
        }
        if (!is_stale_socket(address) || unlink(address->sun_path) != 0) {
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

static bool open_unix(struct listeners *listeners, const struct settings *settings, char *error) {
    const char *path = settings->unixsocket;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        snprintf(error, SETTING_ERROR_MAX, "unixsocket: the path is longer than %zu bytes: %.200s",
                 sizeof address.sun_path - 1, path);
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 || !bind_unix(fd, &address, settings)) {
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
    struct listener *listener = &listeners->items[listeners->count++];
    *listener = (struct listener){.fd = fd, .is_unix_socket = true};
    snprintf(listener->address, sizeof listener->address, "%s", path);
    snprintf(listeners->unix_path, sizeof listeners->unix_path, "%s", path);
    return true;
}

static bool open_all(struct listeners *listeners, const struct settings *settings, char *error) {
    for (uint32_t i = 0; settings->port != 0 && i < settings->bind_count; i++) {
        if (!open_tcp(listeners, settings->bind[i], settings, error)) {
            return false;
        }
    }
    if (settings->unixsocket != NULL && settings->unixsocket[0] != '\0' &&
        !open_unix(listeners, settings, error)) {
        return false;
    }
    if (listeners->count == 0) {
        snprintf(error, SETTING_ERROR_MAX,
                 "nothing to listen on: set bind and port, or unixsocket");
        return false;
    }
    return true;
}

bool listeners_open(struct listeners *listeners, const struct settings *settings, char *error) {
    *listeners = (struct listeners){.spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC)};
    if (open_all(listeners, settings, error)) {
        return true;
    }
    listeners_close(listeners);
    return false;
}

/* ---- accepting ---- */

static void log_full(struct listeners *listeners, int code) {
    int64_t now_ms = listeners->tick->server->clock.monotonic_ms;
    if (listeners->full_logged_at_ms != 0 && now_ms - listeners->full_logged_at_ms < FULL_LOG_MS) {
        return;
    }
    listeners->full_logged_at_ms = now_ms;
    log_write(LOG_WARNING,
              "no descriptor left, rejecting new clients error=\"%s\" advice=\"raise "
              "the limit (ulimit -n) or lower maxclients\"",
              strerror(code));
}

/* Refuse one client using the spare descriptor. false: there is no spare descriptor, or no
 * client. */
static bool turn_away(struct listeners *listeners, const struct listener *listener) {
    if (listeners->spare_fd < 0) {
        return false;
    }
    close(listeners->spare_fd);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        close(fd);
        listeners->tick->server->stats.connections_rejected++;
    }
    listeners->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void on_connection(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer) {
    struct listeners *listeners = timer->data;
    for (uint32_t i = 0; i < listeners->count; i++) {
        uv_poll_start(&listeners->items[i].poll, UV_READABLE, on_connection);
    }
}

/* Retry the listeners later. */
static void pause_accepting(struct listeners *listeners) {
    enum { RETRY_MS = 100 };
    for (uint32_t i = 0; i < listeners->count; i++) {
        uv_poll_stop(&listeners->items[i].poll);
    }
    uv_timer_start(&listeners->retry, on_retry, RETRY_MS, 0);
}

/* false: no client is waiting, or accepting must pause. */
static bool accept_one(const struct listener *listener) {
    struct listeners *listeners = listener->all;
    int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        connection_open(listeners->tick, fd, listener->is_unix_socket, listeners->unix_path);
        return true;
    }
    int code = errno;
    if (code == EAGAIN || code == EWOULDBLOCK) {
        return false;
    }
    if (code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM) {
        log_full(listeners, code);
        if (turn_away(listeners, listener)) {
            return true;
        }
        pause_accepting(listeners);
        return false;
    }
    return true; /* this client has disconnected; try the next one */
}

static void on_connection(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    const struct listener *listener = poll->data;
    for (int i = 0; i < ACCEPT_MAX && accept_one(listener); i++) {}
}

bool listeners_watch(struct listeners *listeners, struct tick *tick) {
    listeners->tick = tick;
    listeners->retry.data = listeners;
    if (uv_timer_init(tick->loop, &listeners->retry) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < listeners->count; i++) {
        struct listener *listener = &listeners->items[i];
        listener->all = listeners;
        listener->poll.data = listener;
        if (uv_poll_init(tick->loop, &listener->poll, listener->fd) != 0 ||
            uv_poll_start(&listener->poll, UV_READABLE, on_connection) != 0) {
            return false;
        }
        log_write(LOG_NOTICE, "listening address=\"%s\"", listener->address);
    }
    return true;
}

void listeners_close(struct listeners *listeners) {
    for (uint32_t i = 0; i < listeners->count; i++) {
        if (listeners->tick != NULL) {
            uv_close((uv_handle_t *)&listeners->items[i].poll, NULL);
        }
        close(listeners->items[i].fd);
    }
    if (listeners->tick != NULL) {
        uv_close((uv_handle_t *)&listeners->retry, NULL);
    }
    if (listeners->unix_path[0] != '\0') {
        unlink(listeners->unix_path);
    }
    if (listeners->spare_fd >= 0) {
        close(listeners->spare_fd);
    }
    listeners->count = 0;
    listeners->spare_fd = -1;
    listeners->unix_path[0] = '\0';
}
