/* REPLICAOF SLAVEOF ROLE: whose replica this server is. FAILOVER: hand over to a replica
 * (server/replication/failover.h). */
#include "server/dispatch/syntax.h"
#include "server/replication/failover.h"
#include "server/replication/replication.h"

/* ---- REPLICAOF SLAVEOF ---- */

static bool replicaof_read_master(const struct call *call, uint16_t *port) {
    int64_t number;
    if (!bytes_parse_i64(call_arg(call, 2), &number) || number < 1 || number > 65535) {
        return call_refuse(call, "ERR Invalid master port");
    }
    if (!setting_value_is_host(call_arg(call, 1))) {
        return call_refuse(call, "ERR Invalid master host: an address or a host's name is wanted");
    }
    *port = (uint16_t)number;
    return true;
}

static void replicaof_follow(const struct call *call) {
    struct server *server = call->server;
    uint16_t port;
    if (session_is_replica(call->session)) {
        reply_error(call->reply, "ERR Command is not valid when client is a replica.");
        return;
    }
    if (!replicaof_read_master(call, &port)) {
        return;
    }
    if (replication_is_following(&server->replication, call_arg(call, 1), port)) {
        reply_simple(call->reply, "OK Already connected to specified master");
    } else if (replication_follow(server, call_arg(call, 1), port)) {
        reply_ok(call->reply);
    } else {
        call_out_of_memory(call);
    }
}

static void replicaof_run(struct call *call) {
    if (call->server->replication.failover.state != REPLICATION_FAILOVER_NONE) {
        reply_error(call->reply, "ERR REPLICAOF not allowed while failing over.");
    } else if (call_arg_is(call, 1, "NO") && call_arg_is(call, 2, "ONE")) {
        if (!failover_ask(call->server, call->session)) {
            replication_promote(call->server);
        }
        reply_ok(call->reply);
    } else {
        replicaof_follow(call);
    }
}

#define REPLICAOF_SYNTAX "args=<host-port=(host port:integer) | no-one=(NO ONE)>"

const struct command command_replicaof = {
    .name = "REPLICAOF",
    .syntax = REPLICAOF_SYNTAX,
    .reply = "<OK|OK Already connected to specified master>",
    .summary = "Be a replica of that server; with NO ONE, a master that keeps what it has",
    .flags = COMMAND_ADMIN | COMMAND_STALE | COMMAND_NO_BOARDS,
    .audit = AUDIT_ROLE,
    .run = replicaof_run,
};

const struct command command_slaveof = {
    .name = "SLAVEOF",
    .syntax = REPLICAOF_SYNTAX,
    .reply = "<OK|OK Already connected to specified master>",
    .summary = "The same as REPLICAOF, by the name that Sentinel uses",
    .flags = COMMAND_ADMIN | COMMAND_STALE | COMMAND_NO_BOARDS,
    .audit = AUDIT_ROLE,
    .run = replicaof_run,
};

/* ---- ROLE ---- */

static void replicaof_reply_number_as_text(struct reply *reply, uint64_t number) {
    char text[24];
    reply_bulk(reply, (struct bytes){.at = text, .size = bytes_print_u64(text, number)});
}

static void replicaof_reply_replicas(struct reply *reply, const struct replication *replication) {
    size_t mark = reply_array_begin(reply);
    uint64_t count = 0;
    for (const struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        if (replica->state != REPLICA_ONLINE) {
            continue;
        }
        char address[REPLICATION_HOST_MAX + 1];
        replication_print_address(replica, address);
        reply_array(reply, 3);
        reply_bulk_text(reply, address);
        replicaof_reply_number_as_text(reply, replica->port);
        replicaof_reply_number_as_text(reply, replica->ack_group);
        count++;
    }
    reply_array_end(reply, mark, count);
}

static void role_run(struct call *call) {
    struct reply *reply = call->reply;
    const struct replication *replication = &call->server->replication;
    if (replication_is_replica(replication)) {
        reply_array(reply, 5);
        reply_bulk_text(reply, "slave");
        reply_bulk_text(reply, replication->master_host);
        reply_integer(reply, replication->master_port);
        reply_bulk_text(reply, replication_link_name(replication->link));
        reply_integer(reply, replication_is_up(replication) ? (int64_t)replication->group : -1);
        return;
    }
    reply_array(reply, 3);
    reply_bulk_text(reply, "master");
    reply_integer(reply, (int64_t)replication->group);
    replicaof_reply_replicas(reply, replication);
}

const struct command command_role = {
    .name = "ROLE",
    .reply = "[role:<master> group:i replicas:[[address:s port:s group:s]]]|[role:<slave> "
             "address:s port:i link:s group:i]",
    .summary = "Whether this is a master, with its replicas, or a replica, and how far it is",
    .complexity = "O(n) in the replicas",
    .flags = COMMAND_FAST | COMMAND_LOADING,
    .run = role_run,
};

/* ---- FAILOVER ---- */

static bool replicaof_read_target(const struct call *call, uint32_t index, void *target) {
    struct failover_options *options = target;
    options->host = call_arg(call, index);
    return call_parse_integer(call, call_arg(call, index + 1), &options->port);
}

static bool replicaof_check_timeout(const struct call *call, uint32_t index, void *target) {
    (void)index;
    return ((struct failover_options *)target)->timeout_ms > 0 ||
           call_refuse(call, "ERR FAILOVER timeout must be greater than 0");
}

/* ABORT is alone, and then nothing is read. */
static bool replicaof_refuse_abort(const struct call *call, uint32_t index, void *target) {
    (void)index;
    (void)target;
    return call_syntax_error(call);
}

static const struct binding failover_bindings[] = {
    {"TO", .repeat = BINDING_ONCE, .read = replicaof_read_target},
    {BIND("FORCE", struct failover_options, is_forced), .repeat = BINDING_ONCE},
    {BIND("TIMEOUT", struct failover_options, timeout_ms), .repeat = BINDING_ONCE,
     .read = replicaof_check_timeout},
    {"ABORT", .read = replicaof_refuse_abort},
    {0},
};

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
    if (!syntax_read(call, &options)) {
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
    .bindings = failover_bindings,
    .reply = "<OK>",
    .summary = "Hand over to a replica, without losing a write: writes wait until it has them all",
    .flags = COMMAND_ADMIN | COMMAND_STALE | COMMAND_NO_BOARDS,
    .audit = AUDIT_ROLE,
    .run = failover_run,
};
