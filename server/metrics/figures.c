/* See figures.h. */
#include "server/metrics/figures.h"

#include <stdio.h>
#include <sys/resource.h>

#include "server/replication/replication.h"
#include "skiplist/keyspace/registry_league.h"

static void figures_take_databases(const struct registry *registry, struct figures *figures) {
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        figures->databases[i] = (struct figures_database){
            .keys = registry_count(registry, i),
            .boards = registry_board_count(registry, i),
            .expiring = registry_expiring_count(registry, i),
            .members = registry_member_count(registry, i),
        };
    }
    figures->totals = *registry_totals(registry);
    figures->unsettled = registry_unsettled_count(registry);
    figures->leagues = registry_league_count(registry);
    figures->windows_behind = registry_behind_count(registry);
}

/* The name of the user with these ids, or if it is not fit for a label or nobody's any more, with their number. */
static void figures_put_owner(const struct server *server, uint16_t owner, char *out) {
    const struct acl_users *users = &server->acl.users;
    struct bytes name = BYTES("");
    for (uint32_t i = 0; i < users->count; i++) {
        if (once_ids_owner_named(users->at[i]->name) == owner) {
            name = users->at[i]->name;
        }
    }
    int size = name.size < FIGURES_USER_MAX / 2 ? (int)name.size : FIGURES_USER_MAX / 2;
    bool is_fit = size > 0 && (size_t)size == name.size;
    for (int i = 0; i < size; i++) {
        bool is_plain = name.at[i] > ' ' && name.at[i] <= '~' && strchr("\"\\", name.at[i]) == NULL;
        out[i] = is_plain ? name.at[i] : '_';
        is_fit &= is_plain;
    }
    out[size] = '\0';
    if (!is_fit) {
        snprintf(out + size, FIGURES_USER_MAX / 2, "#%u", (unsigned)owner);
    }
}

static void figures_take_once(const struct server *server, struct figures *figures) {
    struct once_ids_share top[ONCE_IDS_TOP];
    figures->once_user_count = once_ids_top(server, top);
    for (uint32_t i = 0; i < figures->once_user_count; i++) {
        figures_put_owner(server, top[i].owner, figures->once_users[i].user);
        figures->once_users[i].ids = top[i].count;
    }
    figures->once_ids = registry_member_count(server->registry, REGISTRY_ONCE);
    figures->once_max = (uint64_t)server->settings.once_max;
    figures->once_size = once_ids_size(server);
}

static void figures_take_clients(const struct server *server, struct figures *figures) {
    figures->clients = server->sessions.count;
    figures->clients_limit = (uint64_t)server->settings.maxclients;
    figures->clients_blocked =
        (uint64_t)server->waits.client_count + server->sessions.postponed_count;
    figures->clients_watching = server->watches.client_count;
    figures->clients_pubsub = server->subscriptions.client_count;
    figures->channels = subscription_topic_count(&server->subscriptions, SUBSCRIPTION_CHANNEL);
    figures->patterns = subscription_topic_count(&server->subscriptions, SUBSCRIPTION_PATTERN);
}

static uint64_t figures_microseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

static void figures_take_thread(struct figures *figures) {
#ifdef RUSAGE_THREAD
    struct rusage usage = {0};
    (void)getrusage(RUSAGE_THREAD, &usage);
    figures->user_us = figures_microseconds(usage.ru_utime);
    figures->system_us = figures_microseconds(usage.ru_stime);
    figures->switches_forced = (uint64_t)usage.ru_nivcsw;
    figures->switches_own = (uint64_t)usage.ru_nvcsw;
    figures->faults = (uint64_t)usage.ru_majflt;
#else
    (void)figures;
#endif
}

static void figures_take_replicas(const struct server *server,
                                  struct figures_replication *figures) {
    const struct replica *replica = server->replication.replicas;
    for (; replica != NULL && figures->shown < FIGURES_REPLICAS_MAX; replica = replica->next) {
        struct figures_replica *shown = &figures->shown_replicas[figures->shown++];
        char address[REPLICATION_HOST_MAX + 1];
        replication_print_address(replica, address);
        snprintf(shown->address, sizeof shown->address, "%s:%u", address, replica->port);
        shown->state = replica->state;
        shown->is_online = replica->state == REPLICA_ONLINE;
        shown->lag_groups =
            figures->group > replica->ack_group ? figures->group - replica->ack_group : 0;
        int64_t lag_ms = server->clock.monotonic_ms - replica->ack_at_ms;
        shown->lag_ms = lag_ms > 0 ? lag_ms : 0;
    }
}

static void figures_take_link(const struct server *server, struct figures_replication *figures) {
    const struct replication *replication = &server->replication;
    if (!figures->is_replica) {
        return;
    }
    figures->link = replication->link;
    snprintf(figures->master, sizeof figures->master, "%s:%u", replication->master_host,
             replication->master_port);
    figures->heard_ms = figures->is_up ? server->clock.monotonic_ms - replication->heard_at_ms : -1;
    figures->unapplied_groups = replication->read_group > replication->group
                                    ? replication->read_group - replication->group
                                    : 0;
    if (figures->is_copying) {
        figures->copy_size = replication->copy_size;
        figures->copy_read_size = replication->copy_read_size;
    }
    snprintf(figures->error, sizeof figures->error, "%s", replication->error);
}

static void figures_take_sync(const struct server *server, struct figures_replication *figures) {
    const struct sync *sync = &server->replication.sync;
    bool is_open = sync->state == SYNC_OPEN;
    bool is_closed = sync_is_closed(sync);
    figures->sync = (struct figures_sync){
        .state = sync->state,
        .has_lost_durability = sync->has_lost_durability,
        .wanted = (uint64_t)server->settings.sync_replicas,
        .counted = is_open ? sync->counted : 0,
        .votes = is_closed ? sync->vote_count : 0,
        .votes_needed = is_closed ? sync->votes_needed : 0,
        .unsafe =
            is_open && figures->group > sync->safe_group ? figures->group - sync->safe_group : 0,
        .held_ms = sync_held_ms(sync, server->clock.monotonic_ms),
    };
}

static void figures_take_replication(const struct server *server, struct figures *all) {
    const struct replication *replication = &server->replication;
    struct figures_replication *figures = &all->replication;
    bool is_replica = replication_is_replica(replication);
    bool is_up = is_replica && replication_is_up(replication);
    *figures = (struct figures_replication){
        .is_replica = is_replica,
        .is_up = is_up,
        .is_copying = replication->link == REPLICATION_LINK_SYNC,
        .is_failing_over = replication->failover.state != REPLICATION_FAILOVER_NONE,
        .group = replication->group,
        .replicas = replication->replica_count,
        .good_replicas = replication_count_good(server),
        .backlog_size = replication->backlog_size,
        .down_ms =
            is_replica && !is_up ? server->clock.monotonic_ms - replication->link_down_at_ms : 0,
        .counters = replication->counters,
    };
    figures_take_replicas(server, figures);
    figures_take_link(server, figures);
    figures_take_sync(server, figures);
}

void figures_take(const struct server *server, struct figures *figures) {
    uint64_t begin = clock_ticks();
    size_t commands_size = server->stats.command_count * sizeof(struct stats_command);
    figures->stats = server->stats;
    figures->stats.commands = NULL;
    memcpy(figures->commands, server->stats.commands, commands_size);
    figures->kept = (struct persistence_info){
        .is_last_save_ok = true,
        .last_save_s = server->about.started_at_s,
        .last_save_seconds = -1,
        .is_journal_ok = true,
    };
    if (server->persistence != NULL) {
        persistence_describe(server->persistence, &figures->kept);
    }
    figures_take_databases(server->registry, figures);
    figures_take_once(server, figures);
    figures_take_clients(server, figures);
    figures_take_replication(server, figures);
    figures_take_thread(figures);
    figures->memory_limit = server->settings.maxmemory;
    figures->memory_clients = server->sessions.memory.total;
    figures->memory_clients_limit = server_client_memory_limit(server);
    figures->memory_startup = server->stats.startup_memory_size;
    figures->memory_machine = server->about.machine_memory_size;
    figures->uptime_ms = server->clock.monotonic_ms - server->about.started_at_ms;
    figures->started_at_s = server->about.started_at_s;
    figures->clock_lead_us = server->clock.lead_us;
    figures->clock_steps = server->clock.step_count;
    figures->is_loading = server->durability.is_loading;
    figures->is_role_written = !server->rewrite.is_owed;
    figures->is_writable =
        !server->durability.is_loading && server->durability.write_refusal == NULL;
    figures->look_ns = clock_ticks_to_ns(clock_ticks() - begin);
}
