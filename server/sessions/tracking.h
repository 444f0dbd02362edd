/* CLIENT TRACKING: which client has read which key, so that it is told when the key changes and its own
 * copy is no longer right.
 *
 *     client 7   ZREVRANGE daily 0 99            "daily" --- client 7      remembered
 *     client 9   ZADD daily 5 ann                         >2 invalidate [daily] to client 7, forgotten
 *
 * By default a client is told once of each key that it has read; it reads again before it is told
 * again. So a change costs one look-up if nobody has read the key since the last one, whatever the
 * number of clients. With BCAST it is told of every change of keys that begin like one of its
 * prefixes, and nothing is remembered: the changes of a tick are noted and told together.
 *
 *     RESP3           >2 invalidate [key ...]                           to the client, or to REDIRECT
 *     RESP2           message __redis__:invalidate [key ...]            to REDIRECT, if it subscribes
 *     FLUSHALL        null in place of the keys: all that is cached is outdated
 *
 * The registry's one event for a changed key (server_life.c) comes here, as it comes to the watches.
 * Keys are names, as in Redis: those of the same name in two databases are one.
 *
 * What is remembered counts as the client's memory (maxmemory-clients), and tracking-table-max-keys
 * limits the keys, and TRACKING_READERS_MAX times as much the pairs of key and client: above it the
 * readers of another key are told as if it had changed. Invariant: whatever a client has read and was
 * not remembered, it was told of. */
#ifndef SERVER_CLIENTS_TRACKING_H
#define SERVER_CLIENTS_TRACKING_H

#include "server/sessions/server.h"

enum {
    TRACKING_PREFIXES_MAX = 256, /* of one client */
    TRACKING_READERS_MAX = 10,   /* on average, of tracking-table-max-keys keys */
};

/* What CLIENT TRACKING ON asks for. */
struct tracking_options {
    bool is_broadcast, is_opt_in, is_opt_out, is_no_loop;
    uint64_t redirect; /* 0: none */
    const struct bytes *prefixes;
    uint32_t prefix_count;
};

/* Must changes be told here? */
static inline bool tracking_is_on(const struct tracking *tracking) {
    return (tracking->client_count | tracking->keys.client_count) > 0;
}

void tracking_deinit(struct tracking *tracking);

/* Track from now on, or in another way; the options fit each other and the client. false: out of memory, nothing
 * changed. */
MUST_CHECK bool tracking_begin(struct server *server, struct session *session,
                               const struct tracking_options *options);
/* Be told no more. What was read stays remembered, as in Redis: it counts if tracking begins again. */
void tracking_end(struct server *server, struct session *session);
/* The same, and nothing stays: the client leaves, or is as new (RESET). */
void tracking_forget(struct server *server, struct session *session);

/* The client's command, which is now over, has read this key. It tracks, and not by BCAST. */
void tracking_remember(struct server *server, struct session *session, struct bytes name);
/* A key has changed, by a command of writer, or, if that is NULL, of nobody: by expiry, or at the end of a period. */
void tracking_touch(struct server *server, struct bytes name, const struct session *writer);
/* A database was flushed. */
static inline void tracking_touch_all(struct tracking *tracking) {
    tracking->owes_null = true;
}
/* The end of a tick: tell what is noted, and keep to tracking-table-max-keys, in steps. true: more is left to do. */
bool tracking_step(struct server *server);

/* Free up to work_max of what clients have left. false: nothing is left. */
static inline bool tracking_free_step(struct tracking *tracking, uint32_t work_max) {
    return subscription_free_step(&tracking->keys, work_max) ||
           subscription_free_step(&tracking->prefixes, work_max);
}

/* Distinct keys and prefixes, and pairs of key and client, with those that are yet to be freed. */
static inline uint32_t tracking_key_count(const struct tracking *tracking) {
    return tracking->keys.topics[SUBSCRIPTION_KEY].count;
}
static inline uint32_t tracking_item_count(const struct tracking *tracking) {
    return tracking->keys.pairs.count;
}
static inline uint32_t tracking_prefix_count(const struct tracking *tracking) {
    return tracking->prefixes.topics[SUBSCRIPTION_PREFIX].count;
}

MUST_CHECK bool tracking_validate(const struct server *server, const char **reason);

#endif
