/* A timer on the engine's loop that keeps the service manager informed (server/system/service.h):
 * that the loop still turns, and, while boards are loaded, how far that is. If the loop hangs,
 * nothing is told, and the manager restarts the server. Without a manager there is no timer. */
#ifndef SERVER_HEARTBEAT_H
#define SERVER_HEARTBEAT_H

#include <uv.h>

#include "server/durability/persistence.h"

struct heartbeat {
    uv_timer_t timer; /* does not keep the loop alive */
    bool is_running;
    bool is_loading;
    const struct persistence *persistence; /* borrowed */
};

/* *heartbeat is zeroed. false: libuv failed. */
MUST_CHECK bool heartbeat_start(struct heartbeat *heartbeat, uv_loop_t *loop,
                                const struct persistence *persistence);
/* Boards are loaded and served. Only the first call counts. */
void heartbeat_ready(struct heartbeat *heartbeat);
/* Takes one more turn of the loop. */
void heartbeat_stop(struct heartbeat *heartbeat);

#endif
