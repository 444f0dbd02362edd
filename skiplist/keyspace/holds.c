/* See holds.h. */
#include "skiplist/keyspace/holds.h"

#include "codec/decimal.h"

_Static_assert(sizeof(struct hold_rule) == 24, "no hidden bytes: rules are compared as bytes");

bool holds_equal(const struct hold_rule *a, const struct hold_rule *b) {
    return memcmp(a, b, sizeof *a) == 0;
}

bool holds_validate(const struct hold_rule *rule) {
    enum { MS_OF_HOUR = 3600000 };
    return (rule->has_over ? rule->over > INT64_MIN && rule->scale <= DECIMAL_SCALE_MAX
                           : rule->over == 0 && rule->scale == 0) &&
           rule->top <= HOLD_TOP_MAX && rule->auto_ms >= 0 && rule->auto_ms <= HOLD_AUTO_MS_MAX &&
           rule->auto_ms % MS_OF_HOUR == 0 &&
           (rule->has_over || rule->top > 0 || rule->takes_limits);
}

const char *holds_refuse(const struct hold_rule *rule, bool has_limits,
                         const struct layout_field *lead) {
    return lead->is_double || layout_field_decays(lead)
               ? "HOLD needs a first field without DOUBLE and DECAY"
           : rule->scale > lead->scale
               ? "HOLD OVER has a value with more decimals than the board's first field keeps"
           : rule->takes_limits && !has_limits ? "HOLD LIMITS needs a board with LIMITS"
                                               : NULL;
}

bool holds_is_over(const struct hold_rule *rule, const struct layout_field *lead,
                   uint64_t ordinal) {
    wide over = rule->over;
    wide value = decimal_to_wide(layout_field_decimal(lead, ordinal));
    for (unsigned scale = rule->scale; scale < lead->scale; scale++) {
        over *= 10;
    }
    return rule->has_over && (lead->is_ascending ? value < over : value > over);
}
