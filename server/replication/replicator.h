/* What moves replication: one feed for replicas (feed.h), one link to a master (master_link.h),
 * with sync-replicas a quorum (quorum.h), and what happens to them when the role changes.
 *
 *     tick    replicator_begin_tick: what has come of a master is applied, before commands run
 *             ... commands ...; their group ends
 *             replicator_end_tick: groups go to replicas, acknowledgements to the master
 *
 * What else is asked of it, by commands and by these parts, is in replication.h.
 *
 * The history is opened, which means written into the keys (replication.h), when the first replica
 * comes, and anew at each promotion of a master and with its first change after each start: an id
 * stands for what one server wrote in one life. */
#ifndef SERVER_REPLICATOR_H
#define SERVER_REPLICATOR_H

#include "server/replication/replication.h"

struct server;
struct uv_loop_s;

/* server->replication.replicator is it from now on. wake lets the tick run. NULL: out of memory, or
 * libuv failed. */
MUST_CHECK struct replicator *replicator_create(struct server *server, struct uv_loop_s *loop,
                                                void (*wake)(void *context), void *context);
/* Close handles; the loop turns once more before replicator_destroy. */
void replicator_stop(struct replicator *replicator);
/* Persistence has stopped, with everything up to this group on disk (sync-replicas: the next start
 * has lost nothing). */
void replicator_end_cleanly(struct replicator *replicator, uint64_t last_group);
void replicator_destroy(struct replicator *replicator);

/* Before the first command, before the tick's group is complete, and when it is. true: there is
 * more to do at once. */
bool replicator_begin_tick(struct replicator *replicator);
void replicator_close_tick(struct replicator *replicator);
bool replicator_end_tick(struct replicator *replicator);
void replicator_second(struct replicator *replicator);

#endif
