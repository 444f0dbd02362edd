/* Subscriptions of clients to channels and patterns (SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE), or to the
 * keys that they wait for (wait.h), watch (watch.h) or have read (tracking.h).
 *
 *     topic  channel "news" ---- subscription ---- subscription     one for each client and topic
 *                                     |                 |
 *     subscription list            client 7          client 9       what one client subscribes to
 *
 * A message to a channel costs one look-up and one step for each of its subscribers, and one test
 * for each distinct pattern that begins like it. A list that is cleared leaves its subscriptions to
 * subscription_free_step, which frees them in steps; meanwhile they receive nothing.
 *
 * Invariant: a topic has at least one subscription, possibly one that is left. */
#ifndef SERVER_SUBSCRIPTION_H
#define SERVER_SUBSCRIPTION_H

#include "codec/bytes.h"
#include "server/sessions/link_table.h"
#include "skiplist/keyspace/registry.h"

struct subscriber;
struct subscription;
struct topic;

enum subscription_kind {
    SUBSCRIPTION_CHANNEL,
    SUBSCRIPTION_PATTERN,
    SUBSCRIPTION_SHARD, /* channels of SSUBSCRIBE, apart from the others */
    SUBSCRIPTION_KINDS,
    SUBSCRIPTION_KEY =
        SUBSCRIPTION_CHANNEL, /* of waits, watches and tracking, which have their own structs */
    SUBSCRIPTION_PREFIX =
        SUBSCRIPTION_SHARD, /* of keys, likewise; a message meets it by its name alone */
};

enum { SUBSCRIPTION_NAME_MAX = 65536 }; /* bytes of a channel's name */

/* Is told of channels (SUBSCRIPTION_CHANNEL) that get a first subscriber, and that lose the last.
 * add may set *follow, which is kept for remove; false: out of memory. If it leaves *follow NULL, the
 * channel is none of its business. The name stays until remove. */
struct subscription_observer {
    bool (*add)(void *context, struct bytes name, void **follow);
    void (*remove)(void *context, void *follow);
    void *context;
};

/* All subscriptions of a server. Zero-initialised except hash_seed and observer. */
struct subscriptions {
    struct link_table topics[SUBSCRIPTION_KINDS]; /* by name */
    struct link_table pairs;                      /* subscriptions, by client and topic */
    uint64_t hash_seed;
    uint32_t client_count;                    /* clients with a subscription */
    struct topic *marked_first, *marked_last; /* in the order in which they were marked */
    struct subscriber *left;                  /* those whose subscriptions are yet to be freed */
    struct subscription_observer observer;    /* add NULL: none */
};

/* What one client subscribes to. Zero-initialised: nothing. */
struct subscription_list {
    struct subscriber *subscribers[SUBSCRIPTION_KINDS]; /* own the subscriptions; NULL: none */
    uint32_t counts[SUBSCRIPTION_KINDS];
    uint32_t observed_count; /* those that the observer keeps */
    size_t memory_size;      /* approximate memory of its subscriptions */
};

/* Does it have a subscription? */
static inline bool subscription_list_is_used(const struct subscription_list *list) {
    return list->memory_size > 0;
}

/* All lists must be clear. */
void subscription_deinit(struct subscriptions *all);

/* Subscribe the owner of this list, a session or a watch_list. No-op if it already is. A pattern has
 * at most GLOB_PATTERN_MAX bytes. false: out of memory; nothing changed. */
MUST_CHECK bool subscription_add(struct subscriptions *all, struct subscription_list *list,
                                 void *owner, enum subscription_kind kind, struct bytes name);
/* No-op if it is not subscribed. */
void subscription_remove(struct subscriptions *all, struct subscription_list *list,
                         enum subscription_kind kind, struct bytes name);
/* Remove the newest until count_left of a kind are left. */
void subscription_cut(struct subscriptions *all, struct subscription_list *list,
                      enum subscription_kind kind, uint32_t count_left);
/* Remove all of one kind. subscription_leave: none is freed at once. */
void subscription_leave(struct subscriptions *all, struct subscription_list *list,
                        enum subscription_kind kind);
void subscription_clear(struct subscriptions *all, struct subscription_list *list,
                        enum subscription_kind kind);
/* Free up to work_max subscriptions of cleared lists. false: none are left. Each subscription_add
 * frees two as well, so that they cannot pile up. */
bool subscription_free_step(struct subscriptions *all, uint32_t work_max);

/* Visit every topic of a kind that has a subscriber. */
typedef void subscription_visit(void *context, struct bytes name);
void subscription_each_topic(const struct subscriptions *all, enum subscription_kind kind,
                             subscription_visit *visit, void *context);
/* Number of distinct channels or patterns. */
uint32_t subscription_topic_count(const struct subscriptions *all, enum subscription_kind kind);
/* Number of subscribers of one topic. */
uint32_t subscription_subscriber_count(const struct subscriptions *all, enum subscription_kind kind,
                                       struct bytes name);

/* Visit those who receive a message to this channel: its subscribers of this kind, and unless it is
 * a shard channel, those of every pattern that matches it. pattern.at is NULL for the former. visit
 * must not change subscriptions. */
typedef void subscription_receive(void *context, void *owner, struct bytes pattern);
void subscription_each_receiver(const struct subscriptions *all, enum subscription_kind kind,
                                struct bytes channel, subscription_receive *visit, void *context);

/* Mark a topic, if there is one of this name. false: there is none. */
bool subscription_mark(struct subscriptions *all, enum subscription_kind kind, struct bytes name);
/* The first marked topic, its name, which is valid as long as it has a subscriber, and the oldest of
 * its subscribers. NULL: there is no topic. */
void *subscription_marked(struct subscriptions *all, struct bytes *name);
/* Take the mark off the first marked topic. */
void subscription_unmark(struct subscriptions *all);

/* Visit the owners of a topic, each of which must leave it (subscription_leave), and forget it: who
 * subscribes to this name later meets none of the subscriptions that are yet to be freed. */
typedef void subscription_retired(void *context, void *owner);
void subscription_retire(struct subscriptions *all, enum subscription_kind kind, struct bytes name,
                         subscription_retired *visit, void *context);

/* End all subscriptions of a topic, and visit their owners, oldest first. visit must not change
 * subscriptions; name must not be the topic's own text. */
void subscription_expel(struct subscriptions *all, enum subscription_kind kind, struct bytes name,
                        subscription_retired *visit, void *context);
/* Of so many topics of a kind, drawn by a random number, the name of that with the fewest subscriptions. There is a
 * topic; drawn_max is at least 1. */
struct bytes subscription_draw(const struct subscriptions *all, enum subscription_kind kind,
                               uint64_t random, uint32_t drawn_max);

/* A list's oldest subscription of a kind, and the one after another; NULL: there is none. */
const struct subscription *subscription_first(const struct subscription_list *list,
                                              enum subscription_kind kind);
const struct subscription *subscription_next(const struct subscription *subscription);
/* Its topic's name. */
struct bytes subscription_name(const struct subscription *subscription);

/* A key as a topic's name: the number of its database and its name. */
struct subscription_key {
    char at[1 + REGISTRY_NAME_MAX];
};
static inline struct bytes subscription_put_key(struct subscription_key *key, uint32_t database,
                                                struct bytes name) {
    CHECK(database < REGISTRY_DATABASES && name.size <= REGISTRY_NAME_MAX);
    key->at[0] = (char)database;
    if (name.size > 0) {
        memcpy(key->at + 1, name.at, name.size);
    }
    return (struct bytes){.at = key->at, .size = 1 + name.size};
}
/* Take the database from the front of such a name. */
static inline uint32_t subscription_take_database(struct bytes *name) {
    uint32_t database = (unsigned char)name->at[0];
    *name = (struct bytes){.at = name->at + 1, .size = name->size - 1};
    return database;
}

MUST_CHECK bool subscription_validate(const struct subscriptions *all, const char **reason);

#endif
