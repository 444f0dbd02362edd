/* MONITOR. clients/monitor.h writes the lines. */
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

static void monitor_run(struct call *call) {
    if (call->session->transaction.is_running) {
        reply_error(call->reply, "ERR MONITOR isn't allowed for DENY BLOCKING client");
        return;
    }
    server_set_monitor(call->server, call->session, true);
    reply_ok(call->reply);
}

const struct command command_monitor = {
    .name = "MONITOR",
    .summary = "Stream every command that the server runs from now on",
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = monitor_run,
};
