/* WATCH: detects changes to a client's watched keys before its EXEC.
 *
 *     watched key  (0, "daily") --- watch --- watch        one watch for each client and key
 *                                     |         |
 *     watch list                   client 7  client 9      what one client watches
 *
 * A change to a key makes the list of every client that watches it stale. As in Redis, a stale list
 * no longer watches anything. So a change costs one step for each watch of that key, once. A change
 * to an unwatched key costs one look-up, or none if nothing is watched. A list that drops its
 * watches detaches them; some are freed at once, the others by watch_free_step.
 *
 * Invariants: a stale list is empty; a watched key has at least one watch, possibly a detached
 * one. */
#ifndef SERVER_WATCH_H
#define SERVER_WATCH_H

#include "codec/bytes.h"
#include "server/clients/link_table.h"
#include "skiplist/keyspace/registry.h"

struct watcher;

/* All watches of a server. Zero-initialised except hash_seed. */
struct watches {
    struct link_table keys;  /* by database and name */
    struct link_table pairs; /* watches, by client and key: a client watches a key at most once */
    uint64_t hash_seed;
    struct watch_list *first; /* non-empty lists, unordered */
    uint32_t client_count;    /* length of that list */
    struct watcher *left;     /* detached watchers whose watches are yet to be freed */
};

/* What one client watches. Zero-initialised: nothing. */
struct watch_list {
    struct watcher *watcher; /* owns the watches; NULL: none */
    uint32_t count;
    /* Bit n: a key of database n existed when it was watched. While the list is not stale that key
     * still exists, so flushing the database changes it. */
    uint16_t held_databases;
    bool is_stale;                 /* a watched key has changed */
    size_t memory_size;            /* approximate memory of its watches */
    struct watch_list *next, **at; /* among the non-empty lists; at: what points to it */
};

/* A position in a list that watch_cut can roll back to. */
struct watch_mark {
    uint32_t count;
    uint16_t held_databases;
};

/* All lists must be clear. */
void watch_deinit(struct watches *watches);

/* Watch a key that exists (is_held) or not. No-op if the list already watches it. The list must not
 * be stale. false: out of memory; nothing changed. */
MUST_CHECK bool watch_add(struct watches *watches, struct watch_list *list, uint32_t database,
                          struct bytes name, bool is_held);
static inline struct watch_mark watch_mark(const struct watch_list *list) {
    return (struct watch_mark){.count = list->count, .held_databases = list->held_databases};
}
/* Remove immediately all watches added since the mark. */
void watch_cut(struct watches *watches, struct watch_list *list, struct watch_mark mark);
/* Remove all watches and clear is_stale. */
void watch_clear(struct watches *watches, struct watch_list *list);

/* Free up to work_max detached watches, the last detached first. Returns false when none are left.
 * Each watch_add frees two as well, so that they cannot pile up. */
bool watch_free_step(struct watches *watches, uint32_t work_max);

/* Number of distinct watched keys. */
uint32_t watch_key_count(const struct watches *watches);

/* Report that a key has changed. */
void watch_touch(struct watches *watches, uint32_t database, struct bytes name);
/* Report that a database is flushed, which changes its watched keys that existed. Costs one step
 * per list, whatever the number of watched keys. */
void watch_touch_all(struct watches *watches, uint32_t database);
/* Expire the list's keys: have the registry remove those past their expiry, roll over those
 * whose period is over, and notify its listener. */
void watch_expire(const struct watch_list *list, struct registry *registry, int64_t now_ms);

/* Check both tables against the watches. reason: the first violated invariant. */
MUST_CHECK bool watch_validate(const struct watches *watches, const char **reason);

#endif
