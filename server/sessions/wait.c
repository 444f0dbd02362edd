/* Subscribers of keys, and a heap of times. See wait.h. A topic's name is the number of the database
 * and the key. */
#include "server/sessions/wait.h"

#include <stddef.h>

#include "server/sessions/session.h"

bool wait_begin(struct waits *waits, struct session *session, uint32_t database,
                const struct bytes *names, uint32_t name_count, int64_t due_ms) {
    struct wait *wait = &session->wait;
    CHECK(wait->state == WAIT_NONE);
    wait->place = EXPIRY_NOWHERE;
    bool is_fine = expiry_reserve(&waits->due_times);
    for (uint32_t i = 0; i < name_count && is_fine; i++) {
        struct subscription_key text;
        /* There are no keys with longer names. */
        is_fine = names[i].size > REGISTRY_NAME_MAX ||
                  subscription_add(&waits->keys, &wait->keys, session, SUBSCRIPTION_KEY,
                                   subscription_put_key(&text, database, names[i]));
    }
    if (!is_fine) {
        subscription_clear(&waits->keys, &wait->keys, SUBSCRIPTION_KEY);
        expiry_trim(&waits->due_times);
        return false;
    }
    if (due_ms != REGISTRY_NO_EXPIRY) {
        expiry_put(&waits->due_times, due_ms, &wait->place);
    }
    wait->state = WAIT_FOR_KEY;
    wait->epoch = waits->epoch;
    waits->client_count++;
    session_link(&waits->first, session, SESSION_WAITERS);
    return true;
}

bool wait_begin_replicas(struct waits *waits, struct session *session, uint64_t group,
                         int64_t count, int64_t due_ms) {
    if (!wait_begin(waits, session, 0, NULL, 0, due_ms)) {
        return false;
    }
    session->wait.state = WAIT_FOR_REPLICAS;
    session->wait.group = group;
    session->wait.count = count;
    waits->replica_waiter_count++;
    return true;
}

bool wait_set_target(struct session *session, struct bytes name) {
    struct wait *wait = &session->wait;
    wait_drop_target(session);
    wait->target = memory_allocate(name.size + 1);
    if (wait->target == NULL) {
        return false;
    }
    memcpy(wait->target, name.at, name.size);
    wait->target_size = (uint32_t)name.size;
    return true;
}

void wait_drop_target(struct session *session) {
    memory_free(session->wait.target);
    session->wait.target = NULL;
    session->wait.target_size = 0;
}

void wait_end(struct waits *waits, struct session *session) {
    struct wait *wait = &session->wait;
    if (wait->state == WAIT_NONE) {
        return;
    }
    wait_drop_target(session);
    subscription_clear(&waits->keys, &wait->keys, SUBSCRIPTION_KEY);
    if (wait->place != EXPIRY_NOWHERE) {
        expiry_remove(&waits->due_times, &wait->place);
    }
    expiry_trim(&waits->due_times);
    waits->replica_waiter_count -= wait->state == WAIT_FOR_REPLICAS;
    wait->state = WAIT_NONE;
    waits->client_count--;
    session_unlink(&waits->first, session, SESSION_WAITERS);
}

void wait_deinit(struct waits *waits) {
    CHECK(waits->client_count == 0);
    subscription_deinit(&waits->keys);
    expiry_trim(&waits->due_times);
}

bool wait_touch(struct waits *waits, uint32_t database, struct bytes name) {
    struct subscription_key text;
    return subscription_mark(&waits->keys, SUBSCRIPTION_KEY,
                             subscription_put_key(&text, database, name));
}

struct session *wait_first(struct waits *waits, uint32_t *database, struct bytes *name) {
    struct session *session = subscription_marked(&waits->keys, name);
    if (session != NULL) {
        *database = subscription_take_database(name);
    }
    return session;
}

void wait_note_opening(struct waits *waits, int64_t opens_ms) {
    if (waits->opens_ms == 0 || opens_ms < waits->opens_ms) {
        waits->opens_ms = opens_ms;
    }
}

static void wait_mark_key(void *context, struct bytes text) {
    (void)subscription_mark(context, SUBSCRIPTION_KEY, text);
}

bool wait_has_opened(struct waits *waits, int64_t now_ms) {
    if (waits->opens_ms == 0 || now_ms < waits->opens_ms) {
        return false;
    }
    waits->opens_ms = 0;
    subscription_each_topic(&waits->keys, SUBSCRIPTION_KEY, wait_mark_key, &waits->keys);
    return true;
}

int64_t wait_next_due_ms(const struct waits *waits) {
    struct expiry_entry first = expiry_first(&waits->due_times);
    return first.place != NULL ? first.time_ms : REGISTRY_NO_EXPIRY;
}

struct session *wait_due(const struct waits *waits, int64_t monotonic_ms) {
    struct expiry_entry first = expiry_first(&waits->due_times);
    return first.place != NULL && first.time_ms <= monotonic_ms
               ? (struct session *)(void *)((char *)first.place -
                                            offsetof(struct session, wait.place))
               : NULL;
}

bool wait_validate(const struct waits *waits, const char **reason) {
    return subscription_validate(&waits->keys, reason) &&
           expiry_validate(&waits->due_times, reason);
}
