/* One connection out, with blocking calls that have a deadline: TCP, and TLS on it. For a thread of its own. */
#ifndef SERVER_REDIS_WIRE_H
#define SERVER_REDIS_WIRE_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "codec/bytes.h"

enum { REDIS_WIRE_ERROR_MAX = 200, REDIS_WIRE_INPUT_SIZE = 64 * 1024 };

/* Zero-initialised, but for is_ended: not connected. */
struct redis_wire {
    const atomic_bool *is_ended; /* looked at ten times a second; every wait ends then */
    int fd;
    bool is_open;
    SSL *tls;
    size_t from, to; /* of input: bytes that have come and are not read */
    char input[REDIS_WIRE_INPUT_SIZE];
    char error[REDIS_WIRE_ERROR_MAX];
};

/* tls: borrowed, or NULL. false: error. */
MUST_CHECK bool redis_wire_connect(struct redis_wire *wire, const char *host, unsigned port,
                                   SSL_CTX *tls, int64_t timeout_ms);
void redis_wire_close(struct redis_wire *wire);
/* All of it. false: error. */
MUST_CHECK bool redis_wire_write(struct redis_wire *wire, struct bytes bytes, int64_t timeout_ms);
/* Wait for bytes, at most so long: input holds from .. to - 1. 1: there are some; 0: not yet; -1: error. */
MUST_CHECK int redis_wire_read(struct redis_wire *wire, int64_t timeout_ms);
/* A line without its end, terminated; it is cut where line has no room. false: error. */
MUST_CHECK bool redis_wire_read_line(struct redis_wire *wire, char *line, size_t room,
                                     int64_t timeout_ms);

#endif
