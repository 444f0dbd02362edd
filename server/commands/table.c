/* Every command there is. One `extern` and one entry a line, by group. */
#include "server/commands/table.h"

/* connection */
extern const struct command command_auth;
extern const struct command command_client;
extern const struct command command_echo;
extern const struct command command_hello;
extern const struct command command_ping;
extern const struct command command_quit;
extern const struct command command_readonly;
extern const struct command command_readwrite;
extern const struct command command_reset;
extern const struct command command_select;
/* generic */
extern const struct command command_copy;
extern const struct command command_del;
extern const struct command command_exists;
extern const struct command command_expire;
extern const struct command command_expireat;
extern const struct command command_expiretime;
extern const struct command command_keys;
extern const struct command command_object;
extern const struct command command_persist;
extern const struct command command_pexpire;
extern const struct command command_pexpireat;
extern const struct command command_pexpiretime;
extern const struct command command_pttl;
extern const struct command command_randomkey;
extern const struct command command_rename;
extern const struct command command_renamenx;
extern const struct command command_scan;
extern const struct command command_touch;
extern const struct command command_ttl;
extern const struct command command_type;
extern const struct command command_unlink;
/* leaderboard */
extern const struct command command_lb_add;
extern const struct command command_lb_around;
extern const struct command command_lb_create;
extern const struct command command_lb_get;
extern const struct command command_lb_hist;
extern const struct command command_lb_info;
extern const struct command command_lb_quantile;
extern const struct command command_lb_range;
extern const struct command command_lb_roll;
/* server */
extern const struct command command_bgrewriteaof;
extern const struct command command_bgsave;
extern const struct command command_command;
extern const struct command command_config;
extern const struct command command_dbsize;
extern const struct command command_flushall;
extern const struct command command_flushdb;
extern const struct command command_info;
extern const struct command command_lastsave;
extern const struct command command_latency;
extern const struct command command_memory;
extern const struct command command_monitor;
extern const struct command command_save;
extern const struct command command_shutdown;
extern const struct command command_slowlog;
extern const struct command command_time;
/* sorted-set */
extern const struct command command_zadd;
extern const struct command command_zcard;
extern const struct command command_zcount;
extern const struct command command_zdiff;
extern const struct command command_zdiffstore;
extern const struct command command_zincrby;
extern const struct command command_zinter;
extern const struct command command_zintercard;
extern const struct command command_zinterstore;
extern const struct command command_zlexcount;
extern const struct command command_zmpop;
extern const struct command command_zmscore;
extern const struct command command_zpopmax;
extern const struct command command_zpopmin;
extern const struct command command_zrandmember;
extern const struct command command_zrange;
extern const struct command command_zrangebylex;
extern const struct command command_zrangebyscore;
extern const struct command command_zrangestore;
extern const struct command command_zrank;
extern const struct command command_zrem;
extern const struct command command_zremrangebylex;
extern const struct command command_zremrangebyrank;
extern const struct command command_zremrangebyscore;
extern const struct command command_zrevrange;
extern const struct command command_zrevrangebylex;
extern const struct command command_zrevrangebyscore;
extern const struct command command_zrevrank;
extern const struct command command_zscan;
extern const struct command command_zscore;
extern const struct command command_zunion;
extern const struct command command_zunionstore;
/* transactions */
extern const struct command command_discard;
extern const struct command command_exec;
extern const struct command command_multi;
extern const struct command command_unwatch;
extern const struct command command_watch;

const struct command *const command_table[] = {
    /* connection */
    &command_auth,
    &command_client,
    &command_echo,
    &command_hello,
    &command_ping,
    &command_quit,
    &command_readonly,
    &command_readwrite,
    &command_reset,
    &command_select,
    /* generic */
    &command_copy,
    &command_del,
    &command_exists,
    &command_expire,
    &command_expireat,
    &command_expiretime,
    &command_keys,
    &command_object,
    &command_persist,
    &command_pexpire,
    &command_pexpireat,
    &command_pexpiretime,
    &command_pttl,
    &command_randomkey,
    &command_rename,
    &command_renamenx,
    &command_scan,
    &command_touch,
    &command_ttl,
    &command_type,
    &command_unlink,
    /* leaderboard */
    &command_lb_add,
    &command_lb_around,
    &command_lb_create,
    &command_lb_get,
    &command_lb_hist,
    &command_lb_info,
    &command_lb_quantile,
    &command_lb_range,
    &command_lb_roll,
    /* server */
    &command_bgrewriteaof,
    &command_bgsave,
    &command_command,
    &command_config,
    &command_dbsize,
    &command_flushall,
    &command_flushdb,
    &command_info,
    &command_lastsave,
    &command_latency,
    &command_memory,
    &command_monitor,
    &command_save,
    &command_shutdown,
    &command_slowlog,
    &command_time,
    /* sorted-set */
    &command_zadd,
    &command_zcard,
    &command_zcount,
    &command_zdiff,
    &command_zdiffstore,
    &command_zincrby,
    &command_zinter,
    &command_zintercard,
    &command_zinterstore,
    &command_zlexcount,
    &command_zmpop,
    &command_zmscore,
    &command_zpopmax,
    &command_zpopmin,
    &command_zrandmember,
    &command_zrange,
    &command_zrangebylex,
    &command_zrangebyscore,
    &command_zrangestore,
    &command_zrank,
    &command_zrem,
    &command_zremrangebylex,
    &command_zremrangebyrank,
    &command_zremrangebyscore,
    &command_zrevrange,
    &command_zrevrangebylex,
    &command_zrevrangebyscore,
    &command_zrevrank,
    &command_zscan,
    &command_zscore,
    &command_zunion,
    &command_zunionstore,
    /* transactions */
    &command_discard,
    &command_exec,
    &command_multi,
    &command_unwatch,
    &command_watch,
    NULL,
};
