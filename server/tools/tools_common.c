/* What the tools share: see tools.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <uv.h>

#include "codec/memory.h"
#include "server/durability/snapshot.h"
#include "server/system/disk.h"
#include "server/tools/tools.h"

bool tools_complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "leaderboard-server: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return false;
}

bool tools_sync_parent(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t size = slash != NULL ? (size_t)(slash - path) : 0;
    char *parent = memory_allocate(size + 2);
    if (parent == NULL) {
        errno = ENOMEM;
        return false;
    }
    memcpy(parent, path, size);
    memcpy(parent + size, size > 0 ? "" : slash != NULL ? "/" : ".", size > 0 ? 1 : 2);
    int fd = disk_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0);
    bool is_synced = fd >= 0 && disk_sync_directory(fd);
    disk_close(fd);
    memory_free(parent);
    return is_synced;
}

int64_t tools_now_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}

/* ---- a registry as a snapshot ---- */

static void tools_common_ignore(void *context) {
    (void)context;
}

static bool tools_common_write_all(struct snapshot *snapshot, int64_t now_us) {
    if (!snapshot_begin(snapshot, now_us)) {
        return false;
    }
    for (;;) {
        (void)!snapshot_step(snapshot, UINT64_MAX, 0, now_us);
        worker_wait(&snapshot->worker);
        switch (snapshot_take_outcome(snapshot)) {
        case SNAPSHOT_NOTHING:
            break;
        case SNAPSHOT_IS_WALKED:
            snapshot_finish(snapshot, SNAPSHOT_NO_JOURNAL);
            break;
        case SNAPSHOT_DONE:
            return true;
        case SNAPSHOT_ABORTED:
            return false;
        }
    }
}

static bool tools_common_write_on_loop(struct snapshot *snapshot, int64_t now_us) {
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) {
        return false;
    }
    bool is_ready = snapshot_init(snapshot, &loop);
    bool is_done = is_ready && tools_common_write_all(snapshot, now_us);
    if (is_ready) {
        snapshot_deinit(snapshot);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
    return is_done;
}

bool tools_save(struct registry *registry, struct store *store, int64_t now_us) {
    struct snapshot *snapshot = memory_allocate_zeroed(sizeof *snapshot);
    if (snapshot == NULL) {
        return false;
    }
    snapshot->registry = registry;
    snapshot->store = store;
    snapshot->changed = tools_common_ignore;
    bool is_done = tools_common_write_on_loop(snapshot, now_us);
    memory_free(snapshot);
    return is_done;
}
