/* Most categories follow from a command's group and flags. See category.h. */
#include "server/dispatch/category.h"

/* In Redis's order. */
enum {
    KEYSPACE,
    READ,
    WRITE,
    SET,
    SORTEDSET,
    LIST,
    HASH,
    STRING,
    BITMAP,
    HYPERLOGLOG,
    GEO,
    STREAM,
    PUBSUB,
    ADMIN,
    FAST,
    SLOW,
    BLOCKING,
    DANGEROUS,
    CONNECTION,
    TRANSACTION,
    SCRIPTING,
    LEADERBOARD
};
static const char *const names[CATEGORIES] = {
    "keyspace",   "read",        "write",     "set",         "sortedset", "list",
    "hash",       "string",      "bitmap",    "hyperloglog", "geo",       "stream",
    "pubsub",     "admin",       "fast",      "slow",        "blocking",  "dangerous",
    "connection", "transaction", "scripting", CATEGORY_OWN,
};

const char *category_name(uint32_t category) {
    CHECK(category < CATEGORIES);
    return names[category];
}

uint32_t category_find(struct bytes name) {
    uint32_t category = 0;
    while (category < CATEGORIES && !bytes_is(name, names[category])) {
        category++;
    }
    return category;
}

/* Redis's categories that do not follow from group and flags; and what of ours changes all
 * boards, whatever their keys. */
struct exception {
    const char *name;
    uint32_t mask;
    bool is_all; /* it is in none that follows from its group */
};
static struct exception category_exception_of(const char *full_name) {
    static const struct exception exceptions[] = {
        {"command", 1U << CONNECTION, false},
        {"dbsize", 1U << KEYSPACE, false},
        {"flushall", 1U << DANGEROUS | 1U << KEYSPACE, false},
        {"flushdb", 1U << DANGEROUS | 1U << KEYSPACE, false},
        {"info", 1U << DANGEROUS, false},
        {"keys", 1U << DANGEROUS, false},
        {"lastsave", 1U << ADMIN | 1U << DANGEROUS, false},
        {"lb.approve", 1U << DANGEROUS, false},
        {"lb.ban", 1U << DANGEROUS, false},
        {"lb.forget", 1U << DANGEROUS, false},
        {"lb.held", 1U << DANGEROUS, false},
        {"lb.move", 1U << DANGEROUS, false},
        {"lb.reject", 1U << DANGEROUS, false},
        {"lb.unban", 1U << DANGEROUS, false},
        {"restore", 1U << DANGEROUS, false},
        {"role", 1U << ADMIN | 1U << DANGEROUS, false},
        {"wait", 1U << CONNECTION, true},
    };
    size_t size = strcspn(full_name, "|"); /* subcommands are as their container */
    for (size_t i = 0; i < sizeof exceptions / sizeof exceptions[0]; i++) {
        if (strlen(exceptions[i].name) == size &&
            memcmp(exceptions[i].name, full_name, size) == 0) {
            return exceptions[i];
        }
    }
    return (struct exception){.mask = 0};
}

static uint32_t category_mask_of_group(const char *group) {
    static const struct {
        const char *group;
        uint32_t mask;
    } groups[] = {
        {"generic", 1U << KEYSPACE},
        {"sorted-set", 1U << SORTEDSET},
        {"hash", 1U << HASH},
        {"connection", 1U << CONNECTION},
        {"transactions", 1U << TRANSACTION},
        {"leaderboard", 1U << LEADERBOARD},
    };
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strcmp(groups[i].group, group) == 0) {
            return groups[i].mask;
        }
    }
    return 0;
}

const struct category_flag category_flags[] = {
    {COMMAND_WRITE, "write", "write"},
    {COMMAND_READ, "readonly", "readonly"},
    {COMMAND_DENYOOM, "denyoom", "deny-oom"},
    {COMMAND_ADMIN, "admin", NULL},
    {COMMAND_PUBSUB, "pubsub", NULL},
    {COMMAND_LOADING, "loading", "allow-loading"},
    {COMMAND_LOADING | COMMAND_STALE, "stale", "allow-stale"},
    {COMMAND_NO_SLOWLOG, "skip_slowlog", NULL},
    {COMMAND_BLOCKING, "blocking", NULL},
    {COMMAND_FAST, "fast", "fast"},
    {COMMAND_NO_AUTH, "no_auth", NULL},
    {COMMAND_NO_MULTI, "no_multi", "deny-script"},
    {0, NULL, NULL},
};

static uint32_t category_if_set(unsigned flags, unsigned flag, uint32_t mask) {
    return (flags & flag) != 0 ? mask : 0;
}

/* A container is only in slow. */
uint32_t category_mask(uint32_t index) {
    const struct command *command = command_by_index(index);
    unsigned flags = command->flags;
    struct exception exception = category_exception_of(command_full_name(index));
    bool is_of_group = command->run != NULL && !exception.is_all;
    return (is_of_group ? category_mask_of_group(command->group) : 0) | exception.mask |
           category_if_set(flags, COMMAND_READ, 1U << READ) |
           category_if_set(flags, COMMAND_WRITE, 1U << WRITE) |
           category_if_set(flags, COMMAND_PUBSUB, 1U << PUBSUB) |
           category_if_set(flags, COMMAND_ADMIN, 1U << ADMIN | 1U << DANGEROUS) |
           ((flags & COMMAND_FAST) != 0 ? 1U << FAST : 1U << SLOW) |
           category_if_set(flags, COMMAND_BLOCKING, 1U << BLOCKING);
}

const struct absent_group category_absent_groups[] = {
    {"strings", "APPEND DECR DECRBY GET GETDEL GETEX GETRANGE GETSET INCR INCRBY INCRBYFLOAT LCS "
                "MGET MSET MSETNX PSETEX SET SETEX SETNX SETRANGE STRLEN SUBSTR"},
    {"lists", "BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH LINDEX LINSERT LLEN LMOVE LMPOP LPOP LPOS "
              "LPUSH LPUSHX LRANGE LREM LSET LTRIM RPOP RPOPLPUSH RPUSH RPUSHX"},
    {"sets", "SADD SCARD SDIFF SDIFFSTORE SINTER SINTERCARD SINTERSTORE SISMEMBER SMEMBERS "
             "SMISMEMBER SMOVE SPOP SRANDMEMBER SREM SSCAN SUNION SUNIONSTORE"},
    {"streams", "XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XINFO XLEN XPENDING XRANGE XREAD "
                "XREADGROUP XREVRANGE XSETID XTRIM"},
    {"bitmaps", "BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS GETBIT SETBIT"},
    {"HyperLogLogs", "PFADD PFCOUNT PFDEBUG PFMERGE PFSELFTEST"},
    {"geo commands",
     "GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO "
     "GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE"},
    {"scripts", "EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO FUNCTION SCRIPT"},
    {"sorting and moving of keys", "MIGRATE MOVE RESTORE-ASKING SORT SORT_RO SWAPDB"},
    {"fields that expire", "HEXPIRE HEXPIREAT HEXPIRETIME HGETDEL HGETEX HPERSIST HPEXPIRE "
                           "HPEXPIREAT HPEXPIRETIME HPTTL HSETEX HTTL"},
    {"waiting for files", "WAITAOF"},
    {"clusters", "ASKING CLUSTER"},
    {"debugging", "DEBUG LOLWUT"},
    {NULL, NULL},
};

bool category_has_word(const char *words, struct bytes name) {
    while (*words != '\0') {
        struct bytes word = {.at = words, .size = strcspn(words, " ")};
        if (bytes_equal_ignoring_case(word, name)) {
            return true;
        }
        words += word.size + (words[word.size] == ' ');
    }
    return false;
}

const char *category_absent_title(struct bytes name) {
    const struct absent_group *group = category_absent_groups;
    while (group->title != NULL && !category_has_word(group->names, name)) {
        group++;
    }
    return group->title;
}

/* Of the containers that are here. */
static const char subcommands[] =
    "COMMAND|GETKEYSANDFLAGS LATENCY|DOCTOR LATENCY|GRAPH MEMORY|DOCTOR MEMORY|MALLOC-STATS "
    "MEMORY|PURGE MODULE|LOAD MODULE|LOADEX MODULE|UNLOAD";

bool category_is_absent(struct bytes full_name) {
    const char *bar = full_name.size > 0 ? memchr(full_name.at, '|', full_name.size) : NULL;
    size_t size = bar != NULL ? (size_t)(bar - full_name.at) : full_name.size;
    return category_absent_title((struct bytes){.at = full_name.at, .size = size}) != NULL ||
           category_has_word(subcommands, full_name);
}

/* ---- tips ---- */

/* What a client of a cluster, or one that compares replies, is told of Redis's commands: as Redis 8 says it. */
#define UNORDERED "nondeterministic_output_order"
#define UNSURE    "nondeterministic_output"
#define NODES     "request_policy:all_nodes"
#define SHARDS    "request_policy:all_shards"
#define KEYS      "request_policy:multi_shard"
#define SUCCEEDED "response_policy:all_succeeded"
#define SUM       "response_policy:agg_sum"
#define SPECIAL   "response_policy:special"
static const struct {
    const char *tips;  /* a blank between them */
    const char *names; /* full names, a blank behind each */
} tips_table[] = {
    {UNSURE, "client|info client|list dump hrandfield hscan lastsave object|encoding object|freq "
             "object|idletime object|refcount pttl time ttl zrandmember zscan "},
    {UNORDERED, "command command|docs command|info command|list hgetall hkeys hvals "
                "module|list "},
    {UNSURE " " NODES " " SPECIAL, "latency|histogram latency|history latency|latest "},
    {UNSURE " " SHARDS " " SPECIAL, "info memory|stats "},
    {UNSURE " "
            "request_policy:special"
            " " SPECIAL,
     "scan "},
    {NODES " " UNSURE, "slowlog|get "},
    {NODES " " SUM, "latency|reset "},
    {NODES " " SUM " " UNSURE, "slowlog|len "},
    {NODES " " SUCCEEDED,
     "acl|deluser acl|save acl|setuser client|setinfo client|setname config|resetstat "
     "config|rewrite config|set slowlog|reset "},
    {SHARDS " " UNORDERED, "keys "},
    {SHARDS " "
            "response_policy:agg_min",
     "wait "},
    {SHARDS " " SUM, "dbsize "},
    {SHARDS " " SUCCEEDED, "flushall flushdb ping "},
    {SHARDS " " SPECIAL " " UNSURE, "randomkey "},
    {KEYS " " SUM, "del exists touch unlink "},
};

const char *category_tips(uint32_t index) {
    for (size_t i = 0; i < sizeof tips_table / sizeof tips_table[0]; i++) {
        if (category_has_word(tips_table[i].names, bytes_from_text(command_full_name(index)))) {
            return tips_table[i].tips;
        }
    }
    return "";
}
