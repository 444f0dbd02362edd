/* Hashes in records. See lb_data.h. */
#include "server/commands/lb/lb_data.h"

#include "server/acl/acl_check.h"
#include "skiplist/keyspace/registry.h"

bool lb_data_check_star(const struct call *call, struct bytes pattern) {
    const char *star = pattern.size > 0 ? memchr(pattern.at, '*', pattern.size) : NULL;
    if (star == NULL) {
        return call_refuse(call, "ERR DATA needs a key with a * where the member goes");
    }
    size_t left = pattern.size - (size_t)(star + 1 - pattern.at);
    return memchr(star + 1, '*', left) == NULL ||
           call_refuse(call, "ERR DATA takes one *, which stands for the member: it names one key "
                             "of each member, not all keys that match");
}

bool lb_data_check_pattern(const struct call *call, uint32_t index, void *target) {
    (void)target;
    struct bytes pattern = call_arg(call, index);
    if (!lb_data_check_star(call, pattern)) {
        return false;
    }
    if (pattern.size > REGISTRY_KEY_MAX) {
        return call_refuse(call, "ERR DATA needs a key with a * where the member goes");
    }
    return acl_check_pattern(call, pattern, true, ACL_READ);
}

/* ---- keys ---- */

static char *lb_data_append(char *out, struct bytes text) {
    memcpy(out, text.at, text.size);
    return out + text.size;
}

char *lb_data_print_key(struct bytes pattern, struct bytes member, char *out) {
    const char *star = memchr(pattern.at, '*', pattern.size);
    size_t before = (size_t)(star - pattern.at);
    out = lb_data_append(out, (struct bytes){.at = pattern.at, .size = before});
    out = lb_data_append(out, member);
    return lb_data_append(out, (struct bytes){.at = star + 1, .size = pattern.size - before - 1});
}

/* ---- replies ---- */

static void lb_data_reply_fields(struct reply *reply, const struct option_values *fields,
                                 const struct hash *hash) {
    struct bytes value;
    reply_array(reply, fields->count);
    for (uint32_t i = 0; i < fields->count && !reply_is_lost(reply); i++) {
        if (hash_find(hash, fields->at[i], &value)) {
            reply_bulk(reply, value);
        } else {
            reply_null(reply);
        }
    }
}

static void lb_data_reply_whole(struct reply *reply, const struct hash *hash) {
    struct hash_cursor cursor = hash_begin(hash);
    struct hash_pair pair;
    reply_map(reply, hash_count(hash));
    while (!reply_is_lost(reply) && hash_next(&cursor, &pair)) {
        reply_bulk(reply, pair.field);
        reply_bulk(reply, pair.value);
    }
}

void lb_data_reply(struct reply *reply, const struct lb_data *data, const struct hash *hash) {
    if (hash == NULL) {
        reply_null_array(reply);
    } else if (data->fields.at != NULL) {
        lb_data_reply_fields(reply, &data->fields, hash);
    } else {
        lb_data_reply_whole(reply, hash);
    }
}
