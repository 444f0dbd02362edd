/* How far a Redis has been followed, and which keys it is asked for, as they are not at that offset (redis_stream.h). It
 * is in the keys themselves: a hash in a database of the server's own.
 *
 *     position        id, offset, database, host and port
 *     <database>key   a field for each key that the source is asked for
 *
 * It changes together with what was applied, in the same group, so after any restart it says what the boards are,
 * and the following goes on from there. Who changes the boards otherwise removes it. */
#ifndef SERVER_REDIS_POSITION_H
#define SERVER_REDIS_POSITION_H

#include "codec/buffer.h"
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

/* ---- keys that the source is asked for ---- */

struct redis_asked {
    struct redis_asked *next;
    enum { REDIS_ASKED_WAITS, REDIS_ASKED_SENT, REDIS_ASKED_ANSWERED } state;
    bool wants_value; /* false: its type first, as most likely it is none of ours */
    bool
        is_void; /* SENT: its database was emptied or swapped meanwhile, and it is asked for again */
    uint32_t database;
    uint64_t since; /* the offset before the first command that was not applied */
    uint64_t until; /* ANSWERED: what is here is the source's at this offset */
    uint32_t name_size;
    char name[];
};
static inline struct bytes redis_position_name(const struct redis_asked *asked) {
    return (struct bytes){.at = asked->name, .size = asked->name_size};
}

struct redis_asked_keys {
    struct registry *registry;        /* borrowed */
    struct redis_asked *first, *last; /* oldest first */
    uint32_t count;
    uint64_t total;      /* of all times */
    struct buffer field; /* private */
};
void redis_position_init_asked(struct redis_asked_keys *keys, struct registry *registry);
/* None any more; the fields stay. */
void redis_position_forget_asked(struct redis_asked_keys *keys);
/* Those of the fields, from before a restart, at this offset; none was there. false: no memory. */
MUST_CHECK bool redis_position_resume_asked(struct redis_asked_keys *keys, uint64_t since);
bool redis_position_is_asked(struct redis_asked_keys *keys, uint32_t database, struct bytes name);
/* One that is asked for already stays as it is. false: no memory. */
MUST_CHECK bool redis_position_ask(struct redis_asked_keys *keys, uint32_t database,
                                   struct bytes name, bool wants_value, uint64_t since);
/* All keys of a database change: what an answer of later has put there already changes, too. REGISTRY_DATABASES: all. */
void redis_position_ask_again(struct redis_asked_keys *keys, uint64_t database);
/* Two databases are swapped: what is not known in the one is not known in the other one, either. false: no memory. */
MUST_CHECK bool redis_position_swap_asked(struct redis_asked_keys *keys, uint32_t a, uint32_t b,
                                          uint64_t since);
/* Those whose answer the stream has reached are as any other key from now on. Returns the offset where the next ones are;
 * UINT64_MAX: there are none. */
uint64_t redis_position_end_asked(struct redis_asked_keys *keys, uint64_t offset);

#endif
