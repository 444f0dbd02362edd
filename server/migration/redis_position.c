/* See redis_position.h. */
#include "server/migration/redis_position.h"

#include <inttypes.h>
#include <stdio.h>

#include "codec/list.h"
#include "server/replication/term.h"
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
    if (key == NULL || key->kind != REGISTRY_HASH || !hash_find(registry_hash(key), FIELD, &text)) {
        return false;
    }
    struct bytes id = bytes_take_word(&text);
    if (!term_is_id(id) || !bytes_parse_u64(bytes_take_word(&text), &position->offset) ||
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
    return registry_hash_put_own(registry, REGISTRY_HISTORY, KEY_NAME, args, 1, ANY_TIME) != NULL;
}

static void redis_position_remove_field(struct registry *registry, struct bytes field) {
    struct registry_key *key = redis_position_find(registry);
    if (key != NULL && registry_hash_remove(registry, key, field) &&
        hash_count(registry_hash(key)) == 0) {
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

/* ---- keys that the source is asked for ---- */

/* The name of its field. No memory: it is broken, and so is what follows. */
static struct bytes redis_position_field(struct redis_asked_keys *keys, uint32_t database,
                                         struct bytes name) {
    char head = (char)database;
    buffer_clear(&keys->field);
    buffer_append(&keys->field, &head, 1);
    buffer_append_bytes(&keys->field, name);
    return buffer_bytes(&keys->field);
}

void redis_position_init_asked(struct redis_asked_keys *keys, struct registry *registry) {
    *keys = (struct redis_asked_keys){.registry = registry};
    buffer_init(&keys->field, 0);
}

void redis_position_forget_asked(struct redis_asked_keys *keys) {
    struct redis_asked *asked;
    LIST_TAKE_EACH(keys->first, asked) {
        memory_free(asked);
    }
    keys->last = NULL;
    keys->count = 0;
    keys->total = 0;
    buffer_deinit(&keys->field);
}

/* false: no memory. */
static bool redis_position_append(struct redis_asked_keys *keys, uint32_t database,
                                  struct bytes name, bool wants_value, uint64_t since) {
    struct redis_asked *asked = memory_allocate(sizeof *asked + name.size);
    if (asked == NULL) {
        return false;
    }
    *asked = (struct redis_asked){.wants_value = wants_value,
                                  .database = database,
                                  .since = since,
                                  .name_size = (uint32_t)name.size};
    memcpy(asked->name, name.at, name.size);
    LIST_APPEND(keys->first, keys->last, asked);
    keys->count++;
    return true;
}

bool redis_position_resume_asked(struct redis_asked_keys *keys, uint64_t since) {
    const struct registry_key *key = redis_position_find(keys->registry);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        return true;
    }
    struct hash_cursor cursor = hash_begin(registry_hash(key));
    struct hash_pair pair;
    bool is_fine = true;
    while (is_fine && hash_next(&cursor, &pair)) {
        uint8_t database = pair.field.size > 1 ? (uint8_t)pair.field.at[0] : REGISTRY_DATABASES;
        if (database < REGISTRY_DATABASES) { /* else it is the position */
            is_fine =
                redis_position_append(keys, database, bytes_behind(pair.field, 1), false, since);
        }
    }
    return is_fine;
}

bool redis_position_is_asked(struct redis_asked_keys *keys, uint32_t database, struct bytes name) {
    struct bytes value;
    const struct registry_key *key = keys->count > 0 ? redis_position_find(keys->registry) : NULL;
    return key != NULL &&
           hash_find(registry_hash(key), redis_position_field(keys, database, name), &value);
}

bool redis_position_ask(struct redis_asked_keys *keys, uint32_t database, struct bytes name,
                        bool wants_value, uint64_t since) {
    if (redis_position_is_asked(keys, database, name)) {
        return true;
    }
    struct bytes field = redis_position_field(keys, database, name);
    bool is_noted = !keys->field.is_broken &&
                    redis_position_put_field(keys->registry, field, BYTES("")) &&
                    redis_position_append(keys, database, name, wants_value, since);
    keys->total += is_noted;
    return is_noted;
}

void redis_position_ask_again(struct redis_asked_keys *keys, uint64_t database) {
    for (struct redis_asked *at = keys->first; at != NULL; at = at->next) {
        if (at->database == database || database == REGISTRY_DATABASES) {
            at->is_void = at->state == REDIS_ASKED_SENT;
            at->state = at->state == REDIS_ASKED_ANSWERED ? REDIS_ASKED_WAITS : at->state;
        }
    }
}

bool redis_position_swap_asked(struct redis_asked_keys *keys, uint32_t a, uint32_t b,
                               uint64_t since) {
    const struct redis_asked *last = keys->last;
    bool is_fine = true;
    redis_position_ask_again(keys, a);
    redis_position_ask_again(keys, b);
    for (struct redis_asked *at = keys->first; at != NULL && is_fine; at = at->next) {
        if (at->database == a || at->database == b) {
            is_fine = redis_position_ask(keys, at->database == a ? b : a, redis_position_name(at),
                                         false, since);
        }
        if (at == last) {
            break;
        }
    }
    return is_fine;
}

uint64_t redis_position_end_asked(struct redis_asked_keys *keys, uint64_t offset) {
    struct redis_asked **at = &keys->first;
    uint64_t next = UINT64_MAX;
    keys->last = NULL;
    while (*at != NULL) {
        struct redis_asked *asked = *at;
        if (asked->state == REDIS_ASKED_ANSWERED && asked->until <= offset) {
            *at = asked->next;
            redis_position_remove_field(
                keys->registry,
                redis_position_field(keys, asked->database, redis_position_name(asked)));
            keys->count--;
            memory_free(asked);
        } else {
            bool is_next = asked->state == REDIS_ASKED_ANSWERED && asked->until < next;
            next = is_next ? asked->until : next;
            keys->last = asked;
            at = &asked->next;
        }
    }
    return next;
}
