/* LB.REVOKE and LB.REVOKED: players whose tokens of before count no more (server/acl/player.h). */
#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/dispatch/syntax.h"

struct revoke {
    int64_t before_ms;
};

static bool lb_revoke_read_before(const struct call *call, uint32_t index, void *target) {
    struct revoke *revoke = target;
    return call_parse_integer(call, call_arg(call, index), &revoke->before_ms) &&
           (revoke->before_ms >= 0 ||
            call_refuse_word(call, call_arg(call, index), "is not a time", NULL));
}

static const struct binding lb_revoke_bindings[] = {
    {"BEFORE", .read = lb_revoke_read_before},
    {0},
};

static bool lb_revoke_check_player(const struct call *call, struct bytes player) {
    return (player.size > 0 && player.size <= JWT_CLAIM_MAX) ||
           call_refuse_format(call, "ERR a player's name has 1 to %d bytes", (int)JWT_CLAIM_MAX);
}

static void lb_revoke_run(struct call *call) {
    struct revoke revoke = {.before_ms = call->now_ms};
    struct bytes player = call_arg(call, 1);
    if (!acl_check_pattern(call, BYTES("*"), false, ACL_ALL) || !syntax_read(call, &revoke) ||
        !lb_revoke_check_player(call, player)) {
        return;
    }
    if (player_revoke(call->registry, player, revoke.before_ms, call->now_ms)) {
        reply_ok(call->reply);
    } else {
        call_out_of_memory(call);
    }
}

const struct command command_lb_revoke = {
    .name = "LB.REVOKE",
    .syntax = "player [BEFORE unix-time-milliseconds:unix-time]",
    .bindings = lb_revoke_bindings,
    .reply = "<OK>",
    .summary = "Let a player's tokens count no more that were made before now, or before another "
               "time; 0: all count again",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .audit = AUDIT_PLAYERS,
    .run = lb_revoke_run,
};

static void lb_revoked_run(struct call *call) {
    struct bytes player = call_arg(call, 1);
    if (!acl_check_pattern(call, BYTES("*"), false, ACL_READ) ||
        !lb_revoke_check_player(call, player)) {
        return;
    }
    int64_t before_ms = player_revoked_ms(call->registry, player, call->now_ms);
    if (before_ms > 0) {
        reply_integer(call->reply, before_ms);
    } else {
        reply_null(call->reply);
    }
}

const struct command command_lb_revoked = {
    .name = "LB.REVOKED",
    .syntax = "player",
    .reply = "d?",
    .summary = "The time before which a player's tokens were made that count no more, in unix "
               "milliseconds",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = lb_revoked_run,
};
