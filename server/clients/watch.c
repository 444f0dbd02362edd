/* Watched keys and watches, each in their own hash table. See watch.h.
 *
 * A watched key has an unordered list of its watches. A list's watches belong to its watcher,
 * newest first, so that all of them can be detached at once. A key is freed with its last watch. */
#include "server/clients/watch.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"

enum {
    SLOTS_MIN = 16,
    ENDED_AT_ONCE_MAX = 64, /* a list with up to this many watches frees them immediately */
    ENDED_BY_A_NEW_ONE = 2, /* detached watches freed by each watch_add */
};

/* The hash table link of a key or a watch. */
struct watch_link {
    struct watch_link *next; /* in the same slot */
    uint64_t hash;
};

struct watch_key {
    struct watch_link link; /* first member: a link is cast to its key */
    struct watch *watches;
    uint32_t watch_count;
    uint32_t database;
    size_t name_size;
    char name[];
};

struct watch {
    struct watch_link link; /* first member: a link is cast to its watch */
    struct watcher *watcher;
    struct watch_key *key;
    struct watch *key_next, *key_previous; /* of the same key; NULL-terminated */
    struct watch *older;                   /* of the same watcher */
};

struct watcher {
    struct watch_list *list; /* NULL: detached */
    struct watch *newest;
    uint32_t count;
    struct watcher *next_left;
};

/* ---- tables ---- */

/* Linear hashing (Litwin, "Linear hashing: a new tool for file and table addressing", 1980): the
 * lowest bits of the hash, one bit less for slots that do not exist yet. */
static uint32_t mask_of(uint32_t slot_count) {
    return slot_count > 1 ? UINT32_MAX >> __builtin_clz(slot_count - 1) : 0;
}

static uint32_t slot_of(uint64_t hash, uint32_t slot_count) {
    uint32_t mask = mask_of(slot_count);
    uint32_t slot = (uint32_t)hash & mask;
    return slot < slot_count ? slot : slot & (mask >> 1);
}

/* The slot that was split to create the last one. */
static uint32_t parent_of_last(uint32_t slot_count) {
    return (slot_count - 1) & (mask_of(slot_count) >> 1);
}

/* The chain that an entry with this hash would be in. */
static struct watch_link *table_first(const struct watch_table *table, uint64_t hash) {
    return table->count > 0 ? table->slots[slot_of(hash, table->count)] : NULL;
}

/* Make room for one more entry. */
static bool table_reserve(struct watch_table *table) {
    if (table->count < table->capacity) {
        return true;
    }
    uint32_t capacity = table->capacity > 0 ? table->capacity * 2 : SLOTS_MIN;
    struct watch_link **slots = memory_resize(table->slots, capacity * sizeof(struct watch_link *));
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

/* table_reserve must have made room. */
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

/* Release unused slots. If that fails, the allocation stays as it is. */
static void table_shrink(struct watch_table *table) {
    if (table->count == 0) {
        memory_free(table->slots);
        *table = (struct watch_table){.slots = NULL};
    } else if (table->capacity > SLOTS_MIN && table->count <= table->capacity / 4) {
        struct watch_link **slots =
            memory_resize(table->slots, table->capacity / 2 * sizeof(struct watch_link *));
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

static uint64_t hash_name(const struct watches *watches, struct bytes name) {
    return XXH3_64bits_withSeed(name.at, name.size, watches->hash_seed);
}

static uint64_t hash_pair(const struct watches *watches, const struct watcher *watcher,
                          const struct watch_key *key) {
    const uintptr_t pair[] = {(uintptr_t)watcher, (uintptr_t)key};
    return XXH3_64bits_withSeed(pair, sizeof pair, watches->hash_seed);
}

static struct bytes key_name(const struct watch_key *key) {
    return (struct bytes){.at = key->name, .size = key->name_size};
}

static struct watch_key *find_key(const struct watches *watches, uint64_t hash, uint32_t database,
                                  struct bytes name) {
    CHECK(database < REGISTRY_DATABASES);
    struct watch_link *link = table_first(&watches->keys[database], hash);
    for (; link != NULL; link = link->next) {
        struct watch_key *key = (struct watch_key *)link;
        if (link->hash == hash && bytes_equal(key_name(key), name)) {
            return key;
        }
    }
    return NULL;
}

static struct watch *find_watch(const struct watches *watches, uint64_t hash,
                                const struct watcher *watcher, const struct watch_key *key) {
    struct watch_link *link = table_first(&watches->pairs, hash);
    for (; link != NULL; link = link->next) {
        struct watch *watch = (struct watch *)link;
        if (watch->watcher == watcher && watch->key == key) {
            return watch;
        }
    }
    return NULL;
}

/* Add a key without watches. NULL: out of memory. */
static struct watch_key *add_key(struct watches *watches, uint64_t hash, uint32_t database,
                                 struct bytes name) {
    struct watch_table *keys = &watches->keys[database];
    if (!table_reserve(keys)) {
        return NULL;
    }
    struct watch_key *key = memory_allocate(sizeof *key + name.size);
    if (key == NULL) {
        table_shrink(keys);
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
    table_put(keys, &key->link);
    return key;
}

static void remove_key_if_unwatched(struct watches *watches, struct watch_key *key) {
    if (key->watch_count == 0) {
        table_take(&watches->keys[key->database], &key->link);
        memory_free(key);
    }
}

static size_t watch_size(const struct watch_key *key) {
    return sizeof(struct watch) + sizeof(struct watch_key) + key->name_size;
}

static void link_watch(struct watches *watches, struct watch *watch) {
    struct watch_key *key = watch->key;
    struct watcher *watcher = watch->watcher;
    watch->key_next = key->watches;
    if (key->watches != NULL) {
        key->watches->key_previous = watch;
    }
    key->watches = watch;
    key->watch_count++;
    watch->older = watcher->newest;
    watcher->newest = watch;
    watcher->count++;
    table_put(&watches->pairs, &watch->link);
}

static void end_newest(struct watches *watches, struct watcher *watcher) {
    struct watch *watch = watcher->newest;
    struct watch_key *key = watch->key;
    table_take(&watches->pairs, &watch->link);
    watcher->newest = watch->older;
    watcher->count--;
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

/* ---- setting ---- */

static void link_list(struct watches *watches, struct watch_list *list) {
    list->previous = NULL;
    list->next = watches->first;
    if (watches->first != NULL) {
        watches->first->previous = list;
    }
    watches->first = list;
    watches->client_count++;
}

static void unlink_list(struct watches *watches, struct watch_list *list) {
    if (list->previous != NULL) {
        list->previous->next = list->next;
    } else {
        watches->first = list->next;
    }
    if (list->next != NULL) {
        list->next->previous = list->previous;
    }
    list->watcher = NULL;
    list->held_databases = 0;
    watches->client_count--;
}

static struct watcher *ensure_watcher(struct watches *watches, struct watch_list *list) {
    if (list->watcher == NULL) {
        list->watcher = memory_allocate(sizeof *list->watcher);
        if (list->watcher != NULL) {
            *list->watcher = (struct watcher){.list = list};
            link_list(watches, list);
        }
    }
    return list->watcher;
}

static void remove_watcher_if_empty(struct watches *watches, struct watch_list *list) {
    if (list->watcher != NULL && list->watcher->count == 0) {
        memory_free(list->watcher);
        unlink_list(watches, list);
    }
}

/* Create a watch that is not linked yet. NULL: out of memory. */
static struct watch *create_watch(struct watches *watches, struct watcher *watcher,
                                  struct watch_key *key, uint64_t hash) {
    struct watch *watch = NULL;
    if (table_reserve(&watches->pairs)) {
        watch = memory_allocate(sizeof *watch);
    }
    if (watch == NULL) {
        table_shrink(&watches->pairs);
        return NULL;
    }
    *watch = (struct watch){.link = {.hash = hash}, .watcher = watcher, .key = key};
    return watch;
}

/* The list must have a watcher. */
static bool add_watch(struct watches *watches, struct watch_list *list, uint32_t database,
                      struct bytes name) {
    uint64_t key_hash = hash_name(watches, name);
    struct watch_key *key = find_key(watches, key_hash, database, name);
    if (key == NULL) {
        key = add_key(watches, key_hash, database, name);
        if (key == NULL) {
            return false;
        }
    }
    uint64_t hash = hash_pair(watches, list->watcher, key);
    if (find_watch(watches, hash, list->watcher, key) != NULL) {
        return true;
    }
    struct watch *watch = create_watch(watches, list->watcher, key, hash);
    if (watch == NULL) {
        remove_key_if_unwatched(watches, key);
        return false;
    }
    link_watch(watches, watch);
    list->count++;
    list->memory_size += watch_size(key);
    return true;
}

bool watch_add(struct watches *watches, struct watch_list *list, uint32_t database,
               struct bytes name, bool is_held) {
    CHECK(!list->is_stale);
    (void)watch_free_step(watches, ENDED_BY_A_NEW_ONE);
    if (ensure_watcher(watches, list) == NULL) {
        return false;
    }
    bool is_added = add_watch(watches, list, database, name);
    if (is_added && is_held) {
        list->held_databases |= (uint16_t)(1U << database);
    }
    remove_watcher_if_empty(watches, list);
    return is_added;
}

/* ---- ending ---- */

void watch_cut(struct watches *watches, struct watch_list *list, struct watch_mark mark) {
    while (list->count > mark.count) {
        list->memory_size -= watch_size(list->watcher->newest->key);
        list->count--;
        end_newest(watches, list->watcher);
    }
    list->held_databases = mark.held_databases;
    remove_watcher_if_empty(watches, list);
}

/* Empty the list. Many watches are detached, to be freed in steps. */
static void let_go(struct watches *watches, struct watch_list *list) {
    if (list->count <= ENDED_AT_ONCE_MAX) {
        watch_cut(watches, list, (struct watch_mark){.count = 0});
        return;
    }
    struct watcher *watcher = list->watcher;
    watcher->list = NULL;
    watcher->next_left = watches->left;
    watches->left = watcher;
    unlink_list(watches, list);
    list->count = 0;
    list->memory_size = 0;
}

void watch_clear(struct watches *watches, struct watch_list *list) {
    let_go(watches, list);
    list->is_stale = false;
}

bool watch_free_step(struct watches *watches, uint32_t work_max) {
    for (uint32_t left = work_max; left > 0 && watches->left != NULL; left--) {
        struct watcher *watcher = watches->left;
        end_newest(watches, watcher);
        if (watcher->count == 0) {
            watches->left = watcher->next_left;
            memory_free(watcher);
        }
    }
    return watches->left != NULL;
}

void watch_deinit(struct watches *watches) {
    CHECK(watches->client_count == 0);
    while (watch_free_step(watches, UINT32_MAX)) {}
}

uint32_t watch_key_count(const struct watches *watches) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < REGISTRY_DATABASES; i++) {
        count += watches->keys[i].count;
    }
    return count;
}

/* ---- changes ---- */

static void mark_list(struct watch_list *list, struct watch_list **stale) {
    if (!list->is_stale) {
        list->is_stale = true;
        list->next_stale = *stale;
        *stale = list;
    }
}

/* Mark the lists that watch a key as stale, and add them to the chain. */
static void mark_stale(const struct watch_key *key, struct watch_list **stale) {
    for (const struct watch *watch = key->watches; watch != NULL; watch = watch->key_next) {
        if (watch->watcher->list != NULL) {
            mark_list(watch->watcher->list, stale);
        }
    }
}

/* Keys may be freed here, so all lists must be marked first. */
static void let_go_of_all(struct watches *watches, struct watch_list *stale) {
    while (stale != NULL) {
        struct watch_list *next = stale->next_stale;
        stale->next_stale = NULL;
        let_go(watches, stale);
        stale = next;
    }
}

void watch_touch(struct watches *watches, uint32_t database, struct bytes name) {
    if (watches->keys[database].count == 0) {
        return;
    }
    const struct watch_key *key = find_key(watches, hash_name(watches, name), database, name);
    if (key != NULL) {
        struct watch_list *stale = NULL;
        mark_stale(key, &stale);
        let_go_of_all(watches, stale);
    }
}

void watch_touch_all(struct watches *watches, uint32_t database) {
    CHECK(database < REGISTRY_DATABASES);
    struct watch_list *stale = NULL;
    for (struct watch_list *list = watches->first; list != NULL; list = list->next) {
        if ((list->held_databases >> database & 1) != 0) {
            mark_list(list, &stale);
        }
    }
    let_go_of_all(watches, stale);
}

void watch_expire(const struct watch_list *list, struct registry *registry, int64_t now_ms) {
    int64_t next_ms = registry_next_due(registry);
    if (next_ms == REGISTRY_NO_EXPIRY || next_ms > now_ms) {
        return;
    }
    const struct watch *watch = list->watcher != NULL ? list->watcher->newest : NULL;
    while (watch != NULL) {
        registry_catch_up(registry, watch->key->database, key_name(watch->key), now_ms);
        /* A stale list's watches are no longer valid. */
        watch = list->is_stale ? NULL : watch->older;
    }
}

/* ---- validation ---- */

static const char *check_key(const struct watches *watches, const struct watch_key *key) {
    uint32_t count = 0;
    for (const struct watch *watch = key->watches; watch != NULL; watch = watch->key_next) {
        if (watch->key != key ||
            find_watch(watches, watch->link.hash, watch->watcher, key) != watch) {
            return "watch: a watch is not found by its watcher and key";
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

/* Check the keys of one database, and add up their watches. */
static const char *check_keys(const struct watches *watches, uint32_t database,
                              uint64_t *watch_count) {
    const struct watch_table *keys = &watches->keys[database];
    uint64_t key_count = 0;
    for (uint32_t slot = 0; slot < keys->count; slot++) {
        for (const struct watch_link *link = keys->slots[slot]; link != NULL; link = link->next) {
            const struct watch_key *key = (const struct watch_key *)link;
            const char *wrong = key->database == database
                                    ? check_key(watches, key)
                                    : "watch: a key is in another database's table";
            if (wrong != NULL) {
                return wrong;
            }
            key_count++;
            *watch_count += key->watch_count;
        }
    }
    return key_count == keys->count ? NULL : "watch: a table does not count its keys right";
}

static const char *check_lists(const struct watches *watches) {
    uint32_t count = 0;
    const struct watch_list *previous = NULL;
    for (const struct watch_list *list = watches->first; list != NULL; list = list->next) {
        if (list->previous != previous || list->is_stale || list->watcher == NULL ||
            list->watcher->list != list || list->watcher->count != list->count) {
            return "watch: a list that is not empty is linked wrong";
        }
        previous = list;
        count++;
    }
    return count == watches->client_count ? NULL : "watch: lists are not counted right";
}

bool watch_validate(const struct watches *watches, const char **reason) {
    uint64_t watch_count = 0;
    const char *wrong = NULL;
    for (uint32_t i = 0; i < REGISTRY_DATABASES && wrong == NULL; i++) {
        wrong = check_keys(watches, i, &watch_count);
    }
    if (wrong == NULL && watch_count != watches->pairs.count) {
        wrong = "watch: watches are not counted right";
    }
    if (wrong == NULL) {
        wrong = check_lists(watches);
    }
    if (wrong != NULL) {
        *reason = wrong;
    }
    return wrong == NULL;
}
