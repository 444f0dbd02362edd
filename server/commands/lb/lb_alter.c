/* LB.ALTER: changes the options of a living board.
 *
 *     LB.ALTER votes CAP 1000 CLOSES 2026-12-01T00:00:00Z
 *       the board's rules -> options -> its new rules -> members beyond CAP are cut
 *
 * The layout stays. A board that gets a PERIOD is in the present one at once; the START of its times
 * moves now if it is empty, otherwise with the next period. */
#include "server/clients/server.h"
#include "server/commands/lb/lb.h"
#include "server/commands/zset/zset.h"

enum { FIRST_WORD = 2 };

/* Do the times of a board with members, which stay where they are, last until its period ends? */
static bool lb_alter_check_window(const struct call *call, const struct rules *rules) {
    const struct layout *layout = &rules->layout;
    if (layout->time.bits == 0 || layout_time_last_us(layout) >= rules->period_end_ms * 1000 - 1) {
        return true;
    }
    return call_refuse(call, "ERR PERIOD is not possible: the board's TIME ends before the period "
                             "does, and its members have times: LB.ROLL it first");
}

/* false: the error was replied. */
static bool lb_alter_read_rules(const struct call *call, const struct registry_key *key,
                                struct rules *rules) {
    const struct request *request = call->request;
    const struct rules *before = registry_rules(key);
    char reason[SETTING_ERROR_MAX];
    rules_copy(before, rules);
    if (!settings_parse_options(&request->args[FIRST_WORD], request->count - FIRST_WORD, rules,
                                reason) ||
        !settings_check_rules(rules, reason)) {
        return call_refuse_format(call, "ERR %s", reason);
    }
    if (rules->period.unit == PERIOD_NONE || period_equal(&rules->period, &before->period)) {
        return true;
    }
    if (!lb_check_archives(call, call_arg(call, 1))) {
        return false;
    }
    if (board_count(&key->board) == 0) {
        rules_begin_period(rules, call->now_ms);
        return true;
    }
    rules_enter_period(rules, call->now_ms);
    return lb_alter_check_window(call, rules);
}

static void lb_alter_run(struct call *call) {
    struct rules rules;
    struct registry_key *key;
    if (!call_need_board(call, call_arg(call, 1), &key)) {
        return;
    }
    if (!lb_alter_read_rules(call, key, &rules)) {
        return;
    }
    if (rules_equal(&rules, registry_rules(key))) {
        reply_ok(call->reply);
        return;
    }
    key = registry_alter(call->registry, key, &rules);
    if (key == NULL) {
        call_out_of_memory(call);
        return;
    }
    uint32_t count = board_count(&key->board);
    if (rules.cap > 0 && count > rules.cap) {
        registry_remove_range(call->registry, key, rules.cap, count - rules.cap);
    }
    reply_ok(call->reply);
}

const struct command command_lb_alter = {
    .name = "LB.ALTER",
    .arity = -3,
    .syntax =
        "key size=[CAP cap | LIMIT limit] [KEEP <LAST | BEST>] state=[FREEZE | THAW] [OPENS time] "
        "[CLOSES time] [PERIOD unit=<HOUR | DAY | WEEK | MONTH | YEAR | NONE>] [EVERY "
        "units:integer] [ON weekday] [AT hour:integer] [FROM date] [TZ zone] [ARCHIVE "
        "periods] [ARCHIVED <FROZEN | WRITABLE>]",
    .summary = "Change the options of a board that exists; NONE takes one away",
    .complexity = "O(log n); the members' memory is freed in steps afterwards",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .run = lb_alter_run,
};
