/* Any bytes as a chunk of effects: read to the end or to where they are damaged; what was read is
 * applied, or does not fit, and the boards hold together. What a chunk is read as is written down
 * and read again as the same. */
#include "server/durability/effect_bytes.h"
#include "tests/fuzz/fuzz.h"

static struct effect_decoder decoder, decoder_again;
static struct effect_encoder encoder;

static bool is_in(struct bytes text, const uint8_t *data, size_t size) {
    const uint8_t *at = (const uint8_t *)text.at;
    return text.size > 0 && at >= data && at + text.size <= data + size;
}

/* NULL: of a hash. */
static bool are_equal_options(const struct board_options *a, const struct board_options *b) {
    return a == NULL || b == NULL ? a == b : board_options_equal(a, b);
}

static void check_equal(const struct effect *a, const struct effect *b) {
    CHECK(a->kind == b->kind && a->database == b->database && bytes_equal(a->name, b->name));
    CHECK(a->key_kind == b->key_kind);
    switch (a->kind) {
    case EFFECT_PUT:
        CHECK(bytes_equal(a->member, b->member));
        CHECK(a->key_kind != NULL ? bytes_equal(a->value, b->value)
                                  : a->member_key == b->member_key);
        break;
    case EFFECT_TAKE:
        CHECK(bytes_equal(a->member, b->member));
        break;
    case EFFECT_STATE:
        CHECK(memcmp(a->state, b->state, sizeof *a->state) == 0);
        break;
    case EFFECT_TAGS:
    case EFFECT_NOTE:
        CHECK(bytes_equal(a->member, b->member) && bytes_equal(a->value, b->value));
        break;
    case EFFECT_CUT:
        CHECK(a->rank == b->rank && a->count == b->count);
        break;
    case EFFECT_RENAME:
    case EFFECT_COPY:
        CHECK(a->to_database == b->to_database && bytes_equal(a->to_name, b->to_name));
        CHECK(a->expire_at_ms == b->expire_at_ms && are_equal_options(a->options, b->options));
        break;
    case EFFECT_EXPIRE:
        CHECK(a->expire_at_ms == b->expire_at_ms);
        break;
    case EFFECT_CREATE:
    case EFFECT_OPTIONS:
        CHECK(are_equal_options(a->options, b->options));
        break;
    case EFFECT_REMOVE:
    case EFFECT_FLUSH:
    case EFFECT_FILL:
        break;
    }
}

/* Written anew, and read again. */
static void check_round_trip(const struct effect *effect) {
    struct buffer chunk;
    buffer_init(&chunk, 0);
    effect_bytes_encode_begin(&encoder, &chunk);
    effect_bytes_encode(&encoder, effect);
    effect_bytes_decode_begin(&decoder_again, (struct bytes){.at = chunk.at, .size = chunk.size});
    CHECK(effect_bytes_decode(&decoder_again) == EFFECT_RECORD_EFFECT);
    check_equal(effect, &decoder_again.effect);
    CHECK(effect_bytes_decode(&decoder_again) == EFFECT_RECORD_END);
    buffer_deinit(&chunk);
}

static void apply(struct registry *registry, const struct effect *effect) {
    uint32_t applied = 7;
    check_round_trip(effect);
    enum effect_status status = effect_apply(registry, effect, 1, &applied);
    CHECK(status != EFFECT_OUT_OF_MEMORY);
    CHECK(applied == (status == EFFECT_OK));
    if (status == EFFECT_IMPOSSIBLE) {
        fuzz_check_valid(registry);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct registry *registry = fuzz_create_registry(fuzz_no_options);
    enum effect_record record;
    effect_bytes_decode_begin(&decoder, (struct bytes){.at = (const char *)data, .size = size});
    while ((record = effect_bytes_decode(&decoder)) != EFFECT_RECORD_END &&
           record != EFFECT_RECORD_BAD) {
        if (record == EFFECT_RECORD_EFFECT) {
            apply(registry, &decoder.effect);
        } else if (record == EFFECT_RECORD_ENTRIES) {
            CHECK(decoder.entry_count > 0 && decoder.entry_count <= EFFECT_ENTRIES_MAX);
            for (uint32_t i = 0; i < decoder.entry_count; i++) {
                struct tag_values values;
                CHECK(is_in(decoder.entries[i].member, data, size));
                CHECK(!decoder.has_values ||
                      (is_in(decoder.entry_values[i], data, size) &&
                       tag_values_unpack(decoder.entry_values[i], TAGS_MAX, &values)));
            }
        } else if (record == EFFECT_RECORD_OPEN) {
            CHECK(is_in(decoder.effect.name, data, size));
        }
    }
    CHECK(record == EFFECT_RECORD_BAD || decoder.at == decoder.end);
    fuzz_check_valid(registry);
    /* What is due happens with any options and expiries that were read. */
    (void)registry_roll_due(registry, INT64_C(1795000000000), 20);
    (void)registry_roll_archive_step(registry, INT64_C(1795000000000), 20);
    (void)registry_expiry_remove_due(registry, INT64_C(1795000000000), 20);
    fuzz_check_valid(registry);
    registry_destroy(registry);
    return 0;
}
