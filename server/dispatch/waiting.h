/* Replies to clients that waited, for a key or for replicas (server/sessions/wait.h). */
#ifndef SERVER_WAITING_H
#define SERVER_WAITING_H

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

#endif
