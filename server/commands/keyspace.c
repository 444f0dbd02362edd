/* The registry's keys. See keyspace.h. */
#include "server/commands/keyspace.h"

/* The cursor of a scan that has not begun; 0 would mean that it is complete. All others are
 * smaller. */
#define CURSOR_BEGIN (UINT64_C(1) << 33)

uint64_t keyspace_scan(const struct call *call, uint64_t cursor, const struct scan_limits *limits,
                       registry_visit *visit, void *context) {
    if (!registry_roll_some(call->registry, call->now_ms)) {
        return cursor != 0 ? cursor : CURSOR_BEGIN;
    }
    return registry_walk_scan(call->registry, call->session->database,
                              cursor != CURSOR_BEGIN ? cursor : 0, limits, call->now_ms, visit,
                              context);
}

bool keyspace_open(const struct call *call, struct bytes name) {
    (void)call;
    (void)name;
    return true;
}

const struct board_options *
keyspace_peek_options(const struct call *call, const struct registry_key *key, struct bytes name) {
    const struct registry_key *found =
        registry_peek(call->registry, key->database, name, call->now_ms);
    return found != NULL && found->kind == REGISTRY_BOARD ? registry_options(found) : NULL;
}

const struct board *keyspace_find_board(const struct call *call, struct bytes name) {
    return call_board(call_find_key(call, name));
}

void keyspace_remove_hash(struct server *server, uint32_t database, struct bytes name) {
    struct registry_key *key =
        registry_find(server->registry, database, name, server->clock.now_ms);
    if (key != NULL && key->kind == REGISTRY_HASH) {
        notify(server, SETTING_EVENT_GENERIC, "del", database, name);
        registry_remove(server->registry, key);
    }
}

uint32_t keyspace_number(uint32_t database) {
    return database;
}

uint32_t keyspace_database_count(void) {
    return REGISTRY_DATABASES;
}
