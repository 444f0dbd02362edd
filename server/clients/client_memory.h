/* Memory accounting for all clients, and the largest clients by size class.
 *
 *     classes[20]   sessions that hold 2^20 to 2^21 - 1 bytes
 *     classes[19]   sessions that hold 2^19 to 2^20 - 1 bytes ...
 *
 * A session's size determines its class. An update takes constant time, and so does finding a
 * session of the largest class, whatever the number of sessions. */
#ifndef SERVER_CLIENT_MEMORY_H
#define SERVER_CLIENT_MEMORY_H

#include "server/clients/session.h"

enum { CLIENT_MEMORY_CLASSES = 64 };

/* Zero-initialised: no session is counted. */
struct client_memory {
    uint64_t total; /* bytes */
    struct session *classes[CLIENT_MEMORY_CLASSES];
    uint64_t filled; /* bit i: classes[i] is not empty */
};

/* Recount the session's memory. A session with is_no_evict is in no class. */
void client_memory_count(struct client_memory *memory, struct session *session);
/* Remove the session from the accounting. */
void client_memory_forget(struct client_memory *memory, struct session *session);
/* A session of the largest non-empty class. NULL: there is none. */
struct session *client_memory_largest(const struct client_memory *memory);

#endif
