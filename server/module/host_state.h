/* What the module keeps beside the host's keys: bans (server/commands/ban.h), and durable jobs that are not
 * finished (server/commands/lb/board_task.h). They are hashes in databases of the registry that no
 * client reaches, as in the server.
 *
 *     changes   LB.APPLYSTATE blob      to replicas and the AOF; a blob as that of LB.APPLY
 *     RDB       auxiliary data of the type: format, server time, blob ..., ""
 *     AOF       with an RDB preamble as in the RDB; without, one LB.APPLYSTATE with all of it
 *
 * In a cluster each master has its own. */
#ifndef SERVER_MODULE_HOST_STATE_H
#define SERVER_MODULE_HOST_STATE_H

#include "server/module/host_value.h"
#include "skiplist/keyspace/effect.h"

void host_state_init(void);
static inline bool host_state_owns(const struct effect *effect) {
    return effect->database >= REGISTRY_SYSTEM && effect->database != REGISTRY_ONCE;
}
/* Note a change that it owns; then replicate what was noted. */
void host_state_note(const struct effect *effect);
void host_state_replicate(struct host_context *ctx);
/* Remove bans whose time is over. On masters, before a command that writes. */
void host_state_expire(void);
/* LB.APPLYSTATE */
int host_state_apply(struct host_context *ctx, struct host_string **argv, int argc);
/* Remove everything, without reporting it. */
void host_state_clear(void);

/* They are loaded beside ours (diskless, swapdb); kind: enum HOST_BESIDE_. What came is taken at the end, or
 * dropped. */
void host_state_load_beside(uint64_t kind);
bool host_state_is_beside(void);
/* The host writes a file in a child: into an AOF without a preamble, what is kept comes behind the keys. */
void host_state_on_fork(struct host_context *ctx);

/* Of the type. host_state_save_some writes nothing if there is nothing. */
void host_state_save(struct host_io *io, int when);
void host_state_save_some(struct host_io *io, int when);
int host_state_load(struct host_io *io, int version, int when);

#endif
