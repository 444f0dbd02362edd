/* The host's keys, in the place of server/commands/keyspace.c and lb/lb_data_find.c. */
#include "server/commands/keyspace.h"

#include <stdio.h>

#include "server/commands/lb/lb_data.h"
#include "server/module/host_run.h"
#include "server/rdb/rdb_board.h"
#include "server/system/log.h"
#include "skiplist/keyspace/hash.h"
#include "skiplist/keyspace/registry_embedded.h"

/* ---- scanning ---- */

/* Put the board into the working set, and look it up: what is due rolls over. */
static bool host_keyspace_visit_board(const struct call *call, struct bytes name,
                                      registry_visit *visit, void *context) {
    if (!working_set_put_named(host_run_set(), name)) {
        return false;
    }
    const struct registry_key *key = registry_find(call->registry, 0, name, call->now_ms);
    if (key != NULL) {
        visit(context, key);
    }
    return true;
}

/* The host's own SCAN: its cursors are numbers, and those of its API are not. */
uint64_t keyspace_scan(const struct call *call, uint64_t cursor, const struct scan_limits *limits,
                       registry_visit *visit, void *context) {
    enum { CURSOR_TEXT_MAX = 24 };
    char text[CURSOR_TEXT_MAX];
    uint64_t next = cursor;
    int size = snprintf(text, sizeof text, "%llu", (unsigned long long)cursor);
    struct host_call_reply *reply =
        host_Call(module.context, "SCAN", "bclcc", text, (size_t)size, "COUNT",
                  (long long)limits->count, "TYPE", RDB_BOARD_TYPE_NAME);
    struct host_call_reply *names = reply != NULL ? host_CallReplyArrayElement(reply, 1) : NULL;
    bool is_complete =
        names != NULL &&
        bytes_parse_u64(host_reply_string(host_CallReplyArrayElement(reply, 0)), &next);
    for (size_t i = 0; is_complete && i < host_CallReplyLength(names); i++) {
        is_complete = host_keyspace_visit_board(
            call, host_reply_string(host_CallReplyArrayElement(names, i)), visit, context);
    }
    if (!is_complete) {
        host_run_set()->refusal =
            names != NULL ? "OOM out of memory" : "ERR the server has no SCAN TYPE";
    }
    host_free_reply(reply);
    return is_complete ? next : cursor;
}

/* ---- single keys ---- */

bool keyspace_open(const struct call *call, struct bytes name) {
    if (!working_set_has(host_run_set(), name) && !working_set_put_named(host_run_set(), name)) {
        return call_out_of_memory(call);
    }
    return registry_embedded_find(call->registry, name) != NULL ||
           !working_set_lacks(host_run_set(), name);
}

const struct rules *keyspace_peek_rules(const struct call *call, const struct registry_key *key,
                                        struct bytes name) {
    const struct registry_key *found =
        registry_peek(call->registry, key->database, name, call->now_ms);
    if (found != NULL) {
        return registry_rules(found); /* it has come to be just now */
    }
    struct host_named named = host_open_named(module.context, name);
    const struct host_value *value = named.key != NULL ? host_value_of_board(named.key) : NULL;
    bool is_asked_for = call->command->first_key > 0; /* not one of a listing */
    if (named.key == NULL && is_asked_for) {
        (void)working_set_lacks(host_run_set(), name);
    }
    host_close_named(module.context, named);
    return value != NULL ? registry_rules(value->key) : NULL;
}

const struct board *keyspace_find_board(const struct call *call, struct bytes name) {
    return keyspace_open(call, name) ? call_board(call_find_key(call, name)) : NULL;
}

/* Not by a command of the host: in a cluster it would refuse that for a key of a slot that is still to come here, and
 * boards of such slots are changed here, too. */
void keyspace_remove_hash(struct server *server, uint32_t database, struct bytes name) {
    struct host_context *ctx = module.context;
    (void)server;
    if (host_SelectDb(ctx, (int)database) != HOST_OK) {
        return;
    }
    struct host_named named = host_open_named(ctx, name);
    bool is_hash = named.key != NULL && host_KeyType(named.key) == HOST_KEY_HASH;
    host_close(named.key);
    if (is_hash && host_Replicate(ctx, "UNLINK", "s", named.name) != HOST_OK) {
        log_write(LOG_WARNING, "hash '%s' was not removed: the server has no UNLINK",
                  bytes_show(name).text);
    } else if (is_hash) {
        struct host_key *key = host_OpenKey(ctx, named.name, HOST_READ | HOST_WRITE);
        host_DeleteKey(key);
        host_CloseKey(key);
        host_SignalModifiedKey(ctx, named.name);
        host_NotifyKeyspaceEvent(ctx, HOST_NOTIFY_GENERIC, "del", named.name);
    }
    host_FreeString(ctx, named.name);
}

uint32_t keyspace_number(uint32_t database) {
    (void)database; /* in the working set everything is in database 0 */
    return module.database;
}

uint32_t keyspace_database_count(void) {
    return module.database_count;
}

/* ---- the hashes of DATA ---- */

/* They are keys of the host, and copied for the records of one group. */
static struct hash copies[LB_DATA_GROUP];
static unsigned copy_count; /* that may have fields */

static bool host_keyspace_put(struct hash *copy, struct bytes field, struct bytes value) {
    const struct bytes args[] = {field, value};
    uint32_t added_count;
    return hash_put(copy, module.server.hash_seed, args, 1, &added_count) == HASH_OK;
}

/* The fields that are asked for, one after another. */
static bool host_keyspace_copy_fields(struct host_key *key, const struct option_values *fields,
                                      struct hash *copy) {
    bool is_copied = true;
    for (uint32_t i = 0; i < fields->count && is_copied; i++) {
        struct host_string *value = NULL;
        struct host_string *field =
            host_CreateString(module.context, fields->at[i].at, fields->at[i].size);
        host_HashGet(key, HOST_HASH_NONE, field, &value, NULL);
        host_FreeString(module.context, field);
        if (value != NULL) {
            is_copied = host_keyspace_put(copy, fields->at[i], host_bytes(value));
            host_FreeString(module.context, value);
        }
    }
    return is_copied;
}

struct copying {
    struct hash *copy;
    bool has_failed;
};

static void host_keyspace_copy_field(struct host_key *key, struct host_string *field,
                                     struct host_string *value, void *context) {
    struct copying *copying = context;
    (void)key;
    copying->has_failed |=
        value != NULL && !host_keyspace_put(copying->copy, host_bytes(field), host_bytes(value));
}

static bool host_keyspace_copy_all(struct host_key *key, struct hash *copy) {
    struct copying copying = {.copy = copy};
    struct host_scan_cursor *cursor = host_ScanCursorCreate();
    while (host_ScanKey(key, cursor, host_keyspace_copy_field, &copying) != 0 &&
           !copying.has_failed) {}
    host_ScanCursorDestroy(cursor);
    return !copying.has_failed;
}

/* *hash: NULL if the host has no hash of this name. */
static bool host_keyspace_copy_hash(const struct lb_data *data, struct bytes name,
                                    struct hash *copy, const struct hash **hash) {
    bool is_copied = true;
    struct host_named named = host_open_named(module.context, name);
    *hash = NULL;
    if (named.key == NULL && working_set_lacks(host_run_set(), name)) {
        /* The reply will be another one. */
    } else if (named.key != NULL && host_KeyType(named.key) == HOST_KEY_HASH) {
        *hash = copy;
        is_copied = data->fields.at != NULL
                        ? host_keyspace_copy_fields(named.key, &data->fields, copy)
                        : host_keyspace_copy_all(named.key, copy);
    }
    host_close_named(module.context, named);
    return is_copied;
}

void host_keyspace_clear(void) {
    while (copy_count > 0) {
        uint32_t work = UINT32_MAX;
        copy_count -= hash_free_step(&copies[copy_count - 1], &work);
    }
}

bool lb_data_find(const struct call *call, const struct lb_data *data,
                  const struct lb_data_periods *periods, const struct bytes *members,
                  unsigned count, const struct hash **hashes) {
    struct buffer name;
    bool is_found = true;
    (void)call;
    CHECK(count <= LB_DATA_GROUP);
    host_keyspace_clear();
    copy_count = count;
    buffer_init(&name, 0);
    for (unsigned i = 0; i < count && is_found; i++) {
        size_t size =
            lb_data_key_size(data->pattern, members[i], periods->board, periods->suffixes[i]);
        buffer_clear(&name);
        char *out = buffer_reserve(&name, size > 0 ? size : 1);
        is_found = out != NULL;
        if (is_found) {
            const char *end = lb_data_print_key(data->pattern, members[i], periods->board,
                                                periods->suffixes[i], out);
            is_found = host_keyspace_copy_hash(
                data, (struct bytes){.at = out, .size = (size_t)(end - out)}, &copies[i],
                &hashes[i]);
        }
    }
    buffer_deinit(&name);
    return is_found;
}
