/* Long replies, as bytes.
 *
 * The host has a function for each value of a reply; a hundred members with scores are two hundred
 * calls, which take longer than finding the members; and it has no exact decimals. But it also passes on replies of other commands
 * (ReplyWithCallReply), by copying their bytes. So replies of ECHO are kept as envelopes, one for each
 * size, and our bytes are put into them:
 *
 *     ECHO of 57 bytes -> "$57\r\n.........\r\n"   an envelope of 64 bytes
 *     a reply of 2500  -> envelopes of 2048, 256, 128, 32 and 36
 *
 * host_raw_probe tries that once when the module is loaded. Where a server does not pass the bytes on
 * as they are, every reply goes value by value (host_reply.c). */
#ifndef SERVER_MODULE_HOST_RAW_H
#define SERVER_MODULE_HOST_RAW_H

#include "codec/bytes.h"
#include "server/module/host_api.h"

enum { HOST_RAW_MIN = 6 /* bytes: of an empty envelope */ };

/* Send at least HOST_RAW_MIN bytes, which are one whole value. false: not possible here, or no
 * memory; nothing was sent. */
bool host_raw_reply(struct host_context *ctx, struct bytes reply);
/* Find out whether it is possible. command: one of ours that answers with host_raw_answer_probe. */
void host_raw_probe(struct host_context *ctx, const char *command);
/* Does the probe run? Then it was answered. */
bool host_raw_answer_probe(struct host_context *ctx);
void host_raw_deinit(void);

#endif
