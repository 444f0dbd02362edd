/* COMMAND: the list of commands, the positions of their keys, and their syntax, all generated from
 * the entries. The formats are those of Redis 7.2; describe.c writes them. */
#include "codec/glob.h"
#include "server/commands/admin/describe.h"
#include "server/dispatch/category.h"
#include "server/dispatch/key_spec.h"

/* ---- COMMAND, COMMAND INFO, COMMAND DOCS ---- */

static void info_run(struct call *call) {
    command_describe_each(call, command_describe_info, false);
}

static void docs_run(struct call *call) {
    command_describe_each(call, command_describe_docs, true);
}

static void count_run(struct call *call) {
    int64_t count = 0;
    for (uint32_t index = 0; index < command_count(); index++) {
        count += !command_is_subcommand(index) && command_is_reachable(index);
    }
    reply_integer(call->reply, count);
}

/* ---- COMMAND LIST ---- */

/* Which commands COMMAND LIST shows. */
struct filter {
    bool is_module;          /* none: modules do not exist */
    uint32_t category_mask;  /* 0: any */
    const struct glob *glob; /* NULL: any name */
};

static bool command_command_is_listed(uint32_t index, const struct filter *filter) {
    if (!command_is_reachable(index)) {
        return false;
    }
    if (filter->category_mask != 0 && (category_mask(index) & filter->category_mask) == 0) {
        return false;
    }
    return !filter->is_module &&
           (filter->glob == NULL ||
            glob_takes(filter->glob, bytes_from_text(command_full_name(index))));
}

/* Names are lower case; patterns match case-insensitively. */
static bool command_command_read_filter(const struct call *call, struct glob *glob,
                                        struct filter *filter) {
    uint32_t count = call->request->count;
    bool is_pattern = count == 5 && call_arg_is(call, 3, "PATTERN");
    bool is_category = count == 5 && call_arg_is(call, 3, "ACLCAT");
    filter->is_module = count == 5 && call_arg_is(call, 3, "MODULE");
    if (count != 2 &&
        (!call_arg_is(call, 2, "FILTERBY") || !(is_pattern || is_category || filter->is_module))) {
        return call_syntax_error(call);
    }
    if (is_category) {
        /* Nothing is in a category that does not exist. */
        filter->category_mask = UINT32_C(1) << category_find(call_arg(call, 4));
    }
    filter->glob = is_pattern ? glob : NULL;
    return !is_pattern || call_prepare_glob_lower(call, call_arg(call, 4), glob);
}

static void list_run(struct call *call) {
    struct glob glob;
    struct filter filter = {.is_module = false};
    uint64_t count = 0;
    if (!command_command_read_filter(call, &glob, &filter)) {
        return;
    }
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t index = 0; index < command_count(); index++) {
        if (command_command_is_listed(index, &filter)) {
            reply_bulk_text(call->reply, command_full_name(index));
            count++;
        }
    }
    reply_array_end(call->reply, mark, count);
}

/* ---- COMMAND GETKEYS ---- */

static void command_command_reply_keys_of(struct call *call, const struct command *command,
                                          const struct request *request) {
    uint32_t *positions = memory_allocate(request->count * sizeof *positions);
    if (positions == NULL) {
        call_out_of_memory(call);
        return;
    }
    int count = key_positions(command, request, positions);
    if (count < 0) {
        reply_error(call->reply, "ERR Invalid arguments specified for command");
    } else {
        reply_array(call->reply, (uint64_t)count);
    }
    for (int i = 0; i < count; i++) {
        reply_bulk(call->reply, request->args[positions[i]]);
    }
    memory_free(positions);
}

static void getkeys_run(struct call *call) {
    const struct request request = {
        .count = call->request->count - 2,
        .args = call->request->args + 2,
        .size = call->request->size,
    };
    uint32_t index = command_find_request(&request);
    if (index == COMMAND_NONE) {
        reply_error(call->reply, "ERR Invalid command specified");
        return;
    }
    const struct command *command = command_by_index(index);
    if (command->first_key == 0 && (command->flags & COMMAND_MOVABLE_KEYS) == 0) {
        reply_error(call->reply, "ERR The command has no key arguments");
    } else if (command_has_wrong_arity(command, &request)) {
        reply_error(call->reply, "ERR Invalid number of arguments specified for command");
    } else {
        command_command_reply_keys_of(call, command, &request);
    }
}

/* ---- entries ---- */

static const struct command command_command_count = {
    .name = "COUNT",
    .reply = "i",
    .summary = "Counts the commands of the server",
    .flags = COMMAND_LOADING,
    .run = count_run,
};
static const struct command command_command_docs = {
    .name = "DOCS",
    .syntax = "[command-name...]",
    .reply = "{@Documentation}",
    .summary = "Documentation of commands: syntax, summary, complexity",
    .complexity = "O(n) in the commands asked for",
    .flags = COMMAND_LOADING,
    .run = docs_run,
};
static const struct command command_command_getkeys = {
    .name = "GETKEYS",
    .syntax = "command [arg...]",
    .reply = "[s]",
    .summary = "Finds the keys in a whole command",
    .complexity = "O(n) in the arguments",
    .flags = COMMAND_LOADING,
    .run = getkeys_run,
};
static const struct command command_command_info = {
    .name = "INFO",
    .syntax = "[command-name...]",
    .reply = "[@Command?]",
    .summary = "Arity, flags and keys of commands",
    .complexity = "O(n) in the commands asked for",
    .flags = COMMAND_LOADING,
    .run = info_run,
};
static const struct command command_command_list = {
    .name = "LIST",
    .syntax = "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
    .reply = "[s]",
    .summary = "Names of the commands, all or some",
    .complexity = "O(n) in the commands",
    .flags = COMMAND_LOADING,
    .run = list_run,
};
const struct command command_command = {
    .name = "COMMAND",
    .reply = "[@Command]",
    .summary = "Arity, flags and keys of every command",
    .complexity = "O(n) in the commands",
    .arity = -1,
    .flags = COMMAND_LOADING,
    .subcommands =
        COMMAND_LIST(&command_command_count, &command_command_docs, &command_command_getkeys,
                     &call_help_command, &command_command_info, &command_command_list),
    .run = info_run,
};
