/* OBJECT: what Redis reports about a value's internals, as far as it applies here. */
#include "server/dispatch/call.h"

/* NULL: there is no such key, and nil is replied. */
static const struct registry_key *object_find(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 2));
    if (key == NULL) {
        reply_null(call->reply);
    }
    return key;
}

static void encoding_run(struct call *call) {
    const struct registry_key *key = object_find(call);
    if (key != NULL) {
        reply_bulk_text(call->reply, key->kind == REGISTRY_HASH ? hash_encoding(registry_hash(key))
                                                                : "skiplist");
    }
}

static void refcount_run(struct call *call) {
    if (object_find(call) != NULL) {
        reply_integer(call->reply, 1);
    }
}

/* The variant is the error. */
static void untracked_run(struct call *call) {
    if (object_find(call) != NULL) {
        reply_error(call->reply, call->command->variant);
    }
}

static const struct command object_encoding = {
    .name = "ENCODING",
    .syntax = "key",
    .reply = "s?",
    .summary =
        "How a value is kept in memory: skiplist for a board, listpack or hashtable for a hash",
    .flags = COMMAND_READ,
    .key_access = "RO",
    .run = encoding_run,
};
#define UNTRACKED_ENTRY(word, what, own)                                                           \
    {                                                                                              \
        .name = (word), .syntax = "key", .reply = "!?", .summary = (what), .flags = COMMAND_READ,  \
        .key_access = "RO", .variant = (own), .run = untracked_run                                 \
    }

static const struct command object_freq = UNTRACKED_ENTRY(
    "FREQ", "Replies an error: access frequencies are not tracked",
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
    "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
static const struct command object_idletime =
    UNTRACKED_ENTRY("IDLETIME", "Replies an error: access times are not tracked",
                    "ERR Idle times are not tracked, as nothing is ever evicted");
static const struct command object_refcount = {
    .name = "REFCOUNT",
    .syntax = "key",
    .reply = "i?",
    .summary = "How many keys share a value: always 1",
    .flags = COMMAND_READ,
    .key_access = "RO",
    .run = refcount_run,
};
const struct command command_object = {
    .name = "OBJECT",
    .summary = "How a key's value is kept",
    .complexity = "Depends on subcommand.",
    .subcommands = COMMAND_LIST(&object_encoding, &object_freq, &object_idletime, &object_refcount,
                                &call_help_command),
};
