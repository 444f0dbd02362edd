/* Each method in JavaScript, and its declaration in TypeScript. The functions and types that these use are written
 * by hand: clients/node/words.js and index.d.ts. */
#include "server/docs_node.h"

#include <ctype.h>
#include <stdio.h>

#include "server/dispatch/syntax.h"
#include "server/docs_methods.h"

enum { SYNTAX_MAX = 4096 };

static const char *const part_functions[] = {[DOCS_ONE] = "one",
                                             [DOCS_SEVERAL] = "several",
                                             [DOCS_PAIRS] = "pairs",
                                             [DOCS_RESULTS] = "results"};
/* The name in replies.js, and the type. */
static const struct docs_node_reply {
    const char *shape, *name, *type;
} replies[] = {
    {"<OK>", "ok", "void"},
    {"i", "integer", "number"},
    {"b", "flag", "boolean"},
    {"[i]", "integers", "number[]"},
    {"[boards:i left:i]", "integers", "number[]"},
    {"@Board", "info", "BoardInfo"},
    {"@League", "info", "LeagueInfo"},
    {"[@Record]", "records", "BoardRecord<V, F>[]"},
    {"[@Record?]", "records", "(BoardRecord<V, F> | null)[]"},
    {"[@Placed]", "placed", "Placed<V, F>[]"},
    {"[@Result]", "results", "Result<V, F>[]"},
    {"[@BoardRecord]", "boardRecords", "{ board: string; record: BoardRecord<V, F> }[]"},
    {"@LeaguePlace?", "leaguePlace", "LeaguePlace<V, F> | null"},
    {"@LeaguePlaced", "leaguePlace", "LeaguePlace<V, F> | null"},
    {"[@Count]", "counts", "ValueCount[]"},
    {"[@Cut]", "cuts", "Cut[]"},
    {"[{s}?]", "tagsEach", "({ [name: string]: string } | null)[]"},
    {"[cursor:s boards:[@ListedBoard]]", "boards", "Step<BoardSummary>"},
    {"[cursor:s bans:[@Ban]]", "bans", "Step<Ban>"},
};

static const struct docs_node_reply *docs_node_find_reply(const struct docs_method *method) {
    unsigned i = 0;
    while (strcmp(replies[i].shape, method->reply) != 0) {
        CHECK(++i < sizeof replies / sizeof replies[0]);
    }
    return &replies[i];
}

/* "league_add" as leagueAdd. */
static void docs_node_write_name(const char *name) {
    for (bool is_begin = false; *name != '\0'; name++) {
        if (*name != '_') {
            putchar(is_begin ? toupper((unsigned char)*name) : *name);
        }
        is_begin = *name == '_';
    }
}

static bool docs_node_has_options(const struct docs_method *method, bool *is_required) {
    bool has_any = false;
    *is_required = false;
    for (unsigned i = 0; i < method->signature_count; i++) {
        has_any |= method->signature[i]->place == DOCS_NAMED;
        *is_required |=
            method->signature[i]->place == DOCS_NAMED && method->signature[i]->is_required;
    }
    return has_any;
}

static void docs_node_write_command_name(const struct docs_method *method) {
    printf("%s%s%s", method->container != NULL ? method->container->name : "",
           method->container != NULL ? " " : "", method->command->name);
}

/* ---- commands.js ---- */

static void docs_node_write_value(const struct docs_parameter *parameter) {
    printf("%s", parameter->place == DOCS_NAMED ? "options." : "");
    docs_node_write_name(parameter->name);
}

static void docs_node_write_values(const struct docs_parameter *parameter) {
    bool is_needed = parameter->is_required && parameter->group == 0;
    printf(parameter->is_token_repeated ? "$.each(" : "$.values(");
    if (is_needed) {
        printf("$.needed(\"");
        docs_node_write_name(parameter->name);
        printf("\", ");
    }
    docs_node_write_value(parameter);
    printf(is_needed ? ")" : "");
    if (parameter->token != NULL) {
        printf(", \"%s\"", parameter->token);
    } else {
        printf(", null");
    }
    for (unsigned i = 0; i < parameter->part_count; i++) {
        const struct docs_part *part = &parameter->parts[i];
        printf(part->is_counted ? ", $.counted($.%s)" : ", $.%s", part_functions[part->kind]);
    }
    putchar(')');
}

static void docs_node_write_words(const struct docs_parameter *parameter) {
    printf("            ");
    switch (parameter->kind) {
    case DOCS_BOARD:
        printf("this.key");
        break;
    case DOCS_BOARDS:
        printf("$.values(options.boards ?? this.key, null, $.counted($.several))");
        break;
    case DOCS_ALWAYS:
        printf("\"%s\"", parameter->token);
        break;
    case DOCS_FLAG:
        printf("$.flag(");
        docs_node_write_value(parameter);
        printf(", \"%s\")", parameter->token);
        break;
    case DOCS_VALUES:
        docs_node_write_values(parameter);
        break;
    case DOCS_WORDS:
        printf("$.words(");
        docs_node_write_value(parameter);
        if (parameter->token != NULL) {
            printf(", \"%s\"", parameter->token);
        }
        putchar(')');
        break;
    }
    printf(",\n");
}

/* Of which one may be given. */
static void docs_node_write_group(const struct docs_method *method, unsigned group) {
    const char *separator = "";
    bool is_required = false;
    printf("        $.alternatives({ ");
    for (unsigned i = 0; i < method->parameter_count; i++) {
        const struct docs_parameter *at = &method->parameters[i];
        if (at->group == group) {
            printf("%s", separator);
            docs_node_write_name(at->name);
            if (at->place == DOCS_NAMED) {
                printf(": ");
                docs_node_write_value(at);
            }
            separator = ", ";
            is_required = at->is_group_required;
        }
    }
    printf(" }, %s);\n", is_required ? "true" : "false");
}

/* The key by which a cluster finds the node; null: the command is about all of them. */
static void docs_node_write_key(const struct docs_method *method) {
    const struct docs_parameter *first = &method->parameters[0];
    if (method->parameter_count > 0 && first->kind == DOCS_BOARD) {
        printf("this.key");
    } else if (method->parameter_count > 0 && first->kind == DOCS_BOARDS) {
        printf("options.boards?.[0] ?? this.key");
    } else if (method->parameter_count > 0 && first->part_count == 1 &&
               first->place == DOCS_POSITIONAL && first->parts[0].type == ARGUMENT_KEY) {
        docs_node_write_value(first);
    } else {
        printf("null");
    }
}

/* The names of its options: no other is passed over in silence. */
static void docs_node_write_known(const struct docs_method *method) {
    const char *separator = "";
    printf("        $.known(options, [");
    for (unsigned i = 0; i < method->signature_count; i++) {
        if (method->signature[i]->place == DOCS_NAMED) {
            printf("%s\"", separator);
            docs_node_write_name(method->signature[i]->name);
            putchar('"');
            separator = ", ";
        }
    }
    printf("%s]);\n", docs_methods_creates(method) ? ", \"exist_ok\"" : "");
}

static void docs_node_write_method(const struct docs_method *method) {
    bool is_required;
    bool has_options = docs_node_has_options(method, &is_required);
    const char *separator = "";
    printf("\n    async ");
    docs_node_write_name(method->name);
    putchar('(');
    for (unsigned i = 0; i < method->signature_count; i++) {
        if (method->signature[i]->place == DOCS_POSITIONAL) {
            printf("%s", separator);
            docs_node_write_name(method->signature[i]->name);
            separator = ", ";
        }
    }
    if (has_options) {
        printf("%soptions = {}", separator);
    }
    printf(") {\n");
    if (has_options) {
        docs_node_write_known(method);
    }
    for (unsigned group = 1; group <= method->group_count; group++) {
        docs_node_write_group(method, group);
    }
    if (docs_methods_find(method, "ONCE") != NULL) {
        printf("        options = this.withId(options);\n");
    }
    printf("        return this.run(");
    docs_node_write_key(method);
    printf(", \"");
    docs_node_write_command_name(method);
    printf("\", %s, \"%s\", [\n", (method->command->flags & COMMAND_WRITE) != 0 ? "false" : "true",
           docs_node_find_reply(method)->name);
    for (unsigned i = 0; i < method->parameter_count; i++) {
        docs_node_write_words(&method->parameters[i]);
    }
    printf("        ]%s);\n    }\n", has_options ? ", options" : "");
}

void docs_node_write_script(void) {
    printf("// A method for each LB. command. Written by leaderboard-docs from the commands' "
           "entries (make docs).\n"
           "\"use strict\";\n"
           "const $ = require(\"./words.js\");\n\n"
           "class Commands {");
    docs_methods_for_each(docs_node_write_method);
    printf("}\n\nexports.Commands = Commands;\n");
}

/* ---- commands.d.ts ---- */

static bool docs_node_is_time(const struct docs_parameter *parameter,
                              const struct docs_part *part) {
    return part->type == ARGUMENT_UNIX_TIME ||
           (parameter->token != NULL && part->type == ARGUMENT_STRING &&
            (strcmp(part->name, "time") == 0 || strcmp(part->name, "start") == 0 ||
             strcmp(part->name, "end") == 0));
}

/* Of one value. */
static void docs_node_write_word_type(const struct docs_parameter *parameter,
                                      const struct docs_part *part) {
    const char *separator = "";
    if (part->choices != NULL) {
        for (const struct argument *at = part->choices; at->name != NULL; at++) {
            printf("%s\"%s\"", separator, at->token);
            separator = " | ";
        }
    } else if (docs_node_is_time(parameter, part)) {
        printf("Time");
    } else if (part->type == ARGUMENT_KEY || part->type == ARGUMENT_PATTERN) {
        printf("string");
    } else if (part->type == ARGUMENT_INTEGER) {
        printf("number | bigint");
    } else {
        printf("Word");
    }
}

static void docs_node_write_part_type(const struct docs_parameter *parameter,
                                      const struct docs_part *part) {
    bool is_map = part->kind == DOCS_PAIRS || part->kind == DOCS_RESULTS;
    bool has_several =
        is_map ? part->has_many || parameter->is_token_repeated : part->kind == DOCS_SEVERAL;
    printf(is_map ? "Pairs<" : has_several ? "Several<" : "");
    printf(is_map && has_several ? "Several<" : "");
    docs_node_write_word_type(parameter, part);
    printf(is_map && has_several ? ">" : "");
    printf(is_map || has_several ? ">" : "");
}

static void docs_node_write_type(const struct docs_parameter *parameter) {
    switch (parameter->kind) {
    case DOCS_BOARDS:
        printf("readonly string[]");
        break;
    case DOCS_FLAG:
        printf("boolean");
        break;
    case DOCS_WORDS:
        printf("Words");
        break;
    case DOCS_VALUES:
        printf(parameter->part_count > 1 ? "readonly [" : "");
        for (unsigned i = 0; i < parameter->part_count; i++) {
            printf(i > 0 ? ", " : "");
            docs_node_write_part_type(parameter, &parameter->parts[i]);
        }
        printf(parameter->part_count > 1 ? "]" : "");
        break;
    case DOCS_BOARD:
    case DOCS_ALWAYS:
        break;
    }
}

/* Is one of the positional parameters from here on required? */
static bool docs_node_is_any_required(const struct docs_method *method, unsigned index) {
    for (unsigned i = index; i < method->signature_count; i++) {
        if (method->signature[i]->place == DOCS_POSITIONAL && method->signature[i]->is_required) {
            return true;
        }
    }
    return false;
}

static void docs_node_write_comment(const struct docs_method *method) {
    char syntax[SYNTAX_MAX];
    printf("\n    /**\n     * %s.\n     *\n     *     ", method->command->summary);
    docs_node_write_command_name(method);
    if (syntax_print(method->command, syntax, sizeof syntax) > 0) {
        printf(" %s", syntax);
    }
    printf("\n     */\n    ");
}

static void docs_node_write_declaration(const struct docs_method *method) {
    bool are_required;
    bool has_options = docs_node_has_options(method, &are_required);
    const char *separator = "";
    docs_node_write_comment(method);
    docs_node_write_name(method->name);
    putchar('(');
    for (unsigned i = 0; i < method->signature_count; i++) {
        const struct docs_parameter *at = method->signature[i];
        if (at->place == DOCS_POSITIONAL) {
            printf("%s", separator);
            docs_node_write_name(at->name);
            printf(are_required || docs_node_is_any_required(method, i) ? ": " : "?: ");
            docs_node_write_type(at);
            printf(at->is_required ? "" : " | null");
            separator = ", ";
        }
    }
    if (has_options) {
        printf("%soptions%s: {\n", separator, are_required ? "" : "?");
    }
    for (unsigned i = 0; i < method->signature_count; i++) {
        const struct docs_parameter *at = method->signature[i];
        if (at->place == DOCS_NAMED) {
            printf("        ");
            docs_node_write_name(at->name);
            printf(at->is_required ? ": " : "?: ");
            docs_node_write_type(at);
            printf(at->is_required ? ";\n" : " | undefined;\n");
        }
    }
    if (docs_methods_creates(method)) {
        printf("        /** A key that is there is no error. */\n"
               "        exist_ok?: boolean | undefined;\n");
    }
    printf("%s): Promise<%s>;\n", has_options ? "    }" : "", docs_node_find_reply(method)->type);
}

void docs_node_write_types(void) {
    printf("// A method for each LB. command. Written by leaderboard-docs from the commands' "
           "entries (make docs).\n"
           "import type {\n"
           "    Ban, BoardInfo, BoardRecord, BoardSummary, Cut, LeagueInfo, LeaguePlace, Pairs, "
           "Placed, "
           "Result, Several, "
           "Step, Time, ValueCount,\n"
           "    Value, Word, Words,\n"
           "} from \"./index\";\n\n"
           "export class Commands<V extends Value, F extends string> {");
    docs_methods_for_each(docs_node_write_declaration);
    printf("}\n");
}
