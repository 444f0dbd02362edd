/* LB.LIST: the boards of the database, with their layouts, options and archives, step by step as
 * SCAN does it. */
#include "server/acl/acl_check.h"
#include "server/clients/server.h"
#include "server/commands/lb/lb_info.h"
#include "server/commands/scanning.h"
#include "server/dispatch/command.h"
#include "server/dispatch/cost.h"

enum { BOARDS_MAX = 50 }; /* keys that a step visits at most */

struct list {
    struct scanning scanning; /* first: see SCANNING_OPTIONS */
    struct call aside;        /* its reply collects the boards */
    uint64_t cursor;
};

static bool lb_list_read_cursor(const struct call *call, uint32_t index, void *target) {
    struct list *list = target;
    return call_parse_cursor(call, call_arg(call, index), &list->cursor);
}

static const struct option_row list_options[] = {
    SCANNING_OPTIONS,
    {"CURSOR", OPTION_READ, 0, lb_list_read_cursor},
    {0},
};

/* ---- boards ---- */

static void lb_list_visit(void *context, const struct registry_key *key) {
    struct list *list = context;
    const struct call *call = &list->aside;
    char text[LAYOUT_TEXT_MAX];
    if (key->kind != REGISTRY_BOARD || !scanning_takes(&list->scanning, registry_name(key))) {
        return;
    }
    layout_print(board_layout(&key->board), text);
    reply_map(call->reply, 4 + LB_OPTIONS);
    reply_bulk_text(call->reply, "name");
    reply_bulk(call->reply, registry_name(key));
    reply_named_text(call->reply, "layout", text);
    reply_named_integer(call->reply, "count", board_count(&key->board));
    lb_put_options(call, registry_rules(key));
    lb_put_archives(call, key);
    list->scanning.found_count++;
}

static void lb_list_run(struct call *call) {
    struct glob glob;
    struct list list = {.aside = *call};
    scanning_begin(&list.scanning, call, &glob);
    if (!options_read(call, 1, &list)) {
        return;
    }
    if (!acl_check_pattern(call, list.scanning.has_pattern ? list.scanning.pattern : BYTES("*"),
                           false, ACL_READ)) {
        return;
    }
    list.aside.reply = &list.scanning.found;
    uint64_t cursor =
        scanning_keys(&list.scanning, call, list.cursor, BOARDS_MAX, lb_list_visit, &list);
    scanning_end(&list.scanning, call, cursor);
}

const struct command command_lb_list = {
    .name = "LB.LIST",
    .syntax = "[MATCH pattern] [CURSOR cursor:integer] [COUNT count:integer]",
    .options = list_options,
    .summary = "Walk over the boards of the database in steps, each with its layout, options and "
               "archives",
    .complexity = "O(COUNT) for each call, of which it takes 50 at the most; O(n) for the whole "
                  "walk over n keys",
    .flags = COMMAND_READ,
    .run = lb_list_run,
};
