/* Tickets: a result of a player on a board with TICKETS YES needs one that was made when the run began.
 *
 *     LB.TICKET runner ann                  ->  a ticket: a token (server/system/jwt.h) of player, board, start and end
 *     LB.ADD runner TICKET <ticket> 700 ann
 *
 *     ticketing_check     before anything changes: is there a right one for each board?
 *     memory for ticketing_growth_size
 *     ticketing_put       with the results; cannot fail
 *     ticketing_end       always
 *
 * Nothing is kept of a ticket until it counts. Each has an id that grows: the time at which it was made. What is kept, of
 * each player and board, is the highest id that counts no more:
 *
 *     REGISTRY_TICKETS   a database of the server's own
 *       "key"            a hash: the secret by which tickets of this server are signed, made with the first one
 *       "19654"          a hash for each stretch of 25 hours: half of the SHA-256 of database, board and player -> the
 *                        id. It goes when no ticket of its time can count any more. All of them have at most once-max
 *
 * With a result all tickets that were made before it count no more: a player plays one run at a time, so that MINTIME
 * bounds how many there can be. Tickets that others have signed (player-key) have their start as id. Their clock is not
 * ours: one that counts ends those that began before it, and those that began more than a minute (JWT_SKEW_S) ago. */
#ifndef SERVER_TICKETING_H
#define SERVER_TICKETING_H

#include "server/commands/writing.h"

enum {
    TICKETING_MAX = 8, /* of a command */
    TICKETING_MARK_SIZE = 16,
};

/* Those of a command: what is to be kept of them. */
struct ticketing {
    struct registry_key *key; /* of the running stretch; NULL: nothing is to be kept */
    bool is_new;
    uint32_t count;
    struct ticketing_mark {
        char name[TICKETING_MARK_SIZE];
        uint64_t id;
    } marks[TICKETING_MAX];
};

/* A board of the command. */
struct ticketing_board {
    const struct writing *writing;
    struct bytes name; /* as the ticket has it */
};

static inline bool ticketing_has(const struct writing *writing) {
    return (writing_shown_options(writing)->guards & BOARD_TICKETS) != 0;
}
/* Does a result on it need a ticket, or has it one that is to be looked at? */
static inline bool ticketing_applies(const struct writing *writing, bool has_ticket) {
    return __builtin_expect(ticketing_has(writing), 0) &&
           (has_ticket || writing->call->session->player != NULL);
}
/* Of a command that takes no tickets: is it a player's, on a board that wants them? Then the error was replied. */
bool ticketing_explain(const struct writing *writing);
MUST_CHECK static inline bool ticketing_refuses(const struct writing *writing) {
    return ticketing_applies(writing, false) && ticketing_explain(writing);
}

/* Are these tickets right for a result of the member on these boards, each of which ticketing_applies to? *failed: the
 * board that refuses; count: it is none. false: the error was replied, and the refusal is counted. */
MUST_CHECK bool ticketing_check(const struct call *call, const struct bytes *tickets,
                                uint32_t ticket_count, const struct ticketing_board *boards,
                                uint32_t count, struct bytes member, struct ticketing *ticketing,
                                uint32_t *failed);
/* What ticketing_put may take. */
size_t ticketing_growth_size(const struct ticketing *ticketing);
/* They are used up. There is memory for it. */
void ticketing_put(const struct call *call, struct ticketing *ticketing);
void ticketing_end(const struct call *call, struct ticketing *ticketing);

#endif
