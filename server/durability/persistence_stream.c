/* A snapshot that a client reads, or another process, instead of the disk. See persistence.h. */
#include "server/durability/persistence_parts.h"

#include <errno.h>

bool persistence_may_stream(const struct persistence *persistence) {
    return persistence->saving == IDLE && !persistence->has_reader &&
           persistence->stream.state == STREAM_UNUSED;
}

enum persistence_status persistence_begin_stream(struct persistence *persistence, char *error) {
    persistence_settle(persistence);
    if (persistence->journaling == STOPPED) {
        snprintf(error, PERSISTENCE_ERROR_MAX, "%s", persistence->error);
        return PERSISTENCE_FAILED;
    }
    if (!persistence_may_stream(persistence)) {
        return PERSISTENCE_BUSY;
    }
    if (!stream_open(&persistence->stream, persistence->loop)) {
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

enum stream_status persistence_read_stream(struct persistence *persistence, char *at, size_t room,
                                           size_t *size, char *error) {
    enum stream_status status = persistence_stream_is_lost(persistence)
                                    ? STREAM_FAILED
                                    : stream_read(&persistence->stream, at, room, size);
    if (status == STREAM_END && !persistence->is_streamed) {
        status = STREAM_FAILED;
    }
    if (status == STREAM_FAILED) {
        persistence_stream_explain(persistence, error);
    }
    return status;
}

int persistence_share_stream(struct persistence *persistence, void (*end_reader)(void *context),
                             void *context) {
    if (persistence->stream.state != STREAM_OPEN) {
        errno = EPIPE;
        return -1;
    }
    persistence->end_reader = end_reader;
    persistence->reader_context = context;
    return stream_share(&persistence->stream);
}

enum stream_status persistence_look_stream(const struct persistence *persistence, char *error) {
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

const struct snapshot_footer *persistence_streamed(const struct persistence *persistence) {
    return &persistence->snapshot.footer;
}

uint64_t persistence_stream_group(const struct persistence *persistence) {
    bool is_walked =
        persistence->is_streamed || (persistence->is_streaming && persistence->saving == ENDING);
    return is_walked ? persistence->snapshot.footer.sequence : 0;
}

static void persistence_stream_close(struct persistence *persistence) {
    stream_close(&persistence->stream);
    if (persistence->is_streaming) {
        /* Its descriptor would keep the thread that writes from seeing that nobody reads. */
        if (persistence->end_reader != NULL) {
            persistence->end_reader(persistence->reader_context);
        }
        snapshot_give_up(
            &persistence->snapshot); /* in state DUE, persistence_begin_walk finds it closed */
        persistence->has_news = true;
    }
}

void persistence_end_stream(struct persistence *persistence) {
    persistence->has_reader = false;
    persistence_stream_close(persistence);
}

/* Before something that cannot wait for a stream's reader. */
void persistence_abort_stream(struct persistence *persistence) {
    if (!persistence->is_streaming) {
        return;
    }
    persistence_stream_close(persistence);
    persistence->is_blocking = true;
    while (persistence->is_streaming) {
        if (persistence->saving == DUE) {
            persistence_begin_walk(persistence);
        }
        worker_wait(&persistence->snapshot.worker);
        persistence_settle(persistence);
    }
    persistence->is_blocking = false;
}
