/* Commands that find keys: KEYS SCAN RANDOMKEY. */
#include "codec/glob.h"
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/dispatch/cost.h"
#include "server/dispatch/options.h"

/* The cursor of a scan that has not begun; 0 would mean that it is complete. All others are
 * smaller. */
#define CURSOR_BEGIN (UINT64_C(1) << 33)

/* Collects names for KEYS and SCAN. */
struct name_list {
    struct reply *reply;
    const struct glob *glob; /* NULL: all names */
    uint64_t count;
};

static void visit_name(void *context, struct bytes name) {
    struct name_list *names = context;
    if (names->glob == NULL || glob_takes(names->glob, name)) {
        reply_bulk(names->reply, name);
        names->count++;
    }
}

static void visit_key(void *context, const struct registry_key *key) {
    visit_name(context, registry_name(key));
}

static void keys_run(struct call *call) {
    struct glob glob;
    struct name_list names = {.reply = call->reply, .glob = &glob};
    if (!call_prepare_glob(call, call_arg(call, 1), &glob)) {
        return;
    }
    size_t mark = reply_array_begin(call->reply);
    registry_each_name(call->registry, call->session->database, call->now_ms, visit_name, &names);
    reply_array_end(call->reply, mark, names.count);
}

const struct command command_keys = {
    .name = "KEYS",
    .syntax = "pattern",
    .summary = "Lists every key that matches a pattern, all at once; SCAN does it in steps",
    .complexity = "O(n) in the keys of the database",
    .flags = COMMAND_READ,
    .cost = &(const struct command_cost){.count = cost_count_database,
                                         .unit_ns = 35,
                                         .unit = "key of the database",
                                         .instead = "`SCAN`"},
    .run = keys_run,
};

static void randomkey_run(struct call *call) {
    const struct registry_key *key = registry_random(call->registry, call->session->database,
                                                     server_random(call->server), call->now_ms);
    if (key == NULL) {
        reply_null(call->reply);
        return;
    }
    reply_bulk(call->reply, registry_name(key));
}

const struct command command_randomkey = {
    .name = "RANDOMKEY",
    .summary =
        "Draws a key of the database evenly at random; nil where the next 16,384 keys have expired "
        "and are not removed yet",
    .flags = COMMAND_READ,
    .run = randomkey_run,
};

struct scan_options {
    struct name_list names;
    struct glob *glob; /* storage for the pattern */
    int64_t count;
    bool is_other_type; /* TYPE names a type that no key has */
};

static bool check_count(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return ((struct scan_options *)target)->count >= 1 || call_syntax_error(call);
}

/* MATCH */
static bool read_pattern(const struct call *call, uint32_t index, void *target) {
    struct scan_options *options = target;
    options->names.glob = options->glob;
    return call_prepare_glob(call, call_arg(call, index), options->glob);
}

/* TYPE */
static bool read_type(const struct call *call, uint32_t index, void *target) {
    ((struct scan_options *)target)->is_other_type = !call_arg_is(call, index, "zset");
    return true;
}

static const struct option_row scan_rows[] = {
    {"MATCH", OPTION_READ, 0, read_pattern},
    {"COUNT", OPTION_INTEGER, offsetof(struct scan_options, count), check_count},
    {"TYPE", OPTION_READ, 0, read_type},
    {0},
};

static void skip_key(void *context, const struct registry_key *key) {
    (void)context;
    (void)key;
}

/* One step of the scan; returns the next cursor. An archive exists from the exact millisecond at
 * which its period ends, so a scan that continued before all due boards have rolled over could skip
 * the archive's position. Until they have, a step rolls over some of them and visits nothing. */
static uint64_t scan_step(struct call *call, struct scan_options *options, uint64_t cursor) {
    struct scan_limits limits = {
        .count = options->count < UINT32_MAX ? (uint32_t)options->count : UINT32_MAX,
        .work_max = COMMAND_SCAN_WORK_MAX,
        .byte_work = options->names.glob != NULL ? glob_byte_work(options->names.glob) : 0,
    };
    if (!registry_roll_some(call->registry, call->now_ms)) {
        return cursor != 0 ? cursor : CURSOR_BEGIN;
    }
    return registry_scan(call->registry, call->session->database,
                         cursor != CURSOR_BEGIN ? cursor : 0, &limits, call->now_ms,
                         options->is_other_type ? skip_key : visit_key, &options->names);
}

static void scan_run(struct call *call) {
    uint64_t cursor;
    struct glob glob;
    struct scan_options options = {.count = 10, .glob = &glob};
    if (!call_parse_cursor(call, call_arg(call, 1), &cursor) || !options_read(call, 2, &options)) {
        return;
    }
    struct buffer text;
    struct reply aside;
    buffer_init(&text, 0);
    reply_init(&aside, &text, call->reply->version);
    options.names.reply = &aside;
    cursor = scan_step(call, &options, cursor);
    call_reply_scan(call, cursor, options.names.count, &text);
}

const struct command command_scan = {
    .name = "SCAN",
    .syntax = "cursor:integer [MATCH pattern] [COUNT count:integer] [TYPE type]",
    .options = scan_rows,
    .summary =
        "Walks over the keys of the database in steps, from one cursor to the next; COUNT is a "
        "hint, and a step may be empty",
    .complexity =
        "O(COUNT) for each call, half a millisecond at the most; O(n) for the whole walk over "
        "n keys",
    .flags = COMMAND_READ,
    .run = scan_run,
};
