/* The server as a whole: TIME DBSIZE FLUSHDB FLUSHALL. */
#include "server/dispatch/cost.h"
#include "server/dispatch/syntax.h"
#include "server/metrics/figures.h"

static void time_run(struct call *call) {
    reply_array(call->reply, 2);
    reply_bulk_format(call->reply, "%lld", (long long)(call->now_us / 1000000));
    reply_bulk_format(call->reply, "%lld", (long long)(call->now_us % 1000000));
}

const struct command command_time = {
    .name = "TIME",
    .reply = "[seconds:s microseconds:s]",
    .summary = "The server's clock: unix seconds, and microseconds of the second",
    .flags = COMMAND_LOADING | COMMAND_FAST,
    .run = time_run,
};

static void dbsize_run(struct call *call) {
    (void)registry_roll_some(call->registry, call->now_ms);
    reply_integer(call->reply, registry_count(call->registry, call->session->database));
}

const struct command command_dbsize = {
    .name = "DBSIZE",
    .reply = "i",
    .summary = "Counts the keys of the database; one that has expired counts until it is removed, "
               "soon after",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_NAMES,
    .run = dbsize_run,
};

/* The variant says whether all databases are flushed. ASYNC and SYNC are the same: boards are
 * always detached, and freed in steps. */
static const struct binding flush_bindings[] = {
    {"flush-type", BINDING_CHOICE, .repeat = BINDING_ONCE}, {0}};

static void flush_run(struct call *call) {
    bool is_all = *(const bool *)call->command->variant;
    unsigned ignored = 0;
    if (syntax_read(call, &ignored)) {
        registry_flush(call->registry, is_all ? REGISTRY_DATABASES : call->session->database);
        reply_ok(call->reply);
    }
}

#define FLUSH_ENTRY(word, what, counted, of, is_all)                                               \
    {                                                                                              \
        .name = (word), .syntax = "flush-type=[ASYNC | SYNC]", .bindings = flush_bindings,         \
        .reply = "<OK>", .summary = "Removes every key of " what,                                  \
        .complexity = "O(n) in the keys; the boards' memory is freed in steps afterwards",         \
        .flags = COMMAND_WRITE, .audit = AUDIT_FLUSH,                                              \
        .cost = COST(COMMAND_NEVER_REFUSED, counted, 30, 0, of, "`DEL` of some keys at a time"),   \
        .variant = &(const bool){is_all}, .run = flush_run                                         \
    }

const struct command command_flushdb =
    FLUSH_ENTRY("FLUSHDB", "the database", cost_count_database, "key of the database", false);
const struct command command_flushall =
    FLUSH_ENTRY("FLUSHALL", "every database", cost_count_databases, "key", true);

static void monitor_run(struct call *call) {
    if (call->session->transaction.is_running) {
        reply_error(call->reply, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    server_set_monitor(call->server, call->session, true);
    reply_ok(call->reply);
}

const struct command command_monitor = {
    .name = "MONITOR",
    .reply = "<OK>",
    .summary = "Stream every command that the server runs from now on",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = monitor_run,
};

/* SAMPLES is accepted but has no effect: the size of a board is known exactly. */
static bool server_commands_check_samples(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return *(int64_t *)target >= 0 || call_syntax_error(call);
}

static const struct binding usage_bindings[] = {
    {"SAMPLES", BINDING_INTEGER, .read = server_commands_check_samples},
    {0},
};

/* Not call_find_key: Redis counts neither a hit nor a miss here. */
static void usage_run(struct call *call) {
    int64_t samples;
    if (!syntax_read(call, &samples)) {
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
    .bindings = usage_bindings,
    .reply = "i?",
    .summary = "Bytes that a key and its value take, exactly",
    .flags = COMMAND_READ,
    .key_access = "RO",
    .run = usage_run,
};

static void stats_run(struct call *call) {
    struct reply *reply = call->reply;
    struct figures figures;
    const struct figures_process *memory = &figures.process;
    uint64_t keys = 0;
    (void)registry_roll_some(call->registry, call->now_ms);
    figures_look(call->server, &figures);
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        keys += figures.databases[database].keys;
    }
    reply_map(reply, 12);
    reply_named_integer(reply, "peak.allocated", (int64_t)memory->peak);
    reply_named_integer(reply, "total.allocated", (int64_t)memory->used);
    reply_named_integer(reply, "startup.allocated", (int64_t)figures.memory_startup);
    reply_named_integer(reply, "clients.normal", (int64_t)figures.memory_clients);
    reply_named_integer(reply, "overhead.total", (int64_t)memory->overhead);
    reply_named_integer(reply, "keys.count", (int64_t)keys);
    reply_named_integer(reply, "keys.bytes-per-key",
                        (int64_t)(keys > 0 ? memory->dataset / keys : 0));
    reply_named_integer(reply, "dataset.bytes", (int64_t)memory->dataset);
    reply_bulk_text(reply, "dataset.percentage");
    reply_double(reply, memory->dataset_percent);
    reply_bulk_text(reply, "peak.percentage");
    reply_double(reply, memory->peak_percent);
    reply_bulk_text(reply, "fragmentation");
    reply_double(reply, memory->fragmentation);
    reply_named_integer(reply, "fragmentation.bytes", memory->fragmentation_size);
}

static const struct command memory_stats = {
    .name = "STATS",
    .reply = "(peak.allocated:i total.allocated:i startup.allocated:i clients.normal:i "
             "overhead.total:i keys.count:i keys.bytes-per-key:i dataset.bytes:i "
             "dataset.percentage:n peak.percentage:n fragmentation:n fragmentation.bytes:i)",
    .summary = "What the server's memory is used for",
    .complexity = "O(n) in the clients",
    .run = stats_run,
};

const struct command command_memory = {
    .name = "MEMORY",
    .summary = "What keys and the server take in memory",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&call_help_command, &memory_stats, &memory_usage),
};

/* ---- MODULE ---- */

/* Tools ask which modules there are; what they would look for is built in. */
static void module_list_run(struct call *call) {
    reply_array(call->reply, 0);
}

static const struct command module_list = {
    .name = "LIST",
    .reply = "[o]",
    .summary = "The modules that are loaded: none, an empty array",
    .flags = COMMAND_ADMIN,
    .run = module_list_run,
};

const struct command command_module = {
    .name = "MODULE",
    .summary = "For tools that ask which modules a server has",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&call_help_command, &module_list),
};
