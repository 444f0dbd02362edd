/* SLOWLOG: the most recent slow commands, newest first. LATENCY: events that took long, and
 * histograms of commands. */
#include "server/commands/admin/admin.h"

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
static uint64_t slow_reply_histogram(struct call *call, uint32_t index) {
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
static uint64_t slow_describe_histograms(struct call *call, uint32_t index) {
    uint64_t pair_count = slow_reply_histogram(call, index);
    const struct command *const *subcommand = command_by_index(index)->subcommands;
    for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
        pair_count += slow_reply_histogram(call, ++index);
    }
    return pair_count;
}

static void histogram_run(struct call *call) {
    describe_each(call, slow_describe_histograms, true);
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
