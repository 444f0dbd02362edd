#include "tests/support/failing_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

struct failing {
    enum failure failure;
    uint64_t nth;
    uint64_t count; /* calls that fail, from the nth on */
    atomic_bool is_healed;
    atomic_uint_least64_t calls;
    atomic_uint_least64_t syncs;
    _Atomic enum failing_call hit;
};

static struct failing own;
static struct failing *state = &own;

static bool is_hit(uint64_t call) {
    return call >= state->nth && call - state->nth < state->count && !state->is_healed;
}

/* Does this call go on? false: it fails, and errno is set. */
static bool may_go_on_as(uint64_t call) {
    if (!is_hit(call) || state->failure == FAILURE_NONE || state->failure == FAILURE_SHORT ||
        state->failure == FAILURE_FULL) {
        return true;
    }
    errno = state->failure == FAILURE_ENOSPC  ? ENOSPC
            : state->failure == FAILURE_EINTR ? EINTR
                                              : EIO;
    return false;
}

/* Of a call that takes room on the disk: is there none? */
static bool is_full_for(uint64_t call) {
    bool is_full = state->failure == FAILURE_FULL && is_hit(call);
    errno = is_full ? ENOSPC : errno;
    return is_full;
}

static uint64_t count_call(enum failing_call kind) {
    uint64_t call = atomic_fetch_add(&state->calls, 1) + 1;
    if (call == state->nth && !state->is_healed) {
        state->hit = kind;
    }
    return call;
}

static bool may_go_on(enum failing_call kind) {
    return may_go_on_as(count_call(kind));
}

/* Of what is to be written or read, the part that shall be. */
static size_t part_of(size_t size, uint64_t call) {
    return state->failure == FAILURE_SHORT && is_hit(call) && size > 1 ? size / 2 : size;
}

/* What goes on goes on there. */
static const struct disk *below = &disk_system;

static int failing_open_at(int directory, const char *name, int flags, mode_t mode) {
    uint64_t call = count_call(FAILING_OPEN);
    if ((flags & O_CREAT) != 0 && is_full_for(call)) {
        return -1;
    }
    return may_go_on_as(call) ? below->open_at(directory, name, flags, mode) : -1;
}

static int plain_close(int fd) {
    return below->close(fd);
}

/* Of a write: how much of it shall be done. is_done false: and then it fails. */
static size_t written_part(size_t size, bool *is_done) {
    uint64_t call = count_call(FAILING_WRITE);
    if (is_full_for(call)) {
        /* The last room is filled first. */
        bool is_last_room = call == state->nth && state->count > 1 && size > 1;
        *is_done = is_last_room;
        return is_last_room ? size / 2 : 0;
    }
    *is_done = may_go_on_as(call);
    if (*is_done) {
        return part_of(size, call);
    }
    return state->failure == FAILURE_CRASH && call == state->nth ? size / 2 : 0;
}

/* offset: NULL: where the last write ended. */
static ssize_t write_part(int fd, const void *bytes, size_t size, const off_t *offset) {
    bool is_done;
    size_t part = written_part(size, &is_done);
    int error = errno;
    ssize_t written = -1;
    if (part > 0 || is_done) {
        written = offset != NULL ? below->write_at(fd, bytes, part, *offset)
                                 : below->write(fd, bytes, part);
    }
    errno = is_done ? errno : error;
    return is_done ? written : -1;
}

static ssize_t failing_write(int fd, const void *bytes, size_t size) {
    return write_part(fd, bytes, size, NULL);
}

static ssize_t failing_write_at(int fd, const void *bytes, size_t size, off_t offset) {
    return write_part(fd, bytes, size, &offset);
}

static ssize_t failing_read_at(int fd, void *bytes, size_t size, off_t offset) {
    uint64_t call = count_call(FAILING_READ);
    return may_go_on_as(call) ? below->read_at(fd, bytes, part_of(size, call), offset) : -1;
}

static int failing_sync_contents(int fd) {
    state->syncs++;
    return may_go_on(FAILING_SYNC_CONTENTS) ? below->sync_contents(fd) : -1;
}

static int failing_sync(int fd) {
    state->syncs++;
    return may_go_on(FAILING_SYNC) ? below->sync(fd) : -1;
}

static int failing_truncate(int fd, off_t size) {
    return may_go_on(FAILING_TRUNCATE) ? below->truncate(fd, size) : -1;
}

static int failing_rename_at(int directory, const char *from, const char *to) {
    return may_go_on(FAILING_RENAME) ? below->rename_at(directory, from, to) : -1;
}

static int failing_unlink_at(int directory, const char *name) {
    return may_go_on(FAILING_UNLINK) ? below->unlink_at(directory, name) : -1;
}

static int failing_make_directory_at(int directory, const char *name, mode_t mode) {
    uint64_t call = count_call(FAILING_MAKE_DIRECTORY);
    bool may_make = !is_full_for(call) && may_go_on_as(call);
    return may_make ? below->make_directory_at(directory, name, mode) : -1;
}

static int failing_size(int fd, uint64_t *size) {
    /* Nor is fstat. */
    bool is_told = may_go_on(FAILING_SIZE) || state->failure == FAILURE_EINTR;
    return is_told ? below->size(fd, size) : -1;
}

static int failing_lock(int fd) {
    return may_go_on(FAILING_LOCK) ? below->lock(fd) : -1;
}

static int failing_list(int directory, disk_visit_name *visit, void *context) {
    /* readdir is not interrupted. */
    bool is_listed = may_go_on(FAILING_LIST) || state->failure == FAILURE_EINTR;
    return is_listed ? below->list(directory, visit, context) : -1;
}

static int failing_write_back(int fd, uint64_t offset, uint64_t size, bool is_waiting) {
    return may_go_on(FAILING_WRITE_BACK) ? below->write_back(fd, offset, size, is_waiting) : -1;
}

static const struct disk disk_failing = {
    .open_at = failing_open_at,
    .close = plain_close,
    .write = failing_write,
    .write_at = failing_write_at,
    .read_at = failing_read_at,
    .sync_contents = failing_sync_contents,
    .sync = failing_sync,
    .truncate = failing_truncate,
    .rename_at = failing_rename_at,
    .unlink_at = failing_unlink_at,
    .make_directory_at = failing_make_directory_at,
    .size = failing_size,
    .lock = failing_lock,
    .list = failing_list,
    .write_back = failing_write_back,
};

void failing_disk_begin_for(enum failure failure, uint64_t nth, uint64_t count) {
    state->failure = failure;
    state->nth = nth;
    state->count = count;
    state->is_healed = false;
    state->calls = 0;
    state->syncs = 0;
    state->hit = FAILING_NOTHING;
    disk = &disk_failing;
}

void failing_disk_begin(enum failure failure, uint64_t nth) {
    failing_disk_begin_for(failure, nth, failure == FAILURE_CRASH ? UINT64_MAX : 1);
}

void failing_disk_heal(void) {
    state->is_healed = true;
}

uint64_t failing_disk_end(void) {
    disk = below;
    return state->calls;
}

void failing_disk_share(void) {
    void *shared =
        mmap(NULL, sizeof *state, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    state = shared;
}

enum failing_call failing_disk_hit(void) {
    return state->hit;
}

uint64_t failing_disk_syncs(void) {
    return state->syncs;
}

static int sync_nothing(int fd) {
    (void)fd;
    return 0;
}

static int write_back_nothing(int fd, uint64_t offset, uint64_t size, bool is_waiting) {
    (void)fd;
    (void)offset;
    (void)size;
    (void)is_waiting;
    return 0;
}

void quick_disk_begin(void) {
    static struct disk quick;
    quick = disk_system;
    quick.sync = sync_nothing;
    quick.sync_contents = sync_nothing;
    quick.write_back = write_back_nothing;
    below = &quick;
    disk = &quick;
}
