/* COMMAND INFO and COMMAND DOCS of one entry. Formats and names are those of Redis 7.2. */
#include "server/commands/admin/describe.h"

#include "server/dispatch/category.h"
#include "server/dispatch/key_spec.h"
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
                                   uint32_t keys_max, uint32_t *key_count);

static void describe_put_argument(struct reply *reply, const struct argument *argument,
                                  uint32_t keys_max, uint32_t *key_count) {
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

static void describe_put_arguments(struct reply *reply, const struct argument *arguments,
                                   uint32_t keys_max, uint32_t *key_count) {
    uint64_t count = 0;
    while (arguments[count].name != NULL) {
        count++;
    }
    reply_bulk_text(reply, "arguments");
    reply_array(reply, count);
    for (uint64_t i = 0; i < count; i++) {
        describe_put_argument(reply, &arguments[i], keys_max, key_count);
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

uint64_t command_describe_docs(struct call *call, uint32_t index) {
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
        describe_put_arguments(reply, command->arguments, key_specs_of(index, &specs), &key_count);
    }
    if (subcommand_count > 0) {
        reply_bulk_text(reply, "subcommands");
        reply_map(reply, subcommand_count);
    }
    for (uint32_t i = 1; i <= subcommand_count; i++) {
        command_describe_docs(call, index + i);
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

static struct words describe_key_words(const struct key_spec *spec) {
    struct words words = {.count = 0};
    for (unsigned flag = 1; key_flag_name(flag) != NULL; flag <<= 1) {
        describe_add(&words, (spec->flags & flag) != 0, key_flag_name(flag));
    }
    return words;
}

static void describe_reply_begin(struct reply *reply, const struct key_spec *spec) {
    if (spec->word == NULL) {
        describe_reply_search(reply, "begin_search", "index", 1);
        reply_named_integer(reply, "index", spec->begin);
        return;
    }
    describe_reply_search(reply, "begin_search", "keyword", 2);
    reply_named_text(reply, "keyword", spec->word);
    reply_named_integer(reply, "startfrom", spec->begin);
}

/* Of a shard channel, which is no key. */
static const struct key_spec describe_channel = {.flags = KEY_NONE, .begin = 1, .step = 1};
static const struct key_spec describe_channels = {
    .flags = KEY_NONE, .begin = 1, .last = -1, .step = 1};

static uint32_t describe_find_keys(uint32_t index, const struct key_spec **specs) {
    const struct command *command = command_by_index(index);
    if ((command->flags & COMMAND_SHARD) != 0) {
        *specs = command->arity > 0 ? &describe_channel : &describe_channels;
        return 1;
    }
    return key_specs_of(index, specs);
}

static void describe_reply_keys(struct reply *reply, uint32_t index) {
    const struct key_spec *specs;
    uint32_t count = describe_find_keys(index, &specs);
    reply_set(reply, count);
    for (uint32_t i = 0; i < count; i++) {
        struct words words = describe_key_words(&specs[i]);
        bool is_range = !specs[i].is_counted;
        reply_map(reply, 3);
        reply_bulk_text(reply, "flags");
        describe_reply_words(reply, &words, "");
        describe_reply_begin(reply, &specs[i]);
        describe_reply_search(reply, "find_keys", is_range ? "range" : "keynum", 3);
        reply_named_integer(reply, is_range ? "lastkey" : "keynumidx", specs[i].last);
        reply_named_integer(reply, is_range ? "keystep" : "firstkey", specs[i].step);
        reply_named_integer(reply, is_range ? "limit" : "keystep", is_range ? 0 : 1);
    }
}

/* ---- tips ---- */

static void describe_reply_tips(struct reply *reply, uint32_t index) {
    const char *tips = category_tips(index);
    uint32_t count = *tips != '\0';
    for (const char *at = tips; *at != '\0'; at++) {
        count += *at == ' ';
    }
    reply_set(reply, count);
    for (uint32_t i = 0; i < count; i++) {
        size_t size = strcspn(tips, " ");
        reply_bulk(reply, (struct bytes){.at = tips, .size = size});
        tips += size + 1;
    }
}

/* ---- COMMAND INFO ---- */

uint64_t command_describe_info(struct call *call, uint32_t index) {
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
    describe_reply_tips(reply, index);
    describe_reply_keys(reply, index);
    uint32_t subcommand_count = describe_count_subcommands(command);
    if (subcommand_count == 0) {
        reply_set(reply, 0);
    } else {
        reply_array(reply, subcommand_count);
    }
    for (uint32_t i = 1; i <= subcommand_count; i++) {
        command_describe_info(call, index + i);
    }
    return 1;
}

/* ---- several commands ---- */

/* The part of the reply that describes a command. size 0: none yet. */
struct description {
    size_t begin, size;
    uint64_t count;
};

static uint64_t describe_once(struct call *call, uint32_t index, command_describe *describe,
                              struct description *description) {
    if (description->size > 0) {
        reply_repeat(call->reply, description->begin, description->size);
        return description->count;
    }
    description->begin = call->reply->out->size;
    description->count = describe(call, index);
    description->size = call->reply->out->size - description->begin;
    return description->count;
}

void command_describe_each(struct call *call, command_describe *describe, bool is_map) {
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
        if (index != COMMAND_NONE) {
            count += describe_once(call, index, describe, &descriptions[index]);
        } else if (!is_map) {
            reply_null(call->reply);
            count++;
        }
    }
    (is_map ? reply_map_end : reply_array_end)(call->reply, mark, count);
    memory_free(descriptions);
}
