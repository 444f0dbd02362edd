/* COMMAND: the list of commands, the positions of their keys, and their syntax, all generated from
 * the entries. Formats and names are those of Redis 7.2. */
#include "server/commands/admin/admin.h"

#include "codec/glob.h"
#include "server/dispatch/category.h"
#include "server/dispatch/syntax.h"

/* ---- arguments ---- */

static void describe_put_flags(struct reply *reply, unsigned flags) {
    static const struct {
        enum argument_flag flag;
        const char *name;
    } names[] = {
        {ARGUMENT_OPTIONAL, "optional"},
        {ARGUMENT_MULTIPLE, "multiple"},
        {ARGUMENT_MULTIPLE_TOKEN, "multiple_token"},
    };
    reply_bulk_text(reply, "flags");
    reply_set(reply, (uint64_t)__builtin_popcount(flags));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((flags & names[i].flag) != 0) {
            reply_simple(reply, names[i].name);
        }
    }
}

/* Arguments nest as deeply as the entries: two or three levels. */
static void describe_put_arguments(struct reply *reply, const struct argument *arguments,
                                   uint32_t keys_max, uint32_t *key_count) {
    uint64_t count = 0;
    while (arguments[count].name != NULL) {
        count++;
    }
    reply_bulk_text(reply, "arguments");
    reply_array(reply, count);
    for (const struct argument *argument = arguments; argument->name != NULL; argument++) {
        bool is_group = argument->type == ARGUMENT_ONEOF || argument->type == ARGUMENT_BLOCK;
        bool is_key = argument->type == ARGUMENT_KEY && keys_max > 0;
        reply_map(reply, 3U + is_key + (argument->token != NULL) + (argument->flags != 0));
        reply_named_text(reply, "name", argument->name);
        reply_named_text(reply, "type", syntax_type_name(argument->type));
        if (!is_group) {
            reply_named_text(reply, "display_text", argument->name);
        }
        if (is_key) {
            uint32_t nth = (*key_count)++;
            reply_named_integer(reply, "key_spec_index", nth < keys_max ? nth : keys_max - 1);
        }
        if (argument->token != NULL) {
            reply_named_text(reply, "token", argument->token);
        }
        if (argument->flags != 0) {
            describe_put_flags(reply, argument->flags);
        }
        if (is_group) {
            describe_put_arguments(reply, argument->children, keys_max, key_count);
        }
    }
}

/* ---- COMMAND DOCS ---- */

static uint32_t describe_count_subcommands(const struct command *command) {
    uint32_t count = 0;
    while (command->subcommands != NULL && command->subcommands[count] != NULL) {
        count++;
    }
    return count;
}

static uint64_t describe_docs(struct call *call, uint32_t index) {
    struct reply *reply = call->reply;
    const struct command *command = command_by_index(index);
    uint32_t subcommand_count = describe_count_subcommands(command);
    reply_bulk_text(reply, command_full_name(index));
    reply_map(reply, 4U + (command->arguments != NULL) + (subcommand_count > 0));
    reply_named_text(reply, "summary", command->summary);
    reply_named_text(reply, "since", command->since);
    reply_named_text(reply, "group", command->group);
    reply_named_text(reply, "complexity", command->complexity);
    if (command->arguments != NULL) {
        const struct key_spec *specs;
        uint32_t key_count = 0;
        describe_put_arguments(reply, command->arguments, syntax_key_of(index, &specs), &key_count);
    }
    if (subcommand_count > 0) {
        reply_bulk_text(reply, "subcommands");
        reply_map(reply, subcommand_count);
    }
    for (uint32_t i = 1; i <= subcommand_count; i++) {
        describe_docs(call, index + i);
    }
    return 1;
}

/* ---- flags and categories ---- */

enum { WORDS_MAX = 16 };
struct words {
    const char *words[WORDS_MAX];
    uint32_t count;
};

static void describe_add(struct words *words, bool is_true, const char *word) {
    if (is_true) {
        CHECK(words->count < WORDS_MAX);
        words->words[words->count++] = word;
    }
}

static void describe_reply_words(struct reply *reply, const struct words *words,
                                 const char *prefix) {
    reply_set(reply, words->count);
    for (uint32_t i = 0; i < words->count; i++) {
        char text[32];
        size_t prefix_size = strlen(prefix);
        size_t size = strlen(words->words[i]);
        CHECK(prefix_size + size < sizeof text);
        memcpy(text, prefix, prefix_size);
        memcpy(text + prefix_size, words->words[i], size + 1);
        reply_simple(reply, text);
    }
}

/* ---- key specifications ---- */

static void describe_reply_search(struct reply *reply, const char *name, const char *type,
                                  uint64_t pairs) {
    reply_bulk_text(reply, name);
    reply_map(reply, 2);
    reply_named_text(reply, "type", type);
    reply_bulk_text(reply, "spec");
    reply_map(reply, pairs);
}

/* Of a shard channel, which is no key. */
static const struct key_spec describe_channel = {.flags = KEY_NONE, .begin = 1, .step = 1};
static const struct key_spec describe_channels = {
    .flags = KEY_NONE, .begin = 1, .last = -1, .step = 1};

static void describe_reply_keys(struct reply *reply, uint32_t index) {
    const struct command *command = command_by_index(index);
    const struct key_spec *specs;
    uint32_t count = syntax_key_of(index, &specs);
    if ((command->flags & COMMAND_SHARD) != 0) {
        specs = command->arity > 0 ? &describe_channel : &describe_channels;
        count = 1;
    }
    reply_set(reply, count);
    for (uint32_t i = 0; i < count; i++) {
        struct words words = {.count = 0};
        bool is_range = !specs[i].is_counted;
        for (unsigned flag = 1; syntax_key_flag_name(flag) != NULL; flag <<= 1) {
            describe_add(&words, (specs[i].flags & flag) != 0, syntax_key_flag_name(flag));
        }
        reply_map(reply, 3);
        reply_bulk_text(reply, "flags");
        describe_reply_words(reply, &words, "");
        if (specs[i].word == NULL) {
            describe_reply_search(reply, "begin_search", "index", 1);
            reply_named_integer(reply, "index", specs[i].begin);
        } else {
            describe_reply_search(reply, "begin_search", "keyword", 2);
            reply_named_text(reply, "keyword", specs[i].word);
            reply_named_integer(reply, "startfrom", specs[i].begin);
        }
        describe_reply_search(reply, "find_keys", is_range ? "range" : "keynum", 3);
        reply_named_integer(reply, is_range ? "lastkey" : "keynumidx", specs[i].last);
        reply_named_integer(reply, is_range ? "keystep" : "firstkey", specs[i].step);
        reply_named_integer(reply, is_range ? "limit" : "keystep", is_range ? 0 : 1);
    }
}

/* ---- COMMAND INFO ---- */

static uint64_t describe_info(struct call *call, uint32_t index) {
    struct reply *reply = call->reply;
    const struct command *command = command_by_index(index);
    struct words flags = {.count = 0};
    for (const struct category_flag *row = category_flags; row->flags != 0; row++) {
        describe_add(&flags, (command->flags & row->flags) != 0, row->name);
    }
    describe_add(&flags,
                 (command->flags & COMMAND_MOVABLE_KEYS) != 0 || command->key_option != NULL,
                 "movablekeys");

    struct words categories = {.count = 0};
    uint32_t mask = category_mask(index);
    for (uint32_t category = 0; category < CATEGORIES; category++) {
        describe_add(&categories, (mask >> category & 1) != 0, category_name(category));
    }

    reply_array(reply, 10);
    reply_bulk_text(reply, command_full_name(index));
    reply_integer(reply, command->arity);
    describe_reply_words(reply, &flags, "");
    bool is_shard = (command->flags & COMMAND_SHARD) != 0;
    reply_integer(reply, is_shard ? 1 : command->first_key);
    reply_integer(reply, !is_shard ? command->last_key : command->arity > 0 ? 1 : -1);
    reply_integer(reply, is_shard ? 1 : command->key_step);
    describe_reply_words(reply, &categories, "@");
    const char *tips = category_tips(index);
    uint32_t tip_count = *tips != '\0';
    for (const char *at = tips; *at != '\0'; at++) {
        tip_count += *at == ' ';
    }
    reply_set(reply, tip_count);
    for (uint32_t i = 0; i < tip_count; i++) {
        size_t size = strcspn(tips, " ");
        reply_bulk(reply, (struct bytes){.at = tips, .size = size});
        tips += size + 1;
    }
    describe_reply_keys(reply, index);
    uint32_t subcommand_count = describe_count_subcommands(command);
    if (subcommand_count == 0) {
        reply_set(reply, 0);
    } else {
        reply_array(reply, subcommand_count);
    }
    for (uint32_t i = 1; i <= subcommand_count; i++) {
        describe_info(call, index + i);
    }
    return 1;
}

/* ---- several commands ---- */

/* The part of the reply that describes a command. size 0: none yet. */
struct description {
    size_t begin, size;
    uint64_t count;
};

void describe_each(struct call *call, command_describe *describe, bool is_map) {
    struct description *descriptions =
        memory_allocate_zeroed(command_count() * sizeof *descriptions);
    if (descriptions == NULL) {
        call_out_of_memory(call);
        return;
    }
    uint64_t count = 0;
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t index = 0; call->request->count <= 2 && index < command_count(); index++) {
        bool is_shown = !command_is_subcommand(index) && command_is_reachable(index);
        count += is_shown ? describe(call, index) : 0;
    }
    for (uint32_t i = 2; i < call->request->count && !reply_is_lost(call->reply); i++) {
        uint32_t index = command_find_full_name(call_arg(call, i));
        struct description *description = index != COMMAND_NONE ? &descriptions[index] : NULL;
        if (description != NULL && description->size > 0) {
            reply_repeat(call->reply, description->begin, description->size);
            count += description->count;
        } else if (description != NULL) {
            description->begin = call->reply->out->size;
            description->count = describe(call, index);
            description->size = call->reply->out->size - description->begin;
            count += description->count;
        } else if (!is_map) {
            reply_null(call->reply);
            count++;
        }
    }
    (is_map ? reply_map_end : reply_array_end)(call->reply, mark, count);
    memory_free(descriptions);
}

/* ---- COMMAND, COMMAND INFO, COMMAND DOCS ---- */

static void info_run(struct call *call) {
    describe_each(call, describe_info, false);
}

static void docs_run(struct call *call) {
    describe_each(call, describe_docs, true);
}

static void count_run(struct call *call) {
    int64_t count = 0;
    for (uint32_t index = 0; index < command_count(); index++) {
        count += !command_is_subcommand(index) && command_is_reachable(index);
    }
    reply_integer(call->reply, count);
}

/* ---- COMMAND LIST ---- */

static void list_run(struct call *call) {
    struct glob glob;
    uint64_t count = 0;
    bool is_filtered = call->request->count == 5 && call_arg_is(call, 2, "FILTERBY");
    bool is_pattern = is_filtered && call_arg_is(call, 3, "PATTERN");
    bool is_category = is_filtered && call_arg_is(call, 3, "ACLCAT");
    bool is_module = is_filtered && call_arg_is(call, 3, "MODULE"); /* there are none */
    if (call->request->count != 2 && !is_pattern && !is_category && !is_module) {
        call_syntax_error(call);
        return;
    }
    /* Nothing is in a category that does not exist. */
    uint32_t mask = is_category ? UINT32_C(1) << category_find(call_arg(call, 4)) : UINT32_MAX;
    /* Names are lower case; patterns match case-insensitively. */
    if (is_pattern && !call_prepare_glob_lower(call, call_arg(call, 4), &glob)) {
        return;
    }
    size_t mark = reply_array_begin(call->reply);
    for (uint32_t index = 0; index < command_count() && !is_module; index++) {
        struct bytes name = bytes_from_text(command_full_name(index));
        if (command_is_reachable(index) && (!is_category || (category_mask(index) & mask) != 0) &&
            (!is_pattern || glob_takes(&glob, name))) {
            reply_bulk(call->reply, name);
            count++;
        }
    }
    reply_array_end(call->reply, mark, count);
}

/* ---- COMMAND GETKEYS ---- */

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
        uint32_t *positions = memory_allocate(request.count * sizeof *positions);
        if (positions == NULL) {
            call_out_of_memory(call);
            return;
        }
        int count = syntax_key_positions(command, &request, positions);
        if (count < 0) {
            reply_error(call->reply, "ERR Invalid arguments specified for command");
        } else {
            reply_array(call->reply, (uint64_t)count);
        }
        for (int i = 0; i < count; i++) {
            reply_bulk(call->reply, request.args[positions[i]]);
        }
        memory_free(positions);
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
