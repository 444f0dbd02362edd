/* OBJECT: what Redis reports about a value's internals, as far as it applies here. */
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

/* Does the key exist? If not, nil is replied. */
static bool find_object(struct call *call) {
    if (call_find_key(call, call_arg(call, 2)) != NULL) {
        return true;
    }
    reply_null(call->reply);
    return false;
}

static void encoding_run(struct call *call) {
    if (find_object(call)) {
        reply_bulk_text(call->reply, "skiplist");
    }
}

static void refcount_run(struct call *call) {
    if (find_object(call)) {
        reply_integer(call->reply, 1);
    }
}

/* The variant is the error. */
static void untracked_run(struct call *call) {
    if (find_object(call)) {
        reply_error(call->reply, call->command->variant);
    }
}

static const char *const help_lines[] = {
    "ENCODING <key>",
    "    Return the kind of internal representation used in order to store the value",
    "    associated with a <key>: skiplist.",
    "FREQ <key>",
    "    Return an error: access frequencies are not tracked.",
    "IDLETIME <key>",
    "    Return an error: times of access are not tracked.",
    "REFCOUNT <key>",
    "    Return the number of references of the value associated with the specified",
    "    <key>: 1.",
    NULL,
};

static const struct command object_encoding = {
    .name = "ENCODING",
    .syntax = "key",
    .summary = "How a board is kept in memory: skiplist",
    .flags = COMMAND_READ,
    .run = encoding_run,
};
static const struct command object_freq = {
    .name = "FREQ",
    .syntax = "key",
    .summary = "Replies an error: access frequencies are not tracked",
    .flags = COMMAND_READ,
    .variant = "ERR An LFU maxmemory policy is not selected, access frequency not tracked. "
               "Please note that when switching between policies at runtime LRU and LFU data "
               "will take some time to adjust.",
    .run = untracked_run,
};
static const struct command object_idletime = {
    .name = "IDLETIME",
    .syntax = "key",
    .summary = "Replies an error: access times are not tracked",
    .flags = COMMAND_READ,
    .variant = "ERR Idle times are not tracked, as nothing is ever evicted",
    .run = untracked_run,
};
static const struct command object_refcount = {
    .name = "REFCOUNT",
    .syntax = "key",
    .summary = "How many keys share a board: always 1",
    .flags = COMMAND_READ,
    .run = refcount_run,
};
static const struct command object_help = {
    .name = "HELP",
    .summary = "Lists the subcommands of OBJECT",
    .flags = COMMAND_LOADING,
    .variant = help_lines,
    .run = call_help,
};
static const struct command *const object_subcommands[] = {
    &object_encoding, &object_freq, &object_idletime, &object_refcount, &object_help, NULL,
};
const struct command command_object = {
    .name = "OBJECT",
    .summary = "How a key's board is kept",
    .complexity = "Depends on subcommand.",
    .subcommands = object_subcommands,
};
