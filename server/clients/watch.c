/* Watched keys and watches, each in their own table. See watch.h.
 *
 * A watched key has an unordered list of its watches. A list's watches belong to its watcher,
 * newest first, so that all of them can be detached at once. A key is freed with its last watch. A
 * key that changes leaves its table at once, so that no later change meets its watches again. */
#include "server/clients/watch.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/memory.h"

enum {
    ENDED_AT_ONCE = 64,     /* detached watches freed after a list was emptied */
    ENDED_BY_A_NEW_ONE = 2, /* detached watches freed by each watch_add */
};

struct watch_key {
    struct link link; /* first member: a link is cast to its key */
    uint32_t database;
    bool is_changed; /* it is no longer in its table, and all its watches are detached */
    struct watch *watches;
    size_t name_size;
    char name[];
};

struct watch {
    struct link link; /* first member: a link is cast to its watch */
    struct watcher *watcher;
    struct watch_key *key;
    struct watch *key_next, **key_at; /* among those of the same key; key_at: what points to it */
    struct watch *older;              /* of the same watcher */
};

struct watcher {
    struct watch_list *list; /* NULL: detached */
    struct watch *newest;
    struct watcher *next_left;
};

/* ---- keys ---- */

static struct bytes watch_key_name(const struct watch_key *key) {
    return (struct bytes){.at = key->name, .size = key->name_size};
}

static uint64_t watch_hash_name(const struct watches *watches, uint32_t database,
                                struct bytes name) {
    return XXH3_64bits_withSeed(name.at, name.size, watches->hash_seed + database);
}

static struct watch_key *watch_find_key(const struct watches *watches, uint32_t database,
                                        struct bytes name) {
    CHECK(database < REGISTRY_DATABASES);
    struct map_find find;
    struct link *link;
    if (!link_table_find(&watches->keys, watch_hash_name(watches, database, name), &find)) {
        return NULL;
    }
    while ((link = link_table_next(&watches->keys, &find)) != NULL) {
        struct watch_key *key = (struct watch_key *)link;
        if (key->database == database && bytes_equal(watch_key_name(key), name)) {
            return key;
        }
    }
    return NULL;
}

/* Add a key without watches. NULL: out of memory. */
static struct watch_key *watch_add_key(struct watches *watches, uint32_t database,
                                       struct bytes name) {
    struct watch_key *key = NULL;
    if (link_table_reserve(&watches->keys)) {
        key = memory_allocate(sizeof *key + name.size);
    }
    if (key == NULL) {
        link_table_shrink(&watches->keys);
        return NULL;
    }
    *key = (struct watch_key){
        .link = {.hash = watch_hash_name(watches, database, name)},
        .database = database,
        .name_size = name.size,
    };
    if (name.size > 0) {
        memcpy(key->name, name.at, name.size);
    }
    link_table_put(&watches->keys, &key->link);
    return key;
}

static void watch_remove_key_if_unwatched(struct watches *watches, struct watch_key *key) {
    if (key->watches == NULL) {
        if (!key->is_changed) {
            link_table_take(&watches->keys, &key->link);
        }
        memory_free(key);
    }
}

/* ---- watches ---- */

static uint64_t watch_hash_pair(const struct watches *watches, const struct watcher *watcher,
                                const struct watch_key *key) {
    const uintptr_t pair[] = {(uintptr_t)watcher, (uintptr_t)key};
    return XXH3_64bits_withSeed(pair, sizeof pair, watches->hash_seed);
}

static struct watch *watch_find(const struct watches *watches, const struct watcher *watcher,
                                const struct watch_key *key) {
    struct map_find find;
    struct link *link;
    if (!link_table_find(&watches->pairs, watch_hash_pair(watches, watcher, key), &find)) {
        return NULL;
    }
    while ((link = link_table_next(&watches->pairs, &find)) != NULL) {
        struct watch *watch = (struct watch *)link;
        if (watch->watcher == watcher && watch->key == key) {
            return watch;
        }
    }
    return NULL;
}

static size_t watch_size(const struct watch_key *key) {
    return sizeof(struct watch) + sizeof(struct watch_key) + key->name_size;
}

/* The list must have a watcher. false: out of memory. */
static bool watch_add_watch(struct watches *watches, struct watch_list *list,
                            struct watch_key *key) {
    struct watcher *watcher = list->watcher;
    struct watch *watch = NULL;
    if (watch_find(watches, watcher, key) != NULL) {
        return true;
    }
    if (link_table_reserve(&watches->pairs)) {
        watch = memory_allocate(sizeof *watch);
    }
    if (watch == NULL) {
        link_table_shrink(&watches->pairs);
        return false;
    }
    *watch = (struct watch){
        .link = {.hash = watch_hash_pair(watches, watcher, key)},
        .watcher = watcher,
        .key = key,
        .key_next = key->watches,
        .key_at = &key->watches,
        .older = watcher->newest,
    };
    if (key->watches != NULL) {
        key->watches->key_at = &watch->key_next;
    }
    key->watches = watch;
    watcher->newest = watch;
    link_table_put(&watches->pairs, &watch->link);
    list->count++;
    list->memory_size += watch_size(key);
    return true;
}

static void watch_end_newest(struct watches *watches, struct watcher *watcher) {
    struct watch *watch = watcher->newest;
    link_table_take(&watches->pairs, &watch->link);
    watcher->newest = watch->older;
    *watch->key_at = watch->key_next;
    if (watch->key_next != NULL) {
        watch->key_next->key_at = watch->key_at;
    }
    watch_remove_key_if_unwatched(watches, watch->key);
    memory_free(watch);
}

/* ---- lists ---- */

static bool watch_ensure_watcher(struct watches *watches, struct watch_list *list) {
    if (list->watcher != NULL) {
        return true;
    }
    list->watcher = memory_allocate(sizeof *list->watcher);
    if (list->watcher == NULL) {
        return false;
    }
    *list->watcher = (struct watcher){.list = list};
    list->next = watches->first;
    list->at = &watches->first;
    if (list->next != NULL) {
        list->next->at = &list->next;
    }
    watches->first = list;
    watches->client_count++;
    return true;
}

static void watch_unlink_list(struct watches *watches, struct watch_list *list) {
    *list->at = list->next;
    if (list->next != NULL) {
        list->next->at = list->at;
    }
    watches->client_count--;
    *list = (struct watch_list){.is_stale = list->is_stale};
}

static void watch_remove_watcher_if_empty(struct watches *watches, struct watch_list *list) {
    if (list->watcher != NULL && list->watcher->newest == NULL) {
        memory_free(list->watcher);
        watch_unlink_list(watches, list);
    }
}

bool watch_add(struct watches *watches, struct watch_list *list, uint32_t database,
               struct bytes name, bool is_held) {
    CHECK(!list->is_stale);
    (void)watch_free_step(watches, ENDED_BY_A_NEW_ONE);
    if (!watch_ensure_watcher(watches, list)) {
        return false;
    }
    struct watch_key *key = watch_find_key(watches, database, name);
    if (key == NULL) {
        key = watch_add_key(watches, database, name);
    }
    bool is_added = key != NULL && watch_add_watch(watches, list, key);
    if (key != NULL) {
        watch_remove_key_if_unwatched(watches, key);
    }
    if (is_added && is_held) {
        list->held_databases |= (uint16_t)(1U << database);
    }
    watch_remove_watcher_if_empty(watches, list);
    return is_added;
}

void watch_cut(struct watches *watches, struct watch_list *list, struct watch_mark mark) {
    while (list->count > mark.count) {
        list->memory_size -= watch_size(list->watcher->newest->key);
        list->count--;
        watch_end_newest(watches, list->watcher);
    }
    list->held_databases = mark.held_databases;
    watch_remove_watcher_if_empty(watches, list);
}

/* Empty the list; no watch and no key is freed. */
static void watch_detach(struct watches *watches, struct watch_list *list) {
    struct watcher *watcher = list->watcher;
    if (watcher != NULL) {
        watcher->list = NULL;
        watcher->next_left = watches->left;
        watches->left = watcher;
        watch_unlink_list(watches, list);
    }
}

void watch_clear(struct watches *watches, struct watch_list *list) {
    watch_detach(watches, list);
    list->is_stale = false;
    (void)watch_free_step(watches, ENDED_AT_ONCE);
}

bool watch_free_step(struct watches *watches, uint32_t work_max) {
    for (uint32_t left = work_max; left > 0 && watches->left != NULL; left--) {
        struct watcher *watcher = watches->left;
        watch_end_newest(watches, watcher);
        if (watcher->newest == NULL) {
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
    return watches->keys.count;
}

/* ---- changes ---- */

void watch_touch(struct watches *watches, uint32_t database, struct bytes name) {
    struct watch_key *key = watch_find_key(watches, database, name);
    if (key == NULL) {
        return;
    }
    link_table_take(&watches->keys, &key->link);
    key->is_changed = true;
    for (const struct watch *watch = key->watches; watch != NULL; watch = watch->key_next) {
        struct watch_list *list = watch->watcher->list;
        if (list != NULL) {
            watch_detach(watches, list);
            list->is_stale = true;
        }
    }
    (void)watch_free_step(watches, ENDED_AT_ONCE);
}

void watch_touch_all(struct watches *watches, uint32_t database) {
    CHECK(database < REGISTRY_DATABASES);
    struct watch_list *next;
    for (struct watch_list *list = watches->first; list != NULL; list = next) {
        next = list->next;
        if ((list->held_databases >> database & 1) != 0) {
            watch_detach(watches, list);
            list->is_stale = true;
        }
    }
    (void)watch_free_step(watches, ENDED_AT_ONCE);
}

void watch_expire(const struct watch_list *list, struct registry *registry, int64_t now_ms) {
    int64_t next_ms = registry_next_due(registry);
    if (next_ms == REGISTRY_NO_EXPIRY || next_ms > now_ms) {
        return;
    }
    const struct watch *watch = list->watcher != NULL ? list->watcher->newest : NULL;
    while (watch != NULL) {
        registry_catch_up(registry, watch->key->database, watch_key_name(watch->key), now_ms);
        /* A stale list's watches are no longer valid. */
        watch = list->is_stale ? NULL : watch->older;
    }
}

/* ---- validation ---- */

static const char *watch_check(const struct watches *watches, const struct watch *watch) {
    const struct watch_key *key = watch->key;
    if (watch_find(watches, watch->watcher, key) != watch) {
        return "watch: a watch is not found by its watcher and key";
    }
    if (*watch->key_at != watch || (key->is_changed && watch->watcher->list != NULL)) {
        return "watch: a watch and its key do not agree";
    }
    return NULL;
}

static const char *watch_check_key(const struct watches *watches, const struct watch_key *key) {
    if (key->watches == NULL || key->watches->key != key || key->is_changed) {
        return "watch: a key has no watches";
    }
    return watch_find_key(watches, key->database, watch_key_name(key)) == key
               ? NULL
               : "watch: a key is not found by its name";
}

static const char *watch_check_lists(const struct watches *watches) {
    uint32_t count = 0;
    struct watch_list *const *at = &watches->first;
    for (const struct watch_list *list = watches->first; list != NULL; list = list->next) {
        uint32_t watch_count = 0;
        if (list->at != at || list->is_stale || list->watcher == NULL ||
            list->watcher->list != list) {
            return "watch: a list that is not empty is linked wrong";
        }
        for (const struct watch *watch = list->watcher->newest; watch != NULL;
             watch = watch->older) {
            watch_count++;
        }
        if (watch_count == 0 || watch_count != list->count) {
            return "watch: a list does not count its watches right";
        }
        at = &list->next;
        count++;
    }
    return count == watches->client_count ? NULL : "watch: lists are not counted right";
}

bool watch_validate(const struct watches *watches, const char **reason) {
    if (!link_table_validate(&watches->keys, reason) ||
        !link_table_validate(&watches->pairs, reason)) {
        return false;
    }
    const char *wrong = watch_check_lists(watches);
    for (uint32_t i = 0; i < watches->keys.count && wrong == NULL; i++) {
        wrong = watch_check_key(watches, (const struct watch_key *)watches->keys.links[i]);
    }
    for (uint32_t i = 0; i < watches->pairs.count && wrong == NULL; i++) {
        wrong = watch_check(watches, (const struct watch *)watches->pairs.links[i]);
    }
    if (wrong != NULL) {
        *reason = wrong;
    }
    return wrong == NULL;
}
