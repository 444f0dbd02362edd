/* What the server tells of itself: INFO, SLOWLOG and LATENCY.
 *
 * INFO is the text read by redis-cli --stat, redis_exporter and dashboards. Fields have Redis's names
 * and units, and are present only if they are meaningful for this server. Our own fields
 * (leaderboard_version, tick_longest_us) are added to them. What there is, and in which order, says the
 * table of figures. */
#include <stdarg.h>
#include <stdio.h>

#include "server/commands/admin/admin.h"
#include "server/dispatch/command.h"
#include "server/metrics/figures.h"
#include "server/replication/replication.h"

struct info {
    struct server *server;
    struct buffer *out;
    struct figures figures;
};

__attribute__((format(printf, 2, 3))) static void info_put(struct info *info, const char *format,
                                                           ...) {
    char text[8192]; /* fits a path and its field name */
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(size >= 0 && (size_t)size < sizeof text);
    buffer_append(info->out, text, (size_t)size);
}

static void info_put_value(struct info *info, const struct figure *row, const void *object) {
    struct figure_value value = figures_read(row, object);
    uint64_t number = value.number / (row->info_per_unit > 0 ? row->info_per_unit : 1);
    if (row->info_form == FIGURE_STATUS) {
        info_put(info, number != 0 ? "ok" : "err");
    } else if (row->info_form == FIGURE_SECONDS) {
        info_put(info, "%llu.%06llu", (unsigned long long)number / 1000000,
                 (unsigned long long)number % 1000000);
    } else if (row->info_form == FIGURE_MEAN) {
        info_put(info, "%.2f", figures_mean_us(value.durations));
    } else if (row->type == FIGURE_REAL) {
        info_put(info, row->info_form == FIGURE_ROUND ? "%.0f" : "%.2f", value.real);
        info_put(info, row->info_form == FIGURE_PERCENT ? "%%" : "%s", "");
    } else if (row->type >= FIGURE_TEXT) {
        info_put(info, "%s", value.text != NULL ? value.text : "");
    } else {
        info_put(info, "%s%llu", value.is_negative && number > 0 ? "-" : "",
                 (unsigned long long)number);
    }
}

/* ---- lines ---- */

static void info_put_line(struct info *info, const struct figure *row) {
    const void *object =
        row->of == FIGURE_OF_SERVER ? (const void *)info->server : (const void *)&info->figures;
    if (row->info_form != FIGURE_LINE) {
        info_put(info, "%s:", row->info);
    }
    info_put_value(info, row, object);
    info_put(info, "\r\n");
    if (row->info_form == FIGURE_SIZE) { /* "1.50K", as in Redis */
        static const char units[] = "BKMGTP";
        double shown = (double)figures_read(row, object).number;
        unsigned unit = 0;
        while (shown >= 1024 && unit + 2 < sizeof units) {
            shown /= 1024;
            unit++;
        }
        info_put(info, "%s_human:%.*f%c\r\n", row->info, unit == 0 ? 0 : 2, shown, units[unit]);
    }
}

/* The rows from this one on that are of the same, as words of a line that has begun. */
static void info_put_words(struct info *info, const struct figure *first, const void *object) {
    const char *separator = ":";
    const struct figure *end = figures_table + figures_row_count;
    for (const struct figure *row = first; row < end && row->section == NULL; row++) {
        if (row->of == first->of && row->info != NULL) {
            info_put(info, "%s%s=", separator, row->info);
            info_put_value(info, row, object);
            separator = ",";
        }
    }
    info_put(info, "\r\n");
}

static void info_put_latencies(struct info *info) {
    const struct stats *stats = &info->figures.stats;
    for (uint32_t i = 0; i < stats->command_count; i++) {
        const struct stats_command *command = &stats->commands[i];
        if (stats_percentile_us(command, 1) > 0) {
            info_put(info, "latency_percentiles_usec_%s:p50=%llu,p99=%llu,p99.9=%llu\r\n",
                     command_full_name(i), (unsigned long long)stats_percentile_us(command, 0.5),
                     (unsigned long long)stats_percentile_us(command, 0.99),
                     (unsigned long long)stats_percentile_us(command, 0.999));
        }
    }
}

/* The lines that begin with this row. */
static void info_put_row(struct info *info, const struct figure *row) {
    const char *begin = figures_line(row->of);
    char name[FIGURES_NAME_MAX];
    const void *object;
    if (row->of <= FIGURE_OF_SERVER) {
        info_put_line(info, row);
    } else if (row->of == FIGURE_OF_LATENCY) {
        info_put_latencies(info);
    } else if (row->of == FIGURE_OF_REPLICA) {
        /* All of them, as they are; the figures have the first. */
        uint32_t number = 0;
        for (const struct replica *replica = info->server->replication.replicas; replica != NULL;
             replica = replica->next) {
            char address[REPLICATION_HOST_MAX + 1];
            int64_t past_ms = info->server->clock.monotonic_ms - replica->ack_at_ms;
            replication_print_address(replica, address);
            info_put(info, "slave%u:ip=%s,port=%u,state=%s,offset=%llu,lag=%lld\r\n", number++,
                     address, replica->port, replication_replica_state_name(replica->state),
                     (unsigned long long)replica->ack_group,
                     (long long)(past_ms > 0 ? past_ms / 1000 : 0));
        }
    } else if (row->of == FIGURE_OF_SOURCE) {
        replicator_print_source(info->server->replication.replicator, info->out);
    }
    for (uint32_t i = 0;
         begin != NULL && (object = figures_object(&info->figures, row->of, i, name)) != NULL;
         i++) {
        const struct stats_command *command = object;
        bool is_idle = row->of == FIGURE_OF_COMMAND
                           ? command->calls.count == 0 && command->rejected_calls == 0
                           : row->of == FIGURE_OF_DATABASE && info->figures.databases[i].keys == 0;
        if (!is_idle) {
            info_put(info, "%s%s", begin, name);
            info_put_words(info, row, object);
        }
    }
}

/* ---- sections ---- */

void info_print(struct server *server, int64_t now_ms, const struct bytes *names,
                uint32_t name_count, struct buffer *out) {
    struct info info = {.server = server, .out = out};
    const struct figure *end = figures_table + figures_row_count;
    const char *gap = "";
    bool is_wanted = false;
    enum figure_of of = FIGURE_OF_FIGURES; /* of the row before */
    if (!server->durability.is_loading) {
        (void)registry_roll_some(server->registry, now_ms);
    }
    figures_look(server, &info.figures);
    /* Each section once, in table order, however often and in whatever order they are named. */
    for (const struct figure *row = figures_table; row < end; row++) {
        const bool *is_there = (const bool *)((const char *)&info.figures + row->when);
        if (row->section != NULL) {
            bool is_usual = !row->is_hidden;
            is_wanted = name_count == 0 && is_usual;
            for (uint32_t i = 0; i < name_count; i++) {
                is_wanted |= bytes_is(names[i], row->section) || bytes_is(names[i], "all") ||
                             bytes_is(names[i], "everything") ||
                             (bytes_is(names[i], "default") && is_usual);
            }
            if (is_wanted) {
                info_put(&info, "%s# %s\r\n", gap, row->section);
                gap = "\r\n";
            }
        } else if (is_wanted && row->info != NULL && (row->when == 0 || *is_there)) {
            if (row->of <= FIGURE_OF_SERVER || row->of != of) {
                info_put_row(&info, row);
            }
            of = row->of;
        }
    }
}

static void info_run(struct call *call) {
    struct buffer text;
    buffer_init(&text, 0);
    info_print(call->server, call->now_ms, call->request->args + 1, call->request->count - 1,
               &text);
    if (text.is_broken) {
        call_out_of_memory(call);
    } else {
        reply_verbatim(call->reply, buffer_bytes(&text));
    }
    buffer_deinit(&text);
}

const struct command command_info = {
    .name = "INFO",
    .syntax = "[section...]",
    .reply = "s",
    .summary = "Figures of the server, by sections",
    .complexity = "O(n) in the clients",
    .flags = COMMAND_LOADING,
    .run = info_run,
};

/* ---- SLOWLOG: the most recent slow commands, newest first; LATENCY: events that took long, and histograms of commands ---- */

static void get_run(struct call *call) {
    const struct slowlog *slowlog = &call->server->slowlog;
    int64_t asked = 10;
    if (!call_check_count(call, 3, "SLOWLOG")) {
        return;
    }
    if (call->request->count == 3 && (!bytes_parse_i64(call_arg(call, 2), &asked) || asked < -1)) {
        reply_error(call->reply, "ERR count should be greater than or equal to -1");
        return;
    }
    uint32_t count = asked < 0 || asked > slowlog->count ? slowlog->count : (uint32_t)asked;
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i++) {
        const struct slowlog_entry *entry = stats_slowlog_newest(slowlog, i);
        reply_array(call->reply, 6);
        reply_integer(call->reply, (int64_t)entry->id);
        reply_integer(call->reply, entry->unix_time_s);
        reply_integer(call->reply, (int64_t)entry->elapsed_us);
        reply_array(call->reply, entry->arg_count);
        for (uint32_t j = 0; j < entry->arg_count; j++) {
            reply_bulk(call->reply,
                       (struct bytes){.at = entry->args[j], .size = entry->arg_sizes[j]});
        }
        reply_bulk_text(call->reply, entry->client_address);
        reply_bulk_text(call->reply, entry->client_name);
    }
}

static const struct command slowlog_get = {
    .name = "GET",
    .syntax = "[count:integer]",
    .reply = "[@SlowlogEntry]",
    .summary = "The newest entries: id, unix time, microseconds, arguments, client, its name",
    .complexity = "O(n) in the entries returned",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = get_run,
};

static void len_run(struct call *call) {
    reply_integer(call->reply, call->server->slowlog.count);
}

static const struct command slowlog_len = {
    .name = "LEN",
    .reply = "i",
    .summary = "Counts the entries of the slow log",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = len_run,
};

static void reset_run(struct call *call) {
    stats_slowlog_reset(&call->server->slowlog);
    reply_ok(call->reply);
}

static const struct command slowlog_reset_command = {
    .name = "RESET",
    .reply = "<OK>",
    .summary = "Empties the slow log",
    .complexity = "O(n) in the entries",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = reset_run,
};

const struct command command_slowlog = {
    .name = "SLOWLOG",
    .summary = "Commands that took longer than slowlog-log-slower-than",
    .complexity = "Depends on subcommand.",
    .subcommands =
        COMMAND_LIST(&slowlog_get, &call_help_command, &slowlog_len, &slowlog_reset_command),
};

/* ---- events ---- */

static void latest_run(struct call *call) {
    const struct latency *latency = &call->server->latency;
    reply_array(call->reply, latency->event_count);
    for (uint32_t i = 0; i < latency->event_count; i++) {
        const struct latency_event *event = &latency->events[i];
        uint32_t newest = (event->next + LATENCY_HISTORY_MAX - 1) % LATENCY_HISTORY_MAX;
        reply_array(call->reply, 4);
        reply_bulk_text(call->reply, event->name);
        reply_integer(call->reply, event->history[newest].unix_time_s);
        reply_integer(call->reply, event->history[newest].latency_ms);
        reply_integer(call->reply, event->longest_ms);
    }
}

static const struct command latency_latest = {
    .name = "LATEST",
    .reply = "[[event:s at:e latest_ms:i longest_ms:i]]",
    .summary = "The newest and the longest spike of every event",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = latest_run,
};

static void history_run(struct call *call) {
    const struct latency_event *event =
        stats_latency_find(&call->server->latency, call_arg(call, 2));
    uint32_t count = event != NULL ? event->count : 0;
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (event->next + LATENCY_HISTORY_MAX - count + i) % LATENCY_HISTORY_MAX;
        reply_array(call->reply, 2);
        reply_integer(call->reply, event->history[at].unix_time_s);
        reply_integer(call->reply, event->history[at].latency_ms);
    }
}

static const struct command latency_history = {
    .name = "HISTORY",
    .syntax = "event",
    .reply = "[[at:e latency_ms:i]]",
    .summary = "Times and milliseconds of an event's spikes, oldest first",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = history_run,
};

static void latency_reset_run(struct call *call) {
    struct latency *latency = &call->server->latency;
    int64_t forgotten = 0;
    if (call->request->count == 2) {
        forgotten = stats_latency_reset_all(latency);
    }
    for (uint32_t i = 2; i < call->request->count; i++) {
        forgotten += stats_latency_reset(latency, call_arg(call, i));
    }
    reply_integer(call->reply, forgotten);
}

static const struct command latency_reset_command = {
    .name = "RESET",
    .syntax = "[event...]",
    .reply = "i",
    .summary = "Discards the spikes of the given events, or of all",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = latency_reset_run,
};

/* ---- HISTOGRAM ---- */

/* Returns the number of pairs written: 0 if the command was never called. */
static uint64_t info_reply_histogram(struct call *call, uint32_t index) {
    const struct stats_command *stats = &call->server->stats.commands[index];
    if (stats->calls.count == 0) {
        return 0;
    }
    reply_bulk_text(call->reply, command_full_name(index));
    reply_map(call->reply, 2);
    reply_named_integer(call->reply, "calls", (int64_t)stats->calls.count);
    reply_bulk_text(call->reply, "histogram_usec");
    /* "histogram_usec": upper bound of a bucket -> calls up to it, for non-empty buckets. */
    uint64_t seen = 0;
    uint64_t pair_count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (int i = 0; i < DURATIONS_BUCKETS; i++) {
        if (stats->calls.buckets[i] > 0) {
            seen += stats->calls.buckets[i];
            reply_integer(call->reply, (int64_t)1 << i);
            reply_integer(call->reply, (int64_t)seen);
            pair_count++;
        }
    }
    reply_map_end(call->reply, mark, pair_count);
    return 1;
}

/* A container includes its subcommands, whose numbers follow its own. */
static uint64_t info_describe_histograms(struct call *call, uint32_t index) {
    uint64_t pair_count = info_reply_histogram(call, index);
    const struct command *const *subcommand = command_by_index(index)->subcommands;
    for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
        pair_count += info_reply_histogram(call, ++index);
    }
    return pair_count;
}

static void histogram_run(struct call *call) {
    describe_each(call, info_describe_histograms, true);
}

static const struct command latency_histogram = {
    .name = "HISTOGRAM",
    .syntax = "[command...]",
    .reply = "{(calls:i histogram_usec:{i})}",
    .summary = "How many calls of each command took up to 1, 2, 4, 8 ... microseconds",
    .complexity = "O(n) in the commands",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = histogram_run,
};

const struct command command_latency = {
    .name = "LATENCY",
    .summary = "Spikes past latency-monitor-threshold, and how long commands take",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&call_help_command, &latency_histogram, &latency_history,
                                &latency_latest, &latency_reset_command),
};
