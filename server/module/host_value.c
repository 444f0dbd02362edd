/* Values of the host's keys. See host_value.h.
 *
 * The host frees values in other threads, too (UNLINK, FLUSHALL ASYNC). The members go there; what is
 * shared, the rules, is released in the main thread, from a list that any thread may push to. */
#include "server/module/host_value.h"

#include <stdatomic.h>

#include "skiplist/keyspace/registry_embedded.h"

static struct host_value *_Atomic freed;

struct host_value *host_value_create(struct registry_key *key) {
    struct host_value *value = memory_allocate(sizeof *value);
    if (value != NULL) {
        *value = (struct host_value){.key = key};
    }
    return value;
}

struct host_value *host_value_of(struct host_key *opened) {
    return host_ModuleTypeGetType(opened) == module.type ? host_ModuleTypeGetValue(opened) : NULL;
}

struct host_value *host_value_of_board(struct host_key *opened) {
    struct host_value *value = host_value_of(opened);
    return value != NULL && value->key != NULL ? value : NULL;
}

static const struct rules *host_value_free_key(struct registry_key *key) {
    return key != NULL ? registry_embedded_free(key) : NULL;
}

void host_value_free(struct host_value *value) {
    if (value->key == NULL && value->ids == NULL) {
        memory_free(value);
        return;
    }
    const struct rules *rules = host_value_free_key(value->key);
    const struct rules *ids_rules = host_value_free_key(value->ids);
    value->freed.rules = rules;
    value->freed.ids_rules = ids_rules;
    value->freed.next = atomic_load_explicit(&freed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&freed, &value->freed.next, value,
                                                  memory_order_release, memory_order_relaxed)) {}
}

static void host_value_release(const struct rules *rules) {
    if (rules != NULL) {
        registry_embedded_release(module.server.registry, rules);
    }
}

void host_value_settle(void) {
    if (atomic_load_explicit(&freed, memory_order_relaxed) == NULL) {
        return;
    }
    struct host_value *value = atomic_exchange_explicit(&freed, NULL, memory_order_acquire);
    while (value != NULL) {
        struct host_value *next = value->freed.next;
        host_value_release(value->freed.rules);
        host_value_release(value->freed.ids_rules);
        memory_free(value);
        value = next;
    }
}
