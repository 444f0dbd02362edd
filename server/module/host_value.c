/* Values of the host's keys. See host_value.h.
 *
 * The host frees values in other threads, too (UNLINK, FLUSHALL ASYNC). The members go there; what is
 * shared, the rules, is released in the main thread, from a list that any thread may push to. A value that the main
 * thread is at work on (has_remains) goes to that list with all it holds. */
#include "server/module/host_value.h"

#include "skiplist/keyspace/registry_embedded.h"

static struct host_value *_Atomic freed;
static struct {
    struct host_value *freed;    /* taken from the list */
    struct host_value **remains; /* values with remains */
    uint32_t remains_count, remains_capacity;
} left; /* of the main thread */

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
    if (!atomic_load_explicit(&value->has_remains, memory_order_acquire)) {
        if (value->key == NULL && value->ids == NULL) {
            memory_free(value);
            return;
        }
        value->rules = host_value_free_key(value->key);
        value->ids_rules = host_value_free_key(value->ids);
        value->is_emptied = true;
    }
    value->next_freed = atomic_load_explicit(&freed, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&freed, &value->next_freed, value,
                                                  memory_order_release, memory_order_relaxed)) {}
}

/* ---- the main thread ---- */

static bool host_value_reserve_remains(void) {
    if (left.remains_count < left.remains_capacity) {
        return true;
    }
    uint32_t capacity = left.remains_capacity == 0 ? 16 : left.remains_capacity * 2;
    struct host_value **resized =
        memory_resize(left.remains, capacity * sizeof(struct host_value *));
    if (resized == NULL) {
        return false;
    }
    left.remains = resized;
    left.remains_capacity = capacity;
    return true;
}

static bool host_value_key_has_remains(const struct registry_key *key) {
    return key != NULL && board_has_remains(&key->board);
}

/* true: nothing is left of them. */
static bool host_value_free_remains_of(struct registry_key *key, uint32_t work) {
    return key == NULL || board_free_step(&key->board, work);
}

void host_value_note_remains(struct host_value *value) {
    if (atomic_load_explicit(&value->has_remains, memory_order_relaxed) ||
        (!host_value_key_has_remains(value->key) && !host_value_key_has_remains(value->ids))) {
        return;
    }
    if (!host_value_reserve_remains()) {
        while (!host_value_free_remains_of(value->key, UINT32_MAX)) {}
        while (!host_value_free_remains_of(value->ids, UINT32_MAX)) {}
        return;
    }
    left.remains[left.remains_count++] = value;
    atomic_store_explicit(&value->has_remains, true, memory_order_relaxed);
}

bool host_value_has_work(void) {
    return left.freed != NULL || left.remains_count > 0 ||
           atomic_load_explicit(&freed, memory_order_relaxed) != NULL;
}

static void host_value_free_later(struct registry_key **key) {
    if (*key != NULL) {
        registry_embedded_free_later(module.server.registry, *key);
        *key = NULL;
    }
}

static void host_value_release(struct host_value *value) {
    if (value->is_emptied) {
        registry_embedded_release(module.server.registry, value->rules);
        registry_embedded_release(module.server.registry, value->ids_rules);
    } else {
        host_value_free_later(&value->key);
        host_value_free_later(&value->ids);
    }
    if (atomic_load_explicit(&value->has_remains, memory_order_relaxed)) {
        value->is_freed = true;
    } else {
        memory_free(value);
    }
}

/* Some remains of the value that was noted last. */
static void host_value_free_remains(uint32_t work) {
    struct host_value *value = left.remains[left.remains_count - 1];
    if (!host_value_free_remains_of(value->key, work) ||
        !host_value_free_remains_of(value->ids, work)) {
        return;
    }
    left.remains_count--;
    if (value->is_freed) {
        memory_free(value);
    } else {
        atomic_store_explicit(&value->has_remains, false, memory_order_release);
    }
    if (left.remains_count == 0) {
        memory_free(left.remains);
        left.remains = NULL;
        left.remains_capacity = 0;
    }
}

bool host_value_step(uint32_t work) {
    enum { VALUE_WORK = 4 /* as long as so many members */ };
    if (left.freed == NULL) {
        left.freed = atomic_exchange_explicit(&freed, NULL, memory_order_acquire);
    }
    for (uint32_t done = 0; left.freed != NULL && done < work; done += VALUE_WORK) {
        struct host_value *next = left.freed->next_freed;
        host_value_release(left.freed);
        left.freed = next;
    }
    if (left.remains_count > 0) {
        host_value_free_remains(work);
    }
    return host_value_has_work();
}
