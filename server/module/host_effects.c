/* Effects out to LB.APPLY, and back. See host_effects.h. */
#include "server/module/host_effects.h"

#include "codec/little.h"
#include "server/durability/file_format.h"
#include "server/module/host_state.h"
#include "skiplist/keyspace/key_kind.h"
#include "skiplist/keyspace/registry_guest.h"

enum {
    HEAD_SIZE = 1 + 8,
    BLOB_MAX = 1 << 20, /* a FILL is cut into such pieces */
    BATCH = 64,
    MORE_KEYS_MAX = 64,
};

static struct {
    struct effect_listener listener;
    struct effect_encoder encoder;
    struct buffer blob;
    struct host_stage *stage; /* of the command that runs; NULL: none */
    /* Archives that the blob names. */
    struct host_string *more[MORE_KEYS_MAX];
    uint32_t more_count;
    bool has_effects;
} effects;

/* ---- out ---- */

void host_effects_begin_blob(struct effect_encoder *encoder, struct buffer *blob) {
    char head[HEAD_SIZE] = {FILE_FORMAT};
    little_put_u64(head + 1, (uint64_t)module.server.clock.now_us);
    buffer_clear(blob);
    buffer_append(blob, head, sizeof head);
    effect_encode_begin(encoder, blob);
}

static void begin_blob(void) {
    host_effects_begin_blob(&effects.encoder, &effects.blob);
    effects.has_effects = false;
}

/* All keys of the command that have changed, and the archives. */
static uint32_t list_keys(const struct host_stage *stage, struct host_string **keys,
                          uint32_t keys_max) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < stage->count && count < keys_max; i++) {
        if (stage->slots[i].is_changed) {
            keys[count++] = stage->slots[i].name;
        }
    }
    for (uint32_t i = 0; i < effects.more_count && count < keys_max; i++) {
        keys[count++] = effects.more[i];
    }
    return count;
}

static void replicate_many(struct host_context *ctx, struct host_string **keys, uint32_t count) {
    struct host_string *blob = host_CreateString(ctx, effects.blob.at, effects.blob.size);
    struct host_string *none = host_CreateString(ctx, "", 0);
    struct host_string **args = memory_allocate(2 * (size_t)count * sizeof(struct host_string *));
    CHECK(args != NULL); /* the host would end here, too */
    for (uint32_t i = 0; i < count; i++) {
        args[2 * (size_t)i] = keys[i];
        args[2 * (size_t)i + 1] = i == 0 ? blob : none;
    }
    host_Replicate(ctx, "LB.APPLY", "v", args, (size_t)count * 2);
    memory_free(args);
    host_FreeString(ctx, none);
    host_FreeString(ctx, blob);
}

static void replicate(void) {
    const struct host_stage *stage = effects.stage;
    /* Nothing is ever replicated in part. */
    CHECK(!effects.blob.is_broken);
    if (stage->count == 1 && effects.more_count == 0) {
        host_Replicate(stage->ctx, "LB.APPLY", "sb", stage->slots[0].name, effects.blob.at,
                       effects.blob.size);
        return;
    }
    uint32_t keys_max = stage->count + effects.more_count;
    struct host_string **keys = memory_allocate(keys_max * sizeof(struct host_string *));
    CHECK(keys != NULL);
    replicate_many(stage->ctx, keys, list_keys(stage, keys, keys_max));
    memory_free(keys);
}

static void encode(const struct effect *effect) {
    effect_encode(&effects.encoder, effect);
    effects.has_effects = true;
}

static void encode_fill(const struct effect *effect) {
    struct effect_fill fill = {.whole = *effect};
    struct effect each;
    while (effect_fill_next(&fill, &each)) {
        if (effects.blob.size > BLOB_MAX) {
            replicate();
            begin_blob();
        }
        encode(&each);
    }
}

static void receive(void *context, const struct effect *effect) {
    (void)context;
    if (host_state_owns(effect)) {
        host_state_note(effect);
        return;
    }
    if (effects.stage == NULL) {
        return;
    }
    host_stage_note(effects.stage, effect);
    if (effect->kind == EFFECT_RENAME && effects.more_count < MORE_KEYS_MAX) {
        effects.more[effects.more_count++] =
            host_CreateString(effects.stage->ctx, effect->to_name.at, effect->to_name.size);
    }
    if (effect->kind == EFFECT_FILL) {
        encode_fill(effect);
    } else {
        encode(effect);
    }
}

bool host_effects_init(void) {
    buffer_init(&effects.blob, 0);
    effects.listener.receive = receive;
    effect_listener_add(module.server.registry, &effects.listener);
    return buffer_reserve(&effects.blob, HEAD_SIZE) != NULL;
}

void host_effects_deinit(void) {
    effect_listener_remove(module.server.registry, &effects.listener);
    buffer_deinit(&effects.blob);
}

void host_effects_begin(struct host_stage *stage) {
    effects.stage = stage;
    begin_blob();
}

void host_effects_end(void) {
    if (effects.has_effects) {
        replicate();
    }
    while (effects.more_count > 0) {
        host_FreeString(effects.stage->ctx, effects.more[--effects.more_count]);
    }
    if (effects.blob.capacity > 2 * BLOB_MAX) {
        buffer_deinit(&effects.blob);
    }
    effects.stage = NULL;
}

/* ---- the AOF ---- */

void host_effects_rewrite(struct host_io *io, struct host_string *name,
                          const struct registry_key *key) {
    struct effect_fill fill = {.whole = {.kind = EFFECT_FILL,
                                         .key_kind = &key_kind_board,
                                         .name = host_bytes(name),
                                         .rules = registry_rules(key),
                                         .expire_at_ms = REGISTRY_NO_EXPIRY,
                                         .key = key}};
    struct effect each;
    begin_blob();
    while (effect_fill_next(&fill, &each)) {
        encode(&each);
        if (effects.blob.size > BLOB_MAX) {
            host_EmitAOF(io, "LB.APPLY", "sb", name, effects.blob.at, effects.blob.size);
            begin_blob();
        }
    }
    if (effects.has_effects) {
        host_EmitAOF(io, "LB.APPLY", "sb", name, effects.blob.at, effects.blob.size);
    }
}

/* ---- back ---- */

static bool is_on_stage(const struct host_stage *stage, struct bytes name) {
    for (uint32_t i = 0; i < stage->count; i++) {
        if (bytes_equal(host_bytes(stage->slots[i].name), name)) {
            return true;
        }
    }
    return false;
}

/* Effects on boards that the command names. */
static bool is_allowed(const struct host_stage *stage, const struct effect *effect) {
    bool is_of_board = effect->key_kind == NULL || effect->key_kind == &key_kind_board;
    bool moves = effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY;
    return is_of_board && effect->kind != EFFECT_FLUSH && effect->database == 0 &&
           is_on_stage(stage, effect->name) &&
           (!moves || (effect->to_database == 0 && is_on_stage(stage, effect->to_name)));
}

/* Decode the whole chunk, before anything changes. */
static bool check_chunk(const struct host_stage *stage, struct effect_decoder *decoder,
                        struct bytes chunk) {
    effect_decode_begin(decoder, chunk);
    for (;;) {
        enum effect_record record = effect_decode(decoder);
        if (record == EFFECT_RECORD_END) {
            return true;
        }
        if (record != EFFECT_RECORD_EFFECT || !is_allowed(stage, &decoder->effect)) {
            return false;
        }
    }
}

static bool apply_batch(const struct effect *batch, uint32_t count) {
    uint32_t applied;
    return count == 0 || effect_apply(module.server.registry, batch, count, &applied) == EFFECT_OK;
}

/* PUTs point only into the chunk, so several can be applied together. */
static bool apply_chunk(struct host_stage *stage, struct effect_decoder *decoder,
                        struct bytes chunk) {
    struct effect batch[BATCH];
    uint32_t count = 0;
    effect_decode_begin(decoder, chunk);
    while (effect_decode(decoder) == EFFECT_RECORD_EFFECT) {
        host_stage_note(stage, &decoder->effect);
        bool is_put = decoder->effect.kind == EFFECT_PUT;
        if ((!is_put || count == BATCH) && !apply_batch(batch, count)) {
            return false;
        }
        count = !is_put || count == BATCH ? 0 : count;
        if (is_put) {
            batch[count++] = decoder->effect;
        } else if (!apply_batch(&decoder->effect, 1)) {
            return false;
        }
    }
    return apply_batch(batch, count);
}

bool host_effects_read_head(struct bytes blob, struct bytes *chunk, int64_t *time_us) {
    if (blob.size < HEAD_SIZE || blob.at[0] < 1 || blob.at[0] > FILE_FORMAT) {
        return false;
    }
    *chunk = (struct bytes){.at = blob.at + HEAD_SIZE, .size = blob.size - HEAD_SIZE};
    *time_us = (int64_t)little_get_u64(blob.at + 1);
    return *time_us >= 0;
}

static bool apply_blob(struct host_stage *stage, struct bytes blob) {
    static struct effect_decoder decoder;
    struct bytes chunk;
    int64_t time_us;
    if (!host_effects_read_head(blob, &chunk, &time_us) || !check_chunk(stage, &decoder, chunk)) {
        return false;
    }
    module_raise_clock(stage->ctx, time_us);
    return apply_chunk(stage, &decoder, chunk);
}

static const char *apply_all(struct host_stage *stage, struct host_string **argv, int argc) {
    for (int i = 1; i < argc; i += 2) {
        if (!host_stage_key(stage, argv[i])) {
            return "OOM out of memory";
        }
    }
    for (int i = 2; i < argc; i += 2) {
        struct bytes blob = host_bytes(argv[i]);
        if ((i == 2 || blob.size > 0) && !apply_blob(stage, blob)) {
            return "ERR Bad data format, or effects that do not fit the key";
        }
    }
    return NULL;
}

int host_effects_apply(struct host_context *ctx, struct host_string **argv, int argc) {
    struct host_stage stage;
    if (argc < 3 || argc % 2 == 0) {
        return host_ReplyWithError(ctx, "ERR wrong number of arguments for 'lb.apply' command");
    }
    module_update_time();
    host_stage_begin(&stage, ctx, true, true);
    effect_listener_remove(module.server.registry, &effects.listener);
    const char *error = apply_all(&stage, argv, argc);
    effect_listener_add(module.server.registry, &effects.listener);
    host_stage_end(&stage);
    module_free_step();
    if (error != NULL) {
        return host_ReplyWithError(ctx, error);
    }
    host_ReplicateVerbatim(ctx);
    return host_ReplyWithSimpleString(ctx, "OK");
}
