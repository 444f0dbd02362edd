/* Settings: one table gives parsing, CONFIG GET/SET/REWRITE, --help, docs/settings.md and
 * leaderboard.conf. Names and values as redis.conf has them, where Redis has them.
 *
 * Sources, later ones win: defaults, the file, the command line ("--port 7000 --bind 127.0.0.1
 * ::1"), CONFIG SET. An unknown or bad setting refuses to start, with file and line. */
#ifndef SERVER_SETTING_H
#define SERVER_SETTING_H

#include <stdio.h>

#include "codec/layout.h"
#include "codec/memory.h"

enum {
    SETTING_LIST_MAX = 16, /* bind addresses */
    SETTING_LAYOUTS_MAX = 256,
    SETTING_RULES_MAX = 1024,
    SETTING_ERROR_MAX = 512,   /* room for any message of this file */
    SETTING_VALUE_MAX = 16384, /* room for the text of any one-line value */
};

struct setting_layout {
    char *name;
    char *text; /* as given */
    struct layout layout;
};
/* "board GLOB NAME": new boards whose key matches get that layout; first match wins. */
struct setting_rule {
    char *pattern;
    char *layout_name;
    const struct layout *layout;
};

struct setting_output_limit { /* client-output-buffer-limit normal */
    uint64_t hard_bytes, soft_bytes;
    int64_t soft_seconds;
};

struct settings {
    /* network */
    char *bind[SETTING_LIST_MAX];
    uint32_t bind_count;
    int64_t port; /* 0: no TCP */
    char *unixsocket;
    int64_t unixsocketperm; /* octal; 0: as the umask has it */
    int64_t tcp_backlog;
    int64_t timeout_s;
    int64_t tcp_keepalive_s;
    int64_t maxclients;
    bool protected_mode;
    char *requirepass;
    /* limits */
    uint64_t maxmemory;
    uint64_t proto_max_bulk_len;
    uint64_t client_query_buffer_limit;
    struct setting_output_limit output_limit;
    /* general */
    bool daemonize;
    char *pidfile;
    char *logfile;
    int loglevel;                       /* enum log_level */
    int64_t databases;                  /* 16, fixed */
    int64_t slowlog_log_slower_than_us; /* -1: off */
    int64_t slowlog_max_len;
    int64_t latency_monitor_threshold_ms;
    bool latency_tracking;
    /* boards */
    struct setting_layout *layouts[SETTING_LAYOUTS_MAX]; /* [0] is the built-in "default" */
    uint32_t layout_count;
    struct setting_rule rules[SETTING_RULES_MAX];
    uint32_t rule_count;
    const struct layout *default_layout;
    char *default_layout_name;
    /* where they came from: for CONFIG REWRITE; NULL: no file */
    char *file_path;
};

/* Fill in the defaults. false: no memory. */
MUST_CHECK bool settings_init(struct settings *settings);
void settings_deinit(struct settings *settings);

/* Read a file, or the words behind the program's name ([file] [--setting value ...] ...). On
 * false, error (SETTING_ERROR_MAX) names file and line, or the option, and what is allowed. */
MUST_CHECK bool settings_load_file(struct settings *settings, const char *path, char *error);
MUST_CHECK bool settings_load_text(struct settings *settings, struct bytes text,
                                   const char *file_name, char *error);
MUST_CHECK bool settings_load_arguments(struct settings *settings, int argc, char **argv,
                                        char *error);
/* After all sources: claims that span settings (every board rule's layout exists ...). */
MUST_CHECK bool settings_finish(struct settings *settings, char *error);

/* The layout for a new board of this name: a registry_layout_for whose context is the settings. */
const struct layout *settings_layout_for(void *settings, struct bytes key);
/* By name; NULL: there is none. */
const struct layout *settings_find_layout(const struct settings *settings, struct bytes name);

/* One entry of the table. */
enum setting_flag {
    SETTING_FIXED = 1 << 0,   /* cannot be changed while running */
    SETTING_SECRET = 1 << 1,  /* never logged */
    SETTING_REPEATS = 1 << 2, /* may stand on several lines: layout, board */
};
struct setting {
    const char *name;
    const char *section;      /* "network", "limits", "general", "boards" */
    const char *value_syntax; /* "0..65535", "yes|no", "debug|verbose|notice|warning" */
    const char *default_value;
    const char *summary; /* plain sentences for docs and leaderboard.conf */
    unsigned flags;
    uint32_t id; /* private to setting.c: which field, which parser */
};
extern const struct setting setting_table[]; /* ended by name NULL */

/* Text of the value now, into out (SETTING_VALUE_MAX); returns its size. Settings that repeat:
 * the index-th line; false behind the last. */
size_t setting_print(const struct settings *settings, const struct setting *setting, char *out);
MUST_CHECK bool setting_print_line(const struct settings *settings, const struct setting *setting,
                                   uint32_t index, char *out, size_t *size);

/* CONFIG SET name value [name value ...]: all or none. On false error says why, as Redis words it
 * ("Unknown option or number of arguments for CONFIG SET - 'x'", "CONFIG SET failed (possibly
 * related to argument 'x') - ..."), and nothing changed. */
MUST_CHECK bool settings_set(struct settings *settings, const struct bytes *pairs,
                             uint32_t pair_count, char *error);
/* CONFIG REWRITE: the file with its comments kept, changed settings in place, new ones at the
 * end; temp file, fsync, rename. */
MUST_CHECK bool settings_rewrite(const struct settings *settings, char *error);
/* Write leaderboard.conf with every default and its explanation, docs/settings.md, --help. */
void settings_write_example(FILE *file);
void settings_write_docs(FILE *file);
void settings_write_help(FILE *file);

#endif
