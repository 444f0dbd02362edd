/* Layouts: their text, their fields' ranges, and packing keys.
 *
 *     words -> parser.layout (widths only) -> layout_complete() -> *layout
 *
 * The invariant is what layout_validate checks: shifts and masks follow from the widths, so the
 * functions on keys only shift and mask. They never shift by 64, because every width is at least
 * 1. */
#include "codec/layout.h"

#include <stdarg.h>
#include <stdio.h>

#include "codec/timestamp.h"

#define US_PER_SECOND 1000000LL
#define US_PER_MINUTE (60 * US_PER_SECOND)
#define US_PER_HOUR   (60 * US_PER_MINUTE)
#define US_PER_DAY    (24 * US_PER_HOUR)

#define FIELD_FORM "FIELD name bits [ASC|DESC] [SIGNED] [SCALE d] [DOUBLE] [DECAY n S|M|H|D]"
#define TIME_FORM  "TIME bits US|MS|S|M|H|D [START t | END t] [LATEST]"
#define TAG_FORM   "TAG name bits"

/* 2020-01-01T00:00:00Z */
#define START_DEFAULT_US INT64_C(1577836800000000)
/* Without a TIME scores that decay last until 2070-01-01T00:00:00Z or longer. */
#define DECAY_SPAN_US (18263 * US_PER_DAY)

enum { KEY_BITS = 64, UNIT_COUNT = LAYOUT_UNIT_D + 1 };

static const struct {
    const char *name;
    int64_t us;
} units[UNIT_COUNT] = {
    [LAYOUT_UNIT_US] = {"US", 1},           [LAYOUT_UNIT_MS] = {"MS", 1000},
    [LAYOUT_UNIT_S] = {"S", US_PER_SECOND}, [LAYOUT_UNIT_M] = {"M", US_PER_MINUTE},
    [LAYOUT_UNIT_H] = {"H", US_PER_HOUR},   [LAYOUT_UNIT_D] = {"D", US_PER_DAY},
};

/* bits is 1..64. */
static uint64_t layout_mask_of(unsigned bits) {
    CHECK(bits >= 1);
    return UINT64_MAX >> (KEY_BITS - bits);
}

/* ---- Messages ---- */

static struct bytes_shown layout_show_time(int64_t time_us) {
    struct bytes_shown shown;
    shown.text[timestamp_print(shown.text, time_us)] = '\0';
    return shown;
}

static struct bytes_shown layout_show_decimal(struct decimal value, unsigned scale) {
    struct bytes_shown shown;
    shown.text[decimal_print(shown.text, value, scale)] = '\0';
    return shown;
}

/* Write the message to error (LAYOUT_ERROR_MAX); returns false. */
__attribute__((format(printf, 2, 3))) static bool layout_reject(char *error, const char *format,
                                                                ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error, LAYOUT_ERROR_MAX, format, arguments);
    va_end(arguments);
    return false;
}

/* ---- DECAY: what follows from a half-life, and whether there is room for it; codec/decay.h has the arithmetic ---- */

/* How long results may come: as long as TIME lasts. */
static uint64_t layout_decay_span_us(const struct layout_time *time) {
    uint64_t span_us;
    if (time->bits == 0) {
        return DECAY_SPAN_US;
    }
    return __builtin_mul_overflow(time->mask, (uint64_t)time->unit_us, &span_us) ||
                   __builtin_add_overflow(span_us, (uint64_t)time->unit_us, &span_us)
               ? UINT64_MAX
               : span_us;
}

static int64_t layout_decay_epoch_us(const struct layout *layout) {
    return layout->time.bits > 0 ? layout->time.start_us : START_DEFAULT_US;
}

/* START has been moved. */
static void layout_decay_set_epoch(struct layout *layout) {
    if (layout_field_decays(&layout->fields[0])) {
        layout->fields[0].decay.epoch_us = layout_decay_epoch_us(layout);
    }
}

/* What follows from the lead field's half-life. Where there is no room for the whole part, there are no bits of
 * fraction: layout_decay_check. */
static struct decay layout_decay_of(const struct layout *layout) {
    const struct layout_field *lead = &layout->fields[0];
    struct decay decay = {.count = lead->decay.count, .unit = lead->decay.unit};
    if (decay.count == 0) {
        return decay;
    }
    decay.half_life_us = decay.count * units[decay.unit].us;
    decay.epoch_us = layout_decay_epoch_us(layout);
    unsigned whole_bits =
        decay_whole_bits((uint64_t)decay.half_life_us, layout_decay_span_us(&layout->time));
    unsigned bits = lead->bits > whole_bits ? lead->bits - whole_bits : 0;
    decay.fraction_bits =
        (uint8_t)(bits < DECAY_FRACTION_BITS_MAX ? bits : DECAY_FRACTION_BITS_MAX);
    return decay;
}

/* Does a layout that is complete have room for it? false: error says what is needed. */
static bool layout_decay_check(const struct layout *layout, char *error) {
    const struct layout_field *lead = &layout->fields[0];
    const struct decay *decay = &lead->decay;
    if (decay->count == 0) {
        return true;
    }
    if (lead->is_double) {
        return layout_reject(error, "field '%s': DOUBLE and DECAY exclude each other", lead->name);
    }
    if (lead->is_signed) {
        return layout_reject(
            error, "field '%s': SIGNED and DECAY exclude each other: results are never negative",
            lead->name);
    }
    if (decay->fraction_bits >= DECAY_FRACTION_BITS_MIN) {
        return true;
    }
    unsigned whole_bits =
        decay_whole_bits((uint64_t)decay->half_life_us, layout_decay_span_us(&layout->time));
    return layout_reject(error,
                         "field '%s': %u bits are too few for DECAY %u %s: %u are needed, %d for a "
                         "part in a million and %u for the half-lives until %s%s",
                         lead->name, (unsigned)lead->bits, (unsigned)decay->count,
                         layout_unit_name(decay->unit), whole_bits + DECAY_FRACTION_BITS_MIN,
                         DECAY_FRACTION_BITS_MIN, whole_bits,
                         layout->time.bits > 0 ? "the end of TIME" : "2070",
                         whole_bits + DECAY_FRACTION_BITS_MIN > KEY_BITS
                             ? " (a longer half-life, or a TIME that ends earlier, needs fewer)"
                             : "");
}

struct decimal layout_field_decimal_decayed(const struct layout_field *field, uint64_t ordinal,
                                            int64_t time_us) {
    return (struct decimal){.magnitude = decay_score(&field->decay, ordinal, time_us)};
}

static enum layout_status layout_decay_status_of(enum decay_status status) {
    switch (status) {
    case DECAY_OK:
        return LAYOUT_OK;
    case DECAY_TOO_LARGE:
        return LAYOUT_VALUE_OUT_OF_RANGE;
    case DECAY_OUTSIDE_TIME:
        break;
    }
    return LAYOUT_TIME_OUT_OF_RANGE;
}

enum layout_status layout_field_add_decaying(const struct layout_field *field, uint64_t ordinal,
                                             struct decimal delta, int64_t time_us, int64_t now_us,
                                             uint64_t *sum) {
    return delta.is_negative
               ? LAYOUT_VALUE_OUT_OF_RANGE
               : layout_decay_status_of(decay_add(&field->decay, field->mask, ordinal,
                                                  delta.magnitude, time_us, now_us, sum));
}

enum layout_status layout_field_join(const struct layout_field *field, uint64_t ordinal,
                                     uint64_t other, int64_t time_us, uint64_t *sum) {
    return layout_field_decays(field)
               ? layout_decay_status_of(
                     decay_join(&field->decay, field->mask, ordinal, other, time_us, sum))
               : layout_field_add(field, ordinal, layout_field_decimal(field, other), sum);
}

/* Why layout_field_add_at refused the sum. false: for its delta alone, and error was not written. */
static bool layout_decay_explain(const struct layout_field *field, uint64_t ordinal,
                                 struct decimal delta, int64_t time_us, int64_t now_us,
                                 char *error) {
    const struct decay *decay = &field->decay;
    uint64_t sum;
    if (delta.is_negative) {
        return false;
    }
    if (decay_add(decay, field->mask, ordinal, delta.magnitude, time_us, now_us, &sum) ==
        DECAY_TOO_LARGE) {
        layout_reject(
            error, "value %s + %s is out of range: the score of field '%s' is at most %s",
            layout_show_decimal(layout_field_decimal_at(field, ordinal, time_us), field->scale)
                .text,
            layout_show_decimal(delta, field->scale).text, field->name,
            layout_show_decimal(layout_field_highest(field), field->scale).text);
    } else {
        layout_reject(error, "time %s is out of range: field '%s' with its DECAY takes %s..%s",
                      layout_show_time(time_us).text, field->name,
                      layout_show_time(decay->epoch_us).text,
                      layout_show_time(decay_last_us(decay, field->bits)).text);
    }
    return true;
}

/* The first ordinal with at least the limit, or the last one with no more. */
static bool layout_decay_end(const struct layout_field *field, struct decimal_bound limit,
                             enum decimal_bound_kind open, int64_t time_us, uint64_t *ordinal) {
    const struct decay *decay = &field->decay;
    uint64_t value = limit.value.magnitude;
    if (limit.kind != DECIMAL_BOUND_VALUE) {
        *ordinal = open == DECIMAL_BOUND_LOWEST ? 0 : field->mask;
        return limit.kind == open;
    }
    if (open == DECIMAL_BOUND_LOWEST) {
        return decay_find(decay, field->mask, limit.value.is_negative ? 0 : value, time_us,
                          ordinal);
    }
    if (limit.value.is_negative) {
        return false;
    }
    if (value == UINT64_MAX || !decay_find(decay, field->mask, value + 1, time_us, ordinal)) {
        *ordinal = field->mask;
    } else {
        *ordinal -= 1;
    }
    return true;
}

/* ---- Text in ---- */

struct parser {
    const struct bytes *words;
    size_t word_count;
    size_t next;
    char *error;
    struct layout layout;
};

/* Consume the next word if it equals this one. */
static bool layout_take_word(struct parser *parser, const char *word) {
    if (parser->next == parser->word_count || !bytes_is(parser->words[parser->next], word)) {
        return false;
    }
    parser->next++;
    return true;
}

static bool layout_has_words(const struct parser *parser, size_t count) {
    return parser->word_count - parser->next >= count;
}

static bool layout_is_field_name(struct bytes name) {
    return bytes_are_name(name, LAYOUT_NAME_MAX) && !bytes_is(name, "FIELD") &&
           !bytes_is(name, "TIME");
}

static bool layout_is_name_taken(const struct layout *layout, unsigned field_count,
                                 struct bytes name) {
    for (unsigned i = 0; i < field_count; i++) {
        if (bytes_is(name, layout->fields[i].name)) {
            return true;
        }
    }
    return false;
}

/* Parse the width of `what`: at most bits_max, and at most the bits left in the key. */
static bool layout_parse_bits(struct parser *parser, const char *what, unsigned bits_max,
                              uint8_t *bits) {
    struct bytes word = parser->words[parser->next++];
    unsigned left = KEY_BITS - parser->layout.bits_total;
    uint64_t number;
    if (!bytes_parse_u64(word, &number) || number < 1 || number > bits_max) {
        return layout_reject(parser->error, "%s: '%s' bits is out of range: 1..%u are allowed",
                             what, bytes_show(word).text, bits_max);
    }
    if (number > left) {
        return layout_reject(parser->error, "%s: %u bits are too many: %u of a key's 64 are left",
                             what, (unsigned)number, left);
    }
    *bits = (uint8_t)number;
    parser->layout.bits_total = (uint8_t)(parser->layout.bits_total + number);
    return true;
}

static bool layout_parse_scale(struct parser *parser, struct layout_field *field) {
    if (!layout_has_words(parser, 1)) {
        return layout_reject(parser->error, "field '%s': SCALE needs a number of decimals, 0..%d",
                             field->name, DECIMAL_SCALE_MAX);
    }
    struct bytes word = parser->words[parser->next++];
    uint64_t scale;
    if (!bytes_parse_u64(word, &scale) || scale > DECIMAL_SCALE_MAX) {
        return layout_reject(parser->error,
                             "field '%s': SCALE '%s' is out of range: 0..%d are allowed",
                             field->name, bytes_show(word).text, DECIMAL_SCALE_MAX);
    }
    field->scale = (uint8_t)scale;
    return true;
}

/* The n and unit of DECAY. What it needs of bits depends on TIME: layout_decay_check. */
static bool layout_parse_decay(struct parser *parser, struct layout_field *field) {
    if (parser->layout.field_count > 1) {
        return layout_reject(parser->error,
                             "field '%s': only the first field of a layout may have DECAY",
                             field->name);
    }
    if (!layout_has_words(parser, 2)) {
        return layout_reject(parser->error,
                             "field '%s': DECAY needs a half-life, such as DECAY 6 H", field->name);
    }
    struct bytes word = parser->words[parser->next++];
    uint64_t count;
    if (!bytes_parse_u64(word, &count) || count < 1 || count > DECAY_COUNT_MAX) {
        return layout_reject(parser->error,
                             "field '%s': DECAY '%s' is out of range: 1..%d are allowed",
                             field->name, bytes_show(word).text, DECAY_COUNT_MAX);
    }
    field->decay.count = (uint32_t)count;
    for (unsigned unit = LAYOUT_UNIT_S; unit < UNIT_COUNT; unit++) {
        if (layout_take_word(parser, units[unit].name)) {
            field->decay.unit = (uint8_t)unit;
            return true;
        }
    }
    return layout_reject(parser->error, "field '%s': DECAY: unit '%s' is unknown: use S, M, H or D",
                         field->name, bytes_show(parser->words[parser->next]).text);
}

/* Note that an option of `what` is given; false: it was before. */
static bool layout_note_option(struct parser *parser, const char *what, const char *option,
                               bool *is_given) {
    if (*is_given) {
        return layout_reject(parser->error, "%s: %s may be given only once", what, option);
    }
    *is_given = true;
    return true;
}

/* The words after the width, in any order, each at most once. */
static bool layout_parse_field_options(struct parser *parser, const char *what,
                                       struct layout_field *field) {
    bool has_direction = false;
    bool has_scale = false;
    bool has_decay = false;
    for (;;) {
        bool is_fine;
        bool is_ascending = layout_take_word(parser, "ASC");
        if (is_ascending || layout_take_word(parser, "DESC")) {
            is_fine = layout_note_option(parser, what, "ASC or DESC", &has_direction);
            field->is_ascending = is_ascending;
        } else if (layout_take_word(parser, "SIGNED")) {
            is_fine = layout_note_option(parser, what, "SIGNED", &field->is_signed);
        } else if (layout_take_word(parser, "SCALE")) {
            is_fine = layout_note_option(parser, what, "SCALE", &has_scale) &&
                      layout_parse_scale(parser, field);
        } else if (layout_take_word(parser, "DOUBLE")) {
            is_fine = layout_note_option(parser, what, "DOUBLE", &field->is_double);
        } else if (layout_take_word(parser, "DECAY")) {
            is_fine = layout_note_option(parser, what, "DECAY", &has_decay) &&
                      layout_parse_decay(parser, field);
        } else {
            return true;
        }
        if (!is_fine) {
            return false;
        }
    }
}

static bool layout_parse_field(struct parser *parser) {
    struct layout *layout = &parser->layout;
    if (layout->time.bits > 0) {
        return layout_reject(parser->error, "TIME must be last, but a FIELD follows it");
    }
    if (layout->tags.count > 0) {
        return layout_reject(parser->error, "TAG must be last, but a FIELD follows it");
    }
    if (!layout_has_words(parser, 2)) {
        return layout_reject(parser->error, "FIELD needs a name and a width: " FIELD_FORM);
    }
    struct bytes name = parser->words[parser->next++];
    if (!layout_is_field_name(name)) {
        return layout_reject(
            parser->error,
            "field name '%s' is not allowed: 1..%d letters, digits, '_' and '-', with a "
            "letter among them, and not FIELD or TIME",
            bytes_show(name).text, LAYOUT_NAME_MAX);
    }
    if (layout_is_name_taken(layout, layout->field_count, name)) {
        return layout_reject(parser->error, "duplicate field name '%s'", bytes_show(name).text);
    }
    if (layout->bits_total == KEY_BITS) {
        return layout_reject(parser->error, "field '%s': no bits left: a key has 64",
                             bytes_show(name).text);
    }
    struct layout_field *field = &layout->fields[layout->field_count++];
    memcpy(field->name, name.at, name.size);
    char what[LAYOUT_NAME_MAX + sizeof("field ''")];
    snprintf(what, sizeof(what), "field '%s'", field->name);
    return layout_parse_bits(parser, what, KEY_BITS, &field->bits) &&
           layout_parse_field_options(parser, what, field);
}

/* START such that the last unit begins at layout_end_us; false if that is below the smallest time. */
static bool layout_start_from_end(const struct layout_time *time, int64_t end_us,
                                  int64_t *start_us) {
    uint64_t span_us;
    return !__builtin_mul_overflow(time->mask, (uint64_t)time->unit_us, &span_us) &&
           !__builtin_sub_overflow(end_us, span_us, start_us);
}

/* The t after START or END. */
static bool layout_parse_anchor(struct parser *parser, struct layout_time *time) {
    const char *which = time->is_given_by_end ? "END" : "START";
    if (!layout_has_words(parser, 1)) {
        return layout_reject(parser->error,
                             "TIME: %s needs a time: ISO 8601 with an offset, or unix milliseconds",
                             which);
    }
    struct bytes word = parser->words[parser->next++];
    int64_t anchor_us;
    if (!timestamp_parse(word, &anchor_us)) {
        return layout_reject(
            parser->error,
            "TIME: %s '%s' is not a time: use ISO 8601 with an offset, or unix milliseconds", which,
            bytes_show(word).text);
    }
    if (!time->is_given_by_end) {
        time->start_us = anchor_us;
        return true;
    }
    if (!layout_start_from_end(time, anchor_us, &time->start_us)) {
        return layout_reject(
            parser->error,
            "TIME: END '%s' is too early: START, 2^%u - 1 %s before it, does not fit 64 "
            "bits of microseconds; use fewer bits or a smaller unit",
            bytes_show(word).text, (unsigned)time->bits, units[time->unit].name);
    }
    return true;
}

static bool layout_parse_time_options(struct parser *parser, struct layout_time *time) {
    bool has_anchor = false;
    for (;;) {
        bool is_fine;
        bool is_end = layout_take_word(parser, "END");
        if (is_end || layout_take_word(parser, "START")) {
            is_fine = layout_note_option(parser, "TIME", "START or END", &has_anchor);
            time->is_given_by_end = is_end;
            is_fine = is_fine && layout_parse_anchor(parser, time);
        } else if (layout_take_word(parser, "LATEST")) {
            is_fine = layout_note_option(parser, "TIME", "LATEST", &time->is_latest);
        } else {
            return true;
        }
        if (!is_fine) {
            return false;
        }
    }
}

static bool layout_parse_time(struct parser *parser) {
    struct layout *layout = &parser->layout;
    struct layout_time *time = &layout->time;
    if (time->bits > 0) {
        return layout_reject(parser->error, "TIME may be given only once");
    }
    if (layout->tags.count > 0) {
        return layout_reject(parser->error, "TAG must be last, but TIME follows it");
    }
    if (layout->field_count == 0) {
        return layout_reject(parser->error, "TIME must be last, but no FIELD precedes it");
    }
    if (layout->bits_total == KEY_BITS) {
        return layout_reject(parser->error, "TIME: no bits left: a key has 64");
    }
    if (!layout_has_words(parser, 2)) {
        return layout_reject(parser->error, "TIME needs a width and a unit: " TIME_FORM);
    }
    if (!layout_parse_bits(parser, "TIME", KEY_BITS - 1, &time->bits)) {
        return false;
    }
    unsigned unit = 0;
    while (unit < UNIT_COUNT && !layout_take_word(parser, units[unit].name)) {
        unit++;
    }
    if (unit == UNIT_COUNT) {
        return layout_reject(parser->error, "TIME: unit '%s' is unknown: use US, MS, S, M, H or D",
                             bytes_show(parser->words[parser->next]).text);
    }
    time->unit = (enum layout_unit)unit;
    time->unit_us = units[unit].us;
    time->mask = layout_mask_of(time->bits);
    time->start_us = START_DEFAULT_US;
    return layout_parse_time_options(parser, time);
}

static bool layout_parse_tag(struct parser *parser) {
    if (parser->layout.field_count == 0) {
        return layout_reject(parser->error, "TAG must be last, but no FIELD precedes it");
    }
    if (!layout_has_words(parser, 2)) {
        return layout_reject(parser->error, "TAG needs a name and a width: " TAG_FORM);
    }
    struct bytes name = parser->words[parser->next++];
    struct bytes bits = parser->words[parser->next++];
    return tag_set_add(&parser->layout.tags, name, bits, parser->error);
}

static bool layout_reject_word(struct parser *parser) {
    struct bytes_shown word = bytes_show(parser->words[parser->next]);
    const struct layout *layout = &parser->layout;
    if (layout->tags.count > 0) {
        return layout_reject(parser->error, "unexpected word '%s': " TAG_FORM, word.text);
    }
    if (layout->time.bits > 0) {
        return layout_reject(parser->error, "unexpected word '%s': " TIME_FORM ", then " TAG_FORM,
                             word.text);
    }
    return layout_reject(parser->error,
                         "unexpected word '%s': " FIELD_FORM ", then " TIME_FORM ", then " TAG_FORM,
                         word.text);
}

void layout_complete(struct layout *layout) {
    unsigned shift = layout->time.bits;
    if (layout->time.bits > 0) {
        layout->time.mask = layout_mask_of(layout->time.bits);
        layout->time.unit_us = units[layout->time.unit].us;
    }
    for (unsigned i = layout->field_count; i-- > 0;) {
        struct layout_field *field = &layout->fields[i];
        field->shift = (uint8_t)shift;
        field->mask = layout_mask_of(field->bits);
        shift += field->bits;
    }
    layout->bits_total = (uint8_t)shift;
    layout->fields[0].decay = layout_decay_of(layout);
}

enum layout_status layout_parse_words(const struct bytes *words, size_t word_count,
                                      struct layout *layout, char *error) {
    struct parser parser = {.words = words, .word_count = word_count, .error = error};
    while (parser.next < word_count) {
        bool is_fine;
        if (layout_take_word(&parser, "FIELD")) {
            is_fine = layout_parse_field(&parser);
        } else if (layout_take_word(&parser, "TIME")) {
            is_fine = layout_parse_time(&parser);
        } else if (layout_take_word(&parser, "TAG")) {
            is_fine = layout_parse_tag(&parser);
        } else {
            is_fine = layout_reject_word(&parser);
        }
        if (!is_fine) {
            return LAYOUT_BAD_TEXT;
        }
    }
    if (parser.layout.field_count == 0) {
        layout_reject(error, "a layout needs at least one FIELD: " FIELD_FORM);
        return LAYOUT_BAD_TEXT;
    }
    layout_complete(&parser.layout);
    if (!layout_decay_check(&parser.layout, error)) {
        return LAYOUT_BAD_TEXT;
    }
    *layout = parser.layout;
    return LAYOUT_OK;
}

size_t layout_count_words(const struct bytes *words, size_t word_count) {
    static const struct {
        const char *word;
        size_t size; /* including what always follows it */
    } parts[] = {
        {"FIELD", 3}, {"TIME", 3}, {"TAG", 3},  {"SCALE", 2},  {"DECAY", 3},  {"START", 2},
        {"END", 2},   {"ASC", 1},  {"DESC", 1}, {"SIGNED", 1}, {"DOUBLE", 1}, {"LATEST", 1},
    };
    size_t count = 0;
    for (size_t size = 1; size > 0 && count < word_count; count += size) {
        size = 0;
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && size == 0; i++) {
            size = bytes_is(words[count], parts[i].word) ? parts[i].size : 0;
        }
    }
    return count < word_count ? count : word_count;
}

void layout_init_default(struct layout *layout) {
    *layout = (struct layout){
        .field_count = 1,
        .time = {.bits = 31, .unit = LAYOUT_UNIT_S, .start_us = START_DEFAULT_US},
        .fields = {{.name = "score", .bits = 33, .is_signed = true}},
    };
    layout_complete(layout);
}

/* ---- Text out ---- */

static char *layout_put_text(char *at, const char *text) {
    size_t size = strlen(text);
    memcpy(at, text, size);
    return at + size;
}

/* The start of a unit, counted from START. Saturates. */
static int64_t layout_unit_begin_us(const struct layout_time *time, uint64_t unit_index) {
    uint64_t elapsed_us;
    int64_t begin_us;
    if (__builtin_mul_overflow(unit_index, (uint64_t)time->unit_us, &elapsed_us) ||
        __builtin_add_overflow(time->start_us, elapsed_us, &begin_us)) {
        return INT64_MAX;
    }
    return begin_us;
}

/* The start of the last unit, as END gives it. */
static int64_t layout_end_us(const struct layout_time *time) {
    return layout_unit_begin_us(time, time->mask);
}

size_t layout_print(const struct layout *layout, char *out) {
    char *at = out;
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        if (i > 0) {
            *at++ = ' ';
        }
        at += sprintf(at, "FIELD %s %u%s%s", field->name, (unsigned)field->bits,
                      field->is_ascending ? " ASC" : "", field->is_signed ? " SIGNED" : "");
        if (field->scale > 0) {
            at += sprintf(at, " SCALE %u", (unsigned)field->scale);
        }
        if (field->is_double) {
            at = layout_put_text(at, " DOUBLE");
        }
        if (field->decay.count > 0) {
            at += sprintf(at, " DECAY %u %s", (unsigned)field->decay.count,
                          units[field->decay.unit].name);
        }
    }
    if (layout->time.bits > 0) {
        const struct layout_time *time = &layout->time;
        at += sprintf(at, " TIME %u %s", (unsigned)time->bits, units[time->unit].name);
        if (time->is_given_by_end) {
            at = layout_put_text(at, " END ");
            at += timestamp_print(at, layout_end_us(time));
        } else if (time->start_us != START_DEFAULT_US) {
            at = layout_put_text(at, " START ");
            at += timestamp_print(at, time->start_us);
        }
        at = time->is_latest ? layout_put_text(at, " LATEST") : at;
    }
    for (unsigned i = 0; i < layout->tags.count; i++) {
        const struct tag *tag = &layout->tags.tags[i];
        at += sprintf(at, " TAG %s %u", tag->name, (unsigned)tag->bits);
    }
    *at = '\0';
    return (size_t)(at - out);
}

const char *layout_unit_name(enum layout_unit unit) {
    return units[unit].name;
}

bool layout_keys_equal(const struct layout *a, const struct layout *b) {
    if (a->field_count != b->field_count) {
        return false;
    }
    for (unsigned i = 0; i < a->field_count; i++) {
        const struct layout_field *one = &a->fields[i];
        const struct layout_field *other = &b->fields[i];
        if (strcmp(one->name, other->name) != 0 || one->bits != other->bits ||
            one->scale != other->scale || one->is_signed != other->is_signed ||
            one->is_ascending != other->is_ascending || one->is_double != other->is_double ||
            one->decay.count != other->decay.count || one->decay.unit != other->decay.unit) {
            return false;
        }
    }
    return a->time.bits == b->time.bits && a->time.unit == b->time.unit &&
           a->time.start_us == b->time.start_us && a->time.is_latest == b->time.is_latest &&
           a->time.is_given_by_end == b->time.is_given_by_end;
}

bool layout_equal(const struct layout *a, const struct layout *b) {
    return layout_keys_equal(a, b) && tag_set_equal(&a->tags, &b->tags);
}

/* ---- Validation ---- */

static const char *layout_field_fault(const struct layout *layout, unsigned index) {
    const struct layout_field *field = &layout->fields[index];
    size_t name_size = strnlen(field->name, sizeof(field->name));
    struct bytes name = {.at = field->name, .size = name_size};
    if (name_size == sizeof(field->name) || !layout_is_field_name(name)) {
        return "a field's name is not allowed";
    }
    if (layout_is_name_taken(layout, index, name)) {
        return "two fields have one name";
    }
    if (field->bits < 1 || field->bits > KEY_BITS) {
        return "a field's width is not 1..64";
    }
    if (field->mask != layout_mask_of(field->bits)) {
        return "a field's mask does not follow from its width";
    }
    if (field->scale > DECIMAL_SCALE_MAX) {
        return "a field's scale is too large";
    }
    const struct decay *decay = &layout->fields[index].decay;
    if (index > 0 && decay->count > 0) {
        return "a field that is not the first one decays";
    }
    bool is_written = decay->count > 0 || decay->unit > 0;
    if (is_written && (decay->count == 0 || decay->count > DECAY_COUNT_MAX ||
                       decay->unit < LAYOUT_UNIT_S || decay->unit >= UNIT_COUNT)) {
        return "a half-life is out of range";
    }
    struct decay same = is_written ? layout_decay_of(layout) : (struct decay){.count = 0};
    if (decay->half_life_us != same.half_life_us || decay->epoch_us != same.epoch_us ||
        decay->fraction_bits != same.fraction_bits) {
        return "a field's epoch or fraction does not follow from the layout";
    }
    if (!is_written) {
        return NULL;
    }
    char error[LAYOUT_ERROR_MAX];
    return layout_decay_check(layout, error)
               ? NULL
               : "a field that decays is signed, of doubles or too narrow";
}

static const char *layout_time_fault(const struct layout_time *time) {
    if (time->bits == 0) {
        bool is_blank_time = time->mask == 0 && time->unit == LAYOUT_UNIT_US &&
                             time->unit_us == 0 && time->start_us == 0 && !time->is_latest &&
                             !time->is_given_by_end;
        return is_blank_time ? NULL : "there is no time, but something is said about it";
    }
    if (time->bits >= KEY_BITS) {
        return "the time's width is not 1..63";
    }
    if (time->mask != layout_mask_of(time->bits)) {
        return "the time's mask does not follow from its width";
    }
    if ((unsigned)time->unit >= UNIT_COUNT || time->unit_us != units[time->unit].us) {
        return "the time's unit is unknown";
    }
    int64_t start_us;
    if (time->is_given_by_end && (!layout_start_from_end(time, layout_end_us(time), &start_us) ||
                                  start_us != time->start_us)) {
        return "the time's end is not in range";
    }
    /* Outside years 1 to 9999 the text has whole milliseconds only. */
    int64_t anchor_us = time->is_given_by_end ? layout_end_us(time) : time->start_us;
    struct bytes_shown shown = layout_show_time(anchor_us);
    int64_t parsed_us;
    if (!timestamp_parse(bytes_from_text(shown.text), &parsed_us) || parsed_us != anchor_us) {
        return "the time's start or end has no exact text";
    }
    return NULL;
}

bool layout_validate(const struct layout *layout, const char **reason) {
    *reason = NULL;
    if (layout->field_count < 1 || layout->field_count > LAYOUT_FIELDS_MAX) {
        return check_passed("the number of fields is not 1..64", reason);
    }
    const char *fault = layout_time_fault(&layout->time);
    unsigned shift = layout->time.bits;
    for (unsigned i = layout->field_count; i-- > 0 && fault == NULL;) {
        fault = layout->fields[i].shift == shift
                    ? layout_field_fault(layout, i)
                    : "a field's shift does not follow from the widths below it";
        shift += layout->fields[i].bits;
    }
    if (fault == NULL && (shift > KEY_BITS || layout->bits_total != shift)) {
        fault = "the sum of the widths is wrong";
    }
    if (fault == NULL) {
        fault = tag_set_fault(&layout->tags);
    }
    return check_passed(fault, reason);
}

/* ---- Fields ---- */

struct decimal layout_field_lowest(const struct layout_field *field) {
    uint64_t zero = layout_field_zero(field); /* no less where it decays, without SIGNED */
    return (struct decimal){.magnitude = zero, .is_negative = zero > 0};
}

struct decimal layout_field_highest(const struct layout_field *field) {
    return (struct decimal){.magnitude = layout_field_decays(field)
                                             ? UINT64_MAX
                                             : field->mask - layout_field_zero(field)};
}

struct decimal layout_field_decimal(const struct layout_field *field, uint64_t ordinal) {
    uint64_t zero = layout_field_zero(field);
    if (ordinal < zero) {
        return (struct decimal){.magnitude = zero - ordinal, .is_negative = true};
    }
    return (struct decimal){.magnitude = ordinal - zero};
}

/* Without DOUBLE. */
static enum layout_status layout_field_move(const struct layout_field *field, uint64_t ordinal,
                                            struct decimal delta, uint64_t *sum) {
    if (delta.is_negative) {
        if (delta.magnitude > ordinal) {
            return LAYOUT_VALUE_OUT_OF_RANGE;
        }
        *sum = ordinal - delta.magnitude;
        return LAYOUT_OK;
    }
    if (delta.magnitude > field->mask - ordinal) {
        return LAYOUT_VALUE_OUT_OF_RANGE;
    }
    *sum = ordinal + delta.magnitude;
    return LAYOUT_OK;
}

/* The ordinal of the decimal of ordinal's double. */
__attribute__((noinline)) static enum layout_status
layout_field_settle(const struct layout_field *field, uint64_t ordinal, uint64_t *settled) {
    struct decimal value = layout_field_decimal(field, ordinal);
    value.magnitude = decimal_settle(field->scale, value.magnitude);
    return layout_field_move(field, layout_field_zero(field), value, settled);
}

enum layout_status layout_field_add(const struct layout_field *field, uint64_t ordinal,
                                    struct decimal delta, uint64_t *sum) {
    if (!field->is_double) {
        return layout_field_move(field, ordinal, delta, sum);
    }
    uint64_t exact;
    enum layout_status status = layout_field_move(field, ordinal, delta, &exact);
    return status == LAYOUT_OK ? layout_field_settle(field, exact, sum) : status;
}

enum layout_status layout_field_ordinal(const struct layout_field *field, struct decimal value,
                                        uint64_t *ordinal) {
    return layout_field_decays(field)
               ? LAYOUT_VALUE_OUT_OF_RANGE
               : layout_field_add(field, layout_field_zero(field), value, ordinal);
}

/* decimal_parse refuses infinity; here it counts as a number out of range. */
enum decimal_status layout_field_parse(const struct layout_field *field, struct bytes text,
                                       struct decimal *value) {
    enum decimal_status status = field->is_double ? decimal_parse_double(text, field->scale, value)
                                                  : decimal_parse(text, field->scale, value);
    return status == DECIMAL_NOT_A_NUMBER && decimal_is_infinity(text) ? DECIMAL_OUT_OF_RANGE
                                                                       : status;
}

enum decimal_status layout_field_parse_bound(const struct layout_field *field, struct bytes text,
                                             bool is_lower, struct decimal_bound *bound,
                                             bool *is_empty) {
    return decimal_parse_bound(text, field->scale,
                               field->is_double ? DECIMAL_DOUBLES : DECIMAL_EXACT, is_lower, bound,
                               is_empty);
}

void layout_explain_value(const struct layout_field *field, struct bytes text,
                          enum decimal_status status, char *error) {
    if (status == DECIMAL_NOT_A_NUMBER) {
        layout_reject(error, "value is not a valid float");
    } else if (status == DECIMAL_TOO_PRECISE) {
        layout_reject(error,
                      "value %s has too many decimals: field '%s' keeps %u (round it, or more by "
                      "SCALE in the layout)",
                      bytes_show(text).text, field->name, (unsigned)field->scale);
    } else if (layout_field_decays(field)) {
        layout_reject(
            error, "value %s is refused: field '%s' has DECAY and takes increments only, of 0..%s",
            bytes_show(text).text, field->name,
            layout_show_decimal(layout_field_highest(field), field->scale).text);
    } else {
        layout_reject(error, "value %s is out of range: field '%s' takes %s..%s",
                      bytes_show(text).text, field->name,
                      layout_show_decimal(layout_field_lowest(field), field->scale).text,
                      layout_show_decimal(layout_field_highest(field), field->scale).text);
    }
}

void layout_explain_time(const struct layout *layout, int64_t time_us, char *error) {
    layout_reject(error, "time %s is out of range: this layout's TIME takes %s..%s",
                  layout_show_time(time_us).text,
                  layout_show_time(layout_time_first_us(layout)).text,
                  layout_show_time(layout_time_last_us(layout)).text);
}

void layout_explain_sum(const struct layout_field *field, uint64_t ordinal, struct decimal delta,
                        int64_t time_us, int64_t now_us, char *error) {
    char text[2 * DECIMAL_TEXT_MAX + 3];
    size_t size = 0;
    if (layout_field_decays(field)) {
        if (layout_decay_explain(field, ordinal, delta, time_us, now_us, error)) {
            return;
        }
    } else {
        size = decimal_print(text, layout_field_decimal(field, ordinal), field->scale);
        memcpy(text + size, " + ", 3);
        size += 3;
    }
    size += decimal_print(text + size, delta, field->scale);
    struct bytes sum = {.at = text, .size = size};
    layout_explain_value(field, sum, DECIMAL_OUT_OF_RANGE, error);
}

/* ---- Keys ---- */

uint64_t layout_zero_key(const struct layout *layout) {
    uint64_t key = 0;
    for (unsigned i = 0; i < layout->field_count; i++) {
        key = layout_with_ordinal(layout, key, i, layout_field_zero(&layout->fields[i]));
    }
    return key;
}

/* The key that is printed as 0. */
static uint64_t layout_key_zero(const struct layout *layout) {
    return layout->fields[0].is_signed ? UINT64_C(1) << (layout->bits_total - 1) : 0;
}

bool layout_key_parse(const struct layout *layout, struct bytes text, uint64_t *key) {
    uint64_t zero = layout_key_zero(layout), above, parsed;
    int64_t below;
    if (bytes_parse_u64(text, &above)) {
        if (above > layout_mask_of(layout->bits_total) - zero) {
            return false;
        }
        parsed = zero + above;
    } else if (bytes_parse_i64(text, &below) && 0 - (uint64_t)below <= zero) {
        parsed = zero + (uint64_t)below;
    } else {
        return false;
    }
    for (unsigned i = 0; i < layout->field_count; i++) {
        const struct layout_field *field = &layout->fields[i];
        uint64_t ordinal = layout_ordinal(layout, parsed, i);
        if (field->is_double) {
            if (layout_field_settle(field, ordinal, &ordinal) != LAYOUT_OK) {
                return false;
            }
            parsed = layout_with_ordinal(layout, parsed, i, ordinal);
        }
    }
    *key = parsed;
    return true;
}

size_t layout_key_print(const struct layout *layout, uint64_t key, char *out) {
    uint64_t zero = layout_key_zero(layout);
    if (key >= zero) {
        return bytes_print_u64(out, key - zero);
    }
    *out = '-';
    return 1 + bytes_print_u64(out + 1, zero - key);
}

static struct bytes_shown layout_show_key(const struct layout *layout, uint64_t key) {
    struct bytes_shown shown;
    shown.text[layout_key_print(layout, key, shown.text)] = '\0';
    return shown;
}

void layout_explain_key(const struct layout *layout, struct bytes text, char *error) {
    layout_reject(
        error, "packed key %s is not an integer of this layout's %u bits: %s..%s are allowed",
        bytes_show(text).text, (unsigned)layout->bits_total, layout_show_key(layout, 0).text,
        layout_show_key(layout, layout_mask_of(layout->bits_total)).text);
}

/* Divisions by constants, which compile to multiplications. */
static uint64_t layout_whole_units(uint64_t elapsed_us, enum layout_unit unit) {
    switch (unit) {
    case LAYOUT_UNIT_US:
        return elapsed_us;
    case LAYOUT_UNIT_MS:
        return elapsed_us / 1000;
    case LAYOUT_UNIT_S:
        return elapsed_us / US_PER_SECOND;
    case LAYOUT_UNIT_M:
        return elapsed_us / US_PER_MINUTE;
    case LAYOUT_UNIT_H:
        return elapsed_us / US_PER_HOUR;
    case LAYOUT_UNIT_D:
        break;
    }
    return elapsed_us / US_PER_DAY;
}

enum layout_status layout_stamp(const struct layout *layout, uint64_t key, int64_t time_us,
                                uint64_t *stamped) {
    const struct layout_time *time = &layout->time;
    if (time->bits == 0) {
        *stamped = key;
        return LAYOUT_OK;
    }
    if (time_us < time->start_us) {
        return LAYOUT_TIME_OUT_OF_RANGE;
    }
    /* Unsigned, because the difference of two int64_t may need 64 bits. */
    uint64_t elapsed_us = (uint64_t)time_us - (uint64_t)time->start_us;
    uint64_t unit_index = layout_whole_units(elapsed_us, time->unit);
    if (unit_index > time->mask) {
        return LAYOUT_TIME_OUT_OF_RANGE;
    }
    uint64_t stored = time->is_latest ? unit_index : unit_index ^ time->mask;
    *stamped = (key & ~time->mask) | stored;
    return LAYOUT_OK;
}

bool layout_time_us(const struct layout *layout, uint64_t key, int64_t *time_us) {
    if (layout->time.bits == 0) {
        return false;
    }
    const struct layout_time *time = &layout->time;
    uint64_t stored = key & time->mask;
    *time_us = layout_unit_begin_us(time, time->is_latest ? stored : stored ^ time->mask);
    return true;
}

bool layout_time_ms(const struct layout *layout, uint64_t key, int64_t *time_ms) {
    int64_t time_us;
    if (!layout_time_us(layout, key, &time_us)) {
        return false;
    }
    *time_ms = time_us / 1000 - (time_us % 1000 < 0 ? 1 : 0);
    return true;
}

void layout_set_start(struct layout *layout, int64_t start_us) {
    CHECK(layout->time.bits > 0);
    layout->time.start_us = start_us;
    layout->time.is_given_by_end = false;
    layout_decay_set_epoch(layout);
}

enum layout_status layout_set_end(struct layout *layout, int64_t last_us) {
    int64_t start_us;
    CHECK(layout->time.bits > 0);
    if (!layout_start_from_end(&layout->time, last_us, &start_us)) {
        return LAYOUT_TIME_OUT_OF_RANGE;
    }
    layout->time.start_us = start_us;
    layout->time.is_given_by_end = true;
    layout_decay_set_epoch(layout);
    return LAYOUT_OK;
}

int64_t layout_time_first_us(const struct layout *layout) {
    return layout->time.start_us;
}

int64_t layout_time_last_us(const struct layout *layout) {
    const struct layout_time *time = &layout->time;
    if (time->bits == 0) {
        return time->start_us;
    }
    int64_t last_us;
    if (__builtin_add_overflow(layout_end_us(time), time->unit_us - 1, &last_us)) {
        return INT64_MAX;
    }
    return last_us;
}

/* *ordinal is the one at this end of a range; false: the limit excludes all. outermost: the ordinal
 * of a limit beyond the field's values on its own side, which is `open`. */
static bool layout_end_ordinal(const struct layout_field *field, struct decimal_bound limit,
                               enum decimal_bound_kind open, uint64_t outermost,
                               uint64_t *ordinal) {
    if (limit.kind != DECIMAL_BOUND_VALUE) {
        *ordinal = outermost;
        return limit.kind == open;
    }
    /* Behind a limit that is excluded there may be a value that no double has. */
    if (layout_field_move(field, layout_field_zero(field), limit.value, ordinal) == LAYOUT_OK) {
        return true;
    }
    *ordinal = outermost;
    bool is_below = decimal_compare(limit.value, layout_field_lowest(field)) < 0;
    return is_below == (open == DECIMAL_BOUND_LOWEST);
}

bool layout_key_range(const struct layout *layout, struct decimal_bound lower,
                      struct decimal_bound upper, int64_t time_us, uint64_t *lowest_key,
                      uint64_t *highest_key) {
    const struct layout_field *lead = &layout->fields[0];
    uint64_t first;
    uint64_t last;
    if (layout_field_decays(lead)) {
        if (!layout_decay_end(lead, lower, DECIMAL_BOUND_LOWEST, time_us, &first) ||
            !layout_decay_end(lead, upper, DECIMAL_BOUND_HIGHEST, time_us, &last)) {
            return false;
        }
    } else if (!layout_end_ordinal(lead, lower, DECIMAL_BOUND_LOWEST, 0, &first) ||
               !layout_end_ordinal(lead, upper, DECIMAL_BOUND_HIGHEST, lead->mask, &last)) {
        return false;
    }
    if (first > last) {
        return false;
    }
    uint64_t low_stored = lead->is_ascending ? last ^ lead->mask : first;
    uint64_t high_stored = lead->is_ascending ? first ^ lead->mask : last;
    *lowest_key = low_stored << lead->shift;
    *highest_key = (high_stored << lead->shift) | ((1ULL << lead->shift) - 1);
    return true;
}
