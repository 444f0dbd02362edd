/* COMMAND: the list of commands, the positions of their keys, and their syntax, all generated from
 * the entries. The formats are those of Redis 7.4; describe.c writes them. */
#include "server/dispatch/command.h"
#include "codec/glob.h"
#include "codec/memory.h"
#include "server/commands/admin/describe.h"

/* ---- COMMAND, COMMAND INFO, COMMAND DOCS ---- */

static uint64_t count_commands(void) {
    uint64_t count = 0;
    for (uint32_t index = 0; index < command_count(); index++) {
        count += !command_is_subcommand(index);
    }
    return count;
}

/* Calls write for every top-level command; subcommands are part of their container. */
static void each_command(struct reply *reply, void (*write)(struct reply *reply, uint32_t index)) {
    for (uint32_t index = 0; index < command_count(); index++) {
        if (!command_is_subcommand(index)) {
            write(reply, index);
        }
    }
}

static void command_run_all(struct call *call) {
    reply_array(call->reply, count_commands());
    each_command(call->reply, command_describe_info);
}

/* The part of the reply that describes a command. size 0: none yet. */
struct description {
    size_t begin, size;
};

/* A repeated command is described by copying: even a million repetitions cost no more than copying
 * the reply. descriptions has one element per command. */
static void describe(struct reply *reply, uint32_t index, struct description *descriptions,
                     void (*write)(struct reply *reply, uint32_t index)) {
    struct description *description = &descriptions[index];
    if (description->size > 0) {
        reply_repeat(reply, description->begin, description->size);
        return;
    }
    size_t begin = reply->out->size;
    write(reply, index);
    *description = (struct description){.begin = begin, .size = reply->out->size - begin};
}

static struct description *create_descriptions(void) {
    return memory_allocate_zeroed(command_count() * sizeof(struct description));
}

static void info_run(struct call *call) {
    if (call->request->count == 2) {
        command_run_all(call);
        return;
    }
    struct description *descriptions = create_descriptions();
    if (descriptions == NULL) {
        call_out_of_memory(call);
        return;
    }
    reply_array(call->reply, call->request->count - 2);
    for (uint32_t i = 2; i < call->request->count && !reply_is_lost(call->reply); i++) {
        uint32_t index = command_find_full_name(call_arg(call, i));
        if (index == COMMAND_NONE) {
            reply_null(call->reply);
        } else {
            describe(call->reply, index, descriptions, command_describe_info);
        }
    }
    memory_free(descriptions);
}

static void count_run(struct call *call) {
    reply_integer(call->reply, (int64_t)count_commands());
}

static void docs_run(struct call *call) {
    if (call->request->count == 2) {
        reply_map(call->reply, count_commands());
        each_command(call->reply, command_describe_docs);
        return;
    }
    struct description *descriptions = create_descriptions();
    if (descriptions == NULL) {
        call_out_of_memory(call);
        return;
    }
    uint64_t count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t i = 2; i < call->request->count && !reply_is_lost(call->reply); i++) {
        uint32_t index = command_find_full_name(call_arg(call, i));
        if (index != COMMAND_NONE) {
            describe(call->reply, index, descriptions, command_describe_docs);
            count++;
        }
    }
    reply_map_end(call->reply, mark, count);
    memory_free(descriptions);
}

/* ---- COMMAND LIST ---- */

enum list_filter { LIST_ALL, LIST_MODULE, LIST_CATEGORY, LIST_PATTERN };

/* What COMMAND LIST should list. */
struct list {
    enum list_filter filter;
    struct bytes category;
    const struct glob *glob;
};

static bool is_listed(uint32_t index, const struct list *list) {
    switch (list->filter) {
    case LIST_ALL:
        return true;
    case LIST_MODULE:
        return false; /* modules do not exist */
    case LIST_CATEGORY:
        return command_describe_is_in(index, list->category);
    case LIST_PATTERN:
        return glob_takes(list->glob, bytes_from_text(command_full_name(index)));
    }
    return false;
}

static void reply_list(struct call *call, const struct list *list) {
    uint64_t count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t index = 0; index < command_count(); index++) {
        if (is_listed(index, list)) {
            reply_bulk_text(call->reply, command_full_name(index));
            count++;
        }
    }
    reply_array_end(call->reply, mark, count);
}

/* Names are lower case; patterns match case-insensitively. */
static void reply_list_matching(struct call *call, struct bytes pattern) {
    struct glob glob;
    if (!call_prepare_glob_lower(call, pattern, &glob)) {
        return;
    }
    reply_list(call, &(struct list){.filter = LIST_PATTERN, .glob = &glob});
}

static void list_run(struct call *call) {
    if (call->request->count == 2) {
        reply_list(call, &(struct list){.filter = LIST_ALL});
    } else if (call->request->count != 5 || !call_arg_is(call, 2, "FILTERBY")) {
        call_syntax_error(call);
    } else if (call_arg_is(call, 3, "MODULE")) {
        reply_list(call, &(struct list){.filter = LIST_MODULE});
    } else if (call_arg_is(call, 3, "ACLCAT")) {
        reply_list(call, &(struct list){.filter = LIST_CATEGORY, .category = call_arg(call, 4)});
    } else if (call_arg_is(call, 3, "PATTERN")) {
        reply_list_matching(call, call_arg(call, 4));
    } else {
        call_syntax_error(call);
    }
}

/* ---- COMMAND GETKEYS ---- */

static void reply_keys_of(struct call *call, const struct command *command,
                          const struct request *request) {
    int count = command_key_positions(command, request, NULL, 0);
    if (count < 0) {
        reply_error(call->reply, "ERR Invalid arguments specified for command");
        return;
    }
    uint32_t *positions = memory_allocate((size_t)(count > 0 ? count : 1) * sizeof *positions);
    if (positions == NULL) {
        call_out_of_memory(call);
        return;
    }
    CHECK(command_key_positions(command, request, positions, count) == count);
    reply_array(call->reply, (uint64_t)count);
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
    int64_t count = request.count;
    if (command->first_key == 0 && (command->flags & COMMAND_MOVABLE_KEYS) == 0) {
        reply_error(call->reply, "ERR The command has no key arguments");
    } else if ((command->arity > 0 && command->arity != count) || count < -command->arity) {
        reply_error(call->reply, "ERR Invalid number of arguments specified for command");
    } else {
        reply_keys_of(call, command, &request);
    }
}

/* ---- entries ---- */

static void help_run(struct call *call) {
    static const char *const lines[] = {
        "(no subcommand)",
        "    Return details about all commands.",
        "COUNT",
        "    Return the total number of commands in this server.",
        "LIST",
        "    Return a list of all commands in this server.",
        "INFO [<command-name> ...]",
        "    Return details about multiple commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "DOCS [<command-name> ...]",
        "    Return documentation details about multiple commands.",
        "    If no command names are given, documentation details for all",
        "    commands are returned.",
        "GETKEYS <full-command>",
        "    Return the keys from a full command.",
        NULL,
    };
    call_help(call, lines);
}

static const struct command command_command_count = {
    .name = "COUNT",
    .summary = "Counts the commands of the server",
    .complexity = "O(1)",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = count_run,
};
static const struct command command_command_docs = {
    .name = "DOCS",
    .syntax = "[command-name...]",
    .summary = "Documentation of commands: syntax, summary, complexity",
    .complexity = "O(n) in the commands asked for",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = docs_run,
};
static const struct command command_command_getkeys = {
    .name = "GETKEYS",
    .syntax = "command [arg...]",
    .summary = "Finds the keys in a whole command",
    .complexity = "O(n) in the arguments",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = getkeys_run,
};
static const struct command command_command_help = {
    .name = "HELP",
    .summary = "Lists the subcommands of COMMAND",
    .complexity = "O(1)",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = help_run,
};
static const struct command command_command_info = {
    .name = "INFO",
    .syntax = "[command-name...]",
    .summary = "Arity, flags and keys of commands",
    .complexity = "O(n) in the commands asked for",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = info_run,
};
static const struct command command_command_list = {
    .name = "LIST",
    .syntax = "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
    .summary = "Names of the commands, all or some",
    .complexity = "O(n) in the commands",
    .group = "server",
    .flags = COMMAND_LOADING,
    .run = list_run,
};
static const struct command *const command_command_subcommands[] = {
    &command_command_count,
    &command_command_docs,
    &command_command_getkeys,
    &command_command_help,
    &command_command_info,
    &command_command_list,
    NULL,
};
const struct command command_command = {
    .name = "COMMAND",
    .summary = "Arity, flags and keys of every command",
    .complexity = "O(n) in the commands",
    .group = "server",
    .arity = -1,
    .flags = COMMAND_LOADING,
    .subcommands = command_command_subcommands,
    .run = command_run_all,
};
