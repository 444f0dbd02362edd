/* The backlog's life, and the tick. See feed.h. */
#include <inttypes.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/feed_parts.h"
#include "server/replication/history.h"
#include "server/replication/replication.h"
#include "server/system/log.h"

enum { SECOND_MS = 1000 };

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
    feed->owes_history = !history_write(feed->server->registry, &history);
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
        (void)!history_take(feed->server->registry, feed_replication(feed));
    }
    feed->owes_history = false;
}

/* The keys name another history, which goes on in this one, or none. */
static void feed_begin_history(struct feed *feed, bool had_gap) {
    struct replication *replication = feed_replication(feed);
    struct history history;
    if (had_gap) {
        /* Whoever knows the id, and the number of the last group, does not know the keys. */
        replication_make_id(feed->server, replication->id);
        memcpy(replication->second_id, HISTORY_NO_ID, sizeof HISTORY_NO_ID);
        replication->second_until = 0;
    }
    if (had_gap || !history_read(feed->server->registry, &history)) {
        feed_write_history(feed);
    } else {
        feed->owes_history = strcmp(history.id, replication->id) != 0;
    }
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
    if (replication_may_change(replication)) {
        feed_begin_history(feed, had_gap);
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
    feed_disk_init(&feed->disk, feed);
    return feed;
}

void feed_stop(struct feed *feed) {
    feed_end_copy(feed, &feed->redis_copy);
    feed_disk_deinit(&feed->disk);
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

/* ---- the tick ---- */

static void feed_describe(struct feed *feed) {
    struct replication *replication = feed_replication(feed);
    replication->backlog_size = feed->is_open ? feed->backlog.keep_size : 0;
    replication->backlog_first_group = backlog_first_group(&feed->backlog);
    replication->backlog_used_size = backlog_size(&feed->backlog);
}

/* Where memory was missing, something is missing in what they are sent, and nothing behind it would
 * be understood. */
static void feed_check_outputs(struct feed *feed) {
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
    feed_check_outputs(feed);
    backlog_trim(&feed->backlog);
    feed_describe(feed);
    return has_more;
}

void feed_second(struct feed *feed) {
    const struct server *server = feed->server;
    struct replication *replication = feed_replication(feed);
    int64_t now_ms = server->clock.monotonic_ms;
    feed_redis_copy_reap(&feed->redis_copy.redis);
    if (!feed->is_open) {
        return;
    }
    feed_copy_second(feed, &feed->redis_copy);
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
    if (replication->replica_count == 0 && ttl_s > 0 && feed->quorum == NULL &&
        feed->deserted_at_ms != 0 && now_ms - feed->deserted_at_ms > ttl_s * SECOND_MS) {
        log_write(LOG_NOTICE,
                  "replication: backlog ended, as no replica came for repl-backlog-ttl");
        feed_close(feed);
        feed_describe(feed);
    }
}
