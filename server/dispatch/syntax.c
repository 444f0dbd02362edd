/* From an entry's syntax to its arguments, arity and keys, and back to text; and what reads requests
 * by it. See syntax.h. */
#include "server/dispatch/syntax.h"

#include <ctype.h>
#include <stdio.h>

#include "server/acl/acl.h"
#include "server/dispatch/explain.h"

enum {
    ARGUMENTS_MAX = 2048, /* of all commands, terminators included */
    TEXT_MAX = 16384,     /* bytes of all names and tokens */
    LIST_MAX = 32,        /* arguments of one list */
    FORMS_MAX = 96,       /* commands with bindings */
    ITEMS_MAX = 512,      /* of all of them */
    OPTIONS_MAX = 64,     /* of one */
};

static struct argument kept[ARGUMENTS_MAX];
static uint32_t kept_count;
static char kept_text[TEXT_MAX];
static size_t kept_text_size;

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

static struct argument syntax_parse_group(const char **at, const char *end);

/* Up to the end of the text or of the brackets. */
static void syntax_parse_items(const char **at, struct list *list) {
    for (syntax_skip_blanks(at); strchr("|]>)", **at) == NULL; syntax_skip_blanks(at)) {
        /* A word, or brackets; then perhaps "...". */
        struct argument argument = {.flags = 0};
        const char *word = strchr("[<(", **at) == NULL ? syntax_take_word(at) : NULL;
        const char *name = word != NULL && syntax_take(at, "=") ? word : NULL;
        if (word != NULL && name == NULL) {
            const char *type_name = syntax_take(at, ":") ? syntax_take_word(at) : word;
            enum argument_type type = ARGUMENT_STRING;
            while (type != ARGUMENT_PURE_TOKEN && strcmp(type_names[type], type_name) != 0) {
                type++;
            }
            bool is_type = type != ARGUMENT_PURE_TOKEN; /* which no word has */
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
        if (argument.name == NULL) {
            char *lower = &kept_text[kept_text_size];
            argument.name = syntax_keep_text(token, strlen(token));
            for (; *lower != '\0'; lower++) {
                *lower = (char)tolower((unsigned char)*lower);
            }
        }
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

/* ---- how requests are read ---- */

/* An option; or a word, a choice or a list by its place. */
struct syntax_item {
    const char *token;              /* of an option; NULL: it stands by its place */
    const struct binding *binding;  /* of its token or name; NULL: none */
    const struct binding *group;    /* of the alternatives that it is one of; NULL: none */
    const struct argument *choices; /* of which a word must be one; NULL: any text will do */
    struct command_name_words name; /* of the token, which has letters alone */
    uint8_t name_size;
    uint8_t plain;       /* enum binding_kind, of one that is only stored; 0: more is to be done */
    uint32_t offset;     /* of its field */
    uint8_t alternative; /* its number in the group, from 1 */
    uint8_t words;       /* that are always there: values of an option */
    uint8_t each;        /* words of what is repeated behind these; 0: nothing is */
    bool is_counted;     /* the number before what is repeated says how often */
    bool is_optional;    /* of one by its place: an option may follow instead */
};

struct syntax_form {
    const struct syntax_item *steps, *options; /* those by their places; behind them these */
    const struct syntax_item *end;
    uint32_t first;      /* index of the first step: nothing is bound before */
    uint32_t keys_at;    /* index of the number of keys; 0: there is none */
    uint32_t options_at; /* index where options may begin at first */
};

static struct syntax_item items[ITEMS_MAX];
static uint32_t item_count;
static struct syntax_form forms[FORMS_MAX];
static uint32_t form_count;

void syntax_reset(void) {
    kept_count = 0;
    kept_text_size = 0;
    item_count = 0;
    form_count = 0;
}

static const struct binding *syntax_find_binding(const struct command *command, const char *word) {
    const struct binding *binding = command->bindings;
    while (binding->word != NULL && strcmp(binding->word, word) != 0) {
        binding++;
    }
    return binding->word != NULL ? binding : NULL;
}

static struct syntax_item *syntax_add_item(const struct command *command, const char *word) {
    struct syntax_item *item = &items[item_count++];
    CHECK(item_count < ITEMS_MAX);
    *item = (struct syntax_item){.binding = syntax_find_binding(command, word)};
    return item;
}

/* The words of a list, up to what is optional; its last may be repeated. */
static void syntax_count_words(const struct argument *list, struct syntax_item *item) {
    bool is_number = false;
    for (; list->name != NULL && list->flags == 0; list++) {
        is_number = list->type == ARGUMENT_INTEGER;
        item->words++;
    }
    if (list->name != NULL && (list->flags & ARGUMENT_MULTIPLE) != 0) {
        item->each = list->type == ARGUMENT_BLOCK ? (uint8_t)syntax_count_min(list->children) : 1;
        item->is_counted = is_number;
    }
}

/* Options are the tokens inside what is optional, but not those among the values of another.
 * group: of the list, which has alternatives; or NULL. */
static void syntax_add_options(const struct command *command, const struct argument *list,
                               bool is_inside, const struct binding *group) {
    for (uint8_t alternative = 1; list->name != NULL; list++, alternative++) {
        bool is_option = is_inside || (list->flags & ARGUMENT_OPTIONAL) != 0;
        if (list->token != NULL && is_option) {
            struct syntax_item *item = syntax_add_item(command, list->token);
            item->token = list->token;
            item->name_size = (uint8_t)strspn(list->token, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
            CHECK(item->name_size <= COMMAND_NAME_MAX && list->token[item->name_size] == '\0');
            item->name = command_words_of_name(list->token, item->name_size);
            item->group = group;
            item->alternative = alternative;
            CHECK(item->binding != NULL || group != NULL);
            bool is_list = (list->flags & ARGUMENT_MULTIPLE) != 0 &&
                           (list->flags & ARGUMENT_MULTIPLE_TOKEN) == 0;
            if (list->type == ARGUMENT_BLOCK && is_list) {
                item->each = (uint8_t)syntax_count_min(list->children);
            } else if (list->type == ARGUMENT_BLOCK) {
                syntax_count_words(list->children, item);
            } else if (list->type != ARGUMENT_PURE_TOKEN) {
                item->words = !is_list;
                item->each = is_list;
                item->choices = list->type == ARGUMENT_ONEOF ? list->children : NULL;
            }
            const struct binding *binding = item->binding;
            if (binding != NULL && binding->kind <= BINDING_INTEGER && group == NULL &&
                binding->repeat == BINDING_LAST_COUNTS && binding->read == NULL &&
                item->choices == NULL) {
                item->plain = (uint8_t)binding->kind;
                item->offset = binding->offset;
            }
        }
        if (list->type == ARGUMENT_BLOCK) {
            syntax_add_options(command, list->children, is_option && list->token == NULL, NULL);
        } else if (list->type == ARGUMENT_ONEOF && list->token == NULL) {
            syntax_add_options(command, list->children, is_option,
                               syntax_find_binding(command, list->name));
        }
    }
}

/* What stands by its place before the options. What is not bound takes no step, if it is the first. */
static void syntax_add_steps(const struct command *command, struct syntax_form *form) {
    bool is_number = false;
    for (const struct argument *at = command->arguments; at->name != NULL; at++) {
        bool is_word = at->token == NULL && at->type < ARGUMENT_PURE_TOKEN;
        bool is_block = at->token == NULL && at->type == ARGUMENT_BLOCK;
        bool is_optional = (at->flags & ARGUMENT_OPTIONAL) != 0;
        /* Is it a choice of tokens? */
        const struct argument *child = at->type == ARGUMENT_ONEOF ? at->children : NULL;
        while (child != NULL && child->name != NULL && child->token != NULL) {
            child++;
        }
        bool is_choice = child != NULL && child->name == NULL;
        if (!(is_word && !is_optional) && !(is_choice && at->flags == 0) &&
            !(is_block && at->flags != 0 && at->children->token == NULL)) {
            return;
        }
        struct syntax_item *item = syntax_add_item(command, at->name);
        item->is_optional = is_optional;
        if (is_block && (at->flags & ARGUMENT_MULTIPLE) != 0) {
            item->each = (uint8_t)syntax_count_min(at->children);
        } else if (is_block) {
            syntax_count_words(at->children, item);
        } else {
            item->each = (at->flags & ARGUMENT_MULTIPLE) != 0;
            item->words = item->each == 0;
            item->choices = is_word ? NULL : at->children;
            item->is_counted = is_number;
        }
        is_number = at->type == ARGUMENT_INTEGER;
        form->options_at += is_optional ? 0 : (uint32_t)syntax_count_once(at);
        if (item == form->steps && item->binding == NULL && item->words == 1 && is_word) {
            form->first++;
            item_count--;
        }
    }
}

void syntax_apply(struct command *command, bool is_subcommand) {
    struct list list = {.count = 0}, hidden = {.count = 0};
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
    if (command->bindings == NULL) {
        return;
    }
    at = command->hidden_syntax != NULL ? command->hidden_syntax : "";
    syntax_parse_items(&at, &hidden);
    struct syntax_form *form = &forms[form_count++];
    CHECK(form_count < FORMS_MAX && command->arguments != NULL);
    *form = (struct syntax_form){.steps = &items[item_count],
                                 .first = (uint32_t)name_words,
                                 .options_at = (uint32_t)name_words,
                                 .keys_at = (uint32_t)command->key_count_arg};
    syntax_add_steps(command, form);
    form->options = &items[item_count];
    syntax_add_options(command, command->arguments, false, NULL);
    syntax_add_options(command, syntax_keep(&hidden), false, NULL);
    form->end = &items[item_count];
    CHECK(form->end - form->options <= OPTIONS_MAX);
    command->form = form;
}

/* ---- back to text ---- */

struct printed {
    char *at;
    size_t size;
    size_t used;   /* as if there were unlimited room */
    bool is_short; /* "member ...", not "member [member ...]" */
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
    if ((argument->flags & ARGUMENT_MULTIPLE) != 0 && out->is_short) {
        syntax_put_text(out, " ...");
    } else if ((argument->flags & ARGUMENT_MULTIPLE) != 0) {
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

static size_t syntax_end_text(const struct printed *printed) {
    size_t end = printed->used < printed->size ? printed->used : printed->size - 1;
    printed->at[end] = '\0';
    return end;
}

size_t syntax_print(const struct command *command, char *out, size_t size) {
    CHECK(size > 0);
    struct printed printed = {.at = out, .size = size};
    if (command->arguments != NULL) {
        syntax_put_arguments(&printed, command->arguments, " ");
    }
    return syntax_end_text(&printed);
}

static bool syntax_has(const struct argument *argument, const struct argument *sought) {
    const struct argument *child = argument->children;
    bool is_found = argument == sought;
    for (; !is_found && child != NULL && child->name != NULL; child++) {
        is_found = syntax_has(child, sought);
    }
    return is_found;
}

size_t syntax_print_short(const struct command *command, const struct argument *shown, char *out,
                          size_t size) {
    CHECK(size > 0);
    struct printed printed = {.at = out, .size = size, .is_short = true};
    const struct argument *argument = command->arguments;
    bool is_left_out = false, ends_open = false;
    for (; argument != NULL && argument->name != NULL; argument++) {
        bool is_optional = (argument->flags & ARGUMENT_OPTIONAL) != 0;
        bool is_shown = is_optional && shown != NULL && syntax_has(argument, shown);
        if (is_optional && !is_shown) {
            is_left_out = true;
            continue;
        }
        syntax_put_text(&printed, is_left_out && !is_optional ? " [option ...]" : "");
        is_left_out = is_left_out && is_optional;
        syntax_put_text(&printed, printed.used > 0 ? " " : "");
        syntax_put_text(&printed, is_shown ? "[" : "");
        if (is_shown) {
            syntax_put_argument_once(&printed, shown, true);
            syntax_put_text(&printed, (shown->flags & ARGUMENT_MULTIPLE) != 0 ? " ...]" : "]");
        } else {
            syntax_put_argument(&printed, argument);
        }
        ends_open = !is_optional && (argument->flags & ARGUMENT_MULTIPLE) != 0;
    }
    syntax_put_text(&printed, !is_left_out || ends_open ? "" : printed.used > 0 ? " ..." : "...");
    return syntax_end_text(&printed);
}

/* ---- reading ---- */

/* NULL: it is none. */
static inline const struct syntax_item *syntax_find_option(const struct syntax_form *form,
                                                           struct bytes word) {
    /* Numbers, of which there may be many, are told at once. */
    if (word.size == 0 || word.size > COMMAND_NAME_MAX || word.at[0] < 'A') {
        return NULL;
    }
    struct command_name_words name = command_words_of_name(word.at, word.size);
    for (const struct syntax_item *item = form->options; item < form->end; item++) {
        if (item->name.low == name.low && item->name.high == name.high &&
            item->name_size == word.size) {
            return item;
        }
    }
    return NULL;
}

static bool syntax_is_token(const struct syntax_form *form, struct bytes word) {
    return syntax_find_option(form, word) != NULL;
}

bool syntax_is_option(const struct call *call, uint32_t index) {
    return syntax_is_token(call->command->form, call_arg(call, index));
}

/* The words of an option behind its token, or of a step. false: they are not all there. */
static inline bool syntax_measure(const struct syntax_form *form, const struct request *request,
                                  const struct syntax_item *item, uint32_t index, uint32_t *words) {
    uint32_t left = request->count - index;
    *words = item->words;
    if (left < item->words + item->each) {
        return false;
    }
    if (item->each == 0) {
        return true;
    }
    uint32_t room = (left - item->words) / item->each;
    int64_t count = room;
    uint32_t number = item->is_counted ? index + item->words - 1 : form->keys_at;
    if (number > 0 && (!bytes_parse_i64(request->args[number], &count) || count < 1)) {
        return false;
    }
    *words += (uint32_t)count * item->each;
    return count <= room;
}

/* The number of the alternative that begins with this word; -1: none does. */
static int syntax_find_choice(const struct argument *choices, struct bytes word) {
    for (int i = 0; choices[i].name != NULL; i++) {
        if (choices[i].token != NULL && bytes_is(word, choices[i].token)) {
            return i;
        }
    }
    return -1;
}

/* Fill the field that is bound. false: the error was replied. */
static bool syntax_store(const struct call *call, const struct syntax_item *item, uint32_t index,
                         uint32_t words, void *target) {
    const struct binding *binding = item->binding;
    void *field = (char *)target + binding->offset;
    const struct bytes *args = &call->request->args[index];
    int choice = 1;
    if (item->choices != NULL &&
        (binding->kind == BINDING_FLAG || binding->kind == BINDING_CHOICE)) {
        choice = syntax_find_choice(item->choices, args[0]);
        if (choice < 0) {
            return call_syntax_error(call);
        }
    }
    switch (binding->kind) {
    case BINDING_FLAG:
        *(bool *)field = choice == 1;
        break;
    case BINDING_CHOICE:
        *(unsigned *)field = (unsigned)choice;
        break;
    case BINDING_INTEGER:
        for (uint32_t i = 0; i < words; i++) {
            if (!call_parse_integer(call, args[i], (int64_t *)field + i)) {
                return false;
            }
        }
        break;
    case BINDING_TEXT:
        for (uint32_t i = 0; i < words; i++) {
            ((struct bytes *)field)[i] = args[i];
        }
        break;
    case BINDING_VALUES: {
        uint32_t before = item->each > 0 ? item->words : 0;
        *(struct option_values *)field =
            (struct option_values){.at = args + before, .count = words - before};
        break;
    }
    case BINDING_USES: {
        struct option_uses *uses = field;
        uses->first = uses->count == 0 ? index - 1 : uses->first;
        uses->count++;
        break;
    }
    case BINDING_NONE:
        break;
    }
    return binding->read == NULL || binding->read(call, index, target);
}

/* One of alternatives whose choice is bound. */
static bool syntax_choose(const struct call *call, const struct syntax_item *item, void *target) {
    unsigned *choice = (unsigned *)(void *)((char *)target + item->group->offset);
    const struct syntax_form *form = call->command->form;
    bool is_first = *choice == 0;
    if (is_first || (*choice == item->alternative && item->group->repeat != BINDING_ONCE)) {
        *choice = item->alternative;
        return true;
    }
    if (item->group->repeat == BINDING_ONCE || explain_covers(call->command)) {
        return call_syntax_error(call);
    }
    char names[128] = "";
    const struct syntax_item *one = item - item->alternative + 1;
    for (; one < form->end && one->group == item->group; one++) {
        bool is_last = one + 1 == form->end || one[1].group != item->group;
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s",
                 one->alternative == 1 ? ""
                 : is_last             ? " and "
                                       : ", ",
                 one->token);
    }
    return call_refuse_format(call, "ERR %s options at the same time are not compatible", names);
}

/* An option that is more than a bool or numbers which are stored. Its values are there, or (*index is not
 * moved then) not as many as it says. false: the error was replied. */
__attribute__((noinline)) static bool syntax_read_option(const struct call *call,
                                                         const struct syntax_item *item,
                                                         uint32_t *index, uint64_t *given,
                                                         void *target) {
    const struct syntax_form *form = call->command->form;
    uint64_t bit = UINT64_C(1) << (item - form->options);
    uint32_t words;
    if ((*given & bit) != 0 && item->binding != NULL &&
        item->binding->repeat != BINDING_LAST_COUNTS) {
        return item->binding->repeat == BINDING_ONCE_NAMED && !explain_covers(call->command)
                   ? call_refuse_format(call, "ERR %s may be given once", item->token)
                   : call_syntax_error(call);
    }
    *given |= bit;
    if (!syntax_measure(form, call->request, item, *index + 1, &words)) {
        if (!item->is_counted) {
            return true;
        }
        /* The number fits not what is behind it: its function may know a better word. */
        uint32_t number_at = *index + item->words;
        int64_t number;
        CHECK(item->binding != NULL); /* as of every option token (syntax_apply) */
        if ((item->binding->read != NULL && !item->binding->read(call, *index + 1, target)) ||
            !call_parse_integer(call, call_arg(call, number_at), &number)) {
            return false;
        }
        return explain_covers(call->command)
                   ? call_syntax_error(call)
                   : call_refuse_format(
                         call, "ERR %s needs the number of values that follow it: 1..%u here",
                         item->token, call->request->count - number_at - 1);
    }
    if ((item->binding != NULL && !syntax_store(call, item, *index + 1, words, target)) ||
        (item->group != NULL && !syntax_choose(call, item, target))) {
        return false;
    }
    *index += 1 + words;
    return true;
}

__attribute__((always_inline)) static inline bool
syntax_read_all_options(const struct call *call, uint32_t *index, void *target) {
    const struct syntax_form *form = call->command->form;
    const struct bytes *args = call->request->args;
    uint32_t count = call->request->count, at = *index;
    uint64_t given = 0;
    for (; at < count; *index = at) {
        const struct syntax_item *item = syntax_find_option(form, args[at]);
        if (item == NULL || count - at - 1 < item->words + (uint32_t)item->each) {
            return true;
        }
        void *field = (char *)target + item->offset;
        if (item->plain == BINDING_FLAG) {
            *(bool *)field = true;
            at++;
        } else if (item->plain == BINDING_INTEGER) {
            at++;
            for (int64_t *value = field; value - (int64_t *)field < item->words; value++) {
                if (!call_parse_integer(call, args[at++], value)) {
                    return false;
                }
            }
        } else {
            uint32_t next = at;
            if (!syntax_read_option(call, item, &next, &given, target)) {
                return false;
            }
            if (next == at) {
                return true;
            }
            at = next;
        }
    }
    return true;
}

bool syntax_read_options(const struct call *call, uint32_t *index, void *target) {
    return syntax_read_all_options(call, index, target);
}

/* How many words a step has in this request. 0: it is not there. false: they are not all there. */
static bool syntax_measure_step(const struct syntax_form *form, const struct request *request,
                                const struct syntax_item *step, uint32_t index, uint32_t *words) {
    uint32_t left = request->count - index;
    *words = 0;
    if (step->is_optional && (left == 0 || syntax_is_token(form, request->args[index]))) {
        return true;
    }
    if (step->each > 0 && !step->is_counted) {
        /* What is repeated may begin with a word like a token where it has several words. */
        bool is_more = left > 0 && (step->each > 1 || !syntax_is_token(form, request->args[index]));
        while (is_more) {
            *words += step->each;
            is_more = *words < left && !syntax_is_token(form, request->args[index + *words]);
        }
        return *words > 0 && *words <= left;
    }
    if (!syntax_measure(form, request, step, index, words)) {
        return false;
    }
    if (step->choices != NULL) {
        int choice = syntax_find_choice(step->choices, request->args[index]);
        *words = choice >= 0 ? (uint32_t)syntax_count_once(&step->choices[choice]) : left + 1;
    }
    return *words <= left;
}

bool syntax_read(const struct call *call, void *target) {
    const struct syntax_form *form = call->command->form;
    uint32_t index = form->first;
    for (const struct syntax_item *step = form->steps; step < form->options; step++) {
        uint32_t words;
        if (!syntax_measure_step(form, call->request, step, index, &words)) {
            return call_syntax_error(call);
        }
        if (words > 0 && step->binding != NULL && !syntax_store(call, step, index, words, target)) {
            return false;
        }
        index += words;
    }
    return syntax_read_all_options(call, &index, target) &&
           (index == call->request->count || call_syntax_error(call));
}

uint32_t syntax_options_at(const struct command *command) {
    return command->form->options_at;
}

/* The index behind the option that begins at index, in a request that may be wrong; index: none does. */
static uint32_t syntax_skip(const struct command *command, const struct request *request,
                            uint32_t index) {
    const struct syntax_form *form = command->form;
    const struct syntax_item *item =
        index < request->count ? syntax_find_option(form, request->args[index]) : NULL;
    uint32_t words;
    bool is_there = item != NULL && syntax_measure(form, request, item, index + 1, &words);
    return is_there ? index + 1 + words : index;
}

uint32_t syntax_behind_options(const struct command *command, const struct request *request,
                               uint32_t index) {
    const struct syntax_form *form = command->form;
    uint32_t begin = form != NULL ? form->options_at : UINT32_MAX;
    uint32_t end = begin;
    for (uint32_t next; begin <= index && (next = syntax_skip(command, request, end)) > end;) {
        end = next;
    }
    return index + (end - begin);
}

const char *syntax_take_use(const struct call *call, struct option_uses *uses, uint32_t *index) {
    const struct syntax_form *form = call->command->form;
    const struct syntax_item *taken, *item;
    if (uses->count == 0) {
        return NULL;
    }
    *index = uses->first;
    taken = syntax_find_option(form, call_arg(call, uses->first));
    CHECK(taken != NULL && taken->binding != NULL);
    for (uses->count--; uses->count > 0;) {
        uses->first = syntax_skip(call->command, call->request, uses->first);
        item = syntax_find_option(form, call_arg(call, uses->first));
        CHECK(item != NULL);
        if (item->binding != NULL && item->binding->kind == BINDING_USES &&
            item->binding->offset == taken->binding->offset) {
            break;
        }
    }
    return taken->token;
}

/* ---- keys, made once from the entries ---- */

struct specs {
    struct key_spec at[KEY_SPECS_MAX];
    uint32_t count;
};
static struct specs specs_kept[ACL_COMMANDS_MAX];

static const char *const flag_names[] = {"RO",     "RW",     "OW",     "RM",      "access",
                                         "update", "insert", "delete", "not_key", "incomplete"};

const char *syntax_key_flag_name(unsigned flag) {
    for (size_t i = 0; i < sizeof flag_names / sizeof flag_names[0]; i++) {
        if (flag == 1U << i) {
            return flag_names[i];
        }
    }
    return NULL;
}

static bool syntax_key_is_one_of(const char *name, const char *first, const char *second,
                                 const char *third) {
    return name != NULL &&
           (strcmp(name, first) == 0 || strcmp(name, second) == 0 || strcmp(name, third) == 0);
}

/* What follows from the command's flags and the arguments' names. */
static unsigned syntax_key_usual_flags(const struct command *command, const struct key_spec *spec) {
    /* Counted keys next to a single one are the sources of a STORE. */
    bool is_source = (spec->is_counted && command->first_key > 0) ||
                     syntax_key_is_one_of(spec->name, "source", "src", "src");
    bool is_target = syntax_key_is_one_of(spec->name, "destination", "dst", "newkey");
    bool is_read = (command->flags & COMMAND_WRITE) == 0 || is_source;
    bool is_removed = strcmp(command->name, "DEL") == 0 || strcmp(command->name, "UNLINK") == 0;
    if (is_read) {
        /* WATCH does not read the contents of its keys. */
        bool is_shown = is_source || (command->flags & COMMAND_READ) != 0;
        return KEY_READ_ONLY | (is_shown ? (unsigned)KEY_ACCESS : 0U);
    }
    if (is_removed) {
        return KEY_REMOVED | KEY_DELETE;
    }
    return (is_target ? (unsigned)KEY_REPLACED : (unsigned)KEY_CHANGED) | KEY_UPDATE;
}

/* The words of an entry's key_access, up to the next '|'. */
static unsigned syntax_key_read_flags(const char **at) {
    unsigned flags = 0;
    while (**at != '\0' && **at != '|') {
        size_t size = strcspn(*at, " |");
        unsigned known = 0;
        for (unsigned i = 0; i < sizeof flag_names / sizeof flag_names[0]; i++) {
            bool is_it = strlen(flag_names[i]) == size && memcmp(*at, flag_names[i], size) == 0;
            known |= is_it ? 1U << i : 0;
        }
        CHECK(known != 0);
        flags |= known;
        *at += size;
        *at += strspn(*at, " ");
    }
    *at += **at == '|';
    return flags;
}

static void syntax_key_add(struct specs *specs, bool is_counted, int begin, int last, int step) {
    CHECK(specs->count < KEY_SPECS_MAX);
    specs->at[specs->count++] =
        (struct key_spec){.is_counted = is_counted, .begin = begin, .last = last, .step = step};
}

void syntax_key_init(void) {
    CHECK(command_count() <= ACL_COMMANDS_MAX);
    memset(specs_kept, 0, sizeof specs_kept);
    for (uint32_t index = 0; index < command_count(); index++) {
        const struct command *command = command_by_index(index);
        struct specs *specs = &specs_kept[index];
        if (command->first_key > 0 && command->last_key >= command->first_key) {
            for (int at = command->first_key; at <= command->last_key; at += command->key_step) {
                syntax_key_add(specs, false, at, 0, 1);
            }
        } else if (command->first_key > 0) {
            syntax_key_add(specs, false, command->first_key, command->last_key, command->key_step);
        }
        if ((command->flags & COMMAND_MOVABLE_KEYS) != 0) {
            syntax_key_add(specs, true, command->key_count_arg, 0, 1);
        }
        uint32_t option = specs->count;
        if (command->key_option != NULL) {
            syntax_key_add(specs, false, (int)syntax_options_at(command), 0, 1);
            specs->at[option].word = command->key_option;
        }
        const char *access = command->key_access;
        for (uint32_t i = 0; i < specs->count; i++) {
            /* The name of that key argument. Keys are never inside blocks. */
            uint32_t nth = i;
            const struct argument *argument = command->arguments;
            while (argument != NULL && argument->name != NULL &&
                   (argument->type != ARGUMENT_KEY || nth-- > 0)) {
                argument++;
            }
            specs->at[i].name = argument != NULL ? argument->name : NULL;
            specs->at[i].flags = access != NULL ? syntax_key_read_flags(&access)
                                                : syntax_key_usual_flags(command, &specs->at[i]);
        }
        if (option < specs->count) {
            specs->at[option].flags = KEY_READ_ONLY | KEY_ACCESS | KEY_INCOMPLETE;
        }
        CHECK(access == NULL || *access == '\0');
    }
}

uint32_t syntax_key_of(uint32_t command, const struct key_spec **specs) {
    CHECK(command < ACL_COMMANDS_MAX);
    *specs = specs_kept[command].at;
    return specs_kept[command].count;
}

unsigned syntax_key_needs(unsigned flags) {
    return ((flags & KEY_ACCESS) != 0 ? (unsigned)ACL_READ : 0U) |
           ((flags & (KEY_UPDATE | KEY_INSERT | KEY_DELETE)) != 0 ? (unsigned)ACL_WRITE : 0U);
}

uint32_t syntax_key_option(const struct command *command, const struct request *request) {
    if (command->key_option == NULL || command_has_wrong_arity(command, request)) {
        return 0;
    }
    const struct syntax_form *form = command->form;
    uint32_t index = form->first, words;
    for (const struct syntax_item *step = form->steps; step < form->options; step++) {
        if (!syntax_measure_step(form, request, step, index, &words)) {
            return 0;
        }
        index += words;
    }
    for (uint32_t next; (next = syntax_skip(command, request, index)) > index; index = next) {
        if (bytes_is(request->args[index], command->key_option)) {
            /* A word in the place of the key: SINCE LAST. */
            return bytes_is(request->args[index + 1], "LAST") ? 0 : index + 1;
        }
    }
    return 0;
}

struct key_walk syntax_key_walk(const struct command *command, const struct key_spec *spec,
                                const struct request *request) {
    int64_t count = request->count;
    if (spec->word != NULL) {
        uint32_t at = syntax_key_option(command, request);
        return (struct key_walk){.next = at > 0 ? at : 1, .end = at + 1, .step = 1};
    }
    int64_t begin = spec->begin;
    int64_t last = spec->last >= 0 ? begin + spec->last : count + spec->last;
    if (spec->is_counted) {
        int64_t keys;
        if (begin >= count || !bytes_parse_i64(request->args[begin], &keys) || keys < 1 ||
            keys > count - 1 - begin) {
            return (struct key_walk){.end = 0};
        }
        last = begin + keys;
        begin++;
    }
    if (last >= count) {
        return (struct key_walk){.end = 0};
    }
    return (struct key_walk){
        .next = (uint32_t)begin,
        .end = last >= begin ? (uint32_t)last + 1 : (uint32_t)begin,
        .step = (uint32_t)spec->step,
    };
}

struct request_keys syntax_key_request_begin(uint32_t command, const struct request *request) {
    struct request_keys keys = {.command = command_by_index(command), .request = request};
    uint32_t count = syntax_key_of(command, &keys.spec);
    keys.end = keys.spec + count;
    keys.walk.end = 0;
    if (count > 0) {
        keys.walk = syntax_key_walk(keys.command, keys.spec, request);
    }
    return keys;
}

uint32_t syntax_key_request_next(struct request_keys *keys) {
    while (keys->spec < keys->end && keys->walk.next >= keys->walk.end) {
        if (++keys->spec < keys->end) {
            keys->walk = syntax_key_walk(keys->command, keys->spec, keys->request);
        }
    }
    if (keys->spec == keys->end) {
        return 0;
    }
    uint32_t at = keys->walk.next;
    keys->walk.next += keys->walk.step;
    return at;
}

int syntax_key_positions(const struct command *command, const struct request *request,
                         uint32_t *positions) {
    const struct key_spec *specs;
    uint32_t spec_count = syntax_key_of(command_index(command), &specs);
    int count = 0;
    if (command_has_wrong_arity(command, request)) {
        return -1;
    }
    for (uint32_t i = 0; i < spec_count; i++) {
        struct key_walk walk = syntax_key_walk(command, &specs[i], request);
        if (walk.end == 0) {
            return -1;
        }
        for (uint32_t at = walk.next; at < walk.end; at += walk.step) {
            positions[count++] = at;
        }
    }
    return count;
}
