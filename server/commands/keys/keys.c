/* Commands on keys, independent of board contents: DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX
 * COPY. A removed board is detached, and the tick frees it in steps. */
#include <limits.h>

#include "server/clients/server.h"
#include "server/commands/zset/zset.h"
#include "server/dispatch/command.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/options.h"

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

static const struct command_cost removing_cost = {.count = cost_count_keys,
                                                  .unit_ns = 500,
                                                  .unit = "key",
                                                  .instead = "several commands of a thousand each"};

const struct command command_del = {
    .name = "DEL",
    .syntax = "key...",
    .summary = "Removes keys and their boards",
    .complexity = "O(1) for each key; the boards' memory is freed in steps afterwards",
    .group = "generic",
    .flags = COMMAND_WRITE,
    .cost = &removing_cost,
    .run = del_run,
};
const struct command command_unlink = {
    .name = "UNLINK",
    .syntax = "key...",
    .summary = "Removes keys and their boards, as DEL does",
    .complexity = "O(1) for each key; the boards' memory is freed in steps afterwards",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .cost = &removing_cost,
    .run = del_run,
};
static const struct command_cost finding_cost = {.count = cost_count_keys,
                                                 .unit_ns = 300,
                                                 .unit = "key",
                                                 .instead = "several commands of a thousand each"};

const struct command command_exists = {
    .name = "EXISTS",
    .syntax = "key...",
    .summary = "Counts how many of the given keys exist",
    .complexity = "O(1) for each key",
    .group = "generic",
    .flags = COMMAND_READ | COMMAND_FAST,
    .cost = &finding_cost,
    .run = exists_run,
};
const struct command command_touch = {
    .name = "TOUCH",
    .syntax = "key...",
    .summary = "Counts how many of the given keys exist; access times are not kept",
    .complexity = "O(1) for each key",
    .group = "generic",
    .flags = COMMAND_READ | COMMAND_FAST,
    .cost = &finding_cost,
    .run = exists_run,
};
const struct command command_type = {
    .name = "TYPE",
    .syntax = "key",
    .summary = "Replies zset for a board, none for a missing key",
    .complexity = "O(1)",
    .group = "generic",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = type_run,
};

/* ---- RENAME, RENAMENX, COPY ---- */

/* Rename the source, unless only_new is set and the destination exists. false: the error was
 * replied. Otherwise *is_renamed says whether it was renamed. */
static bool rename_key(struct call *call, bool only_new, bool *is_renamed) {
    struct bytes to = call_arg(call, 2);
    struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        return call_refuse(call, "ERR no such key");
    }
    if (!zset_check_key(call, to)) {
        return false;
    }
    *is_renamed = !(only_new && call_find_key(call, to) != NULL);
    if (*is_renamed && registry_rename(call->registry, key, call->session->database, to,
                                       call->now_ms) != REGISTRY_OK) {
        return call_out_of_memory(call);
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

static const struct command_cost renaming_cost = {.count = cost_count_whole,
                                                  .unit_ns = 0,
                                                  .grown_key = 2,
                                                  .unit = "member of the board",
                                                  .instead = ""};

const struct command command_rename = {
    .name = "RENAME",
    .syntax = "key newkey:key",
    .summary = "Renames a key; a key with the new name is replaced",
    .complexity = "O(1)",
    .group = "generic",
    .flags = COMMAND_WRITE,
    .cost = &renaming_cost,
    .run = rename_run,
};
const struct command command_renamenx = {
    .name = "RENAMENX",
    .syntax = "key newkey:key",
    .summary = "Renames a key if the new name is free",
    .complexity = "O(1)",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .cost = &renaming_cost,
    .run = renamenx_run,
};

struct copy {
    int64_t database; /* of the destination */
    bool is_replacing;
};

/* Redis parses DB as a C int, and its error text says so. */
static bool check_database(const struct call *call, uint32_t index, void *target) {
    int64_t number = ((struct copy *)target)->database;
    (void)index;
    if (number < INT_MIN || number > INT_MAX) {
        reply_error_format(call->reply, "ERR value is out of range, value must between %d and %d",
                           INT_MIN, INT_MAX);
        return false;
    }
    if (number < 0 || number >= REGISTRY_DATABASES) {
        return call_refuse(call, "ERR DB index is out of range");
    }
    return true;
}

static const struct option_row copy_options[] = {
    {"DB", OPTION_INTEGER, offsetof(struct copy, database), check_database},
    {"REPLACE", OPTION_FLAG, offsetof(struct copy, is_replacing), NULL},
    {0},
};

static void copy_run(struct call *call) {
    struct bytes from = call_arg(call, 1);
    struct bytes to = call_arg(call, 2);
    struct copy copy = {.database = call->session->database};
    if (!options_read(call, 3, &copy)) {
        return;
    }
    uint32_t database = (uint32_t)copy.database;
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
    if (!copy.is_replacing && registry_find(call->registry, database, to, call->now_ms) != NULL) {
        reply_integer(call->reply, 0);
        return;
    }
    if (registry_copy(call->registry, key, database, to, call->now_ms) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    reply_integer(call->reply, 1);
}

const struct command command_copy = {
    .name = "COPY",
    .syntax = "source:key destination:key [DB destination-db:integer] [REPLACE]",
    .options = copy_options,
    .summary = "Copies a board with its layout, reach times and expiry to another key",
    .complexity = "O(n) in the members of the board",
    .group = "generic",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM,
    .cost =
        &(const struct command_cost){.count = cost_count_whole,
                                     .unit_ns = 25,
                                     .grown_key = 2,
                                     .unit = "member of the board",
                                     .instead =
                                         "nothing; copy when few clients wait, such as at night"},
    .run = copy_run,
};
