/* Sets fields. See hash_write.h. */
#include "server/commands/hash/hash_write.h"

#include "server/clients/session.h"
#include "server/dispatch/call_notify.h"
#include "skiplist/keyspace/registry_hash.h"

static bool hash_write_refuse(const struct call *call, enum hash_status status) {
    return status == HASH_FULL ? call_refuse_format(call, "ERR hash is full: at most %u fields",
                                                    (unsigned)HASH_FIELDS_END - 1)
                               : call_out_of_memory(call);
}

bool hash_write(const struct call *call, const struct bytes *pairs, uint32_t count,
                const char *event, uint32_t *added_count) {
    struct bytes name = call_arg(call, 1);
    bool is_new;
    if (!call_check_key(call, name)) {
        return false;
    }
    struct registry_key *key = registry_find_or_create_hash(call->registry, call->session->database,
                                                            name, call->now_ms, &is_new);
    if (key == NULL) {
        return call_out_of_memory(call);
    }
    if (!call_check_kind(call, key, REGISTRY_HASH)) {
        return false;
    }
    enum hash_status status = registry_put_fields(call->registry, key, pairs, count, added_count);
    if (status != HASH_OK) {
        if (is_new) {
            registry_take_back(call->registry, key);
        }
        return hash_write_refuse(call, status);
    }
    registry_tell_members(call->registry, key);
    if (is_new) {
        call_notify(call, SETTING_EVENT_NEW, "new", name);
    }
    call_notify(call, SETTING_EVENT_HASH, event, name);
    return true;
}

bool hash_refuse_arity(const struct call *call) {
    return call_refuse_format(call, "ERR wrong number of arguments for '%s' command",
                              command_full_name(command_index(call->command)));
}
