/* The room: moving from a Redis, and feeding one.
 *
 *     Redis --> master link --> redis_receive --> redis_spool --> redis_stream --> redis_apply --> keys
 *       ^------------------------- redis_ask: keys that its commands do not say --------^
 *     keys --> journal's groups --> redis_encode --> feed_redis --> Redis with the module
 *
 * The master link (server/replication/master_link.h) connects to either kind of master. What a Redis sends waits in the
 * spool, so that its output buffer stays empty. redis_stream reads the copy into a registry beside the keys, exchanges the
 * two, and then applies the commands that name what they change. After all others redis_ask asks for the keys. The other
 * way, feed_redis has a child process make the RDB file, and redis_encode turns groups of effects into commands.
 *
 * This header puts the first way together for the loop:
 *
 *     redis_follow_begin     the link goes on with what it has found
 *     redis_follow_step      in every tick: apply some of what has come
 *     redis_follow_finish    REPLICAOF NO ONE: apply all that has come, wait for answers, and end
 *     redis_follow_end       REPLICAOF another one: end where it is
 *
 * What the boards cannot hold ends it, loudly: replication.error says why, the link is down, and nothing behind it is
 * applied until REPLICAOF is given again. */
#ifndef SERVER_REDIS_FOLLOW_H
#define SERVER_REDIS_FOLLOW_H

#include "server/replication/master_link.h"

struct redis_follow;

/* link: borrowed. NULL: no memory. */
MUST_CHECK struct redis_follow *redis_follow_create(struct server *server, struct master_link *link,
                                                    uv_loop_t *loop);
/* The loop turns once more between redis_follow_end and this. */
void redis_follow_destroy(struct redis_follow *follow);

/* Follow the Redis that the link has found, from its beginning or from where this was, with the settings as they are. An
 * error, as of a directory where no spool can be, shows as one that stopped. */
void redis_follow_begin(struct redis_follow *follow);
bool redis_follow_is_on(const struct redis_follow *follow);
/* The link is stopped: apply what has come, for about budget_ns. A copy that is not in place is dropped. true: all is
 * done, and it is off. */
MUST_CHECK bool redis_follow_finish(struct redis_follow *follow, uint64_t budget_ns);
void redis_follow_end(struct redis_follow *follow);

/* Free some of what a copy has replaced, also while it is off. true: there is more. */
MUST_CHECK bool redis_follow_free_some(struct redis_follow *follow, uint64_t budget_ns);
/* true: there is more to do at once. A full copy in place shows in replication.copies. */
MUST_CHECK bool redis_follow_step(struct redis_follow *follow, uint64_t budget_ns);
/* INFO's lines. */
void redis_follow_print(struct redis_follow *follow, struct buffer *out);

#endif
