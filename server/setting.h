/* Settings: one table gives parsing, CONFIG GET/SET/REWRITE, --help, docs/settings.md and
 * leaderboard.conf. Names and values as redis.conf has them, where Redis has them.
 *
 * Sources, later ones win: defaults, the file, the command line ("--port 7000 --bind 127.0.0.1
 * ::1"), CONFIG SET. An unknown or bad setting refuses to start, with file and line.
 *
 * A line is a name and words, cut at blanks; "double quotes" take \n \r \t \a \b \xHH and \c,
 * 'single quotes' only \'. A line whose first character is # is a comment. Sizes take 1k 1kb 1m
 * 1mb 1g 1gb (k is 1000, kb 1024). The last line of a setting wins, unless it repeats.
 *
 * After CONFIG SET nobody is told: whoever uses a setting reads it here each time (timeout, limits,
 * maxclients, maxmemory, requirepass, slowlog and latency ones, default-layout, appendonly and
 * what else may change of durability). The one exception is loglevel, which CONFIG SET hands to
 * log_set_level. The rest is SETTING_FIXED. */
#ifndef SERVER_SETTING_H
#define SERVER_SETTING_H

#include <stdio.h>

#include "codec/layout.h"
#include "codec/memory.h"
#include "skiplist/rules.h"

enum {
    SETTING_LIST_MAX = 16, /* bind addresses */
    SETTING_LAYOUTS_MAX = 256,
    SETTING_RULES_MAX = 1024,
    SETTING_SAVE_POINTS_MAX = 64,
    SETTING_ERROR_MAX = 512,   /* room for any message of this file */
    SETTING_REASON_MAX = 384,  /* room for one without where */
    SETTING_VALUE_MAX = 16384, /* room for the text of any one-line value */
};

/* One heap piece each, so that others may borrow the layout for as long as the settings live. */
struct setting_layout {
    char *name;
    char *text;         /* as given, one blank between words */
    struct rules rules; /* the layout, without options */
};
/* "board GLOB NAME [options]": new boards whose key matches behave so; first match wins. */
struct setting_rule {
    char *pattern;
    char *layout_name;
    char *origin;              /* "leaderboard.conf:12: board", "option --board": for errors */
    char *options;             /* as given, one blank between words; NULL: none */
    struct rules *own;         /* what the options say; NULL without options */
    const struct rules *rules; /* own or the layout's; set by settings_finish */
};

struct setting_output_limit { /* client-output-buffer-limit normal */
    uint64_t hard_bytes, soft_bytes;
    int64_t soft_seconds;
};

struct setting_save_point { /* a snapshot after so many seconds with so many changes */
    int64_t seconds;        /* 1 .. INT32_MAX */
    int64_t changes;        /* 0 .. INT64_MAX */
};
enum setting_appendfsync {
    SETTING_APPENDFSYNC_EVERYSEC,
    SETTING_APPENDFSYNC_ALWAYS,
    SETTING_APPENDFSYNC_NO,
};

/* Strings are owned and terminated, without zero bytes inside; NULL when the setting is "". A
 * string stays at its address until its setting is given another value: those of SETTING_FIXED
 * settings may be borrowed while the server runs. */
struct settings {
    /* network */
    char *bind[SETTING_LIST_MAX]; /* "127.0.0.1", "::1", "localhost", "*" (all IPv4), "::*" (all
                                   * IPv6); a '-' in front: no error when this machine does not
                                   * have it */
    uint32_t bind_count;
    int64_t port;           /* 0: no TCP */
    char *unixsocket;       /* NULL: none */
    int64_t unixsocketperm; /* octal 700 is 0700 here; 0: as the umask has it */
    int64_t tcp_backlog;
    int64_t timeout_s;
    int64_t tcp_keepalive_s;
    int64_t maxclients;
    bool protected_mode;
    char *requirepass; /* NULL: none is asked for */
    /* limits */
    uint64_t maxmemory; /* 0: no limit */
    uint64_t proto_max_bulk_len;
    uint64_t client_query_buffer_limit;
    struct setting_output_limit output_limit;
    /* general */
    bool daemonize;
    char *pidfile;                      /* NULL: none */
    char *logfile;                      /* NULL: stdout */
    int loglevel;                       /* enum log_level */
    int64_t databases;                  /* 16, fixed */
    int64_t slowlog_log_slower_than_us; /* -1: off */
    int64_t slowlog_max_len;
    int64_t latency_monitor_threshold_ms;
    bool latency_tracking;
    /* durability */
    char *dir;           /* never NULL; as given: relative to where the server was started */
    char *appenddirname; /* never NULL; a name in dir */
    bool appendonly;
    int appendfsync; /* enum setting_appendfsync */
    struct setting_save_point save_points[SETTING_SAVE_POINTS_MAX];
    uint32_t save_point_count; /* 0: no snapshots by themselves */
    bool is_save_begun;        /* a further `save` line of this file adds to those before it */
    int64_t auto_aof_rewrite_percentage; /* 0: never */
    uint64_t auto_aof_rewrite_min_size;
    bool stop_writes_on_bgsave_error;
    /* boards */
    struct setting_layout *layouts[SETTING_LAYOUTS_MAX]; /* [0] is the built-in "default" */
    uint32_t layout_count;
    struct setting_rule rules[SETTING_RULES_MAX];
    uint32_t rule_count;
    const struct rules *default_rules;
    char *default_layout_name;
    char *default_layout_origin;
    /* where they came from, absolute: for CONFIG REWRITE; NULL: no file */
    char *file_path;
};

/* Fill in the defaults. false: no memory. */
MUST_CHECK bool settings_init(struct settings *settings);
void settings_deinit(struct settings *settings);

/* Read a file, or the words behind the program's name: [file | -] [--setting value ...] ... [-],
 * where - reads stdin. A setting's values go on to the next word that begins with "--". On false,
 * error (SETTING_ERROR_MAX) names file and line, or the option, and what is allowed, and the
 * settings are as they were. */
MUST_CHECK bool settings_load_file(struct settings *settings, const char *path, char *error);
MUST_CHECK bool settings_load_text(struct settings *settings, struct bytes text,
                                   const char *file_name, char *error);
MUST_CHECK bool settings_load_arguments(struct settings *settings, int argc, char **argv,
                                        char *error);
/* After all sources: claims that span settings (every board rule's layout exists, there is
 * something to listen on). */
MUST_CHECK bool settings_finish(struct settings *settings, char *error);

/* How a new board of this name behaves: a registry_rules_for whose context is the settings. */
const struct rules *settings_rules_for(void *settings, struct bytes key);
/* By name; NULL: there is none. */
const struct layout *settings_find_layout(const struct settings *settings, struct bytes name);
/* "there is no layout 'lasp'; did you mean 'laps'?" reason: SETTING_REASON_MAX. */
void settings_explain_layout(const struct settings *settings, struct bytes name, char *reason);

/* What is said of a board beside its layout, on `board` lines and by LB.CREATE: words of any case,
 * options in any order, each once. */
#define SETTING_OPTIONS "[CAP n] [KEEP LAST|BEST] [PERIOD DAY|WEEK|MONTH [TZ +08:00] [ARCHIVE n]]"
/* Put what the words say into *rules; the rest of it stays. On false *rules is as it was, and
 * reason (SETTING_REASON_MAX) says which option is wrong, what was given and what is allowed. */
MUST_CHECK bool settings_parse_options(const struct bytes *words, size_t word_count,
                                       struct rules *rules, char *reason);
/* Can the layout do what the options want: are its times fine enough for the PERIOD? reason, as
 * above, says how many bits are needed. */
MUST_CHECK bool settings_check_rules(const struct rules *rules, char *reason);

/* One entry of the table. */
enum setting_flag {
    SETTING_FIXED = 1 << 0,   /* cannot be changed while running */
    SETTING_SECRET = 1 << 1,  /* never logged */
    SETTING_REPEATS = 1 << 2, /* may stand on several lines: layout, board */
};
struct setting {
    const char *name;
    const char *section;       /* "network", "limits", "general", "durability", "boards" */
    const char *value_syntax;  /* "0..65535", "yes|no", "debug|verbose|notice|warning" */
    const char *default_value; /* as a line of the file has it; NULL: no line */
    const char *example;       /* a line's value for leaderboard.conf; NULL: the default */
    const char *summary;       /* plain sentences; a line break begins a paragraph, a line that
                                * begins with blanks is an example */
    unsigned flags;
    uint32_t id; /* private to the setting*.c files: which field, which parser */
};
extern const struct setting setting_table[]; /* ended by name NULL */
/* By name, any case; NULL: there is none. */
const struct setting *setting_find(struct bytes name);

/* CONFIG GET's text of a setting that does not repeat, into out (SETTING_VALUE_MAX); returns its
 * size. Nothing is quoted, sizes are in bytes. */
size_t setting_print(const struct settings *settings, const struct setting *setting, char *out);
/* What stands behind the name in a file, quoted where it must be: loading it gives the same value.
 * index counts the lines of a setting that repeats, others have one; false behind the last. */
MUST_CHECK bool setting_print_line(const struct settings *settings, const struct setting *setting,
                                   uint32_t index, char *out, size_t *size);

/* Can these settings take effect? The name of the one that cannot, and why (reason:
 * SETTING_REASON_MAX); NULL: they can. */
typedef const char *settings_check(void *context, const struct settings *wanted, char *reason);
/* CONFIG SET name value [name value ...]: all or none. On false error says why, as Redis words it
 * ("Unknown option or number of arguments for CONFIG SET - 'x'", "CONFIG SET failed (possibly
 * related to argument 'x') - ..."), and nothing changed. pairs has 2 * pair_count entries. check:
 * asked before anything changes; it may be NULL. */
MUST_CHECK bool settings_set(struct settings *settings, const struct bytes *pairs,
                             uint32_t pair_count, settings_check *check, void *context,
                             char *error);
/* CONFIG REWRITE: the file with its comments and its order kept, changed settings in place, new
 * ones at the end; temp file, fsync, rename, fsync of the directory. A line that still says what
 * holds stays as it is, to the byte.
 *
 * On false error says why ("The server is running without a config file", "Rewriting config file:
 * No space left on device"), and the file is as it was; only when the directory could not be
 * synced is it the new one already. */
MUST_CHECK bool settings_rewrite(const struct settings *settings, char *error);
/* Write leaderboard.conf with every default and its explanation, docs/settings.md, --help. */
void settings_write_example(FILE *file);
void settings_write_docs(FILE *file);
void settings_write_help(FILE *file);

#endif
