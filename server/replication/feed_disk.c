/* See feed_disk.h. Invariant: while the worker is busy it owns job, raw, out, larger_size and result. */
#include "server/replication/feed_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "server/replication/wire.h"

enum {
#ifdef SERVER_TINY
    WINDOW = 512,
#else
    WINDOW = 1 << 20, /* bytes of a file that one job reads, unless a group is longer */
#endif
};

/* ---- the thread ---- */

/* The file's head, by which its groups are known. */
static bool feed_disk_open_file(struct feed_disk *reader) {
    char head[JOURNAL_FILE_HEAD];
    struct feed_disk_place *job = &reader->job;
    job->fd = disk_open(AT_FDCWD, reader->path, O_RDONLY, 0);
    if (job->fd < 0 || !disk_read_whole(job->fd, head, sizeof head, 0)) {
        return false;
    }
    job->file_id = journal_file_id(head);
    job->offset = JOURNAL_FILE_HEAD;
    return job->file_id != 0;
}

/* Take the groups that are whole in the window. false: one is not what was written. */
static bool feed_disk_take_groups(struct feed_disk *reader, size_t size) {
    struct feed_disk_place *job = &reader->job;
    size_t at = 0;
    while (size - at > JOURNAL_GROUP_HEAD && job->next_group <= reader->limit_group) {
        struct journal_group_head head;
        const char *group = reader->raw.at + at;
        journal_file_read_group_head(group, job->file_id, &head);
        size_t whole_size = JOURNAL_GROUP_HEAD + (size_t)head.size;
        if (whole_size > size - at) {
            reader->larger_size = at == 0 ? whole_size : 0;
            return size == reader->raw.capacity; /* otherwise the file ends within it */
        }
        if (!journal_file_open_group(group, whole_size, job->file_id, &head) ||
            head.sequence > job->next_group) {
            return false;
        }
        if (head.sequence == job->next_group) {
            char *out = buffer_reserve(&reader->out, wire_group_size(&head));
            if (out == NULL) {
                break; /* there was room for a window, so some are there already */
            }
            wire_put_group(out, &head, group + JOURNAL_GROUP_HEAD);
            buffer_commit(&reader->out, wire_group_size(&head));
            job->next_group++;
        }
        at += whole_size;
        job->offset += whole_size;
    }
    return true;
}

static void feed_disk_run_read(void *context) {
    struct feed_disk *reader = context;
    struct feed_disk_place *job = &reader->job;
    ssize_t size;
    reader->larger_size = 0;
    reader->result = FEED_DISK_NONE;
    if (job->fd < 0 && !feed_disk_open_file(reader)) {
        return;
    }
    do {
        size = pread(job->fd, reader->raw.at, reader->raw.capacity, (off_t)job->offset);
    } while (size < 0 && errno == EINTR);
    if (size == 0) {
        reader->result = FEED_DISK_END;
    } else if (size > 0 && feed_disk_take_groups(reader, (size_t)size)) {
        reader->result = FEED_DISK_READ;
    }
}

/* ---- the loop ---- */

static void feed_disk_close_place(struct feed_disk_place *place) {
    if (place->fd >= 0) {
        disk_close(place->fd);
        place->fd = -1;
    }
}

static void feed_disk_on_done(void *context) {
    struct feed_disk *reader = context;
    struct feed_disk_place *place = reader->place;
    reader->place = NULL;
    if (place == NULL) {
        feed_disk_close_place(&reader->job);
        buffer_deinit(&reader->out);
        return;
    }
    CHECK(place->ready.size == 0);
    place->fd = reader->job.fd;
    place->file_id = reader->job.file_id;
    place->offset = reader->job.offset;
    place->next_group = reader->job.next_group;
    place->room = reader->larger_size;
    struct buffer spare = place->ready;
    place->ready = reader->out;
    reader->out = spare;
    if (reader->result == FEED_DISK_END) {
        feed_disk_close_place(place);
    }
    feed_take_read(reader->feed, place, reader->result);
}

void feed_disk_init(struct feed_disk *reader, struct feed *feed) {
    reader->feed = feed;
    buffer_init(&reader->raw, 0);
    buffer_init(&reader->out, 0);
}

void feed_disk_deinit(struct feed_disk *reader) {
    if (reader->is_started) {
        worker_wait(&reader->worker);
        worker_deinit(&reader->worker);
        reader->is_started = false;
    }
    buffer_deinit(&reader->raw);
    buffer_deinit(&reader->out);
}

bool feed_disk_ask(struct feed_disk *reader, struct feed_disk_place *place, uv_loop_t *loop,
                   const struct persistence *persistence) {
    CHECK(place->ready.size == 0);
    if (reader->place != NULL || (reader->is_started && reader->worker.is_busy)) {
        return false;
    }
    if (place->fd < 0 && !persistence_find_group(persistence, place->next_group, reader->path,
                                                 sizeof reader->path)) {
        feed_take_read(reader->feed, place, FEED_DISK_NONE);
        return false;
    }
    size_t room = place->room > WINDOW ? place->room : WINDOW;
    if (reader->raw.capacity < room) {
        buffer_deinit(&reader->raw);
        buffer_init(&reader->raw, 0);
    }
    /* The thread allocates nothing: a window of groups takes no more than twice its size as messages. */
    if (!reader->is_started) {
        reader->is_started =
            worker_init(&reader->worker, loop, WORKER_AS_THE_LOOP, feed_disk_on_done, reader);
    }
    buffer_clear(&reader->out);
    if (!reader->is_started || buffer_reserve(&reader->raw, room) == NULL ||
        buffer_reserve(&reader->out, 2 * room) == NULL) {
        buffer_clear(&reader->raw);
        buffer_clear(&reader->out);
        feed_take_read(reader->feed, place, FEED_DISK_OUT_OF_MEMORY);
        return false;
    }
    reader->place = place;
    reader->job = *place;
    reader->limit_group = persistence_written_group(persistence);
    worker_start(&reader->worker, feed_disk_run_read);
    return true;
}

void feed_disk_leave(struct feed_disk *reader, struct feed_disk_place *place) {
    if (reader->place == place) {
        reader->place = NULL; /* the file is the job's to close */
    } else {
        feed_disk_close_place(place);
    }
    place->fd = -1;
    buffer_deinit(&place->ready);
}
