/* From the commands' arguments to the parameters of methods. See docs_methods.h. */
#include "server/docs_methods.h"

#include <ctype.h>
#include <stdio.h>

/* The words of a name, lower case and with '_' between them. */
static void docs_methods_put_name(char *out, const char *name) {
    size_t size = strlen(out);
    size_t end = size + strlen(name);
    CHECK(end < DOCS_METHOD_NAME_MAX);
    for (; *name != '\0'; name++) {
        out[size++] = isalnum((unsigned char)*name) ? (char)tolower((unsigned char)*name) : '_';
    }
    out[end] = '\0';
}

static bool docs_methods_is_named(const struct argument *argument, const char *name) {
    return argument->name != NULL && strcmp(argument->name, name) == 0;
}

static bool docs_methods_has(const struct argument *argument, unsigned flag) {
    return (argument->flags & flag) != 0;
}

static bool docs_methods_is_only_tokens(const struct argument *list) {
    while (list->name != NULL && list->type == ARGUMENT_PURE_TOKEN && list->flags == 0) {
        list++;
    }
    return list->name == NULL;
}

/* Is it one word, but for its flags and its token? */
static bool docs_methods_is_word(const struct argument *argument) {
    if (argument->type != ARGUMENT_ONEOF) {
        return argument->children == NULL && argument->type != ARGUMENT_PURE_TOKEN;
    }
    for (const struct argument *at = argument->children; at->name != NULL; at++) {
        if (at->children != NULL || at->flags != 0 ||
            (at->token != NULL && at->type != ARGUMENT_PURE_TOKEN)) {
            return false;
        }
    }
    return true;
}

/* One of several words and tokens is any word: <archive | LAST>. */
static struct docs_part docs_methods_make_part(const struct argument *word) {
    struct docs_part part = {.name = word->name, .type = word->type};
    if (word->type == ARGUMENT_ONEOF && docs_methods_is_only_tokens(word->children)) {
        part.choices = word->children;
    } else if (word->type == ARGUMENT_ONEOF) {
        part.type = ARGUMENT_STRING;
    }
    return part;
}

/* A word, words, or a repeated group of two: (name value)..., (field... member)... */
static bool docs_methods_find_part(const struct argument *argument, struct docs_part *part) {
    bool is_many = docs_methods_has(argument, ARGUMENT_MULTIPLE);
    if (docs_methods_is_word(argument)) {
        *part = docs_methods_make_part(argument);
        part->kind = is_many ? DOCS_SEVERAL : DOCS_ONE;
        return true;
    }
    const struct argument *first = argument->children;
    if (!is_many || argument->type != ARGUMENT_BLOCK || first[1].name == NULL ||
        first[2].name != NULL || !docs_methods_is_word(first) || !docs_methods_is_word(first + 1) ||
        first->token != NULL || first[1].token != NULL || first[1].flags != 0 ||
        (first->flags & ~(unsigned)ARGUMENT_MULTIPLE) != 0) {
        return false;
    }
    bool is_result = docs_methods_is_named(first + 1, "member");
    *part = docs_methods_make_part(is_result ? first : first + 1);
    part->kind = is_result ? DOCS_RESULTS : DOCS_PAIRS;
    part->first = is_result ? first[1].name : first->name;
    part->has_many = docs_methods_has(first, ARGUMENT_MULTIPLE);
    return is_result || !part->has_many;
}

/* Is it the number of what follows? */
static bool docs_methods_is_count(const struct argument *argument) {
    return docs_methods_is_named(argument, "n") && argument[1].name != NULL &&
           docs_methods_has(argument + 1, ARGUMENT_MULTIPLE);
}

/* The parts of one argument, or of the list of a group up to its first option. Returns where they end;
 * NULL: there is another form among them. */
static const struct argument *docs_methods_find_parts(const struct argument *list, bool is_group,
                                                      struct docs_parameter *parameter) {
    const struct argument *at = list;
    while (at->name != NULL && (!is_group || at == list || at->token == NULL)) {
        bool is_counted = docs_methods_is_count(at);
        at += is_counted;
        CHECK(parameter->part_count < DOCS_PARTS_MAX);
        struct docs_part *part = &parameter->parts[parameter->part_count++];
        if ((is_group && docs_methods_has(at, ARGUMENT_OPTIONAL)) ||
            !docs_methods_find_part(at, part)) {
            return NULL;
        }
        part->is_counted = is_counted;
        at++;
        if (!is_group) {
            break;
        }
    }
    return at;
}

/* ---- the parameters of a method ---- */

/* What holds of the arguments of a list. */
struct docs_methods_context {
    bool is_optional;
    bool is_flat; /* of optional words in brackets: they are positional, too */
    unsigned group;
    bool is_group_required;
};

static struct docs_parameter *docs_methods_add(struct docs_method *method, const char *name,
                                               const char *token, enum docs_kind kind) {
    CHECK(method->parameter_count < DOCS_PARAMETERS_MAX);
    struct docs_parameter *parameter = &method->parameters[method->parameter_count++];
    *parameter = (struct docs_parameter){.token = token, .kind = kind, .place = DOCS_NAMED};
    docs_methods_put_name(parameter->name, name);
    return parameter;
}

static void docs_methods_add_list(struct docs_method *method, const struct argument *list,
                                  struct docs_methods_context context);

/* Is one of the elements of this reply a record? */
static bool docs_methods_has_records(const char *reply) {
    return strstr(reply, "Record") != NULL || strstr(reply, "Placed") != NULL ||
           strstr(reply, "Result") != NULL;
}

/* Is the option the one that has a method of its own, and is this that method? */
static bool docs_methods_is_own_option(const struct docs_method *method, const char *token) {
    return method->option != NULL && strcmp(method->option, token) == 0;
}

static void docs_methods_add_token(struct docs_method *method, const struct argument *argument,
                                   struct docs_methods_context context) {
    bool is_always = docs_methods_is_own_option(method, argument->token);
    if (strcmp(argument->token, "STRINGS") == 0) {
        if (!docs_methods_has_records(method->reply)) {
            return;
        }
        is_always = true;
    }
    struct docs_parameter *parameter = docs_methods_add(method, argument->token, argument->token,
                                                        is_always ? DOCS_ALWAYS : DOCS_FLAG);
    parameter->place = is_always ? DOCS_HIDDEN : DOCS_NAMED;
    parameter->group = context.group;
    parameter->is_group_required = context.is_group_required;
}

/* An argument with values: the options at the end of its brackets are parameters of their own. */
static void docs_methods_add_values(struct docs_method *method, const struct argument *argument,
                                    struct docs_methods_context context, bool is_counted) {
    bool is_group =
        argument->type == ARGUMENT_BLOCK && !docs_methods_has(argument, ARGUMENT_MULTIPLE);
    bool is_optional = context.is_optional || docs_methods_has(argument, ARGUMENT_OPTIONAL);
    bool is_own = argument->token != NULL && docs_methods_is_own_option(method, argument->token);
    bool is_first_of_group =
        context.is_group_required &&
        (method->parameter_count == 0 ||
         method->parameters[method->parameter_count - 1].group != context.group);
    bool is_positional = is_first_of_group || context.is_flat ||
                         (argument->token == NULL && !is_optional && context.group == 0);
    struct docs_parameter *parameter =
        docs_methods_add(method, argument->token != NULL ? argument->token : argument->name,
                         argument->token, DOCS_VALUES);
    parameter->is_required = is_own || (!is_optional && context.group == 0);
    parameter->place = is_positional || is_own ? DOCS_POSITIONAL : DOCS_NAMED;
    parameter->is_token_repeated = docs_methods_has(argument, ARGUMENT_MULTIPLE_TOKEN);
    parameter->group = context.group;
    parameter->is_group_required = context.is_group_required;
    const struct argument *end =
        docs_methods_find_parts(is_group ? argument->children : argument, is_group, parameter);
    if (end == NULL) {
        parameter->kind = DOCS_WORDS;
        parameter->part_count = 0;
    } else if (is_group) {
        context.is_optional = true;
        docs_methods_add_list(method, end, context);
    }
    if (is_counted && parameter->part_count == 1) {
        parameter->parts[0].is_counted = true;
    }
}

static void docs_methods_add_alternatives(struct docs_method *method,
                                          const struct argument *argument) {
    struct docs_methods_context context = {
        .is_optional = true,
        .group = ++method->group_count,
        .is_group_required = !docs_methods_has(argument, ARGUMENT_OPTIONAL),
    };
    docs_methods_add_list(method, argument->children, context);
}

static void docs_methods_add_argument(struct docs_method *method, const struct argument *argument,
                                      struct docs_methods_context context, bool is_counted) {
    if (argument->type == ARGUMENT_PURE_TOKEN) {
        docs_methods_add_token(method, argument, context);
    } else if (argument->type == ARGUMENT_ONEOF && argument->token == NULL &&
               !docs_methods_is_word(argument)) {
        docs_methods_add_alternatives(method, argument);
    } else if (argument->type == ARGUMENT_BLOCK && argument->token == NULL &&
               !docs_methods_has(argument, ARGUMENT_MULTIPLE) && context.group == 0) {
        context.is_optional |= docs_methods_has(argument, ARGUMENT_OPTIONAL);
        context.is_flat = true;
        docs_methods_add_list(method, argument->children, context);
    } else {
        docs_methods_add_values(method, argument, context, is_counted);
    }
}

static void docs_methods_add_list(struct docs_method *method, const struct argument *list,
                                  struct docs_methods_context context) {
    for (const struct argument *at = list; at->name != NULL; at++) {
        bool is_counted = docs_methods_is_count(at);
        bool is_boards = docs_methods_is_named(at, "numkeys") && at[1].type == ARGUMENT_KEY;
        at += is_counted || is_boards;
        if (is_boards) {
            docs_methods_add(method, "boards", NULL, DOCS_BOARDS);
        } else if (method->parameter_count == 0 && docs_methods_is_named(at, "key")) {
            docs_methods_add(method, "key", NULL, DOCS_BOARD)->place = DOCS_HIDDEN;
        } else {
            docs_methods_add_argument(method, at, context, is_counted);
        }
    }
}

/* ---- the signature ---- */

static void docs_methods_put_signature(struct docs_method *method,
                                       const struct docs_parameter *parameter) {
    method->signature[method->signature_count++] = parameter;
}

/* Values that precede their member follow it in a call: submit("ann", 500). */
static bool docs_methods_is_before_member(const struct docs_method *method, unsigned index) {
    const struct docs_parameter *values = &method->parameters[index];
    return index + 1 < method->parameter_count && values->place == DOCS_POSITIONAL &&
           values->token == NULL && values->part_count == 1 &&
           values->parts[0].kind == DOCS_SEVERAL && strcmp(values[1].name, "member") == 0;
}

/* Those that have to be given come before those that may be left out. */
static void docs_methods_put_place(struct docs_method *method, enum docs_place place,
                                   bool is_required) {
    for (unsigned i = 0; i < method->parameter_count; i++) {
        const struct docs_parameter *at = &method->parameters[i];
        if (at->place != place || (at->is_required || (place == DOCS_POSITIONAL &&
                                                       at->is_group_required)) != is_required) {
            continue;
        }
        bool is_swapped = docs_methods_is_before_member(method, i);
        docs_methods_put_signature(method, is_swapped ? at + 1 : at);
        if (is_swapped) {
            docs_methods_put_signature(method, at);
            i++;
        }
    }
}

static void docs_methods_make_signature(struct docs_method *method) {
    docs_methods_put_place(method, DOCS_POSITIONAL, true);
    docs_methods_put_place(method, DOCS_POSITIONAL, false);
    docs_methods_put_place(method, DOCS_NAMED, true);
    docs_methods_put_place(method, DOCS_NAMED, false);
}

static void docs_methods_begin(struct docs_method *method, const struct command *container,
                               const struct command *command) {
    *method = (struct docs_method){.container = container, .command = command};
    if (container != NULL) {
        docs_methods_put_name(method->name, container->name + strlen("LB."));
        docs_methods_put_name(method->name, "_");
    }
    docs_methods_put_name(method->name, command->name + (container == NULL ? strlen("LB.") : 0));
}

/* Without the option that has a method of its own. */
static void docs_methods_take_out(struct docs_method *method, const char *token) {
    unsigned kept = 0;
    for (unsigned i = 0; i < method->parameter_count; i++) {
        const char *own = method->parameters[i].token;
        if (own == NULL || strcmp(own, token) != 0) {
            method->parameters[kept++] = method->parameters[i];
        }
    }
    method->parameter_count = kept;
}

/* The alternative of the reply that begins at `at`; other: the option of another one, which has its own method. */
static void docs_methods_write(const struct command *container, const struct command *command,
                               const char *at, const char *other, docs_write_method *write) {
    static struct docs_method method;
    static char option[DOCS_METHOD_NAME_MAX];
    struct shape shape = shape_read(at);
    docs_methods_begin(&method, container, command);
    if (shape.option.at != NULL) {
        snprintf(option, sizeof option, "%.*s", (int)shape.option.size, shape.option.at);
        method.option = option;
        docs_methods_put_name(method.name, "_");
        docs_methods_put_name(method.name, option);
        at += shape.option.size + 1;
    }
    snprintf(method.reply, sizeof method.reply, "%.*s", (int)(shape.end - at), at);
    if (command->arguments != NULL) {
        docs_methods_add_list(&method, command->arguments,
                              (struct docs_methods_context){.group = 0});
    }
    if (other != NULL) {
        docs_methods_take_out(&method, other);
    }
    docs_methods_make_signature(&method);
    write(&method);
}

/* One method for each alternative of the reply. */
static void docs_methods_write_each(const struct command *container, const struct command *command,
                                    docs_write_method *write) {
    char other[DOCS_METHOD_NAME_MAX];
    struct shape first = shape_read(command->reply);
    bool has_two = *first.end == '|';
    struct shape second = has_two ? shape_read(first.end + 1) : first;
    snprintf(other, sizeof other, "%.*s", (int)second.option.size, has_two ? second.option.at : "");
    docs_methods_write(container, command, command->reply, has_two ? other : NULL, write);
    if (has_two) {
        docs_methods_write(container, command, first.end + 1, NULL, write);
    }
}

void docs_methods_for_each(docs_write_method *write) {
    const struct command *container = NULL;
    for (uint32_t index = 0; index < command_count(); index++) {
        const struct command *command = command_by_index(index);
        bool is_subcommand = command_is_subcommand(index);
        container = is_subcommand ? container : command;
        if (command->run == NULL || strcmp(command->group, "leaderboard") != 0 ||
            strcmp(command->name, "HELP") == 0) {
            continue;
        }
        docs_methods_write_each(is_subcommand ? container : NULL, command, write);
    }
}

bool docs_methods_creates(const struct docs_method *method) {
    return strcmp(method->name, "create") == 0 || strcmp(method->name, "league_create") == 0;
}

const struct docs_parameter *docs_methods_find(const struct docs_method *method,
                                               const char *token) {
    for (unsigned i = 0; i < method->parameter_count; i++) {
        const char *own = method->parameters[i].token;
        if (own != NULL && strcmp(own, token) == 0) {
            return &method->parameters[i];
        }
    }
    return NULL;
}
