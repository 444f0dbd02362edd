/* LB.INFO: a board's layout, the ranges of its fields and times, its options, memory, archives and tags.
 * LB.LIST: all boards, in steps; UNSETTLED: archives that nobody has settled, of each step the oldest first. */
#include <stdlib.h>

#include "server/acl/acl_check.h"
#include "server/commands/guarding.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_record.h"

static void lb_info_put_field(const struct call *call, const struct layout_field *field) {
    bool decays = layout_field_decays(field);
    reply_map(call->reply, decays ? 8 : 7);
    reply_named_text(call->reply, "name", field->name);
    reply_named_integer(call->reply, "bits", field->bits);
    reply_named_text(call->reply, "order", field->is_ascending ? "asc" : "desc");
    reply_bulk_text(call->reply, "signed");
    reply_boolean(call->reply, field->is_signed);
    reply_named_integer(call->reply, "scale", field->scale);
    reply_bulk_text(call->reply, "lowest");
    lb_record_reply_decimal(call, field, layout_field_lowest(field));
    reply_bulk_text(call->reply, "highest");
    lb_record_reply_decimal(call, field, layout_field_highest(field));
    if (decays) {
        reply_named_integer(call->reply, "half-life", field->decay.half_life_us / 1000);
    }
}

/* ---- options ---- */

struct info {
    enum board_option_id id;
    const char *name;
};

/* A name and a value: of a row, or nil where it has none. */
static void lb_info_put_option(const struct call *call, const struct registry_key *key,
                               const struct info *info) {
    const struct board_options *options = registry_options(key);
    const struct board_option *option = &board_options[info->id];
    int64_t value = board_options_get(option, options, registry_state(key));
    char text[SETTING_RATING_TEXT_MAX > SETTING_OPTION_TEXT_MAX ? SETTING_RATING_TEXT_MAX
                                                                : SETTING_OPTION_TEXT_MAX];
    reply_bulk_text(call->reply, info->name);
    if (!board_options_applies(option, options) ||
        (option->form >= BOARD_FORM_RATING && value == 0) ||
        (option->none != NULL && value == option->usual)) {
        reply_null(call->reply);
    } else if (option->form == BOARD_FORM_FLAG || option->form == BOARD_FORM_YES_NO) {
        reply_boolean(call->reply, value == (option->value > 0 ? option->value : 1));
    } else if (option->words[0] != NULL) {
        size_t size = 0;
        for (const char *at = option->words[value]; *at != '\0'; at++) {
            text[size++] = (char)(*at | 0x20); /* in lower case */
        }
        reply_bulk(call->reply, (struct bytes){text, size});
    } else if ((option->form >= BOARD_FORM_UNIT && option->form <= BOARD_FORM_ZONE) ||
               option->form >= BOARD_FORM_RATING) {
        size_t size = setting_options_print_one(option, options, NULL, text);
        reply_bulk(call->reply, (struct bytes){text, size});
    } else {
        reply_integer(call->reply, value);
    }
}

#define INFO(id, name, type) {BOARD_OPTION_##id, name},
static const struct info info_first[] = {BOARD_INFO_FIRST(INFO, INFO)};
static const struct info info_period[] = {BOARD_INFO_PERIOD(INFO, INFO)};
static const struct info info_then[] = {BOARD_INFO_THEN(INFO, INFO)};
static const struct info info_window[] = {BOARD_INFO_WINDOW(INFO, INFO)};
static const struct info info_league[] = {BOARD_INFO_LEAGUE(INFO, INFO)};
#undef INFO
#define COUNT(infos) (sizeof(infos) / sizeof(infos)[0])

/* Entries of a map that lb_info_put_options writes: those, the period and the window; of a board with rooms one more. */
enum { LB_OPTIONS = COUNT(info_first) + COUNT(info_then) + 3 };

static uint64_t lb_info_count_options(const struct board_options *options) {
    return LB_OPTIONS + ((options->guards & BOARD_LEAGUE) != 0);
}

static void lb_info_put_rows(const struct call *call, const struct registry_key *key,
                             const struct info *infos, size_t count) {
    for (size_t i = 0; i < count; i++) {
        lb_info_put_option(call, key, &infos[i]);
    }
}

/* A map of rows with more_count other entries, which the caller writes then. false: nil instead. */
static bool lb_info_put_map(const struct call *call, const struct registry_key *key,
                            const char *name, const struct info *infos, size_t count,
                            size_t more_count) {
    reply_bulk_text(call->reply, name);
    if (board_options_get(&board_options[infos[0].id], registry_options(key), NULL) == 0) {
        reply_null(call->reply);
        return false;
    }
    reply_map(call->reply, count + more_count);
    lb_info_put_rows(call, key, infos, count);
    return true;
}

static void lb_info_put_held(const struct call *call, const struct registry_key *key) {
    reply_bulk_text(call->reply, "held");
    if (registry_options(key)->has_hold && lb_held_may_list(call, registry_name(key))) {
        reply_integer(call->reply, guarding_held_count(key));
    } else {
        reply_null(call->reply);
    }
}

/* "left": of the members of the period that leaves. */
static void lb_info_put_options(const struct call *call, const struct registry_key *key) {
    enum { BEHIND_MAX = 1000 };
    lb_info_put_rows(call, key, info_first, COUNT(info_first));
    (void)lb_info_put_map(call, key, "period", info_period, COUNT(info_period), 0);
    lb_info_put_rows(call, key, info_then, COUNT(info_then));
    lb_info_put_held(call, key);
    if (lb_info_put_map(call, key, "window", info_window, COUNT(info_window), 2)) {
        reply_named_integer(
            call->reply, "behind",
            board_options_window_behind(registry_options(key), registry_state(key), BEHIND_MAX));
        lb_info_put_option(call, key, &(struct info){BOARD_OPTION_LEFT, "left"});
    }
    if ((registry_options(key)->guards & BOARD_LEAGUE) != 0) {
        (void)lb_info_put_map(call, key, "league", info_league, COUNT(info_league), 0);
    }
}

/* ---- archives ---- */

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
            lb_archives_begin(registry_name(key), registry_options(key), text);
        while (lb_archives_next(&archives, &archive)) {
            const struct board_options *options;
            bool is_archive;
            do {
                options = keyspace_peek_options(call, key, archive);
                is_archive = options != NULL && lb_is_archive(registry_options(key), options);
            } while (options != NULL && !is_archive &&
                     lb_archives_next_number(&archives, &archive));
            if (is_archive) {
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
        reply_named_integer(call->reply, "values", tags_count_values(&key->board, i));
        reply_named_integer(call->reply, "values-max", tag_values_max(tag));
    }
}

/* ---- the command ---- */

/* What answers about members show of their board (session.is_brief). */
static void lb_info_put_brief(const struct call *call, const struct registry_key *key) {
    static const struct info rows[] = {{BOARD_OPTION_FREEZE, "frozen"},
                                       {BOARD_OPTION_OPENS, "opens"},
                                       {BOARD_OPTION_CLOSES, "closes"}};
    static const struct info of_period[] = {
        {BOARD_OPTION_PERIOD, "unit"}, {BOARD_OPTION_STARTED, "start"}, {BOARD_OPTION_ENDS, "end"}};
    const struct layout *layout = board_layout(&key->board);
    reply_map(call->reply, 4 + COUNT(rows));
    reply_named_integer(call->reply, "count", board_count(&key->board));
    reply_bulk_text(call->reply, "fields");
    reply_array(call->reply, layout->field_count);
    for (unsigned i = 0; i < layout->field_count; i++) {
        reply_map(call->reply, 1);
        reply_named_text(call->reply, "name", layout->fields[i].name);
    }
    lb_info_put_rows(call, key, rows, COUNT(rows));
    (void)lb_info_put_map(call, key, "period", of_period, COUNT(of_period), 0);
    lb_info_put_held(call, key);
}

static void lb_info_run(struct call *call) {
    struct registry_key *key;
    if (!call_need_board(call, call_arg(call, 1), &key)) {
        return;
    }
    if (call->session->is_brief) {
        lb_info_put_brief(call, key);
        return;
    }
    const struct layout *layout = board_layout(&key->board);
    char text[LAYOUT_TEXT_MAX];
    layout_print(layout, text);
    reply_map(call->reply, 8 + lb_info_count_options(registry_options(key)));
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
    if (layout->time.bits == 0) {
        reply_null(call->reply);
    } else {
        /* The milliseconds that AT accepts: those within the window. */
        int64_t first_us = layout_time_first_us(layout);
        int64_t last_us = layout_time_last_us(layout);
        reply_map(call->reply, 5);
        reply_named_text(call->reply, "unit", layout_unit_name(layout->time.unit));
        reply_named_integer(call->reply, "bits", layout->time.bits);
        reply_named_text(call->reply, "order", layout->time.is_latest ? "latest" : "earliest");
        reply_named_integer(call->reply, "first", first_us / 1000 + (first_us % 1000 > 0));
        reply_named_integer(call->reply, "last", last_us / 1000 - (last_us % 1000 < 0));
    }
    lb_info_put_options(call, key);
    lb_info_put_archives(call, key);
    lb_info_put_tags(call, key);
}

const struct command command_lb_info = {
    .name = "LB.INFO",
    .syntax = "key",
    .reply = "@Board",
    .summary = "A board's layout and options, the ranges of its fields and times, its members, its "
               "memory, its archives and its tags",
    .flags = COMMAND_READ | COMMAND_FAST | COMMAND_OWN_MEMBER,
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
    reply_map(call->reply, 5 + lb_info_count_options(registry_options(key)));
    reply_bulk_text(call->reply, "name");
    reply_bulk(call->reply, registry_name(key));
    reply_named_text(call->reply, "layout", text);
    reply_named_integer(call->reply, "count", board_count(&key->board));
    lb_info_put_options(call, key);
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
    } else if (board_options_are_unsettled(registry_options(key), registry_state(key))) {
        struct list_place place = {.ended_ms = registry_state(key)->ended_ms,
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
    .syntax = "[MATCH pattern] [CURSOR cursor:integer] [COUNT count:integer] [UNSETTLED]",
    .bindings = list_bindings,
    .reply = "[cursor:s boards:[@ListedBoard]]",
    .summary = "Walk over the boards of the database in steps, each with its layout, options, "
               "archives and tags",
    .complexity = "O(COUNT) for each call, of which it takes 50 at the most; O(n) for the whole "
                  "walk over n keys",
    .flags = COMMAND_READ,
    .run = lb_list_run,
};
