/* A reply as our handlers write it, RESP2 or RESP3, given to the host. */
#ifndef SERVER_MODULE_HOST_REPLY_H
#define SERVER_MODULE_HOST_REPLY_H

#include "protocol/buffer.h"
#include "server/module/host_api.h"

/* output: one value in this version of RESP. A broken buffer is an error reply. */
void host_reply(struct host_context *ctx, const struct buffer *output, unsigned protocol);

#endif
