/* Settings: one table drives parsing, CONFIG GET/SET/REWRITE, --help, docs/reference/settings.md and
 * leaderboard.conf. Names and values are those of redis.conf where Redis has the setting.
 *
 * Sources, later ones win: defaults, the file, the command line ("--port 7000 --bind 127.0.0.1
 * ::1"), CONFIG SET. With an unknown or invalid setting the server does not start; the error names
 * file and line. Settings of Redis that mean nothing here are ignored (setting_redis_table).
 *
 * A line is a name and words (codec/bytes.h). A line whose first character is # is a comment. Sizes
 * take 1k 1kb 1m 1mb 1g 1gb (k is 1000, kb 1024). The last line of a setting wins, unless the
 * setting repeats.
 *
 * How this room works: setting_private.h lists its files. Every change is made on a draft, which
 * takes the place of the settings only if all of it is right.
 *
 * CONFIG SET notifies nobody: code that uses a setting that is not SETTING_FIXED reads it here each
 * time. The exceptions are loglevel and crash-log-enabled, which CONFIG SET passes on. */
#ifndef SERVER_SETTINGS_H
#define SERVER_SETTINGS_H

#include <stdio.h>

#include "codec/layout.h"
#include "codec/memory.h"
#include "codec/subnet.h"
#include "server/system/jwt.h"
#include "skiplist/keyspace/board_options.h"

enum {
    SETTING_LIST_MAX = 16, /* bind addresses */
    SETTING_IO_THREADS_MAX = 64,
    SETTING_LAYOUTS_MAX = 256,
    SETTING_DEFAULT_LAYOUTS_MAX = 8,
    SETTING_RULES_MAX = 1024,
    SETTINGS_MAX = 128,
    SETTING_REDIS_MAX = 256, /* names in setting_redis_table */
    SETTING_NODES_MAX = 16,  /* replication-nodes */
    SETTING_RENAMES_MAX = 64,
    SETTING_RENAME_SIZE_MAX = 128, /* bytes of a command's new name */
    SETTING_SAVE_POINTS_MAX = 64,
    SETTING_ERROR_MAX = 640,   /* room for any message of this file */
    SETTING_SYNTAX_MAX = 512,  /* room for what may be written for any setting */
    SETTING_VALUE_MAX = 16384, /* room for the text of any one-line value */
};

/* Allocated one by one, so that the layout can be borrowed until CONFIG SET replaces it. */
struct setting_layout {
    char *name;
    char *text;                   /* as given, words separated by one blank */
    struct board_options options; /* the layout, without options */
};
/* "board GLOB NAME [options]": applies to new boards whose key matches; first match wins. */
struct setting_rule {
    char *pattern;
    char *layout_name;
    char *origin;              /* "leaderboard.conf:12: board", "option --board": for errors */
    char *text;                /* as given, words separated by one blank; NULL: none */
    struct board_options *own; /* the options with the options; NULL without options */
    struct tag_set *tags; /* of the options: more than the layout has, or other bits; or NULL */
    const struct board_options *options; /* own or the layout's; set by settings_finish */
};

/* "rename-command NAME NEW|""": new_name "" takes the command away. */
struct setting_rename {
    char name[SETTING_RENAME_SIZE_MAX + 1], new_name[SETTING_RENAME_SIZE_MAX + 1];
};

/* Classes of clients with output limits of their own. */
enum setting_output_class {
    SETTING_OUTPUT_NORMAL,
    SETTING_OUTPUT_REPLICA,
    SETTING_OUTPUT_PUBSUB,
    SETTING_OUTPUT_CLASSES,
};
struct setting_output_limit { /* client-output-buffer-limit */
    uint64_t hard_bytes, soft_bytes;
    int64_t soft_seconds;
};

/* notify-keyspace-events: classes of events, and the channels that get them. */
enum setting_event {
    SETTING_EVENT_GENERIC = 1 << 0, /* g */
    SETTING_EVENT_STRING = 1 << 1,  /* $ */
    SETTING_EVENT_LIST = 1 << 2,    /* l */
    SETTING_EVENT_SET = 1 << 3,     /* s */
    SETTING_EVENT_HASH = 1 << 4,    /* h */
    SETTING_EVENT_ZSET = 1 << 5,    /* z */
    SETTING_EVENT_EXPIRED = 1 << 6, /* x */
    SETTING_EVENT_EVICTED = 1 << 7, /* e */
    SETTING_EVENT_STREAM = 1 << 8,  /* t */
    SETTING_EVENT_MODULE = 1 << 9,  /* d */
    SETTING_EVENT_ALL = (1 << 10) - 1,
    SETTING_EVENT_NEW = 1 << 10,      /* n */
    SETTING_EVENT_KEYSPACE = 1 << 11, /* K */
    SETTING_EVENT_KEYEVENT = 1 << 12, /* E */
    SETTING_EVENT_MISS = 1 << 13,     /* m */
};

enum setting_tls_clients {
    SETTING_TLS_CLIENTS_NO,
    SETTING_TLS_CLIENTS_YES,
    SETTING_TLS_CLIENTS_OPTIONAL,
};
enum setting_tls_user { SETTING_TLS_USER_OFF, SETTING_TLS_USER_CN };

struct setting_save_point { /* a snapshot after this many seconds with this many changes */
    int64_t seconds;        /* 1 .. INT32_MAX */
    int64_t changes;        /* 0 .. INT64_MAX */
};
enum setting_log_format { SETTING_LOG_TEXT, SETTING_LOG_JSON };
enum setting_acl_pubsub { SETTING_ACL_ALLCHANNELS, SETTING_ACL_RESETCHANNELS };
enum setting_appendfsync {
    SETTING_APPENDFSYNC_EVERYSEC,
    SETTING_APPENDFSYNC_ALWAYS,
    SETTING_APPENDFSYNC_NO,
};

struct setting_subnets {
    struct subnet at[SETTING_LIST_MAX];
    uint32_t count;
};
struct setting_addresses {
    char *at[SETTING_LIST_MAX]; /* as given */
    uint32_t count;
};

/* Strings are owned and terminated, without zero bytes inside; NULL when the setting is "". A
 * string keeps its address until its setting gets another value: strings of SETTING_FIXED settings
 * may be borrowed while the server runs. */
struct settings {
    /* network */
    /* "127.0.0.1", "::1", "localhost", "*" (all IPv4), "::*" (all IPv6); a '-' in front: no error if
     * this machine does not have the address */
    struct setting_addresses bind;
    /* Listeners whose connections begin with a PROXY header: words of bind, and "unixsocket". */
    struct setting_addresses proxied;
    struct setting_subnets proxies; /* whose headers are believed */
    int64_t port;                   /* 0: no TCP */
    char *unixsocket;               /* NULL: none */
    int64_t unixsocketperm;         /* octal 700 is 0700 here; 0: the umask decides */
    int64_t tcp_backlog;
    int64_t timeout_s;
    int64_t tcp_keepalive_s;
    int64_t maxclients;
    int64_t tracking_table_max_keys;
    int64_t io_threads;
    bool protected_mode;
    char *requirepass;      /* NULL: no password */
    int64_t auth_timeout_s; /* 0: none */
    /* TLS */
    int64_t tls_port;    /* 0: no TLS */
    char *tls_cert_file; /* NULL: not set, like the next */
    char *tls_key_file, *tls_key_file_pass;
    char *tls_ca_cert_file, *tls_ca_cert_dir;
    int tls_auth_clients;      /* enum setting_tls_clients */
    int tls_auth_clients_user; /* enum setting_tls_user */
    char *tls_protocols, *tls_ciphers, *tls_ciphersuites;
    bool tls_prefer_server_ciphers;
    bool tls_session_caching;
    int64_t tls_session_cache_size, tls_session_cache_timeout_s;
    int64_t auth_delay_ms, auth_delay_max_ms, auth_delay_after;
    /* users */
    char *user_lines;       /* "name rule rule\n" of each `user` line; no password but as #hash */
    char *aclfile;          /* NULL: none */
    int acl_pubsub_default; /* enum setting_acl_pubsub */
    struct jwt_key player_keys[JWT_KEYS_MAX];
    uint32_t player_key_count;
    int64_t acllog_max_len;
    /* limits */
    uint64_t maxmemory;        /* 0: no limit */
    int64_t maxmemory_clients; /* bytes; 0: no limit; negative: a percentage of maxmemory */
    uint64_t proto_max_bulk_len;
    uint64_t client_query_buffer_limit;
    struct setting_output_limit output_limits[SETTING_OUTPUT_CLASSES];
    unsigned notify_keyspace_events;
    bool notify_board_events;
    int64_t busy_command_limit_ms; /* 0: no command is refused for its cost */
    int64_t once_window_s, once_max;
    /* general */
    bool daemonize;
    char *pidfile;                    /* NULL: none */
    char *logfile;                    /* NULL: stdout */
    int loglevel;                     /* enum log_level */
    int64_t shutdown_drain_timeout_s; /* 0: do not wait for balancers */
    int log_format;                   /* enum setting_log_format */
    bool syslog_enabled;
    char *syslog_ident;  /* never NULL */
    int syslog_facility; /* 0: user, n: local(n - 1) */
    bool crash_log_enabled;
    bool audit_log;
    struct setting_rename renames[SETTING_RENAMES_MAX];
    uint32_t rename_count;
    int64_t slowlog_log_slower_than_us; /* -1: off */
    int64_t slowlog_max_len;
    int64_t latency_monitor_threshold_ms;
    bool latency_tracking;
    bool extended_redis_compatibility;
    /* monitoring */
    int64_t metrics_port;                               /* 0: none */
    char *metrics_bind;                                 /* never NULL */
    char *metrics_hosts;                                /* NULL: none */
    char *metrics_tls_cert_file, *metrics_tls_key_file; /* NULL: without TLS */
    /* replication */
    char *replicaof_host; /* NULL: a master */
    int64_t replicaof_port;
    char *masterauth, *masteruser; /* NULL: none */
    bool replica_serve_stale_data, replica_announced;
    int64_t replica_priority;
    char *replica_announce_ip;     /* NULL: the address of the connection */
    int64_t replica_announce_port; /* 0: the port */
    int64_t repl_timeout_s, repl_ping_replica_period_s;
    uint64_t repl_backlog_size;
    uint64_t replica_spool_size; /* 0: no limit */
    int64_t repl_backlog_ttl_s;
    int64_t min_replicas_to_write, min_replicas_max_lag_s; /* 0: off */
    bool tls_replication, tls_replication_verify_name;
    int64_t sync_replicas, replication_nodes; /* 0: off; else sync_replicas < replication_nodes */
    bool sync_replicas_fsync;
    int64_t sync_replicas_lease_ms; /* 0: none */
    /* the page */
    int64_t web_port;                           /* 0: none */
    char *web_bind;                             /* never NULL */
    char *web_hosts;                            /* NULL: none */
    char *web_public;                           /* patterns; NULL: none */
    char *web_data;                             /* a pattern and fields; NULL: none */
    char *web_avatars;                          /* a field, and origins; NULL: none */
    char *web_tls_cert_file, *web_tls_key_file; /* NULL: without TLS */
    int64_t web_max_connections, web_max_connections_per_address; /* of an address 0: no limit */
    struct setting_subnets web_proxies; /* whose X-Forwarded-For is believed */
    int64_t web_session_timeout_s;
    bool web_write;
    int64_t web_write_rate; /* results a second; 0: no limit */
    char *web_guests;       /* the kid of their key; NULL: none */
    int64_t web_guests_per_hour;
    char *web_allow_origin; /* origins; NULL: none */
    /* durability */
    char *dir; /* never NULL; as given: relative to the directory where the server was started */
    char *appenddirname; /* never NULL; a name in dir */
    bool appendonly;
    int appendfsync; /* enum setting_appendfsync */
    struct setting_save_point save_points[SETTING_SAVE_POINTS_MAX];
    uint32_t save_point_count; /* 0: no automatic snapshots */
    bool is_save_begun;        /* a further `save` line of this file adds to the earlier ones */
    int64_t auto_aof_rewrite_percentage; /* 0: never */
    uint64_t auto_aof_rewrite_min_size;
    int64_t appendonly_keep_days;  /* 0: nothing is kept */
    uint64_t appendonly_keep_size; /* 0: no limit */
    bool stop_writes_on_bgsave_error;
    /* boards */
    struct setting_layout *layouts[SETTING_LAYOUTS_MAX]; /* [0] is the built-in "default" */
    uint32_t layout_count;
    struct setting_rule rules[SETTING_RULES_MAX];
    uint32_t rule_count;
    const struct board_options *default_options[SETTING_DEFAULT_LAYOUTS_MAX];
    uint32_t default_count;
    char *default_layouts; /* their names, with blanks between them */
    char *default_layout_origin;
    bool has_own_layouts, has_own_rules; /* of a draft: CONFIG SET replaces all of them */
    /* Which settings of Redis were given and ignored: setting_table_redis_next_ignored */
    bool is_ignored[SETTING_REDIS_MAX];
    /* absolute path of the file, for CONFIG REWRITE; NULL: no file */
    char *file_path;
    /* Of a draft: what it was copied from, and borrows unchanged strings from. Otherwise NULL. */
    struct settings *original;
};

/* How many connections the web-port may hold. */
static inline int64_t settings_web_connections(const struct settings *settings) {
    return settings->web_port != 0 ? settings->web_max_connections : 0;
}

/* Is this one of them? */
bool settings_has_address(const struct setting_addresses *addresses, const char *name);

/* Fill in the defaults. false: no memory. */
MUST_CHECK bool settings_init(struct settings *settings);
void settings_deinit(struct settings *settings);

/* Read the text of a file, or the arguments after the program's name: [file | -] [--setting value
 * ...] ... [-], where - reads stdin. A setting's values extend to the next argument that begins
 * with "--". On false, error (SETTING_ERROR_MAX) names file and line, or the option, and what is
 * allowed, and the settings are unchanged. */
MUST_CHECK bool setting_file_apply_text(struct settings *settings, struct bytes text,
                                        const char *file_name, char *error);
/* tell: is told of every wrong line of a file; error is then empty. NULL: error is the first one. */
typedef int settings_tell_error(const char *error);
MUST_CHECK bool setting_file_apply_arguments(struct settings *settings, int argc, char **argv,
                                             settings_tell_error *tell, char *error);
/* Overwrite the passwords among these arguments, which have been read: everybody on the machine can see a
 * process's arguments (ps, /proc/PID/cmdline). */
void setting_file_hide_arguments(int argc, char **argv);
/* Call it after all sources: checks conditions across settings (every board rule's layout exists,
 * there is something to listen on). */
MUST_CHECK bool settings_finish(struct settings *settings, char *error);

/* More that must hold of them, beyond what this room knows. false: error (SETTING_ERROR_MAX). */
typedef bool settings_check_more(const struct settings *settings, char *error);
/* --check-config: read a file as a start would, and print every error, a line each; if it has settings
 * of Redis that are ignored, also which are used and which are ignored, and why. Opens nothing for
 * writing. true: there is no error, which is printed too. check is called if
 * there is none so far; may be NULL. */
MUST_CHECK bool setting_file_check(const char *path, settings_check_more *check, FILE *out);

/* The options of a new board with this name: a registry_options_for whose context is the settings. Only where no
 * `board` line names it there is a choice, of the default layouts. */
const struct board_options *setting_board_options_for(void *settings, struct bytes key,
                                                      uint32_t choice);
/* Is the layout of this name one of the default layouts? */
bool setting_board_is_default(const struct settings *settings, const char *name);
/* Find a layout by name; NULL: there is none. */
const struct layout *setting_board_layout(const struct settings *settings, struct bytes name);
/* Where a first score chooses among layouts: the name of one that takes a number which this field does not take.
 * NULL: there is none among the default and the built-in ones, or the field is of none of them. */
const char *setting_board_find_taking(const struct settings *settings,
                                      const struct layout_field *field, struct bytes text);
/* "there is no layout 'lasp'; did you mean 'laps'?" reason: SETTING_ERROR_MAX. */
void setting_board_explain(const struct settings *settings, struct bytes name, char *reason);

/* Options of a board beside its layout, on `board` lines and in LB.CREATE: words of any case,
 * options in any order, each at most once, TAG once for each tag. */
#define SETTING_OPTIONS BOARD_OPTIONS(BOARD_OPTION_LINE) "[TAG name bits ...]"
/* Beside these: what is said on `board` lines alone; what else options hold, as setting_options_print prints it, of an export; the words of LB.LEAGUE CREATE, for
 * options of rooms. */
enum setting_takes {
    SETTING_TAKES_OPTIONS,
    SETTING_TAKES_LINE,
    SETTING_TAKES_STATE,
    SETTING_TAKES_LEAGUE
};
/* Parse options into *options, which may be those of a living board; the other fields stay. A TAG that is there takes NONE.
 * A period is not begun. On false *options is unchanged, and reason (SETTING_ERROR_MAX) says which option is wrong, what
 * was given and what is allowed. */
MUST_CHECK bool setting_options_parse(enum setting_takes takes, const struct bytes *words,
                                      size_t word_count, struct board_options *options,
                                      struct board_state *state, char *reason);
enum {
    SETTING_OPTION_TEXT_MAX = 64 + PERIOD_ZONE_TEXT_MAX,
    /* Of RATING: names and values of all parameters. */
    SETTING_RATING_TEXT_MAX = 32 + (RATING_PARAMETERS + 2) * (16 + DECIMAL_TEXT_MAX),
    SETTING_LIMITS_TEXT_MAX = 16 + LIMITS * (48 + DECIMAL_TEXT_MAX),
    SETTING_HOLD_TEXT_MAX = 96 + DECIMAL_TEXT_MAX, /* less than those */
    SETTING_RULES_TEXT_MAX = BOARD_OPTION_COUNT * SETTING_OPTION_TEXT_MAX +
                             SETTING_RATING_TEXT_MAX + SETTING_LIMITS_TEXT_MAX +
                             SETTING_HOLD_TEXT_MAX,
};
/* Write an option's value, as it is given, to out (SETTING_OPTION_TEXT_MAX, of RATING SETTING_RATING_TEXT_MAX, of LIMITS
 * SETTING_LIMITS_TEXT_MAX, which is less); returns the size. */
size_t setting_options_print_one(const struct board_option *option,
                                 const struct board_options *options,
                                 const struct board_state *state, char *out);
/* A limit of LIMITS, as it is given, with a terminator: EVERY 10 S. out: SETTING_LIMITS_TEXT_MAX. */
size_t setting_options_print_limit(const struct limits_rule *rule, enum limit limit, char *out);
/* The words of all that is not as usual, but for layout and tags, each with a blank before it, and a
 * terminator. out: SETTING_RULES_TEXT_MAX; returns the size without it. */
size_t setting_options_print(const struct board_options *options, const struct board_state *state,
                             char *out);
/* Does the layout support the options: are its times fine enough for the PERIOD? On false reason
 * (as above) says how many bits are needed. */
MUST_CHECK bool setting_options_check(const struct board_options *options, char *reason);

/* REPLICAOF: the master that `replicaof` names; a host of 0 bytes: none. false: out of memory, nothing
 * changed. */
MUST_CHECK bool setting_value_set_master(struct settings *settings, struct bytes host,
                                         uint16_t port);
/* Is it a host's name or an address, without an interface? At most 253 bytes. */
MUST_CHECK bool setting_value_is_host(struct bytes host);
/* The users' lines instead of those there are; see user_lines. false: out of memory, nothing
 * changed. */
MUST_CHECK bool setting_value_set_user_lines(struct settings *settings, struct bytes lines);
/* Read a whole file into *text (NULL on entry), *size bytes; the caller frees it, also after false.
 * error: SETTING_ERROR_MAX. */
MUST_CHECK bool setting_file_read(const char *path, char **text, size_t *size, char *error);
/* Replace a file, whose path has a directory, by a text: temporary file, fsync, rename, fsync of the
 * directory. Mode and owner stay; a new file is its owner's alone. false: errno says why. */
struct buffer;
MUST_CHECK bool setting_file_replace(const char *path, const struct buffer *text);

/* What a value is, where it is kept, and which values are allowed. */
enum setting_type {
    SETTING_TYPE_INTEGER,         /* int64_t, minimum .. maximum */
    SETTING_TYPE_OCTAL,           /* the same, written in octal */
    SETTING_TYPE_SIZE,            /* uint64_t, minimum .. maximum, with units */
    SETTING_TYPE_SIZE_OR_PERCENT, /* int64_t: a size, or a percentage if negative */
    SETTING_TYPE_BOOLEAN,         /* bool */
    SETTING_TYPE_CHOICE,          /* int: an index of choices, which end with NULL */
    SETTING_TYPE_ONLY,            /* no field: only choices[0] is allowed; choices[1] says why */
    SETTING_TYPE_STRING,          /* char *, owned, of minimum .. maximum bytes */
    SETTING_TYPE_DIRECTORY,       /* the same, the path of a directory */
    SETTING_TYPE_FILE_NAME,       /* the same, a name without directories */
    SETTING_TYPE_HOST,            /* the same, an address or a host's name, or empty */
    SETTING_TYPE_DEFAULT_LAYOUT,  /* the same, a layout's name */
    SETTING_TYPE_EVENTS,          /* unsigned: enum setting_event, a letter each */
    SETTING_TYPE_USER,            /* the same: a line of words for each `user` */
    SETTING_TYPE_ADDRESSES,       /* from here on: several words, at least minimum; choices[0] says
                                   * what is wrong with one that is no address */
    SETTING_TYPE_SUBNETS,
    SETTING_TYPE_OUTPUT_LIMIT,
    SETTING_TYPE_SAVE,
    SETTING_TYPE_RENAME,
    SETTING_TYPE_PLAYER_KEY,
    SETTING_TYPE_REPLICAOF,
    SETTING_TYPE_LAYOUT,
    SETTING_TYPE_BOARD,
    SETTING_TYPE_COUNT,
};
struct setting_kind {
    enum setting_type type;
    const char *text; /* what may be written; of an integer its unit or "", of a choice NULL */
    size_t offset;    /* of the field in struct settings */
    int64_t minimum, maximum;
    const char *const *choices;
};
struct setting_section {
    const char *title;
    const char *summary;
};
enum setting_flag {
    SETTING_FIXED = 1 << 0,   /* cannot be changed while running */
    SETTING_REPEATS = 1 << 1, /* may be on several lines: layout, board */
    SETTING_IN_FILE = 1 << 2, /* only at start: CONFIG GET and SET do not know it */
    SETTING_SECRET = 1 << 3,  /* CONFIG GET does not show it */
};
/* One row of the table. */
struct setting {
    const char *name;
    const struct setting_section *section;
    unsigned flags;
    struct setting_kind kind;
    const char *default_value; /* as written in the file; NULL: no line */
    const char *example;       /* a value to show in leaderboard.conf; NULL: the default */
    const char *summary; /* plain sentences; a line break starts a paragraph, a line that starts
                          * with blanks is an example */
};
extern const struct setting setting_table[]; /* ends with name NULL; at most SETTINGS_MAX */
/* Find a setting by name or by another name of it, of older versions of Redis (slave-read-only) or
 * of Valkey (primaryauth), in any case; NULL: there is none. */
const struct setting *settings_find(struct bytes name);
/* Names of older versions of Redis, and of Valkey: accepted everywhere, and CONFIG GET replies the one
 * that was asked for. Ends with name NULL. */
struct setting_alias {
    const char *name;
    const char *of; /* the setting's name */
};
extern const struct setting_alias settings_aliases[];

/* Settings of Redis and Valkey that this server does not have. */
struct setting_redis {
    const char *names; /* with blanks between them */
    const char *only;  /* the one value that can be ignored; NULL: every one */
    const char *why;   /* why there is no such thing, or not another value */
};
extern const struct setting_redis setting_redis_table[]; /* ends with names NULL */
/* A name in the table; begins as {0}. */
struct setting_redis_place {
    const struct setting_redis *row;
    struct bytes rest; /* of the row's names */
    uint32_t count;    /* of the table's names, this one included */
};
/* Go to the next name. false: that was the last. */
MUST_CHECK bool setting_table_redis_take(struct setting_redis_place *place, struct bytes *name);
/* Go to the next name that was given and ignored. false: that was the last. */
MUST_CHECK bool setting_table_redis_next_ignored(const struct settings *settings,
                                                 struct setting_redis_place *place,
                                                 struct bytes *name);

/* Print the value for CONFIG GET, for a setting that does not repeat, into out (SETTING_VALUE_MAX);
 * returns the size. Nothing is quoted, sizes are in bytes. */
size_t setting_value_show(const struct settings *settings, const struct setting *setting,
                          char *out);
/* Print which values are allowed into out (SETTING_SYNTAX_MAX), and return it: "0..65535",
 * "yes|no", "debug|verbose|notice|warning". */
const char *setting_value_print_syntax(const struct setting *setting, char *out);
/* Print what follows the name in a file, quoted where necessary: loading it gives the same value.
 * index counts the lines of a setting that repeats; other settings have one line. false: index is
 * after the last line. */
MUST_CHECK bool setting_value_print_line(const struct settings *settings,
                                         const struct setting *setting, uint32_t index, char *out,
                                         size_t *size);

/* Can these settings take effect? May reserve what they need, which the caller of settings_set
 * keeps or releases, as settings_set succeeds or fails. Returns NULL if they can, otherwise the
 * name of the setting that cannot, with the reason (SETTING_ERROR_MAX). */
typedef const char *settings_check(void *context, const struct settings *wanted, char *reason);
/* CONFIG SET name value [name value ...]: all or none. The value of a setting that repeats is all its
 * lines, as CONFIG GET replies them; layouts and rules that were borrowed are then invalid. On
 * false nothing changed, and error has
 * Redis's wording ("Unknown option or number of arguments for CONFIG SET - 'x'", "CONFIG SET failed
 * (possibly related to argument 'x') - ..."). pairs has 2 * pair_count entries. check: called
 * before anything changes; may be NULL. */
MUST_CHECK bool settings_set(struct settings *settings, const struct bytes *pairs,
                             uint32_t pair_count, settings_check *check, void *context,
                             char *error);
/* CONFIG REWRITE: keeps the file's comments and order, replaces changed settings in place, and
 * appends new ones; temporary file, fsync, rename, fsync of the directory. A line that already has
 * the current value is kept byte for byte.
 *
 * On false error says why ("The server is running without a config file", "Rewriting config file:
 * No space left on device"), and the file is unchanged, except when only the fsync of the directory
 * failed: then the new file is already in place. */
MUST_CHECK bool setting_file_rewrite(const struct settings *settings, char *error);
/* Does the file that they come from say the same of the setting of this name? false, too, if there is none or it cannot
 * be read. */
MUST_CHECK bool setting_file_is_written(const struct settings *settings, const char *name);
/* A way to call the program: what follows its name, and what that does. */
struct setting_use {
    const char *words;
    const char *summary;
};
extern const struct setting_use settings_uses[]; /* ends with words NULL */
/* The same for what the tools take that talk to a running server: words, and variables of the environment. */
extern const struct setting_use settings_link_words[];
/* Write --help. */
void settings_write_help(FILE *file);

#endif
