/* MEMORY: the memory of a key and of the whole server. */
#include "server/commands/admin/info.h"
#include "server/dispatch/options.h"

/* SAMPLES is accepted but has no effect: the size of a board is known exactly. */
static bool check_samples(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return *(int64_t *)target >= 0 || call_syntax_error(call);
}

static const struct option_row usage_options[] = {
    {"SAMPLES", OPTION_INTEGER, 0, check_samples},
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
    .summary = "Bytes that a key and its board take, exactly",
    .complexity = "O(1)",
    .group = "server",
    .flags = COMMAND_READ,
    .run = usage_run,
};

static void put_size(struct call *call, const char *name, uint64_t size) {
    reply_bulk_text(call->reply, name);
    reply_integer(call->reply, (int64_t)size);
}

static void put_number(struct call *call, const char *name, double number) {
    reply_bulk_text(call->reply, name);
    reply_double(call->reply, number);
}

static void stats_run(struct call *call) {
    struct info_memory memory = info_measure_memory(call->server);
    uint64_t keys = 0;
    (void)registry_roll_some(call->registry, call->now_ms);
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        keys += registry_count(call->registry, database);
    }
    uint64_t dataset = memory.used - memory.overhead;
    reply_map(call->reply, 12);
    put_size(call, "peak.allocated", memory.peak);
    put_size(call, "total.allocated", memory.used);
    put_size(call, "startup.allocated", memory.startup);
    put_size(call, "clients.normal", memory.clients);
    put_size(call, "overhead.total", memory.overhead);
    put_size(call, "keys.count", keys);
    put_size(call, "keys.bytes-per-key", keys > 0 ? dataset / keys : 0);
    put_size(call, "dataset.bytes", dataset);
    put_number(call, "dataset.percentage", memory.dataset_percent);
    put_number(call, "peak.percentage", info_percent(memory.used, memory.peak));
    put_number(call, "fragmentation", memory.fragmentation);
    reply_bulk_text(call->reply, "fragmentation.bytes");
    reply_integer(call->reply, (int64_t)memory.resident - (int64_t)memory.used);
}

static const struct command memory_stats = {
    .name = "STATS",
    .summary = "What the server's memory is used for",
    .complexity = "O(n) in the clients",
    .group = "server",
    .run = stats_run,
};

static void help_run(struct call *call) {
    static const char *const lines[] = {
        "STATS",
        "    Return information about the memory usage of the server.",
        "USAGE <key> [SAMPLES <count>]",
        "    Return memory in bytes used by <key> and its value. SAMPLES has no effect: the",
        "    figure is always exact.",
        NULL,
    };
    call_help(call, lines);
}

static const struct command memory_help = {
    .name = "HELP",
    .summary = "Lists the subcommands of MEMORY",
    .complexity = "O(1)",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = help_run,
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
    .group = "server",
    .subcommands = memory_subcommands,
};
