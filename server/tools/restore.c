/* See tools.h. */

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
#include "server/durability/verify.h"
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
    uint64_t reach;    /* of a base that a manifest names, as that has it: the last sequence */
    bool is_damaged;   /* what it says itself counts for nothing */
    char path[PATH_SIZE_MAX];
};

/* A directory that is being looked at, and what its manifest says, if it has one. */
struct source {
    const char *path;
    bool has_manifest;
    struct store_state state;
};

struct restoring {
    const struct restore_options *options;
    struct file *files; /* in order */
    uint32_t file_count, file_room;
    struct source source;
    bool is_of_file;    /* it begins with this backup and no other */
    bool is_failed;     /* the error was printed */
    struct store store; /* the target's */
    struct store_state state;
    char *piece;
    uint64_t last_sequence; /* of what is copied */
    uint64_t last_journal;  /* the highest number of what is copied */
    uint64_t base_number;   /* that of the base that is copied; 0: none */
    int64_t last_us;
    bool is_over; /* a later change was seen than is asked for */
};

/* ---- what there is ---- */

static struct file *restore_add_file(struct restoring *restoring) {
    if (restoring->file_count == restoring->file_room) {
        uint32_t room = restoring->file_room > 0 ? 2 * restoring->file_room : 64;
        struct file *files =
            room <= FILES_MAX ? memory_resize(restoring->files, room * sizeof *files) : NULL;
        if (files == NULL) {
            restoring->is_failed =
                !tools_complain("out of memory, or more files than %d", FILES_MAX);
            return NULL;
        }
        restoring->files = files;
        restoring->file_room = room;
    }
    return &restoring->files[restoring->file_count++];
}

static void restore_see_path(struct restoring *restoring, const char *path, enum store_kind kind,
                             uint64_t number) {
    const struct source *source = &restoring->source;
    bool is_named = source->has_manifest && kind == STORE_BASE;
    struct file found = {.kind = kind,
                         .number = number,
                         .reach = is_named ? source->state.base_sequence : UINT64_MAX};
    if (strlen(path) >= sizeof found.path) {
        restoring->is_failed = !tools_complain("the path %s is too long", path);
        return;
    }
    memcpy(found.path, path, strlen(path) + 1);
    int fd = disk_open(AT_FDCWD, path, O_RDONLY, 0);
    errno = fd >= 0 ? 0 : errno;
    struct snapshot_footer footer;
    bool is_one = fd >= 0 && (kind == STORE_JOURNAL ? journal_file_peek(fd, &found.sequence)
                                                    : snapshot_file_peek(fd, &footer));
    if (is_one && kind == STORE_BASE) {
        found.sequence = footer.sequence;
        found.time_us = (int64_t)footer.time_us;
    }
    disk_close(fd);
    if (!is_one && errno != 0 && errno != ENODATA) {
        restoring->is_failed = !tools_complain("cannot read %s: %s", path, strerror(errno));
        return;
    }
    found.is_damaged = !is_one;
    if (found.is_damaged) {
        /* Did a crash, or does a running server, leave it unfinished? The manifest names only whole ones. */
        bool is_left_out = source->has_manifest && !store_is_named(&source->state, kind, number);
        fprintf(stderr, "leaderboard-server: %s is not whole%s\n", path,
                is_left_out ? ", and no manifest names it: it is left out" : "");
        if (is_left_out) {
            return;
        }
    }
    struct file *file = restore_add_file(restoring);
    if (file != NULL) {
        *file = found;
    }
}

static void restore_see_name(void *context, const char *name) {
    struct restoring *restoring = context;
    enum store_kind kind;
    uint64_t number;
    char path[PATH_SIZE_MAX];
    if (store_parse_name(name, &kind, &number)) {
        int size = snprintf(path, sizeof path, "%s/%s", restoring->source.path, name);
        if (size > 0 && (size_t)size < sizeof path) {
            restore_see_path(restoring, path, kind, number);
        }
    }
}

/* Look at a directory, and at those inside it that may have files. A missing one is no error. */
static void restore_look_at(struct restoring *restoring, const char *path, bool has_inner) {
    static const char *const inner[] = {RESTORE_DIRECTORY, STORE_KEPT_NAME,
                                        RESTORE_DIRECTORY "/" STORE_KEPT_NAME};
    char name[PATH_SIZE_MAX], reason[DISK_ERROR_MAX];
    struct source *source = &restoring->source;
    int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    bool is_missing = fd < 0 && errno == ENOENT;
    *source = (struct source){.path = path};
    enum store_status status =
        fd < 0 ? STORE_MISSING : store_read_manifest(fd, &source->state, reason);
    source->has_manifest = status == STORE_OK;
    if (status == STORE_DAMAGED || status == STORE_FAILED) {
        restoring->is_failed =
            !tools_complain("%s/" STORE_MANIFEST_NAME " %s: what is whole of the other files can "
                            "be restored from a copy without it",
                            path, reason);
    } else if (!is_missing && (fd < 0 || disk->list(fd, restore_see_name, restoring) != 0)) {
        restoring->is_failed = !tools_complain("cannot read %s: %s", path, strerror(errno));
    }
    disk_close(fd);
    for (size_t i = 0; has_inner && i < sizeof inner / sizeof *inner; i++) {
        int size = snprintf(name, sizeof name, "%s/%s", path, inner[i]);
        if (size > 0 && (size_t)size < sizeof name) {
            restore_look_at(restoring, name, false);
        }
    }
}

static int restore_compare_files(const void *left, const void *right) {
    const struct file *a = left;
    const struct file *b = right;
    if (a->sequence != b->sequence) {
        return a->sequence < b->sequence ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static bool restore_find_files(struct restoring *restoring, const char *source) {
    struct stat status;
    if (stat(source, &status) != 0) {
        return tools_complain("cannot look at %s: %s", source, strerror(errno));
    }
    if (S_ISREG(status.st_mode)) {
        restoring->is_of_file = true;
        restore_see_path(restoring, source, STORE_BASE, 1);
        restoring->is_failed |= restoring->file_count > 0 && restoring->files[0].is_damaged;
    } else {
        restore_look_at(restoring, source, true);
    }
    if (restoring->options->journals != NULL) {
        restore_look_at(restoring, restoring->options->journals, true);
    }
    if (restoring->file_count > 0) {
        qsort(restoring->files, restoring->file_count, sizeof *restoring->files,
              restore_compare_files);
    }
    return !restoring->is_failed;
}

/* ---- copying ---- */

static bool restore_complain_of_copy(const struct file *file) {
    return tools_complain("cannot copy %s: %s", file->path, strerror(errno));
}

static bool restore_copy_bytes(struct restoring *restoring, int from, int to) {
    uint64_t size;
    if (disk->size(from, &size) != 0) {
        return false;
    }
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

/* Copy the file; *number is that of the copy, and the result is the copy, to be read. -1: the error was printed. */
static int restore_copy(struct restoring *restoring, const struct file *file, uint64_t *number) {
    struct store *store = &restoring->store;
    *number = store_take_number(store);
    const struct store_name name = store_name(file->kind, *number);
    int from = disk_open(AT_FDCWD, file->path, O_RDONLY, 0);
    int to =
        from < 0 ? -1 : disk_open(store->directory, name.text, O_WRONLY | O_CREAT | O_EXCL, 0640);
    bool is_done = to >= 0 && restore_copy_bytes(restoring, from, to);
    disk_close(from);
    disk_close(to);
    int copied = is_done ? disk_open(store->directory, name.text, O_RDONLY, 0) : -1;
    if (copied < 0) {
        (void)restore_complain_of_copy(file);
    }
    return copied;
}

/* Is the copy (fd, which this takes) whole, and as the file's end was? */
static bool restore_is_base_whole(struct file *base, int fd) {
    struct snapshot_footer footer;
    char error[DISK_ERROR_MAX];
    bool is_whole = verify_blocks(fd, base->path, &footer, error);
    bool is_same = is_whole && footer.sequence == base->sequence;
    base->is_damaged = !is_same;
    return is_same || tools_complain("%s", is_whole ? "the base was replaced meanwhile" : error);
}

/* The latest base that is whole, if there is one: without a damaged one, journals may hold the same. */
static bool restore_copy_base(struct restoring *restoring) {
    for (;;) {
        struct file *base = NULL;
        for (uint32_t i = 0; i < restoring->file_count; i++) {
            struct file *file = &restoring->files[i];
            if (file->kind == STORE_BASE && !file->is_damaged &&
                file->time_us <= restoring->options->until_us &&
                (base == NULL || file->time_us >= base->time_us)) {
                base = file;
            }
        }
        if (base == NULL) {
            return true;
        }
        uint64_t number;
        int fd = restore_copy(restoring, base, &number);
        if (fd < 0) {
            return false;
        }
        if (restore_is_base_whole(base, fd)) {
            restoring->base_number = base->number;
            restoring->state.base_number = number;
            restoring->state.base_sequence = base->sequence;
            restoring->last_sequence = base->sequence;
            restoring->last_us = base->time_us;
            return true;
        }
        if (restoring->is_of_file || !store_remove(&restoring->store, STORE_BASE, number)) {
            return false;
        }
    }
}

/* How far the copied journal (fd, which this takes) belongs to it: to the first tick after the time. */
static bool restore_measure(struct restoring *restoring, const struct file *file, int fd,
                            uint64_t *size) {
    struct journal_reader reader;
    struct journal_group group;
    enum journal_status status =
        journal_file_reader_open(&reader, fd, file->path, file->sequence, true);
    *size = JOURNAL_FILE_HEAD;
    while (status == JOURNAL_GROUP && !restoring->is_over) {
        status = journal_file_reader_next(&reader, &group);
        restoring->is_over =
            status == JOURNAL_GROUP && (int64_t)group.end_us > restoring->options->until_us;
        if (status == JOURNAL_GROUP && !restoring->is_over) {
            *size = reader.offset;
            restoring->last_sequence = group.sequence;
            restoring->last_us = (int64_t)group.end_us;
        }
    }
    /* Torn: does only the last group end too early, as in a journal that was copied while it was written? */
    bool is_good = restoring->is_over || status == JOURNAL_END ||
                   (status == JOURNAL_TORN && reader.torn.is_cut_short);
    if (is_good && status == JOURNAL_TORN) {
        fprintf(stderr,
                "leaderboard-server: %s ends within a group, as after a crash: its last %" PRIu64
                " bytes are left out\n",
                file->path, reader.torn.size);
    } else if (status == JOURNAL_TORN) {
        (void)tools_complain("%s is damaged at offset %" PRIu64 ": %s; `--check DIR --fix` cuts it "
                             "off there, in a copy of the directory",
                             file->path, reader.torn.offset, reader.torn.description);
    } else if (!is_good) {
        (void)tools_complain("%s", reader.error);
    }
    journal_file_reader_close(&reader);
    return is_good;
}

static bool restore_copy_journal(struct restoring *restoring, const struct file *file) {
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
    struct store_journal *journal = &state->journals[state->journal_count];
    int fd = restore_copy(restoring, file, &journal->number);
    if (fd < 0 || !restore_measure(restoring, file, fd, &size)) {
        return false;
    }
    if (restoring->last_sequence < sequence_before) { /* the base holds all of it */
        restoring->last_sequence = sequence_before;
        restoring->last_us = time_before;
    }
    restoring->last_journal =
        file->number > restoring->last_journal ? file->number : restoring->last_journal;
    journal->first_sequence = file->sequence;
    state->journal_count++;
    fd = disk_open(restoring->store.directory, store_name(STORE_JOURNAL, journal->number).text,
                   O_WRONLY, 0);
    bool is_cut = fd >= 0 && disk_truncate(fd, size) && disk_sync(fd);
    disk_close(fd);
    return is_cut || restore_complain_of_copy(file);
}

static bool restore_copy_journals(struct restoring *restoring) {
    int64_t first = -1; /* the journal in which the next group is, or begins */
    bool has_base = false;
    for (uint32_t i = 0; i < restoring->file_count; i++) {
        const struct file *file = &restoring->files[i];
        has_base |= file->kind == STORE_BASE;
        if (file->kind == STORE_JOURNAL && !file->is_damaged &&
            file->sequence <= restoring->last_sequence + 1) {
            first = i;
        }
    }
    if (restoring->state.base_number == 0 && first < 0) {
        return tools_complain(has_base
                                  ? "every snapshot that is there is after that time, or is damaged"
                                  : "there is neither a snapshot nor a first journal");
    }
    for (uint32_t i = first >= 0 ? (uint32_t)first : restoring->file_count;
         i < restoring->file_count && !restoring->is_over; i++) {
        const struct file *file = &restoring->files[i];
        if (file->kind == STORE_JOURNAL && !file->is_damaged &&
            !restore_copy_journal(restoring, file)) {
            return false;
        }
    }
    return true;
}

/* Is nothing left out for no other reason than that a file is damaged? What a damaged base says of its time and group
 * counts for nothing. */
static bool restore_is_complete(struct restoring *restoring) {
    for (uint32_t i = 0; i < restoring->file_count && !restoring->is_over; i++) {
        struct file *file = &restoring->files[i];
        /* Could it, which was not taken, hold changes that are asked for and in none that was? A base holds no more than
         * files with higher numbers; a journal goes on beside the base that is written next. */
        if (file->number <= restoring->last_journal || file->reach <= restoring->last_sequence ||
            (file->kind == STORE_BASE && file->number <= restoring->base_number)) {
            continue;
        }
        int fd = file->is_damaged || file->kind == STORE_JOURNAL
                     ? -1
                     : disk_open(AT_FDCWD, file->path, O_RDONLY, 0);
        if (fd >= 0 ? !restore_is_base_whole(file, fd) : file->is_damaged) {
            return tools_complain("%s is damaged, and may hold changes that no other file has: "
                                  "remove it to restore without them",
                                  file->path);
        }
    }
    return true;
}

/* ---- the target ---- */

static void restore_count_name(void *context, const char *name) {
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
    bool is_listed = fd >= 0 && disk->list(fd, restore_count_name, &count) == 0;
    disk_close(fd);
    if (!is_listed) {
        return tools_complain("cannot use the directory %s: %s", target, strerror(errno));
    }
    return count == 0 ||
           tools_complain("%s is not empty: give an empty or a new directory", target);
}

static void restore_remove_copies(struct restoring *restoring) {
    struct store *store = &restoring->store;
    for (uint64_t number = 1; number < store->next_number; number++) {
        (void)store_remove(store, STORE_BASE, number);
        (void)store_remove(store, STORE_JOURNAL, number);
    }
    store_abandon(store);
}

static bool restore_fill_target(struct restoring *restoring, const char *target) {
    char error[DISK_ERROR_MAX];
    if (store_open(&restoring->store, target, RESTORE_DIRECTORY, STORE_CLAIM, error) != STORE_OK) {
        return tools_complain("%s", error);
    }
    if (restoring->store.has_manifest) {
        store_close(&restoring->store);
        return tools_complain("%s is in use: give an empty or a new directory", target);
    }
    if (!restore_copy_base(restoring) || !restore_copy_journals(restoring) ||
        !restore_is_complete(restoring)) {
        restore_remove_copies(restoring);
        return false;
    }
    if (store_set(&restoring->store, &restoring->state) == STORE_SET_FAILED) {
        (void)tools_complain("cannot write the manifest: %s", strerror(errno));
        restore_remove_copies(restoring);
        return false;
    }
    store_close(&restoring->store);
    return true;
}

static bool restore(struct restoring *restoring, const char *source, const char *target) {
    bool is_made = false;
    char time[TIMESTAMP_TEXT_MAX];
    if (!restore_find_files(restoring, source) || !restore_begin_target(target, &is_made)) {
        return false;
    }
    if (!restore_fill_target(restoring, target)) {
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
