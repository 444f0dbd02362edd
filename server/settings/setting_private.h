/* Shared by the setting*.c files; nobody else includes it.
 *
 *     setting_table.c   the table: names, defaults, explanations
 *     setting_words.c   a line <-> words
 *     setting_value.c   words <-> the fields of struct settings
 *     setting_board.c   the same for layouts and the rules that choose them
 *     setting_options.c words -> board options
 *     setting_file.c    files and the command line
 *     setting_rewrite.c CONFIG REWRITE
 *     setting_docs.c    leaderboard.conf, docs/settings.md, --help
 *     setting.c         life cycle, CONFIG SET, drafts
 *
 * Every change is made on a draft, which replaces the settings only when all of it is valid: an
 * invalid line, or a failed allocation, leaves the settings unchanged. */
#ifndef SERVER_SETTING_PRIVATE_H
#define SERVER_SETTING_PRIVATE_H

#include "server/settings/setting.h"

enum setting_id {
    SETTING_BIND,
    SETTING_PORT,
    SETTING_UNIXSOCKET,
    SETTING_UNIXSOCKETPERM,
    SETTING_TCP_BACKLOG,
    SETTING_TIMEOUT,
    SETTING_TCP_KEEPALIVE,
    SETTING_PROTECTED_MODE,
    SETTING_REQUIREPASS,
    SETTING_AUTH_TIMEOUT,
    SETTING_MAXCLIENTS,
    SETTING_MAXMEMORY,
    SETTING_MAXMEMORY_CLIENTS,
    SETTING_MAXMEMORY_POLICY,
    SETTING_PROTO_MAX_BULK_LEN,
    SETTING_CLIENT_QUERY_BUFFER_LIMIT,
    SETTING_CLIENT_OUTPUT_BUFFER_LIMIT,
    SETTING_BUSY_COMMAND_LIMIT,
    SETTING_DAEMONIZE,
    SETTING_PIDFILE,
    SETTING_LOGFILE,
    SETTING_LOGLEVEL,
    SETTING_DATABASES,
    SETTING_SLOWLOG_LOG_SLOWER_THAN,
    SETTING_SLOWLOG_MAX_LEN,
    SETTING_LATENCY_MONITOR_THRESHOLD,
    SETTING_LATENCY_TRACKING,
    SETTING_DIR,
    SETTING_APPENDDIRNAME,
    SETTING_APPENDONLY,
    SETTING_APPENDFSYNC,
    SETTING_AUTO_AOF_REWRITE_PERCENTAGE,
    SETTING_AUTO_AOF_REWRITE_MIN_SIZE,
    SETTING_SAVE,
    SETTING_STOP_WRITES_ON_BGSAVE_ERROR,
    SETTING_LAYOUT,
    SETTING_BOARD,
    SETTING_DEFAULT_LAYOUT,
    SETTING_ID_COUNT,
};
_Static_assert((int)SETTING_ID_COUNT <= (int)SETTINGS_MAX, "more settings than SETTINGS_MAX");

enum {
    SETTING_LINE_MAX = SETTING_VALUE_MAX, /* bytes of a line */
    SETTING_WORDS_MAX = 1024,             /* words of a line */
    /* Bytes of one string: fully quoted (four times as many), it still fits a line with its name.
     */
    SETTING_STRING_MAX = 4000,
    SETTING_LAYOUT_NAME_MAX = 64,
    SETTING_SHOWN_MAX = 64, /* bytes of user text inside a message */
};

/* printf into a message of size bytes; returns false, so that failing is one statement. */
__attribute__((format(printf, 3, 4))) bool setting_fail(char *message, size_t size,
                                                        const char *format, ...);

/* User text made fit for a message: shortened, with '?' for unprintable bytes. */
struct setting_shown {
    char text[SETTING_SHOWN_MAX + 1];
};
struct setting_shown setting_show(struct bytes text);
/* The same for a path; of a long one the end is shown. */
struct setting_shown setting_show_path(const char *path);

/* ---- setting_words.c ---- */

/* The words of a line; they point into room. */
struct setting_words {
    struct bytes words[SETTING_WORDS_MAX];
    size_t count;
    char room[SETTING_LINE_MAX];
};
/* false: reason (SETTING_REASON_MAX) says what is wrong with the line. */
MUST_CHECK bool setting_words_split(struct bytes line, struct setting_words *words, char *reason);
/* Is the line blank or a comment? */
bool setting_words_is_silent(struct bytes line);
/* Quote a word so that splitting returns it: quotes only if necessary, at most 4 * word.size + 2
 * bytes. Returns the size. */
size_t setting_words_quote(char *out, struct bytes word);
/* Take the next line from the front of *text, without its line end; false at the end. */
MUST_CHECK bool setting_words_next_line(struct bytes *text, struct bytes *line);
/* The word of a list that this one is probably a typing error of; NULL: none is close. next returns
 * the index-th word, NULL after the last. */
typedef const char *setting_words_next(const void *context, uint32_t index);
const char *setting_words_nearest(struct bytes word, setting_words_next *next, const void *context);

/* ---- setting_value.c ---- */

/* Where a value was given, for errors found later. */
struct setting_place {
    const char *file_name; /* NULL: not from a file */
    uint32_t line;
    bool is_argument; /* the command line */
};

/* Set one setting from the words after its name. settings is a draft: on false it may be partly
 * changed, but it still owns all its strings; reason (SETTING_REASON_MAX) says what is allowed. */
MUST_CHECK bool setting_value_assign(struct settings *settings, const struct setting *setting,
                                     const struct bytes *words, size_t count,
                                     const struct setting_place *place, char *reason);
/* Replace *slot by a copy of text and free the old string; "" becomes NULL. false: no memory, and
 * *slot is unchanged. */
MUST_CHECK bool setting_value_replace(char **slot, struct bytes text);
/* A terminated copy, owned by the caller; NULL: no memory. */
MUST_CHECK char *setting_value_copy(struct bytes text);
/* Does every line of this setting have the same value in both? */
bool setting_value_is_equal(const struct settings *a, const struct settings *b,
                            const struct setting *setting);

/* ---- setting_board.c ---- */

MUST_CHECK bool setting_board_init(struct settings *settings);
MUST_CHECK bool setting_board_assign_layout(struct settings *settings, const struct bytes *words,
                                            size_t count, const struct setting_place *place,
                                            char *reason);
MUST_CHECK bool setting_board_assign_rule(struct settings *settings, const struct bytes *words,
                                          size_t count, const struct setting_place *place,
                                          char *reason);
MUST_CHECK bool setting_board_assign_default(struct settings *settings, struct bytes name,
                                             const struct setting_place *place, char *reason);
/* Set the layouts of the rules and the default. false: error says which line names a missing
 * layout. */
MUST_CHECK bool setting_board_resolve(struct settings *settings, char *error);
MUST_CHECK bool setting_board_print_line(const struct settings *settings, uint32_t id,
                                         uint32_t index, char *out, size_t *size);
/* Free the layouts and rules from these indices on. */
void setting_board_truncate(struct settings *settings, uint32_t layout_count, uint32_t rule_count);

/* ---- setting_file.c ---- */

/* Read the whole file into *text (NULL on entry), *size bytes; the caller frees it, also after
 * false. error: SETTING_ERROR_MAX. */
MUST_CHECK bool setting_file_read(const char *path, char **text, size_t *size, char *error);

/* ---- setting.c ---- */

/* A copy to change. It shares the existing layouts and rules (boards borrow them), and owns
 * everything else; new layouts and rules are appended after the shared ones. */
struct setting_draft {
    struct settings settings;
    struct settings *original;
};
MUST_CHECK bool setting_draft_begin(struct setting_draft *draft, struct settings *original);
void setting_draft_commit(struct setting_draft *draft);
void setting_draft_abort(struct setting_draft *draft);

#endif
