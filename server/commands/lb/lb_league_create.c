/* LB.LEAGUE CREATE: the league's board, and the template of its rooms.
 *
 *     LB.LEAGUE CREATE weekly FIELD points 22 TIME 31 S PERIOD WEEK ROOM 30 TIERS 10 UP 5 DOWN 5
 *       the league's words, the options of boards -> weekly, {weekly}:rooms */
#include "server/commands/lb/lb.h"
#include "server/commands/lb/lb_league.h"

/* Can rooms have these options, and be so large? */
static bool lb_league_create_check(const struct call *call, const struct board_league *league,
                                   const struct board_options *rooms) {
    if (rooms->period.unit == PERIOD_NONE) {
        return call_refuse_reason(call, "PERIOD expected after '%s': a league needs one",
                                  bytes_show(call_arg(call, call->request->count - 1)).text);
    }
    const char *refusal = lb_league_refusal(call, rooms);
    if (refusal != NULL) {
        return call_refuse_format(call, "ERR %s", refusal);
    }
    return (league->up <= league->room && league->down <= league->room) ||
           call_refuse(call, "ERR UP and DOWN are at most ROOM");
}

static bool lb_league_create_read(const struct call *call, struct board_league *league,
                                  struct board_options *rooms) {
    enum { NOT_GIVEN = UINT16_MAX }; /* more than LEAGUE_ROOM_MAX */
    char reason[SETTING_ERROR_MAX];
    uint32_t next = LB_LEAGUE_KEY + 1;
    if (!lb_create_read_begin(call, call_arg(call, LB_LEAGUE_KEY), &next, rooms)) {
        return false;
    }
    rooms->league = (struct board_league){.up = NOT_GIVEN, .down = NOT_GIVEN};
    bool is_read = setting_options_parse(SETTING_TAKES_LEAGUE, &call->request->args[next],
                                         call->request->count - next, rooms, NULL, reason);
    *league = rooms->league;
    rooms->league = (struct board_league){.room = 0};
    rooms->guards = board_options_guards(rooms);
    if (is_read && (league->room == 0 || league->tiers == 0 || league->up == NOT_GIVEN ||
                    league->down == NOT_GIVEN)) {
        return call_refuse_reason(call, "a league needs ROOM, TIERS, UP and DOWN");
    }
    if (!is_read) {
        return call_refuse_reason(call, "%s", reason);
    }
    if (!setting_options_check(rooms, reason)) {
        return call_refuse_format(call, "ERR %s", reason);
    }
    return lb_league_create_check(call, league, rooms);
}

/* A name that is free for a board with these options. NULL: the error was replied. */
static struct registry_key *lb_league_create_board(const struct call *call, struct bytes name,
                                                   const struct board_options *options) {
    bool is_new;
    struct registry_key *key = registry_find_or_create_like(
        call->registry, call->session->database, name, options, NULL, call->now_ms, &is_new);
    if (key == NULL) {
        (void)call_out_of_memory(call);
    }
    return key;
}

static void lb_league_create_boards(const struct call *call, const struct board_league *league,
                                    const struct board_options *rooms, struct league_names *names) {
    struct bytes name = call_arg(call, LB_LEAGUE_KEY);
    struct bytes template = league_template(names);
    struct board_options options = {
        .is_created = true,
        .guards = BOARD_LEAGUE,
        .league = *league,
    };
    league_init_layout(&options.layout);
    struct registry_key *key = call_find_key(call, name);
    struct registry_key *other;
    if (key != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists.");
        return;
    }
    if (!lb_league_find_key(call, template, &other)) {
        return;
    }
    if (other != NULL) {
        reply_error(call->reply, "BUSYKEY Target key name already exists: the one of the rooms, "
                                 "which ends in ':rooms'");
        return;
    }
    key = lb_league_create_board(call, name, &options);
    if (key == NULL) {
        return;
    }
    if (lb_league_create_board(call, template, rooms) == NULL) {
        registry_remove(call->registry, key);
        return;
    }
    reply_ok(call->reply);
}

static void lb_league_create_run(struct call *call) {
    struct board_options rooms;
    struct board_league league;
    struct bytes name = call_arg(call, LB_LEAGUE_KEY);
    if (!call_check_key(call, name)) {
        return;
    }
    if (!league_is_name(name)) {
        reply_error_format(call->reply,
                           "ERR a league's key has at most %d bytes, and braces only around a tag "
                           "that it shares with its rooms: {eu}:weekly",
                           (int)REGISTRY_KEY_MAX - LEAGUE_SUFFIX_MAX);
        return;
    }
    struct league_names names;
    league_names_init(&names, name);
    if (lb_league_check_access(call, &names) && lb_league_create_read(call, &league, &rooms)) {
        lb_league_create_boards(call, &league, &rooms, &names);
    }
}

const struct command lb_league_create = {
    .name = "CREATE",
    .syntax = "key " LB_LAYOUT_SYNTAX(
        "") "[KEEP <LAST | BEST>] [SETTLE <YES | NO>] [PERIOD unit=<" BOARD_OPTION_PERIODS
            ">] " BOARD_OPTION_WHEN
            "(ROOM members:integer) (TIERS tiers:integer) (UP members:integer) "
            "(DOWN members:integer) [IDLE <STAY | DOWN>] " BOARD_OPTION_ARCHIVES,
    .reply = "<OK>",
    .summary = "Make a league, and the empty board whose layout and options its rooms have",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .run = lb_league_create_run,
};
