/* See apply.h. Names and members in the batch point into the payload. Rules are valid only until the
 * decoder's next record, so an effect with rules is the last of its batch. */
#include "server/replication/apply.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/system/clock.h"
#include "server/system/tzdata.h"

void apply_begin(struct apply *apply, const struct journal_group_head *head, const char *payload) {
    CHECK(!apply->is_going);
    apply->is_going = true;
    apply->is_decoded = false;
    apply->has_history = false;
    apply->head = *head;
    apply->payload = payload;
    apply->batch_count = 0;
    apply->batch_done = 0;
    effect_decode_begin(&apply->decoder, (struct bytes){.at = payload, .size = head->size});
}

void apply_end(struct apply *apply) {
    apply->is_going = false;
}

static enum apply_status refuse(struct apply *apply, const char *what) {
    snprintf(apply->error, sizeof apply->error, "group %" PRIu64 " cannot be applied: %s",
             apply->head.sequence, what);
    return APPLY_IMPOSSIBLE;
}

static bool may_wait(const struct effect *effect) {
    bool is_creation = effect->kind == EFFECT_CREATE && effect->key_kind != NULL;
    return effect->kind == EFFECT_PUT || effect->kind == EFFECT_TAKE || is_creation;
}

/* Fill the batch with the next effects. */
static enum apply_status fill(struct apply *apply) {
    apply->batch_count = 0;
    apply->batch_done = 0;
    while (apply->batch_count < APPLY_BATCH) {
        enum effect_record record = effect_decode(&apply->decoder);
        if (record == EFFECT_RECORD_END) {
            apply->is_decoded = true;
            return APPLY_MORE;
        }
        if (apply->decoder.missing_zone != NULL) {
            return refuse(apply, "a board's PERIOD needs a time zone that is missing here");
        }
        if (record != EFFECT_RECORD_EFFECT) {
            return refuse(apply, "it holds an unknown record");
        }
        const struct effect *effect = &apply->decoder.effect;
        apply->batch[apply->batch_count++] = *effect;
        apply->has_history |= effect->database == REGISTRY_HISTORY;
        if (!may_wait(effect)) {
            return APPLY_MORE;
        }
    }
    return APPLY_MORE;
}

static enum apply_status apply_batch(struct apply *apply) {
    uint32_t applied;
    enum effect_status status = effect_apply(apply->registry, apply->batch + apply->batch_done,
                                             apply->batch_count - apply->batch_done, &applied);
    apply->batch_done += applied;
    apply->effect_count += applied;
    switch (status) {
    case EFFECT_OK:
        return APPLY_MORE;
    case EFFECT_OUT_OF_MEMORY:
        return APPLY_OUT_OF_MEMORY;
    case EFFECT_IMPOSSIBLE:
        break;
    }
    return refuse(apply, "a change does not fit the keys");
}

static enum apply_status run(struct apply *apply, uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    for (;;) {
        enum apply_status status = APPLY_MORE;
        if (apply->batch_done < apply->batch_count) {
            status = apply_batch(apply);
        } else if (apply->is_decoded) {
            return APPLY_DONE;
        } else {
            status = fill(apply);
        }
        if (status != APPLY_MORE || clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns) {
            return status;
        }
    }
}

enum apply_status apply_step(struct apply *apply, uint64_t budget_ns) {
    CHECK(apply->is_going);
    struct persistence *persistence = apply->persistence;
    if (persistence != NULL) {
        persistence_begin_apply(persistence);
    }
    enum apply_status status = run(apply, budget_ns);
    if (persistence != NULL) {
        persistence_end_apply(persistence);
    }
    if (status == APPLY_DONE) {
        if (persistence != NULL) {
            persistence_add_group(persistence, &apply->head, apply->payload);
        }
        apply->is_going = false;
    }
    return status;
}
