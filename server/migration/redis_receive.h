/* What a Redis says to a replica behind the handshake, read from the socket's bytes and put into the spool:
 *
 *     +FULLRESYNC <id> <offset>   ASKS -> HEAD      + CONTINUE [<id>]   ASKS -> STREAM
 *     $<size>, or $EOF:<mark>     HEAD -> COPY
 *     the copy                    COPY -> STREAM, behind so many bytes, or the mark
 *     commands                    STREAM
 *
 * server/replication/master_link.c has the connection. */
#ifndef SERVER_REDIS_RECEIVE_H
#define SERVER_REDIS_RECEIVE_H

#include "server/migration/redis_spool.h"
#include "server/replication/state.h"

enum { REDIS_RECEIVE_MARK_SIZE = 40, REDIS_RECEIVE_OFFSET_SIZE = 24 };

struct redis_receive {
    struct redis_spool *spool; /* borrowed */
    enum { REDIS_RECEIVE_HEAD, REDIS_RECEIVE_COPY, REDIS_RECEIVE_STREAM } state;
    bool has_copy; /* it has come as a whole: what follows may go on from there */
    char id[REPLICATION_ID_SIZE + 1];   /* of the source's history; "": none yet */
    uint64_t begin_offset;              /* where the copy's commands begin */
    uint64_t received_offset;           /* the last byte of commands that has come */
    uint64_t copy_size, copy_read_size; /* copy_size 0: a mark ends it */
    char mark[REDIS_RECEIVE_MARK_SIZE + 1];
    uint64_t full_syncs, partial_syncs;
    bool is_restarted; /* a copy has begun: its reader is told, and takes this back */
};

/* id "": from the beginning. */
void redis_receive_init(struct redis_receive *receive, struct redis_spool *spool, const char *id,
                        uint64_t offset);
/* What PSYNC asks for: offset has REDIS_RECEIVE_OFFSET_SIZE bytes. Returns the id. */
const char *redis_receive_print_wish(const struct redis_receive *receive, char *offset);
/* The answer to PSYNC. false: it is none. */
MUST_CHECK bool redis_receive_take_answer(struct redis_receive *receive, struct bytes line);
/* Take bytes behind it, *used of them: what is left comes again. false: *error says why; the connection is of no use. */
MUST_CHECK bool redis_receive_take(struct redis_receive *receive, struct bytes bytes, size_t *used,
                                   const char **error);

#endif
