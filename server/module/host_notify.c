/* Events of keys, as handlers report them, in the place of server/clients/notify.c. */
#include "server/module/host_notify.h"

#include "server/clients/notify.h"
#include "server/module/host_run.h"

enum { PENDING_MAX = 64 };

static struct {
    const char *event; /* static text */
    struct host_string *name;
} pending[PENDING_MAX];
static uint32_t pending_count;

static int host_notify_class_of(const char *event) {
    if (strcmp(event, "new") == 0) {
        return HOST_NOTIFY_NEW;
    }
    return event[0] == 'z' ? HOST_NOTIFY_ZSET : HOST_NOTIFY_GENERIC;
}

void notify_send(struct server *server, const char *event, uint32_t database, struct bytes name) {
    struct host_stage *stage = host_run_stage();
    (void)server;
    (void)database;
    if (stage != NULL && pending_count < PENDING_MAX) {
        pending[pending_count].event = event;
        pending[pending_count++].name = host_CreateString(stage->ctx, name.at, name.size);
    }
}

void notify_board_rolled(struct server *server, uint32_t database, struct bytes name,
                         const struct bytes archive[2]) {
    (void)archive;
    notify_send(server, "rolled", database, name);
}

void host_notify_flush(struct host_context *ctx) {
    for (uint32_t i = 0; i < pending_count; i++) {
        host_NotifyKeyspaceEvent(ctx, host_notify_class_of(pending[i].event), pending[i].event,
                                 pending[i].name);
        host_FreeString(ctx, pending[i].name);
    }
    pending_count = 0;
}
