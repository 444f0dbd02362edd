/* Private to layouts: what layout.c and layout_decay.c share. */
#ifndef CODEC_LAYOUT_PARTS_H
#define CODEC_LAYOUT_PARTS_H

#include "codec/layout.h"
#include "codec/timestamp.h"

/* 2020-01-01T00:00:00Z */
#define LAYOUT_START_DEFAULT_US INT64_C(1577836800000000)

enum { LAYOUT_KEY_BITS = 64, LAYOUT_UNITS = LAYOUT_UNIT_D + 1 };

int64_t layout_unit_us(enum layout_unit unit);

/* ---- messages ---- */

static inline struct bytes_shown layout_show_time(int64_t time_us) {
    struct bytes_shown shown;
    shown.text[timestamp_print(shown.text, time_us)] = '\0';
    return shown;
}

static inline struct bytes_shown layout_show_decimal(struct decimal value, unsigned scale) {
    struct bytes_shown shown;
    shown.text[decimal_print(shown.text, value, scale)] = '\0';
    return shown;
}

/* Write the message to error (LAYOUT_ERROR_MAX); returns false. */
__attribute__((format(printf, 2, 3))) bool layout_reject(char *error, const char *format, ...);

/* ---- DECAY: layout_decay.c ---- */

/* What follows from the lead field's half-life. Where there is no room for the whole part, there are no bits
 * of fraction: layout_decay_check. */
struct decay layout_decay_of(const struct layout *layout);
/* Does a layout that is complete have room for it? false: error says what is needed. */
MUST_CHECK bool layout_decay_check(const struct layout *layout, char *error);
/* START has been moved. */
void layout_decay_set_epoch(struct layout *layout);
/* The first violation in what a field says of decaying; NULL: none. */
const char *layout_decay_fault(const struct layout *layout, unsigned index);
/* Why layout_field_add_at refused the sum. false: for its delta alone, and error was not written. */
MUST_CHECK bool layout_decay_explain(const struct layout_field *field, uint64_t ordinal,
                                     struct decimal delta, int64_t time_us, int64_t now_us,
                                     char *error);
/* Ordinals at both ends of a range. false: it is empty, as far as one limit tells. */
MUST_CHECK bool layout_decay_range(const struct layout_field *field,
                                   const struct decimal_bound *lower,
                                   const struct decimal_bound *upper, int64_t time_us,
                                   uint64_t *first, uint64_t *last);

#endif
