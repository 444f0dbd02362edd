/* Methods in Python, from the walk over the commands (docs_methods.h). What the methods call, and what they
 * return, is written by hand: clients/python/leaderboard_client/words.py and records.py. */
#include "server/docs_python.h"

#include <stdio.h>

#include "server/dispatch/syntax.h"
#include "server/docs_methods.h"
#include "server/system/version.h"

enum { SYNTAX_MAX = 4096, DOC_WIDTH = 100, DOC_INDENT = 8 };

static bool is_async_written;
static bool is_of_board_written; /* the methods of a board, not of the database */

static const struct docs_python_reply {
    const char *shape, *type, *parser;
    bool has_parts; /* the parser is told which parts a record has */
} replies[] = {
    {"<OK>", "None", "nothing", false},
    {"i", "int", "integer", false},
    {"b", "bool", "flag", false},
    {"[i]", "List[int]", "integers", false},
    {"[boards:i left:i]", "List[int]", "integers", false},
    {"@Board", "Dict[str, Any]", "description", false},
    {"@League", "Dict[str, Any]", "description", false},
    {"[@Record]", "List[Record]", "records", true},
    {"[@Record?]", "List[Optional[Record]]", "record_each", true},
    {"[@Placed]", "List[Placed]", "placed", true},
    {"[@Result]", "List[Result]", "results", true},
    {"[@BoardRecord]", "List[BoardRecord]", "board_records", true},
    {"@LeaguePlace?", "Optional[LeaguePlace]", "league_place", true},
    {"@LeaguePlaced", "Optional[LeaguePlace]", "league_place", true},
    {"[@Count]", "List[ValueCount]", "value_counts", false},
    {"[@Cut]", "List[Cut]", "cuts", false},
    {"[{s}?]", "List[Optional[Dict[str, str]]]", "tags_each", false},
    {"[cursor:s boards:[@ListedBoard]]", "Page[Dict[str, Any]]", "board_page", false},
    {"[cursor:s bans:[@Ban]]", "Page[Ban]", "ban_page", false},
};

static const struct docs_python_reply *docs_python_find_reply(const struct docs_method *method) {
    unsigned i = 0;
    while (strcmp(replies[i].shape, method->reply) != 0) {
        CHECK(++i < sizeof replies / sizeof replies[0]);
    }
    return &replies[i];
}

static const char *docs_python_type(enum argument_type type) {
    switch (type) {
    case ARGUMENT_INTEGER:
        return "int";
    case ARGUMENT_DOUBLE:
        return "Number";
    case ARGUMENT_UNIX_TIME:
        return "Time";
    case ARGUMENT_KEY:
    case ARGUMENT_PATTERN:
        return "Name";
    case ARGUMENT_STRING:
    case ARGUMENT_PURE_TOKEN:
    case ARGUMENT_ONEOF:
    case ARGUMENT_BLOCK:
        break;
    }
    return "Word";
}

/* Python's own words get a '_'. */
static const char *docs_python_name(const struct docs_parameter *parameter) {
    static const char *const reserved[] = {"if", "from", "in", "is", "or", "and", "not"};
    static char name[DOCS_METHOD_NAME_MAX + 1];
    const char *end = "";
    for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++) {
        end = strcmp(parameter->name, reserved[i]) == 0 ? "_" : end;
    }
    snprintf(name, sizeof name, "%s%s", parameter->name, end);
    return name;
}

static void docs_python_write_word_type(const struct docs_part *part) {
    if (part->choices == NULL) {
        fputs(docs_python_type(part->type), stdout);
        return;
    }
    fputs("Literal[", stdout);
    for (const struct argument *at = part->choices; at->name != NULL; at++) {
        printf("%s\"%s\"", at == part->choices ? "" : ", ", at->token);
    }
    fputs("]", stdout);
}

static void docs_python_write_several_type(const struct docs_part *part, bool is_several) {
    fputs(is_several ? "Several[" : "", stdout);
    docs_python_write_word_type(part);
    fputs(is_several ? "]" : "", stdout);
}

static void docs_python_write_part_type(const struct docs_part *part, bool is_token_repeated) {
    if (part->kind == DOCS_PAIRS) {
        fputs("Mapping[str, ", stdout);
        docs_python_write_several_type(part, is_token_repeated);
        fputs("]", stdout);
    } else if (part->kind == DOCS_RESULTS) {
        fputs("Results[", stdout);
        docs_python_write_several_type(part, part->has_many);
        fputs("]", stdout);
    } else {
        docs_python_write_several_type(part, part->kind == DOCS_SEVERAL);
    }
}

static void docs_python_write_given_type(const struct docs_parameter *parameter) {
    if (parameter->kind == DOCS_WORDS) {
        fputs("Several[Word]", stdout);
    } else if (parameter->kind == DOCS_BOARDS) {
        fputs("Several[Name]", stdout);
    } else if (parameter->part_count == 1) {
        docs_python_write_part_type(&parameter->parts[0], parameter->is_token_repeated);
    } else {
        fputs("Tuple[", stdout);
        for (unsigned i = 0; i < parameter->part_count; i++) {
            fputs(i == 0 ? "" : ", ", stdout);
            docs_python_write_part_type(&parameter->parts[i], false);
        }
        fputs("]", stdout);
    }
}

/* Has every positional parameter from this one on a default? */
static bool docs_python_may_default(const struct docs_method *method, unsigned index) {
    for (; index < method->signature_count && method->signature[index]->place == DOCS_POSITIONAL;
         index++) {
        if (method->signature[index]->is_required) {
            return false;
        }
    }
    return true;
}

static void docs_python_write_parameter(const struct docs_method *method, unsigned index) {
    const struct docs_parameter *parameter = method->signature[index];
    printf("%s: ", docs_python_name(parameter));
    if (parameter->kind == DOCS_FLAG) {
        printf("bool = False");
        return;
    }
    fputs(parameter->is_required ? "" : "Optional[", stdout);
    docs_python_write_given_type(parameter);
    printf("%s%s", parameter->is_required ? "" : "]",
           !parameter->is_required && docs_python_may_default(method, index) ? " = None" : "");
}

/* On one line if there are no options. */
static void docs_python_write_signature(const struct docs_method *method) {
    unsigned count = method->signature_count;
    bool is_long = count > 0 && method->signature[count - 1]->place == DOCS_NAMED;
    bool is_named = false;
    printf("\n    %sdef %s(%sself", is_async_written ? "async " : "", method->name,
           is_long ? "\n        " : "");
    for (unsigned i = 0; i < count; i++) {
        printf("%s", is_long ? ",\n        " : ", ");
        if (method->signature[i]->place == DOCS_NAMED && !is_named) {
            printf("*,\n        ");
            is_named = true;
        }
        docs_python_write_parameter(method, i);
    }
    printf("%s", docs_methods_creates(method) ? ",\n        exist_ok: bool = False" : "");
    printf("%s) -> %s:\n", is_long ? ",\n    " : "", docs_python_find_reply(method)->type);
}

/* In lines of a docstring. */
static void docs_python_write_wrapped(const char *text, const char *prefix) {
    size_t column = 0; /* 0: before the first word */
    while (*text != '\0') {
        size_t size = strcspn(text, " ");
        if (column == 0 || column + 1 + size > DOC_WIDTH) {
            printf("%s%*s%s", column == 0 ? "" : "\n", DOC_INDENT, "", prefix);
            column = DOC_INDENT + strlen(prefix);
        } else {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)size, text);
        column += size;
        text += size;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void docs_python_write_doc(const struct docs_method *method) {
    char syntax[SYNTAX_MAX];
    char text[SYNTAX_MAX + DOCS_METHOD_NAME_MAX];
    const struct command *command = method->command;
    snprintf(text, sizeof text, "\"\"\"%s.", command->summary);
    docs_python_write_wrapped(text, "");
    (void)syntax_print(command, syntax, sizeof syntax);
    snprintf(text, sizeof text, "%s%s%s %s",
             method->container != NULL ? method->container->name : "",
             method->container != NULL ? " " : "", command->name, syntax);
    putchar('\n');
    docs_python_write_wrapped(text, "    ");
    putchar('\n');
    snprintf(text, sizeof text, "%s.%s", command->complexity,
             docs_methods_creates(method) ? " exist_ok: a key that is there is no error." : "");
    docs_python_write_wrapped(text, "");
    printf("        \"\"\"\n");
}

/* An element of the list of words: the part of a parameter, which is this expression. */
static void docs_python_write_part(const struct docs_part *part, const char *value,
                                   const char *repeated_token) {
    static const char *const functions[] = {
        [DOCS_SEVERAL] = "several", [DOCS_PAIRS] = "pairs", [DOCS_RESULTS] = "results_words"};
    if (part->kind == DOCS_ONE) {
        printf(part->type == ARGUMENT_UNIX_TIME ? "milliseconds(%s)" : "%s", value);
        return;
    }
    printf("*%s(%s", functions[part->kind], value);
    if (repeated_token != NULL) {
        printf(", token=\"%s\"", repeated_token);
    }
    printf("%s)", part->is_counted ? ", counted=True" : "");
}

/* The elements of the list of words that a parameter is, once it is given. */
static void docs_python_write_elements(const struct docs_parameter *parameter) {
    char value[DOCS_METHOD_NAME_MAX + 16];
    const char *name = docs_python_name(parameter);
    const char *token = parameter->token;
    if (parameter->kind == DOCS_BOARD) {
        printf("self.name");
    } else if (parameter->kind == DOCS_BOARDS) {
        printf("*several(self.name if %s is None else %s, counted=True)", name, name);
    } else if (token != NULL && !parameter->is_token_repeated) {
        bool is_alone = parameter->kind == DOCS_ALWAYS || parameter->kind == DOCS_FLAG;
        printf(is_alone ? "\"%s\"" : "\"%s\", ", token);
    }
    for (unsigned i = 0; i < parameter->part_count; i++) {
        snprintf(value, sizeof value, parameter->part_count > 1 ? "%s[%u]" : "%s", name, i);
        fputs(i > 0 ? ", " : "", stdout);
        docs_python_write_part(&parameter->parts[i], value,
                               parameter->is_token_repeated ? token : NULL);
    }
    if (parameter->kind == DOCS_WORDS) {
        printf("*split(%s)", name);
    }
}

/* The statements that make the request: a list for what is always there, and one for each option. */
static void docs_python_write_request(const struct docs_method *method) {
    bool is_open = true;
    printf("        request: List[Word] = [");
    if (method->container != NULL) {
        printf("\"%s\", ", method->container->name);
    }
    printf("\"%s\"", method->command->name);
    for (unsigned i = 0; i < method->parameter_count; i++) {
        const struct docs_parameter *at = &method->parameters[i];
        bool is_option = at->kind == DOCS_FLAG ||
                         (at->place != DOCS_HIDDEN && at->kind != DOCS_BOARDS && !at->is_required);
        if (is_option) {
            printf("%s        if %s%s:\n            request += [", is_open ? "]\n" : "",
                   docs_python_name(at), at->kind == DOCS_FLAG ? "" : " is not None");
        } else {
            printf("%s", is_open ? ", " : "        request += [");
        }
        docs_python_write_elements(at);
        printf("%s", is_option ? "]\n" : "");
        is_open = !is_option;
    }
    printf("%s", is_open ? "]\n" : "");
}

/* Of alternatives one is given at the most: whether that is so is seen before anything is sent. */
static void docs_python_write_groups(const struct docs_method *method) {
    for (unsigned group = 1; group <= method->group_count; group++) {
        bool is_required = false;
        printf("        alternatives(");
        for (unsigned i = 0; i < method->parameter_count; i++) {
            const struct docs_parameter *parameter = &method->parameters[i];
            if (parameter->group == group) {
                const char *name = docs_python_name(parameter);
                printf("%s=%s, ", name, name);
                is_required = parameter->is_group_required;
            }
        }
        printf("required=%s)\n", is_required ? "True" : "False");
    }
}

/* A result that may be sent again has an id; PACKED takes none. */
static bool docs_python_write_once(const struct docs_method *method) {
    bool has_once = docs_methods_find(method, "ONCE") != NULL;
    if (has_once) {
        printf("        once = self._once(once%s)\n",
               docs_methods_find(method, "PACKED") != NULL ? ", packed" : "");
    }
    return has_once;
}

static void docs_python_write_return(const struct docs_method *method, bool has_once) {
    static const struct {
        const char *token;
        const char *argument;
    } parts[] = {{"PCT", "pct=pct"},          {"WITHKEY", "withkey=withkey"},
                 {"TAGS", "tags=tags"},       {"DATA", "data=data is not None"},
                 {"FIELDS", "fields=fields"}, {"SINCE", "since=since is not None"}};
    bool is_read = (method->command->flags & COMMAND_READ) != 0;
    bool is_on_all_nodes = !is_of_board_written && method->command->first_key == 0;
    if (docs_methods_creates(method)) {
        printf("        return %sself._create(request, exist_ok)\n",
               is_async_written ? "await " : "");
        return;
    }
    printf("        return %sself._send%s(request, parse.%s", is_async_written ? "await " : "",
           is_on_all_nodes ? "_to_all" : "", docs_python_find_reply(method)->parser);
    if (docs_python_find_reply(method)->has_parts) {
        const char *separator = "(";
        for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            if (docs_methods_find(method, parts[i].token) != NULL) {
                printf("%s%s", separator, parts[i].argument);
                separator = ", ";
            }
        }
        printf("%s)", *separator == '(' ? "(" : "");
    }
    printf(", again=%s)\n", is_read ? "True" : has_once ? "once is not None" : "False");
}

static void docs_python_write_method(const struct docs_method *method) {
    bool is_of_board = false;
    for (unsigned i = 0; i < method->parameter_count; i++) {
        enum docs_kind kind = method->parameters[i].kind;
        is_of_board |= kind == DOCS_BOARD || kind == DOCS_BOARDS;
    }
    if (is_of_board != is_of_board_written) {
        return;
    }
    docs_python_write_signature(method);
    docs_python_write_doc(method);
    docs_python_write_groups(method);
    bool has_once = docs_python_write_once(method);
    docs_python_write_request(method);
    docs_python_write_return(method, has_once);
}

void docs_python_write(bool is_async) {
    is_async_written = is_async;
    const char *prefix = is_async ? "Async" : "";
    printf("\"\"\"The LB. commands as %smethods. Written by `make docs` from the server's table of "
           "commands: do not edit.\"\"\"\n\n"
           "from typing import Any, Dict, List, Literal, Mapping, Optional, Tuple\n\n"
           "from . import parse\n"
           "from .records import Ban, BoardRecord, Cut, LeaguePlace, Page, Placed, Record, Result, "
           "ValueCount\n"
           "from .sending import %sBoardSender, %sDatabaseSender\n"
           "from .words import (\n"
           "    Name,\n    Number,\n    Results,\n    Several,\n    Time,\n    Word,\n    "
           "alternatives,\n"
           "    milliseconds,\n    pairs,\n    results as results_words,\n    several,\n    "
           "split,\n)\n",
           is_async ? "async " : "", prefix, prefix);
    if (!is_async) {
        printf("\nVERSION = \"%s\"\n", SERVER_VERSION);
    }
    is_of_board_written = true;
    printf("\n\nclass %sBoardCommands(%sBoardSender):\n    \"\"\"Commands on one board.\"\"\"\n",
           prefix, prefix);
    docs_methods_for_each(docs_python_write_method);
    is_of_board_written = false;
    printf("\n\nclass %sDatabaseCommands(%sDatabaseSender):\n"
           "    \"\"\"Commands on all boards of a database.\"\"\"\n",
           prefix, prefix);
    docs_methods_for_each(docs_python_write_method);
}
