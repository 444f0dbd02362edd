/* RDB files for Redis servers, made by a child process. See feed_redis.h. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/feed.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

enum { SECOND_MS = 1000 };

void feed_redis_copy_end(struct feed_redis_copy *copy) {
    child_kill(&copy->child);
    stream_close(&copy->out);
}

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

bool feed_redis_copy_may_begin(const struct feed_redis_copy *copy) {
    return copy->out.state == STREAM_UNUSED && copy->child.state == CHILD_NONE;
}

bool feed_redis_copy_begin(struct feed *feed, struct feed_redis_copy *copy, char *error) {
    copy->is_read = false;
    copy->size = 0;
    copy->begin_ms = feed->server->clock.monotonic_ms;
    copy->moved_at_ms = copy->begin_ms;
    copy->child_time_ns = 0;
    replication_make_id(feed->server, copy->mark);
    if (stream_open(&copy->out, feed->loop) && feed_redis_copy_start_child(copy, feed)) {
        return true;
    }
    snprintf(error, PERSISTENCE_ERROR_MAX, "cannot start a process that makes it: %s",
             strerror(errno));
    return false;
}

void feed_redis_copy_put_piece(const struct feed_redis_copy *copy, struct replica *replica,
                               const char *at, size_t size) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    struct buffer *out = feed_output(replica);
    if (!redis->has_head) {
        buffer_append(out, "$EOF:", 5);
        buffer_append(out, copy->mark, FEED_REDIS_MARK_SIZE);
        buffer_append(out, "\r\n", 2);
        redis->has_head = true;
    }
    buffer_append(out, at, size);
}

bool feed_redis_copy_put_end(struct feed *feed, const struct feed_copy *copy,
                             struct replica *replica) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    buffer_append(feed_output(replica), copy->redis.mark, FEED_REDIS_MARK_SIZE);
    if (redis->is_copy_enough) {
        replica->session->is_close_after_reply = true;
        replica->is_failed = true; /* it gets nothing more */
        return false;
    }
    redis->awaits_ack = true;
    redis->encode.group = copy->group;
    replica->ack_at_ms = feed->server->clock.monotonic_ms;
    return true;
}

enum stream_status feed_redis_copy_read(struct feed *feed, struct feed_copy *copy, size_t *size,
                                        char *error) {
    struct feed_redis_copy *redis = &copy->redis;
    enum stream_status status =
        redis->is_read ? STREAM_END
                       : stream_read(&redis->out, feed->piece, sizeof feed->piece, size);
    if (status == STREAM_PIECE || status == STREAM_WAITS) {
        redis->size += *size;
        return status;
    }
    redis->is_read = true;
    enum child_end end = child_look(&redis->child);
    if (end == CHILD_GOES_ON) {
        return STREAM_WAITS;
    }
    if (end == CHILD_IS_DONE && copy->state == FEED_COPY_SENDS) {
        log_write(LOG_NOTICE,
                  "copy for Redis sent bytes=%" PRIu64 " group=%" PRIu64 " seconds=%.2f",
                  redis->size, copy->group,
                  (double)(feed->server->clock.monotonic_ms - redis->begin_ms) / 1000);
        return STREAM_END;
    }
    snprintf(error, PERSISTENCE_ERROR_MAX,
             "the process that makes it has failed: its standard error says why");
    return STREAM_FAILED;
}

void feed_redis_copy_reap(struct feed_redis_copy *copy) {
    if (copy->child.state == CHILD_KILLED) {
        (void)child_look(&copy->child);
    }
}

bool feed_redis_copy_is_stuck(const struct feed *feed, struct feed_copy *copy) {
    struct feed_redis_copy *redis = &copy->redis;
    int64_t now_ms = feed->server->clock.monotonic_ms;
    uint64_t time_ns = child_time_ns(&redis->child);
    if (time_ns != redis->child_time_ns || feed_is_copy_slow(feed, true)) {
        redis->child_time_ns = time_ns;
        redis->moved_at_ms = now_ms;
    }
    return now_ms - redis->moved_at_ms > feed->server->settings.repl_timeout_s * SECOND_MS;
}
