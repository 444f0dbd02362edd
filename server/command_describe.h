/* One entry as clients are told of it: redis-cli completes and hints by this, and others find keys
 * and learn what reads and what writes. */
#ifndef SERVER_COMMAND_DESCRIBE_H
#define SERVER_COMMAND_DESCRIBE_H

#include "server/command.h"

/* Write the element of COMMAND INFO for the command of this number. */
void command_describe_info(struct reply *reply, uint32_t index);
/* Write its pair of COMMAND DOCS: the full name, and a map. */
void command_describe_docs(struct reply *reply, uint32_t index);
/* Is that command in this category ("sortedset", "fast", any case)? */
bool command_describe_is_in(uint32_t index, struct bytes category);

#endif
