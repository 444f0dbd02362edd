/* See stream.h. */
#include "server/durability/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "server/system/disk.h"

enum { PIPE_SIZE = 1 << 20 };

static void stream_on_readable(uv_poll_t *poll, int status, int events) {
    struct stream *stream = poll->data;
    (void)status;
    (void)events;
    stream->is_waiting = false;
    uv_poll_stop(poll);
}

static void stream_on_closed(uv_handle_t *handle) {
    struct stream *stream = handle->data;
    stream->state = STREAM_UNUSED;
}

bool stream_open(struct stream *stream, uv_loop_t *loop) {
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
    uv_unref((uv_handle_t *)&stream
                 ->poll); /* a reader that stands still does not keep a server from ending */
    stream->reader = ends[0];
    stream->writer = ends[1];
    stream->poll.data = stream;
    stream->state = STREAM_OPEN;
    stream->is_waiting = false;
    return true;
}

enum stream_status stream_read(struct stream *stream, char *at, size_t room, size_t *size) {
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
    if (errno != EAGAIN ||
        uv_poll_start(&stream->poll, UV_READABLE | UV_DISCONNECT, stream_on_readable) != 0) {
        return STREAM_FAILED;
    }
    stream->is_waiting = true;
    return STREAM_WAITS;
}

int stream_share(const struct stream *stream) {
    int flags = fcntl(stream->reader, F_GETFL);
    if (flags < 0 || fcntl(stream->reader, F_SETFL, flags & ~O_NONBLOCK) != 0) {
        return -1;
    }
    return fcntl(stream->reader, F_DUPFD_CLOEXEC, 0);
}

void stream_close(struct stream *stream) {
    if (stream->state != STREAM_OPEN) {
        return;
    }
    stream->state = STREAM_CLOSING;
    uv_close((uv_handle_t *)&stream->poll, stream_on_closed);
    disk_close(stream->reader);
    disk_close(stream->writer);
    stream->reader = -1;
    stream->writer = -1;
}
