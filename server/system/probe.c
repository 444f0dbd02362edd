/* --ping. See probe.h. */
#include "server/system/probe.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { HOST_MAX = 256, LINE_MAX_SIZE = 512 };

/* Connecting, sending and receiving may take so long each. */
static int open_socket(int family) {
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = {.tv_sec = PROBE_LIMIT_MS / 1000,
                                  .tv_usec = PROBE_LIMIT_MS % 1000 * 1000};
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    }
    return fd;
}

static bool try_connect(int fd, const struct sockaddr *address, socklen_t size) {
    return fd >= 0 && connect(fd, address, size) == 0;
}

static int connect_unix(const char *path, const char **error) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) {
        *error = "the path is too long";
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = open_socket(AF_UNIX);
    if (!try_connect(fd, (const struct sockaddr *)&address, sizeof address)) {
        *error = strerror(errno);
        close(fd);
        return -1;
    }
    return fd;
}

/* "6379", "10.0.0.5:6379", "[::1]:6379" */
static int connect_tcp(const char *target, const char **error) {
    char host[HOST_MAX] = "127.0.0.1";
    const char *colon = strrchr(target, ':');
    const char *port = colon != NULL ? colon + 1 : target;
    if (colon != NULL) {
        bool is_bracketed = target[0] == '[' && colon > target && colon[-1] == ']';
        const char *begin = target + is_bracketed;
        size_t size = (size_t)(colon - begin) - is_bracketed;
        if (size >= sizeof host) {
            *error = "the host's name is too long";
            return -1;
        }
        memcpy(host, begin, size);
        host[size] = '\0';
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    int status = getaddrinfo(host, port, &hints, &found);
    if (status != 0) {
        *error = gai_strerror(status);
        return -1;
    }
    int fd = -1;
    for (struct addrinfo *info = found; info != NULL && fd < 0; info = info->ai_next) {
        fd = open_socket(info->ai_family);
        if (!try_connect(fd, info->ai_addr, info->ai_addrlen)) {
            *error = strerror(errno);
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

/* The reply's line, without its end. NULL or what was received so far: error says why. */
static bool read_line(int fd, char *line, const char **error) {
    size_t size = 0;
    while (size < LINE_MAX_SIZE - 1) {
        ssize_t count = recv(fd, line + size, 1, 0);
        if (count <= 0) {
            *error = count == 0 ? "closed without an answer" : "no answer in time";
            return false;
        }
        if (line[size] == '\n') {
            break;
        }
        size += line[size] != '\r';
    }
    line[size] = '\0';
    return true;
}

static bool ask(int fd, const char *const *words, int count, char *line, const char **error) {
    char request[2 * LINE_MAX_SIZE];
    int size = snprintf(request, sizeof request, "*%d\r\n", count);
    for (int i = 0; i < count && (size_t)size < sizeof request; i++) {
        size += snprintf(request + size, sizeof request - (size_t)size, "$%zu\r\n%s\r\n",
                         strlen(words[i]), words[i]);
    }
    if ((size_t)size >= sizeof request) {
        *error = "the password is too long";
        return false;
    }
    if (send(fd, request, (size_t)size, MSG_NOSIGNAL) != size) {
        *error = strerror(errno);
        return false;
    }
    return read_line(fd, line, error);
}

bool probe_ping(const char *target, const char *password, bool is_alive, FILE *out) {
    const char *error = "";
    char line[LINE_MAX_SIZE] = "+";
    int fd =
        strchr(target, '/') != NULL ? connect_unix(target, &error) : connect_tcp(target, &error);
    bool is_answered = fd >= 0;
    if (is_answered && password != NULL) {
        is_answered = ask(fd, (const char *[]){"AUTH", password}, 2, line, &error);
    }
    if (is_answered && line[0] == '+') {
        is_answered = ask(fd, (const char *[]){"PING"}, 1, line, &error);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (!is_answered) {
        fprintf(out, "%s: %s\n", target, error);
        return false;
    }
    fprintf(out, "%s\n", line + (line[0] == '+' || line[0] == '-'));
    return is_alive || strcmp(line, "+PONG") == 0;
}
