/* Generated for an installed server: the manual pages leaderboard-server(1) and
 * leaderboard.conf(5), in the macros of man(7), and the completion of the command line for bash. */
#include "server/settings/setting_private.h"

#include "server/system/version.h"

/* ---- text for man ---- */

/* A backslash and a hyphen would be formatted; a line that begins with '.' or '\'' is a request. */
static void setting_man_put_text(FILE *file, struct bytes text) {
    if (text.size > 0 && (text.at[0] == '.' || text.at[0] == '\'')) {
        fputs("\\&", file);
    }
    for (size_t i = 0; i < text.size; i++) {
        switch (text.at[i]) {
        case '\\':
            fputs("\\e", file);
            break;
        case '-':
            fputs("\\-", file);
            break;
        case '"':
            fputs("\\(dq", file);
            break;
        case '~':
            fputs("\\(ti", file);
            break;
        case '^':
            fputs("\\(ha", file);
            break;
        default:
            fputc(text.at[i], file);
        }
    }
}

static void setting_man_put_line(FILE *file, const char *text) {
    setting_man_put_text(file, bytes_from_text(text));
    fputc('\n', file);
}

/* In a line for each sentence, as man pages are written. */
static void setting_man_put_sentences(FILE *file, struct bytes text) {
    while (text.size > 0) {
        size_t end = 0;
        while (end < text.size && !(text.at[end] == ' ' && end > 0 && text.at[end - 1] == '.')) {
            end++;
        }
        setting_man_put_text(file, (struct bytes){.at = text.at, .size = end});
        fputc('\n', file);
        end += end < text.size;
        text = (struct bytes){.at = text.at + end, .size = text.size - end};
    }
}

/* A summary: paragraphs, and examples, whose lines begin with blanks. */
static void setting_man_put_summary(FILE *file, const char *summary) {
    struct bytes rest = bytes_from_text(summary);
    struct bytes line;
    bool was_example = false;
    for (bool is_first = true; setting_words_next_line(&rest, &line); is_first = false) {
        bool is_example = line.size > 0 && line.at[0] == ' ';
        if (is_example != was_example) {
            fputs(is_example ? ".RS\n.nf\n" : ".fi\n.RE\n", file);
        }
        if (is_example) {
            while (line.size > 0 && line.at[0] == ' ') {
                line = (struct bytes){.at = line.at + 1, .size = line.size - 1};
            }
            setting_man_put_text(file, line);
            fputc('\n', file);
        } else {
            fputs(is_first || was_example ? "" : ".IP\n", file);
            setting_man_put_sentences(file, line);
        }
        was_example = is_example;
    }
    fputs(was_example ? ".fi\n.RE\n" : "", file);
}

static void setting_man_put_title(FILE *file, const char *name, int section, const char *what) {
    fputs(".\\\" `make docs` generates this page from the server's settings table.\n", file);
    fprintf(file, ".TH %s %d \"\" \"leaderboard %s\"\n.SH NAME\n", name, section, SERVER_VERSION);
    fprintf(file, "%s \\- %s\n", name, what);
}

/* ---- leaderboard-server(1) ---- */

static void setting_man_put_uses(FILE *file) {
    for (const struct setting_use *use = setting_uses; use->words != NULL; use++) {
        fputs(".TP\n.B leaderboard\\-server", file);
        fputs(use->words[0] != '\0' ? " " : "", file);
        setting_man_put_line(file, use->words);
        setting_man_put_line(file, use->summary);
    }
}

static const char program_text[] =
    ".SH DESCRIPTION\n"
    "leaderboard\\-server keeps rankings in memory and answers the commands of Redis for sorted\n"
    "sets and hashes, and its own, which begin with LB.\n"
    "Every client of Redis can talk to it.\n"
    "Each setting of\n"
    ".BR leaderboard.conf (5)\n"
    "is an option of the command line, too; options win over the file.\n"
    "A setting's values extend to the next word that begins with two hyphens.\n";

static const char after_text[] =
    ".SH SIGNALS\n"
    ".TP\n.BR SIGTERM \", \" SIGINT\n"
    "Write everything to disk as the settings say, answer what clients have sent, and end with\n"
    "status 0.\nA second one ends the server at once.\n"
    ".TP\n.B SIGHUP\n"
    "Open the log file anew, as logrotate wants it.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.BR NOTIFY_SOCKET \", \" WATCHDOG_USEC\n"
    "A service manager is told when boards are loaded, how far loading is, and that the server is\n"
    "alive; see\n.BR sd_notify (3).\n"
    ".TP\n.BR LISTEN_FDS \", \" LISTEN_PID \", \" LISTEN_FDNAMES\n"
    "Sockets that the service manager has opened are listened to, and then no others; see\n"
    ".BR sd_listen_fds (3).\n"
    ".SH EXIT STATUS\n"
    "0 after an orderly end, 1 if the server cannot start or what it had to write was not\n"
    "written.\n"
    ".SH FILES\n"
    ".TP\n.I /etc/leaderboard/leaderboard.conf\nThe settings of the service.\n"
    ".TP\n.I /var/lib/leaderboard\nIts boards: the working directory of the service.\n"
    ".SH SEE ALSO\n"
    ".BR leaderboard.conf (5),\n.BR redis\\-cli (1)\n";

void settings_write_program_manual(FILE *file) {
    setting_man_put_title(file, "leaderboard\\-server", 1,
                          "ranking server in memory for clients of Redis");
    fputs(".SH SYNOPSIS\n.B leaderboard\\-server\n"
          ".RI [ file \" | \\-] [\\-\\-\" \"setting value\" \" ...] ...\"\n",
          file);
    fputs(program_text, file);
    fputs(".SH USES\n", file);
    setting_man_put_uses(file);
    fputs(after_text, file);
}

/* ---- leaderboard.conf(5) ---- */

static const char format_text[] =
    ".SH DESCRIPTION\n"
    "A line is a name and one or more values, separated by blanks.\n"
    "In \"double quotes\" a value may contain blanks, and \\en \\er \\et \\ea \\eb \\e\" \\e\\e "
    "and\n"
    "\\exHH are escapes; in 'single quotes' only \\e' is special.\n"
    "A line whose first character is # is a comment.\n"
    "If a setting is on several lines the last one counts; layout, board and save lines add up.\n"
    "Sizes take the units 1k 1kb 1m 1mb 1g 1gb; k is 1000, kb is 1024.\n"
    ".PP\n"
    "The server does not start with an unknown setting or a bad value.\n"
    ".B leaderboard\\-server \\-\\-check\\-config\n"
    ".I FILE\n"
    "prints every error with its line, and starts nothing.\n"
    ".B CONFIG SET\n"
    "changes most settings of a running server, and\n"
    ".B CONFIG REWRITE\n"
    "writes the changes to the file.\n";

void settings_write_file_manual(FILE *file) {
    setting_man_put_title(file, "leaderboard.conf", 5, "settings of leaderboard\\-server");
    fputs(format_text, file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        char syntax[SETTING_SYNTAX_MAX];
        if (setting_begins_section(setting)) {
            fputs(".SH ", file);
            for (const char *at = setting->section->title; *at != '\0'; at++) {
                fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, file);
            }
            fputc('\n', file);
            setting_man_put_sentences(file, bytes_from_text(setting->section->summary));
        }
        fputs(".TP\n.BI ", file);
        setting_man_put_text(file, bytes_from_text(setting->name));
        fputs(" \" ", file);
        setting_print_syntax(setting, syntax);
        setting_man_put_line(file, syntax);
        setting_man_put_summary(file, setting->summary);
        fputs(".IP\n", file);
        if (setting->default_value != NULL) {
            fputs("Default: ", file);
            setting_man_put_text(file, bytes_from_text(setting->default_value));
            fputs(".\n", file);
        }
        fputs((setting->flags & SETTING_FIXED) != 0 ? "Fixed while the server runs.\n"
                                                    : "Can be changed by CONFIG SET.\n",
              file);
    }
    fputs(".SH SEE ALSO\n.BR leaderboard\\-server (1)\n", file);
}

/* ---- completion ---- */

/* What can follow --setting: words, or "-f" for files, "-d" for directories; NULL: anything. */
static const char *setting_man_completion_of(const struct setting *setting, char *words) {
    enum setting_type type = setting->kind.type;
    if (type == SETTING_TYPE_CHOICE) {
        setting_value_join_choices(setting->kind.choices, " ", words);
        return words;
    }
    bool is_path = type == SETTING_TYPE_STRING && strstr(setting->kind.text, "path") != NULL;
    return type == SETTING_TYPE_BOOLEAN     ? "yes no"
           : type == SETTING_TYPE_DIRECTORY ? "-d"
           : type == SETTING_TYPE_ONLY      ? setting->kind.choices[0]
           : is_path                        ? "-f"
                                            : NULL;
}

/* The first word of a use, if it is an option. */
static void setting_man_put_use_options(FILE *file) {
    struct bytes before = BYTES("");
    for (const struct setting_use *use = setting_uses; use->words != NULL; use++) {
        const char *at = strstr(use->words, "--");
        if (at == NULL) {
            continue;
        }
        struct bytes option = {.at = at, .size = strcspn(at, " ")};
        struct bytes name = {.at = at + 2, .size = option.size - 2};
        if (setting_find(name) == NULL && !bytes_equal(option, before)) {
            fprintf(file, " %.*s", (int)option.size, option.at);
            before = option;
        }
    }
}

void settings_write_completion(FILE *file) {
    fputs("# bash completion for leaderboard-server; `make docs` generates it from the settings "
          "table.\n"
          "_leaderboard_server() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    case $before in\n"
          "    --check-config) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
          "    --check) COMPREPLY=($(compgen -d -- \"$word\")); return ;;\n",
          file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        char room[SETTING_SYNTAX_MAX];
        const char *words = setting_man_completion_of(setting, room);
        if (words == NULL) {
            fprintf(file, "    --%s) COMPREPLY=(); return ;;\n", setting->name);
        } else {
            bool is_option = words[0] == '-';
            fprintf(file, "    --%s) COMPREPLY=($(compgen %s%s%s -- \"$word\")); return ;;\n",
                    setting->name, is_option ? "" : "-W '", words, is_option ? "" : "'");
        }
    }
    fputs("    esac\n"
          "    if [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W '",
          file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        fprintf(file, "%s--%s", setting == setting_table ? "" : " ", setting->name);
    }
    setting_man_put_use_options(file);
    fputs("' -- \"$word\"))\n"
          "    elif ((COMP_CWORD == 1)); then\n"
          "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "    fi\n"
          "}\n"
          "complete -o filenames -F _leaderboard_server leaderboard-server\n",
          file);
}
