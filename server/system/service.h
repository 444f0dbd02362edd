/* The two small protocols of service managers such as systemd: what the server tells its manager
 * (sd_notify(3)), and the listening sockets that the manager has opened for it (sd_listen_fds(3)).
 *
 * Both are environment variables and a datagram each, documented as stable, so no library is needed.
 * Without a manager nothing is set, and they do nothing.
 *
 * service_listen opens the sockets that no manager has opened. */
#ifndef SERVER_SERVICE_H
#define SERVER_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "codec/check.h"

enum { SERVICE_SOCKETS_MAX = 16, SERVICE_NAME_MAX = 64 };

struct service_socket {
    int fd;                      /* close-on-exec and non-blocking */
    char name[SERVICE_NAME_MAX]; /* FileDescriptorName= of the socket unit; "": not named */
};

/* Read the variables and remove them from the environment. Call it once, before the process has
 * other threads and other descriptors. */
void service_init(void);

/* Tell the manager, as printf: "READY=1", "STATUS=..."; several lines are separated by \n. What the
 * manager cannot take at once is waited for, a second at most. */
__attribute__((format(printf, 1, 2))) void service_tell(const char *format, ...);
/* Tell it that the server is alive, if it wants that and was not told just now; does not wait. */
void service_ping(void);
/* How often the manager wants service_ping, in microseconds; 0: never. */
uint64_t service_ping_interval_us(void);
/* Is there a manager that listens? */
bool service_is_watched(void);

/* The sockets that the manager has opened; the caller owns them. Returns their number. */
unsigned service_take_sockets(struct service_socket sockets[SERVICE_SOCKETS_MAX]);

/* ---- sockets that nobody has opened ---- */

struct listen_failure {
    int code; /* errno; 0: the address is none */
    const char *reason;
};

/* Listen, without blocking, at "127.0.0.1", "::1", "*" (every IPv4 address) or "::*" (every IPv6 address). -1: *failure
 * says why. */
int service_listen(const char *address, int64_t port, int backlog, struct listen_failure *failure);

#endif
