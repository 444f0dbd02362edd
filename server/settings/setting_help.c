/* --help. The pages are made of what --describe says (docs/write). */
#include "server/settings/setting_private.h"

const struct setting_use setting_uses[] = {
    {"", "all defaults: 127.0.0.1, port 6379"},
    {"leaderboard.conf", "settings from a file"},
    {"leaderboard.conf --port 7000", "options win over the file"},
    {"- < leaderboard.conf", "settings from the standard input"},
    {"leaderboard.conf --reset-clock",
     "this once stamps follow the machine's clock, even back (docs/durability.md)"},
    {"--check-config FILE", "print every error of a configuration file; status 0 if there is none"},
    {"--ping PORT", "is a server ready? (HOST:PORT, a socket's path)"},
    {"--ping PORT --alive", "does it answer at all?"},
    {"--ping PORT --tls --cacert FILE", "the same with TLS (docs/tls.md)"},
    {"--check DIR", "are the files in DIR whole?"},
    {"--check DIR --fix", "and cut a damaged end off the journal"},
    {"--backup HOST:PORT FILE", "all boards of a running server, in one file (docs/backup.md)"},
    {"--restore FILE DIR", "a data directory from a backup, or from kept files to a second"},
    {"--export FILE OUT --format csv|jsonl|redis|rdb",
     "a backup as text, as commands for Redis, or as a file for Redis with the module"},
    {"--import OUT DIR --format csv|jsonl", "a data directory from such a text"},
    {"--import dump.rdb leaderboard.conf", "fill the data directory with a dump of Redis"},
    {"--describe", "commands, settings and figures as JSON, of which the documentation is made"},
    {"--version", "the version and the commit"},
    {"--help", "this text"},
    {NULL, NULL},
};

void settings_write_help(FILE *file) {
    fputs("Usage: leaderboard-server [leaderboard.conf | -] [--setting value ...] ...\n\n", file);
    for (const struct setting_use *use = setting_uses; use->words != NULL; use++) {
        char command[SETTING_SYNTAX_MAX];
        snprintf(command, sizeof command, "leaderboard-server %s", use->words);
        fprintf(file, "  %s\n      %s\n", command, use->summary);
    }
    fputs("\nSettings, with their defaults (leaderboard.conf explains them):\n", file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (setting == setting_table || setting->section != setting[-1].section) {
            fprintf(file, "\n%s\n", setting->section->title);
        }
        char syntax[SETTING_SYNTAX_MAX];
        fprintf(file, "  --%s %s\n      default: %s\n", setting->name,
                setting_print_syntax(setting, syntax),
                setting->default_value != NULL ? setting->default_value : "none");
    }
}
