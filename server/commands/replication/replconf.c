/* REPLCONF: what a replica tells its master about itself. */
#include <stdio.h>

#include "server/clients/server.h"
#include "server/dispatch/call.h"
#include "server/dispatch/command.h"
#include "server/durability/file_format.h"

struct told {
    struct bytes ip; /* at NULL: not told */
    int64_t port;    /* -1: not told */
    int64_t format;  /* 0: not told */
};

static bool read_port(const struct call *call, struct bytes value, int64_t *port) {
    return call_parse_integer(call, value, port) &&
           ((*port >= 0 && *port <= 65535) ||
            call_refuse(call, "ERR value is out of range, value must between 0 and 65535"));
}

/* An address ends up in INFO, and in what Sentinel tells clients. */
static bool read_ip(const struct call *call, struct bytes value, struct bytes *ip) {
    if (value.size > REPLICATION_HOST_MAX) {
        return call_refuse_format(
            call, "ERR REPLCONF ip-address provided by replica instance is too long: %zu bytes",
            value.size);
    }
    *ip = value;
    return value.size == 0 || settings_is_host(value) ||
           call_refuse(call, "ERR REPLCONF ip-address must be an address or a host's name");
}

/* Groups of a server whose format is one older or one newer can be sent and applied: an upgrade
 * replaces one server after the other. */
static bool read_format(const struct call *call, struct bytes value, int64_t *format) {
    if (!call_parse_integer(call, value, format)) {
        return false;
    }
    return (*format >= FILE_FORMAT - 1 && *format <= FILE_FORMAT + 1) ||
           call_refuse_format(call,
                              "ERR the replica's format is %lld, this server's %d: they may differ "
                              "by one. Upgrade the older one, or both in steps",
                              (long long)*format, (int)FILE_FORMAT);
}

/* false: the error was replied. */
static bool read_pair(const struct call *call, uint32_t index, struct told *told) {
    struct bytes name = call_arg(call, index);
    struct bytes value = call_arg(call, index + 1);
    int64_t flag;
    if (bytes_is(name, "LISTENING-PORT")) {
        return read_port(call, value, &told->port);
    }
    if (bytes_is(name, "IP-ADDRESS")) {
        return read_ip(call, value, &told->ip);
    }
    if (bytes_is(name, "LEADERBOARD")) {
        return read_format(call, value, &told->format);
    }
    if (bytes_is(name, "CAPA") || bytes_is(name, "VERSION")) {
        return true; /* of no use here */
    }
    if (bytes_is(name, "RDB-ONLY") || bytes_is(name, "RDB-FILTER-ONLY")) {
        return (bytes_parse_i64(value, &flag) && flag == 0) ||
               call_refuse_format(call, "ERR REPLCONF %.*s is not supported: no RDB is sent",
                                  (int)name.size, name.at);
    }
    return call_refuse_format(call, "ERR Unrecognized REPLCONF option: %.*s",
                              (int)(name.size < 128 ? name.size : 128), name.at);
}

static bool keep(const struct call *call, const struct told *told) {
    struct replica *replica = replication_get_replica(call->server, call->session);
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
    if (told->format > 0) {
        replica->format_version = (uint32_t)told->format;
    }
    return true;
}

/* ACK group [FSYNC group]: of a replica, which gets no reply. Others are ignored, as in Redis. */
static void take_ack(const struct call *call) {
    uint64_t group;
    uint64_t disk_group = 0;
    uint32_t count = call->request->count;
    bool has_disk = count >= 5 && call_arg_is(call, 3, "FSYNC");
    if (session_is_replica(call->session) && count >= 3 &&
        bytes_parse_u64(call_arg(call, 2), &group) &&
        (!has_disk || bytes_parse_u64(call_arg(call, 4), &disk_group))) {
        replication_take_ack(call->server, call->session->replica, group, disk_group);
    }
}

static void replconf_run(struct call *call) {
    struct told told = {.port = -1};
    uint32_t count = call->request->count;
    bool is_ack = count > 1 && call_arg_is(call, 1, "ACK");
    if (is_ack || (count > 1 && call_arg_is(call, 1, "GETACK"))) {
        if (is_ack) {
            take_ack(call);
        }
        if (call->session->transaction.is_running) {
            reply_ok(call->reply);
        }
        return;
    }
    if (count % 2 == 0) {
        call_syntax_error(call);
        return;
    }
    for (uint32_t i = 1; i < count; i += 2) {
        if (!read_pair(call, i, &told)) {
            return;
        }
    }
    if (count > 1 && !keep(call, &told)) {
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
    .summary = "What replicas tell their master: where they are reached, what they understand, how "
               "far they are",
    .arity = -1,
    .flags = COMMAND_ADMIN | COMMAND_LOADING,
    .run = replconf_run,
};
