/* What has to reach the disk before the server ends: once while it can still go on if that fails,
 * and once more when nobody can change anything any longer.
 *
 *     SHUTDOWN, SIGTERM -> shutdown_prepare -> drain -> shutdown_finish -> the loop ends
 *                                  \-> failed: logged, and the server goes on */
#ifndef SERVER_SHUTDOWN_H
#define SERVER_SHUTDOWN_H

#include "server/persistence.h"

/* false: not everything is on disk; the log says why. The server should go on then. Waits for the
 * disk. While boards are loaded there is nothing to save, whatever ending says. */
MUST_CHECK bool shutdown_prepare(struct server *server, enum persistence_ending ending);
/* The same for what has changed since then, in the same way; if it fails, server->is_end_failed. */
void shutdown_finish(struct server *server);

#endif
