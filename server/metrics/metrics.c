/* The table of metrics, and how it is printed. See metrics.h.
 *
 * A family is one row: its name, what it is, and which field of the figures, or of each command, database, replica or
 * thread, its values are. Rows without a name are further samples of the family before them.
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

/* One sample, or one for each of these, where it is the label. */
enum per {
    PER_SERVER,
    PER_SCRAPE, /* the same, of what the figures do not have */
    PER_COMMAND,
    PER_ERROR,
    PER_DATABASE,
    PER_REPLICA,
    PER_SYNC_STATE,
    PER_THREAD,
    PER_ONCE_USER,
};
static const char *const label_of[] = {
    [PER_COMMAND] = "command", [PER_ERROR] = "prefix",     [PER_DATABASE] = "database",
    [PER_REPLICA] = "replica", [PER_SYNC_STATE] = "state", [PER_THREAD] = "thread",
    [PER_ONCE_USER] = "user",
};

struct family {
    const char *name; /* NULL: a heading of the docs, or a further sample of the family before */
    enum kind kind;
    const char *help;
    /* A field of the figures, or of each of these. */
    uint32_t offset;
    enum field_type {
        FIELD_U64,
        FIELD_I64,
        FIELD_U32,
        FIELD_BOOL,
        FIELD_OPTIONAL, /* int64_t; negative: there is no sample */
        FIELD_DURATIONS,
    } type;
    uint32_t per_unit; /* so many of the field's units are one of the metric's: 1000000 for us */
    enum per per;
    const char *label; /* a further one, with its value: "mode=\"user\"" */
    const char *title;
};

/* What the figures do not have as a field. */
struct scrape {
    uint64_t one, memory_used, memory_peak, resident, cpu_ns, unsynced;
    uint64_t loaded; /* of 10000 */
    int64_t link_up, link_down_ms;
    uint64_t is_state[SYNC_STATES];
};

struct page {
    const struct figures *figures;
    struct scrape scrape;
    enum metrics_format format;
    struct buffer *out;
    const struct family *family; /* being printed */
    const struct family *sample; /* the same, or the row of a further sample */
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

enum { LABELS_MAX = 768 }; /* a replica's host has up to 255 bytes */

/* The labels of the sample without their braces: "thread=\"0\",call=\"read\"". */
static void metrics_print_labels(const struct family *sample, const char *value,
                                 char labels[LABELS_MAX]) {
    const char *more = sample->label != NULL ? sample->label : "";
    const char *name = label_of[sample->per];
    const char *comma = name != NULL && more[0] != '\0' ? "," : "";
    int size = name == NULL
                   ? snprintf(labels, LABELS_MAX, "%s", more)
                   : snprintf(labels, LABELS_MAX, "%s=\"%s\"%s%s", name, value, comma, more);
    CHECK(size >= 0 && size < LABELS_MAX);
}

enum { BUCKET_STEP = 2, BUCKETS_SHOWN = 24 }; /* 1 us, 4 us, 16 us ... 4.2 s */

static void metrics_put_histogram(struct page *page, const char *labels,
                                  const struct durations *durations) {
    const char *name = page->family->name;
    const char *comma = labels[0] != '\0' ? "," : "";
    uint64_t seen = 0;
    for (int i = 0; i < DURATIONS_BUCKETS; i++) {
        seen += durations->buckets[i];
        if (i < BUCKETS_SHOWN && i % BUCKET_STEP == 0) {
            metrics_put(page, "%s_bucket{%s%sle=\"%.10g\"} %llu\n", name, labels, comma,
                        (double)(UINT64_C(1) << i) / 1e6, (unsigned long long)seen);
        }
    }
    metrics_put(page, "%s_bucket{%s%sle=\"+Inf\"} %llu\n", name, labels, comma,
                (unsigned long long)seen);
    const char *open = comma[0] != '\0' ? "{" : "";
    const char *close = comma[0] != '\0' ? "}" : "";
    metrics_put(page, "%s_count%s%s%s %llu\n%s_sum%s%s%s", name, open, labels, close,
                (unsigned long long)seen, name, open, labels, close);
    metrics_put_value(page, false, durations->total_ns, 1000000000);
}

/* Samples of a counter or of information have the family's name and this. */
static const char *metrics_sample_suffix(const struct family *family) {
    return family->kind == COUNTER ? "_total" : family->kind == INFO ? "_info" : "";
}

/* The field of an object as a number. false: there is no sample. */
static bool metrics_read_field(enum field_type type, const char *at, bool *is_negative,
                               uint64_t *value) {
    int64_t i64;
    uint32_t u32;
    *is_negative = false;
    switch (type) {
    case FIELD_U64:
        memcpy(value, at, sizeof *value);
        break;
    case FIELD_I64:
    case FIELD_OPTIONAL:
        memcpy(&i64, at, sizeof i64);
        *is_negative = i64 < 0;
        *value = i64 < 0 ? 0 - (uint64_t)i64 : (uint64_t)i64;
        break;
    case FIELD_U32:
        memcpy(&u32, at, sizeof u32);
        *value = u32;
        break;
    case FIELD_BOOL:
        *value = *at != 0;
        break;
    case FIELD_DURATIONS:
        return false;
    }
    return type != FIELD_OPTIONAL || !*is_negative;
}

/* A sample: the row's field of this object, which the label names. */
static void metrics_put_sample(struct page *page, const void *object, const char *name) {
    const struct family *sample = page->sample;
    const char *at = (const char *)object + sample->offset;
    char labels[LABELS_MAX];
    bool is_negative = false;
    uint64_t value = 0;
    metrics_print_labels(sample, name, labels);
    if (sample->type == FIELD_DURATIONS) {
        metrics_put_histogram(page, labels, (const struct durations *)(const void *)at);
    } else if (metrics_read_field(sample->type, at, &is_negative, &value)) {
        metrics_put(page, labels[0] != '\0' ? "%s%s{%s}" : "%s%s%s", page->family->name,
                    metrics_sample_suffix(page->family), labels);
        metrics_put_value(page, is_negative, value, sample->per_unit);
    }
}

/* ---- the objects that have samples ---- */

static void metrics_put_commands(struct page *page) {
    bool is_histogram = page->sample->type == FIELD_DURATIONS;
    for (uint32_t i = 0; i < page->figures->stats.command_count; i++) {
        const struct stats_command *command = &page->figures->commands[i];
        if (command->calls.count > 0 || (!is_histogram && command->rejected_calls > 0)) {
            metrics_put_sample(page, command, command_full_name(i));
        }
    }
}

/* A prefix is the first word of an error, which the server chose; what would end a label's value
 * early is shown as '_'. */
static void metrics_put_errors(struct page *page) {
    const struct stats *stats = &page->figures->stats;
    for (uint32_t i = 0; i < stats->error_kind_count; i++) {
        char prefix[sizeof stats->errors[i].prefix];
        memcpy(prefix, stats->errors[i].prefix, sizeof prefix);
        for (char *at = prefix; *at != '\0'; at++) {
            if (*at == '"' || *at == '\\' || *at == '\n') {
                *at = '_';
            }
        }
        metrics_put_sample(page, &stats->errors[i], prefix);
    }
}

static void metrics_put_numbered(struct page *page, const void *object, uint32_t number) {
    char name[16];
    snprintf(name, sizeof name, "%u", number);
    metrics_put_sample(page, object, name);
}

/* Of databases those that have keys, and the first. */
static void metrics_put_samples(struct page *page) {
    const struct figures *figures = page->figures;
    const struct figures_replication *replication = &figures->replication;
    switch (page->sample->per) {
    case PER_SERVER:
        metrics_put_sample(page, figures, NULL);
        break;
    case PER_SCRAPE:
        metrics_put_sample(page, &page->scrape, NULL);
        break;
    case PER_COMMAND:
        metrics_put_commands(page);
        break;
    case PER_ERROR:
        metrics_put_errors(page);
        break;
    case PER_DATABASE:
        for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
            if (i == 0 || figures->databases[i].keys > 0) {
                metrics_put_numbered(page, &figures->databases[i], i);
            }
        }
        break;
    case PER_REPLICA:
        for (uint32_t i = 0; i < replication->shown; i++) {
            const struct figures_replica *replica = &replication->shown_replicas[i];
            metrics_put_sample(page, replica, replica->address);
        }
        break;
    case PER_SYNC_STATE:
        for (enum sync_state state = SYNC_OFF; state < SYNC_STATES; state++) {
            metrics_put_sample(page, &page->scrape.is_state[state], sync_state_name(state));
        }
        break;
    case PER_THREAD:
        for (uint32_t i = 0; i < figures->stats.network_count; i++) {
            metrics_put_numbered(page, &figures->stats.networks[i], i);
        }
        break;
    case PER_ONCE_USER:
        for (uint32_t i = 0; i < figures->once_user_count; i++) {
            metrics_put_sample(page, &figures->once_users[i], figures->once_users[i].user);
        }
        break;
    }
}

static void metrics_take_scrape(const struct figures *figures, struct scrape *scrape) {
    const struct figures_replication *replication = &figures->replication;
    struct timespec used = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    *scrape = (struct scrape){
        .one = 1,
        .memory_used = memory_used(),
        .memory_peak = memory_used_peak(),
        .resident = process_memory_size(),
        .cpu_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec,
        .unsynced = figures->kept.group - figures->kept.synced_group,
        .loaded = figures->is_loading ? (uint64_t)(figures->kept.loading_percent * 100) : 10000,
        .link_up = replication->is_replica ? replication->is_up : -1,
        .link_down_ms = !replication->is_replica   ? -1
                        : replication->down_ms > 0 ? replication->down_ms
                                                   : 0,
    };
    scrape->is_state[replication->sync.state] = 1;
}

/* ---- the table ---- */

#define TYPE_OF(object, field)                                                                     \
    _Generic(((object *)0)->field, uint64_t                                                        \
             : FIELD_U64, int64_t                                                                  \
             : FIELD_I64, uint32_t                                                                 \
             : FIELD_U32, bool                                                                     \
             : FIELD_BOOL, struct durations                                                        \
             : FIELD_DURATIONS)
#define PLACE(object, field, divisor)                                                              \
    .offset = (uint32_t)offsetof(object, field), .type = TYPE_OF(object, field),                   \
    .per_unit = (divisor)
#define SCALED(field, divisor) PLACE(struct figures, field, divisor)
#define VALUE(field)           SCALED(field, 1)
#define OPTIONAL(object, field, divisor)                                                           \
    .offset = (uint32_t)offsetof(object, field), .type = FIELD_OPTIONAL, .per_unit = (divisor)
#define SCRAPED(field, divisor) PLACE(struct scrape, field, divisor), .per = PER_SCRAPE
#define OF_EACH(what, object, field, divisor)                                                      \
    PLACE(struct object, field, divisor), .per = PER_##what

static const struct family families[] = {
    {.title = "The server"},
    {"leaderboard_build", INFO, "The version of the server, and of the Redis commands it has",
     SCRAPED(one, 1),
     .label = "version=\"" SERVER_VERSION "\",redis_version=\"" SERVER_REDIS_VERSION "\""},
    {"leaderboard_uptime_seconds", GAUGE, "Time since the server has started",
     SCALED(uptime_ms, 1000)},
    {"leaderboard_loading", GAUGE,
     "1 while the boards are loaded from disk, and commands get -LOADING", VALUE(is_loading)},
    {"leaderboard_loaded_ratio", GAUGE, "How much of what is on disk has been loaded",
     SCRAPED(loaded, 10000)},
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
     OF_EACH(COMMAND, stats_command, calls, 1)},
    {"leaderboard_command_failures", COUNTER, "Calls that ran and ended in an error",
     OF_EACH(COMMAND, stats_command, failed_calls, 1)},
    {"leaderboard_command_rejections", COUNTER,
     "Calls that were refused before they ran: arity, password, memory, disk, loading",
     OF_EACH(COMMAND, stats_command, rejected_calls, 1)},
    {"leaderboard_error_replies", COUNTER, "Error replies", VALUE(stats.error_replies)},
    {"leaderboard_errors", COUNTER, "Error replies by the word that they begin with",
     OF_EACH(ERROR, stats_error, count, 1)},
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
    {"leaderboard_windows_behind", GAUGE,
     "Periods that have to leave boards with a WINDOW and have not yet", VALUE(windows_behind)},
    {"leaderboard_stale_members", COUNTER, "Members that have left a board because of its STALE",
     VALUE(totals.stale)},
    {"leaderboard_settled_archives", COUNTER, "Archives that LB.SETTLE has settled",
     VALUE(totals.settled)},
    {"leaderboard_once_ids", GAUGE, "Ids of results that are known when they come again (ONCE)",
     VALUE(once_ids)},
    {"leaderboard_once_ids_limit", GAUGE, "once-max", VALUE(once_max)},
    {"leaderboard_once_user_ids", GAUGE, "Of these ids those of the eight users who have most",
     OF_EACH(ONCE_USER, figures_once_user, ids, 1)},
    {"leaderboard_once_bytes", GAUGE, "What these ids take of the memory", VALUE(once_size)},
    {"leaderboard_once_repeated_results", COUNTER,
     "Results that had come before, and changed nothing", VALUE(stats.once_repeated)},
    {"leaderboard_once_refused_results", COUNTER,
     "Results refused with TRYAGAIN, as there were once-max younger ids",
     VALUE(stats.once_refused)},
    {"leaderboard_unsettled_archives", GAUGE, "Archives that nobody has settled", VALUE(unsettled)},
    {"leaderboard_leagues", GAUGE, "Leagues of all databases", VALUE(leagues)},
    {"leaderboard_league_settled_members", COUNTER,
     "Members of leagues who had not come before the archive of their room went",
     VALUE(totals.league_settled)},
    {"leaderboard_unfreed_keys", GAUGE, "Removed keys whose memory is still being freed",
     VALUE(totals.unfreed)},
    {"leaderboard_freed_keys", COUNTER, "Removed keys whose memory has been freed",
     VALUE(totals.freed)},
    {.title = "Memory"},
    {"leaderboard_memory_used_bytes", GAUGE, "Heap in use; maxmemory limits it",
     SCRAPED(memory_used, 1)},
    {"leaderboard_memory_peak_bytes", GAUGE, "The most that was ever in use",
     SCRAPED(memory_peak, 1)},
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
     OF_EACH(THREAD, stats_network, reads, 1), .label = "call=\"read\""},
    {OF_EACH(THREAD, stats_network, writes, 1), .label = "call=\"write\""},
    {.title = "Journal and snapshots"},
    {"leaderboard_journal_enabled", GAUGE, "1 if appendonly is on", VALUE(kept.is_journal_on)},
    {"leaderboard_journal_healthy", GAUGE, "0 if the journal cannot be written",
     VALUE(kept.is_journal_ok)},
    {"leaderboard_journal_size_bytes", GAUGE, "Base and journals on disk",
     VALUE(kept.journal_size)},
    {"leaderboard_journal_pending_bytes", GAUGE, "Effects that are not written yet",
     VALUE(kept.waiting_size)},
    {"leaderboard_journal_unsynced_groups", GAUGE, "Ticks whose effects are not synced yet",
     SCRAPED(unsynced, 1)},
    {"leaderboard_journal_groups", COUNTER, "Ticks with effects since the journal began",
     VALUE(kept.group)},
    {"leaderboard_journal_fsync_duration_seconds", HISTOGRAM, "How long syncing the journal took",
     VALUE(kept.syncs)},
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
     "How long it took; missing while there is none",
     OPTIONAL(struct figures, kept.last_save_seconds, 1)},
    {"leaderboard_snapshot_pending_changes", GAUGE, "Changes since the last snapshot",
     VALUE(kept.changes)},
    {.title = "Replication"},
    {"leaderboard_config_rewrite_healthy", GAUGE,
     "0 while the file of settings says another role than this server has: it could not be "
     "written, "
     "and is tried again",
     VALUE(is_role_written)},
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
     OPTIONAL(struct scrape, link_up, 1), .per = PER_SCRAPE},
    {"leaderboard_master_link_down_seconds", GAUGE, "How long it has not; missing on a master",
     OPTIONAL(struct scrape, link_down_ms, 1000), .per = PER_SCRAPE},
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
     VALUE(replication.counters.copied_size), .label = "what=\"copies\""},
    {VALUE(replication.counters.streamed_size), .label = "what=\"groups\""},
    {"leaderboard_replication_received_bytes", COUNTER, "Bytes received from a master: the same",
     VALUE(replication.counters.received_copy_size), .label = "what=\"copies\""},
    {VALUE(replication.counters.received_size), .label = "what=\"groups\""},
    {"leaderboard_replication_backlog_bytes", GAUGE,
     "Memory for the latest groups; 0 while no replica has been here for repl-backlog-ttl",
     VALUE(replication.backlog_size)},
    {"leaderboard_sync_state", GAUGE, "sync-replicas: 1 for the state that this server is in",
     .type = FIELD_U64, .per_unit = 1, .per = PER_SYNC_STATE},
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
    {"leaderboard_sync_votes", GAUGE, "Of a closed master: servers that have voted for its term",
     VALUE(replication.sync.votes)},
    {"leaderboard_sync_votes_needed", GAUGE, "So many must have, before it opens",
     VALUE(replication.sync.votes_needed)},
    {"leaderboard_sync_lost_durability", GAUGE,
     "1: this server has lost durability, and does not count until it is "
     "filled",
     VALUE(replication.sync.has_lost_durability)},
    {.title = "Ticks: a slow host or a slow server"},
    {"leaderboard_tick_duration_seconds", HISTOGRAM,
     "How long the turns of the engine's loop took, from taking requests to sending replies",
     VALUE(stats.ticks)},
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
     SCALED(system_us, 1000000), .label = "mode=\"system\""},
    {SCALED(user_us, 1000000), .label = "mode=\"user\""},
    {"leaderboard_engine_context_switches", COUNTER,
     "How often the engine's thread gave its processor away: because another was put in its place "
     "(`forced`), or to wait (`waits`)",
     VALUE(switches_forced), .label = "reason=\"forced\""},
    {VALUE(switches_own), .label = "reason=\"waits\""},
    {"leaderboard_engine_major_faults", COUNTER,
     "How often the engine's thread waited for memory that had to be read from disk (swap)",
     VALUE(faults)},
    {"leaderboard_scrape_engine_seconds", GAUGE,
     "How long the engine's thread was busy with this scrape", SCALED(look_ns, 1000000000)},
    {.title = "The process"},
    {"process_cpu_seconds", COUNTER, "Processor time of all threads", SCRAPED(cpu_ns, 1000000000)},
    {"process_resident_memory_bytes", GAUGE, "Memory that the process has of the machine",
     SCRAPED(resident, 1)},
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

static void metrics_begin_family(struct page *page, const struct family *family) {
    bool is_open = page->format == METRICS_OPENMETRICS;
    const char *suffix = is_open ? "" : metrics_sample_suffix(family);
    const char *kind = family->kind == INFO && !is_open ? "gauge" : kind_names[family->kind];
    metrics_put(page, "# TYPE %s%s %s\n", family->name, suffix, kind);
    if (is_open && metrics_unit(family)[0] != '\0') {
        metrics_put(page, "# UNIT %s %s\n", family->name, metrics_unit(family));
    }
    metrics_put(page, "# HELP %s%s %s.\n", family->name, suffix, family->help);
}

void metrics_print(const struct figures *figures, enum metrics_format format, struct buffer *out) {
    struct page page = {.figures = figures, .format = format, .out = out, .family = families};
    metrics_take_scrape(figures, &page.scrape);
    for (const struct family *row = families; row < families + FAMILIES; row++) {
        if (row->name != NULL) {
            metrics_begin_family(&page, row);
            page.family = row;
        }
        if (row->title == NULL) {
            page.sample = row;
            metrics_put_samples(&page);
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

/* The names of its labels: "`thread`, `call`". */
static void metrics_write_labels(const struct family *family, FILE *file) {
    const char *comma = "";
    if (label_of[family->per] != NULL) {
        fprintf(file, "`%s`", label_of[family->per]);
        comma = ", ";
    }
    for (const char *at = family->label; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        fprintf(file, "%s`%.*s`", comma, (int)strcspn(at, "="), at);
        comma = ", ";
    }
}

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
        if (family->title != NULL) {
            fprintf(file, "\n## %s\n\n| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n",
                    family->title);
        } else if (family->name != NULL) {
            fprintf(file, "| `%s%s` | %s | ", family->name, metrics_sample_suffix(family),
                    kind_names[family->kind]);
            metrics_write_labels(family, file);
            fprintf(file, " | %s |\n", family->help);
        }
    }
}
