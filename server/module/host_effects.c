/* Effects out to LB.APPLY, and back. See host_effects.h. */
#include "server/module/host_effects.h"

#include "codec/bytes.h"
#include "server/commands/ban.h"
#include "server/commands/lb/board_task.h"
#include "server/durability/effect_bytes.h"
#include "server/rdb/rdb_board.h"
#include "server/sessions/once_ids.h"
#include "skiplist/board.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_embedded.h"

enum {
    BLOB_FIRST = 64,    /* room that is there from the beginning */
    BLOB_MAX = 1 << 20, /* a FILL is cut into such pieces */
    MORE_KEYS_MAX = 64,
    EXPIRE_COUNT = 16, /* bans removed before a command */
    REWRITE_MS = 1,
};

/* A blob that is being written. */
struct effects_out {
    struct effect_encoder encoder;
    struct buffer blob;
    bool has_effects;
};

static struct {
    struct effect_listener listener;
    struct effects_out out;
    struct working_set *set; /* of the command that runs; NULL: none */
    /* Archives that the blob names. */
    struct host_string *more[MORE_KEYS_MAX];
    uint32_t more_count;
} effects;

static struct {
    struct effects_out out;
    bool is_applying;
    bool is_beside; /* a copy of the master is being loaded beside the keys */
    /* Blobs of a file that is loaded beside the keys: size (4 bytes), bytes. */
    struct buffer loaded;
} state;

/* ---- out ---- */

static void host_effects_replicate(void) {
    const struct working_set *set = effects.set;
    /* Nothing is ever replicated in part. */
    CHECK(!effects.out.blob.is_broken);
    if (set->count == 1 && effects.more_count == 0) {
        host_Replicate(set->ctx, "LB.APPLY", "sb", set->keys[0].name, effects.out.blob.at,
                       effects.out.blob.size);
        return;
    }
    uint32_t keys_max = set->count + effects.more_count;
    struct host_string **keys = memory_allocate(keys_max * sizeof(struct host_string *));
    CHECK(keys != NULL);
    struct host_context *ctx = set->ctx;
    uint32_t count = 0; /* all keys of the command that have changed, and the archives */
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->keys[i].is_changed) {
            keys[count++] = set->keys[i].name;
        }
    }
    for (uint32_t i = 0; i < effects.more_count; i++) {
        keys[count++] = effects.more[i];
    }
    struct host_string *blob = host_CreateString(ctx, effects.out.blob.at, effects.out.blob.size);
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
    memory_free(keys);
}

/* The first one begins the blob. */
static void host_effects_encode(struct effects_out *out, const struct effect *effect) {
    if (!out->has_effects) {
        effect_bytes_begin_blob(&out->encoder, &out->blob, module.server.clock.now_us);
        out->has_effects = true;
    }
    effect_bytes_encode(&out->encoder, effect);
}

static void host_effects_receive(void *context, const struct effect *effect) {
    (void)context;
    if (effect->database >= REGISTRY_SYSTEM && effect->database != REGISTRY_ONCE) {
        if (!state.is_applying) {
            host_effects_encode(&state.out, effect);
        }
        return;
    }
    if (effects.set == NULL) {
        return;
    }
    working_set_note(effects.set, effect);
    bool has_archive = effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY;
    if (has_archive && effects.more_count < MORE_KEYS_MAX) {
        effects.more[effects.more_count++] =
            host_CreateString(effects.set->ctx, effect->to_name.at, effect->to_name.size);
    }
    if (effect->kind == EFFECT_FILL) {
        /* A whole board, in blobs of a bounded size. */
        struct effect_fill fill = {.whole = *effect};
        struct effect each;
        while (effect_fill_next(&fill, &each)) {
            if (effects.out.has_effects && effects.out.blob.size > BLOB_MAX) {
                host_effects_replicate();
                effects.out.has_effects = false;
            }
            host_effects_encode(&effects.out, &each);
        }
    } else {
        host_effects_encode(&effects.out, effect);
    }
}

bool host_effects_init(void) {
    buffer_init(&effects.out.blob, 0);
    buffer_init(&state.out.blob, 0);
    buffer_init(&state.loaded, 0);
    effects.listener.receive = host_effects_receive;
    effect_listener_add(module.server.registry, &effects.listener);
    return buffer_reserve(&effects.out.blob, BLOB_FIRST) != NULL;
}

void host_effects_begin(struct working_set *set) {
    effects.set = set;
    effects.out.has_effects = false;
}

void host_effects_end(void) {
    if (effects.out.has_effects) {
        host_effects_replicate();
    }
    while (effects.more_count > 0) {
        host_FreeString(effects.set->ctx, effects.more[--effects.more_count]);
    }
    if (effects.out.blob.capacity > 2 * BLOB_MAX) {
        buffer_deinit(&effects.out.blob);
    }
    effects.set = NULL;
}

/* ---- the AOF ---- */

void host_effects_rewrite(struct host_io *io, struct host_string *name,
                          const struct registry_key *key) {
    struct effect_fill fill = {.whole = {.kind = EFFECT_FILL,
                                         .key_kind = &key_kind_board,
                                         .database = key->database,
                                         .name = host_bytes(name),
                                         .options = registry_options(key),
                                         .state = registry_state(key),
                                         .expire_at_ms = REGISTRY_NO_EXPIRY,
                                         .key = key}};
    struct effect each;
    effects.out.has_effects = false;
    while (effect_fill_next(&fill, &each)) {
        host_effects_encode(&effects.out, &each);
        if (effects.out.blob.size > BLOB_MAX) {
            host_EmitAOF(io, "LB.APPLY", "sb", name, effects.out.blob.at, effects.out.blob.size);
            effects.out.has_effects = false;
        }
    }
    if (effects.out.has_effects) {
        host_EmitAOF(io, "LB.APPLY", "sb", name, effects.out.blob.at, effects.out.blob.size);
    }
}

/* ---- back ---- */

/* Ids of results that a key of the command has. Whatever is there before, these changes are possible. */
static bool host_effects_is_of_ids(const struct effect *effect, bool is_believed) {
    if (effect->kind == EFFECT_CREATE) {
        struct board_options ids;
        once_ids_make_options(&ids);
        return board_options_equal(effect->options, &ids);
    }
    if (effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE) {
        return effect->member.size >= 1 && effect->member.size <= ONCE_ID_MAX &&
               (is_believed || effect->kind == EFFECT_TAKE ||
                !module_is_too_far_ahead(once_ids_time_of(effect->member_key)));
    }
    return effect->kind == EFFECT_CUT || effect->kind == EFFECT_REMOVE;
}

enum { TAKES_MAX = 64 };

/* Blobs that are judged, with their keys in the set and nothing applied yet. */
struct judging {
    struct working_set *set;
    bool is_doubtful; /* some effect may not fit */
    bool has_ids;
    bool has_put;
    uint32_t take_count;
    struct bytes takes[TAKES_MAX]; /* members; borrowed from the request */
};

/* Is it one that cannot fail? */
static bool host_effects_is_safe(struct judging *judging, const struct effect *effect) {
    bool is_of_member = effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE;
    const struct registry_key *key =
        is_of_member ? registry_embedded_find(module.server.registry, effect->name) : NULL;
    if (key == NULL || key->kind != REGISTRY_BOARD || effect->member.size == 0 ||
        effect->member.size > BOARD_MEMBER_MAX) {
        return false;
    }
    if (effect->kind == EFFECT_TAKE) {
        struct board_member member;
        bool is_taken = judging->has_put || judging->take_count == TAKES_MAX;
        for (uint32_t i = 0; i < judging->take_count && !is_taken; i++) {
            is_taken = bytes_equal(judging->takes[i], effect->member);
        }
        if (is_taken) {
            return false;
        }
        judging->takes[judging->take_count++] = effect->member;
        board_look_up(&key->board, effect->member, NULL, &member);
        return member.is_there;
    }
    judging->has_put = true;
    return layout_has_room(board_layout(&key->board), effect->member_key) &&
           board_count(&key->board) < BOARD_MEMBERS_MAX / 2;
}

static bool host_effects_judge(void *context, const struct effect *effect) {
    struct judging *judging = context;
    struct working_set *set = judging->set;
    bool is_of_board = effect->key_kind == NULL || effect->key_kind == &key_kind_board;
    bool moves = effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY;
    /* Only effects on boards that the command names. */
    if (!is_of_board || !working_set_has(set, effect->name)) {
        return false;
    }
    if (effect->database == REGISTRY_ONCE) {
        judging->has_ids = true;
        return host_effects_is_of_ids(effect, host_is_trusted(set->ctx)) &&
               working_set_open_ids(set, effect->name);
    }
    if (effect->kind == EFFECT_FLUSH || effect->database != 0 ||
        (moves && (effect->to_database != 0 || !working_set_has(set, effect->to_name)))) {
        return false;
    }
    judging->is_doubtful = judging->is_doubtful || !host_effects_is_safe(judging, effect);
    return true;
}

static bool host_effects_note(void *context, struct effect *effect) {
    if (effect->database == REGISTRY_ONCE) {
        return false; /* once the boards have changed */
    }
    working_set_note(context, effect);
    return true;
}

/* One that does not fit the ids that are there is passed over: it came from a client. */
static bool host_effects_apply_ids(void *context, struct effect *effect) {
    uint32_t applied;
    if (effect->database == REGISTRY_ONCE) {
        enum effect_status status = effect_apply(module.server.registry, effect, 1, &applied);
        CHECK(status != EFFECT_OUT_OF_MEMORY); /* the host would end here, too */
        working_set_note(context, effect);
    }
    return false;
}

static bool host_effects_open_blob(struct bytes blob, int64_t *time_us, struct bytes *chunk) {
    return effect_bytes_open_blob(blob, time_us, chunk) && *time_us <= MODULE_TIME_MAX_US;
}

/* Of a blob that was checked. */
static int64_t host_effects_time_of(struct bytes blob) {
    return (int64_t)bytes_get_u64(blob.at + 1);
}

/* The keys after the first may have none. */
static bool host_effects_has_blob(struct host_string **argv, int index) {
    return index == 2 || host_bytes(argv[index]).size > 0;
}

static bool host_effects_apply_blobs(struct working_set *set, struct effect_decoder *decoder,
                                     effect_bytes_visit *visit, struct host_string **argv,
                                     int argc) {
    struct bytes chunk;
    int64_t time_us;
    for (int i = 2; i < argc; i += 2) {
        if (host_effects_has_blob(argv, i) &&
            host_effects_open_blob(host_bytes(argv[i]), &time_us, &chunk)) {
            module_raise_clock(set->ctx, time_us);
            if (effect_bytes_apply_blob(module.server.registry, decoder, chunk, visit, set) !=
                EFFECT_OK) {
                return false;
            }
        }
    }
    return true;
}

static const char *host_effects_apply_all(struct working_set *set, struct host_string **argv,
                                          int argc) {
    static struct effect_decoder decoder;
    static const char unfit[] = "ERR Bad data format, or effects that do not fit the key";
    static const char foreign[] =
        "ERR effects of another format than this module's: a later version wrote them, or one "
        "before 1.0";
    struct judging judging = {.set = set};
    struct bytes chunk;
    int64_t time_us;
    bool is_fit = true;
    for (int i = 1; i < argc; i += 2) {
        if (!working_set_put(set, argv[i], host_bytes(argv[i]))) {
            return "OOM out of memory";
        }
    }
    for (int i = 2; i < argc && is_fit; i += 2) {
        is_fit = !host_effects_has_blob(argv, i) ||
                 (host_effects_open_blob(host_bytes(argv[i]), &time_us, &chunk) &&
                  effect_bytes_check_blob(&decoder, chunk, host_effects_judge, &judging));
    }
    if (!is_fit) {
        bool is_foreign = false;
        for (int i = 2; i < argc; i += 2) {
            is_foreign |= effect_bytes_is_blob_of_another_format(host_bytes(argv[i]));
        }
        return is_foreign ? foreign : unfit;
    }
    if (judging.is_doubtful && !host_is_trusted(set->ctx) && !working_set_copy(set)) {
        return "OOM out of memory";
    }
    if (!host_effects_apply_blobs(set, &decoder, host_effects_note, argv, argc)) {
        working_set_drop_copies(set);
        return unfit;
    }
    working_set_keep_copies(set);
    CHECK(!judging.has_ids ||
          host_effects_apply_blobs(set, &decoder, host_effects_apply_ids, argv, argc));
    return NULL;
}

/* Replicas believe the time in a blob. A client's that is ahead of our clock becomes that of our clock. */
static struct host_string *host_effects_bound_time(struct host_context *ctx, struct bytes blob) {
    struct buffer bound;
    int64_t now_us = module.server.clock.now_us;
    char head[EFFECT_BLOB_HEAD_SIZE];
    memcpy(head, blob.at, sizeof head);
    bytes_put_u64(
        head + 1,
        (uint64_t)(host_effects_time_of(blob) < now_us ? host_effects_time_of(blob) : now_us));
    buffer_init(&bound, 0);
    buffer_append(&bound, head, sizeof head);
    buffer_append(&bound, blob.at + EFFECT_BLOB_HEAD_SIZE, blob.size - EFFECT_BLOB_HEAD_SIZE);
    CHECK(!bound.is_broken); /* the host would end here, too */
    struct host_string *string = host_CreateString(ctx, bound.at, bound.size);
    buffer_deinit(&bound);
    return string;
}

static void host_effects_replicate_request(struct host_context *ctx, struct host_string **argv,
                                           int argc) {
    bool is_any_ahead = false;
    for (int i = 2; i < argc; i += 2) {
        is_any_ahead |= host_effects_has_blob(argv, i) &&
                        host_effects_time_of(host_bytes(argv[i])) > module.server.clock.now_us;
    }
    if (!is_any_ahead) {
        host_ReplicateVerbatim(ctx);
        return;
    }
    struct host_string **args = memory_allocate((size_t)argc * sizeof(struct host_string *));
    CHECK(args != NULL);
    for (int i = 1; i < argc; i++) {
        bool is_blob = i % 2 == 0 && host_effects_has_blob(argv, i);
        args[i] = is_blob ? host_effects_bound_time(ctx, host_bytes(argv[i])) : argv[i];
    }
    host_Replicate(ctx, "LB.APPLY", "v", args + 1, (size_t)argc - 1);
    for (int i = 2; i < argc; i += 2) {
        if (args[i] != argv[i]) {
            host_FreeString(ctx, args[i]);
        }
    }
    memory_free(args);
}

int host_effects_apply(struct host_context *ctx, struct host_string **argv, int argc) {
    struct working_set set;
    if (argc < 3 || argc % 2 == 0) {
        return host_ReplyWithError(ctx, "ERR wrong number of arguments for 'lb.apply' command");
    }
    module_update_time();
    working_set_begin(&set, ctx, true, true);
    effect_listener_remove(module.server.registry, &effects.listener);
    const char *error = host_effects_apply_all(&set, argv, argc);
    effect_listener_add(module.server.registry, &effects.listener);
    working_set_end(&set);
    module_value_free_step();
    if (error != NULL) {
        return host_ReplyWithError(ctx, error);
    }
    host_effects_replicate_request(ctx, argv, argc);
    return host_ReplyWithSimpleString(ctx, "OK");
}

/* ---- what is kept beside the keys: bans and durable jobs ---- */

void host_effects_state_replicate(struct host_context *ctx) {
    if (state.out.has_effects) {
        CHECK(!state.out.blob.is_broken); /* nothing is ever replicated in part */
        host_Replicate(ctx, "LB.APPLYSTATE", "b", state.out.blob.at, state.out.blob.size);
        state.out.has_effects = false;
    }
}

void host_effects_expire_bans(void) {
    (void)registry_expiry_remove_due(module.server.registry, module.server.clock.now_ms,
                                     EXPIRE_COUNT);
}

void host_effects_state_clear(void) {
    state.is_applying = true;
    CHECK(rdb_board_state_clear(module.server.registry, UINT32_MAX));
    state.is_applying = false;
}

/* ---- applying ---- */

static bool host_effects_check_state(struct effect_decoder *decoder, struct bytes blob,
                                     struct bytes *chunk, int64_t *time_us) {
    char why[RDB_STATE_ERROR_MAX]; /* the host's errors say less */
    return rdb_board_state_check(decoder, blob, RDB_STATE_CHANGES, BAN_NUMBER_MAX + 1, time_us,
                                 chunk, why) &&
           *time_us <= MODULE_TIME_MAX_US;
}

/* All is checked before anything changes. */
static bool host_effects_take_state(struct host_context *ctx, struct bytes blob) {
    static struct effect_decoder decoder;
    struct bytes chunk;
    int64_t time_us;
    if (!host_effects_check_state(&decoder, blob, &chunk, &time_us)) {
        return false;
    }
    module_raise_clock(ctx, time_us);
    state.is_applying = true;
    enum effect_status status = rdb_board_state_apply(module.server.registry, &decoder, chunk);
    state.is_applying = false;
    return status == EFFECT_OK;
}

int host_effects_apply_state(struct host_context *ctx, struct host_string **argv, int argc) {
    if (argc != 2) {
        return host_ReplyWithError(ctx,
                                   "ERR wrong number of arguments for 'lb.applystate' command");
    }
    module_update_time();
    if (!host_effects_take_state(ctx, host_bytes(argv[1]))) {
        return host_ReplyWithError(ctx, "ERR Bad data format, or changes that do not fit");
    }
    module_value_free_step();
    host_ReplicateVerbatim(ctx);
    return host_ReplyWithSimpleString(ctx, "OK");
}

/* ---- all of it ---- */

static void host_effects_state_save_all(void (*take)(void *context, struct bytes blob),
                                        void *context) {
    CHECK(rdb_board_state_write(module.server.registry, module.server.clock.now_us, take, context));
}

/* ---- RDB ---- */

static void host_effects_state_save_blob(void *context, struct bytes blob) {
    host_SaveStringBuffer(context, blob.at, blob.size);
}

void host_effects_state_save(struct host_io *io, int when) {
    (void)when;
    host_effects_state_save_all(host_effects_state_save_blob, io);
    host_SaveStringBuffer(io, "", 0);
}

void host_effects_state_save_some(struct host_io *io, int when) {
    if (!rdb_board_state_is_empty(module.server.registry)) {
        host_effects_state_save(io, when);
    }
}

static bool host_effects_state_refuse(struct host_io *io, const char *why) {
    host_LogIOError(io, "warning", "bans of leaderboard: %s", why);
    return false;
}

/* *is_last: it was the empty one. */
static bool host_effects_load_blob(struct host_io *io, struct effect_decoder *decoder,
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
    bool is_good = *is_last || (size <= UINT32_MAX &&
                                host_effects_check_state(decoder, blob, &chunk, &time_us));
    if (is_good && !*is_last) {
        uint32_t head = (uint32_t)size;
        buffer_append(&state.loaded, (const char *)&head, sizeof head);
        buffer_append(&state.loaded, at, size);
    }
    host_Free(at);
    if (!is_good) {
        return host_effects_state_refuse(io,
                                         "damaged, or written by a later version of the module");
    }
    return !state.loaded.is_broken || host_effects_state_refuse(io, "out of memory");
}

/* In the place of what there is. */
static bool host_effects_state_take_loaded(void) {
    bool is_taken = true;
    host_effects_state_clear();
    for (size_t at = 0; at < state.loaded.size && is_taken;) {
        uint32_t size;
        memcpy(&size, state.loaded.at + at, sizeof size);
        struct bytes blob = {.at = state.loaded.at + at + sizeof size, .size = size};
        is_taken = host_effects_take_state(module.timer_context, blob);
        at += sizeof size + size;
    }
    buffer_deinit(&state.loaded);
    return is_taken;
}

int host_effects_state_load(struct host_io *io, int version, int when) {
    bool is_last = false;
    (void)when;
    if (version != RDB_STATE_VERSION) {
        host_effects_state_refuse(io, "a later version of the module has written them");
        return HOST_ERROR;
    }
    struct effect_decoder *decoder = memory_allocate(sizeof *decoder);
    bool is_loaded = decoder != NULL;
    buffer_deinit(&state.loaded);
    while (is_loaded && !is_last) {
        is_loaded = host_effects_load_blob(io, decoder, &is_last);
    }
    memory_free(decoder);
    if (is_loaded && !state.is_beside) {
        is_loaded = host_effects_state_take_loaded() ||
                    host_effects_state_refuse(io, "they do not fit, or there is no memory");
    }
    return is_loaded ? HOST_OK : HOST_ERROR;
}

bool host_effects_state_is_beside(void) {
    return state.is_beside;
}

void host_effects_state_load_beside(uint64_t kind) {
    state.is_beside = kind == HOST_BESIDE_STARTED;
    if (kind == HOST_BESIDE_COMPLETED) {
        /* It was checked; without memory the host would end, too. */
        CHECK(host_effects_state_take_loaded());
    } else {
        buffer_deinit(&state.loaded);
    }
}

/* ---- the AOF ---- */

static void host_effects_state_replicate_blob(void *context, struct bytes blob) {
    host_Replicate(context, "LB.APPLYSTATE", "bR", blob.at, blob.size);
}

static void host_effects_state_replicate_all(struct host_context *ctx, void *context) {
    (void)context;
    module_update_time();
    host_effects_state_save_all(host_effects_state_replicate_blob, ctx);
}

/* An AOF of commands is written key by key, and this belongs to none. What is replicated now goes
 * behind it. */
void host_effects_on_fork(struct host_context *ctx) {
    if (rdb_board_state_is_empty(module.server.registry)) {
        return;
    }
    /* Where the host does not say so, it is taken for one without: to write this twice does no harm. */
    struct host_call_reply *reply = host_Call(ctx, "CONFIG", "cc", "GET", "aof-use-rdb-preamble");
    struct host_call_reply *value = reply != NULL ? host_CallReplyArrayElement(reply, 1) : NULL;
    if (!bytes_is(host_reply_string(value), "yes")) {
        (void)host_CreateTimer(module.timer_context, REWRITE_MS, host_effects_state_replicate_all,
                               NULL);
    }
    host_free_reply(reply);
}
