/* Describes one entry to clients: redis-cli uses it for completion and hints, other clients to find
 * keys and to tell reads from writes. */
#ifndef SERVER_COMMAND_DESCRIBE_H
#define SERVER_COMMAND_DESCRIBE_H

#include "server/dispatch/command.h"

/* Write the COMMAND INFO element of this command. */
void command_describe_info(struct reply *reply, uint32_t index);
/* Write its COMMAND DOCS pair: the full name and a map. */
void command_describe_docs(struct reply *reply, uint32_t index);
/* Is the command in this category ("sortedset", "fast", case-insensitive)? */
bool command_describe_is_in(uint32_t index, struct bytes category);

#endif
