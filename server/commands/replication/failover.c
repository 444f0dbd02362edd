/* FAILOVER: hand over to a replica. See server/replication/failover.h. */
#include "server/replication/failover.h"
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

/* TIMEOUT milliseconds */
static bool failover_read_timeout(const struct call *call, uint32_t index,
                                  struct failover_options *options) {
    return call_parse_integer(call, call_arg(call, index), &options->timeout_ms) &&
           (options->timeout_ms > 0 ||
            call_refuse(call, "ERR FAILOVER timeout must be greater than 0"));
}

/* In any order, as in Redis: TO host port, FORCE, TIMEOUT milliseconds. */
static bool failover_read_options(const struct call *call, struct failover_options *options) {
    uint32_t count = call->request->count;
    for (uint32_t i = 1; i < count; i++) {
        if (call_arg_is(call, i, "TIMEOUT") && i + 1 < count && options->timeout_ms == 0) {
            if (!failover_read_timeout(call, ++i, options)) {
                return false;
            }
        } else if (call_arg_is(call, i, "TO") && i + 2 < count && options->host.at == NULL) {
            options->host = call_arg(call, i + 1);
            if (!call_parse_integer(call, call_arg(call, i + 2), &options->port)) {
                return false;
            }
            i += 2;
        } else if (call_arg_is(call, i, "FORCE") && !options->is_forced) {
            options->is_forced = true;
        } else {
            return call_syntax_error(call);
        }
    }
    return true;
}

static void failover_run(struct call *call) {
    struct failover_options options = {.timeout_ms = 0};
    if (call->request->count == 2 && call_arg_is(call, 1, "ABORT")) {
        if (failover_abort(call->server, "as asked")) {
            reply_ok(call->reply);
        } else {
            reply_error(call->reply, "ERR No failover in progress.");
        }
        return;
    }
    if (!failover_read_options(call, &options)) {
        return;
    }
    const char *why = failover_begin(call->server, call->session, &options);
    if (why != NULL) {
        reply_error(call->reply, why);
    } else {
        reply_ok(call->reply);
    }
}

const struct command command_failover = {
    .name = "FAILOVER",
    .syntax = "target=[TO host port:integer [FORCE]] [ABORT] [TIMEOUT milliseconds:integer]",
    .summary = "Hand over to a replica, without losing a write: writes wait until it has them all",
    .flags = COMMAND_ADMIN | COMMAND_STALE | COMMAND_NO_BOARDS,
    .audit = AUDIT_ROLE,
    .run = failover_run,
};
