/* The ids of results that may be sent again (ONCE): where they are kept, for how long, and how many a user has.
 *
 *     a database of the server's own, REGISTRY_ONCE
 *       its key   the number of a user's database (1 byte)
 *       a board   of the ids of that database; a member is half of the SHA-256 of a key and an id,
 *                 so its size does not depend on what clients send; its score is who sent it, and when
 *
 *     score       | owner 16 bits | time 48 bits |   owner: of the user's name (ACL), never 0
 *
 * So ids are in the journal, in snapshots and on replicas as members of any board, in the same group as
 * the result. Those of a user lie together, the oldest first: they are counted and cut as a range. An id is one whoever
 * sends it again; the owner only says whose share of once-max it takes. Two users whose names have the same owner, one
 * pair in 65535, have one share.
 *
 * Their time is no server time: it goes on from the newest id there is by the monotonic clock, so that a
 * clock that is set makes no id older. Where no server is master no time goes by.
 *
 * In Redis and Valkey the ids of a key are in the key's own value, and server/module/host_keyspace.c takes the place of
 * once_ids.c. */
#ifndef SERVER_ONCE_IDS_H
#define SERVER_ONCE_IDS_H

#include "server/sessions/server.h"

enum {
    ONCE_ID_MAX = 64, /* bytes; at least 1 */
    ONCE_IDS_MEMBER_SIZE = 16,
    ONCE_IDS_TOP = 8, /* users that figures name */
};

#define ONCE_IDS_TIME_MAX ((UINT64_C(1) << 48) - 1)

/* The layout's only field is ASC. */
static inline uint64_t once_ids_key_of(uint16_t owner, uint64_t time) {
    return ~((uint64_t)owner << 48 | time);
}
static inline uint64_t once_ids_time_of(uint64_t key) {
    return ~key & ONCE_IDS_TIME_MAX;
}
static inline uint16_t once_ids_owner_of(uint64_t key) {
    return (uint16_t)(~key >> 48);
}
/* Options of a board of ids, wherever it is. */
static inline void once_ids_make_options(struct board_options *options) {
    *options = (struct board_options){.cap = 0};
    options->layout.field_count = 1;
    options->layout.fields[0] =
        (struct layout_field){.name = "time_ms", .bits = 64, .is_ascending = true};
    layout_complete(&options->layout);
}

/* Can the ids of this key be kept? NULL: yes; otherwise the error. */
const char *once_ids_find_refusal(struct server *server, struct bytes key);
/* What is kept for an id of a player's: nobody uses up the ids of another one. */
struct bytes once_ids_own(const struct session *session, struct bytes id, char room[DIGEST_SIZE]);
/* The member that is kept for an id of this key; room is for a name that is made of both. */
struct bytes once_ids_member(struct bytes key, struct bytes id, char room[ONCE_IDS_MEMBER_SIZE]);
/* The same for an id that belongs to the client's user and to session->once->route; fingerprint: empty, or of what was
 * sent with it. */
struct bytes once_ids_mark(const struct session *session, struct bytes id, struct bytes fingerprint,
                           char room[ONCE_IDS_MEMBER_SIZE]);
/* Whose share the ids of this client take; of a user's name, the same on every server. */
uint16_t once_ids_owner(const struct session *session);
uint16_t once_ids_owner_named(struct bytes user);
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

/* What a user has of those that once-max counts with these. */
struct once_ids_share {
    uint16_t owner;
    uint64_t count;
    uint64_t oldest; /* its time; of no id: UINT64_MAX */
};
struct once_ids_share once_ids_share_of(const struct server *server, const struct registry_key *ids,
                                        uint16_t owner);
/* Those who have most, most first: nobody is left out who has a 64th of the ids of a database. Returns how many.
 * Short, however many users there are. */
unsigned once_ids_top(const struct server *server, struct once_ids_share top[ONCE_IDS_TOP]);

/* Remove this user's old ids from the boards that once-max counts with this one. */
void once_ids_forget(struct server *server, struct registry_key *ids, uint16_t owner);
/* Old ids of all go, once a second, some users at a time. In a tick, where the keys may change. */
void once_ids_forget_due(struct server *server);
/* For INFO: heap bytes of the boards. */
uint64_t once_ids_size(const struct server *server);

#endif
