/* ZSCAN: all members of a board, in steps. A member that stays on the board during the whole scan
 * is returned at least once, whatever else changes. */
#include "codec/glob.h"
#include "server/commands/zset/zset.h"
#include "server/dispatch/options.h"

enum { COUNT_DEFAULT = 10 };

struct zscan {
    const struct call *call;
    const struct board *board;
    struct glob *glob; /* room for the pattern */
    bool has_pattern;
    int64_t count;       /* approximate members per step */
    uint64_t text_count; /* members and scores written */
};

static bool check_count(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return ((struct zscan *)target)->count >= 1 || call_syntax_error(call);
}

/* MATCH */
static bool read_pattern(const struct call *call, uint32_t index, void *target) {
    struct zscan *scan = target;
    scan->has_pattern = true;
    return call_prepare_glob(call, call_arg(call, index), scan->glob);
}

static const struct option_row zscan_options[] = {
    {"MATCH", OPTION_READ, 0, read_pattern},
    {"COUNT", OPTION_INTEGER, offsetof(struct zscan, count), check_count},
    {0},
};

static bool read_options(const struct call *call, struct zscan *scan) {
    uint32_t index = 3;
    if (!options_read_to(call, &index, scan)) {
        return false;
    }
    if (index < call->request->count && call_arg_is(call, index, "NOVALUES")) {
        return call_refuse(call, "ERR NOVALUES option can only be used in HSCAN");
    }
    return index == call->request->count || call_syntax_error(call);
}

/* Scores are bulk strings here, in RESP3, too. */
static void visit(void *context, const struct board_entry *entry) {
    struct zscan *scan = context;
    if (scan->has_pattern && !glob_takes(scan->glob, entry->member)) {
        return;
    }
    const struct layout_field *lead = zset_lead(scan->board);
    uint64_t ordinal = layout_ordinal(board_layout(scan->board), entry->key, 0);
    char text[DECIMAL_TEXT_MAX];
    size_t size = decimal_print(text, layout_field_decimal(lead, ordinal), lead->scale);
    reply_bulk(scan->call->reply, entry->member);
    reply_bulk(scan->call->reply, (struct bytes){.at = text, .size = size});
    scan->text_count += 2;
}

static void reply_cursor(const struct call *call, uint64_t cursor) {
    char text[BYTES_INTEGER_TEXT_MAX];
    size_t size = bytes_print_u64(text, cursor);
    reply_bulk(call->reply, (struct bytes){.at = text, .size = size});
}

static void reply_nothing(const struct call *call) {
    reply_array(call->reply, 2);
    reply_cursor(call, 0);
    reply_array(call->reply, 0);
}

/* The next cursor precedes the members in the reply but is known only after them, so they are
 * buffered. */
static void reply_step(struct zscan *scan, uint64_t cursor) {
    struct reply *reply = scan->call->reply;
    struct buffer found;
    buffer_init(&found, 0);
    struct buffer *out = reply->out;
    reply->out = &found;
    struct scan_limits limits = {
        .count = scan->count < UINT32_MAX ? (uint32_t)scan->count : UINT32_MAX,
        .work_max = COMMAND_SCAN_WORK_MAX,
        .byte_work = scan->has_pattern ? glob_byte_work(scan->glob) : 0,
    };
    uint64_t next = board_scan(scan->board, cursor, &limits, visit, scan);
    reply->out = out;
    if (found.is_broken) {
        call_out_of_memory(scan->call);
    } else {
        reply_array(reply, 2);
        reply_cursor(scan->call, next);
        reply_array(reply, scan->text_count);
        if (!reply->is_silent && found.size > 0) {
            buffer_append(out, found.at, found.size);
        }
    }
    buffer_deinit(&found);
}

static void zscan_run(struct call *call) {
    uint64_t cursor;
    if (!call_parse_cursor(call, call_arg(call, 2), &cursor)) {
        return;
    }
    struct glob glob;
    struct zscan scan = {.call = call, .count = COUNT_DEFAULT, .glob = &glob};
    scan.board = call_find_board(call, call_arg(call, 1));
    if (scan.board == NULL) {
        reply_nothing(call);
        return;
    }
    if (!read_options(call, &scan)) {
        return;
    }
    reply_step(&scan, cursor);
}

const struct command command_zscan = {
    .name = "ZSCAN",
    .syntax = "key cursor:integer [MATCH pattern] [COUNT count:integer]",
    .options = zscan_options,
    .summary = "Walk over all members of a board in small steps, in no order; COUNT is a hint",
    .complexity = "O(COUNT) for a step, half a millisecond at the most; O(n) for the whole board",
    .group = "sorted-set",
    .flags = COMMAND_READ,
    .run = zscan_run,
};
