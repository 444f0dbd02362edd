/* SLOWLOG: the most recent slow commands, newest first. */
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

static void slowlog_reply_entry(struct call *call, const struct slowlog_entry *entry) {
    reply_array(call->reply, 6);
    reply_integer(call->reply, (int64_t)entry->id);
    reply_integer(call->reply, entry->unix_time_s);
    reply_integer(call->reply, (int64_t)entry->elapsed_us);
    reply_array(call->reply, entry->arg_count);
    for (uint32_t i = 0; i < entry->arg_count; i++) {
        reply_bulk(call->reply, (struct bytes){.at = entry->args[i], .size = entry->arg_sizes[i]});
    }
    reply_bulk_text(call->reply, entry->client_address);
    reply_bulk_text(call->reply, entry->client_name);
}

/* false: the error was replied. */
static bool slowlog_parse_count(struct call *call, uint32_t *count) {
    int64_t asked;
    if (!bytes_parse_i64(call_arg(call, 2), &asked) || asked < -1) {
        return call_refuse(call, "ERR count should be greater than or equal to -1");
    }
    *count = asked == -1 || asked > UINT32_MAX ? UINT32_MAX : (uint32_t)asked;
    return true;
}

static void get_run(struct call *call) {
    const struct slowlog *slowlog = &call->server->slowlog;
    uint32_t count = 10;
    if (call->request->count > 3) {
        struct bytes word = call_arg(call, 1);
        reply_error_format(call->reply,
                           "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try "
                           "SLOWLOG HELP.",
                           (int)word.size, word.at);
        return;
    }
    if (call->request->count == 3 && !slowlog_parse_count(call, &count)) {
        return;
    }
    count = count < slowlog->count ? count : slowlog->count;
    reply_array(call->reply, count);
    for (uint32_t i = 0; i < count && !reply_is_lost(call->reply); i++) {
        slowlog_reply_entry(call, slowlog_newest(slowlog, i));
    }
}

static const struct command slowlog_get = {
    .name = "GET",
    .syntax = "[count:integer]",
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
    .summary = "Counts the entries of the slow log",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = len_run,
};

static void reset_run(struct call *call) {
    slowlog_reset(&call->server->slowlog);
    reply_ok(call->reply);
}

static const struct command slowlog_reset_command = {
    .name = "RESET",
    .summary = "Empties the slow log",
    .complexity = "O(n) in the entries",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = reset_run,
};

static const char *const help_lines[] = {
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
    NULL,
};

static const struct command slowlog_help = {
    .name = "HELP",
    .summary = "Lists the subcommands of SLOWLOG",
    .flags = COMMAND_LOADING,
    .variant = help_lines,
    .run = call_help,
};
static const struct command *const slowlog_subcommands[] = {
    &slowlog_get, &slowlog_help, &slowlog_len, &slowlog_reset_command, NULL,
};
const struct command command_slowlog = {
    .name = "SLOWLOG",
    .summary = "Commands that took longer than slowlog-log-slower-than",
    .complexity = "Depends on subcommand.",
    .subcommands = slowlog_subcommands,
};
