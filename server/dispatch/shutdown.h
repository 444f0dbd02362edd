/* The end of a server: first it retires, so that balancers can send clients elsewhere. Then what must
 * be kept is saved: once while it can still continue if saving fails, and once more when no client can
 * change anything.
 *
 *     SHUTDOWN, SIGTERM -> retires -> prepares -> drain -> shutdown_finish -> the loop ends
 *                             \           \-> failed: logged, and the server continues
 *                              \-> SHUTDOWN ABORT: the server continues
 *
 * While it retires, for shutdown-drain-timeout, everything works, and the health is red: PING is an
 * error for clients that have connected since. The loop ends this time: earlier, if
 * nobody else is connected (tick.c). */
#ifndef SERVER_SHUTDOWN_H
#define SERVER_SHUTDOWN_H

#include "server/durability/persistence.h"
#include "server/sessions/server.h"

struct shutdown_options {
    enum persistence_ending ending;
    bool is_now;   /* neither retire nor wait for clients */
    bool is_force; /* also if saving fails */
};
/* SHUTDOWN, or a signal: retire, or prepare at once; then server->ending.is_asked is set. While it
 * retires, is_now ends that. false: not everything is on disk, and the log says why; the server should continue.
 * Blocks on the disk. */
MUST_CHECK bool shutdown_begin(struct server *server, const struct shutdown_options *options);
/* It has retired: prepare. On failure the server goes on, and who asked is told. */
void shutdown_end_retiring(struct server *server);
/* The server goes on, and who asked is told. false: it does not retire. */
MUST_CHECK bool shutdown_abort(struct server *server);
/* Save what has changed since it was prepared, in the same way. On failure sets
 * server->ending.has_failed. */
void shutdown_finish(struct server *server);

#endif
