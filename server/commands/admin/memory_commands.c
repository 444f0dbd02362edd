/* MEMORY: the memory of a key and of the whole server. */
#include "server/commands/admin/info.h"
#include "server/dispatch/options.h"

/* SAMPLES is accepted but has no effect: the size of a board is known exactly. */
static bool memory_commands_check_samples(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return *(int64_t *)target >= 0 || call_syntax_error(call);
}

static const struct option_row usage_options[] = {
    {"SAMPLES", OPTION_INTEGER, 0, memory_commands_check_samples},
    {0},
};

/* Not call_find_key: Redis counts neither a hit nor a miss here. */
static void usage_run(struct call *call) {
    int64_t samples;
    if (!options_read(call, 3, &samples)) {
        return;
    }
    const struct registry_key *key =
        registry_find(call->registry, call->session->database, call_arg(call, 2), call->now_ms);
    if (key == NULL) {
        reply_null(call->reply);
        return;
    }
    reply_integer(call->reply, (int64_t)registry_memory_size(call->registry, key));
}

static const struct command memory_usage = {
    .name = "USAGE",
    .syntax = "key [SAMPLES count:integer]",
    .options = usage_options,
    .summary = "Bytes that a key and its value take, exactly",
    .flags = COMMAND_READ,
    .key_access = "RO",
    .run = usage_run,
};

static void memory_commands_put_number(struct reply *reply, const char *name, double number) {
    reply_bulk_text(reply, name);
    reply_double(reply, number);
}

static void stats_run(struct call *call) {
    struct reply *reply = call->reply;
    struct info_memory memory = info_measure_memory(call->server);
    uint64_t keys = 0;
    (void)registry_roll_some(call->registry, call->now_ms);
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        keys += registry_count(call->registry, database);
    }
    uint64_t dataset = memory.used - memory.overhead;
    reply_map(reply, 12);
    reply_named_integer(reply, "peak.allocated", (int64_t)memory.peak);
    reply_named_integer(reply, "total.allocated", (int64_t)memory.used);
    reply_named_integer(reply, "startup.allocated", (int64_t)memory.startup);
    reply_named_integer(reply, "clients.normal", (int64_t)memory.clients);
    reply_named_integer(reply, "overhead.total", (int64_t)memory.overhead);
    reply_named_integer(reply, "keys.count", (int64_t)keys);
    reply_named_integer(reply, "keys.bytes-per-key", (int64_t)(keys > 0 ? dataset / keys : 0));
    reply_named_integer(reply, "dataset.bytes", (int64_t)dataset);
    memory_commands_put_number(reply, "dataset.percentage", memory.dataset_percent);
    memory_commands_put_number(reply, "peak.percentage", info_percent(memory.used, memory.peak));
    memory_commands_put_number(reply, "fragmentation", memory.fragmentation);
    reply_named_integer(reply, "fragmentation.bytes",
                        (int64_t)memory.resident - (int64_t)memory.used);
}

static const struct command memory_stats = {
    .name = "STATS",
    .summary = "What the server's memory is used for",
    .complexity = "O(n) in the clients",
    .run = stats_run,
};

static const char *const help_lines[] = {
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value. SAMPLES has no effect: the",
    "    figure is always exact.",
    NULL,
};

static const struct command memory_help = {
    .name = "HELP",
    .summary = "Lists the subcommands of MEMORY",
    .flags = COMMAND_LOADING,
    .variant = help_lines,
    .run = call_help,
};
static const struct command *const memory_subcommands[] = {
    &memory_help,
    &memory_stats,
    &memory_usage,
    NULL,
};
const struct command command_memory = {
    .name = "MEMORY",
    .summary = "What keys and the server take in memory",
    .complexity = "Depends on subcommand.",
    .subcommands = memory_subcommands,
};
