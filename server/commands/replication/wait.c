/* WAIT: until replicas have what this client has written. */
#include "server/dispatch/call.h"
#include "server/replication/hub.h"
#include "server/replication/replication.h"

/* Milliseconds; *due_ms is REGISTRY_NO_EXPIRY for 0. */
static bool wait_read_timeout(const struct call *call, struct bytes text, int64_t *due_ms) {
    int64_t timeout_ms;
    if (!bytes_parse_i64(text, &timeout_ms)) {
        return call_refuse(call, "ERR timeout is not an integer or out of range");
    }
    if (timeout_ms < 0) {
        return call_refuse(call, "ERR timeout is negative");
    }
    if (timeout_ms == 0) {
        *due_ms = REGISTRY_NO_EXPIRY;
    } else if (__builtin_add_overflow(call->server->clock.monotonic_ms, timeout_ms, due_ms)) {
        return call_refuse(call, "ERR timeout is out of range");
    }
    return true;
}

static void wait_run(struct call *call) {
    struct server *server = call->server;
    struct session *session = call->session;
    int64_t count;
    int64_t due_ms;
    if (replication_is_replica(&server->replication)) {
        reply_error(
            call->reply,
            "ERR WAIT cannot be used with replica instances. Please also note that since "
            "Redis 4.0 if a replica is configured to be writable (which is not the default) "
            "writes to replicas are just local and are not propagated.");
        return;
    }
    if (!call_parse_integer(call, call_arg(call, 1), &count) ||
        !wait_read_timeout(call, call_arg(call, 2), &due_ms)) {
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
