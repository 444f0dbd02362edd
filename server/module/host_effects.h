/* Effects of a command as LB.APPLY, for replicas and the AOF.
 *
 *     LB.APPLY key blob [key ""] ...
 *     blob     version (1 byte: FILE_FORMAT), server time in microseconds (8 bytes), and a chunk of
 *              effects (server/durability/effect_bytes.h), all in database 0
 *
 * Applying needs neither a clock nor the configuration, so replicas, the AOF and other shards agree to
 * the last bit, ties included. The keys after the first are archives, and whatever else the chunk
 * changes. */
#ifndef SERVER_MODULE_HOST_EFFECTS_H
#define SERVER_MODULE_HOST_EFFECTS_H

#include "server/durability/effect_bytes.h"
#include "server/module/host_stage.h"

/* Collect effects from now on. false: no memory. */
MUST_CHECK bool host_effects_init(void);
void host_effects_deinit(void);
/* Those of one command with these keys; then replicate them. */
void host_effects_begin(struct host_stage *stage);
void host_effects_end(void);
/* LB.APPLY */
int host_effects_apply(struct host_context *ctx, struct host_string **argv, int argc);
/* Begin a blob in an empty buffer; find the chunk and the time of one. false: it is none. */
void host_effects_begin_blob(struct effect_encoder *encoder, struct buffer *blob);
MUST_CHECK bool host_effects_read_head(struct bytes blob, struct bytes *chunk, int64_t *time_us);
/* Effects that make the key, for the AOF. */
void host_effects_rewrite(struct host_io *io, struct host_string *name,
                          const struct registry_key *key);

#endif
