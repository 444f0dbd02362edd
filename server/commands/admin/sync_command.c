/* LB.SYNC: a replica asks for the groups of effects from here on. See server/replication/feed.h. */
#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"

static void sync_run(struct call *call) {
    const struct request *request = call->request;
    const struct replication_machine *machine = &call->server->replication.machine;
    bool wants_failover = request->count == 4;
    uint64_t group;
    if (machine->sync == NULL || call->session == NULL) {
        (void)call_refuse(call, "ERR this server runs without a disk: it has no replicas");
        return;
    }
    if (!bytes_parse_u64(request->args[2], &group)) {
        (void)call_refuse(call, "ERR value is not an integer or out of range");
        return;
    }
    if (wants_failover && !bytes_equal_ignoring_case(request->args[3], BYTES("FAILOVER"))) {
        (void)call_syntax_error(call);
        return;
    }
    struct replica *replica = replication_get_replica(call->server, call->session);
    if (replica == NULL) {
        (void)call_out_of_memory(call);
        return;
    }
    machine->sync(machine->context, replica, request->args[1], group, wants_failover, call->reply);
}

const struct command command_lb_sync = {
    .name = "LB.SYNC",
    .syntax = "replication-id group:integer [FAILOVER]",
    .summary = "Sent by replicas: all groups of effects from this one on, or a full copy",
    .complexity = "O(1), and O(n) in what is sent, in steps between other commands",
    .flags = COMMAND_ADMIN | COMMAND_NO_MULTI | COMMAND_NO_BOARDS,
    .run = sync_run,
};
