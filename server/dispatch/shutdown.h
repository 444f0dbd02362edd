/* Saving before the server exits: once while it can still continue if saving fails, and once more
 * when no client can change anything.
 *
 *     SHUTDOWN, SIGTERM -> shutdown_prepare -> drain -> shutdown_finish -> the loop ends
 *                                  \-> failed: logged, and the server continues */
#ifndef SERVER_SHUTDOWN_H
#define SERVER_SHUTDOWN_H

#include "server/clients/server.h"
#include "server/durability/persistence.h"

/* false: not everything is on disk, and the log says why; the server should continue. Blocks on the
 * disk. While boards are loading there is nothing to save, whatever ending says. */
MUST_CHECK bool shutdown_prepare(struct server *server, enum persistence_ending ending);
/* Save what has changed since shutdown_prepare, in the same way. On failure sets
 * server->is_end_failed. */
void shutdown_finish(struct server *server);

#endif
