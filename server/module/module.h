/* The module: the server's handlers inside Redis or Valkey.
 *
 *     host's thread: command --host_run--> keys into the working set --handler--> effects, reply
 *                                      --> keys back, LB.APPLY, reply to the host
 *
 * The handlers are the server's own, with a registry that is empty between two commands. A command's keys are
 * taken from the host's keyspace into the registry for as long as it runs; what it has changed goes back, and to
 * replicas and the AOF as effects. Everything here runs in the host's main thread, except freeing of values
 * (host_type.c).
 *
 * Layers, each of which includes only those above it (.ci/check-layers):
 *
 *     host        host.h: functions of the host
 *     module      module.h: what all share; host_value.h: a key's value, and when something is due
 *     set         working_set.h: the keys of one command
 *     effects     host_effects.h: LB.APPLY; host_state.h: what is kept beside the keys
 *     commands    host_run.h: commands, jobs, passes, the filter; host_type.c: the data type; module_load.c */
#ifndef SERVER_MODULE_MODULE_H
#define SERVER_MODULE_MODULE_H

#include "server/clients/server.h"
#include "server/module/host.h"

struct module {
    struct server server; /* settings, clock, statistics, registry; no clients */
    struct session session;
    struct host_context *context;       /* of the command that runs; NULL: none */
    struct host_context *timer_context; /* for what has no command; lives as long as the module */
    struct host_type *type;
    uint32_t database_count; /* of the host */
    uint32_t database;       /* of the host, whose keys are in the working set */
    bool is_cluster;
    bool is_freeing; /* a timer goes on with it */
    /* What the command that runs wants to wait for (BZPOPMIN): see host_run.c. */
    struct {
        bool is_asked;
        const struct bytes *names; /* arguments of the request */
        uint32_t first_key, key_count;
        int64_t due_ms; /* monotonic, or REGISTRY_NO_EXPIRY */
    } wait;
    uint64_t waiting_count; /* clients that may wait */
};
extern struct module module;

/* Later times are damage: the end of the year 9999. */
#define MODULE_TIME_MAX_US (INT64_C(253402300800) * 1000000)

/* More than a day ahead of the server's time: clients may bring no such time. It would move the clock, and an id of
 * that time would not be forgotten for long. */
static inline bool module_is_too_far_ahead(uint64_t time_ms) {
    return time_ms > (uint64_t)module.server.clock.now_ms + 24 * 60 * 60 * 1000;
}

/* Time that came with a board or with effects: the clock never shows less. What does not come from the
 * master or from the host's own files is believed only near the machine's clock. */
void module_raise_clock(struct host_context *ctx, int64_t time_us);
/* Read the clock. Before each command. */
void module_update_time(void);
#ifdef MODULE_TEST
/* From now on this is the time. */
void module_set_test_time(int64_t now_us, int64_t monotonic_ms);
#endif

#endif
