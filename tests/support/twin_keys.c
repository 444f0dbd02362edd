/* The naive twin of the commands on keys and their expiry. */
#include "tests/support/twin_parts.h"

/* ---- keys ---- */

void twin_run_del(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    int64_t removed = 0;
    for (uint32_t i = 1; i < count; i++) {
        struct twin_key *key = twin_find(twin, args[i]);
        if (key != NULL) {
            twin_remove_key(twin, key);
            removed++;
        }
    }
    twin_put_integer(twin, removed);
}

void twin_run_exists(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    int64_t found = 0;
    for (uint32_t i = 1; i < count; i++) {
        found += twin_find(twin, args[i]) != NULL;
    }
    twin_put_integer(twin, found);
}

void twin_run_type(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    twin_put(twin, twin_find(twin, args[1]) != NULL ? "+zset\r\n" : "+none\r\n");
}

void twin_run_rename(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    bool only_new = twin_is_word(args[0], "RENAMENX");
    struct twin_key *key = twin_find(twin, args[1]);
    struct twin_key *target = twin_find(twin, args[2]);
    if (key == NULL) {
        twin_put_error(twin, "no such key");
        return;
    }
    if (only_new && target != NULL) {
        twin_put_integer(twin, 0);
        return;
    }
    if (target != key) {
        if (target != NULL) {
            twin_remove_key(twin, target);
        }
        twin_free_bytes(key->name);
        key->name = twin_copy_bytes(args[2]);
    }
    twin_put(twin, only_new ? ":1\r\n" : "+OK\r\n");
}

static bool read_copy_options(struct twin_server *twin, const struct bytes *args, uint32_t count,
                              int64_t *database, bool *is_replacing) {
    for (uint32_t i = 3; i < count; i++) {
        if (twin_is_word(args[i], "REPLACE")) {
            *is_replacing = true;
        } else if (twin_is_word(args[i], "DB") && i + 1 < count) {
            if (!twin_read_integer(args[++i], database)) {
                twin_put_error(twin, TWIN_INTEGER_ERROR);
                return false;
            }
            if (*database < 0 || *database > 15) {
                twin_put_error(twin, "DB index is out of range");
                return false;
            }
        } else {
            twin_put_error(twin, TWIN_SYNTAX_ERROR);
            return false;
        }
    }
    return true;
}

void twin_run_copy(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    int64_t database = twin->database;
    bool is_replacing = false;
    if (!read_copy_options(twin, args, count, &database, &is_replacing)) {
        return;
    }
    if (database == twin->database && bytes_equal(args[1], args[2])) {
        twin_put_error(twin, "source and destination objects are the same");
        return;
    }
    struct twin_key *key = twin_find(twin, args[1]);
    struct twin_key *target = twin_find_in(twin, (uint32_t)database, args[2]);
    if (key == NULL || (target != NULL && !is_replacing)) {
        twin_put_integer(twin, 0);
        return;
    }
    twin_copy_members(target != NULL ? target : twin_create_in(twin, (uint32_t)database, args[2]),
                      key);
    twin_put_integer(twin, 1);
}

void twin_run_flush(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    bool is_all = twin_is_word(args[0], "FLUSHALL");
    for (uint32_t i = 0; i < twin->key_count;) {
        if (is_all || twin->keys[i]->database == twin->database) {
            twin_remove_key(twin, twin->keys[i]);
        } else {
            i++;
        }
    }
    twin_put(twin, "+OK\r\n");
}

void twin_run_dbsize(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)args;
    (void)count;
    int64_t found = 0;
    for (uint32_t i = 0; i < twin->key_count; i++) {
        found += twin->keys[i]->database == twin->database;
    }
    twin_put_integer(twin, found);
}

/* ---- expiry ---- */

void twin_run_expire(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    bool nx = false, xx = false, gt = false, lt = false;
    for (uint32_t i = 3; i < count; i++) {
        nx = nx || twin_is_word(args[i], "NX");
        xx = xx || twin_is_word(args[i], "XX");
        gt = gt || twin_is_word(args[i], "GT");
        lt = lt || twin_is_word(args[i], "LT");
    }
    if (nx && (xx || gt || lt)) {
        twin_put_error(twin, "NX and XX, GT or LT options at the same time are not compatible");
        return;
    }
    if (gt && lt) {
        twin_put_error(twin, "GT and LT options at the same time are not compatible");
        return;
    }
    int64_t given;
    if (!twin_read_integer(args[2], &given)) {
        twin_put_error(twin, TWIN_INTEGER_ERROR);
        return;
    }
    bool is_in_ms = twin_is_word(args[0], "PEXPIRE") || twin_is_word(args[0], "PEXPIREAT");
    bool is_absolute = twin_is_word(args[0], "EXPIREAT") || twin_is_word(args[0], "PEXPIREAT");
    twin_wide at = (twin_wide)given * (is_in_ms ? 1 : 1000);
    bool is_held = at == (int64_t)at;
    at += is_absolute ? 0 : twin->now_ms;
    if (!is_held || at > INT64_MAX) {
        twin_put_error(twin, TWIN_ANY_ERROR);
        return;
    }
    struct twin_key *key = twin_find(twin, args[1]);
    if (key == NULL || (nx && key->has_expiry) || (xx && !key->has_expiry) ||
        (gt && (!key->has_expiry || at <= key->expire_at_ms)) ||
        (lt && key->has_expiry && at >= key->expire_at_ms)) {
        twin_put_integer(twin, 0);
        return;
    }
    key->has_expiry = true;
    key->expire_at_ms = (int64_t)at;
    twin_server_expire(twin, twin->now_ms);
    twin_put_integer(twin, 1);
}

void twin_run_persist(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    struct twin_key *key = twin_find(twin, args[1]);
    bool has_expiry = key != NULL && key->has_expiry;
    if (has_expiry) {
        key->has_expiry = false;
    }
    twin_put_integer(twin, has_expiry);
}

void twin_run_ttl(struct twin_server *twin, const struct bytes *args, uint32_t count) {
    (void)count;
    const struct twin_key *key = twin_find(twin, args[1]);
    bool is_in_ms = twin_is_word(args[0], "PTTL") || twin_is_word(args[0], "PEXPIRETIME");
    bool is_absolute = twin_is_word(args[0], "EXPIRETIME") || twin_is_word(args[0], "PEXPIRETIME");
    if (key == NULL || !key->has_expiry) {
        twin_put_integer(twin, key == NULL ? -2 : -1);
        return;
    }
    twin_wide ms = (twin_wide)key->expire_at_ms - (is_absolute ? 0 : twin->now_ms);
    twin_put_integer(twin, (int64_t)(is_in_ms ? ms : (ms + 500) / 1000));
}
