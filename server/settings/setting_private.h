/* Shared by the files of this folder; nobody else includes it.
 *
 *     setting_table.c   the table: names, defaults, explanations; settings of Redis that are ignored, or refused
 *     setting_value.c   a line <-> words <-> the fields of struct settings
 *     setting_board.c   the same for layouts and the options that choose them
 *     setting_options.c words -> board options
 *     setting_file.c    files, the command line, and CONFIG REWRITE
 *     settings.c        life cycle, CONFIG SET, drafts, --help
 *
 * Every change is made on a draft, which replaces the settings only when all of it is valid: an
 * invalid line, or a failed allocation, leaves the settings unchanged. */
#ifndef SERVER_SETTING_PRIVATE_H
#define SERVER_SETTING_PRIVATE_H

#include "server/settings/settings.h"

enum {
    SETTING_LINE_MAX = SETTING_VALUE_MAX, /* bytes of a line */
    SETTING_WORDS_MAX = 1024,             /* words of a line */
    /* Bytes of one string: fully quoted (four times as many), it still fits a line with its name.
     */
    SETTING_STRING_MAX = 4000,
    SETTING_LAYOUT_NAME_MAX = 64,
};

/* printf into an error (SETTING_ERROR_MAX); returns false, so that failing is one statement. */
__attribute__((format(printf, 2, 3))) bool setting_value_fail(char *error, const char *format, ...);

/* As bytes_show for a path; of a long one the end is shown. */
struct bytes_shown setting_value_show_path(const char *path);

/* ---- setting_value.c: lines and words ---- */

/* The words of a line; they point into the line or into room. */
struct setting_words {
    struct bytes words[SETTING_WORDS_MAX];
    size_t count;
    char room[SETTING_LINE_MAX];
};
/* false: reason (SETTING_ERROR_MAX) says what is wrong with the line. */
MUST_CHECK bool setting_value_split_line(struct bytes line, struct setting_words *words,
                                         char *reason);
/* Is the line blank or a comment? */
bool setting_value_is_silent_line(struct bytes line);
/* Has the word only letters, digits and bytes of others? */
bool setting_value_is_of(struct bytes word, const char *others);
/* Fail with "unknown setting 'prot'; did you mean 'port'?", where what is "unknown setting". next
 * returns the index-th of the existing words, NULL after the last. otherwise: what follows if no word is near. */
typedef const char *setting_value_next(const void *context, uint32_t index);
bool setting_value_fail_unknown(char *reason, const char *what, struct bytes word,
                                setting_value_next *next, const void *context,
                                const char *otherwise);

/* ---- setting_value.c: values ---- */

/* Where a value was given, for errors found later. */
struct setting_origin {
    const char *file_name; /* NULL: not from a file */
    uint32_t line;
    bool is_argument; /* the command line */
};

/* Words given for a setting. */
struct setting_input {
    struct settings *settings; /* a draft, or being initialised */
    const struct setting *setting;
    const struct bytes *words;
    size_t count;
    const struct setting_origin *origin;
    char *reason;
};
/* Set one setting from the words after its name. On false the settings may be partly changed, but
 * still own all their strings; reason (SETTING_ERROR_MAX) says what is allowed. */
MUST_CHECK bool setting_value_assign(const struct setting_input *input);
/* The same of a setting of several words, from a line of them. */
MUST_CHECK bool setting_value_assign_text(const struct setting_input *input, struct bytes line);
/* The setting's string; NULL: it is no string. */
char **setting_value_string(struct settings *settings, const struct setting *setting);
/* Replace *slot, a string of the settings, by a copy of text; "" becomes NULL. An equal string
 * keeps its address. false: no memory, and *slot is unchanged. */
MUST_CHECK bool setting_value_replace(struct settings *settings, char **slot, struct bytes text);
/* Is this string of a draft borrowed from the original? */
bool setting_value_is_borrowed(const struct settings *settings, char *const *slot);
/* A terminated copy, owned by the caller; NULL: no memory. */
MUST_CHECK static inline char *setting_value_copy(struct bytes text) {
    return memory_copy_text(text.at, text.size);
}

/* ---- setting_board.c ---- */

MUST_CHECK bool setting_board_init(struct settings *settings);
MUST_CHECK bool setting_board_assign_layout(const struct setting_input *input);
MUST_CHECK bool setting_board_assign_rule(const struct setting_input *input);
MUST_CHECK bool setting_board_assign_default(const struct setting_input *input);
/* Set the layouts of the options and the default. false: error says which line names a missing
 * layout. */
MUST_CHECK bool setting_board_resolve(struct settings *settings, char *error);
/* The same from rule *next on. false: call it again for the errors after this one. */
MUST_CHECK bool setting_board_resolve_from(struct settings *settings, uint32_t *next, char *error);
/* Set all lines of a setting that repeats (layouts, options of boards, keys of players) of a draft from a text. If all layouts are set and the
 * options are not, call setting_board_repeat_rules before setting_board_resolve. */
MUST_CHECK bool setting_board_replace(const struct setting_input *input);
/* Give a draft options of its own, equal to the original's. false: no memory. */
MUST_CHECK bool setting_board_repeat_rules(struct settings *draft, char *reason);
/* Free the layouts and options that a draft shares with nobody, or those that the draft replaced. */
void setting_board_drop_own(struct settings *draft);
void setting_board_drop_replaced(struct settings *original, const struct settings *draft);
/* Free the layouts and options from these indices on. */
void setting_board_truncate(struct settings *settings, uint32_t layout_count, uint32_t rule_count);

/* ---- setting_table.c ---- */

/* Find a setting of Redis that is in no other table, in any case. */
MUST_CHECK bool setting_table_redis_find(struct bytes name, struct setting_redis_place *place);
/* Note that it was given, with these values. false: they cannot be ignored. */
MUST_CHECK bool setting_table_redis_ignore(struct settings *settings,
                                           const struct setting_redis_place *place,
                                           const struct bytes *values, size_t count, char *reason);

/* ---- settings.c ---- */

/* A draft is a copy to change. It shares the existing strings, layouts and options (boards borrow
 * them); new layouts and options are appended, or CONFIG SET replaces all of them. */
void settings_draft_begin(struct settings *draft, struct settings *original);
/* Replace the original by the draft if is_fine, otherwise drop the draft. Returns is_fine. */
bool settings_draft_end(struct settings *draft, bool is_fine);

#endif
