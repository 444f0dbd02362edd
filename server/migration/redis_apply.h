/* Applies the commands of a Redis's replication stream to the registry, with Redis's results: the same members
 * and the same scores, whatever the boards' own rules would make of the command. Where the Redis has the module,
 * changes of its boards come as LB.APPLY, and the boards stay equal to the last bit (redis_apply_board.c). Those of its bans
 * and of durable jobs that it has not finished come as LB.APPLYSTATE.
 *
 *     apply.now_us = ...                           before the commands of a tick
 *     redis_apply_run(&apply, &request)            SELECT, ZADD, HSET, DEL ...
 *
 * - Scores are added, weighed and compared as doubles; the sum must be a score of the board.
 * - ZPOPMIN, ZREMRANGEBYRANK and the like take equal scores by their members' bytes. On the board, equal
 *   scores are in order of arrival, as always.
 * - Nothing expires, rolls over, is frozen or closed meanwhile: the source says what goes. CAP keeps the best;
 *   LIMIT and what a layout cannot hold are errors.
 * - Keys of other types do not exist here: what overwrites or removes a key does so, all else is counted and
 *   passed over. A command that is not known and names a key that is here is an error. Sets are remembered by
 *   name (redis_names.h), because ZUNIONSTORE and the like read them: the result is then not known here, which is an
 *   error.
 *
 * An error is for good: what came after it would not be what the source has. Of the command itself nothing is
 * done then, except where memory is missing in its middle. */
#ifndef SERVER_REDIS_APPLY_H
#define SERVER_REDIS_APPLY_H

#include "protocol/request.h"
#include "server/clients/server.h"
#include "server/migration/redis_names.h"
#include "server/rdb/rdb_load.h"

enum {
    REDIS_APPLY_ERROR_MAX = 480, /* less than REPLICATION_ERROR_MAX */
    REDIS_APPLY_SKIPPED_MAX = 48,
    REDIS_APPLY_NAME_MAX = 24,
};

/* A command that was passed over. */
struct redis_skipped {
    char name[REDIS_APPLY_NAME_MAX + 1]; /* lower case; "other" when the table is full */
    uint64_t count;
};

struct redis_apply {
    struct server *server;     /* borrowed */
    struct registry *registry; /* the server's */
    int64_t now_us;            /* the time of what is written */
    uint64_t database;         /* of the source; may be one that is not here */
    uint64_t applied_count, skipped_count;
    struct redis_skipped skipped[REDIS_APPLY_SKIPPED_MAX];
    uint32_t skipped_used;
    struct redis_names sets[REGISTRY_DATABASES];
    char error[REDIS_APPLY_ERROR_MAX];
    bool wants_copy; /* with an error: a new copy would say which keys hold sets */
    /* Private. */
    struct session session; /* for handlers; in no list */
    struct buffer replies;
    struct rdb_load load;           /* of values that come as a whole */
    struct effect_decoder *decoder; /* of LB.APPLY and its kin; NULL: none yet */
    struct buffer scratch;          /* members' names */
    struct redis_tally {
        struct redis_tally_entry {
            struct name member; /* borrowed */
            double score;
        } * entries;
        uint32_t count, capacity;
        uint64_t seed; /* secret: clients choose the names */
        uint64_t *slots;
        uint64_t slot_count;
    } tally;
};

/* *apply is large, and holds no memory yet. seed: random, secret. */
void redis_apply_init(struct redis_apply *apply, struct server *server, uint64_t seed);
void redis_apply_deinit(struct redis_apply *apply);
/* A new stream: database 0, no sets, no counts. */
void redis_apply_reset(struct redis_apply *apply);
/* false: error says why. MULTI, EXEC, PING and REPLCONF are not for here. */
MUST_CHECK bool redis_apply_run(struct redis_apply *apply, const struct request *request);

/* What came was written at this time: server time is at least that. */
void redis_apply_raise_time(struct redis_apply *apply, int64_t time_us);
#endif
