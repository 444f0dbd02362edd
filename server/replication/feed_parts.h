/* Private to feed*.c:
 *
 *     feed.c          the backlog's life, closing replicas, the tick
 *     feed_sync.c     LB.SYNC: from where on a replica is served
 *     feed_stream.c   groups on their way to replicas
 *     feed_copy.c     full copies */
#ifndef SERVER_FEED_PARTS_H
#define SERVER_FEED_PARTS_H

#include "server/replication/feed.h"

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
/* How much a replica may leave unread in the backlog; 0: any. */
static inline uint64_t feed_lag_limit(const struct feed *feed) {
    return feed->server->settings.output_limits[SETTING_OUTPUT_REPLICA].hard_bytes;
}

/* ---- feed.c ---- */

/* Close the replica's connection. */
void feed_give_up(struct feed *feed, struct replica *replica, const char *reason);

/* ---- feed_stream.c ---- */

bool feed_is_on_disk(const struct feed *feed, uint64_t group);
bool feed_is_in_backlog(const struct feed *feed, uint64_t group);
/* Can the groups from this one on be sent? */
bool feed_is_at_hand(const struct feed *feed, uint64_t group);
/* Where what it is sent goes. */
struct buffer *feed_output(struct feed *feed, struct replica *replica);
/* The thread that reads the journal has read for a place, or could not. */
void feed_take_read(void *context, struct feed_disk_place *files, enum feed_disk_result result);
/* What replicas are to get in this tick. true: there is more to do at once. */
bool feed_stream(struct feed *feed);
/* Ask for an acknowledgement. */
void feed_ping(struct feed *feed, struct replica *replica);

/* ---- feed_copy.c ---- */

/* Begin a full copy, if replicas wait for one, or go on with it. true: there is more to do at once. */
bool feed_step_copies(struct feed *feed);
void feed_end_copy(struct feed *feed);
/* Has it taken nothing of its copy for repl-timeout? */
bool feed_copy_is_stuck(const struct feed *feed, struct replica *replica);
/* Asked once a second: have others that share its copy waited for it, for repl-timeout in all? */
bool feed_copy_is_held_up(const struct feed *feed, const struct replica *replica);

#endif
