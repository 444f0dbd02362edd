/* leaderboard-docs: writes what the tables know, to stdout.
 *
 *     leaderboard-docs commands   docs/commands.md
 *     leaderboard-docs settings   docs/settings.md
 *     leaderboard-docs conf       leaderboard.conf
 *
 * `make docs` keeps the files in the repository; `make docs-check` finds them out of date. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/command.h"
#include "server/setting.h"

enum { SYNTAX_MAX = 4096, NAME_MAX_SIZE = 64 };

static const struct {
    const char *group;
    const char *title;
} groups[] = {
    {"leaderboard", "Leaderboards"},  {"sorted-set", "Sorted sets"}, {"generic", "Keys"},
    {"transactions", "Transactions"}, {"connection", "Connection"},  {"server", "Server"},
};
enum { GROUP_COUNT = sizeof groups / sizeof groups[0] };

static const struct {
    enum command_flag flag;
    const char *text;
} flag_texts[] = {
    {COMMAND_WRITE, "changes boards"},
    {COMMAND_READ, "reads boards"},
    {COMMAND_DENYOOM, "refused past maxmemory"},
    {COMMAND_ADMIN, "for operators"},
    {COMMAND_FAST, "fast"},
    {COMMAND_NO_AUTH, "before authentication too"},
    {COMMAND_SECRET, "arguments are kept out of SLOWLOG and MONITOR"},
    {COMMAND_NO_MULTI, "not in transactions"},
    {COMMAND_NO_SLOWLOG, "kept out of SLOWLOG"},
};
enum { FLAG_COUNT = sizeof flag_texts / sizeof flag_texts[0] };

/* "CLIENT SETNAME"; without a container the command's own name. */
static void print_name(char *out, const struct command *container, const struct command *command) {
    snprintf(out, NAME_MAX_SIZE, "%s%s%s", container != NULL ? container->name : "",
             container != NULL ? " " : "", command->name);
}

/* GitHub's anchor of a heading: lower case, '-' for blanks, and no dots. */
static void write_anchor(const char *name) {
    for (const char *at = name; *at != '\0'; at++) {
        char byte = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;
        if (byte != '.') {
            putchar(byte == ' ' ? '-' : byte);
        }
    }
}

/* Text inside Markdown, also inside a table. */
static void write_text(const char *text) {
    for (const char *at = text; *at != '\0'; at++) {
        if (strchr("*_[]<>\\`|", *at) != NULL) {
            putchar('\\');
        }
        putchar(*at);
    }
}

static void write_row(const struct command *container, const struct command *command) {
    char name[NAME_MAX_SIZE];
    print_name(name, container, command);
    printf("| [%s](#", name);
    write_anchor(name);
    printf(") | ");
    write_text(command->summary);
    printf(" |\n");
}

static void write_flags(const struct command *command) {
    const char *separator = "- Flags: ";
    for (size_t i = 0; i < FLAG_COUNT; i++) {
        if ((command->flags & (unsigned)flag_texts[i].flag) != 0) {
            printf("%s%s", separator, flag_texts[i].text);
            separator = ", ";
        }
    }
    if (strcmp(separator, ", ") == 0) {
        putchar('\n');
    }
}

static void write_command(const struct command *container, const struct command *command) {
    char name[NAME_MAX_SIZE];
    char syntax[SYNTAX_MAX];
    print_name(name, container, command);
    size_t size = command_print_syntax(command, syntax, sizeof syntax);
    printf("### %s\n\n```\n%s%s%s\n```\n\n", name, name, size > 0 ? " " : "", syntax);
    write_text(command->summary);
    printf(".\n\n- Complexity: ");
    write_text(command->complexity);
    printf("\n- Since: %s\n", command->since);
    write_flags(command);
    putchar('\n');
}

typedef void write_each(const struct command *container, const struct command *command);

/* Every command of a group that can be sent: of a container, its subcommands. */
static void for_each_of_group(const char *group, write_each *write) {
    for (const struct command *const *entry = command_table; *entry != NULL; entry++) {
        const struct command *command = *entry;
        if (strcmp(command->group, group) != 0) {
            continue;
        }
        if (command->run != NULL) {
            write(NULL, command);
        }
        const struct command *const *subcommand = command->subcommands;
        for (; subcommand != NULL && *subcommand != NULL; subcommand++) {
            write(command, *subcommand);
        }
    }
}

static void write_commands(void) {
    printf("# Commands\n\n"
           "This page is made from the server's own table by `make docs`. Names, options, replies\n"
           "and errors are those of Redis 7.4, so any Redis client can send them. `COMMAND DOCS`\n"
           "answers the same from a running server. The commands that begin with `LB.` are the\n"
           "server's own; [leaderboards.md](leaderboards.md) explains them.\n\n");
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        printf("**%s**\n\n| Command | Summary |\n|---|---|\n", groups[i].title);
        for_each_of_group(groups[i].group, write_row);
        putchar('\n');
    }
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        printf("## %s\n\n", groups[i].title);
        for_each_of_group(groups[i].group, write_command);
    }
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    if (strcmp(what, "commands") == 0) {
        command_init();
        write_commands();
    } else if (strcmp(what, "settings") == 0) {
        settings_write_docs(stdout);
    } else if (strcmp(what, "conf") == 0) {
        settings_write_example(stdout);
    } else {
        fputs("Usage: leaderboard-docs commands|settings|conf\n", stderr);
        return EXIT_FAILURE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("leaderboard-docs");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
