/* Watched keys and watches, each in a table of its own. See watch.h for the whole.
 *
 * A watched key holds its watches in no order; a watch list holds its own, the newest first. A key
 * goes with its last watch. */
#include "server/watch.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"

enum { SLOTS_MIN = 16 };

/* How a key or a watch hangs in a table. */
struct watch_link {
    struct watch_link *next; /* of the same slot */
    uint64_t hash;
};

struct watch_key {
    struct watch_link link; /* first: a link is its key */
    struct watch *watches;
    uint32_t watch_count;
    uint32_t database;
    size_t name_size;
    char name[];
};

struct watch {
    struct watch_link link; /* first: a link is its watch */
    struct watch_list *list;
    struct watch_key *key;
    struct watch *key_next, *key_previous; /* of the same key; NULL-ended */
    struct watch *older;                   /* of the same list */
};

/* ---- tables ---- */

/* Linear hashing (Litwin, "Linear hashing: a new tool for file and table addressing", 1980): the
 * hash's lowest bits, one bit less for slots that are not there yet. */
static uint32_t mask_of(uint32_t slot_count) {
    return slot_count > 1 ? UINT32_MAX >> __builtin_clz(slot_count - 1) : 0;
}

static uint32_t slot_of(uint64_t hash, uint32_t slot_count) {
    uint32_t mask = mask_of(slot_count);
    uint32_t slot = (uint32_t)hash & mask;
    return slot < slot_count ? slot : slot & (mask >> 1);
}

/* The slot that the last one's entries were in before there was a last one. */
static uint32_t parent_of_last(uint32_t slot_count) {
    return (slot_count - 1) & (mask_of(slot_count) >> 1);
}

/* The chain in which an entry with this hash is, if there is one. */
static struct watch_link *table_first(const struct watch_table *table, uint64_t hash) {
    return table->count > 0 ? table->slots[slot_of(hash, table->count)] : NULL;
}

/* Room for one more entry. */
static bool table_reserve(struct watch_table *table) {
    if (table->count < table->capacity) {
        return true;
    }
    uint32_t capacity = table->capacity > 0 ? table->capacity * 2 : SLOTS_MIN;
    struct watch_link **slots = memory_resize(table->slots, capacity * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    table->slots = slots;
    table->capacity = capacity;
    return true;
}

static void slot_put(struct watch_table *table, struct watch_link *link) {
    struct watch_link **slot = &table->slots[slot_of(link->hash, table->count)];
    link->next = *slot;
    *slot = link;
}

/* table_reserve has made room. */
static void table_put(struct watch_table *table, struct watch_link *link) {
    uint32_t slot_count = ++table->count;
    uint32_t parent = parent_of_last(slot_count);
    struct watch_link *moving = slot_count > 1 ? table->slots[parent] : NULL;
    table->slots[parent] = NULL;
    table->slots[slot_count - 1] = NULL;
    while (moving != NULL) {
        struct watch_link *next = moving->next;
        slot_put(table, moving);
        moving = next;
    }
    slot_put(table, link);
}

/* Give back slots; a failure leaves them where they are. */
static void table_shrink(struct watch_table *table) {
    if (table->count == 0) {
        memory_free(table->slots);
        *table = (struct watch_table){.slots = NULL};
    } else if (table->capacity > SLOTS_MIN && table->count <= table->capacity / 4) {
        struct watch_link **slots =
            memory_resize(table->slots, table->capacity / 2 * sizeof *slots);
        if (slots != NULL) {
            table->slots = slots;
            table->capacity /= 2;
        }
    }
}

static void table_take(struct watch_table *table, struct watch_link *link) {
    struct watch_link **at = &table->slots[slot_of(link->hash, table->count)];
    while (*at != link) {
        at = &(*at)->next;
    }
    *at = link->next;
    struct watch_link *moving = table->slots[table->count - 1];
    table->slots[table->count - 1] = NULL;
    table->count--;
    while (moving != NULL) {
        struct watch_link *next = moving->next;
        slot_put(table, moving);
        moving = next;
    }
    table_shrink(table);
}

/* ---- keys and watches ---- */

static uint64_t hash_key(const struct watches *watches, uint32_t database, struct bytes name) {
    return XXH3_64bits_withSeed(name.at, name.size, watches->hash_seed + database);
}

static uint64_t hash_pair(const struct watches *watches, const struct watch_list *list,
                          const struct watch_key *key) {
    const uintptr_t pair[] = {(uintptr_t)list, (uintptr_t)key};
    return XXH3_64bits_withSeed(pair, sizeof pair, watches->hash_seed);
}

static struct bytes key_name(const struct watch_key *key) {
    return (struct bytes){.at = key->name, .size = key->name_size};
}

static struct watch_key *find_key(const struct watches *watches, uint64_t hash, uint32_t database,
                                  struct bytes name) {
    struct watch_link *link = table_first(&watches->keys, hash);
    for (; link != NULL; link = link->next) {
        struct watch_key *key = (struct watch_key *)link;
        if (link->hash == hash && key->database == database && bytes_equal(key_name(key), name)) {
            return key;
        }
    }
    return NULL;
}

static struct watch *find_watch(const struct watches *watches, uint64_t hash,
                                const struct watch_list *list, const struct watch_key *key) {
    struct watch_link *link = table_first(&watches->pairs, hash);
    for (; link != NULL; link = link->next) {
        struct watch *watch = (struct watch *)link;
        if (watch->list == list && watch->key == key) {
            return watch;
        }
    }
    return NULL;
}

/* A key that nobody watches yet. NULL: no memory. */
static struct watch_key *add_key(struct watches *watches, uint64_t hash, uint32_t database,
                                 struct bytes name) {
    if (!table_reserve(&watches->keys)) {
        return NULL;
    }
    struct watch_key *key = memory_allocate(sizeof *key + name.size);
    if (key == NULL) {
        table_shrink(&watches->keys);
        return NULL;
    }
    *key = (struct watch_key){
        .link = {.hash = hash},
        .database = database,
        .name_size = name.size,
    };
    if (name.size > 0) {
        memcpy(key->name, name.at, name.size);
    }
    table_put(&watches->keys, &key->link);
    return key;
}

static void remove_key_if_unwatched(struct watches *watches, struct watch_key *key) {
    if (key->watch_count == 0) {
        table_take(&watches->keys, &key->link);
        memory_free(key);
    }
}

static size_t watch_size(const struct watch_key *key) {
    return sizeof(struct watch) + sizeof(struct watch_key) + key->name_size;
}

static void link_watch(struct watches *watches, struct watch *watch) {
    struct watch_key *key = watch->key;
    struct watch_list *list = watch->list;
    watch->key_next = key->watches;
    if (key->watches != NULL) {
        key->watches->key_previous = watch;
    }
    key->watches = watch;
    key->watch_count++;
    watches->client_count += list->count == 0;
    watch->older = list->newest;
    list->newest = watch;
    list->count++;
    list->memory_size += watch_size(key);
    table_put(&watches->pairs, &watch->link);
}

static void end_newest(struct watches *watches, struct watch_list *list) {
    struct watch *watch = list->newest;
    struct watch_key *key = watch->key;
    table_take(&watches->pairs, &watch->link);
    list->newest = watch->older;
    list->count--;
    list->memory_size -= watch_size(key);
    watches->client_count -= list->count == 0;
    if (watch->key_previous != NULL) {
        watch->key_previous->key_next = watch->key_next;
    } else {
        key->watches = watch->key_next;
    }
    if (watch->key_next != NULL) {
        watch->key_next->key_previous = watch->key_previous;
    }
    key->watch_count--;
    remove_key_if_unwatched(watches, key);
    memory_free(watch);
}

/* ---- setting and ending ---- */

bool watch_add(struct watches *watches, struct watch_list *list, uint32_t database,
               struct bytes name) {
    CHECK(!list->is_stale);
    uint64_t hash = hash_key(watches, database, name);
    struct watch_key *key = find_key(watches, hash, database, name);
    if (key == NULL) {
        key = add_key(watches, hash, database, name);
        if (key == NULL) {
            return false;
        }
    }
    uint64_t pair_hash = hash_pair(watches, list, key);
    if (find_watch(watches, pair_hash, list, key) != NULL) {
        return true;
    }
    struct watch *watch = NULL;
    if (table_reserve(&watches->pairs)) {
        watch = memory_allocate(sizeof *watch);
    }
    if (watch == NULL) {
        table_shrink(&watches->pairs);
        remove_key_if_unwatched(watches, key);
        return false;
    }
    *watch = (struct watch){.link = {.hash = pair_hash}, .list = list, .key = key};
    link_watch(watches, watch);
    return true;
}

void watch_cut(struct watches *watches, struct watch_list *list, uint32_t count) {
    while (list->count > count) {
        end_newest(watches, list);
    }
}

void watch_clear(struct watches *watches, struct watch_list *list) {
    watch_cut(watches, list, 0);
    list->is_stale = false;
}

/* ---- changes ---- */

static void touch_key(struct watches *watches, const struct watch_key *key) {
    /* The key goes with the last of them. */
    for (uint32_t left = key->watch_count; left > 0; left--) {
        struct watch_list *list = key->watches->list;
        list->is_stale = true;
        watch_cut(watches, list, 0);
    }
}

void watch_touch(struct watches *watches, uint32_t database, struct bytes name) {
    if (watches->keys.count == 0) {
        return;
    }
    struct watch_key *key = find_key(watches, hash_key(watches, database, name), database, name);
    if (key != NULL) {
        touch_key(watches, key);
    }
}

/* Is there such a key, expired or not? An expired one was not when it was watched. */
static bool is_held(const struct registry *registry, const struct watch_key *key) {
    return registry_peek(registry, key->database, key_name(key), INT64_MIN) != NULL;
}

/* The first key of a slot that a flush removes; NULL: none. */
static const struct watch_key *find_flushed(const struct watches *watches, uint32_t slot,
                                            const struct registry *registry, uint32_t database) {
    const struct watch_link *link = watches->keys.slots[slot];
    for (; link != NULL; link = link->next) {
        const struct watch_key *key = (const struct watch_key *)link;
        if (key->database == database && is_held(registry, key)) {
            return key;
        }
    }
    return NULL;
}

void watch_touch_all(struct watches *watches, const struct registry *registry, uint32_t database) {
    /* From the last slot down: a removal moves entries of the last slot to a lower one, or leaves
     * them. */
    for (uint32_t slot = watches->keys.count; slot-- > 0;) {
        const struct watch_key *key;
        while (slot < watches->keys.count &&
               (key = find_flushed(watches, slot, registry, database)) != NULL) {
            touch_key(watches, key);
        }
    }
}

void watch_expire(const struct watch_list *list, struct registry *registry, int64_t now_ms) {
    int64_t next_ms = registry_next_expiry(registry);
    if (next_ms == REGISTRY_NO_EXPIRY || next_ms > now_ms) {
        return;
    }
    const struct watch *watch = list->newest;
    while (watch != NULL) {
        (void)registry_find(registry, watch->key->database, key_name(watch->key), now_ms);
        /* Then the watches are gone. */
        watch = list->is_stale ? NULL : watch->older;
    }
}

/* ---- validation ---- */

static const char *check_key(const struct watches *watches, const struct watch_key *key) {
    uint32_t count = 0;
    for (const struct watch *watch = key->watches; watch != NULL; watch = watch->key_next) {
        if (watch->key != key || find_watch(watches, watch->link.hash, watch->list, key) != watch) {
            return "watch: a watch is not found by its list and key";
        }
        count++;
    }
    if (count == 0 || count != key->watch_count) {
        return "watch: a key's watches are not counted right";
    }
    if (find_key(watches, key->link.hash, key->database, key_name(key)) != key) {
        return "watch: a key is not found by its name";
    }
    return NULL;
}

bool watch_validate(const struct watches *watches, const char **reason) {
    uint64_t key_count = 0;
    uint64_t watch_count = 0;
    for (uint32_t slot = 0; slot < watches->keys.count; slot++) {
        const struct watch_link *link = watches->keys.slots[slot];
        for (; link != NULL; link = link->next) {
            const struct watch_key *key = (const struct watch_key *)link;
            const char *wrong = check_key(watches, key);
            if (wrong != NULL) {
                *reason = wrong;
                return false;
            }
            key_count++;
            watch_count += key->watch_count;
        }
    }
    if (key_count != watches->keys.count || watch_count != watches->pairs.count) {
        *reason = "watch: a table does not count its entries right";
        return false;
    }
    return true;
}
