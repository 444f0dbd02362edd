/* Output generated from the table: leaderboard.conf, docs/settings.md, --help.
 *
 * Summaries are written in two forms: after "# " in the file, and as Markdown. Both wrap paragraphs
 * and leave examples (lines that start with blanks) unchanged. */
#include "server/settings/setting_private.h"

enum { TEXT_WIDTH = 80, TITLE_WIDTH = 80 };

/* ---- Wrapped text ---- */

struct writer {
    FILE *file;
    const char *prefix; /* of every line: "# " or "" */
    bool is_markdown;
    size_t column; /* 0: the line is still empty */
};

static void setting_docs_end_line(struct writer *writer) {
    if (writer->column > 0) {
        fputc('\n', writer->file);
    }
    writer->column = 0;
}

/* Write an empty line: "#". */
static void setting_docs_put_gap(struct writer *writer) {
    setting_docs_end_line(writer);
    fprintf(writer->file, "%.*s\n", writer->prefix[0] != '\0' ? 1 : 0, writer->prefix);
}

static void setting_docs_put_byte(struct writer *writer, char byte) {
    if (writer->is_markdown && strchr("*_[]<>\\`", byte) != NULL) {
        fputc('\\', writer->file);
    }
    fputc(byte, writer->file);
}

static void setting_docs_put_word(struct writer *writer, struct bytes word) {
    if (writer->column > 0 && writer->column + 1 + word.size > TEXT_WIDTH) {
        setting_docs_end_line(writer);
    }
    if (writer->column == 0) {
        fputs(writer->prefix, writer->file);
        writer->column = strlen(writer->prefix);
    } else {
        fputc(' ', writer->file);
        writer->column++;
    }
    for (size_t i = 0; i < word.size; i++) {
        setting_docs_put_byte(writer, word.at[i]);
    }
    writer->column += word.size;
}

static void setting_docs_put_paragraph(struct writer *writer, struct bytes text) {
    size_t begin = 0;
    for (size_t i = 0; i <= text.size; i++) {
        if (i == text.size || text.at[i] == ' ') {
            if (i > begin) {
                setting_docs_put_word(writer,
                                      (struct bytes){.at = text.at + begin, .size = i - begin});
            }
            begin = i + 1;
        }
    }
    setting_docs_end_line(writer);
}

static void setting_docs_put_text(struct writer *writer, const char *text) {
    struct bytes rest = bytes_from_text(text);
    struct bytes line;
    bool was_example = false;
    for (bool is_first = true; setting_words_next_line(&rest, &line); is_first = false) {
        bool is_example = line.size > 0 && line.at[0] == ' ';
        if (!is_first && !(is_example && was_example)) {
            setting_docs_put_gap(writer);
        }
        if (is_example) {
            fprintf(writer->file, "%s%.*s\n", writer->prefix, (int)line.size, line.at);
        } else {
            setting_docs_put_paragraph(writer, line);
        }
        was_example = is_example;
    }
}

/* ---- leaderboard.conf ---- */

static void setting_docs_put_title(FILE *file, const char *title) {
    static const char marks[] = "########################################"; /* half a line */
    int left = (TITLE_WIDTH - 2 - (int)strlen(title)) / 2;
    int right = TITLE_WIDTH - 2 - (int)strlen(title) - left;
    fprintf(file, "%.*s %s %.*s\n\n", left, marks, title, right, marks);
}

static void setting_docs_write_example_setting(struct writer *writer,
                                               const struct setting *setting) {
    const char *value = setting->example != NULL ? setting->example : setting->default_value;
    setting_docs_put_text(writer, setting->summary);
    setting_docs_put_gap(writer);
    fprintf(writer->file, "# %s %s\n\n", setting->name, value);
}

void settings_write_example(FILE *file) {
    struct writer writer = {.file = file, .prefix = "# "};
    setting_docs_put_text(
        &writer,
        "leaderboard.conf: the settings of leaderboard-server, every one of them.\n"
        "    leaderboard-server leaderboard.conf\n"
        "Each is commented out, with its default (or an example, where the default is empty), so "
        "this file as it is changes nothing. To change a setting, remove the # in front of it "
        "and write your value.\n"
        "A line is a name and one or more values. Put values that contain blanks in \"double "
        "quotes\", where \\n, \\t, \\\", \\\\ and \\xHH (a byte in hexadecimal) are escapes, or in "
        "'single quotes'. A # begins a comment only at the beginning of a line.\n"
        "The command line takes the same settings, which override the file:\n"
        "    leaderboard-server leaderboard.conf --port 7000 --loglevel debug\n"
        "CONFIG GET shows the settings of a running server; CONFIG SET changes most of them, and "
        "CONFIG REWRITE writes the changes to this file.");
    fputc('\n', file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (setting_begins_section(setting)) {
            setting_docs_put_title(file, setting->section->title);
            setting_docs_put_text(&writer, setting->section->summary);
            fputc('\n', file);
        }
        setting_docs_write_example_setting(&writer, setting);
    }
}

/* ---- docs/settings.md ---- */

static const char *setting_docs_default_text(const struct setting *setting) {
    return setting->default_value != NULL ? setting->default_value : "none";
}

static void setting_docs_write_index(FILE *file) {
    unsigned count = 0;
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (setting_begins_section(setting)) {
            const char *between = count == 0 ? "Sections: " : count % 4 == 0 ? ",\n" : ", ";
            fprintf(file, "%s[%s](#%s)", between, setting->section->title, setting->name);
            count++;
        }
    }
    fputs(".\n\n", file);
}

static void setting_docs_write_docs_setting(struct writer *writer, const struct setting *setting) {
    char syntax[SETTING_SYNTAX_MAX];
    fprintf(writer->file, "### %s\n`%s %s`", setting->name, setting->name,
            setting_print_syntax(setting, syntax));
    if (setting->default_value != NULL) {
        fprintf(writer->file, ", default `%s`", setting->default_value);
    }
    fputs((setting->flags & SETTING_FIXED) != 0 ? ", fixed\n\n" : "\n\n", writer->file);
    setting_docs_put_text(writer, setting->summary);
    fputc('\n', writer->file);
}

void settings_write_docs(FILE *file) {
    struct writer writer = {.file = file, .prefix = "", .is_markdown = true};
    fputs("# Settings\n"
          "\n"
          "`make docs` generates this page from the server's settings table.\n"
          "\n"
          "Settings come from four sources; later ones override earlier ones: the defaults, the "
          "file, the\n"
          "command line, `CONFIG SET`.\n"
          "\n"
          "```\n"
          "leaderboard-server leaderboard.conf --port 7000 --bind 127.0.0.1 ::1\n"
          "leaderboard-server - < leaderboard.conf\n"
          "```\n"
          "\n"
          "A line of the file is a name and one or more values, separated by blanks. In `\"double "
          "quotes\"` a\n"
          "value may contain blanks, `\\n \\r \\t \\a \\b \\\" \\\\` and `\\xHH`; in `'single "
          "quotes'` only `\\'` is\n"
          "special. A line whose first character is `#` is a comment. If a setting is on several "
          "lines the\n"
          "last one counts; `layout`, `board` and `save` lines add up. Sizes take `1k 1kb 1m 1mb "
          "1g 1gb`;\n"
          "`k` is 1000, `kb` is 1024.\n"
          "\n"
          "On the command line a setting's values extend to the next word that begins with `--`. "
          "`-` as the\n"
          "first or the last word reads a file from the standard input.\n"
          "\n"
          "An unknown setting or a bad value stops the server at start, and the error names the "
          "file and the\n"
          "line. `CONFIG SET` applies all given settings, or none. `CONFIG REWRITE` keeps the "
          "file's comments\n"
          "and order. `CONFIG GET layout` and `CONFIG GET board` reply one text with a line for "
          "each.\n"
          "A setting marked *fixed* cannot be changed while the server runs.\n"
          "\n",
          file);
    setting_docs_write_index(file);
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        if (setting_begins_section(setting)) {
            fprintf(file, "## %s\n\n", setting->section->title);
            setting_docs_put_text(&writer, setting->section->summary);
            fputc('\n', file);
        }
        setting_docs_write_docs_setting(&writer, setting);
    }
}

/* ---- --help ---- */

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
        if (setting_begins_section(setting)) {
            fprintf(file, "\n%s\n", setting->section->title);
        }
        char syntax[SETTING_SYNTAX_MAX];
        fprintf(file, "  --%s %s\n      default: %s\n", setting->name,
                setting_print_syntax(setting, syntax), setting_docs_default_text(setting));
    }
}
