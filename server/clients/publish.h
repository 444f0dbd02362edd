/* Messages to the subscribers of a channel, as PUBLISH sends them. */
#ifndef SERVER_PUBLISH_H
#define SERVER_PUBLISH_H

#include "server/clients/server.h"

/* Send a message to everyone who subscribes to the channel (kind SUBSCRIPTION_CHANNEL or _SHARD), or
 * to a pattern that matches it; if the channel tells of a board (follow.h), to those of them who may
 * read the board. Returns the number of messages sent. */
uint64_t publish(struct server *server, enum subscription_kind kind, struct bytes channel,
                 struct bytes message);

#endif
