/* What a client receives without asking for it: messages to the subscribers of a channel, as
 * PUBLISH sends them, and for MONITOR every command that the server runs, in Redis's line format,
 * without secrets:
 *
 *     +1339518083.107412 [0 127.0.0.1:60866] "ZADD" "board" "1" "ann" */
#ifndef SERVER_CLIENTS_BROADCAST_H
#define SERVER_CLIENTS_BROADCAST_H

#include "protocol/resp.h"
#include "server/sessions/server.h"

/* Send a message to everyone who subscribes to the channel (kind SUBSCRIPTION_CHANNEL or _SHARD),
 * or to a pattern that matches it; if the channel tells of a board (board_events.h), to those of them who
 * may read the board. Returns the number of messages sent. */
uint64_t broadcast_publish(struct server *server, enum subscription_kind kind, struct bytes channel,
                           struct bytes message);

/* Which arguments of a request are replaced by "(redacted)". */
enum monitor_secrets {
    MONITOR_SECRETS_NONE,
    MONITOR_SECRETS_ALL,         /* AUTH: all but the command name */
    MONITOR_SECRETS_BEHIND_AUTH, /* HELLO: the two arguments after each AUTH option, as in Redis */
};

/* Send an executed request to every monitor. */
void broadcast_monitor(struct server *server, const struct session *session,
                       const struct request *request, enum monitor_secrets secrets);

#endif
