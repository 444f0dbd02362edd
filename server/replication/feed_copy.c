/* Full copies: one for the replicas, one for those that are a Redis. See feed.h. */
#include <stdio.h>

#include "server/durability/persistence.h"
#include "server/replication/feed_parts.h"
#include "server/system/log.h"

/* Of a copy, in repl-timeout: else it would never end, and others wait for its end. */
enum { TAKEN_MIN = 64 * 1024 };

static const char *feed_copy_name(const struct feed_copy *copy) {
    return copy->is_redis ? "copy for Redis" : "full copy";
}

void feed_end_copy(struct feed *feed, struct feed_copy *copy) {
    if (copy->state == FEED_COPY_TAKES) {
        persistence_end_stream(feed->server->persistence);
    }
    if (copy->is_redis) {
        feed_redis_copy_end(&copy->redis);
    }
    backlog_leave(&copy->pin);
    copy->state = FEED_COPY_NONE;
}

bool feed_takes_copy(const struct replica *replica, bool is_redis) {
    const struct feed_place *place = feed_place_of(replica);
    return replica->state == REPLICA_COPIES && replica->is_redis == is_redis &&
           !place->is_streaming && (!is_redis || !place->redis->awaits_ack) &&
           !feed_is_lost(replica);
}

uint32_t feed_count(const struct feed *feed, enum replica_state state, bool is_redis) {
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
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (!feed_takes_copy(replica, copy->is_redis)) {
            continue;
        }
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
    if (!persistence_may_stream(persistence) ||
        (copy->is_redis && !feed_redis_copy_may_begin(&copy->redis))) {
        return;
    }
    enum persistence_status status = persistence_begin_stream(persistence, error);
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
    for (const struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_takes_copy(replica, is_redis) && feed_unsent(replica) > FEED_UNSENT_MAX) {
            return true;
        }
    }
    return false;
}

static void feed_copy_send_piece(struct feed *feed, struct feed_copy *copy, size_t size) {
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (!feed_takes_copy(replica, copy->is_redis)) {
            continue;
        }
        if (copy->is_redis) {
            feed_redis_copy_put_piece(&copy->redis, replica, feed->piece, size);
        } else {
            wire_put_piece(feed_output(replica), feed->piece, size);
        }
        feed_replication(feed)->counters.copied_size += size;
    }
}

static void feed_copy_complete_one(struct feed *feed, const struct feed_copy *copy,
                                   struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    if (!copy->is_redis) {
        wire_put_end(feed_output(replica), copy->group,
                     (int64_t)persistence_streamed(feed->server->persistence)->time_us);
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

static void feed_copy_complete(struct feed *feed, struct feed_copy *copy) {
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_takes_copy(replica, copy->is_redis)) {
            feed_copy_complete_one(feed, copy, replica);
        }
    }
    feed_end_copy(feed, copy);
}

/* The next bytes, into feed->piece. */
static enum stream_status feed_copy_read(struct feed *feed, struct feed_copy *copy, size_t *size,
                                         char *error) {
    return copy->is_redis ? feed_redis_copy_read(feed, copy, size, error)
                          : persistence_read_stream(feed->server->persistence, feed->piece,
                                                    sizeof feed->piece, size, error);
}

/* true: there is more to do at once. */
static bool feed_copy_send(struct feed *feed, struct feed_copy *copy) {
    enum { PIECES_MAX = 4 }; /* in one tick, over all replicas; one at least for each */
    char error[PERSISTENCE_ERROR_MAX];
    uint32_t replica_count = feed_count(feed, REPLICA_COPIES, copy->is_redis);
    for (uint32_t sent = 0; sent < PIECES_MAX; sent += replica_count) {
        size_t size = 0;
        if (!feed_redis_copy_is_read(copy) && feed_is_copy_slow(feed, copy->is_redis)) {
            return false;
        }
        switch (feed_copy_read(feed, copy, &size, error)) {
        case STREAM_PIECE:
            feed_copy_send_piece(feed, copy, size);
            break;
        case STREAM_WAITS:
            return feed_redis_copy_is_read(copy); /* its process ends in an instant */
        case STREAM_END: {
            const char *why = feed_copy_pin(feed, copy);
            if (why != NULL) {
                feed_copy_fail(feed, copy, why);
            } else {
                feed_copy_complete(feed, copy);
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

bool feed_step_copy(struct feed *feed, struct feed_copy *copy) {
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
        switch (persistence_look_stream(feed->server->persistence, error)) {
        case STREAM_END: /* all of the snapshot is in the pipe of the process */
            why = feed_copy_pin(feed, copy);
            persistence_end_stream(feed->server->persistence);
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

void feed_copy_second(struct feed *feed, struct feed_copy *copy) {
    if (copy->is_redis && copy->state != FEED_COPY_NONE && feed_redis_copy_is_stuck(feed, copy)) {
        feed_copy_fail(feed, copy, "the process that makes it has done nothing for repl-timeout");
    }
}

/* A copy goes on when all that share it have taken what was sent, and while it goes on no snapshot is saved. */
bool feed_copy_is_stuck(const struct feed *feed, struct replica *replica) {
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

/* Has another one taken all that was sent of the copy? */
static bool feed_copy_is_awaited(const struct feed *feed, const struct replica *replica) {
    for (const struct replica *other = feed_replication(feed)->replicas; other != NULL;
         other = other->next) {
        if (other != replica && feed_takes_copy(other, replica->is_redis) &&
            feed_unsent(other) == 0) {
            return true;
        }
    }
    return false;
}

bool feed_copy_is_held_up(const struct feed *feed, const struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    if (feed_takes_copy(replica, replica->is_redis) && feed_unsent(replica) > FEED_UNSENT_MAX &&
        feed_copy_is_awaited(feed, replica)) {
        place->holding_s++;
    }
    return place->holding_s > feed->server->settings.repl_timeout_s;
}
