/* See rdb_state.h. */
#include "server/rdb/rdb_state.h"

#include "server/durability/effect_blob.h"
#include "skiplist/keyspace/effect_listener.h"
#include "skiplist/keyspace/key_kind.h"

enum { BLOB_SIZE = 64 * 1024 }; /* about; a ban with all its patterns may be longer */

struct writing {
    const struct registry *registry;
    int64_t time_us;
    struct effect_encoder encoder;
    struct buffer blob;
    void (*take)(void *context, struct bytes blob);
    void *context;
    bool is_failed;
};

static void begin_blob(struct writing *writing) {
    effect_blob_begin(&writing->encoder, &writing->blob, writing->time_us);
}

static void end_blob(struct writing *writing) {
    writing->is_failed |= writing->blob.is_broken;
    if (!writing->is_failed) {
        writing->take(writing->context,
                      (struct bytes){.at = writing->blob.at, .size = writing->blob.size});
    }
}

/* As it replaces what is there. */
static void write_key(void *context, const struct registry_key *key) {
    struct writing *writing = context;
    struct effect effect = {.kind = EFFECT_REMOVE,
                            .key_kind = &key_kind_hash,
                            .database = key->database,
                            .name = registry_name(key),
                            .expire_at_ms = registry_expiry(writing->registry, key),
                            .key = key};
    effect_encode(&writing->encoder, &effect);
    effect.kind = EFFECT_FILL;
    struct effect_fill fill = {.whole = effect};
    struct effect each;
    while (effect_fill_next(&fill, &each)) {
        effect_encode(&writing->encoder, &each);
    }
    if (writing->blob.size > BLOB_SIZE) {
        end_blob(writing);
        begin_blob(writing);
    }
}

bool rdb_state_is_empty(const struct registry *registry) {
    uint32_t count = 0;
    for (uint32_t database = RDB_STATE_FIRST; database < RDB_STATE_END; database++) {
        count += registry_count(registry, database);
    }
    return count == 0;
}

bool rdb_state_write(struct registry *registry, int64_t time_us,
                     void (*take)(void *context, struct bytes blob), void *context) {
    static struct writing writing; /* the encoder is large */
    writing.registry = registry;
    writing.time_us = time_us;
    writing.take = take;
    writing.context = context;
    writing.is_failed = false;
    buffer_init(&writing.blob, 0);
    begin_blob(&writing);
    size_t empty_size = writing.blob.size;
    for (uint32_t database = RDB_STATE_FIRST; database < RDB_STATE_END; database++) {
        registry_each(registry, database, INT64_MIN, write_key, &writing);
    }
    if (writing.blob.size > empty_size || writing.blob.is_broken) {
        end_blob(&writing);
    }
    buffer_deinit(&writing.blob);
    return !writing.is_failed;
}
