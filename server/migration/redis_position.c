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

bool redis_position_write(struct registry *registry, const struct redis_position *position) {
    char text[TEXT_MAX];
    uint32_t added_count;
    bool is_new;
    struct registry_key *key =
        registry_find_or_create_hash(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME, &is_new);
    if (key == NULL) {
        return false;
    }
    int size =
        snprintf(text, sizeof text, "%s %" PRIu64 " %" PRIu64 " %u %s", position->id,
                 position->offset, position->database, (unsigned)position->port, position->host);
    const struct bytes args[] = {FIELD, {.at = text, .size = (size_t)size}};
    if (registry_put_fields(registry, key, args, 1, &added_count) == HASH_OK) {
        return true;
    }
    if (is_new) {
        registry_take_back(registry, key);
    }
    return false;
}

void redis_position_remove(struct registry *registry) {
    struct registry_key *key = redis_position_find(registry);
    if (key != NULL) {
        registry_remove(registry, key);
    }
}
