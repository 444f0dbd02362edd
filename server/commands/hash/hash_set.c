/* HSET HMSET HSETNX and HDEL: setting and removing fields. A hash is removed with its last field. */
#include "server/commands/hash/hash_write.h"
#include "server/dispatch/call_notify.h"
#include "server/dispatch/cost.h"
#include "skiplist/keyspace/registry_hash.h"

/* The variant: is the reply +OK (HMSET) or the number of new fields? */
static void hset_run(struct call *call) {
    uint32_t argument_count = call->request->count - 2;
    uint32_t added_count;
    if (argument_count % 2 != 0) {
        hash_refuse_arity(call);
    } else if (!hash_write(call, &call->request->args[2], argument_count / 2, "hset",
                           &added_count)) {
        return;
    } else if (*(const bool *)call->command->variant) {
        reply_ok(call->reply);
    } else {
        reply_integer(call->reply, added_count);
    }
}

static const struct command_cost setting_cost = {.bound = COMMAND_BY_ARGUMENTS,
                                                 .count = cost_count_pairs,
                                                 .unit_ns = 400,
                                                 .grown_key = 1,
                                                 .unit = "field",
                                                 .instead = "several commands of a thousand each"};

const struct command command_hset = {
    .name = "HSET",
    .syntax = "key field_value=(field value)...",
    .summary = "Set fields of a hash, and count those that are new",
    .complexity = "O(1) for each field",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .reads_hash = true,
    .cost = &setting_cost,
    .variant = &(const bool){false},
    .run = hset_run,
};

const struct command command_hmset = {
    .name = "HMSET",
    .syntax = "key field_value=(field value)...",
    .summary = "Set fields of a hash, as HSET does; replies OK",
    .complexity = "O(1) for each field",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .reads_hash = true,
    .cost = &setting_cost,
    .variant = &(const bool){true},
    .run = hset_run,
};

static void hsetnx_run(struct call *call) {
    const struct hash *hash;
    struct bytes value;
    uint32_t added_count;
    if (!call_find_hash(call, call_arg(call, 1), &hash)) {
        return;
    }
    if (hash != NULL && hash_find(hash, call_arg(call, 2), &value)) {
        reply_integer(call->reply, 0);
    } else if (hash_write(call, &call->request->args[2], 1, "hset", &added_count)) {
        reply_integer(call->reply, 1);
    }
}

const struct command command_hsetnx = {
    .name = "HSETNX",
    .syntax = "key field value",
    .summary = "Set a field of a hash only if it does not exist",
    .flags = COMMAND_WRITE | COMMAND_DENYOOM | COMMAND_FAST,
    .key_access = "RW insert",
    .reads_hash = true,
    .run = hsetnx_run,
};

static void hash_set_remove_fields(const struct call *call, struct registry_key *key,
                                   uint32_t *removed_count) {
    for (uint32_t i = 2; i < call->request->count; i++) {
        *removed_count += registry_remove_field(call->registry, key, call_arg(call, i));
    }
    if (*removed_count > 0) {
        call_notify(call, SETTING_EVENT_HASH, "hdel", call_arg(call, 1));
    }
    if (hash_count(&key->hash) == 0) {
        registry_remove(call->registry, key);
        call_notify(call, SETTING_EVENT_GENERIC, "del", call_arg(call, 1));
    } else if (*removed_count > 0) {
        registry_tell_members(call->registry, key);
    }
}

static void hdel_run(struct call *call) {
    struct registry_key *key;
    uint32_t removed_count = 0;
    if (!call_find_kind(call, call_arg(call, 1), REGISTRY_HASH, &key)) {
        return;
    }
    if (key != NULL) {
        hash_set_remove_fields(call, key, &removed_count);
    }
    reply_integer(call->reply, removed_count);
}

const struct command command_hdel = {
    .name = "HDEL",
    .syntax = "key field...",
    .summary = "Remove fields of a hash, and count them",
    .complexity = "O(1) for each field",
    .flags = COMMAND_WRITE | COMMAND_FAST,
    .key_access = "RW delete",
    .reads_hash = true,
    .cost = &(const struct command_cost){.bound = COMMAND_BY_ARGUMENTS,
                                         .count = cost_count_members,
                                         .unit_ns = 500,
                                         .unit = "field named",
                                         .instead = "several commands of a thousand each; `DEL` "
                                                    "removes the whole hash at once"},
    .run = hdel_run,
};
