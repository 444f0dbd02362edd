/* The host's keys, in the place of server/commands/keyspace.c. */
#include "server/commands/keyspace.h"

#include <stdio.h>

#include "server/module/host_run.h"
#include "server/rdb/rdb_board.h"

/* ---- scanning ---- */

static struct bytes host_keyspace_string_of(struct host_call_reply *reply) {
    size_t size = 0;
    const char *at = host_CallReplyStringPtr(reply, &size);
    return (struct bytes){.at = at, .size = at != NULL ? size : 0};
}

/* Put the board on stage, and look it up: what is due rolls over. */
static bool host_keyspace_visit_board(const struct call *call, struct bytes name,
                                      registry_visit *visit, void *context) {
    if (!host_stage_key_of(host_run_stage(), name)) {
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
        bytes_parse_u64(host_keyspace_string_of(host_CallReplyArrayElement(reply, 0)), &next);
    for (size_t i = 0; is_complete && i < host_CallReplyLength(names); i++) {
        is_complete = host_keyspace_visit_board(
            call, host_keyspace_string_of(host_CallReplyArrayElement(names, i)), visit, context);
    }
    if (reply != NULL) {
        host_FreeCallReply(reply);
    }
    return is_complete ? next : cursor;
}

/* ---- single keys ---- */

bool keyspace_has_board(const struct call *call, const struct registry_key *key,
                        struct bytes name) {
    if (registry_peek(call->registry, key->database, name, call->now_ms) != NULL) {
        return true; /* it has come to be just now */
    }
    struct host_string *text = host_CreateString(module.context, name.at, name.size);
    struct host_key *opened = host_OpenKey(module.context, text, HOST_READ);
    bool is_board = opened != NULL && host_value_of(opened) != NULL;
    if (opened != NULL) {
        host_CloseKey(opened);
    }
    host_FreeString(module.context, text);
    return is_board;
}

/* In a cluster the key may be another node's: then the host refuses, and that node removes it. */
void keyspace_remove_hash(struct server *server, uint32_t database, struct bytes name) {
    (void)server;
    if (host_SelectDb(module.context, (int)database) != HOST_OK) {
        return;
    }
    struct host_string *text = host_CreateString(module.context, name.at, name.size);
    struct host_key *opened = host_OpenKey(module.context, text, HOST_READ);
    bool is_hash = opened != NULL && host_KeyType(opened) == HOST_KEY_HASH;
    if (opened != NULL) {
        host_CloseKey(opened);
    }
    struct host_call_reply *reply =
        is_hash ? host_Call(module.context, "UNLINK", "!s", text) : NULL;
    if (reply != NULL) {
        host_FreeCallReply(reply);
    }
    host_FreeString(module.context, text);
}

uint32_t keyspace_number(uint32_t database) {
    (void)database; /* on stage everything is in database 0 */
    return module.database;
}

uint32_t keyspace_database_count(void) {
    return module.database_count;
}
