/* Bans and durable jobs. See host_effects.h. */
#include "server/module/host_effects.h"

#include "server/commands/ban.h"
#include "server/commands/lb/board_task.h"
#include "server/durability/effect_bytes.h"
#include "server/rdb/rdb_board.h"

enum {
    EXPIRE_COUNT = 16, /* bans removed before a command */
    REWRITE_MS = 1,
};

static struct {
    struct effect_encoder encoder;
    struct buffer blob;
    bool has_effects;
    bool is_applying;
    bool is_beside; /* a copy of the master is being loaded beside the keys */
    /* Blobs of a file that is loaded beside the keys: size (4 bytes), bytes. */
    struct buffer loaded;
} state;

/* ---- changes ---- */

void host_state_note(const struct effect *effect) {
    if (state.is_applying) {
        return;
    }
    if (!state.has_effects) {
        effect_bytes_begin_blob(&state.encoder, &state.blob, module.server.clock.now_us);
        state.has_effects = true;
    }
    effect_bytes_encode(&state.encoder, effect);
}

void host_state_replicate(struct host_context *ctx) {
    if (state.has_effects) {
        CHECK(!state.blob.is_broken); /* nothing is ever replicated in part */
        host_Replicate(ctx, "LB.APPLYSTATE", "b", state.blob.at, state.blob.size);
        state.has_effects = false;
    }
}

void host_state_expire(void) {
    (void)registry_expiry_remove_due(module.server.registry, module.server.clock.now_ms,
                                     EXPIRE_COUNT);
}

void host_state_clear(void) {
    state.is_applying = true;
    CHECK(rdb_board_state_clear(module.server.registry, UINT32_MAX));
    state.is_applying = false;
}

/* ---- applying ---- */

static bool host_state_check_blob(struct effect_decoder *decoder, struct bytes blob,
                                  struct bytes *chunk, int64_t *time_us) {
    char why[RDB_STATE_ERROR_MAX]; /* the host's errors say less */
    return rdb_board_state_check(decoder, blob, RDB_STATE_CHANGES, BAN_NUMBER_MAX + 1, time_us,
                                 chunk, why) &&
           *time_us <= MODULE_TIME_MAX_US;
}

/* All is checked before anything changes. */
static bool host_state_apply_blob(struct host_context *ctx, struct bytes blob) {
    static struct effect_decoder decoder;
    struct bytes chunk;
    int64_t time_us;
    if (!host_state_check_blob(&decoder, blob, &chunk, &time_us)) {
        return false;
    }
    module_raise_clock(ctx, time_us);
    state.is_applying = true;
    enum effect_status status = rdb_board_state_apply(module.server.registry, &decoder, chunk);
    state.is_applying = false;
    return status == EFFECT_OK;
}

int host_state_apply(struct host_context *ctx, struct host_string **argv, int argc) {
    if (argc != 2) {
        return host_ReplyWithError(ctx,
                                   "ERR wrong number of arguments for 'lb.applystate' command");
    }
    module_update_time();
    if (!host_state_apply_blob(ctx, host_bytes(argv[1]))) {
        return host_ReplyWithError(ctx, "ERR Bad data format, or changes that do not fit");
    }
    host_value_free_step();
    host_ReplicateVerbatim(ctx);
    return host_ReplyWithSimpleString(ctx, "OK");
}

/* ---- all of it ---- */

static void host_state_save_all(void (*take)(void *context, struct bytes blob), void *context) {
    CHECK(rdb_board_state_write(module.server.registry, module.server.clock.now_us, take, context));
}

/* ---- RDB ---- */

static void host_state_save_blob(void *context, struct bytes blob) {
    host_SaveStringBuffer(context, blob.at, blob.size);
}

void host_state_save(struct host_io *io, int when) {
    (void)when;
    host_state_save_all(host_state_save_blob, io);
    host_SaveStringBuffer(io, "", 0);
}

void host_state_save_some(struct host_io *io, int when) {
    if (!rdb_board_state_is_empty(module.server.registry)) {
        host_state_save(io, when);
    }
}

static bool host_state_refuse(struct host_io *io, const char *why) {
    host_LogIOError(io, "warning", "bans of leaderboard: %s", why);
    return false;
}

/* *is_last: it was the empty one. */
static bool host_state_load_blob(struct host_io *io, struct effect_decoder *decoder,
                                 bool *is_last) {
    struct bytes chunk;
    int64_t time_us;
    size_t size = 0;
    char *at = host_LoadStringBuffer(io, &size);
    if (at == NULL || host_IsIOError(io)) {
        return false;
    }
    *is_last = size == 0;
    struct bytes blob = {.at = at, .size = size};
    bool is_good =
        *is_last || (size <= UINT32_MAX && host_state_check_blob(decoder, blob, &chunk, &time_us));
    if (is_good && !*is_last) {
        uint32_t head = (uint32_t)size;
        buffer_append(&state.loaded, (const char *)&head, sizeof head);
        buffer_append(&state.loaded, at, size);
    }
    host_Free(at);
    if (!is_good) {
        return host_state_refuse(io, "damaged, or written by a later version of the module");
    }
    return !state.loaded.is_broken || host_state_refuse(io, "out of memory");
}

/* In the place of what there is. */
static bool host_state_take_loaded(void) {
    bool is_taken = true;
    host_state_clear();
    for (size_t at = 0; at < state.loaded.size && is_taken;) {
        uint32_t size;
        memcpy(&size, state.loaded.at + at, sizeof size);
        struct bytes blob = {.at = state.loaded.at + at + sizeof size, .size = size};
        is_taken = host_state_apply_blob(module.timer_context, blob);
        at += sizeof size + size;
    }
    buffer_deinit(&state.loaded);
    return is_taken;
}

int host_state_load(struct host_io *io, int version, int when) {
    bool is_last = false;
    (void)when;
    if (version != RDB_STATE_VERSION) {
        host_state_refuse(io, "a later version of the module has written them");
        return HOST_ERROR;
    }
    struct effect_decoder *decoder = memory_allocate(sizeof *decoder);
    bool is_loaded = decoder != NULL;
    buffer_deinit(&state.loaded);
    while (is_loaded && !is_last) {
        is_loaded = host_state_load_blob(io, decoder, &is_last);
    }
    memory_free(decoder);
    if (is_loaded && !state.is_beside) {
        is_loaded = host_state_take_loaded() ||
                    host_state_refuse(io, "they do not fit, or there is no memory");
    }
    return is_loaded ? HOST_OK : HOST_ERROR;
}

bool host_state_is_beside(void) {
    return state.is_beside;
}

void host_state_load_beside(uint64_t kind) {
    state.is_beside = kind == HOST_BESIDE_STARTED;
    if (kind == HOST_BESIDE_COMPLETED) {
        /* It was checked; without memory the host would end, too. */
        CHECK(host_state_take_loaded());
    } else {
        buffer_deinit(&state.loaded);
    }
}

/* ---- the AOF ---- */

static void host_state_replicate_blob(void *context, struct bytes blob) {
    host_Replicate(context, "LB.APPLYSTATE", "bR", blob.at, blob.size);
}

static void host_state_replicate_all(struct host_context *ctx, void *context) {
    (void)context;
    module_update_time();
    host_state_save_all(host_state_replicate_blob, ctx);
}

/* An AOF of commands is written key by key, and this belongs to none. What is replicated now goes
 * behind it. */
void host_state_on_fork(struct host_context *ctx) {
    if (rdb_board_state_is_empty(module.server.registry)) {
        return;
    }
    /* Where the host does not say so, it is taken for one without: to write this twice does no harm. */
    struct host_call_reply *reply = host_Call(ctx, "CONFIG", "cc", "GET", "aof-use-rdb-preamble");
    struct host_call_reply *value = reply != NULL ? host_CallReplyArrayElement(reply, 1) : NULL;
    if (!bytes_is(host_reply_string(value), "yes")) {
        (void)host_CreateTimer(module.timer_context, REWRITE_MS, host_state_replicate_all, NULL);
    }
    host_free_reply(reply);
}

void host_state_init(void) {
    buffer_init(&state.blob, 0);
    buffer_init(&state.loaded, 0);
}
