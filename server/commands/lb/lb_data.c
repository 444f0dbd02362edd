/* Hashes in records. See lb_data.h. */
#include "server/commands/lb/lb_data.h"

#include "codec/memory.h"
#include "server/clients/session.h"
#include "server/dispatch/acl_check.h"
#include "skiplist/keyspace/registry_hash.h"

bool lb_data_check_pattern(const struct call *call, uint32_t index, void *target) {
    (void)target;
    struct bytes pattern = call_arg(call, index);
    bool has_star = pattern.size > 0 && memchr(pattern.at, '*', pattern.size) != NULL;
    if (!has_star || pattern.size > REGISTRY_KEY_MAX) {
        return call_refuse(call, "ERR DATA needs a key with a * where the member goes");
    }
    return acl_check_pattern(call, pattern, true, ACL_READ);
}

/* ---- look-up ---- */

enum { NAMES_ON_STACK = 2048 }; /* bytes of a group's names */

/* The pattern's parts, before and after the *. */
struct parts {
    struct bytes before, after;
};

static struct parts cut(struct bytes pattern) {
    const char *star = memchr(pattern.at, '*', pattern.size);
    size_t size = (size_t)(star - pattern.at);
    return (struct parts){.before = {.at = pattern.at, .size = size},
                          .after = {.at = star + 1, .size = pattern.size - size - 1}};
}

static char *append(char *out, struct bytes text) {
    memcpy(out, text.at, text.size);
    return out + text.size;
}

/* Write the members' keys to out, one after another. */
static void name_keys(const struct parts *parts, const struct bytes *members, unsigned count,
                      char *out, struct bytes *names) {
    for (unsigned i = 0; i < count; i++) {
        char *end = append(append(append(out, parts->before), members[i]), parts->after);
        names[i] = (struct bytes){.at = out, .size = (size_t)(end - out)};
        out = end;
    }
}

static const struct hash *find_hash(const struct call *call, struct registry_prefetch *state) {
    const struct registry_key *key = registry_prefetch_end(call->registry, call->now_ms, state);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        return NULL;
    }
    hash_prefetch(&key->hash);
    return &key->hash;
}

/* Each stage reads what the one before has fetched for the whole group. */
static void find_hashes(const struct call *call, const struct bytes *names, unsigned count,
                        const struct hash **hashes) {
    struct registry_prefetch states[LB_DATA_GROUP];
    for (unsigned i = 0; i < count; i++) {
        registry_prefetch_slots(call->registry, call->session->database, names[i], &states[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        registry_prefetch_place(call->registry, &states[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        registry_prefetch_key(call->registry, &states[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        hashes[i] = find_hash(call, &states[i]);
    }
}

bool lb_data_find(const struct call *call, const struct lb_data *data, const struct bytes *members,
                  unsigned count, const struct hash **hashes) {
    CHECK(count <= LB_DATA_GROUP);
    struct bytes names[LB_DATA_GROUP];
    char on_stack[NAMES_ON_STACK];
    char *out = on_stack;
    size_t size = count * data->pattern.size;
    for (unsigned i = 0; i < count; i++) {
        size += members[i].size;
    }
    if (size > sizeof on_stack) {
        out = memory_allocate(size);
        if (out == NULL) {
            return false;
        }
    }
    struct parts parts = cut(data->pattern);
    name_keys(&parts, members, count, out, names);
    find_hashes(call, names, count, hashes);
    if (out != on_stack) {
        memory_free(out);
    }
    return true;
}

/* ---- replies ---- */

static void reply_fields(struct reply *reply, const struct option_values *fields,
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

static void reply_whole(struct reply *reply, const struct hash *hash) {
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
        reply_fields(reply, &data->fields, hash);
    } else {
        reply_whole(reply, hash);
    }
}
