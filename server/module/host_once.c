/* Ids and hashes of results, in the place of server/clients/once_ids.c and lb/lb_hset_keys.c.
 *
 * The ids of a key are a part of its value (host_value.h), and in REGISTRY_ONCE of the registry, under the key's name,
 * while a command needs them. Their time is the server's, and once-max is for each key. Old ones go in steps: with new
 * ones, and by a timer (host_period.h). */
#include "server/clients/once_ids.h"

#include <errno.h>

#include "server/commands/lb/lb_hset.h"
#include "server/module/host_run.h"
#include "server/system/log.h"
#include "skiplist/keyspace/registry_embedded.h"

enum {
    CUT_MIN = 64, /* a step is an effect of its own, for replicas too */
    CUT_MAX = 1024,
    FORGET_AFTER_MS = 1000, /* the oldest is too old: some more are by then */
};

/* ---- ids ---- */

static struct registry_key *host_once_find(struct bytes key) {
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

struct bytes once_ids_member(struct bytes key, struct bytes id, char room[ONCE_IDS_MEMBER_SIZE]) {
    (void)key;
    (void)room;
    return id;
}

struct registry_key *once_ids_find(struct server *server, uint32_t database, struct bytes key) {
    (void)server;
    (void)database;
    return host_once_find(key);
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
static uint32_t host_once_count_old(const struct registry_key *ids) {
    uint64_t window_ms = (uint64_t)module.server.settings.once_window_s * 1000;
    uint64_t now = once_ids_now(&module.server);
    return now > window_ms ? board_count_from(&ids->board, once_ids_key_of(0, now - window_ms)) : 0;
}

/* Remove some of these, or all. */
static void host_once_cut(struct registry_key *ids, uint32_t old_count) {
    uint32_t count = old_count < CUT_MAX ? old_count : CUT_MAX;
    bool is_all = count == board_count(&ids->board);
    if (count > 0) {
        registry_remove_range(module.server.registry, ids, 0, count);
    }
    if (is_all) {
        registry_remove(module.server.registry, ids);
    }
}

void once_ids_forget(struct server *server, struct registry_key *ids, uint16_t owner) {
    (void)server;
    (void)owner;
    if (ids != NULL) {
        host_once_cut(ids, host_once_count_old(ids));
    }
}

struct registry_key *once_ids_find_or_create(struct server *server, uint32_t database,
                                             struct bytes key) {
    struct rules rules;
    bool is_new;
    struct registry_key *ids = host_once_find(key);
    uint32_t old_count = ids != NULL ? host_once_count_old(ids) : 0;
    (void)database;
    if (old_count >= CUT_MIN) {
        host_once_cut(ids, old_count);
        ids = host_once_find(key);
    }
    if (ids != NULL) {
        return ids;
    }
    once_ids_make_rules(&rules);
    return registry_find_or_create_like(server->registry, REGISTRY_ONCE, key, &rules,
                                        server->clock.now_ms, &is_new);
}

struct forgetting {
    struct bytes name;
    uint32_t number;
    int64_t *again_ms;
    enum host_stale left;
};

static void host_once_forget_some(void *context) {
    struct forgetting *forgetting = context;
    const struct host_value *value = working_set_value(host_run_set(), forgetting->name);
    if (value == NULL || value->ids_number != forgetting->number ||
        !working_set_open_ids(host_run_set(), forgetting->name)) {
        return;
    }
    struct registry_key *ids = host_once_find(forgetting->name);
    once_ids_forget(&module.server, ids, 0);
    ids = host_once_find(forgetting->name);
    if (ids != NULL) {
        uint64_t now = once_ids_now(&module.server);
        uint64_t oldest = once_ids_time_of(board_at(&ids->board, 0).key);
        *forgetting->again_ms = (int64_t)(oldest < now ? oldest : now) +
                                module.server.settings.once_window_s * 1000 + FORGET_AFTER_MS;
        forgetting->left = host_once_count_old(ids) > 0 ? HOST_STALE_MORE : HOST_STALE_DONE;
    }
}

enum host_stale host_once_forget(struct host_context *ctx, struct host_string *name,
                                 uint32_t number, int64_t *again_ms) {
    struct forgetting forgetting = {
        .name = host_bytes(name), .number = number, .again_ms = again_ms, .left = HOST_STALE_GONE};
    return host_run_on(ctx, name, true, host_once_forget_some, &forgetting) ? forgetting.left
                                                                            : HOST_STALE_DONE;
}

/* ---- hashes ---- */

static int host_once_type_of(struct bytes name) {
    if (working_set_has(host_run_set(), name)) {
        return HOST_KEY_MODULE; /* a board of this command */
    }
    struct host_named named = host_open_named(module.context, name);
    int type = named.key != NULL ? host_KeyType(named.key) : HOST_KEY_EMPTY;
    host_close_named(module.context, named);
    return type;
}

/* When the board has changed it is too late: a server may have HSET under another name (rename-command). */
static bool host_once_may_set(void) {
    static enum { UNKNOWN, THERE, MISSING } state;
    if (state == UNKNOWN) {
        errno = 0;
        host_free_reply(host_Call(module.context, "HSET", "")); /* without arguments: refused */
        state = errno == ENOENT ? MISSING : THERE;
    }
    return state == THERE;
}

bool lb_hset_open(const struct call *call, const struct lb_hset *hset, struct bytes name,
                  struct lb_hset_place *place) {
    (void)hset;
    int type = host_once_type_of(name);
    if (type == HOST_KEY_EMPTY && working_set_lacks(host_run_set(), name)) {
        return false;
    }
    if (type != HOST_KEY_EMPTY && type != HOST_KEY_HASH) {
        return call_refuse_kind(call);
    }
    if (!host_once_may_set()) {
        return call_refuse(call,
                           "ERR HSET is not possible: the server has no command of this name");
    }
    place->is_new = type == HOST_KEY_EMPTY;
    place->key = host_CreateString(module.context, name.at, name.size);
    return true;
}

size_t lb_hset_growth_size(const struct lb_hset *hset, const struct lb_hset_place *place) {
    (void)hset;
    (void)place;
    return 0; /* the host ends the process when it has no memory */
}

void lb_hset_put(const struct call *call, const struct lb_hset *hset,
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

void lb_hset_end(const struct call *call, const struct lb_hset_place *place) {
    (void)call;
    if (place->key != NULL) {
        struct host_string *name = place->key;
        host_FreeString(module.context, name);
    }
}
