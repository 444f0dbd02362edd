/* What is taken first, then the table, then how a row is read. See figures.h. */
#include "server/metrics/figures.h"

#include <stddef.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "server/dispatch/command.h"
#include "server/replication/replication.h"
#include "server/sessions/tracking.h"
#include "server/system/process.h"

static double figures_percent(uint64_t part, uint64_t whole) {
    return whole > 0 ? (double)part * 100 / (double)whole : 0;
}

/* ---- on the engine's thread ---- */

static void figures_take_databases(const struct server *server, struct figures *figures) {
    const struct registry *registry = server->registry;
    figures->all = registry_count_all(registry);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        figures->databases[i] = (struct figures_database){
            .keys = registry_count(registry, i),
            .boards = registry_board_count(registry, i),
            .expiring = registry_expiry_count(registry, i),
            .average_ttl_ms = registry_expiry_average_ttl_ms(registry, i, server->clock.now_ms),
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

static void figures_take_clients(const struct server *server, struct figures *figures) {
    const struct stats *stats = &figures->stats;
    figures->clients = server->sessions.count;
    figures->clients_alone = server->sessions.count - server->replication.replica_count;
    figures->watched_keys = watch_key_count(&server->watches);
    figures->clients_limit = (uint64_t)server->settings.maxclients;
    figures->clients_blocked =
        (uint64_t)server->waits.client_count + server->sessions.postponed_count;
    figures->clients_watching = server->watches.client_count;
    figures->tracking_clients = server->tracking.client_count;
    figures->tracking_keys = tracking_key_count(&server->tracking);
    figures->tracking_items = tracking_item_count(&server->tracking);
    figures->tracking_prefixes = tracking_prefix_count(&server->tracking);
    figures->clients_pubsub = server->subscriptions.client_count;
    figures->channels = subscription_topic_count(&server->subscriptions, SUBSCRIPTION_CHANNEL);
    figures->patterns = subscription_topic_count(&server->subscriptions, SUBSCRIPTION_PATTERN);
    figures->shard_channels = subscription_topic_count(&server->subscriptions, SUBSCRIPTION_SHARD);
    figures->reads = figures->writes = 0;
    for (uint32_t i = 0; i < stats->network_count; i++) {
        figures->reads += stats->networks[i].reads;
        figures->writes += stats->networks[i].writes;
    }
    figures->has_threads = stats->network_count > 1;
    figures->threaded_reads = figures->has_threads ? figures->reads : 0;
    figures->threaded_writes = figures->has_threads ? figures->writes : 0;
    figures->input_rate = stats->input_kbps * 1024;
    figures->output_rate = stats->output_kbps * 1024;
}

static void figures_take_persistence(const struct server *server, struct figures *figures) {
    struct persistence_info *kept = &figures->kept;
    *kept = (struct persistence_info){
        .is_last_save_ok = true,
        .last_save_s = server->about.started_at_s,
        .last_save_seconds = -1,
        .current_save_seconds = -1,
        .is_journal_ok = true,
    };
    if (server->persistence != NULL) {
        persistence_describe(server->persistence, kept);
    }
    figures->unsynced_groups = kept->group - kept->synced_group;
    figures->is_loading = server->durability.is_loading;
    figures->loaded = figures->is_loading ? (uint64_t)(kept->loading_percent * 100) : 10000;
    figures->is_sync_pending = server->settings.appendfsync != SETTING_APPENDFSYNC_NO &&
                               kept->written_group > kept->synced_group;
    figures->is_writable = !figures->is_loading && server->durability.write_refusal == NULL;
}

static uint64_t figures_microseconds(struct timeval time) {
    return (uint64_t)time.tv_sec * 1000000 + (uint64_t)time.tv_usec;
}

/* Since a time of the monotonic clock. */
static int64_t figures_passed_ms(const struct server *server, int64_t at_ms) {
    int64_t passed_ms = server->clock.monotonic_ms - at_ms;
    return passed_ms > 0 ? passed_ms : 0;
}

static void figures_take_replicas(const struct server *server,
                                  struct figures_replication *figures) {
    static const char *const states[] = {[REPLICA_HANDSHAKE] = "handshake",
                                         [REPLICA_WAITS] = "waiting",
                                         [REPLICA_COPIES] = "copying",
                                         [REPLICA_ONLINE] = "online"};
    const struct replica *replica = server->replication.replicas;
    for (; replica != NULL && figures->shown < FIGURES_REPLICAS_MAX; replica = replica->next) {
        struct figures_replica *shown = &figures->shown_replicas[figures->shown++];
        char address[REPLICATION_HOST_MAX + 1];
        replication_print_address(replica, address);
        snprintf(shown->address, sizeof shown->address, "%s:%u", address, replica->port);
        shown->state = states[replica->state];
        shown->is_online = replica->state == REPLICA_ONLINE;
        shown->lag_groups =
            figures->group > replica->ack_group ? figures->group - replica->ack_group : 0;
        shown->lag_ms = figures_passed_ms(server, replica->ack_at_ms);
    }
}

static void figures_take_link(const struct server *server, struct figures_replication *figures) {
    const struct replication *replication = &server->replication;
    uint64_t read = replication->copy_read_size;
    uint64_t size = replication->copy_size;
    figures->up = figures->down_ms = -1;
    if (!figures->is_replica) {
        return;
    }
    figures->up = figures->is_up;
    figures->is_down = !figures->is_up;
    figures->down_ms = figures->is_up ? 0 : figures_passed_ms(server, replication->link_down_at_ms);
    figures->link = replication_link_name(replication->link);
    figures->link_status = figures->is_up ? "up" : "down";
    snprintf(figures->master, sizeof figures->master, "%s:%u", replication->master_host,
             replication->master_port);
    figures->heard_ms = figures->is_up ? server->clock.monotonic_ms - replication->heard_at_ms : -1;
    figures->heard_s =
        figures->is_up ? figures_passed_ms(server, replication->heard_at_ms) / 1000 : -1;
    figures->unapplied_groups = replication->read_group > replication->group
                                    ? replication->read_group - replication->group
                                    : 0;
    if (figures->is_copying) {
        figures->copy_size = size;
        figures->copy_read_size = read;
        figures->copy_left_size = size > read ? size - read : 0;
        figures->copy_percent = figures_percent(read, size);
        figures->copy_heard_ms = figures_passed_ms(server, replication->copy_at_ms);
    }
    figures->has_error = replication->error[0] != '\0';
    snprintf(figures->error, sizeof figures->error, "%s", replication->error);
}

static void figures_take_sync(const struct server *server, struct figures_replication *figures) {
    const struct sync *sync = &server->replication.sync;
    bool is_open = sync->state == SYNC_OPEN;
    bool is_closed = sync_is_closed(sync);
    figures->sync = (struct figures_sync){
        .state = sync->state,
        .state_name = replication_sync_state_name(sync->state),
        .is_on = sync->state != SYNC_OFF,
        .is_closed = is_closed,
        .is_open = is_open,
        .has_lost_durability = sync->has_lost_durability,
        .wanted = (uint64_t)server->settings.sync_replicas,
        .counted = is_open ? sync->counted : 0,
        .votes = is_closed ? sync->vote_count : 0,
        .votes_needed = is_closed ? sync->votes_needed : 0,
        .unsafe =
            is_open && figures->group > sync->safe_group ? figures->group - sync->safe_group : 0,
        .held_ms = sync_held_ms(sync, server->clock.monotonic_ms),
    };
    snprintf(figures->sync.node, sizeof figures->sync.node, "%016llx",
             (unsigned long long)sync->node);
}

static void figures_take_replication(const struct server *server, struct figures *all) {
    const struct replication *replication = &server->replication;
    const struct replication_counters *counters = &replication->counters;
    struct figures_replication *figures = &all->replication;
    bool is_replica = replication_is_replica(replication);
    bool has_second = strspn(replication->second_id, "0") < REPLICATION_ID_SIZE;
    bool has_backlog = replication->backlog_size > 0;
    *figures = (struct figures_replication){
        .is_replica = is_replica,
        .is_master = !is_replica,
        .is_up = is_replica && replication_is_up(replication),
        .is_copying = replication->link == REPLICATION_LINK_SYNC,
        .is_failing_over = replication->failover.state != REPLICATION_FAILOVER_NONE,
        .serves_as_master = !is_replica && replication_serves_as_master(server),
        .wants_replicas = server->settings.min_replicas_to_write > 0 &&
                          server->settings.min_replicas_max_lag_s > 0,
        .role = is_replica ? "slave" : "master",
        .failover = replication_failover_name(replication->failover.state),
        .group = replication->group,
        .replicas = replication->replica_count,
        .good_replicas = replication_count_good(server),
        .priority = replication_priority(server),
        .second_until = has_second ? (int64_t)replication->second_until + 1 : -1,
        .has_backlog = has_backlog,
        .backlog_size = replication->backlog_size,
        .backlog_first = has_backlog ? replication->backlog_first_group : 0,
        .backlog_used = has_backlog ? replication->backlog_used_size : 0,
        .received = counters->received_copy_size + counters->received_size,
        .sent = counters->copied_size + counters->streamed_size,
        .counters = *counters,
    };
    figures_take_replicas(server, figures);
    figures_take_link(server, figures);
    figures_take_sync(server, figures);
}

static void figures_take_process(struct figures *figures) {
    struct figures_process *process = &figures->process;
    struct timespec used = {0};
    struct rusage self = {0};
    struct rusage children = {0};
    struct utsname os = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    uname(&os);
    *process = (struct figures_process){
        .used = memory_used(),
        .peak = memory_used_peak(),
        .resident = process_memory_size(),
        .cpu_ns = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec,
        .user_us = figures_microseconds(self.ru_utime),
        .system_us = figures_microseconds(self.ru_stime),
        .children_user_us = figures_microseconds(children.ru_utime),
        .children_system_us = figures_microseconds(children.ru_stime),
        .bits = sizeof(void *) * 8,
        .pid = (uint64_t)getpid(),
        .allocator = memory_allocator(),
    };
    uint64_t startup = figures->memory_startup;
    uint64_t overhead = startup + figures->memory_clients;
    /* The start needed some memory only temporarily. */
    process->overhead = overhead < process->used ? overhead : process->used;
    process->dataset = process->used - process->overhead;
    process->peak_percent = figures_percent(process->used, process->peak);
    process->dataset_percent =
        process->used > startup ? figures_percent(process->dataset, process->used - startup) : 0;
    process->fragmentation =
        process->used > 0 ? (double)process->resident / (double)process->used : 0;
    process->fragmentation_size = (int64_t)process->resident - (int64_t)process->used;
    snprintf(process->os, sizeof process->os, "%s %s %s", os.sysname, os.release, os.machine);
#ifdef RUSAGE_THREAD
    struct rusage thread = {0};
    (void)getrusage(RUSAGE_THREAD, &thread);
    figures->user_us = figures_microseconds(thread.ru_utime);
    figures->system_us = figures_microseconds(thread.ru_stime);
    figures->switches_forced = (uint64_t)thread.ru_nivcsw;
    figures->switches_own = (uint64_t)thread.ru_nvcsw;
    figures->faults = (uint64_t)thread.ru_majflt;
#endif
}

void figures_look(const struct server *server, struct figures *figures) {
    figures->stats = server->stats;
    figures_take_databases(server, figures);
    figures->once_ids = registry_member_count(server->registry, REGISTRY_ONCE);
    figures->once_max = (uint64_t)server->settings.once_max;
    figures->once_size = once_ids_size(server);
    figures->once_user_count = 0;
    figures_take_clients(server, figures);
    figures->memory_limit = server->settings.maxmemory;
    figures->memory_clients = server->sessions.memory.total;
    figures->memory_clients_limit = server_client_memory_limit(server);
    figures->memory_startup = server->stats.startup_memory_size;
    figures->memory_machine = server->about.machine_memory_size;
    figures->memory_replicas = 0;
    for (const struct replica *replica = server->replication.replicas; replica != NULL;
         replica = replica->next) {
        figures->memory_replicas += session_memory_size(replica->session);
    }
    figures->memory_replication = figures->memory_replicas + server->replication.backlog_size;
    figures_take_persistence(server, figures);
    figures_take_replication(server, figures);
    figures_take_process(figures);
    const struct server_retiring *retiring = &server->ending.retiring;
    int64_t left_ms = retiring->until_ms - server->clock.monotonic_ms;
    figures->uptime_ms = server->clock.monotonic_ms - server->about.started_at_ms;
    figures->started_at_s = server->about.started_at_s;
    figures->is_retiring = retiring->is_begun;
    figures->retiring_ms = left_ms > 0 ? left_ms : 0;
    figures->clock_lead_us = server->clock.lead_us;
    figures->clock_steps = server->clock.step_count;
    figures->clock_state = clock_state_name(server->clock.state);
    figures->is_role_written = !server->rewrite.is_owed;
}

void figures_take(const struct server *server, struct figures *figures) {
    uint64_t begin = clock_ticks();
    struct once_ids_share top[ONCE_IDS_TOP];
    figures_look(server, figures);
    figures->stats.commands = (struct stats_command *)(void *)(figures + 1);
    memcpy(figures->stats.commands, server->stats.commands,
           server->stats.command_count * sizeof *server->stats.commands);
    figures->once_user_count = once_ids_top(server, top);
    for (uint32_t i = 0; i < figures->once_user_count; i++) {
        figures_put_owner(server, top[i].owner, figures->once_users[i].user);
        figures->once_users[i].ids = top[i].count;
    }
    figures->look_ns = clock_ticks_to_ns(clock_ticks() - begin);
}

/* ---- the table ---- */

#define TYPE_OF(field)                                                                             \
    _Generic(&(field), uint64_t *                                                                  \
             : FIGURE_U64, int64_t *                                                               \
             : FIGURE_I64, uint32_t *                                                              \
             : FIGURE_U32, uint16_t *                                                              \
             : FIGURE_U16, bool *                                                                  \
             : FIGURE_BOOL, double *                                                               \
             : FIGURE_REAL, struct durations *                                                     \
             : FIGURE_DURATIONS, const char **                                                     \
             : FIGURE_TEXT, char **                                                                \
             : FIGURE_TEXT, default                                                                \
             : FIGURE_TEXT_HERE)
#define OF(object, whose, field)                                                                   \
    .of = (whose), .offset = (uint32_t)offsetof(struct object, field),                             \
    .type = TYPE_OF(((struct object *)0)->field)
#define SCALED(field, unit) FIELD(field), .per_unit = (unit)
#define FIELD(field)        OF(figures, FIGURE_OF_FIGURES, field)
#define OF_SERVER(field)    OF(server, FIGURE_OF_SERVER, field)
#define OF_COMMAND(field)   OF(stats_command, FIGURE_OF_COMMAND, field)
#define OF_DATABASE(field)  OF(figures_database, FIGURE_OF_DATABASE, field)
#define OF_REPLICA(field)   OF(figures_replica, FIGURE_OF_REPLICA, field)
#define OF_LIMITED(limit)   OF(stats_limited, FIGURE_OF_LIMITED, refused[limit])
#define OF_TICKETS(reason)  OF(stats_limited, FIGURE_OF_LIMITED, tickets[reason])
#define OF_HELD(why)        OF(stats_limited, FIGURE_OF_LIMITED, held[why])
#define OF_THREAD(field)    OF(stats_network, FIGURE_OF_THREAD, field)
#define CONSTANT(value)     .type = FIGURE_CONSTANT, .text = (value)

#define SECTION(title)                                                                             \
    { .section = (title) }
#define LINE(value)                                                                                \
    { .info = "", .info_form = FIGURE_LINE, CONSTANT(value) }
#define INFO(name)           .info = (name)
#define INFO_AS(name, form)  .info = (name), .info_form = FIGURE_##form
#define INFO_PER(name, unit) .info = (name), .info_per_unit = (unit)
#define WHEN(field)          .when = (uint32_t)offsetof(struct figures, field)
#define METRIC(type, at, name, what)                                                               \
    .kind = FIGURE_##type, .place = (at), .metric = (name), .help = (what)
#define COUNTER(at, name, what)   METRIC(COUNTER, at, "leaderboard_" name, what)
#define GAUGE(at, name, what)     METRIC(GAUGE, at, "leaderboard_" name, what)
#define HISTOGRAM(at, name, what) METRIC(HISTOGRAM, at, "leaderboard_" name, what)
#define PER(unit)                 .per_unit = (unit)
#define API(name)                 .api = (name)
#define API_AS(name, form)        .api = (name), .api_form = FIGURE_##form

enum {
    SERVER = 20,
    COMMANDS = 40,
    BOARDS = 60,
    MEMORY = 80,
    CLIENTS = 100,
    JOURNAL = 120,
    REPLICATION = 140,
    TICKS = 160,
    PROCESS = 180,
};
const char *figures_heading(unsigned place) {
    static const char *const headings[] = {NULL,
                                           "The server",
                                           "Commands",
                                           "Boards and keys",
                                           "Memory",
                                           "Clients and network",
                                           "Journal and snapshots",
                                           "Replication",
                                           "Ticks: a slow host or a slow server",
                                           "The process"};
    return headings[place / FIGURE_PLACES_OF_HEADING];
}

/* What each of them is called: the label of its samples, and how its line of INFO begins. */
static const struct {
    const char *label, *line;
} figures_objects[] = {
    [FIGURE_OF_COMMAND] = {"command", "cmdstat_"},
    [FIGURE_OF_ERROR] = {"prefix", "errorstat_"},
    [FIGURE_OF_DATABASE] = {"database", "db"},
    [FIGURE_OF_REPLICA] = {"replica", NULL},
    [FIGURE_OF_SYNC_STATE] = {"state", NULL},
    [FIGURE_OF_THREAD] = {"thread", "io_thread_"},
    [FIGURE_OF_ONCE_USER] = {"user", NULL},
    [FIGURE_OF_LIMITED] = {"board", NULL},
    [FIGURE_OF_LATENCY] = {NULL, NULL},
};

const char *figures_label(enum figure_of of) {
    return figures_objects[of].label;
}

const char *figures_line(enum figure_of of) {
    return figures_objects[of].line;
}

#define LIST(list, how_many, text_at)                                                              \
    { .at = (list), .count = (how_many), .size = sizeof *(list), .name_at = (text_at) }

const void *figures_object(const struct figures *figures, enum figure_of of, uint32_t index,
                           char name[FIGURES_NAME_MAX]) {
    enum { NUMBERED = UINT16_MAX };
    static const uint64_t is_state[] = {0, 1};
    const struct figures_replication *replication = &figures->replication;
    const struct stats *stats = &figures->stats;
    const struct {
        const void *at;
        uint32_t count;
        size_t size, name_at;
    } lists[] = {
        [FIGURE_OF_FIGURES] = LIST(figures, 1, NUMBERED),
        [FIGURE_OF_COMMAND] = LIST(stats->commands, stats->command_count, NUMBERED),
        [FIGURE_OF_ERROR] =
            LIST(stats->errors, stats->error_kind_count, offsetof(struct stats_error, prefix)),
        [FIGURE_OF_DATABASE] = LIST(figures->databases, REGISTRY_DATABASES, NUMBERED),
        [FIGURE_OF_REPLICA] = LIST(replication->shown_replicas, replication->shown,
                                   offsetof(struct figures_replica, address)),
        [FIGURE_OF_THREAD] = LIST(stats->networks, stats->network_count, NUMBERED),
        [FIGURE_OF_ONCE_USER] = LIST(figures->once_users, figures->once_user_count,
                                     offsetof(struct figures_once_user, user)),
        [FIGURE_OF_LIMITED] =
            LIST(stats->limited, stats->limited_count, offsetof(struct stats_limited, board)),
        [FIGURE_OF_LATENCY] = {.at = NULL},
    };
    const char *text = NULL; /* NULL: its number */
    const void *object = NULL;
    if (of == FIGURE_OF_SYNC_STATE && index < SYNC_STATES) {
        object = &is_state[replication->sync.state == (enum sync_state)index];
        text = replication_sync_state_name((enum sync_state)index);
    } else if (index < lists[of].count) {
        object = (const char *)lists[of].at + index * lists[of].size;
        text = of == FIGURE_OF_COMMAND         ? command_full_name(index)
               : lists[of].name_at == NUMBERED ? NULL
                                               : (const char *)object + lists[of].name_at;
    }
    int size = text != NULL ? snprintf(name, FIGURES_NAME_MAX, "%s", text)
                            : snprintf(name, FIGURES_NAME_MAX, "%u", index);
    CHECK(size >= 0 && size < FIGURES_NAME_MAX);
    return object;
}

const struct figure figures_table[] = {
    SECTION("Server"),
    {METRIC(INFO, SERVER, "leaderboard_build",
            "The version of the server, and of the Redis commands it has"),
     .label = "version=\"" SERVER_VERSION "\",redis_version=\"" SERVER_REDIS_VERSION "\"",
     CONSTANT("")},
    {INFO("redis_version"), CONSTANT(SERVER_REDIS_VERSION)},
    {INFO("leaderboard_version"), API("version"), CONSTANT(SERVER_VERSION)},
    LINE("redis_mode:standalone"),
    {INFO("os"), FIELD(process.os)},
    {INFO("arch_bits"), FIELD(process.bits)},
    {INFO("process_id"), FIELD(process.pid)},
    {INFO("run_id"), OF_SERVER(about.run_id)},
    {INFO("tcp_port"), OF_SERVER(about.tcp_port)},
    {INFO("server_time_usec"), OF_SERVER(clock.now_us)},
    {INFO("clock_state"), FIELD(clock_state)},
    {INFO_PER("clock_offset_ms", 1000),
     GAUGE(SERVER + 3, "clock_lead_seconds",
           "How far the server's time is ahead of the machine's clock, negative if behind"),
     SCALED(clock_lead_us, 1000000)},
    {INFO("clock_steps"),
     COUNTER(SERVER + 3, "clock_steps", "Steps of the machine's clock by more than a minute"),
     FIELD(clock_steps)},
    {INFO_PER("clock_last_step_ms", 1000), OF_SERVER(clock.step_us)},
    {INFO_PER("clock_last_step_time", 1000000), OF_SERVER(clock.step_at_us)},
    {INFO_PER("uptime_in_seconds", 1000),
     GAUGE(SERVER + 1, "uptime_seconds", "Time since the server has started"), API("uptime_ms"),
     SCALED(uptime_ms, 1000)},
    {INFO_PER("uptime_in_days", 86400000), FIELD(uptime_ms)},
    {METRIC(GAUGE, PROCESS + 2, "process_start_time_seconds",
            "When the process started, in unix time"),
     API_AS("started_at", TIME), FIELD(started_at_s)},
    {INFO("executable"), OF_SERVER(about.executable_path)},
    {INFO("config_file"), OF_SERVER(settings.file_path)},
    {INFO_AS("config_rewrite_status", STATUS),
     GAUGE(REPLICATION, "config_rewrite_healthy",
           "0 while the file of settings says another role than this server has: it could not be "
           "written, "
           "and is tried again"),
     FIELD(is_role_written)},
    {INFO("shutdown_in_milliseconds"), WHEN(is_retiring), FIELD(retiring_ms)},
    {INFO("io_threads_active"), FIELD(has_threads)},
    {INFO("clients"),
     GAUGE(CLIENTS + 6, "io_thread_clients",
           "Clients of each thread that reads and writes, a second ago at most"),
     OF_THREAD(client_count)},
    {INFO("reads"), COUNTER(CLIENTS + 6, "io_thread_calls", "System calls of each such thread"),
     .label = "call=\"read\"", OF_THREAD(reads)},
    {INFO("writes"), .place = CLIENTS + 6, .label = "call=\"write\"", OF_THREAD(writes)},

    SECTION("Clients"),
    {INFO("connected_clients"), FIELD(clients_alone)},
    {GAUGE(CLIENTS, "clients", "Clients that are connected"), API("clients"), FIELD(clients)},
    LINE("cluster_connections:0"),
    {INFO("maxclients"), GAUGE(CLIENTS, "clients_limit", "maxclients"), API("clients_limit"),
     FIELD(clients_limit)},
    {INFO("client_recent_max_input_buffer"), FIELD(stats.input_buffer_max)},
    {INFO("client_recent_max_output_buffer"), FIELD(stats.output_buffer_max)},
    {INFO("blocked_clients"),
     GAUGE(CLIENTS, "blocked_clients",
           "Clients that wait: for a member (BZPOPMIN), for replicas, or for the end of a pause"),
     API("clients_blocked"), FIELD(clients_blocked)},
    {INFO("tracking_clients"),
     GAUGE(CLIENTS + 1, "tracking_clients", "Clients that are told when a key changes"),
     FIELD(tracking_clients)},
    {INFO("pubsub_clients"),
     GAUGE(CLIENTS + 2, "subscribed_clients", "Clients that have subscribed to something"),
     API("subscribers"), FIELD(clients_pubsub)},
    {INFO("watching_clients"), GAUGE(CLIENTS + 1, "watching_clients", "Clients that watch keys"),
     FIELD(clients_watching)},
    {INFO("total_watched_keys"), FIELD(watched_keys)},

    SECTION("Memory"),
    {INFO_AS("used_memory", SIZE),
     GAUGE(MEMORY, "memory_used_bytes", "Heap in use; maxmemory limits it"), API("memory.used"),
     FIELD(process.used)},
    {INFO_AS("used_memory_rss", SIZE),
     METRIC(GAUGE, PROCESS + 1, "process_resident_memory_bytes",
            "Memory that the process has of the machine"),
     FIELD(process.resident)},
    {INFO_AS("used_memory_peak", SIZE),
     GAUGE(MEMORY, "memory_peak_bytes", "The most that was ever in use"), API("memory.peak"),
     FIELD(process.peak)},
    {INFO_AS("used_memory_peak_perc", PERCENT), FIELD(process.peak_percent)},
    {INFO("used_memory_overhead"), FIELD(process.overhead)},
    {INFO("used_memory_startup"),
     GAUGE(MEMORY + 2, "memory_startup_bytes", "Heap in use after the start"),
     FIELD(memory_startup)},
    {INFO("used_memory_dataset"), FIELD(process.dataset)},
    {INFO_AS("used_memory_dataset_perc", PERCENT), FIELD(process.dataset_percent)},
    {INFO_AS("total_system_memory", SIZE),
     GAUGE(MEMORY + 4, "memory_machine_bytes", "The machine's memory"), API("memory.machine"),
     FIELD(memory_machine)},
    {INFO_AS("maxmemory", SIZE), GAUGE(MEMORY + 1, "memory_limit_bytes", "maxmemory; 0: none"),
     API("memory.limit"), FIELD(memory_limit)},
    LINE("maxmemory_policy:noeviction"),
    {INFO("mem_fragmentation_ratio"), FIELD(process.fragmentation)},
    {INFO("mem_fragmentation_bytes"), FIELD(process.fragmentation_size)},
    {INFO("mem_clients_normal"),
     GAUGE(MEMORY + 3, "memory_clients_bytes",
           "What clients hold: unfinished requests and unread replies"),
     API("memory.clients"), FIELD(memory_clients)},
    {INFO("maxmemory_clients"),
     GAUGE(MEMORY + 3, "memory_clients_limit_bytes", "maxmemory-clients in bytes; 0: none"),
     FIELD(memory_clients_limit)},
    {INFO("mem_clients_slaves"), FIELD(memory_replicas)},
    {INFO("mem_replication_backlog"),
     GAUGE(REPLICATION + 7, "replication_backlog_bytes",
           "Memory for the latest groups; 0 while no replica has been here for repl-backlog-ttl"),
     API("replication.backlog"), FIELD(replication.backlog_size)},
    {INFO("mem_total_replication_buffers"), FIELD(memory_replication)},
    {INFO("mem_aof_buffer"), FIELD(kept.waiting_size)},
    LINE("mem_not_counted_for_evict:0"), /* all counts towards maxmemory */
    {INFO("allocator_allocated"), FIELD(process.used)},
    {INFO("allocator_resident"), FIELD(process.resident)},
    {INFO("mem_allocator"), FIELD(process.allocator)},
    LINE("active_defrag_running:0"),
    {INFO("lazyfree_pending_objects"),
     GAUGE(BOARDS + 5, "unfreed_keys", "Removed keys whose memory is still being freed"),
     FIELD(totals.unfreed)},
    {INFO("lazyfreed_objects"),
     COUNTER(BOARDS + 5, "freed_keys", "Removed keys whose memory has been freed"),
     FIELD(totals.freed)},

    SECTION("Persistence"),
    {INFO("loading"),
     GAUGE(SERVER + 2, "loading",
           "1 while the boards are loaded from disk, and commands get -LOADING"),
     API("loading"), FIELD(is_loading)},
    {GAUGE(SERVER + 2, "loaded_ratio", "How much of what is on disk has been loaded"),
     SCALED(loaded, 10000)},
    {GAUGE(SERVER + 2, "writable",
           "1 if writes are taken; 0 while loading, and while they are refused because the disk "
           "cannot "
           "be written (MISCONF)"),
     API("writable"), FIELD(is_writable)},
    /* BGSAVE and BGREWRITEAOF are the same snapshot here, so both groups of fields describe it. */
    LINE("async_loading:0\r\ncurrent_cow_peak:0\r\ncurrent_cow_size:0\r\ncurrent_cow_size_age:"
         "0\r\ncurrent_fork_perc:0.00"),
    {INFO("snapshot_members_saved"), FIELD(kept.saved_members)},
    {INFO("rdb_changes_since_last_save"),
     GAUGE(JOURNAL + 6, "snapshot_pending_changes", "Changes since the last snapshot"),
     API("snapshot.changes_since"), FIELD(kept.changes)},
    {INFO("rdb_bgsave_in_progress"),
     GAUGE(JOURNAL + 3, "snapshot_running", "1 while a snapshot is written"),
     API("snapshot.is_saving"), FIELD(kept.is_saving)},
    {INFO("rdb_last_save_time"),
     GAUGE(JOURNAL + 5, "snapshot_last_timestamp_seconds",
           "When the last snapshot ended well, in unix time; at first, when the server started"),
     API_AS("snapshot.at", TIME), FIELD(kept.last_save_s)},
    {INFO_AS("rdb_last_bgsave_status", STATUS),
     GAUGE(JOURNAL + 3, "snapshot_healthy", "0 if the last snapshot failed"), API("snapshot.ok"),
     FIELD(kept.is_last_save_ok)},
    {INFO("rdb_last_bgsave_time_sec"),
     GAUGE(JOURNAL + 5, "snapshot_last_duration_seconds",
           "How long it took; missing while there is none"),
     .is_optional = true, FIELD(kept.last_save_seconds)},
    {INFO("rdb_current_bgsave_time_sec"), FIELD(kept.current_save_seconds)},
    {INFO("rdb_saves"), COUNTER(JOURNAL + 4, "snapshots", "Snapshots that ended well"),
     FIELD(kept.save_count)},
    LINE("rdb_last_cow_size:0"),
    {INFO("aof_enabled"), GAUGE(JOURNAL, "journal_enabled", "1 if appendonly is on"),
     API("journal.enabled"), FIELD(kept.is_journal_on)},
    {INFO("aof_rewrite_in_progress"), FIELD(kept.is_saving)},
    LINE("aof_rewrite_scheduled:0"),
    {INFO("aof_last_rewrite_time_sec"), FIELD(kept.last_save_seconds)},
    {INFO("aof_current_rewrite_time_sec"), FIELD(kept.current_save_seconds)},
    {INFO_AS("aof_last_bgrewrite_status", STATUS), FIELD(kept.is_last_save_ok)},
    {INFO("aof_rewrites"), FIELD(kept.save_count)},
    {INFO_AS("aof_last_write_status", STATUS),
     GAUGE(JOURNAL, "journal_healthy", "0 if the journal cannot be written"), API("journal.ok"),
     FIELD(kept.is_journal_ok)},
    LINE("aof_last_cow_size:0"),
    {INFO("aof_current_size"), WHEN(kept.is_journal_on),
     GAUGE(JOURNAL, "journal_size_bytes", "Base and journals on disk"), API("journal.size"),
     FIELD(kept.journal_size)},
    {INFO("aof_base_size"), WHEN(kept.is_journal_on), FIELD(kept.journal_base_size)},
    {.info = "",
     .info_form = FIGURE_LINE,
     WHEN(kept.is_journal_on),
     CONSTANT("aof_pending_rewrite:0")},
    {INFO("aof_buffer_length"), WHEN(kept.is_journal_on),
     GAUGE(JOURNAL, "journal_pending_bytes", "Effects that are not written yet"),
     API("journal.waiting"), FIELD(kept.waiting_size)},
    {INFO("aof_pending_bio_fsync"), WHEN(kept.is_journal_on), FIELD(is_sync_pending)},
    {INFO("aof_delayed_fsync"), WHEN(kept.is_journal_on),
     COUNTER(JOURNAL + 2, "journal_delayed_fsyncs",
             "everysec: a sync was due while the one before still ran"),
     FIELD(kept.delayed_sync_count)},
    {GAUGE(JOURNAL, "journal_unsynced_groups", "Ticks whose effects are not synced yet"),
     FIELD(unsynced_groups)},
    {INFO("journal_group"), WHEN(kept.is_journal_on),
     COUNTER(JOURNAL, "journal_groups", "Ticks with effects since the journal began"),
     FIELD(kept.group)},
    {INFO("journal_written_group"), WHEN(kept.is_journal_on), FIELD(kept.written_group)},
    {INFO("journal_synced_group"), WHEN(kept.is_journal_on), FIELD(kept.synced_group)},
    {HISTOGRAM(JOURNAL + 1, "journal_fsync_duration_seconds", "How long syncing the journal took"),
     API_AS("journal.sync_p99_us", P99), FIELD(kept.syncs)},
    {INFO("journal_fsync_longest_us"), WHEN(kept.is_journal_on),
     GAUGE(JOURNAL + 1, "journal_fsync_longest_seconds", "The longest of them"),
     API("journal.sync_longest_us"), SCALED(kept.sync_longest_us, 1000000)},
    {INFO("loading_start_time"), WHEN(is_loading), FIELD(kept.loading_start_s)},
    {INFO("loading_total_bytes"), WHEN(is_loading), FIELD(kept.loading_total_size)},
    {INFO("loading_loaded_bytes"), WHEN(is_loading), FIELD(kept.loading_loaded_size)},
    {INFO("loading_loaded_perc"), WHEN(is_loading), FIELD(kept.loading_percent)},
    {INFO("loading_eta_seconds"), WHEN(is_loading), FIELD(kept.loading_eta_s)},
    {INFO("loading_loaded_members"), WHEN(is_loading), FIELD(kept.loading_members)},

    SECTION("Stats"),
    {INFO("total_connections_received"),
     COUNTER(CLIENTS + 4, "connections", "Connections accepted"),
     FIELD(stats.connections_received)},
    {INFO("total_commands_processed"), COUNTER(COMMANDS, "commands_processed", "Commands that ran"),
     API("operations"), FIELD(stats.commands_processed)},
    {INFO_AS("instantaneous_ops_per_sec", ROUND), API("operations_per_second"),
     FIELD(stats.commands_per_second)},
    {INFO("total_net_input_bytes"),
     COUNTER(CLIENTS + 5, "network_received_bytes", "Bytes of requests"), FIELD(stats.input_bytes)},
    {INFO("total_net_output_bytes"), COUNTER(CLIENTS + 5, "network_sent_bytes", "Bytes of replies"),
     FIELD(stats.output_bytes)},
    {INFO("instantaneous_input_kbps"), FIELD(stats.input_kbps)},
    {INFO("instantaneous_output_kbps"), FIELD(stats.output_kbps)},
    {API("input_bytes_per_second"), FIELD(input_rate)},
    {API("output_bytes_per_second"), FIELD(output_rate)},
    {INFO("rejected_connections"),
     COUNTER(CLIENTS + 4, "rejected_connections",
             "Connections refused: maxclients, protected-mode, no descriptor"),
     API("clients_rejected"), FIELD(stats.connections_rejected)},
    {INFO("expired_keys"), COUNTER(BOARDS + 1, "expired_keys", "Keys removed because they expired"),
     FIELD(totals.expired)},
    LINE("expired_time_cap_reached_count:0"),
    {INFO("windows_behind"),
     GAUGE(BOARDS + 2, "windows_behind",
           "Periods that have to leave boards with a WINDOW and have not yet"),
     FIELD(windows_behind)},
    {INFO("rolled_boards"),
     COUNTER(BOARDS + 1, "rolled_boards", "Boards rolled over at the end of their period"),
     FIELD(totals.rolled)},
    {INFO("stale_members"),
     COUNTER(BOARDS + 2, "stale_members", "Members that have left a board because of its STALE"),
     FIELD(totals.stale)},
    {INFO("settled_archives"),
     COUNTER(BOARDS + 2, "settled_archives", "Archives that LB.SETTLE has settled"),
     FIELD(totals.settled)},
    {INFO("unsettled_archives"),
     GAUGE(BOARDS + 4, "unsettled_archives", "Archives that nobody has settled"), FIELD(unsettled)},
    {INFO("leagues"), GAUGE(BOARDS + 4, "leagues", "Leagues of all databases"), FIELD(leagues)},
    {INFO("league_settled_members"),
     COUNTER(BOARDS + 4, "league_settled_members",
             "Members of leagues who had not come before the archive of their room went"),
     FIELD(totals.league_settled)},
    {INFO("once_ids"),
     GAUGE(BOARDS + 3, "once_ids", "Ids of results that are known when they come again (ONCE)"),
     FIELD(once_ids)},
    {GAUGE(BOARDS + 3, "once_ids_limit", "once-max"), FIELD(once_max)},
    {GAUGE(BOARDS + 3, "once_user_ids", "Of these ids those of the eight users who have most"),
     OF(figures_once_user, FIGURE_OF_ONCE_USER, ids)},
    {INFO("once_bytes"), GAUGE(BOARDS + 3, "once_bytes", "What these ids take of the memory"),
     FIELD(once_size)},
    {INFO("once_repeated"),
     COUNTER(BOARDS + 3, "once_repeated_results",
             "Results that had come before, and changed nothing"),
     FIELD(stats.once_repeated)},
    {INFO("once_refused"),
     COUNTER(BOARDS + 3, "once_refused_results",
             "Results refused with TRYAGAIN, as there were once-max younger ids"),
     FIELD(stats.once_refused)},
    {COUNTER(
         BOARDS + 5, "limit_refusals",
         "Results that LIMITS refused, of the first boards that refused some; * has the others"),
     .label = "limit=\"MAX\"", OF_LIMITED(LIMIT_MAX)},
    {.place = BOARDS + 5, .label = "limit=\"MIN\"", OF_LIMITED(LIMIT_MIN)},
    {.place = BOARDS + 5, .label = "limit=\"STEP\"", OF_LIMITED(LIMIT_STEP)},
    {.place = BOARDS + 5, .label = "limit=\"EVERY\"", OF_LIMITED(LIMIT_EVERY)},
    {.place = BOARDS + 5, .label = "limit=\"RESULTS\"", OF_LIMITED(LIMIT_RESULTS)},
    {.place = BOARDS + 5, .label = "limit=\"GAIN\"", OF_LIMITED(LIMIT_GAIN)},
    {.place = BOARDS + 5, .label = "limit=\"MINTIME\"", OF_LIMITED(LIMIT_MINTIME)},
    {COUNTER(BOARDS + 5, "ticket_refusals",
             "Results that TICKETS refused: without a ticket, with a wrong one, one of another "
             "board or player, one that is over, or a used one; full: there was no room to note "
             "that it is used (once-max)"),
     .label = "reason=\"missing\"", OF_TICKETS(TICKET_MISSING)},
    {.place = BOARDS + 5, .label = "reason=\"wrong\"", OF_TICKETS(TICKET_WRONG)},
    {.place = BOARDS + 5, .label = "reason=\"other\"", OF_TICKETS(TICKET_OTHER)},
    {.place = BOARDS + 5, .label = "reason=\"over\"", OF_TICKETS(TICKET_OVER)},
    {.place = BOARDS + 5, .label = "reason=\"used\"", OF_TICKETS(TICKET_USED)},
    {.place = BOARDS + 5, .label = "reason=\"full\"", OF_TICKETS(TICKET_FULL)},
    {COUNTER(BOARDS + 5, "held_results",
             "Results that HOLD kept, likewise; FULL: refused, because there was no room for them"),
     .label = "reason=\"OVER\"", OF_HELD(STATS_HELD_OVER)},
    {.place = BOARDS + 5, .label = "reason=\"TOP\"", OF_HELD(STATS_HELD_TOP)},
    {.place = BOARDS + 5, .label = "reason=\"LIMITS\"", OF_HELD(STATS_HELD_LIMITS)},
    {.place = BOARDS + 5, .label = "reason=\"FULL\"", OF_HELD(STATS_HELD_FULL)},
    LINE("evicted_keys:0"),
    {INFO("evicted_clients"),
     COUNTER(CLIENTS + 4, "evicted_clients", "Clients closed by maxmemory-clients"),
     FIELD(stats.clients_evicted)},
    {INFO("keyspace_hits"),
     COUNTER(COMMANDS + 6, "keyspace_hits", "Look-ups of keys by reading commands that found one"),
     FIELD(stats.keyspace_hits)},
    {INFO("keyspace_misses"), COUNTER(COMMANDS + 6, "keyspace_misses", "Those that found none"),
     FIELD(stats.keyspace_misses)},
    {INFO("pubsub_channels"), GAUGE(CLIENTS + 3, "channels", "Channels with a subscriber"),
     FIELD(channels)},
    {INFO("pubsub_patterns"), GAUGE(CLIENTS + 3, "channel_patterns", "Patterns with a subscriber"),
     FIELD(patterns)},
    {INFO("pubsubshard_channels"), FIELD(shard_channels)},
    {INFO("tracking_total_keys"),
     GAUGE(CLIENTS + 3, "tracked_keys", "Keys that clients have read and are told of"),
     FIELD(tracking_keys)},
    {INFO("tracking_total_items"), FIELD(tracking_items)},
    {INFO("tracking_total_prefixes"), FIELD(tracking_prefixes)},
    {INFO("total_net_repl_input_bytes"), FIELD(replication.received)},
    {INFO("total_net_repl_output_bytes"), FIELD(replication.sent)},
    {COUNTER(REPLICATION + 6, "replication_sent_bytes",
             "Bytes sent to replicas: full copies, and groups of changes"),
     .label = "what=\"copies\"", FIELD(replication.counters.copied_size)},
    {.place = REPLICATION + 6,
     .label = "what=\"groups\"",
     FIELD(replication.counters.streamed_size)},
    {COUNTER(REPLICATION + 6, "replication_received_bytes",
             "Bytes received from a master: the same"),
     .label = "what=\"copies\"", FIELD(replication.counters.received_copy_size)},
    {.place = REPLICATION + 6,
     .label = "what=\"groups\"",
     FIELD(replication.counters.received_size)},
    {INFO("sync_full"),
     COUNTER(REPLICATION + 5, "replication_full_copies", "Full copies sent to replicas"),
     FIELD(replication.counters.full_syncs)},
    {INFO("sync_partial_ok"),
     COUNTER(REPLICATION + 5, "replication_continuations",
             "Replicas that came back and went on where they were"),
     FIELD(replication.counters.partial_syncs)},
    {INFO("sync_partial_err"),
     COUNTER(REPLICATION + 5, "replication_refused_continuations",
             "Replicas that wanted to, and needed a full copy"),
     FIELD(replication.counters.partial_sync_failures)},
    /* The errors are of commands that a master or the journal sent. */
    LINE("latest_fork_usec:0\r\ntotal_forks:0\r\nunexpected_error_replies:0"),
    {INFO("total_error_replies"), COUNTER(COMMANDS + 4, "error_replies", "Error replies"),
     API("errors"), FIELD(stats.error_replies)},
    {INFO("acl_access_denied_auth"), OF_SERVER(acl.log.denied[ACL_DENIED_AUTH])},
    {INFO("acl_access_denied_cmd"), OF_SERVER(acl.log.denied[ACL_DENIED_COMMAND])},
    {INFO("acl_access_denied_key"), OF_SERVER(acl.log.denied[ACL_DENIED_KEY])},
    {INFO("acl_access_denied_channel"), OF_SERVER(acl.log.denied[ACL_DENIED_CHANNEL])},
    {INFO("total_reads_processed"), FIELD(reads)},
    {INFO("total_writes_processed"), FIELD(writes)},
    {INFO("io_threaded_reads_processed"), FIELD(threaded_reads)},
    {INFO("io_threaded_writes_processed"), FIELD(threaded_writes)},
    {INFO("client_output_buffer_limit_disconnections"),
     COUNTER(CLIENTS + 4, "overflowed_clients", "Clients closed by client-output-buffer-limit"),
     FIELD(stats.unexpected_closed_output)},
    {API_AS("tick.mean_us", MEAN), FIELD(stats.ticks)},
    {HISTOGRAM(
         TICKS, "tick_duration_seconds",
         "How long the turns of the engine's loop took, from taking requests to sending replies"),
     API_AS("tick.p99_us", P99), FIELD(stats.ticks)},
    {INFO("eventloop_cycles"), API("tick.count"), FIELD(stats.ticks.count)},
    {INFO("tick_longest_us"), GAUGE(TICKS, "tick_longest_seconds", "The longest of them"),
     API("tick.longest_us"), SCALED(stats.tick_longest_us, 1000000)},
    {INFO("tick_longest_cpu_us"),
     GAUGE(TICKS, "tick_longest_cpu_seconds",
           "The processor time of that one; 0 while no tick has taken a millisecond"),
     SCALED(stats.tick_longest_cpu_us, 1000000)},
    {INFO("tick_busiest_us"), FIELD(stats.tick_busiest_us)},
    {INFO("tick_busy_count"), FIELD(stats.tick_busy_count)},
    {INFO_PER("tick_total_us", 1000), FIELD(stats.ticks.total_ns)},
    {INFO("tick_long_count"), COUNTER(TICKS, "long_ticks", "Ticks of a millisecond or more"),
     FIELD(stats.long_tick_count)},
    {INFO_PER("tick_long_us", 1000), COUNTER(TICKS, "long_tick_wall_seconds", "How long they took"),
     SCALED(stats.long_tick_wall_ns, 1000000000)},
    {INFO_PER("tick_long_cpu_us", 1000),
     COUNTER(TICKS, "long_tick_cpu_seconds",
             "For how much of that the engine's thread had a processor"),
     SCALED(stats.long_tick_cpu_ns, 1000000000)},

    SECTION("Replication"),
    {INFO("role"), FIELD(replication.role)},
    {GAUGE(REPLICATION + 1, "replica", "1 on a replica, 0 on a master"),
     FIELD(replication.is_replica)},
    /* Of a replica. Sentinel wants them behind role, in any order. */
    {API("replication.master.address"), FIELD(replication.master)},
    {INFO("master_host"), WHEN(replication.is_replica), OF_SERVER(replication.master_host)},
    {INFO("master_port"), WHEN(replication.is_replica), OF_SERVER(replication.master_port)},
    {INFO("master_link_status"), WHEN(replication.is_replica), FIELD(replication.link_status)},
    {GAUGE(REPLICATION + 3, "master_link_up",
           "1 while this replica follows its master; missing on a master"),
     .is_optional = true, FIELD(replication.up)},
    {INFO("master_link_state"), WHEN(replication.is_replica), API("replication.master.link"),
     FIELD(replication.link)},
    {INFO("master_last_io_seconds_ago"), WHEN(replication.is_replica), FIELD(replication.heard_s)},
    {API("replication.master.heard_ms"), FIELD(replication.heard_ms)},
    {INFO("master_sync_in_progress"), WHEN(replication.is_replica),
     GAUGE(REPLICATION + 4, "master_copy_running", "1 while this replica receives a full copy"),
     FIELD(replication.is_copying)},
    {INFO("slave_read_repl_offset"), WHEN(replication.is_replica),
     OF_SERVER(replication.read_group)},
    {INFO("slave_repl_offset"), WHEN(replication.is_replica), FIELD(replication.group)},
    {INFO("master_sync_total_bytes"), WHEN(replication.is_copying),
     API("replication.master.copy_size"), FIELD(replication.copy_size)},
    {INFO("master_sync_read_bytes"), WHEN(replication.is_copying),
     API("replication.master.copied_size"), FIELD(replication.copy_read_size)},
    {INFO("master_sync_left_bytes"), WHEN(replication.is_copying),
     FIELD(replication.copy_left_size)},
    {INFO("master_sync_perc"), WHEN(replication.is_copying), FIELD(replication.copy_percent)},
    {INFO_PER("master_sync_last_io_seconds_ago", 1000), WHEN(replication.is_copying),
     FIELD(replication.copy_heard_ms)},
    {INFO_PER("master_link_down_since_seconds", 1000), WHEN(replication.is_down),
     GAUGE(REPLICATION + 3, "master_link_down_seconds", "How long it has not; missing on a master"),
     .is_optional = true, API("replication.master.down_ms"), SCALED(replication.down_ms, 1000)},
    {API("replication.master.unapplied_groups"), FIELD(replication.unapplied_groups)},
    {INFO("master_link_error"), WHEN(replication.has_error), FIELD(replication.error)},
    {COUNTER(REPLICATION + 4, "master_link_losses", "How often the link to the master broke"),
     FIELD(replication.counters.link_losses)},
    {INFO(""), WHEN(replication.is_replica), .of = FIGURE_OF_SOURCE},
    {INFO("slave_priority"), WHEN(replication.is_replica), FIELD(replication.priority)},
    {.info = "",
     .info_form = FIGURE_LINE,
     WHEN(replication.is_replica),
     CONSTANT("slave_read_only:1")},
    {INFO("replica_announced"), WHEN(replication.is_replica),
     OF_SERVER(settings.replica_announced)},
    /* So early that it is in what a balancer reads first. */
    {INFO("serves_as_master"), WHEN(replication.is_master), FIELD(replication.serves_as_master)},
    {INFO("connected_slaves"),
     GAUGE(REPLICATION + 2, "connected_replicas", "Replicas of this server"),
     FIELD(replication.replicas)},
    {INFO("min_slaves_good_slaves"), WHEN(replication.wants_replicas),
     GAUGE(REPLICATION + 2, "good_replicas",
           "Of them, those online and heard within min-replicas-max-lag"),
     FIELD(replication.good_replicas)},
    {API("address"), OF_REPLICA(address)},
    {API("state"), OF_REPLICA(state)},
    {INFO(""),
     GAUGE(REPLICATION + 2, "replica_online",
           "0 while the replica waits for its full copy or receives it; 16 replicas at the most"),
     OF_REPLICA(is_online)},
    {GAUGE(REPLICATION + 2, "replica_lag_groups", "Groups that the replica has not acknowledged"),
     API("lag_groups"), OF_REPLICA(lag_groups)},
    {GAUGE(REPLICATION + 2, "replica_lag_seconds",
           "Time since the replica last acknowledged, which it does each second"),
     API("heard_ms"), OF_REPLICA(lag_ms), .per_unit = 1000},
    {INFO("master_failover_state"), FIELD(replication.failover)},
    {GAUGE(REPLICATION + 4, "failover_running", "1 during FAILOVER: writes wait"),
     API("replication.failing_over"), FIELD(replication.is_failing_over)},
    {INFO("master_replid"), OF_SERVER(replication.id)},
    {INFO("master_replid2"), OF_SERVER(replication.second_id)},
    {INFO("master_repl_offset"),
     GAUGE(REPLICATION + 1, "replication_group",
           "The last group of changes in memory: a replica has its master's numbers"),
     API("replication.group"), FIELD(replication.group)},
    {INFO("sync_state"), WHEN(replication.sync.is_on), API("replication.sync.state"),
     FIELD(replication.sync.state_name)},
    {GAUGE(REPLICATION + 8, "sync_state", "sync-replicas: 1 for the state that this server is in"),
     .of = FIGURE_OF_SYNC_STATE, .type = FIGURE_U64},
    {GAUGE(REPLICATION + 8, "sync_replicas",
           "The setting: so many replicas must have what is answered"),
     API("replication.sync.replicas_wanted"), FIELD(replication.sync.wanted)},
    {INFO("sync_node"), WHEN(replication.sync.is_on), FIELD(replication.sync.node)},
    {INFO("sync_voted"), WHEN(replication.sync.is_on), OF_SERVER(replication.sync.voted.text)},
    {INFO("sync_lost_durability"), WHEN(replication.sync.is_on),
     GAUGE(REPLICATION + 10, "sync_lost_durability",
           "1: this server has lost durability, and does not count until it is filled"),
     API("replication.sync.lost_durability"), FIELD(replication.sync.has_lost_durability)},
    {INFO("sync_votes"), WHEN(replication.sync.is_closed),
     GAUGE(REPLICATION + 9, "sync_votes",
           "Of a closed master: servers that have voted for its term"),
     API("replication.sync.votes"), FIELD(replication.sync.votes)},
    {INFO("sync_votes_needed"), WHEN(replication.sync.is_closed),
     GAUGE(REPLICATION + 9, "sync_votes_needed", "So many must have, before it opens"),
     API("replication.sync.votes_needed"), FIELD(replication.sync.votes_needed)},
    {INFO("sync_safe_offset"), WHEN(replication.sync.is_open),
     OF_SERVER(replication.sync.safe_group)},
    {INFO("sync_counted_replicas"), WHEN(replication.sync.is_open),
     GAUGE(REPLICATION + 8, "sync_counted_replicas",
           "Of an open master: replicas that are connected in its own term, whose acknowledgements "
           "count"),
     API("replication.sync.replicas_counted"), FIELD(replication.sync.counted)},
    {GAUGE(REPLICATION + 8, "sync_unsafe_groups",
           "Of an open master: groups that too few of them have acknowledged; their answers wait"),
     API("replication.sync.unacknowledged_groups"), FIELD(replication.sync.unsafe)},
    {INFO_PER("sync_held_seconds", 1000), WHEN(replication.sync.is_open),
     GAUGE(REPLICATION + 8, "sync_held_seconds",
           "How long answers have waited for replicas, since one of them last made some safe"),
     API("replication.sync.held_ms"), SCALED(replication.sync.held_ms, 1000)},
    {INFO("second_repl_offset"), FIELD(replication.second_until)},
    {INFO("repl_backlog_active"), FIELD(replication.has_backlog)},
    {INFO("repl_backlog_size"), OF_SERVER(settings.repl_backlog_size)},
    {INFO("repl_backlog_first_byte_offset"), FIELD(replication.backlog_first)},
    {INFO("repl_backlog_histlen"), FIELD(replication.backlog_used)},

    SECTION("CPU"),
    {INFO_AS("used_cpu_sys", SECONDS), FIELD(process.system_us)},
    {INFO_AS("used_cpu_user", SECONDS), FIELD(process.user_us)},
    {INFO_AS("used_cpu_sys_children", SECONDS), FIELD(process.children_system_us)},
    {INFO_AS("used_cpu_user_children", SECONDS), FIELD(process.children_user_us)},
    {INFO_AS("used_cpu_sys_main_thread", SECONDS),
     COUNTER(TICKS, "engine_cpu_seconds", "Processor time of the engine's thread"),
     .label = "mode=\"system\"", SCALED(system_us, 1000000)},
    {INFO_AS("used_cpu_user_main_thread", SECONDS), .place = TICKS, .label = "mode=\"user\"",
     SCALED(user_us, 1000000)},
    {COUNTER(TICKS, "engine_context_switches",
             "How often the engine's thread gave its processor away: because another was put in "
             "its place "
             "(`forced`), or to wait (`waits`)"),
     .label = "reason=\"forced\"", FIELD(switches_forced)},
    {.place = TICKS, .label = "reason=\"waits\"", FIELD(switches_own)},
    {COUNTER(
         TICKS, "engine_major_faults",
         "How often the engine's thread waited for memory that had to be read from disk (swap)"),
     FIELD(faults)},
    {GAUGE(TICKS, "scrape_engine_seconds",
           "How long the engine's thread was busy with this scrape"),
     SCALED(look_ns, 1000000000)},
    {METRIC(COUNTER, PROCESS, "process_cpu_seconds", "Processor time of all threads"),
     SCALED(process.cpu_ns, 1000000000)},

    SECTION("Modules"),

    {.section = "Commandstats", .is_hidden = true},
    {INFO("calls"), API("calls"), OF_COMMAND(calls.count)},
    {INFO_PER("usec", 1000), OF_COMMAND(calls.total_ns)},
    {INFO_AS("usec_per_call", MEAN), API_AS("mean_us", MEAN), OF_COMMAND(calls)},
    {HISTOGRAM(COMMANDS + 1, "command_duration_seconds",
               "How long the calls of a command took, of those that were called at all"),
     API_AS("p99_us", P99), OF_COMMAND(calls)},
    {INFO("rejected_calls"),
     COUNTER(COMMANDS + 3, "command_rejections",
             "Calls that were refused before they ran: arity, password, memory, disk, loading"),
     OF_COMMAND(rejected_calls)},
    {INFO("failed_calls"),
     COUNTER(COMMANDS + 2, "command_failures", "Calls that ran and ended in an error"),
     API("failed"), OF_COMMAND(failed_calls)},

    SECTION("Errorstats"),
    {INFO("count"),
     COUNTER(COMMANDS + 5, "errors", "Error replies by the word that they begin with"),
     OF(stats_error, FIGURE_OF_ERROR, count)},

    {.section = "Latencystats", .is_hidden = true},
    {INFO(""), .of = FIGURE_OF_LATENCY},

    SECTION("Cluster"),
    LINE("cluster_enabled:0"),

    SECTION("Keyspace"),
    {INFO("keys"), GAUGE(BOARDS, "keys", "Keys; databases without keys are left out, but for 0"),
     API("keys"), OF_DATABASE(keys)},
    {GAUGE(BOARDS, "boards", "Keys that hold a board"), API("boards"), OF_DATABASE(boards)},
    {GAUGE(BOARDS, "members", "Members of all boards"), API("members"), OF_DATABASE(members)},
    {INFO("expires"), GAUGE(BOARDS, "expiring_keys", "Keys with an expiry"), OF_DATABASE(expiring)},
    {INFO("avg_ttl"), OF_DATABASE(average_ttl_ms)},
};
const uint32_t figures_row_count = sizeof figures_table / sizeof figures_table[0];

const char *const figures_kind_names[FIGURE_KINDS] = {"counter", "gauge", "histogram", "info"};

/* ---- reading ---- */

struct figure_value figures_read(const struct figure *row, const void *object) {
    static const struct durations none;
    struct figure_value value = {.text = row->text, .durations = &none};
    int64_t signed_number;
    CHECK(object != NULL);
    const void *at = (const char *)object + row->offset;
    switch (row->type) {
    case FIGURE_U64:
        value.number = *(const uint64_t *)at;
        break;
    case FIGURE_I64:
        signed_number = *(const int64_t *)at;
        value.is_negative = signed_number < 0;
        value.number = value.is_negative ? 0 - (uint64_t)signed_number : (uint64_t)signed_number;
        break;
    case FIGURE_U32:
        value.number = *(const uint32_t *)at;
        break;
    case FIGURE_U16:
        value.number = *(const uint16_t *)at;
        break;
    case FIGURE_BOOL:
        value.number = *(const bool *)at;
        break;
    case FIGURE_REAL:
        value.real = *(const double *)at;
        break;
    case FIGURE_DURATIONS:
        value.durations = at;
        break;
    case FIGURE_TEXT:
        value.text = *(const char *const *)at;
        break;
    case FIGURE_TEXT_HERE:
        value.text = at;
        break;
    case FIGURE_CONSTANT:
        value.number = 1;
        break;
    }
    return value;
}

uint64_t figures_quantile_us(const struct durations *durations, double share) {
    uint64_t wanted = (uint64_t)(share * (double)durations->count);
    uint64_t seen = 0;
    for (unsigned i = 0; i < DURATIONS_BUCKETS && durations->count > 0; i++) {
        seen += durations->buckets[i];
        if (seen > wanted || seen == durations->count) {
            return UINT64_C(1) << i;
        }
    }
    return 0;
}

double figures_mean_us(const struct durations *durations) {
    return durations->count > 0 ? (double)durations->total_ns / 1000 / (double)durations->count : 0;
}

bool figures_print_api(enum figure_of of, const void *object, const char *prefix, const char *name,
                       struct json *json) {
    size_t size = strlen(prefix);
    const struct figure *row = figures_table, *end = figures_table + figures_row_count;
    while (row < end &&
           !(row->api != NULL && row->of == of && strncmp(row->api, prefix, size) == 0 &&
             strcmp(row->api + size, name) == 0)) {
        row++;
    }
    if (row == end) {
        return false;
    }
    struct figure_value value = figures_read(row, object);
    int64_t number = value.is_negative ? -(int64_t)value.number : (int64_t)value.number;
    if (row->api_form == FIGURE_TIME) {
        json_time_ms(json, name, number * 1000);
    } else if (row->api_form == FIGURE_MEAN) {
        json_number(json, name, figures_mean_us(value.durations));
    } else if (row->api_form == FIGURE_P99) {
        json_integer(json, name, (int64_t)figures_quantile_us(value.durations, 0.99));
    } else if (row->type == FIGURE_BOOL) {
        json_boolean(json, name, number != 0);
    } else if (row->type == FIGURE_REAL) {
        json_number(json, name, value.real);
    } else if (value.text != NULL) {
        json_text(json, name, bytes_from_text(value.text));
    } else {
        json_integer(json, name, number);
    }
    return true;
}
