/* LATENCY: latency spikes recorded by the monitor, and the duration of commands. */
#include "server/clients/server.h"
#include "server/dispatch/command.h"

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
    .complexity = "O(1)",
    .group = "server",
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
    .complexity = "O(1)",
    .group = "server",
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
    .complexity = "O(1)",
    .group = "server",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = reset_run,
};

/* ---- HISTOGRAM ---- */

static uint64_t count_calls(const struct stats_command *stats) {
    uint64_t calls = 0;
    for (int i = 0; i < STATS_HISTOGRAM_BUCKETS; i++) {
        calls += stats->histogram[i];
    }
    return calls;
}

/* "histogram_usec": upper bound of a bucket -> calls up to it, for non-empty buckets. */
static void reply_buckets(struct call *call, const struct stats_command *stats) {
    uint64_t seen = 0;
    uint64_t pair_count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (int i = 0; i < STATS_HISTOGRAM_BUCKETS; i++) {
        if (stats->histogram[i] > 0) {
            seen += stats->histogram[i];
            reply_integer(call->reply, (int64_t)1 << i);
            reply_integer(call->reply, (int64_t)seen);
            pair_count++;
        }
    }
    reply_map_end(call->reply, mark, pair_count);
}

/* Returns the number of pairs written: 0 if the command was never called. */
static uint64_t reply_histogram(struct call *call, uint32_t index) {
    const struct stats_command *stats = &call->server->stats.commands[index];
    uint64_t calls = count_calls(stats);
    if (calls == 0) {
        return 0;
    }
    reply_bulk_text(call->reply, command_full_name(index));
    reply_map(call->reply, 2);
    reply_bulk_text(call->reply, "calls");
    reply_integer(call->reply, (int64_t)calls);
    reply_bulk_text(call->reply, "histogram_usec");
    reply_buckets(call, stats);
    return 1;
}

/* A container includes its subcommands, whose numbers follow its own. */
static uint64_t reply_named(struct call *call, uint32_t index) {
    uint64_t pair_count = reply_histogram(call, index);
    const struct command *const *subcommand = command_by_index(index)->subcommands;
    for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
        pair_count += reply_histogram(call, ++index);
    }
    return pair_count;
}

/* The part of the reply about a command; if the command is named again, it is copied. */
struct told {
    size_t begin, size; /* size 0: not named yet, or nothing to report */
    uint64_t pair_count;
};

static uint64_t reply_named_once(struct call *call, uint32_t index, struct told *told) {
    if (told->size > 0) {
        reply_repeat(call->reply, told->begin, told->size);
        return told->pair_count;
    }
    size_t begin = call->reply->out->size;
    uint64_t pair_count = reply_named(call, index);
    *told = (struct told){
        .begin = begin,
        .size = call->reply->out->size - begin,
        .pair_count = pair_count,
    };
    return pair_count;
}

static void reply_all_named(struct call *call) {
    struct told *told = memory_allocate_zeroed(command_count() * sizeof *told);
    if (told == NULL) {
        call_out_of_memory(call);
        return;
    }
    uint64_t pair_count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t i = 2; i < call->request->count && !reply_is_lost(call->reply); i++) {
        uint32_t index = command_find_full_name(call_arg(call, i));
        if (index != COMMAND_NONE) {
            pair_count += reply_named_once(call, index, &told[index]);
        }
    }
    reply_map_end(call->reply, mark, pair_count);
    memory_free(told);
}

static void histogram_run(struct call *call) {
    if (call->request->count > 2) {
        reply_all_named(call);
        return;
    }
    uint64_t pair_count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t index = 0; index < command_count(); index++) {
        pair_count += reply_histogram(call, index);
    }
    reply_map_end(call->reply, mark, pair_count);
}

static const struct command latency_histogram = {
    .name = "HISTOGRAM",
    .syntax = "[command...]",
    .summary = "How many calls of each command took up to 1, 2, 4, 8 ... microseconds",
    .complexity = "O(n) in the commands",
    .group = "server",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = histogram_run,
};

static void help_run(struct call *call) {
    static const char *const lines[] = {
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
    call_help(call, lines);
}

static const struct command latency_help = {
    .name = "HELP",
    .summary = "Lists the subcommands of LATENCY",
    .complexity = "O(1)",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = help_run,
};
static const struct command *const latency_subcommands[] = {
    &latency_help,   &latency_histogram,     &latency_history,
    &latency_latest, &latency_reset_command, NULL,
};
const struct command command_latency = {
    .name = "LATENCY",
    .summary = "Spikes past latency-monitor-threshold, and how long commands take",
    .complexity = "Depends on subcommand.",
    .group = "server",
    .subcommands = latency_subcommands,
};
