/* How far a Redis has been followed, in the keys themselves: a field of a hash in a database of the server's own.
 * It changes together with what was applied, in the same group, so after any restart it says what the boards are,
 * and the following goes on from there. Who changes the boards otherwise removes it. */
#ifndef SERVER_REDIS_POSITION_H
#define SERVER_REDIS_POSITION_H

#include "server/replication/state.h"
#include "skiplist/keyspace/registry.h"

struct redis_position {
    char id[REPLICATION_ID_SIZE + 1]; /* of the source's history */
    uint64_t offset;                  /* applied */
    uint64_t database;                /* that its commands are in */
    char host[REPLICATION_HOST_MAX + 1];
    uint16_t port;
};

/* false: there is none, or none that is valid. */
MUST_CHECK bool redis_position_read(struct registry *registry, struct redis_position *position);
/* false: no memory; what was there stays. */
MUST_CHECK bool redis_position_write(struct registry *registry,
                                     const struct redis_position *position);
void redis_position_remove(struct registry *registry);

#endif
