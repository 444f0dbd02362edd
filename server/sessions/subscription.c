/* Topics by name, a table a kind, and subscriptions by client and topic. See subscription.h.
 *
 * A topic has its subscriptions in order of arrival. Those of a client are in order, too, a list a
 * kind, so that all can be left behind at once. */
#include "server/sessions/subscription.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "codec/glob.h"
#include "codec/memory.h"

enum {
    FREED_AT_ONCE = 64,     /* subscriptions freed when a list is cleared */
    FREED_BY_A_NEW_ONE = 2, /* and by each subscription_add */
};

struct topic {
    struct link link; /* first member: a link is cast to its topic */
    enum subscription_kind kind;
    uint32_t count; /* subscriptions, including those that are left */
    struct subscription *first, *last;
    struct topic *marked_next, *marked_previous;
    bool is_marked;
    bool is_retired;     /* no longer in its table, and all its subscriptions are left */
    void *follow;        /* of the observer; or NULL */
    uint32_t plain_size; /* of a pattern: bytes at its begin that stand for themselves */
    uint32_t name_size;
    char name[];
};

struct subscription {
    struct link link; /* first member: a link is cast to its subscription */
    struct subscriber *subscriber;
    struct topic *topic;
    struct subscription *topic_next, *topic_previous;
    struct subscription *own_next, *own_previous; /* of the same subscriber */
};

struct subscriber {
    void *owner;                    /* NULL: left */
    struct subscription_list *list; /* the owner's, unless it is left */
    struct subscription *first, *last;
    size_t memory_size;
    struct subscriber *next_left;
};

/* ---- topics ---- */

static struct bytes subscription_topic_name(const struct topic *topic) {
    return (struct bytes){.at = topic->name, .size = topic->name_size};
}

static uint64_t subscription_hash_name(const struct subscriptions *all, struct bytes name) {
    return XXH3_64bits_withSeed(name.at, name.size, all->hash_seed);
}

static struct topic *subscription_find_topic(const struct subscriptions *all,
                                             enum subscription_kind kind, struct bytes name) {
    struct map_find find;
    struct link *link;
    if (!link_table_find(&all->topics[kind], subscription_hash_name(all, name), &find)) {
        return NULL;
    }
    while ((link = link_table_next(&all->topics[kind], &find)) != NULL) {
        struct topic *topic = (struct topic *)link;
        if (bytes_equal(subscription_topic_name(topic), name)) {
            return topic;
        }
    }
    return NULL;
}

static void subscription_remove_topic(struct subscriptions *all, struct topic *topic) {
    if (topic->follow != NULL) {
        all->observer.remove(all->observer.context, topic->follow);
    }
    if (!topic->is_retired) {
        link_table_take(&all->topics[topic->kind], &topic->link);
    }
    memory_free(topic);
}

/* Add a topic without subscriptions. NULL: out of memory. */
static struct topic *subscription_add_topic(struct subscriptions *all, enum subscription_kind kind,
                                            struct bytes name) {
    struct link_table *table = &all->topics[kind];
    CHECK(name.size <= UINT32_MAX);
    struct topic *topic =
        link_table_reserve(table) ? memory_allocate(sizeof *topic + name.size) : NULL;
    if (topic == NULL) {
        link_table_shrink(table);
        return NULL;
    }
    *topic = (struct topic){
        .link = {.hash = subscription_hash_name(all, name)},
        .kind = kind,
        .plain_size = (uint32_t)glob_plain_size(name),
        .name_size = (uint32_t)name.size,
    };
    if (name.size > 0) {
        memcpy(topic->name, name.at, name.size);
    }
    link_table_put(table, &topic->link);
    if (kind == SUBSCRIPTION_CHANNEL && all->observer.add != NULL &&
        !all->observer.add(all->observer.context, subscription_topic_name(topic), &topic->follow)) {
        subscription_remove_topic(all, topic);
        return NULL;
    }
    return topic;
}

static void subscription_unmark_topic(struct subscriptions *all, struct topic *topic) {
    *(topic->marked_previous != NULL ? &topic->marked_previous->marked_next : &all->marked_first) =
        topic->marked_next;
    *(topic->marked_next != NULL ? &topic->marked_next->marked_previous : &all->marked_last) =
        topic->marked_previous;
    topic->is_marked = false;
}

static void subscription_remove_topic_if_empty(struct subscriptions *all, struct topic *topic) {
    if (topic->first == NULL) {
        if (topic->is_marked) {
            subscription_unmark_topic(all, topic);
        }
        subscription_remove_topic(all, topic);
    }
}

/* ---- subscriptions ---- */

static uint64_t subscription_hash_pair(const struct subscriptions *all,
                                       const struct subscriber *subscriber,
                                       const struct topic *topic) {
    const uintptr_t pair[] = {(uintptr_t)subscriber, (uintptr_t)topic};
    return XXH3_64bits_withSeed(pair, sizeof pair, all->hash_seed);
}

static struct subscription *subscription_find(const struct subscriptions *all,
                                              const struct subscriber *subscriber,
                                              const struct topic *topic) {
    struct map_find find;
    struct link *link;
    if (!link_table_find(&all->pairs, subscription_hash_pair(all, subscriber, topic), &find)) {
        return NULL;
    }
    while ((link = link_table_next(&all->pairs, &find)) != NULL) {
        struct subscription *subscription = (struct subscription *)link;
        if (subscription->subscriber == subscriber && subscription->topic == topic) {
            return subscription;
        }
    }
    return NULL;
}

static size_t subscription_size(const struct topic *topic) {
    return sizeof(struct subscription) + sizeof(struct topic) + topic->name_size;
}

static void subscription_free(struct subscriptions *all, struct subscription *gone) {
    struct topic *topic = gone->topic;
    struct subscriber *subscriber = gone->subscriber;
    link_table_take(&all->pairs, &gone->link);
    *(gone->topic_previous != NULL ? &gone->topic_previous->topic_next : &topic->first) =
        gone->topic_next;
    *(gone->topic_next != NULL ? &gone->topic_next->topic_previous : &topic->last) =
        gone->topic_previous;
    topic->count--;
    *(gone->own_previous != NULL ? &gone->own_previous->own_next : &subscriber->first) =
        gone->own_next;
    *(gone->own_next != NULL ? &gone->own_next->own_previous : &subscriber->last) =
        gone->own_previous;
    memory_free(gone);
    subscription_remove_topic_if_empty(all, topic);
}

/* NULL: out of memory. */
static struct subscription *subscription_add_subscription(struct subscriptions *all,
                                                          struct subscriber *subscriber,
                                                          struct topic *topic) {
    struct subscription *subscription =
        link_table_reserve(&all->pairs) ? memory_allocate(sizeof *subscription) : NULL;
    if (subscription == NULL) {
        link_table_shrink(&all->pairs);
        return NULL;
    }
    *subscription = (struct subscription){
        .link = {.hash = subscription_hash_pair(all, subscriber, topic)},
        .subscriber = subscriber,
        .topic = topic,
        .topic_previous = topic->last,
        .own_previous = subscriber->last,
    };
    *(topic->last != NULL ? &topic->last->topic_next : &topic->first) = subscription;
    topic->last = subscription;
    topic->count++;
    *(subscriber->last != NULL ? &subscriber->last->own_next : &subscriber->first) = subscription;
    subscriber->last = subscription;
    link_table_put(&all->pairs, &subscription->link);
    return subscription;
}

/* ---- lists ---- */

static void subscription_remove_subscriber_if_empty(struct subscription_list *list,
                                                    enum subscription_kind kind) {
    if (list->subscribers[kind] != NULL && list->subscribers[kind]->first == NULL) {
        memory_free(list->subscribers[kind]);
        list->subscribers[kind] = NULL;
    }
}

bool subscription_add(struct subscriptions *all, struct subscription_list *list, void *owner,
                      enum subscription_kind kind, struct bytes name) {
    (void)subscription_free_step(all, FREED_BY_A_NEW_ONE);
    struct subscriber *subscriber = list->subscribers[kind];
    struct topic *topic = subscription_find_topic(all, kind, name);
    if (subscriber == NULL) {
        subscriber = memory_allocate_zeroed(sizeof *subscriber);
        if (subscriber == NULL) {
            return false;
        }
        subscriber->owner = owner;
        subscriber->list = list;
        list->subscribers[kind] = subscriber;
    }
    if (topic != NULL && subscription_find(all, subscriber, topic) != NULL) {
        return true;
    }
    topic = topic != NULL ? topic : subscription_add_topic(all, kind, name);
    bool is_added = topic != NULL && subscription_add_subscription(all, subscriber, topic) != NULL;
    if (is_added) {
        all->client_count += !subscription_list_is_used(list);
        list->counts[kind]++;
        list->observed_count += topic->follow != NULL;
        list->memory_size += subscription_size(topic);
        subscriber->memory_size += subscription_size(topic);
    } else if (topic != NULL) {
        subscription_remove_topic_if_empty(all, topic);
    }
    subscription_remove_subscriber_if_empty(list, kind);
    return is_added;
}

static void subscription_remove_from_list(struct subscriptions *all, struct subscription_list *list,
                                          struct subscription *subscription) {
    enum subscription_kind kind = subscription->topic->kind;
    size_t size = subscription_size(subscription->topic);
    list->memory_size -= size;
    list->subscribers[kind]->memory_size -= size;
    list->counts[kind]--;
    list->observed_count -= subscription->topic->follow != NULL;
    all->client_count -= !subscription_list_is_used(list);
    subscription_free(all, subscription);
    subscription_remove_subscriber_if_empty(list, kind);
}

void subscription_remove(struct subscriptions *all, struct subscription_list *list,
                         enum subscription_kind kind, struct bytes name) {
    struct topic *topic = subscription_find_topic(all, kind, name);
    if (topic == NULL || list->subscribers[kind] == NULL) {
        return;
    }
    struct subscription *subscription = subscription_find(all, list->subscribers[kind], topic);
    if (subscription != NULL) {
        subscription_remove_from_list(all, list, subscription);
    }
}

void subscription_cut(struct subscriptions *all, struct subscription_list *list,
                      enum subscription_kind kind, uint32_t count_left) {
    while (list->counts[kind] > count_left) {
        subscription_remove_from_list(all, list, list->subscribers[kind]->last);
    }
}

void subscription_leave(struct subscriptions *all, struct subscription_list *list,
                        enum subscription_kind kind) {
    struct subscriber *subscriber = list->subscribers[kind];
    if (subscriber == NULL) {
        return;
    }
    list->subscribers[kind] = NULL;
    list->counts[kind] = 0;
    list->observed_count = kind == SUBSCRIPTION_CHANNEL ? 0 : list->observed_count;
    list->memory_size -= subscriber->memory_size;
    all->client_count -= !subscription_list_is_used(list);
    subscriber->owner = NULL;
    subscriber->next_left = all->left;
    all->left = subscriber;
}

void subscription_clear(struct subscriptions *all, struct subscription_list *list,
                        enum subscription_kind kind) {
    if (list->subscribers[kind] != NULL) {
        subscription_leave(all, list, kind);
        (void)subscription_free_step(all, FREED_AT_ONCE);
    }
}

bool subscription_free_step(struct subscriptions *all, uint32_t work_max) {
    for (uint32_t work = 0; work < work_max && all->left != NULL; work++) {
        struct subscriber *subscriber = all->left;
        if (subscriber->first != NULL) {
            subscription_free(all, subscriber->first);
        }
        if (subscriber->first == NULL) {
            all->left = subscriber->next_left;
            memory_free(subscriber);
        }
    }
    return all->left != NULL;
}

void subscription_deinit(struct subscriptions *all) {
    CHECK(all->client_count == 0);
    while (subscription_free_step(all, UINT32_MAX)) {}
}

/* ---- visits ---- */

/* The first from this subscription on that is not left; or NULL. */
static const struct subscription *subscription_skip_left(const struct subscription *subscription) {
    while (subscription != NULL && subscription->subscriber->owner == NULL) {
        subscription = subscription->topic_next;
    }
    return subscription;
}

void subscription_each_topic(const struct subscriptions *all, enum subscription_kind kind,
                             subscription_visit *visit, void *context) {
    const struct link_table *table = &all->topics[kind];
    for (uint32_t i = 0; i < table->count; i++) {
        const struct topic *topic = (const struct topic *)table->links[i];
        if (subscription_skip_left(topic->first) != NULL) {
            visit(context, subscription_topic_name(topic));
        }
    }
}

static void subscription_count_topic(void *context, struct bytes name) {
    (void)name;
    ++*(uint32_t *)context;
}

uint32_t subscription_topic_count(const struct subscriptions *all, enum subscription_kind kind) {
    uint32_t topic_count = 0;
    if (all->left == NULL) {
        return all->topics[kind].count;
    }
    subscription_each_topic(all, kind, subscription_count_topic, &topic_count);
    return topic_count;
}

uint32_t subscription_subscriber_count(const struct subscriptions *all, enum subscription_kind kind,
                                       struct bytes name) {
    const struct topic *topic = subscription_find_topic(all, kind, name);
    if (topic == NULL || all->left == NULL) {
        return topic != NULL ? topic->count : 0;
    }
    uint32_t subscriber_count = 0;
    const struct subscription *subscription = subscription_skip_left(topic->first);
    for (; subscription != NULL; subscription = subscription_skip_left(subscription->topic_next)) {
        subscriber_count++;
    }
    return subscriber_count;
}

static void subscription_visit_topic(const struct topic *topic, struct bytes pattern,
                                     subscription_receive *visit, void *context) {
    const struct subscription *subscription = subscription_skip_left(topic->first);
    for (; subscription != NULL; subscription = subscription_skip_left(subscription->topic_next)) {
        visit(context, subscription->subscriber->owner, pattern);
    }
}

/* Most patterns begin with some letters or are a few letters and a star, which needs no glob. */
static bool subscription_takes(const struct topic *pattern, struct bytes channel) {
    size_t plain = pattern->plain_size;
    if (channel.size < plain || memcmp(pattern->name, channel.at, plain) != 0) {
        return false;
    }
    if (plain == pattern->name_size) {
        return channel.size == plain;
    }
    return (plain + 1 == pattern->name_size && pattern->name[plain] == '*') ||
           glob_matches(subscription_topic_name(pattern), channel);
}

void subscription_each_receiver(const struct subscriptions *all, enum subscription_kind kind,
                                struct bytes channel, subscription_receive *visit, void *context) {
    const struct topic *topic = subscription_find_topic(all, kind, channel);
    if (topic != NULL) {
        subscription_visit_topic(topic, (struct bytes){.at = NULL}, visit, context);
    }
    if (kind == SUBSCRIPTION_SHARD) {
        return;
    }
    const struct link_table *patterns = &all->topics[SUBSCRIPTION_PATTERN];
    for (uint32_t i = 0; i < patterns->count; i++) {
        const struct topic *pattern = (const struct topic *)patterns->links[i];
        if (subscription_takes(pattern, channel)) {
            subscription_visit_topic(pattern, subscription_topic_name(pattern), visit, context);
        }
    }
}

/* ---- marks ---- */

bool subscription_mark(struct subscriptions *all, enum subscription_kind kind, struct bytes name) {
    struct topic *topic = subscription_find_topic(all, kind, name);
    if (topic != NULL && !topic->is_marked) {
        topic->is_marked = true;
        topic->marked_next = NULL;
        topic->marked_previous = all->marked_last;
        *(all->marked_last != NULL ? &all->marked_last->marked_next : &all->marked_first) = topic;
        all->marked_last = topic;
    }
    return topic != NULL;
}

void *subscription_marked(struct subscriptions *all, struct bytes *name) {
    while (all->marked_first != NULL) {
        const struct subscription *subscription = subscription_skip_left(all->marked_first->first);
        if (subscription != NULL) {
            *name = subscription_topic_name(all->marked_first);
            return subscription->subscriber->owner;
        }
        subscription_unmark_topic(all, all->marked_first);
    }
    return NULL;
}

void subscription_unmark(struct subscriptions *all) {
    subscription_unmark_topic(all, all->marked_first);
}

/* ---- retiring ---- */

void subscription_retire(struct subscriptions *all, enum subscription_kind kind, struct bytes name,
                         subscription_retired *visit, void *context) {
    struct topic *topic = subscription_find_topic(all, kind, name);
    if (topic == NULL) {
        return;
    }
    link_table_take(&all->topics[kind], &topic->link);
    topic->is_retired = true;
    const struct subscription *subscription = subscription_skip_left(topic->first);
    for (; subscription != NULL; subscription = subscription_skip_left(subscription->topic_next)) {
        visit(context, subscription->subscriber->owner);
    }
}

void subscription_expel(struct subscriptions *all, enum subscription_kind kind, struct bytes name,
                        subscription_retired *visit, void *context) {
    struct topic *topic = subscription_find_topic(all, kind, name);
    for (uint32_t left = topic != NULL ? topic->count : 0; left > 0; left--) {
        struct subscription *subscription = topic->first; /* the topic goes with the last one */
        struct subscriber *subscriber = subscription->subscriber;
        void *owner = subscriber->owner;
        if (owner == NULL) {
            subscription_free(all, subscription);
        } else {
            subscription_remove_from_list(all, subscriber->list, subscription);
            visit(context, owner);
        }
    }
}

struct bytes subscription_draw(const struct subscriptions *all, enum subscription_kind kind,
                               uint64_t random, uint32_t drawn_max) {
    const struct link_table *table = &all->topics[kind];
    const struct topic *least = NULL;
    for (uint32_t drawn = 0; least == NULL || drawn < drawn_max; drawn++) {
        const struct link *link = table->links[(uint32_t)((random >> 32) * table->count >> 32)];
        const struct topic *topic = (const struct topic *)link;
        least = least == NULL || topic->count < least->count ? topic : least;
        random = random * 6364136223846793005U + 1442695040888963407U; /* Knuth's, in MMIX */
    }
    return subscription_topic_name(least);
}

const struct subscription *subscription_first(const struct subscription_list *list,
                                              enum subscription_kind kind) {
    return list->subscribers[kind] != NULL ? list->subscribers[kind]->first : NULL;
}

const struct subscription *subscription_next(const struct subscription *subscription) {
    return subscription->own_next;
}

struct bytes subscription_name(const struct subscription *subscription) {
    return subscription_topic_name(subscription->topic);
}

/* ---- validation ---- */

static const char *subscription_check_topic(const struct subscriptions *all,
                                            const struct topic *topic) {
    uint32_t subscription_total = 0;
    const struct subscription *previous = NULL;
    for (const struct subscription *at = topic->first; at != NULL; at = at->topic_next) {
        if (at->topic != topic || at->topic_previous != previous) {
            return "subscription: a topic's subscriptions are linked wrong";
        }
        previous = at;
        subscription_total++;
    }
    if (subscription_total == 0 || subscription_total != topic->count || topic->last != previous) {
        return "subscription: a topic does not count its subscriptions right";
    }
    return subscription_find_topic(all, topic->kind, subscription_topic_name(topic)) == topic
               ? NULL
               : "subscription: a topic is not found by its name";
}

static const char *subscription_check(const struct subscriptions *all,
                                      const struct subscription *subscription) {
    const struct subscription *previous = subscription->own_previous;
    if (*(previous != NULL ? &previous->own_next : &subscription->subscriber->first) !=
        subscription) {
        return "subscription: a client's subscriptions are linked wrong";
    }
    return subscription_find(all, subscription->subscriber, subscription->topic) == subscription
               ? NULL
               : "subscription: one is not found by its client and topic";
}

bool subscription_validate(const struct subscriptions *all, const char **reason) {
    const char *wrong = NULL;
    uint64_t total = 0;
    for (unsigned kind = 0; kind < SUBSCRIPTION_KINDS; kind++) {
        const struct link_table *table = &all->topics[kind];
        if (!link_table_validate(table, reason)) {
            return false;
        }
        for (uint32_t i = 0; i < table->count && wrong == NULL; i++) {
            wrong = subscription_check_topic(all, (const struct topic *)table->links[i]);
            total += ((const struct topic *)table->links[i])->count;
        }
    }
    if (!link_table_validate(&all->pairs, reason)) {
        return false;
    }
    for (uint32_t i = 0; i < all->pairs.count && wrong == NULL; i++) {
        const struct subscription *each = (const struct subscription *)all->pairs.links[i];
        wrong = subscription_check(all, each);
        total += each->topic->is_retired;
    }
    if (wrong == NULL && total != all->pairs.count) {
        wrong = "subscription: topics and pairs do not agree";
    }
    *reason = wrong;
    return wrong == NULL;
}
