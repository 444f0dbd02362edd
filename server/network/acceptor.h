/* The listening sockets of a network: clients are accepted on its thread, and go to the engine with
 * the next batch, which refuses them or makes them clients of the network with the fewest.
 *
 * For every address in `bind` there is one without and one with TLS, and there is the unix socket. They are opened before
 * the process daemonizes, so that an address in use is reported to the operator. A service manager may have opened them
 * instead (socket activation, system/service.h): then the server listens to those and to no others, whatever the settings
 * say.
 *
 * accept() continues after errors: clients that have already disconnected (ECONNABORTED, EPROTO)
 * are skipped. When out of descriptors, the spare descriptor is closed in order to accept and close
 * the waiting clients; otherwise the socket would stay readable and the loop would spin.
 *
 * Clients of a listener of proxy-protocol come through a balancer. Their PROXY header (protocol/proxy_header.h) is
 * read before anything else of the connection is:
 *
 *     accept() --> arrival: header read, byte by byte to its end --> struct accepted --> engine
 *                     \-> no header, a bad one, too late: closed and counted
 *
 * Not a byte behind the header is taken: that is the client's, or its TLS handshake. What arrivals hold is bounded:
 * their number, the bytes of a header, and its time.
 *
 * Little is accepted that the engine has not seen: then clients wait in the sockets' backlogs, as
 * they would for an engine that accepts by itself. */
#ifndef SERVER_ACCEPTOR_H
#define SERVER_ACCEPTOR_H

#include <uv.h>

#include "codec/subnet.h"
#include "server/network/intake.h"
#include "server/settings/settings.h"

enum { ACCEPTOR_SOCKETS_MAX = 48, ACCEPTOR_PROXIES_MAX = 16, ARRIVALS_MAX = 64 };

struct acceptor;
struct arrival;

struct acceptor_socket {
    uv_poll_t poll;
    struct acceptor *acceptor;
    int fd;
    bool is_unix_socket;
    bool is_tls;     /* its clients begin with a handshake (tls.h) */
    bool is_proxied; /* clients begin with a PROXY header */
};

/* Zero-initialised: no sockets. Until acceptor_watch they are its creator's, who adds them; then the
 * network's thread owns and closes them. It must live as long as the network's loop. */
struct acceptor {
    struct intake *intake; /* of the network that accepts; NULL: not watched */
    struct acceptor_socket sockets[ACCEPTOR_SOCKETS_MAX];
    unsigned socket_count;
    uv_timer_t retry;  /* after running out of descriptors or memory */
    uv_timer_t second; /* while there are arrivals: of their time */
    struct subnet
        proxies[ACCEPTOR_PROXIES_MAX]; /* who may send PROXY headers; set before watching */
    unsigned proxy_count;
    unsigned header_limit_ms; /* for a PROXY header to come; set before watching */
    struct arrival *arrival_first;
    unsigned arrival_count;
    int spare_fd; /* closed to free a descriptor for refusing clients; -1: none */
    bool is_polled, is_paused, is_closed;
};

/* Returns it, for what else is to be said of it. */
struct acceptor_socket *acceptor_add(struct acceptor *acceptor, int fd, bool is_unix_socket);
/* Start accepting, on the loop of a network that does not run yet. false: libuv failed. */
MUST_CHECK bool acceptor_watch(struct acceptor *acceptor, struct intake *intake);
/* The network has room for accepted clients (again). */
void acceptor_resume(struct acceptor *acceptor);
/* Close all sockets, watched or not. The second time: nothing. */
void acceptor_close(struct acceptor *acceptor);

/* ---- those that the settings name ---- */

enum { LISTENERS_MAX = 2 * SETTING_LIST_MAX + 1, LISTENER_ADDRESS_MAX = 128 };

struct listeners {
    struct acceptor acceptor;
    char addresses[LISTENERS_MAX][LISTENER_ADDRESS_MAX]; /* as shown in the log */
    char unix_path[LISTENER_ADDRESS_MAX];                /* "": we have created no unix socket */
};

_Static_assert((int)SETTING_LIST_MAX == (int)ACCEPTOR_PROXIES_MAX, "so are they copied");
_Static_assert((int)LISTENERS_MAX <= (int)ACCEPTOR_SOCKETS_MAX, "each has its place");

/* Take the sockets that the service manager has opened, otherwise open all that settings configure.
 * false: error (SETTING_ERROR_MAX bytes) says which one
 * failed and what to do; none is left open. */
MUST_CHECK bool acceptor_listen(struct listeners *listeners, const struct settings *settings,
                                char *error);
void acceptor_log(const struct listeners *listeners);
/* Remove the unix socket's file. */
void acceptor_leave(struct listeners *listeners);
/* The same, and close the sockets: those of no network. */
void acceptor_end_listening(struct listeners *listeners);

#endif
