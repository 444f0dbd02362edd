/* Commands of Redis that are not here. See absent.h. */
#include "server/dispatch/absent.h"

const struct absent_group absent_groups[] = {
    {"strings",
     "APPEND DECR DECRBY GET GETDEL GETEX GETRANGE GETSET INCR INCRBY INCRBYFLOAT LCS MGET MSET "
     "MSETNX PSETEX SET SETEX SETNX SETRANGE STRLEN SUBSTR"},
    {"lists", "BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH LINDEX LINSERT LLEN LMOVE LMPOP LPOP LPOS "
              "LPUSH LPUSHX LRANGE LREM LSET LTRIM RPOP RPOPLPUSH RPUSH RPUSHX"},
    {"sets", "SADD SCARD SDIFF SDIFFSTORE SINTER SINTERCARD SINTERSTORE SISMEMBER SMEMBERS "
             "SMISMEMBER SMOVE SPOP SRANDMEMBER SREM SSCAN SUNION SUNIONSTORE"},
    {"streams", "XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XINFO XLEN XPENDING XRANGE XREAD "
                "XREADGROUP XREVRANGE XSETID XTRIM"},
    {"bitmaps", "BITCOUNT BITFIELD BITFIELD_RO BITOP BITPOS GETBIT SETBIT"},
    {"HyperLogLogs", "PFADD PFCOUNT PFDEBUG PFMERGE PFSELFTEST"},
    {"places", "GEOADD GEODIST GEOHASH GEOPOS GEORADIUS GEORADIUSBYMEMBER GEORADIUSBYMEMBER_RO "
               "GEORADIUS_RO GEOSEARCH GEOSEARCHSTORE"},
    {"scripts", "EVAL EVALSHA EVALSHA_RO EVAL_RO FCALL FCALL_RO FUNCTION SCRIPT"},
    {"sorting and moving of keys", "MIGRATE MOVE RESTORE-ASKING SORT SORT_RO SWAPDB"},
    {"fields that expire",
     "HEXPIRE HEXPIREAT HEXPIRETIME HGETDEL HGETEX HPERSIST HPEXPIRE HPEXPIREAT "
     "HPEXPIRETIME HPTTL HSETEX HTTL"},
    {"waiting for files", "WAITAOF"},
    {"clusters", "ASKING CLUSTER"},
    {"modules and debugging", "DEBUG LOLWUT MODULE"},
    {NULL, NULL},
};

/* Is the name one of these words? */
static bool absent_has_word(const char *words, struct bytes name) {
    while (*words != '\0') {
        struct bytes word = {.at = words, .size = strcspn(words, " ")};
        if (bytes_equal_ignoring_case(word, name)) {
            return true;
        }
        words += word.size + (words[word.size] == ' ');
    }
    return false;
}

const char *absent_title(struct bytes name) {
    const struct absent_group *group = absent_groups;
    while (group->title != NULL && !absent_has_word(group->names, name)) {
        group++;
    }
    return group->title;
}

/* Of the containers that are here. */
static const char subcommands[] =
    "CLIENT|CACHING CLIENT|GETREDIR CLIENT|TRACKING CLIENT|TRACKINGINFO COMMAND|GETKEYSANDFLAGS "
    "LATENCY|DOCTOR LATENCY|GRAPH MEMORY|DOCTOR MEMORY|MALLOC-STATS MEMORY|PURGE";

bool absent_is_known(struct bytes full_name) {
    const char *bar = full_name.size > 0 ? memchr(full_name.at, '|', full_name.size) : NULL;
    size_t size = bar != NULL ? (size_t)(bar - full_name.at) : full_name.size;
    return absent_title((struct bytes){.at = full_name.at, .size = size}) != NULL ||
           absent_has_word(subcommands, full_name);
}
