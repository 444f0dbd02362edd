/* The table of metrics, and how it is printed. See metrics.h.
 *
 * A family is one row: its name, what it is, and where its values come from: a field of the figures, or of each
 * command, database, replica or thread, or a function that writes the samples.
 *
 *     family                          OpenMetrics                     Prometheus
 *     counter leaderboard_x           # TYPE leaderboard_x counter    # TYPE leaderboard_x_total counter
 *                                     leaderboard_x_total 1           leaderboard_x_total 1
 *
 * Units are seconds and bytes, and end the family's name. Numbers are printed exactly, from integers. */
#include "server/metrics/metrics.h"

#include <stdarg.h>
#include <stddef.h>

#include "server/dispatch/command.h"
#include "server/http/http_header.h"
#include "server/system/process.h"

enum kind { COUNTER, GAUGE, HISTOGRAM, INFO };

struct page {
    const struct figures *figures;
    enum metrics_format format;
    struct buffer *out;
    const struct family *family; /* being printed */
};

/* One sample, or one for each of these, where it is the label. */
enum per { PER_SERVER, PER_COMMAND, PER_DATABASE, PER_REPLICA, PER_THREAD };
static const char *const label_of[] = {
    [PER_COMMAND] = "command",
    [PER_DATABASE] = "database",
    [PER_REPLICA] = "replica",
    [PER_THREAD] = "thread",
};

struct family {
    const char *name; /* NULL: a heading of the docs */
    enum kind kind;
    const char *help;
    const char *title;
    /* Either a field, of the figures or of each of these ... */
    uint32_t offset;
    enum field_type { FIELD_NONE, FIELD_U64, FIELD_I64, FIELD_U32, FIELD_BOOL } type;
    uint32_t per_unit; /* so many of the field's units are one of the metric's: 1000000 for us */
    enum per per;
    /* ... or a function. */
    void (*write)(struct page *page);
    const char *labels; /* that it writes, for the docs: "`command`" */
};

/* ---- printing ---- */

__attribute__((format(printf, 2, 3))) static void metrics_put(struct page *page, const char *format,
                                                              ...) {
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof line);
    buffer_append(page->out, line, (size_t)size);
}

/* value / per_unit, exactly: per_unit is a power of ten. */
static void metrics_put_value(struct page *page, bool is_negative, uint64_t value,
                              uint32_t per_unit) {
    int digits = 0;
    uint64_t rest = value % per_unit;
    for (uint32_t unit = per_unit; unit > 1; unit /= 10) {
        digits++;
    }
    const char *sign = is_negative ? "-" : "";
    if (rest == 0) {
        metrics_put(page, " %s%llu\n", sign, (unsigned long long)(value / per_unit));
        return;
    }
    while (rest % 10 == 0) {
        rest /= 10;
        digits--;
    }
    metrics_put(page, " %s%llu.%0*llu\n", sign, (unsigned long long)(value / per_unit), digits,
                (unsigned long long)rest);
}

static void metrics_put_name(struct page *page, const char *label, const char *text) {
    const struct family *family = page->family;
    metrics_put(page, "%s%s", family->name, family->kind == COUNTER ? "_total" : "");
    if (label != NULL) {
        metrics_put(page, "{%s=\"%s\"}", label, text);
    }
}

/* A sample of the family being printed: "leaderboard_keys{database="0"} 7". label NULL: none. */
static void metrics_put_sample(struct page *page, const char *label, const char *text,
                               uint64_t value, uint32_t per_unit) {
    metrics_put_name(page, label, text);
    metrics_put_value(page, false, value, per_unit);
}

/* The family's field of an object, as a sample. */
static void metrics_put_field(struct page *page, const void *object, const char *text) {
    const struct family *family = page->family;
    const char *at = (const char *)object + family->offset;
    const char *label = label_of[family->per];
    uint64_t u64 = 0;
    int64_t i64 = 0;
    uint32_t u32 = 0;
    switch (family->type) {
    case FIELD_U64:
        memcpy(&u64, at, sizeof u64);
        break;
    case FIELD_I64:
        memcpy(&i64, at, sizeof i64);
        u64 = i64 < 0 ? 0 - (uint64_t)i64 : (uint64_t)i64;
        break;
    case FIELD_U32:
        memcpy(&u32, at, sizeof u32);
        u64 = u32;
        break;
    case FIELD_BOOL:
        u64 = *at != 0;
        break;
    case FIELD_NONE:
        break;
    }
    metrics_put_name(page, label, text);
    metrics_put_value(page, i64 < 0, u64, family->per_unit);
}

static void metrics_put_commands(struct page *page) {
    for (uint32_t i = 0; i < page->figures->stats.command_count; i++) {
        const struct stats_command *command = &page->figures->commands[i];
        if (command->calls.count > 0 || command->rejected_calls > 0) {
            metrics_put_field(page, command, command_full_name(i));
        }
    }
}

/* Those that have keys, and the first. */
static void metrics_put_databases(struct page *page) {
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        const struct figures_database *database = &page->figures->databases[i];
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        if (i == 0 || database->keys > 0) {
            metrics_put_field(page, database, name);
        }
    }
}

static void metrics_put_replicas(struct page *page) {
    const struct figures_replication *figures = &page->figures->replication;
    for (uint32_t i = 0; i < figures->shown; i++) {
        metrics_put_field(page, &figures->shown_replicas[i], figures->shown_replicas[i].address);
    }
}

static void metrics_put_threads(struct page *page) {
    for (uint32_t i = 0; i < page->figures->stats.network_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        metrics_put_field(page, &page->figures->stats.networks[i], name);
    }
}

static void metrics_put_fields(struct page *page) {
    switch (page->family->per) {
    case PER_SERVER:
        metrics_put_field(page, page->figures, NULL);
        break;
    case PER_COMMAND:
        metrics_put_commands(page);
        break;
    case PER_DATABASE:
        metrics_put_databases(page);
        break;
    case PER_REPLICA:
        metrics_put_replicas(page);
        break;
    case PER_THREAD:
        metrics_put_threads(page);
        break;
    }
}

enum { BUCKET_STEP = 2, BUCKETS_SHOWN = 24 }; /* 1 us, 4 us, 16 us ... 4.2 s */

/* label: "command=\"zadd\"," with the comma, or "". */
static void metrics_put_histogram(struct page *page, const char *label,
                                  const struct durations *durations) {
    const char *name = page->family->name;
    uint64_t seen = 0;
    for (int i = 0; i < BUCKETS_SHOWN; i++) {
        seen += durations->buckets[i];
        if (i % BUCKET_STEP == 0) {
            metrics_put(page, "%s_bucket{%sle=\"%.10g\"} %llu\n", name, label,
                        (double)(UINT64_C(1) << i) / 1e6, (unsigned long long)seen);
        }
    }
    for (int i = BUCKETS_SHOWN; i < DURATIONS_BUCKETS; i++) {
        seen += durations->buckets[i];
    }
    metrics_put(page, "%s_bucket{%sle=\"+Inf\"} %llu\n", name, label, (unsigned long long)seen);
    int size = (int)strlen(label) - 1; /* without the comma */
    char braced[128] = "";
    if (size > 0) {
        snprintf(braced, sizeof braced, "{%.*s}", size, label);
    }
    metrics_put(page, "%s_count%s %llu\n%s_sum%s", name, braced, (unsigned long long)seen, name,
                braced);
    metrics_put_value(page, false, durations->total_ns, 1000000000);
}

/* ---- the families that have labels, or no field ---- */

static void metrics_write_build(struct page *page) {
    metrics_put(page, "%s_info{version=\"%s\",redis_version=\"%s\"} 1\n", page->family->name,
                SERVER_VERSION, SERVER_REDIS_VERSION);
}

static void metrics_write_commands(struct page *page) {
    const struct figures *figures = page->figures;
    for (uint32_t i = 0; i < figures->stats.command_count; i++) {
        char label[COMMAND_FULL_NAME_MAX + 16];
        if (figures->commands[i].calls.count > 0) {
            snprintf(label, sizeof label, "command=\"%s\",", command_full_name(i));
            metrics_put_histogram(page, label, &figures->commands[i].calls);
        }
    }
}

/* A prefix is the first word of an error, which the server chose; what would end a label's value
 * early is shown as '_'. */
static void metrics_write_errors(struct page *page) {
    const struct stats *stats = &page->figures->stats;
    for (uint32_t i = 0; i < stats->error_kind_count; i++) {
        char prefix[sizeof stats->errors[i].prefix];
        memcpy(prefix, stats->errors[i].prefix, sizeof prefix);
        for (char *at = prefix; *at != '\0'; at++) {
            if (*at == '"' || *at == '\\' || *at == '\n') {
                *at = '_';
            }
        }
        metrics_put_sample(page, "prefix", prefix, stats->errors[i].count, 1);
    }
}

static void metrics_write_thread_calls(struct page *page) {
    for (uint32_t i = 0; i < page->figures->stats.network_count; i++) {
        const struct stats_network *network = &page->figures->stats.networks[i];
        metrics_put(page, "%s_total{thread=\"%u\",call=\"read\"} %llu\n", page->family->name, i,
                    (unsigned long long)network->reads);
        metrics_put(page, "%s_total{thread=\"%u\",call=\"write\"} %llu\n", page->family->name, i,
                    (unsigned long long)network->writes);
    }
}

static void metrics_write_memory_used(struct page *page) {
    metrics_put_sample(page, NULL, NULL, memory_used(), 1);
}
static void metrics_write_memory_peak(struct page *page) {
    metrics_put_sample(page, NULL, NULL, memory_used_peak(), 1);
}
static void metrics_write_resident(struct page *page) {
    metrics_put_sample(page, NULL, NULL, process_memory_size(), 1);
}

static void metrics_write_loading_ratio(struct page *page) {
    const struct figures *figures = page->figures;
    metrics_put(page, "%s %.4f\n", page->family->name,
                figures->is_loading ? figures->kept.loading_percent / 100 : 1.0);
}

static void metrics_write_unsynced(struct page *page) {
    const struct persistence_info *kept = &page->figures->kept;
    metrics_put_sample(page, NULL, NULL, kept->group - kept->synced_group, 1);
}

static void metrics_write_syncs(struct page *page) {
    metrics_put_histogram(page, "", &page->figures->kept.syncs);
}

/* The last snapshot that ended; a server without one has no such sample. */
static void metrics_write_save_seconds(struct page *page) {
    const struct persistence_info *kept = &page->figures->kept;
    if (kept->last_save_seconds >= 0) {
        metrics_put_sample(page, NULL, NULL, (uint64_t)kept->last_save_seconds, 1);
    }
}

/* A master has no such samples. */
static void metrics_write_link_up(struct page *page) {
    const struct figures_replication *figures = &page->figures->replication;
    if (figures->is_replica) {
        metrics_put_sample(page, NULL, NULL, figures->is_up, 1);
    }
}

static void metrics_write_link_down(struct page *page) {
    const struct figures_replication *figures = &page->figures->replication;
    if (figures->is_replica) {
        metrics_put_sample(page, NULL, NULL, figures->down_ms > 0 ? (uint64_t)figures->down_ms : 0,
                           1000);
    }
}

static void metrics_put_two(struct page *page, uint64_t copies, uint64_t groups) {
    metrics_put_sample(page, "what", "copies", copies, 1);
    metrics_put_sample(page, "what", "groups", groups, 1);
}

static void metrics_write_replication_sent(struct page *page) {
    const struct replication_counters *counters = &page->figures->replication.counters;
    metrics_put_two(page, counters->copied_size, counters->streamed_size);
}

static void metrics_write_replication_received(struct page *page) {
    const struct replication_counters *counters = &page->figures->replication.counters;
    metrics_put_two(page, counters->received_copy_size, counters->received_size);
}

static void metrics_write_sync_state(struct page *page) {
    for (enum sync_state state = SYNC_OFF; state < SYNC_STATES; state++) {
        metrics_put_sample(page, "state", sync_state_name(state),
                           page->figures->replication.sync.state == state, 1);
    }
}

static void metrics_write_ticks(struct page *page) {
    metrics_put_histogram(page, "", &page->figures->stats.ticks);
}

static void metrics_write_engine_cpu(struct page *page) {
    metrics_put_sample(page, "mode", "system", page->figures->system_us, 1000000);
    metrics_put_sample(page, "mode", "user", page->figures->user_us, 1000000);
}

static void metrics_write_switches(struct page *page) {
    metrics_put_sample(page, "reason", "forced", page->figures->switches_forced, 1);
    metrics_put_sample(page, "reason", "waits", page->figures->switches_own, 1);
}

static void metrics_write_process_cpu(struct page *page) {
    struct timespec used = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    metrics_put_sample(page, NULL, NULL,
                       (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec, 1000000000);
}

/* ---- the table ---- */

#define TYPE_OF(object, field)                                                                     \
    _Generic(((object *)0)->field, uint64_t                                                        \
             : FIELD_U64, int64_t                                                                  \
             : FIELD_I64, uint32_t                                                                 \
             : FIELD_U32, bool                                                                     \
             : FIELD_BOOL)
#define PLACE(object, field, divisor)                                                              \
    .offset = (uint32_t)offsetof(object, field), .type = TYPE_OF(object, field),                   \
    .per_unit = (divisor)
#define SCALED(field, divisor) PLACE(struct figures, field, divisor)
#define VALUE(field)           SCALED(field, 1)
#define OF_EACH(what, object, field, divisor)                                                      \
    PLACE(struct object, field, divisor), .per = PER_##what
#define WRITTEN(function, names) .write = (function), .labels = (names)

static const struct family families[] = {
    {.title = "The server"},
    {"leaderboard_build", INFO, "The version of the server, and of the Redis commands it has",
     WRITTEN(metrics_write_build, "`version`, `redis_version`")},
    {"leaderboard_uptime_seconds", GAUGE, "Time since the server has started",
     SCALED(uptime_ms, 1000)},
    {"leaderboard_loading", GAUGE,
     "1 while the boards are loaded from disk, and commands get -LOADING", VALUE(is_loading)},
    {"leaderboard_loaded_ratio", GAUGE, "How much of what is on disk has been loaded",
     WRITTEN(metrics_write_loading_ratio, "")},
    {"leaderboard_writable", GAUGE,
     "1 if writes are taken; 0 while loading, and while they are refused because the disk cannot "
     "be written (MISCONF)",
     VALUE(is_writable)},
    {"leaderboard_clock_lead_seconds", GAUGE,
     "How far the server's time is ahead of the machine's clock, negative if behind",
     SCALED(clock_lead_us, 1000000)},
    {"leaderboard_clock_steps", COUNTER, "Steps of the machine's clock by more than a minute",
     VALUE(clock_steps)},
    {.title = "Commands"},
    {"leaderboard_commands_processed", COUNTER, "Commands that ran",
     VALUE(stats.commands_processed)},
    {"leaderboard_command_duration_seconds", HISTOGRAM,
     "How long the calls of a command took, of those that were called at all",
     WRITTEN(metrics_write_commands, "`command`")},
    {"leaderboard_command_failures", COUNTER, "Calls that ran and ended in an error",
     OF_EACH(COMMAND, stats_command, failed_calls, 1)},
    {"leaderboard_command_rejections", COUNTER,
     "Calls that were refused before they ran: arity, password, memory, disk, loading",
     OF_EACH(COMMAND, stats_command, rejected_calls, 1)},
    {"leaderboard_error_replies", COUNTER, "Error replies", VALUE(stats.error_replies)},
    {"leaderboard_errors", COUNTER, "Error replies by the word that they begin with",
     WRITTEN(metrics_write_errors, "`prefix`")},
    {"leaderboard_keyspace_hits", COUNTER, "Look-ups of keys by reading commands that found one",
     VALUE(stats.keyspace_hits)},
    {"leaderboard_keyspace_misses", COUNTER, "Those that found none", VALUE(stats.keyspace_misses)},
    {.title = "Boards and keys"},
    {"leaderboard_keys", GAUGE, "Keys; databases without keys are left out, but for 0",
     OF_EACH(DATABASE, figures_database, keys, 1)},
    {"leaderboard_boards", GAUGE, "Keys that hold a board",
     OF_EACH(DATABASE, figures_database, boards, 1)},
    {"leaderboard_members", GAUGE, "Members of all boards",
     OF_EACH(DATABASE, figures_database, members, 1)},
    {"leaderboard_expiring_keys", GAUGE, "Keys with an expiry",
     OF_EACH(DATABASE, figures_database, expiring, 1)},
    {"leaderboard_expired_keys", COUNTER, "Keys removed because they expired",
     VALUE(totals.expired)},
    {"leaderboard_rolled_boards", COUNTER, "Boards rolled over at the end of their period",
     VALUE(totals.rolled)},
    {"leaderboard_unfreed_keys", GAUGE, "Removed keys whose memory is still being freed",
     VALUE(totals.unfreed)},
    {"leaderboard_freed_keys", COUNTER, "Removed keys whose memory has been freed",
     VALUE(totals.freed)},
    {.title = "Memory"},
    {"leaderboard_memory_used_bytes", GAUGE, "Heap in use; maxmemory limits it",
     WRITTEN(metrics_write_memory_used, "")},
    {"leaderboard_memory_peak_bytes", GAUGE, "The most that was ever in use",
     WRITTEN(metrics_write_memory_peak, "")},
    {"leaderboard_memory_limit_bytes", GAUGE, "maxmemory; 0: none", VALUE(memory_limit)},
    {"leaderboard_memory_startup_bytes", GAUGE, "Heap in use after the start",
     VALUE(memory_startup)},
    {"leaderboard_memory_clients_bytes", GAUGE,
     "What clients hold: unfinished requests and unread replies", VALUE(memory_clients)},
    {"leaderboard_memory_clients_limit_bytes", GAUGE, "maxmemory-clients in bytes; 0: none",
     VALUE(memory_clients_limit)},
    {"leaderboard_memory_machine_bytes", GAUGE, "The machine's memory", VALUE(memory_machine)},
    {.title = "Clients and network"},
    {"leaderboard_clients", GAUGE, "Clients that are connected", VALUE(clients)},
    {"leaderboard_clients_limit", GAUGE, "maxclients", VALUE(clients_limit)},
    {"leaderboard_blocked_clients", GAUGE,
     "Clients that wait: for a member (BZPOPMIN), for replicas, or for the end of a pause",
     VALUE(clients_blocked)},
    {"leaderboard_watching_clients", GAUGE, "Clients that watch keys", VALUE(clients_watching)},
    {"leaderboard_subscribed_clients", GAUGE, "Clients that have subscribed to something",
     VALUE(clients_pubsub)},
    {"leaderboard_channels", GAUGE, "Channels with a subscriber", VALUE(channels)},
    {"leaderboard_channel_patterns", GAUGE, "Patterns with a subscriber", VALUE(patterns)},
    {"leaderboard_connections", COUNTER, "Connections accepted", VALUE(stats.connections_received)},
    {"leaderboard_rejected_connections", COUNTER,
     "Connections refused: maxclients, protected-mode, no descriptor",
     VALUE(stats.connections_rejected)},
    {"leaderboard_evicted_clients", COUNTER, "Clients closed by maxmemory-clients",
     VALUE(stats.clients_evicted)},
    {"leaderboard_overflowed_clients", COUNTER, "Clients closed by client-output-buffer-limit",
     VALUE(stats.unexpected_closed_output)},
    {"leaderboard_network_received_bytes", COUNTER, "Bytes of requests", VALUE(stats.input_bytes)},
    {"leaderboard_network_sent_bytes", COUNTER, "Bytes of replies", VALUE(stats.output_bytes)},
    {"leaderboard_io_thread_clients", GAUGE,
     "Clients of each thread that reads and writes, a second ago at most",
     OF_EACH(THREAD, stats_network, client_count, 1)},
    {"leaderboard_io_thread_calls", COUNTER, "System calls of each such thread",
     WRITTEN(metrics_write_thread_calls, "`thread`, `call`")},
    {.title = "Journal and snapshots"},
    {"leaderboard_journal_enabled", GAUGE, "1 if appendonly is on", VALUE(kept.is_journal_on)},
    {"leaderboard_journal_healthy", GAUGE, "0 if the journal cannot be written",
     VALUE(kept.is_journal_ok)},
    {"leaderboard_journal_size_bytes", GAUGE, "Base and journals on disk",
     VALUE(kept.journal_size)},
    {"leaderboard_journal_pending_bytes", GAUGE, "Effects that are not written yet",
     VALUE(kept.waiting_size)},
    {"leaderboard_journal_unsynced_groups", GAUGE, "Ticks whose effects are not synced yet",
     WRITTEN(metrics_write_unsynced, "")},
    {"leaderboard_journal_groups", COUNTER, "Ticks with effects since the journal began",
     VALUE(kept.group)},
    {"leaderboard_journal_fsync_duration_seconds", HISTOGRAM, "How long syncing the journal took",
     WRITTEN(metrics_write_syncs, "")},
    {"leaderboard_journal_fsync_longest_seconds", GAUGE, "The longest of them",
     SCALED(kept.sync_longest_us, 1000000)},
    {"leaderboard_journal_delayed_fsyncs", COUNTER,
     "everysec: a sync was due while the one before still ran", VALUE(kept.delayed_sync_count)},
    {"leaderboard_snapshot_running", GAUGE, "1 while a snapshot is written", VALUE(kept.is_saving)},
    {"leaderboard_snapshot_healthy", GAUGE, "0 if the last snapshot failed",
     VALUE(kept.is_last_save_ok)},
    {"leaderboard_snapshots", COUNTER, "Snapshots that ended well", VALUE(kept.save_count)},
    {"leaderboard_snapshot_last_timestamp_seconds", GAUGE,
     "When the last snapshot ended well, in unix time; at first, when the server started",
     VALUE(kept.last_save_s)},
    {"leaderboard_snapshot_last_duration_seconds", GAUGE,
     "How long it took; missing while there is none", WRITTEN(metrics_write_save_seconds, "")},
    {"leaderboard_snapshot_pending_changes", GAUGE, "Changes since the last snapshot",
     VALUE(kept.changes)},
    {.title = "Replication"},
    {"leaderboard_replica", GAUGE, "1 on a replica, 0 on a master", VALUE(replication.is_replica)},
    {"leaderboard_replication_group", GAUGE,
     "The last group of changes in memory: a replica has its master's numbers",
     VALUE(replication.group)},
    {"leaderboard_connected_replicas", GAUGE, "Replicas of this server",
     VALUE(replication.replicas)},
    {"leaderboard_good_replicas", GAUGE,
     "Of them, those online and heard within min-replicas-max-lag",
     VALUE(replication.good_replicas)},
    {"leaderboard_replica_online", GAUGE,
     "0 while the replica waits for its full copy or receives it; 16 replicas at the most",
     OF_EACH(REPLICA, figures_replica, is_online, 1)},
    {"leaderboard_replica_lag_groups", GAUGE, "Groups that the replica has not acknowledged",
     OF_EACH(REPLICA, figures_replica, lag_groups, 1)},
    {"leaderboard_replica_lag_seconds", GAUGE,
     "Time since the replica last acknowledged, which it does each second",
     OF_EACH(REPLICA, figures_replica, lag_ms, 1000)},
    {"leaderboard_master_link_up", GAUGE,
     "1 while this replica follows its master; missing on a master",
     WRITTEN(metrics_write_link_up, "")},
    {"leaderboard_master_link_down_seconds", GAUGE, "How long it has not; missing on a master",
     WRITTEN(metrics_write_link_down, "")},
    {"leaderboard_master_copy_running", GAUGE, "1 while this replica receives a full copy",
     VALUE(replication.is_copying)},
    {"leaderboard_master_link_losses", COUNTER, "How often the link to the master broke",
     VALUE(replication.counters.link_losses)},
    {"leaderboard_failover_running", GAUGE, "1 during FAILOVER: writes wait",
     VALUE(replication.is_failing_over)},
    {"leaderboard_replication_full_copies", COUNTER, "Full copies sent to replicas",
     VALUE(replication.counters.full_syncs)},
    {"leaderboard_replication_continuations", COUNTER,
     "Replicas that came back and went on where they were",
     VALUE(replication.counters.partial_syncs)},
    {"leaderboard_replication_refused_continuations", COUNTER,
     "Replicas that wanted to, and needed a full copy",
     VALUE(replication.counters.partial_sync_failures)},
    {"leaderboard_replication_sent_bytes", COUNTER,
     "Bytes sent to replicas: full copies, and groups of changes",
     WRITTEN(metrics_write_replication_sent, "`what`")},
    {"leaderboard_replication_received_bytes", COUNTER, "Bytes received from a master: the same",
     WRITTEN(metrics_write_replication_received, "`what`")},
    {"leaderboard_replication_backlog_bytes", GAUGE,
     "Memory for the latest groups; 0 while no replica has been here for repl-backlog-ttl",
     VALUE(replication.backlog_size)},
    {"leaderboard_sync_state", GAUGE, "sync-replicas: 1 for the state that this server is in",
     WRITTEN(metrics_write_sync_state, "`state`")},
    {"leaderboard_sync_replicas", GAUGE, "The setting: so many replicas must have what is answered",
     VALUE(replication.sync.wanted)},
    {"leaderboard_sync_counted_replicas", GAUGE,
     "Of an open master: replicas that are connected in its own term, whose acknowledgements count",
     VALUE(replication.sync.counted)},
    {"leaderboard_sync_unsafe_groups", GAUGE,
     "Of an open master: groups that too few of them have acknowledged; their answers wait",
     VALUE(replication.sync.unsafe)},
    {"leaderboard_sync_held_seconds", GAUGE,
     "How long answers have waited for replicas, since one of them last made some safe",
     SCALED(replication.sync.held_ms, 1000)},
    {"leaderboard_sync_promises", GAUGE, "Of a closed master: servers that have promised its term",
     VALUE(replication.sync.promises)},
    {"leaderboard_sync_promises_needed", GAUGE, "So many must have, before it opens",
     VALUE(replication.sync.promises_needed)},
    {"leaderboard_sync_may_have_forgotten", GAUGE,
     "1: this server has lost durability, and does not count until it is "
     "filled",
     VALUE(replication.sync.has_lost_durability)},
    {.title = "Ticks: a slow host or a slow server"},
    {"leaderboard_tick_duration_seconds", HISTOGRAM,
     "How long the turns of the engine's loop took, from taking requests to sending replies",
     WRITTEN(metrics_write_ticks, "")},
    {"leaderboard_tick_longest_seconds", GAUGE, "The longest of them",
     SCALED(stats.tick_longest_us, 1000000)},
    {"leaderboard_tick_longest_cpu_seconds", GAUGE,
     "The processor time of that one; 0 while no tick has taken a millisecond",
     SCALED(stats.tick_longest_cpu_us, 1000000)},
    {"leaderboard_long_ticks", COUNTER, "Ticks of a millisecond or more",
     VALUE(stats.long_tick_count)},
    {"leaderboard_long_tick_wall_seconds", COUNTER, "How long they took",
     SCALED(stats.long_tick_wall_ns, 1000000000)},
    {"leaderboard_long_tick_cpu_seconds", COUNTER,
     "For how much of that the engine's thread had a processor",
     SCALED(stats.long_tick_cpu_ns, 1000000000)},
    {"leaderboard_engine_cpu_seconds", COUNTER, "Processor time of the engine's thread",
     WRITTEN(metrics_write_engine_cpu, "`mode`")},
    {"leaderboard_engine_context_switches", COUNTER,
     "How often the engine's thread gave its processor away: because another was put in its place "
     "(`forced`), or to wait (`waits`)",
     WRITTEN(metrics_write_switches, "`reason`")},
    {"leaderboard_engine_major_faults", COUNTER,
     "How often the engine's thread waited for memory that had to be read from disk (swap)",
     VALUE(faults)},
    {"leaderboard_scrape_engine_seconds", GAUGE,
     "How long the engine's thread was busy with this scrape", SCALED(look_ns, 1000000000)},
    {.title = "The process"},
    {"process_cpu_seconds", COUNTER, "Processor time of all threads",
     WRITTEN(metrics_write_process_cpu, "")},
    {"process_resident_memory_bytes", GAUGE, "Memory that the process has of the machine",
     WRITTEN(metrics_write_resident, "")},
    {"process_start_time_seconds", GAUGE, "When the process started, in unix time",
     VALUE(started_at_s)},
};
enum { FAMILIES = sizeof families / sizeof families[0] };

static const char *const kind_names[] = {
    [COUNTER] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram", [INFO] = "info"};

/* The name ends with it. */
static const char *metrics_unit(const struct family *family) {
    static const char *const units[] = {"_seconds", "_bytes", "_ratio"};
    size_t size = strlen(family->name);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        size_t unit = strlen(units[i]);
        if (size > unit && strcmp(family->name + size - unit, units[i]) == 0) {
            return units[i] + 1;
        }
    }
    return "";
}

/* Samples of a counter or of information have the family's name and this. */
static const char *metrics_sample_suffix(const struct family *family) {
    return family->kind == COUNTER ? "_total" : family->kind == INFO ? "_info" : "";
}

static void metrics_print_family(struct page *page, const struct family *family) {
    bool is_open = page->format == METRICS_OPENMETRICS;
    const char *suffix = is_open ? "" : metrics_sample_suffix(family);
    const char *kind = family->kind == INFO && !is_open ? "gauge" : kind_names[family->kind];
    metrics_put(page, "# TYPE %s%s %s\n", family->name, suffix, kind);
    if (is_open && metrics_unit(family)[0] != '\0') {
        metrics_put(page, "# UNIT %s %s\n", family->name, metrics_unit(family));
    }
    metrics_put(page, "# HELP %s%s %s.\n", family->name, suffix, family->help);
    page->family = family;
    if (family->write != NULL) {
        family->write(page);
    } else {
        metrics_put_fields(page);
    }
}

void metrics_print(const struct figures *figures, enum metrics_format format, struct buffer *out) {
    struct page page = {.figures = figures, .format = format, .out = out};
    for (size_t i = 0; i < FAMILIES; i++) {
        if (families[i].name != NULL) {
            metrics_print_family(&page, &families[i]);
        }
    }
    if (format == METRICS_OPENMETRICS) {
        metrics_put(&page, "# EOF\n");
    }
}

/* ---- formats ---- */

enum metrics_format metrics_choose(const char *accept) {
    return http_header_quality(accept, "text/plain") >
                   http_header_quality(accept, "application/openmetrics-text")
               ? METRICS_PROMETHEUS
               : METRICS_OPENMETRICS;
}

const char *metrics_content_type(enum metrics_format format) {
    return format == METRICS_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

/* ---- the page ---- */

void metrics_write_docs(FILE *file) {
    fputs("# Metrics\n"
          "\n"
          "`make docs` generates this page from the server's table of metrics. `GET /metrics` "
          "replies them;\n"
          "[monitoring.md](monitoring.md) says how to switch it on, and what to watch.\n"
          "\n"
          "Names are those of the samples: of a histogram there are `_bucket`, `_count` and "
          "`_sum`. Counters begin at 0\n"
          "when the server starts, and those of commands, errors, clients and ticks at `CONFIG "
          "RESETSTAT`. A command\n"
          "has 17 time series once it was called: with 20 commands in use a scrape has about 450 "
          "lines.\n",
          file);
    for (const struct family *family = families; family < families + FAMILIES; family++) {
        if (family->name == NULL) {
            fprintf(file, "\n## %s\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n",
                    family->title);
            continue;
        }
        char labels[32] = "";
        if (label_of[family->per] != NULL) {
            snprintf(labels, sizeof labels, "`%s`", label_of[family->per]);
        }
        fprintf(file, "| `%s%s` | %s | %s | %s |\n", family->name, metrics_sample_suffix(family),
                kind_names[family->kind], family->labels != NULL ? family->labels : labels,
                family->help);
    }
}
