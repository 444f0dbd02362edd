/* A reply as our handlers write it, RESP2 or RESP3, given to the host.
 *
 * The host has a function for each type, and none for bytes. Each value costs three writes to the client's
 * output, with its checks. Those of a command that a module calls are cheaper: they go to a buffer, and the
 * reply is passed on as one block. So long replies go by a call of a command of ours:
 *
 *     host_reply_read --Call--> LB.REPLY --value by value--> reply of the call --ReplyWithCallReply--> client
 *
 * That is for commands that read, only. A client that waits runs its command outside of the host's own
 * calls, and in Redis 7.0 a call throws away there what it replicates. */
#ifndef SERVER_MODULE_HOST_REPLY_H
#define SERVER_MODULE_HOST_REPLY_H

#include "protocol/buffer.h"
#include "server/module/host_api.h"

#define HOST_REPLY_COMMAND "LB.REPLY"

/* output: one value, in the RESP of the client. A broken buffer is an error reply. */
void host_reply(struct host_context *ctx, const struct buffer *output);
/* The same of a command that only reads, and does not wait. protocol: 2 or 3. */
void host_reply_read(struct host_context *ctx, const struct buffer *output, unsigned protocol);
/* LB.REPLY. From a client it is an error. */
int host_reply_run(struct host_context *ctx, struct host_string **argv, int argc);

#endif
