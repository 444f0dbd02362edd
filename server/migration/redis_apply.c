/* The table of commands, and what its handlers share. See redis_apply.h. */
#include "server/migration/redis_apply.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/clients/notify.h"
#include "server/migration/redis_apply_parts.h"

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

void redis_apply_deinit(struct redis_apply *apply) {
    redis_apply_reset(apply);
    session_deinit(&apply->session);
    buffer_deinit(&apply->replies);
    buffer_deinit(&apply->scratch);
    rdb_load_deinit(&apply->load);
    memory_free(apply->tally.entries);
    memory_free(apply->tally.slots);
    memory_free(apply->decoder);
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

static void redis_apply_tell(const struct redis_apply *apply, enum setting_event class,
                             const char *event, struct bytes name) {
    notify(apply->server, class, event, redis_apply_database(apply), name);
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

bool redis_apply_put(struct redis_apply *apply, struct registry_key *key,
                     const struct board_member *member, uint64_t packed_key) {
    const struct rules *rules = registry_rules(key);
    uint32_t limit = rules->limit > 0 ? rules->limit : BOARD_MEMBERS_MAX;
    if (!member->is_there && board_count(&key->board) >= limit) {
        return redis_apply_fail_key(apply, registry_name(key),
                                    "member '%s': the board is full, it takes at most %u members",
                                    bytes_show(member->name).text, (unsigned)limit);
    }
    return registry_put_member(apply->registry, key, member, packed_key) == BOARD_OK ||
           redis_apply_fail_memory(apply);
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

/* A key of the load takes its place, or is of another type. */
static void redis_apply_replace(void *context, const struct rdb_load *load) {
    struct redis_apply *apply = context;
    redis_apply_remove(apply, load->name);
    if (load->kind == RDB_OTHER && rdb_type_is_set(load->reader.type)) {
        redis_names_put(redis_apply_sets(apply), load->name);
    }
}

bool redis_apply_take_load(struct redis_apply *apply, bool is_fine) {
    return is_fine || redis_apply_fail(apply, "%s", apply->load.error);
}

void redis_apply_init(struct redis_apply *apply, struct server *server, uint64_t seed) {
    *apply = (struct redis_apply){.server = server, .registry = server->registry};
    session_init(&apply->session, 0, 0);
    apply->session.user = server->acl.users.default_user;
    buffer_init(&apply->replies, 0);
    buffer_init(&apply->scratch, 0);
    rdb_load_init(&apply->load, server->registry, seed, 0);
    apply->load.keeps_expired = true;
    apply->load.replace = redis_apply_replace;
    apply->load.context = apply;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        apply->sets[i].seed = seed + i;
    }
}

/* ---- the table ---- */

/* Sorted by name. */
static const struct redis_apply_row {
    const char *name;
    uint32_t words_min;
    redis_apply_handler *run; /* NULL: passed over and counted, whatever is named */
} rows[] = {
    {"BITOP", 4, redis_apply_bitop},
    {"BZMOVE", 5, redis_apply_bzmove},
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
    {"ZMOVE", 4, redis_apply_zmove},
    {"ZMOVEMEMBER", 6, redis_apply_zmovemember},
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
