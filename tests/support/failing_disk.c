#include "tests/support/failing_disk.h"

#include <errno.h>
#include <stdatomic.h>

static struct {
    enum failure failure;
    uint64_t nth;
    uint64_t count; /* calls that fail, from the nth on */
    atomic_bool is_healed;
    atomic_uint_least64_t calls;
    atomic_uint_least64_t syncs;
} state;

static bool is_hit(uint64_t call) {
    return call >= state.nth && call - state.nth < state.count && !state.is_healed;
}

/* Does this call go on? false: it fails, and errno is set. */
static bool may_go_on_as(uint64_t call) {
    if (!is_hit(call) || state.failure == FAILURE_NONE || state.failure == FAILURE_SHORT) {
        return true;
    }
    errno = state.failure == FAILURE_ENOSPC ? ENOSPC : state.failure == FAILURE_EINTR ? EINTR : EIO;
    return false;
}

/* Count a call. */
static uint64_t count_call(void) {
    return atomic_fetch_add(&state.calls, 1) + 1;
}

static bool may_go_on(void) {
    return may_go_on_as(count_call());
}

/* Of what is to be written or read, the part that shall be. */
static size_t part_of(size_t size, uint64_t call) {
    return state.failure == FAILURE_SHORT && is_hit(call) && size > 1 ? size / 2 : size;
}

static int failing_open_at(int directory, const char *name, int flags, mode_t mode) {
    return may_go_on() ? disk_system.open_at(directory, name, flags, mode) : -1;
}

static int plain_close(int fd) {
    return disk_system.close(fd);
}

static ssize_t failing_write(int fd, const void *bytes, size_t size) {
    uint64_t call = count_call();
    if (may_go_on_as(call)) {
        return disk_system.write(fd, bytes, part_of(size, call));
    }
    if (state.failure == FAILURE_CRASH && call == state.nth) {
        ssize_t written = disk_system.write(fd, bytes, size / 2);
        (void)written;
        errno = EIO;
    }
    return -1;
}

static ssize_t failing_read_at(int fd, void *bytes, size_t size, off_t offset) {
    uint64_t call = count_call();
    return may_go_on_as(call) ? disk_system.read_at(fd, bytes, part_of(size, call), offset) : -1;
}

static int failing_sync_contents(int fd) {
    state.syncs++;
    return may_go_on() ? disk_system.sync_contents(fd) : -1;
}

static int failing_sync(int fd) {
    state.syncs++;
    return may_go_on() ? disk_system.sync(fd) : -1;
}

static int failing_truncate(int fd, off_t size) {
    return may_go_on() ? disk_system.truncate(fd, size) : -1;
}

static int failing_rename_at(int directory, const char *from, const char *to) {
    return may_go_on() ? disk_system.rename_at(directory, from, to) : -1;
}

static int failing_unlink_at(int directory, const char *name) {
    return may_go_on() ? disk_system.unlink_at(directory, name) : -1;
}

static int failing_make_directory_at(int directory, const char *name, mode_t mode) {
    return may_go_on() ? disk_system.make_directory_at(directory, name, mode) : -1;
}

static int failing_size(int fd, uint64_t *size) {
    /* Nor is fstat. */
    bool is_told = may_go_on() || state.failure == FAILURE_EINTR;
    return is_told ? disk_system.size(fd, size) : -1;
}

static int failing_lock(int fd) {
    return may_go_on() ? disk_system.lock(fd) : -1;
}

static int failing_list(int directory, disk_visit_name *visit, void *context) {
    /* readdir is not interrupted. */
    bool is_listed = may_go_on() || state.failure == FAILURE_EINTR;
    return is_listed ? disk_system.list(directory, visit, context) : -1;
}

static int failing_write_back(int fd, uint64_t offset, uint64_t size, bool is_waiting) {
    return may_go_on() ? disk_system.write_back(fd, offset, size, is_waiting) : -1;
}

static const struct disk disk_failing = {
    .open_at = failing_open_at,
    .close = plain_close,
    .write = failing_write,
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
    state.failure = failure;
    state.nth = nth;
    state.count = count;
    state.is_healed = false;
    state.calls = 0;
    state.syncs = 0;
    disk = &disk_failing;
}

void failing_disk_begin(enum failure failure, uint64_t nth) {
    failing_disk_begin_for(failure, nth, failure == FAILURE_CRASH ? UINT64_MAX : 1);
}

void failing_disk_heal(void) {
    state.is_healed = true;
}

uint64_t failing_disk_end(void) {
    disk = &disk_system;
    return state.calls;
}

uint64_t failing_disk_syncs(void) {
    return state.syncs;
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
    disk = &quick;
}
