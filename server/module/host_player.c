/* The pass over the boards of the host, in the place of server/commands/lb/player_pass.c.
 *
 * The host's scan has the guarantee of SCAN: a key that is there all the time is visited, perhaps
 * twice. What gets another name meanwhile is noted, from our effects and the host's events, and looked
 * at again; so LB.WHERE remembers which names it has replied. An index of boards would be faster, but the
 * host renames and exchanges keys without telling the module. */
#include "server/commands/lb/player.h"
#include "server/module/host_run.h"
#include "skiplist/keyspace/hash.h"

enum { PASS_COUNT = 32 /* buckets of the host's table passed in a step */ };

struct player_place {
    struct player_walk *walk;
    struct player_place *next;
    struct host_scan_cursor *cursor;
    struct hash seen; /* database and name; if it reads */
};

static struct player_place *places;

/* ---- boards that have the member ---- */

static void host_player_find_board(struct player_walk *walk, const struct registry_key *key,
                                   struct bytes name, uint32_t database) {
    uint64_t packed_key;
    const uint32_t head[] = {database, (uint32_t)name.size};
    if (database < walk->first_database || database >= walk->end_database ||
        (walk->glob != NULL && !glob_takes(walk->glob, name)) ||
        !board_find(&key->board, walk->member, &packed_key)) {
        return;
    }
    char *at = buffer_reserve(&walk->found, sizeof head + name.size);
    if (at == NULL) {
        walk->has_missed = true;
        return;
    }
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, name.at, name.size);
    buffer_commit(&walk->found, sizeof head + name.size);
}

/* A command of ours has given a board this name, or a period has ended. */
static void host_player_receive(void *context, const struct effect *effect) {
    if (effect->database < REGISTRY_DATABASES && effect->key->kind == REGISTRY_BOARD &&
        (effect->kind == EFFECT_RENAME || effect->kind == EFFECT_COPY ||
         effect->kind == EFFECT_FILL)) {
        host_player_find_board(context, effect->key, registry_name(effect->key), module.database);
    }
}

void host_player_note(const struct host_value *value, struct bytes name, uint32_t database) {
    for (struct player_place *place = places; place != NULL; place = place->next) {
        host_player_find_board(place->walk, value->key, name, database);
    }
}

/* ---- acting ---- */

struct acting {
    struct server *server;
    struct player_walk *walk;
    struct bytes name;
};

static void host_player_act(void *context) {
    const struct acting *acting = context;
    struct server *server = acting->server;
    uint64_t packed_key;
    struct registry_key *key =
        registry_find(server->registry, 0, acting->name, server->clock.now_ms);
    if (key != NULL && key->kind == REGISTRY_BOARD &&
        board_find(&key->board, acting->walk->member, &packed_key)) {
        acting->walk->action->act(server, acting->walk, key);
    }
}

/* Has it been replied? Without memory to remember it, it is replied again. */
static bool host_player_was_seen(struct player_walk *walk, struct bytes entry) {
    const struct bytes args[] = {entry, BYTES("")};
    uint32_t added_count = 1;
    return !walk->action->writes &&
           hash_put(&walk->place->seen, module.server.hash_seed, args, 1, &added_count) ==
               HASH_OK &&
           added_count == 0;
}

/* The names may move in memory as soon as something changes. */
static void host_player_act_on_found(struct server *server, struct player_walk *walk) {
    uint32_t head[2]; /* database, size of the name */
    const char *at = walk->found.at + walk->found_at;
    memcpy(head, at, sizeof head);
    walk->found_at += sizeof head + head[1];
    if (host_player_was_seen(walk, (struct bytes){.at = at, .size = sizeof head + head[1]}) ||
        host_SelectDb(module.context, (int)head[0]) != HOST_OK) {
        return;
    }
    struct host_string *name = host_CreateString(module.context, at + sizeof head, head[1]);
    struct acting acting = {.server = server, .walk = walk, .name = host_bytes(name)};
    walk->has_missed |=
        !host_run_on(module.context, name, walk->action->writes, host_player_act, &acting);
    host_FreeString(module.context, name);
}

/* ---- the pass ---- */

static void host_player_rewind_walk(struct player_walk *walk) {
    walk->database = walk->first_database;
    walk->has_missed = false;
    host_ScanCursorRestart(walk->place->cursor);
}

void host_player_rewind(void) {
    for (struct player_place *place = places; place != NULL; place = place->next) {
        host_player_rewind_walk(place->walk);
    }
}

static void host_player_look_at(struct host_context *ctx, struct host_string *name,
                                struct host_key *key, void *context) {
    struct player_walk *walk = context;
    struct host_key *opened = key == NULL ? host_OpenKey(ctx, name, HOST_READ) : NULL;
    if (key != NULL || opened != NULL) {
        const struct host_value *value = host_value_of(key != NULL ? key : opened);
        if (value != NULL) {
            host_player_find_board(walk, value->key, host_bytes(name), walk->database);
        }
    }
    host_close(opened);
}

static void host_player_pass(struct player_walk *walk) {
    bool has_more = true;
    buffer_clear(&walk->found);
    walk->found_at = 0;
    CHECK(host_SelectDb(module.context, (int)walk->database) == HOST_OK);
    for (uint32_t i = 0; i < PASS_COUNT && has_more; i++) {
        has_more = host_Scan(module.context, walk->place->cursor, host_player_look_at, walk) != 0;
    }
    if (!has_more) {
        walk->database++;
        host_ScanCursorRestart(walk->place->cursor);
    }
}

bool player_pass_step(struct server *server, struct player_walk *walk) {
    if (walk->found_at < walk->found.size) {
        host_player_act_on_found(server, walk);
        return true;
    }
    if (walk->has_missed) {
        host_player_rewind_walk(walk);
    }
    if (walk->database < walk->end_database) {
        host_player_pass(walk);
        return true;
    }
    return false;
}

bool player_pass_begin(struct server *server, struct player_walk *walk) {
    struct player_place *place = memory_allocate(sizeof *place);
    if (place == NULL) {
        return false;
    }
    *place = (struct player_place){.walk = walk, .next = places, .cursor = host_ScanCursorCreate()};
    places = place;
    walk->place = place;
    walk->registry = server->registry;
    walk->listener = (struct effect_listener){.receive = host_player_receive, .context = walk};
    effect_listener_add(server->registry, &walk->listener);
    return true;
}

static void host_player_remove_place(struct player_place *place) {
    struct player_place **link = &places;
    uint32_t work;
    while (*link != place) {
        link = &(*link)->next;
    }
    *link = place->next;
    host_ScanCursorDestroy(place->cursor);
    do {
        work = UINT32_MAX;
    } while (!hash_free_step(&place->seen, &work));
    memory_free(place);
}

void player_pass_end(struct player_walk *walk) {
    if (walk->place != NULL) {
        effect_listener_remove(walk->registry, &walk->listener);
        host_player_remove_place(walk->place);
        walk->place = NULL;
    }
}
