/* The server as JSON: figures, the last hour, the slow log, and who asks. */
#include <stdio.h>

#include "server/dispatch/command.h"
#include "server/system/version.h"
#include "server/web/web_query.h"

enum { SLOWLOG_MAX = 128, COMMANDS_SHOWN = 20 };

/* ---- durations ---- */

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
        const struct durations *part = &figures->stats.commands[i].calls;
        sum.count += part->count;
        sum.total_ns += part->total_ns;
        for (unsigned k = 0; k < DURATIONS_BUCKETS; k++) {
            sum.buckets[k] += part->buckets[k];
        }
    }
    return sum;
}

/* ---- the last hour ---- */

static double web_figures_rate(uint64_t now, uint64_t before, int64_t passed_ms) {
    return now < before || passed_ms <= 0 ? 0 : (double)(now - before) * 1000 / (double)passed_ms;
}

static void web_figures_sample_is_there(struct web_query *query) {
    struct web_history *history = &query->web->history;
    const struct figures *figures = query->figures;
    history->is_asked = false;
    if (query->verdict != WEB_ALLOWED || !query->user.may_see_server) {
        return;
    }
    const struct web_totals last = history->last;
    struct timespec unix_now;
    (void)clock_gettime(CLOCK_REALTIME, &unix_now);
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
        .at_ms = (int64_t)unix_now.tv_sec * 1000 + unix_now.tv_nsec / 1000000,
        .operations = web_figures_rate(now.commands, last.commands, passed_ms),
        .input = web_figures_rate(now.input, last.input, passed_ms),
        .output = web_figures_rate(now.output, last.output, passed_ms),
        .p50_us = figures_quantile_us(&new_calls, 0.5),
        .p99_us = figures_quantile_us(&new_calls, 0.99),
        .tick_us = figures_quantile_us(&new_ticks, 0.99),
        .memory = memory_used(),
        .clients = figures->clients,
        .members = figures->all.members,
    };
    if (history->count < WEB_SAMPLES_MAX) {
        history->count++;
    } else {
        history->first = (history->first + 1) % WEB_SAMPLES_MAX;
    }
}

static bool web_figures_print_nothing(struct web_query *query) {
    (void)query;
    return false;
}

static const struct web_route route_sample = {
    .print = web_figures_print_nothing,
    .needs_figures = true,
    .is_for_all = true,
};

void web_figures_step_history(struct web *web, int64_t now_ms) {
    struct web_history *history = &web->history;
    if (history->is_asked ||
        (history->query != NULL && now_ms - history->asked_ms < WEB_SAMPLE_MS)) {
        return;
    }
    struct web_query *query = history->query;
    if (query == NULL) {
        /* The server itself asks, whoever may see it. */
        query = web_query_create(web);
        struct figures *figures = memory_allocate_zeroed(figures_size(command_count()));
        if (query == NULL || figures == NULL) {
            if (query != NULL) {
                web_query_destroy(query);
            }
            memory_free(figures);
            return;
        }
        query->figures = figures;
        query->route = &route_sample;
        query->done = web_figures_sample_is_there;
        query->identity = (struct web_identity){.kind = WEB_SELF, .is_local = true};
        history->query = query;
    }
    history->is_asked = true;
    history->asked_ms = now_ms;
    web_query_run(query);
}

/* ---- rights ---- */

/* false: the error was written. */
static bool web_figures_check_server(struct web_query *query) {
    if (query->user.may_see_server) {
        return true;
    }
    if (query->user.is_public) {
        web_query_error(query, 401, "log in to see the server");
    } else {
        web_query_error(query, 403, "the user %s may not run INFO", query->user.shown);
    }
    return false;
}

static bool web_figures_print_history(struct web_query *query) {
    const struct web_history *history = &query->web->history;
    if (!web_figures_check_server(query)) {
        return false;
    }
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_put_integer(query, "interval_ms", WEB_SAMPLE_MS);
    web_reply_open(query, "points", WEB_NO_REPLY);
    for (unsigned i = 0; i < history->count; i++) {
        const struct web_sample *sample = &history->samples[(history->first + i) % WEB_SAMPLES_MAX];
        web_reply_open(query, NULL, WEB_NO_REPLY);
        web_reply_put_integer(query, "at", sample->at_ms);
        web_reply_put_decimal(query, "operations_per_second", sample->operations);
        web_reply_put_integer(query, "p50_us", (int64_t)sample->p50_us);
        web_reply_put_integer(query, "p99_us", (int64_t)sample->p99_us);
        web_reply_put_integer(query, "tick_us", (int64_t)sample->tick_us);
        web_reply_put_integer(query, "memory", (int64_t)sample->memory);
        web_reply_put_integer(query, "clients", (int64_t)sample->clients);
        web_reply_put_integer(query, "members", (int64_t)sample->members);
        web_reply_put_decimal(query, "input_bytes_per_second", sample->input);
        web_reply_put_decimal(query, "output_bytes_per_second", sample->output);
        web_reply_close(query);
    }
    return web_reply_end(query);
}

const struct web_route web_route_history = {.print = web_figures_print_history};

/* ---- figures ---- */

/* Has it taken less time than the other one, or as much, behind it in the table? */
static bool web_figures_is_behind(const struct stats_command *one,
                                  const struct stats_command *other) {
    return one->calls.total_ns < other->calls.total_ns ||
           (one->calls.total_ns == other->calls.total_ns && one > other);
}

/* Those that took the most time together. */
static void web_figures_put_commands(struct web_query *query) {
    const struct figures *figures = query->figures;
    const struct stats_command *last = NULL;
    web_reply_open(query, "commands", WEB_NO_REPLY);
    for (unsigned shown = 0; shown < COMMANDS_SHOWN; shown++) {
        const struct stats_command *most = NULL;
        for (uint32_t i = 0; i < figures->stats.command_count; i++) {
            const struct stats_command *each = &figures->stats.commands[i];
            if (each->calls.count > 0 && (last == NULL || web_figures_is_behind(each, last)) &&
                (most == NULL || web_figures_is_behind(most, each))) {
                most = each;
            }
        }
        if (most == NULL) {
            break;
        }
        uint32_t index = (uint32_t)(most - figures->stats.commands);
        last = most;
        web_reply_open(query, NULL, WEB_NO_REPLY);
        web_reply_use_figures(query, FIGURE_OF_COMMAND, most, "");
        web_reply_put_text(query, "name", bytes_from_text(command_full_name(index)));
        web_reply_close(query);
    }
    web_reply_close(query);
}

static void web_figures_open(struct web_query *query, const char *name, const char *prefix) {
    web_reply_open(query, name, WEB_NO_REPLY);
    web_reply_use_figures(query, FIGURE_OF_FIGURES, query->figures, prefix);
}

/* The role, the link to the master, and the replicas. */
static void web_figures_put_replication(struct web_query *query) {
    static const struct bytes nothing = {.at = NULL};
    const struct figures_replication *replication = &query->figures->replication;
    web_figures_open(query, "replication", "replication.");
    web_reply_put_text(query, "role", replication->is_replica ? BYTES("replica") : BYTES("master"));
    if (replication->is_replica) {
        web_figures_open(query, "master", "replication.master.");
        web_reply_put_text(query, "error",
                           replication->has_error ? bytes_from_text(replication->error) : nothing);
        web_reply_close(query);
    } else {
        web_reply_put_text(query, "master", nothing);
    }
    web_reply_put_integer(query, "replica_count", (int64_t)replication->replicas);
    web_reply_open(query, "replicas", WEB_NO_REPLY);
    for (uint32_t i = 0; i < replication->shown; i++) {
        web_reply_open(query, NULL, WEB_NO_REPLY);
        web_reply_use_figures(query, FIGURE_OF_REPLICA, &replication->shown_replicas[i], "");
        web_reply_close(query);
    }
    web_reply_close(query);
    if (replication->sync.is_on) {
        web_figures_open(query, "sync", "replication.sync.");
        web_reply_close(query);
    } else {
        web_reply_put_text(query, "sync", nothing);
    }
    web_reply_close(query);
}

static bool web_figures_print_server(struct web_query *query) {
    static const char *const objects[][2] = {{"tick", "tick."},
                                             {"memory", "memory."},
                                             {"journal", "journal."},
                                             {"snapshot", "snapshot."}};
    const struct figures *figures = query->figures;
    if (!web_figures_check_server(query)) {
        return false;
    }
    struct durations calls = web_figures_sum_of_calls(figures);
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_use_figures(query, FIGURE_OF_FIGURES, figures, "");
    web_reply_put_integer(query, "web_connections",
                          (int64_t)http_server_connections(query->web->http));
    web_reply_put_integer(query, "web_engine_us", (int64_t)query->web->answered_ns / 1000);
    web_reply_put_integer(query, "members", (int64_t)figures->all.members);
    web_reply_open(query, "latency", WEB_NO_REPLY);
    web_reply_put_integer(query, "p50_us", (int64_t)figures_quantile_us(&calls, 0.5));
    web_reply_put_integer(query, "p90_us", (int64_t)figures_quantile_us(&calls, 0.9));
    web_reply_put_integer(query, "p99_us", (int64_t)figures_quantile_us(&calls, 0.99));
    web_reply_put_integer(query, "p999_us", (int64_t)figures_quantile_us(&calls, 0.999));
    web_reply_close(query);
    for (unsigned i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        web_figures_open(query, objects[i][0], objects[i][1]);
        web_reply_close(query);
    }
    web_figures_put_replication(query);
    web_reply_open(query, "databases", WEB_NO_REPLY);
    for (unsigned i = 0; i < REGISTRY_DATABASES; i++) {
        if (figures->databases[i].keys > 0) {
            web_reply_open(query, NULL, WEB_NO_REPLY);
            web_reply_use_figures(query, FIGURE_OF_DATABASE, &figures->databases[i], "");
            web_reply_put_integer(query, "db", i);
            web_reply_close(query);
        }
    }
    web_reply_close(query);
    web_figures_put_commands(query);
    return web_reply_end(query);
}

const struct web_route web_route_server = {.print = web_figures_print_server,
                                           .needs_figures = true};

/* ---- the slow log ---- */

static bool web_figures_ask_slowlog(struct web_query *query) {
    if (!web_query_number(query, "count", 1, SLOWLOG_MAX, SLOWLOG_MAX, &query->count)) {
        return false;
    }
    web_query_command(query, "SLOWLOG|GET #", query->count);
    return true;
}

static bool web_figures_print_slowlog(struct web_query *query) {
    if (query->user.is_public) {
        web_query_error(query, 401, "log in to see the slow log");
        return false;
    }
    return !web_query_reply_is_error(query, 0) && web_reply_print(query);
}

const struct web_route web_route_slowlog = {
    .ask = web_figures_ask_slowlog, .print = web_figures_print_slowlog, .takes_errors = true};

/* ---- who asks ---- */

static bool web_figures_print_me(struct web_query *query) {
    static const struct bytes nothing = {.at = NULL};
    const struct web_data *data = &query->web->data;
    const struct web_avatars *avatars = &query->web->avatars;
    bool is_allowed = query->verdict == WEB_ALLOWED;
    bool is_known = is_allowed && query->user.is_known;
    bool is_player = is_known && query->identity.is_player;
    bool has_data = is_allowed && data->pattern.at != NULL;
    web_reply_begin(query, WEB_NO_REPLY);
    web_reply_put_text(query, "user", is_known ? bytes_from_text(query->user.shown) : nothing);
    web_reply_put_text(query, "player",
                       is_player ? bytes_from_text(query->identity.player.claims.player) : nothing);
    web_reply_put_integer(query, "is_logged_in", is_known && query->identity.kind == WEB_USER);
    web_reply_put_integer(query, "is_public", query->user.is_public);
    web_reply_put_integer(query, "can_login", query->user.can_login);
    web_reply_put_integer(query, "can_see_server", query->user.may_see_server);
    web_reply_put_integer(query, "can_see_slowlog", query->user.may_see_slowlog);
    web_reply_put_text(query, "version", is_allowed ? BYTES(SERVER_VERSION) : nothing);
    if (has_data) {
        web_reply_open(query, "data", WEB_NO_REPLY);
        web_reply_put_text(query, "pattern", data->pattern);
        web_reply_put_texts(query, "fields", data->fields, data->count);
        web_reply_close(query);
    } else {
        web_reply_put_text(query, "data", nothing);
    }
    if (has_data && avatars->field.at != NULL) {
        web_reply_open(query, "avatars", WEB_NO_REPLY);
        web_reply_put_text(query, "field", avatars->field);
        web_reply_put_texts(query, "origins", avatars->origins, avatars->origin_count);
    } else {
        web_reply_put_text(query, "avatars", nothing);
    }
    return web_reply_end(query);
}

const struct web_route web_route_me = {.print = web_figures_print_me, .is_for_all = true};
