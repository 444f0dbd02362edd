/* A reply as our handlers write it, RESP2 or RESP3, given to the host.
 *
 * The host has a function for each type of value, and none for text. It passes on what a command that a module
 * calls has replied, though, and that is text (ReplyWithCallReply). So the module once calls a command of its own
 * for replies of some sizes, and keeps them: the pieces. A reply is written into pieces that are as long as it
 * together, and they are passed on:
 *
 *     *4 $3 ann $3 700 ...                  the handler's reply, of 5013 bytes
 *     | 5 | 4096 | 512 | 256 | 128 | 16 |   pieces
 *
 * That costs one copy, instead of three writes with their checks for each value, and what a client gets is what
 * the server would send it. */
#ifndef SERVER_MODULE_HOST_REPLY_H
#define SERVER_MODULE_HOST_REPLY_H

#include "codec/buffer.h"
#include "server/module/host_api.h"

#define HOST_REPLY_COMMAND "lb.reply"

/* Make the pieces; LB.REPLY is registered, and ctx lives as long as the module. false: the server does not pass
 * on what is written into them. */
MUST_CHECK bool host_reply_init(struct host_context *ctx);
/* output: one value, in the RESP of the client. A broken buffer is an error reply. */
void host_reply(struct host_context *ctx, const struct buffer *output);
/* LB.REPLY. From a client it is an error. */
int host_reply_run(struct host_context *ctx, struct host_string **argv, int argc);

#endif
