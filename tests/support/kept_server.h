/* A server without sockets that keeps its boards in a directory, on a loop of its own. Its registry
 * is a storm's: what a storm does to it between two calls of kept_end_tick is a tick.
 *
 *     kept_start(&kept, directory, "appendonly yes\n");
 *     storm.registry = kept.server->registry;
 *     storm_step(&storm);
 *     kept_end_tick(&kept);
 *     kept_turn(&kept);
 *     kept_stop(&kept);
 *
 * Whatever goes wrong stops the program: most of it runs in processes of its own. */
#ifndef TESTS_SUPPORT_KEPT_SERVER_H
#define TESTS_SUPPORT_KEPT_SERVER_H

#include "server/durability/persistence.h"
#include "tests/support/harness.h"

struct kept_server {
    struct harness *harness;
    struct server *server;
    uv_loop_t loop;
    uv_timer_t alive; /* a loop without anything to wait for does not turn */
    struct persistence *persistence;
    uint64_t changed_count; /* times it was told that replies may leave */
};

/* Everything but loading. false: error (PERSISTENCE_ERROR_MAX) says why, and nothing is left. */
struct persistence_host kept_host_of(struct server *server, struct persistence *persistence);
MUST_CHECK bool kept_open(struct kept_server *kept, const char *directory, const char *settings,
                          char *error);
/* Open, and load to the end. */
void kept_start(struct kept_server *kept, const char *directory, const char *settings);
/* One step of loading. */
void kept_load_step(struct kept_server *kept);
/* The end of the process, as it would come after the loop. */
void kept_stop(struct kept_server *kept);

void kept_set_time(struct kept_server *kept, int64_t now_ms);
void kept_end_tick(struct kept_server *kept);
/* Let what has been done elsewhere come to the loop. */
void kept_turn(struct kept_server *kept);
/* Until there is something of that kind, or for a moment. */
void kept_wait(const struct kept_server *kept);
/* What happens once a second. */
void kept_second(struct kept_server *kept);
struct persistence_info kept_describe(const struct kept_server *kept);
/* Turn until no snapshot is being written, and everything is that was gathered. false: that does
 * not come, or not without more seconds: the disk does not let it. */
MUST_CHECK bool kept_settle(struct kept_server *kept);

#endif
