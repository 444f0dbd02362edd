/* Settings from a file, from stdin and from the command line.
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

enum { FILE_SIZE_MAX = 8 * 1024 * 1024, READ_STEP = 64 * 1024 };

/* ---- Errors ---- */

/* Put "leaderboard.conf:12: " or "option --port: " in front of the reason. */
static bool fail_at(char *error, const struct setting_place *place, struct bytes name,
                    const char *text) {
    if (place->is_argument) {
        return setting_fail(error, SETTING_ERROR_MAX, "option --%s: %s", setting_show(name).text,
                            text);
    }
    return setting_fail(error, SETTING_ERROR_MAX, "%s:%u: %s",
                        setting_show_path(place->file_name).text, place->line, text);
}

static const char *next_setting_name(const void *context, uint32_t index) {
    (void)context;
    return setting_table[index].name;
}

static bool fail_unknown(char *error, const struct setting_place *place, struct bytes name) {
    const char *nearest = setting_words_nearest(name, next_setting_name, NULL);
    char text[SETTING_REASON_MAX];
    setting_fail(text, sizeof text, "unknown setting '%s'%s%s%s", setting_show(name).text,
                 nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                 nearest != NULL ? "'?" : "");
    return fail_at(error, place, name, text);
}

/* words[0] is the name. */
static bool assign_line(struct settings *settings, const struct bytes *words, size_t count,
                        const struct setting_place *place, char *error) {
    const struct setting *setting = setting_find(words[0]);
    if (setting == NULL) {
        return fail_unknown(error, place, words[0]);
    }
    char reason[SETTING_REASON_MAX];
    if (setting_value_assign(settings, setting, words + 1, count - 1, place, reason)) {
        return true;
    }
    if (place->is_argument) {
        return fail_at(error, place, words[0], reason);
    }
    char text[SETTING_REASON_MAX + 64];
    setting_fail(text, sizeof text, "%s: %s", setting->name, reason);
    return fail_at(error, place, words[0], text);
}

/* ---- Text ---- */

static bool load_text(struct settings *settings, struct bytes text, const char *file_name,
                      char *error) {
    struct setting_place place = {.file_name = file_name};
    struct setting_words words;
    char reason[SETTING_REASON_MAX];
    struct bytes line;
    settings->is_save_begun = false;
    while (setting_words_next_line(&text, &line)) {
        place.line++;
        if (setting_words_is_silent(line)) {
            continue;
        }
        if (!setting_words_split(line, &words, reason)) {
            return fail_at(error, &place, BYTES(""), reason);
        }
        if (!assign_line(settings, words.words, words.count, &place, error)) {
            return false;
        }
    }
    return true;
}

static bool fail_without_memory(char *error) {
    return setting_fail(error, SETTING_ERROR_MAX, "out of memory");
}

/* Commit the draft if is_fine, otherwise abort it. */
static bool end_draft(struct setting_draft *draft, bool is_fine) {
    if (is_fine) {
        setting_draft_commit(draft);
    } else {
        setting_draft_abort(draft);
    }
    return is_fine;
}

bool settings_load_text(struct settings *settings, struct bytes text, const char *file_name,
                        char *error) {
    struct setting_draft draft;
    if (!setting_draft_begin(&draft, settings)) {
        return fail_without_memory(error);
    }
    return end_draft(&draft, load_text(&draft.settings, text, file_name, error));
}

/* ---- Files ---- */

static bool fail_to_read(char *error, const char *file_name, const char *why) {
    return setting_fail(error, SETTING_ERROR_MAX, "cannot read %s: %s",
                        setting_show_path(file_name).text, why);
}

/* Read everything from fd into *text, which the caller frees even after a failure. */
static bool read_all(int fd, const char *file_name, char **text, size_t *size, char *error) {
    size_t capacity = 0;
    for (;;) {
        if (capacity - *size < READ_STEP) {
            capacity = 2 * capacity + READ_STEP;
            char *grown = memory_resize(*text, capacity);
            if (grown == NULL) {
                return fail_without_memory(error);
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
            return fail_to_read(error, file_name, strerror(errno));
        }
        if (*size > FILE_SIZE_MAX) {
            return fail_to_read(error, file_name, "it is larger than 8 MiB");
        }
    }
}

static bool load_fd(struct settings *settings, int fd, const char *file_name, char *error) {
    char *text = NULL;
    size_t size = 0;
    bool is_fine = read_all(fd, file_name, &text, &size, error) &&
                   load_text(settings, (struct bytes){.at = text, .size = size}, file_name, error);
    memory_free(text);
    return is_fine;
}

bool setting_file_read(const char *path, char **text, size_t *size, char *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail_to_read(error, path, strerror(errno));
    }
    bool is_fine = read_all(fd, path, text, size, error);
    close(fd);
    return is_fine;
}

/* Remember where CONFIG REWRITE writes: an absolute path, because a daemon changes its directory,
 * with symbolic links resolved, because a rename would replace the link. A pipe cannot be
 * rewritten. */
static bool remember_path(struct settings *settings, int fd, const char *path, char *error) {
    struct stat status;
    char absolute[PATH_MAX];
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || realpath(path, absolute) == NULL) {
        return true;
    }
    return setting_value_replace(&settings->file_path, bytes_from_text(absolute)) ||
           fail_without_memory(error);
}

static bool load_file(struct settings *settings, const char *path, char *error) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return fail_to_read(error, path, strerror(errno));
    }
    bool is_fine = load_fd(settings, fd, path, error) && remember_path(settings, fd, path, error);
    close(fd);
    return is_fine;
}

bool settings_load_file(struct settings *settings, const char *path, char *error) {
    struct setting_draft draft;
    if (!setting_draft_begin(&draft, settings)) {
        return fail_without_memory(error);
    }
    return end_draft(&draft, load_file(&draft.settings, path, error));
}

/* ---- The command line ---- */

static bool is_option(const char *argument) {
    return argument[0] == '-' && argument[1] == '-';
}

/* Load one option: its own words ("--port", or "--port 7000" as one argument) and the value_count
 * arguments after it. */
static bool load_option(struct settings *settings, const char *option, char *const *values,
                        int value_count, char *error) {
    struct setting_place place = {.is_argument = true};
    struct setting_words own;
    struct bytes words[SETTING_WORDS_MAX];
    char reason[SETTING_REASON_MAX];
    struct bytes text = bytes_from_text(option + 2);
    if (!setting_words_split(text, &own, reason)) {
        return fail_at(error, &place, text, reason);
    }
    if (own.count == 0) {
        return fail_at(error, &place, text, "a setting's name is needed");
    }
    size_t count = own.count;
    if (count + (size_t)value_count > SETTING_WORDS_MAX) {
        return fail_at(error, &place, own.words[0], "too many values");
    }
    memcpy(words, own.words, count * sizeof words[0]);
    for (int i = 0; i < value_count; i++) {
        words[count++] = bytes_from_text(values[i]);
    }
    if (count == 1 && setting_find(words[0]) != NULL) {
        return fail_at(error, &place, words[0], "a value is needed");
    }
    return assign_line(settings, words, count, &place, error);
}

static bool load_options(struct settings *settings, int argc, char **argv, char *error) {
    settings->is_save_begun = false;
    for (int i = 0; i < argc;) {
        if (!is_option(argv[i])) {
            return setting_fail(error, SETTING_ERROR_MAX,
                                "argument '%s': only the first argument may be a file, and options "
                                "begin with --name",
                                setting_show(bytes_from_text(argv[i])).text);
        }
        int next = i + 1;
        while (next < argc && !is_option(argv[next])) {
            next++;
        }
        if (!load_option(settings, argv[i], argv + i + 1, next - i - 1, error)) {
            return false;
        }
        i = next;
    }
    return true;
}

static bool is_stdin(const char *argument) {
    return strcmp(argument, "-") == 0;
}

static bool load_arguments(struct settings *settings, int argc, char **argv, char *error) {
    int first = 1;
    bool reads_stdin = false;
    if (first < argc && argv[first][0] != '-') {
        if (!load_file(settings, argv[first++], error)) {
            return false;
        }
    } else if (first < argc && is_stdin(argv[first])) {
        reads_stdin = true;
        first++;
    }
    if (first < argc && is_stdin(argv[argc - 1])) {
        reads_stdin = true;
        argc--;
    }
    if (reads_stdin && !load_fd(settings, STDIN_FILENO, "stdin", error)) {
        return false;
    }
    return first >= argc || load_options(settings, argc - first, argv + first, error);
}

bool settings_load_arguments(struct settings *settings, int argc, char **argv, char *error) {
    struct setting_draft draft;
    if (!setting_draft_begin(&draft, settings)) {
        return fail_without_memory(error);
    }
    return end_draft(&draft, load_arguments(&draft.settings, argc, argv, error));
}
