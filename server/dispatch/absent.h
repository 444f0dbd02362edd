/* The commands of Redis 7.0 that this server does not have, by what they are about, so that the error
 * behind an unknown command can say so. docs/differences-from-redis.md shows the same table. */
#ifndef SERVER_ABSENT_H
#define SERVER_ABSENT_H

#include "codec/bytes.h"

struct absent_group {
    const char *title;
    const char *names; /* upper case, a blank between them */
};

/* Ends with a row whose title is NULL. */
extern const struct absent_group absent_groups[];

/* The title of the group of this command, in any case. NULL: Redis does not have it, either. */
const char *absent_title(struct bytes name);
/* Is this the full name of a command or subcommand that Redis has and this server has not: "set",
 * "xinfo|stream", "client|tracking"? */
MUST_CHECK bool absent_is_known(struct bytes full_name);

#endif
