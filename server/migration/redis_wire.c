/* See redis_wire.h. */
#include "server/migration/redis_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/system/clock.h"

enum { LOOK_MS = 100, PORT_TEXT_MAX = 8 };

static bool redis_wire_fail(struct redis_wire *wire, const char *what, const char *why) {
    snprintf(wire->error, sizeof wire->error, "%s: %s", what, why);
    return false;
}

static int64_t redis_wire_now_ms(void) {
    return (int64_t)(clock_monotonic_us() / 1000);
}

/* Wait for the socket. 1: ready; 0: not in time; -1: error, or it is to end. */
static int redis_wire_wait_for(struct redis_wire *wire, short events, int64_t until_ms) {
    while (true) {
        if (atomic_load_explicit(wire->is_ended, memory_order_relaxed)) {
            (void)redis_wire_fail(wire, "link", "it is closed here");
            return -1;
        }
        int64_t left_ms = until_ms - redis_wire_now_ms();
        left_ms = left_ms < 0 ? 0 : left_ms;
        struct pollfd one = {.fd = wire->fd, .events = events};
        int ready = poll(&one, 1, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS);
        if (ready > 0) {
            return 1;
        }
        if (ready < 0 && errno != EINTR) {
            (void)redis_wire_fail(wire, "poll", strerror(errno));
            return -1;
        }
        if (ready == 0 && left_ms <= LOOK_MS) {
            return 0;
        }
    }
}

/* ---- connecting ---- */

static bool redis_wire_connect_to(struct redis_wire *wire, const struct addrinfo *address,
                                  int64_t until_ms) {
    int error = 0;
    socklen_t size = sizeof error;
    const int on = 1;
    wire->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (wire->fd < 0) {
        return redis_wire_fail(wire, "socket", strerror(errno));
    }
    wire->is_open = true;
    if (connect(wire->fd, address->ai_addr, address->ai_addrlen) != 0) {
        if (errno != EINPROGRESS) {
            return redis_wire_fail(wire, "connect", strerror(errno));
        }
        int ready = redis_wire_wait_for(wire, POLLOUT, until_ms);
        if (ready <= 0) {
            return ready < 0 ? false : redis_wire_fail(wire, "connect", "no answer in time");
        }
        if (getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
            return redis_wire_fail(wire, "connect", strerror(error != 0 ? error : errno));
        }
    }
    (void)setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(wire->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return true;
}

static bool redis_wire_connect_any(struct redis_wire *wire, const char *host, unsigned port,
                                   int64_t until_ms) {
    char service[PORT_TEXT_MAX];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *first;
    snprintf(service, sizeof service, "%u", port);
    int found = getaddrinfo(host, service, &hints, &first);
    if (found != 0) {
        return redis_wire_fail(wire, host, gai_strerror(found));
    }
    bool is_connected = false;
    for (const struct addrinfo *at = first; at != NULL && !is_connected; at = at->ai_next) {
        redis_wire_close(wire);
        is_connected = redis_wire_connect_to(wire, at, until_ms);
    }
    freeaddrinfo(first);
    return is_connected;
}

/* ---- TLS ---- */

static bool redis_wire_fail_tls(struct redis_wire *wire) {
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    long verdict = SSL_get_verify_result(wire->tls);
    if (verdict != X509_V_OK) {
        reason = X509_verify_cert_error_string(verdict);
    }
    ERR_clear_error();
    return redis_wire_fail(wire, "TLS", reason != NULL ? reason : "the connection was closed");
}

/* After a call that returned result: wait until it can be repeated. 1: repeat it; 0: not in time; -1:
 * error. */
static int redis_wire_wait_for_tls(struct redis_wire *wire, int result, int64_t until_ms) {
    switch (SSL_get_error(wire->tls, result)) {
    case SSL_ERROR_WANT_READ:
        return redis_wire_wait_for(wire, POLLIN, until_ms);
    case SSL_ERROR_WANT_WRITE:
        return redis_wire_wait_for(wire, POLLOUT, until_ms);
    default:
        (void)redis_wire_fail_tls(wire);
        return -1;
    }
}

static bool redis_wire_begin_tls(struct redis_wire *wire, SSL_CTX *context, int64_t until_ms) {
    wire->tls = SSL_new(context);
    if (wire->tls == NULL || SSL_set_fd(wire->tls, wire->fd) != 1) {
        return redis_wire_fail(wire, "TLS", "out of memory");
    }
    while (true) {
        ERR_clear_error();
        int result = SSL_connect(wire->tls);
        if (result == 1) {
            return true;
        }
        int ready = redis_wire_wait_for_tls(wire, result, until_ms);
        if (ready <= 0) {
            return ready < 0 ? false : redis_wire_fail(wire, "TLS", "no answer in time");
        }
    }
}

bool redis_wire_connect(struct redis_wire *wire, const char *host, unsigned port, SSL_CTX *tls,
                        int64_t timeout_ms) {
    int64_t until_ms = redis_wire_now_ms() + timeout_ms;
    wire->from = wire->to = 0;
    return redis_wire_connect_any(wire, host, port, until_ms) &&
           (tls == NULL || redis_wire_begin_tls(wire, tls, until_ms));
}

void redis_wire_close(struct redis_wire *wire) {
    SSL_free(wire->tls);
    wire->tls = NULL;
    if (wire->is_open) {
        (void)close(wire->fd);
        wire->is_open = false;
    }
}

/* ---- bytes ---- */

/* Above 0: so many; 0: not in time; -1: error. */
static ssize_t redis_wire_write_some(struct redis_wire *wire, struct bytes bytes,
                                     int64_t until_ms) {
    while (true) {
        int ready;
        if (wire->tls != NULL) {
            ERR_clear_error();
            int written = SSL_write(wire->tls, bytes.at, (int)bytes.size);
            if (written > 0) {
                return written;
            }
            ready = redis_wire_wait_for_tls(wire, written, until_ms);
        } else {
            ssize_t written = send(wire->fd, bytes.at, bytes.size, MSG_NOSIGNAL);
            if (written >= 0) {
                return written;
            }
            if (errno != EAGAIN && errno != EINTR) {
                (void)redis_wire_fail(wire, "write", strerror(errno));
                return -1;
            }
            ready = redis_wire_wait_for(wire, POLLOUT, until_ms);
        }
        if (ready <= 0) {
            return ready;
        }
    }
}

bool redis_wire_write(struct redis_wire *wire, struct bytes bytes, int64_t timeout_ms) {
    int64_t until_ms = redis_wire_now_ms() + timeout_ms;
    while (bytes.size > 0) {
        ssize_t written = redis_wire_write_some(wire, bytes, until_ms);
        if (written <= 0) {
            return written < 0 ? false : redis_wire_fail(wire, "write", "the source does not read");
        }
        bytes.at += written;
        bytes.size -= (size_t)written;
    }
    return true;
}

/* What is left moves to the front. Above 0: bytes; 0: none yet; -1: error. */
static ssize_t redis_wire_read_some(struct redis_wire *wire) {
    size_t room = sizeof wire->input - wire->to;
    if (wire->tls != NULL) {
        ERR_clear_error();
        int size = SSL_read(wire->tls, wire->input + wire->to, (int)room);
        if (size > 0) {
            return size;
        }
        int why = SSL_get_error(wire->tls, size);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
            return 0;
        }
        (void)redis_wire_fail_tls(wire);
        return -1;
    }
    ssize_t size = recv(wire->fd, wire->input + wire->to, room, 0);
    if (size > 0) {
        return size;
    }
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    (void)redis_wire_fail(wire, "read",
                          size == 0 ? "the source has closed the connection" : strerror(errno));
    return -1;
}

int redis_wire_read(struct redis_wire *wire, int64_t timeout_ms) {
    if (wire->from > 0) {
        memmove(wire->input, wire->input + wire->from, wire->to - wire->from);
        wire->to -= wire->from;
        wire->from = 0;
    }
    if (wire->to == sizeof wire->input) {
        return 1;
    }
    ssize_t size = redis_wire_read_some(wire);
    if (size == 0) {
        int ready = redis_wire_wait_for(wire, POLLIN, redis_wire_now_ms() + timeout_ms);
        if (ready <= 0) {
            return ready;
        }
        size = redis_wire_read_some(wire);
    }
    if (size > 0) {
        wire->to += (size_t)size;
    }
    return size > 0 ? 1 : (int)size;
}

bool redis_wire_read_line(struct redis_wire *wire, char *line, size_t room, int64_t timeout_ms) {
    int64_t until_ms = redis_wire_now_ms() + timeout_ms;
    while (true) {
        const char *begin = wire->input + wire->from;
        const char *end = memchr(begin, '\n', wire->to - wire->from);
        if (end != NULL) {
            size_t size = (size_t)(end - begin);
            wire->from += size + 1;
            size -= size > 0 && begin[size - 1] == '\r';
            size = size < room - 1 ? size : room - 1;
            memcpy(line, begin, size);
            line[size] = '\0';
            return true;
        }
        if (wire->to - wire->from == sizeof wire->input) {
            return redis_wire_fail(wire, "read", "the source's line has no end");
        }
        int64_t left_ms = until_ms - redis_wire_now_ms();
        int ready = left_ms > 0 ? redis_wire_read(wire, left_ms) : 0;
        if (ready < 0) {
            return false;
        }
        if (ready == 0 && redis_wire_now_ms() >= until_ms) {
            return redis_wire_fail(wire, "read", "the source does not answer in time");
        }
    }
}
