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

/* ---- what is kept beside the keys ----
 *
 * Bans (server/commands/ban.h), and durable jobs that are not finished (server/commands/lb/board_task.h). They are hashes in databases of the registry that no
 * client reaches, as in the server.
 *
 *     changes   LB.APPLYSTATE blob      to replicas and the AOF; a blob as that of LB.APPLY
 *     RDB       auxiliary data of the type: format, server time, blob ..., ""
 *     AOF       with an RDB preamble as in the RDB; without, one LB.APPLYSTATE with all of it
 *
 * In a cluster each master has its own. */

/* Replicate what has changed of it. */
void host_effects_state_replicate(struct host_context *ctx);
/* Remove bans whose time is over. On masters, before a command that writes. */
void host_effects_expire_bans(void);
/* LB.APPLYSTATE */
int host_effects_apply_state(struct host_context *ctx, struct host_string **argv, int argc);
/* Remove everything, without reporting it. */
void host_effects_state_clear(void);

/* They are loaded beside ours (diskless, swapdb); kind: enum HOST_BESIDE_. What came is taken at the end, or
 * dropped. */
void host_effects_state_load_beside(uint64_t kind);
bool host_effects_state_is_beside(void);
/* The host writes a file in a child: into an AOF without a preamble, what is kept comes behind the keys. */
void host_effects_on_fork(struct host_context *ctx);

/* Of the type. host_effects_state_save_some writes nothing if there is nothing. */
void host_effects_state_save(struct host_io *io, int when);
void host_effects_state_save_some(struct host_io *io, int when);
int host_effects_state_load(struct host_io *io, int version, int when);

#endif
