/* Encoding and decoding of effects. See effect_bytes.h for the format. */
#include "server/durability/effect_bytes.h"

#include "codec/bytes.h"
#include "server/durability/file_format.h"
#include "server/system/tzdata.h"
#include "skiplist/keyspace/board_options.h"
#include "skiplist/keyspace/effect.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "effects are written as little endian integers, by copying them"
#endif

enum record_kind { KIND_PUT, KIND_TAKE, KIND_BOARD, KIND_OTHER };
enum other_record {
    OTHER_CREATE,
    OTHER_REMOVE,
    OTHER_FLUSH,
    OTHER_RENAME,
    OTHER_COPY,
    OTHER_EXPIRE,
    OTHER_RULES,
    OTHER_CUT,
    OTHER_OPEN,
    OTHER_PIECE,
    OTHER_CLOSE,
    OTHER_TAGGED_PIECE,
    /* Of keys with hashes. */
    OTHER_HASH_CREATE,
    OTHER_HASH_PUT,
    OTHER_HASH_TAKE,
    OTHER_HASH_RENAME,
    OTHER_HASH_COPY,
    /* Of boards with tags. */
    OTHER_TAGS,
    OTHER_STATE,
    OTHER_NOTE,
    OTHER_COUNT,
};
/* What follows a record of kind 3, in this order. */
enum {
    HAS_DATABASE = 1,
    HAS_DESTINATION = 2,
    HAS_RULES = 4,
    HAS_TIME = 8,
    HAS_RANGE = 16,
    HAS_KIND = 32,
    HAS_FIELD = 64,
    HAS_VALUE = 128, /* its size is before the field */
    HAS_STATE = 256, /* HAS_RULES has it, too, if the options do */
};
static const struct {
    enum effect_record record;
    enum effect_kind kind; /* of an EFFECT_RECORD_EFFECT */
    unsigned operands;
} others[OTHER_COUNT] = {
    [OTHER_CREATE] = {EFFECT_RECORD_EFFECT, EFFECT_CREATE, HAS_RULES},
    [OTHER_REMOVE] = {EFFECT_RECORD_EFFECT, EFFECT_REMOVE, 0},
    [OTHER_FLUSH] = {EFFECT_RECORD_EFFECT, EFFECT_FLUSH, HAS_DATABASE},
    [OTHER_RENAME] = {EFFECT_RECORD_EFFECT, EFFECT_RENAME, HAS_DESTINATION | HAS_RULES | HAS_TIME},
    [OTHER_COPY] = {EFFECT_RECORD_EFFECT, EFFECT_COPY, HAS_DESTINATION | HAS_RULES | HAS_TIME},
    [OTHER_EXPIRE] = {EFFECT_RECORD_EFFECT, EFFECT_EXPIRE, HAS_TIME},
    [OTHER_RULES] = {EFFECT_RECORD_EFFECT, EFFECT_OPTIONS, HAS_RULES},
    [OTHER_CUT] = {EFFECT_RECORD_EFFECT, EFFECT_CUT, HAS_RANGE},
    [OTHER_OPEN] = {EFFECT_RECORD_OPEN, EFFECT_FILL, HAS_RULES | HAS_TIME},
    [OTHER_PIECE] = {EFFECT_RECORD_ENTRIES, EFFECT_FILL, 0},
    [OTHER_CLOSE] = {EFFECT_RECORD_CLOSE, EFFECT_FILL, 0},
    [OTHER_HASH_CREATE] = {EFFECT_RECORD_EFFECT, EFFECT_CREATE, HAS_KIND},
    [OTHER_HASH_PUT] = {EFFECT_RECORD_EFFECT, EFFECT_PUT, HAS_FIELD | HAS_VALUE},
    [OTHER_HASH_TAKE] = {EFFECT_RECORD_EFFECT, EFFECT_TAKE, HAS_FIELD},
    [OTHER_HASH_RENAME] = {EFFECT_RECORD_EFFECT, EFFECT_RENAME, HAS_DESTINATION | HAS_TIME},
    [OTHER_HASH_COPY] = {EFFECT_RECORD_EFFECT, EFFECT_COPY, HAS_DESTINATION | HAS_TIME},
    [OTHER_TAGS] = {EFFECT_RECORD_EFFECT, EFFECT_TAGS, 0},
    [OTHER_NOTE] = {EFFECT_RECORD_EFFECT, EFFECT_NOTE, 0},
    [OTHER_TAGGED_PIECE] = {EFFECT_RECORD_ENTRIES, EFFECT_FILL, 0},
    [OTHER_STATE] = {EFFECT_RECORD_EFFECT, EFFECT_STATE, HAS_STATE},
};
enum {
    VARINT_MAX = 10,
    KEY_CODE_MAX = 9, /* up to 8 more bytes are written, but not kept */
    KEY_ROOM = KEY_CODE_MAX + 8,
    SLOT_DEFINED = 0x80,
};

/* ---- writing parts ---- */

static char *effect_bytes_put_varint(char *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (char)value;
    return at;
}

static char *effect_bytes_put(char *at, const void *from, size_t size) {
    memcpy(at, from, size);
    return at + size;
}

static char *effect_bytes_put_key(struct effect_encoder *encoder, char *at, uint64_t key) {
    uint64_t difference = key ^ encoder->last_key;
    encoder->last_key = key;
    if (difference == 0) {
        *at++ = 0;
        return at;
    }
    unsigned below = (unsigned)__builtin_ctzll(difference) / 8;
    unsigned size = 8 - below - (unsigned)__builtin_clzll(difference) / 8;
    *at++ = (char)(below << 4 | size);
    difference >>= below * 8;
    memcpy(at, &difference, sizeof difference);
    return at + size;
}

void effect_bytes_encode_begin(struct effect_encoder *encoder, struct buffer *out) {
    encoder->out = out;
    encoder->name_size = 0;
    encoder->member_size = 0;
    encoder->last_key = 0;
    encoder->slots_used = 0;
    encoder->slot_next = 0;
}

static void effect_bytes_commit(struct effect_encoder *encoder, const char *end) {
    struct buffer *out = encoder->out;
    buffer_commit(out, (size_t)(end - (out->at + out->size)));
}

/* Write a BOARD record for the next records, unless the board is the current one. */
static inline void effect_bytes_encode_board(struct effect_encoder *encoder, uint32_t database,
                                             struct bytes name) {
    if (encoder->name_size > 0 && encoder->database == database) {
        const char *current = encoder->out->at + encoder->name_at;
        if (bytes_equal((struct bytes){.at = current, .size = encoder->name_size}, name)) {
            return;
        }
    }
    char *at = buffer_reserve(encoder->out, VARINT_MAX + 1 + name.size);
    if (at != NULL) {
        at = effect_bytes_put_varint(at, (uint64_t)name.size << 2 | KIND_BOARD);
        *at++ = (char)database;
        encoder->name_at = (size_t)(at - encoder->out->at);
        at = effect_bytes_put(at, name.at, name.size);
        encoder->name_size = (uint32_t)name.size;
        encoder->database = database;
        encoder->member_size = 0;
        effect_bytes_commit(encoder, at);
    }
}

static inline void effect_bytes_encode_member(struct effect_encoder *encoder, enum record_kind kind,
                                              const struct effect *effect) {
    struct bytes member = effect->member;
    char *at = buffer_reserve(encoder->out, VARINT_MAX + KEY_ROOM + member.size);
    if (at == NULL) {
        return;
    }
    at = effect_bytes_put_varint(at, (uint64_t)member.size << 2 | kind);
    if (kind == KIND_PUT) {
        at = effect_bytes_put_key(encoder, at, effect->member_key);
        encoder->member_at = (size_t)(at - encoder->out->at);
        encoder->member_size = (uint32_t)member.size;
    }
    effect_bytes_commit(encoder, effect_bytes_put(at, member.at, member.size));
}

static char *effect_bytes_put_other(char *at, enum other_record other) {
    return effect_bytes_put_varint(at, (uint64_t)other << 2 | KIND_OTHER);
}

/* ---- reading ---- */

/* Each take_* advances at; false: the chunk has ended, or its content is invalid. */
static inline bool effect_bytes_take_varint(struct effect_decoder *decoder, uint64_t *value) {
    const char *at = decoder->at;
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64 && at < decoder->end; shift += 7) {
        uint8_t byte = (uint8_t)*at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) {
            decoder->at = at;
            *value = result;
            return true;
        }
    }
    return false;
}

static bool effect_bytes_take(struct effect_decoder *decoder, void *to, size_t size) {
    if ((size_t)(decoder->end - decoder->at) < size) {
        return false;
    }
    memcpy(to, decoder->at, size);
    decoder->at += size;
    return true;
}

static bool effect_bytes_take_byte(struct effect_decoder *decoder, uint8_t *byte) {
    return effect_bytes_take(decoder, byte, 1);
}

static inline bool effect_bytes_take_text(struct effect_decoder *decoder, uint64_t size,
                                          uint64_t size_max, struct bytes *text) {
    if (size == 0 || size > size_max || size > (uint64_t)(decoder->end - decoder->at)) {
        return false;
    }
    *text = (struct bytes){.at = decoder->at, .size = (size_t)size};
    decoder->at += size;
    return true;
}

static inline bool effect_bytes_take_key(struct effect_decoder *decoder, uint64_t *key) {
    if (decoder->at == decoder->end) {
        return false;
    }
    uint8_t code = (uint8_t)*decoder->at++;
    unsigned below = code >> 4;
    unsigned size = code & 15;
    uint64_t difference = 0;
    if (size > 0) {
        if (below + size > 8 || size > (size_t)(decoder->end - decoder->at)) {
            return false;
        }
        memcpy(&difference, decoder->at, size);
        decoder->at += size;
        difference <<= below * 8;
    }
    decoder->last_key ^= difference;
    *key = decoder->last_key;
    return true;
}

/* ---- options ---- */

/* Each code_* writes a part of options, or operands, or reads it; false: what is read is invalid. */
struct coder {
    struct effect_decoder *from; /* NULL: writing */
    char *to;
};

static bool effect_bytes_code(struct coder *coder, void *value, size_t size) {
    if (coder->from != NULL) {
        return effect_bytes_take(coder->from, value, size);
    }
    coder->to = effect_bytes_put(coder->to, value, size);
    return true;
}

static bool effect_bytes_code_byte(struct coder *coder, uint8_t *value, unsigned value_max) {
    return effect_bytes_code(coder, value, 1) && *value <= value_max;
}

static bool effect_bytes_code_u64(struct coder *coder, uint64_t *value) {
    if (coder->from != NULL) {
        return effect_bytes_take_varint(coder->from, value);
    }
    coder->to = effect_bytes_put_varint(coder->to, *value);
    return true;
}

static bool effect_bytes_code_u32(struct coder *coder, uint32_t *value) {
    uint64_t number = *value;
    if (!effect_bytes_code_u64(coder, &number) || number > UINT32_MAX) {
        return false;
    }
    *value = (uint32_t)number;
    return true;
}

/* A key's name, or a text of a hash, which may be empty. */
static bool effect_bytes_code_text(struct coder *coder, uint64_t size, uint64_t size_max,
                                   struct bytes *text) {
    if (coder->from != NULL) {
        *text = (struct bytes){.at = coder->from->at, .size = 0};
        return size == 0 || effect_bytes_take_text(coder->from, size, size_max, text);
    }
    if (size > 0) {
        coder->to = effect_bytes_put(coder->to, text->at, size);
    }
    return true;
}

static bool effect_bytes_code_database(struct coder *coder, uint32_t *database) {
    uint8_t byte = (uint8_t)*database;
    bool is_good = effect_bytes_code_byte(coder, &byte, REGISTRY_DATABASES - 1);
    *database = byte;
    return is_good;
}

static bool effect_bytes_code_tags(struct coder *coder, struct tag_set *tags) {
    if (!effect_bytes_code_byte(coder, &tags->count, TAGS_MAX)) {
        return false;
    }
    for (unsigned i = 0; i < tags->count; i++) {
        struct tag *tag = &tags->tags[i];
        uint8_t size = (uint8_t)strlen(tag->name);
        if (!effect_bytes_code_byte(coder, &tag->bits, TAGS_BITS_MAX) ||
            !effect_bytes_code_byte(coder, &size, TAG_NAME_MAX) ||
            !effect_bytes_code(coder, tag->name, size)) {
            return false;
        }
    }
    return true;
}

static bool effect_bytes_code_zone(struct coder *coder, const struct zone **zone) {
    char name[ZONE_NAME_MAX];
    uint8_t size = 0;
    if (*zone != NULL) {
        size = (uint8_t)strlen(zone_name(*zone));
        memcpy(name, zone_name(*zone), size);
    }
    if (!effect_bytes_code_byte(coder, &size, ZONE_NAME_MAX) ||
        !effect_bytes_code(coder, name, size)) {
        return false;
    }
    if (size > 0 && coder->from != NULL) {
        *zone = tzdata_find_anyway((struct bytes){.at = name, .size = size});
    }
    return size == 0 || *zone != NULL;
}

/* Both signs, the nearest to 0 in the fewest bytes. */
static bool effect_bytes_code_i64(struct coder *coder, int64_t *value) {
    uint64_t folded = (uint64_t)*value << 1 ^ -(uint64_t)(*value < 0);
    bool is_good = effect_bytes_code_u64(coder, &folded);
    *value = (int64_t)(folded >> 1 ^ -(folded & 1));
    return is_good;
}

/* Numbers of parameters, from 1 on, are theirs for ever. */
static bool effect_bytes_code_rating(struct coder *coder, struct board_options *options) {
    struct rating_rule *rating = &options->rating;
    struct rating_rule usual;
    uint8_t number = (uint8_t)rating->system;
    if (!effect_bytes_code_byte(coder, &number, RATING_SYSTEMS - 1)) {
        return false;
    }
    rating_rule_init(&usual, (enum rating_system)number);
    if (coder->from == NULL) {
        for (unsigned i = 0; i < RATING_PARAMETERS; i++) {
            if (rating->of[i] != usual.of[i]) {
                *coder->to++ = (char)(i + 1);
                (void)effect_bytes_code_i64(coder, &rating->of[i]);
            }
        }
        *coder->to++ = 0;
        return true;
    }
    options->has_rating = true;
    *rating = usual;
    while (effect_bytes_take_byte(coder->from, &number) && number != 0) {
        if (number > RATING_PARAMETERS || !effect_bytes_code_i64(coder, &rating->of[number - 1])) {
            return false;
        }
    }
    return number == 0;
}

/* Bits of limits are theirs for ever. */
static bool effect_bytes_code_limits(struct coder *coder, struct board_options *options) {
    struct limits_rule *rule = &options->limits;
    uint8_t for_all = rule->is_for_all;
    if (coder->from != NULL) {
        *rule = (struct limits_rule){.has = 0};
        options->has_limits = true;
    }
    bool is_good = effect_bytes_code_byte(coder, &for_all, 1) &&
                   effect_bytes_code_byte(coder, &rule->has, (1U << LIMITS) - 1);
    rule->is_for_all = for_all != 0;
    for (unsigned limit = 0; limit < LIMITS && is_good; limit++) {
        if (limits_has(rule, limit)) {
            is_good = effect_bytes_code_i64(coder, &rule->of[limit]) &&
                      effect_bytes_code_i64(coder, &rule->time_ms[limit]) &&
                      effect_bytes_code_byte(coder, &rule->scale[limit], DECIMAL_SCALE_MAX);
        }
    }
    return is_good;
}

static bool effect_bytes_code_hold(struct coder *coder, struct board_options *options) {
    struct hold_rule *rule = &options->hold;
    uint8_t for_all = rule->is_for_all;
    uint8_t which = (uint8_t)(rule->has_over | rule->takes_limits << 1);
    int64_t top = rule->top;
    if (coder->from != NULL) {
        *rule = (struct hold_rule){.top = 0};
        options->has_hold = true;
    }
    bool is_good = effect_bytes_code_byte(coder, &for_all, 1) &&
                   effect_bytes_code_byte(coder, &which, 3) &&
                   effect_bytes_code_i64(coder, &rule->over) &&
                   effect_bytes_code_byte(coder, &rule->scale, DECIMAL_SCALE_MAX) &&
                   effect_bytes_code_i64(coder, &top) &&
                   effect_bytes_code_i64(coder, &rule->auto_ms) && top >= 0 && top <= HOLD_TOP_MAX;
    rule->is_for_all = for_all != 0;
    rule->has_over = (which & 1) != 0;
    rule->takes_limits = (which & 2) != 0;
    rule->top = is_good ? (uint32_t)top : 0;
    return is_good;
}

static bool effect_bytes_code_value(struct coder *coder, const struct board_option *option,
                                    struct board_options *options, struct board_state *state) {
    if (option->is_of_state != (options == NULL)) {
        return false;
    }
    if (options != NULL) { /* a state has numbers alone */
        switch (option->form) {
        case BOARD_FORM_RATING:
            return effect_bytes_code_rating(coder, options);
        case BOARD_FORM_LIMITS:
            return effect_bytes_code_limits(coder, options);
        case BOARD_FORM_HOLD:
            return effect_bytes_code_hold(coder, options);
        case BOARD_FORM_POINTER:
            return effect_bytes_code_zone(coder, &options->period.zone);
        default:
            break;
        }
    }
    int64_t value = board_options_get(option, options, state);
    if (!effect_bytes_code_i64(coder, &value)) {
        return false;
    }
    if (coder->from == NULL) {
        return true;
    }
    if (!board_options_may_be(option, value)) {
        return false;
    }
    board_options_set(option, options, state, value);
    return board_options_get(option, options, state) == value;
}

/* The rows of options, or of a state (options NULL), that are not as usual, each with its code; 0 is the end. */
static bool effect_bytes_put_options(struct coder *coder, struct board_options *options,
                                     struct board_state *state) {
    for (size_t i = 0; i < BOARD_OPTION_COUNT; i++) {
        const struct board_option *option = &board_options[i];
        if (option->code != 0 && option->is_of_state == (options == NULL) &&
            board_options_get(option, options, state) !=
                (options != NULL ? board_options_usual(option, options) : 0)) {
            *coder->to++ = (char)option->code;
            if (!effect_bytes_code_value(coder, option, options, state)) {
                return false;
            }
        }
    }
    *coder->to++ = 0;
    return true;
}

static bool effect_bytes_take_options(struct coder *coder, struct board_options *options,
                                      struct board_state *state) {
    bool has[BOARD_OPTION_COUNT] = {false};
    uint8_t code;
    bool is_good = effect_bytes_take_byte(coder->from, &code);
    while (is_good && code != 0) {
        size_t i = board_options_find(code);
        is_good = i < BOARD_OPTION_COUNT && !has[i] &&
                  effect_bytes_code_value(coder, &board_options[i], options, state);
        if (is_good) {
            has[i] = true;
            is_good = effect_bytes_take_byte(coder->from, &code);
        }
    }
    for (size_t i = 0; i < BOARD_OPTION_COUNT && options != NULL; i++) {
        const struct board_option *option = &board_options[i];
        if (option->code != 0 && option->usual != 0 && !has[i]) {
            board_options_set(option, options, NULL, board_options_usual(option, options));
        }
    }
    if (options != NULL) {
        options->guards = board_options_guards(options);
    }
    return is_good;
}

/* *state: of the effect; NULL, of one that is written: zeroed. */
static bool effect_bytes_code_state(struct coder *coder, const struct board_state **state) {
    struct board_state copy = {.from_ms = 0};
    if (coder->from == NULL) {
        copy = *state != NULL ? **state : copy;
        return effect_bytes_put_options(coder, NULL, &copy);
    }
    coder->from->state = copy;
    *state = &coder->from->state;
    return effect_bytes_take_options(coder, NULL, &coder->from->state);
}

static bool effect_bytes_code_time(struct coder *coder, struct layout_time *time) {
    enum { LATEST = 1, GIVEN_BY_END = 2 };
    uint8_t unit = (uint8_t)time->unit;
    uint8_t flags =
        (uint8_t)((time->is_latest ? LATEST : 0) | (time->is_given_by_end ? GIVEN_BY_END : 0));
    if (!effect_bytes_code_byte(coder, &time->bits, 63)) {
        return false;
    }
    if (time->bits == 0) {
        return true;
    }
    bool is_good = effect_bytes_code_byte(coder, &unit, LAYOUT_UNIT_D) &&
                   effect_bytes_code_byte(coder, &flags, LATEST | GIVEN_BY_END) &&
                   effect_bytes_code(coder, &time->start_us, sizeof time->start_us);
    time->is_latest = (flags & LATEST) != 0;
    time->is_given_by_end = (flags & GIVEN_BY_END) != 0;
    time->unit = (enum layout_unit)unit;
    return is_good;
}

static bool effect_bytes_code_field(struct coder *coder, struct layout_field *field,
                                    unsigned bits_max) {
    enum { SIGNED = 1, ASCENDING = 2, DOUBLE = 4, DECAYS = 8 };
    uint8_t name_size = (uint8_t)strlen(field->name);
    uint8_t flags =
        (uint8_t)((field->is_signed ? SIGNED : 0) | (field->is_ascending ? ASCENDING : 0) |
                  (field->is_double ? DOUBLE : 0) | (layout_field_decays(field) ? DECAYS : 0));
    bool is_good = effect_bytes_code_byte(coder, &field->bits, bits_max) && field->bits > 0 &&
                   effect_bytes_code_byte(coder, &field->scale, UINT8_MAX) &&
                   effect_bytes_code_byte(coder, &flags, SIGNED | ASCENDING | DOUBLE | DECAYS) &&
                   ((flags & DECAYS) == 0 ||
                    (effect_bytes_code_u32(coder, &field->decay.count) && field->decay.count > 0 &&
                     field->decay.count <= DECAY_COUNT_MAX &&
                     effect_bytes_code_byte(coder, &field->decay.unit, LAYOUT_UNIT_D))) &&
                   effect_bytes_code_byte(coder, &name_size, LAYOUT_NAME_MAX) &&
                   effect_bytes_code(coder, field->name, name_size);
    field->is_signed = (flags & SIGNED) != 0;
    field->is_ascending = (flags & ASCENDING) != 0;
    field->is_double = (flags & DOUBLE) != 0;
    return is_good;
}

static bool effect_bytes_code_options(struct coder *coder, struct board_options *options) {
    struct layout *layout = &options->layout;
    if (!(coder->from != NULL ? effect_bytes_take_options(coder, options, NULL)
                              : effect_bytes_put_options(coder, options, NULL)) ||
        !effect_bytes_code_tags(coder, &layout->tags) ||
        !effect_bytes_code_time(coder, &layout->time) ||
        !effect_bytes_code_byte(coder, &layout->field_count, LAYOUT_FIELDS_MAX)) {
        return false;
    }
    unsigned bits_left = 64U - layout->time.bits;
    for (unsigned i = 0; i < layout->field_count; i++) {
        if (!effect_bytes_code_field(coder, &layout->fields[i], bits_left)) {
            return false;
        }
        bits_left -= layout->fields[i].bits;
    }
    return layout->field_count > 0;
}

/* Find or choose the slot for these options; is_new: its content must be written, too. */
static uint32_t effect_bytes_find_slot(struct effect_encoder *encoder,
                                       const struct board_options *options, bool *is_new) {
    char text[EFFECT_RULES_SIZE_MAX];
    struct board_options copy;
    struct coder coder = {.to = text};
    board_options_copy(options, &copy);
    CHECK(effect_bytes_code_options(&coder, &copy));
    uint32_t size = (uint32_t)(coder.to - text);
    *is_new = false;
    for (uint32_t i = 0; i < encoder->slots_used; i++) {
        const struct effect_rules_text *slot = &encoder->slots[i];
        if (slot->size == size && memcmp(slot->at, text, size) == 0) {
            return i;
        }
    }
    uint32_t index = encoder->slot_next;
    encoder->slot_next = (index + 1) % EFFECT_RULES_SLOTS;
    if (encoder->slots_used < EFFECT_RULES_SLOTS) {
        encoder->slots_used++;
    }
    encoder->slots[index].size = size;
    memcpy(encoder->slots[index].at, text, size);
    *is_new = true;
    return index;
}

/* ---- writing records ---- */

static bool effect_bytes_take_slot(struct effect_decoder *decoder,
                                   const struct board_options **options) {
    const char *reason;
    uint8_t slot;
    if (!effect_bytes_take_byte(decoder, &slot)) {
        return false;
    }
    unsigned index = slot & ~(unsigned)SLOT_DEFINED;
    if (index >= EFFECT_RULES_SLOTS) {
        return false;
    }
    struct board_options *defined = &decoder->slots[index];
    if ((slot & SLOT_DEFINED) != 0) {
        struct coder coder = {.from = decoder};
        memset(defined, 0, sizeof *defined);
        bool is_good = effect_bytes_code_options(&coder, defined);
        if (is_good) {
            layout_complete(&defined->layout);
            is_good = board_options_validate(defined, &reason);
        }
        if (is_good) {
            board_options_renew_period(defined);
            if (defined->period.zone != NULL && zone_is_missing(defined->period.zone)) {
                decoder->missing_zone = defined->period.zone;
            }
            /* A start that no file has may be behind the new end. */
            is_good = board_options_validate(defined, &reason);
        }
        decoder->has_slot[index] = is_good;
    }
    *options = defined;
    return decoder->has_slot[index];
}

/* encoder: where options that are written have their slots. */
static bool effect_bytes_code_operands(struct coder *coder, struct effect_encoder *encoder,
                                       struct effect *effect, unsigned operands) {
    uint64_t name_size = effect->to_name.size;
    uint64_t field_size = effect->member.size;
    uint64_t value_size = (operands & HAS_VALUE) != 0 ? effect->value.size : 0;
    uint8_t kind = REGISTRY_HASH;
    if (((operands & HAS_DATABASE) != 0 && !effect_bytes_code_database(coder, &effect->database)) ||
        ((operands & HAS_DESTINATION) != 0 &&
         !(effect_bytes_code_database(coder, &effect->to_database) &&
           effect_bytes_code_u64(coder, &name_size) && name_size > 0 &&
           effect_bytes_code_text(coder, name_size, REGISTRY_NAME_MAX, &effect->to_name)))) {
        return false;
    }
    if ((operands & HAS_RULES) != 0 && coder->from == NULL) {
        /* The caller has reserved 1 + EFFECT_RULES_SIZE_MAX. */
        bool is_new;
        CHECK(encoder != NULL);
        uint32_t index = effect_bytes_find_slot(encoder, effect->options, &is_new);
        *coder->to++ = (char)(index | (is_new ? SLOT_DEFINED : 0));
        if (is_new) {
            coder->to =
                effect_bytes_put(coder->to, encoder->slots[index].at, encoder->slots[index].size);
        }
    } else if ((operands & HAS_RULES) != 0 &&
               !effect_bytes_take_slot(coder->from, &effect->options)) {
        return false;
    }
    bool has_options = (operands & HAS_RULES) != 0;
    if (((operands & HAS_STATE) != 0 ||
         (has_options && board_options_have_state(effect->options))) &&
        !(effect_bytes_code_state(coder, &effect->state) &&
          (!has_options || coder->from == NULL ||
           board_options_take_state(effect->options, effect->state)))) {
        return false;
    }
    return ((operands & HAS_TIME) == 0 ||
            effect_bytes_code(coder, &effect->expire_at_ms, sizeof effect->expire_at_ms)) &&
           ((operands & HAS_RANGE) == 0 || (effect_bytes_code_u32(coder, &effect->rank) &&
                                            effect_bytes_code_u32(coder, &effect->count))) &&
           ((operands & HAS_KIND) == 0 ||
            (effect_bytes_code_byte(coder, &kind, UINT8_MAX) && kind == REGISTRY_HASH)) &&
           ((operands & HAS_FIELD) == 0 ||
            (effect_bytes_code_u64(coder, &field_size) &&
             ((operands & HAS_VALUE) == 0 || effect_bytes_code_u64(coder, &value_size)) &&
             effect_bytes_code_text(coder, field_size, HASH_TEXT_MAX, &effect->member) &&
             effect_bytes_code_text(coder, value_size, HASH_TEXT_MAX, &effect->value)));
}

static void effect_bytes_encode_other(struct effect_encoder *encoder, enum other_record other,
                                      const struct effect *effect) {
    struct effect copy = *effect;
    unsigned operands = others[other].operands;
    size_t text_size = (operands & HAS_FIELD) != 0 ? effect->member.size + effect->value.size
                                                   : effect->to_name.size;
    char *at =
        buffer_reserve(encoder->out, 3 * VARINT_MAX + 16 + text_size + EFFECT_RULES_SIZE_MAX);
    if (at != NULL) {
        struct coder coder = {.to = effect_bytes_put_other(at, other)};
        CHECK(effect_bytes_code_operands(&coder, encoder, &copy, operands));
        effect_bytes_commit(encoder, coder.to);
    }
}

/* TAGS and NOTE. The member of the last PUT or of these, which is usually the same, is not repeated. */
static void effect_bytes_encode_of_member(struct effect_encoder *encoder,
                                          const struct effect *effect) {
    struct bytes member = effect->member;
    bool is_last = encoder->member_size > 0 &&
                   bytes_equal((struct bytes){.at = encoder->out->at + encoder->member_at,
                                              .size = encoder->member_size},
                               member);
    char *at = buffer_reserve(encoder->out, 3 * VARINT_MAX + member.size + effect->value.size);
    if (at == NULL) {
        return;
    }
    bool is_note = effect->kind == EFFECT_NOTE;
    at = effect_bytes_put_other(at, is_note ? OTHER_NOTE : OTHER_TAGS);
    at = effect_bytes_put_varint(at, is_last ? 0 : member.size);
    if (!is_last) {
        encoder->member_at = (size_t)(at - encoder->out->at);
        encoder->member_size = (uint32_t)member.size;
        at = effect_bytes_put(at, member.at, member.size);
    }
    if (is_note) {
        at = effect_bytes_put_varint(at, effect->value.size);
    }
    if (effect->value.size > 0) {
        at = effect_bytes_put(at, effect->value.at, effect->value.size);
    }
    effect_bytes_commit(encoder, at);
}

/* The record of this kind of effect among those from begin on; end: there is none. */
static unsigned effect_bytes_find_other(enum effect_kind kind, unsigned begin, unsigned end) {
    unsigned other = begin;
    while (other < end && others[other].kind != kind) {
        other++;
    }
    return other;
}

void effect_bytes_encode(struct effect_encoder *encoder, const struct effect *effect) {
    if (effect->kind != EFFECT_FLUSH) {
        effect_bytes_encode_board(encoder, effect->database, effect->name);
    }
    bool is_of_hash = effect->key_kind == &key_kind_hash;
    if (effect->kind == EFFECT_PUT && !is_of_hash) {
        effect_bytes_encode_member(encoder, KIND_PUT, effect);
    } else if (effect->kind == EFFECT_TAKE && !is_of_hash) {
        effect_bytes_encode_member(encoder, KIND_TAKE, effect);
    } else if (effect->kind == EFFECT_TAGS || effect->kind == EFFECT_NOTE) {
        effect_bytes_encode_of_member(encoder, effect);
    } else if (effect->kind == EFFECT_STATE) {
        effect_bytes_encode_other(encoder, OTHER_STATE, effect);
    } else {
        /* What is not special to hashes is the same for all keys. */
        unsigned other = is_of_hash
                             ? effect_bytes_find_other(effect->kind, OTHER_HASH_CREATE, OTHER_TAGS)
                             : OTHER_TAGS;
        if (other == OTHER_TAGS) {
            other = effect_bytes_find_other(effect->kind, 0, OTHER_OPEN);
            CHECK(other < OTHER_OPEN);
        }
        effect_bytes_encode_other(encoder, (enum other_record)other, effect);
    }
}

void effect_bytes_encode_open(struct effect_encoder *encoder, const struct registry_key *key,
                              int64_t expire_at_ms) {
    const struct effect effect = {.options = registry_options(key),
                                  .state = registry_state(key),
                                  .expire_at_ms = expire_at_ms};
    effect_bytes_encode_board(encoder, key->database, registry_name(key));
    effect_bytes_encode_other(encoder, OTHER_OPEN, &effect);
}

void effect_bytes_encode_piece(struct effect_encoder *encoder, const struct board *board,
                               uint32_t rank, const struct board_stored *entries, uint32_t count) {
    bool has_values = board != NULL && tags_has_values(board);
    size_t values_room = has_values ? TAG_VALUES_PACKED_MAX : 0;
    struct tag_values values;
    char *at = buffer_reserve(encoder->out, 2 * VARINT_MAX);
    if (at == NULL) {
        return;
    }
    at = effect_bytes_put_other(at, has_values ? OTHER_TAGGED_PIECE : OTHER_PIECE);
    effect_bytes_commit(encoder, effect_bytes_put_varint(at, count));
    for (uint32_t i = 0; i < count; i++) {
        char room[NAME_TEXT_ROOM];
        struct bytes member = name_text(entries[i].member, room);
        at = buffer_reserve(encoder->out, VARINT_MAX + KEY_ROOM + member.size + values_room);
        if (at == NULL) {
            return;
        }
        at = effect_bytes_put_varint(at, member.size);
        at = effect_bytes_put_key(encoder, at, entries[i].key);
        at = effect_bytes_put(at, member.at, member.size);
        if (has_values) {
            tags_at(board, rank + i, &values);
            at += tag_values_pack(&values, at);
        }
        effect_bytes_commit(encoder, at);
    }
}

bool effect_bytes_encode_next_piece(struct effect_encoder *encoder, const struct board *board,
                                    uint32_t *rank) {
    struct board_stored entries[EFFECT_PIECE_ENTRIES];
    struct board_cursor cursor;
    uint32_t count = 0;
    board_cursor_seek(board, *rank, &cursor);
    while (count < EFFECT_PIECE_ENTRIES && board_cursor_read(&cursor, &entries[count])) {
        count++;
        board_cursor_next(&cursor);
    }
    if (count > 0) {
        effect_bytes_encode_piece(encoder, board, *rank, entries, count);
    }
    *rank += count;
    return count > 0;
}

bool effect_bytes_encode_next_note(struct effect_encoder *encoder, const struct registry_key *key,
                                   uint32_t *index) {
    struct registry_note_room room;
    struct hash_pair pair;
    if (*index == registry_note_count(key)) {
        return false;
    }
    registry_note_at(key, (*index)++, &pair, &room);
    effect_bytes_encode(encoder, &(struct effect){.kind = EFFECT_NOTE,
                                                  .database = key->database,
                                                  .name = registry_name(key),
                                                  .member = pair.field,
                                                  .value = pair.value});
    return true;
}

static const struct effect no_operands;

void effect_bytes_encode_close(struct effect_encoder *encoder) {
    effect_bytes_encode_other(encoder, OTHER_CLOSE, &no_operands);
}

/* ---- reading records ---- */

void effect_bytes_decode_begin(struct effect_decoder *decoder, struct bytes chunk) {
    decoder->begin = chunk.at;
    decoder->at = chunk.at;
    decoder->end = chunk.size > 0 ? chunk.at + chunk.size : chunk.at; /* which may be NULL */
    decoder->name = (struct bytes){.at = NULL};
    decoder->member = (struct bytes){.at = NULL};
    decoder->database = 0;
    decoder->last_key = 0;
    decoder->piece_left = 0;
    decoder->entry_count = 0;
    decoder->has_values = false;
    decoder->missing_zone = NULL;
    memset(decoder->has_slot, 0, sizeof decoder->has_slot);
}

/* Values, which take part in a chunk as they are packed. */
static bool effect_bytes_take_values(struct effect_decoder *decoder, struct bytes *packed) {
    struct bytes left = {.at = decoder->at, .size = (size_t)(decoder->end - decoder->at)};
    struct tag_values values;
    if (!tag_values_take(&left, TAGS_MAX, &values)) {
        return false;
    }
    *packed = (struct bytes){.at = decoder->at, .size = (size_t)(left.at - decoder->at)};
    decoder->at = left.at;
    return true;
}

static bool effect_bytes_decode_of_member(struct effect_decoder *decoder, bool is_note) {
    uint64_t size;
    if (!effect_bytes_take_varint(decoder, &size) ||
        (size > 0 && !effect_bytes_take_text(decoder, size, BOARD_MEMBER_MAX, &decoder->member)) ||
        decoder->member.size == 0) {
        return false;
    }
    struct bytes *value = &decoder->effect.value;
    decoder->effect.member = decoder->member;
    if (!is_note) {
        return effect_bytes_take_values(decoder, value);
    }
    *value = (struct bytes){.at = NULL};
    return effect_bytes_take_varint(decoder, &size) &&
           (size == 0 || effect_bytes_take_text(decoder, size, REGISTRY_NOTE_MAX, value));
}

static enum effect_record effect_bytes_decode_entries(struct effect_decoder *decoder) {
    uint64_t count =
        decoder->piece_left < EFFECT_ENTRIES_MAX ? decoder->piece_left : EFFECT_ENTRIES_MAX;
    for (uint64_t i = 0; i < count; i++) {
        struct board_entry *entry = &decoder->entries[i];
        uint64_t size;
        if (!effect_bytes_take_varint(decoder, &size) ||
            !effect_bytes_take_key(decoder, &entry->key) ||
            !effect_bytes_take_text(decoder, size, BOARD_MEMBER_MAX, &entry->member) ||
            (decoder->has_values &&
             !effect_bytes_take_values(decoder, &decoder->entry_values[i]))) {
            return EFFECT_RECORD_BAD;
        }
    }
    decoder->piece_left -= count;
    decoder->entry_count = (uint32_t)count;
    return EFFECT_RECORD_ENTRIES;
}

static enum effect_record effect_bytes_decode_other(struct effect_decoder *decoder,
                                                    uint64_t other) {
    struct coder coder = {.from = decoder};
    bool is_of_hash = other >= OTHER_HASH_CREATE && other < OTHER_TAGS;
    bool needs_key =
        other != OTHER_FLUSH && (other < OTHER_PIECE || is_of_hash || other >= OTHER_TAGS);
    decoder->effect.options = NULL;
    decoder->effect.state = NULL;
    if (other >= OTHER_COUNT || (needs_key && decoder->name.size == 0) ||
        !effect_bytes_code_operands(&coder, NULL, &decoder->effect, others[other].operands)) {
        return EFFECT_RECORD_BAD;
    }
    decoder->effect.kind = others[other].kind;
    decoder->effect.key_kind = is_of_hash ? &key_kind_hash : NULL;
    if (other == OTHER_FLUSH) {
        decoder->effect.name = (struct bytes){.at = NULL};
    }
    if ((other == OTHER_TAGS || other == OTHER_NOTE) &&
        !effect_bytes_decode_of_member(decoder, other == OTHER_NOTE)) {
        return EFFECT_RECORD_BAD;
    }
    if (other != OTHER_PIECE && other != OTHER_TAGGED_PIECE) {
        return others[other].record;
    }
    decoder->has_values = other == OTHER_TAGGED_PIECE;
    return effect_bytes_take_varint(decoder, &decoder->piece_left) && decoder->piece_left > 0
               ? effect_bytes_decode_entries(decoder)
               : EFFECT_RECORD_BAD;
}

enum effect_record effect_bytes_decode(struct effect_decoder *decoder) {
    uint64_t head;
    struct effect *effect = &decoder->effect;
    if (decoder->piece_left > 0) {
        return effect_bytes_decode_entries(decoder);
    }
    do {
        if (decoder->at == decoder->end) {
            return EFFECT_RECORD_END;
        }
        if (!effect_bytes_take_varint(decoder, &head)) {
            return EFFECT_RECORD_BAD;
        }
        if ((head & 3) == KIND_BOARD) {
            uint8_t database;
            if (!effect_bytes_take_byte(decoder, &database) || database >= REGISTRY_ALL_DATABASES) {
                return EFFECT_RECORD_BAD;
            }
            decoder->database = database;
            decoder->member = (struct bytes){.at = NULL};
            if (!effect_bytes_take_text(decoder, head >> 2, REGISTRY_NAME_MAX, &decoder->name)) {
                return EFFECT_RECORD_BAD;
            }
        }
    } while ((head & 3) == KIND_BOARD);
    effect->database = decoder->database;
    effect->name = decoder->name;
    effect->key = NULL;
    if ((head & 3) == KIND_OTHER) {
        return effect_bytes_decode_other(decoder, head >> 2);
    }
    effect->key_kind = NULL;
    bool is_put = (head & 3) == KIND_PUT;
    bool is_good = decoder->name.size > 0 &&
                   (!is_put || effect_bytes_take_key(decoder, &effect->member_key)) &&
                   effect_bytes_take_text(decoder, head >> 2, BOARD_MEMBER_MAX, &effect->member);
    effect->kind = is_put ? EFFECT_PUT : EFFECT_TAKE;
    decoder->member = is_put ? effect->member : decoder->member;
    return is_good ? EFFECT_RECORD_EFFECT : EFFECT_RECORD_BAD;
}

/* ---- blobs ---- */

void effect_bytes_begin_blob(struct effect_encoder *encoder, struct buffer *out, int64_t now_us) {
    char head[EFFECT_BLOB_HEAD_SIZE] = {FILE_FORMAT};
    bytes_put_u64(head + 1, (uint64_t)now_us);
    buffer_clear(out);
    buffer_append(out, head, sizeof head);
    effect_bytes_encode_begin(encoder, out);
}

bool effect_bytes_is_blob_of_another_format(struct bytes blob) {
    return blob.size > 0 && !file_format_is_read((unsigned char)blob.at[0]);
}

bool effect_bytes_open_blob(struct bytes blob, int64_t *time_us, struct bytes *chunk) {
    if (blob.size < EFFECT_BLOB_HEAD_SIZE || effect_bytes_is_blob_of_another_format(blob)) {
        return false;
    }
    *time_us = (int64_t)bytes_get_u64(blob.at + 1);
    *chunk = (struct bytes){.at = blob.at + EFFECT_BLOB_HEAD_SIZE,
                            .size = blob.size - EFFECT_BLOB_HEAD_SIZE};
    return *time_us >= 0;
}

bool effect_bytes_check_blob(struct effect_decoder *decoder, struct bytes chunk,
                             effect_bytes_allow *allow, void *context) {
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
enum effect_status effect_bytes_apply_blob(struct registry *registry,
                                           struct effect_decoder *decoder, struct bytes chunk,
                                           effect_bytes_visit *visit, void *context) {
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
