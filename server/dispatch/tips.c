/* See tips.h. */
#include "server/dispatch/tips.h"

#include "server/dispatch/command.h"

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

static bool tips_has_name(const char *names, const char *name) {
    size_t size = strlen(name);
    for (; *names != '\0'; names += strcspn(names, " ") + 1) {
        if (strcspn(names, " ") == size && memcmp(names, name, size) == 0) {
            return true;
        }
    }
    return false;
}

const char *tips_of_command(uint32_t index) {
    for (size_t i = 0; i < sizeof tips_table / sizeof tips_table[0]; i++) {
        if (tips_has_name(tips_table[i].names, command_full_name(index))) {
            return tips_table[i].tips;
        }
    }
    return "";
}
