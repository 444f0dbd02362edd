/* What is kept beside the keys, bans and orders that are not finished, as blobs of effects
 * (server/durability/effect_blob.h): auxiliary data in dump files, and LB.APPLYSTATE. */
#ifndef SERVER_RDB_STATE_H
#define SERVER_RDB_STATE_H

#include "codec/check.h"
#include "skiplist/keyspace/registry.h"

enum {
    RDB_STATE_FIRST = REGISTRY_SYSTEM, /* the databases that hold it, and the one after the last */
    RDB_STATE_END = REGISTRY_HISTORY,
    RDB_STATE_VERSION = 1, /* of the auxiliary data */
};

static inline bool rdb_state_owns(uint32_t database) {
    return database >= RDB_STATE_FIRST && database < RDB_STATE_END;
}
/* Is there none? */
bool rdb_state_is_empty(const struct registry *registry);
/* All of it in blobs of about 64 KiB, which replace what there is. One at a time in a process. false: no memory, and
 * what was written is of no use. */
MUST_CHECK bool rdb_state_write(struct registry *registry, int64_t time_us,
                                void (*take)(void *context, struct bytes blob), void *context);

#endif
