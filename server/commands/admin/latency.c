/* LATENCY: latency spikes recorded by the monitor, and the duration of commands. */
#include "server/clients/server.h"
#include "server/commands/admin/describe.h"

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
    .summary = "The newest and the longest spike of every event",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = latest_run,
};

static void history_run(struct call *call) {
    const struct latency_event *event = latency_find(&call->server->latency, call_arg(call, 2));
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
    .summary = "Times and milliseconds of an event's spikes, oldest first",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = history_run,
};

static void reset_run(struct call *call) {
    struct latency *latency = &call->server->latency;
    int64_t forgotten = 0;
    if (call->request->count == 2) {
        forgotten = latency_reset_all(latency);
    }
    for (uint32_t i = 2; i < call->request->count; i++) {
        forgotten += latency_reset(latency, call_arg(call, i));
    }
    reply_integer(call->reply, forgotten);
}

static const struct command latency_reset_command = {
    .name = "RESET",
    .syntax = "[event...]",
    .summary = "Discards the spikes of the given events, or of all",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = reset_run,
};

/* ---- HISTOGRAM ---- */

static uint64_t latency_count_calls(const struct stats_command *stats) {
    uint64_t calls = 0;
    for (int i = 0; i < DURATIONS_BUCKETS; i++) {
        calls += stats->calls.buckets[i];
    }
    return calls;
}

/* "histogram_usec": upper bound of a bucket -> calls up to it, for non-empty buckets. */
static void latency_reply_buckets(struct call *call, const struct stats_command *stats) {
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
}

/* Returns the number of pairs written: 0 if the command was never called. */
static uint64_t latency_reply_histogram(struct call *call, uint32_t index) {
    const struct stats_command *stats = &call->server->stats.commands[index];
    uint64_t calls = latency_count_calls(stats);
    if (calls == 0) {
        return 0;
    }
    reply_bulk_text(call->reply, command_full_name(index));
    reply_map(call->reply, 2);
    reply_named_integer(call->reply, "calls", (int64_t)calls);
    reply_bulk_text(call->reply, "histogram_usec");
    latency_reply_buckets(call, stats);
    return 1;
}

/* A container includes its subcommands, whose numbers follow its own. */
static uint64_t latency_describe_histograms(struct call *call, uint32_t index) {
    uint64_t pair_count = latency_reply_histogram(call, index);
    const struct command *const *subcommand = command_by_index(index)->subcommands;
    for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
        pair_count += latency_reply_histogram(call, ++index);
    }
    return pair_count;
}

static void histogram_run(struct call *call) {
    command_describe_each(call, latency_describe_histograms, true);
}

static const struct command latency_histogram = {
    .name = "HISTOGRAM",
    .syntax = "[command...]",
    .summary = "How many calls of each command took up to 1, 2, 4, 8 ... microseconds",
    .complexity = "O(n) in the commands",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = histogram_run,
};

static const char *const help_lines[] = {
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    ("    Return a cumulative distribution of latencies in the format of a histogram for the "
     "specified command names."),
    "    If no commands are specified then all histograms are replied.",
    NULL,
};

static const struct command latency_help = {
    .name = "HELP",
    .summary = "Lists the subcommands of LATENCY",
    .flags = COMMAND_LOADING,
    .variant = help_lines,
    .run = call_help,
};
static const struct command *const latency_subcommands[] = {
    &latency_help,   &latency_histogram,     &latency_history,
    &latency_latest, &latency_reset_command, NULL,
};
const struct command command_latency = {
    .name = "LATENCY",
    .summary = "Spikes past latency-monitor-threshold, and how long commands take",
    .complexity = "Depends on subcommand.",
    .subcommands = latency_subcommands,
};
