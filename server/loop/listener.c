/* Opening the listening sockets. See listener.h. */
#include "server/loop/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/loop/connection.h"
#include "server/system/log.h"
#include "server/system/service.h"

enum { SOCKET_MODE_MASK = 0777, PROXY_HEADER_LIMIT_MS = 5000 };

/* Returns where its address is to be written, as shown in the log. */
static char *listener_add(struct listeners *listeners, int fd, const struct settings *settings,
                          const char *name, bool is_tls) {
    char *address = listeners->addresses[listeners->acceptor.socket_count];
    bool is_unix_socket = strcmp(name, "unixsocket") == 0;
    struct acceptor_socket *socket = acceptor_add(&listeners->acceptor, fd, is_unix_socket);
    socket->is_proxied = settings_has_address(&settings->proxied, name);
    socket->is_tls = is_tls;
    return address;
}

/* ---- TCP ---- */

static bool listener_is_absent_address(int code) {
    return code == EADDRNOTAVAIL || code == EAFNOSUPPORT || code == EPROTONOSUPPORT ||
           code == ESOCKTNOSUPPORT || code == EPFNOSUPPORT;
}

static void listener_explain_tcp(const char *name, long long port,
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
    } else if (listener_is_absent_address(code)) {
        advice = "; no such address on this machine ('-' in front of it makes it optional)";
    }
    snprintf(error, SETTING_ERROR_MAX, "cannot listen on address %s port %lld: %s%s", name, port,
             failure->reason, advice);
}

static bool listener_open_tcp(struct listeners *listeners, const char *bind,
                              const struct settings *settings, bool is_tls, char *error) {
    long long port = is_tls ? settings->tls_port : settings->port;
    bool is_optional = bind[0] == '-';
    const char *name = is_optional ? bind + 1 : bind;
    struct listen_failure failure;
    int fd = service_listen(name, port, (int)settings->tcp_backlog, &failure);
    if (fd < 0) {
        listener_explain_tcp(name, port, &failure, error);
        return is_optional && (failure.code == 0 || listener_is_absent_address(failure.code));
    }
    snprintf(listener_add(listeners, fd, settings, bind, is_tls), LISTENER_ADDRESS_MAX,
             "%.100s port %lld%s", name, port, is_tls ? " tls" : "");
    return true;
}

/* ---- the unix socket ---- */

/* Is the file a socket without a listener (left by a server that was killed)? */
static bool listener_is_stale_socket(const struct sockaddr_un *address) {
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
static bool listener_bind_unix(int fd, const struct sockaddr_un *address,
                               const struct settings *settings) {
    const struct sockaddr *any = (const struct sockaddr *)address;
    if (bind(fd, any, sizeof *address) != 0) {
        if (errno != EADDRINUSE) {
            return false;
        }
        if (!listener_is_stale_socket(address) || unlink(address->sun_path) != 0) {
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

static bool listener_open_unix(struct listeners *listeners, const struct settings *settings,
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
    if (fd < 0 || !listener_bind_unix(fd, &address, settings)) {
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
    snprintf(listener_add(listeners, fd, settings, "unixsocket", false), LISTENER_ADDRESS_MAX, "%s",
             path);
    snprintf(listeners->unix_path, sizeof listeners->unix_path, "%s", path);
    return true;
}

/* ---- sockets that the service manager has opened ---- */

/* The option of a socket; -1: fd is no socket. */
static int listener_option_of(int fd, int option) {
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/* "127.0.0.1 port 6379", "::1 port 6379", the path of a unix socket. */
static bool listener_print_address(int fd, char *out, bool *is_unix_socket) {
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
static bool listener_take_socket(struct listeners *listeners, const struct settings *settings,
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
    if (listener_option_of(given->fd, SO_TYPE) != SOCK_STREAM ||
        listener_option_of(given->fd, SO_ACCEPTCONN) != 1 ||
        !listener_print_address(given->fd, address, &is_unix_socket)) {
        snprintf(error, SETTING_ERROR_MAX,
                 "the service manager's socket \"%s\" is no listening stream socket; set "
                 "ListenStream= and Accept=no in the socket unit",
                 given->name);
        return false;
    }
    snprintf(name, sizeof name, "%.*s", (int)strcspn(address, " "), address);
    snprintf(
        listener_add(listeners, given->fd, settings, is_unix_socket ? "unixsocket" : name, is_tls),
        LISTENER_ADDRESS_MAX, "%.120s%s", address, is_tls ? " tls" : "");
    return true;
}

static bool listener_open_all(struct listeners *listeners, const struct settings *settings,
                              char *error) {
    for (uint32_t i = 0; settings->port != 0 && i < settings->bind.count; i++) {
        if (!listener_open_tcp(listeners, settings->bind.at[i], settings, false, error)) {
            return false;
        }
    }
    for (uint32_t i = 0; settings->tls_port != 0 && i < settings->bind.count; i++) {
        if (!listener_open_tcp(listeners, settings->bind.at[i], settings, true, error)) {
            return false;
        }
    }
    if (settings->unixsocket != NULL && settings->unixsocket[0] != '\0' &&
        !listener_open_unix(listeners, settings, error)) {
        return false;
    }
    if (listeners->acceptor.socket_count == 0) {
        snprintf(error, SETTING_ERROR_MAX,
                 "nothing to listen on: set bind and port or tls-port, or unixsocket");
        return false;
    }
    return true;
}

/* ---- begin and end ---- */

bool listener_open(struct listeners *listeners, const struct settings *settings, char *error) {
    struct service_socket given[SERVICE_SOCKETS_MAX];
    unsigned count = service_take_sockets(given);
    *listeners = (struct listeners){.acceptor.spare_fd = -1};
    listeners->acceptor.header_limit_ms = PROXY_HEADER_LIMIT_MS;
    listeners->acceptor.proxy_count = settings->proxies.count;
    memcpy(listeners->acceptor.proxies, settings->proxies.at, sizeof settings->proxies.at);
    bool is_open = count > 0 || listener_open_all(listeners, settings, error);
    for (unsigned i = 0; i < count; i++) {
        is_open = is_open && listener_take_socket(listeners, settings, &given[i], error);
        if (!is_open) {
            close(given[i].fd);
        }
    }
    if (!is_open) {
        listener_close(listeners);
    }
    return is_open;
}

void listener_log(const struct listeners *listeners) {
    for (unsigned i = 0; i < listeners->acceptor.socket_count; i++) {
        log_write(LOG_NOTICE, "listening address=\"%s\"", listeners->addresses[i]);
    }
}

void listener_leave(struct listeners *listeners) {
    if (listeners->unix_path[0] != '\0') {
        unlink(listeners->unix_path);
    }
    listeners->unix_path[0] = '\0';
}

void listener_close(struct listeners *listeners) {
    listener_leave(listeners);
    acceptor_close(&listeners->acceptor);
}
