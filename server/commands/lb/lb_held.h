/* What is held, for LB.GET, and LB.APPROVE of one result, for the job of AUTO, too (server/commands/hold_job.c). */
#ifndef SERVER_COMMAND_LB_HELD_H
#define SERVER_COMMAND_LB_HELD_H

#include "server/dispatch/call.h"

/* Why the board takes no approvals now, as an error text; NULL: it does. An archive does until it is settled, and a board that
 * is closed. */
const char *lb_held_find_refusal(const struct registry_key *key);
/* Write what is held under an id, and hold it no more: both or neither. asked: the command of who needs the right to the
 * hash that HSET names; NULL: nobody. false: the error was replied. */
MUST_CHECK bool lb_held_approve(struct server *server, struct registry_key *key, uint64_t id,
                                const struct call *asked, struct reply *reply);

/* The list of what LB.GET with WITHHELD replies besides records: what is held of the player who asks, the newest first, if
 * it is among these members; else it is empty. */
void lb_held_put_own(const struct call *call, struct bytes board, const struct bytes *members,
                     uint32_t count);

/* Approves after the time of AUTO (server/sessions/board_job.h). */
extern const struct board_work hold_job;

#endif
