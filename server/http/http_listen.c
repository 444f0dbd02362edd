/* See http_server.h. */
#include "server/http/http_server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "codec/memory.h"
#include "server/system/listen.h"

enum { BACKLOG = 256 };

int http_listen(const char *family, const char *address, int64_t port, char *error) {
    struct listen_failure failure;
    int fd = listen_tcp(address, port, BACKLOG, &failure);
    if (fd < 0 && failure.code == 0) {
        snprintf(error, HTTP_ERROR_MAX, "%s-bind: cannot listen on address %.100s: %s", family,
                 address, failure.reason);
    } else if (fd < 0) {
        snprintf(error, HTTP_ERROR_MAX, "%s-port: cannot listen on address %.100s port %lld: %s%s",
                 family, address, (long long)port, failure.reason,
                 failure.code == EADDRINUSE ? "; another program listens there: choose another port"
                                            : "");
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
