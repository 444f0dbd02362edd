/* Ids and hashes of results, in the place of server/clients/once_ids.c and lb/lb_hset_keys.c: here all keys are
 * the host's.
 *
 *     LB.ADD race ONCE id ...          the ids of race are the board {race}:once
 *     LB.ADD race:{eu} ONCE id ...     race:{eu}:once: both are in the slot of their key
 *
 * So ids are replicated, saved and moved with a slot as any board, and the host removes the board some time after
 * the last id. Their time is the server's. once-max is for each board. */
#include "server/clients/once_ids.h"

#include <time.h>

#include "server/commands/lb/lb_hset.h"
#include "server/module/host_run.h"
#include "skiplist/keyspace/registry_embedded.h"

/* ---- the board of a key's ids ---- */

/* Its name, valid until the next one. false: it would be too long. */
static bool host_once_find_name(struct bytes key, struct bytes *name) {
    static char text[REGISTRY_KEY_MAX];
    bool has_tag = host_slot_part(key).size < key.size;
    struct bytes begin = has_tag ? BYTES("") : BYTES("{");
    struct bytes end = has_tag ? BYTES(":once") : BYTES("}:once");
    if (begin.size + key.size + end.size > sizeof text) {
        return false;
    }
    memcpy(text, begin.at, begin.size);
    memcpy(text + begin.size, key.at, key.size);
    memcpy(text + begin.size + key.size, end.at, end.size);
    *name = (struct bytes){.at = text, .size = begin.size + key.size + end.size};
    return true;
}

static struct registry_key *host_once_find(struct bytes key) {
    struct bytes name;
    return host_once_find_name(key, &name) ? registry_embedded_find(module.server.registry, name)
                                           : NULL;
}

/* It is put into the working set, where the other functions find it. */
const char *once_ids_find_refusal(struct server *server, struct bytes key) {
    struct bytes name;
    struct rules rules;
    (void)server;
    if (!host_once_find_name(key, &name)) {
        return "ERR ONCE needs a shorter key: the ids are in a board beside it";
    }
    if (module.is_cluster && !host_is_same_slot(name, key)) {
        return "ERR in a cluster ONCE needs a key with a {tag}, or without braces, so that the ids "
               "are in its slot";
    }
    if (working_set_has(host_run_set(), name)) {
        return "ERR ONCE keeps its ids in a key that this command names";
    }
    if (!working_set_put_named(host_run_set(), name)) {
        return "OOM out of memory";
    }
    const struct registry_key *ids = host_once_find(key);
    if (ids == NULL && working_set_lacks(host_run_set(), name)) {
        return "TRYAGAIN";
    }
    once_ids_make_rules(&rules);
    return ids == NULL || (ids->kind == REGISTRY_BOARD &&
                           layout_equal(board_layout(&ids->board), &rules.layout))
               ? NULL
               : "WRONGTYPE the key of this name with :once holds something else than ids";
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

void once_ids_forget(struct server *server, struct registry_key *ids) {
    if (ids != NULL) {
        once_ids_cut(server, ids, once_ids_now(server));
    }
}

/* By the machine's clock, which is the host's, and may be another one than the server's. */
static int64_t host_once_wall_ms(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Before the first id in each once-window what is old goes, and the board stays for all that come in this one. */
struct registry_key *once_ids_find_or_create(struct server *server, uint32_t database,
                                             struct bytes key) {
    struct bytes name;
    struct rules rules;
    bool is_new;
    uint64_t window_ms = (uint64_t)server->settings.once_window_s * 1000;
    uint64_t now = once_ids_now(server);
    struct registry_key *ids = host_once_find(key);
    uint64_t newest = once_ids_newest(ids);
    bool is_first = newest == 0 || newest / window_ms != now / window_ms;
    if (ids != NULL && !is_first) {
        return ids;
    }
    if (ids != NULL) {
        once_ids_cut(server, ids, now);
    }
    once_ids_make_rules(&rules);
    CHECK(host_once_find_name(key, &name));
    ids = registry_find_or_create_like(server->registry, database, name, &rules,
                                       server->clock.now_ms, &is_new);
    if (ids != NULL) {
        (void)!registry_set_expiry(server->registry, ids,
                                   host_once_wall_ms() + 2 * (int64_t)window_ms, false);
    }
    return ids;
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
    host_free_reply(host_Call(module.context, "HSET", "!sv", name, args, (size_t)count));
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
