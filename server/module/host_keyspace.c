/* The host's keys, and the ids of results, in the place of server/commands/keyspace.c, ticketing.c, lb/lb_data_keys.c and
 * server/sessions/once_ids.c. */
#include "server/commands/keyspace.h"

#include <errno.h>
#include <stdio.h>

#include "server/commands/lb/lb_data.h"
#include "server/commands/ticketing.h"
#include "server/module/host_run.h"
#include "server/rdb/rdb_board.h"
#include "server/sessions/once_ids.h"
#include "server/system/log.h"
#include "skiplist/keyspace/hash.h"
#include "skiplist/keyspace/registry_embedded.h"

/* ---- scanning ---- */

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
        /* Put the board into the working set, and look it up: what is due rolls over. */
        struct bytes name = host_reply_string(host_CallReplyArrayElement(names, i));
        is_complete = working_set_put_named(host_run_set(), name);
        const struct registry_key *key =
            is_complete ? registry_find(call->registry, 0, name, call->now_ms) : NULL;
        if (key != NULL) {
            visit(context, key);
        }
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

const struct board_options *
keyspace_peek_options(const struct call *call, const struct registry_key *key, struct bytes name) {
    const struct registry_key *found =
        registry_peek(call->registry, key->database, name, call->now_ms);
    if (found != NULL) {
        return registry_options(found); /* it has come to be just now */
    }
    struct host_named named = host_open_named(module.context, name);
    const struct host_value *value = named.key != NULL ? module_value_of_board(named.key) : NULL;
    bool is_asked_for = call->command->first_key > 0; /* not one of a listing */
    if (named.key == NULL && is_asked_for) {
        (void)working_set_lacks(host_run_set(), name);
    }
    host_close_named(module.context, named);
    return value != NULL ? registry_options(value->key) : NULL;
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
        if (data->fields.at != NULL) {
            for (uint32_t i = 0; i < data->fields.count && is_copied; i++) {
                struct bytes name_of_field = data->fields.at[i];
                struct host_string *value = NULL;
                struct host_string *field =
                    host_CreateString(module.context, name_of_field.at, name_of_field.size);
                host_HashGet(named.key, HOST_HASH_NONE, field, &value, NULL);
                host_FreeString(module.context, field);
                if (value != NULL) {
                    is_copied = host_keyspace_put(copy, name_of_field, host_bytes(value));
                    host_FreeString(module.context, value);
                }
            }
        } else {
            struct copying copying = {.copy = copy};
            struct host_scan_cursor *cursor = host_ScanCursorCreate();
            while (host_ScanKey(named.key, cursor, host_keyspace_copy_field, &copying) != 0 &&
                   !copying.has_failed) {}
            host_ScanCursorDestroy(cursor);
            is_copied = !copying.has_failed;
        }
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

bool lb_data_keys_find_hashes(const struct call *call, const struct lb_data *data,
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

/* ---- ids of results ----
 *
 * The ids of a key are a part of its value (module.h), and in REGISTRY_ONCE of the registry, under the key's name,
 * while a command needs them. Their time is the server's, and once-max is for each key. Old ones go in steps: with new
 * ones, and by a timer (module.h). */

enum {
    CUT_MIN = 64, /* a step is an effect of its own, for replicas too */
    CUT_MAX = 1024,
    FORGET_AFTER_MS = 1000, /* the oldest is too old: some more are by then */
};

static struct registry_key *host_keyspace_find(struct bytes key) {
    return registry_embedded_find_in(module.server.registry, REGISTRY_ONCE, key);
}

/* They are put where the other functions find them. */
const char *once_ids_find_refusal(struct server *server, struct bytes key) {
    const struct registry_key *other = registry_embedded_find(server->registry, key);
    if (other != NULL && other->kind != REGISTRY_BOARD) {
        return "WRONGTYPE Operation against a key holding the wrong kind of value";
    }
    return working_set_open_ids(host_run_set(), key) ? NULL : "OOM out of memory";
}

struct bytes once_ids_own(const struct session *session, struct bytes id, char room[DIGEST_SIZE]) {
    (void)session;
    (void)room;
    return id; /* not called: here are no players */
}

struct bytes once_ids_member(struct bytes key, struct bytes id, char room[ONCE_IDS_MEMBER_SIZE]) {
    (void)key;
    (void)room;
    return id;
}

struct registry_key *once_ids_find(struct server *server, uint32_t database, struct bytes key) {
    (void)server;
    (void)database;
    return host_keyspace_find(key);
}

uint64_t once_ids_now(struct server *server) {
    return (uint64_t)server->clock.now_ms;
}

uint64_t once_ids_count(const struct server *server, const struct registry_key *ids) {
    (void)server;
    return ids != NULL ? board_count(&ids->board) : 0;
}

struct bytes once_ids_mark(const struct session *session, struct bytes id, struct bytes fingerprint,
                           char room[ONCE_IDS_MEMBER_SIZE]) {
    (void)session;
    (void)fingerprint;
    (void)room;
    return id; /* not called: here is no HTTP, so that session->once is NULL */
}

uint16_t once_ids_owner(const struct session *session) {
    (void)session;
    return 0; /* once-max is for each board, whoever writes to it */
}

struct once_ids_share once_ids_share_of(const struct server *server, const struct registry_key *ids,
                                        uint16_t owner) {
    (void)server;
    bool has_ids = ids != NULL && board_count(&ids->board) > 0;
    uint64_t oldest = has_ids ? once_ids_time_of(board_at(&ids->board, 0).key) : UINT64_MAX;
    return (struct once_ids_share){.owner = owner, .oldest = oldest};
}

unsigned once_ids_top(const struct server *server, struct once_ids_share top[ONCE_IDS_TOP]) {
    (void)server;
    (void)top;
    return 0; /* every board has its own */
}

/* Those that are too old. */
static uint32_t host_keyspace_count_old(const struct registry_key *ids) {
    uint64_t window_ms = (uint64_t)module.server.settings.once_window_s * 1000;
    uint64_t now = once_ids_now(&module.server);
    return now > window_ms ? board_count_from(&ids->board, once_ids_key_of(0, now - window_ms)) : 0;
}

/* Remove some of these, or all. */
static void host_keyspace_cut(struct registry_key *ids, uint32_t old_count) {
    uint32_t count = old_count < CUT_MAX ? old_count : CUT_MAX;
    bool is_all = count == board_count(&ids->board);
    if (count > 0) {
        registry_board_cut(module.server.registry, ids, 0, count);
    }
    if (is_all) {
        registry_remove(module.server.registry, ids);
    }
}

void once_ids_forget(struct server *server, struct registry_key *ids, uint16_t owner) {
    (void)server;
    (void)owner;
    if (ids != NULL) {
        host_keyspace_cut(ids, host_keyspace_count_old(ids));
    }
}

struct registry_key *once_ids_find_or_create(struct server *server, uint32_t database,
                                             struct bytes key) {
    struct board_options options;
    bool is_new;
    struct registry_key *ids = host_keyspace_find(key);
    uint32_t old_count = ids != NULL ? host_keyspace_count_old(ids) : 0;
    (void)database;
    if (old_count >= CUT_MIN) {
        host_keyspace_cut(ids, old_count);
        ids = host_keyspace_find(key);
    }
    if (ids != NULL) {
        return ids;
    }
    once_ids_make_options(&options);
    return registry_find_or_create_like(server->registry, REGISTRY_ONCE, key, &options, NULL,
                                        server->clock.now_ms, &is_new);
}

void host_keyspace_forget(void *context) {
    struct host_due *due = context;
    const struct host_value *value = working_set_value(host_run_set(), due->name);
    if (value == NULL || value->ids_number != due->number ||
        !working_set_open_ids(host_run_set(), due->name)) {
        return;
    }
    struct registry_key *ids = host_keyspace_find(due->name);
    once_ids_forget(&module.server, ids, 0);
    ids = host_keyspace_find(due->name);
    if (ids != NULL) {
        uint64_t now = once_ids_now(&module.server);
        uint64_t oldest = once_ids_time_of(board_at(&ids->board, 0).key);
        due->again_ms = (int64_t)(oldest < now ? oldest : now) +
                        module.server.settings.once_window_s * 1000 + FORGET_AFTER_MS;
        due->left = host_keyspace_count_old(ids) > 0 ? HOST_STALE_MORE : HOST_STALE_DONE;
    }
}

/* ---- the hashes of HSET ---- */

bool lb_data_keys_open(const struct call *call, const struct lb_hset *hset, struct bytes name,
                       struct lb_hset_place *place) {
    static enum { UNKNOWN, THERE, MISSING } has_command;
    int type = HOST_KEY_MODULE; /* a board of this command */
    (void)hset;
    if (!working_set_has(host_run_set(), name)) {
        struct host_named named = host_open_named(module.context, name);
        type = named.key != NULL ? host_KeyType(named.key) : HOST_KEY_EMPTY;
        host_close_named(module.context, named);
    }
    if (type == HOST_KEY_EMPTY && working_set_lacks(host_run_set(), name)) {
        return false;
    }
    if (type != HOST_KEY_EMPTY && type != HOST_KEY_HASH) {
        return call_refuse_kind(call);
    }
    /* When the board has changed it is too late: a server may have HSET under another name (rename-command). */
    if (has_command == UNKNOWN) {
        errno = 0;
        host_free_reply(host_Call(module.context, "HSET", "")); /* without arguments: refused */
        has_command = errno == ENOENT ? MISSING : THERE;
    }
    if (has_command == MISSING) {
        return call_refuse(call,
                           "ERR HSET is not possible: the server has no command of this name");
    }
    place->is_new = type == HOST_KEY_EMPTY;
    place->key = host_CreateString(module.context, name.at, name.size);
    return true;
}

size_t lb_data_keys_growth_size(const struct lb_hset *hset, const struct lb_hset_place *place) {
    (void)hset;
    (void)place;
    return 0; /* the host ends the process when it has no memory */
}

void lb_data_keys_put(const struct call *call, const struct lb_hset *hset,
                      const struct lb_hset_place *place) {
    struct host_string *args[2 * LB_HSET_FIELDS_MAX];
    uint32_t count = 2 * hset->count;
    (void)call;
    if (place->key == NULL) {
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        args[i] = host_CreateString(module.context, hset->args[i].at, hset->args[i].size);
    }
    struct host_string *name = place->key;
    struct host_call_reply *reply =
        host_Call(module.context, "HSET", "!sv", name, args, (size_t)count);
    if (host_is_error(reply)) {
        log_write(LOG_WARNING, "fields of '%s' were not set: the server has refused HSET",
                  bytes_show(host_bytes(name)).text);
    }
    host_free_reply(reply);
    if (place->is_new && place->expire_at_ms != 0) {
        reply = host_Call(module.context, "PEXPIREAT", "!sl", name, (long long)place->expire_at_ms);
        if (host_is_error(reply)) {
            log_write(LOG_WARNING,
                      "'%s' does not expire with its period: the server has refused PEXPIREAT",
                      bytes_show(host_bytes(name)).text);
        }
        host_free_reply(reply);
    }
    for (uint32_t i = 0; i < count; i++) {
        host_FreeString(module.context, args[i]);
    }
}

void lb_data_keys_end(const struct call *call, const struct lb_hset_place *place) {
    (void)call;
    if (place->key != NULL) {
        struct host_string *name = place->key;
        host_FreeString(module.context, name);
    }
}

/* ---- tickets: here are no players ---- */

bool ticketing_explain(const struct writing *writing) {
    (void)writing;
    return false; /* not called */
}

bool ticketing_check(const struct call *call, const struct bytes *tickets, uint32_t ticket_count,
                     const struct ticketing_board *boards, uint32_t count, struct bytes member,
                     struct ticketing *ticketing, uint32_t *failed) {
    (void)tickets, (void)ticket_count, (void)boards, (void)member;
    ticketing->key = NULL;
    *failed = count;
    return call_refuse(call, "ERR tickets are not in the module: there are no players");
}

size_t ticketing_growth_size(const struct ticketing *ticketing) {
    (void)ticketing;
    return 0;
}

void ticketing_put(const struct call *call, struct ticketing *ticketing) {
    (void)call, (void)ticketing;
}

void ticketing_end(const struct call *call, struct ticketing *ticketing) {
    (void)call, (void)ticketing;
}
