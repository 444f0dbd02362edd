/* RDB files for Redis servers, made by a child process. See feed_redis.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/feed_parts.h"
#include "server/system/log.h"

enum {
    PIECES_MAX = 4, /* in one tick, over all replicas; one at least for each */
    SECOND_MS = 1000,
};

/* ---- the end ---- */

void feed_end_redis_copy(struct feed *feed) {
    struct feed_redis_copy *copy = &feed->redis_copy;
    if (copy->state == FEED_REDIS_TAKES) {
        persistence_end_stream(feed->server->persistence);
    }
    child_kill(&copy->child);
    stream_close(&copy->out);
    backlog_leave(&feed->redis_pin.pin);
    feed->redis_pin = (struct feed_copy){.is_going = false};
    copy->state = FEED_REDIS_NONE;
}

static void feed_redis_copy_fail(struct feed *feed, const char *reason) {
    struct replica *replica = feed_replication(feed)->replicas;
    log_write(LOG_WARNING, "copy for Redis given up: %s", reason);
    feed_end_redis_copy(feed);
    for (; replica != NULL; replica = replica->next) {
        if (feed_takes_copy(replica, true)) {
            feed_give_up(feed, replica, reason);
        }
    }
}

/* ---- the beginning ---- */

/* When the snapshot is closed before all of it is in the child's pipe. */
static void feed_redis_copy_end_child(void *context) {
    struct feed_redis_copy *copy = context;
    child_kill(&copy->child);
}

static bool feed_redis_copy_start_child(struct feed_redis_copy *copy, const struct feed *feed) {
    static const char *const arguments[] = {"leaderboard-server", "--export", "-", "-",
                                            "--format",           "rdb",      NULL};
    int input =
        persistence_share_stream(feed->server->persistence, feed_redis_copy_end_child, copy);
    bool is_started = input >= 0 && child_start(&copy->child, arguments, feed->server->settings.dir,
                                                input, copy->out.writer);
    int error = errno;
    disk_close(input);
    disk_close(copy->out.writer); /* the child has it */
    copy->out.writer = -1;
    errno = error;
    return is_started;
}

static void feed_redis_copy_make_mark(struct feed *feed) {
    replication_make_id(feed->server, feed->redis_copy.mark);
}

static void feed_redis_copy_begin(struct feed *feed) {
    char error[PERSISTENCE_ERROR_MAX];
    struct feed_redis_copy *copy = &feed->redis_copy;
    struct persistence *persistence = feed->server->persistence;
    if (!persistence_may_stream(persistence) || copy->out.state != STREAM_UNUSED ||
        copy->child.state != CHILD_NONE) {
        return;
    }
    enum persistence_status status = persistence_begin_stream(persistence, FILE_FORMAT, error);
    if (status == PERSISTENCE_BUSY) {
        return;
    }
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (replica->state == REPLICA_WAITS && replica->is_redis && !feed_is_lost(replica)) {
            replica->state = REPLICA_COPIES;
        }
    }
    if (status != PERSISTENCE_OK) {
        feed_redis_copy_fail(feed, error);
        return;
    }
    copy->state = FEED_REDIS_TAKES;
    copy->is_read = false;
    copy->size = 0;
    copy->begin_ms = feed->server->clock.monotonic_ms;
    copy->moved_at_ms = copy->begin_ms;
    copy->child_time_ns = 0;
    feed->redis_pin = (struct feed_copy){.is_going = true};
    feed_redis_copy_make_mark(feed);
    if (!stream_open(&copy->out, feed->loop) || !feed_redis_copy_start_child(copy, feed)) {
        snprintf(error, sizeof error, "cannot start a process that makes it: %s", strerror(errno));
        feed_redis_copy_fail(feed, error);
        return;
    }
    log_write(LOG_NOTICE, "copy for Redis begun replicas=%u pid=%ld",
              feed_count(feed, REPLICA_COPIES, true), (long)copy->child.id);
}

/* ---- sending ---- */

static void feed_redis_copy_send_piece(struct feed *feed, size_t size) {
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (!feed_takes_copy(replica, true)) {
            continue;
        }
        struct feed_redis *redis = feed_place_of(replica)->redis;
        struct buffer *out = feed_output(replica);
        if (!redis->has_head) {
            buffer_append(out, "$EOF:", 5);
            buffer_append(out, feed->redis_copy.mark, FEED_REDIS_MARK_SIZE);
            buffer_append(out, "\r\n", 2);
            redis->has_head = true;
        }
        buffer_append(out, feed->piece, size);
        feed_replication(feed)->counters.copied_size += size;
    }
    feed->redis_copy.size += size;
}

static void feed_redis_copy_complete_one(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    uint64_t group = feed->redis_pin.group;
    buffer_append(feed_output(replica), feed->redis_copy.mark, FEED_REDIS_MARK_SIZE);
    if (place->redis->is_copy_enough) {
        replica->session->is_close_after_reply = true;
        replica->is_failed = true; /* it gets nothing more */
        return;
    }
    place->next_group = group + 1;
    place->online_from = group;
    place->redis->awaits_ack = true;
    place->redis->encode.group = group;
    replica->sent_group = group;
    replica->ack_at_ms = feed->server->clock.monotonic_ms;
    if (!feed_is_at_hand(feed, place->next_group)) {
        feed_give_up(feed, replica, "the groups behind its copy are lost");
    } else if (feed->backlog.first != NULL) {
        (void)!backlog_seek(&feed->backlog, &place->cursor, place->next_group);
    }
}

static void feed_redis_copy_complete(struct feed *feed) {
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_takes_copy(replica, true)) {
            feed_redis_copy_complete_one(feed, replica);
        }
    }
    log_write(LOG_NOTICE, "copy for Redis sent bytes=%" PRIu64 " group=%" PRIu64 " seconds=%.2f",
              feed->redis_copy.size, feed->redis_pin.group,
              (double)(feed->server->clock.monotonic_ms - feed->redis_copy.begin_ms) / 1000);
    feed_end_redis_copy(feed);
}

/* All that the child has written is sent: has it come to its end? true: there is more to do at once. */
static bool feed_redis_copy_take_end(struct feed *feed) {
    switch (child_look(&feed->redis_copy.child)) {
    case CHILD_GOES_ON:
        return true; /* for an instant */
    case CHILD_IS_DONE:
        if (feed->redis_copy.state == FEED_REDIS_SENDS) {
            feed_redis_copy_complete(feed);
            return true;
        }
        break;
    case CHILD_FAILED:
        break;
    }
    feed_redis_copy_fail(feed, "the process that makes it has failed: its standard error says why");
    return true;
}

static bool feed_redis_copy_send_pieces(struct feed *feed) {
    struct feed_redis_copy *copy = &feed->redis_copy;
    uint32_t replica_count = feed_count(feed, REPLICA_COPIES, true);
    for (uint32_t sent = 0; sent < PIECES_MAX && !copy->is_read; sent += replica_count) {
        size_t size = 0;
        if (feed_is_copy_slow(feed, true)) {
            return false;
        }
        switch (stream_read(&copy->out, feed->piece, sizeof feed->piece, &size)) {
        case STREAM_PIECE:
            feed_redis_copy_send_piece(feed, size);
            break;
        case STREAM_WAITS:
            return false;
        case STREAM_END:
        case STREAM_FAILED:
            copy->is_read = true;
            break;
        }
    }
    return copy->is_read ? feed_redis_copy_take_end(feed) : true;
}

/* Is all of the snapshot in the child's pipe? false: it was given up. */
static bool feed_redis_copy_follow_snapshot(struct feed *feed) {
    char error[PERSISTENCE_ERROR_MAX];
    struct persistence *persistence = feed->server->persistence;
    const char *why = feed_pin_copy(feed, &feed->redis_pin);
    if (why != NULL) {
        feed_redis_copy_fail(feed, why);
        return false;
    }
    if (feed->redis_copy.state != FEED_REDIS_TAKES) {
        return true;
    }
    switch (persistence_look_stream(persistence, error)) {
    case PERSISTENCE_STREAM_END:
        why = feed_pin_copy(feed, &feed->redis_pin);
        persistence_end_stream(persistence);
        feed->redis_copy.state = FEED_REDIS_SENDS;
        break;
    case PERSISTENCE_STREAM_FAILED:
        why = error;
        break;
    case PERSISTENCE_STREAM_PIECE:
    case PERSISTENCE_STREAM_WAITS:
        break;
    }
    if (why != NULL) {
        feed_redis_copy_fail(feed, why);
    }
    return why == NULL;
}

bool feed_step_redis_copy(struct feed *feed) {
    struct feed_redis_copy *copy = &feed->redis_copy;
    if (copy->state == FEED_REDIS_NONE && feed_count(feed, REPLICA_WAITS, true) > 0) {
        feed_redis_copy_begin(feed);
    }
    if (copy->state == FEED_REDIS_NONE) {
        return false;
    }
    if (feed_count(feed, REPLICA_COPIES, true) == 0) {
        feed_end_redis_copy(feed);
        return true;
    }
    return feed_redis_copy_follow_snapshot(feed) && feed_redis_copy_send_pieces(feed);
}

void feed_reap_redis_copy(struct feed *feed) {
    if (feed->redis_copy.child.state == CHILD_KILLED) {
        (void)child_look(&feed->redis_copy.child);
    }
}

void feed_redis_copy_second(struct feed *feed) {
    struct feed_redis_copy *copy = &feed->redis_copy;
    int64_t now_ms = feed->server->clock.monotonic_ms;
    if (copy->state == FEED_REDIS_NONE) {
        return;
    }
    uint64_t time_ns = child_time_ns(&copy->child);
    if (time_ns != copy->child_time_ns || feed_is_copy_slow(feed, true)) {
        copy->child_time_ns = time_ns;
        copy->moved_at_ms = now_ms;
    } else if (now_ms - copy->moved_at_ms > feed->server->settings.repl_timeout_s * SECOND_MS) {
        feed_redis_copy_fail(feed, "the process that makes it has done nothing for repl-timeout");
    }
}
