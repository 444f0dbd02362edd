/* Bans. See ban.h. */
#include "server/commands/ban.h"

#include "codec/glob.h"
#include "server/commands/keyspace.h"

struct ban_name {
    char at[1 + BOARD_MEMBER_MAX];
};

static struct bytes ban_name_of(uint32_t database, struct bytes member, struct ban_name *name) {
    CHECK(member.size <= BOARD_MEMBER_MAX);
    name->at[0] = (char)keyspace_number(database);
    memcpy(name->at + 1, member.at, member.size);
    return (struct bytes){.at = name->at, .size = 1 + member.size};
}

static struct registry_key *ban_find(struct registry *registry, uint32_t database,
                                     struct bytes member, int64_t now_ms) {
    struct ban_name name;
    if (keyspace_number(database) > BAN_NUMBER_MAX) {
        return NULL;
    }
    struct registry_key *key =
        registry_find(registry, BAN_DATABASE, ban_name_of(database, member, &name), now_ms);
    return key != NULL && key->kind == REGISTRY_HASH ? key : NULL;
}

int64_t ban_until(struct bytes value) {
    int64_t until_ms = 0;
    if (value.size == sizeof until_ms) {
        memcpy(&until_ms, value.at, sizeof until_ms);
    }
    return until_ms;
}

bool ban_holds(struct registry *registry, uint32_t database, struct bytes board,
               struct bytes member, int64_t now_ms) {
    const struct registry_key *key = ban_find(registry, database, member, now_ms);
    if (key == NULL) {
        return false;
    }
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    for (struct hash_pair pair; hash_next(&cursor, &pair);) {
        bool is_all = pair.field.size == 1 && pair.field.at[0] == '*';
        if (ban_until(pair.value) > now_ms && pair.field.size <= GLOB_PATTERN_MAX &&
            (is_all || glob_matches(pair.field, board))) {
            return true;
        }
    }
    return false;
}

/* Remove the patterns whose time is over. Returns when the last of the others ends. */
static int64_t ban_settle(struct registry *registry, struct registry_key *key, int64_t now_ms) {
    int64_t last_ms = now_ms;
    for (uint32_t i = hash_count(registry_hash(key)); i-- > 0;) {
        struct hash_pair pair;
        hash_at(registry_hash(key), i, &pair);
        int64_t until_ms = ban_until(pair.value);
        last_ms = until_ms > last_ms ? until_ms : last_ms;
        if (until_ms <= now_ms) {
            char field[GLOB_PATTERN_MAX];
            size_t size = pair.field.size < sizeof field ? pair.field.size : sizeof field;
            memcpy(field, pair.field.at, size);
            (void)registry_hash_remove(registry, key, (struct bytes){.at = field, .size = size});
        }
    }
    return last_ms;
}

enum ban_status ban_put(struct registry *registry, uint32_t database, struct bytes member,
                        struct bytes pattern, int64_t until_ms, int64_t now_ms) {
    struct ban_name name;
    struct bytes value = {.at = (const char *)&until_ms, .size = sizeof until_ms};
    struct bytes args[] = {pattern, value};
    uint32_t added_count;
    bool is_new;
    if (keyspace_number(database) > BAN_NUMBER_MAX) {
        return BAN_NO_DATABASE;
    }
    struct registry_key *key = registry_hash_find_or_create(
        registry, BAN_DATABASE, ban_name_of(database, member, &name), now_ms, &is_new);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        return BAN_OUT_OF_MEMORY;
    }
    struct bytes before;
    (void)ban_settle(registry, key, now_ms);
    if (hash_count(registry_hash(key)) >= BAN_PATTERNS_MAX &&
        !hash_find(registry_hash(key), pattern, &before)) {
        return BAN_TOO_MANY;
    }
    if (registry_hash_put(registry, &key, args, 1, &added_count) != HASH_OK) {
        if (is_new) {
            registry_take_back(registry, key);
        } else if (hash_count(registry_hash(key)) == 0) {
            registry_remove(registry, key);
        }
        return BAN_OUT_OF_MEMORY;
    }
    int64_t last_ms = ban_settle(registry, key, now_ms);
    /* Without memory for it the key stays longer than its patterns count, and does no harm. */
    (void)!registry_expiry_set(registry, key, last_ms == BAN_FOREVER ? REGISTRY_NO_EXPIRY : last_ms,
                               false);
    return BAN_OK;
}

bool ban_lift(struct registry *registry, uint32_t database, struct bytes member, int64_t now_ms) {
    struct registry_key *key = ban_find(registry, database, member, now_ms);
    if (key == NULL) {
        return false;
    }
    registry_remove(registry, key);
    return true;
}
