/* Listening sockets of TCP. */
#ifndef SERVER_LISTEN_H
#define SERVER_LISTEN_H

#include <stdint.h>

struct listen_failure {
    int code; /* errno; 0: the address is none */
    const char *reason;
};

/* Listen, without blocking, at "127.0.0.1", "::1", "*" (every IPv4 address) or "::*" (every IPv6 address). -1: *failure
 * says why. */
int listen_tcp(const char *address, int64_t port, int backlog, struct listen_failure *failure);

#endif
