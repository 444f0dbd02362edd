/* The hashes of members, by their keys. See lb_data.h.
 *
 * In Redis and Valkey the hashes are the host's, and server/module/host_keyspace.c takes this file's place. */
#include "server/clients/reads.h"
#include "server/commands/lb/lb_data.h"
#include "skiplist/keyspace/registry.h"

enum { NAMES_ON_STACK = 2048 }; /* bytes of a group's names */

/* Write the members' keys to out, one after another. */
static void lb_data_find_name_keys(struct bytes pattern, const struct lb_data_periods *periods,
                                   const struct bytes *members, unsigned count, char *out,
                                   struct bytes *names) {
    for (unsigned i = 0; i < count; i++) {
        char *end =
            lb_data_print_key(pattern, members[i], periods->board, periods->suffixes[i], out);
        names[i] = (struct bytes){.at = out, .size = (size_t)(end - out)};
        out = end;
    }
}

static const struct hash *lb_data_find_hash(const struct call *call,
                                            struct registry_prefetch *state) {
    const struct registry_key *key = registry_prefetch_end(call->registry, call->now_ms, state);
    if (key == NULL || key->kind != REGISTRY_HASH) {
        return NULL;
    }
    hash_prefetch(registry_hash(key));
    return registry_hash(key);
}

bool lb_data_find(const struct call *call, const struct lb_data *data,
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
    lb_data_find_name_keys(data->pattern, periods, members, count, out, names);
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
        hashes[i] = lb_data_find_hash(call, &states[i]);
    }
    struct reads *reads = call->session->reads;
    for (unsigned i = 0; reads != NULL && i < count; i++) {
        reads_note(call->server, reads, call->session->database, names[i]);
    }
    if (reads != NULL && lb_data_names_period(data->pattern)) {
        reads_outdate(
            reads); /* whose periods these are follows from boards that are not looked at here */
    }
    if (out != on_stack) {
        memory_free(out);
    }
    return true;
}
