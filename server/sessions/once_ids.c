/* In a database of the server's own. See once_ids.h. */
#include "server/sessions/once_ids.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/acl/acl.h"
#include "server/system/digest.h"

enum {
    FORGET_MS = 1000,
    FORGOTTEN_MAX = 256, /* users that one tick looks at */
    SAMPLES = 64,        /* of a board */
    ROUTE_MAX = 64,
};

/* Far from where sums of it and of a monotonic time overflow. */
#define TIME_MAX (ONCE_IDS_TIME_MAX / 4)

const char *once_ids_find_refusal(struct server *server, struct bytes key) {
    (void)server;
    (void)key;
    return NULL;
}

struct bytes once_ids_own(const struct session *session, struct bytes id, char room[DIGEST_SIZE]) {
    const struct jwt_claims *claims = &session->player->claims;
    char text[1 + JWT_CLAIM_MAX + ONCE_ID_MAX];
    CHECK(claims->player_size <= JWT_CLAIM_MAX && id.size <= ONCE_ID_MAX);
    text[0] = (char)claims->player_size; /* so every pair has a text of its own */
    memcpy(text + 1, claims->player, claims->player_size);
    memcpy(text + 1 + claims->player_size, id.at, id.size);
    digest_make((struct bytes){.at = text, .size = 1 + claims->player_size + id.size},
                (unsigned char *)room);
    return (struct bytes){.at = room, .size = DIGEST_SIZE};
}

struct bytes once_ids_member(struct bytes key, struct bytes id, char room[ONCE_IDS_MEMBER_SIZE]) {
    char text[REGISTRY_KEY_MAX + 1 + ONCE_ID_MAX];
    unsigned char digest[DIGEST_SIZE];
    CHECK(key.size <= REGISTRY_KEY_MAX && id.size <= ONCE_ID_MAX);
    memcpy(text, key.at, key.size);
    memcpy(text + key.size, id.at, id.size);
    text[key.size + id.size] = (char)id.size; /* so every pair has a text of its own */
    digest_make((struct bytes){.at = text, .size = key.size + 1 + id.size}, digest);
    memcpy(room, digest, ONCE_IDS_MEMBER_SIZE);
    return (struct bytes){.at = room, .size = ONCE_IDS_MEMBER_SIZE};
}

struct bytes once_ids_mark(const struct session *session, struct bytes id, struct bytes fingerprint,
                           char room[ONCE_IDS_MEMBER_SIZE]) {
    char text[ACL_TEXT_MAX + ROUTE_MAX + ONCE_ID_MAX + DIGEST_SIZE + 5];
    unsigned char digest[DIGEST_SIZE];
    const struct bytes parts[] = {session->user->name, session->once->route, id, fingerprint};
    size_t size = 0;
    CHECK(session->user->name.size <= ACL_TEXT_MAX && session->once->route.size <= ROUTE_MAX &&
          id.size <= ONCE_ID_MAX && fingerprint.size <= DIGEST_SIZE);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (parts[i].size > 0) {
            memcpy(text + size, parts[i].at, parts[i].size);
        }
        size += parts[i].size;
        text[size++] = i > 0 ? (char)parts[i].size : '\0'; /* so every list has a text of its own */
    }
    text[size++] = (char)UINT8_MAX; /* with which no pair of key and id ends */
    digest_make((struct bytes){.at = text, .size = size}, digest);
    memcpy(room, digest, ONCE_IDS_MEMBER_SIZE);
    return (struct bytes){.at = room, .size = ONCE_IDS_MEMBER_SIZE};
}

uint16_t once_ids_owner_named(struct bytes user) {
    return (uint16_t)(1 + XXH3_64bits(user.at, user.size) % UINT16_MAX);
}

uint16_t once_ids_owner(const struct session *session) {
    if (session->player != NULL) {
        /* Not by the name alone: a player who is called like a user would take the user's share. */
        char own[DIGEST_SIZE];
        return once_ids_owner_named(once_ids_own(session, BYTES(""), own));
    }
    return once_ids_owner_named(session->user != NULL ? session->user->name : BYTES(""));
}

struct once_ids_name {
    char at[1];
};

static struct bytes once_ids_name_of(uint32_t database, struct once_ids_name *name) {
    name->at[0] = (char)database;
    return (struct bytes){.at = name->at, .size = sizeof name->at};
}

struct registry_key *once_ids_find(struct server *server, uint32_t database, struct bytes key) {
    struct once_ids_name name;
    (void)key;
    struct registry_key *ids =
        registry_count(server->registry, REGISTRY_ONCE) > 0
            ? registry_find(server->registry, REGISTRY_ONCE, once_ids_name_of(database, &name),
                            server->clock.now_ms)
            : NULL;
    return ids != NULL && ids->kind == REGISTRY_BOARD ? ids : NULL;
}

static const struct registry_key *once_ids_peek(const struct server *server, uint32_t database) {
    struct once_ids_name name;
    const struct registry_key *ids = registry_peek(
        server->registry, REGISTRY_ONCE, once_ids_name_of(database, &name), server->clock.now_ms);
    return ids != NULL && ids->kind == REGISTRY_BOARD ? ids : NULL;
}

struct registry_key *once_ids_find_or_create(struct server *server, uint32_t database,
                                             struct bytes key) {
    struct once_ids_name name;
    struct board_options options;
    bool is_new;
    struct registry_key *ids = once_ids_find(server, database, key);
    if (ids != NULL) {
        return ids;
    }
    once_ids_make_options(&options);
    return registry_find_or_create_like(server->registry, REGISTRY_ONCE,
                                        once_ids_name_of(database, &name), &options, NULL,
                                        server->clock.now_ms, &is_new);
}

/* ---- time ---- */

/* Where a user's ids begin; owner: up to 65536. */
static uint32_t once_ids_begin_of(const struct registry_key *ids, uint32_t owner) {
    if (owner == 0) {
        return 0;
    }
    return board_count_from(&ids->board, once_ids_key_of((uint16_t)(owner - 1), ONCE_IDS_TIME_MAX));
}

/* The newest id's time; 0: there is none. */
static uint64_t once_ids_newest(const struct registry_key *ids) {
    uint64_t newest = 0;
    uint32_t count = ids != NULL ? board_count(&ids->board) : 0;
    for (uint32_t at = 0; at < count;) {
        uint16_t owner = once_ids_owner_of(board_at(&ids->board, at).key);
        at = once_ids_begin_of(ids, owner + UINT32_C(1));
        uint64_t time = once_ids_time_of(board_at(&ids->board, at - 1).key);
        newest = time > newest ? time : newest;
    }
    return newest;
}

uint64_t once_ids_now(struct server *server) {
    if (!server->once.has_begun) {
        uint64_t newest = 0;
        for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
            uint64_t each = once_ids_newest(once_ids_find(server, i, BYTES("")));
            newest = each > newest ? each : newest;
        }
        newest = newest < TIME_MAX ? newest : TIME_MAX;
        uint64_t begin = newest > 0 ? newest : (uint64_t)server->clock.now_ms;
        server->once.has_begun = true;
        server->once.offset_ms = (int64_t)begin - server->clock.monotonic_ms;
    }
    return (uint64_t)(server->clock.monotonic_ms + server->once.offset_ms);
}

/* ---- all ids ---- */

uint64_t once_ids_count(const struct server *server, const struct registry_key *ids) {
    (void)ids;
    return registry_member_count(server->registry, REGISTRY_ONCE);
}

/* ---- shares ---- */

struct once_ids_share once_ids_share_of(const struct server *server, const struct registry_key *ids,
                                        uint16_t owner) {
    struct once_ids_share share = {.owner = owner, .oldest = UINT64_MAX};
    (void)ids;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        const struct registry_key *each = once_ids_peek(server, i);
        if (each != NULL) {
            uint32_t begin = once_ids_begin_of(each, share.owner);
            uint32_t end = once_ids_begin_of(each, share.owner + UINT32_C(1));
            if (begin < end) {
                uint64_t oldest = once_ids_time_of(board_at(&each->board, begin).key);
                share.count += end - begin;
                share.oldest = oldest < share.oldest ? oldest : share.oldest;
            }
        }
    }
    return share;
}

/* Into the list, most first. */
static unsigned once_ids_rank(struct once_ids_share *top, unsigned count,
                              const struct once_ids_share *share) {
    unsigned at = count;
    while (at > 0 && top[at - 1].count < share->count) {
        at--;
    }
    if (at == ONCE_IDS_TOP) {
        return count;
    }
    count += count < ONCE_IDS_TOP;
    memmove(&top[at + 1], &top[at], (count - at - 1) * sizeof *top);
    top[at] = *share;
    return count;
}

/* As a user's ids lie together, samples at even distances meet everybody who has as many as lie between two. */
unsigned once_ids_top(const struct server *server, struct once_ids_share top[ONCE_IDS_TOP]) {
    unsigned top_count = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        const struct registry_key *ids = once_ids_peek(server, i);
        uint64_t count = ids != NULL ? board_count(&ids->board) : 0;
        uint32_t before = UINT32_MAX;
        for (uint64_t sample = 0; sample < SAMPLES && sample < count; sample++) {
            uint64_t samples = count < SAMPLES ? count : SAMPLES;
            uint32_t rank = (uint32_t)(count * sample / samples);
            uint16_t owner = once_ids_owner_of(board_at(&ids->board, rank).key);
            unsigned at = 0; /* of the owner in the list */
            while (at < top_count && top[at].owner != owner) {
                at++;
            }
            if (owner != before && at == top_count) {
                struct once_ids_share share = once_ids_share_of(server, NULL, owner);
                top_count = once_ids_rank(top, top_count, &share);
            }
            before = owner;
        }
    }
    return top_count;
}

/* ---- old ids ---- */

/* The old ids of the first user from this one on. Returns with whom to go on; 0: that was all, and the board may be
 * gone. */
static uint32_t once_ids_cut_next(struct server *server, struct registry_key *ids, uint32_t owner,
                                  uint64_t now) {
    uint64_t window_ms = (uint64_t)server->settings.once_window_s * 1000;
    uint32_t count = board_count(&ids->board);
    uint32_t begin = once_ids_begin_of(ids, owner);
    if (begin == count) {
        return 0;
    }
    uint64_t first = board_at(&ids->board, begin).key;
    uint16_t found = once_ids_owner_of(first);
    if (once_ids_is_young(server, once_ids_time_of(first), now)) {
        return found + UINT32_C(1);
    }
    uint32_t end = board_count_from(&ids->board, once_ids_key_of(found, now - window_ms));
    registry_board_cut(server->registry, ids, begin, end - begin);
    if (end - begin == count) {
        registry_remove(server->registry, ids);
        return 0;
    }
    return found + UINT32_C(1);
}

void once_ids_forget(struct server *server, struct registry_key *ids, uint16_t owner) {
    uint64_t now = once_ids_now(server);
    (void)ids;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        struct registry_key *each = once_ids_find(server, i, BYTES(""));
        if (each != NULL) {
            (void)once_ids_cut_next(server, each, owner, now);
        }
    }
}

void once_ids_forget_due(struct server *server) {
    struct server_once *once = &server->once;
    int64_t now_ms = server->clock.monotonic_ms;
    if (registry_count(server->registry, REGISTRY_ONCE) == 0 || now_ms < once->forget_at_ms) {
        return;
    }
    uint64_t now = once_ids_now(server);
    for (unsigned i = 0; i < FORGOTTEN_MAX && once->forget_database < REGISTRY_DATABASES; i++) {
        struct registry_key *ids = once_ids_find(server, once->forget_database, BYTES(""));
        once->forget_owner =
            ids != NULL ? once_ids_cut_next(server, ids, once->forget_owner, now) : 0;
        once->forget_database += once->forget_owner == 0;
    }
    if (once->forget_database == REGISTRY_DATABASES) {
        once->forget_database = 0;
        once->forget_at_ms = now_ms + FORGET_MS;
    }
}

uint64_t once_ids_size(const struct server *server) {
    uint64_t size = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        const struct registry_key *key = once_ids_peek(server, i);
        size += key != NULL ? registry_memory_size(server->registry, key) : 0;
    }
    return size;
}
