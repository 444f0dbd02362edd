/* Commands on keys, independent of what they hold: DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX.
 * A removed value is detached, and the tick frees it in steps. */
#include "server/commands/window.h"
#include "server/commands/writing.h"
#include "server/dispatch/call.h"
#include "server/dispatch/cost.h"

/* ---- DEL, UNLINK, EXISTS, TOUCH, TYPE ---- */

static void del_run(struct call *call) {
    int64_t removed = 0;
    for (uint32_t i = 1; i < call->request->count; i++) {
        struct registry_key *key = call_find_key(call, call_arg(call, i));
        if (key != NULL) {
            registry_remove(call->registry, key);
            call_notify(call, SETTING_EVENT_GENERIC, "del", call_arg(call, i));
            removed++;
        }
    }
    reply_integer(call->reply, removed);
}

/* A key named twice counts twice, as in Redis. */
static void exists_run(struct call *call) {
    int64_t found = 0;
    for (uint32_t i = 1; i < call->request->count; i++) {
        found += call_find_key(call, call_arg(call, i)) != NULL;
    }
    reply_integer(call->reply, found);
}

static void type_run(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    reply_simple(call->reply, key != NULL ? registry_kind_name(call->registry, key) : "none");
}

static const struct command_cost removing_cost = COST_ROW(
    COMMAND_BY_ARGUMENTS, cost_count_keys, 500, 0, "key", "several commands of a thousand each");

#define REMOVE_ENTRY(word, what, all_flags)                                                        \
    {                                                                                              \
        .name = (word), .syntax = "key...", .reply = "i", .summary = (what),                       \
        .complexity = "O(1) for each key; the values' memory is freed in steps afterwards",        \
        .flags = (all_flags), .cost = &removing_cost, .run = del_run                               \
    }

const struct command command_del =
    REMOVE_ENTRY("DEL", "Removes keys and their values", COMMAND_WRITE);
const struct command command_unlink = REMOVE_ENTRY(
    "UNLINK", "Removes keys and their values, as DEL does", COMMAND_WRITE | COMMAND_FAST);
static const struct command_cost finding_cost = COST_ROW(
    COMMAND_BY_ARGUMENTS, cost_count_keys, 300, 0, "key", "several commands of a thousand each");

#define COUNT_ENTRY(word, what)                                                                    \
    {                                                                                              \
        .name = (word), .syntax = "key...", .reply = "i", .summary = (what),                       \
        .complexity = "O(1) for each key", .flags = COMMAND_READ | COMMAND_FAST,                   \
        .key_access = "RO", .cost = &finding_cost, .run = exists_run                               \
    }

const struct command command_exists =
    COUNT_ENTRY("EXISTS", "Counts how many of the given keys exist");
const struct command command_touch =
    COUNT_ENTRY("TOUCH", "Counts how many of the given keys exist; access times are not kept");
const struct command command_type = {
    .name = "TYPE",
    .syntax = "key",
    .reply = "<zset|hash|none>",
    .summary = "Replies zset for a board, hash for a hash, none for a missing key",
    .flags = COMMAND_READ | COMMAND_FAST,
    .key_access = "RO",
    .run = type_run,
};

/* ---- RENAME, RENAMENX, COPY ---- */

/* A board with a WINDOW and the boards of its periods belong together by their names. */
static bool keys_refuses_rename(const struct call *call, struct registry_key *key) {
    if (key->kind != REGISTRY_BOARD || !window_is_on(key) ||
        window_find_board(call->registry, key, call->now_ms) == NULL) {
        return false;
    }
    reply_error(call->reply, "ERR a board with a WINDOW cannot be renamed, nor can the boards of "
                             "its periods: COPY makes one of its own");
    return true;
}

/* The variant says whether the new name must be free. */
static void rename_run(struct call *call) {
    bool only_new = *(const bool *)call->command->variant;
    struct bytes to = call_arg(call, 2);
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        reply_error(call->reply, "ERR no such key");
    } else if (!call_check_key(call, to) || !writing_may_name(call, to, key) ||
               keys_refuses_rename(call, key)) {
        return;
    } else if (only_new && call_find_key(call, to) != NULL) {
        reply_integer(call->reply, 0);
    } else if (registry_rename(call->registry, key, call->session->database, to, call->now_ms) !=
               REGISTRY_OK) {
        call_out_of_memory(call);
    } else {
        if (!bytes_equal(call_arg(call, 1), to)) {
            call_notify(call, SETTING_EVENT_NEW, "new", to);
            call_notify(call, SETTING_EVENT_GENERIC, "rename_from", call_arg(call, 1));
            call_notify(call, SETTING_EVENT_GENERIC, "rename_to", to);
        }
        if (only_new) {
            reply_integer(call->reply, 1);
        } else {
            reply_ok(call->reply);
        }
    }
}

static const struct command_cost renaming_cost =
    COST_ROW(COMMAND_BY_MEMORY, cost_count_whole, 0, 2, "member or field", "");

#define RENAME_ENTRY(word, shape, what, all_flags, access, only_new)                               \
    {                                                                                              \
        .name = (word), .syntax = "key newkey:key", .reply = (shape),                              \
        .summary = "Renames a key" what, .flags = (all_flags),                                     \
        .key_access = "RW access delete|OW " access, .cost = &renaming_cost,                       \
        .variant = &(const bool){only_new}, .run = rename_run                                      \
    }

const struct command command_rename = RENAME_ENTRY(
    "RENAME", "<OK>", "; a key with the new name is replaced", COMMAND_WRITE, "update", false);
const struct command command_renamenx = RENAME_ENTRY("RENAMENX", "b", " if the new name is free",
                                                     COMMAND_WRITE | COMMAND_FAST, "insert", true);
