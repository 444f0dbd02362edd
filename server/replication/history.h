/* The history in the keys themselves: a hash in a database of the server's own.
 *
 *     id            the replication id of the last group
 *     second_id     the one before, "" if there was none
 *     second_until  the last group that belongs to that, too
 *
 * It is changed by effects, so it is in the journal, in snapshots and in the stream to replicas, and what
 * it says is true of the keys as they are, after any crash and any copy. A master writes it when it opens a
 * history: as the first effects behind the last group of the one before. */
#ifndef SERVER_HISTORY_H
#define SERVER_HISTORY_H

#include "server/replication/state.h"
#include "skiplist/keyspace/registry.h"

struct history {
    char id[REPLICATION_ID_SIZE + 1]; /* "": there is none */
    char second_id[REPLICATION_ID_SIZE + 1];
    uint64_t second_until;
};

#define HISTORY_NO_ID "0000000000000000000000000000000000000000"

/* What the keys say. false: nothing, or nothing valid. */
MUST_CHECK bool history_read(struct registry *registry, struct history *history);
/* The same, into the ids of the server. false: these stay. */
MUST_CHECK bool history_take(struct registry *registry, struct replication *replication);
/* Make them say so. false: no memory; try again. */
MUST_CHECK bool history_write(struct registry *registry, const struct history *history);
/* They say nothing any more, as changes have no numbers from here on. */
void history_remove(struct registry *registry);
/* 40 hex digits? */
MUST_CHECK bool history_is_id(struct bytes text);

#endif
