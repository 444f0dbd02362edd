/* leaderboard-docs: generates documentation from the tables, to stdout.
 *
 *     leaderboard-docs commands   docs/commands.md
 *     leaderboard-docs settings   docs/settings.md
 *     leaderboard-docs long PAGE  docs/long-commands.md, which is PAGE with another table
 *     leaderboard-docs metrics    docs/metrics.md
 *     leaderboard-docs conf       leaderboard.conf
 *     leaderboard-docs man1       deploy/man/leaderboard-server.1
 *     leaderboard-docs man5       deploy/man/leaderboard.conf.5
 *     leaderboard-docs completion deploy/leaderboard-server.bash
 *     leaderboard-docs node       clients/node/commands.js
 *     leaderboard-docs node-types clients/node/commands.d.ts
 *     leaderboard-docs python     clients/python/leaderboard_client/commands.py
 *     leaderboard-docs python-async   the same directory's async_commands.py
 *
 * `make docs` updates the files in the repository; `make docs-check` fails if they are stale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/table.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/shape.h"
#include "server/dispatch/syntax.h"
#include "server/docs_node.h"
#include "server/docs_python.h"
#include "server/metrics/metrics.h"
#include "server/settings/setting.h"

enum { SYNTAX_MAX = 4096, NAME_MAX_SIZE = 64, LINE_MAX_SIZE = 4096 };
static const char first_version[] = "1.0.0";

static const struct {
    const char *group;
    const char *title;
} groups[] = {
    {"leaderboard", "Leaderboards"},
    {"sorted-set", "Sorted sets"},
    {"hash", "Hashes"},
    {"generic", "Keys"},
    {"transactions", "Transactions"},
    {"pubsub", "Channels"},
    {"connection", "Connection"},
    {"server", "Server"},
};
enum { GROUP_COUNT = sizeof groups / sizeof groups[0] };

static const struct {
    enum command_flag flag;
    const char *text;
} flag_texts[] = {
    {COMMAND_WRITE, "changes keys"},
    {COMMAND_READ, "reads keys"},
    {COMMAND_DENYOOM, "refused past maxmemory"},
    {COMMAND_ADMIN, "for operators"},
    {COMMAND_FAST, "fast"},
    {COMMAND_NO_AUTH, "before authentication too"},
    {COMMAND_SECRET, "arguments are kept out of SLOWLOG and MONITOR"},
    {COMMAND_NO_MULTI, "not in transactions"},
    {COMMAND_NO_SLOWLOG, "kept out of SLOWLOG"},
};
enum { FLAG_COUNT = sizeof flag_texts / sizeof flag_texts[0] };

/* "CLIENT SETNAME"; without a container, the command's own name. */
static void docs_main_print_name(char *out, const struct command *container,
                                 const struct command *command) {
    snprintf(out, NAME_MAX_SIZE, "%s%s%s", container != NULL ? container->name : "",
             container != NULL ? " " : "", command->name);
}

/* GitHub's anchor of a heading: lower case, '-' for blanks, no dots. */
static void docs_main_write_anchor(const char *name) {
    for (const char *at = name; *at != '\0'; at++) {
        char byte = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;
        if (byte != '.') {
            putchar(byte == ' ' ? '-' : byte);
        }
    }
}

/* Escape text for Markdown, also inside a table. */
static void docs_main_write_text(const char *text) {
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr("*_[]<>\\`|", *at) != NULL) {
            putchar('\\');
        }
        putchar(*at);
    }
}

/* "O(1); changes keys, fast", and since when, where that is not the first version. */
static void docs_main_write_facts(const struct command *command) {
    const char *separator = "; ";
    docs_main_write_text(command->complexity);
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if ((command->flags & (unsigned)flag_texts[i].flag) != 0) {
            printf("%s%s", separator, flag_texts[i].text);
            separator = ", ";
        }
    }
    if (strcmp(command->since, first_version) != 0) {
        printf("; since %s", command->since);
    }
    printf(".\n\n");
}

/* A command without arguments needs no line beside its heading. */
static void docs_main_write_command(const struct command *container,
                                    const struct command *command) {
    char name[NAME_MAX_SIZE];
    char syntax[SYNTAX_MAX];
    docs_main_print_name(name, container, command);
    printf("### %s\n", name);
    if (syntax_print(command, syntax, sizeof syntax) > 0) {
        printf("    %s %s\n", name, syntax);
    }
    docs_main_write_text(command->summary);
    printf(".\n");
    docs_main_write_facts(command);
    printf("Reply: `%s`\n\n", command->reply);
}

typedef void write_each(const struct command *container, const struct command *command);

/* Every command of a group that can be sent; for a container, its subcommands. HELP is the same
 * for all of them, and not among them. */
static void docs_main_for_each_of_group(const char *group, write_each *write) {
    const struct command *container = NULL;
    for (uint32_t index = 0; index < command_count(); index++) {
        const struct command *command = command_by_index(index);
        bool is_subcommand = command_is_subcommand(index);
        container = is_subcommand ? container : command;
        if (command->run != NULL && strcmp(command->group, group) == 0 &&
            strcmp(command->name, "HELP") != 0) {
            write(is_subcommand ? container : NULL, command);
        }
    }
}

static void docs_main_write_commands(void) {
    printf(
        "# Commands\n\n"
        "`make docs` generates this page from the server's command table. Names, options, replies\n"
        "and errors are those of Redis 7.2, so any Redis client can send these commands. `COMMAND\n"
        "DOCS` replies the same on a running server. The commands that begin with `LB.` are the\n"
        "server's own; [leaderboards.md](leaderboards.md) explains them.\n\n"
        "Each entry has the syntax (none: the command takes no arguments), what the command does,\n"
        "its complexity and its flags. All are in the server since %s, unless the entry says\n"
        "otherwise. Each command with subcommands also has HELP, which lists them.\n\n"
        "A reply's shape: `i` is an integer, `s` a text, `b` a boolean or 0 or 1, `n` a decimal\n"
        "(RESP3: a double), `#` an integer or a decimal, `d` a time in unix milliseconds, `e` in\n"
        "seconds, `o` anything, `<a|b>` one of these texts, `!` always an error. `[i]` is an\n"
        "array, `[a:i b:s]` one of just these elements, with `...` again and again, `(a:i b:s)` a\n"
        "map of these entries and `{s}` one of any (RESP2: arrays of names and values). `i?` may "
        "be\n"
        "null, `a?:i` may be missing, `i|BY=[s]` is one or with the option BY the other, and\n"
        "`[[a:s b:n]...]` are arrays in RESP3, and laid end to end in RESP2. `@Name` stands at "
        "the\n"
        "[end](#shapes-of-replies).\n\n",
        first_version);
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        fputs(i == 0 ? "Groups: " : i % 4 == 0 ? ",\n" : ", ", stdout);
        printf("[%s](#", groups[i].title);
        docs_main_write_anchor(groups[i].title);
        putchar(')');
    }
    printf(".\n\n");
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        printf("## %s\n\n", groups[i].title);
        docs_main_for_each_of_group(groups[i].group, docs_main_write_command);
    }
    printf("## Shapes of replies\n\n");
    for (unsigned i = 0; shape_name(i) != NULL; i++) {
        printf("    %s  %s\n", shape_name(i), shape_find(bytes_from_text(shape_name(i))));
    }
}

/* The time of a million units, with two digits. */
static void docs_main_write_time_of_million(unsigned unit_ns) {
    if (unit_ns >= 1000) {
        printf("%u.%u s", unit_ns / 1000, unit_ns % 1000 / 100);
    } else {
        printf("%u ms", unit_ns);
    }
}

/* Commands that only move boards have no cost per unit. */
static void docs_main_write_cost(const struct command *container, const struct command *command) {
    char name[NAME_MAX_SIZE];
    if (command->cost == NULL || command->cost->unit_ns == 0) {
        return;
    }
    docs_main_print_name(name, container, command);
    printf("| [%s](commands.md#", name);
    docs_main_write_anchor(name);
    printf(") | %s | ", command->cost->unit);
    docs_main_write_time_of_million(command->cost->unit_ns);
    printf(" | %s |\n", command->cost->instead);
}

/* The page with the table as it is now: all else is written by hand. */
static bool docs_main_write_long_commands(const char *path) {
    static const char head[] = "|---|---|---:|---|\n";
    char line[LINE_MAX_SIZE];
    FILE *page = fopen(path, "r");
    while (page != NULL && fgets(line, sizeof line, page) != NULL) {
        if (strncmp(line, "| [", 3) != 0) {
            fputs(line, stdout);
        }
        for (size_t i = 0; strcmp(line, head) == 0 && i < GROUP_COUNT; i++) {
            docs_main_for_each_of_group(groups[i].group, docs_main_write_cost);
        }
    }
    return page != NULL && fclose(page) == 0;
}

int main(int argc, char **argv) {
    const char *what = argc == 2 || argc == 3 ? argv[1] : "";
    bool is_written = true;
    execute_init(command_table);
    if (strcmp(what, "commands") == 0) {
        docs_main_write_commands();
    } else if (strcmp(what, "settings") == 0) {
        settings_write_docs(stdout);
    } else if (strcmp(what, "long") == 0) {
        is_written = docs_main_write_long_commands(argc == 3 ? argv[2] : "");
    } else if (strcmp(what, "metrics") == 0) {
        metrics_write_docs(stdout);
    } else if (strcmp(what, "conf") == 0) {
        settings_write_example(stdout);
    } else if (strcmp(what, "man1") == 0) {
        settings_write_program_manual(stdout);
    } else if (strcmp(what, "man5") == 0) {
        settings_write_file_manual(stdout);
    } else if (strcmp(what, "completion") == 0) {
        settings_write_completion(stdout);
    } else if (strcmp(what, "node") == 0) {
        docs_node_write_script();
    } else if (strcmp(what, "node-types") == 0) {
        docs_node_write_types();
    } else if (strncmp(what, "python", strlen("python")) == 0) {
        docs_python_write(strcmp(what, "python-async") == 0);
    } else {
        fputs("Usage: leaderboard-docs commands|settings|long "
              "PAGE|metrics|conf|man1|man5|completion|python|python-async|node|node-types\n",
              stderr);
        return EXIT_FAILURE;
    }
    if (!is_written || fflush(stdout) != 0 || ferror(stdout)) {
        perror("leaderboard-docs");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
