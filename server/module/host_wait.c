/* Waiting for keys, in the place of server/clients/wait.c. See host_wait.h. */
#include "server/module/host_wait.h"

#include "server/module/host_run.h"

/* The handler's names are arguments of its request. */
bool wait_begin(struct waits *waits, struct session *session, uint32_t database,
                const struct bytes *names, uint32_t name_count, int64_t due_ms) {
    struct host_stage *stage = host_run_stage();
    (void)waits;
    (void)session;
    (void)database;
    CHECK(stage != NULL);
    module.wait.is_asked = true;
    module.wait.names = names;
    module.wait.key_count = name_count;
    module.wait.due_ms = due_ms;
    return true;
}

static int host_wait_give_up(struct host_context *ctx, struct host_string **argv, int argc) {
    (void)argv;
    (void)argc;
    return host_ReplyWithNullArray(ctx);
}

static void host_wait_end(struct host_context *ctx, void *context) {
    (void)ctx;
    (void)context;
    module.waiting_count--;
}

int host_wait(struct host_context *ctx, struct host_string **argv) {
    static char unused;
    int64_t timeout_ms = 0; /* for ever */
    if (module.wait.due_ms != REGISTRY_NO_EXPIRY) {
        timeout_ms = module.wait.due_ms - module.server.clock.monotonic_ms;
        timeout_ms = timeout_ms > 0 ? timeout_ms : 1;
    }
    module.waiting_count++;
    if (host_BlockClientOnKeys(ctx, host_run_again, host_wait_give_up, host_wait_end, timeout_ms,
                               argv + module.wait.first_key, (int)module.wait.key_count,
                               &unused) == NULL) {
        module.waiting_count--;
    }
    return HOST_OK;
}
