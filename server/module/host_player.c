/* The pass over the boards of the host, in the place of server/commands/lb/board_task_pass.c.
 *
 * The host's scan has the guarantee of SCAN: a key that is there all the time is visited, perhaps
 * twice. What gets another name meanwhile is noted, from our effects and the host's events, and looked
 * at again; so LB.WHERE remembers which names it has replied. An index of boards would be faster, but the
 * host renames and exchanges keys without telling the module. */
#include "server/commands/lb/board_task.h"
#include "server/module/host_run.h"
#include "skiplist/keyspace/hash.h"

enum { PASS_COUNT = 32 /* buckets of the host's table passed in a step */ };

struct board_task_place {
    struct board_task *task;
    struct board_task_place *next;
    uint32_t database; /* where the scan is */
    struct host_scan_cursor *cursor;
    struct hash seen; /* database and name; if it reads */
};

static struct board_task_place *places;

/* ---- boards that have the member ---- */

static void host_player_find_board(struct board_task *task, const struct registry_key *key,
                                   struct bytes name, uint32_t database) {
    uint64_t packed_key;
    const uint32_t head[] = {database, (uint32_t)name.size};
    if (database < task->first_database || database >= task->end_database ||
        (task->glob != NULL && !glob_takes(task->glob, name)) ||
        !board_find(&key->board, task->member, &packed_key)) {
        return;
    }
    char *at = buffer_reserve(&task->found, sizeof head + name.size);
    if (at == NULL) {
        task->has_missed = true;
        return;
    }
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, name.at, name.size);
    buffer_commit(&task->found, sizeof head + name.size);
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
    for (struct board_task_place *place = places; place != NULL; place = place->next) {
        host_player_find_board(place->task, value->key, name, database);
    }
}

/* ---- acting ---- */

struct acting {
    struct server *server;
    struct board_task *task;
    struct bytes name;
};

static void host_player_act(void *context) {
    const struct acting *acting = context;
    struct server *server = acting->server;
    uint64_t packed_key;
    struct registry_key *key =
        registry_find(server->registry, 0, acting->name, server->clock.now_ms);
    if (key != NULL && key->kind == REGISTRY_BOARD &&
        board_find(&key->board, acting->task->member, &packed_key)) {
        acting->task->action->act(server, acting->task, key);
    }
}

/* Has it been replied? Without memory to remember it, it is replied again. */
static bool host_player_was_seen(struct board_task *task, struct bytes entry) {
    const struct bytes args[] = {entry, BYTES("")};
    uint32_t added_count = 1;
    return !task->action->writes &&
           hash_put(&task->place->seen, module.server.hash_seed, args, 1, &added_count) ==
               HASH_OK &&
           added_count == 0;
}

/* The names may move in memory as soon as something changes. */
static void host_player_act_on_found(struct server *server, struct board_task *task) {
    uint32_t head[2]; /* database, size of the name */
    const char *at = task->found.at + task->found_at;
    memcpy(head, at, sizeof head);
    task->found_at += sizeof head + head[1];
    if (host_player_was_seen(task, (struct bytes){.at = at, .size = sizeof head + head[1]}) ||
        host_SelectDb(module.context, (int)head[0]) != HOST_OK) {
        return;
    }
    struct host_string *name = host_CreateString(module.context, at + sizeof head, head[1]);
    struct acting acting = {.server = server, .task = task, .name = host_bytes(name)};
    task->has_missed |=
        !host_run_on(module.context, name, task->action->writes, host_player_act, &acting);
    host_FreeString(module.context, name);
}

/* ---- the pass ---- */

static void host_player_rewind_walk(struct board_task *task) {
    task->place->database = task->first_database;
    task->has_missed = false;
    host_ScanCursorRestart(task->place->cursor);
}

void host_player_rewind(void) {
    for (struct board_task_place *place = places; place != NULL; place = place->next) {
        host_player_rewind_walk(place->task);
    }
}

static void host_player_look_at(struct host_context *ctx, struct host_string *name,
                                struct host_key *key, void *context) {
    struct board_task *task = context;
    struct host_key *opened = key == NULL ? host_OpenKey(ctx, name, HOST_READ) : NULL;
    if (key != NULL || opened != NULL) {
        const struct host_value *value = host_value_of_board(key != NULL ? key : opened);
        if (value != NULL) {
            host_player_find_board(task, value->key, host_bytes(name), task->place->database);
        }
    }
    host_close(opened);
}

static void host_player_pass(struct board_task *task) {
    bool has_more = true;
    buffer_clear(&task->found);
    task->found_at = 0;
    CHECK(host_SelectDb(module.context, (int)task->place->database) == HOST_OK);
    for (uint32_t i = 0; i < PASS_COUNT && has_more; i++) {
        has_more = host_Scan(module.context, task->place->cursor, host_player_look_at, task) != 0;
    }
    if (!has_more) {
        task->place->database++;
        host_ScanCursorRestart(task->place->cursor);
    }
}

bool board_task_pass_step(struct server *server, struct board_task *task) {
    if (task->found_at < task->found.size) {
        host_player_act_on_found(server, task);
        return true;
    }
    if (task->has_missed) {
        host_player_rewind_walk(task);
    }
    if (task->place->database < task->end_database) {
        host_player_pass(task);
        return true;
    }
    return false;
}

bool board_task_pass_begin(struct server *server, struct board_task *task) {
    struct board_task_place *place = memory_allocate(sizeof *place);
    if (place == NULL) {
        return false;
    }
    *place = (struct board_task_place){.task = task,
                                       .next = places,
                                       .database = task->first_database,
                                       .cursor = host_ScanCursorCreate()};
    places = place;
    task->place = place;
    task->registry = server->registry;
    task->listener = (struct effect_listener){.receive = host_player_receive, .context = task};
    effect_listener_add(server->registry, &task->listener);
    return true;
}

static void host_player_remove_place(struct board_task_place *place) {
    struct board_task_place **link = &places;
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

void board_task_pass_end(struct board_task *task) {
    if (task->place != NULL) {
        effect_listener_remove(task->registry, &task->listener);
        host_player_remove_place(task->place);
        task->place = NULL;
    }
}
