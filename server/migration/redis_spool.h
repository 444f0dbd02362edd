/* Bytes on their way from the socket to the keys: a ring in memory, and behind it a file that has no name, as large
 * as need be. A thread writes and reads the file, so that the loop never waits for the disk.
 *
 *     redis_spool_put --> filling --> [ file ] --> [ ring ] --> redis_spool_peek
 *              \------------------------------------/
 *
 * While the keys keep up, nothing touches the disk. What was read is freed in the file soon (as far as its file
 * system can). */
#ifndef SERVER_REDIS_SPOOL_H
#define SERVER_REDIS_SPOOL_H

#include "codec/buffer.h"
#include "server/system/disk.h"
#include "server/system/worker.h"

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
MUST_CHECK struct redis_spool *redis_spool_open(uv_loop_t *loop, const char *directory,
                                                uint64_t size_max, void (*changed)(void *context),
                                                void *context, char *error);
/* The loop turns once more, until spool->worker.is_closed, before redis_spool_free. */
void redis_spool_close(struct redis_spool *spool);
void redis_spool_free(struct redis_spool *spool);

/* A new copy begins: what was there is dropped. */
void redis_spool_begin(struct redis_spool *spool);
/* Copied. false: no memory; nothing was taken. */
MUST_CHECK bool redis_spool_put(struct redis_spool *spool, struct bytes bytes);
/* Is nothing to be put now? By size_max; or as the disk has to take some first. */
bool redis_spool_is_over_limit(const struct redis_spool *spool);
bool redis_spool_is_full(const struct redis_spool *spool);
/* The bytes that can be read now, as far as they are in one piece. */
struct bytes redis_spool_peek(const struct redis_spool *spool);
/* They were read. */
void redis_spool_take(struct redis_spool *spool, size_t size);
/* Bytes that were put and not taken. */
static inline uint64_t redis_spool_waiting(const struct redis_spool *spool) {
    return spool->received - spool->taken;
}
/* Once a second: what has failed is done again. false: error says what. true while a job runs. */
MUST_CHECK bool redis_spool_check(struct redis_spool *spool, char *error);

#endif
