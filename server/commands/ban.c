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

static struct registry_key *ban_find_key(struct registry *registry, uint32_t database,
                                         struct bytes member, int64_t now_ms) {
    struct ban_name name;
    if (keyspace_number(database) > BAN_NUMBER_MAX) {
        return NULL;
    }
    struct registry_key *key =
        registry_find(registry, BAN_DATABASE, ban_name_of(database, member, &name), now_ms);
    return key != NULL && key->kind == REGISTRY_HASH ? key : NULL;
}

enum { VALUE_SIZE = sizeof(int64_t) };

bool ban_is_shadow(struct bytes value) {
    return value.size == VALUE_SIZE + 1;
}

int64_t ban_until(struct bytes value) {
    int64_t until_ms = 0;
    if (value.size == VALUE_SIZE || ban_is_shadow(value)) {
        memcpy(&until_ms, value.at, sizeof until_ms);
    }
    return until_ms;
}

enum ban_kind ban_find(struct registry *registry, uint32_t database, struct bytes board,
                       struct bytes member, int64_t now_ms, int64_t *until_ms) {
    const struct registry_key *key = ban_find_key(registry, database, member, now_ms);
    enum ban_kind kind = BAN_NONE;
    *until_ms = now_ms;
    if (key == NULL) {
        return BAN_NONE;
    }
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    for (struct hash_pair pair; kind != BAN_FULL && hash_next(&cursor, &pair);) {
        bool is_all = pair.field.size == 1 && pair.field.at[0] == '*';
        int64_t end_ms = ban_until(pair.value);
        if (end_ms > now_ms && pair.field.size <= GLOB_PATTERN_MAX &&
            (is_all || glob_matches(pair.field, board))) {
            kind = ban_is_shadow(pair.value) ? BAN_SHADOW : BAN_FULL;
            *until_ms = end_ms > *until_ms ? end_ms : *until_ms;
        }
    }
    return kind;
}

bool ban_holds(struct registry *registry, uint32_t database, struct bytes board,
               struct bytes member, int64_t now_ms) {
    int64_t until_ms;
    return ban_find(registry, database, board, member, now_ms, &until_ms) != BAN_NONE;
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
                        struct bytes pattern, int64_t until_ms, bool is_shadow, int64_t now_ms) {
    struct ban_name name;
    char said[VALUE_SIZE + 1] = {[VALUE_SIZE] = 1};
    struct bytes value = {.at = said, .size = VALUE_SIZE + (size_t)is_shadow};
    struct bytes args[] = {pattern, value};
    uint32_t added_count;
    bool is_new;
    memcpy(said, &until_ms, sizeof until_ms);
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
    struct registry_key *key = ban_find_key(registry, database, member, now_ms);
    if (key == NULL) {
        return false;
    }
    registry_remove(registry, key);
    return true;
}
