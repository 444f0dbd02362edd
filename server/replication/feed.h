/* What a server sends its replicas: the end of the machinery that masters have, and replicas that have
 * replicas of their own.
 *
 *     LB.SYNC id group --> the group is in the backlog              +CONTINUE, ONLINE
 *                          it is in the journal on disk              the same; read from there (feed_disk)
 *                          else                                      +FULL, WAITS --> COPIES --> ONLINE
 *
 *     persistence --tap--> backlog --at most UNSENT_MAX ahead--> session's output --> socket
 *     persistence --stream (a copy)-------------------------------^
 *
 * The backlog exists from the first LB.SYNC on, until no replica was there for repl-backlog-ttl. All
 * replicas that wait when a copy begins share it; the others wait for the next one. Nobody waits for a
 * replica: one that leaves more unread than client-output-buffer-limit replica allows, where the journal
 * does not have it either, is closed, and so is one that says nothing for repl-timeout, or takes nothing of
 * its copy, or keeps others waiting who share it, for repl-timeout in all. A Redis with the module may be a
 * replica, too: feed_redis.h.
 *
 * Groups leave with the tick that made them, one write a replica and tick, before the replies of that tick:
 * what was answered is in the replica's socket, where the end of this process does not reach it. */
#ifndef SERVER_FEED_H
#define SERVER_FEED_H

#include "codec/buffer.h"
#include "protocol/reply.h"
#include "server/migration/feed_redis.h"
#include "server/replication/quorum.h"
#include "server/replication/wire.h"
#include "server/sessions/server.h"
#include "server/system/worker.h"

/* ---- the backlog (backlog.c) ----
 *
 * The latest groups as messages (wire.h), in chunks of memory that all replicas read.
 *
 *     chunk            chunk                chunk (last)
 *     [ 71 | 72 ] ---> [ 73 | 74 | 75 ] ---> [ 76 |    ]
 *       ^ cursor of a slow replica             ^ cursor of another one
 *
 * It keeps at least its size (repl-backlog-size), and beyond that what a cursor has yet to read: whoever
 * owns the cursors bounds that. Group numbers follow each other without gaps; after a gap it begins
 * anew. */

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

/* ---- the journal, for replicas behind the backlog ----
 *
 * Groups for a replica that is behind the backlog are read from the journal's files by a thread, sealed as messages
 * (wire.h), for one replica at a time.
 *
 *     place --ask--> READS (thread) --feed_take_read--> place->ready --> session's output
 *
 * An open file stays readable when a rewrite of the journal removes it; the next one must then be there. Only what is
 * written is read: groups up to persistence_written_group. */

struct feed;

/* One replica's place in the files; zeroed but for fd: not there yet. */
struct feed_disk_place {
    int fd; /* -1: none is open */
    uint64_t file_id, offset;
    uint64_t next_group;
    struct buffer ready; /* messages, to be sent */
    size_t room;         /* of the window: more for a long group; 0: as usual */
};

enum feed_disk_result {
    FEED_DISK_READ, /* ready has more; next_group is behind it */
    FEED_DISK_END,  /* the file has no more: the next one, if there is one */
    FEED_DISK_NONE, /* there is no such group: the replica needs a copy */
    FEED_DISK_OUT_OF_MEMORY,
};

struct feed_disk {
    struct worker worker;
    bool is_started;
    struct feed_disk_place *place; /* whose job the thread does; NULL: nobody's any more */
    /* the thread's, during a job */
    struct feed_disk_place job;
    char path[512];
    uint64_t limit_group;
    struct buffer raw, out;
    size_t larger_size; /* a group that needs so much room; 0: none */
    enum feed_disk_result result;
    struct feed *feed;
};

enum feed_copy_state {
    FEED_COPY_NONE,
    FEED_COPY_TAKES, /* the snapshot is going on */
    FEED_COPY_SENDS, /* is_redis: it is over, and the process that makes an RDB file of it is not */
};

struct feed_copy {
    enum feed_copy_state state;
    bool is_redis;             /* for those that are a Redis: feed_redis.h */
    bool is_walked;            /* its group is known */
    uint64_t group;            /* the last one that it holds */
    struct backlog_cursor pin; /* behind that group; until it is walked, at the backlog's end */
    struct feed_redis_copy redis;
};

struct feed {
    struct server *server;
    struct quorum *quorum; /* NULL: sync-replicas 0 */
    uv_loop_t *loop;
    struct feed_disk disk;
    uint64_t disk_from; /* groups before this one could not be read from the journal */
    struct backlog backlog;
    bool is_open;
    bool owes_history;      /* the keys do not name the id yet: see feed_close_tick */
    bool wants_ping;        /* replicas are asked to acknowledge */
    bool has_gap;           /* the backlog has lost a group: all begin anew */
    int64_t deserted_at_ms; /* monotonic, since when no replica needs it; 0: one is there */
    int64_t ping_at_ms;
    struct feed_copy copy, redis_copy;
    struct feed_redis *left; /* whose links broke, the last one first */
    char piece[WIRE_PIECE_MAX];
};

/* One replica's place in the feed: replica->feed. */
struct feed_place {
    struct backlog_cursor cursor; /* chunk NULL: next_group is not there yet, or only on disk */
    struct feed_disk_place disk;
    uint64_t next_group;
    uint64_t online_from; /* COPIES: ONLINE once it has acknowledged this; 0: not known */
    bool is_streaming;    /* groups are sent */
    bool is_fed;          /* something was put into its output, which fed_size does not count yet */
    struct feed_redis *redis; /* owned; NULL: it is one of ours */
    /* While it receives a copy: what it had not taken when it last took some, and when that was. */
    size_t untaken_size;
    int64_t taken_at_ms;
    uint32_t holding_s; /* so long others that share the copy have waited for it */
};

/* It has no handle in the loop yet. */
struct feed *feed_create(struct server *server, uv_loop_t *loop);
/* Close handles; the loop turns once more before feed_destroy. */
void feed_stop(struct feed *feed);
void feed_destroy(struct feed *feed);

/* LB.SYNC: answer it, and make the session a replica. group: the first one that it wants. */
void feed_sync(struct feed *feed, struct replica *replica, const struct replication_wish *wish,
               struct reply *reply);
/* REPLCONF ACK of a Redis. */
void feed_take_bytes_ack(struct feed *feed, struct replica *replica, uint64_t offset);
/* The session is gone. */
void feed_leave(struct feed *feed, struct replica *replica);
/* Begin the backlog, if there is none. */
void feed_open(struct feed *feed);
/* Write the ids into the keys: what follows is of this history. A server that has only been started owes
 * that: it is done together with its first change, so that one that is made a replica before that has
 * nothing of its own, and goes on where it was. */
void feed_write_history(struct feed *feed);
/* Before the tick's group is complete: with the first change, what is owed is written. */
void feed_close_tick(struct feed *feed);
/* It becomes a replica: what was owed never was, unless this tick has changed something. */
void feed_forget_history(struct feed *feed);
/* What it has is of another history, or not all of this one: close it, and all replicas, which come
 * again. */
void feed_reset(struct feed *feed, const char *reason);
/* Close all replicas, which come again. */
void feed_drop_replicas(struct feed *feed, const char *reason);
/* At the end of a tick, when its group is complete. true: there is more to do at once. */
bool feed_step(struct feed *feed);
/* Once a second. is_kept: the backlog stays, also without replicas; repl-backlog-ttl begins when it is not any more. */
void feed_second(struct feed *feed, bool is_kept);

/* ---- for feed_redis.c ---- */

enum { FEED_UNSENT_MAX = 512 * 1024 }; /* of a replica: more is not put into its output */
static inline struct feed_place *feed_place_of(const struct replica *replica) {
    return replica->feed;
}
/* Bytes that its socket has not taken. */
static inline size_t feed_unsent(const struct replica *replica) {
    return replica->session->output.size + replica->session->handed_size;
}
/* Close the replica's connection. */
void feed_give_up(struct feed *feed, struct replica *replica, const char *reason);
/* Can the groups from this one on be sent? */
bool feed_is_at_hand(const struct feed *feed, uint64_t group);
/* Where what it is sent goes, whatever its size: what is fed is bounded by FEED_UNSENT_MAX and one
 * message more. */
struct buffer *feed_output(struct replica *replica);
/* Has one of them left much of its copy in its output? */
bool feed_is_copy_slow(const struct feed *feed, bool is_redis);

#endif
