/* LB.INFO: a board's layout, the ranges of its fields and times, its options, memory, archives and tags.
 * LB.LIST: all boards, in steps; UNSETTLED: archives that nobody has settled, of each step the oldest first. */
#include <stdlib.h>

#include "server/acl/acl_check.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_record.h"
#include "server/commands/scanning.h"
#include "skiplist/keyspace/rules.h"

/* Entries of a map that lb_info_put_options writes: the options, and the period. */
enum { LB_OPTIONS = 13 };

static void lb_info_put_flag(const struct call *call, const char *name, bool is_true) {
    reply_bulk_text(call->reply, name);
    reply_boolean(call->reply, is_true);
}

static void lb_info_put_field(const struct call *call, const struct layout_field *field) {
    bool decays = layout_field_decays(field);
    reply_map(call->reply, decays ? 8 : 7);
    reply_named_text(call->reply, "name", field->name);
    reply_named_integer(call->reply, "bits", field->bits);
    reply_named_text(call->reply, "order", field->is_ascending ? "asc" : "desc");
    lb_info_put_flag(call, "signed", field->is_signed);
    reply_named_integer(call->reply, "scale", field->scale);
    reply_bulk_text(call->reply, "lowest");
    lb_reply_decimal(call, field, layout_field_lowest(field));
    reply_bulk_text(call->reply, "highest");
    lb_reply_decimal(call, field, layout_field_highest(field));
    if (decays) {
        reply_named_integer(call->reply, "half-life", field->decay.half_life_us / 1000);
    }
}

/* The milliseconds that AT accepts: those within the window. */
static int64_t lb_info_first_ms(const struct layout *layout) {
    int64_t first_us = layout_time_first_us(layout);
    return first_us / 1000 + (first_us % 1000 > 0);
}

static int64_t lb_info_last_ms(const struct layout *layout) {
    int64_t last_us = layout_time_last_us(layout);
    return last_us / 1000 - (last_us % 1000 < 0);
}

static void lb_info_put_time(const struct call *call, const struct layout *layout) {
    if (layout->time.bits == 0) {
        reply_null(call->reply);
        return;
    }
    reply_map(call->reply, 5);
    reply_named_text(call->reply, "unit", layout_unit_name(layout->time.unit));
    reply_named_integer(call->reply, "bits", layout->time.bits);
    reply_named_text(call->reply, "order", layout->time.is_latest ? "latest" : "earliest");
    reply_named_integer(call->reply, "first", lb_info_first_ms(layout));
    reply_named_integer(call->reply, "last", lb_info_last_ms(layout));
}

static void lb_info_put_period(const struct call *call, const struct rules *rules) {
    const struct period *period = &rules->period;
    char zone[PERIOD_ZONE_TEXT_MAX];
    char from[PERIOD_DATE_TEXT_MAX];
    if (rules->period.unit == PERIOD_NONE) {
        reply_null(call->reply);
        return;
    }
    reply_map(call->reply, 11);
    reply_named_text(call->reply, "unit", period_unit_name(period->unit));
    reply_bulk_text(call->reply, "tz");
    reply_bulk(call->reply, (struct bytes){zone, period_print_zone(zone, period)});
    reply_named_integer(call->reply, "start", rules->period_start_ms);
    reply_named_integer(call->reply, "end", rules->period_end_ms);
    reply_bulk_text(call->reply, "archive");
    if (rules->archives_max == RULES_ARCHIVES_ALL) {
        reply_null(call->reply);
    } else {
        reply_integer(call->reply, rules->archives_max);
    }
    reply_named_integer(call->reply, "every", period->every);
    reply_bulk_text(call->reply, "on");
    if (period->unit == PERIOD_WEEK) {
        reply_bulk_text(call->reply, period_weekday_name(period->weekday));
    } else {
        reply_null(call->reply);
    }
    reply_named_integer(call->reply, "at", period->hour);
    reply_bulk_text(call->reply, "from");
    if (period->every > 1) {
        reply_bulk(call->reply, (struct bytes){from, period_print_date(from, period->from_day)});
    } else {
        reply_null(call->reply);
    }
    reply_named_text(call->reply, "archived", rules->archives_are_writable ? "writable" : "frozen");
    lb_info_put_flag(call, "copy", rules->copies);
}

/* nil for 0. */
static void lb_info_put_given(const struct call *call, const char *name, int64_t value) {
    reply_bulk_text(call->reply, name);
    if (value > 0) {
        reply_integer(call->reply, value);
    } else {
        reply_null(call->reply);
    }
}

/* Of a league one more. */
static uint64_t lb_info_count_options(const struct rules *rules) {
    return LB_OPTIONS + (rules->league.room > 0);
}

static void lb_info_put_league(const struct call *call, const struct rules_league *league) {
    if (league->room == 0) {
        return;
    }
    reply_bulk_text(call->reply, "league");
    reply_map(call->reply, 5);
    reply_named_integer(call->reply, "room", league->room);
    reply_named_integer(call->reply, "tiers", league->tiers);
    reply_named_integer(call->reply, "up", league->up);
    reply_named_integer(call->reply, "down", league->down);
    reply_named_text(call->reply, "idle", league->idle_goes_down ? "down" : "stay");
}

/* "left": of the members of the period that leaves. */
static void lb_info_put_window(const struct call *call, const struct rules *rules) {
    enum { BEHIND_MAX = 1000 };
    const struct rules_window *window = &rules->window;
    reply_bulk_text(call->reply, "window");
    if (window->count == 0) {
        reply_null(call->reply);
        return;
    }
    reply_map(call->reply, 5);
    reply_named_integer(call->reply, "periods", window->count);
    reply_named_text(call->reply, "of", window->is_best ? "best" : "sum");
    reply_named_integer(call->reply, "from", window->from_ms);
    reply_named_integer(call->reply, "behind", rules_window_behind(rules, BEHIND_MAX));
    reply_named_integer(call->reply, "left", window->left);
}

static void lb_info_put_options(const struct call *call, const struct rules *rules) {
    lb_info_put_given(call, "cap", rules->cap);
    reply_named_text(call->reply, "keep", rules->keeps_best ? "best" : "last");
    lb_info_put_flag(call, "created", rules->is_created);
    reply_bulk_text(call->reply, "period");
    lb_info_put_period(call, rules);
    lb_info_put_given(call, "limit", rules->limit);
    lb_info_put_flag(call, "frozen", (rules->guards & RULES_FROZEN) != 0);
    lb_info_put_given(call, "opens", rules->opens_ms);
    lb_info_put_given(call, "closes", rules->closes_ms);
    lb_info_put_given(call, "stale", rules->stale_ms);
    lb_info_put_flag(call, "settle", rules->settles);
    bool is_archive = rules->settlement != RULES_NO_ARCHIVE;
    reply_bulk_text(call->reply, "settled");
    if (is_archive) {
        reply_boolean(call->reply, rules->settlement == RULES_SETTLED);
    } else {
        reply_null(call->reply);
    }
    reply_bulk_text(call->reply, "ended");
    if (is_archive) {
        reply_integer(call->reply, rules->ended_ms);
    } else {
        reply_null(call->reply);
    }
    lb_info_put_window(call, rules);
    lb_info_put_league(call, &rules->league);
}

/* ---- archives ---- */

static bool lb_info_find_archive(const struct call *call, const struct registry_key *key,
                                 struct lb_archives *archives, struct bytes *archive) {
    const struct rules *rules;
    do {
        rules = keyspace_peek_rules(call, key, *archive);
        if (rules != NULL && lb_is_archive(registry_rules(key), rules)) {
            return true;
        }
    } while (rules != NULL && lb_archives_next_number(archives, archive));
    return false;
}

/* Another entry: "archives", the names of those that are there, the newest first. They are looked
 * for under the names of the periods before the present one: a bounded number. */
static void lb_info_put_archives(const struct call *call, const struct registry_key *key) {
    char text[REGISTRY_NAME_MAX];
    struct bytes archive;
    reply_bulk_text(call->reply, "archives");
    size_t mark = reply_array_begin(call->reply);
    uint32_t count = 0;
    if (key->name_size <= REGISTRY_KEY_MAX) {
        struct lb_archives archives =
            lb_archives_begin(registry_name(key), registry_rules(key), text);
        while (lb_archives_next(&archives, &archive)) {
            if (lb_info_find_archive(call, key, &archives, &archive)) {
                reply_bulk(call->reply, archive);
                count++;
            }
        }
    }
    reply_array_end(call->reply, mark, count);
}

/* Another entry: "tags", with the numbers of values that members have, and may have. */
static void lb_info_put_tags(const struct call *call, const struct registry_key *key) {
    const struct tag_set *tags = &board_layout(&key->board)->tags;
    reply_bulk_text(call->reply, "tags");
    reply_array(call->reply, tags->count);
    for (unsigned i = 0; i < tags->count; i++) {
        const struct tag *tag = &tags->tags[i];
        reply_map(call->reply, 4);
        reply_named_text(call->reply, "name", tag->name);
        reply_named_integer(call->reply, "bits", tag->bits);
        reply_named_integer(call->reply, "values", board_count_values(&key->board, i));
        reply_named_integer(call->reply, "values-max", tag_values_max(tag));
    }
}

/* ---- the command ---- */

static void lb_info_run(struct call *call) {
    struct registry_key *key;
    if (!call_need_board(call, call_arg(call, 1), &key)) {
        return;
    }
    const struct layout *layout = board_layout(&key->board);
    char text[LAYOUT_TEXT_MAX];
    layout_print(layout, text);
    reply_map(call->reply, 8 + lb_info_count_options(registry_rules(key)));
    reply_named_text(call->reply, "layout", text);
    reply_named_integer(call->reply, "bits", layout->bits_total);
    reply_named_integer(call->reply, "count", board_count(&key->board));
    reply_named_integer(call->reply, "memory", (int64_t)registry_memory_size(call->registry, key));
    reply_bulk_text(call->reply, "fields");
    reply_array(call->reply, layout->field_count);
    for (unsigned i = 0; i < layout->field_count; i++) {
        lb_info_put_field(call, &layout->fields[i]);
    }
    reply_bulk_text(call->reply, "time");
    lb_info_put_time(call, layout);
    lb_info_put_options(call, registry_rules(key));
    lb_info_put_archives(call, key);
    lb_info_put_tags(call, key);
}

const struct command command_lb_info = {
    .name = "LB.INFO",
    .reply = COMMAND_REPLIES_MAP,
    .syntax = "key",
    .summary = "A board's layout and options, the ranges of its fields and times, its members, its "
               "memory, its archives and its tags",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = lb_info_run,
};

enum {
    BOARDS_MAX = 50,     /* keys that a step visits at most */
    UNSETTLED_MAX = 500, /* likewise with UNSETTLED: most of them are not replied */
};

struct list {
    struct scanning scanning; /* first: see SCANNING_OPTIONS */
    struct call aside;        /* its reply collects the boards */
    uint64_t cursor;
    bool is_unsettled;
    struct buffer places; /* of what was collected: struct list_place */
};

/* Where in what was collected an archive is; text: once all is. */
struct list_place {
    int64_t ended_ms;
    size_t begin, size;
    const char *text;
};

static bool lb_info_read_cursor(const struct call *call, uint32_t index, void *target) {
    struct list *list = target;
    return call_parse_cursor(call, call_arg(call, index), &list->cursor);
}

static const struct binding list_bindings[] = {
    SCANNING_OPTIONS,
    {"CURSOR", .read = lb_info_read_cursor},
    {BIND("UNSETTLED", struct list, is_unsettled)},
    {0},
};

/* ---- boards ---- */

static void lb_info_list(struct list *list, const struct registry_key *key) {
    const struct call *call = &list->aside;
    char text[LAYOUT_TEXT_MAX];
    layout_print(board_layout(&key->board), text);
    reply_map(call->reply, 5 + lb_info_count_options(registry_rules(key)));
    reply_bulk_text(call->reply, "name");
    reply_bulk(call->reply, registry_name(key));
    reply_named_text(call->reply, "layout", text);
    reply_named_integer(call->reply, "count", board_count(&key->board));
    lb_info_put_options(call, registry_rules(key));
    lb_info_put_archives(call, key);
    lb_info_put_tags(call, key);
    list->scanning.found_count++;
}

static void lb_info_visit(void *context, const struct registry_key *key) {
    struct list *list = context;
    if (key->kind != REGISTRY_BOARD || !scanning_takes(&list->scanning, registry_name(key))) {
        return;
    }
    if (!list->is_unsettled) {
        lb_info_list(list, key);
    } else if (registry_rules(key)->settlement == RULES_UNSETTLED) {
        struct list_place place = {.ended_ms = registry_rules(key)->ended_ms,
                                   .begin = list->scanning.text.size};
        lb_info_list(list, key);
        place.size = list->scanning.text.size - place.begin;
        buffer_append(&list->places, (const char *)&place, sizeof place);
    }
}

/* ---- the oldest first ---- */

static int lb_info_compare_places(const void *a, const void *b) {
    const struct list_place *first = a;
    const struct list_place *second = b;
    if (first->ended_ms != second->ended_ms) {
        return first->ended_ms < second->ended_ms ? -1 : 1;
    }
    /* Both begin with their names. */
    return memcmp(first->text, second->text,
                  first->size < second->size ? first->size : second->size);
}

/* What was collected, in the order of the times at which the archives have ended. */
static void lb_info_sort(struct list *list) {
    struct buffer *text = &list->scanning.text;
    size_t count = list->places.size / sizeof(struct list_place);
    struct buffer sorted;
    if (count == 0 || text->is_broken) {
        return;
    }
    buffer_init(&sorted, 0);
    void *at = list->places.at;
    struct list_place *places = at;
    for (size_t i = 0; i < count; i++) {
        places[i].text = text->at + places[i].begin;
    }
    qsort(places, count, sizeof *places, lb_info_compare_places);
    for (size_t i = 0; i < count; i++) {
        buffer_append(&sorted, places[i].text, places[i].size);
    }
    sorted.is_broken |= list->places.is_broken;
    buffer_deinit(text);
    *text = sorted;
}

static void lb_list_run(struct call *call) {
    struct glob glob;
    struct list list = {.aside = *call};
    scanning_begin(&list.scanning, call, &glob);
    buffer_init(&list.places, 0);
    list.scanning.count = 0; /* not given */
    if (!syntax_read(call, &list)) {
        return;
    }
    if (!acl_check_pattern(call, list.scanning.has_pattern ? list.scanning.pattern : BYTES("*"),
                           false, ACL_READ)) {
        return;
    }
    list.aside.reply = &list.scanning.found;
    uint32_t count_max = list.is_unsettled ? UNSETTLED_MAX : BOARDS_MAX;
    if (list.scanning.count == 0) {
        list.scanning.count = list.is_unsettled ? UNSETTLED_MAX : SCANNING_COUNT;
    }
    uint64_t cursor =
        scanning_keys(&list.scanning, call, list.cursor, count_max, lb_info_visit, &list);
    lb_info_sort(&list);
    buffer_deinit(&list.places);
    scanning_end(&list.scanning, call, cursor);
}

const struct command command_lb_list = {
    .name = "LB.LIST",
    .reply = COMMAND_REPLIES_BOARDS,
    .syntax = "[MATCH pattern] [CURSOR cursor:integer] [COUNT count:integer] [UNSETTLED]",
    .bindings = list_bindings,
    .summary = "Walk over the boards of the database in steps, each with its layout, options, "
               "archives and tags",
    .complexity = "O(COUNT) for each call, of which it takes 50 at the most; O(n) for the whole "
                  "walk over n keys",
    .flags = COMMAND_READ,
    .run = lb_list_run,
};
