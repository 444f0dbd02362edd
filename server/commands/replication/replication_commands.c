/* REPLICAOF SLAVEOF ROLE: whose replica this server is. FAILOVER: hand over to a replica
 * (server/replication/replication.h). WAIT: until replicas have what this client has written. REPLCONF: what a replica
 * tells its master about itself. LB.SYNC: a replica asks for the groups of effects from a number on. PSYNC, SYNC: a
 * Redis asks for a copy, and for the commands after it (server/replication/feed.h). */
#include <stdio.h>

#include "server/dispatch/syntax.h"
#include "server/durability/file_format.h"
#include "server/replication/replication.h"

/* ---- REPLICAOF SLAVEOF ---- */

static void replication_commands_follow(const struct call *call) {
    struct server *server = call->server;
    int64_t number;
    if (session_is_replica(call->session)) {
        reply_error(call->reply, "ERR Command is not valid when client is a replica.");
        return;
    }
    if (!bytes_parse_i64(call_arg(call, 2), &number) || number < 1 || number > 65535) {
        reply_error(call->reply, "ERR Invalid master port");
        return;
    }
    if (!setting_value_is_host(call_arg(call, 1))) {
        reply_error(call->reply, "ERR Invalid master host: an address or a host's name is wanted");
        return;
    }
    uint16_t port = (uint16_t)number;
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
        if (!replication_failover_ask(call->server, call->session)) {
            replication_promote(call->server);
        }
        reply_ok(call->reply);
    } else {
        replication_commands_follow(call);
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

static void replication_commands_reply_number_as_text(struct reply *reply, uint64_t number) {
    char text[24];
    reply_bulk(reply, (struct bytes){.at = text, .size = bytes_print_u64(text, number)});
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
        replication_commands_reply_number_as_text(reply, replica->port);
        replication_commands_reply_number_as_text(reply, replica->ack_group);
        count++;
    }
    reply_array_end(reply, mark, count);
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

static bool replication_commands_read_target(const struct call *call, uint32_t index,
                                             void *target) {
    struct failover_options *options = target;
    options->host = call_arg(call, index);
    return call_parse_integer(call, call_arg(call, index + 1), &options->port);
}

static bool replication_commands_check_timeout(const struct call *call, uint32_t index,
                                               void *target) {
    (void)index;
    return ((struct failover_options *)target)->timeout_ms > 0 ||
           call_refuse(call, "ERR FAILOVER timeout must be greater than 0");
}

/* ABORT is alone, and then nothing is read. */
static bool replication_commands_refuse_abort(const struct call *call, uint32_t index,
                                              void *target) {
    (void)index;
    (void)target;
    return call_syntax_error(call);
}

static const struct binding failover_bindings[] = {
    {"TO", .repeat = BINDING_ONCE, .read = replication_commands_read_target},
    {BIND("FORCE", struct failover_options, is_forced), .repeat = BINDING_ONCE},
    {BIND("TIMEOUT", struct failover_options, timeout_ms), .repeat = BINDING_ONCE,
     .read = replication_commands_check_timeout},
    {"ABORT", .read = replication_commands_refuse_abort},
    {0},
};

static void failover_run(struct call *call) {
    struct failover_options options = {.timeout_ms = 0};
    if (call->request->count == 2 && call_arg_is(call, 1, "ABORT")) {
        if (replication_failover_abort(call->server, "as asked")) {
            reply_ok(call->reply);
        } else {
            reply_error(call->reply, "ERR No failover in progress.");
        }
        return;
    }
    if (!syntax_read(call, &options)) {
        return;
    }
    const char *why = replication_failover_begin(call->server, call->session, &options);
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

/* ---- WAIT ---- */

static void wait_run(struct call *call) {
    struct server *server = call->server;
    struct session *session = call->session;
    int64_t count;
    if (replication_is_replica(&server->replication)) {
        reply_error(
            call->reply,
            "ERR WAIT cannot be used with replica instances. Please also note that since "
            "Redis 4.0 if a replica is configured to be writable (which is not the default) "
            "writes to replicas are just local and are not propagated.");
        return;
    }
    if (!call_parse_integer(call, call_arg(call, 1), &count)) {
        return;
    }
    int64_t timeout_ms;
    if (!bytes_parse_i64(call_arg(call, 2), &timeout_ms)) {
        reply_error(call->reply, "ERR timeout is not an integer or out of range");
        return;
    }
    if (timeout_ms < 0) {
        reply_error(call->reply, "ERR timeout is negative");
        return;
    }
    int64_t due_ms = REGISTRY_NO_EXPIRY;
    if (timeout_ms > 0 && __builtin_add_overflow(server->clock.monotonic_ms, timeout_ms, &due_ms)) {
        reply_error(call->reply, "ERR timeout is out of range");
        return;
    }
    /* Whether anybody has what it wrote before the history changed is not known. */
    bool is_known =
        session->changed_group == 0 || session->changed_epoch == server->replication.epoch;
    uint32_t acked =
        is_known ? replication_count_acked(&server->replication, session->changed_group) : 0;
    if (acked >= count || !is_known || session->transaction.is_running) {
        reply_integer(call->reply, acked);
        return;
    }
    session->wait.command = call->command;
    session->wait.is_silent = call->reply->is_silent;
    if (!wait_begin_replicas(&server->waits, session, session->changed_group, count, due_ms)) {
        call_out_of_memory(call);
        return;
    }
    server->has_news = true;
    replicator_ask_acks(server->replication.replicator);
}

const struct command command_wait = {
    .name = "WAIT",
    .syntax = "numreplicas:integer timeout:integer",
    .reply = "i",
    .summary = "Wait until so many replicas have in memory what this connection has written, or "
               "for so many milliseconds; how many have it",
    .complexity = "O(n) in the replicas",
    .flags = COMMAND_NO_BOARDS,
    .run = wait_run,
};

/* ---- REPLCONF ---- */

struct told {
    struct bytes ip;        /* at NULL: not told */
    int64_t port;           /* -1: not told */
    int64_t format;         /* 0: not told */
    int64_t is_copy_enough; /* -1: not told */
};

/* false: the error was replied. */
static bool replication_commands_read_pair(const struct call *call, uint32_t index,
                                           struct told *told) {
    struct bytes name = call_arg(call, index);
    struct bytes value = call_arg(call, index + 1);
    if (bytes_is(name, "LISTENING-PORT")) {
        return call_parse_integer(call, value, &told->port) &&
               ((told->port >= 0 && told->port <= 65535) ||
                call_refuse(call, "ERR value is out of range, value must between 0 and 65535"));
    }
    if (bytes_is(name, "IP-ADDRESS")) {
        /* It ends up in INFO, and in what Sentinel tells clients. */
        if (value.size > REPLICATION_HOST_MAX) {
            return call_refuse_format(
                call, "ERR REPLCONF ip-address provided by replica instance is too long: %zu bytes",
                value.size);
        }
        told->ip = value;
        return value.size == 0 || setting_value_is_host(value) ||
               call_refuse(call, "ERR REPLCONF ip-address must be an address or a host's name");
    }
    if (bytes_is(name, "LEADERBOARD")) {
        return call_parse_integer(call, value, &told->format) &&
               (told->format == FILE_FORMAT ||
                call_refuse_format(call, FILE_FORMAT_REFUSAL "%lld, this server's %d: %s",
                                   (long long)told->format, (int)FILE_FORMAT, FILE_FORMAT_ADVICE));
    }
    if (bytes_is(name, "CAPA") || bytes_is(name, "VERSION")) {
        return true; /* of no use here */
    }
    if (bytes_is(name, "RDB-ONLY")) {
        return (call_parse_integer(call, value, &told->is_copy_enough) &&
                (told->is_copy_enough == 0 || told->is_copy_enough == 1)) ||
               call_refuse(call, "ERR REPLCONF rdb-only is 0 or 1");
    }
    if (bytes_is(name, "RDB-FILTER-ONLY")) {
        return value.size == 0 ||
               call_refuse(call,
                           "ERR REPLCONF rdb-filter-only is not supported: all keys are sent");
    }
    return call_refuse_format(call, "ERR Unrecognized REPLCONF option: %.*s",
                              (int)(name.size < 128 ? name.size : 128), name.at);
}

/* ACK group [FSYNC group [PROBE number group]]: of a replica, which gets no reply. ACK bytes ...: of a Redis. Others are
 * ignored, as in Redis. What is behind FSYNC counts for nothing. */
static void replication_commands_take_ack(const struct call *call) {
    uint64_t group, probe, acked;
    uint32_t count = call->request->count;
    struct replica *replica = call->session->replica;
    struct replicator *replicator = call->server->replication.replicator;
    if (!session_is_replica(call->session) || count < 3 ||
        !bytes_parse_u64(call_arg(call, 2), &group)) {
        return;
    }
    if (replica->is_redis) {
        replicator_acknowledge_bytes(replicator, replica, group);
        return;
    }
    replication_take_ack(call->server, replica, group);
    if (count >= 8 && call_arg_is(call, 5, "PROBE") && bytes_parse_u64(call_arg(call, 6), &probe) &&
        bytes_parse_u64(call_arg(call, 7), &acked)) {
        replicator_acknowledge(replicator, replica, acked, probe);
    }
}

/* PRESENT node voted id group lost (server/replication/quorum.h) */
static void replication_commands_take_registration(const struct call *call) {
    struct sync_registration said;
    uint64_t lost;
    enum { COUNT = 7 };
    if (call->request->count != COUNT || !term_parse_node(call_arg(call, 2), &said.node) ||
        said.node == 0 || !term_parse(call_arg(call, 3), &said.voted) ||
        !term_parse(call_arg(call, 4), &said.position.term) ||
        !bytes_parse_u64(call_arg(call, 5), &said.position.group) ||
        !bytes_parse_u64(call_arg(call, 6), &lost) || lost > 2) {
        call_syntax_error(call);
        return;
    }
    said.has_lost_durability = lost != 0;
    said.is_released = lost == 2;
    struct replica *replica = replication_get_replica(call->session);
    if (replica == NULL) {
        (void)call_out_of_memory(call);
    } else if (session_is_replica(call->session)) {
        reply_error(call->reply, "ERR PRESENT is not for here");
    } else {
        replicator_register(call->server->replication.replicator, replica, &said, call->reply);
    }
}

static void replconf_run(struct call *call) {
    struct told told = {.port = -1, .is_copy_enough = -1};
    uint32_t count = call->request->count;
    bool is_ack = count > 1 && call_arg_is(call, 1, "ACK");
    if (is_ack || (count > 1 && call_arg_is(call, 1, "GETACK"))) {
        if (is_ack) {
            replication_commands_take_ack(call);
        }
        if (call->session->transaction.is_running) {
            reply_ok(call->reply);
        }
        return;
    }
    if (count > 1 && call_arg_is(call, 1, "PRESENT")) {
        replication_commands_take_registration(call);
        return;
    }
    if (count == 2 && call_arg_is(call, 1, "HANDOVER") && session_is_replica(call->session)) {
        replication_failover_take_order(call->server,
                                        call->session->replica); /* it gets no reply */
        return;
    }
    if (count % 2 == 0) {
        call_syntax_error(call);
        return;
    }
    for (uint32_t i = 1; i < count; i += 2) {
        if (!replication_commands_read_pair(call, i, &told)) {
            return;
        }
    }
    if (count > 1) {
        struct replica *replica = replication_get_replica(call->session);
        if (replica == NULL) {
            call_out_of_memory(call);
            return;
        }
        if (told.ip.at != NULL) {
            memcpy(replica->ip, told.ip.at, told.ip.size);
            replica->ip[told.ip.size] = '\0';
        }
        if (told.port >= 0) {
            replica->port = (uint16_t)told.port;
        }
        if (told.is_copy_enough >= 0) {
            replica->is_copy_enough = told.is_copy_enough == 1;
        }
    }
    if (told.format > 0) {
        char text[32];
        snprintf(text, sizeof text, "LEADERBOARD %d", (int)FILE_FORMAT);
        reply_simple(call->reply, text);
    } else {
        reply_ok(call->reply);
    }
}

const struct command command_replconf = {
    .name = "REPLCONF",
    .syntax = "[option value...]",
    .reply = "s",
    .summary = "What replicas tell their master: where they are reached, what they understand, how "
               "far they are",
    .arity = -1,
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = replconf_run,
};

/* ---- LB.SYNC PSYNC SYNC ---- */

static void replication_commands_ask(const struct call *call, const struct replication_wish *wish) {
    struct replica *replica = replication_get_replica(call->session);
    if (replica == NULL) {
        (void)call_out_of_memory(call);
    } else {
        replicator_sync(call->server->replication.replicator, replica, wish, call->reply);
    }
}

static bool replication_commands_read_group(const struct call *call, uint32_t index, void *target) {
    return bytes_parse_u64(call_arg(call, index), &((struct replication_wish *)target)->group) ||
           call_refuse_integer(call, call_arg(call, index));
}

static bool replication_commands_read_term(const struct call *call, uint32_t index, void *target) {
    struct replication_wish *wish = target;
    wish->is_pulling = true;
    return term_parse(call_arg(call, index), &wish->term) || call_syntax_error(call);
}

static const struct binding sync_bindings[] = {
    {BIND("replication-id", struct replication_wish, id)},
    {"group", .read = replication_commands_read_group},
    {BIND("FAILOVER", struct replication_wish, wants_failover)},
    {"PULL", .read = replication_commands_read_term},
    {0},
};

static void sync_run(struct call *call) {
    struct replication_wish wish = {.id = {.at = NULL}};
    if (!syntax_read(call, &wish)) {
        return;
    }
    if (wish.wants_failover && wish.is_pulling) {
        call_syntax_error(call);
        return;
    }
    replication_commands_ask(call, &wish);
}

static void psync_run(struct call *call) {
    struct replication_wish wish = {.is_redis = true, .is_old = call->request->count == 1};
    int64_t offset = 0;
    if (!wish.is_old) {
        if (!call_parse_integer(call, call_arg(call, 2), &offset)) {
            return;
        }
        wish.id = call_arg(call, 1);
        wish.group = offset > 0 ? (uint64_t)offset : 0;
    }
    replication_commands_ask(call, &wish);
}

const struct command command_lb_sync = {
    .name = "LB.SYNC",
    .syntax = "replication-id group:integer [args=<failover=(FAILOVER) | pull=(PULL term)>]",
    .bindings = sync_bindings,
    .reply = "s",
    .summary = "Sent by replicas: all groups of effects from this one on, or a full copy",
    .complexity = "O(1), and O(n) in what is sent, in steps between other commands",
    .flags = COMMAND_ADMIN | COMMAND_STALE | COMMAND_NO_MULTI | COMMAND_NO_BOARDS,
    .run = sync_run,
};

const struct command command_psync = {
    .name = "PSYNC",
    .syntax = "replication-id offset:integer",
    .reply = "s",
    .summary = "Sent by a Redis with the module that follows this server: a full copy as an RDB "
               "file, then commands; or commands from where it was",
    .complexity =
        "O(1), and O(n) in what is sent, by another process and in steps between other commands",
    .flags = COMMAND_ADMIN | COMMAND_STALE | COMMAND_NO_MULTI | COMMAND_NO_BOARDS,
    .run = psync_run,
};

const struct command command_sync = {
    .name = "SYNC",
    .reply = "s",
    .summary = "Sent by redis-cli --rdb: a full copy as an RDB file",
    .complexity =
        "O(1), and O(n) in what is sent, by another process and in steps between other commands",
    .flags = COMMAND_ADMIN | COMMAND_STALE | COMMAND_NO_MULTI | COMMAND_NO_BOARDS,
    .run = psync_run,
};
