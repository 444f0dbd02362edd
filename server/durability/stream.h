/* The pipe between the thread that writes a streamed snapshot (snapshot.h) and the loop, which reads
 * it as fast as a client takes it.
 *
 *     thread: compress, write (waits) --> pipe, a mebibyte at most --> stream_read --> client
 *
 * All functions run on the loop. */
#ifndef SERVER_STREAM_H
#define SERVER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "codec/check.h"

struct stream {
    int reader, writer; /* -1: closed, or not ours */
    uv_poll_t poll;
    enum { STREAM_UNUSED, STREAM_OPEN, STREAM_CLOSING } state; /* of poll */
    bool is_waiting; /* the pipe was empty, and the loop will be woken */
};

enum stream_status {
    STREAM_PIECE,
    STREAM_WAITS, /* the loop wakes when there is more */
    STREAM_END,   /* the writing end is closed */
    STREAM_FAILED,
};

/* A zeroed struct: nothing is open. false: errno says why, and nothing is open. The writer's end is
 * the caller's once it has set writer to -1. */
MUST_CHECK bool stream_open(struct stream *stream, uv_loop_t *loop);
/* Read at most room bytes. */
MUST_CHECK enum stream_status stream_read(struct stream *stream, char *at, size_t room,
                                          size_t *size);
/* Another descriptor of the reading end, for a process that waits as it reads: stream_read is not called then. -1: errno
 * says why. */
MUST_CHECK int stream_share(const struct stream *stream);
/* Close both ends, as far as they are ours. The loop must turn once more before it can be opened
 * again, or freed. */
void stream_close(struct stream *stream);

#endif
