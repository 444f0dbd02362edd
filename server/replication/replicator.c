/* See replicator.h. */
#include "server/replication/replicator.h"

#include <string.h>

#include "server/durability/persistence.h"
#include "server/network/tls_context.h"
#include "server/replication/feed.h"
#include "server/replication/history.h"
#include "server/replication/master_link.h"
#include "server/replication/redis_follow.h"
#include "server/replication/redis_position.h"
#include "server/system/log.h"

enum {
#ifdef SERVER_TINY
    STEP_BUDGET_NS = 0,
#else
    STEP_BUDGET_NS = 700000, /* of a tick */
#endif
};

struct replicator {
    struct server *server;
    struct feed *feed;
    struct master_link link;
    struct redis_follow *redis; /* on while the master is a Redis: then the link is off */
    bool has_begun;             /* the files are loaded */
    bool is_void;               /* changes have no numbers, and the keys say so */
};

/* ---- what commands ask for ---- */

static void follow(void *context) {
    struct replicator *replicator = context;
    redis_follow_end(replicator->redis);
    replicator->link.has_found_redis = false;
    feed_forget_history(replicator->feed);
    registry_set_passive(replicator->server->registry, true);
    if (replicator->has_begun) {
        master_link_stop(&replicator->link);
        master_link_begin(&replicator->link, false);
    }
}

static void shift(void *context) {
    struct replicator *replicator = context;
    redis_follow_end(replicator->redis);
    registry_set_passive(replicator->server->registry, true);
    master_link_stop(&replicator->link);
    master_link_begin(&replicator->link, true);
}

static void promote(void *context) {
    struct replicator *replicator = context;
    struct server *server = replicator->server;
    if (!replicator->has_begun) {
        return; /* as if it had never been a replica */
    }
    master_link_stop(&replicator->link);
    replicator->link.has_found_redis = false;
    if (redis_follow_is_on(replicator->redis)) {
        redis_follow_finish(replicator->redis);
    }
    redis_position_remove(server->registry);
    server->replication.group = persistence_last_group(server->persistence);
    registry_set_passive(server->registry, false);
    clock_lead(&server->clock);
    persistence_set_following(server->persistence, false);
}

static void history_changed(void *context) {
    struct replicator *replicator = context;
    struct server *server = replicator->server;
    if (!replicator->has_begun || replication_is_replica(&server->replication)) {
        return;
    }
    feed_open(replicator->feed);
    feed_write_history(replicator->feed);
}

static void sync_replica(void *context, struct replica *replica, struct bytes id, uint64_t group,
                         bool wants_failover, struct reply *reply) {
    struct replicator *replicator = context;
    feed_sync(replicator->feed, replica, id, group, wants_failover, reply);
}

static void leave(void *context, struct replica *replica) {
    struct replicator *replicator = context;
    feed_leave(replicator->feed, replica);
}

static void ask_acks(void *context) {
    struct replicator *replicator = context;
    replicator->feed->wants_ping = true;
}

static void drop(void *context) {
    struct replicator *replicator = context;
    redis_follow_drop(replicator->redis);
    master_link_drop(&replicator->link, "closed by CLIENT KILL");
}

static void print_source(void *context, struct buffer *out) {
    struct replicator *replicator = context;
    redis_follow_print(replicator->redis, out);
}

/* The master is a Redis. What is applied of it are changes of this server's own, with groups of its own:
 * another history than that of a leaderboard master that was followed before. */
static void follow_redis(struct replicator *replicator) {
    struct server *server = replicator->server;
    SSL_CTX *tls = tls_context_share(replicator->link.tls_context);
    replicator->link.has_found_redis = false;
    master_link_stop(&replicator->link);
    persistence_set_following(server->persistence, false);
    replication_change_id(server);
    feed_write_history(replicator->feed);
    feed_reset(replicator->feed, "a Redis is followed");
    redis_follow_begin(replicator->redis, tls);
}

/* ---- the start ---- */

/* The files are loaded, and no command has run. */
static void begin(struct replicator *replicator) {
    struct server *server = replicator->server;
    struct replication *replication = &server->replication;
    struct persistence *persistence = server->persistence;
    struct history history;
    bool has_history = history_read(server->registry, &history);
    replicator->has_begun = true;
    if (!replication_is_replica(replication)) {
        redis_position_remove(server->registry);
    }
    replication->group = persistence_last_group(persistence);
    persistence_clear_gap(persistence);
    if (replication_is_replica(replication)) {
        if (has_history) {
            memcpy(replication->id, history.id, sizeof history.id);
            memcpy(replication->second_id, history.second_id, sizeof history.second_id);
            replication->second_until = history.second_until;
        }
        replication->is_whole = has_history;
        master_link_begin(&replicator->link, false);
    } else if (has_history) {
        memcpy(replication->second_id, history.id, sizeof history.id);
        replication->second_until = replication->group;
        feed_open(replicator->feed);
    }
}

/* ---- the tick ---- */

/* Changes are not numbered any more, as nobody was there to want that: what the keys say of their history
 * must not be believed again. */
static void void_history(struct replicator *replicator) {
    struct server *server = replicator->server;
    struct history history;
    bool has_gap = persistence_has_gap(server->persistence);
    if (replication_is_replica(&server->replication) || has_gap == replicator->is_void) {
        return;
    }
    replicator->is_void = has_gap;
    if (has_gap && history_read(server->registry, &history)) {
        replication_make_id(server, server->replication.id);
        memcpy(server->replication.second_id, HISTORY_NO_ID, sizeof HISTORY_NO_ID);
        server->replication.second_until = 0;
        feed_write_history(replicator->feed);
        replicator->is_void = !replicator->feed->owes_history;
    }
}

bool replicator_begin_tick(struct replicator *replicator) {
    struct server *server = replicator->server;
    if (server->durability.is_loading || server->persistence == NULL) {
        return false;
    }
    if (!replicator->has_begun) {
        begin(replicator);
    }
    void_history(replicator);
    if (replicator->link.has_found_redis) {
        follow_redis(replicator);
    }
    if (redis_follow_is_on(replicator->redis)) {
        return redis_follow_step(replicator->redis, STEP_BUDGET_NS);
    }
    uint64_t group = persistence_last_group(server->persistence);
    bool has_more = master_link_step(&replicator->link, STEP_BUDGET_NS);
    if (persistence_last_group(server->persistence) != group && replicator->link.has_replaced) {
        replicator->link.has_replaced = false;
        feed_reset(replicator->feed, "a full copy has replaced the keys");
    }
    return has_more;
}

void replicator_close_tick(struct replicator *replicator) {
    feed_close_tick(replicator->feed);
}

bool replicator_end_tick(struct replicator *replicator) {
    struct server *server = replicator->server;
    if (!replicator->has_begun) {
        return false;
    }
    if (!replication_is_replica(&server->replication) || redis_follow_is_on(replicator->redis)) {
        server->replication.group = persistence_last_group(server->persistence);
    }
    bool has_more = feed_step(replicator->feed);
    master_link_acknowledge(&replicator->link);
    return has_more;
}

void replicator_second(struct replicator *replicator) {
    if (replicator->has_begun) {
        master_link_second(&replicator->link);
        feed_second(replicator->feed);
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
    replicator->feed = feed_create(server, loop, wake, context);
    if (replicator->feed == NULL || !master_link_init(&replicator->link, server, loop)) {
        feed_destroy(replicator->feed);
        memory_free(replicator);
        return NULL;
    }
    replicator->redis = redis_follow_create(server, loop);
    if (replicator->redis == NULL) {
        master_link_deinit(&replicator->link);
        feed_destroy(replicator->feed);
        memory_free(replicator);
        return NULL;
    }
    replicator->link.wake = wake;
    replicator->link.context = context;
    server->replication.machine = (struct replication_machine){
        .context = replicator,
        .follow = follow,
        .promote = promote,
        .leave = leave,
        .ask_acks = ask_acks,
        .shift = shift,
        .history_changed = history_changed,
        .sync = sync_replica,
        .drop = drop,
        .print_source = print_source,
    };
    registry_set_passive(server->registry, replication_is_replica(&server->replication));
    return replicator;
}

void replicator_stop(struct replicator *replicator) {
    if (replicator != NULL) {
        master_link_deinit(&replicator->link);
        redis_follow_close(replicator->redis);
        feed_stop(replicator->feed);
    }
}

void replicator_destroy(struct replicator *replicator) {
    if (replicator != NULL) {
        replicator->server->replication.machine = (struct replication_machine){.context = NULL};
        redis_follow_destroy(replicator->redis);
        feed_destroy(replicator->feed);
        memory_free(replicator);
    }
}
