/* What the metrics show, as it was at one moment: copied on the engine's thread between two ticks,
 * printed on the HTTP thread afterwards. So a scrape costs the engine the copying alone: some
 * microseconds, however many boards there are. */
#ifndef SERVER_FIGURES_H
#define SERVER_FIGURES_H

#include "server/clients/server.h"
#include "server/durability/persistence.h"

struct figures_database {
    uint32_t keys, boards, expiring;
    uint64_t members;
};

struct figures {
    struct stats stats; /* its commands are those below */
    struct persistence_info kept;
    struct figures_database databases[REGISTRY_DATABASES];
    struct registry_totals totals;
    uint64_t memory_limit, memory_clients, memory_clients_limit, memory_startup, memory_machine;
    uint64_t clients, clients_limit, clients_blocked, clients_watching, clients_pubsub;
    uint64_t channels, patterns;
    int64_t uptime_ms;
    int64_t started_at_s;
    int64_t clock_lead_us;
    uint64_t clock_steps;
    bool is_loading, is_writable;
    /* of the engine's thread */
    uint64_t user_us, system_us, switches_forced, switches_own, faults;
    uint64_t look_ns;                /* how long this copy took */
    struct stats_command commands[]; /* stats.command_count of them */
};

/* For a server with so many commands. */
static inline size_t figures_size(uint32_t command_count) {
    return sizeof(struct figures) + command_count * sizeof(struct stats_command);
}
/* On the engine's thread. */
void figures_take(const struct server *server, struct figures *figures);

#endif
