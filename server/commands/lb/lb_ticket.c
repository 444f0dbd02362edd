/* LB.TICKET: a ticket for a run, which the result of the run comes with. See server/commands/ticketing.h. */
#include "server/commands/lb/lb.h"
#include "server/commands/ticketing.h"
#include "server/dispatch/syntax.h"

enum { ARG_BOARD = 1, ARG_MEMBER = 2, USUAL_S = 3600 };

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

static void lb_ticket_run(struct call *call) {
    struct lb_ticket asked = {.seconds = USUAL_S};
    struct registry_key *key;
    struct bytes board = call_arg(call, ARG_BOARD);
    char ticket[JWT_SIZE_MAX];
    if (!syntax_read(call, &asked) || !zset_check_member(call, call_arg(call, ARG_MEMBER)) ||
        !call_need_board(call, board, &key)) {
        return;
    }
    /* A league's rooms may ask for tickets; they are of the league. */
    const struct board_options *options = registry_options(key);
    if ((options->guards & (BOARD_TICKETS | BOARD_LEAGUE)) == 0) {
        (void)call_refuse_format(call,
                                 "ERR board '%.*s' takes no tickets: LB.ALTER ... TICKETS YES",
                                 bytes_shown_size(board, 64), board.at);
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
               "result comes with one, which counts once, and for an hour if FOR does not say how "
               "long",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST | COMMAND_OWN_MEMBER,
    .key_access = "RW access update",
    .member_arg = ARG_MEMBER,
    .run = lb_ticket_run,
};
