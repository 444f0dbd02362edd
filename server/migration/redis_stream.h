/* What a Redis sends, as bytes: its RDB file, then its commands. Applied in bounded steps.
 *
 *                 RDB is right           all is loaded
 *     CHECKS ------------------> LOADS -----------------> FOLLOWS
 *        |                         |                         |
 *        +-----------------------> STOPPED <-----------------+      error says why
 *
 * CHECKS reads the whole file and changes nothing: its form, its checksum, whether the boards take
 * every member and every score, whether a key or a member is there twice, and what is to be kept beside the keys
 * (server/rdb/rdb_state.h). Only then the databases are emptied. LOADS removes the bans and orders that are here, in
 * steps, and reads it again; meanwhile clients are told to wait. A new copy (redis_stream_restart) begins with CHECKS
 * again, whatever was.
 *
 * After a restart (redis_stream_resume) it FOLLOWS at once.
 *
 * The commands of a MULTI are applied together, in one tick, as soon as its EXEC is there. */
#ifndef SERVER_REDIS_STREAM_H
#define SERVER_REDIS_STREAM_H

#include "protocol/resp.h"
#include "server/migration/redis_apply.h"
#include "server/migration/redis_seen.h"

enum redis_stream_state {
    REDIS_STREAM_WAITS, /* for a copy to begin */
    REDIS_STREAM_CHECKS,
    REDIS_STREAM_LOADS,
    REDIS_STREAM_FOLLOWS,
    REDIS_STREAM_STOPPED,
    REDIS_STREAM_STATES,
};
const char *redis_stream_state_name(enum redis_stream_state state);

/* Keys of the copy that were passed over. */
struct redis_passed {
    uint64_t count[RDB_TYPES];
    uint64_t function_count, field_expiry_count;
};

enum { REDIS_STREAM_ERROR_MAX = REDIS_APPLY_ERROR_MAX + 16 };

struct redis_stream {
    struct redis_apply apply;
    enum redis_stream_state state;
    uint64_t offset; /* of the source: everything up to it is applied */
    uint64_t board_count, member_count, hash_count, field_count; /* of the copy */
    uint64_t module_board_count;                                 /* of its boards */
    uint64_t ban_count;                                          /* members that are banned in it */
    struct redis_passed passed;
    bool is_rewind_due; /* after CHECKS: the bytes are to come again from the first one */
    bool is_copy_done;  /* after LOADS: they will not be needed again */
    char error[REDIS_STREAM_ERROR_MAX];
    /* Private. */
    struct rdb_reader reader;
    bool has_reader;
    bool is_hungry;       /* what it has is read as far as it goes */
    uint64_t unconfirmed; /* bytes of a transaction that is not whole */
    struct registry *registry;
    uint32_t key_count; /* entries of the key that is read */
    struct redis_filling {
        bool is_on;
        uint32_t count, at;
    } filling;                   /* a board is being put, entry by entry */
    bool is_clearing;            /* LOADS: bans and orders of before go first */
    const struct layout *layout; /* CHECKS: of the key's board */
    const struct rules *rules;
    struct redis_seen keys,
        members; /* CHECKS: that have come; members and fields of the key that is read */
    struct resp_parser parser;
    struct resp_arena arena;
    struct buffer pending; /* the beginning of a request that is not whole */
    bool is_in_multi;
    uint64_t multi_size;
    struct redis_queued {
        struct redis_queued *next;
        struct request request; /* args and their bytes are in one piece of memory with it */
    } * multi_first, *multi_last;
};

void redis_stream_init(struct redis_stream *stream, struct server *server, uint64_t seed);
void redis_stream_deinit(struct redis_stream *stream);
/* A new copy begins, of the source's offset. */
void redis_stream_restart(struct redis_stream *stream, uint64_t offset);
/* No copy: the boards are those of the source at this offset, and its commands follow, in this database. */
void redis_stream_resume(struct redis_stream *stream, uint64_t offset, uint64_t database);
/* Take bytes, for about budget_ns; what it does in one go is not interrupted. Returns how many were taken: 0 where
 * it has to go on with what it has, or has ended. After each call see is_rewind_due and is_copy_done, and take
 * them back. */
MUST_CHECK size_t redis_stream_take(struct redis_stream *stream, struct bytes piece,
                                    uint64_t budget_ns, int64_t now_us);
/* Has it something to do without more bytes? */
static inline bool redis_stream_has_work(const struct redis_stream *stream) {
    return !stream->is_hungry && stream->state != REDIS_STREAM_WAITS &&
           stream->state != REDIS_STREAM_STOPPED;
}
/* Are the boards not whole, so that clients have to wait? */
static inline bool redis_stream_is_loading(const struct redis_stream *stream) {
    return stream->state == REDIS_STREAM_LOADS;
}

#endif
