/* COMMAND INFO and COMMAND DOCS of one entry. Formats and names are those of Redis 7.4. */
#include "server/commands/admin/describe.h"

#include "server/dispatch/syntax.h"

/* ---- keys ---- */

/* The name of the nth key argument. Keys are never inside blocks. */
static const char *key_argument_name(const struct command *command, uint32_t nth) {
    const struct argument *argument = command->arguments;
    for (; argument != NULL && argument->name != NULL; argument++) {
        if (argument->type == ARGUMENT_KEY && nth-- == 0) {
            return argument->name;
        }
    }
    return NULL;
}

/* A key specification: a group of keys that are found in the same way. */
struct keys {
    bool is_counted;       /* the argument at begin is the number of keys after it */
    int begin, last, step; /* otherwise up to last, relative to begin; negative: from the end */
    const char *name;      /* of the argument; NULL: not documented */
};
enum { KEYS_MAX = 4 }; /* COPY has two: source and destination */

/* Returns the number of key specifications. */
static uint32_t find_keys(const struct command *command, struct keys *keys) {
    uint32_t count = 0;
    if (command->first_key > 0 && command->last_key >= command->first_key) {
        for (int at = command->first_key; at <= command->last_key; at += command->key_step) {
            CHECK(count + 1 < KEYS_MAX);
            keys[count++] = (struct keys){false, at, 0, 1, NULL};
        }
    } else if (command->first_key > 0) {
        keys[count++] =
            (struct keys){false, command->first_key, command->last_key, command->key_step, NULL};
    }
    if ((command->flags & COMMAND_MOVABLE_KEYS) != 0) {
        keys[count++] = (struct keys){true, command->key_count_arg, 0, 1, NULL};
    }
    for (uint32_t i = 0; i < count; i++) {
        keys[i].name = key_argument_name(command, i);
    }
    return count;
}

/* ---- arguments ---- */

static void put(struct reply *reply, const char *name, const char *text) {
    reply_bulk_text(reply, name);
    reply_bulk_text(reply, text);
}

static void put_flags(struct reply *reply, unsigned flags) {
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
static void put_arguments(struct reply *reply, const struct argument *arguments, uint32_t keys_max,
                          uint32_t *key_count);

static void put_argument(struct reply *reply, const struct argument *argument, uint32_t keys_max,
                         uint32_t *key_count) {
    bool is_group = argument->type == ARGUMENT_ONEOF || argument->type == ARGUMENT_BLOCK;
    bool is_key = argument->type == ARGUMENT_KEY && keys_max > 0;
    reply_map(reply, 3U + is_key + (argument->token != NULL) + (argument->flags != 0));
    put(reply, "name", argument->name);
    put(reply, "type", syntax_type_name(argument->type));
    if (!is_group) {
        put(reply, "display_text", argument->name);
    }
    if (is_key) {
        uint32_t nth = (*key_count)++;
        reply_bulk_text(reply, "key_spec_index");
        reply_integer(reply, nth < keys_max ? nth : keys_max - 1);
    }
    if (argument->token != NULL) {
        put(reply, "token", argument->token);
    }
    if (argument->flags != 0) {
        put_flags(reply, argument->flags);
    }
    if (is_group) {
        put_arguments(reply, argument->children, keys_max, key_count);
    }
}

static void put_arguments(struct reply *reply, const struct argument *arguments, uint32_t keys_max,
                          uint32_t *key_count) {
    uint64_t count = 0;
    while (arguments[count].name != NULL) {
        count++;
    }
    reply_bulk_text(reply, "arguments");
    reply_array(reply, count);
    for (uint64_t i = 0; i < count; i++) {
        put_argument(reply, &arguments[i], keys_max, key_count);
    }
}

/* ---- COMMAND DOCS ---- */

static void put_subcommands(struct reply *reply, const struct command *container, uint32_t index) {
    uint64_t count = 0;
    while (container->subcommands[count] != NULL) {
        count++;
    }
    reply_bulk_text(reply, "subcommands");
    reply_map(reply, count);
    for (uint32_t i = 1; i <= count; i++) {
        command_describe_docs(reply, index + i);
    }
}

void command_describe_docs(struct reply *reply, uint32_t index) {
    const struct command *command = command_by_index(index);
    reply_bulk_text(reply, command_full_name(index));
    reply_map(reply, 4U + (command->arguments != NULL) + (command->subcommands != NULL));
    put(reply, "summary", command->summary);
    put(reply, "since", command->since);
    put(reply, "group", command->group);
    put(reply, "complexity", command->complexity);
    if (command->arguments != NULL) {
        struct keys keys[KEYS_MAX];
        uint32_t key_count = 0;
        put_arguments(reply, command->arguments, find_keys(command, keys), &key_count);
    }
    if (command->subcommands != NULL) {
        put_subcommands(reply, command, index);
    }
}

/* ---- flags and categories ---- */

enum { WORDS_MAX = 16 };
struct words {
    const char *words[WORDS_MAX];
    uint32_t count;
};

static void add(struct words *words, bool is_true, const char *word) {
    if (is_true) {
        CHECK(words->count < WORDS_MAX);
        words->words[words->count++] = word;
    }
}

static void reply_words(struct reply *reply, const struct words *words, const char *prefix) {
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

static struct words flag_words(const struct command *command) {
    struct words words = {.count = 0};
    unsigned flags = command->flags;
    add(&words, (flags & COMMAND_WRITE) != 0, "write");
    add(&words, (flags & COMMAND_READ) != 0, "readonly");
    add(&words, (flags & COMMAND_DENYOOM) != 0, "denyoom");
    add(&words, (flags & COMMAND_ADMIN) != 0, "admin");
    add(&words, (flags & COMMAND_BLOCKING) != 0, "blocking");
    add(&words, (flags & COMMAND_LOADING) != 0, "loading");
    add(&words, (flags & COMMAND_LOADING) != 0, "stale");
    add(&words, (flags & COMMAND_NO_SLOWLOG) != 0, "skip_slowlog");
    add(&words, (flags & COMMAND_FAST) != 0, "fast");
    add(&words, (flags & COMMAND_NO_AUTH) != 0, "no_auth");
    add(&words, (flags & COMMAND_NO_MULTI) != 0, "no_multi");
    add(&words, (flags & COMMAND_MOVABLE_KEYS) != 0, "movablekeys");
    return words;
}

/* Redis's categories that do not follow from group and flags. */
static bool is_exception(const char *full_name, const char *category) {
    static const char *const exceptions[][2] = {
        {"command", "connection"},      {"command|count", "connection"},
        {"command|docs", "connection"}, {"command|getkeys", "connection"},
        {"command|help", "connection"}, {"command|info", "connection"},
        {"command|list", "connection"}, {"dbsize", "keyspace"},
        {"flushall", "dangerous"},      {"flushall", "keyspace"},
        {"flushdb", "dangerous"},       {"flushdb", "keyspace"},
        {"info", "dangerous"},          {"keys", "dangerous"},
        {"lastsave", "admin"},          {"lastsave", "dangerous"},
    };
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++) {
        if (strcmp(exceptions[i][0], full_name) == 0 && strcmp(exceptions[i][1], category) == 0) {
            return true;
        }
    }
    return false;
}

/* In the order of Redis's category table. A container is only in slow. To Redis, the native
 * commands work on sorted sets. */
static struct words category_words(uint32_t index) {
    const struct command *command = command_by_index(index);
    const char *name = command_full_name(index);
    const char *group = command->run != NULL ? command->group : "";
    unsigned flags = command->flags;
    bool is_admin = (flags & COMMAND_ADMIN) != 0;
    bool is_fast = (flags & COMMAND_FAST) != 0;
    struct words words = {.count = 0};
    add(&words, strcmp(group, "generic") == 0 || is_exception(name, "keyspace"), "keyspace");
    add(&words, (flags & COMMAND_READ) != 0, "read");
    add(&words, (flags & COMMAND_WRITE) != 0, "write");
    add(&words, strcmp(group, "sorted-set") == 0 || strcmp(group, "leaderboard") == 0, "sortedset");
    add(&words, is_admin || is_exception(name, "admin"), "admin");
    add(&words, is_fast, "fast");
    add(&words, !is_fast, "slow");
    add(&words, (flags & COMMAND_BLOCKING) != 0, "blocking");
    add(&words, is_admin || is_exception(name, "dangerous"), "dangerous");
    add(&words, strcmp(group, "connection") == 0 || is_exception(name, "connection"), "connection");
    add(&words, strcmp(group, "transactions") == 0, "transaction");
    return words;
}

bool command_describe_is_in(uint32_t index, struct bytes category) {
    struct words words = category_words(index);
    for (uint32_t i = 0; i < words.count; i++) {
        if (bytes_is(category, words.words[i])) {
            return true;
        }
    }
    return false;
}

/* ---- key specifications ---- */

static void put_number(struct reply *reply, const char *name, int64_t number) {
    reply_bulk_text(reply, name);
    reply_integer(reply, number);
}

static void reply_search(struct reply *reply, const char *name, const char *type, uint64_t pairs) {
    reply_bulk_text(reply, name);
    reply_map(reply, 2);
    reply_bulk_text(reply, "type");
    reply_bulk_text(reply, type);
    reply_bulk_text(reply, "spec");
    reply_map(reply, pairs);
}

/* RO: read only; OW: overwritten; RM: removed; RW: modified. */
static struct words key_words(const struct command *command, const struct keys *keys) {
    struct words words = {.count = 0};
    const char *name = keys->name;
    /* Counted keys next to a single one are the sources of a STORE. */
    bool is_source = (keys->is_counted && command->first_key > 0) ||
                     (name != NULL && (strcmp(name, "source") == 0 || strcmp(name, "src") == 0));
    bool is_target = name != NULL && (strcmp(name, "destination") == 0 ||
                                      strcmp(name, "dst") == 0 || strcmp(name, "newkey") == 0);
    bool is_read = (command->flags & COMMAND_WRITE) == 0 || is_source;
    bool is_removed = strcmp(command->name, "DEL") == 0 || strcmp(command->name, "UNLINK") == 0;
    add(&words, true, is_read ? "RO" : is_target ? "OW" : is_removed ? "RM" : "RW");
    /* WATCH does not read the contents of its keys. */
    add(&words, !is_read || is_source || (command->flags & COMMAND_READ) != 0,
        is_read      ? "access"
        : is_removed ? "delete"
                     : "update");
    return words;
}

static void reply_keys(struct reply *reply, const struct command *command) {
    struct keys keys[KEYS_MAX];
    uint32_t count = find_keys(command, keys);
    reply_set(reply, count);
    for (uint32_t i = 0; i < count; i++) {
        struct words words = key_words(command, &keys[i]);
        bool is_range = !keys[i].is_counted;
        reply_map(reply, 3);
        reply_bulk_text(reply, "flags");
        reply_words(reply, &words, "");
        reply_search(reply, "begin_search", "index", 1);
        put_number(reply, "index", keys[i].begin);
        reply_search(reply, "find_keys", is_range ? "range" : "keynum", 3);
        put_number(reply, is_range ? "lastkey" : "keynumidx", keys[i].last);
        put_number(reply, is_range ? "keystep" : "firstkey", keys[i].step);
        put_number(reply, is_range ? "limit" : "keystep", is_range ? 0 : 1);
    }
}

/* ---- COMMAND INFO ---- */

void command_describe_info(struct reply *reply, uint32_t index) {
    const struct command *command = command_by_index(index);
    struct words flags = flag_words(command);
    struct words categories = category_words(index);
    reply_array(reply, 10);
    reply_bulk_text(reply, command_full_name(index));
    reply_integer(reply, command->arity);
    reply_words(reply, &flags, "");
    reply_integer(reply, command->first_key);
    reply_integer(reply, command->last_key);
    reply_integer(reply, command->key_step);
    reply_words(reply, &categories, "@");
    reply_set(reply, 0); /* tips are for cluster clients */
    reply_keys(reply, command);
    uint64_t count = 0;
    while (command->subcommands != NULL && command->subcommands[count] != NULL) {
        count++;
    }
    if (count == 0) {
        reply_set(reply, 0);
        return;
    }
    reply_array(reply, count);
    for (uint32_t i = 1; i <= count; i++) {
        command_describe_info(reply, index + i);
    }
}
