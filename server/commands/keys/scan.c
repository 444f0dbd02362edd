/* Commands that find keys: KEYS SCAN RANDOMKEY. */
#include "server/commands/scanning.h"
#include "server/dispatch/cost.h"

struct name_list {
    struct reply *reply;
    const struct glob *glob;
    uint64_t count;
};

static void scan_visit_name(void *context, struct bytes name) {
    struct name_list *names = context;
    if (glob_takes(names->glob, name)) {
        reply_bulk(names->reply, name);
        names->count++;
    }
}

static void keys_run(struct call *call) {
    struct glob glob;
    struct name_list names = {.reply = call->reply, .glob = &glob};
    if (!call_prepare_glob(call, call_arg(call, 1), &glob)) {
        return;
    }
    size_t mark = reply_array_begin(call->reply);
    registry_walk_each_name(call->registry, call->session->database, call->now_ms, scan_visit_name,
                            &names);
    reply_array_end(call->reply, mark, names.count);
}

const struct command command_keys = {
    .name = "KEYS",
    .syntax = "pattern",
    .reply = "[s]",
    .summary = "Lists every key that matches a pattern, all at once; SCAN does it in steps",
    .complexity = "O(n) in the keys of the database",
    .flags = COMMAND_READ | COMMAND_NAMES,
    .cost = COST(COMMAND_BY_MEMORY, cost_count_database, 35, 0, "key of the database", "`SCAN`"),
    .run = keys_run,
};

static void randomkey_run(struct call *call) {
    const struct registry_key *key = registry_walk_random(
        call->registry, call->session->database, server_random(call->server), call->now_ms);
    if (key == NULL) {
        reply_null(call->reply);
        return;
    }
    reply_bulk(call->reply, registry_name(key));
}

const struct command command_randomkey = {
    .name = "RANDOMKEY",
    .reply = "s?",
    .summary = "Draws a key of the database evenly at random; nil where the next 16,384 keys have "
               "expired and are not removed yet",
    .flags = COMMAND_READ | COMMAND_NAMES,
    .run = randomkey_run,
};

struct key_scan {
    struct scanning scanning; /* first: see SCANNING_OPTIONS */
    struct bytes type;        /* TYPE; at NULL: any */
    const struct registry *registry;
};

static const struct binding scan_bindings[] = {
    SCANNING_OPTIONS,
    {BIND("TYPE", struct key_scan, type)},
    {0},
};

static void scan_visit_key(void *context, const struct registry_key *key) {
    struct key_scan *scan = context;
    if ((scan->type.at == NULL || bytes_is(scan->type, registry_kind_name(scan->registry, key))) &&
        scanning_takes(&scan->scanning, registry_name(key))) {
        reply_bulk(&scan->scanning.found, registry_name(key));
        scan->scanning.found_count++;
    }
}

static void scan_run(struct call *call) {
    struct glob glob;
    struct key_scan scan = {.registry = call->registry};
    uint64_t cursor;
    scanning_begin(&scan.scanning, call, &glob);
    if (!call_parse_cursor(call, call_arg(call, 1), &cursor) || !syntax_read(call, &scan)) {
        return;
    }
    cursor = scanning_keys(&scan.scanning, call, cursor, UINT32_MAX, scan_visit_key, &scan);
    scanning_end(&scan.scanning, call, cursor);
}

const struct command command_scan = {
    .name = "SCAN",
    .syntax = "cursor:integer [MATCH pattern] [COUNT count:integer] [TYPE type]",
    .bindings = scan_bindings,
    .reply = "[cursor:s keys:[s]]",
    .summary = "Walks over the keys of the database in steps, from one cursor to the next; COUNT "
               "is a hint, and a step may be empty",
    .complexity = "O(COUNT) for each call, half a millisecond at the most; O(n) for the whole walk "
                  "over n keys",
    .flags = COMMAND_READ | COMMAND_NAMES,
    .run = scan_run,
};
