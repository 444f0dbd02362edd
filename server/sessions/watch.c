/* Subscribers of keys, and the list of those who watch any. See watch.h. */
#include "server/sessions/watch.h"

enum { ENDED_AT_ONCE = 64 }; /* watches freed after lists were emptied */

static void watch_unlink(struct watches *watches, struct watch_list *list) {
    *list->at = list->next;
    if (list->next != NULL) {
        list->next->at = list->at;
    }
    watches->client_count--;
    *list = (struct watch_list){.is_stale = list->is_stale};
}

bool watch_add(struct watches *watches, struct watch_list *list, uint32_t database,
               struct bytes name, bool is_held) {
    struct subscription_key key;
    CHECK(!list->is_stale);
    if (name.size > REGISTRY_NAME_MAX) {
        return true; /* there is no such key, and there will be none */
    }
    bool was_empty = watch_count(list) == 0;
    if (!subscription_add(&watches->keys, &list->keys, list, SUBSCRIPTION_KEY,
                          subscription_put_key(&key, database, name))) {
        return false;
    }
    if (was_empty) {
        list->next = watches->first;
        list->at = &watches->first;
        if (list->next != NULL) {
            list->next->at = &list->next;
        }
        watches->first = list;
        watches->client_count++;
    }
    if (is_held) {
        list->held_databases |= (uint16_t)(1U << database);
    }
    return true;
}

void watch_cut(struct watches *watches, struct watch_list *list, struct watch_mark mark) {
    bool was_empty = watch_count(list) == 0;
    subscription_cut(&watches->keys, &list->keys, SUBSCRIPTION_KEY, mark.count);
    list->held_databases = mark.held_databases;
    if (!was_empty && watch_count(list) == 0) {
        watch_unlink(watches, list);
    }
}

/* Empty the list; no watch and no key is freed. */
static void watch_detach(struct watches *watches, struct watch_list *list) {
    if (watch_count(list) > 0) {
        subscription_leave(&watches->keys, &list->keys, SUBSCRIPTION_KEY);
        watch_unlink(watches, list);
    }
}

void watch_clear(struct watches *watches, struct watch_list *list) {
    watch_detach(watches, list);
    list->is_stale = false;
    (void)watch_free_step(watches, ENDED_AT_ONCE);
}

static void watch_outdate(void *context, void *owner) {
    struct watch_list *list = owner;
    const struct watches *watches = context;
    watch_detach(context, list);
    list->is_stale = true;
    if (watches->on_stale != NULL) {
        watches->on_stale(list);
    }
}

void watch_touch(struct watches *watches, uint32_t database, struct bytes name) {
    struct subscription_key key;
    subscription_retire(&watches->keys, SUBSCRIPTION_KEY,
                        subscription_put_key(&key, database, name), watch_outdate, watches);
    (void)watch_free_step(watches, ENDED_AT_ONCE);
}

void watch_touch_all(struct watches *watches, uint32_t database) {
    CHECK(database < REGISTRY_DATABASES);
    struct watch_list *next;
    for (struct watch_list *list = watches->first; list != NULL; list = next) {
        next = list->next;
        if ((list->held_databases >> database & 1) != 0) {
            watch_outdate(watches, list);
        }
    }
    (void)watch_free_step(watches, ENDED_AT_ONCE);
}

void watch_outdate_all(struct watches *watches) {
    while (watches->first != NULL) {
        watch_outdate(watches, watches->first);
    }
    (void)watch_free_step(watches, ENDED_AT_ONCE);
}

void watch_expire(const struct watch_list *list, struct registry *registry, int64_t now_ms) {
    int64_t next_ms = registry_expiry_next_due(registry);
    if (next_ms == REGISTRY_NO_EXPIRY || next_ms > now_ms) {
        return;
    }
    const struct subscription *watch = subscription_first(&list->keys, SUBSCRIPTION_KEY);
    while (watch != NULL) {
        struct bytes name = subscription_name(watch);
        uint32_t database = subscription_take_database(&name);
        /* The registry reads it to the end, and what it tells meanwhile frees a stale list's. */
        char copy[REGISTRY_NAME_MAX];
        memcpy(copy, name.at, name.size);
        name.at = copy;
        registry_roll_catch_up(registry, database, name, now_ms);
        /* A stale list's watches are no longer valid. */
        watch = list->is_stale ? NULL : subscription_next(watch);
    }
}

static const char *watch_check_lists(const struct watches *watches) {
    uint32_t count = 0;
    struct watch_list *const *at = &watches->first;
    for (const struct watch_list *list = watches->first; list != NULL; list = list->next) {
        const struct subscription *watch = subscription_first(&list->keys, SUBSCRIPTION_KEY);
        uint32_t watch_total = 0;
        if (list->at != at || list->is_stale) {
            return "watch: a list that is not empty is linked wrong";
        }
        for (; watch != NULL; watch = subscription_next(watch)) {
            watch_total++;
        }
        if (watch_total == 0 || watch_total != watch_count(list)) {
            return "watch: a list does not count its watches right";
        }
        at = &list->next;
        count++;
    }
    return count == watches->client_count && count == watches->keys.client_count
               ? NULL
               : "watch: lists are not counted right";
}

bool watch_validate(const struct watches *watches, const char **reason) {
    if (!subscription_validate(&watches->keys, reason)) {
        return false;
    }
    *reason = watch_check_lists(watches);
    return *reason == NULL;
}
