/* See listen.h. */
#include "server/system/listen.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int listen_tcp(const char *address, int64_t port, int backlog, struct listen_failure *failure) {
    const char *host = strcmp(address, "*") == 0     ? "0.0.0.0"
                       : strcmp(address, "::*") == 0 ? "::"
                                                     : address;
    char service[16];
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int fd = -1, on = 1;
    snprintf(service, sizeof service, "%lld", (long long)port);
    int status = getaddrinfo(host, service, &hints, &found);
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
