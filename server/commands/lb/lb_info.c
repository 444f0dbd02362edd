/* LB.INFO: a board's layout, the ranges of its fields and times, its options, and its memory. */
#include "server/commands/lb/lb_record.h"

static void put_text(const struct call *call, const char *name, const char *text) {
    reply_bulk_text(call->reply, name);
    reply_bulk_text(call->reply, text);
}

static void put_number(const struct call *call, const char *name, int64_t number) {
    reply_bulk_text(call->reply, name);
    reply_integer(call->reply, number);
}

static void put_flag(const struct call *call, const char *name, bool is_true) {
    reply_bulk_text(call->reply, name);
    reply_boolean(call->reply, is_true);
}

static void put_field(const struct call *call, const struct layout_field *field) {
    reply_map(call->reply, 7);
    put_text(call, "name", field->name);
    put_number(call, "bits", field->bits);
    put_text(call, "order", field->is_ascending ? "asc" : "desc");
    put_flag(call, "signed", field->is_signed);
    put_number(call, "scale", field->scale);
    reply_bulk_text(call->reply, "lowest");
    lb_reply_value(call, field, 0);
    reply_bulk_text(call->reply, "highest");
    lb_reply_value(call, field, field->mask);
}

/* The milliseconds that AT accepts: those within the window. */
static int64_t first_ms(const struct layout *layout) {
    int64_t first_us = layout_time_first_us(layout);
    return first_us / 1000 + (first_us % 1000 > 0);
}

static int64_t last_ms(const struct layout *layout) {
    int64_t last_us = layout_time_last_us(layout);
    return last_us / 1000 - (last_us % 1000 < 0);
}

static void put_time(const struct call *call, const struct layout *layout) {
    if (layout->time.bits == 0) {
        reply_null(call->reply);
        return;
    }
    reply_map(call->reply, 5);
    put_text(call, "unit", layout_unit_name(layout->time.unit));
    put_number(call, "bits", layout->time.bits);
    put_text(call, "order", layout->time.is_latest ? "latest" : "earliest");
    put_number(call, "first", first_ms(layout));
    put_number(call, "last", last_ms(layout));
}

static void put_period(const struct call *call, const struct rules *rules) {
    char zone[PERIOD_ZONE_TEXT_SIZE + 1] = "";
    if (rules->period == PERIOD_NONE) {
        reply_null(call->reply);
        return;
    }
    period_print_zone(zone, rules->zone_minutes);
    reply_map(call->reply, 5);
    put_text(call, "unit", period_unit_name(rules->period));
    put_text(call, "tz", zone);
    put_number(call, "start", rules->period_start_ms);
    put_number(call, "end", rules->period_end_ms);
    reply_bulk_text(call->reply, "archive");
    if (rules->archives_max == RULES_ARCHIVES_ALL) {
        reply_null(call->reply);
    } else {
        reply_integer(call->reply, rules->archives_max);
    }
}

static void put_options(const struct call *call, const struct rules *rules) {
    reply_bulk_text(call->reply, "cap");
    if (rules->cap > 0) {
        reply_integer(call->reply, rules->cap);
    } else {
        reply_null(call->reply);
    }
    put_text(call, "keep", rules->keeps_best ? "best" : "last");
    put_flag(call, "created", rules->is_created);
    reply_bulk_text(call->reply, "period");
    put_period(call, rules);
}

static void lb_info_run(struct call *call) {
    const struct registry_key *key = call_find_key(call, call_arg(call, 1));
    if (key == NULL) {
        reply_error(call->reply, "ERR no such key");
        return;
    }
    const struct layout *layout = board_layout(&key->board);
    char text[LAYOUT_TEXT_MAX];
    layout_print(layout, text);
    reply_map(call->reply, 10);
    put_text(call, "layout", text);
    put_number(call, "bits", layout->bits_total);
    put_number(call, "count", board_count(&key->board));
    put_number(call, "memory", (int64_t)registry_memory_size(call->registry, key));
    reply_bulk_text(call->reply, "fields");
    reply_array(call->reply, layout->field_count);
    for (unsigned i = 0; i < layout->field_count; i++) {
        put_field(call, &layout->fields[i]);
    }
    reply_bulk_text(call->reply, "time");
    put_time(call, layout);
    put_options(call, registry_rules(key));
}

const struct command command_lb_info = {
    .name = "LB.INFO",
    .syntax = "key",
    .summary = "A board's layout and options, the ranges of its fields and times, its members and "
               "its memory",
    .complexity = "O(1)",
    .group = "leaderboard",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = lb_info_run,
};
