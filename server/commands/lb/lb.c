/* Arguments shared by several native commands. */
#include "server/commands/lb/lb.h"

#include "server/acl/acl_check.h"

const struct layout *lb_layout(const struct call *call, const struct board *board,
                               struct bytes name) {
    return board != NULL ? board_layout(board)
                         : &settings_rules_for(&call->server->settings, name)->layout;
}

bool lb_check_archives(const struct call *call, struct bytes name) {
    char pattern[REGISTRY_KEY_MAX + 2];
    if (!call_check_key(call, name)) {
        return false;
    }
    memcpy(pattern, name.at, name.size);
    memcpy(pattern + name.size, "@*", 2);
    return acl_check_pattern(call, (struct bytes){.at = pattern, .size = name.size + 2}, true,
                             ACL_WRITE);
}

bool lb_parse_expiry(const struct call *call, struct bytes text, int64_t *time_ms) {
    int64_t seconds;
    int64_t ms;
    if (!call_parse_integer(call, text, &seconds)) {
        return false;
    }
    return (seconds > 0 && !__builtin_mul_overflow(seconds, 1000, &ms) &&
            !__builtin_add_overflow(ms, call->now_ms, time_ms)) ||
           call_refuse_format(call, "ERR invalid expire time in '%s' command",
                              command_full_name(command_index(call->command)));
}

static bool lb_refuse_value(const struct call *call, const struct layout_field *field,
                            struct bytes text, enum decimal_status status) {
    return status == DECIMAL_NOT_A_NUMBER
               ? call_refuse_format(call, "ERR value is not a valid float: field '%s'", field->name)
               : zset_refuse_value(call, field, text, status);
}

bool lb_parse_decimal(const struct call *call, const struct layout_field *field, struct bytes text,
                      struct decimal *value) {
    enum decimal_status status = layout_field_parse(field, text, value);
    return status == DECIMAL_OK || lb_refuse_value(call, field, text, status);
}

bool lb_parse_value(const struct call *call, const struct layout_field *field, struct bytes text,
                    uint64_t *ordinal) {
    struct decimal value;
    if (!lb_parse_decimal(call, field, text, &value)) {
        return false;
    }
    return layout_field_ordinal(field, value, ordinal) == LAYOUT_OK ||
           lb_refuse_value(call, field, text, DECIMAL_OUT_OF_RANGE);
}

bool lb_parse_score(const struct call *call, const struct layout_field *field, struct bytes text,
                    uint64_t *ordinal) {
    struct decimal value;
    uint64_t zero = layout_field_zero(field);
    if (!lb_parse_decimal(call, field, text, &value)) {
        return false;
    }
    return layout_field_add_at(field, zero, value, call->now_us, ordinal) == LAYOUT_OK ||
           (layout_field_decays(field) && !value.is_negative
                ? zset_refuse_sum(call, field, zero, value, call->now_us)
                : lb_refuse_value(call, field, text, DECIMAL_OUT_OF_RANGE));
}

bool lb_span_of_scores(const struct call *call, const struct board *board, uint32_t index,
                       struct zset_span *span) {
    struct bytes start = call_arg(call, index);
    struct bytes stop = call_arg(call, index + 1);
    if (!zset_span_of_scores(call, board, start, stop, span)) {
        return false;
    }
    /* Unless both limits are equal, one of the two orders yields an empty span. */
    return span->count > 0 || zset_span_of_scores(call, board, stop, start, span);
}
