/* Commands on keys, independent of board contents: DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX
 * COPY. A removed board is detached, and the tick frees it in steps. */
#include <limits.h>

#include "server/clients/server.h"
#include "server/commands/zset/zset.h"
#include "server/dispatch/command.h"
#include "server/dispatch/cost.h"

static const struct argument one_key[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = NULL},
};
static const struct argument many_keys[] = {
    {.name = "key", .type = ARGUMENT_KEY, .flags = ARGUMENT_MULTIPLE},
    {.name = NULL},
};

/* ---- DEL, UNLINK, EXISTS, TOUCH, TYPE ---- */

static void del_run(struct call *call) {
    int64_t removed = 0;
    for (uint32_t i = 1; i < call->request->count; i++) {
        struct registry_key *key = call_find_key(call, call_arg(call, i));
        if (key != NULL) {
            registry_remove(call->registry, key);
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

const struct command command_del = {
    .name = "DEL",
    .summary = "Removes keys and their boards",
    .complexity = "O(1) for each key; the boards' memory is freed in steps afterwards",
    .since = "1.0.0",
    .group = "generic",
    .arity = -2,
    .flags = COMMAND_WRITE,
    .first_key = 1,
    .last_key = -1,
    .key_step = 1,
    .arguments = many_keys,
    .cost = &(const struct command_cost){.count = cost_count_keys,
                                         .unit_ns = 500,
                                         .unit = "key",
                                         .instead = "several commands of a thousand each"},
    .run = del_run,
};
const struct command command_unlink = {
    .name = "UNLINK",
    .summary = "Removes keys and their boards, as DEL does",
    .complexity = "O(1) for each key; the boards' memory is freed in steps afterwards",
    .since = "1.0.0",
    .group = "generic",
    .arity = -2,
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .first_key = 1,
    .last_key = -1,
    .key_step = 1,
    .arguments = many_keys,
    .cost = &(const struct command_cost){.count = cost_count_keys,
                                         .unit_ns = 500,
                                         .unit = "key",
                                         .instead = "several commands of a thousand each"},
    .run = del_run,
};
const struct command command_exists = {
    .name = "EXISTS",
    .summary = "Counts how many of the given keys exist",
    .complexity = "O(1) for each key",
    .since = "1.0.0",
    .group = "generic",
    .arity = -2,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = -1,
    .key_step = 1,
    .arguments = many_keys,
    .cost = &(const struct command_cost){.count = cost_count_keys,
                                         .unit_ns = 300,
                                         .unit = "key",
                                         .instead = "several commands of a thousand each"},
    .run = exists_run,
};
const struct command command_touch = {
    .name = "TOUCH",
    .summary = "Counts how many of the given keys exist; access times are not kept",
    .complexity = "O(1) for each key",
    .since = "1.0.0",
    .group = "generic",
    .arity = -2,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = -1,
    .key_step = 1,
    .arguments = many_keys,
    .cost = &(const struct command_cost){.count = cost_count_keys,
                                         .unit_ns = 300,
                                         .unit = "key",
                                         .instead = "several commands of a thousand each"},
    .run = exists_run,
};
const struct command command_type = {
    .name = "TYPE",
    .summary = "Replies zset for a board, none for a missing key",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "generic",
    .arity = 2,
    .flags = COMMAND_READ | COMMAND_FAST,
    .first_key = 1,
    .last_key = 1,
    .key_step = 1,
    .arguments = one_key,
    .run = type_run,
};

/* ---- RENAME, RENAMENX, COPY ---- */

/* Rename the source, unless only_new is set and the destination exists. false: the error was
 * replied. Otherwise *is_renamed says whether it was renamed. */
static bool rename_key(struct call *call, bool only_new, bool *is_renamed) {
    struct bytes to = call_arg(call, 2);
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        reply_error(call->reply, "ERR no such key");
        return false;
    }
    if (!zset_check_key(call, to)) {
        return false;
    }
    *is_renamed = !(only_new && call_find_key(call, to) != NULL);
    if (*is_renamed && registry_rename(call->registry, key, call->session->database, to,
                                       call->now_ms) != REGISTRY_OK) {
        call_out_of_memory(call);
        return false;
    }
    return true;
}

static void rename_run(struct call *call) {
    bool is_renamed;
    if (rename_key(call, false, &is_renamed)) {
        reply_ok(call->reply);
    }
}

static void renamenx_run(struct call *call) {
    bool is_renamed;
    if (rename_key(call, true, &is_renamed)) {
        reply_integer(call->reply, is_renamed);
    }
}

static const struct argument rename_arguments[] = {
    {.name = "key", .type = ARGUMENT_KEY},
    {.name = "newkey", .type = ARGUMENT_KEY},
    {.name = NULL},
};
const struct command command_rename = {
    .name = "RENAME",
    .summary = "Renames a key; a key with the new name is replaced",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "generic",
    .arity = 3,
    .flags = COMMAND_WRITE,
    .first_key = 1,
    .last_key = 2,
    .key_step = 1,
    .arguments = rename_arguments,
    .cost = &(const struct command_cost){.count = cost_count_whole,
                                         .unit_ns = 0,
                                         .grown_key = 2,
                                         .unit = "member of the board",
                                         .instead = ""},
    .run = rename_run,
};
const struct command command_renamenx = {
    .name = "RENAMENX",
    .summary = "Renames a key if the new name is free",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "generic",
    .arity = 3,
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .first_key = 1,
    .last_key = 2,
    .key_step = 1,
    .arguments = rename_arguments,
    .cost = &(const struct command_cost){.count = cost_count_whole,
                                         .unit_ns = 0,
                                         .grown_key = 2,
                                         .unit = "member of the board",
                                         .instead = ""},
    .run = renamenx_run,
};

/* Redis parses DB as a C int, and its error text says so. */
static bool parse_database(struct call *call, struct bytes text, uint32_t *database) {
    int64_t number;
    if (!call_parse_integer(call, text, &number)) {
        return false;
    }
    if (number < INT_MIN || number > INT_MAX) {
        reply_error_format(call->reply, "ERR value is out of range, value must between %d and %d",
                           INT_MIN, INT_MAX);
        return false;
    }
    if (number < 0 || number >= REGISTRY_DATABASES) {
        reply_error(call->reply, "ERR DB index is out of range");
        return false;
    }
    *database = (uint32_t)number;
    return true;
}

static bool parse_copy_options(struct call *call, uint32_t *database, bool *is_replacing) {
    for (uint32_t i = 3; i < call->request->count; i++) {
        if (call_arg_is(call, i, "REPLACE")) {
            *is_replacing = true;
        } else if (call_arg_is(call, i, "DB") && i + 1 < call->request->count) {
            if (!parse_database(call, call_arg(call, ++i), database)) {
                return false;
            }
        } else {
            call_syntax_error(call);
            return false;
        }
    }
    return true;
}

static void copy_run(struct call *call) {
    struct bytes from = call_arg(call, 1);
    struct bytes to = call_arg(call, 2);
    uint32_t database = call->session->database;
    bool is_replacing = false;
    if (!parse_copy_options(call, &database, &is_replacing)) {
        return;
    }
    if (database == call->session->database && bytes_equal(from, to)) {
        reply_error(call->reply, "ERR source and destination objects are the same");
        return;
    }
    const struct registry_key *key = call_find_key(call, from);
    if (key == NULL) {
        reply_integer(call->reply, 0);
        return;
    }
    if (!zset_check_key(call, to)) {
        return;
    }
    if (!is_replacing && registry_find(call->registry, database, to, call->now_ms) != NULL) {
        reply_integer(call->reply, 0);
        return;
    }
    if (registry_copy(call->registry, key, database, to, call->now_ms) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    reply_integer(call->reply, 1);
}

static const struct argument copy_arguments[] = {
    {.name = "source", .type = ARGUMENT_KEY},
    {.name = "destination", .type = ARGUMENT_KEY},
    {.name = "destination-db", .type = ARGUMENT_INTEGER, .token = "DB", .flags = ARGUMENT_OPTIONAL},
    {.name = "replace",
     .type = ARGUMENT_PURE_TOKEN,
     .token = "REPLACE",
     .flags = ARGUMENT_OPTIONAL},
    {.name = NULL},
};
const struct command command_copy = {
    .name = "COPY",
    .summary = "Copies a board with its layout, reach times and expiry to another key",
    .complexity = "O(n) in the members of the board",
    .since = "1.0.0",
    .group = "generic",
    .arity = -3,
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .first_key = 1,
    .last_key = 2,
    .key_step = 1,
    .arguments = copy_arguments,
    .cost =
        &(const struct command_cost){.count = cost_count_whole,
                                     .unit_ns = 25,
                                     .grown_key = 2,
                                     .unit = "member of the board",
                                     .instead =
                                         "nothing; copy when few clients wait, such as at night"},
    .run = copy_run,
};
