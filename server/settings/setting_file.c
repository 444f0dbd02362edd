/* Settings from a file, from stdin and from the command line, and back into the file.
 *
 *     leaderboard-server leaderboard.conf --port 7000 --bind 127.0.0.1 ::1
 *                        1. the file      2. its options, in order
 *
 * All of them are applied to one draft: an error anywhere changes nothing. */
#include "server/settings/setting_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/buffer.h"
#include "server/system/disk.h"

enum { FILE_SIZE_MAX = 8 * 1024 * 1024, READ_STEP = 64 * 1024 };

/* ---- Errors ---- */

/* Put "leaderboard.conf:12: " or "option --port: " in front of the reason. is_known: the name is put in
 * front of a file's reason, too. */
static bool setting_file_fail_at(char *error, const struct setting_origin *origin,
                                 struct bytes name, bool is_known, const char *reason) {
    if (origin->is_argument) {
        return setting_value_fail(error, "option --%s: %s", bytes_show(name).text, reason);
    }
    return setting_value_fail(error, "%s:%u: %s%s%s",
                              setting_value_show_path(origin->file_name).text, origin->line,
                              is_known ? bytes_show(name).text : "", is_known ? ": " : "", reason);
}

static const char *setting_file_next_setting_name(const void *context, uint32_t index) {
    (void)context;
    return setting_table[index].name;
}

/* words[0] is the name. */
static bool setting_file_assign_line(struct settings *settings, const struct bytes *words,
                                     size_t count, const struct setting_origin *origin,
                                     char *error) {
    char reason[SETTING_ERROR_MAX];
    const struct setting *setting = settings_find(words[0]);
    struct setting_input input = {.settings = settings,
                                  .setting = setting,
                                  .words = words + 1,
                                  .count = count - 1,
                                  .origin = origin,
                                  .reason = reason};
    struct setting_redis_place place;
    bool is_of_redis = setting == NULL && setting_table_redis_find(words[0], &place);
    bool is_fine = setting != NULL ? setting_value_assign(&input)
                   : is_of_redis
                       ? setting_table_redis_ignore(settings, &place, words + 1, count - 1, reason)
                       : setting_value_fail_unknown(reason, "unknown setting", words[0],
                                                    setting_file_next_setting_name, NULL, "");
    bool has_other_name = setting != NULL && !origin->is_argument;
    struct bytes name = has_other_name ? bytes_from_text(setting->name) : words[0];
    return is_fine ||
           setting_file_fail_at(error, origin, name, setting != NULL || is_of_redis, reason);
}

/* ---- Text ---- */

/* With errors, every error is counted and told, or printed there, a line each, and the lines after it
 * are read, too. */
struct errors {
    settings_tell_error *tell; /* NULL: out */
    FILE *out;
    uint32_t count;
    bool is_used[SETTINGS_MAX];
};

static void setting_file_print_error(struct errors *errors, const char *error) {
    if (errors->tell != NULL) {
        errors->tell(error);
    } else {
        fprintf(errors->out, "%s\n", error);
    }
    errors->count++;
}

static bool setting_file_load_text(struct settings *settings, struct bytes text,
                                   const char *file_name, struct errors *errors, char *error) {
    struct setting_origin origin = {.file_name = file_name};
    struct bytes line;
    settings->is_save_begun = false;
    while (bytes_take_line(&text, &line)) {
        origin.line++;
        struct setting_words words = {.count = 0};
        char reason[SETTING_ERROR_MAX];
        if (setting_value_is_silent_line(line) ||
            (setting_value_split_line(line, &words, reason)
                 ? setting_file_assign_line(settings, words.words, words.count, &origin, error)
                 : setting_file_fail_at(error, &origin, BYTES(""), false, reason))) {
            const struct setting *setting =
                errors != NULL && words.count > 0 ? settings_find(words.words[0]) : NULL;
            if (setting != NULL) {
                errors->is_used[setting - setting_table] = true;
            }
            continue;
        }
        if (errors == NULL) {
            return false;
        }
        setting_file_print_error(errors, error);
    }
    return true;
}

bool setting_file_apply_text(struct settings *settings, struct bytes text, const char *file_name,
                             char *error) {
    struct settings draft;
    settings_draft_begin(&draft, settings);
    return settings_draft_end(&draft, setting_file_load_text(&draft, text, file_name, NULL, error));
}

/* ---- Files ---- */

static bool setting_file_fail_to_read(char *error, const char *file_name, const char *why) {
    return setting_value_fail(error, "cannot read %s: %s", setting_value_show_path(file_name).text,
                              why);
}

/* Read everything from fd into *text, which the caller frees even after a failure. */
static bool setting_file_read_all(int fd, const char *file_name, char **text, size_t *size,
                                  char *error) {
    size_t capacity = 0;
    for (;;) {
        if (capacity - *size < READ_STEP) {
            capacity = 2 * capacity + READ_STEP;
            char *grown = memory_resize(*text, capacity);
            if (grown == NULL) {
                return setting_value_fail(error, "out of memory");
            }
            *text = grown;
        }
        ssize_t got = read(fd, *text + *size, capacity - *size);
        if (got == 0) {
            return true;
        }
        if (got > 0) {
            *size += (size_t)got;
        } else if (errno != EINTR) {
            return setting_file_fail_to_read(error, file_name, strerror(errno));
        }
        if (*size > FILE_SIZE_MAX) {
            return setting_file_fail_to_read(error, file_name, "it is larger than 8 MiB");
        }
    }
}

bool setting_file_read(const char *path, char **text, size_t *size, char *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return setting_file_fail_to_read(error, path, strerror(errno));
    }
    bool is_fine = setting_file_read_all(fd, path, text, size, error);
    close(fd);
    return is_fine;
}

/* path NULL: stdin. */
static bool setting_file_load(struct settings *settings, const char *path,
                              settings_tell_error *tell, char *error) {
    struct errors errors = {.tell = tell};
    const char *name = path != NULL ? path : "stdin";
    char *text = NULL;
    size_t size = 0;
    struct stat status;
    char absolute[PATH_MAX];
    bool is_read = path != NULL ? setting_file_read(path, &text, &size, error)
                                : setting_file_read_all(STDIN_FILENO, name, &text, &size, error);
    bool is_fine = is_read && setting_file_load_text(settings, (struct bytes){text, size}, name,
                                                     tell != NULL ? &errors : NULL, error);
    memory_free(text);
    if (errors.count > 0) {
        error[0] = '\0';
        return false;
    }
    /* Where CONFIG REWRITE writes: an absolute path, because a daemon changes its directory, with symbolic links
     * resolved, because a rename would replace the link. A pipe cannot be rewritten. */
    if (is_fine && path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
        realpath(path, absolute) != NULL) {
        is_fine =
            setting_value_replace(settings, &settings->file_path, bytes_from_text(absolute)) ||
            setting_value_fail(error, "out of memory");
    }
    return is_fine;
}

/* ---- The command line ---- */

static bool setting_file_is_option(const char *argument) {
    return argument[0] == '-' && argument[1] == '-';
}

/* Load one option: its own words ("--port", or "--port 7000" as one argument) and the value_count
 * arguments after it. */
static bool setting_file_load_option(struct settings *settings, const char *option,
                                     char *const *values, int value_count, char *error) {
    struct setting_origin origin = {.is_argument = true};
    struct setting_words own = {.count = 0};
    struct bytes words[SETTING_WORDS_MAX];
    char reason[SETTING_ERROR_MAX];
    struct bytes text = bytes_from_text(option + 2);
    if (!setting_value_split_line(text, &own, reason)) {
        return setting_file_fail_at(error, &origin, text, false, reason);
    }
    if (own.count == 0) {
        return setting_file_fail_at(error, &origin, text, false, "a setting's name is needed");
    }
    size_t count = own.count;
    if (count + (size_t)value_count > SETTING_WORDS_MAX) {
        return setting_file_fail_at(error, &origin, own.words[0], false, "too many values");
    }
    memcpy(words, own.words, count * sizeof words[0]);
    for (int i = 0; i < value_count; i++) {
        words[count++] = bytes_from_text(values[i]);
    }
    if (count == 1 && settings_find(words[0]) != NULL) {
        return setting_file_fail_at(error, &origin, words[0], false, "a value is needed");
    }
    return setting_file_assign_line(settings, words, count, &origin, error);
}

static bool setting_file_is_stdin(const char *argument) {
    return strcmp(argument, "-") == 0;
}

static bool setting_file_load_arguments(struct settings *settings, int argc, char **argv,
                                        settings_tell_error *tell, char *error) {
    int first = 1;
    bool reads_stdin = false;
    if (first < argc && argv[first][0] != '-') {
        if (!setting_file_load(settings, argv[first++], tell, error)) {
            return false;
        }
    } else if (first < argc && setting_file_is_stdin(argv[first])) {
        reads_stdin = true;
        first++;
    }
    if (first < argc && setting_file_is_stdin(argv[argc - 1])) {
        reads_stdin = true;
        argc--;
    }
    if (reads_stdin && !setting_file_load(settings, NULL, tell, error)) {
        return false;
    }
    settings->is_save_begun = false;
    for (int next; first < argc; first = next) {
        if (!setting_file_is_option(argv[first])) {
            return setting_value_fail(
                error,
                "argument '%s': only the first argument may be a file, and options "
                "begin with --name",
                bytes_show(bytes_from_text(argv[first])).text);
        }
        next = first + 1;
        while (next < argc && !setting_file_is_option(argv[next])) {
            next++;
        }
        if (!setting_file_load_option(settings, argv[first], argv + first + 1, next - first - 1,
                                      error)) {
            return false;
        }
    }
    return true;
}

bool setting_file_apply_arguments(struct settings *settings, int argc, char **argv,
                                  settings_tell_error *tell, char *error) {
    struct settings draft;
    settings_draft_begin(&draft, settings);
    return settings_draft_end(&draft, setting_file_load_arguments(&draft, argc, argv, tell, error));
}

static void setting_file_hide(char *text) {
    size_t size = strlen(text);
    memset(text, '\0', size);
    text[0] = size > 0 ? '*' : '\0';
}

void setting_file_hide_arguments(int argc, char **argv) {
    bool is_hidden = false;
    for (int i = 1; i < argc; i++) {
        struct setting_words own = {.count = 0};
        char reason[SETTING_ERROR_MAX];
        if (!setting_file_is_option(argv[i])) {
            if (is_hidden) {
                setting_file_hide(argv[i]);
            }
            continue;
        }
        bool is_setting =
            setting_value_split_line(bytes_from_text(argv[i] + 2), &own, reason) && own.count > 0;
        const struct setting *setting = is_setting ? settings_find(own.words[0]) : NULL;
        is_hidden = setting != NULL && ((setting->flags & SETTING_SECRET) != 0 ||
                                        setting->kind.type == SETTING_TYPE_USER);
        if (is_hidden && own.count > 1) {
            setting_file_hide(argv[i] + 2);
        }
    }
}

/* ---- checking a file ---- */

/* Of a file with settings of Redis that are ignored: what is used, and what is ignored, and why. */
static void setting_file_print_ignored(const struct settings *settings, const char *path,
                                       const struct errors *errors) {
    struct setting_redis_place place = {.row = NULL};
    struct bytes name;
    bool has_more = setting_table_redis_next_ignored(settings, &place, &name);
    if (!has_more) {
        return;
    }
    fprintf(errors->out, "%s: used:", path);
    for (size_t i = 0; setting_table[i].name != NULL; i++) {
        fprintf(errors->out, "%s%s", errors->is_used[i] ? " " : "",
                errors->is_used[i] ? setting_table[i].name : "");
    }
    while (has_more) {
        const struct setting_redis *row = place.row;
        fprintf(errors->out, "\n%s: ignored (%s):", path, row->why);
        do {
            fprintf(errors->out, " %.*s", (int)name.size, name.at);
            has_more = setting_table_redis_next_ignored(settings, &place, &name);
        } while (has_more && place.row == row);
    }
    fprintf(errors->out, "\n");
}

bool setting_file_check(const char *path, settings_check_more *check, FILE *out) {
    struct settings settings;
    struct errors errors = {.out = out};
    char error[SETTING_ERROR_MAX];
    char *text = NULL;
    size_t size = 0;
    if (!settings_init(&settings)) {
        fprintf(out, "out of memory\n");
        return false;
    }
    if (!setting_file_read(path, &text, &size, error)) {
        setting_file_print_error(&errors, error);
    } else {
        const struct bytes lines = {.at = text, .size = size};
        uint32_t next = 0;
        (void)!setting_file_load_text(&settings, lines, path, &errors, error);
        uint32_t count_before = errors.count;
        while (!setting_board_resolve_from(&settings, &next, error)) {
            setting_file_print_error(&errors, error);
        }
        /* What concerns several settings, once each of them is right. */
        if (errors.count == count_before && !settings_finish(&settings, error)) {
            setting_file_print_error(&errors, error);
        }
    }
    if (errors.count == 0 && check != NULL && !check(&settings, error)) {
        setting_file_print_error(&errors, error);
    }
    setting_file_print_ignored(&settings, path, &errors);
    memory_free(text);
    settings_deinit(&settings);
    if (errors.count == 0) {
        fprintf(out, "%s: no errors\n", path);
    }
    return errors.count == 0;
}

/* ---- CONFIG REWRITE: the current settings into the file they came from ----
 *
 *     # players wait at most            # players wait at most
 *     timeout 30               ->       timeout 60
 *     maxclients 1k                     maxclients 1k
 *                                       # Written by CONFIG REWRITE:
 *                                       loglevel debug
 *
 * The file is read again now, not taken as it was at start: a line that was edited in the meantime
 * is kept if it has the current value. A setting whose current value is that of the file (or the
 * default) is left alone, including its spelling. */

#define SIGNATURE "# Written by CONFIG REWRITE:"

struct rewrite {
    const struct settings *settings;
    struct bytes text; /* of the old file */
    bool is_changed[SETTINGS_MAX];
    uint32_t line_count[SETTINGS_MAX]; /* lines of each setting seen so far */
    bool has_signature;
    struct buffer out;
};

static bool setting_file_fail_rewrite(char *error, const char *why) {
    return setting_value_fail(error, "Rewriting config file: %s", why);
}

/* ---- What to write ---- */

/* Does every line of this setting have the same value in both? */
static bool setting_file_is_equal(const struct settings *a, const struct settings *b,
                                  const struct setting *setting) {
    char text_a[SETTING_VALUE_MAX];
    char text_b[SETTING_VALUE_MAX];
    size_t size_a = 0;
    size_t size_b = 0;
    for (uint32_t i = 0;; i++) {
        bool has_a = setting_value_print_line(a, setting, i, text_a, &size_a);
        bool has_b = setting_value_print_line(b, setting, i, text_b, &size_b);
        if (!has_a || !has_b) {
            return has_a == has_b;
        }
        if (size_a != size_b || memcmp(text_a, text_b, size_a) != 0) {
            return false;
        }
    }
}

/* Find the settings whose value in the file differs from the current one. */
static bool setting_file_find_changes(struct rewrite *rewrite, char *error) {
    struct settings before;
    char why[SETTING_ERROR_MAX];
    if (!settings_init(&before)) {
        return setting_file_fail_rewrite(error, "out of memory");
    }
    if (!setting_file_apply_text(&before, rewrite->text, rewrite->settings->file_path, why)) {
        settings_deinit(&before);
        return setting_file_fail_rewrite(error, why);
    }
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        rewrite->is_changed[setting - setting_table] =
            !setting_file_is_equal(&before, rewrite->settings, setting);
    }
    settings_deinit(&before);
    return true;
}

static void setting_file_put_setting(struct rewrite *rewrite, const struct setting *setting,
                                     struct bytes value) {
    buffer_append_bytes(&rewrite->out, bytes_from_text(setting->name));
    buffer_append_bytes(&rewrite->out, BYTES(" "));
    buffer_append_bytes(&rewrite->out, value);
    buffer_append_bytes(&rewrite->out, BYTES("\n"));
}

/* Write the old line, or the setting's current value, or nothing if it has no more lines. */
static void setting_file_put_line(struct rewrite *rewrite, struct bytes line,
                                  struct bytes line_with_end) {
    struct setting_words words = {.count = 0};
    char reason[SETTING_ERROR_MAX];
    char text[SETTING_VALUE_MAX];
    size_t size;
    /* The whole text was loaded before: every line can be split, and is a setting's or ignored. */
    CHECK(setting_value_split_line(line, &words, reason));
    const struct setting *setting = settings_find(words.words[0]);
    if (setting == NULL || !rewrite->is_changed[setting - setting_table]) {
        buffer_append_bytes(&rewrite->out, line_with_end);
        return;
    }
    uint32_t index = rewrite->line_count[setting - setting_table]++;
    if (!setting_value_print_line(rewrite->settings, setting, index, text, &size)) {
        return;
    }
    struct bytes value = {.at = text, .size = size};
    struct setting_words wanted = {.count = 0};
    bool is_same =
        setting_value_split_line(value, &wanted, reason) && words.count == wanted.count + 1;
    for (size_t i = 0; i < wanted.count && is_same; i++) {
        is_same = bytes_equal(words.words[i + 1], wanted.words[i]);
    }
    if (is_same) {
        buffer_append_bytes(&rewrite->out, line_with_end);
    } else {
        setting_file_put_setting(rewrite, setting, value);
    }
}

static void setting_file_put_lines(struct rewrite *rewrite) {
    struct bytes rest = rewrite->text;
    struct bytes line;
    const char *begin = rest.at;
    while (bytes_take_line(&rest, &line)) {
        struct bytes with_end = {.at = begin, .size = (size_t)(rest.at - begin)};
        begin = rest.at;
        if (!setting_value_is_silent_line(line)) {
            setting_file_put_line(rewrite, line, with_end);
            continue;
        }
        buffer_append_bytes(&rewrite->out, with_end);
        rewrite->has_signature |= bytes_equal(line, BYTES(SIGNATURE));
    }
    /* The changed settings that have no line yet, or too few. */
    char text[SETTING_VALUE_MAX];
    size_t size;
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        uint32_t index = rewrite->line_count[setting - setting_table];
        for (; rewrite->is_changed[setting - setting_table] &&
               setting_value_print_line(rewrite->settings, setting, index, text, &size);
             index++) {
            const struct buffer *out = &rewrite->out;
            if (out->size > 0 && out->at[out->size - 1] != '\n') {
                buffer_append_bytes(&rewrite->out, BYTES("\n"));
            }
            if (!rewrite->has_signature) {
                buffer_append_bytes(&rewrite->out, BYTES(SIGNATURE "\n"));
                rewrite->has_signature = true;
            }
            setting_file_put_setting(rewrite, setting, (struct bytes){.at = text, .size = size});
        }
    }
}

/* ---- How to write it ---- */

/* On false the temporary file is removed. */
bool setting_file_replace(const char *path, const struct buffer *text) {
    char temporary[PATH_MAX + 16];
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    CHECK(slash != NULL);
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    snprintf(parent, sizeof parent, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    /* It is opened before the rename, so that afterwards only its fsync can fail. */
    int directory = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0) {
        return false;
    }
    bool is_replaced = false;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd >= 0) {
        /* The old file's mode and owner. A new file stays readable only by its owner, because it may contain a password. Only
         * root may give files away; without that the new file is owned by us, which is harmless. */
        struct stat before;
        bool is_new = stat(path, &before) != 0;
        int unused = is_new ? 0 : fchown(fd, before.st_uid, before.st_gid);
        (void)unused;
        bool has_rights = is_new ? errno == ENOENT : fchmod(fd, before.st_mode & 07777) == 0;
        is_replaced = has_rights && disk_write_all(fd, text->at, text->size) && disk_sync(fd) &&
                      rename(temporary, path) == 0;
        if (!is_replaced) {
            int why = errno;
            unlink(temporary);
            errno = why;
        }
        disk_close(fd);
    }
    bool is_fine = is_replaced && disk_sync_directory(directory);
    disk_close(directory);
    return is_fine;
}

bool setting_file_rewrite(const struct settings *settings, char *error) {
    if (settings->file_path == NULL) {
        return setting_value_fail(error, "The server is running without a config file");
    }
    struct rewrite rewrite = {.settings = settings};
    char *text = NULL;
    size_t size = 0;
    buffer_init(&rewrite.out, 0);
    char why[SETTING_ERROR_MAX];
    /* A missing file counts as empty. */
    bool is_fine = (access(settings->file_path, F_OK) != 0 && errno == ENOENT) ||
                   setting_file_read(settings->file_path, &text, &size, why) ||
                   setting_file_fail_rewrite(error, why);
    rewrite.text = (struct bytes){.at = text, .size = size};
    is_fine = is_fine && setting_file_find_changes(&rewrite, error);
    if (is_fine) {
        setting_file_put_lines(&rewrite);
        is_fine = rewrite.out.is_broken ? setting_file_fail_rewrite(error, "out of memory")
                                        : setting_file_replace(settings->file_path, &rewrite.out) ||
                                              setting_file_fail_rewrite(error, strerror(errno));
    }
    buffer_deinit(&rewrite.out);
    memory_free(text);
    return is_fine;
}

bool setting_file_is_written(const struct settings *settings, const char *name) {
    char error[SETTING_ERROR_MAX], *text = NULL;
    struct settings before;
    size_t size = 0;
    bool is_same = false;
    if (settings->file_path != NULL &&
        setting_file_read(settings->file_path, &text, &size, error) && settings_init(&before)) {
        const struct bytes lines = {.at = text, .size = size};
        is_same = setting_file_apply_text(&before, lines, settings->file_path, error) &&
                  setting_file_is_equal(&before, settings, settings_find(bytes_from_text(name)));
        settings_deinit(&before);
    }
    memory_free(text);
    return is_same;
}
