/* In a database of the server's own. See once_ids.h. */
#include "server/clients/once_ids.h"

#include "server/system/digest.h"

enum { FORGET_MS = 1000 };

/* Far from where sums of it and of a monotonic time overflow. */
#define TIME_MAX (UINT64_MAX / 4)

const char *once_ids_find_refusal(struct server *server, struct bytes key) {
    (void)server;
    (void)key;
    return NULL;
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

struct registry_key *once_ids_find_or_create(struct server *server, uint32_t database,
                                             struct bytes key) {
    struct once_ids_name name;
    struct rules rules;
    bool is_new;
    struct registry_key *ids = once_ids_find(server, database, key);
    if (ids != NULL) {
        return ids;
    }
    once_ids_make_rules(&rules);
    return registry_find_or_create_like(server->registry, REGISTRY_ONCE,
                                        once_ids_name_of(database, &name), &rules,
                                        server->clock.now_ms, &is_new);
}

/* ---- time ---- */

static uint64_t once_ids_newest_of_all(struct server *server) {
    uint64_t newest = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        uint64_t each = once_ids_newest(once_ids_find(server, i, BYTES("")));
        newest = each > newest ? each : newest;
    }
    return newest < TIME_MAX ? newest : TIME_MAX;
}

uint64_t once_ids_now(struct server *server) {
    if (!server->once.has_begun) {
        uint64_t newest = once_ids_newest_of_all(server);
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

void once_ids_forget(struct server *server, struct registry_key *ids) {
    uint64_t now = once_ids_now(server);
    (void)ids;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        struct registry_key *each = once_ids_find(server, i, BYTES(""));
        if (each != NULL) {
            once_ids_cut(server, each, now);
        }
    }
}

void once_ids_forget_due(struct server *server) {
    int64_t now_ms = server->clock.monotonic_ms;
    if (registry_count(server->registry, REGISTRY_ONCE) > 0 &&
        now_ms >= server->once.forget_at_ms) {
        server->once.forget_at_ms = now_ms + FORGET_MS;
        once_ids_forget(server, NULL);
    }
}

uint64_t once_ids_size(const struct server *server) {
    struct once_ids_name name;
    uint64_t size = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        const struct registry_key *key = registry_peek(
            server->registry, REGISTRY_ONCE, once_ids_name_of(i, &name), server->clock.now_ms);
        size += key != NULL ? registry_memory_size(server->registry, key) : 0;
    }
    return size;
}
