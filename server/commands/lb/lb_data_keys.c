/* The hashes of members, as keys of the registry. See lb_data.h.
 *
 * In Redis and Valkey the hashes are the host's, and server/module/host_keyspace.c takes this file's place. */
#include "server/commands/lb/lb_data.h"
#include "server/sessions/server.h"
#include "skiplist/keyspace/registry.h"

enum { NAMES_ON_STACK = 2048 }; /* bytes of a group's names */

bool lb_data_keys_find_hashes(const struct call *call, const struct lb_data *data,
                              const struct lb_data_periods *periods, const struct bytes *members,
                              unsigned count, const struct hash **hashes) {
    CHECK(count <= LB_DATA_GROUP);
    struct bytes names[LB_DATA_GROUP];
    char on_stack[NAMES_ON_STACK];
    char *out = on_stack;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        size += lb_data_key_size(data->pattern, members[i], periods->board, periods->suffixes[i]);
    }
    if (size > sizeof on_stack) {
        out = memory_allocate(size);
        if (out == NULL) {
            return false;
        }
    }
    char *at = out;
    for (unsigned i = 0; i < count; i++) {
        names[i].at = at;
        at = lb_data_print_key(data->pattern, members[i], periods->board, periods->suffixes[i], at);
        names[i].size = (size_t)(at - names[i].at);
    }
    /* Each stage reads what the one before has fetched for the whole group. */
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
        const struct registry_key *key =
            registry_prefetch_end(call->registry, call->now_ms, &states[i]);
        hashes[i] = key != NULL && key->kind == REGISTRY_HASH ? registry_hash(key) : NULL;
        if (hashes[i] != NULL) {
            hash_prefetch(hashes[i]);
        }
    }
    struct reads *reads = call->session->reads;
    for (unsigned i = 0; reads != NULL && i < count; i++) {
        server_reads_note(call->server, reads, call->session->database, names[i]);
    }
    if (reads != NULL && lb_data_names_period(data->pattern)) {
        server_reads_outdate(
            reads); /* whose periods these are follows from boards that are not looked at here */
    }
    if (out != on_stack) {
        memory_free(out);
    }
    return true;
}

/* ---- HSET ---- */

bool lb_data_keys_open(const struct call *call, const struct lb_hset *hset, struct bytes name,
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

size_t lb_data_keys_growth_size(const struct lb_hset *hset, const struct lb_hset_place *place) {
    const struct registry_key *key = place->key;
    if (key == NULL) {
        return 0;
    }
    /* The key may move to where a short hash has more room. */
    return sizeof *key + key->name_size + 2 * HASH_SHORT_SIZE_MAX +
           hash_growth_size(registry_hash(key), hset->args, hset->count);
}

/* A put moves the key, which may be that of several places. */
static struct registry_key *lb_data_keys_find(const struct call *call,
                                              const struct lb_hset_place *place) {
    const struct registry_key *key = place->key;
    return key != NULL ? registry_find(call->registry, call->session->database, registry_name(key),
                                       call->now_ms)
                       : NULL;
}

void lb_data_keys_put(const struct call *call, const struct lb_hset *hset,
                      const struct lb_hset_place *place) {
    struct registry_key *key = lb_data_keys_find(call, place);
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

void lb_data_keys_end(const struct call *call, const struct lb_hset_place *place) {
    struct registry_key *key = place->is_new ? lb_data_keys_find(call, place) : NULL;
    if (key != NULL && hash_count(registry_hash(key)) == 0) {
        registry_take_back(call->registry, key);
    }
}
