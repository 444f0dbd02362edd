/* LB.SYNC: a replica asks for the groups of effects from a number on. PSYNC, SYNC: a Redis asks for a
 * copy, and for the commands after it. See server/replication/feed.h. */
#include "server/dispatch/syntax.h"
#include "server/replication/hub.h"
#include "server/replication/replication.h"

static void sync_command_ask(const struct call *call, const struct replication_wish *wish) {
    struct replica *replica = replication_get_replica(call->session);
    if (replica == NULL) {
        (void)call_out_of_memory(call);
    } else {
        replicator_sync(call->server->replication.replicator, replica, wish, call->reply);
    }
}

static bool sync_command_read_group(const struct call *call, uint32_t index, void *target) {
    return bytes_parse_u64(call_arg(call, index), &((struct replication_wish *)target)->group) ||
           call_refuse_integer(call, call_arg(call, index));
}

static bool sync_command_read_term(const struct call *call, uint32_t index, void *target) {
    struct replication_wish *wish = target;
    wish->is_pulling = true;
    return term_parse(call_arg(call, index), &wish->term) || call_syntax_error(call);
}

static const struct binding sync_bindings[] = {
    {BIND("replication-id", struct replication_wish, id)},
    {"group", .read = sync_command_read_group},
    {BIND("FAILOVER", struct replication_wish, wants_failover)},
    {"PULL", .read = sync_command_read_term},
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
    sync_command_ask(call, &wish);
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
    sync_command_ask(call, &wish);
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
