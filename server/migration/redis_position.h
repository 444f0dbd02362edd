/* How far a Redis has been followed, in the keys themselves: a hash in a database of the server's own.
 *
 *     position        id, offset, database, host and port
 *     <database>key   a field for each key that the source is asked for (redis_apply.h): it is not at that offset
 *
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
/* false: no memory; the one that was there is gone, as it would be wrong. */
MUST_CHECK bool redis_position_write(struct registry *registry,
                                     const struct redis_position *position);
/* With the keys that are asked for. */
void redis_position_remove(struct registry *registry);

/* field: the number of the key's database as one byte, and its name. false: no memory. */
MUST_CHECK bool redis_position_ask(struct registry *registry, struct bytes field);
void redis_position_answer(struct registry *registry, struct bytes field);
bool redis_position_is_asked(struct registry *registry, struct bytes field);
/* All of them: begin, then the next one, until there is none. Nothing may be asked or answered meanwhile. */
struct hash_cursor redis_position_begin_asked(struct registry *registry);
MUST_CHECK bool redis_position_next_asked(struct hash_cursor *cursor, struct bytes *field);

#endif
