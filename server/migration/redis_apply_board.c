/* Boards of a Redis with the module: their changes come as effects, in LB.APPLY, and are applied as a replica of
 * the module applies them. So the boards are equal to the last bit, whatever the settings say here.
 *
 * What a board replaces may be a key that is not here: removing it is done then.
 *
 * What the module keeps beside its keys, bans and durable jobs that it has not finished, comes as LB.APPLYSTATE, and is kept
 * as a replica of the module keeps it: such a job is carried out by the source, and if this becomes a master meanwhile, by
 * this. */
#include "server/durability/effect_blob.h"
#include "server/migration/redis_apply_parts.h"
#include "server/rdb/rdb_state.h"
#include "skiplist/keyspace/key_kind.h"

void redis_apply_raise_time(struct redis_apply *apply, int64_t time_us) {
    clock_raise(&apply->server->clock, time_us);
    apply->now_us = time_us > apply->now_us ? time_us : apply->now_us;
}

/* Only boards, in the command's database. Ids of results, which the module keeps in a key's value, are passed over. */
static bool redis_apply_board_is_allowed(void *context, const struct effect *effect) {
    (void)context;
    if (effect->database == REGISTRY_ONCE) {
        return true;
    }
    bool is_of_board = effect->key_kind == NULL || effect->key_kind == &key_kind_board;
    bool moves = effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY;
    return is_of_board && effect->kind != EFFECT_FLUSH && effect->database == 0 &&
           (!moves || effect->to_database == 0);
}

static bool redis_apply_board_visit(void *context, struct effect *effect) {
    struct redis_apply *apply = context;
    if (effect->database == REGISTRY_ONCE) {
        return false;
    }
    effect->database = redis_apply_database(apply);
    if (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY) {
        effect->to_database = effect->database;
        (void)redis_names_remove(redis_apply_sets(apply), effect->to_name);
    }
    if (effect->kind == EFFECT_CREATE || effect->kind == EFFECT_REMOVE) {
        (void)redis_names_remove(redis_apply_sets(apply), effect->name);
    }
    return effect->kind != EFFECT_REMOVE || redis_apply_find(apply, effect->name) != NULL;
}

static bool redis_apply_board_need_decoder(struct redis_apply *apply) {
    if (apply->decoder == NULL) {
        apply->decoder = memory_allocate(sizeof *apply->decoder);
    }
    return apply->decoder != NULL || redis_apply_fail_memory(apply);
}

static bool redis_apply_board_fail_blob(struct redis_apply *apply, struct bytes name,
                                        const char *why) {
    return redis_apply_fail_key(apply, name, "the source's LB.APPLY: %s", why);
}

static bool redis_apply_board_apply_blob(struct redis_apply *apply, struct bytes name,
                                         struct bytes blob) {
    struct bytes chunk;
    int64_t time_us;
    if (!effect_blob_open(blob, &time_us, &chunk)) {
        return redis_apply_board_fail_blob(
            apply, name,
            "it is damaged, or another version of the module sent it, in another format");
    }
    if (!effect_blob_check(apply->decoder, chunk, redis_apply_board_is_allowed, apply)) {
        return redis_apply_board_fail_blob(
            apply, name,
            apply->decoder->missing_zone != NULL
                ? "its PERIOD is in a time zone that this machine does not know"
                : "it is damaged");
    }
    redis_apply_raise_time(apply, time_us);
    switch (
        effect_blob_apply(apply->registry, apply->decoder, chunk, redis_apply_board_visit, apply)) {
    case EFFECT_OK:
        return true;
    case EFFECT_OUT_OF_MEMORY:
        return redis_apply_fail_memory(apply);
    case EFFECT_IMPOSSIBLE:
        break;
    }
    return redis_apply_board_fail_blob(apply, name, "it does not fit the keys that are here");
}

bool redis_apply_effects(struct redis_apply *apply, const struct request *request) {
    if (request->count % 2 == 0) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_board_need_decoder(apply)) {
        return false;
    }
    for (uint32_t i = 1; i < request->count; i += 2) {
        bool is_empty = i > 1 && request->args[i + 1].size == 0;
        if (!redis_apply_check_key(apply, request->args[i]) ||
            (!is_empty &&
             !redis_apply_board_apply_blob(apply, request->args[i], request->args[i + 1]))) {
            return false;
        }
    }
    return true;
}

/* ---- beside the keys ---- */

bool redis_apply_state_effects(struct redis_apply *apply, const struct request *request) {
    char why[RDB_STATE_ERROR_MAX];
    struct bytes chunk;
    int64_t time_us;
    if (request->count != 2) {
        return redis_apply_fail_form(apply, request);
    }
    if (!redis_apply_board_need_decoder(apply)) {
        return false;
    }
    if (!rdb_state_check(apply->decoder, request->args[1], RDB_STATE_CHANGES, REGISTRY_DATABASES,
                         &time_us, &chunk, why)) {
        return redis_apply_fail(apply, "the source's bans: %s", why);
    }
    redis_apply_raise_time(apply, time_us);
    switch (rdb_state_apply(apply->registry, apply->decoder, chunk)) {
    case EFFECT_OK:
        return true;
    case EFFECT_OUT_OF_MEMORY:
        return redis_apply_fail_memory(apply);
    case EFFECT_IMPOSSIBLE:
        break;
    }
    return redis_apply_fail(apply, "the source's bans: they do not fit those that are here");
}
