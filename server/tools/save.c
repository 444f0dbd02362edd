/* See save.h. */
#include "server/tools/save.h"

#include <uv.h>

#include "codec/memory.h"
#include "server/durability/snapshot.h"

static void save_ignore(void *context) {
    (void)context;
}

static bool save_write_all(struct snapshot *snapshot, int64_t now_us) {
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

static bool save_write_on_loop(struct snapshot *snapshot, int64_t now_us) {
    uv_loop_t loop;
    if (uv_loop_init(&loop) != 0) {
        return false;
    }
    bool is_ready = snapshot_init(snapshot, &loop);
    bool is_done = is_ready && save_write_all(snapshot, now_us);
    if (is_ready) {
        snapshot_deinit(snapshot);
    }
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
    return is_done;
}

bool save_registry(struct registry *registry, struct store *store, int64_t now_us) {
    struct snapshot *snapshot = memory_allocate_zeroed(sizeof *snapshot);
    if (snapshot == NULL) {
        return false;
    }
    snapshot->registry = registry;
    snapshot->store = store;
    snapshot->changed = save_ignore;
    bool is_done = save_write_on_loop(snapshot, now_us);
    memory_free(snapshot);
    return is_done;
}
