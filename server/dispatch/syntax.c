/* From an entry's syntax to its arguments, arity and keys, and back to text. See syntax.h. */
#include "server/dispatch/syntax.h"

#include <ctype.h>

enum {
    ARGUMENTS_MAX = 2048, /* of all commands, terminators included */
    TEXT_MAX = 16384,     /* bytes of all names and tokens */
    LIST_MAX = 32,        /* arguments of one list */
};

static struct argument kept[ARGUMENTS_MAX];
static uint32_t kept_count;
static char kept_text[TEXT_MAX];
static size_t kept_text_size;

void syntax_reset(void) {
    kept_count = 0;
    kept_text_size = 0;
}

/* ---- parsing ---- */

struct list {
    struct argument items[LIST_MAX + 1]; /* the last is a terminator */
    uint32_t count;
};

static struct argument *syntax_add(struct list *list, struct argument argument) {
    CHECK(list->count < LIST_MAX);
    list->items[list->count] = argument;
    return &list->items[list->count++];
}

static const struct argument *syntax_keep(const struct list *list) {
    struct argument *copy = &kept[kept_count];
    CHECK(kept_count + list->count < ARGUMENTS_MAX);
    memcpy(copy, list->items, (list->count + 1) * sizeof list->items[0]);
    kept_count += list->count + 1;
    return copy;
}

static const char *syntax_keep_text(const char *at, size_t size) {
    char *copy = &kept_text[kept_text_size];
    CHECK(size > 0 && kept_text_size + size < TEXT_MAX);
    memcpy(copy, at, size);
    copy[size] = '\0';
    kept_text_size += size + 1;
    return copy;
}

static const char *syntax_lower_case(const char *word) {
    char *lower = &kept_text[kept_text_size];
    (void)syntax_keep_text(word, strlen(word));
    for (char *at = lower; *at != '\0'; at++) {
        *at = (char)tolower((unsigned char)*at);
    }
    return lower;
}

static void syntax_skip_blanks(const char **at) {
    *at += strspn(*at, " ");
}

static bool syntax_take(const char **at, const char *mark) {
    bool is_there = strncmp(*at, mark, strlen(mark)) == 0;
    *at += is_there ? strlen(mark) : 0;
    return is_there;
}

static const char *syntax_take_word(const char **at) {
    size_t size = strcspn(*at, " []<>()|.=:");
    const char *word = syntax_keep_text(*at, size);
    *at += size;
    return word;
}

static const char *const type_names[] = {
    [ARGUMENT_STRING] = "string",         [ARGUMENT_INTEGER] = "integer",
    [ARGUMENT_DOUBLE] = "double",         [ARGUMENT_KEY] = "key",
    [ARGUMENT_PATTERN] = "pattern",       [ARGUMENT_UNIX_TIME] = "unix-time",
    [ARGUMENT_PURE_TOKEN] = "pure-token", [ARGUMENT_ONEOF] = "oneof",
    [ARGUMENT_BLOCK] = "block",
};

const char *syntax_type_name(enum argument_type type) {
    return type_names[type];
}

/* ARGUMENT_PURE_TOKEN: no word has this type. */
static enum argument_type syntax_find_type(const char *name) {
    enum argument_type type = ARGUMENT_STRING;
    while (type != ARGUMENT_PURE_TOKEN && strcmp(type_names[type], name) != 0) {
        type++;
    }
    return type;
}

static struct argument syntax_parse_group(const char **at, const char *end);

/* A word, or brackets; then perhaps "...". */
static void syntax_parse_item(const char **at, struct list *list) {
    struct argument argument = {.flags = 0};
    const char *word = strchr("[<(", **at) == NULL ? syntax_take_word(at) : NULL;
    const char *name = word != NULL && syntax_take(at, "=") ? word : NULL;
    if (word != NULL && name == NULL) {
        enum argument_type type =
            syntax_find_type(syntax_take(at, ":") ? syntax_take_word(at) : word);
        bool is_type = type != ARGUMENT_PURE_TOKEN;
        argument = (struct argument){.name = word, .type = is_type ? type : ARGUMENT_STRING};
    } else if (syntax_take(at, "[")) {
        argument = syntax_parse_group(at, "]");
        argument.flags |= ARGUMENT_OPTIONAL;
    } else if (syntax_take(at, "<")) {
        argument = syntax_parse_group(at, ">");
    } else {
        bool is_group = syntax_take(at, "(");
        CHECK(is_group);
        argument = syntax_parse_group(at, ")");
    }
    argument.name = name != NULL ? name : argument.name;
    if (syntax_take(at, "...")) {
        argument.flags |= ARGUMENT_MULTIPLE;
        argument.flags |= argument.token != NULL ? ARGUMENT_MULTIPLE_TOKEN : 0;
    }
    syntax_add(list, argument);
}

/* Up to the end of the text or of the brackets. */
static void syntax_parse_items(const char **at, struct list *list) {
    for (syntax_skip_blanks(at); strchr("|]>)", **at) == NULL; syntax_skip_blanks(at)) {
        syntax_parse_item(at, list);
    }
}

/* A token, or items, or a token and its values. */
static struct argument syntax_parse_alternative(const char **at) {
    struct list values = {.count = 0};
    struct argument argument = {.type = ARGUMENT_PURE_TOKEN};
    syntax_skip_blanks(at);
    const char *token = isupper((unsigned char)**at) ? syntax_take_word(at) : NULL;
    syntax_parse_items(at, &values);
    if (values.count == 1) {
        argument = values.items[0];
    } else if (values.count > 1) {
        argument = (struct argument){.type = ARGUMENT_BLOCK, .children = syntax_keep(&values)};
    }
    if (token != NULL) {
        CHECK(argument.token == NULL);
        argument.token = token;
        argument.name = argument.name != NULL ? argument.name : syntax_lower_case(token);
    }
    return argument;
}

static struct argument syntax_parse_group(const char **at, const char *end) {
    struct list alternatives = {.count = 0};
    do {
        syntax_add(&alternatives, syntax_parse_alternative(at));
    } while (syntax_take(at, "|"));
    bool is_ended = syntax_take(at, end);
    CHECK(is_ended);
    if (alternatives.count == 1) {
        return alternatives.items[0];
    }
    return (struct argument){.type = ARGUMENT_ONEOF, .children = syntax_keep(&alternatives)};
}

/* ---- what follows from the arguments ---- */

static int syntax_count_min(const struct argument *list);

/* The fewest words of an argument that is given, and once. */
static int syntax_count_once(const struct argument *argument) {
    int count = argument->token != NULL;
    if (argument->type == ARGUMENT_BLOCK) {
        return count + syntax_count_min(argument->children);
    }
    if (argument->type != ARGUMENT_ONEOF) {
        return count + (argument->type != ARGUMENT_PURE_TOKEN);
    }
    int fewest = syntax_count_once(argument->children);
    for (const struct argument *child = argument->children; child->name != NULL; child++) {
        int words = syntax_count_once(child);
        fewest = words < fewest ? words : fewest;
    }
    return count + fewest;
}

static int syntax_count_min(const struct argument *list) {
    int count = 0;
    for (; list->name != NULL; list++) {
        count += (list->flags & ARGUMENT_OPTIONAL) != 0 ? 0 : syntax_count_once(list);
    }
    return count;
}

/* Is the number of words always the same? No alternatives here differ in it but by their flags. */
static bool syntax_is_fixed(const struct argument *list) {
    for (; list->name != NULL; list++) {
        if (list->flags != 0 || (list->children != NULL && !syntax_is_fixed(list->children))) {
            return false;
        }
    }
    return true;
}

/* Keys precede anything whose number of words varies. A key after "numkeys" is one of that many. */
static void syntax_find_keys(struct command *command, int position) {
    const struct argument *previous = NULL;
    for (const struct argument *at = command->arguments; at->name != NULL; at++, position++) {
        bool is_many = (at->flags & ARGUMENT_MULTIPLE) != 0;
        if (at->type == ARGUMENT_KEY && previous != NULL &&
            strcmp(previous->name, "numkeys") == 0) {
            command->flags |= COMMAND_MOVABLE_KEYS;
            command->key_count_arg = position - 1;
        } else if (at->type == ARGUMENT_KEY) {
            command->first_key = command->first_key > 0 ? command->first_key : position;
            command->last_key = is_many ? -1 - syntax_count_min(at + 1) : position;
            command->key_step = 1;
        }
        if (at->flags != 0 || at->children != NULL) {
            return;
        }
        previous = at;
    }
}

void syntax_apply(struct command *command, bool is_subcommand) {
    struct list list = {.count = 0};
    int name_words = is_subcommand ? 2 : 1;
    const char *at = command->syntax != NULL ? command->syntax : "";
    syntax_parse_items(&at, &list);
    CHECK(*at == '\0');
    command->arguments = list.count > 0 ? syntax_keep(&list) : NULL;
    if (command->arity == 0 && command->run == NULL) {
        command->arity = -2; /* a container without a subcommand */
    } else if (command->arity == 0) {
        int arity = name_words + syntax_count_min(list.items);
        command->arity = syntax_is_fixed(list.items) ? arity : -arity;
    }
    bool is_open = command->arity < 0;
    command->args_min = (uint32_t)(is_open ? -command->arity : command->arity);
    command->args_more = is_open ? UINT32_MAX - command->args_min : 0;
    if (command->run == NULL) {
        command->args_min = UINT32_MAX;
        command->args_more = 0;
    }
    if (command->arguments != NULL) {
        syntax_find_keys(command, name_words);
    }
}

/* ---- back to text ---- */

struct printed {
    char *at;
    size_t size;
    size_t used; /* as if there were unlimited room */
};

static void syntax_put_text(struct printed *out, const char *word) {
    for (; *word != '\0'; word++, out->used++) {
        if (out->used + 1 < out->size) {
            out->at[out->used] = *word;
        }
    }
}

static void syntax_put_arguments(struct printed *out, const struct argument *arguments,
                                 const char *separator);

static void syntax_put_argument_once(struct printed *out, const struct argument *argument,
                                     bool with_token) {
    if (argument->type == ARGUMENT_PURE_TOKEN) {
        syntax_put_text(out, argument->token);
        return;
    }
    if (with_token && argument->token != NULL) {
        syntax_put_text(out, argument->token);
        syntax_put_text(out, " ");
    }
    if (argument->type == ARGUMENT_ONEOF) {
        bool is_bare = (argument->flags & ARGUMENT_OPTIONAL) != 0 && argument->token == NULL;
        syntax_put_text(out, is_bare ? "" : "<");
        syntax_put_arguments(out, argument->children, " | ");
        syntax_put_text(out, is_bare ? "" : ">");
    } else if (argument->type == ARGUMENT_BLOCK) {
        syntax_put_arguments(out, argument->children, " ");
    } else {
        syntax_put_text(out, argument->name);
    }
}

static void syntax_put_argument(struct printed *out, const struct argument *argument) {
    bool is_optional = (argument->flags & ARGUMENT_OPTIONAL) != 0;
    syntax_put_text(out, is_optional ? "[" : "");
    syntax_put_argument_once(out, argument, true);
    if ((argument->flags & ARGUMENT_MULTIPLE) != 0) {
        syntax_put_text(out, " [");
        syntax_put_argument_once(out, argument, (argument->flags & ARGUMENT_MULTIPLE_TOKEN) != 0);
        syntax_put_text(out, " ...]");
    }
    syntax_put_text(out, is_optional ? "]" : "");
}

static void syntax_put_arguments(struct printed *out, const struct argument *arguments,
                                 const char *separator) {
    for (const struct argument *argument = arguments; argument->name != NULL; argument++) {
        syntax_put_text(out, argument == arguments ? "" : separator);
        syntax_put_argument(out, argument);
    }
}

size_t syntax_print(const struct command *command, char *out, size_t size) {
    CHECK(size > 0);
    struct printed printed = {.at = out, .size = size};
    if (command->arguments != NULL) {
        syntax_put_arguments(&printed, command->arguments, " ");
    }
    size_t end = printed.used < size ? printed.used : size - 1;
    out[end] = '\0';
    return end;
}
