/* What an answer was read from, so that it can be given again, and by another thread, until that changes.
 *
 *     engine           reads_note: key after key       watched, as by WATCH (watch.h)
 *     engine           a key changes, a user, a setting, the server's role      is_outdated
 *     another thread   reads_are_outdated: one load
 *
 * Of the watches it has those apart from the clients', which INFO counts. What changes by time alone, and tells nobody,
 * is in due_ms. A write is answered behind what it outdates, so whoever was told of it never gets the old answer. */
#ifndef SERVER_CLIENTS_READS_H
#define SERVER_CLIENTS_READS_H

#include <stdatomic.h>

#include "server/sessions/server.h"

struct reads {
    struct watch_list list; /* first */
    int64_t due_ms;         /* of the server's clock: from then on the answer may be another one */
    _Atomic bool is_outdated;
};

/* Nothing is read yet. */
void reads_init(struct reads *reads);
/* This key, which need not exist, is read now. Out of memory: the answer is outdated at once. */
void reads_note(struct server *server, struct reads *reads, uint32_t database, struct bytes name);
/* What is read cannot be watched. */
static inline void reads_outdate(struct reads *reads) {
    atomic_store_explicit(&reads->is_outdated, true, memory_order_release);
}
/* Watch nothing any more; before it is freed. */
void reads_end(struct server *server, struct reads *reads);

/* By a change of what is no key. */
void reads_outdate_all(struct server *server);
static inline bool reads_are_outdated(const struct reads *reads) {
    return atomic_load_explicit(&reads->is_outdated, memory_order_acquire);
}

/* What server_life_init and server_life_deinit do. */
void reads_begin(struct server *server);

#endif
