/* WATCH: detects changes to a client's watched keys before its EXEC.
 *
 *     watched key  (0, "daily") --- watch --- watch        one watch for each client and key
 *                                     |         |
 *     watch list                   client 7  client 9      what one client watches
 *
 * A client that watches is a subscriber of keys (subscription.h). A change to a key makes the list
 * of every client that watches it stale. As in Redis, a stale list no longer watches anything. So a
 * change costs one step for each watch of that key, once. A change to an unwatched key costs one
 * look-up, or none if nothing is watched.
 *
 * Invariant: a stale list is empty. */
#ifndef SERVER_WATCH_H
#define SERVER_WATCH_H

#include "server/sessions/subscription.h"
#include "skiplist/keyspace/registry.h"

/* All watches of a server. Zero-initialised except keys.hash_seed. */
struct watches {
    struct subscriptions keys;
    struct watch_list *first; /* non-empty lists, unordered */
    uint32_t client_count;    /* length of that list */
    /* A list has become stale, which is the last that is done to it. NULL: nobody is told. */
    void (*on_stale)(struct watch_list *list);
};

/* What one client watches. Zero-initialised: nothing. */
struct watch_list {
    struct subscription_list keys;
    /* Bit n: a key of database n existed when it was watched. While the list is not stale that key
     * still exists, so flushing the database changes it. */
    uint16_t held_databases;
    bool is_stale;                 /* a watched key has changed */
    struct watch_list *next, **at; /* among the non-empty lists; at: what points to it */
};

/* A position in a list that watch_cut can roll back to. */
struct watch_mark {
    uint32_t count;
    uint16_t held_databases;
};

static inline uint32_t watch_count(const struct watch_list *list) {
    return list->keys.counts[SUBSCRIPTION_KEY];
}

/* Watch a key that exists (is_held) or not. No-op if the list already watches it. The list must not
 * be stale. false: out of memory; nothing changed. */
MUST_CHECK bool watch_add(struct watches *watches, struct watch_list *list, uint32_t database,
                          struct bytes name, bool is_held);
static inline struct watch_mark watch_mark(const struct watch_list *list) {
    return (struct watch_mark){.count = watch_count(list), .held_databases = list->held_databases};
}
/* Remove immediately all watches added since the mark. */
void watch_cut(struct watches *watches, struct watch_list *list, struct watch_mark mark);
/* Remove all watches and clear is_stale. */
void watch_clear(struct watches *watches, struct watch_list *list);

/* Free up to work_max watches of emptied lists. false: none are left. Each watch_add frees two as
 * well, so that they cannot pile up. */
static inline bool watch_free_step(struct watches *watches, uint32_t work_max) {
    return subscription_free_step(&watches->keys, work_max);
}
/* All lists must be clear. */
static inline void watch_deinit(struct watches *watches) {
    subscription_deinit(&watches->keys);
}

/* Number of distinct watched keys, with those whose watches are yet to be freed. */
static inline uint32_t watch_key_count(const struct watches *watches) {
    return watches->keys.topics[SUBSCRIPTION_KEY].count;
}

/* Report that a key has changed. */
void watch_touch(struct watches *watches, uint32_t database, struct bytes name);
/* Report that a database is flushed, which changes its watched keys that existed. Costs one step
 * per list, whatever the number of watched keys. */
void watch_touch_all(struct watches *watches, uint32_t database);
/* Make every list stale. */
void watch_outdate_all(struct watches *watches);
/* Expire the list's keys: have the registry remove those past their expiry, roll over those
 * whose period is over, and notify its listener. */
void watch_expire(const struct watch_list *list, struct registry *registry, int64_t now_ms);

/* reason: the first violated invariant. */
MUST_CHECK bool watch_validate(const struct watches *watches, const char **reason);

#endif
