/* The listening sockets: one for every address in `bind`, and the unix socket.
 *
 * They are opened before the process daemonizes, so that an address in use is reported to the
 * operator. They are watched once the loop exists. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "server/loop/tick.h"

enum { LISTENERS_MAX = SETTING_LIST_MAX + 1, LISTENER_ADDRESS_MAX = 128 };

struct listeners;

struct listener {
    uv_poll_t poll;
    struct listeners *all;
    int fd;
    bool is_unix_socket;
    char address[LISTENER_ADDRESS_MAX]; /* as shown in the log */
};

struct listeners {
    struct listener items[LISTENERS_MAX];
    uint32_t count;
    struct tick *tick;                    /* set by listeners_watch */
    uv_timer_t retry;                     /* retries after running out of descriptors */
    int spare_fd;                         /* closed to free a descriptor for refusing clients */
    int64_t full_logged_at_ms;            /* 0: never */
    char unix_path[LISTENER_ADDRESS_MAX]; /* "": we have created no unix socket */
};

/* Open all sockets that settings configure. false: error (SETTING_ERROR_MAX bytes) says which one
 * failed and what to do; none is left open. */
MUST_CHECK bool listeners_open(struct listeners *listeners, const struct settings *settings,
                               char *error);
/* Start accepting. false: libuv failed. */
MUST_CHECK bool listeners_watch(struct listeners *listeners, struct tick *tick);
/* Stop accepting, and remove the unix socket's file. */
void listeners_close(struct listeners *listeners);

#endif
