/* WATCH: clients that are to know whether a key changes before their EXEC.
 *
 *     watched key  (0, "daily") --- watch --- watch        one watch for each client and key
 *                                     |         |
 *     watch list                   client 7  client 9      what one client watches
 *
 * A change makes the lists of all clients that watch the key stale, and as in Redis they watch
 * nothing any more then. So a change costs a step for each watch of that key, once, and a change of
 * a key that nobody watches one look-up, or none where nothing is watched. A list that lets go of
 * many watches leaves them behind, and watch_free_step ends them.
 *
 * Invariants: a list that is stale is empty; a watched key has a watch, if one left behind. */
#ifndef SERVER_WATCH_H
#define SERVER_WATCH_H

#include "codec/bytes.h"
#include "skiplist/registry.h"

struct watch_link;
struct watcher;

/* A hash table of links. It has as many slots as entries, one more with each entry and one less
 * with each removal, so that nobody pays for a whole rehash. */
struct watch_table {
    struct watch_link **slots;
    uint32_t count, capacity;
};

/* What is watched on a server. Zeroed but for hash_seed. */
struct watches {
    struct watch_table keys[REGISTRY_DATABASES]; /* by name */
    struct watch_table pairs; /* watches, by client and key: nobody watches a key twice */
    uint64_t hash_seed;
    uint32_t client_count; /* lists that are not empty */
    struct watcher *left;  /* those whose lists have let go of them */
};

/* What one client watches. Zeroed: nothing. */
struct watch_list {
    struct watcher *watcher; /* holds its watches; NULL: there are none */
    uint32_t count;
    bool is_stale;                 /* something that was watched has changed */
    size_t memory_size;            /* about what its watches take */
    struct watch_list *next_stale; /* while a change is told */
};

/* All lists are clear. */
void watch_deinit(struct watches *watches);

/* Watch a key, which need not exist; nothing happens if the list does already. The list is not
 * stale. false: no memory, and nothing changed. */
MUST_CHECK bool watch_add(struct watches *watches, struct watch_list *list, uint32_t database,
                          struct bytes name);
/* End the newest watches at once, until count are left. */
void watch_cut(struct watches *watches, struct watch_list *list, uint32_t count);
/* Forget everything: the list is as new. */
void watch_clear(struct watches *watches, struct watch_list *list);

/* End up to work_max watches that were left behind; false when there are no more. Every new watch
 * ends two of them, too, so that they never pile up. */
bool watch_free_step(struct watches *watches, uint32_t work_max);

/* Keys that are watched, by one client or many. */
uint32_t watch_key_count(const struct watches *watches);

/* A key has changed. */
void watch_touch(struct watches *watches, uint32_t database, struct bytes name);
/* A database will be flushed: those of its keys change that the registry holds. */
void watch_touch_all(struct watches *watches, const struct registry *registry, uint32_t database);
/* Have the registry remove those of the list's keys whose time has come, let those begin anew whose
 * period is over, and tell it. */
void watch_expire(const struct watch_list *list, struct registry *registry, int64_t now_ms);

/* Check both tables against the watches. reason: the first claim that does not hold. */
MUST_CHECK bool watch_validate(const struct watches *watches, const char **reason);

#endif
