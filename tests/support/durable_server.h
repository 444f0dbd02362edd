/* A server without sockets that keeps its boards in a directory, on a loop of its own. Its registry
 * is a workload's: its steps between two calls of durable_end_tick are a tick.
 *
 *     durable_start(&durable, directory, "appendonly yes\n");
 *     workload.registry = durable.server->registry;
 *     workload_step(&workload);
 *     durable_end_tick(&durable);
 *     durable_turn(&durable);
 *     durable_stop(&durable);
 *
 * Whatever goes wrong stops the program: most of it runs in processes of its own. */
#ifndef TESTS_SUPPORT_DURABLE_SERVER_H
#define TESTS_SUPPORT_DURABLE_SERVER_H

#include "server/durability/persistence.h"
#include "tests/support/harness.h"

struct durable_server {
    struct harness *harness;
    struct server *server;
    uv_loop_t loop;
    uv_timer_t alive; /* a loop without anything to wait for does not turn */
    struct persistence *persistence;
    uint64_t changed_count; /* times it was told that replies may leave */
};

/* Everything but loading. false: error (PERSISTENCE_ERROR_MAX) says why, and nothing is left. */
struct persistence_host durable_host_of(struct server *server, struct persistence *persistence);
MUST_CHECK bool durable_open(struct durable_server *durable, const char *directory,
                             const char *settings, char *error);
/* Open, and load to the end. */
void durable_start(struct durable_server *durable, const char *directory, const char *settings);
/* One step of loading. */
void durable_load_step(struct durable_server *durable);
/* The end of the process, as it would come after the loop. */
void durable_stop(struct durable_server *durable);

void durable_set_time(struct durable_server *durable, int64_t now_ms);
void durable_end_tick(struct durable_server *durable);
/* Let what has been done elsewhere come to the loop. */
void durable_turn(struct durable_server *durable);
/* Until there is something of that kind, or for a moment. */
void durable_wait(const struct durable_server *durable);
/* What happens once a second. */
void durable_second(struct durable_server *durable);
struct persistence_info durable_describe(const struct durable_server *durable);
/* Turn until no snapshot is being written, and everything is that was gathered. false: that does
 * not come, or not without more seconds: the disk does not let it. */
MUST_CHECK bool durable_settle(struct durable_server *durable);

#endif
