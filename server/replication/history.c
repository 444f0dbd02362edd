/* See history.h. */
#include "server/replication/history.h"

#include <inttypes.h>
#include <stdio.h>

#include "skiplist/keyspace/registry.h"

enum { NUMBER_MAX = 24 };
#define KEY_NAME BYTES("history")

/* Nothing in this database expires. */
#define ANY_TIME INT64_MIN

bool history_is_id(struct bytes text) {
    struct term term;
    return term_parse(text, &term);
}

static bool history_read_id(const struct hash *hash, struct bytes field, char *id) {
    struct bytes value;
    if (!hash_find(hash, field, &value) || !history_is_id(value)) {
        return false;
    }
    memcpy(id, value.at, value.size);
    id[value.size] = '\0';
    return true;
}

bool history_read(struct registry *registry, struct history *history) {
    const struct registry_key *key = registry_peek(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME);
    struct bytes until;
    *history = (struct history){.second_until = 0};
    if (key == NULL || key->kind != REGISTRY_HASH ||
        !history_read_id(registry_hash(key), BYTES("id"), history->id)) {
        return false;
    }
    if (!history_read_id(registry_hash(key), BYTES("second_id"), history->second_id) ||
        !hash_find(registry_hash(key), BYTES("second_until"), &until) ||
        !bytes_parse_u64(until, &history->second_until)) {
        memcpy(history->second_id, HISTORY_NO_ID, sizeof HISTORY_NO_ID);
        history->second_until = 0;
    }
    return true;
}

bool history_take(struct registry *registry, struct replication *replication) {
    struct history history;
    if (!history_read(registry, &history)) {
        return false;
    }
    memcpy(replication->id, history.id, sizeof history.id);
    memcpy(replication->second_id, history.second_id, sizeof history.second_id);
    replication->second_until = history.second_until;
    return true;
}

bool history_write(struct registry *registry, const struct history *history) {
    char until[NUMBER_MAX];
    snprintf(until, sizeof until, "%" PRIu64, history->second_until);
    const struct bytes args[] = {
        BYTES("id"),           bytes_from_text(history->id),
        BYTES("second_id"),    bytes_from_text(history->second_id),
        BYTES("second_until"), bytes_from_text(until),
    };
    enum { PAIRS = sizeof args / sizeof args[0] / 2 };
    return registry_hash_put_own(registry, REGISTRY_HISTORY, KEY_NAME, args, PAIRS, ANY_TIME) !=
           NULL;
}

void history_remove(struct registry *registry) {
    struct registry_key *key = registry_find(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME);
    if (key != NULL) {
        registry_remove(registry, key);
    }
}
