/* LB.ROLL: ends a period by hand. The board's members become an archive, and an empty board
 * replaces the board.
 *
 *     LB.ROLL season season:1 END 2027-06-30T23:59:59Z EX 31536000
 *       options -> the new board's window -> the board moves to the archive's key
 *
 * A board that was created by a write is then removed, as if its last member had been removed, and
 * the next write creates it again. With START or END it stays, as if created by LB.CREATE, because
 * its window is not stored anywhere else. */
#include "codec/timestamp.h"
#include "server/commands/lb/lb.h"
#include "server/commands/writing.h"
#include "server/dispatch/syntax.h"

enum { ARG_ARCHIVE = 2 };

struct lb_roll {
    bool has_window;
    bool is_end; /* END; else START */
    int64_t window_us;
    int64_t expire_at_ms; /* EX; REGISTRY_NO_EXPIRY: not given */
};

static const char *lb_roll_window_word(const struct lb_roll *roll) {
    return roll->is_end ? "END" : "START";
}

static bool lb_roll_read_window(const struct call *call, uint32_t index, void *target) {
    struct lb_roll *roll = target;
    struct bytes text = call_arg(call, index);
    if (roll->has_window) {
        return call_refuse_reason(call, "START or END may be given only once");
    }
    roll->has_window = true;
    roll->is_end = call_arg_is(call, index - 1, "END");
    if (timestamp_parse(text, &roll->window_us)) {
        return true;
    }
    return call_refuse_reason(
        call, "%s '%s' is not a time: use ISO 8601 with an offset, or unix milliseconds",
        lb_roll_window_word(roll), bytes_show(text).text);
}

static bool lb_roll_read_expiry(const struct call *call, uint32_t index, void *target) {
    return lb_parse_expiry(call, call_arg(call, index), &((struct lb_roll *)target)->expire_at_ms);
}

static const struct binding lb_roll_bindings[] = {
    {"START", .read = lb_roll_read_window},
    {"END", .read = lb_roll_read_window},
    {"EX", .repeat = BINDING_ONCE, .read = lb_roll_read_expiry},
    {0},
};

/* The options of the new board if it gets its own window. */
static bool lb_roll_move_window(const struct call *call, const struct board_options *options,
                                const struct lb_roll *roll, struct board_options *next) {
    const char *word = lb_roll_window_word(roll);
    if (options->layout.time.bits == 0) {
        return call_refuse_format(call, "ERR %s is not allowed: this layout has no TIME", word);
    }
    if (options->period.unit != PERIOD_NONE) {
        return call_refuse_format(call, "ERR %s is not allowed: PERIOD moves the times", word);
    }
    board_options_copy(options, next);
    next->is_created = true;
    if (!roll->is_end) {
        layout_set_start(&next->layout, roll->window_us);
        return true;
    }
    if (layout_set_end(&next->layout, roll->window_us) == LAYOUT_OK) {
        return true;
    }
    return call_refuse(call, "ERR END is too early: this layout's START would be out of range");
}

static void lb_roll_run(struct call *call) {
    struct lb_roll roll = {.expire_at_ms = REGISTRY_NO_EXPIRY};
    struct board_options next;
    struct bytes archive = call_arg(call, ARG_ARCHIVE);
    if (!syntax_read(call, &roll)) {
        return;
    }
    struct registry_key *key;
    if (!call_need_board(call, call_arg(call, 1), &key)) {
        return;
    }
    if (writing_refuses(call, registry_options(key), BOARD_WRITE_WHOLE) ||
        !lb_check_no_copy_is_due(call, key) || !call_check_key(call, archive) ||
        (roll.has_window && !lb_roll_move_window(call, registry_options(key), &roll, &next))) {
        return;
    }
    if (call_find_key(call, archive) != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    uint32_t count = board_count(&key->board);
    if (registry_roll(call->registry, key, archive, roll.has_window ? &next : NULL,
                      roll.expire_at_ms, call->now_ms) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    reply_integer(call->reply, count);
}

const struct command command_lb_roll = {
    .name = "LB.ROLL",
    .syntax = "key archive:key window=[START start | END end] [EX seconds:integer]",
    .bindings = lb_roll_bindings,
    .reply = "i",
    .summary =
        "Move a board's members to an archive, start over with an empty board, and count them",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW access delete|OW update",
    .cost = COST(COMMAND_BY_MEMORY, cost_count_whole, 0, 2, "member of the board", ""),
    .run = lb_roll_run,
};
