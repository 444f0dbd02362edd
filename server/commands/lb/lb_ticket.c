/* LB.TICKET: a ticket for a run, which the result of the run comes with. See server/commands/ticketing.h. */
#include <inttypes.h>

#include "server/commands/lb/lb.h"
#include "server/commands/ticketing.h"
#include "server/dispatch/syntax.h"
#include "skiplist/keyspace/league.h"

enum { ARG_BOARD = 1, ARG_MEMBER = 2, USUAL_S = 3600, MS_PER_S = 1000 };

struct lb_ticket {
    int64_t seconds;
};

static bool lb_ticket_read_for(const struct call *call, uint32_t index, void *target) {
    struct lb_ticket *ticket = target;
    return call_parse_integer(call, call_arg(call, index), &ticket->seconds) &&
           ((ticket->seconds >= 1 && ticket->seconds <= JWT_TICKET_MAX_S) ||
            call_refuse_reason(call, "FOR takes 1 to %d seconds", (int)JWT_TICKET_MAX_S));
}

static const struct binding lb_ticket_bindings[] = {
    {"FOR", .read = lb_ticket_read_for},
    {0},
};

/* MINTIME of the board, or of the rooms of a league, which may have been renamed to what none can be called. 0: none. */
static int64_t lb_ticket_least_s(const struct call *call, struct bytes name,
                                 const struct registry_key *key) {
    struct league_names names;
    if ((registry_options(key)->guards & BOARD_LEAGUE) != 0 && league_is_name(name)) {
        league_names_init(&names, name);
        key = registry_find(call->registry, call->session->database, league_template(&names),
                            call->now_ms);
    }
    bool has_limits =
        key != NULL && key->kind == REGISTRY_BOARD && registry_options(key)->has_limits;
    return has_limits ? registry_options(key)->limits.time_ms[LIMIT_MINTIME] / MS_PER_S : 0;
}

static void lb_ticket_run(struct call *call) {
    struct lb_ticket asked = {.seconds = 0};
    struct registry_key *key;
    struct bytes board = call_arg(call, ARG_BOARD);
    char ticket[JWT_SIZE_MAX];
    if (!syntax_read(call, &asked) || !zset_check_member(call, call_arg(call, ARG_MEMBER)) ||
        !call_need_board(call, board, &key)) {
        return;
    }
    /* A league's rooms may ask for tickets; they are of the league. */
    if (call->session->player != NULL && writing_names_room(call, board)) {
        (void)call_refuse_format(call,
                                 "NOPERM tickets for rooms are of their league: not of '%.*s'",
                                 bytes_shown_size(board, 64), board.at);
        return;
    }
    const struct board_options *options = registry_options(key);
    if ((options->guards & (BOARD_TICKETS | BOARD_LEAGUE)) == 0) {
        (void)call_refuse_format(call,
                                 "ERR board '%.*s' takes no tickets: LB.ALTER ... TICKETS YES",
                                 bytes_shown_size(board, 64), board.at);
        return;
    }
    int64_t least_s = lb_ticket_least_s(call, board, key);
    if (asked.seconds == 0) {
        asked.seconds = least_s < JWT_TICKET_MAX_S - USUAL_S ? least_s + USUAL_S : JWT_TICKET_MAX_S;
    }
    if (asked.seconds <= least_s) {
        (void)call_refuse_format(call,
                                 "ERR FOR must be more than the board's MINTIME, which is %" PRId64
                                 " s: the ticket would be over before a result can count",
                                 least_s);
        return;
    }
    size_t size = ticketing_make(call, board, call_arg(call, ARG_MEMBER), asked.seconds, ticket);
    if (size > 0) {
        reply_bulk(call->reply, (struct bytes){.at = ticket, .size = size});
    }
}

const struct command command_lb_ticket = {
    .name = "LB.TICKET",
    .syntax = "key member [FOR seconds:integer]",
    .bindings = lb_ticket_bindings,
    .reply = "s",
    .summary = "A ticket for a run of a member that begins now: on a board with TICKETS a player's "
               "result comes with one, which counts once, and for an hour and MINTIME if FOR does "
               "not say how long",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = ARG_MEMBER,
    .run = lb_ticket_run,
};
