/* The sockets that clients connect to: one for every address of `bind`, and the unix socket.
 *
 * They are opened before the process goes to the background, so that a taken port is reported where
 * the operator looks; they are watched once there is a loop. */
#ifndef SERVER_LISTENER_H
#define SERVER_LISTENER_H

#include "server/tick.h"

enum { LISTENERS_MAX = SETTING_LIST_MAX + 1, LISTENER_ADDRESS_MAX = 128 };

struct listeners;

struct listener {
    uv_poll_t poll;
    struct listeners *all;
    int fd;
    bool is_unix_socket;
    char address[LISTENER_ADDRESS_MAX]; /* as the log names it */
};

struct listeners {
    struct listener items[LISTENERS_MAX];
    uint32_t count;
    struct tick *tick;                    /* from listeners_watch on */
    uv_timer_t retry;                     /* after running out of descriptors */
    int spare_fd;                         /* given up to be able to turn clients away */
    int64_t full_logged_at_ms;            /* 0: never */
    char unix_path[LISTENER_ADDRESS_MAX]; /* "": no unix socket of ours exists */
};

/* Open all that settings ask for. On false, error (SETTING_ERROR_MAX) says what cannot be opened
 * and what to do; nothing is left open. */
MUST_CHECK bool listeners_open(struct listeners *listeners, const struct settings *settings,
                               char *error);
/* Accept from now on. false: libuv failed. */
MUST_CHECK bool listeners_watch(struct listeners *listeners, struct tick *tick);
/* Accept no longer; the unix socket's file goes. */
void listeners_close(struct listeners *listeners);

#endif
