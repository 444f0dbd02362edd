/* What the metrics show, as it was at one moment: copied on the engine's thread between two ticks,
 * printed on the HTTP thread afterwards. So a scrape costs the engine the copying alone: some
 * microseconds, however many boards there are. */
#ifndef SERVER_FIGURES_H
#define SERVER_FIGURES_H

#include "server/clients/once_ids.h"
#include "server/durability/persistence.h"

struct figures_database {
    uint32_t keys, boards, expiring;
    uint64_t members;
};

/* A replica of this server. */
struct figures_replica {
    char address[REPLICATION_HOST_MAX + 8]; /* "10.0.0.2:6379" */
    bool is_online;
    enum replica_state state;
    uint64_t lag_groups; /* that it has not acknowledged */
    int64_t lag_ms;      /* since its last acknowledgement */
};
enum {
    FIGURES_REPLICAS_MAX = 16, /* that are shown */
    FIGURES_USER_MAX = 512,    /* bytes of a user's name as a label */
};

struct figures_replication {
    bool is_replica, is_up, is_copying, is_failing_over;
    uint64_t group;
    uint64_t replicas, good_replicas;
    uint64_t backlog_size;
    int64_t down_ms; /* of the link; of a master 0 */
    /* of a replica */
    enum replication_link link;
    char master[REPLICATION_HOST_MAX + 8]; /* "10.0.0.1:6379" */
    int64_t heard_ms;                   /* since the master's last byte; -1: the link is not up */
    uint64_t unapplied_groups;          /* that have come, and are not in memory yet */
    uint64_t copy_size, copy_read_size; /* of a full copy that comes; 0: not known */
    char error[REPLICATION_ERROR_MAX];  /* why the link stopped; "": it did not */
    struct figures_sync {
        enum sync_state state;
        bool has_lost_durability;
        uint64_t wanted, counted; /* replicas: sync-replicas; those whose acknowledgements count */
        uint64_t votes, votes_needed;
        uint64_t unsafe; /* groups whose answers wait */
        int64_t held_ms;
    } sync;
    struct replication_counters counters;
    uint32_t shown;
    struct figures_replica shown_replicas[FIGURES_REPLICAS_MAX];
};

struct figures {
    struct stats stats; /* its commands are those below */
    struct persistence_info kept;
    struct figures_database databases[REGISTRY_DATABASES];
    struct registry_totals totals;
    uint64_t unsettled; /* archives */
    uint64_t leagues;
    uint64_t windows_behind;
    uint64_t memory_limit, memory_clients, memory_clients_limit, memory_startup, memory_machine;
    uint64_t clients, clients_limit, clients_blocked, clients_watching, clients_pubsub;
    uint64_t channels, patterns;
    uint64_t once_ids, once_max, once_size;
    struct figures_once_user {
        char user[FIGURES_USER_MAX]; /* fit for a label */
        uint64_t ids;
    } once_users[ONCE_IDS_TOP]; /* those who have most */
    uint32_t once_user_count;
    int64_t uptime_ms;
    int64_t started_at_s;
    int64_t clock_lead_us;
    uint64_t clock_steps;
    bool is_loading, is_writable, is_role_written;
    struct figures_replication replication;
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
