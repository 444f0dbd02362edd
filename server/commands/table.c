/* Every command, by group and name. See table.h. */
#include "server/commands/table.h"

/* clang-format off */
/* The group, and the name of the entry behind command_. */
#define TABLE_ENTRIES(ENTRY)                                                                       \
    ENTRY("connection", auth) ENTRY("connection", client) ENTRY("connection", echo)                \
    ENTRY("connection", hello) ENTRY("connection", ping) ENTRY("connection", quit)                 \
    ENTRY("connection", readonly) ENTRY("connection", readwrite) ENTRY("connection", reset)        \
    ENTRY("connection", select) ENTRY("generic", copy) ENTRY("generic", del)                       \
    ENTRY("generic", dump) ENTRY("generic", exists) ENTRY("generic", expire)                       \
    ENTRY("generic", expireat) ENTRY("generic", expiretime) ENTRY("generic", keys)                 \
    ENTRY("generic", object) ENTRY("generic", persist) ENTRY("generic", pexpire)                   \
    ENTRY("generic", pexpireat) ENTRY("generic", pexpiretime) ENTRY("generic", pttl)               \
    ENTRY("generic", randomkey) ENTRY("generic", rename) ENTRY("generic", renamenx)                \
    ENTRY("generic", restore) ENTRY("generic", scan) ENTRY("generic", touch)                       \
    ENTRY("generic", ttl) ENTRY("generic", type) ENTRY("generic", unlink)                          \
    ENTRY("generic", wait) ENTRY("hash", hdel) ENTRY("hash", hexists) ENTRY("hash", hget)          \
    ENTRY("hash", hgetall) ENTRY("hash", hincrby) ENTRY("hash", hincrbyfloat)                      \
    ENTRY("hash", hkeys) ENTRY("hash", hlen) ENTRY("hash", hmget) ENTRY("hash", hmset)             \
    ENTRY("hash", hrandfield) ENTRY("hash", hscan) ENTRY("hash", hset) ENTRY("hash", hsetnx)       \
    ENTRY("hash", hstrlen) ENTRY("hash", hvals) TABLE_LEADERBOARD(ENTRY)                           \
    ENTRY("leaderboard", lb_revoke) ENTRY("leaderboard", lb_revoked)                               \
    ENTRY("leaderboard", lb_ticket)                                                                \
    ENTRY("pubsub", psubscribe) ENTRY("pubsub", publish) ENTRY("pubsub", pubsub)                   \
    ENTRY("pubsub", punsubscribe) ENTRY("pubsub", spublish) ENTRY("pubsub", ssubscribe)            \
    ENTRY("pubsub", subscribe) ENTRY("pubsub", sunsubscribe) ENTRY("pubsub", unsubscribe)          \
    ENTRY("server", acl) ENTRY("server", bgrewriteaof) ENTRY("server", bgsave)                     \
    ENTRY("server", command) ENTRY("server", config) ENTRY("server", dbsize)                       \
    ENTRY("server", failover) ENTRY("server", flushall) ENTRY("server", flushdb)                   \
    ENTRY("server", info) ENTRY("server", lastsave) ENTRY("server", latency)                       \
    ENTRY("server", lb_snapshot) ENTRY("server", lb_sync) ENTRY("server", memory)                  \
    ENTRY("server", module) ENTRY("server", monitor) ENTRY("server", psync)                        \
    ENTRY("server", replconf) ENTRY("server", replicaof) ENTRY("server", role)                     \
    ENTRY("server", save) ENTRY("server", shutdown) ENTRY("server", slaveof)                       \
    ENTRY("server", slowlog) ENTRY("server", sync) ENTRY("server", time)                           \
    TABLE_SORTED_SET(ENTRY, ENTRY) ENTRY("transactions", discard) ENTRY("transactions", exec)      \
    ENTRY("transactions", multi) ENTRY("transactions", unwatch) ENTRY("transactions", watch)
/* clang-format on */

#define TABLE_DECLARE(group, name) extern const struct command command_##name;
#define TABLE_ROW(group, name)     {group, &command_##name},

TABLE_ENTRIES(TABLE_DECLARE)

const struct command_row command_table[] = {TABLE_ENTRIES(TABLE_ROW){0}};
