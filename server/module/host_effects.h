/* Effects of a command as LB.APPLY, for replicas and the AOF.
 *
 *     LB.APPLY key blob [key ""] ...
 *     blob     server/durability/effect_bytes.h
 *
 * Applying needs neither a clock nor the configuration, so replicas, the AOF and other shards agree to
 * the last bit, ties included. The keys after the first are archives, and whatever else the chunk
 * changes.
 *
 * What the master or the AOF says fits the boards. LB.APPLY of a client is done whole or not at all, as replicas
 * would lack what a part of it has done. So its effects are judged first: writes on boards that are there, and
 * removals of members that are there, cannot fail. Where anything else is among them, they go to copies of the
 * boards, which take their places at the end. */
#ifndef SERVER_MODULE_HOST_EFFECTS_H
#define SERVER_MODULE_HOST_EFFECTS_H

#include "server/module/working_set.h"

/* Collect effects from now on. false: no memory. */
MUST_CHECK bool host_effects_init(void);
/* Those of one command with these keys; then replicate them. */
void host_effects_begin(struct working_set *set);
void host_effects_end(void);
/* LB.APPLY */
int host_effects_apply(struct host_context *ctx, struct host_string **argv, int argc);
/* Effects that make the key, for the AOF. */
void host_effects_rewrite(struct host_io *io, struct host_string *name,
                          const struct registry_key *key);

#endif
