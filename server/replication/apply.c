/* See apply.h. Invariant: between two batches, every group that is decoded is done. */
#include "server/replication/apply.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/system/clock.h"
#include "server/system/tzdata.h"

static void apply_forget_done(struct apply *apply) {
    uint32_t done = apply->group_done;
    if (done > 0) {
        memmove(apply->groups, apply->groups + done,
                (apply->group_count - done) * sizeof apply->groups[0]);
        apply->group_count -= done;
        apply->group_decoded -= done;
        apply->group_done = 0;
    }
}

void apply_add(struct apply *apply, const struct journal_group_head *head, const char *payload) {
    CHECK(apply_has_room(apply));
    apply_forget_done(apply);
    apply->groups[apply->group_count++] = (struct apply_group){.head = *head, .payload = payload};
    apply->size += head->size;
}

void apply_end(struct apply *apply) {
    apply->group_done = 0;
    apply->group_decoded = 0;
    apply->group_count = 0;
    apply->size = 0;
    apply->is_decoding = false;
    effect_batch_clear(&apply->batch);
}

static enum apply_status apply_refuse(struct apply *apply, uint32_t group, const char *what) {
    snprintf(apply->error, sizeof apply->error, "group %" PRIu64 " cannot be applied: %s",
             apply->groups[group].head.sequence, what);
    return APPLY_IMPOSSIBLE;
}

/* ---- batches ---- */

/* Fill the batch with the next effects, of this group or of those behind it, too. */
static enum apply_status apply_fill_batch(struct apply *apply, bool is_of_one) {
    struct effect_decoder *decoder = &apply->decoder;
    bool is_full = false;
    effect_batch_clear(&apply->batch);
    while (!is_full && apply->group_decoded < apply->group_count) {
        struct apply_group *group = &apply->groups[apply->group_decoded];
        if (!apply->is_decoding) {
            effect_bytes_decode_begin(
                decoder, (struct bytes){.at = group->payload, .size = group->head.size});
            apply->is_decoding = true;
        }
        enum effect_record record = effect_bytes_decode(decoder);
        if (record == EFFECT_RECORD_END) {
            group->batch_end = apply->batch.count;
            apply->is_decoding = false;
            apply->group_decoded++;
            if (is_of_one) {
                break;
            }
            continue;
        }
        if (decoder->missing_zone != NULL) {
            return apply_refuse(apply, apply->group_decoded,
                                "a board's PERIOD needs a time zone that is missing here");
        }
        if (record != EFFECT_RECORD_EFFECT) {
            return apply_refuse(apply, apply->group_decoded, "it holds an unknown record");
        }
        group->has_history |= decoder->effect.database == REGISTRY_HISTORY;
        is_full = effect_batch_add(&apply->batch, &decoder->effect);
    }
    return APPLY_MORE;
}

static enum apply_status apply_batch(struct apply *apply) {
    switch (effect_batch_apply(&apply->batch, apply->registry)) {
    case EFFECT_OK:
        return APPLY_MORE;
    case EFFECT_OUT_OF_MEMORY:
        return APPLY_OUT_OF_MEMORY;
    case EFFECT_IMPOSSIBLE:
        break;
    }
    uint32_t group = apply->group_done;
    while (group < apply->group_decoded && apply->groups[group].batch_end <= apply->batch.done) {
        group++;
    }
    return apply_refuse(apply, group, "a change does not fit the keys");
}

/* ---- steps ---- */

static enum apply_status apply_run_batches(struct apply *apply, uint64_t budget_ns) {
    uint64_t begin = clock_ticks();
    bool is_over = false;
    while (apply_is_going(apply)) {
        enum apply_status status = APPLY_MORE;
        if (!effect_batch_is_done(&apply->batch)) {
            status = apply_batch(apply);
            is_over = clock_ticks_to_ns(clock_ticks() - begin) >= budget_ns;
        } else if (is_over &&
                   !(apply->is_decoding &&
                     apply->groups[apply->group_decoded].head.size <= APPLY_AT_ONCE_SIZE)) {
            return APPLY_MORE; /* the next group is not short, or not applied in part */
        } else {
            status = apply_fill_batch(apply, is_over);
        }
        /* Record the groups of which all effects are applied. */
        while (apply->group_done < apply->group_decoded &&
               apply->groups[apply->group_done].batch_end <= apply->batch.done) {
            const struct apply_group *group = &apply->groups[apply->group_done++];
            apply->size -= group->head.size;
            if (apply->persistence != NULL) {
                persistence_add_group(apply->persistence, &group->head, group->payload);
            }
        }
        if (status != APPLY_MORE) {
            return status;
        }
    }
    return APPLY_DONE;
}

enum apply_status apply_step(struct apply *apply, uint64_t budget_ns) {
    struct persistence *persistence = apply->persistence;
    apply_forget_done(apply);
    if (persistence != NULL) {
        persistence_set_applying(persistence, true);
    }
    enum apply_status status = apply_run_batches(apply, budget_ns);
    if (persistence != NULL) {
        persistence_set_applying(persistence, false);
    }
    /* Only the group stays that is applied in part. */
    bool is_in_batch = apply->group_done < apply->group_decoded;
    bool is_begun = is_in_batch || apply->is_decoding;
    while (apply->group_count > apply->group_done + is_begun) {
        apply->size -= apply->groups[--apply->group_count].head.size;
    }
    if (is_in_batch) {
        apply->batch.count = apply->groups[apply->group_done].batch_end;
        apply->group_decoded = apply->group_done + 1;
        apply->is_decoding = false;
    }
    return status;
}
