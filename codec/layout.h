/* A layout describes how a 64-bit key is divided into fields, most significant first:
 *
 *     FIELD name bits [ASC|DESC] [SIGNED] [SCALE d] [DOUBLE] [DECAY n S|M|H|D]
 *                                                          one or more; the first is the lead field
 *     TIME bits US|MS|S|M|H|D [START t | END t] [LATEST]   at most one, last of the key
 *     TAG name bits                                        up to 8: codec/tag.h
 *
 *      63                     31 30                  0
 *     +------------------------+---------------------+
 *     | score, 33 bits, SIGNED | reversed time, 31 S |     "default"
 *     +------------------------+---------------------+
 *
 * Tags are no part of the key, and follow all that is.
 *
 * A larger packed key ranks better. Keys use the low bits_total bits; the higher bits are zero.
 *
 * Three representations of a field's value:
 *   decimal   what users read and write: -3, 12.34 (codec/decimal.h, at the field's SCALE)
 *   ordinal   its index in the field's range, 0 .. 2^bits - 1, in the order of the decimals:
 *             decimal - lowest decimal. SIGNED fields begin at -2^(bits-1), others at 0.
 *   stored    the bits in the key: the ordinal (DESC) or its complement (ASC).
 * A field with DOUBLE takes the decimals that doubles have (decimal_settle), and no others: every value and sum is
 * made one of them.
 * A lead field with DECAY (codec/decay.h) is another: its ordinal is the logarithm of a sum of results, and
 * its decimal, the score, follows from the ordinal and the time at which it is read. Nothing can be set, only
 * added. Its epoch is START, or 2020-01-01T00:00:00Z without TIME.
 *
 * Time: u = floor((t - START) / unit), 0 <= u < 2^bits. Stored as 2^bits - 1 - u, so that earlier
 * times rank better, or as u with LATEST. END e means START = e - (2^bits - 1) units. */
#ifndef CODEC_LAYOUT_H
#define CODEC_LAYOUT_H

#include "codec/decay.h"
#include "codec/decimal.h"
#include "codec/tag.h"

enum {
    LAYOUT_FIELDS_MAX = 64, /* every field has at least one bit */
    LAYOUT_NAME_MAX = 32,   /* bytes in a field's name */
    LAYOUT_TEXT_MAX = 8192, /* room for layout_print of any layout */
    LAYOUT_ERROR_MAX = 256, /* room for any message of this file, with its terminator */
};

enum layout_unit {
    LAYOUT_UNIT_US,
    LAYOUT_UNIT_MS,
    LAYOUT_UNIT_S,
    LAYOUT_UNIT_M,
    LAYOUT_UNIT_H,
    LAYOUT_UNIT_D,
};

struct layout_field {
    char name[LAYOUT_NAME_MAX + 1];
    uint8_t bits;  /* 1..64 */
    uint8_t shift; /* position of its lowest bit in the key */
    uint8_t scale; /* 0..DECIMAL_SCALE_MAX */
    bool is_signed;
    bool is_ascending;  /* smaller is better */
    bool is_double;     /* one double is one value: DECIMAL_DOUBLES */
    uint64_t mask;      /* 2^bits - 1, unshifted */
    struct decay decay; /* of the lead field, if it decays */
};

struct layout_time {
    uint8_t bits; /* 0: the layout has no time */
    bool is_latest;
    bool is_given_by_end; /* printed as END */
    enum layout_unit unit;
    uint64_t mask;
    int64_t unit_us;
    int64_t start_us;
};

struct layout {
    uint8_t field_count;
    uint8_t bits_total;
    struct layout_time time;
    struct tag_set tags;
    struct layout_field fields[LAYOUT_FIELDS_MAX];
};

enum layout_status {
    LAYOUT_OK = 0,
    LAYOUT_BAD_TEXT,
    LAYOUT_VALUE_OUT_OF_RANGE,
    LAYOUT_TIME_OUT_OF_RANGE,
};

/* Parse the words "FIELD score 33 SIGNED TIME 31 S". Keywords are case-insensitive; names keep
 * their case. Options may appear in any order, each once. A name consists of letters, digits, '_'
 * and '-', contains at least one letter, and is neither FIELD nor TIME. Names of two fields must
 * differ in more than case; of tags, see tag_set_add. On LAYOUT_BAD_TEXT *layout is left unchanged and error
 * (LAYOUT_ERROR_MAX bytes) says what is wrong, where, and what is allowed, in one line without CR
 * or LF. */
MUST_CHECK enum layout_status layout_parse_words(const struct bytes *words, size_t word_count,
                                                 struct layout *layout, char *error);

/* Number of leading words that belong to a layout, valid or not: FIELD, TIME, TAG and their arguments
 * as above. Other words may follow. */
size_t layout_count_words(const struct bytes *words, size_t word_count);

/* Canonical text, whose words layout_parse_words reads back to an equal layout. out has room for
 * LAYOUT_TEXT_MAX. The text is NUL-terminated; returns its size without the terminator. */
size_t layout_print(const struct layout *layout, char *out);

/* "US", "MS", "S", "M", "H" or "D". */
const char *layout_unit_name(enum layout_unit unit);

/* Are they equal but for their tags: does every key mean the same in both? */
bool layout_keys_equal(const struct layout *a, const struct layout *b);
bool layout_equal(const struct layout *a, const struct layout *b);

/* Check the structure: bits, shifts, masks, names, tags, a START or END that can be printed. *reason: the
 * first violation, NULL if none. */
MUST_CHECK bool layout_validate(const struct layout *layout, const char **reason);

/* Compute from the widths, the time's unit and the half-life what follows from them: shifts, masks,
 * bits_total, unit_us, the rest of struct decay. */
void layout_complete(struct layout *layout);
/* Fill *layout with FIELD score 33 SIGNED TIME 31 S. */
void layout_init_default(struct layout *layout);

/* The ordinal of decimal 0, which is the number of the field's decimals below it. */
static inline uint64_t layout_field_zero(const struct layout_field *field) {
    return field->is_signed ? UINT64_C(1) << (field->bits - 1) : 0;
}
static inline bool layout_field_decays(const struct layout_field *field) {
    return field->decay.half_life_us != 0;
}
/* The smallest and largest decimal of a field. */
struct decimal layout_field_lowest(const struct layout_field *field);
struct decimal layout_field_highest(const struct layout_field *field);

/* Error: LAYOUT_VALUE_OUT_OF_RANGE, as of every value of a field that decays; *ordinal is then left
 * unchanged. */
MUST_CHECK enum layout_status layout_field_ordinal(const struct layout_field *field,
                                                   struct decimal value, uint64_t *ordinal);
/* Not of a field that decays. */
struct decimal layout_field_decimal(const struct layout_field *field, uint64_t ordinal);
/* The ordinal of (decimal of ordinal + delta). Same error; *sum is then left unchanged. Not of a field that
 * decays. */
MUST_CHECK enum layout_status layout_field_add(const struct layout_field *field, uint64_t ordinal,
                                               struct decimal delta, uint64_t *sum);

/* The same of any field. time_us: when the decimal is read; when the result came, and now, when the sum must
 * not be too large. Of a field that decays, a delta below 0 is LAYOUT_VALUE_OUT_OF_RANGE, and there is LAYOUT_TIME_OUT_OF_RANGE. */
struct decimal layout_field_decimal_decayed(const struct layout_field *field, uint64_t ordinal,
                                            int64_t time_us);
MUST_CHECK enum layout_status layout_field_add_decaying(const struct layout_field *field,
                                                        uint64_t ordinal, struct decimal delta,
                                                        int64_t time_us, int64_t now_us,
                                                        uint64_t *sum);
static inline struct decimal layout_field_decimal_at(const struct layout_field *field,
                                                     uint64_t ordinal, int64_t time_us) {
    return layout_field_decays(field) ? layout_field_decimal_decayed(field, ordinal, time_us)
                                      : layout_field_decimal(field, ordinal);
}
MUST_CHECK static inline enum layout_status
layout_field_add_at(const struct layout_field *field, uint64_t ordinal, struct decimal delta,
                    int64_t time_us, int64_t now_us, uint64_t *sum) {
    return layout_field_decays(field)
               ? layout_field_add_decaying(field, ordinal, delta, time_us, now_us, sum)
               : layout_field_add(field, ordinal, delta, sum);
}
/* The ordinal of the sum of two: of fields that do not decay, of their decimals. */
MUST_CHECK enum layout_status layout_field_join(const struct layout_field *field, uint64_t ordinal,
                                                uint64_t other, int64_t time_us, uint64_t *sum);
/* Parse a field's decimal at its SCALE, as decimal_parse (DOUBLE: decimal_parse_double) does, except that "inf", which no field
 * can hold, is DECIMAL_OUT_OF_RANGE. DECIMAL_OK does not imply that the value is in the field's
 * range: it may be an increment. */
MUST_CHECK enum decimal_status layout_field_parse(const struct layout_field *field,
                                                  struct bytes text, struct decimal *value);

/* One end of a range of a field's decimals: decimal_parse_bound. */
MUST_CHECK enum decimal_status layout_field_parse_bound(const struct layout_field *field,
                                                        struct bytes text, bool is_lower,
                                                        struct decimal_bound *bound,
                                                        bool *is_empty);

/* Write a one-line message to error (LAYOUT_ERROR_MAX), such as
 *     value 4294967296 is out of range: field 'score' takes -4294967296..4294967295
 *     value 1.5 has too many decimals: field 'score' keeps 0 (round it, or more by SCALE in the layout)
 *     value is not a valid float
 *     value 5 is refused: field 'hot' has DECAY and takes increments only, of 0..4294967295
 *     time 2099-01-01T00:00:00Z is out of range: this layout's TIME takes <first>..<last>
 * status is the result of decimal_parse; DECIMAL_OK means out of the field's range. text is the
 * number as the client sent it. It is truncated past 64 bytes, and bytes that are not printable
 * ASCII are shown as '?'. */
void layout_explain_value(const struct layout_field *field, struct bytes text,
                          enum decimal_status status, char *error);
void layout_explain_time(const struct layout *layout, int64_t time_us, char *error);
/* The same for layout_field_add_at: "value 4294967290 + 6 is out of range: field ...". */
void layout_explain_sum(const struct layout_field *field, uint64_t ordinal, struct decimal delta,
                        int64_t time_us, int64_t now_us, char *error);

/* One field's ordinal. */
static inline uint64_t layout_ordinal(const struct layout *layout, uint64_t key, unsigned index) {
    const struct layout_field *field = &layout->fields[index];
    uint64_t stored = (key >> field->shift) & field->mask;
    return field->is_ascending ? stored ^ field->mask : stored;
}

/* key with one field set to ordinal, which must be in range. Other bits are unchanged. */
static inline uint64_t layout_with_ordinal(const struct layout *layout, uint64_t key,
                                           unsigned index, uint64_t ordinal) {
    const struct layout_field *field = &layout->fields[index];
    uint64_t stored = field->is_ascending ? ordinal ^ field->mask : ordinal;
    return (key & ~(field->mask << field->shift)) | (stored << field->shift);
}

/* Are all bits above the layout's zero in key? */
static inline bool layout_has_room(const struct layout *layout, uint64_t key) {
    return layout->bits_total == 64 || key >> layout->bits_total == 0;
}

/* The fields without the time: equal for members that differ only in time. */
static inline uint64_t layout_without_time(const struct layout *layout, uint64_t key) {
    return key & ~layout->time.mask;
}

/* The bits of the later of two keys' times. */
static inline uint64_t layout_later_time(const struct layout *layout, uint64_t one,
                                         uint64_t other) {
    one &= layout->time.mask;
    other &= layout->time.mask;
    return (layout->time.is_latest ? one > other : one < other) ? one : other;
}

/* The key of a new member: every field is decimal 0, which is always in range; time bits are
 * zero. */
uint64_t layout_zero_key(const struct layout *layout);

/* A packed key as clients that pack their own keys write it: an integer, larger ranks better.
 * Without SIGNED it is the key itself, 0 .. 2^bits_total - 1. With a SIGNED lead field it is
 * signed, -2^(bits_total-1) .. 2^(bits_total-1) - 1: score * 2^n + the n bits below it, so FIELD
 * score 64 SIGNED takes any 64-bit integer as it is.
 *
 * Only decimal digits, with an optional '-' when signed. No exponent or fraction: they would mean
 * that the key has been through a double. Its fields with DOUBLE become the nearest values that they take. */
MUST_CHECK bool layout_key_parse(const struct layout *layout, struct bytes text, uint64_t *key);
/* out: room for BYTES_INTEGER_TEXT_MAX, without a terminator; returns the size. */
size_t layout_key_print(const struct layout *layout, uint64_t key, char *out);
/* "packed key 1e3 is not an integer of this layout's 8 bits: 0..255 are allowed" */
void layout_explain_key(const struct layout *layout, struct bytes text, char *error);

/* key with its time set; key itself when the layout has no time. Error: LAYOUT_TIME_OUT_OF_RANGE;
 * *stamped is then left unchanged. */
MUST_CHECK enum layout_status layout_stamp(const struct layout *layout, uint64_t key,
                                           int64_t time_us, uint64_t *stamped);
/* The time in key: START + u * unit, saturated. false: the layout has no time. */
MUST_CHECK bool layout_time_us(const struct layout *layout, uint64_t key, int64_t *time_us);
/* The same in unix milliseconds (floored). */
MUST_CHECK bool layout_time_ms(const struct layout *layout, uint64_t key, int64_t *time_ms);

/* Move the time window of a layout that has a TIME, by the start of its first unit or (END) of its
 * last unit. Bits of keys are not affected. Error: LAYOUT_TIME_OUT_OF_RANGE if START would be below
 * the smallest time; *layout is then left unchanged. */
void layout_set_start(struct layout *layout, int64_t start_us);
MUST_CHECK enum layout_status layout_set_end(struct layout *layout, int64_t end_us);

/* First and last time the layout can hold (the last microsecond of the last unit, saturated); both
 * 0 without TIME. */
int64_t layout_time_first_us(const struct layout *layout);
int64_t layout_time_last_us(const struct layout *layout);

/* Convert a range of lead decimals, of fields that decay at time_us, to a range of packed keys: exactly
 * the keys whose lead field lies between the limits (inclusive, in decimals) are in
 * lowest_key..highest_key. false: the range is empty, as when lower is HIGHEST or upper is LOWEST; the
 * keys are then left unchanged. */
MUST_CHECK bool layout_key_range(const struct layout *layout, struct decimal_bound lower,
                                 struct decimal_bound upper, int64_t time_us, uint64_t *lowest_key,
                                 uint64_t *highest_key);

#endif
