/* Commands on whole keys: what removes, overwrites, renames and expires them. */
#include "server/clients/notify.h"
#include "server/migration/redis_apply_parts.h"
#include "server/rdb/rdb_crc.h"
#include "skiplist/keyspace/registry_embedded.h"

/* ---- databases ---- */

bool redis_apply_select_database(struct redis_apply *apply, const struct request *request) {
    return bytes_parse_u64(request->args[1], &apply->database) ||
           redis_apply_fail_form(apply, request);
}

bool redis_apply_flushdb(struct redis_apply *apply, const struct request *request) {
    (void)request;
    (void)registry_flush(apply->registry, redis_apply_database(apply));
    redis_names_clear(redis_apply_sets(apply));
    return true;
}

bool redis_apply_flushall(struct redis_apply *apply, const struct request *request) {
    (void)request;
    (void)registry_flush(apply->registry, REGISTRY_DATABASES);
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        redis_names_clear(&apply->sets[i]);
    }
    return true;
}

/* All keys of a database to another one. */
static bool redis_apply_keys_move_all(struct redis_apply *apply, uint32_t from, uint32_t to) {
    struct registry_key *key;
    while ((key = registry_embedded_first_of(apply->registry, from)) != NULL) {
        if (registry_rename(apply->registry, key, to, registry_name(key), REDIS_APPLY_LONG_AGO) !=
            REGISTRY_OK) {
            return redis_apply_fail_memory(apply);
        }
    }
    return true;
}

/* Through a database that is empty; if one of the two is, there is no need of it. */
bool redis_apply_swapdb(struct redis_apply *apply, const struct request *request) {
    uint64_t a;
    uint64_t b;
    if (!bytes_parse_u64(request->args[1], &a) || !bytes_parse_u64(request->args[2], &b)) {
        return redis_apply_fail_form(apply, request);
    }
    if (a >= REGISTRY_DATABASES || b >= REGISTRY_DATABASES) {
        return redis_apply_fail(
            apply, "the source swaps databases %llu and %llu: there are %d here, from 0 on",
            (unsigned long long)a, (unsigned long long)b, (int)REGISTRY_DATABASES);
    }
    uint32_t spare = 0;
    while (spare < REGISTRY_DATABASES &&
           (spare == a || spare == b || registry_count(apply->registry, spare) > 0)) {
        spare++;
    }
    if (spare == REGISTRY_DATABASES) {
        return redis_apply_fail(apply,
                                "the source swaps databases %llu and %llu, and no database "
                                "is empty here to do so",
                                (unsigned long long)a, (unsigned long long)b);
    }
    struct redis_names sets = apply->sets[a];
    apply->sets[a] = apply->sets[b];
    apply->sets[b] = sets;
    return a == b || (redis_apply_keys_move_all(apply, (uint32_t)a, spare) &&
                      redis_apply_keys_move_all(apply, (uint32_t)b, (uint32_t)a) &&
                      redis_apply_keys_move_all(apply, spare, (uint32_t)b));
}

/* ---- gone, or overwritten by another type ---- */

bool redis_apply_del(struct redis_apply *apply, const struct request *request) {
    for (uint32_t i = 1; i < request->count; i++) {
        redis_apply_remove(apply, request->args[i]);
    }
    return true;
}

bool redis_apply_overwrite(struct redis_apply *apply, const struct request *request) {
    redis_apply_remove(apply, request->args[1]);
    return true;
}

bool redis_apply_overwrite_pairs(struct redis_apply *apply, const struct request *request) {
    for (uint32_t i = 1; i < request->count; i += 2) {
        redis_apply_remove(apply, request->args[i]);
    }
    return true;
}

/* MSETEX count key value key value ... [NX | XX] [a time]: if it comes, it was done. */
bool redis_apply_msetex(struct redis_apply *apply, const struct request *request) {
    uint64_t count;
    if (!bytes_parse_u64(request->args[1], &count) || count > (request->count - 2) / 2) {
        return redis_apply_fail_form(apply, request);
    }
    for (uint32_t i = 0; i < count; i++) {
        redis_apply_remove(apply, request->args[2 + 2 * i]);
    }
    return true;
}

bool redis_apply_bitop(struct redis_apply *apply, const struct request *request) {
    redis_apply_remove(apply, request->args[2]);
    return true;
}

bool redis_apply_sort(struct redis_apply *apply, const struct request *request) {
    for (uint32_t i = 2; i + 1 < request->count; i++) {
        if (bytes_is(request->args[i], "STORE")) {
            redis_apply_remove(apply, request->args[i + 1]);
        }
    }
    return true;
}

/* STORE and STOREDIST fill a sorted set with what only geography knows. */
bool redis_apply_geo_store(struct redis_apply *apply, const struct request *request) {
    for (uint32_t i = 4; i + 1 < request->count; i++) {
        if (bytes_is(request->args[i], "STORE") || bytes_is(request->args[i], "STOREDIST")) {
            return redis_apply_refuse(apply, request);
        }
    }
    return true;
}

/* ---- sets, by name ---- */

bool redis_apply_set_names(struct redis_apply *apply, const struct request *request) {
    redis_names_put(redis_apply_sets(apply), request->args[1]);
    return true;
}

bool redis_apply_overwrite_set(struct redis_apply *apply, const struct request *request) {
    redis_apply_remove(apply, request->args[1]);
    return redis_apply_set_names(apply, request);
}

bool redis_apply_smove(struct redis_apply *apply, const struct request *request) {
    redis_names_put(redis_apply_sets(apply), request->args[2]);
    return true;
}

/* ---- renaming ---- */

/* What has no key here is of another type at the source: then the destination is, too. */
static bool redis_apply_keys_move_to(struct redis_apply *apply, struct bytes from,
                                     uint32_t to_database, struct bytes to, bool is_copy) {
    struct registry_key *key = redis_apply_find(apply, from);
    uint32_t database = redis_apply_database(apply);
    struct redis_names *names = redis_apply_sets(apply);
    bool is_set = redis_names_hold(names, from);
    if (database == to_database && bytes_equal(from, to)) {
        return true;
    }
    if (is_set && !is_copy) {
        (void)redis_names_remove(names, from);
    }
    if (key == NULL) {
        apply->database = to_database;
        redis_apply_remove(apply, to);
        apply->database = database;
        if (is_set) {
            redis_names_put(&apply->sets[to_database], to);
        }
        return true;
    }
    if (!redis_apply_check_key(apply, to)) {
        return false;
    }
    (void)redis_names_remove(&apply->sets[to_database], to);
    enum registry_status status =
        is_copy ? registry_copy(apply->registry, key, to_database, to, REDIS_APPLY_LONG_AGO)
                : registry_rename(apply->registry, key, to_database, to, REDIS_APPLY_LONG_AGO);
    return status == REGISTRY_OK || redis_apply_fail_memory(apply);
}

bool redis_apply_rename(struct redis_apply *apply, const struct request *request) {
    return redis_apply_keys_move_to(apply, request->args[1], redis_apply_database(apply),
                                    request->args[2], false);
}

static bool redis_apply_keys_read_database(struct redis_apply *apply, const struct request *request,
                                           uint32_t index, uint32_t *database) {
    uint64_t number;
    if (!bytes_parse_u64(request->args[index], &number)) {
        return redis_apply_fail_form(apply, request);
    }
    *database = (uint32_t)number;
    return number < REGISTRY_DATABASES ||
           redis_apply_fail_key(apply, request->args[1],
                                "it goes to database %llu: there are %d here, from 0 on",
                                (unsigned long long)number, (int)REGISTRY_DATABASES);
}

bool redis_apply_copy(struct redis_apply *apply, const struct request *request) {
    uint32_t database = redis_apply_database(apply);
    for (uint32_t i = 3; i < request->count; i++) {
        if (bytes_is(request->args[i], "DB") && i + 1 < request->count) {
            if (!redis_apply_keys_read_database(apply, request, ++i, &database)) {
                return false;
            }
        } else if (!bytes_is(request->args[i], "REPLACE")) {
            return redis_apply_fail_form(apply, request);
        }
    }
    return redis_apply_keys_move_to(apply, request->args[1], database, request->args[2], true);
}

bool redis_apply_move(struct redis_apply *apply, const struct request *request) {
    uint32_t database = 0;
    return redis_apply_keys_read_database(apply, request, 2, &database) &&
           redis_apply_keys_move_to(apply, request->args[1], database, request->args[1], false);
}

/* ---- expiry ---- */

/* Since Redis 7 all come as PEXPIREAT; before, as the client said, from now on. What is past stays until the
 * source says that it is gone. */
bool redis_apply_expire(struct redis_apply *apply, const struct request *request) {
    int64_t time;
    bool is_absolute =
        bytes_is(request->args[0], "EXPIREAT") || bytes_is(request->args[0], "PEXPIREAT");
    bool is_seconds =
        bytes_is(request->args[0], "EXPIREAT") || bytes_is(request->args[0], "EXPIRE");
    if (!bytes_parse_i64(request->args[2], &time) ||
        __builtin_mul_overflow(time, is_seconds ? 1000 : 1, &time) ||
        __builtin_add_overflow(time, is_absolute ? 0 : apply->now_us / 1000, &time) ||
        time == REGISTRY_NO_EXPIRY) {
        return redis_apply_fail_form(apply, request);
    }
    return redis_apply_set_expiry(apply, request->args[1], time);
}

bool redis_apply_persist(struct redis_apply *apply, const struct request *request) {
    return redis_apply_set_expiry(apply, request->args[1], REGISTRY_NO_EXPIRY);
}

/* ---- RESTORE ---- */

static bool redis_apply_keys_load(struct redis_apply *apply, struct bytes name,
                                  const struct rdb_payload *payload) {
    struct rdb_load *load = &apply->load;
    load->now_us = apply->now_us;
    rdb_load_begin_value(load, payload->version, redis_apply_database(apply), name);
    enum rdb_load_status status = rdb_load_feed(load, payload->value);
    rdb_load_end_value(load);
    if (status == RDB_LOAD_MORE) {
        return redis_apply_fail_key(apply, name, "the value of the source's RESTORE ends early");
    }
    if (!redis_apply_take_load(apply, status == RDB_LOAD_DONE)) {
        return false;
    }
    if (redis_apply_find(apply, name) != NULL) { /* not one of another type */
        notify(apply->server, SETTING_EVENT_GENERIC, "restore", redis_apply_database(apply), name);
    }
    return true;
}

static bool redis_apply_keys_read_expiry(struct redis_apply *apply, const struct request *request,
                                         int64_t *time_ms) {
    bool is_absolute = false;
    for (uint32_t i = 4; i < request->count; i++) {
        is_absolute |= bytes_is(request->args[i], "ABSTTL");
    }
    if (!bytes_parse_i64(request->args[2], time_ms) || *time_ms < 0) {
        return redis_apply_fail_form(apply, request);
    }
    if (*time_ms == 0) {
        *time_ms = REGISTRY_NO_EXPIRY;
    } else if (!is_absolute && __builtin_add_overflow(*time_ms, apply->now_us / 1000, time_ms)) {
        return redis_apply_fail_form(apply, request);
    }
    return true;
}

bool redis_apply_restore(struct redis_apply *apply, const struct request *request) {
    struct bytes name = request->args[1];
    struct rdb_payload payload;
    int64_t expire_at_ms;
    if (!redis_apply_check_key(apply, name) ||
        !redis_apply_keys_read_expiry(apply, request, &expire_at_ms)) {
        return false;
    }
    if (!rdb_payload_open(request->args[3], &payload)) {
        return redis_apply_fail_form(apply, request);
    }
    if (!rdb_knows_version(payload.version)) {
        return redis_apply_fail_key(apply, name,
                                    "the source's RESTORE has RDB version %u, which needs a newer "
                                    "server here (known: %d of Redis, %d of Valkey)",
                                    payload.version, (int)RDB_VERSION_MAX,
                                    (int)RDB_VERSION_VALKEY_MAX);
    }
    if (!payload.is_checked && !payload.is_open) {
        return redis_apply_fail_key(apply, name, "the source's RESTORE has a wrong checksum");
    }
    return redis_apply_keys_load(apply, name, &payload) &&
           (expire_at_ms == REGISTRY_NO_EXPIRY ||
            redis_apply_set_expiry(apply, name, expire_at_ms));
}
