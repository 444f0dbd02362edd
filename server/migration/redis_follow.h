/* Following a Redis: the connection (redis_link.h), what it has received (redis_spool.h), and what is applied
 * of it (redis_stream.h), put together for the loop.
 *
 *     redis_follow_begin     a thread connects to replication.master_host
 *     redis_follow_step      in every tick: apply some of what has come
 *     redis_follow_finish    REPLICAOF NO ONE: apply all that has come, and end
 *     redis_follow_end       REPLICAOF another one: end where it is
 *
 * What the boards cannot hold ends it, loudly: replication.error says why, the link is down, and nothing behind it is
 * applied until REPLICAOF is given again. */
#ifndef SERVER_REDIS_FOLLOW_H
#define SERVER_REDIS_FOLLOW_H

#include <openssl/ssl.h>
#include <uv.h>

#include "server/clients/server.h"

struct redis_follow;

/* wake: lets the loop turn; called on any thread. NULL: no memory, or libuv failed. */
MUST_CHECK struct redis_follow *redis_follow_create(struct server *server, uv_loop_t *loop);
/* Close its handle; the loop turns once more before redis_follow_destroy, which waits for its threads. */
void redis_follow_close(struct redis_follow *follow);
void redis_follow_destroy(struct redis_follow *follow);

/* Follow replication.master_host from its beginning, with the settings as they are. tls: owned, or NULL. An error, as of
 * a directory where no spool can be, shows as one that stopped. */
void redis_follow_begin(struct redis_follow *follow, SSL_CTX *tls);
bool redis_follow_is_on(const struct redis_follow *follow);
/* Connect again. */
void redis_follow_drop(struct redis_follow *follow);
/* Receive nothing more, and apply what the thread had, for about budget_ns. A copy that is not in place is dropped. true:
 * all is done, and it is off. */
MUST_CHECK bool redis_follow_finish(struct redis_follow *follow, uint64_t budget_ns);
void redis_follow_end(struct redis_follow *follow);

/* Has a leaderboard server taken the place of the Redis? Then its owner follows that. */
bool redis_follow_has_found_leaderboard(const struct redis_follow *follow);

/* true: there is more to do at once. */
MUST_CHECK bool redis_follow_step(struct redis_follow *follow, uint64_t budget_ns);
/* INFO's lines. */
void redis_follow_print(struct redis_follow *follow, struct buffer *out);

#endif
