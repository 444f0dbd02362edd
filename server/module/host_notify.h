/* Keyspace events of handlers, given to the host once the keys are back there: what listens may look
 * at them. */
#ifndef SERVER_MODULE_HOST_NOTIFY_H
#define SERVER_MODULE_HOST_NOTIFY_H

#include "server/module/host_api.h"

void host_notify_flush(struct host_context *ctx);

#endif
