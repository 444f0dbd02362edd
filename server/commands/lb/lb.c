/* Arguments shared by several native commands. */
#include "server/commands/lb/lb.h"

#include "server/clients/server.h"

const struct layout *lb_layout(const struct call *call, const struct board *board,
                               struct bytes name) {
    return board != NULL ? board_layout(board)
                         : &settings_rules_for(&call->server->settings, name)->layout;
}

static bool refuse_value(const struct call *call, const struct layout_field *field,
                         struct bytes text, enum decimal_status status) {
    char error[LAYOUT_ERROR_MAX];
    if (status == DECIMAL_NOT_A_NUMBER) {
        reply_error_format(call->reply, "ERR value is not a valid float: field '%s'", field->name);
        return false;
    }
    layout_explain_value(field, text, status, error);
    reply_error_format(call->reply, "ERR %s", error);
    return false;
}

bool lb_parse_decimal(const struct call *call, const struct layout_field *field, struct bytes text,
                      struct decimal *value) {
    enum decimal_status status = layout_field_parse(field, text, value);
    return status == DECIMAL_OK || refuse_value(call, field, text, status);
}

bool lb_parse_value(const struct call *call, const struct layout_field *field, struct bytes text,
                    uint64_t *ordinal) {
    struct decimal value;
    if (!lb_parse_decimal(call, field, text, &value)) {
        return false;
    }
    return layout_field_ordinal(field, value, ordinal) == LAYOUT_OK ||
           refuse_value(call, field, text, DECIMAL_OUT_OF_RANGE);
}
