/* Full copies for replicas. See feed.h. */
#include "server/durability/persistence.h"
#include "server/replication/feed_parts.h"
#include "server/system/log.h"

/* Of a copy, in repl-timeout: else it would never end, and others wait for its end. */
enum { TAKEN_MIN = 64 * 1024 };

void feed_end_copy(struct feed *feed) {
    if (feed->copy.is_going) {
        persistence_end_stream(feed->server->persistence);
    }
    backlog_leave(&feed->copy.pin);
    feed->copy = (struct feed_copy){.is_going = false};
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

static bool feed_copy_takes(const struct replica *replica) {
    return feed_takes_copy(replica, false);
}

static void feed_copy_fail(struct feed *feed, const char *reason) {
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_copy_takes(replica)) {
            wire_put_given_up(feed_output(replica), reason);
            replica->session->is_close_after_reply = true;
            replica->is_failed = true;
        }
    }
    log_write(LOG_WARNING, "full copy given up: %s", reason);
    feed_end_copy(feed);
}

/* That all who wait understand. */
static unsigned feed_copy_find_format(const struct feed *feed) {
    unsigned format = WIRE_VERSION;
    for (const struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (replica->state == REPLICA_WAITS && !replica->is_redis && replica->format_version != 0 &&
            replica->format_version < format) {
            format = replica->format_version;
        }
    }
    return format;
}

static void feed_copy_begin(struct feed *feed) {
    char error[PERSISTENCE_ERROR_MAX];
    struct persistence *persistence = feed->server->persistence;
    if (!persistence_may_stream(persistence)) {
        return;
    }
    enum persistence_status status =
        persistence_begin_stream(persistence, feed_copy_find_format(feed), error);
    if (status == PERSISTENCE_BUSY) {
        return;
    }
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (replica->state == REPLICA_WAITS && !replica->is_redis && !feed_is_lost(replica)) {
            replica->state = REPLICA_COPIES;
        }
    }
    if (status != PERSISTENCE_OK) {
        feed_copy_fail(feed, error);
        return;
    }
    feed->copy = (struct feed_copy){.is_going = true};
    log_write(LOG_NOTICE, "full copy begun replicas=%u", feed_count(feed, REPLICA_COPIES, false));
}

const char *feed_pin_copy(struct feed *feed, struct feed_copy *copy) {
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

/* false: it was given up. */
static bool feed_copy_pin(struct feed *feed) {
    const char *why = feed_pin_copy(feed, &feed->copy);
    if (why != NULL) {
        feed_copy_fail(feed, why);
    }
    return why == NULL;
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

static void feed_copy_send_piece(struct feed *feed, size_t size) {
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_copy_takes(replica)) {
            wire_put_piece(feed_output(replica), feed->piece, size);
            feed_replication(feed)->counters.copied_size += size;
        }
    }
}

static void feed_copy_complete(struct feed *feed) {
    struct persistence_streamed streamed = persistence_streamed(feed->server->persistence);
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        struct feed_place *place = feed_place_of(replica);
        if (feed_copy_takes(replica)) {
            wire_put_end(feed_output(replica), streamed.group, streamed.time_us);
            place->next_group = streamed.group + 1;
            place->online_from = streamed.group;
            place->is_streaming = true;
            replica->sent_group = streamed.group;
            if (!feed_is_at_hand(feed, place->next_group)) {
                feed_give_up(feed, replica, "the groups behind its copy are lost");
            } else if (feed->backlog.first != NULL) {
                (void)!backlog_seek(&feed->backlog, &place->cursor, place->next_group);
            }
        }
    }
    feed_end_copy(feed);
}

/* true: there is more to do at once. */
bool feed_step_copies(struct feed *feed) {
    char error[PERSISTENCE_ERROR_MAX];
    struct persistence *persistence = feed->server->persistence;
    enum { PIECES_MAX = 4 }; /* in one tick, over all replicas; one at least for each */
    if (!feed->copy.is_going && feed_count(feed, REPLICA_WAITS, false) > 0) {
        feed_copy_begin(feed);
    }
    if (!feed->copy.is_going) {
        return false;
    }
    uint32_t replica_count = feed_count(feed, REPLICA_COPIES, false);
    if (replica_count == 0) {
        feed_end_copy(feed);
        return true;
    }
    (void)feed_copy_pin(feed);
    for (uint32_t sent = 0; sent < PIECES_MAX && feed->copy.is_going; sent += replica_count) {
        size_t size = 0;
        if (feed_is_copy_slow(feed, false)) {
            return false;
        }
        switch (
            persistence_read_stream(persistence, feed->piece, sizeof feed->piece, &size, error)) {
        case PERSISTENCE_STREAM_PIECE:
            feed_copy_send_piece(feed, size);
            break;
        case PERSISTENCE_STREAM_WAITS:
            return false;
        case PERSISTENCE_STREAM_END:
            if (feed_copy_pin(feed)) {
                feed_copy_complete(feed);
            }
            return true;
        case PERSISTENCE_STREAM_FAILED:
            feed_copy_fail(feed, error);
            return true;
        }
    }
    return feed->copy.is_going;
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
