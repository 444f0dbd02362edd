/* leaderboard-docs: generates documentation from the tables, to stdout.
 *
 *     leaderboard-docs commands   docs/commands.md
 *     leaderboard-docs settings   docs/settings.md
 *     leaderboard-docs long       docs/long-commands.md
 *     leaderboard-docs metrics    docs/metrics.md
 *     leaderboard-docs conf       leaderboard.conf
 *     leaderboard-docs man1       deploy/man/leaderboard-server.1
 *     leaderboard-docs man5       deploy/man/leaderboard.conf.5
 *     leaderboard-docs completion deploy/leaderboard-server.bash
 *
 * `make docs` updates the files in the repository; `make docs-check` fails if they are stale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/commands/table.h"
#include "server/dispatch/command.h"
#include "server/dispatch/execute.h"
#include "server/dispatch/syntax.h"
#include "server/metrics/metrics.h"
#include "server/settings/setting.h"

enum { SYNTAX_MAX = 4096, NAME_MAX_SIZE = 64 };
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
        "otherwise. Each command with subcommands also has HELP, which lists them.\n\n",
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

static void docs_main_write_steps(void) {
    fputs(
        "\n"
        "## What runs in steps\n"
        "\n"
        "These commands and tasks return at once, or do one bounded step at a time, however much "
        "there is to do:\n"
        "\n"
        "- `DEL`, `UNLINK`, `FLUSHALL`, `ZREMRANGEBYRANK`, `ZREMRANGEBYSCORE`, `CAP`, and boards "
        "that are\n"
        "  replaced: removed data is freed afterwards, between other commands.\n"
        "- `SCAN` and `ZSCAN`: `COUNT` is a hint.\n"
        "- `COPY` of more than 4,000 members (or 500 fields): its client waits, the others do\n"
        "  not. The copy is the source as it is at the moment at which the copy appears, with all\n"
        "  that was written meanwhile. In `MULTI` it is made at once, and so it is by a replica\n"
        "  and when a journal is loaded. Where `maxmemory` is passed meanwhile, it ends with the\n"
        "  error `OOM`, and copies nothing.\n"
        "- `BGSAVE`, `BGREWRITEAOF` and snapshots by `save`: boards are written between other "
        "commands,\n"
        "  without a fork.\n"
        "- Expiry, the ends of periods, and the growth of boards.\n"
        "\n"
        "`ZCOUNT`, `ZRANK`, `ZREVRANK`, `LB.QUANTILE` of one, and a page of a range at any depth "
        "take microseconds on\n"
        "a board of any size: they do not iterate over members.\n"
        "\n"
        "## On a server that follows\n"
        "\n"
        "A replica applies a master's changes in steps of less than a millisecond, whatever "
        "command "
        "made them, also when it becomes\n"
        "master. A server that follows a Redis or the module "
        "([moving-from-redis.md](moving-from-redis.md#without-a-stop)) applies each\n"
        "command, and each `MULTI` with its `EXEC`, in one go: what it costs at the source, it "
        "costs here. A `ZUNIONSTORE` of 665,000\n"
        "members held its clients for 290 ms.\n"
        "\n",
        stdout);
}

static void docs_main_write_long_commands(void) {
    fputs("# Long commands\n"
          "\n"
          "One thread runs all commands, one after another: while one runs, all other clients "
          "wait. Most commands take\n"
          "microseconds. Those on this page take time in proportion to what they touch.\n"
          "\n"
          "`make docs` generates the table from the server's command table. The time for a million "
          "units was measured\n"
          "on a board of a million members of 17 bytes "
          "([bench/results](../bench/results/2026-11-22-long.md), beside\n"
          "redis-server); expect between half and twice as much, depending on your machine and "
          "members.\n"
          "\n"
          "| Command | What counts | A million of them | What to use instead |\n"
          "|---|---|---:|---|\n",
          stdout);
    for (size_t i = 0; i < GROUP_COUNT; i++) {
        docs_main_for_each_of_group(groups[i].group, docs_main_write_cost);
    }
    docs_main_write_steps();
    fputs(
        "## busy-command-limit\n"
        "\n"
        "`CONFIG SET busy-command-limit 250` (or a line in leaderboard.conf) rejects commands that "
        "would block all\n"
        "other clients for more than 250 ms, before they begin:\n"
        "\n"
        "```\n"
        "127.0.0.1:6379> ZUNIONSTORE year 3 spring summer autumn\n"
        "(error) TOOLONG ZUNIONSTORE would hold the server for about 1260 ms, and "
        "busy-command-limit is 250 ms\n"
        "```\n"
        "\n"
        "A rejected command has changed nothing. The estimate is the number of units times the "
        "time in the table: it\n"
        "uses sizes, not the content of the boards. It can tell 10 ms from a second, but not 200 "
        "ms from 300.\n"
        "`EXEC` adds up what is queued, by the sizes when it runs and by what its own commands put "
        "on a key\n"
        "before another reads it, and is rejected as a whole: `EXECABORT Transaction discarded "
        "because of: TOOLONG\n"
        "EXEC would ...`. Commands between `MULTI` and `EXEC` are queued without this check.\n"
        "\n"
        "The default is 500: what holds everybody for half a second is a mistake, or work for "
        "another "
        "hour\n"
        "(`CONFIG SET busy-command-limit 0` for as long as it takes). To choose a value, start "
        "with "
        "how long your users\n"
        "may wait (100 to 1000 ms), and then look at `SLOWLOG` and at `errorstat_TOOLONG` in `INFO "
        "errorstats`. The error\n"
        "has its own prefix because `BUSY`, which clients and Sentinel treat specially, means that "
        "the server hangs, and\n"
        "it does not. `SAVE`, `FLUSHDB`, `FLUSHALL` and `SHUTDOWN` are never rejected.\n",
        stdout);
}

int main(int argc, char **argv) {
    const char *what = argc == 2 ? argv[1] : "";
    execute_init(command_table);
    if (strcmp(what, "commands") == 0) {
        docs_main_write_commands();
    } else if (strcmp(what, "settings") == 0) {
        settings_write_docs(stdout);
    } else if (strcmp(what, "long") == 0) {
        docs_main_write_long_commands();
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
    } else {
        fputs("Usage: leaderboard-docs commands|settings|long|metrics|conf|man1|man5|completion\n",
              stderr);
        return EXIT_FAILURE;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("leaderboard-docs");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
