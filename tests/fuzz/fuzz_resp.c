/* The requests' parser on any bytes: whole equals split at every byte equals byte by byte equals
 * the model. The first byte of the fuzzed input picks the limits. */
#include "tests/fuzz/fuzz.h"
#include "tests/protocol/naive_resp.h"

enum {
    INPUT_MAX = 2048,   /* the model's arguments fit, and a run stays short */
    SPLITS_EVERY = 256, /* longer inputs are cut at this many places */
};

static const struct resp_limits limits_narrow = {
    .args_max = 3, .bulk_size_max = 20, .inline_size_max = 12, .is_authenticated = true};

static void check_same(const struct stream *stream, const struct buffer *model) {
    CHECK(stream->transcript.size == model->size);
    CHECK(model->size == 0 || memcmp(stream->transcript.at, model->at, model->size) == 0);
}

/* Feed the input in pieces of step bytes, the first one being first bytes long. */
static void check_cut(const struct resp_limits *limits, const char *input, size_t size,
                      size_t first, size_t step, const struct buffer *model) {
    struct stream stream;
    stream_begin(&stream, limits);
    for (size_t cut = first; cut < size; cut += step) {
        stream_feed(&stream, input, cut);
    }
    stream_feed(&stream, input, size);
    stream_finish(&stream, size);
    check_same(&stream, model);
    stream_end(&stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    if (size == 0 || size > INPUT_MAX) {
        return 0;
    }
    const struct resp_limits *limits = bytes[0] % 3 == 0   ? &limits_usual
                                       : bytes[0] % 3 == 1 ? &limits_stranger
                                                           : &limits_narrow;
    const char *input = (const char *)bytes + 1;
    size--;
    uint64_t live_before = memory_live_count();
    struct buffer model;
    buffer_init(&model, 0);
    naive_transcript(input, size, limits, &model);
    check_cut(limits, input, size, size, 1, &model);
    check_cut(limits, input, size, 1, 1, &model);
    check_cut(limits, input, size, 3, 7, &model);
    for (size_t cut = 1; cut < size; cut += 1 + size / SPLITS_EVERY) {
        check_cut(limits, input, size, cut, size, &model);
    }
    buffer_deinit(&model);
    CHECK(memory_live_count() == live_before);
    return 0;
}
