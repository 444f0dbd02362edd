/* LB.SETTLE: whoever has paid the rewards of an archive notes it there, once.
 *
 *     LB.SETTLE weekly@2026-11-16     1: settled now     0: it was before, or there is no such key
 *
 * Archives are unsettled from their first moment on. With SETTLE YES they have no expiry until then, and get now the one
 * that ARCHIVE, or EX of LB.ROLL, has given them; if that is past, they go at once. */
#include "server/clients/notify.h"
#include "server/commands/lb/lb.h"
#include "skiplist/keyspace/board_options.h"

static void lb_settle_run(struct call *call) {
    struct registry_key *key;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_BOARD, &key)) {
        return;
    }
    if (key == NULL || registry_state(key)->is_settled) {
        reply_integer(call->reply, 0);
        return;
    }
    if (!registry_options(key)->is_archive) {
        reply_error(call->reply,
                    "ERR board is no archive: it has nothing to settle until its PERIOD "
                    "ends, or LB.ROLL ends it");
        return;
    }
    if (registry_roll_settle_archive(call->registry, key, call->now_ms) != REGISTRY_OK) {
        call_out_of_memory(call);
        return;
    }
    if (call->server->settings.notify_board_events) {
        notify_board_settled(call->server, call->session->database, call_arg(call, 1));
    }
    reply_integer(call->reply, 1);
}

const struct command command_lb_settle = {
    .name = "LB.SETTLE",
    .syntax = "archive:key",
    .reply = "b",
    .summary = "Note that what an archive decides is done, such as rewards: 1 the first time",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW update",
    .run = lb_settle_run,
};
