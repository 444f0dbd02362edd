/* The machinery of replication (`struct replication_machine` of server/replication/replication.h): one feed
 * for replicas (feed.h), one link to a master (master_link.h), and what happens to both when the role changes.
 *
 *     tick    replicator_begin_tick: what has come of a master is applied, before commands run
 *             ... commands ...; their group ends
 *             replicator_end_tick: groups go to replicas, acknowledgements to the master
 *
 * The history is opened, which means written into the keys (history.h), when the first replica comes, and
 * anew at each promotion of a master and with its first change after each start: an id stands for what one
 * server wrote in one life. */
#ifndef SERVER_REPLICATOR_H
#define SERVER_REPLICATOR_H

#include <uv.h>

#include "server/clients/server.h"

struct replicator;

/* Zero-initialised server->replication.machine is filled in. NULL: out of memory, or libuv failed. */
MUST_CHECK struct replicator *replicator_create(struct server *server, uv_loop_t *loop,
                                                void (*wake)(void *context), void *context);
/* Close handles; the loop turns once more before replicator_destroy. */
void replicator_stop(struct replicator *replicator);
/* Persistence has stopped, with everything up to this group on disk (sync-replicas: the next start has
 * forgotten nothing). */
void replicator_end_cleanly(struct replicator *replicator, uint64_t last_group);
void replicator_destroy(struct replicator *replicator);

/* Before the first command, before the tick's group is complete, and when it is. true: there is more to do
 * at once. */
bool replicator_begin_tick(struct replicator *replicator);
void replicator_close_tick(struct replicator *replicator);
bool replicator_end_tick(struct replicator *replicator);
void replicator_second(struct replicator *replicator);

#endif
