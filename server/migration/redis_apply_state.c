/* What a Redis with the module keeps beside its keys: bans, and orders that it has not finished. They come in its RDB file
 * and as LB.APPLYSTATE, and are kept as a replica of the module keeps them: an order is carried out by the source, and if
 * this becomes a master meanwhile, by this. */
#include "server/migration/redis_apply_parts.h"
#include "server/rdb/rdb_state.h"

static bool redis_apply_state_check(struct redis_apply *apply, struct bytes blob,
                                    enum rdb_state_form form, int64_t *time_us,
                                    struct bytes *chunk) {
    char why[RDB_STATE_ERROR_MAX];
    return redis_apply_need_decoder(apply) &&
           (rdb_state_check(apply->decoder, blob, form, REGISTRY_DATABASES, time_us, chunk, why) ||
            redis_apply_fail(apply, "the source's bans: %s", why));
}

static bool redis_apply_state_apply_blob(struct redis_apply *apply, struct bytes blob,
                                         enum rdb_state_form form) {
    struct bytes chunk;
    int64_t time_us;
    if (!redis_apply_state_check(apply, blob, form, &time_us, &chunk)) {
        return false;
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

bool redis_apply_state_effects(struct redis_apply *apply, const struct request *request) {
    return request->count == 2
               ? redis_apply_state_apply_blob(apply, request->args[1], RDB_STATE_CHANGES)
               : redis_apply_fail_form(apply, request);
}
