/* Opening, locking, and replacing the manifest. See store.h. */
#include "server/durability/store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/durability/journal_file.h"
#include "server/durability/snapshot_file.h"
#include "server/system/log.h"

#define MANIFEST_NEW_NAME STORE_MANIFEST_NAME ".new"
#define MANIFEST_TITLE    "leaderboard manifest 1\n"

/* ---- names ---- */

static const char *const kind_names[] = {[STORE_BASE] = "base", [STORE_JOURNAL] = "journal"};

struct store_name store_name(enum store_kind kind, uint64_t number) {
    struct store_name name;
    snprintf(name.text, sizeof name.text, "leaderboard.%" PRIu64 ".%s", number, kind_names[kind]);
    return name;
}

int store_open_file(const struct store *store, enum store_kind kind, uint64_t number, char *path) {
    if (store->is_file) {
        snprintf(path, STORE_PATH_MAX + STORE_NAME_MAX, "%s", store->path);
        return disk_open(AT_FDCWD, store->path, O_RDONLY, 0);
    }
    const struct store_name name = store_name(kind, number);
    snprintf(path, STORE_PATH_MAX + STORE_NAME_MAX, "%s/%s", store->path, name.text);
    return disk_open(store->directory, name.text, O_RDONLY, 0);
}

/* Text that is consumed from the front. */
struct cursor {
    struct bytes text;
    size_t at;
};

static bool store_take_text(struct cursor *cursor, const char *wanted) {
    size_t size = strlen(wanted);
    if (cursor->text.size - cursor->at < size ||
        memcmp(cursor->text.at + cursor->at, wanted, size) != 0) {
        return false;
    }
    cursor->at += size;
    return true;
}

static bool store_parse_number(struct cursor *cursor, uint64_t *number) {
    size_t end = cursor->at;
    while (end < cursor->text.size && cursor->text.at[end] >= '0' && cursor->text.at[end] <= '9') {
        end++;
    }
    struct bytes digits = {.at = cursor->text.at + cursor->at, .size = end - cursor->at};
    cursor->at = end;
    return bytes_parse_u64(digits, number);
}

static bool store_take_name(struct cursor *cursor, enum store_kind kind, uint64_t *number) {
    return store_take_text(cursor, "leaderboard.") && store_parse_number(cursor, number) &&
           *number > 0 && store_take_text(cursor, ".") && store_take_text(cursor, kind_names[kind]);
}

bool store_parse_name(const char *name, enum store_kind *kind, uint64_t *number) {
    for (int i = STORE_BASE; i <= STORE_JOURNAL; i++) {
        struct cursor cursor = {.text = bytes_from_text(name)};
        *kind = (enum store_kind)i;
        if (store_take_name(&cursor, *kind, number) && cursor.at == cursor.text.size) {
            return true;
        }
    }
    return false;
}

bool store_is_named(const struct store_state *state, enum store_kind kind, uint64_t number) {
    if (kind == STORE_BASE) {
        return state->base_number == number;
    }
    for (uint32_t i = 0; i < state->journal_count; i++) {
        if (state->journals[i].number == number) {
            return true;
        }
    }
    return false;
}

/* ---- the manifest's text ---- */

static size_t store_print_checksum(char *out, struct bytes lines) {
    return (size_t)snprintf(out, 32, "checksum %016" PRIx64 "\n",
                            XXH3_64bits(lines.at, lines.size));
}

size_t store_print_manifest(char *out, const struct store_state *state) {
    CHECK(state->journal_count <= STORE_JOURNALS_MAX);
    size_t size = sizeof(MANIFEST_TITLE) - 1;
    memcpy(out, MANIFEST_TITLE, size);
    if (state->base_number != 0) {
        size += (size_t)snprintf(
            out + size, STORE_MANIFEST_MAX - size, "base %s sequence %" PRIu64 "\n",
            store_name(STORE_BASE, state->base_number).text, state->base_sequence);
    }
    for (uint32_t i = 0; i < state->journal_count; i++) {
        const struct store_journal *journal = &state->journals[i];
        size += (size_t)snprintf(
            out + size, STORE_MANIFEST_MAX - size, "journal %s first %" PRIu64 "\n",
            store_name(STORE_JOURNAL, journal->number).text, journal->first_sequence);
    }
    return size + store_print_checksum(out + size, (struct bytes){.at = out, .size = size});
}

/* Parse all lines before the checksum. *at: offset of the first bad line, or of the checksum. */
static bool store_take_lines(struct cursor *cursor, struct store_state *state, size_t *at) {
    *at = 0;
    if (!store_take_text(cursor, MANIFEST_TITLE)) {
        return false;
    }
    *at = cursor->at;
    if (store_take_text(cursor, "base ")) {
        if (!store_take_name(cursor, STORE_BASE, &state->base_number) ||
            !store_take_text(cursor, " sequence ") ||
            !store_parse_number(cursor, &state->base_sequence) || !store_take_text(cursor, "\n")) {
            return false;
        }
        *at = cursor->at;
    }
    while (store_take_text(cursor, "journal ")) {
        /* Parse the line of a journal; it must be valid after the journals parsed so far. */
        struct store_journal journal;
        if (state->journal_count == STORE_JOURNALS_MAX ||
            !store_take_name(cursor, STORE_JOURNAL, &journal.number) ||
            !store_take_text(cursor, " first ") ||
            !store_parse_number(cursor, &journal.first_sequence) ||
            !store_take_text(cursor, "\n")) {
            return false;
        }
        if (state->journal_count > 0) {
            const struct store_journal *before = &state->journals[state->journal_count - 1];
            if (journal.number <= before->number ||
                journal.first_sequence < before->first_sequence) {
                return false;
            }
        }
        state->journals[state->journal_count++] = journal;

        *at = cursor->at;
    }
    return true;
}

bool store_parse_manifest(struct bytes text, struct store_state *state, char *error) {
    struct cursor cursor = {.text = text};
    size_t at;
    *state = (struct store_state){0};
    if (!store_take_lines(&cursor, state, &at)) {
        snprintf(error, DISK_ERROR_MAX, "is damaged at offset %zu: not a manifest line", at);
        return false;
    }
    char checksum[32];
    store_print_checksum(checksum, (struct bytes){.at = text.at, .size = at});
    if (!store_take_text(&cursor, checksum) || cursor.at != text.size) {
        snprintf(error, DISK_ERROR_MAX,
                 "is damaged at offset %zu: the checksum of the lines before should be here", at);
        return false;
    }
    return true;
}

/* ---- setting ---- */

enum store_set_status store_replace(int directory, const char *name, const char *text,
                                    size_t size) {
    char new_name[STORE_NAME_MAX];
    snprintf(new_name, sizeof new_name, "%s.new", name);
    int fd = disk_open(directory, new_name, O_WRONLY | O_CREAT | O_TRUNC, 0640);
    bool is_written = fd >= 0 && disk_write_all(fd, text, size) && disk_sync(fd);
    disk_close(fd);
    bool is_renamed = false;
    if (is_written && disk_sync_directory(directory)) {
        int result;
        do {
            result = disk->rename_at(directory, new_name, name);
        } while (result != 0 && errno == EINTR);
        is_renamed = result == 0;
    }
    if (!is_renamed) {
        int error = errno;
        disk->unlink_at(directory, new_name);
        errno = error;
        return STORE_SET_FAILED;
    }
    return disk_sync_directory(directory) ? STORE_SET : STORE_SET_UNKNOWN;
}

enum store_set_status store_set(struct store *store, const struct store_state *state) {
    char text[STORE_MANIFEST_MAX];
    size_t size = store_print_manifest(text, state);
    enum store_set_status status = store_replace(store->directory, STORE_MANIFEST_NAME, text, size);
    if (status != STORE_SET) {
        return status;
    }
    store->state = *state;
    store->has_manifest = true;
    return STORE_SET;
}

static bool store_remove_name(const struct store *store, const char *name) {
    int result;
    do {
        result = disk->unlink_at(store->directory, name);
    } while (result != 0 && errno == EINTR);
    return result == 0 || errno == ENOENT;
}

bool store_remove(struct store *store, enum store_kind kind, uint64_t number) {
    CHECK(!store_is_named(&store->state, kind, number));
    return store_remove_name(store, store_name(kind, number).text);
}

bool store_discard(const struct store *store, enum store_kind kind, uint64_t number) {
    return store_remove_name(store, store_name(kind, number).text);
}

/* ---- keeping ---- */

struct kept_name {
    char text[sizeof STORE_KEPT_NAME "/" + STORE_NAME_MAX];
};
static struct kept_name store_kept_name(const char *name) {
    struct kept_name kept;
    snprintf(kept.text, sizeof kept.text, STORE_KEPT_NAME "/%.*s", STORE_NAME_MAX - 1, name);
    return kept;
}

static bool store_move_to_kept(const struct store *store, const char *name) {
    const struct kept_name kept = store_kept_name(name);
    int result = disk->rename_at(store->directory, name, kept.text);
    if (result != 0 && errno == ENOENT) {
        (void)disk->make_directory_at(store->directory, STORE_KEPT_NAME, 0750);
        result = disk->rename_at(store->directory, name, kept.text);
    }
    return result == 0 || errno == ENOENT;
}

/* What is in kept/. */
struct kept_files {
    const struct store *store;
    uint64_t size;   /* of all */
    uint64_t oldest; /* the smallest number; 0: there is no file */
    time_t written;  /* that one, last */
    struct kept_name name;
};

static void store_see_kept(void *context, const char *name) {
    struct kept_files *files = context;
    enum store_kind kind;
    uint64_t number;
    struct stat status;
    const struct kept_name kept = store_kept_name(name);
    if (!store_parse_name(name, &kind, &number) ||
        fstatat(files->store->directory, kept.text, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return;
    }
    files->size += (uint64_t)status.st_size;
    if (files->oldest == 0 || number < files->oldest) {
        files->oldest = number;
        files->written = status.st_mtime;
        files->name = kept;
    }
}

/* -1: there is no such directory. */
static int store_open_kept(const struct store *store) {
    return disk_open(store->directory, STORE_KEPT_NAME, O_RDONLY | O_DIRECTORY, 0);
}

/* Unless the manifest names it. 0: there is no such file. */
static bool store_remove_unless_named(const struct store *store, enum store_kind kind,
                                      uint64_t number) {
    return number == 0 || store_is_named(&store->state, kind, number) ||
           (store->keep.seconds > 0 ? store_move_to_kept(store, store_name(kind, number).text)
                                    : store_remove_name(store, store_name(kind, number).text));
}

bool store_remove_old(struct store *store, const struct store_state *before) {
    bool is_done = store_remove_unless_named(store, STORE_BASE, before->base_number);
    for (uint32_t i = 0; i < before->journal_count; i++) {
        is_done &= store_remove_unless_named(store, STORE_JOURNAL, before->journals[i].number);
    }
    if (store->keep.seconds > 0) {
        /* Remove the oldest, until the rest is within the limits. */
        int kept = store_open_kept(store);
        struct kept_files files;
        bool is_over = kept >= 0;
        while (is_over) {
            files = (struct kept_files){.store = store};
            is_over = disk->list(kept, store_see_kept, &files) == 0 && files.oldest != 0 &&
                      ((store->keep.size_max > 0 && files.size > store->keep.size_max) ||
                       time(NULL) - files.written > store->keep.seconds) &&
                      store_remove_name(store, files.name.text);
        }
        disk_close(kept);
    }
    return is_done;
}

enum store_set_status store_adopt(struct store *store, const struct store_state *state,
                                  struct journal_file *journal) {
    const struct store_state before = store->state;
    if (journal != NULL && journal->fd < 0) {
        const struct store_journal *last = &state->journals[state->journal_count - 1];
        if (!journal_file_create(journal, store->directory,
                                 store_name(STORE_JOURNAL, last->number).text,
                                 last->first_sequence)) {
            return STORE_SET_FAILED;
        }
    }
    enum store_set_status status = store_set(store, state);
    if (status == STORE_SET) {
        (void)store_remove_old(store, &before);
    }
    return status;
}

uint64_t store_take_number(struct store *store) {
    return store->next_number++;
}

/* ---- opening ---- */

struct opening {
    struct store *store;
    enum store_mode mode;
    char *error;
};

/* errno has the cause. */
static enum store_status store_fail(const struct opening *opening, const char *what,
                                    const char *name) {
    snprintf(opening->error, DISK_ERROR_MAX, "cannot %s %s%s%s: %s", what, opening->store->path,
             name[0] != '\0' ? "/" : "", name, strerror(errno));
    return STORE_FAILED;
}

static enum store_status store_open_directory(const struct opening *opening, const char *parent,
                                              const char *name) {
    struct store *store = opening->store;
    int flags = O_RDONLY | O_DIRECTORY;
    int above = disk_open(AT_FDCWD, parent, flags, 0);
    if (above < 0) {
        snprintf(opening->error, DISK_ERROR_MAX, "cannot open the directory %s: %s", parent,
                 strerror(errno));
        return STORE_FAILED;
    }
    store->directory = disk_open(above, name, flags, 0);
    bool is_wanted = store->directory < 0 && errno == ENOENT && opening->mode >= STORE_CLAIM;
    bool is_made = false;
    while (is_wanted && !is_made) {
        is_made = disk->make_directory_at(above, name, 0750) == 0;
        if (!is_made && errno != EINTR) {
            break;
        }
    }
    if (is_made ||
        (is_wanted && errno == EEXIST)) { /* another server may make it at the same time */
        store->directory = disk_open(above, name, flags, 0);
    }
    disk_close(above);
    store->is_made |= is_made && store->directory >= 0;
    if (store->directory >= 0) {
        return STORE_OK;
    }
    bool is_forbidden = errno == EACCES || errno == EPERM || errno == EROFS || errno == ENOENT;
    bool is_missing = is_wanted ? is_forbidden && opening->mode == STORE_CLAIM : errno == ENOENT;
    enum store_status status =
        store_fail(opening, is_wanted ? "make the directory" : "open the directory", "");
    return is_missing ? STORE_MISSING : status;
}

static enum store_status store_say_in_use(const struct opening *opening) {
    char text[BYTES_INTEGER_TEXT_MAX + 1];
    size_t size;
    uint64_t pid;
    bool is_read = disk_read_all(opening->store->lock, text, sizeof text, 0, &size) && size > 1 &&
                   bytes_parse_u64((struct bytes){.at = text, .size = size - 1}, &pid);
    char who[64] = "";
    if (is_read) {
        snprintf(who, sizeof who, " (pid %" PRIu64 ")", pid);
    }
    snprintf(opening->error, DISK_ERROR_MAX,
             "cannot use %s: another server%s is using it; stop it, or give this one another dir",
             opening->store->path, who);
    return STORE_IN_USE;
}

void store_note_process(const struct store *store) {
    char text[BYTES_INTEGER_TEXT_MAX + 1];
    size_t size = bytes_print_i64(text, getpid());
    text[size++] = '\n';
    int fd = disk_open(store->directory, STORE_LOCK_NAME, O_WRONLY | O_TRUNC, 0);
    bool is_written = fd >= 0 && disk_write_all(fd, text, size);
    disk_close(fd);
    /* The text is only for messages: the lock works without it. */
    if (!is_written) {
        log_write(LOG_WARNING,
                  "cannot write the process id path=%s/" STORE_LOCK_NAME " error=\"%s\"",
                  store->path, strerror(errno));
    }
}

/* Does the name in the directory still stand for the file that is locked? Who abandons a directory removes both, and a
 * lock on what is gone holds off nobody. */
static bool store_is_lock_there(const struct store *store) {
    struct stat held, named;
    return fstat(store->lock, &held) == 0 &&
           fstatat(store->directory, STORE_LOCK_NAME, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

/* *is_gone: the directory or the lock was removed meanwhile, and all is to be opened again. */
static enum store_status store_take_lock(const struct opening *opening, bool *is_gone) {
    struct store *store = opening->store;
    bool is_reading = opening->mode == STORE_READ;
    store->lock = disk_open(store->directory, STORE_LOCK_NAME,
                            is_reading ? O_RDONLY : O_RDWR | O_CREAT, 0640);
    if (store->lock < 0) {
        *is_gone = !is_reading && errno == ENOENT;
        return is_reading && errno == ENOENT ? STORE_OK
                                             : store_fail(opening, "open", STORE_LOCK_NAME);
    }
    if (!disk_lock(store->lock)) {
        return errno == EWOULDBLOCK ? store_say_in_use(opening)
                                    : store_fail(opening, "lock", STORE_LOCK_NAME);
    }
    store->is_locked = true;
    *is_gone = !store_is_lock_there(store);
    if (!is_reading && !*is_gone) {
        store_note_process(store);
    }
    return STORE_OK;
}

/* ---- what is in the directory ---- */

/* What the visitors of the directory's names have found. */
struct sighting {
    const struct store_state *state;
    uint64_t number_max;
    uint32_t found_count;    /* of those that the manifest names */
    struct store_name first; /* the first base or journal seen; "": none */
    disk_visit_name *visit_unnamed;
    void *context;
};

static void store_see_name(void *context, const char *name) {
    struct sighting *sighting = context;
    enum store_kind kind;
    uint64_t number;
    bool is_ours = store_parse_name(name, &kind, &number);
    if (is_ours) {
        sighting->number_max = number > sighting->number_max ? number : sighting->number_max;
        if (sighting->first.text[0] == '\0') {
            sighting->first = store_name(kind, number);
        }
    }
    if (is_ours && store_is_named(sighting->state, kind, number)) {
        sighting->found_count++;
    } else if ((is_ours || strcmp(name, MANIFEST_NEW_NAME) == 0) &&
               sighting->visit_unnamed != NULL) {
        sighting->visit_unnamed(sighting->context, name);
    }
}

bool store_list_unnamed(const struct store *store, disk_visit_name *visit, void *context) {
    struct sighting sighting = {.state = &store->state, .visit_unnamed = visit, .context = context};
    return disk->list(store->directory, store_see_name, &sighting) == 0;
}

static void store_remove_unnamed(void *context, const char *name) {
    const struct store *store = context;
    enum store_kind kind;
    uint64_t number;
    /* A crash may have come between a manifest and the keeping of what it replaced. */
    int kept = store_parse_name(name, &kind, &number) ? store_open_kept(store) : -1;
    disk_close(kept);
    if (kept >= 0 && store_move_to_kept(store, name)) {
        return;
    }
    if (store_remove_name(store, name)) {
        log_write(LOG_NOTICE, "removed a file that no manifest names path=%s/%s", store->path,
                  name);
    } else {
        log_write(LOG_WARNING,
                  "cannot remove a file that no manifest names path=%s/%s error=\"%s\"",
                  store->path, name, strerror(errno));
    }
}

/* Report the first file that the manifest names and that cannot be opened. */
static enum store_status store_say_missing(const struct opening *opening) {
    const struct store *store = opening->store;
    for (uint32_t i = 0; i <= store->state.journal_count; i++) {
        bool is_base = i == store->state.journal_count;
        uint64_t number = is_base ? store->state.base_number : store->state.journals[i].number;
        enum store_kind kind = is_base ? STORE_BASE : STORE_JOURNAL;
        char path[STORE_PATH_MAX + STORE_NAME_MAX];
        int fd = store_open_file(store, kind, number, path);
        disk_close(fd);
        if (fd < 0) {
            snprintf(opening->error, DISK_ERROR_MAX,
                     "%s/" STORE_MANIFEST_NAME " names %s, which is missing: " STORE_ADVICE,
                     store->path, store_name(kind, number).text);
            return STORE_DAMAGED;
        }
    }
    errno = EAGAIN;
    return store_fail(opening, "list", "");
}

/* ---- the manifest at opening ---- */

bool store_begin(struct store *store) {
    struct store_state empty = {0};
    if (store->has_manifest) {
        return true;
    }
    /* The directory's own entry in its parent may be new. */
    int above = disk_open(store->directory, "..", O_RDONLY | O_DIRECTORY, 0);
    bool is_synced = above >= 0 && disk_sync_directory(above);
    disk_close(above);
    return is_synced && store_set(store, &empty) == STORE_SET;
}

enum store_status store_read_manifest(int directory, struct store_state *state, char *reason) {
    char text[STORE_MANIFEST_MAX];
    size_t size;
    int fd = disk_open(directory, STORE_MANIFEST_NAME, O_RDONLY, 0);
    if (fd < 0) {
        bool is_missing = errno == ENOENT;
        snprintf(reason, DISK_ERROR_MAX, "cannot be opened: %s", strerror(errno));
        return is_missing ? STORE_MISSING : STORE_FAILED;
    }
    bool is_read = disk_read_all(fd, text, sizeof text, 0, &size);
    disk_close(fd);
    if (!is_read) {
        snprintf(reason, DISK_ERROR_MAX, "cannot be read: %s", strerror(errno));
        return STORE_FAILED;
    }
    return store_parse_manifest((struct bytes){.at = text, .size = size}, state, reason)
               ? STORE_OK
               : STORE_DAMAGED;
}

static enum store_status store_look_around(const struct opening *opening) {
    struct store *store = opening->store;
    struct sighting sighting = {.state = &store->state};
    if (disk->list(store->directory, store_see_name, &sighting) != 0) {
        return store_fail(opening, "list", "");
    }
    if (!store->has_manifest && (sighting.first.text[0] != '\0' || opening->mode < STORE_CLAIM)) {
        /* There is no manifest: nothing was ever stored here, or it was removed. first: a file seen. */
        const char *path = opening->store->path;
        if (sighting.first.text[0] != '\0') {
            snprintf(opening->error, DISK_ERROR_MAX,
                     "%s/" STORE_MANIFEST_NAME " is missing, but %s is there: " STORE_ADVICE, path,
                     sighting.first.text);
            return STORE_DAMAGED;
        }
        snprintf(opening->error, DISK_ERROR_MAX, "there is no " STORE_MANIFEST_NAME " in %s", path);
        return STORE_MISSING;
    }
    if (sighting.found_count < store->state.journal_count + (store->state.base_number != 0)) {
        return store_say_missing(opening);
    }
    int kept = store_open_kept(store);
    struct sighting sighting_kept = {.state = &store->state};
    bool is_listed = kept < 0 || disk->list(kept, store_see_name, &sighting_kept) == 0;
    disk_close(kept);
    if (!is_listed) {
        return store_fail(opening, "list", STORE_KEPT_NAME);
    }
    uint64_t number_max = sighting_kept.number_max > sighting.number_max ? sighting_kept.number_max
                                                                         : sighting.number_max;
    store->next_number = number_max + 1;
    if (opening->mode >= STORE_CLAIM && !store_list_unnamed(store, store_remove_unnamed, store)) {
        return store_fail(opening, "list", "");
    }
    bool is_begun = opening->mode != STORE_CREATE || store_begin(store);
    return is_begun ? STORE_OK : store_fail(opening, "write", STORE_MANIFEST_NAME);
}

enum store_status store_open(struct store *store, const char *parent, const char *name,
                             enum store_mode mode, char *error) {
    *store = (struct store){.directory = -1, .lock = -1, .next_number = 1};
    const struct opening opening = {.store = store, .mode = mode, .error = error};
    int size = snprintf(store->path, sizeof store->path, "%s/%s", parent, name);
    if (size < 0 || (size_t)size >= sizeof store->path) {
        snprintf(error, DISK_ERROR_MAX, "the path of the directory %.100s is too long", name);
        return STORE_FAILED;
    }
    enum { ATTEMPTS_MAX = 100 };
    enum store_status status = STORE_OK;
    bool is_gone = true;
    for (int i = 0; i < ATTEMPTS_MAX && is_gone; i++) {
        is_gone = false;
        store_close(store);
        status = store_open_directory(&opening, parent, name);
        status = status == STORE_OK ? store_take_lock(&opening, &is_gone) : status;
    }
    status = is_gone && status == STORE_OK ? store_say_in_use(&opening) : status;
    if (status == STORE_OK) {
        char reason[DISK_ERROR_MAX];
        status = store_read_manifest(store->directory, &store->state, reason);
        store->has_manifest = status == STORE_OK;
        if (status == STORE_DAMAGED || status == STORE_FAILED) {
            snprintf(error, DISK_ERROR_MAX, "%s/" STORE_MANIFEST_NAME " %.200s%s", store->path,
                     reason, status == STORE_DAMAGED ? ": " STORE_ADVICE : "");
        } else {
            status = store_look_around(&opening);
        }
    }
    if (status != STORE_OK) {
        store_abandon(store);
    }
    return status;
}

enum store_status store_open_base(struct store *store, const char *path, char *error) {
    *store = (struct store){.directory = -1, .lock = -1, .next_number = 2, .is_file = true};
    struct snapshot_footer footer;
    int size = snprintf(store->path, sizeof store->path, "%s", path);
    if (size < 0 || (size_t)size >= sizeof store->path) {
        snprintf(error, DISK_ERROR_MAX, "the path %.100s is too long", path);
        return STORE_FAILED;
    }
    int fd = disk_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0) {
        snprintf(error, DISK_ERROR_MAX, "cannot open %s: %s", path, strerror(errno));
        return STORE_FAILED;
    }
    bool is_base = snapshot_file_peek(fd, &footer);
    disk_close(fd);
    /* Without its end, reading it says what is wrong, and where. */
    store->state =
        (struct store_state){.base_number = 1, .base_sequence = is_base ? footer.sequence : 0};
    return STORE_OK;
}

void store_abandon(struct store *store) {
    /* Only who holds the lock may remove it: another server may have taken it in the directory that this one made. */
    if (store->is_made && store->is_locked && store_is_lock_there(store)) {
        (void)store_remove_name(store, STORE_LOCK_NAME);
    }
    if (store->is_made) {
        (void)!rmdir(store->path); /* unless it is in use meanwhile */
    }
    store_close(store);
}

void store_close(struct store *store) {
    disk_close(store->lock);
    disk_close(store->directory);
    store->lock = -1;
    store->directory = -1;
    store->is_locked = false;
}
