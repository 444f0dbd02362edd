/* A full copy that a master sends, as it becomes the keys and the files. See persistence.h and
 * received.h. */
#include "server/durability/persistence_parts.h"

#include <errno.h>

enum persistence_status persistence_begin_receive(struct persistence *persistence, char *error) {
    struct received *received = &persistence->received;
    persistence_settle(persistence);
    if (persistence->journaling == STOPPED) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "%s", persistence->error);
        return PERSISTENCE_FAILED;
    }
    if (received->state != RECEIVED_NONE || received->is_clearing) {
        return PERSISTENCE_BUSY;
    }
    if (!persistence_open_store(persistence, persistence->settings, error)) {
        return PERSISTENCE_FAILED;
    }
    if (!persistence_has_manifest(persistence)) {
        if (persistence_is_saving(persistence)) {
            return PERSISTENCE_BUSY;
        }
        if (!store_begin(&persistence->store)) {
            snprintf(error, PERSISTENCE_ERROR_MAX, "cannot write the manifest in %s: %s",
                     persistence->store.path, strerror(errno));
            return PERSISTENCE_FAILED;
        }
    }
    if (!received_begin(received, &persistence->store, persistence->registry, persistence->loop)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "out of memory");
        return PERSISTENCE_FAILED;
    }
    return PERSISTENCE_OK;
}

struct received *persistence_received(struct persistence *persistence) {
    return &persistence->received;
}

/* Let it take the place of everything. Not while the files are in use. */
static void persistence_receive_adopt(struct persistence *persistence) {
    struct received *received = &persistence->received;
    persistence_settle(persistence);
    if (persistence->saving != IDLE || persistence->journaling == STOPPED) {
        return;
    }
    if (persistence->journaling == ON && !journal_is_idle(&persistence->journal)) {
        return; /* its threads wake the loop */
    }
    persistence_follow_keep(&persistence->store, persistence->settings);
    persistence_begin_saving(persistence, ADOPTION_ASKED);
    received_adopt(received,
                   persistence->settings->appendonly || persistence->journaling == BROKEN);
}

bool persistence_step_receive(struct persistence *persistence, uint64_t budget_ns) {
    bool has_more = received_step(&persistence->received, budget_ns);
    if (persistence->received.state == RECEIVED_LOADED) {
        persistence_receive_adopt(persistence);
    }
    return has_more;
}

void persistence_abandon_receive(struct persistence *persistence) {
    persistence->is_blocking = true;
    while (persistence->saving == ADOPTING) {
        persistence_finish_adoption(persistence);
        persistence_settle(persistence);
    }
    persistence->is_blocking = false;
    received_clear(&persistence->received);
}
