/* Effects of a command as LB.APPLY, for replicas and the AOF.
 *
 *     LB.APPLY key blob [key ""] ...
 *     blob     server/durability/effect_blob.h
 *
 * Applying needs neither a clock nor the configuration, so replicas, the AOF and other shards agree to
 * the last bit, ties included. The keys after the first are archives, and whatever else the chunk
 * changes. */
#ifndef SERVER_MODULE_HOST_EFFECTS_H
#define SERVER_MODULE_HOST_EFFECTS_H

#include "server/module/host_stage.h"

/* Collect effects from now on. false: no memory. */
MUST_CHECK bool host_effects_init(void);
/* Those of one command with these keys; then replicate them. */
void host_effects_begin(struct host_stage *stage);
void host_effects_end(void);
/* LB.APPLY */
int host_effects_apply(struct host_context *ctx, struct host_string **argv, int argc);
/* Effects that make the key, for the AOF. */
void host_effects_rewrite(struct host_io *io, struct host_string *name,
                          const struct registry_key *key);

#endif
