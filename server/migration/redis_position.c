/* See redis_position.h. */
#include "server/migration/redis_position.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/replication/history.h"
#include "skiplist/keyspace/registry.h"

enum { TEXT_MAX = REPLICATION_ID_SIZE + REPLICATION_HOST_MAX + 64 };
#define KEY_NAME BYTES("redis")
#define FIELD    BYTES("position")

/* Nothing in this database expires. */
#define ANY_TIME INT64_MIN

static struct registry_key *redis_position_find(struct registry *registry) {
    return registry_find(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME);
}

bool redis_position_read(struct registry *registry, struct redis_position *position) {
    const struct registry_key *key = redis_position_find(registry);
    struct bytes text;
    uint64_t port;
    *position = (struct redis_position){.offset = 0};
    if (key == NULL || key->kind != REGISTRY_HASH || !hash_find(&key->hash, FIELD, &text)) {
        return false;
    }
    struct bytes id = bytes_take_word(&text);
    if (!history_is_id(id) || !bytes_parse_u64(bytes_take_word(&text), &position->offset) ||
        !bytes_parse_u64(bytes_take_word(&text), &position->database) ||
        !bytes_parse_u64(bytes_take_word(&text), &port) || port > UINT16_MAX ||
        text.size > REPLICATION_HOST_MAX) {
        return false;
    }
    memcpy(position->id, id.at, id.size);
    memcpy(position->host, text.at, text.size);
    position->port = (uint16_t)port;
    return true;
}

/* false: no memory; nothing has changed. */
static bool redis_position_put_field(struct registry *registry, struct bytes field,
                                     struct bytes value) {
    const struct bytes args[] = {field, value};
    uint32_t added_count;
    bool is_new;
    struct registry_key *key =
        registry_find_or_create_hash(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME, &is_new);
    if (key == NULL || registry_put_fields(registry, key, args, 1, &added_count) == HASH_OK) {
        return key != NULL;
    }
    if (is_new) {
        registry_take_back(registry, key);
    }
    return false;
}

static void redis_position_remove_field(struct registry *registry, struct bytes field) {
    struct registry_key *key = redis_position_find(registry);
    if (key != NULL && registry_remove_field(registry, key, field) && hash_count(&key->hash) == 0) {
        registry_remove(registry, key);
    }
}

bool redis_position_write(struct registry *registry, const struct redis_position *position) {
    char text[TEXT_MAX];
    int size =
        snprintf(text, sizeof text, "%s %" PRIu64 " %" PRIu64 " %u %s", position->id,
                 position->offset, position->database, (unsigned)position->port, position->host);
    bool is_put =
        redis_position_put_field(registry, FIELD, (struct bytes){.at = text, .size = (size_t)size});
    if (!is_put) {
        redis_position_remove_field(registry, FIELD);
    }
    return is_put;
}

void redis_position_remove(struct registry *registry) {
    struct registry_key *key = redis_position_find(registry);
    if (key != NULL) {
        registry_remove(registry, key);
    }
}

bool redis_position_ask(struct registry *registry, struct bytes field) {
    return redis_position_put_field(registry, field, BYTES(""));
}

void redis_position_answer(struct registry *registry, struct bytes field) {
    redis_position_remove_field(registry, field);
}

bool redis_position_is_asked(struct registry *registry, struct bytes field) {
    const struct registry_key *key = redis_position_find(registry);
    struct bytes value;
    return key != NULL && hash_find(&key->hash, field, &value);
}

struct hash_cursor redis_position_begin_asked(struct registry *registry) {
    static const struct hash none;
    const struct registry_key *key = redis_position_find(registry);
    return hash_begin(key != NULL && key->kind == REGISTRY_HASH ? &key->hash : &none);
}

bool redis_position_next_asked(struct hash_cursor *cursor, struct bytes *field) {
    struct hash_pair pair;
    bool has_more = hash_next(cursor, &pair);
    while (has_more &&
           (pair.field.size < 2 || (unsigned char)pair.field.at[0] >= REGISTRY_DATABASES)) {
        has_more = hash_next(cursor, &pair); /* the position */
    }
    *field = pair.field;
    return has_more;
}
