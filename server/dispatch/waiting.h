/* Replies to clients that waited, for a key or for replicas (server/sessions/wait.h), and answers that wait for what they
 * show. */
#ifndef SERVER_WAITING_H
#define SERVER_WAITING_H

#include "server/dispatch/command.h"
#include "server/sessions/server.h"

/* After a command, or whatever else changes keys: serve who waits for a key that has members now, in
 * the order in which the keys changed, and of each key in order of arrival. So much is done as the
 * command has added members. */
void waiting_serve(struct server *server);
/* The same for boards whose OPENS has passed since. */
void waiting_serve_opened(struct server *server);
/* Replicas have acknowledged: reply to clients in WAIT whose number is reached. */
void waiting_serve_replicas(struct server *server);
/* The history has changed (replication_begin_epoch): some of those who have waited since before that get an
 * error, and are closed, as in Redis. true: more are left. */
bool waiting_disconnect(struct server *server, uint32_t clients_max);
/* Reply nil, or how many replicas have acknowledged, to some of those whose time is over. true: more are left. */
bool waiting_give_up(struct server *server, uint32_t clients_max);
/* CLIENT UNBLOCK: end a client's waiting, with nil or an error. false: it does not wait. */
bool waiting_unblock(struct server *server, struct session *session, bool is_error);

/* ---- answers that wait ----
 *
 * Which may leave, the same for every way in (RESP, HTTP). An answer depends on the last group that
 * it could show, and on the epoch in which it was made (replication_answer_epoch):
 *
 *     the epoch is another one now         it is never sent
 *     group <= waiting_free_group          at once
 *     group <= waiting_open_group          at the end of a tick
 *     else                                 it waits: for the disk (appendfsync), for replicas
 *                                          (sync-replicas), for the lease
 *
 * In all cases a change is in the sockets to the replicas before its answer leaves: it then outlives this
 * process. */

/* Can its reply depend on the boards? EXEC's always can: an aborted EXEC shows that a watched key
 * has changed. */
static inline bool waiting_sees_boards(const struct command *command) {
    return (command->flags & (COMMAND_LOADING | COMMAND_NO_BOARDS)) == 0 ||
           (command->flags & COMMAND_RUNS_QUEUE) != 0;
}
/* The session's client has changed something just now. */
void waiting_note_change(const struct server *server, struct session *session);
/* Do answers to readers wait, too? Without persistence nothing waits. */
bool waiting_holds_readers(const struct server *server);
/* What depends on no later group may leave at once, before the tick's end. What replicas are to be sent first
 * waits for the end (owes_release). With sync-replicas nothing may leave that shows the boards: the lease is
 * looked at when the commands have run. */
uint64_t waiting_free_group(struct server *server);
/* What depends on no later group may leave, when a tick's commands have run. */
uint64_t waiting_open_group(const struct server *server);

#endif
