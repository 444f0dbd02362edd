/* ZSCAN: all members of a board, in steps. A member that stays on the board during the whole scan
 * is returned at least once, whatever else changes. */
#include "server/commands/scanning.h"
#include "server/commands/zset/zset.h"

struct zscan {
    struct scanning scanning; /* first: see SCANNING_OPTIONS */
    const struct board *board;
    int64_t now_us;
};

static bool zset_scan_refuse_novalues(const struct call *call, uint32_t index, void *target) {
    (void)index;
    (void)target;
    return call_refuse(call, "ERR NOVALUES option can only be used in HSCAN");
}

static const struct binding zscan_bindings[] = {
    SCANNING_OPTIONS,
    {"NOVALUES", .read = zset_scan_refuse_novalues},
    {0},
};

/* Scores are bulk strings here, in RESP3, too. */
static void zset_scan_visit(void *context, const struct board_stored *entry) {
    struct zscan *scan = context;
    struct scanning *scanning = &scan->scanning;
    char room[NAME_TEXT_ROOM];
    struct bytes member = name_text(entry->member, room);
    if (!scanning_takes(scanning, member)) {
        return;
    }
    const struct layout_field *lead = zset_lead(scan->board);
    uint64_t ordinal = layout_ordinal(board_layout(scan->board), entry->key, 0);
    char text[DECIMAL_TEXT_MAX];
    size_t size =
        decimal_print(text, layout_field_decimal_at(lead, ordinal, scan->now_us), lead->scale);
    reply_bulk(&scanning->found, member);
    reply_bulk(&scanning->found, (struct bytes){.at = text, .size = size});
    scanning->found_count += 2;
}

/* As many members as Redis keeps in a listpack by default, if they are short. */
enum { SMALL_COUNT = 128, SMALL_SIZE = 16384 };

/* A small board comes at once, in ZRANGE's order, as in Redis. false: it is not small. */
static bool zset_scan_visit_small(struct zscan *scan) {
    struct board_stored entries[SMALL_COUNT];
    struct board_cursor cursor;
    uint32_t count = board_count(scan->board);
    size_t size = 0;
    if (count > SMALL_COUNT) {
        return false;
    }
    board_cursor_seek(scan->board, 0, &cursor);
    for (uint32_t i = 0; i < count; i++) {
        bool is_read = board_cursor_read(&cursor, &entries[i]);
        CHECK(is_read);
        size += name_size(entries[i].member);
        board_cursor_next(&cursor);
    }
    bool is_best_first = zset_lead(scan->board)->is_ascending;
    for (uint32_t i = 0; i < count && size <= SMALL_SIZE; i++) {
        zset_scan_visit(scan, &entries[is_best_first ? i : count - 1 - i]);
    }
    return size <= SMALL_SIZE;
}

static void zscan_run(struct call *call) {
    struct glob glob;
    struct zscan scan;
    uint64_t cursor;
    scan.now_us = call->now_us;
    scanning_begin(&scan.scanning, call, &glob);
    if (!call_parse_cursor(call, call_arg(call, 2), &cursor) ||
        !call_find_board(call, call_arg(call, 1), &scan.board) ||
        (scan.board != NULL && !syntax_read(call, &scan))) {
        return;
    }
    struct scan_limits limits = scanning_limits(&scan.scanning);
    if (scan.board == NULL || (cursor == 0 && zset_scan_visit_small(&scan))) {
        cursor = 0;
    } else {
        cursor = board_scan(scan.board, cursor, &limits, zset_scan_visit, &scan);
    }
    scanning_end(&scan.scanning, call, cursor);
}

const struct command command_zscan = {
    .name = "ZSCAN",
    .syntax = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
    .hidden_syntax = "[NOVALUES]",
    .bindings = zscan_bindings,
    .reply = "[cursor:s members:[member:s score:s ...]]",
    .summary = "Walk over all members of a board in small steps, in no order; COUNT is a hint, and "
               "a board of up to 128 comes at once",
    .complexity = "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole board",
    .flags = COMMAND_READ,
    .run = zscan_run,
};
