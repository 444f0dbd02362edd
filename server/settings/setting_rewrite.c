/* CONFIG REWRITE: writes the current settings into the file they came from.
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
#include "server/settings/setting_private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/buffer.h"
#include "server/system/disk.h"

#define SIGNATURE "# Written by CONFIG REWRITE:"

struct rewrite {
    const struct settings *settings;
    struct bytes text; /* of the old file */
    bool is_changed[SETTINGS_MAX];
    uint32_t line_count[SETTINGS_MAX]; /* lines of each setting seen so far */
    bool has_signature;
    struct buffer out;
};

static bool setting_rewrite_fail(char *error, const char *why) {
    return setting_fail(error, "Rewriting config file: %s", why);
}

/* ---- What to write ---- */

/* Read the current file; a missing one counts as empty. The caller frees the text. */
static bool setting_rewrite_read_before(const char *path, char **text, size_t *size, char *error) {
    char why[SETTING_ERROR_MAX];
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return true;
    }
    return setting_file_read(path, text, size, why) || setting_rewrite_fail(error, why);
}

/* Does every line of this setting have the same value in both? */
static bool setting_rewrite_is_equal(const struct settings *a, const struct settings *b,
                                     const struct setting *setting) {
    char text_a[SETTING_VALUE_MAX];
    char text_b[SETTING_VALUE_MAX];
    size_t size_a = 0;
    size_t size_b = 0;
    for (uint32_t i = 0;; i++) {
        bool has_a = setting_print_line(a, setting, i, text_a, &size_a);
        bool has_b = setting_print_line(b, setting, i, text_b, &size_b);
        if (!has_a || !has_b) {
            return has_a == has_b;
        }
        if (size_a != size_b || memcmp(text_a, text_b, size_a) != 0) {
            return false;
        }
    }
}

/* Find the settings whose value in the file differs from the current one. */
static bool setting_rewrite_find_changes(struct rewrite *rewrite, char *error) {
    struct settings before;
    char why[SETTING_ERROR_MAX];
    if (!settings_init(&before)) {
        return setting_rewrite_fail(error, "out of memory");
    }
    if (!settings_load_text(&before, rewrite->text, rewrite->settings->file_path, why)) {
        settings_deinit(&before);
        return setting_rewrite_fail(error, why);
    }
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        rewrite->is_changed[setting - setting_table] =
            !setting_rewrite_is_equal(&before, rewrite->settings, setting);
    }
    settings_deinit(&before);
    return true;
}

/* line->words[0] is the setting's name; value is the text that should follow it. */
static bool setting_rewrite_is_same_value(const struct setting_words *line, struct bytes value) {
    struct setting_words wanted = {.count = 0};
    char reason[SETTING_ERROR_MAX];
    if (!setting_words_split(value, &wanted, reason) || line->count != wanted.count + 1) {
        return false;
    }
    for (size_t i = 0; i < wanted.count; i++) {
        if (!bytes_equal(line->words[i + 1], wanted.words[i])) {
            return false;
        }
    }
    return true;
}

static void setting_rewrite_put_setting(struct rewrite *rewrite, const struct setting *setting,
                                        struct bytes value) {
    buffer_append_bytes(&rewrite->out, bytes_from_text(setting->name));
    buffer_append_bytes(&rewrite->out, BYTES(" "));
    buffer_append_bytes(&rewrite->out, value);
    buffer_append_bytes(&rewrite->out, BYTES("\n"));
}

/* Write the old line, or the setting's current value, or nothing if it has no more lines. */
static void setting_rewrite_put_line(struct rewrite *rewrite, struct bytes line,
                                     struct bytes line_with_end) {
    struct setting_words words = {.count = 0};
    char reason[SETTING_ERROR_MAX];
    char text[SETTING_VALUE_MAX];
    size_t size;
    /* The whole text was loaded before: every line can be split and has a known name. */
    CHECK(setting_words_split(line, &words, reason));
    const struct setting *setting = setting_find(words.words[0]);
    CHECK(setting != NULL);
    if (!rewrite->is_changed[setting - setting_table]) {
        buffer_append_bytes(&rewrite->out, line_with_end);
        return;
    }
    uint32_t index = rewrite->line_count[setting - setting_table]++;
    if (!setting_print_line(rewrite->settings, setting, index, text, &size)) {
        return;
    }
    struct bytes value = {.at = text, .size = size};
    if (setting_rewrite_is_same_value(&words, value)) {
        buffer_append_bytes(&rewrite->out, line_with_end);
    } else {
        setting_rewrite_put_setting(rewrite, setting, value);
    }
}

static void setting_rewrite_put_lines(struct rewrite *rewrite) {
    struct bytes rest = rewrite->text;
    struct bytes line;
    const char *begin = rest.at;
    while (bytes_take_line(&rest, &line)) {
        struct bytes with_end = {.at = begin, .size = (size_t)(rest.at - begin)};
        begin = rest.at;
        if (!setting_words_is_silent(line)) {
            setting_rewrite_put_line(rewrite, line, with_end);
            continue;
        }
        buffer_append_bytes(&rewrite->out, with_end);
        rewrite->has_signature |= bytes_equal(line, BYTES(SIGNATURE));
    }
}

/* Append the changed settings that have no line yet, or too few. */
static void setting_rewrite_put_new_lines(struct rewrite *rewrite) {
    char text[SETTING_VALUE_MAX];
    size_t size;
    for (const struct setting *setting = setting_table; setting->name != NULL; setting++) {
        uint32_t index = rewrite->line_count[setting - setting_table];
        for (; rewrite->is_changed[setting - setting_table] &&
               setting_print_line(rewrite->settings, setting, index, text, &size);
             index++) {
            const struct buffer *out = &rewrite->out;
            if (out->size > 0 && out->at[out->size - 1] != '\n') {
                buffer_append_bytes(&rewrite->out, BYTES("\n"));
            }
            if (!rewrite->has_signature) {
                buffer_append_bytes(&rewrite->out, BYTES(SIGNATURE "\n"));
                rewrite->has_signature = true;
            }
            setting_rewrite_put_setting(rewrite, setting, (struct bytes){.at = text, .size = size});
        }
    }
}

/* ---- How to write it ---- */

/* Copy the old file's mode and owner. A new file stays readable only by its owner, because it may
 * contain a password. */
static bool setting_rewrite_copy_rights(int fd, const char *path) {
    struct stat before;
    if (stat(path, &before) != 0) {
        return errno == ENOENT;
    }
    /* Only root may give files away; without that the new file is owned by us, which is harmless.
     */
    int unused = fchown(fd, before.st_uid, before.st_gid);
    (void)unused;
    return fchmod(fd, before.st_mode & 07777) == 0;
}

static bool setting_rewrite_write_temporary(int fd, const char *path, const struct buffer *text) {
    return setting_rewrite_copy_rights(fd, path) && disk_write_all(fd, text->at, text->size) &&
           disk_sync(fd);
}

/* The directory is opened before the rename, so that afterwards only its fsync can fail. */
static int setting_rewrite_open_directory(const char *path) {
    char directory[PATH_MAX];
    const char *slash = strrchr(path, '/');
    CHECK(slash != NULL);
    size_t size = slash == path ? 1 : (size_t)(slash - path);
    snprintf(directory, sizeof directory, "%.*s", (int)size, path);
    return open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* On false the temporary file is removed. */
bool setting_file_replace(const char *path, const struct buffer *text) {
    char temporary[PATH_MAX + 16];
    snprintf(temporary, sizeof temporary, "%s.XXXXXX", path);
    int directory = setting_rewrite_open_directory(path);
    if (directory < 0) {
        return false;
    }
    bool is_replaced = false;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd >= 0) {
        is_replaced =
            setting_rewrite_write_temporary(fd, path, text) && rename(temporary, path) == 0;
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

static bool setting_rewrite_write_changes(struct rewrite *rewrite, char *error) {
    setting_rewrite_put_lines(rewrite);
    setting_rewrite_put_new_lines(rewrite);
    if (rewrite->out.is_broken) {
        return setting_rewrite_fail(error, "out of memory");
    }
    return setting_file_replace(rewrite->settings->file_path, &rewrite->out) ||
           setting_rewrite_fail(error, strerror(errno));
}

bool settings_rewrite(const struct settings *settings, char *error) {
    if (settings->file_path == NULL) {
        return setting_fail(error, "The server is running without a config file");
    }
    struct rewrite rewrite = {.settings = settings};
    char *text = NULL;
    size_t size = 0;
    buffer_init(&rewrite.out, 0);
    bool is_fine = setting_rewrite_read_before(settings->file_path, &text, &size, error);
    rewrite.text = (struct bytes){.at = text, .size = size};
    is_fine = is_fine && setting_rewrite_find_changes(&rewrite, error) &&
              setting_rewrite_write_changes(&rewrite, error);
    buffer_deinit(&rewrite.out);
    memory_free(text);
    return is_fine;
}

bool settings_is_written(const struct settings *settings, const char *name) {
    char error[SETTING_ERROR_MAX], *text = NULL;
    struct settings before;
    size_t size = 0;
    bool is_same = false;
    if (settings->file_path != NULL &&
        setting_file_read(settings->file_path, &text, &size, error) && settings_init(&before)) {
        const struct bytes lines = {.at = text, .size = size};
        is_same = settings_load_text(&before, lines, settings->file_path, error) &&
                  setting_rewrite_is_equal(&before, settings, setting_find(bytes_from_text(name)));
        settings_deinit(&before);
    }
    memory_free(text);
    return is_same;
}
