/* The server as a whole: INFO TIME DBSIZE FLUSHDB FLUSHALL. */
#include "server/clients/server.h"
#include "server/commands/admin/info.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/dispatch/cost.h"

static void info_run(struct call *call) {
    struct buffer text;
    buffer_init(&text, 0);
    info_print(call->server, call->now_ms, call->request->args + 1, call->request->count - 1,
               &text);
    if (text.is_broken) {
        call_out_of_memory(call);
    } else {
        reply_verbatim(call->reply, (struct bytes){.at = text.at, .size = text.size});
    }
    buffer_deinit(&text);
}

const struct command command_info = {
    .name = "INFO",
    .syntax = "[section...]",
    .summary = "Figures of the server, by sections",
    .complexity = "O(n) in the clients",
    .flags = COMMAND_LOADING,
    .run = info_run,
};

static void time_run(struct call *call) {
    reply_array(call->reply, 2);
    reply_bulk_format(call->reply, "%lld", (long long)(call->now_us / 1000000));
    reply_bulk_format(call->reply, "%lld", (long long)(call->now_us % 1000000));
}

const struct command command_time = {
    .name = "TIME",
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
    .summary = "Counts the keys of the database; one that has expired counts until it is removed, "
               "soon after",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_NAMES,
    .run = dbsize_run,
};

/* The variant says whether all databases are flushed. ASYNC and SYNC are the same: boards are
 * always detached, and freed in steps. */
static void flush_run(struct call *call) {
    bool is_all = *(const bool *)call->command->variant;
    uint32_t count = call->request->count;
    if (count > 2 ||
        (count == 2 && !call_arg_is(call, 1, "ASYNC") && !call_arg_is(call, 1, "SYNC"))) {
        call_syntax_error(call);
        return;
    }
    registry_flush(call->registry, is_all ? REGISTRY_DATABASES : call->session->database);
    reply_ok(call->reply);
}

const struct command command_flushdb = {
    .name = "FLUSHDB",
    .syntax = "flush-type=[ASYNC | SYNC]",
    .summary = "Removes every key of the database",
    .complexity = "O(n) in the keys; the boards' memory is freed in steps afterwards",
    .flags = COMMAND_WRITE,
    .audit = AUDIT_FLUSH,
    .cost = &(const struct command_cost){.bound = COMMAND_NEVER_REFUSED,
                                         .count = cost_count_database,
                                         .unit_ns = 30,
                                         .unit = "key of the database",
                                         .instead = "`DEL` of some keys at a time"},
    .variant = &(const bool){false},
    .run = flush_run,
};
const struct command command_flushall = {
    .name = "FLUSHALL",
    .syntax = "flush-type=[ASYNC | SYNC]",
    .summary = "Removes every key of every database",
    .complexity = "O(n) in the keys; the boards' memory is freed in steps afterwards",
    .flags = COMMAND_WRITE,
    .audit = AUDIT_FLUSH,
    .cost = &(const struct command_cost){.bound = COMMAND_NEVER_REFUSED,
                                         .count = cost_count_databases,
                                         .unit_ns = 30,
                                         .unit = "key",
                                         .instead = "`DEL` of some keys at a time"},
    .variant = &(const bool){true},
    .run = flush_run,
};
