/* Redis servers with the module among the replicas: each gets an RDB file, then commands.
 *
 *     PSYNC --> WAITS --> COPIES --------------> COPIES, all is sent --its first REPLCONF ACK--> ONLINE
 *                         +FULLRESYNC ... RDB                                               commands
 *
 * The copy is made by a child process (server/system/process.h), so that it is exact, costs the loop nothing, and leaves no
 * memory behind:
 *
 *     NONE --replicas wait--> TAKES --all is in the pipe--> SENDS --the RDB has ended--> NONE
 *
 *     snapshot's thread --pipe--> leaderboard-server --export - - --format rdb --pipe--> loop --> replicas
 *
 * An RDB file needs each board's count, and no key twice, while a snapshot's pieces are corrected by the effects behind
 * them: somebody has to hold all keys as they are at its end.
 *
 * The child takes about as much memory as the keys while it works, and a file without a name in `dir`. The backlog keeps
 * the groups behind the copy, as for other copies. All who wait when a copy begins share it.
 *
 * One whose link breaks is remembered for repl-backlog-ttl. It goes on where it was (PSYNC id offset, +CONTINUE) if
 * its offset is between two groups, and the next one is still at hand; else it gets a new copy. Each has a stream and an id of
 * its own: which bytes are sent depends on where its copy ended. */
#ifndef SERVER_FEED_REDIS_H
#define SERVER_FEED_REDIS_H

#include "codec/buffer.h"
#include "server/durability/effect_bytes.h"
#include "server/durability/journal_file.h"
#include "server/durability/persistence.h"
#include "server/replication/state.h"
#include "server/system/process.h"

struct feed;
struct feed_copy;
struct feed_place;
struct reply;

/* ---- the commands ----
 *
 * Groups of effects as commands for a Redis with the module that follows this server: what its own master would
 * send it.
 *
 *     feed_redis_encode_add       whole messages with groups (wire.h)
 *     feed_redis_encode_step      some of them, as bytes of the stream
 *     feed_redis_encode_is_idle   then more may be added
 *
 *     changes of a board            LB.APPLY key blob          one for all that follow each other
 *     a board's name, or a copy     LB.APPLY key blob to ""
 *     bans and durable jobs         LB.APPLYSTATE blob
 *     any key                       UNLINK, PEXPIREAT, PERSIST, FLUSHDB
 *     a hash                        HSET, HDEL, RENAME, COPY
 *
 * A group, with those that it is linked to, is one MULTI ... EXEC, unless it is one command: so a Redis never shows a
 * part of what happened at once. SELECT comes where the database changes. History (replication.h) is left out. */

struct redis_encode {
    struct buffer *out; /* borrowed for a step */
    uint64_t offset;    /* bytes of the stream so far */
    uint64_t group;     /* the last one that is in them */
    uint32_t database;  /* that is selected; UINT32_MAX: none yet */
    /* Messages, from input_at on still to be encoded. */
    struct buffer input;
    size_t input_at;
    bool is_decoding; /* one of them */
    struct journal_group_head head;
    struct effect_decoder decoder;
    /* Of the groups that belong together: what is not in out yet. */
    struct buffer commands;
    uint64_t command_count;
    bool has_multi; /* MULTI is in out */
    /* The blob that is being filled. */
    enum { REDIS_ENCODE_NO_BLOB, REDIS_ENCODE_BOARD_BLOB, REDIS_ENCODE_STATE_BLOB } blob_kind;
    struct bytes blob_key; /* in the input */
    struct effect_encoder encoder;
    struct buffer blob;
};

void feed_redis_encode_init(struct redis_encode *encode);
void feed_redis_encode_deinit(struct redis_encode *encode);
/* Is everything encoded that was added? */
static inline bool feed_redis_encode_is_idle(const struct redis_encode *encode) {
    return encode->input_at == encode->input.size;
}
/* Is the stream between two transactions? */
static inline bool feed_redis_encode_is_between(const struct redis_encode *encode) {
    return !encode->has_multi && encode->command_count == 0 && !encode->is_decoding;
}
/* From idle. false: no memory; nothing was added. */
MUST_CHECK bool feed_redis_encode_add(struct redis_encode *encode, const char *at, size_t size);
/* Encode for about budget_ns, until out has size_max bytes more, or up to the end of a transaction. false: no memory, or
 * a group that was not written by this server; the stream is of no use then. */
MUST_CHECK bool feed_redis_encode_step(struct redis_encode *encode, struct buffer *out,
                                       size_t size_max, uint64_t budget_ns);

/* ---- one that follows ---- */

enum {
    FEED_REDIS_MARK_SIZE = 40, /* of the end of a copy */
    FEED_REDIS_MARKS_MAX = 4096,
    FEED_REDIS_LEFT_MAX = 8,
};

/* A place between two transactions of a stream. */
struct feed_redis_mark {
    uint64_t offset, group;
    uint32_t database; /* that is selected there */
};

/* One Redis: place->redis. */
struct feed_redis {
    struct redis_encode encode;
    bool has_head;   /* of the copy: $EOF:mark */
    bool awaits_ack; /* all of the copy is sent: its first acknowledgement begins the stream */
    bool is_copy_enough;
    uint64_t input_bytes; /* of its session, when it was last looked at */
    int64_t ping_at_ms;
    char id[REPLICATION_ID_SIZE + 1]; /* of its stream */
    struct feed_redis_mark acked;
    /* Behind that: a ring, oldest first. */
    struct feed_redis_mark marks[FEED_REDIS_MARKS_MAX];
    uint32_t mark_first, mark_count;
    /* Once it is gone. */
    struct feed_redis *next_left;
    int64_t left_at_ms;
};

/* The child's side of a copy (server/replication/feed.h). */
struct feed_redis_copy {
    struct child child;
    struct stream out; /* what the child writes */
    bool is_read;      /* all of it */
    char mark[FEED_REDIS_MARK_SIZE + 1];
    int64_t begin_ms;
    /* When the child had last done something, and how much it had worked then. */
    int64_t moved_at_ms;
    uint64_t child_time_ns;
    uint64_t size;
};

/* ---- feed_redis.c, for the feed (server/replication/feed.h) ---- */

/* Make the replica one. *group: the first that it needs, where it goes on; 0: it needs a copy. false: no memory. */
MUST_CHECK bool feed_redis_join(struct feed *feed, struct replica *replica,
                                const struct replication_wish *wish, uint64_t *group);
/* It is gone, and may come again. */
void feed_redis_leave(struct feed *feed, struct replica *replica);
/* Nobody who has left can go on where it was. */
void feed_redis_forget(struct feed *feed);
/* Forget whose time is over. */
void feed_redis_forget_old(struct feed *feed);
/* Answer PSYNC or SYNC. */
void feed_redis_answer(const struct replica *replica, bool is_old, bool is_continued,
                       struct reply *reply);
/* May groups be added to what is to be encoded? */
bool feed_redis_is_idle(const struct feed_place *place);
/* Encode what was added, in this tick's time. false: the replica was given up. */
bool feed_redis_encode(struct feed *feed, struct replica *replica, uint64_t budget_ns);
/* Once a second: keep the connection, and is it still there? */
void feed_redis_second(struct feed *feed, struct replica *replica);
/* Ask for an acknowledgement. */
void feed_redis_ask(struct replica *replica);

/* ---- what is special to a copy for Redis ---- */

/* Has all of the one before ended? */
bool feed_redis_copy_may_begin(const struct feed_redis_copy *copy);
/* The snapshot has begun: start the child. false: error (PERSISTENCE_ERROR_MAX) says why. */
MUST_CHECK bool feed_redis_copy_begin(struct feed *feed, struct feed_redis_copy *copy, char *error);
void feed_redis_copy_end(struct feed_redis_copy *copy);
/* As persistence_stream_read: what the child writes, into feed->piece. */
MUST_CHECK enum stream_status feed_redis_copy_read(struct feed *feed, struct feed_copy *copy,
                                                   size_t *size, char *error);
void feed_redis_copy_put_piece(const struct feed_redis_copy *copy, struct replica *replica,
                               const char *at, size_t size);
/* false: the copy was enough, and the connection ends. */
bool feed_redis_copy_put_end(struct feed *feed, const struct feed_copy *copy,
                             struct replica *replica);
/* A child that was killed has perhaps ended: also while the feed is closed. */
void feed_redis_copy_reap(struct feed_redis_copy *copy);
/* Asked once a second: has it neither worked nor waited for replicas, for repl-timeout? */
bool feed_redis_copy_is_stuck(const struct feed *feed, struct feed_copy *copy);

#endif
