/* The hashes of HSET, as keys of the registry. See lb_hset.h. */
#include "server/commands/lb/lb_hset.h"
#include "skiplist/keyspace/registry.h"

bool lb_hset_open(const struct call *call, const struct lb_hset *hset, struct bytes name,
                  struct lb_hset_place *place) {
    struct registry_key *key = registry_hash_find_or_create(call->registry, call->session->database,
                                                            name, call->now_ms, &place->is_new);
    if (key == NULL) {
        return call_out_of_memory(call);
    }
    if (!call_check_kind(call, key, REGISTRY_HASH)) {
        return false;
    }
    place->key = key;
    return hash_has_room(registry_hash(key), hset->args, hset->count) ||
           call_refuse_format(call, "ERR hash is full: at most %u fields",
                              (unsigned)HASH_FIELDS_END - 1);
}

size_t lb_hset_growth_size(const struct lb_hset *hset, const struct lb_hset_place *place) {
    const struct registry_key *key = place->key;
    if (key == NULL) {
        return 0;
    }
    /* The key may move to where a short hash has more room. */
    return sizeof *key + key->name_size + 2 * HASH_SHORT_SIZE_MAX +
           hash_growth_size(registry_hash(key), hset->args, hset->count);
}

/* A put moves the key, which may be that of several places. */
static struct registry_key *lb_hset_keys_find(const struct call *call,
                                              const struct lb_hset_place *place) {
    const struct registry_key *key = place->key;
    return key != NULL ? registry_find(call->registry, call->session->database, registry_name(key),
                                       call->now_ms)
                       : NULL;
}

void lb_hset_put(const struct call *call, const struct lb_hset *hset,
                 const struct lb_hset_place *place) {
    struct registry_key *key = lb_hset_keys_find(call, place);
    uint32_t added_count;
    if (key == NULL) {
        return;
    }
    bool is_first = hash_count(registry_hash(key)) == 0;
    enum hash_status status =
        registry_hash_put(call->registry, &key, hset->args, hset->count, &added_count);
    CHECK(status == HASH_OK);
    registry_tell_members(call->registry, key);
    if (is_first && place->expire_at_ms != 0) {
        /* Without memory for that it stays until it is removed by name. */
        (void)!registry_expiry_set(call->registry, key, place->expire_at_ms, false);
    }
    if (is_first) {
        call_notify(call, SETTING_EVENT_NEW, "new", registry_name(key));
    }
    call_notify(call, SETTING_EVENT_HASH, "hset", registry_name(key));
}

void lb_hset_end(const struct call *call, const struct lb_hset_place *place) {
    struct registry_key *key = place->is_new ? lb_hset_keys_find(call, place) : NULL;
    if (key != NULL && hash_count(registry_hash(key)) == 0) {
        registry_take_back(call->registry, key);
    }
}
