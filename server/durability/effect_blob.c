/* See effect_blob.h. */
#include "server/durability/effect_blob.h"

#include "codec/little.h"
#include "server/durability/effect_batch.h"
#include "server/durability/file_format.h"

enum { HEAD_SIZE = EFFECT_BLOB_HEAD_SIZE };

void effect_blob_begin(struct effect_encoder *encoder, struct buffer *out, int64_t now_us) {
    char head[HEAD_SIZE] = {FILE_FORMAT};
    little_put_u64(head + 1, (uint64_t)now_us);
    buffer_clear(out);
    buffer_append(out, head, sizeof head);
    effect_bytes_encode_begin(encoder, out);
}

void effect_blob_add(struct effect_encoder *encoder, const struct effect *effect) {
    effect_bytes_encode(encoder, effect);
}

bool effect_blob_is_of_another_format(struct bytes blob) {
    return blob.size > 0 && !file_format_is_read((unsigned char)blob.at[0]);
}

bool effect_blob_open(struct bytes blob, int64_t *time_us, struct bytes *chunk) {
    if (blob.size < HEAD_SIZE || effect_blob_is_of_another_format(blob)) {
        return false;
    }
    *time_us = (int64_t)little_get_u64(blob.at + 1);
    *chunk = (struct bytes){.at = blob.at + HEAD_SIZE, .size = blob.size - HEAD_SIZE};
    return *time_us >= 0;
}

bool effect_blob_check(struct effect_decoder *decoder, struct bytes chunk, effect_blob_allow *allow,
                       void *context) {
    effect_bytes_decode_begin(decoder, chunk);
    for (;;) {
        enum effect_record record = effect_bytes_decode(decoder);
        if (record == EFFECT_RECORD_END) {
            return true;
        }
        if (record != EFFECT_RECORD_EFFECT || decoder->missing_zone != NULL ||
            !allow(context, &decoder->effect)) {
            return false;
        }
    }
}

/* PUTs alone are applied together: who visits an effect may look at what is before it. */
enum effect_status effect_blob_apply(struct registry *registry, struct effect_decoder *decoder,
                                     struct bytes chunk, effect_blob_visit *visit, void *context) {
    struct effect_batch batch;
    enum effect_status status = EFFECT_OK;
    effect_batch_clear(&batch);
    effect_bytes_decode_begin(decoder, chunk);
    while (status == EFFECT_OK && effect_bytes_decode(decoder) == EFFECT_RECORD_EFFECT) {
        struct effect effect = decoder->effect;
        bool is_put = effect.kind == EFFECT_PUT;
        status = is_put ? EFFECT_OK : effect_batch_apply(&batch, registry);
        if (status == EFFECT_OK && visit(context, &effect) &&
            (effect_batch_add(&batch, &effect) || !is_put)) {
            status = effect_batch_apply(&batch, registry);
        }
    }
    return status == EFFECT_OK ? effect_batch_apply(&batch, registry) : status;
}
