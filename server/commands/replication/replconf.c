/* REPLCONF: what a replica tells its master about itself. */
#include <stdio.h>

#include "server/dispatch/call.h"
#include "server/durability/file_format.h"
#include "server/replication/failover.h"
#include "server/replication/hub.h"
#include "server/replication/replication.h"

struct told {
    struct bytes ip;        /* at NULL: not told */
    int64_t port;           /* -1: not told */
    int64_t format;         /* 0: not told */
    int64_t is_copy_enough; /* -1: not told */
};

/* An address ends up in INFO, and in what Sentinel tells clients. */
static bool replconf_read_ip(const struct call *call, struct bytes value, struct bytes *ip) {
    if (value.size > REPLICATION_HOST_MAX) {
        return call_refuse_format(
            call, "ERR REPLCONF ip-address provided by replica instance is too long: %zu bytes",
            value.size);
    }
    *ip = value;
    return value.size == 0 || setting_value_is_host(value) ||
           call_refuse(call, "ERR REPLCONF ip-address must be an address or a host's name");
}

static bool replconf_read_format(const struct call *call, struct bytes value, int64_t *format) {
    if (!call_parse_integer(call, value, format)) {
        return false;
    }
    return *format == FILE_FORMAT ||
           call_refuse_format(call, FILE_FORMAT_REFUSAL "%lld, this server's %d: %s",
                              (long long)*format, (int)FILE_FORMAT, FILE_FORMAT_ADVICE);
}

/* false: the error was replied. */
static bool replconf_read_pair(const struct call *call, uint32_t index, struct told *told) {
    struct bytes name = call_arg(call, index);
    struct bytes value = call_arg(call, index + 1);
    if (bytes_is(name, "LISTENING-PORT")) {
        return call_parse_integer(call, value, &told->port) &&
               ((told->port >= 0 && told->port <= 65535) ||
                call_refuse(call, "ERR value is out of range, value must between 0 and 65535"));
    }
    if (bytes_is(name, "IP-ADDRESS")) {
        return replconf_read_ip(call, value, &told->ip);
    }
    if (bytes_is(name, "LEADERBOARD")) {
        return replconf_read_format(call, value, &told->format);
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

static bool replconf_keep(const struct call *call, const struct told *told) {
    struct replica *replica = replication_get_replica(call->session);
    if (replica == NULL) {
        return call_out_of_memory(call);
    }
    if (told->ip.at != NULL) {
        memcpy(replica->ip, told->ip.at, told->ip.size);
        replica->ip[told->ip.size] = '\0';
    }
    if (told->port >= 0) {
        replica->port = (uint16_t)told->port;
    }
    if (told->is_copy_enough >= 0) {
        replica->is_copy_enough = told->is_copy_enough == 1;
    }
    return true;
}

/* ACK group [FSYNC group [PROBE number group]]: of a replica, which gets no reply. ACK bytes ...: of a Redis. Others are
 * ignored, as in Redis. What is behind FSYNC counts for nothing. */
static void replconf_take_ack(const struct call *call) {
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
static void replconf_take_registration(const struct call *call) {
    struct sync_registration said;
    enum { COUNT = 7 };
    if (call->request->count != COUNT || !term_parse_node(call_arg(call, 2), &said.node) ||
        said.node == 0 || !term_parse(call_arg(call, 3), &said.voted) ||
        !term_parse(call_arg(call, 4), &said.position.term) ||
        !bytes_parse_u64(call_arg(call, 5), &said.position.group) ||
        !(call_arg_is(call, 6, "0") || call_arg_is(call, 6, "1"))) {
        call_syntax_error(call);
        return;
    }
    said.has_lost_durability = call_arg_is(call, 6, "1");
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
            replconf_take_ack(call);
        }
        if (call->session->transaction.is_running) {
            reply_ok(call->reply);
        }
        return;
    }
    if (count > 1 && call_arg_is(call, 1, "PRESENT")) {
        replconf_take_registration(call);
        return;
    }
    if (count == 2 && call_arg_is(call, 1, "HANDOVER") && session_is_replica(call->session)) {
        failover_take_order(call->server, call->session->replica); /* it gets no reply */
        return;
    }
    if (count % 2 == 0) {
        call_syntax_error(call);
        return;
    }
    for (uint32_t i = 1; i < count; i += 2) {
        if (!replconf_read_pair(call, i, &told)) {
            return;
        }
    }
    if (count > 1 && !replconf_keep(call, &told)) {
        return;
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
