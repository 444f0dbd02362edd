/* The backlog: the latest groups as messages (wire.h), in chunks of memory that all replicas read.
 *
 *     chunk            chunk                chunk (last)
 *     [ 71 | 72 ] ---> [ 73 | 74 | 75 ] ---> [ 76 |    ]
 *       ^ cursor of a slow replica             ^ cursor of another one
 *
 * It keeps at least its size (repl-backlog-size), and beyond that what a cursor has yet to read: whoever
 * owns the cursors bounds that. Group numbers follow each other without gaps; after a gap it begins
 * anew. */
#ifndef SERVER_BACKLOG_H
#define SERVER_BACKLOG_H

#include "server/replication/wire.h"

struct backlog_chunk {
    struct backlog_chunk *next;
    uint64_t first_group, last_group;
    uint64_t begin; /* of its bytes, among all that ever were in the backlog */
    size_t size, capacity;
    uint32_t cursor_count; /* cursors in it */
    char at[];
};

struct backlog {
    struct backlog_chunk *first, *last; /* NULL: it is empty */
    uint64_t next_group;                /* the one that may be added; 0: any */
    uint64_t end;                       /* bytes that ever were in it */
    uint64_t keep_size;                 /* repl-backlog-size */
    size_t memory_size;                 /* of all chunks */
};

/* A place before a group; zeroed: none. */
struct backlog_cursor {
    struct backlog_chunk *chunk;
    size_t offset;
};

void backlog_init(struct backlog *backlog, uint64_t keep_size);
/* Drop everything. No cursor may be set. */
void backlog_clear(struct backlog *backlog);
/* Add a group. false: no memory, and it is lost, or it does not follow the last one; clear it. */
MUST_CHECK bool backlog_add(struct backlog *backlog, const struct journal_group_head *head,
                            const char *payload);
/* Free what is not kept. */
void backlog_trim(struct backlog *backlog);

/* The first group in it; 0: it is empty. */
static inline uint64_t backlog_first_group(const struct backlog *backlog) {
    return backlog->first != NULL ? backlog->first->first_group : 0;
}
static inline uint64_t backlog_size(const struct backlog *backlog) {
    return backlog->first != NULL ? backlog->end - backlog->first->begin : 0;
}

/* Set a cursor before this group, which may be the one after the last. false: it is not here. */
MUST_CHECK bool backlog_seek(struct backlog *backlog, struct backlog_cursor *cursor,
                             uint64_t group);
/* The bytes behind the cursor, at most size_max unless a single message is longer: whole messages. Moves
 * it behind them. *last_group: of them. 0: there are none. */
size_t backlog_read(struct backlog *backlog, struct backlog_cursor *cursor, size_t size_max,
                    const char **at, uint64_t *last_group);
/* How many bytes are behind it. */
uint64_t backlog_unread(const struct backlog *backlog, const struct backlog_cursor *cursor);
void backlog_leave(struct backlog_cursor *cursor);

MUST_CHECK bool backlog_validate(const struct backlog *backlog, const char **reason);

#endif
