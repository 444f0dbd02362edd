/* The table of commands, and what its handlers share. See redis_apply.h. */
#include "server/migration/redis_apply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/clients/notify.h"
#include "server/migration/redis_apply_parts.h"
#include "skiplist/keyspace/effect.h"
#include "skiplist/keyspace/registry_hash.h"
#include "skiplist/lookup.h"

void redis_apply_init(struct redis_apply *apply, struct server *server, uint64_t seed) {
    *apply = (struct redis_apply){.server = server, .registry = server->registry};
    session_init(&apply->session, 0, 0);
    apply->session.user = server->acl.users.default_user;
    buffer_init(&apply->replies, 0);
    buffer_init(&apply->scratch, 0);
    rdb_value_init(&apply->value, seed);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        apply->sets[i].seed = seed + i;
    }
}

void redis_apply_reset(struct redis_apply *apply) {
    apply->database = 0;
    apply->applied_count = 0;
    apply->skipped_count = 0;
    apply->skipped_used = 0;
    apply->error[0] = '\0';
    apply->wants_copy = false;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        redis_names_clear(&apply->sets[i]);
    }
}

static void redis_apply_drop_model(struct redis_apply *apply) {
    if (apply->has_model) {
        registry_discard_board(apply->registry, &apply->model);
        apply->has_model = false;
    }
}

void redis_apply_deinit(struct redis_apply *apply) {
    redis_apply_reset(apply);
    redis_apply_drop_model(apply);
    session_deinit(&apply->session);
    buffer_deinit(&apply->replies);
    buffer_deinit(&apply->scratch);
    rdb_value_deinit(&apply->value);
    memory_free(apply->tally.entries);
    memory_free(apply->tally.slots);
    memory_free(apply->decoder);
}

void redis_apply_turn_to(struct redis_apply *apply, struct registry *registry) {
    redis_apply_drop_model(apply);
    apply->registry = registry;
}

/* ---- errors ---- */

bool redis_apply_fail(struct redis_apply *apply, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(apply->error, sizeof apply->error, format, arguments);
    va_end(arguments);
    return false;
}

bool redis_apply_fail_key(struct redis_apply *apply, struct bytes name, const char *format, ...) {
    char what[REDIS_APPLY_ERROR_MAX - 110] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return redis_apply_fail(apply, "key '%s' of database %llu: %s", bytes_show(name).text,
                            (unsigned long long)apply->database, what);
}

bool redis_apply_fail_member(struct redis_apply *apply, struct bytes name, struct bytes member,
                             const char *why) {
    return redis_apply_fail_key(apply, name, "member '%s': %s", bytes_show(member).text, why);
}

bool redis_apply_fail_form(struct redis_apply *apply, const struct request *request) {
    return redis_apply_fail(apply, "the source's %s of %u words is not understood",
                            bytes_show(request->args[0]).text, (unsigned)request->count);
}

bool redis_apply_fail_memory(struct redis_apply *apply) {
    return redis_apply_fail(apply, "out of memory");
}

/* ---- keys ---- */

struct registry_key *redis_apply_find(struct redis_apply *apply, struct bytes name) {
    return registry_find(apply->registry, redis_apply_database(apply), name, REDIS_APPLY_LONG_AGO);
}

bool redis_apply_find_board(struct redis_apply *apply, struct bytes name,
                            struct registry_key **key) {
    *key = redis_apply_find(apply, name);
    return *key == NULL || (*key)->kind == REGISTRY_BOARD ||
           redis_apply_fail_key(apply, name, "a sorted set at the source, and a %s here",
                                registry_kind_name(apply->registry, *key));
}

static void redis_apply_tell(struct redis_apply *apply, enum setting_event class, const char *event,
                             struct bytes name) {
    if (apply->registry == apply->server->registry) {
        notify(apply->server, class, event, redis_apply_database(apply), name);
    }
}

void redis_apply_remove(struct redis_apply *apply, struct bytes name) {
    struct registry_key *key = redis_apply_find(apply, name);
    if (key != NULL) {
        registry_remove(apply->registry, key);
        redis_apply_tell(apply, SETTING_EVENT_GENERIC, "del", name);
    }
    (void)redis_names_remove(redis_apply_sets(apply), name);
}

bool redis_apply_check_key(struct redis_apply *apply, struct bytes name) {
    if (apply->database >= REGISTRY_DATABASES) {
        return redis_apply_fail_key(apply, name, "there are %d databases here, from 0 on",
                                    (int)REGISTRY_DATABASES);
    }
    return (name.size >= 1 && name.size <= REGISTRY_KEY_MAX) ||
           redis_apply_fail_key(apply, name, "a key has 1 to %d bytes here", (int)REGISTRY_KEY_MAX);
}

bool redis_apply_check_new(struct redis_apply *apply, struct bytes name) {
    return redis_apply_find(apply, name) == NULL ||
           redis_apply_fail_key(apply, name, "it is there twice");
}

bool redis_apply_set_expiry(struct redis_apply *apply, struct bytes name, int64_t expire_at_ms) {
    struct registry_key *key = redis_apply_find(apply, name);
    if (key == NULL) {
        return true;
    }
    if (registry_set_expiry(apply->registry, key, expire_at_ms, false) != REGISTRY_OK) {
        return redis_apply_fail_memory(apply);
    }
    redis_apply_tell(apply, SETTING_EVENT_GENERIC,
                     expire_at_ms == REGISTRY_NO_EXPIRY ? "persist" : "expire", name);
    return true;
}

/* ---- members ---- */

static bool redis_apply_put_within(struct redis_apply *apply, struct registry_key *key,
                                   const struct board_member *member, uint64_t packed_key,
                                   uint32_t limit) {
    if (!member->is_there && board_count(&key->board) >= limit) {
        return redis_apply_fail_key(apply, registry_name(key),
                                    "member '%s': the board is full, it takes at most %u members",
                                    bytes_show(member->name).text, (unsigned)limit);
    }
    switch (registry_put_member(apply->registry, key, member, packed_key)) {
    case BOARD_OK:
        return true;
    case BOARD_FULL:
    case BOARD_OUT_OF_MEMORY:
        break;
    }
    return redis_apply_fail_memory(apply);
}

bool redis_apply_put(struct redis_apply *apply, struct registry_key *key,
                     const struct board_member *member, uint64_t packed_key) {
    const struct rules *rules = registry_rules(key);
    return redis_apply_put_within(apply, key, member, packed_key,
                                  rules->limit > 0 ? rules->limit : BOARD_MEMBERS_MAX);
}

void redis_apply_settle(struct redis_apply *apply, struct registry_key *key, const char *event) {
    uint32_t cap = registry_rules(key)->cap;
    uint32_t count = board_count(&key->board);
    if (cap > 0 && count > cap) {
        registry_remove_range(apply->registry, key, cap, count - cap);
    }
    registry_tell_members(apply->registry, key);
    redis_apply_tell(apply, SETTING_EVENT_ZSET, event, registry_name(key));
}

void redis_apply_end_removal(struct redis_apply *apply, struct registry_key *key,
                             const char *event) {
    redis_apply_tell(apply, SETTING_EVENT_ZSET, event, registry_name(key));
    if (board_count(&key->board) == 0) {
        redis_apply_tell(apply, SETTING_EVENT_GENERIC, "del", registry_name(key));
        registry_remove(apply->registry, key);
    } else {
        registry_tell_members(apply->registry, key);
    }
}

/* ---- whole values ---- */

bool redis_apply_begin_board(struct redis_apply *apply, struct bytes name) {
    char why[RDB_VALUE_ERROR_MAX];
    redis_apply_drop_model(apply);
    apply->is_exact = false;
    if (!redis_apply_check_key(apply, name)) {
        return false;
    }
    apply->has_model =
        registry_create_board(apply->registry, name, apply->now_us / 1000, &apply->model);
    if (!apply->has_model) {
        return redis_apply_fail_memory(apply);
    }
    enum rdb_value_status status =
        rdb_value_begin_board(&apply->value, board_layout(&apply->model), apply->now_us, why);
    return status == RDB_VALUE_OK || redis_apply_fail_key(apply, name, "%s", why);
}

bool redis_apply_begin_exact(struct redis_apply *apply, struct bytes name,
                             const struct rdb_board *board) {
    redis_apply_drop_model(apply);
    apply->is_exact = true;
    if (!redis_apply_check_key(apply, name)) {
        return false;
    }
    apply->has_model = registry_create_board_like(apply->registry, &board->rules, &apply->model);
    if (!apply->has_model) {
        return redis_apply_fail_memory(apply);
    }
    rdb_value_begin_keys(&apply->value, board_layout(&apply->model));
    return true;
}

bool redis_apply_put_entries(struct redis_apply *apply, struct bytes name,
                             const struct rdb_board *board) {
    uint32_t count;
    const struct board_entry *entries = rdb_board_entries(board, &count);
    for (uint32_t i = 0; i < count; i++) {
        switch (rdb_value_put_key(&apply->value, entries[i].member, entries[i].key)) {
        case RDB_VALUE_OK:
            break;
        case RDB_VALUE_OUT_OF_MEMORY:
            return redis_apply_fail_memory(apply);
        case RDB_VALUE_REFUSED:
        case RDB_VALUE_DAMAGED:
            return redis_apply_fail_member(apply, name, entries[i].member, "it is out of order");
        }
    }
    return true;
}

bool redis_apply_put_score(struct redis_apply *apply, struct bytes name, struct bytes member,
                           double score) {
    char why[RDB_VALUE_ERROR_MAX];
    switch (rdb_value_put_score(&apply->value, member, score, why)) {
    case RDB_VALUE_OK:
        return true;
    case RDB_VALUE_OUT_OF_MEMORY:
        return redis_apply_fail_memory(apply);
    case RDB_VALUE_REFUSED:
        return redis_apply_fail_member(apply, name, member, why);
    case RDB_VALUE_DAMAGED:
        break;
    }
    snprintf(why, sizeof why, "it is %zu bytes long: 1..%d are allowed", member.size,
             (int)BOARD_MEMBER_MAX);
    return redis_apply_fail_member(apply, name, member, why);
}

bool redis_apply_end_board(struct redis_apply *apply, struct bytes name, uint32_t *count) {
    const struct rules *rules = rules_of(board_layout(&apply->model));
    rdb_value_sort(&apply->value);
    *count = apply->value.count;
    if (apply->is_exact) {
        return true;
    }
    if (rules->limit > 0 && *count > rules->limit) {
        return redis_apply_fail_key(apply, name, "%u members, and the board's LIMIT is %u",
                                    (unsigned)*count, (unsigned)rules->limit);
    }
    if (rules->cap > 0 && *count > rules->cap) {
        *count = rules->cap;
    }
    return true;
}

/* With the model's rules as they are, also the period that it is in. NULL: no memory. */
static struct registry_key *redis_apply_find_or_create_model(struct redis_apply *apply,
                                                             struct bytes name) {
    struct registry_key *key = redis_apply_find(apply, name);
    const struct effect creation = {.kind = EFFECT_CREATE,
                                    .database = redis_apply_database(apply),
                                    .name = name,
                                    .rules = rules_of(board_layout(&apply->model))};
    uint32_t applied;
    if (key != NULL) {
        return key;
    }
    return effect_apply(apply->registry, &creation, 1, &applied) == EFFECT_OK
               ? redis_apply_find(apply, name)
               : NULL;
}

/* `size` entries of the model from this one on. */
static bool redis_apply_put_group(struct redis_apply *apply, struct registry_key *key,
                                  uint32_t count, uint32_t from, unsigned size) {
    struct lookup ahead[LOOKUP_GROUP];
    struct bytes names[LOOKUP_GROUP];
    uint64_t keys[LOOKUP_GROUP];
    struct board_member member;
    for (unsigned i = 0; i < size; i++) {
        uint32_t at = board_is_latest(&key->board) ? count - 1 - from - i : from + i;
        names[i] = apply->value.entries[at].member;
        keys[i] = apply->value.entries[at].key;
    }
    lookup_members_to_put(&key->board, names, 1, size, keys, ahead);
    for (unsigned i = 0; i < size; i++) {
        board_look_up(&key->board, names[i], &ahead[i], &member);
        if (member.is_there) {
            return redis_apply_fail_member(apply, registry_name(key), names[i],
                                           "it is there twice");
        }
        if (!(apply->is_exact
                  ? redis_apply_put_within(apply, key, &member, keys[i], BOARD_MEMBERS_MAX)
                  : redis_apply_put(apply, key, &member, keys[i]))) {
            return false;
        }
    }
    return true;
}

bool redis_apply_fill(struct redis_apply *apply, struct bytes name, uint32_t count, uint32_t from,
                      uint32_t to) {
    if (count == 0 && !(apply->is_exact && rules_of(board_layout(&apply->model))->is_created)) {
        return true;
    }
    struct registry_key *key = redis_apply_find_or_create_model(apply, name);
    if (key == NULL) {
        return redis_apply_fail_memory(apply);
    }
    for (uint32_t at = from; at < to; at += LOOKUP_GROUP) {
        if (!redis_apply_put_group(apply, key, count, at, lookup_group_size(to, at))) {
            return false;
        }
    }
    registry_tell_members(apply->registry, key);
    return true;
}

bool redis_apply_put_fields(struct redis_apply *apply, struct bytes name, const struct bytes *args,
                            uint32_t pair_count, uint32_t *added_count) {
    bool is_new;
    struct registry_key *key = registry_find_or_create_hash(
        apply->registry, redis_apply_database(apply), name, REDIS_APPLY_LONG_AGO, &is_new);
    if (key == NULL) {
        return redis_apply_fail_memory(apply);
    }
    if (key->kind != REGISTRY_HASH) {
        return redis_apply_fail_key(apply, name, "a hash at the source, and a %s here",
                                    registry_kind_name(apply->registry, key));
    }
    enum hash_status status =
        registry_put_fields(apply->registry, key, args, pair_count, added_count);
    if (status != HASH_OK) {
        if (is_new) {
            registry_take_back(apply->registry, key);
        }
        return status == HASH_OUT_OF_MEMORY
                   ? redis_apply_fail_memory(apply)
                   : redis_apply_fail_key(apply, name, "too many fields, or one too long");
    }
    registry_tell_members(apply->registry, key);
    redis_apply_tell(apply, SETTING_EVENT_HASH, "hset", name);
    return true;
}

/* ---- the table ---- */

/* Sorted by name. */
static const struct redis_apply_row {
    const char *name;
    uint32_t words_min;
    redis_apply_handler *run; /* NULL: passed over and counted, whatever is named */
} rows[] = {
    {"BITOP", 4, redis_apply_bitop},
    {"CLUSTER", 1, redis_apply_refuse}, /* slots that move */
    {"COPY", 3, redis_apply_copy},
    {"DEL", 2, redis_apply_del},
    {"DELEX", 2, redis_apply_overwrite},   /* behind its key is a condition, which held */
    {"DELIFEQ", 3, redis_apply_overwrite}, /* the same */
    {"EVAL", 1, redis_apply_refuse},
    {"EVALSHA", 1, redis_apply_refuse},
    {"EXPIRE", 3, redis_apply_expire},
    {"EXPIREAT", 3, redis_apply_expire},
    {"FCALL", 1, redis_apply_refuse},
    {"FLUSHALL", 1, redis_apply_flushall},
    {"FLUSHDB", 1, redis_apply_flushdb},
    {"FLUSHSLOT", 1, redis_apply_refuse},
    {"FUNCTION", 1, NULL},
    {"GEOADD", 5, redis_apply_refuse}, /* comes as ZADD */
    {"GEORADIUS", 6, redis_apply_geo_store},
    {"GEORADIUSBYMEMBER", 5, redis_apply_geo_store},
    {"GEOSEARCHSTORE", 3, redis_apply_refuse},
    {"GETDEL", 2, redis_apply_del},
    {"GETSET", 3, redis_apply_overwrite},
    {"HDEL", 3, redis_apply_hash},
    {"HEXPIRE", 2, NULL},
    {"HEXPIREAT", 2, NULL},
    {"HGETDEL", 5, redis_apply_hgetdel},
    {"HGETEX", 2, NULL},
    {"HINCRBY", 4, redis_apply_hash},
    {"HINCRBYFLOAT", 4, redis_apply_hash},
    {"HMSET", 4, redis_apply_hash},
    {"HPERSIST", 2, NULL},
    {"HPEXPIRE", 2, NULL},
    {"HPEXPIREAT", 2, NULL},
    {"HSET", 4, redis_apply_hash},
    {"HSETEX", 6, redis_apply_hsetex},
    {"HSETNX", 4, redis_apply_hash},
    {"LB.APPLY", 3, redis_apply_effects},
    {"LB.APPLYSTATE", 2, redis_apply_state_effects},
    {"MOVE", 3, redis_apply_move},
    {"MSET", 3, redis_apply_overwrite_pairs},
    {"MSETEX", 4, redis_apply_msetex},
    {"MSETNX", 3, redis_apply_overwrite_pairs},
    {"PERSIST", 2, redis_apply_persist},
    {"PEXPIRE", 3, redis_apply_expire},
    {"PEXPIREAT", 3, redis_apply_expire},
    {"PSETEX", 4, redis_apply_overwrite},
    {"PUBLISH", 3, redis_apply_publish},
    {"RENAME", 3, redis_apply_rename},
    {"RENAMENX", 3, redis_apply_rename},
    {"RESTORE", 4, redis_apply_restore},
    {"RESTORE-ASKING", 4, redis_apply_restore},
    {"SADD", 3, redis_apply_set_names},
    {"SCRIPT", 1, NULL},
    {"SDIFFSTORE", 3, redis_apply_overwrite_set},
    {"SELECT", 2, redis_apply_select_database},
    {"SET", 3, redis_apply_overwrite},
    {"SETEX", 4, redis_apply_overwrite},
    {"SETNX", 3, redis_apply_overwrite},
    {"SINTERSTORE", 3, redis_apply_overwrite_set},
    {"SMOVE", 4, redis_apply_smove},
    {"SORT", 2, redis_apply_sort},
    {"SPUBLISH", 3, redis_apply_publish},
    {"SUNIONSTORE", 3, redis_apply_overwrite_set},
    {"SWAPDB", 3, redis_apply_swapdb},
    {"TRIMSLOTS", 1, redis_apply_refuse},
    {"UNLINK", 2, redis_apply_del},
    {"XGROUP", 2, NULL},
    {"ZADD", 4, redis_apply_zadd},
    {"ZDIFFSTORE", 4, redis_apply_zdiffstore},
    {"ZINCRBY", 4, redis_apply_zincrby},
    {"ZINTERSTORE", 4, redis_apply_zinterstore},
    {"ZPOPMAX", 2, redis_apply_zpopmax},
    {"ZPOPMIN", 2, redis_apply_zpopmin},
    {"ZRANGESTORE", 5, redis_apply_zrangestore},
    {"ZREM", 3, redis_apply_zrem},
    {"ZREMRANGEBYLEX", 4, redis_apply_zremrangebylex},
    {"ZREMRANGEBYRANK", 4, redis_apply_zremrangebyrank},
    {"ZREMRANGEBYSCORE", 4, redis_apply_zremrangebyscore},
    {"ZUNIONSTORE", 4, redis_apply_zunionstore},
};

enum { ROWS = sizeof rows / sizeof rows[0], WORD_MAX = 24 };

static int redis_apply_compare_row(const void *name, const void *row) {
    return strcmp(name, ((const struct redis_apply_row *)row)->name);
}

static const struct redis_apply_row *redis_apply_find_row(struct bytes name, char *upper) {
    if (name.size > WORD_MAX) {
        name.size = WORD_MAX;
    }
    for (size_t i = 0; i < name.size; i++) {
        char letter = name.at[i];
        upper[i] = letter >= 'a' && letter <= 'z' ? (char)(letter - 'a' + 'A') : letter;
    }
    upper[name.size] = '\0';
    return bsearch(upper, rows, ROWS, sizeof rows[0], redis_apply_compare_row);
}

static void redis_apply_skip(struct redis_apply *apply, struct bytes name) {
    struct redis_skipped *skipped = apply->skipped;
    struct redis_skipped *end = skipped + apply->skipped_used;
    char word[REDIS_APPLY_NAME_MAX + 1] = "";
    for (size_t i = 0; i < name.size && i < REDIS_APPLY_NAME_MAX; i++) {
        char letter = bytes_lower(name.at[i]);
        bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
                        letter == '.' || letter == '-' || letter == '_';
        word[i] = is_plain ? letter : '_';
    }
    apply->skipped_count++;
    while (skipped < end && strcmp(skipped->name, word) != 0) {
        skipped++;
    }
    if (skipped == end && apply->skipped_used < REDIS_APPLY_SKIPPED_MAX) {
        bool is_last = ++apply->skipped_used == REDIS_APPLY_SKIPPED_MAX;
        *skipped = (struct redis_skipped){.count = 0};
        memcpy(skipped->name, is_last ? "other" : word, is_last ? sizeof "other" : sizeof word);
    } else if (skipped == end) {
        skipped--; /* "other" */
    }
    skipped->count++;
}

bool redis_apply_refuse(struct redis_apply *apply, const struct request *request) {
    return redis_apply_fail(apply,
                            "the source's %s cannot be followed: its result is not known here",
                            bytes_show(request->args[0]).text);
}

/* A command that is not in the table: of other types, or of a version that is not known here. */
static bool redis_apply_pass_over(struct redis_apply *apply, const struct request *request) {
    if (request->count > 1 && apply->database < REGISTRY_DATABASES &&
        redis_apply_find(apply, request->args[1]) != NULL) {
        return redis_apply_fail_key(apply, request->args[1],
                                    "the source's %s is not known here, and may change it",
                                    bytes_show(request->args[0]).text);
    }
    redis_apply_skip(apply, request->args[0]);
    return true;
}

bool redis_apply_run(struct redis_apply *apply, const struct request *request) {
    char upper[WORD_MAX + 1];
    const struct redis_apply_row *row = redis_apply_find_row(request->args[0], upper);
    if (row == NULL) {
        return redis_apply_pass_over(apply, request);
    }
    if (row->run == NULL) {
        redis_apply_skip(apply, request->args[0]);
        return true;
    }
    bool is_about_keys = row->run != redis_apply_select_database &&
                         row->run != redis_apply_publish && row->run != redis_apply_swapdb &&
                         row->run != redis_apply_flushall && row->run != redis_apply_state_effects;
    if (request->count < row->words_min) {
        return redis_apply_fail_form(apply, request);
    }
    if (is_about_keys && apply->database >= REGISTRY_DATABASES) {
        return redis_apply_fail(
            apply, "the source's %s is in database %llu: there are %d here, from 0 on", row->name,
            (unsigned long long)apply->database, (int)REGISTRY_DATABASES);
    }
    apply->session.database = (uint8_t)(is_about_keys ? apply->database : 0);
    if (!row->run(apply, request)) {
        return false;
    }
    apply->applied_count++;
    return true;
}
