/* Which answers may leave, the same for every way in (RESP, HTTP). An answer depends on the last group that
 * it could show, and on the epoch in which it was made (replication_answer_epoch):
 *
 *     the epoch is another one now         it is never sent
 *     group <= commit_wait_free_group             at once
 *     group <= commit_wait_open_group             at the end of a tick
 *     else                                 it waits: for the disk (appendfsync), for replicas
 *                                          (sync-replicas), for the lease
 *
 * In all cases a change is in the sockets to the replicas before its answer leaves: it then outlives this
 * process. */
#ifndef SERVER_COMMIT_WAIT_H
#define SERVER_COMMIT_WAIT_H

#include "server/dispatch/command.h"
#include "server/sessions/server.h"

/* Can its reply depend on the boards? EXEC's always can: an aborted EXEC shows that a watched key
 * has changed. */
static inline bool commit_wait_sees_boards(const struct command *command) {
    return (command->flags & (COMMAND_LOADING | COMMAND_NO_BOARDS)) == 0 ||
           (command->flags & COMMAND_RUNS_QUEUE) != 0;
}
/* The session's client has changed something just now. */
void commit_wait_note_change(const struct server *server, struct session *session);
/* Do answers to readers wait, too? Without persistence nothing waits. */
bool commit_wait_holds_readers(const struct server *server);
/* What depends on no later group may leave at once, before the tick's end. What replicas are to be sent first
 * waits for the end (owes_release). With sync-replicas nothing may leave that shows the boards: the lease is
 * looked at when the commands have run. */
uint64_t commit_wait_free_group(struct server *server);
/* What depends on no later group may leave, when a tick's commands have run. */
uint64_t commit_wait_open_group(const struct server *server);

#endif
