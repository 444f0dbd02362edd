/* The server as JSON: figures, the last hour, the slow log, and who asks. */
#include <stdio.h>

#include "server/dispatch/command.h"
#include "server/system/version.h"
#include "server/web/web_query.h"

enum { SLOWLOG_MAX = 128, COMMANDS_SHOWN = 20 };

/* ---- durations ---- */

/* The bucket's upper bound in microseconds that a share of them does not exceed; 0: there are none. */
static uint64_t web_figures_quantile_us(const struct durations *durations, double share) {
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

static void web_figures_add(struct durations *sum, const struct durations *part) {
    sum->count += part->count;
    sum->total_ns += part->total_ns;
    for (unsigned i = 0; i < DURATIONS_BUCKETS; i++) {
        sum->buckets[i] += part->buckets[i];
    }
}

/* What came since `before`; all of it, if the counters were reset. */
static struct durations web_figures_since(const struct durations *now,
                                          const struct durations *before) {
    struct durations part = *now;
    if (now->count < before->count) {
        return part;
    }
    part.count -= before->count;
    part.total_ns -= before->total_ns;
    for (unsigned i = 0; i < DURATIONS_BUCKETS; i++) {
        part.buckets[i] -= before->buckets[i];
    }
    return part;
}

static struct durations web_figures_sum_of_calls(const struct figures *figures) {
    struct durations sum = {.count = 0};
    for (uint32_t i = 0; i < figures->stats.command_count; i++) {
        web_figures_add(&sum, &figures->commands[i].calls);
    }
    return sum;
}

static uint64_t web_figures_count_members(const struct figures *figures) {
    uint64_t members = 0;
    for (unsigned i = 0; i < REGISTRY_DATABASES; i++) {
        members += figures->databases[i].members;
    }
    return members;
}

/* ---- the last hour ---- */

static double web_figures_rate(uint64_t now, uint64_t before, int64_t passed_ms) {
    return now < before || passed_ms <= 0 ? 0 : (double)(now - before) * 1000 / (double)passed_ms;
}

static int64_t web_figures_unix_ms(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void web_figures_take_sample(struct web_history *history, const struct figures *figures) {
    const struct web_totals last = history->last;
    const struct web_totals now = {
        .uptime_ms = figures->uptime_ms,
        .commands = figures->stats.commands_processed,
        .input = figures->stats.input_bytes,
        .output = figures->stats.output_bytes,
        .calls = web_figures_sum_of_calls(figures),
        .ticks = figures->stats.ticks,
    };
    history->last = now;
    if (last.uptime_ms == 0) {
        return;
    }
    int64_t passed_ms = now.uptime_ms - last.uptime_ms;
    struct durations new_calls = web_figures_since(&now.calls, &last.calls);
    struct durations new_ticks = web_figures_since(&now.ticks, &last.ticks);
    unsigned at = (history->first + history->count) % WEB_SAMPLES_MAX;
    history->samples[at] = (struct web_sample){
        .at_ms = web_figures_unix_ms(),
        .operations = web_figures_rate(now.commands, last.commands, passed_ms),
        .input = web_figures_rate(now.input, last.input, passed_ms),
        .output = web_figures_rate(now.output, last.output, passed_ms),
        .p50_us = web_figures_quantile_us(&new_calls, 0.5),
        .p99_us = web_figures_quantile_us(&new_calls, 0.99),
        .tick_us = web_figures_quantile_us(&new_ticks, 0.99),
        .memory = memory_used(),
        .clients = figures->clients,
        .members = web_figures_count_members(figures),
    };
    if (history->count < WEB_SAMPLES_MAX) {
        history->count++;
    } else {
        history->first = (history->first + 1) % WEB_SAMPLES_MAX;
    }
}

static void web_figures_sample_is_there(struct web_query *query) {
    struct web *web = query->web;
    web->history.is_asked = false;
    if (query->verdict == WEB_ALLOWED && query->user.may_see_server) {
        web_figures_take_sample(&web->history, query->figures);
    }
}

static bool web_figures_ask_nothing(struct web_query *query) {
    (void)query;
    return true;
}

static bool web_figures_print_nothing(struct web_query *query) {
    (void)query;
    return false;
}

static const struct web_route route_sample = {
    .ask = web_figures_ask_nothing,
    .print = web_figures_print_nothing,
    .needs_figures = true,
    .is_for_all = true,
};

/* The server itself asks, whoever may see it. */
static struct web_query *web_figures_create_sampler(struct web *web) {
    struct web_query *query = web_query_create(web);
    struct figures *figures = memory_allocate_zeroed(figures_size(command_count()));
    if (query == NULL || figures == NULL) {
        if (query != NULL) {
            web_query_destroy(query);
        }
        memory_free(figures);
        return NULL;
    }
    query->figures = figures;
    query->route = &route_sample;
    query->done = web_figures_sample_is_there;
    query->identity = (struct web_identity){.kind = WEB_SELF, .is_local = true};
    return query;
}

void web_history_step(struct web *web, int64_t now_ms) {
    struct web_history *history = &web->history;
    if (history->is_asked ||
        (history->query != NULL && now_ms - history->asked_ms < WEB_SAMPLE_MS)) {
        return;
    }
    if (history->query == NULL) {
        history->query = web_figures_create_sampler(web);
    }
    if (history->query != NULL) {
        history->is_asked = true;
        history->asked_ms = now_ms;
        web_query_run(history->query);
    }
}

/* ---- rights ---- */

/* false: the error was written. */
static bool web_figures_check_server(struct web_query *query) {
    if (query->user.may_see_server) {
        return true;
    }
    if (query->user.is_public) {
        web_error(query, 401, "log in to see the server");
    } else {
        web_error(query, 403, "the user %s may not run INFO", query->user.shown);
    }
    return false;
}

static bool web_figures_print_history(struct web_query *query) {
    struct json *json = &query->json;
    const struct web_history *history = &query->web->history;
    if (!web_figures_check_server(query)) {
        return false;
    }
    json_open(json, NULL, '{');
    json_integer(json, "interval_ms", WEB_SAMPLE_MS);
    json_open(json, "points", '[');
    for (unsigned i = 0; i < history->count; i++) {
        const struct web_sample *sample = &history->samples[(history->first + i) % WEB_SAMPLES_MAX];
        json_open(json, NULL, '{');
        json_time_ms(json, "at", sample->at_ms);
        json_number(json, "operations_per_second", sample->operations);
        json_integer(json, "p50_us", (int64_t)sample->p50_us);
        json_integer(json, "p99_us", (int64_t)sample->p99_us);
        json_integer(json, "tick_us", (int64_t)sample->tick_us);
        json_integer(json, "memory", (int64_t)sample->memory);
        json_integer(json, "clients", (int64_t)sample->clients);
        json_integer(json, "members", (int64_t)sample->members);
        json_number(json, "input_bytes_per_second", sample->input);
        json_number(json, "output_bytes_per_second", sample->output);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
    return false;
}

const struct web_route web_route_history = {.ask = web_figures_ask_nothing,
                                            .print = web_figures_print_history};

/* ---- figures ---- */

static void web_figures_put_latency(struct json *json, const struct durations *calls) {
    json_open(json, "latency", '{');
    json_integer(json, "p50_us", (int64_t)web_figures_quantile_us(calls, 0.5));
    json_integer(json, "p90_us", (int64_t)web_figures_quantile_us(calls, 0.9));
    json_integer(json, "p99_us", (int64_t)web_figures_quantile_us(calls, 0.99));
    json_integer(json, "p999_us", (int64_t)web_figures_quantile_us(calls, 0.999));
    json_close(json, '}');
}

static void web_figures_put_tick(struct json *json, const struct stats *stats) {
    json_open(json, "tick", '{');
    json_number(json, "mean_us",
                stats->ticks.count > 0
                    ? (double)stats->ticks.total_ns / 1000 / (double)stats->ticks.count
                    : 0);
    json_integer(json, "p99_us", (int64_t)web_figures_quantile_us(&stats->ticks, 0.99));
    json_integer(json, "longest_us", (int64_t)stats->tick_longest_us);
    json_integer(json, "count", (int64_t)stats->ticks.count);
    json_close(json, '}');
}

static void web_figures_put_memory(struct json *json, const struct figures *figures) {
    json_open(json, "memory", '{');
    json_integer(json, "used", (int64_t)memory_used());
    json_integer(json, "peak", (int64_t)memory_used_peak());
    json_integer(json, "limit", (int64_t)figures->memory_limit);
    json_integer(json, "clients", (int64_t)figures->memory_clients);
    json_integer(json, "machine", (int64_t)figures->memory_machine);
    json_close(json, '}');
}

static void web_figures_put_journal(struct json *json, const struct persistence_info *kept) {
    json_open(json, "journal", '{');
    json_boolean(json, "enabled", kept->is_journal_on);
    json_boolean(json, "ok", kept->is_journal_ok);
    json_integer(json, "size", (int64_t)kept->journal_size);
    json_integer(json, "waiting", (int64_t)kept->waiting_size);
    json_integer(json, "sync_p99_us", (int64_t)web_figures_quantile_us(&kept->syncs, 0.99));
    json_integer(json, "sync_longest_us", (int64_t)kept->sync_longest_us);
    json_close(json, '}');
    json_open(json, "snapshot", '{');
    json_boolean(json, "ok", kept->is_last_save_ok);
    json_boolean(json, "is_saving", kept->is_saving);
    json_time_ms(json, "at", kept->last_save_s * 1000);
    json_integer(json, "changes_since", (int64_t)kept->changes);
    json_close(json, '}');
}

static void web_figures_put_databases(struct json *json, const struct figures *figures) {
    json_open(json, "databases", '[');
    for (unsigned i = 0; i < REGISTRY_DATABASES; i++) {
        const struct figures_database *database = &figures->databases[i];
        if (database->keys == 0) {
            continue;
        }
        json_open(json, NULL, '{');
        json_integer(json, "db", i);
        json_integer(json, "keys", database->keys);
        json_integer(json, "boards", database->boards);
        json_integer(json, "members", (int64_t)database->members);
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* Has it taken less time than the other one, or as much, behind it in the table? */
static bool web_figures_is_behind(const struct stats_command *one,
                                  const struct stats_command *other) {
    return one->calls.total_ns < other->calls.total_ns ||
           (one->calls.total_ns == other->calls.total_ns && one > other);
}

/* Those that took the most time together. */
static void web_figures_put_commands(struct json *json, const struct figures *figures) {
    const struct stats_command *last = NULL;
    json_open(json, "commands", '[');
    for (unsigned shown = 0; shown < COMMANDS_SHOWN; shown++) {
        const struct stats_command *most = NULL;
        for (uint32_t i = 0; i < figures->stats.command_count; i++) {
            const struct stats_command *each = &figures->commands[i];
            if (each->calls.count > 0 && (last == NULL || web_figures_is_behind(each, last)) &&
                (most == NULL || web_figures_is_behind(most, each))) {
                most = each;
            }
        }
        if (most == NULL) {
            break;
        }
        uint32_t index = (uint32_t)(most - figures->commands);
        last = most;
        json_open(json, NULL, '{');
        json_text(json, "name", bytes_from_text(command_full_name(index)));
        json_integer(json, "calls", (int64_t)most->calls.count);
        json_integer(json, "failed", (int64_t)most->failed_calls);
        json_number(json, "mean_us",
                    (double)most->calls.total_ns / 1000 / (double)most->calls.count);
        json_integer(json, "p99_us", (int64_t)web_figures_quantile_us(&most->calls, 0.99));
        json_close(json, '}');
    }
    json_close(json, ']');
}

/* ---- replication: the role, the link to the master, and the replicas ---- */

static void web_figures_put_error(struct json *json, const char *error) {
    if (error[0] != '\0') {
        json_text(json, "error", bytes_from_text(error));
    } else {
        json_null(json, "error");
    }
}

static void web_figures_put_master(struct json *json, const struct figures_replication *figures) {
    if (!figures->is_replica) {
        json_null(json, "master");
        return;
    }
    json_open(json, "master", '{');
    json_text(json, "address", bytes_from_text(figures->master));
    json_text(json, "link", bytes_from_text(replication_link_name(figures->link)));
    json_integer(json, "heard_ms", figures->heard_ms);
    json_integer(json, "down_ms", figures->down_ms);
    json_integer(json, "unapplied_groups", (int64_t)figures->unapplied_groups);
    json_integer(json, "copy_size", (int64_t)figures->copy_size);
    json_integer(json, "copied_size", (int64_t)figures->copy_read_size);
    web_figures_put_error(json, figures->error);
    json_close(json, '}');
}

static const char *const replica_states[] = {[REPLICA_HANDSHAKE] = "handshake",
                                             [REPLICA_WAITS] = "waiting",
                                             [REPLICA_COPIES] = "copying",
                                             [REPLICA_ONLINE] = "online"};

static void web_figures_put_replicas(struct json *json, const struct figures_replication *figures) {
    json_integer(json, "replica_count", (int64_t)figures->replicas);
    json_open(json, "replicas", '[');
    for (uint32_t i = 0; i < figures->shown; i++) {
        const struct figures_replica *replica = &figures->shown_replicas[i];
        json_open(json, NULL, '{');
        json_text(json, "address", bytes_from_text(replica->address));
        json_text(json, "state", bytes_from_text(replica_states[replica->state]));
        json_integer(json, "lag_groups", (int64_t)replica->lag_groups);
        json_integer(json, "heard_ms", replica->lag_ms);
        json_close(json, '}');
    }
    json_close(json, ']');
}

static void web_figures_put_sync(struct json *json, const struct figures_replication *figures) {
    if (figures->sync.state == SYNC_OFF) {
        json_null(json, "sync");
        return;
    }
    json_open(json, "sync", '{');
    json_text(json, "state", bytes_from_text(sync_state_name(figures->sync.state)));
    json_integer(json, "replicas_wanted", (int64_t)figures->sync.wanted);
    json_integer(json, "replicas_counted", (int64_t)figures->sync.counted);
    json_boolean(json, "lost_durability", figures->sync.has_lost_durability);
    json_integer(json, "votes", (int64_t)figures->sync.votes);
    json_integer(json, "votes_needed", (int64_t)figures->sync.votes_needed);
    json_integer(json, "unacknowledged_groups", (int64_t)figures->sync.unsafe);
    json_integer(json, "held_ms", figures->sync.held_ms);
    json_close(json, '}');
}

static void web_figures_put_replication(struct json *json,
                                        const struct figures_replication *figures) {
    json_open(json, "replication", '{');
    json_text(json, "role", bytes_from_text(figures->is_replica ? "replica" : "master"));
    json_integer(json, "group", (int64_t)figures->group);
    json_boolean(json, "failing_over", figures->is_failing_over);
    json_integer(json, "backlog", (int64_t)figures->backlog_size);
    web_figures_put_master(json, figures);
    web_figures_put_replicas(json, figures);
    web_figures_put_sync(json, figures);
    json_close(json, '}');
}

static bool web_figures_print_server(struct web_query *query) {
    struct json *json = &query->json;
    const struct figures *figures = query->figures;
    if (!web_figures_check_server(query)) {
        return false;
    }
    const struct stats *stats = &figures->stats;
    struct durations calls = web_figures_sum_of_calls(figures);
    json_open(json, NULL, '{');
    json_text(json, "version", BYTES(SERVER_VERSION));
    json_integer(json, "uptime_ms", figures->uptime_ms);
    json_time_ms(json, "started_at", figures->started_at_s * 1000);
    json_boolean(json, "loading", figures->is_loading);
    json_boolean(json, "writable", figures->is_writable);
    json_number(json, "operations_per_second", stats->commands_per_second);
    json_integer(json, "operations", (int64_t)stats->commands_processed);
    json_integer(json, "errors", (int64_t)stats->error_replies);
    json_number(json, "input_bytes_per_second", stats->input_kbps * 1024);
    json_number(json, "output_bytes_per_second", stats->output_kbps * 1024);
    json_integer(json, "clients", (int64_t)figures->clients);
    json_integer(json, "clients_limit", (int64_t)figures->clients_limit);
    json_integer(json, "clients_blocked", (int64_t)figures->clients_blocked);
    json_integer(json, "clients_rejected", (int64_t)stats->connections_rejected);
    json_integer(json, "subscribers", (int64_t)figures->clients_pubsub);
    json_integer(json, "web_connections", (int64_t)http_server_connections(query->web->http));
    json_integer(json, "web_engine_us", (int64_t)query->web->answered_ns / 1000);
    json_integer(json, "members", (int64_t)web_figures_count_members(figures));
    web_figures_put_latency(json, &calls);
    web_figures_put_tick(json, stats);
    web_figures_put_memory(json, figures);
    web_figures_put_journal(json, &figures->kept);
    web_figures_put_replication(json, &figures->replication);
    web_figures_put_databases(json, figures);
    web_figures_put_commands(json, figures);
    json_close(json, '}');
    return false;
}

const struct web_route web_route_server = {
    .ask = web_figures_ask_nothing, .print = web_figures_print_server, .needs_figures = true};

/* ---- the slow log ---- */

static bool web_figures_ask_slowlog(struct web_query *query) {
    if (!web_number(query, "count", 1, SLOWLOG_MAX, SLOWLOG_MAX, &query->count)) {
        return false;
    }
    web_command(query, "SLOWLOG|GET #", query->count);
    return true;
}

static bool web_figures_print_slowlog(struct web_query *query) {
    struct json *json = &query->json;
    if (query->user.is_public) {
        web_error(query, 401, "log in to see the slow log");
        return false;
    }
    if (web_reply_is_error(query, 0)) {
        return false;
    }
    struct value_reader reader = web_reply(query, 0);
    struct value list = value_next(&reader);
    json_open(json, NULL, '{');
    json_open(json, "entries", '[');
    for (uint64_t i = 0; i < list.count; i++) {
        json_open(json, NULL, '{');
        web_put_members(query, "Slowlog", "entries", reader);
        json_close(json, '}');
        value_skip(&reader);
    }
    json_close(json, ']');
    json_close(json, '}');
    return false;
}

const struct web_route web_route_slowlog = {.ask = web_figures_ask_slowlog,
                                            .print = web_figures_print_slowlog};

/* ---- who asks ---- */

static void web_figures_put_texts(struct json *json, const char *key, const struct bytes *texts,
                                  unsigned count) {
    json_open(json, key, '[');
    for (unsigned i = 0; i < count; i++) {
        json_text(json, NULL, texts[i]);
    }
    json_close(json, ']');
}

static void web_figures_put_data(struct json *json, const struct web_query *query) {
    const struct web *web = query->web;
    const struct web_avatars *avatars = &web->avatars;
    if (web->data.pattern.at == NULL || query->verdict != WEB_ALLOWED) {
        json_null(json, "data");
        json_null(json, "avatars");
        return;
    }
    json_open(json, "data", '{');
    json_text(json, "pattern", web->data.pattern);
    web_figures_put_texts(json, "fields", web->data.fields, web->data.count);
    json_close(json, '}');
    if (avatars->field.at == NULL) {
        json_null(json, "avatars");
        return;
    }
    json_open(json, "avatars", '{');
    json_text(json, "field", avatars->field);
    web_figures_put_texts(json, "origins", avatars->origins, avatars->origin_count);
    json_close(json, '}');
}

static bool web_figures_print_me(struct web_query *query) {
    struct json *json = &query->json;
    bool is_known = query->verdict == WEB_ALLOWED && query->user.is_known;
    json_open(json, NULL, '{');
    if (is_known) {
        json_text(json, "user", bytes_from_text(query->user.shown));
    } else {
        json_null(json, "user");
    }
    json_boolean(json, "is_logged_in", is_known && query->identity.kind == WEB_USER);
    json_boolean(json, "is_public", query->user.is_public);
    json_boolean(json, "can_login", query->user.can_login);
    json_boolean(json, "can_see_server", query->user.may_see_server);
    json_boolean(json, "can_see_slowlog", query->user.may_see_slowlog);
    if (query->verdict == WEB_ALLOWED) {
        json_text(json, "version", BYTES(SERVER_VERSION));
    } else {
        json_null(json, "version");
    }
    web_figures_put_data(json, query);
    json_close(json, '}');
    return false;
}

const struct web_route web_route_me = {
    .ask = web_figures_ask_nothing, .print = web_figures_print_me, .is_for_all = true};
