/* Redis servers as replicas: the stream's bytes, what they acknowledge, and the copies in front. See feed_redis.h. */
#include "server/migration/feed_redis.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/feed.h"
#include "server/replication/history.h"
#include "server/replication/hub.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

enum { SECOND_MS = 1000 };

/* ---- coming and going ---- */

/* Can it go on from the first byte that it wants? */
static bool feed_redis_resume(const struct feed *feed, struct feed_redis *redis, uint64_t offset) {
    const struct feed_redis_mark *found = NULL; /* the place of a stream of one byte less */
    if (offset > 0 && redis->acked.offset == offset - 1) {
        found = &redis->acked;
    }
    for (uint32_t i = 0; i < redis->mark_count && offset > 0 && found == NULL; i++) {
        const struct feed_redis_mark *mark =
            &redis->marks[(redis->mark_first + i) % FEED_REDIS_MARKS_MAX];
        found = mark->offset == offset - 1 ? mark : NULL;
    }
    if (found == NULL || !feed_is_at_hand(feed, found->group + 1)) {
        return false;
    }
    redis->acked = *found;
    redis->mark_first = 0;
    redis->mark_count = 0;
    redis->encode.offset = redis->acked.offset;
    redis->encode.group = redis->acked.group;
    redis->encode.database = redis->acked.database;
    return true;
}

bool feed_redis_join(struct feed *feed, struct replica *replica,
                     const struct replication_wish *wish, uint64_t *group) {
    struct feed_redis *redis = NULL; /* the stream with this id that somebody has left */
    *group = 0;
    for (struct feed_redis **at = &feed->left; *at != NULL && !wish->is_old;
         at = &(*at)->next_left) {
        if (bytes_equal(bytes_from_text((*at)->id), wish->id)) {
            redis = *at;
            *at = redis->next_left;
            break;
        }
    }
    if (redis != NULL && feed_redis_resume(feed, redis, wish->group)) {
        *group = redis->acked.group + 1;
    } else {
        memory_free(redis);
        redis = memory_allocate_zeroed(sizeof *redis);
        if (redis == NULL) {
            return false;
        }
        redis_encode_init(&redis->encode);
        replication_make_id(feed->server, redis->id);
    }
    redis->is_copy_enough = replica->is_copy_enough;
    redis->input_bytes = replica->session->input_bytes;
    redis->ping_at_ms = feed->server->clock.monotonic_ms;
    feed_place_of(replica)->redis = redis;
    replica->is_redis = true;
    return true;
}

static void feed_redis_free_left(struct feed_redis **at) {
    struct feed_redis *redis = *at;
    *at = redis->next_left;
    memory_free(redis);
}

void feed_redis_leave(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    struct feed_redis *redis = place->redis;
    uint32_t count = 0;
    if (redis == NULL) {
        return;
    }
    place->redis = NULL;
    redis_encode_deinit(&redis->encode);
    if (replica->state != REPLICA_ONLINE || replica->is_failed || !feed->is_open) {
        memory_free(redis);
        return;
    }
    redis_encode_init(&redis->encode);
    redis->left_at_ms = feed->server->clock.monotonic_ms;
    redis->next_left = feed->left;
    feed->left = redis;
    for (struct feed_redis **at = &feed->left; *at != NULL;) {
        if (++count > FEED_REDIS_LEFT_MAX) {
            feed_redis_free_left(at);
        } else {
            at = &(*at)->next_left;
        }
    }
}

void feed_redis_forget(struct feed *feed) {
    while (feed->left != NULL) {
        feed_redis_free_left(&feed->left);
    }
}

void feed_redis_forget_old(struct feed *feed) {
    int64_t ttl_ms = feed->server->settings.repl_backlog_ttl_s * SECOND_MS;
    for (struct feed_redis **at = &feed->left; *at != NULL;) {
        if (ttl_ms > 0 && feed->server->clock.monotonic_ms - (*at)->left_at_ms > ttl_ms) {
            feed_redis_free_left(at);
        } else {
            at = &(*at)->next_left;
        }
    }
}

void feed_redis_answer(const struct replica *replica, bool is_old, bool is_continued,
                       struct reply *reply) {
    char text[sizeof "FULLRESYNC  0" + REPLICATION_ID_SIZE];
    const struct session *session = replica->session;
    const struct feed_redis *redis = feed_place_of(replica)->redis;
    if (is_continued) {
        snprintf(text, sizeof text, "CONTINUE %s", redis->id);
    } else {
        snprintf(text, sizeof text, "FULLRESYNC %s 0", redis->id);
    }
    if (!is_old) {
        reply_simple(reply, text);
    }
    log_write(LOG_NOTICE, "a Redis %s id=%llu addr=%s port=%u",
              is_continued ? "goes on where it was"
                           : "wants a full copy: it needs the module, or it will refuse it; "
                             "settings and users stay here",
              (unsigned long long)session->id, session->address, replica->port);
}

bool feed_redis_is_idle(const struct feed_place *place) {
    return place->redis == NULL || redis_encode_is_idle(&place->redis->encode);
}

/* ---- the stream ---- */

/* If there are too many to be kept, the last one is replaced: who stops between them needs a copy. */
static void feed_redis_mark_position(struct feed_redis *redis) {
    const struct redis_encode *encode = &redis->encode;
    if (redis->mark_count < FEED_REDIS_MARKS_MAX) {
        redis->mark_count++;
    }
    redis->marks[(redis->mark_first + redis->mark_count - 1) % FEED_REDIS_MARKS_MAX] =
        (struct feed_redis_mark){
            .offset = encode->offset, .group = encode->group, .database = encode->database};
}

bool feed_redis_encode(struct feed *feed, struct replica *replica, uint64_t budget_ns) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    size_t unsent = feed_unsent(replica);
    size_t size_max = unsent < FEED_UNSENT_MAX ? FEED_UNSENT_MAX - unsent : 0;
    if (!redis_encode_step(&redis->encode, feed_output(replica), size_max, budget_ns)) {
        feed_give_up(feed, replica, "what it is sent has no memory, or takes another full copy");
        return false;
    }
    if (redis_encode_is_between(&redis->encode)) {
        feed_redis_mark_position(redis);
    }
    return true;
}

void feed_take_bytes_ack(struct feed *feed, struct replica *replica, uint64_t offset) {
    struct feed_place *place = feed_place_of(replica);
    struct feed_redis *redis = place->redis;
    uint64_t group = 0;
    if (redis->awaits_ack) {
        redis->awaits_ack = false;
        redis->acked =
            (struct feed_redis_mark){.group = place->online_from, .database = UINT32_MAX};
        place->is_streaming = true;
        group = place->online_from;
        replicator_wake(feed->server->replication.replicator);
    }
    while (redis->mark_count > 0 && redis->marks[redis->mark_first].offset <= offset) {
        redis->acked = redis->marks[redis->mark_first];
        group = redis->acked.group;
        redis->mark_first = (redis->mark_first + 1) % FEED_REDIS_MARKS_MAX;
        redis->mark_count--;
    }
    replication_take_ack(feed->server, replica, group);
}

/* ---- keeping the connection ---- */

static void feed_redis_put(struct replica *replica, const char *const *words, uint32_t count) {
    const struct feed_place *place = feed_place_of(replica);
    struct redis_encode *encode = &place->redis->encode;
    if (place->is_streaming && redis_encode_is_between(encode) &&
        feed_unsent(replica) < FEED_UNSENT_MAX) {
        redis_encode_put(encode, feed_output(replica), words, count);
        feed_redis_mark_position(place->redis);
    }
}

void feed_redis_ask(struct replica *replica) {
    feed_redis_put(replica, (const char *const[]){"REPLCONF", "GETACK", "*"}, 3);
}

void feed_redis_second(struct feed *feed, struct replica *replica) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    int64_t now_ms = feed->server->clock.monotonic_ms;
    bool is_copying = replica->state != REPLICA_ONLINE;
    /* While it waits for its copy it says nothing, and while it loads it, empty lines. */
    if (is_copying && (!redis->awaits_ack || redis->input_bytes != replica->session->input_bytes)) {
        replica->ack_at_ms = now_ms;
    }
    redis->input_bytes = replica->session->input_bytes;
    if (is_copying && !redis->has_head) {
        buffer_append(feed_output(replica), "\n", 1);
    }
    if (now_ms - redis->ping_at_ms >=
        feed->server->settings.repl_ping_replica_period_s * SECOND_MS) {
        redis->ping_at_ms = now_ms;
        feed_redis_put(replica, (const char *const[]){"PING"}, 1);
    }
}

/* ---- copies: RDB files, made by a child process ---- */

void feed_redis_copy_end(struct feed_redis_copy *copy) {
    process_kill_child(&copy->child);
    persistence_stream_close_pipe(&copy->out);
}

/* When the snapshot is closed before all of it is in the child's pipe. */
static void feed_redis_copy_end_child(void *context) {
    struct feed_redis_copy *copy = context;
    process_kill_child(&copy->child);
}

bool feed_redis_copy_may_begin(const struct feed_redis_copy *copy) {
    return copy->out.state == STREAM_UNUSED && copy->child.state == CHILD_NONE;
}

bool feed_redis_copy_begin(struct feed *feed, struct feed_redis_copy *copy, char *error) {
    static const char *const arguments[] = {"leaderboard-server", "--export", "-", "-",
                                            "--format",           "rdb",      NULL};
    copy->is_read = false;
    copy->size = 0;
    copy->begin_ms = feed->server->clock.monotonic_ms;
    copy->moved_at_ms = copy->begin_ms;
    copy->child_time_ns = 0;
    replication_make_id(feed->server, copy->mark);
    if (persistence_stream_open_pipe(&copy->out, feed->loop)) {
        int input =
            persistence_stream_share(feed->server->persistence, feed_redis_copy_end_child, copy);
        bool is_started =
            input >= 0 && process_start_child(&copy->child, arguments, feed->server->settings.dir,
                                              input, copy->out.writer);
        int why = errno;
        disk_close(input);
        disk_close(copy->out.writer); /* the child has it */
        copy->out.writer = -1;
        errno = why;
        if (is_started) {
            return true;
        }
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
        redis->is_read
            ? STREAM_END
            : persistence_stream_read_pipe(&redis->out, feed->piece, sizeof feed->piece, size);
    if (status == STREAM_PIECE || status == STREAM_WAITS) {
        redis->size += *size;
        return status;
    }
    redis->is_read = true;
    enum child_end end = process_look_at_child(&redis->child);
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
        (void)process_look_at_child(&copy->child);
    }
}

bool feed_redis_copy_is_stuck(const struct feed *feed, struct feed_copy *copy) {
    struct feed_redis_copy *redis = &copy->redis;
    int64_t now_ms = feed->server->clock.monotonic_ms;
    uint64_t time_ns = process_child_time_ns(&redis->child);
    if (time_ns != redis->child_time_ns || feed_is_copy_slow(feed, true)) {
        redis->child_time_ns = time_ns;
        redis->moved_at_ms = now_ms;
    }
    return now_ms - redis->moved_at_ms > feed->server->settings.repl_timeout_s * SECOND_MS;
}
