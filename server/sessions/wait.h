/* Clients that wait for a key: BZPOPMIN and its kin, where none of the boards has a member; and those
 * that wait for replicas (WAIT).
 *
 *     SESSION_READY --wait_begin--> SESSION_WAITING --wait_end--> SESSION_READY
 *
 * A client that waits runs none of its requests. It is a subscriber of the keys it named: a change of
 * one of them marks it, and after the command that made the change, whoever waits for a marked key
 * is served, in order of arrival (server/dispatch/waiting.h). Those that give up after a while are in
 * a heap by that time, so a client that waits costs nothing. */
#ifndef SERVER_WAIT_H
#define SERVER_WAIT_H

#include "server/sessions/session.h"
#include "skiplist/keyspace/expiry.h"

/* Everyone who waits. Zero-initialised except keys.hash_seed. */
struct waits {
    struct subscriptions keys;
    struct expiry due_times; /* monotonic ms */
    uint32_t client_count;
    struct session *first;         /* SESSION_WAITERS, newest first */
    uint32_t replica_waiter_count; /* of them, those that wait for replicas */
    int64_t opens_ms; /* when to look again for boards that were not open yet; 0: there is none */
    uint64_t epoch;
    bool has_outdated; /* some may wait since an earlier epoch */
};

void wait_deinit(struct waits *waits);

/* Begin to wait, until one of the names changes or, unless it is REGISTRY_NO_EXPIRY, until due_ms.
 * The fields of session->wait from `command` on are the caller's. false: out of memory, nothing
 * changed. */
MUST_CHECK bool wait_begin(struct waits *waits, struct session *session, uint32_t database,
                           const struct bytes *names, uint32_t name_count, int64_t due_ms);
/* Begin to wait until `count` replicas have acknowledged a group, or until due_ms, as above. */
MUST_CHECK bool wait_begin_replicas(struct waits *waits, struct session *session, uint64_t group,
                                    int64_t count, int64_t due_ms);
/* Before wait_begin: a copy of the key that members are to be moved to, until wait_end. false: no
 * memory. */
MUST_CHECK bool wait_set_target(struct session *session, struct bytes name);
void wait_drop_target(struct session *session);
/* Wait no more. No-op for a client that does not wait. */
void wait_end(struct waits *waits, struct session *session);

/* The history under those who wait has changed: they are to be told, in steps. Who begins to wait from now
 * on is not among them. */
static inline void wait_begin_epoch(struct waits *waits) {
    waits->epoch++;
    waits->has_outdated = waits->first != NULL;
}

/* A key has changed. true: somebody waits for it. */
bool wait_touch(struct waits *waits, uint32_t database, struct bytes name);
/* The first changed key for which somebody waits, and who has waited longest; name is valid while
 * that client waits. NULL: none. When this key has nothing to give any more, it loses its mark
 * (subscription_unmark). */
struct session *wait_first(struct waits *waits, uint32_t *database, struct bytes *name);
/* A key that somebody waits for has members, but takes no writes before opens_ms, which is positive:
 * no change will tell when it opens. */
void wait_note_opening(struct waits *waits, int64_t opens_ms);
/* Has such a time passed? Then all keys are marked. */
MUST_CHECK bool wait_has_opened(struct waits *waits, int64_t now_ms);

/* When the next client gives up. REGISTRY_NO_EXPIRY: none does. */
int64_t wait_next_due_ms(const struct waits *waits);
/* A client that gives up by now. NULL: none. */
struct session *wait_due(const struct waits *waits, int64_t monotonic_ms);

MUST_CHECK bool wait_validate(const struct waits *waits, const char **reason);

#endif
