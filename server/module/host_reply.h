/* A reply as our handlers write it, RESP2 or RESP3, given to the host. */
#ifndef SERVER_MODULE_HOST_REPLY_H
#define SERVER_MODULE_HOST_REPLY_H

#include "protocol/buffer.h"
#include "server/module/host_api.h"

/* output: one value, in the RESP of the client. A broken buffer is an error reply.
 *
 * The host has a function for each type, and none for bytes. A call of another command (Call) is no way
 * out: in Redis 7.0 it would throw away what a waiting client's command replicates. */
void host_reply(struct host_context *ctx, const struct buffer *output);

#endif
