/* LB.BAN LB.UNBAN LB.BANS: members that are off the boards and may not return. LB.REVOKE and LB.REVOKED: players whose
 * tokens of before count no more (server/acl/player.h). */
#include "server/acl/acl_check.h"
#include "server/acl/player.h"
#include "server/commands/ban.h"
#include "server/commands/keyspace.h"
#include "server/commands/lb/board_task.h"

/* ---- LB.BAN: a ban, and a durable job that takes the member off the boards ---- */

static bool lb_ban_begin(const struct call *call, struct board_task *task) {
    struct bytes all = {.at = "*", .size = 1};
    int64_t until_ms = task->until_ms != 0 ? task->until_ms : BAN_FOREVER;
    if (task->is_shadow && call->server->shadows.run == NULL) {
        return call_refuse(call,
                           "ERR SHADOW is for players with tokens, and the module has no players");
    }
    if (task->is_shadow && !ban_shadow_fits(task->member)) {
        return call_refuse(call, "ERR the member's name is too long for SHADOW");
    }
    switch (ban_put(call->registry, call->session->database, task->member,
                    task->glob != NULL ? task->pattern : all, until_ms, task->is_shadow,
                    call->now_ms)) {
    case BAN_OK:
        return true;
    case BAN_NO_DATABASE:
        return call_refuse_format(call, "ERR bans are for databases 0 to %d", (int)BAN_NUMBER_MAX);
    case BAN_TOO_MANY:
        return call_refuse_format(call, "ERR member is banned with %d patterns already: LB.UNBAN",
                                  (int)BAN_PATTERNS_MAX);
    case BAN_OUT_OF_MEMORY:
        break;
    }
    return call_out_of_memory(call);
}

/* EX */
static bool lb_ban_read_expiry(const struct call *call, uint32_t index, void *target) {
    return lb_parse_expiry(call, call_arg(call, index), &((struct board_task *)target)->until_ms);
}

/* MATCH: an empty pattern would match no board. */
static bool lb_ban_read_match(const struct call *call, uint32_t index, void *target) {
    return (call_arg(call, index).size > 0 ||
            call_refuse_word(call, call_arg(call, index), "is not a pattern", NULL)) &&
           board_task_read_match(call, index, target);
}

/* The member is off the board for all others, or for all where the board can have no shadows. What counts is the ban that
 * holds now: LB.UNBAN, behind which results stay, or another ban may have come since. A ban whose time is over takes what
 * it has not come to yet, but hides nothing. */
static void lb_ban_act(struct server *server, struct board_task *task, struct registry_key *key) {
    int64_t now_ms = server->clock.now_ms;
    int64_t until_ms;
    enum ban_kind kind = ban_find(server->registry, key->database, registry_name(key), task->member,
                                  now_ms, &until_ms);
    bool is_over = task->until_ms != 0 && task->until_ms <= now_ms;
    if (kind == BAN_NONE && (task->is_shadow || !is_over)) {
        return;
    }
    if (kind != BAN_SHADOW || !ban_shadow_may_be(key)) {
        board_task_take(server, task, key);
        return;
    }
    switch (ban_shadow_hide(server->registry, &key, task->member)) {
    case SHADOW_KEPT:
        notify(server, SETTING_EVENT_ZSET, "zrem", key->database, registry_name(key));
        registry_tell_members(server->registry, key);
        break;
    case SHADOW_NONE:
        if (!ban_shadow_is_there(key, task->member)) {
            return; /* results of it are held */
        }
        break;
    case SHADOW_OUT_OF_MEMORY:
        task->has_missed = true;
        return;
    }
    task->done_count++;
}

static const struct binding lb_ban_bindings[] = {
    {BIND("SHADOW", struct board_task, is_shadow)},
    {"EX", .read = lb_ban_read_expiry},
    {BIND("MATCH", struct board_task, pattern), .repeat = BINDING_ONCE_NAMED,
     .read = lb_ban_read_match},
    {0},
};

const struct command command_lb_ban = {
    .name = "LB.BAN",
    .syntax = "member [SHADOW] [EX seconds:integer] [MATCH pattern]",
    .bindings = lb_ban_bindings,
    .reply = "i",
    .summary = "Take a member off the boards, and refuse it until the ban ends; SHADOW: only "
               "the member itself still sees its results; count the boards",
    .complexity = "O(n log m) for n boards of m members, in steps between other commands",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_NO_MULTI,
    .audit = AUDIT_PLAYERS,
    .run = board_task_run,
    .variant = &(const struct board_task_kind){.writes = true,
                                               .takes_shadows = true,
                                               .begin = lb_ban_begin,
                                               .act = lb_ban_act,
                                               .answer = board_task_answer_count},
};

/* ---- LB.UNBAN ---- */

static void lb_unban_run(struct call *call) {
    struct bytes member = call_arg(call, 1);
    if (!acl_check_pattern(call, BYTES("*"), false, ACL_ALL)) {
        return;
    }
    reply_integer(call->reply,
                  zset_is_member(member) &&
                      ban_lift(call->registry, call->session->database, member, call->now_ms));
}

const struct command command_lb_unban = {
    .name = "LB.UNBAN",
    .syntax = "member",
    .reply = "b",
    .summary = "Lift the bans of a member; 1 if there were any",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .audit = AUDIT_PLAYERS,
    .run = lb_unban_run,
};

/* ---- LB.BANS ---- */

struct bans {
    struct scanning scanning; /* first: see SCANNING_OPTIONS */
    const struct call *call;
    struct bytes cursor_text;
};

static const struct binding lb_bans_bindings[] = {
    SCANNING_OPTIONS,
    {BIND("CURSOR", struct bans, cursor_text)},
    {0},
};

/* [member, pattern, until | nil, 1 if SHADOW] of each pattern. */
static void lb_ban_visit(void *context, const struct registry_key *key) {
    struct bans *bans = context;
    struct reply *reply = &bans->scanning.found;
    struct bytes name = registry_name(key);
    struct bytes member = {.at = name.at + 1, .size = name.size - 1};
    if (key->kind != REGISTRY_HASH ||
        (uint8_t)name.at[0] != keyspace_number(bans->call->session->database) ||
        !scanning_takes(&bans->scanning, member)) {
        return;
    }
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    for (struct hash_pair pair; hash_next(&cursor, &pair);) {
        int64_t until_ms = ban_until(pair.value);
        if (until_ms <= bans->call->now_ms) {
            continue;
        }
        reply_array(reply, 4);
        reply_bulk(reply, member);
        reply_bulk(reply, pair.field);
        if (until_ms == BAN_FOREVER) {
            reply_null(reply);
        } else {
            reply_integer(reply, until_ms);
        }
        reply_integer(reply, ban_is_shadow(pair.value));
        bans->scanning.found_count++;
    }
}

static void lb_bans_run(struct call *call) {
    struct glob glob;
    struct bans bans = {.call = call, .cursor_text = {.at = "0", .size = 1}};
    uint64_t cursor;
    scanning_begin(&bans.scanning, call, &glob);
    if (!acl_check_pattern(call, BYTES("*"), false, ACL_READ) || !syntax_read(call, &bans) ||
        !call_parse_cursor(call, bans.cursor_text, &cursor)) {
        return;
    }
    const struct scan_limits limits = scanning_limits(&bans.scanning);
    cursor = registry_walk_scan(call->registry, BAN_DATABASE, cursor, &limits, call->now_ms,
                                lb_ban_visit, &bans);
    scanning_end(&bans.scanning, call, cursor);
}

const struct command command_lb_bans = {
    .name = "LB.BANS",
    .syntax = "[MATCH pattern] [CURSOR cursor:integer] [COUNT count:integer]",
    .bindings = lb_bans_bindings,
    .reply = "[cursor:s bans:[@Ban]]",
    .summary = "Walk over the banned members of the database in steps, each with the boards' "
               "pattern and the end of the ban",
    .complexity = "O(COUNT) for each call, half a millisecond at the most",
    .flags = COMMAND_READ,
    .run = lb_bans_run,
};

/* ---- LB.REVOKE and LB.REVOKED ---- */

struct revoke {
    int64_t before_ms;
};

static bool lb_ban_read_before(const struct call *call, uint32_t index, void *target) {
    struct revoke *revoke = target;
    return call_parse_integer(call, call_arg(call, index), &revoke->before_ms) &&
           (revoke->before_ms >= 0 ||
            call_refuse_word(call, call_arg(call, index), "is not a time", NULL));
}

static const struct binding lb_revoke_bindings[] = {
    {"BEFORE", .read = lb_ban_read_before},
    {0},
};

static bool lb_ban_check_player(const struct call *call, struct bytes player) {
    return (player.size > 0 && player.size <= JWT_CLAIM_MAX) ||
           call_refuse_format(call, "ERR a player's name has 1 to %d bytes", (int)JWT_CLAIM_MAX);
}

static void lb_revoke_run(struct call *call) {
    struct revoke revoke = {.before_ms = call->now_ms};
    struct bytes player = call_arg(call, 1);
    if (!acl_check_pattern(call, BYTES("*"), false, ACL_ALL) || !syntax_read(call, &revoke) ||
        !lb_ban_check_player(call, player)) {
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
    .summary = "Make a player's tokens invalid that were made before now, or before another "
               "time; 0: all are valid again",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .audit = AUDIT_PLAYERS,
    .run = lb_revoke_run,
};

static void lb_revoked_run(struct call *call) {
    struct bytes player = call_arg(call, 1);
    if (!acl_check_pattern(call, BYTES("*"), false, ACL_READ) ||
        !lb_ban_check_player(call, player)) {
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
    .summary = "The time, in unix milliseconds, before which a player's tokens are invalid",
    .flags = COMMAND_READ | COMMAND_FAST,
    .run = lb_revoked_run,
};
