/* INFO: the text read by redis-cli --stat, redis_exporter and dashboards. Fields have Redis's names
 * and units, and are present only if they are meaningful for this server. Our own fields
 * (leaderboard_version, tick_longest_us) are added to them. */
#include "server/commands/admin/info.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "server/clients/once_ids.h"
#include "server/dispatch/command.h"
#include "server/durability/persistence.h"
#include "server/replication/hub.h"
#include "server/replication/replication.h"
#include "server/system/process.h"
#include "skiplist/keyspace/registry_league.h"

double info_percent(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part * 100 / (double)whole : 0;
}

struct info_memory info_measure_memory(const struct server *server) {
    struct info_memory memory = {
        .used = memory_used(),
        .peak = memory_used_peak(),
        .resident = process_memory_size(),
        .startup = server->stats.startup_memory_size,
        .clients = server->sessions.memory.total,
    };
    memory.overhead = memory.startup + memory.clients;
    if (memory.overhead > memory.used) {
        memory.overhead = memory.used; /* startup needed some memory only temporarily */
    }
    memory.dataset_percent =
        memory.used > memory.startup
            ? info_percent(memory.used - memory.overhead, memory.used - memory.startup)
            : 0;
    memory.fragmentation = memory.used > 0 ? (double)memory.resident / (double)memory.used : 0;
    return memory;
}

/* ---- the text ---- */

struct info {
    struct server *server;
    int64_t now_ms;
    struct buffer *out;
};

__attribute__((format(printf, 2, 3))) static void info_put(struct info *info, const char *format,
                                                           ...) {
    char line[8192]; /* fits a path and its field name */
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof line);
    buffer_append(info->out, line, (size_t)size);
    buffer_append(info->out, "\r\n", 2);
}

static void info_put_u64(struct info *info, const char *name, uint64_t value) {
    info_put(info, "%s:%llu", name, (unsigned long long)value);
}

/* "name:1536" and "name_human:1.50K", sizes formatted as in Redis. */
static void info_put_size(struct info *info, const char *name, uint64_t size) {
    static const char units[] = "BKMGTP";
    double shown = (double)size;
    unsigned unit = 0;
    while (shown >= 1024 && unit + 2 < sizeof units) {
        shown /= 1024;
        unit++;
    }
    info_put_u64(info, name, size);
    info_put(info, "%s_human:%.*f%c", name, unit == 0 ? 0 : 2, shown, units[unit]);
}

/* The server's time relative to the machine's clock. */
static void info_print_clock(struct info *info) {
    const struct clock *clock = &info->server->clock;
    info_put(info, "clock_state:%s", clock_state_name(clock->state));
    info_put(info, "clock_offset_ms:%lld", (long long)(clock->lead_us / 1000));
    info_put_u64(info, "clock_steps", clock->step_count);
    info_put(info, "clock_last_step_ms:%lld", (long long)(clock->step_us / 1000));
    info_put(info, "clock_last_step_time:%lld", (long long)(clock->step_at_us / 1000000));
}

static void info_print_server(struct info *info) {
    const struct server *server = info->server;
    struct utsname os = {0};
    uname(&os);
    int64_t uptime_s = (server->clock.monotonic_ms - server->about.started_at_ms) / 1000;
    info_put(info, "redis_version:%s", SERVER_REDIS_VERSION);
    info_put(info, "leaderboard_version:%s", SERVER_VERSION);
    info_put(info, "redis_mode:standalone");
    info_put(info, "os:%s %s %s", os.sysname, os.release, os.machine);
    info_put(info, "arch_bits:%zu", sizeof(void *) * 8);
    info_put_u64(info, "process_id", (uint64_t)getpid());
    info_put(info, "run_id:%s", server->about.run_id);
    info_put_u64(info, "tcp_port", (uint64_t)server->about.tcp_port);
    info_put_u64(info, "server_time_usec", (uint64_t)server->clock.now_us);
    info_print_clock(info);
    info_put_u64(info, "uptime_in_seconds", (uint64_t)uptime_s);
    info_put_u64(info, "uptime_in_days", (uint64_t)uptime_s / 86400);
    info_put(info, "executable:%s", server->about.executable_path);
    info_put(info, "config_file:%s",
             server->settings.file_path != NULL ? server->settings.file_path : "");
    info_put(info, "config_rewrite_status:%s", server->rewrite.is_owed ? "err" : "ok");
    if (server->ending.retiring.is_begun) {
        int64_t left_ms = server->ending.retiring.until_ms - server->clock.monotonic_ms;
        info_put(info, "shutdown_in_milliseconds:%lld", (long long)(left_ms > 0 ? left_ms : 0));
    }
    info_put_u64(info, "io_threads_active", server->stats.network_count > 1);
    for (uint32_t i = 0; i < server->stats.network_count; i++) {
        const struct stats_network *network = &server->stats.networks[i];
        info_put(info, "io_thread_%u:clients=%u,reads=%llu,writes=%llu", i, network->client_count,
                 (unsigned long long)network->reads, (unsigned long long)network->writes);
    }
}

static void info_print_clients(struct info *info) {
    /* As in Redis: without replicas. */
    info_put_u64(info, "connected_clients",
                 info->server->sessions.count - info->server->replication.replica_count);
    info_put(info, "cluster_connections:0");
    info_put_u64(info, "maxclients", (uint64_t)info->server->settings.maxclients);
    info_put_u64(info, "client_recent_max_input_buffer", info->server->stats.input_buffer_max);
    info_put_u64(info, "client_recent_max_output_buffer", info->server->stats.output_buffer_max);
    info_put_u64(info, "blocked_clients",
                 (uint64_t)info->server->waits.client_count +
                     info->server->sessions.postponed_count);
    info_put(info, "tracking_clients:0");
    info_put_u64(info, "pubsub_clients", info->server->subscriptions.client_count);
    info_put_u64(info, "watching_clients", info->server->watches.client_count);
    info_put_u64(info, "total_watched_keys", watch_key_count(&info->server->watches));
}

static uint64_t info_replicas_memory_size(const struct server *server) {
    uint64_t size = 0;
    for (const struct replica *replica = server->replication.replicas; replica != NULL;
         replica = replica->next) {
        size += session_memory_size(replica->session);
    }
    return size;
}

static uint64_t info_journal_buffer_size(const struct server *server) {
    struct persistence_info kept = {.waiting_size = 0};
    if (server->persistence != NULL) {
        persistence_describe(server->persistence, &kept);
    }
    return kept.waiting_size;
}

static void info_print_memory(struct info *info) {
    const struct server *server = info->server;
    struct info_memory memory = info_measure_memory(server);
    info_put_size(info, "used_memory", memory.used);
    info_put_size(info, "used_memory_rss", memory.resident);
    info_put_size(info, "used_memory_peak", memory.peak);
    info_put(info, "used_memory_peak_perc:%.2f%%", info_percent(memory.used, memory.peak));
    info_put_u64(info, "used_memory_overhead", memory.overhead);
    info_put_u64(info, "used_memory_startup", memory.startup);
    info_put_u64(info, "used_memory_dataset", memory.used - memory.overhead);
    info_put(info, "used_memory_dataset_perc:%.2f%%", memory.dataset_percent);
    info_put_size(info, "total_system_memory", server->about.machine_memory_size);
    info_put_size(info, "maxmemory", server->settings.maxmemory);
    info_put(info, "maxmemory_policy:noeviction");
    info_put(info, "mem_fragmentation_ratio:%.2f", memory.fragmentation);
    info_put(info, "mem_fragmentation_bytes:%lld",
             (long long)memory.resident - (long long)memory.used);
    info_put_u64(info, "mem_clients_normal", memory.clients);
    info_put_u64(info, "maxmemory_clients", server_client_memory_limit(server));
    info_put_u64(info, "mem_clients_slaves", info_replicas_memory_size(server));
    info_put_u64(info, "mem_replication_backlog", server->replication.backlog_size);
    info_put_u64(info, "mem_total_replication_buffers",
                 server->replication.backlog_size + info_replicas_memory_size(server));
    info_put_u64(info, "mem_aof_buffer", info_journal_buffer_size(server));
    info_put(info, "mem_not_counted_for_evict:0"); /* all counts towards maxmemory */
    info_put_u64(info, "allocator_allocated", memory.used);
    info_put_u64(info, "allocator_resident", memory.resident);
    info_put(info, "mem_allocator:%s", memory_allocator());
    info_put(info, "active_defrag_running:0");
    info_put_u64(info, "lazyfree_pending_objects", registry_totals(server->registry)->unfreed);
    info_put_u64(info, "lazyfreed_objects", registry_totals(server->registry)->freed);
}

static void info_put_i64(struct info *info, const char *name, int64_t value) {
    info_put(info, "%s:%lld", name, (long long)value);
}

static const char *info_status_text(bool is_ok) {
    return is_ok ? "ok" : "err";
}

/* BGSAVE and BGREWRITEAOF are the same snapshot here, so both groups of fields describe it. */
static void info_print_snapshot(struct info *info, const struct persistence_info *kept) {
    info_put(info, "current_cow_peak:0");
    info_put(info, "current_cow_size:0");
    info_put(info, "current_cow_size_age:0");
    info_put(info, "current_fork_perc:0.00");
    info_put_u64(info, "snapshot_members_saved", kept->saved_members);
    info_put_u64(info, "rdb_changes_since_last_save", kept->changes);
    info_put(info, "rdb_bgsave_in_progress:%d", kept->is_saving);
    info_put_i64(info, "rdb_last_save_time", kept->last_save_s);
    info_put(info, "rdb_last_bgsave_status:%s", info_status_text(kept->is_last_save_ok));
    info_put_i64(info, "rdb_last_bgsave_time_sec", kept->last_save_seconds);
    info_put_i64(info, "rdb_current_bgsave_time_sec", kept->current_save_seconds);
    info_put_u64(info, "rdb_saves", kept->save_count);
    info_put(info, "rdb_last_cow_size:0");
    info_put(info, "aof_enabled:%d", kept->is_journal_on);
    info_put(info, "aof_rewrite_in_progress:%d", kept->is_saving);
    info_put(info, "aof_rewrite_scheduled:0");
    info_put_i64(info, "aof_last_rewrite_time_sec", kept->last_save_seconds);
    info_put_i64(info, "aof_current_rewrite_time_sec", kept->current_save_seconds);
    info_put(info, "aof_last_bgrewrite_status:%s", info_status_text(kept->is_last_save_ok));
    info_put_u64(info, "aof_rewrites", kept->save_count);
    info_put(info, "aof_last_write_status:%s", info_status_text(kept->is_journal_ok));
    info_put(info, "aof_last_cow_size:0");
}

static void info_print_journal(struct info *info, const struct persistence_info *kept) {
    bool is_synced_by_us = info->server->settings.appendfsync != SETTING_APPENDFSYNC_NO;
    info_put_u64(info, "aof_current_size", kept->journal_size);
    info_put_u64(info, "aof_base_size", kept->journal_base_size);
    info_put(info, "aof_pending_rewrite:0");
    info_put_u64(info, "aof_buffer_length", kept->waiting_size);
    info_put(info, "aof_pending_bio_fsync:%d",
             is_synced_by_us && kept->written_group > kept->synced_group);
    info_put_u64(info, "aof_delayed_fsync", kept->delayed_sync_count);
    info_put_u64(info, "journal_group", kept->group);
    info_put_u64(info, "journal_written_group", kept->written_group);
    info_put_u64(info, "journal_synced_group", kept->synced_group);
    info_put_u64(info, "journal_fsync_longest_us", kept->sync_longest_us);
}

static void info_print_loading(struct info *info, const struct persistence_info *kept) {
    info_put_i64(info, "loading_start_time", kept->loading_start_s);
    info_put_u64(info, "loading_total_bytes", kept->loading_total_size);
    info_put_u64(info, "loading_loaded_bytes", kept->loading_loaded_size);
    info_put(info, "loading_loaded_perc:%.2f", kept->loading_percent);
    info_put_i64(info, "loading_eta_seconds", kept->loading_eta_s);
    info_put_u64(info, "loading_loaded_members", kept->loading_members);
}

static void info_print_persistence(struct info *info) {
    const struct server *server = info->server;
    struct persistence_info kept = {
        .is_last_save_ok = true,
        .last_save_s = server->about.started_at_s,
        .last_save_seconds = -1,
        .current_save_seconds = -1,
        .is_journal_ok = true,
    };
    if (server->persistence != NULL) {
        persistence_describe(server->persistence, &kept);
    }
    info_put(info, "loading:%d", server->durability.is_loading);
    info_put(info, "async_loading:0");
    info_print_snapshot(info, &kept);
    if (kept.is_journal_on) {
        info_print_journal(info, &kept);
    }
    if (server->durability.is_loading) {
        info_print_loading(info, &kept);
    }
}

static uint64_t info_topic_count(const struct info *info, enum subscription_kind kind) {
    return subscription_topic_count(&info->server->subscriptions, kind);
}

static void info_print_sync_counters(struct info *info) {
    const struct replication_counters *counters = &info->server->replication.counters;
    info_put_u64(info, "total_net_repl_input_bytes",
                 counters->received_copy_size + counters->received_size);
    info_put_u64(info, "total_net_repl_output_bytes",
                 counters->copied_size + counters->streamed_size);
    info_put_u64(info, "sync_full", counters->full_syncs);
    info_put_u64(info, "sync_partial_ok", counters->partial_syncs);
    info_put_u64(info, "sync_partial_err", counters->partial_sync_failures);
}

/* System calls of all threads that have sockets; io_threaded_...: of those beside the engine's. */
static void info_print_reads(struct info *info) {
    const struct stats *stats = &info->server->stats;
    uint64_t reads = 0, writes = 0;
    for (uint32_t i = 0; i < stats->network_count; i++) {
        reads += stats->networks[i].reads;
        writes += stats->networks[i].writes;
    }
    info_put_u64(info, "total_reads_processed", reads);
    info_put_u64(info, "total_writes_processed", writes);
    info_put_u64(info, "io_threaded_reads_processed", stats->network_count > 1 ? reads : 0);
    info_put_u64(info, "io_threaded_writes_processed", stats->network_count > 1 ? writes : 0);
}

static void info_print_denied(struct info *info) {
    const struct acl_log *log = &info->server->acl.log;
    info_put_u64(info, "acl_access_denied_auth", log->denied_auth);
    info_put_u64(info, "acl_access_denied_cmd", log->denied_command);
    info_put_u64(info, "acl_access_denied_key", log->denied_key);
    info_put_u64(info, "acl_access_denied_channel", log->denied_channel);
}

static void info_print_stats(struct info *info) {
    const struct stats *stats = &info->server->stats;
    info_put_u64(info, "total_connections_received", stats->connections_received);
    info_put_u64(info, "total_commands_processed", stats->commands_processed);
    info_put(info, "instantaneous_ops_per_sec:%.0f", stats->commands_per_second);
    info_put_u64(info, "total_net_input_bytes", stats->input_bytes);
    info_put_u64(info, "total_net_output_bytes", stats->output_bytes);
    info_put(info, "instantaneous_input_kbps:%.2f", stats->input_kbps);
    info_put(info, "instantaneous_output_kbps:%.2f", stats->output_kbps);
    info_put_u64(info, "rejected_connections", stats->connections_rejected);
    info_put_u64(info, "expired_keys", registry_totals(info->server->registry)->expired);
    info_put(info, "expired_time_cap_reached_count:0");
    info_put_u64(info, "windows_behind", registry_behind_count(info->server->registry));
    info_put_u64(info, "rolled_boards", registry_totals(info->server->registry)->rolled);
    info_put_u64(info, "stale_members", registry_totals(info->server->registry)->stale);
    info_put_u64(info, "settled_archives", registry_totals(info->server->registry)->settled);
    info_put_u64(info, "unsettled_archives", registry_unsettled_count(info->server->registry));
    info_put_u64(info, "leagues", registry_league_count(info->server->registry));
    info_put_u64(info, "league_settled_members",
                 registry_totals(info->server->registry)->league_settled);
    info_put_u64(info, "once_ids", registry_member_count(info->server->registry, REGISTRY_ONCE));
    info_put_u64(info, "once_bytes", once_ids_size(info->server));
    info_put_u64(info, "once_repeated", stats->once_repeated);
    info_put_u64(info, "once_refused", stats->once_refused);
    info_put(info, "evicted_keys:0");
    info_put_u64(info, "evicted_clients", stats->clients_evicted);
    info_put_u64(info, "keyspace_hits", stats->keyspace_hits);
    info_put_u64(info, "keyspace_misses", stats->keyspace_misses);
    info_put_u64(info, "pubsub_channels", info_topic_count(info, SUBSCRIPTION_CHANNEL));
    info_put_u64(info, "pubsub_patterns", info_topic_count(info, SUBSCRIPTION_PATTERN));
    info_put_u64(info, "pubsubshard_channels", info_topic_count(info, SUBSCRIPTION_SHARD));
    info_print_sync_counters(info);
    info_put(info, "latest_fork_usec:0");
    info_put(info, "total_forks:0");
    info_put(info,
             "unexpected_error_replies:0"); /* of commands that a master or the journal sent */
    info_put_u64(info, "total_error_replies", stats->error_replies);
    info_print_denied(info);
    info_print_reads(info);
    info_put_u64(info, "client_output_buffer_limit_disconnections",
                 stats->unexpected_closed_output);
    info_put_u64(info, "eventloop_cycles", stats->ticks.count);
    info_put_u64(info, "tick_longest_us", stats->tick_longest_us);
    info_put_u64(info, "tick_longest_cpu_us", stats->tick_longest_cpu_us);
    info_put_u64(info, "tick_busiest_us", stats->tick_busiest_us);
    info_put_u64(info, "tick_busy_count", stats->tick_busy_count);
    info_put_u64(info, "tick_total_us", stats->ticks.total_ns / 1000);
    info_put_u64(info, "tick_long_count", stats->long_tick_count);
    info_put_u64(info, "tick_long_us", stats->long_tick_wall_ns / 1000);
    info_put_u64(info, "tick_long_cpu_us", stats->long_tick_cpu_ns / 1000);
}

/* Seconds since a time of the monotonic clock. */
static int64_t info_seconds_since(const struct info *info, int64_t at_ms) {
    int64_t past_ms = info->server->clock.monotonic_ms - at_ms;
    return past_ms > 0 ? past_ms / 1000 : 0;
}

/* The copy that is being received. */
static void info_print_copy(struct info *info, const struct replication *replication) {
    uint64_t total = replication->copy_size;
    uint64_t read = replication->copy_read_size;
    info_put_u64(info, "master_sync_total_bytes", total);
    info_put_u64(info, "master_sync_read_bytes", read);
    info_put_u64(info, "master_sync_left_bytes", total > read ? total - read : 0);
    info_put(info, "master_sync_perc:%.2f", info_percent(read, total));
    info_put_i64(info, "master_sync_last_io_seconds_ago",
                 info_seconds_since(info, replication->copy_at_ms));
}

/* Of a replica. Sentinel wants them behind role, in any order. */
static void info_print_link(struct info *info) {
    const struct server *server = info->server;
    const struct replication *replication = &server->replication;
    bool is_up = replication_is_up(replication);
    bool is_copying = replication->link == REPLICATION_LINK_SYNC;
    info_put(info, "master_host:%s", replication->master_host);
    info_put_u64(info, "master_port", replication->master_port);
    info_put(info, "master_link_status:%s", is_up ? "up" : "down");
    info_put(info, "master_link_state:%s", replication_link_name(replication->link));
    info_put_i64(info, "master_last_io_seconds_ago",
                 is_up ? info_seconds_since(info, replication->heard_at_ms) : -1);
    info_put(info, "master_sync_in_progress:%d", is_copying);
    info_put_u64(info, "slave_read_repl_offset", replication->read_group);
    info_put_u64(info, "slave_repl_offset", replication->group);
    if (is_copying) {
        info_print_copy(info, replication);
    }
    if (!is_up) {
        info_put_i64(info, "master_link_down_since_seconds",
                     info_seconds_since(info, replication->link_down_at_ms));
    }
    if (replication->error[0] != '\0') {
        info_put(info, "master_link_error:%s", replication->error);
    }
    replicator_print_source(replication->replicator, info->out);
    info_put_i64(info, "slave_priority", replication_priority(server));
    info_put(info, "slave_read_only:1");
    info_put(info, "replica_announced:%d", server->settings.replica_announced);
}

static void info_print_replicas(struct info *info) {
    const struct server *server = info->server;
    const struct replication *replication = &server->replication;
    uint32_t number = 0;
    info_put_u64(info, "connected_slaves", replication->replica_count);
    if (server->settings.min_replicas_to_write > 0 && server->settings.min_replicas_max_lag_s > 0) {
        info_put_u64(info, "min_slaves_good_slaves", replication_count_good(server));
    }
    for (const struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        char address[REPLICATION_HOST_MAX + 1];
        replication_print_address(replica, address);
        info_put(info, "slave%u:ip=%s,port=%u,state=%s,offset=%llu,lag=%lld", number++, address,
                 replica->port, replica_state_name(replica->state),
                 (unsigned long long)replica->ack_group,
                 (long long)info_seconds_since(info, replica->ack_at_ms));
    }
}

/* sync-replicas */
static void info_print_sync(struct info *info, const struct sync *sync) {
    if (sync->state == SYNC_OFF) {
        return;
    }
    info_put(info, "sync_state:%s", sync_state_name(sync->state));
    info_put(info, "sync_node:%016llx", (unsigned long long)sync->node);
    info_put(info, "sync_voted:%s", sync->voted.text);
    info_put_u64(info, "sync_lost_durability", sync->has_lost_durability);
    if (sync_is_closed(sync)) {
        info_put_u64(info, "sync_votes", sync->vote_count);
        info_put_u64(info, "sync_votes_needed", sync->votes_needed);
    } else if (sync->state == SYNC_OPEN) {
        info_put_u64(info, "sync_safe_offset", sync->safe_group);
        info_put_u64(info, "sync_counted_replicas", sync->counted);
        info_put_i64(info, "sync_held_seconds",
                     sync_held_ms(sync, info->server->clock.monotonic_ms) / 1000);
    }
}

static void info_print_replication(struct info *info) {
    const struct replication *replication = &info->server->replication;
    bool has_second = strspn(replication->second_id, "0") < REPLICATION_ID_SIZE;
    bool has_backlog = replication->backlog_size > 0;
    info_put(info, "role:%s", replication_is_replica(replication) ? "slave" : "master");
    if (replication_is_replica(replication)) {
        info_print_link(info);
    } else { /* so early that it is in what a balancer reads first */
        info_put(info, "serves_as_master:%d", replication_serves_as_master(info->server));
    }
    info_print_replicas(info);
    info_put(info, "master_failover_state:%s",
             replication_failover_name(replication->failover.state));
    info_put(info, "master_replid:%s", replication->id);
    info_put(info, "master_replid2:%s", replication->second_id);
    info_put_u64(info, "master_repl_offset", replication->group);
    info_print_sync(info, &replication->sync);
    info_put_i64(info, "second_repl_offset",
                 has_second ? (int64_t)replication->second_until + 1 : -1);
    info_put(info, "repl_backlog_active:%d", has_backlog);
    info_put_u64(info, "repl_backlog_size", info->server->settings.repl_backlog_size);
    info_put_u64(info, "repl_backlog_first_byte_offset",
                 has_backlog ? replication->backlog_first_group : 0);
    info_put_u64(info, "repl_backlog_histlen", has_backlog ? replication->backlog_used_size : 0);
}

static void info_put_time(struct info *info, const char *name, struct timeval time) {
    info_put(info, "%s:%lld.%06ld", name, (long long)time.tv_sec, (long)time.tv_usec);
}

static void info_print_cpu(struct info *info) {
    struct rusage self = {0};
    struct rusage children = {0};
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    info_put_time(info, "used_cpu_sys", self.ru_stime);
    info_put_time(info, "used_cpu_user", self.ru_utime);
    info_put_time(info, "used_cpu_sys_children", children.ru_stime);
    info_put_time(info, "used_cpu_user_children", children.ru_utime);
#ifdef RUSAGE_THREAD
    struct rusage thread = {0};
    getrusage(RUSAGE_THREAD, &thread);
    info_put_time(info, "used_cpu_sys_main_thread", thread.ru_stime);
    info_put_time(info, "used_cpu_user_main_thread", thread.ru_utime);
#endif
}

static void info_print_nothing(struct info *info) {
    (void)info;
}

static void info_print_commandstats(struct info *info) {
    const struct stats *stats = &info->server->stats;
    for (uint32_t i = 0; i < stats->command_count; i++) {
        const struct stats_command *command = &stats->commands[i];
        if (command->calls.count == 0 && command->rejected_calls == 0) {
            continue;
        }
        double us = (double)command->calls.total_ns / 1000;
        info_put(info,
                 "cmdstat_%s:calls=%llu,usec=%llu,usec_per_call=%.2f,rejected_calls=%llu,"
                 "failed_calls=%llu",
                 command_full_name(i), (unsigned long long)command->calls.count,
                 (unsigned long long)(command->calls.total_ns / 1000),
                 command->calls.count > 0 ? us / (double)command->calls.count : 0,
                 (unsigned long long)command->rejected_calls,
                 (unsigned long long)command->failed_calls);
    }
}

static void info_print_errorstats(struct info *info) {
    const struct stats *stats = &info->server->stats;
    for (uint32_t i = 0; i < stats->error_kind_count; i++) {
        info_put(info, "errorstat_%s:count=%llu", stats->errors[i].prefix,
                 (unsigned long long)stats->errors[i].count);
    }
}

static void info_print_latencystats(struct info *info) {
    const struct stats *stats = &info->server->stats;
    for (uint32_t i = 0; i < stats->command_count; i++) {
        const struct stats_command *command = &stats->commands[i];
        if (stats_percentile_us(command, 1) == 0) {
            continue;
        }
        info_put(info, "latency_percentiles_usec_%s:p50=%llu,p99=%llu,p99.9=%llu",
                 command_full_name(i), (unsigned long long)stats_percentile_us(command, 0.5),
                 (unsigned long long)stats_percentile_us(command, 0.99),
                 (unsigned long long)stats_percentile_us(command, 0.999));
    }
}

static void info_print_cluster(struct info *info) {
    info_put(info, "cluster_enabled:0");
}

static void info_print_keyspace(struct info *info) {
    struct registry *registry = info->server->registry;
    if (!info->server->durability.is_loading) {
        (void)registry_roll_some(registry, info->now_ms);
    }
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        uint32_t count = registry_count(registry, database);
        if (count > 0) {
            info_put(info, "db%u:keys=%u,expires=%u,avg_ttl=%lld", database, count,
                     registry_expiring_count(registry, database),
                     (long long)registry_average_ttl_ms(registry, database, info->now_ms));
        }
    }
}

static const struct section {
    const char *name, *title;
    bool is_default;
    void (*print)(struct info *info);
} sections[] = {
    {"server", "Server", true, info_print_server},
    {"clients", "Clients", true, info_print_clients},
    {"memory", "Memory", true, info_print_memory},
    {"persistence", "Persistence", true, info_print_persistence},
    {"stats", "Stats", true, info_print_stats},
    {"replication", "Replication", true, info_print_replication},
    {"cpu", "CPU", true, info_print_cpu},
    {"modules", "Modules", true, info_print_nothing},
    {"commandstats", "Commandstats", false, info_print_commandstats},
    {"errorstats", "Errorstats", true, info_print_errorstats},
    {"latencystats", "Latencystats", false, info_print_latencystats},
    {"cluster", "Cluster", true, info_print_cluster},
    {"keyspace", "Keyspace", true, info_print_keyspace},
};

enum { SECTION_COUNT = sizeof sections / sizeof sections[0] };

/* The sections as a bit set, in the order above. */
static uint32_t info_default_sections(void) {
    uint32_t wanted = 0;
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        wanted |= (uint32_t)sections[i].is_default << i;
    }
    return wanted;
}

static uint32_t info_named_sections(struct bytes name) {
    if (bytes_is(name, "all") || bytes_is(name, "everything")) {
        return (UINT32_C(1) << SECTION_COUNT) - 1;
    }
    if (bytes_is(name, "default")) {
        return info_default_sections();
    }
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        if (bytes_is(name, sections[i].name)) {
            return UINT32_C(1) << i;
        }
    }
    return 0;
}

void info_print(struct server *server, int64_t now_ms, const struct bytes *names,
                uint32_t name_count, struct buffer *out) {
    struct info info = {.server = server, .now_ms = now_ms, .out = out};
    bool is_first = true;
    uint32_t wanted = name_count == 0 ? info_default_sections() : 0;
    for (uint32_t i = 0; i < name_count; i++) {
        wanted |= info_named_sections(names[i]);
    }
    /* Each section once, in table order, however often and in whatever order they are named. */
    for (uint32_t i = 0; i < SECTION_COUNT; i++) {
        if ((wanted >> i & 1) == 0) {
            continue;
        }
        info_put(&info, "%s# %s", is_first ? "" : "\r\n", sections[i].title);
        sections[i].print(&info);
        is_first = false;
    }
}
