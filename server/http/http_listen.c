/* See http_server.h. */
#include "server/http/http_server.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "codec/memory.h"

enum { BACKLOG = 256 };

int http_listen(const char *family, const char *address, int64_t port, char *error) {
    char service[16];
    const char *host = strcmp(address, "*") == 0     ? "0.0.0.0"
                       : strcmp(address, "::*") == 0 ? "::"
                                                     : address;
    struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int on = 1;
    snprintf(service, sizeof service, "%lld", (long long)port);
    int status = getaddrinfo(host, service, &hints, &found);
    if (status != 0) {
        snprintf(error, HTTP_ERROR_MAX, "%s-bind: cannot listen on address %.100s: %s", family,
                 address, gai_strerror(status));
        return -1;
    }
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    bool is_bound = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                    (found->ai_family != AF_INET6 ||
                     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) == 0) &&
                    bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    int code = errno;
    freeaddrinfo(found);
    if (!is_bound) {
        snprintf(error, HTTP_ERROR_MAX, "%s-port: cannot listen on address %.100s port %lld: %s%s",
                 family, address, (long long)port, strerror(code),
                 code == EADDRINUSE ? "; another program listens there: choose another port" : "");
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

char *http_read_pem(const char *path, char *error) {
    FILE *file = fopen(path, "re");
    char *text = memory_allocate_zeroed(HTTP_PEM_SIZE_MAX);
    size_t size = 0;
    errno = file != NULL ? ENOMEM : errno;
    if (file != NULL && text != NULL) {
        errno = EIO;
        size = fread(text, 1, HTTP_PEM_SIZE_MAX, file);
    }
    if (size == 0 || size == HTTP_PEM_SIZE_MAX || ferror(file)) {
        snprintf(error, HTTP_ERROR_MAX, "cannot read %.300s: %s", path,
                 size == 0 ? strerror(errno) : "it is too long");
        memory_free(text);
        text = NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return text;
}
