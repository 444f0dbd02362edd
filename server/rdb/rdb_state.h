/* What is kept beside the keys, bans and durable jobs that are not finished, as blobs of effects
 * (server/durability/effect_bytes.h): auxiliary data in dump files, and LB.APPLYSTATE.
 *
 *     rdb_state_write                           all of it, key by key
 *     rdb_state_check, then rdb_state_apply     a blob, which may come from anybody */
#ifndef SERVER_RDB_STATE_H
#define SERVER_RDB_STATE_H

#include "codec/check.h"
#include "server/durability/effect_bytes.h"
#include "skiplist/keyspace/registry.h"

enum {
    RDB_STATE_VERSION = 1, /* of the auxiliary data */
    RDB_STATE_ERROR_MAX = 96,
};

/* Is there none? */
bool rdb_state_is_empty(const struct registry *registry);
/* All of it in blobs of about 8 KiB, which replace what there is. One at a time in a process. false: no memory, and
 * what was written is of no use. */
MUST_CHECK bool rdb_state_write(struct registry *registry, int64_t time_us,
                                void (*take)(void *context, struct bytes blob), void *context);

enum rdb_state_form {
    RDB_STATE_WHOLE, /* as rdb_state_write makes it: each key in the place of what there is, with all its fields */
    RDB_STATE_CHANGES, /* also parts of keys that are there */
};

/* Is this a blob of this form, with bans of the databases below database_end alone? Nothing changes. *time_us: when
 * it was written, at least 0; *chunk: for rdb_state_apply, as long as the blob. false: why says what is wrong with
 * "the bans". */
MUST_CHECK bool rdb_state_check(struct effect_decoder *decoder, struct bytes blob,
                                enum rdb_state_form form, uint32_t database_end, int64_t *time_us,
                                struct bytes *chunk, char why[static RDB_STATE_ERROR_MAX]);
/* Apply what was checked. What it removes may be gone already. Of RDB_STATE_WHOLE it is never EFFECT_IMPOSSIBLE.
 * Errors: a part is applied. */
MUST_CHECK enum effect_status rdb_state_apply(struct registry *registry,
                                              struct effect_decoder *decoder, struct bytes chunk);
/* Remove at most keys_max of what is kept. true: nothing is left. */
MUST_CHECK bool rdb_state_clear(struct registry *registry, uint32_t keys_max);

#endif
