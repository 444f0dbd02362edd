/* See effect_blob.h. */
#include "server/durability/effect_blob.h"

#include "codec/little.h"
#include "server/durability/file_format.h"

enum { HEAD_SIZE = EFFECT_BLOB_HEAD_SIZE, BATCH = 64 };

void effect_blob_begin(struct effect_encoder *encoder, struct buffer *out, int64_t now_us) {
    char head[HEAD_SIZE] = {FILE_FORMAT};
    little_put_u64(head + 1, (uint64_t)now_us);
    buffer_clear(out);
    buffer_append(out, head, sizeof head);
    effect_encode_begin(encoder, out);
}

bool effect_blob_open(struct bytes blob, int64_t *time_us, struct bytes *chunk) {
    if (blob.size < HEAD_SIZE || blob.at[0] < 1 || blob.at[0] > FILE_FORMAT) {
        return false;
    }
    *time_us = (int64_t)little_get_u64(blob.at + 1);
    *chunk = (struct bytes){.at = blob.at + HEAD_SIZE, .size = blob.size - HEAD_SIZE};
    return *time_us >= 0;
}

bool effect_blob_check(struct effect_decoder *decoder, struct bytes chunk, effect_blob_allow *allow,
                       void *context) {
    effect_decode_begin(decoder, chunk);
    for (;;) {
        enum effect_record record = effect_decode(decoder);
        if (record == EFFECT_RECORD_END) {
            return true;
        }
        if (record != EFFECT_RECORD_EFFECT || decoder->missing_zone != NULL ||
            !allow(context, &decoder->effect)) {
            return false;
        }
    }
}

static enum effect_status effect_blob_apply_batch(struct registry *registry,
                                                  const struct effect *batch, uint32_t count) {
    uint32_t applied;
    return count == 0 ? EFFECT_OK : effect_apply(registry, batch, count, &applied);
}

/* PUTs point only into the chunk, so several can be applied together. */
enum effect_status effect_blob_apply(struct registry *registry, struct effect_decoder *decoder,
                                     struct bytes chunk, effect_blob_visit *visit, void *context) {
    struct effect batch[BATCH];
    uint32_t count = 0;
    enum effect_status status = EFFECT_OK;
    effect_decode_begin(decoder, chunk);
    while (status == EFFECT_OK && effect_decode(decoder) == EFFECT_RECORD_EFFECT) {
        struct effect effect = decoder->effect;
        bool is_put = effect.kind == EFFECT_PUT;
        if (!is_put || count == BATCH) {
            status = effect_blob_apply_batch(registry, batch, count);
            count = 0;
        }
        if (status != EFFECT_OK || !visit(context, &effect)) {
            continue;
        }
        if (is_put) {
            batch[count++] = effect;
        } else {
            status = effect_blob_apply_batch(registry, &effect, 1);
        }
    }
    return status == EFFECT_OK ? effect_blob_apply_batch(registry, batch, count) : status;
}
