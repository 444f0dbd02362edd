/* Bytes on their way from the thread that receives them to the loop that applies them: a ring in memory, and
 * behind it a file that has no name, as large as need be.
 *
 *     thread   redis_spool_put --> [ file ] --redis_spool_pump--> [ ring ] --> redis_spool_peek   loop
 *                         \-------------------------------------/
 *
 * While the loop keeps up, nothing touches the disk. The loop never does: the thread reads the file for it.
 * What was read is freed in the file at once (as far as its file system can). A copy is kept until it is released,
 * so that it can be read twice: to check it, and to load it.
 *
 * Two threads: each function says whose it is. */
#ifndef SERVER_REDIS_SPOOL_H
#define SERVER_REDIS_SPOOL_H

#include <uv.h>

#include "codec/bytes.h"
#include "server/system/disk.h"

enum { REDIS_SPOOL_RING_SIZE = 1 << 20, REDIS_SPOOL_PIECE_MAX = 1 << 18 };

enum redis_spool_status {
    REDIS_SPOOL_OK = 0,
    REDIS_SPOOL_FULL,   /* size_max; nothing was taken */
    REDIS_SPOOL_FAILED, /* the disk: error says why; nothing was taken */
};

struct redis_spool {
    uv_mutex_t mutex;
    uv_cond_t changed; /* the loop has taken bytes, or has seen a new beginning */
    char *ring;
    char *piece;
    int fd;
    uint64_t size_max;
    /* Under the mutex. Positions count from the beginning of a copy. */
    uint64_t taken, ready; /* of the ring: taken .. ready - 1 are in it */
    uint64_t received;     /* all that was put */
    uint64_t generation;   /* of copies */
    uint64_t seen;         /* the generation that the loop reads */
    bool is_kept;
    /* The thread's own. File offsets are positions. */
    uint64_t file_begin; /* what is before is freed, or was never there */
    uint64_t file_end;
};

/* directory: where the file is; it is left empty. false: error (DISK_ERROR_MAX) says why. */
MUST_CHECK bool redis_spool_open(struct redis_spool *spool, const char *directory,
                                 uint64_t size_max, char *error);
void redis_spool_close(struct redis_spool *spool);

/* ---- the thread's ---- */

/* A new copy begins: what was there is dropped. Waits until the loop has seen it (redis_spool_look), or
 * is_ended says that it never will. false: that. */
MUST_CHECK bool redis_spool_begin(struct redis_spool *spool, bool (*is_ended)(void *context),
                                  void *context);
MUST_CHECK enum redis_spool_status redis_spool_put(struct redis_spool *spool, struct bytes bytes,
                                                   char *error);
/* Move bytes from the file into the ring. false: the disk, error says why. *is_more: call it
 * again soon, as the file has more, or may be read again. */
MUST_CHECK bool redis_spool_pump(struct redis_spool *spool, bool *is_more, char *error);

/* ---- the loop's ---- */

/* Has a new copy begun? Then everything before is void, and its first byte comes next. */
bool redis_spool_look(struct redis_spool *spool);
/* The bytes that can be read now, as far as they are in one piece. */
struct bytes redis_spool_peek(struct redis_spool *spool);
/* They were read. */
void redis_spool_take(struct redis_spool *spool, size_t size);
/* Read the copy again from its beginning, or give up its beginning. */
void redis_spool_rewind(struct redis_spool *spool);
void redis_spool_release(struct redis_spool *spool);
/* Bytes that were put and not taken. */
uint64_t redis_spool_waiting(struct redis_spool *spool);

#endif
