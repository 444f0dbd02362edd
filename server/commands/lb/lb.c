/* Arguments shared by several native commands. */
#include "server/commands/lb/lb.h"

#include <stdio.h>

#include "server/commands/writing.h"
#include "skiplist/keyspace/archive_name.h"

enum { ARCHIVES_TRIED = 8 }; /* names, without a number and with one */

const struct layout *lb_layout(const struct call *call, const struct board *board,
                               struct bytes name) {
    return board != NULL ? board_layout(board)
                         : &setting_board_options_for(&call->server->settings, name, 0)->layout;
}

bool lb_check_archives(const struct call *call, struct bytes name) {
    return call_check_key(call, name) && writing_may_use_archives(call, name, ACL_WRITE);
}

bool lb_check_no_copy_is_due(const struct call *call, const struct registry_key *key) {
    const struct board_options *options = registry_options(key);
    return !options->copies || !board_options_are_over(options, call->now_ms) ||
           call_refuse(call, "TRYAGAIN the archive of the period that has ended is still being "
                             "copied");
}

struct lb_archives lb_archives_begin(struct bytes name, const struct board_options *options,
                                     char *text) {
    CHECK(name.size <= REGISTRY_KEY_MAX);
    memcpy(text, name.at, name.size);
    bool has_some = options->period.unit != PERIOD_NONE;
    return (struct lb_archives){.options = options,
                                .text = text,
                                .name_size = name.size,
                                .time_ms = options->period_start_ms,
                                .left = has_some ? LB_ARCHIVES_MAX : 0};
}

bool lb_archives_next(struct lb_archives *archives, struct bytes *archive) {
    const struct period *period = &archives->options->period;
    if (archives->left == 0) {
        return false;
    }
    archives->left--;
    archives->time_ms = period_start(period, archives->time_ms - 1);
    size_t size = archives->name_size;
    size += archive_name_print_suffix(period, archives->time_ms, archives->text + size);
    archives->period_size = size;
    archives->number = 1;
    *archive = (struct bytes){.at = archives->text, .size = size};
    return true;
}

bool lb_archives_next_number(struct lb_archives *archives, struct bytes *archive) {
    size_t size = archives->period_size;
    if (archives->number == ARCHIVES_TRIED) {
        return false;
    }
    archives->text[size++] = '.';
    size += bytes_print_u64(archives->text + size, ++archives->number);
    *archive = (struct bytes){.at = archives->text, .size = size};
    return true;
}

/* Those of versions before settlements are known only by being frozen, where they are. */
bool lb_is_archive(const struct board_options *board, const struct board_options *options) {
    return options->is_archive || (options->guards & BOARD_FROZEN) != 0 ||
           (board->archives_are_writable && options->league.room == 0);
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
    if (status != DECIMAL_NOT_A_NUMBER) {
        return zset_refuse_value(call, field, text, status);
    }
    char why[LAYOUT_NAME_MAX + 16];
    snprintf(why, sizeof why, "is not a %s", field->name);
    return call_refuse_word(call, text, why, NULL);
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
    return layout_field_add_at(field, zero, value, call->now_us, call->now_us, ordinal) ==
               LAYOUT_OK ||
           (layout_field_decays(field) && !value.is_negative
                ? zset_refuse_sum(call, field, zero, value, call->now_us)
                : lb_refuse_value(call, field, text, DECIMAL_OUT_OF_RANGE));
}

bool lb_check_count(const struct call *call, uint32_t count, uint32_t max, const char *called) {
    return count <= max || call_refuse_format(call, "ERR %s takes at most %u %s",
                                              call->command->name, (unsigned)max, called);
}

bool lb_parse_packed_key(const struct call *call, const struct layout *layout, struct bytes text,
                         uint64_t *key, bool *is_equal) {
    *is_equal = text.size > 0 && text.at[0] == '=';
    struct bytes digits = {.at = text.at + *is_equal, .size = text.size - *is_equal};
    int64_t negative;
    if (layout == NULL) {
        *key = 0;
        return bytes_parse_u64(digits, key) || bytes_parse_i64(digits, &negative) ||
               call_refuse_reason(call, "packed key %s is not an integer", bytes_show(digits).text);
    }
    if (layout_key_parse(layout, digits, key)) {
        return true;
    }
    char error[LAYOUT_ERROR_MAX];
    layout_explain_key(layout, digits, error);
    return call_refuse_format(call, "ERR %s", error);
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
