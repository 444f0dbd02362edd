/* Applies effects several at a time, so that their memory accesses overlap
 * (skiplist/keyspace/effect.h): when files are loaded, and where a master's groups, or what the
 * module has sent, come in.
 *
 *     while an effect is decoded:  if (effect_batch_add(...)) effect_batch_apply(...)
 *     behind the last one:         effect_batch_apply(...)
 *
 * Names and members point into what was decoded, which stays until they are applied. */
#ifndef SERVER_EFFECT_BATCH_H
#define SERVER_EFFECT_BATCH_H

#include "codec/check.h"
#include "skiplist/keyspace/effect.h"

#ifdef SERVER_TINY
enum { EFFECT_BATCH = 3 };
#else
enum { EFFECT_BATCH = 128 };
#endif

struct effect_batch {
    uint32_t done, count; /* effects[done .. count - 1] wait */
    struct effect effects[EFFECT_BATCH];
};

static inline bool effect_batch_is_done(const struct effect_batch *batch) {
    return batch->done == batch->count;
}

static inline void effect_batch_clear(struct effect_batch *batch) {
    batch->done = 0;
    batch->count = 0;
}

/* true: apply before anything more is decoded. It is full, or the effect has options, which are valid
 * only until the decoder's next record. */
MUST_CHECK static inline bool effect_batch_add(struct effect_batch *batch,
                                               const struct effect *effect) {
    bool may_wait = effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE ||
                    effect->kind == EFFECT_TAGS || effect->kind == EFFECT_NOTE ||
                    (effect->kind == EFFECT_CREATE && effect->key_kind != NULL);
    if (effect_batch_is_done(batch)) {
        effect_batch_clear(batch);
    }
    CHECK(batch->count < EFFECT_BATCH);
    batch->effects[batch->count++] = *effect;
    return !may_wait || batch->count == EFFECT_BATCH;
}

/* Apply what waits. Not EFFECT_OK: effects[done] is the one that was not applied;
 * those before it are, and the same can be tried again. */
MUST_CHECK static inline enum effect_status effect_batch_apply(struct effect_batch *batch,
                                                               struct registry *registry) {
    uint32_t applied = 0;
    enum effect_status status = EFFECT_OK;
    if (!effect_batch_is_done(batch)) {
        status = effect_apply(registry, batch->effects + batch->done, batch->count - batch->done,
                              &applied);
    }
    batch->done += applied;
    return status;
}

#endif
