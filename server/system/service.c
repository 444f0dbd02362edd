/* See service.h. The variables: NOTIFY_SOCKET, the address of a datagram socket; WATCHDOG_USEC and
 * WATCHDOG_PID, how often a ping is expected and of whom; LISTEN_FDS, LISTEN_PID and
 * LISTEN_FDNAMES, how many descriptors from 3 on are listening sockets, of whom, and their names. */
#include "server/system/service.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/bytes.h"
#include "server/system/clock.h"

enum {
    MESSAGE_MAX = 512,
    SOCKET_FIRST = 3, /* SD_LISTEN_FDS_START */
    PINGS_MAX = 8,    /* in the time in which one is expected */
};

static struct {
    int fd; /* a connected datagram socket, or -1 */
    uint64_t ping_interval_us, pinged_at_us;
    unsigned socket_count;
    struct service_socket sockets[SERVICE_SOCKETS_MAX];
} service = {.fd = -1};

/* The variable as a number; 0: it is not set, or is none. */
static int64_t service_number_of(const char *variable) {
    const char *text = getenv(variable);
    int64_t number = 0;
    bool is_number = text != NULL && bytes_parse_i64(bytes_from_text(text), &number);
    return is_number && number > 0 ? number : 0;
}

/* ---- what is told ---- */

static int service_connect_to(const char *text) {
    struct sockaddr_un address;
    socklen_t size;
    /* A path, or '@' and a name in the abstract namespace. */
    size_t length = strlen(text);
    if ((text[0] != '/' && text[0] != '@') || length < 2 || length >= sizeof address.sun_path) {
        return -1;
    }
    address = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address.sun_path, text, length);
    size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
    if (text[0] == '@') {
        address.sun_path[0] = '\0';
    } else {
        size += 1;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_sec = 1};
    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0 ||
                    connect(fd, (const struct sockaddr *)&address, size) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* A manager that has gone away is no reason to fail. */
static void service_send_text(const char *text, size_t size, int flags) {
    ssize_t sent;
    do {
        sent = service.fd >= 0 ? send(service.fd, text, size, flags | MSG_NOSIGNAL) : 0;
    } while (sent < 0 && errno == EINTR);
}

void service_tell(const char *format, ...) {
    char text[MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(size > 0);
    CHECK((size_t)size < sizeof text);
    service_send_text(text, (size_t)size, 0);
}

void service_ping(void) {
    static const char ping[] = "WATCHDOG=1";
    uint64_t now_us = clock_monotonic_us();
    if (service.ping_interval_us != 0 &&
        now_us - service.pinged_at_us >= service.ping_interval_us / PINGS_MAX) {
        service.pinged_at_us = now_us;
        service_send_text(ping, sizeof ping - 1, MSG_DONTWAIT);
    }
}

uint64_t service_ping_interval_us(void) {
    return service.ping_interval_us;
}

bool service_is_watched(void) {
    return service.fd >= 0;
}

unsigned service_take_sockets(struct service_socket sockets[SERVICE_SOCKETS_MAX]) {
    unsigned count = service.socket_count;
    memcpy(sockets, service.sockets, count * sizeof sockets[0]);
    service.socket_count = 0;
    return count;
}

void service_init(void) {
    static const char *const variables[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                            "LISTEN_FDS",    "LISTEN_PID",    "LISTEN_FDNAMES"};
    const char *notify = getenv("NOTIFY_SOCKET");
    const char *names = getenv("LISTEN_FDNAMES");
    bool has_sockets = service_number_of("LISTEN_PID") == getpid();
    int64_t count = has_sockets ? service_number_of("LISTEN_FDS") : 0;
    names = names != NULL ? names : "";
    /* First the sockets: their descriptors have fixed numbers. */
    for (int64_t i = 0; i < count && i < SERVICE_SOCKETS_MAX; i++) {
        struct service_socket *next = &service.sockets[service.socket_count];
        /* The next of the names that ':' separates. */
        size_t size = strcspn(names, ":");
        snprintf(next->name, SERVICE_NAME_MAX, "%.*s", (int)size, names);
        names += size;
        names += *names == ':';
        next->fd = SOCKET_FIRST + (int)i;
        int flags = fcntl(next->fd, F_GETFL);
        service.socket_count += flags >= 0 && fcntl(next->fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
                                fcntl(next->fd, F_SETFD, FD_CLOEXEC) == 0;
    }
    service.fd = notify != NULL ? service_connect_to(notify) : -1;
    int64_t pid = service_number_of("WATCHDOG_PID");
    if (service.fd >= 0 && (pid == 0 || pid == getpid())) {
        service.ping_interval_us = (uint64_t)service_number_of("WATCHDOG_USEC");
    }
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        unsetenv(variables[i]);
    }
}

int service_listen(const char *address, int64_t port, int backlog, struct listen_failure *failure) {
    const char *host = strcmp(address, "*") == 0     ? "0.0.0.0"
                       : strcmp(address, "::*") == 0 ? "::"
                                                     : address;
    char text[16];
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = -1, on = 1;
    snprintf(text, sizeof text, "%lld", (long long)port);
    int status = getaddrinfo(host, text, &hints, &found);
    if (status != 0) {
        *failure = (struct listen_failure){.reason = gai_strerror(status)};
        return -1;
    }
    for (const struct addrinfo *info = found; info != NULL && fd < 0; info = info->ai_next) {
        fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (info->ai_family == AF_INET6) {
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
        }
        if (bind(fd, info->ai_addr, info->ai_addrlen) != 0 || listen(fd, backlog) != 0) {
            int code = errno;
            close(fd);
            errno = code;
            fd = -1;
        }
    }
    *failure = (struct listen_failure){.code = errno, .reason = strerror(errno)};
    freeaddrinfo(found);
    return fd;
}
