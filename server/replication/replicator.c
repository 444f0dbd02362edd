/* See replication.h. */
#include "server/replication/replication.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/durability/persistence.h"
#include "server/migration/redis_follow.h"
#include "server/migration/redis_stream.h"
#include "server/replication/feed.h"
#include "server/replication/master_link.h"
#include "server/replication/quorum.h"
#include "server/system/log.h"

enum {
#ifdef SERVER_TINY
    STEP_BUDGET_NS = 10000, /* a look at the clock is some of it */
#else
    STEP_BUDGET_NS = 700000, /* of a tick */
#endif
};

struct replicator {
    struct server *server;
    void (*wake)(void *context);
    void *context;
    struct feed *feed;
    struct master_link link;
    struct quorum *quorum;      /* NULL: sync-replicas 0, or nothing is loaded yet */
    struct redis_follow *redis; /* on while the master is a Redis: then the link is off */
    bool has_begun;             /* the files are loaded */
    bool is_void;               /* changes have no numbers, and the keys name no history */
    int64_t promoting_until_ms; /* monotonic: so long it is tried again where memory is missing */
};

/* The server changes its keys itself from now on. */
static void replicator_lead(struct replicator *replicator) {
    struct server *server = replicator->server;
    registry_set_passive(server->registry, false);
    clock_lead(&server->clock);
    persistence_set_following(server->persistence, false);
}

/* ---- what the quorum asks for ---- */

static void replicator_tell_quorum(struct replicator *replicator,
                                   void (*what)(struct quorum *quorum)) {
    if (replicator->quorum != NULL) {
        what(replicator->quorum);
    }
}

void replicator_wake(struct replicator *replicator) {
    replicator->wake(replicator->context);
}

void replicator_drop_replicas(struct replicator *replicator, const char *reason) {
    feed_drop_replicas(replicator->feed, reason);
}

void replicator_note_copy(struct replicator *replicator) {
    feed_reset(replicator->feed, "a full copy has replaced the keys");
}

void replicator_pull(struct replicator *replicator, const char *host, uint16_t port) {
    master_link_begin_pull(&replicator->link, host, port);
}

void replicator_end_pull(struct replicator *replicator) {
    master_link_apply_rest(&replicator->link);
    master_link_stop(&replicator->link);
}

bool replicator_pull_advances(struct replicator *replicator) {
    return master_link_advances(&replicator->link);
}

void replicator_close_term(struct replicator *replicator) {
    registry_set_passive(replicator->server->registry, true);
    persistence_set_following(replicator->server->persistence, true);
}

/* The history in the keys is the start mark: the first effects in the new term. */
bool replicator_open_term(struct replicator *replicator, const struct term *id) {
    struct server *server = replicator->server;
    struct history before, history = {.second_until = persistence_last_group(server->persistence)};
    bool had_history = replication_read_history(server->registry, &before);
    memcpy(history.id, id->text, sizeof history.id);
    memcpy(history.second_id, had_history ? before.id : REPLICATION_NO_ID,
           sizeof history.second_id);
    replicator_lead(replicator);
    if (!replication_write_history(server->registry, &history)) {
        replicator_close_term(replicator);
        return false;
    }
    CHECK(replication_take_history(server->registry, &server->replication));
    replicator->feed->owes_history = false;
    feed_drop_replicas(replicator->feed, "a new term begins");
    return true;
}

/* ---- what commands ask for ---- */

void replicator_follow(struct replicator *replicator, bool is_failover) {
    if (replicator == NULL) {
        return;
    }
    redis_follow_end(replicator->redis);
    replicator->link.has_found_redis = replicator->link.has_found_leaderboard = false;
    registry_set_passive(replicator->server->registry, true); /* which may report changes */
    /* The master knows the keys by what they say themselves. */
    feed_forget_history(replicator->feed);
    if (replicator->has_begun) {
        replicator_tell_quorum(replicator, quorum_follow);
        master_link_stop(&replicator->link);
        master_link_begin(&replicator->link, is_failover);
    }
}

/* Apply some of what was received as a replica. true: that is all, and the role is what it says. */
static bool replicator_promote_some(struct replicator *replicator, uint64_t budget_ns) {
    struct server *server = replicator->server;
    struct master_link *link = &replicator->link;
    if (redis_follow_is_on(replicator->redis)) {
        if (!redis_follow_finish(replicator->redis, budget_ns)) {
            return false;
        }
        server->replication.link = REPLICATION_LINK_NONE;
    }
    (void)master_link_stream_apply(link, budget_ns);
    if (link->is_retrying && server->clock.monotonic_ms >= replicator->promoting_until_ms) {
        master_link_apply_rest(link);
    }
    if (master_link_has_groups(link)) {
        return false;
    }
    master_link_apply_rest(link); /* frees what held them */
    redis_stream_remove_position(server->registry);
    server->replication.group = persistence_last_group(server->persistence);
    if (replicator->quorum != NULL) {
        quorum_promote(replicator->quorum); /* closed: the keys are still not its own to change */
    } else {
        if (!server->durability.has_gap) {
            /* Now, so that without a journal all changes of the new master's have numbers, too: whoever was as far
             * as this server goes on with it. */
            feed_open(replicator->feed);
        }
        replicator_lead(replicator);
    }
    return true;
}

bool replicator_promote(struct replicator *replicator) {
    if (replicator == NULL || !replicator->has_begun) {
        return true; /* as if it had never been a replica */
    }
    const struct server *server = replicator->server;
    master_link_stop(&replicator->link);
    replicator->link.has_found_redis = false;
    replicator->link.is_retrying = false;
    replicator->promoting_until_ms =
        server->clock.monotonic_ms + server->settings.repl_timeout_s * INT64_C(1000);
    return replicator_promote_some(replicator, STEP_BUDGET_NS);
}

void replicator_finish_promotion(struct replicator *replicator) {
    enum { STEP_NS = 1000000, SLEEP_MS = 1 };
    while (redis_follow_is_on(replicator->redis) &&
           !redis_follow_finish(replicator->redis, STEP_NS)) {
        persistence_make_room(replicator->server->persistence);
        uv_sleep(SLEEP_MS);
    }
    master_link_apply_rest(&replicator->link);
    if (replicator_promote_some(replicator, STEP_NS)) {
        replication_open(replicator->server);
    }
}

void replicator_write_history(struct replicator *replicator) {
    if (replicator != NULL && replicator->has_begun &&
        replication_may_change(&replicator->server->replication)) {
        feed_open(replicator->feed);
        feed_write_history(replicator->feed);
    }
}

void replicator_sync(struct replicator *replicator, struct replica *replica,
                     const struct replication_wish *wish, struct reply *reply) {
    if (replicator != NULL) {
        feed_sync(replicator->feed, replica, wish, reply);
    } else {
        reply_error(reply, "ERR this server runs without a disk: it has no replicas");
    }
}

void replicator_leave(struct replicator *replicator, struct replica *replica) {
    if (replicator != NULL && replica->state != REPLICA_HANDSHAKE) {
        feed_leave(replicator->feed, replica);
    }
    if (replicator != NULL && replicator->quorum != NULL) {
        quorum_leave(replicator->quorum, replica);
    }
}

void replicator_ask_acks(struct replicator *replicator) {
    if (replicator != NULL) {
        replicator->feed->wants_ping = true;
    }
}

bool replicator_ask_handover(struct replicator *replicator) {
    return replicator != NULL && master_link_stream_ask_handover(&replicator->link);
}

void replicator_register(struct replicator *replicator, struct replica *replica,
                         const struct sync_registration *said, struct reply *reply) {
    if (replicator == NULL) {
        reply_error(reply, "ERR PRESENT is not for here");
    } else if (replicator->quorum == NULL) {
        reply_simple(reply, "OFF");
    } else {
        quorum_register(replicator->quorum, replica, said, reply);
    }
}

void replicator_acknowledge(struct replicator *replicator, struct replica *replica, uint64_t acked,
                            uint64_t probe) {
    if (replicator != NULL && replicator->quorum != NULL) {
        quorum_take_ack(replicator->quorum, replica, acked, probe);
    }
}

void replicator_acknowledge_bytes(struct replicator *replicator, struct replica *replica,
                                  uint64_t offset) {
    if (replicator != NULL) {
        feed_take_bytes_ack(replicator->feed, replica, offset);
    }
}

void replicator_drop_link(struct replicator *replicator) {
    if (replicator != NULL) {
        master_link_drop(&replicator->link, "closed by CLIENT KILL");
    }
}

void replicator_print_source(struct replicator *replicator, struct buffer *out) {
    if (replicator != NULL) {
        redis_follow_print(replicator->redis, out);
    }
}

/* ---- the start ---- */

/* A snapshot is written within a tick: the first changes of a life name its history in the same group. */
static bool replicator_close_group(void *context, bool is_saved) {
    struct replicator *replicator = context;
    bool is_closed = !is_saved || master_link_stream_finish_group(&replicator->link);
    feed_close_tick(replicator->feed);
    return is_closed;
}

/* The files are loaded, and no command has run. */
static void replicator_begin(struct replicator *replicator) {
    struct server *server = replicator->server;
    struct replication *replication = &server->replication;
    struct persistence *persistence = server->persistence;
    struct history history;
    bool has_history = replication_read_history(server->registry, &history);
    replicator->has_begun = true;
    if (!replication_is_replica(replication)) {
        redis_stream_remove_position(server->registry);
    }
    replication->group = persistence_last_group(persistence);
    server->durability.has_gap = false;
    persistence_set_close_group(persistence, replicator_close_group, replicator);
    bool is_in_quorum = server->settings.sync_replicas > 0;
    if (has_history && (replication_is_replica(replication) || is_in_quorum)) {
        (void)!replication_take_history(server->registry, replication);
    }
    if (is_in_quorum) {
        char error[DISK_ERROR_MAX];
        replicator->quorum = quorum_create(server, replicator->link.loop, error);
        if (replicator->quorum == NULL || !quorum_begin(replicator->quorum, error)) {
            /* Without what it has voted for this server may not take part. */
            log_write(LOG_WARNING, "cannot start: %s", error);
            log_close();
            _exit(EXIT_FAILURE);
        }
        replicator->feed->quorum = replicator->quorum;
        replicator->link.quorum = replicator->quorum;
        replicator_close_term(replicator);
        feed_open(replicator->feed);
    }
    if (replication_is_replica(replication)) {
        replication->is_whole = has_history;
        master_link_begin(&replicator->link, false);
    } else if (is_in_quorum) {
        replication->is_whole = true;
    } else if (has_history) {
        memcpy(replication->second_id, history.id, sizeof history.id);
        replication->second_until = replication->group;
        feed_open(replicator->feed);
    }
}

/* ---- the tick ---- */

/* Another history than whatever was known of these keys. */
static void replicator_make_history(struct replicator *replicator) {
    struct replication *replication = &replicator->server->replication;
    replication_make_id(replicator->server, replication->id);
    memcpy(replication->second_id, REPLICATION_NO_ID, sizeof REPLICATION_NO_ID);
    replication->second_until = 0;
}

/* Are changes not numbered any more, as nobody was there to want that? Two files of such a time may hold different keys
 * behind the same group, so these name no history that one could go on in. */
static void replicator_note_gap(struct replicator *replicator) {
    struct server *server = replicator->server;
    bool has_gap = server->durability.has_gap;
    bool is_own =
        replication_may_change(&server->replication) || redis_follow_is_on(replicator->redis);
    if (is_own && has_gap != replicator->is_void) {
        struct history history;
        replicator->is_void = has_gap;
        if (has_gap && replication_read_history(server->registry, &history)) {
            replicator_make_history(replicator);
            replication_remove_history(server->registry);
            replicator->feed->owes_history = false;
        }
    }
}

/* The keys are of the history of replication->id from here on, or of none, and all replicas begin anew. */
static void replicator_begin_history(struct replicator *replicator, const char *reason) {
    feed_write_history(replicator->feed);
    feed_reset(replicator->feed, reason);
    replicator->is_void = false;
    replicator_note_gap(replicator);
}

bool replicator_begin_tick(struct replicator *replicator) {
    struct server *server = replicator->server;
    if (server->durability.is_loading || server->persistence == NULL) {
        return false;
    }
    if (!replicator->has_begun) {
        replicator_begin(replicator);
    }
    replicator_note_gap(replicator);
    if (replication_keys(&server->replication) == REPLICATION_KEYS_PROMOTING) {
        if (replicator_promote_some(replicator, STEP_BUDGET_NS)) {
            replication_open(server);
            return true;
        }
        return !replicator->link.is_retrying && !persistence_is_full(server->persistence);
    }
    if (replicator->link.has_found_redis) {
        /* The master is a Redis. What is applied of it are changes of this server's own, with groups of its own:
         * another history than that of a leaderboard master that was followed before. */
        replicator->link.has_found_redis = false;
        persistence_set_following(server->persistence, false);
        replication_change_id(server);
        redis_follow_begin(replicator->redis);
        replicator_begin_history(replicator, "a Redis is followed");
    }
    bool is_freeing = redis_follow_free_some(replicator->redis, STEP_BUDGET_NS / 2);
    if (redis_follow_is_on(replicator->redis)) {
        uint64_t copies = server->replication.copies;
        bool has_more = redis_follow_step(replicator->redis, STEP_BUDGET_NS);
        if (server->replication.copies != copies) {
            replicator_make_history(replicator);
            replicator_begin_history(replicator, "a copy of a Redis has replaced the keys");
        }
        if (replicator->link.has_found_leaderboard) {
            replicator_follow(replicator, false);
        }
        return has_more || is_freeing;
    }
    bool has_more = is_freeing | master_link_stream_step(&replicator->link, STEP_BUDGET_NS);
    replicator_tell_quorum(replicator, quorum_begin_tick);
    return has_more;
}

void replicator_close_tick(struct replicator *replicator) {
    feed_close_tick(replicator->feed);
}

/* A replica without a journal keeps a backlog for those who lag behind it once it is promoted. What comes from a Redis
 * has no numbers that others know. */
static bool replicator_keeps_backlog(const struct replicator *replicator) {
    const struct server *server = replicator->server;
    return replication_is_replica(&server->replication) && !server->settings.appendonly &&
           !redis_follow_is_on(replicator->redis);
}

bool replicator_end_tick(struct replicator *replicator) {
    struct server *server = replicator->server;
    if (!replicator->has_begun) {
        return false;
    }
    if (!replication_is_replica(&server->replication) || redis_follow_is_on(replicator->redis)) {
        server->replication.group = persistence_last_group(server->persistence);
    }
    if (server->replication.link == REPLICATION_LINK_CONNECTED && !server->durability.has_gap &&
        replicator_keeps_backlog(replicator)) {
        feed_open(replicator->feed);
    }
    bool has_more = feed_step(replicator->feed);
    replicator_tell_quorum(replicator, quorum_end_tick);
    master_link_stream_acknowledge(&replicator->link);
    return has_more;
}

void replicator_second(struct replicator *replicator) {
    if (replicator->has_begun) {
        master_link_second(&replicator->link);
        feed_second(replicator->feed, replicator_keeps_backlog(replicator));
    }
}

/* ---- the interface ---- */

struct replicator *replicator_create(struct server *server, uv_loop_t *loop,
                                     void (*wake)(void *context), void *context) {
    struct replicator *replicator = memory_allocate_zeroed(sizeof *replicator);
    if (replicator == NULL) {
        return NULL;
    }
    replicator->server = server;
    replicator->wake = wake;
    replicator->context = context;
    /* Handles belong to the loop until it has turned: they come last, when nothing can fail any more. */
    replicator->feed = feed_create(server, loop);
    replicator->redis =
        replicator->feed != NULL ? redis_follow_create(server, &replicator->link, loop) : NULL;
    if (replicator->redis == NULL) {
        feed_destroy(replicator->feed);
        memory_free(replicator);
        return NULL;
    }
    master_link_init(&replicator->link, server, loop);
    server->replication.replicator = replicator;
    registry_set_passive(server->registry, replication_is_replica(&server->replication));
    return replicator;
}

void replicator_stop(struct replicator *replicator) {
    if (replicator != NULL) {
        master_link_deinit(&replicator->link);
        redis_follow_end(replicator->redis);
        feed_stop(replicator->feed);
        quorum_stop(replicator->quorum);
    }
}

void replicator_end_cleanly(struct replicator *replicator, uint64_t last_group) {
    if (replicator != NULL && replicator->quorum != NULL) {
        quorum_end_cleanly(replicator->quorum, last_group);
    }
}

void replicator_destroy(struct replicator *replicator) {
    if (replicator != NULL) {
        replicator->server->replication.replicator = NULL;
        redis_follow_destroy(replicator->redis);
        feed_destroy(replicator->feed);
        quorum_destroy(replicator->quorum);
        memory_free(replicator);
    }
}
