/* See restore.h. */
#include "server/tools/restore.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/memory.h"
#include "codec/timestamp.h"
#include "server/durability/journal_file.h"
#include "server/durability/snapshot_file.h"
#include "server/durability/store.h"
#include "server/tools/tools.h"

enum {
    FILES_MAX = 65536,
    COPY_SIZE = 1 << 20,
    PATH_SIZE_MAX = STORE_PATH_MAX + 2 * STORE_NAME_MAX
};

/* A base or a journal that was found. */
struct file {
    enum store_kind kind;
    uint64_t number;
    uint64_t sequence; /* the last one of a base, the first one of a journal */
    int64_t time_us;   /* of a base */
    char path[PATH_SIZE_MAX];
};

struct restoring {
    const struct restore_options *options;
    struct file *files; /* in order */
    uint32_t file_count, file_room;
    const char *directory; /* that is being looked at */
    bool is_failed;        /* the error was printed */
    struct store store;    /* the target's */
    struct store_state state;
    char *piece;
    uint64_t last_sequence; /* of what is copied */
    int64_t last_us;
    char path[STORE_PATH_MAX + STORE_NAME_MAX];
};

/* ---- what there is ---- */

static struct file *add_file(struct restoring *restoring) {
    if (restoring->file_count == restoring->file_room) {
        uint32_t room = restoring->file_room > 0 ? 2 * restoring->file_room : 64;
        struct file *files = room <= FILES_MAX ? memory_allocate(room * sizeof *files) : NULL;
        if (files == NULL) {
            restoring->is_failed =
                !tools_complain("out of memory, or more files than %d", FILES_MAX);
            return NULL;
        }
        if (restoring->file_count > 0) {
            memcpy(files, restoring->files, restoring->file_count * sizeof *files);
        }
        memory_free(restoring->files);
        restoring->files = files;
        restoring->file_room = room;
    }
    return &restoring->files[restoring->file_count++];
}

/* What is no whole base, and no journal, is left out: a crash may have left it. */
static bool read_file(int fd, struct file *file) {
    struct snapshot_footer footer;
    if (file->kind == STORE_JOURNAL) {
        return journal_file_peek(fd, &file->sequence);
    }
    if (!snapshot_file_peek(fd, &footer)) {
        return false;
    }
    file->sequence = footer.sequence;
    file->time_us = (int64_t)footer.time_us;
    return true;
}

static void see_path(struct restoring *restoring, const char *path, enum store_kind kind,
                     uint64_t number) {
    struct file found = {.kind = kind, .number = number};
    int fd = disk_open(AT_FDCWD, path, O_RDONLY, 0);
    errno = fd >= 0 ? 0 : errno;
    bool is_one = fd >= 0 && read_file(fd, &found) && strlen(path) < sizeof found.path;
    disk_close(fd);
    struct file *file = is_one ? add_file(restoring) : NULL;
    if (file != NULL) {
        memcpy(found.path, path, strlen(path) + 1);
        *file = found;
    } else if (!is_one && errno != 0 && errno != ENODATA) {
        restoring->is_failed = !tools_complain("cannot read %s: %s", path, strerror(errno));
    } else if (!is_one) {
        fprintf(stderr, "leaderboard-server: %s is not whole: it is left out\n", path);
    }
}

static void see_name(void *context, const char *name) {
    struct restoring *restoring = context;
    enum store_kind kind;
    uint64_t number;
    char path[PATH_SIZE_MAX];
    if (store_parse_name(name, &kind, &number)) {
        int size = snprintf(path, sizeof path, "%s/%s", restoring->directory, name);
        if (size > 0 && (size_t)size < sizeof path) {
            see_path(restoring, path, kind, number);
        }
    }
}

/* Look at a directory, and at those inside it that may have files. A missing one is no error. */
static void look_at(struct restoring *restoring, const char *path, bool has_inner) {
    static const char *const inner[] = {RESTORE_DIRECTORY, STORE_KEPT_NAME,
                                        RESTORE_DIRECTORY "/" STORE_KEPT_NAME};
    char name[PATH_SIZE_MAX];
    int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    restoring->directory = path;
    bool is_missing = fd < 0 && errno == ENOENT;
    if (!is_missing && (fd < 0 || disk->list(fd, see_name, restoring) != 0)) {
        restoring->is_failed = !tools_complain("cannot read %s: %s", path, strerror(errno));
    }
    disk_close(fd);
    for (size_t i = 0; has_inner && i < sizeof inner / sizeof *inner; i++) {
        int size = snprintf(name, sizeof name, "%s/%s", path, inner[i]);
        if (size > 0 && (size_t)size < sizeof name) {
            look_at(restoring, name, false);
        }
    }
}

static int compare_files(const void *left, const void *right) {
    const struct file *a = left;
    const struct file *b = right;
    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool find_files(struct restoring *restoring, const char *source) {
    struct stat status;
    if (stat(source, &status) != 0) {
        return tools_complain("cannot look at %s: %s", source, strerror(errno));
    }
    if (S_ISREG(status.st_mode)) {
        see_path(restoring, source, STORE_BASE, 1);
    } else {
        look_at(restoring, source, true);
    }
    if (restoring->options->journals != NULL) {
        look_at(restoring, restoring->options->journals, true);
    }
    if (restoring->file_count > 0) {
        qsort(restoring->files, restoring->file_count, sizeof *restoring->files, compare_files);
    }
    return !restoring->is_failed;
}

/* ---- which of it ---- */

/* NULL: there is none that is not too late. */
static const struct file *choose_base(const struct restoring *restoring) {
    const struct file *base = NULL;
    for (uint32_t i = 0; i < restoring->file_count; i++) {
        const struct file *file = &restoring->files[i];
        if (file->kind == STORE_BASE && file->time_us <= restoring->options->until_us &&
            (base == NULL || file->time_us >= base->time_us)) {
            base = file;
        }
    }
    return base;
}

/* The journal in which the group after this one is, or begins. -1: there is none. */
static int64_t find_journal(const struct restoring *restoring, uint64_t sequence) {
    int64_t found = -1;
    for (uint32_t i = 0; i < restoring->file_count; i++) {
        const struct file *file = &restoring->files[i];
        if (file->kind == STORE_JOURNAL && file->sequence <= sequence + 1) {
            found = i;
        }
    }
    return found;
}

static bool has_any(const struct restoring *restoring, enum store_kind kind) {
    for (uint32_t i = 0; i < restoring->file_count; i++) {
        if (restoring->files[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* ---- copying ---- */

static bool complain_of_copy(const struct file *file) {
    return tools_complain("cannot copy %s: %s", file->path, strerror(errno));
}

static bool copy_bytes(struct restoring *restoring, int from, int to, uint64_t size) {
    for (uint64_t done = 0; done < size;) {
        size_t wanted = size - done < COPY_SIZE ? (size_t)(size - done) : (size_t)COPY_SIZE;
        if (!disk_read_whole(from, restoring->piece, wanted, done) ||
            !disk_write_all(to, restoring->piece, wanted)) {
            return false;
        }
        done += wanted;
    }
    return disk_sync(to);
}

/* Copy the file's first bytes; *number is that of the copy. */
static bool copy(struct restoring *restoring, const struct file *file, uint64_t size,
                 uint64_t *number) {
    struct store *store = &restoring->store;
    *number = store_take_number(store);
    int from = disk_open(AT_FDCWD, file->path, O_RDONLY, 0);
    int to = from < 0 ? -1
                      : disk_open(store->directory, store_name(file->kind, *number).text,
                                  O_WRONLY | O_CREAT | O_EXCL, 0640);
    bool is_done = to >= 0 && copy_bytes(restoring, from, to, size);
    int error = errno;
    disk_close(from);
    disk_close(to);
    errno = error;
    return is_done || complain_of_copy(file);
}

static bool copy_base(struct restoring *restoring, const struct file *base) {
    uint64_t size = 0;
    int fd = disk_open(AT_FDCWD, base->path, O_RDONLY, 0);
    bool is_open = fd >= 0 && disk->size(fd, &size) == 0;
    disk_close(fd);
    restoring->state.base_sequence = base->sequence;
    restoring->last_sequence = base->sequence;
    restoring->last_us = base->time_us;
    return is_open ? copy(restoring, base, size, &restoring->state.base_number)
                   : complain_of_copy(base);
}

/* How far the journal belongs to it: to the first tick after the time. *is_over: there is one. A torn
 * tail is left out, as at a start. */
static bool measure(struct restoring *restoring, const struct file *file, uint64_t *size,
                    bool *is_over) {
    struct journal_reader reader;
    struct journal_group group;
    int fd = disk_open(AT_FDCWD, file->path, O_RDONLY, 0);
    if (fd < 0) {
        return complain_of_copy(file);
    }
    enum journal_status status = journal_reader_open(&reader, fd, file->path, file->sequence, true);
    *size = JOURNAL_FILE_HEAD;
    while (status == JOURNAL_GROUP && !*is_over) {
        status = journal_reader_next(&reader, &group);
        *is_over = status == JOURNAL_GROUP && (int64_t)group.end_us > restoring->options->until_us;
        if (status == JOURNAL_GROUP && !*is_over) {
            *size = reader.offset;
            restoring->last_sequence = group.sequence;
            restoring->last_us = (int64_t)group.end_us;
        }
    }
    bool is_good = *is_over || status == JOURNAL_END || status == JOURNAL_TORN;
    if (!is_good) {
        (void)tools_complain("%s", reader.error);
    }
    journal_reader_close(&reader);
    return is_good;
}

static bool copy_journal(struct restoring *restoring, const struct file *file, bool *is_over) {
    struct store_state *state = &restoring->state;
    uint64_t size = 0;
    if (file->sequence > restoring->last_sequence + 1) {
        return tools_complain("changes %" PRIu64 " to %" PRIu64 " are missing before %s",
                              restoring->last_sequence + 1, file->sequence - 1, file->path);
    }
    if (state->journal_count == STORE_JOURNALS_MAX - 1) {
        return tools_complain("there are more than %d journals behind the base",
                              STORE_JOURNALS_MAX - 1);
    }
    uint64_t sequence_before = restoring->last_sequence;
    int64_t time_before = restoring->last_us;
    if (!measure(restoring, file, &size, is_over)) {
        return false;
    }
    if (restoring->last_sequence < sequence_before) { /* the base holds all of it */
        restoring->last_sequence = sequence_before;
        restoring->last_us = time_before;
    }
    struct store_journal *journal = &state->journals[state->journal_count++];
    journal->first_sequence = file->sequence;
    return copy(restoring, file, size, &journal->number);
}

static bool copy_all(struct restoring *restoring) {
    const struct file *base = choose_base(restoring);
    if (base == NULL && has_any(restoring, STORE_BASE) && find_journal(restoring, 0) < 0) {
        return tools_complain("every snapshot that is there is after that time");
    }
    if (base != NULL && !copy_base(restoring, base)) {
        return false;
    }
    int64_t first = find_journal(restoring, restoring->last_sequence);
    if (base == NULL && first < 0) {
        return tools_complain("there is neither a snapshot nor a first journal");
    }
    bool is_over = false;
    for (uint32_t i = first >= 0 ? (uint32_t)first : restoring->file_count;
         i < restoring->file_count && !is_over; i++) {
        if (restoring->files[i].kind == STORE_JOURNAL &&
            !copy_journal(restoring, &restoring->files[i], &is_over)) {
            return false;
        }
    }
    return true;
}

/* ---- the target ---- */

static void count_name(void *context, const char *name) {
    (void)name;
    ++*(uint32_t *)context;
}

bool restore_begin_target(const char *target, bool *is_made) {
    uint32_t count = 0;
    *is_made = mkdir(target, 0750) == 0;
    if (!*is_made && errno != EEXIST) {
        return tools_complain("cannot make the directory %s: %s", target, strerror(errno));
    }
    int fd = disk_open(AT_FDCWD, target, O_RDONLY | O_DIRECTORY, 0);
    bool is_listed = fd >= 0 && disk->list(fd, count_name, &count) == 0;
    disk_close(fd);
    if (!is_listed) {
        return tools_complain("cannot use the directory %s: %s", target, strerror(errno));
    }
    return count == 0 ||
           tools_complain("%s is not empty: give an empty or a new directory", target);
}

static void remove_copies(struct restoring *restoring) {
    struct store *store = &restoring->store;
    for (uint64_t number = 1; number < store->next_number; number++) {
        (void)store_remove(store, STORE_BASE, number);
        (void)store_remove(store, STORE_JOURNAL, number);
    }
    store_abandon(store);
}

static bool fill_target(struct restoring *restoring, const char *target) {
    char error[DISK_ERROR_MAX];
    if (store_open(&restoring->store, target, RESTORE_DIRECTORY, STORE_CLAIM, error) != STORE_OK) {
        return tools_complain("%s", error);
    }
    if (!copy_all(restoring)) {
        remove_copies(restoring);
        return false;
    }
    if (store_set(&restoring->store, &restoring->state) == STORE_SET_FAILED) {
        (void)tools_complain("cannot write the manifest: %s", strerror(errno));
        remove_copies(restoring);
        return false;
    }
    store_close(&restoring->store);
    return true;
}

static bool restore(struct restoring *restoring, const char *source, const char *target) {
    bool is_made = false;
    char time[TIMESTAMP_TEXT_MAX];
    if (!find_files(restoring, source) || !restore_begin_target(target, &is_made)) {
        return false;
    }
    if (!fill_target(restoring, target)) {
        if (is_made) {
            (void)rmdir(target);
        }
        return false;
    }
    int size = (int)timestamp_print(time, restoring->last_us);
    printf("%s: restored, %s and %" PRIu32 " journals, as of group %" PRIu64 " (%.*s)\n", target,
           restoring->state.base_number != 0 ? "a base" : "no base", restoring->state.journal_count,
           restoring->last_sequence, size, time);
    return true;
}

bool restore_run(const char *source, const char *target, const struct restore_options *options) {
    struct restoring *restoring = memory_allocate_zeroed(sizeof *restoring);
    bool is_done = false;
    if (restoring != NULL && (restoring->piece = memory_allocate(COPY_SIZE)) != NULL) {
        restoring->options = options;
        is_done = restore(restoring, source, target);
        memory_free(restoring->files);
        memory_free(restoring->piece);
    } else {
        (void)tools_complain("out of memory");
    }
    memory_free(restoring);
    return is_done;
}
