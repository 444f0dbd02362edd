/* The listening sockets: for every address in `bind` one without and one with TLS, and the unix socket.
 *
 * They are opened before the process daemonizes, so that an address in use is reported to the
 * operator. A service manager may have opened them instead (socket activation, system/service.h):
 * then the server listens to those and to no others, whatever the settings say. The first network
 * accepts from them (network/acceptor.h). */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "server/network/acceptor.h"
#include "server/settings/settings.h"

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
MUST_CHECK bool listener_open(struct listeners *listeners, const struct settings *settings,
                              char *error);
void listener_log(const struct listeners *listeners);
/* Remove the unix socket's file. */
void listener_leave(struct listeners *listeners);
/* The same, and close the sockets: those of no network. */
void listener_close(struct listeners *listeners);

#endif
