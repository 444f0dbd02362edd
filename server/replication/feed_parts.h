/* Private to feed*.c:
 *
 *     feed.c          the backlog's life, closing replicas, the tick
 *     feed_sync.c     LB.SYNC: from where on a replica is served
 *     feed_stream.c   groups on their way to replicas
 *     feed_copy.c     full copies
 *     feed_redis.c    Redis servers: PSYNC, acknowledgements, pings
 *     feed_redis_copy.c   the process that makes their copies */
#ifndef SERVER_FEED_PARTS_H
#define SERVER_FEED_PARTS_H

#include "server/replication/feed.h"
#include "server/replication/hub.h"

enum { FEED_UNSENT_MAX = 512 * 1024 }; /* of a replica: more is not put into its output */

static inline struct feed_place *feed_place_of(const struct replica *replica) {
    return replica->feed;
}
static inline struct replication *feed_replication(const struct feed *feed) {
    return &feed->server->replication;
}
/* Its session is being closed. */
static inline bool feed_is_lost(const struct replica *replica) {
    return replica->is_failed || session_is_void(replica->session);
}
/* Bytes that its socket has not taken. */
static inline size_t feed_unsent(const struct replica *replica) {
    return replica->session->output.size + replica->session->handed_size;
}
/* How much a replica may leave unread in the backlog; 0: any. As in Redis it may leave what the
 * backlog keeps anyway. */
static inline uint64_t feed_lag_limit(const struct feed *feed) {
    const struct settings *settings = &feed->server->settings;
    uint64_t limit = settings->output_limits[SETTING_OUTPUT_REPLICA].hard_bytes;
    return limit > 0 && limit < settings->repl_backlog_size ? settings->repl_backlog_size : limit;
}

/* ---- feed.c ---- */

/* Close the replica's connection. */
void feed_give_up(struct feed *feed, struct replica *replica, const char *reason);

/* ---- feed_stream.c ---- */

bool feed_is_on_disk(const struct feed *feed, uint64_t group);
bool feed_is_in_backlog(const struct feed *feed, uint64_t group);
/* Close a replica that leaves more unread than memory may hold for it, unless the journal has that, too. */
void feed_bound_lag(struct feed *feed, struct replica *replica);
/* Can the groups from this one on be sent? */
bool feed_is_at_hand(const struct feed *feed, uint64_t group);
/* Where what it is sent goes, whatever its size: what is fed is bounded by FEED_UNSENT_MAX and one
 * message more. */
struct buffer *feed_output(struct replica *replica);
/* What replicas are to get in this tick. true: there is more to do at once. */
bool feed_stream(struct feed *feed);
/* Ask for an acknowledgement. */
void feed_ping(struct feed *feed, struct replica *replica);

/* ---- feed_copy.c ---- */

/* Begin this copy, if replicas wait for one, or go on with it. true: there is more to do at once. */
bool feed_step_copy(struct feed *feed, struct feed_copy *copy);
void feed_end_copy(struct feed *feed, struct feed_copy *copy);
/* Once a second: give up a copy whose child neither works nor waits for replicas, for repl-timeout:
 * while it goes on, no snapshot is saved. */
void feed_copy_second(struct feed *feed, struct feed_copy *copy);
/* Has it taken next to nothing (64 KiB) of its copy for repl-timeout? */
bool feed_copy_is_stuck(const struct feed *feed, struct replica *replica);
/* Asked once a second: have others that share its copy waited for it, for repl-timeout in all? */
bool feed_copy_is_held_up(const struct feed *feed, const struct replica *replica);
/* Is the replica receiving a copy of this kind? */
bool feed_takes_copy(const struct replica *replica, bool is_redis);
/* How many of this kind are in that state; of COPIES: that take a copy. */
uint32_t feed_count(const struct feed *feed, enum replica_state state, bool is_redis);
/* Has one of them left much of its copy in its output? */
bool feed_is_copy_slow(const struct feed *feed, bool is_redis);

/* ---- feed_redis.c ---- */

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

/* ---- feed_redis_copy.c: what is special to a copy for Redis ---- */

/* Has all of the one before ended? */
bool feed_redis_copy_may_begin(const struct feed_redis_copy *copy);
/* The snapshot has begun: start the child. false: error (PERSISTENCE_ERROR_MAX) says why. */
MUST_CHECK bool feed_redis_copy_begin(struct feed *feed, struct feed_redis_copy *copy, char *error);
void feed_redis_copy_end(struct feed_redis_copy *copy);
/* Has the child written all? */
static inline bool feed_redis_copy_is_read(const struct feed_copy *copy) {
    return copy->is_redis && copy->redis.is_read;
}
/* As persistence_read_stream: what the child writes, into feed->piece. */
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
