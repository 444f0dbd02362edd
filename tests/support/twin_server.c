/* The naive twin of the whole server: what it holds, in which order, and how it is compared. Texts
 * and options are written down anew from Redis's and from the specification, not taken from the
 * server's sources. */
#include "tests/support/twin_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layout_text.h"
#include "tests/support/stored_text.h"
#include "tests/support/twin_parts.h"

/* ---- plain storage ---- */

void *twin_plain(void *at) {
    if (at == NULL) {
        abort();
    }
    return at;
}

struct bytes twin_copy_bytes(struct bytes bytes) {
    char *at = twin_plain(malloc(bytes.size + 1));
    memcpy(at, bytes.at, bytes.size);
    return (struct bytes){.at = at, .size = bytes.size};
}

void twin_free_bytes(struct bytes bytes) {
    free((void *)(uintptr_t)bytes.at);
}

void twin_server_init(struct twin_server *twin, const struct twin_layout *layouts) {
    *twin = (struct twin_server){.layouts = layouts};
}

void twin_clear_members(struct twin_key *key) {
    for (uint32_t i = 0; i < key->count; i++) {
        twin_free_bytes(key->members[i].name);
    }
    free(key->members);
    key->members = NULL;
    key->count = key->capacity = 0;
}

void twin_remove_key(struct twin_server *twin, struct twin_key *key) {
    twin_clear_members(key);
    twin_free_bytes(key->name);
    uint32_t i = 0;
    while (twin->keys[i] != key) {
        i++;
    }
    twin->keys[i] = twin->keys[--twin->key_count];
    free(key);
}

void twin_server_deinit(struct twin_server *twin) {
    while (twin->key_count > 0) {
        twin_remove_key(twin, twin->keys[0]);
    }
    free(twin->keys);
    free(twin->reply);
}

void twin_server_expire(struct twin_server *twin, int64_t now_ms) {
    for (uint32_t i = 0; i < twin->key_count;) {
        if (twin->keys[i]->has_expiry && twin->keys[i]->expire_at_ms <= now_ms) {
            twin_remove_key(twin, twin->keys[i]);
        } else {
            i++;
        }
    }
}

struct twin_key *twin_find_in(struct twin_server *twin, uint32_t database, struct bytes name) {
    for (uint32_t i = 0; i < twin->key_count; i++) {
        if (twin->keys[i]->database == database && bytes_equal(twin->keys[i]->name, name)) {
            return twin->keys[i];
        }
    }
    return NULL;
}

struct twin_key *twin_find(struct twin_server *twin, struct bytes name) {
    return twin_find_in(twin, twin->database, name);
}

const struct twin_layout *twin_layout_for(const struct twin_server *twin, struct bytes name) {
    const struct twin_layout *layout = twin->layouts;
    while (name.size < strlen(layout->prefix) ||
           memcmp(name.at, layout->prefix, strlen(layout->prefix)) != 0) {
        layout++;
    }
    return layout;
}

struct twin_key *twin_create_in(struct twin_server *twin, uint32_t database, struct bytes name) {
    if (twin->key_count == twin->key_capacity) {
        twin->key_capacity = twin->key_capacity * 2 + 16;
        twin->keys = twin_plain(realloc(twin->keys, twin->key_capacity * sizeof *twin->keys));
    }
    struct twin_key *key = twin_plain(calloc(1, sizeof *key));
    key->name = twin_copy_bytes(name);
    key->database = database;
    key->layout = twin_layout_for(twin, name);
    twin->keys[twin->key_count++] = key;
    return key;
}

/* ---- order ---- */

static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

int64_t twin_time_units(const struct twin_layout *layout, int64_t time_us) {
    return layout->time_bits == 0 ? 0 : floor_divide(time_us - layout->start_us, layout->unit_us);
}

int twin_compare_fields(const struct twin_layout *layout, const struct twin_member *a,
                        const struct twin_member *b) {
    for (int i = 0; i < layout->field_count; i++) {
        if (a->values[i] != b->values[i]) {
            bool is_less = a->values[i] < b->values[i];
            return is_less == layout->fields[i].is_ascending ? -1 : 1;
        }
    }
    return 0;
}

/* The specification's order: fields, then time, then arrival. */
static bool is_better(const struct twin_layout *layout, const struct twin_member *a,
                      const struct twin_member *b) {
    int by_fields = twin_compare_fields(layout, a, b);
    if (by_fields != 0) {
        return by_fields < 0;
    }
    bool is_earlier = a->unit != b->unit ? a->unit < b->unit : a->arrival < b->arrival;
    return is_earlier != layout->is_latest;
}

uint32_t twin_count_better(const struct twin_key *key, const struct twin_member *member) {
    uint32_t better = 0;
    for (uint32_t i = 0; i < key->count; i++) {
        better += is_better(key->layout, &key->members[i], member);
    }
    return better;
}

/* The rank, or -1. */
int64_t twin_find_member(const struct twin_key *key, struct bytes name) {
    for (uint32_t i = 0; key != NULL && i < key->count; i++) {
        if (bytes_equal(key->members[i].name, name)) {
            return i;
        }
    }
    return -1;
}

void twin_remove_rank(struct twin_key *key, uint32_t rank) {
    twin_free_bytes(key->members[rank].name);
    key->count--;
    memmove(&key->members[rank], &key->members[rank + 1],
            (key->count - rank) * sizeof *key->members);
}

void twin_put_member(struct twin_server *twin, struct twin_key *key, struct twin_member member) {
    member.name = twin_copy_bytes(member.name);
    member.arrival = ++twin->arrivals;
    int64_t old = twin_find_member(key, member.name);
    if (old >= 0) {
        twin_remove_rank(key, (uint32_t)old);
    }
    if (key->count == key->capacity) {
        key->capacity = key->capacity * 2 + 8;
        key->members = twin_plain(realloc(key->members, key->capacity * sizeof *key->members));
    }
    uint32_t rank = twin_count_better(key, &member);
    memmove(&key->members[rank + 1], &key->members[rank],
            (key->count - rank) * sizeof *key->members);
    key->members[rank] = member;
    key->count++;
}

void twin_cut(struct twin_key *key) {
    while (key->layout->cap > 0 && key->count > key->layout->cap) {
        twin_remove_rank(key, key->count - 1);
    }
}

bool twin_keeps(const struct twin_key *key, const struct twin_member *member) {
    int64_t rank = twin_find_member(key, member->name);
    return key->layout->keeps_best && rank >= 0 &&
           twin_compare_fields(key->layout, member, &key->members[rank]) >= 0;
}

void twin_remove_if_empty(struct twin_server *twin, struct twin_key *key) {
    if (key != NULL && key->count == 0) {
        twin_remove_key(twin, key);
    }
}

void twin_copy_members(struct twin_key *to, const struct twin_key *from) {
    twin_clear_members(to);
    *to = (struct twin_key){
        .name = to->name,
        .database = to->database,
        .layout = from->layout,
        .members = twin_plain(malloc((from->count + 1) * sizeof *from->members)),
        .count = from->count,
        .capacity = from->count + 1,
        .has_expiry = from->has_expiry,
        .expire_at_ms = from->expire_at_ms,
    };
    for (uint32_t i = 0; i < from->count; i++) {
        to->members[i] = from->members[i];
        to->members[i].name = twin_copy_bytes(from->members[i].name);
    }
}

/* ---- dispatch ---- */

static const struct {
    const char *name;
    twin_run *run;
} commands[] = {
    {"ZADD", twin_run_zadd},
    {"ZINCRBY", twin_run_zincrby},
    {"ZREM", twin_run_zrem},
    {"ZSCORE", twin_run_zscore},
    {"ZMSCORE", twin_run_zscore},
    {"ZRANK", twin_run_zrank},
    {"ZREVRANK", twin_run_zrank},
    {"ZCARD", twin_run_zcard},
    {"ZCOUNT", twin_run_zcount},
    {"ZRANGE", twin_run_range},
    {"ZREVRANGE", twin_run_range},
    {"ZRANGEBYSCORE", twin_run_range},
    {"ZREVRANGEBYSCORE", twin_run_range},
    {"ZRANGESTORE", twin_run_rangestore},
    {"ZUNION", twin_run_combine},
    {"ZUNIONSTORE", twin_run_combine},
    {"ZINTER", twin_run_combine},
    {"ZINTERSTORE", twin_run_combine},
    {"ZINTERCARD", twin_run_combine},
    {"ZDIFF", twin_run_combine},
    {"ZDIFFSTORE", twin_run_combine},
    {"ZREMRANGEBYRANK", twin_run_remove_range},
    {"ZREMRANGEBYSCORE", twin_run_remove_range},
    {"ZPOPMIN", twin_run_zpop},
    {"ZPOPMAX", twin_run_zpop},
    {"ZMPOP", twin_run_zmpop},
    {"DEL", twin_run_del},
    {"UNLINK", twin_run_del},
    {"EXISTS", twin_run_exists},
    {"TOUCH", twin_run_exists},
    {"TYPE", twin_run_type},
    {"RENAME", twin_run_rename},
    {"RENAMENX", twin_run_rename},
    {"COPY", twin_run_copy},
    {"FLUSHDB", twin_run_flush},
    {"FLUSHALL", twin_run_flush},
    {"DBSIZE", twin_run_dbsize},
    {"EXPIRE", twin_run_expire},
    {"PEXPIRE", twin_run_expire},
    {"EXPIREAT", twin_run_expire},
    {"PEXPIREAT", twin_run_expire},
    {"PERSIST", twin_run_persist},
    {"TTL", twin_run_ttl},
    {"PTTL", twin_run_ttl},
    {"EXPIRETIME", twin_run_ttl},
    {"PEXPIRETIME", twin_run_ttl},
};

void twin_begin(struct twin_server *twin, int64_t now_us, uint32_t database, int protocol) {
    twin->now_us = now_us;
    twin->now_ms = floor_divide(now_us, 1000);
    twin->database = database;
    twin->protocol = protocol;
    twin->reply_size = 0;
    twin_server_expire(twin, twin->now_ms);
}

void twin_server_run(struct twin_server *twin, const struct bytes *args, uint32_t count,
                     int64_t now_us, uint32_t database, int protocol) {
    twin_begin(twin, now_us, database, protocol);
    size_t i = 0;
    while (!twin_is_word(args[0], commands[i].name)) {
        i++;
    }
    commands[i].run(twin, args, count);
}

bool twin_server_expects(const struct twin_server *twin, const char *answered) {
    const char *any = twin->reply[0] == '-' ? strchr(twin->reply, '~') : NULL;
    return any != NULL ? strncmp(answered, twin->reply, (size_t)(any - twin->reply)) == 0
                       : strcmp(answered, twin->reply) == 0;
}

/* ---- comparing ---- */

struct comparison {
    const struct registry *registry;
    const struct twin_server *twin;
    uint32_t keys;
    char *difference;
    size_t size;
};

static bool differ(struct comparison *comparison, const struct registry_key *key, const char *what,
                   uint32_t rank) {
    if (comparison->difference[0] == '\0') {
        snprintf(comparison->difference, comparison->size, "db%u %.*s: %s at rank %u",
                 key->database, (int)registry_name(key).size, registry_name(key).at, what, rank);
    }
    return false;
}

static twin_wide decimal_value(struct decimal decimal) {
    return decimal.is_negative ? -(twin_wide)decimal.magnitude : (twin_wide)decimal.magnitude;
}

static bool compare_entry(struct comparison *comparison, const struct registry_key *key,
                          const struct twin_key *twin, uint32_t rank,
                          const struct board_stored *entry) {
    const struct layout *layout = board_layout(&key->board);
    const struct twin_member *member = &twin->members[rank];
    uint64_t ordinals[LAYOUT_FIELDS_MAX];
    int64_t time_us;
    layout_unpack(layout, entry->key, ordinals, &time_us);
    if (!bytes_equal(stored_text(entry->member), member->name)) {
        return differ(comparison, key, "member", rank);
    }
    for (uint32_t i = 0; i < layout->field_count; i++) {
        if (decimal_value(layout_field_decimal(&layout->fields[i], ordinals[i])) !=
            member->values[i]) {
            return differ(comparison, key, "field", rank);
        }
    }
    if (twin->layout->time_bits > 0 &&
        time_us != twin->layout->start_us + member->unit * twin->layout->unit_us) {
        return differ(comparison, key, "reach time", rank);
    }
    return true;
}

static void compare_key(void *context, const struct registry_key *key) {
    struct comparison *comparison = context;
    struct twin_server twin = *comparison->twin;
    const struct twin_key *other = twin_find_in(&twin, key->database, registry_name(key));
    comparison->keys++;
    if (other == NULL || other->count != board_count(&key->board)) {
        differ(comparison, key, "count", board_count(&key->board));
        return;
    }
    int64_t expire_at_ms = registry_expiry(comparison->registry, key);
    bool has_expiry = expire_at_ms != REGISTRY_NO_EXPIRY;
    if (has_expiry != other->has_expiry || (has_expiry && expire_at_ms != other->expire_at_ms)) {
        differ(comparison, key, "expiry", 0);
    }
    uint32_t rank = 0;
    struct board_cursor cursor;
    struct board_stored entry;
    for (board_cursor_seek(&key->board, 0, &cursor); board_cursor_read(&cursor, &entry);
         board_cursor_next(&cursor)) {
        if (!compare_entry(comparison, key, other, rank++, &entry)) {
            return;
        }
    }
    if (rank != other->count) {
        differ(comparison, key, "the walk's end", rank);
    }
}

bool twin_server_equals(const struct twin_server *twin, const struct registry *registry,
                        int64_t now_ms, char *difference, size_t size) {
    struct comparison comparison = {
        .registry = registry, .twin = twin, .difference = difference, .size = size};
    difference[0] = '\0';
    for (uint32_t database = 0; database < REGISTRY_DATABASES; database++) {
        registry_walk_each(registry, database, now_ms, compare_key, &comparison);
    }
    if (difference[0] == '\0' && comparison.keys != twin->key_count) {
        snprintf(difference, size, "%u keys, not %u", comparison.keys, twin->key_count);
    }
    const char *reason = "";
    if (!registry_validate(registry, &reason)) {
        snprintf(difference, size, "%s", reason);
    }
    return difference[0] == '\0';
}
