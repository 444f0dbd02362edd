/* Every command, by group and name. See table.h. */
#include "server/commands/table.h"

/* clang-format off */
/* The group, and the name of the entry behind command_. */
#define TABLE_ENTRIES(ENTRY)                                                                       \
    ENTRY("connection", auth) ENTRY("connection", client) ENTRY("connection", echo)                \
    ENTRY("connection", hello) ENTRY("connection", ping) ENTRY("connection", quit)                 \
    ENTRY("connection", readonly) ENTRY("connection", readwrite) ENTRY("connection", reset)        \
    ENTRY("connection", select)                                                                    \
    ENTRY("generic", copy) ENTRY("generic", del) ENTRY("generic", dump) ENTRY("generic", exists)   \
    ENTRY("generic", expire) ENTRY("generic", expireat) ENTRY("generic", expiretime)               \
    ENTRY("generic", keys) ENTRY("generic", object) ENTRY("generic", persist)                      \
    ENTRY("generic", pexpire) ENTRY("generic", pexpireat) ENTRY("generic", pexpiretime)            \
    ENTRY("generic", pttl) ENTRY("generic", randomkey) ENTRY("generic", rename)                    \
    ENTRY("generic", renamenx) ENTRY("generic", restore) ENTRY("generic", scan)                    \
    ENTRY("generic", touch) ENTRY("generic", ttl) ENTRY("generic", type) ENTRY("generic", unlink)  \
    ENTRY("generic", wait)                                                                         \
    ENTRY("hash", hdel) ENTRY("hash", hexists) ENTRY("hash", hget) ENTRY("hash", hgetall)          \
    ENTRY("hash", hincrby) ENTRY("hash", hincrbyfloat) ENTRY("hash", hkeys) ENTRY("hash", hlen)    \
    ENTRY("hash", hmget) ENTRY("hash", hmset) ENTRY("hash", hrandfield) ENTRY("hash", hscan)       \
    ENTRY("hash", hset) ENTRY("hash", hsetnx) ENTRY("hash", hstrlen) ENTRY("hash", hvals)          \
    ENTRY("leaderboard", lb_above) ENTRY("leaderboard", lb_add) ENTRY("leaderboard", lb_alter)     \
    ENTRY("leaderboard", lb_around)                                                                \
    ENTRY("leaderboard", lb_ban) ENTRY("leaderboard", lb_bans) ENTRY("leaderboard", lb_count)      \
    ENTRY("leaderboard", lb_create) ENTRY("leaderboard", lb_cuts)                                  \
    ENTRY("leaderboard", lb_forget) ENTRY("leaderboard", lb_get) ENTRY("leaderboard", lb_hist)     \
    ENTRY("leaderboard", lb_info) ENTRY("leaderboard", lb_league) ENTRY("leaderboard", lb_list)    \
    ENTRY("leaderboard", lb_move)                                                                  \
    ENTRY("leaderboard", lb_quantile) ENTRY("leaderboard", lb_range)                               \
    ENTRY("leaderboard", lb_roll) ENTRY("leaderboard", lb_settle)                                  \
    ENTRY("leaderboard", lb_submit) ENTRY("leaderboard", lb_tag)                                   \
    ENTRY("leaderboard", lb_tags) ENTRY("leaderboard", lb_unban) ENTRY("leaderboard", lb_where)    \
    ENTRY("pubsub", psubscribe) ENTRY("pubsub", publish) ENTRY("pubsub", pubsub)                   \
    ENTRY("pubsub", punsubscribe) ENTRY("pubsub", spublish) ENTRY("pubsub", ssubscribe)            \
    ENTRY("pubsub", subscribe) ENTRY("pubsub", sunsubscribe) ENTRY("pubsub", unsubscribe)          \
    ENTRY("server", acl) ENTRY("server", bgrewriteaof) ENTRY("server", bgsave)                     \
    ENTRY("server", command) ENTRY("server", config) ENTRY("server", dbsize)                       \
    ENTRY("server", failover) ENTRY("server", flushall) ENTRY("server", flushdb)                   \
    ENTRY("server", info) ENTRY("server", lastsave) ENTRY("server", latency)                       \
    ENTRY("server", lb_snapshot) ENTRY("server", lb_sync) ENTRY("server", memory)                  \
    ENTRY("server", module) ENTRY("server", monitor) ENTRY("server", psync) ENTRY("server", replconf)                      \
    ENTRY("server", replicaof) ENTRY("server", role) ENTRY("server", save)                         \
    ENTRY("server", shutdown) ENTRY("server", slaveof) ENTRY("server", slowlog)                    \
    ENTRY("server", sync) ENTRY("server", time)                                                    \
    ENTRY("sorted-set", bzmove) ENTRY("sorted-set", bzmpop) ENTRY("sorted-set", bzpopmax)          \
    ENTRY("sorted-set", bzpopmin) ENTRY("sorted-set", zadd) ENTRY("sorted-set", zcard)             \
    ENTRY("sorted-set", zcount) ENTRY("sorted-set", zdiff) ENTRY("sorted-set", zdiffstore)         \
    ENTRY("sorted-set", zincrby) ENTRY("sorted-set", zinter) ENTRY("sorted-set", zintercard)       \
    ENTRY("sorted-set", zinterstore) ENTRY("sorted-set", zlexcount) ENTRY("sorted-set", zmove)     \
    ENTRY("sorted-set", zmovemember) ENTRY("sorted-set", zmpop) ENTRY("sorted-set", zmscore)       \
    ENTRY("sorted-set", zpopmax) ENTRY("sorted-set", zpopmin) ENTRY("sorted-set", zrandmember)     \
    ENTRY("sorted-set", zrange) ENTRY("sorted-set", zrangebylex)                                   \
    ENTRY("sorted-set", zrangebyscore) ENTRY("sorted-set", zrangestore)                            \
    ENTRY("sorted-set", zrank) ENTRY("sorted-set", zrem) ENTRY("sorted-set", zremrangebylex)       \
    ENTRY("sorted-set", zremrangebyrank) ENTRY("sorted-set", zremrangebyscore)                     \
    ENTRY("sorted-set", zrevrange) ENTRY("sorted-set", zrevrangebylex)                             \
    ENTRY("sorted-set", zrevrangebyscore) ENTRY("sorted-set", zrevrank)                            \
    ENTRY("sorted-set", zscan) ENTRY("sorted-set", zscore) ENTRY("sorted-set", zunion)             \
    ENTRY("sorted-set", zunionstore)                                                               \
    ENTRY("transactions", discard) ENTRY("transactions", exec) ENTRY("transactions", multi)        \
    ENTRY("transactions", unwatch) ENTRY("transactions", watch)
/* clang-format on */

#define TABLE_DECLARE(group, name) extern const struct command command_##name;
#define TABLE_ROW(group, name)     {group, &command_##name},

TABLE_ENTRIES(TABLE_DECLARE)

const struct command_row command_table[] = {TABLE_ENTRIES(TABLE_ROW){0}};
