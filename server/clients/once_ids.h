/* The ids of results that may be sent again (ONCE): where they are kept, and for how long.
 *
 *     a database of the server's own, REGISTRY_ONCE
 *       its key   the number of a user's database (1 byte)
 *       a board   of the ids of that database; a member is half of the SHA-256 of a key and an id,
 *                 so its size does not depend on what clients send; its score is when it came
 *
 * So ids are in the journal, in snapshots and on replicas as members of any board, in the same group as
 * the result. The first is the oldest: new ones are appended, and those older than once-window leave at the
 * other end.
 *
 * Their time is no server time: it goes on from the newest id there is by the monotonic clock, so that a
 * clock that is set makes no id older. Where no server is master no time goes by.
 *
 * In Redis and Valkey the ids of a key are in the key's own value, and server/module/host_once.c takes the place of
 * once_ids.c. */
#ifndef SERVER_ONCE_IDS_H
#define SERVER_ONCE_IDS_H

#include "server/clients/server.h"

enum {
    ONCE_ID_MAX = 64, /* bytes; at least 1 */
    ONCE_IDS_MEMBER_SIZE = 16,
};

/* The layout's only field is ASC. */
static inline uint64_t once_ids_key_of(uint64_t time) {
    return ~time;
}
static inline uint64_t once_ids_time_of(uint64_t key) {
    return ~key;
}

/* Can the ids of this key be kept? NULL: yes; otherwise the error. */
const char *once_ids_find_refusal(struct server *server, struct bytes key);
/* The member that is kept for an id of this key; room is for a name that is made of both. */
struct bytes once_ids_member(struct bytes key, struct bytes id, char room[ONCE_IDS_MEMBER_SIZE]);
/* The board that has the ids of this key. NULL: there is none. */
struct registry_key *once_ids_find(struct server *server, uint32_t database, struct bytes key);
/* The same, for an id that comes now; one that is made is empty. NULL: no memory. */
MUST_CHECK struct registry_key *once_ids_find_or_create(struct server *server, uint32_t database,
                                                        struct bytes key);
/* The time of an id that comes now, in milliseconds. */
uint64_t once_ids_now(struct server *server);
/* Of an id that came at this time. */
static inline bool once_ids_is_young(const struct server *server, uint64_t time, uint64_t now) {
    return time > now || now - time < (uint64_t)server->settings.once_window_s * 1000;
}
/* How many there are, of those that once-max counts with the ids of this board, which may be NULL. */
uint64_t once_ids_count(const struct server *server, const struct registry_key *ids);

/* Remove the old ids from the boards that once-max counts with this one. */
void once_ids_forget(struct server *server, struct registry_key *ids);
/* The same of all, once a second. In a tick, where the keys may change. */
void once_ids_forget_due(struct server *server);
/* For INFO: heap bytes of the boards. */
uint64_t once_ids_size(const struct server *server);

/* For both kinds of places: the newest id's time, 0 if there is none; a board's old ids go; rules of a
 * new board. */
uint64_t once_ids_newest(const struct registry_key *ids);
void once_ids_cut(struct server *server, struct registry_key *ids, uint64_t now);
void once_ids_make_rules(struct rules *rules);

#endif
