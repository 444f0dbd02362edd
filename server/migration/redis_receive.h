/* What a Redis says to a replica behind the handshake, read from the socket's bytes and put into the spool:
 *
 *     +FULLRESYNC <id> <offset>   ASKS -> HEAD      + CONTINUE [<id>]   ASKS -> STREAM
 *     $<size>, or $EOF:<mark>     HEAD -> COPY
 *     the copy                    COPY -> STREAM, behind so many bytes, or the mark
 *     commands                    STREAM
 *
 * server/replication/master_link.c has the connection. */
#ifndef SERVER_REDIS_RECEIVE_H
#define SERVER_REDIS_RECEIVE_H

#include "codec/buffer.h"
#include "server/replication/state.h"
#include "server/system/disk.h"
#include "server/system/worker.h"

/* ---- the spool ----
 *
 * Bytes on their way from the socket to the keys: a ring in memory, and behind it a file that has no name, as large
 * as need be. A thread writes and reads the file, so that the loop never waits for the disk.
 *
 *     redis_receive_spool_put --> filling --> [ file ] --> [ ring ] --> redis_receive_spool_peek
 *              \------------------------------------/
 *
 * While the keys keep up, nothing touches the disk. What was read is freed in the file soon (as far as its file
 * system can). */

enum { REDIS_SPOOL_RING_SIZE = 1 << 20, REDIS_SPOOL_PIECE_MAX = 1 << 18 };

struct redis_spool {
    struct redis_spool *next; /* for its owner */
    struct worker worker;
    void (*changed)(void *context);
    void *context;
    char *ring;
    uint64_t size_max;
    /* Positions count from the beginning of a copy, and are offsets in the file.
     * taken <= ready <= file_end <= received: the ring has taken .. ready - 1, the file what is behind them up
     * to file_end, and writing and filling the rest. */
    uint64_t taken, ready, file_end, received;
    struct buffer filling;
    /* The job's, while there is one. */
    int fd;
    struct buffer writing;
    char *piece;
    size_t read_size; /* of the piece */
    uint64_t write_at, read_at;
    uint64_t file_begin, free_until; /* what is between them is freed */
    bool is_emptied;                 /* the file is to be emptied first */
    const char *failed; /* what could not be done; NULL: nothing. Done again in a second */
    int error;
    /* The job's result is not wanted, as there is a new beginning. */
    bool is_void;
    bool is_closing;
    int64_t failed_at_ms;
};

/* directory: where the file is; it is left empty. changed is called on the loop when there may be more to read, or more
 * room. NULL: error (DISK_ERROR_MAX) says why. */
MUST_CHECK struct redis_spool *redis_receive_spool_open(uv_loop_t *loop, const char *directory,
                                                        uint64_t size_max,
                                                        void (*changed)(void *context),
                                                        void *context, char *error);
/* The loop turns once more, until spool->worker.is_closed, before redis_receive_spool_free. */
void redis_receive_spool_close(struct redis_spool *spool);
void redis_receive_spool_free(struct redis_spool *spool);

/* A new copy begins: what was there is dropped. */
void redis_receive_spool_begin(struct redis_spool *spool);
/* Copied. false: no memory; nothing was taken. */
MUST_CHECK bool redis_receive_spool_put(struct redis_spool *spool, struct bytes bytes);
/* Is nothing to be put now? By size_max; or as the disk has to take some first. */
bool redis_receive_spool_is_over_limit(const struct redis_spool *spool);
bool redis_receive_spool_is_full(const struct redis_spool *spool);
/* The bytes that can be read now, as far as they are in one piece. */
struct bytes redis_receive_spool_peek(const struct redis_spool *spool);
/* They were read. */
void redis_receive_spool_take(struct redis_spool *spool, size_t size);
/* Bytes that were put and not taken. */
static inline uint64_t redis_receive_spool_waiting(const struct redis_spool *spool) {
    return spool->received - spool->taken;
}
/* Once a second: what has failed is done again. false: error says what. true while a job runs. */
MUST_CHECK bool redis_receive_spool_check(struct redis_spool *spool, char *error);

/* ---- what comes into it ---- */

enum { REDIS_RECEIVE_MARK_SIZE = 40, REDIS_RECEIVE_OFFSET_SIZE = 24 };

struct redis_receive {
    struct redis_spool *spool; /* borrowed */
    enum { REDIS_RECEIVE_HEAD, REDIS_RECEIVE_COPY, REDIS_RECEIVE_STREAM } state;
    bool has_copy; /* it has come as a whole: what follows may go on from there */
    char id[REPLICATION_ID_SIZE + 1];   /* of the source's history; "": none yet */
    uint64_t begin_offset;              /* where the copy's commands begin */
    uint64_t received_offset;           /* the last byte of commands that has come */
    uint64_t copy_size, copy_read_size; /* copy_size 0: a mark ends it */
    char mark[REDIS_RECEIVE_MARK_SIZE + 1];
    uint64_t full_syncs, partial_syncs;
    bool is_restarted; /* a copy has begun: its reader is told, and takes this back */
};

/* id "": from the beginning. */
void redis_receive_init(struct redis_receive *receive, struct redis_spool *spool, const char *id,
                        uint64_t offset);
/* What PSYNC asks for: offset has REDIS_RECEIVE_OFFSET_SIZE bytes. Returns the id. */
const char *redis_receive_print_wish(const struct redis_receive *receive, char *offset);
/* The answer to PSYNC. false: it is none. */
MUST_CHECK bool redis_receive_take_answer(struct redis_receive *receive, struct bytes line);
/* Take bytes behind it, *used of them: what is left comes again. false: *error says why; the connection is of no use. */
MUST_CHECK bool redis_receive_take(struct redis_receive *receive, struct bytes bytes, size_t *used,
                                   const char **error);

#endif
