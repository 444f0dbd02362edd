/* The table of all commands, up to {0}, by group and name. main passes it to execute_init.
 *
 * How this room works: a folder holds a group of commands, a file a family of them, each entry beside
 * its handler. What writes members goes through writing.h, so that no command can bypass a board's
 * options or a ban (ban.h); what walks over keys in steps goes through keyspace.h. */
#ifndef SERVER_TABLE_H
#define SERVER_TABLE_H

#include "server/dispatch/command.h"

extern const struct command_row command_table[];

/* Rows of the groups that the module has, too: a group, and the name of the entry behind command_. HERE: those that only
 * the server has. */
/* clang-format off */
#define TABLE_LEADERBOARD(ENTRY)                                                                   \
    ENTRY("leaderboard", lb_above) ENTRY("leaderboard", lb_add) ENTRY("leaderboard", lb_alter)     \
    ENTRY("leaderboard", lb_approve)                                                               \
    ENTRY("leaderboard", lb_around) ENTRY("leaderboard", lb_ban) ENTRY("leaderboard", lb_bans)     \
    ENTRY("leaderboard", lb_count) ENTRY("leaderboard", lb_create)                                 \
    ENTRY("leaderboard", lb_cuts) ENTRY("leaderboard", lb_forget) ENTRY("leaderboard", lb_get)     \
    ENTRY("leaderboard", lb_held) ENTRY("leaderboard", lb_hist) ENTRY("leaderboard", lb_info)      \
    ENTRY("leaderboard", lb_league) ENTRY("leaderboard", lb_list)                                  \
    ENTRY("leaderboard", lb_match) ENTRY("leaderboard", lb_move)                                   \
    ENTRY("leaderboard", lb_predict) ENTRY("leaderboard", lb_quantile)                             \
    ENTRY("leaderboard", lb_range) ENTRY("leaderboard", lb_rate) ENTRY("leaderboard", lb_rating)   \
    ENTRY("leaderboard", lb_refund) ENTRY("leaderboard", lb_reject) ENTRY("leaderboard", lb_roll)  \
    ENTRY("leaderboard", lb_settle) ENTRY("leaderboard", lb_submit)                                \
    ENTRY("leaderboard", lb_tag) ENTRY("leaderboard", lb_tags) ENTRY("leaderboard", lb_unban)      \
    ENTRY("leaderboard", lb_unmatch) ENTRY("leaderboard", lb_where)
#define TABLE_SORTED_SET(ENTRY, HERE)                                                              \
    HERE("sorted-set", bzmove) ENTRY("sorted-set", bzmpop) ENTRY("sorted-set", bzpopmax)           \
    ENTRY("sorted-set", bzpopmin) ENTRY("sorted-set", zadd) ENTRY("sorted-set", zcard)             \
    ENTRY("sorted-set", zcount) ENTRY("sorted-set", zdiff) ENTRY("sorted-set", zdiffstore)         \
    ENTRY("sorted-set", zincrby) ENTRY("sorted-set", zinter) ENTRY("sorted-set", zintercard)       \
    ENTRY("sorted-set", zinterstore) ENTRY("sorted-set", zlexcount) HERE("sorted-set", zmove)      \
    HERE("sorted-set", zmovemember) ENTRY("sorted-set", zmpop) ENTRY("sorted-set", zmscore)        \
    ENTRY("sorted-set", zpopmax) ENTRY("sorted-set", zpopmin) ENTRY("sorted-set", zrandmember)     \
    ENTRY("sorted-set", zrange) ENTRY("sorted-set", zrangebylex)                                   \
    ENTRY("sorted-set", zrangebyscore) ENTRY("sorted-set", zrangestore)                            \
    ENTRY("sorted-set", zrank) ENTRY("sorted-set", zrem) ENTRY("sorted-set", zremrangebylex)       \
    ENTRY("sorted-set", zremrangebyrank) ENTRY("sorted-set", zremrangebyscore)                     \
    ENTRY("sorted-set", zrevrange) ENTRY("sorted-set", zrevrangebylex)                             \
    ENTRY("sorted-set", zrevrangebyscore) ENTRY("sorted-set", zrevrank)                            \
    ENTRY("sorted-set", zscan) ENTRY("sorted-set", zscore) ENTRY("sorted-set", zunion)             \
    ENTRY("sorted-set", zunionstore)
/* clang-format on */

#endif
