/* Commands that look for keys: KEYS SCAN RANDOMKEY. */
#include "codec/glob.h"
#include "server/command.h"
#include "server/server.h"

/* What KEYS and SCAN collect names into. */
struct name_list {
    struct reply *reply;
    struct glob glob;
    bool has_pattern;
    uint64_t count;
};

static void visit_key(void *context, const struct registry_key *key) {
    struct name_list *names = context;
    if (!names->has_pattern || glob_takes(&names->glob, registry_name(key))) {
        reply_bulk(names->reply, registry_name(key));
        names->count++;
    }
}

static void keys_run(struct call *call) {
    struct name_list names = {
        .reply = call->reply,
        .glob = glob_prepare(call_arg(call, 1)),
        .has_pattern = true,
    };
    size_t mark = reply_array_begin(call->reply);
    registry_roll_due(call->registry, call->now_ms, UINT32_MAX);
    registry_each(call->registry, call->session->database, call->now_ms, visit_key, &names);
    reply_array_end(call->reply, mark, names.count);
}

static const struct argument keys_arguments[] = {
    {.name = "pattern", .type = ARGUMENT_PATTERN},
    {.name = NULL},
};
const struct command command_keys = {
    .name = "KEYS",
    .summary = "Lists every key that matches a pattern, all at once; SCAN does it in steps",
    .complexity = "O(n) in the keys of the database",
    .since = "1.0.0",
    .group = "generic",
    .arity = 2,
    .flags = COMMAND_READ,
    .arguments = keys_arguments,
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
    .summary = "Draws a key of the database evenly at random",
    .complexity = "O(1)",
    .since = "1.0.0",
    .group = "generic",
    .arity = 1,
    .flags = COMMAND_READ,
    .run = randomkey_run,
};

struct scan_options {
    struct name_list names;
    uint32_t count;
    bool is_other_type; /* TYPE names something that no key here is */
};

static bool parse_count(struct call *call, struct bytes text, uint32_t *count) {
    int64_t number;
    if (!call_parse_integer(call, text, &number)) {
        return false;
    }
    if (number < 1) {
        call_syntax_error(call);
        return false;
    }
    *count = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
    return true;
}

static bool parse_scan_options(struct call *call, struct scan_options *options) {
    for (uint32_t i = 2; i < call->request->count; i += 2) {
        if (i + 1 == call->request->count) {
            call_syntax_error(call);
            return false;
        }
        struct bytes value = call_arg(call, i + 1);
        if (call_arg_is(call, i, "COUNT")) {
            if (!parse_count(call, value, &options->count)) {
                return false;
            }
        } else if (call_arg_is(call, i, "MATCH")) {
            options->names.glob = glob_prepare(value);
            options->names.has_pattern = true;
        } else if (call_arg_is(call, i, "TYPE")) {
            options->is_other_type = !bytes_is(value, "zset");
        } else {
            call_syntax_error(call);
            return false;
        }
    }
    return true;
}

static void skip_key(void *context, const struct registry_key *key) {
    (void)context;
    (void)key;
}

/* The next cursor stands before the names and is known after them: they are collected aside. */
static void scan_run(struct call *call) {
    uint64_t cursor;
    struct scan_options options = {.count = 10};
    if (!call_parse_cursor(call, call_arg(call, 1), &cursor) ||
        !parse_scan_options(call, &options)) {
        return;
    }
    struct buffer text;
    struct reply aside;
    buffer_init(&text, 0);
    reply_init(&aside, &text, call->reply->version);
    options.names.reply = &aside;
    registry_roll_due(call->registry, call->now_ms, UINT32_MAX);
    cursor =
        registry_scan(call->registry, call->session->database, cursor, options.count, call->now_ms,
                      options.is_other_type ? skip_key : visit_key, &options.names);
    if (text.is_broken) {
        call_out_of_memory(call);
    } else {
        reply_array(call->reply, 2);
        reply_bulk_format(call->reply, "%llu", (unsigned long long)cursor);
        reply_array(call->reply, options.names.count);
        if (!call->reply->is_silent && text.size > 0) {
            buffer_append(call->reply->out, text.at, text.size);
        }
    }
    buffer_deinit(&text);
}

static const struct argument scan_arguments[] = {
    {.name = "cursor", .type = ARGUMENT_INTEGER},
    {.name = "pattern", .type = ARGUMENT_PATTERN, .token = "MATCH", .flags = ARGUMENT_OPTIONAL},
    {.name = "count", .type = ARGUMENT_INTEGER, .token = "COUNT", .flags = ARGUMENT_OPTIONAL},
    {.name = "type", .type = ARGUMENT_STRING, .token = "TYPE", .flags = ARGUMENT_OPTIONAL},
    {.name = NULL},
};
const struct command command_scan = {
    .name = "SCAN",
    .summary = "Walks over the keys of the database in steps, from one cursor to the next",
    .complexity = "O(1) for each call, O(n) for the whole walk over n keys",
    .since = "1.0.0",
    .group = "generic",
    .arity = -2,
    .flags = COMMAND_READ,
    .arguments = scan_arguments,
    .run = scan_run,
};
