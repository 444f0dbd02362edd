/* See rdb_state.h. */
#include "server/rdb/rdb_state.h"

#include <stdio.h>

#include "codec/glob.h"
#include "server/durability/effect_bytes.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_embedded.h"

/* About; a ban with all its patterns may be longer. One is applied in one go, which takes less than half a millisecond. */
enum { BLOB_SIZE = 8 * 1024 };

struct writing {
    const struct registry *registry;
    int64_t time_us;
    struct effect_encoder encoder;
    struct buffer blob;
    void (*take)(void *context, struct bytes blob);
    void *context;
    bool is_failed;
};

static void rdb_state_begin_blob(struct writing *writing) {
    effect_bytes_begin_blob(&writing->encoder, &writing->blob, writing->time_us);
}

static void rdb_state_end_blob(struct writing *writing) {
    writing->is_failed |= writing->blob.is_broken;
    if (!writing->is_failed) {
        writing->take(writing->context, buffer_bytes(&writing->blob));
    }
}

/* As it replaces what is there. */
static void rdb_state_write_key(void *context, const struct registry_key *key) {
    struct writing *writing = context;
    struct effect effect = {.kind = EFFECT_REMOVE,
                            .key_kind = &key_kind_hash,
                            .database = key->database,
                            .name = registry_name(key),
                            .expire_at_ms = registry_expiry(writing->registry, key),
                            .key = key};
    effect_bytes_encode(&writing->encoder, &effect);
    effect.kind = EFFECT_FILL;
    struct effect_fill fill = {.whole = effect};
    struct effect each;
    while (effect_fill_next(&fill, &each)) {
        effect_bytes_encode(&writing->encoder, &each);
    }
    if (writing->blob.size > BLOB_SIZE) {
        rdb_state_end_blob(writing);
        rdb_state_begin_blob(writing);
    }
}

bool rdb_state_is_empty(const struct registry *registry) {
    uint32_t count = 0;
    for (uint32_t database = REGISTRY_SYSTEM; registry_is_of_hosts(database); database++) {
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
    rdb_state_begin_blob(&writing);
    size_t empty_size = writing.blob.size;
    for (uint32_t database = REGISTRY_SYSTEM; registry_is_of_hosts(database); database++) {
        registry_walk_each(registry, database, INT64_MIN, rdb_state_write_key, &writing);
    }
    if (writing.blob.size > empty_size || writing.blob.is_broken) {
        rdb_state_end_blob(&writing);
    }
    buffer_deinit(&writing.blob);
    return !writing.is_failed;
}

/* ---- checking ---- */

/* Where a blob of whole keys is: REMOVE, CREATE, EXPIRE or none, PUT ..., and the next key. */
enum place { BETWEEN, REMOVED, CREATED, FILLED };

struct checking {
    enum rdb_state_form form;
    uint32_t database_end;
    enum place place;
    struct bytes name; /* of the key, unless BETWEEN */
    uint32_t database;
    char *why;
};

static bool rdb_state_follows(struct checking *checking, const struct effect *effect) {
    enum place place = checking->place;
    bool is_same = place != BETWEEN && effect->database == checking->database &&
                   bytes_equal(effect->name, checking->name);
    switch (effect->kind) {
    case EFFECT_REMOVE:
        checking->place = REMOVED;
        checking->database = effect->database;
        checking->name = effect->name;
        return place == BETWEEN || place == FILLED;
    case EFFECT_CREATE:
        checking->place = CREATED;
        return is_same && place == REMOVED;
    case EFFECT_EXPIRE:
        return is_same && place == CREATED;
    case EFFECT_PUT:
        checking->place = FILLED;
        return is_same && (place == CREATED || place == FILLED);
    case EFFECT_TAKE:
    case EFFECT_CUT:
    case EFFECT_FLUSH:
    case EFFECT_RENAME:
    case EFFECT_COPY:
    case EFFECT_OPTIONS:
    case EFFECT_FILL:
    case EFFECT_TAGS:
    case EFFECT_STATE:
    case EFFECT_NOTE:
        break;
    }
    return false;
}

/* As server/commands/ban.h has them. */
static bool rdb_state_is_ban(const struct checking *checking, const struct effect *effect) {
    bool has_field = effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE;
    if (effect->name.size < 2 || effect->name.size > 1 + BOARD_MEMBER_MAX ||
        (has_field && effect->member.size > GLOB_PATTERN_MAX) ||
        (effect->kind == EFFECT_PUT && effect->value.size != sizeof(int64_t))) {
        return false;
    }
    unsigned database = (uint8_t)effect->name.at[0];
    if (database >= checking->database_end) {
        snprintf(checking->why, RDB_STATE_ERROR_MAX,
                 "they are of database %u: there are %u databases here, from 0 on", database,
                 (unsigned)checking->database_end);
        return false;
    }
    return true;
}

static bool rdb_state_is_allowed(void *context, const struct effect *effect) {
    struct checking *checking = context;
    bool has_kind =
        effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE || effect->kind == EFFECT_CREATE;
    bool is_known = has_kind || effect->kind == EFFECT_REMOVE || effect->kind == EFFECT_EXPIRE;
    return is_known && registry_is_of_hosts(effect->database) &&
           (!has_kind || effect->key_kind == &key_kind_hash) &&
           (effect->database != REGISTRY_BANS || rdb_state_is_ban(checking, effect)) &&
           (checking->form != RDB_STATE_WHOLE || rdb_state_follows(checking, effect));
}

bool rdb_state_check(struct effect_decoder *decoder, struct bytes blob, enum rdb_state_form form,
                     uint32_t database_end, int64_t *time_us, struct bytes *chunk,
                     char why[static RDB_STATE_ERROR_MAX]) {
    struct checking checking = {.form = form, .database_end = database_end, .why = why};
    if (!effect_bytes_open_blob(blob, time_us, chunk)) {
        snprintf(
            why, RDB_STATE_ERROR_MAX,
            "they are damaged, or another version of the module wrote them, in another format");
        return false;
    }
    snprintf(why, RDB_STATE_ERROR_MAX, "they are damaged");
    return effect_bytes_check_blob(decoder, *chunk, rdb_state_is_allowed, &checking) &&
           (checking.place == BETWEEN || checking.place == FILLED);
}

/* ---- applying ---- */

/* What is to be removed may be gone already: its time was over here, too, or it was never there. */
static bool rdb_state_visit(void *context, struct effect *effect) {
    const struct registry *registry = context;
    return effect->kind != EFFECT_REMOVE ||
           registry_peek(registry, effect->database, effect->name, INT64_MIN) != NULL;
}

enum effect_status rdb_state_apply(struct registry *registry, struct effect_decoder *decoder,
                                   struct bytes chunk) {
    return effect_bytes_apply_blob(registry, decoder, chunk, rdb_state_visit, registry);
}

bool rdb_state_clear(struct registry *registry, uint32_t keys_max) {
    uint32_t database = REGISTRY_SYSTEM;
    while (registry_is_of_hosts(database) && keys_max > 0) {
        struct registry_key *key = registry_embedded_first_of(registry, database);
        if (key == NULL) {
            database++;
        } else {
            registry_remove(registry, key);
            keys_max--;
        }
    }
    return rdb_state_is_empty(registry);
}
