/* Fields of layouts whose scores decay: what follows from a half-life, and whether there is room for it. See
 * codec/decay.h for the arithmetic. */
#include "codec/layout_parts.h"

/* Without a TIME they last until 2070-01-01T00:00:00Z or longer. */
#define LAYOUT_DECAY_SPAN_US (INT64_C(18263) * 24 * 3600 * 1000 * 1000)

/* ---- the half-life of a layout ---- */

/* How long results may come: as long as TIME lasts. */
static uint64_t layout_decay_span_us(const struct layout_time *time) {
    uint64_t span_us;
    if (time->bits == 0) {
        return LAYOUT_DECAY_SPAN_US;
    }
    return __builtin_mul_overflow(time->mask, (uint64_t)time->unit_us, &span_us) ||
                   __builtin_add_overflow(span_us, (uint64_t)time->unit_us, &span_us)
               ? UINT64_MAX
               : span_us;
}

static int64_t layout_decay_epoch_us(const struct layout *layout) {
    return layout->time.bits > 0 ? layout->time.start_us : LAYOUT_START_DEFAULT_US;
}

void layout_decay_set_epoch(struct layout *layout) {
    if (layout_field_decays(&layout->fields[0])) {
        layout->fields[0].decay.epoch_us = layout_decay_epoch_us(layout);
    }
}

struct decay layout_decay_of(const struct layout *layout) {
    const struct layout_field *lead = &layout->fields[0];
    struct decay decay = {.count = lead->decay.count, .unit = lead->decay.unit};
    if (decay.count == 0) {
        return decay;
    }
    decay.half_life_us = decay.count * layout_unit_us(decay.unit);
    decay.epoch_us = layout_decay_epoch_us(layout);
    unsigned whole_bits =
        decay_whole_bits((uint64_t)decay.half_life_us, layout_decay_span_us(&layout->time));
    unsigned bits = lead->bits > whole_bits ? lead->bits - whole_bits : 0;
    decay.fraction_bits =
        (uint8_t)(bits < DECAY_FRACTION_BITS_MAX ? bits : DECAY_FRACTION_BITS_MAX);
    return decay;
}

bool layout_decay_check(const struct layout *layout, char *error) {
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
                         whole_bits + DECAY_FRACTION_BITS_MIN > LAYOUT_KEY_BITS
                             ? " (a longer half-life, or a TIME that ends earlier, needs fewer)"
                             : "");
}

const char *layout_decay_fault(const struct layout *layout, unsigned index) {
    const struct decay *decay = &layout->fields[index].decay;
    if (index > 0 && decay->count > 0) {
        return "a field that is not the first one decays";
    }
    bool is_written = decay->count > 0 || decay->unit > 0;
    if (is_written && (decay->count == 0 || decay->count > DECAY_COUNT_MAX ||
                       decay->unit < LAYOUT_UNIT_S || decay->unit >= LAYOUT_UNITS)) {
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

/* ---- ordinals and scores ---- */

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

bool layout_decay_explain(const struct layout_field *field, uint64_t ordinal, struct decimal delta,
                          int64_t time_us, int64_t now_us, char *error) {
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

bool layout_decay_range(const struct layout_field *field, const struct decimal_bound *lower,
                        const struct decimal_bound *upper, int64_t time_us, uint64_t *first,
                        uint64_t *last) {
    return layout_decay_end(field, *lower, DECIMAL_BOUND_LOWEST, time_us, first) &&
           layout_decay_end(field, *upper, DECIMAL_BOUND_HIGHEST, time_us, last);
}
