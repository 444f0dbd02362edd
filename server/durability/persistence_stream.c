/* A snapshot that a client reads, or another process, instead of the disk. See persistence.h.
 *
 *     thread: compress, write (waits) --> pipe, a mebibyte at most --> persistence_stream_read --> client
 *
 * The pipe is between the thread that writes the snapshot (snapshot.h) and the loop, which reads it as fast as a client
 * takes it. All functions run on the loop. */
#include "server/durability/persistence_state.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { PIPE_SIZE = 1 << 20 };

static void persistence_stream_on_readable(uv_poll_t *poll, int status, int events) {
    struct stream *stream = poll->data;
    (void)status;
    (void)events;
    stream->is_waiting = false;
    uv_poll_stop(poll);
}

static void persistence_stream_on_closed(uv_handle_t *handle) {
    struct stream *stream = handle->data;
    stream->state = STREAM_UNUSED;
}

bool persistence_stream_open_pipe(struct stream *stream, uv_loop_t *loop) {
    int ends[2];
    CHECK(stream->state == STREAM_UNUSED);
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    /* A smaller one works, too: an unprivileged process has a limit for all its pipes. */
    (void)!fcntl(ends[0], F_SETPIPE_SZ, PIPE_SIZE);
    int status = uv_poll_init(loop, &stream->poll, ends[0]); /* which sets it to O_NONBLOCK */
    if (status != 0) {
        disk_close(ends[0]);
        disk_close(ends[1]);
        errno = -status;
        return false;
    }
    /* A reader that stands still does not keep a server from ending. */
    uv_unref((uv_handle_t *)&stream->poll);
    stream->reader = ends[0];
    stream->writer = ends[1];
    stream->poll.data = stream;
    stream->state = STREAM_OPEN;
    stream->is_waiting = false;
    return true;
}

enum stream_status persistence_stream_read_pipe(struct stream *stream, char *at, size_t room,
                                                size_t *size) {
    ssize_t got;
    CHECK(stream->state == STREAM_OPEN);
    do {
        got = read(stream->reader, at, room);
    } while (got < 0 && errno == EINTR);
    if (got > 0) {
        *size = (size_t)got;
        return STREAM_PIECE;
    }
    if (got == 0) {
        return STREAM_END;
    }
    if (errno != EAGAIN || uv_poll_start(&stream->poll, UV_READABLE | UV_DISCONNECT,
                                         persistence_stream_on_readable) != 0) {
        return STREAM_FAILED;
    }
    stream->is_waiting = true;
    return STREAM_WAITS;
}

void persistence_stream_close_pipe(struct stream *stream) {
    if (stream->state != STREAM_OPEN) {
        return;
    }
    stream->state = STREAM_CLOSING;
    uv_close((uv_handle_t *)&stream->poll, persistence_stream_on_closed);
    disk_close(stream->reader);
    disk_close(stream->writer);
    stream->reader = -1;
    stream->writer = -1;
}

void persistence_stream_close(struct persistence *persistence) {
    persistence_stream_close_pipe(&persistence->stream);
    if (persistence->is_streaming) {
        /* Its descriptor would keep the thread that writes from seeing that nobody reads. */
        if (persistence->end_reader != NULL) {
            persistence->end_reader(persistence->reader_context);
        }
        snapshot_give_up(&persistence->snapshot); /* DUE: persistence_begin_walk finds it closed */
        persistence->has_news = true;
    }
}

bool persistence_stream_may_begin(const struct persistence *persistence) {
    return persistence->saving == IDLE && !persistence->has_reader &&
           persistence->stream.state == STREAM_UNUSED;
}

enum persistence_status persistence_stream_begin(struct persistence *persistence, char *error) {
    if (persistence_is_stopped(persistence, error)) {
        return PERSISTENCE_FAILED;
    }
    if (!persistence_stream_may_begin(persistence)) {
        return PERSISTENCE_BUSY;
    }
    if (!persistence_stream_open_pipe(&persistence->stream, persistence->loop)) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "cannot make a pipe: %s", strerror(errno));
        return PERSISTENCE_FAILED;
    }
    persistence->has_reader = true;
    persistence->is_streaming = true;
    persistence->is_streamed = false;
    persistence->end_reader = NULL;
    persistence->snapshot.is_overrun = false;
    persistence_begin_saving(persistence, SAVE_ASKED);
    return PERSISTENCE_OK;
}

static void persistence_stream_explain(const struct persistence *persistence, char *error) {
    const struct snapshot *snapshot = &persistence->snapshot;
    const char *what = snapshot->is_overrun
                           ? "the backup was read more slowly than boards changed: try again with "
                             "a higher rate, or when less is written"
                           : "the backup was given up: see the server's log";
    snprintf(error, PERSISTENCE_ERROR_MAX, "%s", what);
}

static bool persistence_stream_is_lost(const struct persistence *persistence) {
    return persistence->stream.state != STREAM_OPEN || persistence->snapshot.is_overrun ||
           (!persistence->is_streaming && !persistence->is_streamed);
}

enum stream_status persistence_stream_read(struct persistence *persistence, char *at, size_t room,
                                           size_t *size, char *error) {
    enum stream_status status =
        persistence_stream_is_lost(persistence)
            ? STREAM_FAILED
            : persistence_stream_read_pipe(&persistence->stream, at, room, size);
    if (status == STREAM_END && !persistence->is_streamed) {
        status = STREAM_FAILED;
    }
    if (status == STREAM_FAILED) {
        persistence_stream_explain(persistence, error);
    }
    return status;
}

int persistence_stream_share(struct persistence *persistence, void (*end_reader)(void *context),
                             void *context) {
    if (persistence->stream.state != STREAM_OPEN) {
        errno = EPIPE;
        return -1;
    }
    persistence->end_reader = end_reader;
    persistence->reader_context = context;
    int flags = fcntl(persistence->stream.reader, F_GETFL);
    if (flags < 0 || fcntl(persistence->stream.reader, F_SETFL, flags & ~O_NONBLOCK) != 0) {
        return -1;
    }
    return fcntl(persistence->stream.reader, F_DUPFD_CLOEXEC, 0);
}

enum stream_status persistence_stream_look(const struct persistence *persistence, char *error) {
    if (persistence_stream_is_lost(persistence)) {
        persistence_stream_explain(persistence, error);
        return STREAM_FAILED;
    }
    return persistence->is_streamed ? STREAM_END : STREAM_WAITS;
}

bool persistence_stream_waits(const struct persistence *persistence) {
    return persistence->stream.is_waiting && persistence->stream.state == STREAM_OPEN &&
           (persistence->is_streaming || persistence->is_streamed) &&
           !persistence->snapshot.is_failed;
}

const struct snapshot_footer *persistence_stream_footer(const struct persistence *persistence) {
    return &persistence->snapshot.footer;
}

uint64_t persistence_stream_group(const struct persistence *persistence) {
    bool is_walked =
        persistence->is_streamed || (persistence->is_streaming && persistence->saving == ENDING);
    return is_walked ? persistence->snapshot.footer.sequence : 0;
}

void persistence_stream_end(struct persistence *persistence) {
    persistence->has_reader = false;
    persistence_stream_close(persistence);
}
