/* BZPOPMIN, BZPOPMAX and BZMPOP by the host's means: a client waits for keys, and its command runs
 * again when one of them is ready. */
#ifndef SERVER_MODULE_HOST_WAIT_H
#define SERVER_MODULE_HOST_WAIT_H

#include "server/module/module.h"

/* The command that just ran has asked to wait (module.wait). */
int host_wait(struct host_context *ctx, struct host_string **argv);

#endif
