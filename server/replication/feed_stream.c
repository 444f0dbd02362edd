/* The groups on their way to replicas: out of the backlog, or read from the journal. See feed.h. */
#include <inttypes.h>

#include "server/durability/persistence.h"
#include "server/replication/feed_parts.h"
#include "server/system/clock.h"
#include "server/system/log.h"

enum {
    READ_MAX = 256 * 1024,
    REDIS_READ_MAX = 64 * 1024,
    REDIS_BUDGET_NS = 400000, /* of a tick, for all of them */
};

/* ---- where groups are ---- */

bool feed_is_on_disk(const struct feed *feed, uint64_t group) {
    char path[sizeof feed->disk.path];
    return group >= feed->disk_from &&
           persistence_find_group(feed->server->persistence, group, path, sizeof path);
}

bool feed_is_in_backlog(const struct feed *feed, uint64_t group) {
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

/* Of the replica that has the place; NULL: none has. */
static struct replica *feed_stream_owner_of(const struct feed *feed,
                                            const struct feed_disk_place *files) {
    struct replica *replica = feed_replication(feed)->replicas;
    while (replica != NULL && &feed_place_of(replica)->disk != files) {
        replica = replica->next;
    }
    return replica;
}

void feed_take_read(struct feed *feed, struct feed_disk_place *files,
                    enum feed_disk_result result) {
    struct replica *replica = feed_stream_owner_of(feed, files);
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
        if (!redis_encode_add(&place->redis->encode, groups.at, groups.size)) {
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

void feed_bound_lag(struct feed *feed, struct replica *replica) {
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

static void feed_stream_note_online(struct replica *replica) {
    const struct feed_place *place = feed_place_of(replica);
    if (replica->state == REPLICA_COPIES && place->is_streaming &&
        replica->ack_group >= place->online_from) {
        replica->state = REPLICA_ONLINE;
        log_write(LOG_NOTICE, "replica has its full copy id=%llu addr=%s group=%" PRIu64,
                  (unsigned long long)replica->session->id, replica->session->address,
                  replica->ack_group);
    }
}

/* ---- the tick ---- */

void feed_ping(struct feed *feed, struct replica *replica) {
    if (replica->is_redis) {
        feed_redis_ask(replica);
    } else if (feed_unsent(replica) < FEED_UNSENT_MAX) {
        wire_put_ping(feed_output(replica), feed->server->clock.now_us, replica->sent_group);
    }
}

/* Of a Redis that has its copy, but has not loaded it: those behind it. */
static void feed_stream_keep_groups(struct feed *feed, struct replica *replica) {
    struct feed_place *place = feed_place_of(replica);
    if (place->redis == NULL || !place->redis->awaits_ack) {
        return;
    }
    if (place->cursor.chunk == NULL && feed->backlog.first != NULL) {
        (void)!backlog_seek(&feed->backlog, &place->cursor, place->next_group);
    }
    feed_bound_lag(feed, replica);
}

bool feed_stream(struct feed *feed) {
    bool has_more = false;
    uint64_t begin_ticks = clock_ticks();
    for (struct replica *replica = feed_replication(feed)->replicas; replica != NULL;
         replica = replica->next) {
        if (feed_is_lost(replica)) {
            continue;
        }
        if (!feed_place_of(replica)->is_streaming) {
            feed_stream_keep_groups(feed, replica);
            continue;
        }
        feed_stream_note_online(replica);
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
