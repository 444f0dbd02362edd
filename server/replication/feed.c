/* See feed.h. */
#include "server/replication/feed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/replication.h"
#include "server/replication/wire.h"
#include "server/system/clock.h"
#include "server/system/log.h"

/* Has the child written all? */
static bool feed_redis_copy_is_read(const struct feed_copy *copy) {
    return copy->is_redis && copy->redis.is_read;
}

static struct replication *feed_replication(const struct feed *feed) {
    return &feed->server->replication;
}
/* Its session is being closed. */
static bool feed_is_lost(const struct replica *replica) {
    return replica->is_failed || session_is_void(replica->session);
}
/* How much a replica may leave unread in the backlog; 0: any. As in Redis it may leave what the
 * backlog keeps anyway. */
static uint64_t feed_lag_limit(const struct feed *feed) {
    const struct settings *settings = &feed->server->settings;
    uint64_t limit = settings->output_limits[SETTING_OUTPUT_REPLICA].hard_bytes;
    return limit > 0 && limit < settings->repl_backlog_size ? settings->repl_backlog_size : limit;
}

static bool feed_is_on_disk(const struct feed *feed, uint64_t group);
static void feed_end_copy(struct feed *feed, struct feed_copy *copy);

enum {
    SECOND_MS = 1000,
#ifdef SERVER_TINY
    DISK_WINDOW = 512,
#else
    DISK_WINDOW = 1 << 20, /* bytes of a file that one job reads, unless a group is longer */
#endif
};

static void feed_take_read(struct feed *feed, struct feed_disk_place *files,
                           enum feed_disk_result result);

/* ---- the journal's files: a thread reads them, for one replica at a time ----
 *
 * While the worker is busy it owns job, raw, out, larger_size and result. */

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
    if (job->fd < 0) {
        /* The file's head, by which its groups are known. */
        char head[JOURNAL_FILE_HEAD];
        job->fd = disk_open(AT_FDCWD, reader->path, O_RDONLY, 0);
        if (job->fd < 0 || !disk_read_whole(job->fd, head, sizeof head, 0)) {
            return;
        }
        job->file_id = journal_file_id(head);
        job->offset = JOURNAL_FILE_HEAD;
        if (job->file_id == 0) {
            return;
        }
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

/* Read more for this place, which has sent what was ready. true: feed_take_read is called later. false: the thread is
 * busy, try again; or it was called at once, as there is no such group, or no thread. */
static bool feed_disk_ask(struct feed_disk *reader, struct feed_disk_place *place, uv_loop_t *loop,
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
    size_t room = place->room > DISK_WINDOW ? place->room : DISK_WINDOW;
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

/* Close its file, and free what it has. */
static void feed_disk_leave(struct feed_disk *reader, struct feed_disk_place *place) {
    if (reader->place == place) {
        reader->place = NULL; /* the file is the job's to close */
    } else {
        feed_disk_close_place(place);
    }
    place->fd = -1;
    buffer_deinit(&place->ready);
}

/* ---- opening and closing ---- */

static void feed_take_group(void *context, const struct journal_group_head *head,
                            const char *payload) {
    struct feed *feed = context;
    if (head == NULL || !backlog_add(&feed->backlog, head, payload)) {
        feed->has_gap = true;
    }
}

void feed_write_history(struct feed *feed) {
    const struct replication *replication = feed_replication(feed);
    struct history history = {.second_until = replication->second_until};
    memcpy(history.id, replication->id, sizeof history.id);
    memcpy(history.second_id, replication->second_id, sizeof history.second_id);
    feed->owes_history = !replication_write_history(feed->server->registry, &history);
    feed->has_gap |= feed->owes_history; /* no memory: nobody may rely on what follows */
}

void feed_close_tick(struct feed *feed) {
    const struct persistence *persistence = feed->server->persistence;
    if (feed->owes_history &&
        persistence_last_group(persistence) != persistence_complete_group(persistence)) {
        feed_write_history(feed);
    }
}

void feed_forget_history(struct feed *feed) {
    feed_close_tick(feed); /* what this tick has changed is of the new history already */
    if (feed->owes_history) {
        (void)!replication_take_history(feed->server->registry, feed_replication(feed));
    }
    feed->owes_history = false;
}

void feed_open(struct feed *feed) {
    struct replication *replication = feed_replication(feed);
    struct persistence *persistence = feed->server->persistence;
    if (feed->is_open) {
        return;
    }
    feed->is_open = true;
    feed->has_gap = false;
    feed->deserted_at_ms = feed->server->clock.monotonic_ms;
    backlog_init(&feed->backlog, feed->server->settings.repl_backlog_size);
    bool had_gap = feed->server->durability.has_gap;
    persistence_set_tap(persistence, feed_take_group, feed);
    feed->server->durability.has_gap = false;
    struct history history;
    if (had_gap) {
        /* Whoever knows the id, and the number of the last group, does not know the keys. */
        replication_make_id(feed->server, replication->id);
        memcpy(replication->second_id, REPLICATION_NO_ID, sizeof REPLICATION_NO_ID);
        replication->second_until = 0;
    }
    if (had_gap || (replication_may_change(replication) &&
                    !replication_read_history(feed->server->registry, &history))) {
        feed_write_history(feed);
    } else if (replication_may_change(replication)) {
        /* The keys name another history, which goes on in this one. */
        feed->owes_history = strcmp(history.id, replication->id) != 0;
    }
    log_write(LOG_NOTICE, "replication: backlog begun id=%s group=%" PRIu64 " bytes=%llu",
              replication->id, persistence_last_group(persistence),
              (unsigned long long)feed->backlog.keep_size);
}

/* All that is kept for replicas. */
static void feed_clear(struct feed *feed) {
    feed_end_copy(feed, &feed->copy);
    feed_end_copy(feed, &feed->redis_copy);
    feed_redis_forget(feed);
    backlog_clear(&feed->backlog);
}

static void feed_close(struct feed *feed) {
    feed_clear(feed);
    persistence_set_tap(feed->server->persistence, NULL, NULL);
    feed->is_open = false;
}

void feed_give_up(struct feed *feed, struct replica *replica, const char *reason) {
    struct feed_place *place = feed_place_of(replica);
    if (replica->is_failed) {
        return;
    }
    replica->is_failed = true;
    backlog_leave(&place->cursor);
    log_write(LOG_WARNING, "replica closed id=%llu addr=%s reason=\"%s\" group=%" PRIu64,
              (unsigned long long)replica->session->id, replica->session->address, reason,
              replica->sent_group);
    server_kill_session(feed->server, replica->session);
}

void feed_drop_replicas(struct feed *feed, const char *reason) {
    feed_redis_forget(feed);
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        feed_give_up(feed, replica, reason);
    }
}

void feed_reset(struct feed *feed, const char *reason) {
    feed_drop_replicas(feed, reason);
    if (feed->is_open && feed->quorum != NULL) {
        /* A term goes on, and none of its changes may be without a number. */
        feed_clear(feed);
        backlog_init(&feed->backlog, feed->server->settings.repl_backlog_size);
        feed->has_gap = false;
    } else if (feed->is_open) {
        feed_close(feed);
    }
}

struct feed *feed_create(struct server *server, uv_loop_t *loop) {
    struct feed *feed = memory_allocate_zeroed(sizeof *feed);
    if (feed == NULL) {
        return NULL;
    }
    feed->server = server;
    feed->loop = loop;
    feed->redis_copy.is_redis = true;
    backlog_init(&feed->backlog, 0);
    feed->disk.feed = feed;
    buffer_init(&feed->disk.raw, 0);
    buffer_init(&feed->disk.out, 0);
    return feed;
}

void feed_stop(struct feed *feed) {
    feed_end_copy(feed, &feed->redis_copy);
    if (feed->disk.is_started) {
        worker_wait(&feed->disk.worker);
        worker_deinit(&feed->disk.worker);
        feed->disk.is_started = false;
    }
    buffer_deinit(&feed->disk.raw);
    buffer_deinit(&feed->disk.out);
}

void feed_destroy(struct feed *feed) {
    if (feed != NULL) {
        backlog_leave(&feed->copy.pin);
        backlog_leave(&feed->redis_copy.pin);
        feed_redis_forget(feed);
        backlog_clear(&feed->backlog);
        memory_free(feed);
    }
}

/* ---- full copies: one for the replicas, one for those that are a Redis ---- */

/* Of a copy, in repl-timeout: else it would never end, and others wait for its end. */
enum { TAKEN_MIN = 64 * 1024 };

static const char *feed_copy_name(const struct feed_copy *copy) {
    return copy->is_redis ? "copy for Redis" : "full copy";
}

static void feed_end_copy(struct feed *feed, struct feed_copy *copy) {
    if (copy->state == FEED_COPY_TAKES) {
        persistence_stream_end(feed->server->persistence);
    }
    if (copy->is_redis) {
        feed_redis_copy_end(&copy->redis);
    }
    backlog_leave(&copy->pin);
    copy->state = FEED_COPY_NONE;
}

/* Is the replica receiving a copy of this kind? */
static bool feed_takes_copy(const struct replica *replica, bool is_redis) {
    const struct feed_place *place = feed_place_of(replica);
    return replica->state == REPLICA_COPIES && replica->is_redis == is_redis &&
           !place->is_streaming && (!is_redis || !place->redis->awaits_ack) &&
           !feed_is_lost(replica);
}

/* The first such replica behind that one; before NULL: of all. NULL: there is none. */
static struct replica *feed_next_taker(const struct feed *feed, bool is_redis,
                                       const struct replica *before) {
    struct replica *replica = before != NULL ? before->next : feed_replication(feed)->replicas;
    while (replica != NULL && !feed_takes_copy(replica, is_redis)) {
        replica = replica->next;
    }
    return replica;
}

/* How many of this kind are in that state; of COPIES: that take a copy. */
static uint32_t feed_count(const struct feed *feed, enum replica_state state, bool is_redis) {
    uint32_t count = 0;
    for (const struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        count += replica->state == state && replica->is_redis == is_redis &&
                 !feed_is_lost(replica) &&
                 (state != REPLICA_COPIES || feed_takes_copy(replica, is_redis));
    }
    return count;
}

static void feed_copy_fail(struct feed *feed, struct feed_copy *copy, const char *reason) {
    log_write(LOG_WARNING, "%s given up: %s", feed_copy_name(copy), reason);
    feed_end_copy(feed, copy);
    struct replica *replica = NULL;
    while ((replica = feed_next_taker(feed, copy->is_redis, replica)) != NULL) {
        if (copy->is_redis) {
            feed_give_up(feed, replica, reason);
        } else {
            wire_put_given_up(feed_output(replica), reason);
            replica->session->is_close_after_reply = true;
            replica->is_failed = true;
        }
    }
}

static void feed_copy_begin(struct feed *feed, struct feed_copy *copy) {
    char error[PERSISTENCE_ERROR_MAX];
    struct persistence *persistence = feed->server->persistence;
    if (!persistence_stream_may_begin(persistence) ||
        (copy->is_redis && !feed_redis_copy_may_begin(&copy->redis))) {
        return;
    }
    enum persistence_status status = persistence_stream_begin(persistence, error);
    if (status == PERSISTENCE_BUSY) {
        return;
    }
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (replica->state == REPLICA_WAITS && replica->is_redis == copy->is_redis &&
            !feed_is_lost(replica)) {
            replica->state = REPLICA_COPIES;
        }
    }
    bool is_begun = status == PERSISTENCE_OK;
    if (is_begun) {
        copy->state = FEED_COPY_TAKES;
        copy->is_walked = false;
        copy->group = 0;
        is_begun = !copy->is_redis || feed_redis_copy_begin(feed, &copy->redis, error);
    }
    if (!is_begun) {
        feed_copy_fail(feed, copy, error);
        return;
    }
    log_write(LOG_NOTICE, "%s begun replicas=%u", feed_copy_name(copy),
              feed_count(feed, REPLICA_COPIES, copy->is_redis));
}

/* Keep the groups behind a copy, whose last group is known when its walk has ended. NULL, or why
 * that is impossible. */
static const char *feed_copy_pin(struct feed *feed, struct feed_copy *copy) {
    struct backlog *backlog = &feed->backlog;
    uint64_t limit = feed_lag_limit(feed);
    if (limit > 0 && backlog_unread(backlog, &copy->pin) > limit) {
        backlog_leave(&copy->pin);
    }
    if (copy->is_walked) {
        return copy->pin.chunk != NULL || feed_is_at_hand(feed, copy->group + 1)
                   ? NULL
                   : "more is written meanwhile than client-output-buffer-limit replica allows";
    }
    copy->group = persistence_stream_group(feed->server->persistence);
    copy->is_walked = copy->group != 0;
    uint64_t next_group = copy->is_walked ? copy->group + 1 : backlog->next_group;
    bool is_lost = backlog->first != NULL && !backlog_seek(backlog, &copy->pin, next_group) &&
                   !feed_is_on_disk(feed, next_group);
    return is_lost ? "the groups behind it are lost" : NULL;
}

bool feed_is_copy_slow(const struct feed *feed, bool is_redis) {
    const struct replica *replica = feed_next_taker(feed, is_redis, NULL);
    while (replica != NULL && feed_unsent(replica) <= FEED_UNSENT_MAX) {
        replica = feed_next_taker(feed, is_redis, replica);
    }
    return replica != NULL;
}

static void feed_copy_complete_one(struct feed *feed, const struct feed_copy *copy,
                                   struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    if (!copy->is_redis) {
        wire_put_end(feed_output(replica), copy->group,
                     (int64_t)persistence_stream_footer(feed->server->persistence)->time_us);
        place->is_streaming = true;
    } else if (!feed_redis_copy_put_end(feed, copy, replica)) {
        return;
    }
    place->next_group = copy->group + 1;
    place->online_from = copy->group;
    replica->sent_group = copy->group;
    if (!feed_is_at_hand(feed, place->next_group)) {
        feed_give_up(feed, replica, "the groups behind its copy are lost");
    } else if (feed->backlog.first != NULL) {
        (void)!backlog_seek(&feed->backlog, &place->cursor, place->next_group);
    }
}

/* true: there is more to do at once. */
static bool feed_copy_send(struct feed *feed, struct feed_copy *copy) {
    enum { PIECES_MAX = 4 }; /* in one tick, over all replicas; one at least for each */
    char error[PERSISTENCE_ERROR_MAX];
    uint32_t replica_count = feed_count(feed, REPLICA_COPIES, copy->is_redis);
    for (uint32_t sent = 0; sent < PIECES_MAX; sent += replica_count) {
        struct replica *replica = NULL;
        size_t size = 0;
        if (!feed_redis_copy_is_read(copy) && feed_is_copy_slow(feed, copy->is_redis)) {
            return false;
        }
        enum stream_status status =
            copy->is_redis ? feed_redis_copy_read(feed, copy, &size, error)
                           : persistence_stream_read(feed->server->persistence, feed->piece,
                                                     sizeof feed->piece, &size, error);
        switch (status) {
        case STREAM_PIECE:
            while ((replica = feed_next_taker(feed, copy->is_redis, replica)) != NULL) {
                if (copy->is_redis) {
                    feed_redis_copy_put_piece(&copy->redis, replica, feed->piece, size);
                } else {
                    wire_put_piece(feed_output(replica), feed->piece, size);
                }
                feed_replication(feed)->counters.copied_size += size;
            }
            break;
        case STREAM_WAITS:
            return feed_redis_copy_is_read(copy); /* its process ends in an instant */
        case STREAM_END: {
            const char *why = feed_copy_pin(feed, copy);
            if (why != NULL) {
                feed_copy_fail(feed, copy, why);
            } else {
                while ((replica = feed_next_taker(feed, copy->is_redis, replica)) != NULL) {
                    feed_copy_complete_one(feed, copy, replica);
                }
                feed_end_copy(feed, copy);
            }
            return true;
        }
        case STREAM_FAILED:
            feed_copy_fail(feed, copy, error);
            return true;
        }
    }
    return true;
}

/* Begin this copy, if replicas wait for one, or go on with it. true: there is more to do at once. */
static bool feed_step_copy(struct feed *feed, struct feed_copy *copy) {
    char error[PERSISTENCE_ERROR_MAX];
    if (copy->state == FEED_COPY_NONE && feed_count(feed, REPLICA_WAITS, copy->is_redis) > 0) {
        feed_copy_begin(feed, copy);
    }
    if (copy->state == FEED_COPY_NONE) {
        return false;
    }
    if (feed_count(feed, REPLICA_COPIES, copy->is_redis) == 0) {
        feed_end_copy(feed, copy);
        return true;
    }
    const char *why = feed_copy_pin(feed, copy);
    if (why == NULL && copy->is_redis && copy->state == FEED_COPY_TAKES) {
        switch (persistence_stream_look(feed->server->persistence, error)) {
        case STREAM_END: /* all of the snapshot is in the pipe of the process */
            why = feed_copy_pin(feed, copy);
            persistence_stream_end(feed->server->persistence);
            copy->state = FEED_COPY_SENDS;
            break;
        case STREAM_FAILED:
            why = error;
            break;
        case STREAM_PIECE:
        case STREAM_WAITS:
            break;
        }
    }
    if (why != NULL) {
        feed_copy_fail(feed, copy, why);
        return false;
    }
    return feed_copy_send(feed, copy);
}

/* A copy goes on when all that share it have taken what was sent, and while it goes on no snapshot is saved. So: has it
 * taken next to nothing (64 KiB) of it for repl-timeout? */
static bool feed_copy_is_stuck(const struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    int64_t now_ms = feed->server->clock.monotonic_ms;
    size_t size = feed_takes_copy(replica, replica->is_redis) ? feed_unsent(replica) : 0;
    if (size <= FEED_UNSENT_MAX || size > place->untaken_size ||
        place->untaken_size - size >= TAKEN_MIN) {
        place->untaken_size = size;
        place->taken_at_ms = now_ms;
    }
    return now_ms - place->taken_at_ms > feed->server->settings.repl_timeout_s * 1000;
}

/* Asked once a second: have others that share its copy waited for it, for repl-timeout in all? */
static bool feed_copy_is_held_up(const struct feed *feed, const struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    bool is_awaited = false; /* by another one, which has taken all that was sent of the copy */
    const struct replica *other = NULL;
    while ((other = feed_next_taker(feed, replica->is_redis, other)) != NULL) {
        is_awaited |= other != replica && feed_unsent(other) == 0;
    }
    if (feed_takes_copy(replica, replica->is_redis) && feed_unsent(replica) > FEED_UNSENT_MAX &&
        is_awaited) {
        place->holding_s++;
    }
    return place->holding_s > feed->server->settings.repl_timeout_s;
}

enum {
    READ_MAX = 256 * 1024,
    REDIS_READ_MAX = 64 * 1024,
    REDIS_BUDGET_NS = 400000, /* of a tick, for all of them */
};

/* ---- where groups are ---- */

static bool feed_is_on_disk(const struct feed *feed, uint64_t group) {
    char path[sizeof feed->disk.path];
    return group >= feed->disk_from &&
           persistence_find_group(feed->server->persistence, group, path, sizeof path);
}

static bool feed_is_in_backlog(const struct feed *feed, uint64_t group) {
    const struct backlog *backlog = &feed->backlog;
    if (backlog->first == NULL) {
        return group == persistence_complete_group(feed->server->persistence) + 1;
    }
    return group >= backlog_first_group(backlog) && group <= backlog->next_group;
}

bool feed_is_at_hand(const struct feed *feed, uint64_t group) {
    return feed_is_in_backlog(feed, group) || feed_is_on_disk(feed, group);
}

/* ---- sending ---- */

struct buffer *feed_output(struct replica *replica) {
    feed_place_of(replica)->is_fed = true;
    replica->session->output.size_max = 0;
    return &replica->session->output;
}

static void feed_take_read(struct feed *feed, struct feed_disk_place *files,
                           enum feed_disk_result result) {
    struct replica *replica = feed_replication(feed)->replicas;
    while (replica != NULL && &feed_place_of(replica)->disk != files) {
        replica = replica->next;
    }
    CHECK(replica != NULL);
    switch (result) {
    case FEED_DISK_READ:
    case FEED_DISK_END:
        break;
    case FEED_DISK_NONE:
        feed->disk_from = persistence_complete_group(feed->server->persistence) + 1;
        feed_give_up(feed, replica, "what it needs next is not in the journal any more");
        break;
    case FEED_DISK_OUT_OF_MEMORY:
        feed_give_up(feed, replica, "no memory to read the journal for it");
    }
    replicator_wake(feed_replication(feed)->replicator);
}

/* Groups that are whole: as they are, or to be encoded. */
static void feed_stream_deliver(struct feed *feed, struct replica *replica, struct bytes groups,
                                uint64_t last_group) {
    struct feed_place *place = feed_place_of(replica);
    if (place->redis != NULL) {
        if (!feed_redis_encode_add(&place->redis->encode, groups.at, groups.size)) {
            feed_give_up(feed, replica, "no memory for what it is sent");
            return;
        }
    } else {
        buffer_append(feed_output(replica), groups.at, groups.size);
    }
    place->next_group = last_group + 1;
    replica->sent_group = last_group;
    feed_replication(feed)->counters.streamed_size += groups.size;
}

/* What was read from the journal, and then more of that. true: there is more to do at once. */
static bool feed_stream_send_from_disk(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    struct feed_disk_place *files = &place->disk;
    if (feed_unsent(replica) >= FEED_UNSENT_MAX) {
        return false;
    }
    if (files->ready.size > 0) {
        feed_stream_deliver(feed, replica,
                            (struct bytes){.at = files->ready.at, .size = files->ready.size},
                            files->next_group - 1);
        buffer_clear(&files->ready);
        return true;
    }
    if (feed->disk.place == files) {
        return false; /* the thread is at it */
    }
    files->next_group = place->next_group;
    (void)feed_disk_ask(&feed->disk, files, feed->loop, feed->server->persistence);
    return false;
}

/* Close a replica that leaves more unread than memory may hold for it, unless the journal has that, too. */
static void feed_bound_lag(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    uint64_t limit = feed_lag_limit(feed);
    if (limit == 0 || backlog_unread(&feed->backlog, &place->cursor) <= limit) {
        return;
    }
    if (feed_is_on_disk(feed, place->next_group)) {
        backlog_leave(&place->cursor);
        log_write(LOG_NOTICE,
                  "replica is behind, and gets the journal's files id=%llu group=%" PRIu64,
                  (unsigned long long)replica->session->id, place->next_group);
    } else {
        feed_give_up(feed, replica, "it reads too slowly: client-output-buffer-limit replica");
    }
}

/* true: there is more to do at once. */
static bool feed_stream_send_groups(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    struct backlog *backlog = &feed->backlog;
    if (place->cursor.chunk == NULL && feed->disk.place != &place->disk &&
        place->disk.ready.size == 0 && backlog_seek(backlog, &place->cursor, place->next_group)) {
        feed_disk_leave(&feed->disk, &place->disk);
    }
    if (place->cursor.chunk == NULL) {
        return !feed_is_in_backlog(feed, place->next_group) &&
               feed_stream_send_from_disk(feed, replica);
    }
    size_t read_max = place->redis != NULL ? REDIS_READ_MAX : READ_MAX;
    while (feed_unsent(replica) < FEED_UNSENT_MAX && feed_redis_is_idle(place) &&
           !feed_is_lost(replica)) {
        const char *at;
        uint64_t last_group;
        size_t size = backlog_read(backlog, &place->cursor, read_max, &at, &last_group);
        if (size == 0) {
            return false;
        }
        feed_stream_deliver(feed, replica, (struct bytes){.at = at, .size = size}, last_group);
    }
    feed_bound_lag(feed, replica);
    return false; /* the loop turns when its socket has taken some */
}

/* Groups as commands. true: there is more to do at once. */
static bool feed_stream_send_commands(struct feed *feed, struct replica *replica,
                                      uint64_t begin_ticks) {
    struct feed_place *place = feed_place_of(replica);
    for (;;) {
        uint64_t spent_ns = clock_ticks_to_ns(clock_ticks() - begin_ticks);
        if (feed_unsent(replica) >= FEED_UNSENT_MAX) {
            feed_bound_lag(feed, replica);
            return false;
        }
        if (!feed_redis_is_idle(place)) {
            if (spent_ns >= REDIS_BUDGET_NS) {
                return true;
            }
            if (!feed_redis_encode(feed, replica, REDIS_BUDGET_NS - spent_ns)) {
                return false;
            }
            continue;
        }
        bool has_more = feed_stream_send_groups(feed, replica);
        if (feed_is_lost(replica) || feed_redis_is_idle(place)) {
            return has_more;
        }
    }
}

/* ---- what replicas get in a tick ---- */

/* Ask for an acknowledgement. */
static void feed_ping(struct feed *feed, struct replica *replica) {
    if (replica->is_redis) {
        feed_redis_ask(replica);
    } else if (feed_unsent(replica) < FEED_UNSENT_MAX) {
        wire_put_ping(feed_output(replica), feed->server->clock.now_us, replica->sent_group);
    }
}

/* What replicas are to get in this tick. true: there is more to do at once. */
static bool feed_stream(struct feed *feed) {
    bool has_more = false;
    uint64_t begin_ticks = clock_ticks();
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_is_lost(replica)) {
            continue;
        }
        struct feed_place *place = feed_place_of(replica);
        if (!place->is_streaming) {
            /* Of a Redis that has its copy, but has not loaded it, the groups behind it are kept. */
            if (place->redis != NULL && place->redis->awaits_ack) {
                if (place->cursor.chunk == NULL && feed->backlog.first != NULL) {
                    (void)!backlog_seek(&feed->backlog, &place->cursor, place->next_group);
                }
                feed_bound_lag(feed, replica);
            }
            continue;
        }
        if (replica->state == REPLICA_COPIES && replica->ack_group >= place->online_from) {
            replica->state = REPLICA_ONLINE;
            log_write(LOG_NOTICE, "replica has its full copy id=%llu addr=%s group=%" PRIu64,
                      (unsigned long long)replica->session->id, replica->session->address,
                      replica->ack_group);
        }
        if (replica->is_redis) {
            has_more |= feed_stream_send_commands(feed, replica, begin_ticks);
        } else {
            has_more |= feed_stream_send_groups(feed, replica);
        }
        if (feed->wants_ping) {
            feed_ping(feed, replica);
        }
    }
    feed->wants_ping = false;
    return has_more;
}

/* ---- LB.SYNC and PSYNC: may a replica be served, and from where on ---- */

static bool feed_sync_is_id(const char *id, struct bytes wanted) {
    return bytes_equal(bytes_from_text(id), wanted);
}

/* Does whoever has all groups before this one, of that history, have what is true here, too? */
static bool feed_sync_is_ours(const struct feed *feed, struct bytes id, uint64_t group) {
    const struct replication *replication = feed_replication(feed);
    uint64_t last_group = persistence_complete_group(feed->server->persistence);
    if (group == 0 || !term_is_id(id) || feed_sync_is_id(REPLICATION_NO_ID, id)) {
        return false;
    }
    return (feed_sync_is_id(replication->id, id) && group - 1 <= last_group) ||
           (feed_sync_is_id(replication->second_id, id) && group - 1 <= replication->second_until);
}

static const char *feed_sync_find_sync_refusal(const struct feed *feed,
                                               const struct replication_wish *wish) {
    const struct replication *replication = feed_replication(feed);
    const char *refusal = NULL;
    if (feed->quorum != NULL) {
        refusal = quorum_find_sync_refusal(feed->quorum, wish->is_pulling, &wish->term);
    } else if (wish->is_pulling) {
        refusal = "NOMASTERLINK sync-replicas is 0 here";
    }
    if (refusal != NULL || wish->is_pulling) {
        return refusal;
    }
    if (wish->wants_failover && !feed_sync_is_id(replication->id, wish->id)) {
        return "ERR PSYNC FAILOVER replid must match my replid.";
    }
    if (replication_is_replica(replication) && !wish->wants_failover &&
        (!replication->is_whole || replication->link == REPLICATION_LINK_SYNC ||
         !replication_is_up(replication))) {
        return "NOMASTERLINK Can't SYNC while not connected with my master";
    }
    if (replication_keys(replication) == REPLICATION_KEYS_PROMOTING) {
        return "NOMASTERLINK Can't SYNC while what was received is being applied";
    }
    if (replication->failover.state == REPLICATION_FAILOVER_SHIFTS) {
        return "NOMASTERLINK Can't SYNC while failing over";
    }
    return feed->server->persistence == NULL ? "ERR this server runs without a disk" : NULL;
}

static void feed_sync_answer(struct feed *feed, const struct replica *replica, struct reply *reply,
                             const struct replication_wish *wish, bool is_continued) {
    if (wish->is_redis) {
        feed_redis_answer(replica, wish->is_old, is_continued, reply);
        return;
    }
    char text[sizeof "CONTINUE " + REPLICATION_ID_SIZE];
    const struct session *session = replica->session;
    snprintf(text, sizeof text, "%s %s", is_continued ? "CONTINUE" : "FULL",
             feed_replication(feed)->id);
    reply_simple(reply, text);
    log_write(LOG_NOTICE, "replica %s id=%llu addr=%s port=%u group=%" PRIu64,
              is_continued ? "continues" : "wants a full copy", (unsigned long long)session->id,
              session->address, replica->port, replica->sent_group);
}

void feed_sync(struct feed *feed, struct replica *replica, const struct replication_wish *wish,
               struct reply *reply) {
    struct bytes id = wish->id;
    uint64_t group = wish->group;
    struct replication *replication = feed_replication(feed);
    const char *refusal = feed_sync_find_sync_refusal(feed, wish);
    if (refusal != NULL) {
        reply_error(reply, refusal);
        return;
    }
    if (replica->state != REPLICA_HANDSHAKE) {
        reply_error(reply, "ERR this connection is a replica's already");
        return;
    }
    struct feed_place *place = memory_allocate_zeroed(sizeof *place);
    if (place == NULL) {
        reply_error(reply, "OOM out of memory");
        return;
    }
    if (wish->wants_failover) {
        if (feed->quorum != NULL) {
            quorum_end_hold(feed->quorum, id);
        }
        replication_promote(feed->server);
    }
    if (wish->wants_failover && (feed->quorum != NULL || replication->is_promoting)) {
        memory_free(place);
        reply_simple(reply, "AGREED"); /* not open yet: it comes again, and registers */
        return;
    }
    feed_open(feed);
    place->disk.fd = -1;
    replica->feed = place;
    if (wish->is_redis && !feed_redis_join(feed, replica, wish, &group)) {
        memory_free(place);
        replica->feed = NULL;
        reply_error(reply, "OOM out of memory");
        return;
    }
    bool is_continued = (wish->is_redis ? group != 0 : feed_sync_is_ours(feed, id, group)) &&
                        feed_is_at_hand(feed, group);
    if (is_continued) {
        place->next_group = group;
        place->is_streaming = true;
        replica->ack_group = group - 1;
        replica->sent_group = group - 1;
        replication->counters.partial_syncs++;
    } else {
        replication->counters.full_syncs++;
        replication->counters.partial_sync_failures +=
            id.at != NULL && term_is_id(id) && !feed_sync_is_id(REPLICATION_NO_ID, id);
    }
    replication_add_replica(feed->server, replica, is_continued ? REPLICA_ONLINE : REPLICA_WAITS);
    feed->deserted_at_ms = 0;
    feed_sync_answer(feed, replica, reply, wish, is_continued);
    replica->session->reply_mode = SESSION_REPLY_OFF; /* what follows is no reply */
}

void feed_leave(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    if (place != NULL) {
        backlog_leave(&place->cursor);
        feed_disk_leave(&feed->disk, &place->disk);
        feed_redis_leave(feed, replica);
        memory_free(place);
        replica->feed = NULL;
    }
    if (feed_replication(feed)->replica_count == 0) {
        feed->deserted_at_ms = feed->server->clock.monotonic_ms;
    }
}

/* ---- the tick ---- */

static void feed_describe(struct feed *feed) {
    struct replication *replication = feed_replication(feed);
    replication->backlog_size = feed->is_open ? feed->backlog.keep_size : 0;
    replication->backlog_first_group = backlog_first_group(&feed->backlog);
    replication->backlog_used_size = backlog_size(&feed->backlog);
}

bool feed_step(struct feed *feed) {
    bool has_more = false;
    feed_redis_copy_reap(&feed->redis_copy.redis);
    if (!feed->is_open) {
        return false;
    }
    if (feed->has_gap) {
        feed_reset(feed, "groups were lost for lack of memory");
        return true;
    }
    feed->backlog.keep_size = feed->server->settings.repl_backlog_size;
    has_more |= feed_step_copy(feed, &feed->copy);
    has_more |= feed_step_copy(feed, &feed->redis_copy);
    has_more |= feed_stream(feed);
    /* Where memory was missing, something is missing in what they are sent, and nothing behind it would
     * be understood. */
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        struct feed_place *place = feed_place_of(replica);
        if (!feed_is_lost(replica) && replica->session->output.is_broken) {
            feed_give_up(feed, replica, "no memory for what it is sent");
        } else if (place->is_fed) {
            place->is_fed = false;
            replica->fed_size = feed_unsent(replica);
        }
    }
    backlog_trim(&feed->backlog);
    feed_describe(feed);
    return has_more;
}

void feed_second(struct feed *feed, bool is_kept) {
    const struct server *server = feed->server;
    struct replication *replication = feed_replication(feed);
    int64_t now_ms = server->clock.monotonic_ms;
    feed_redis_copy_reap(&feed->redis_copy.redis);
    if (!feed->is_open) {
        return;
    }
    /* Its child neither works nor waits for replicas, and while it goes on, no snapshot is saved. */
    struct feed_copy *copy = &feed->redis_copy;
    if (copy->state != FEED_COPY_NONE && feed_redis_copy_is_stuck(feed, copy)) {
        feed_copy_fail(feed, copy, "the process that makes it has done nothing for repl-timeout");
    }
    for (struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_is_lost(replica)) {
            continue;
        }
        if (replica->is_redis) {
            feed_redis_second(feed, replica);
        }
        if (now_ms - replica->ack_at_ms > server->settings.repl_timeout_s * SECOND_MS) {
            feed_give_up(feed, replica, "it said nothing for repl-timeout");
        } else if (feed_copy_is_stuck(feed, replica)) {
            feed_give_up(feed, replica,
                         "it has taken next to nothing of its copy for repl-timeout");
        } else if (feed_copy_is_held_up(feed, replica)) {
            feed_give_up(feed, replica,
                         "it takes its copy more slowly than others, who have waited for "
                         "repl-timeout in all");
        } else if (!replica->is_redis) {
            feed_ping(feed, replica);
        }
    }
    feed_redis_forget_old(feed);
    int64_t ttl_s = server->settings.repl_backlog_ttl_s;
    if (is_kept && feed->deserted_at_ms != 0) {
        feed->deserted_at_ms = now_ms;
    }
    if (replication->replica_count == 0 && ttl_s > 0 && feed->quorum == NULL &&
        feed->deserted_at_ms != 0 && now_ms - feed->deserted_at_ms > ttl_s * SECOND_MS) {
        log_write(LOG_NOTICE,
                  "replication: backlog ended, as no replica came for repl-backlog-ttl");
        feed_close(feed);
        feed_describe(feed);
    }
}
