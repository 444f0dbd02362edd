/* What a Redis sends, as bytes: its RDB file, then its commands. Applied in bounded steps.
 *
 *            RDB is right            no save is going on
 *     LOADS -------------> LOADED ----------------------> FOLLOWS
 *        |                                                   |
 *        +--------------------> STOPPED <--------------------+      error says why
 *
 * LOADS fills another registry (server/rdb/rdb_load.h) beside the keys, which stay as they are: its form, its checksum, whether the boards take
 * every member and every score, whether a key or a member is there twice, and what is kept beside the keys
 * (server/rdb/rdb_board.h), all that is known before anything changes. Then the two are exchanged (redis_stream_exchange). A
 * new copy (redis_stream_restart) begins with LOADS again, whatever was.
 *
 * After a restart of the server (redis_stream_resume) it FOLLOWS at once.
 *
 * The commands of a MULTI are applied together, in one tick, as soon as its EXEC is there. */
#ifndef SERVER_REDIS_STREAM_H
#define SERVER_REDIS_STREAM_H

#include "protocol/resp.h"
#include "server/migration/redis_apply.h"

enum redis_stream_state {
    REDIS_STREAM_WAITS, /* for a copy to begin */
    REDIS_STREAM_LOADS,
    REDIS_STREAM_LOADED, /* it waits until it can be exchanged */
    REDIS_STREAM_FOLLOWS,
    REDIS_STREAM_STOPPED,
    REDIS_STREAM_STATES,
};
const char *redis_stream_state_name(enum redis_stream_state state);

struct redis_stream {
    struct redis_apply apply;
    enum redis_stream_state state;
    uint64_t offset;                /* of the source: everything up to it is applied */
    struct rdb_load load;           /* what it counts is of the last copy */
    char error[RDB_LOAD_ERROR_MAX]; /* of a copy, or of what is applied */
    uint64_t limit; /* no command behind this offset is begun; UINT64_MAX: there is none */
    uint64_t
        answered; /* here the first key that was answered is as at the source; UINT64_MAX: none was */
    bool
        is_held; /* by limit, or by a question (redis_apply.h): the last call has done nothing more */
    /* Private. */
    bool has_load;
    uint64_t seed;
    bool is_hungry;       /* what it has is read as far as it goes */
    uint64_t unconfirmed; /* bytes of a transaction that is not whole */
    /* Filled by LOADS; behind the exchange, what was here before. NULL: none. */
    struct registry *beside;
    struct resp_parser parser;
    struct resp_arena arena;
    struct buffer pending; /* the beginning of a request that is not whole */
    bool is_in_multi;
    uint64_t multi_database; /* that is selected behind what has come of it */
    uint64_t multi_size;
    struct redis_queued {
        struct redis_queued *next;
        struct request request; /* args and their bytes are in one piece of memory with it */
        bool is_other;          /* only the name of a key that is of another type then */
    } * multi_first, *multi_last;
};

void redis_stream_init(struct redis_stream *stream, struct server *server, uint64_t seed);
void redis_stream_deinit(struct redis_stream *stream);
/* A new copy begins, of the source's offset; nothing is beside the keys. */
void redis_stream_restart(struct redis_stream *stream, uint64_t offset);
/* No copy: the boards are those of the source at this offset, and its commands follow, in this database. false: no
 * memory. */
MUST_CHECK bool redis_stream_resume(struct redis_stream *stream, uint64_t offset,
                                    uint64_t database);
/* Take bytes, for about budget_ns; what it does in one go is not interrupted. Returns how many were taken: 0 where
 * it has to go on with what it has, has ended, or is LOADED. */
MUST_CHECK size_t redis_stream_take(struct redis_stream *stream, struct bytes piece,
                                    uint64_t budget_ns, int64_t now_us);
/* Has it something to do without more bytes? */
static inline bool redis_stream_has_work(const struct redis_stream *stream) {
    return !stream->is_hungry && stream->state != REDIS_STREAM_WAITS &&
           stream->state != REDIS_STREAM_LOADED && stream->state != REDIS_STREAM_STOPPED;
}
/* From LOADED: what is loaded takes the place of the keys. false: not now, as a save is going on. */
MUST_CHECK bool redis_stream_exchange(struct redis_stream *stream);
/* What was asked for cannot be held: it is STOPPED. */
void redis_stream_fail(struct redis_stream *stream, const char *error);
/* The registry beside the keys, to be freed in steps: the caller's. NULL: none. */
struct registry *redis_stream_take_beside(struct redis_stream *stream);

#endif
