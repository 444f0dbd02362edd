/* Redis servers as replicas: the stream's bytes and what they acknowledge. See feed_redis.h. */
#include "server/replication/feed_redis.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/replication/feed_parts.h"
#include "server/replication/history.h"
#include "server/system/log.h"

enum { SECOND_MS = 1000 };

bool feed_redis_join(struct feed *feed, struct replica *replica) {
    struct feed_redis *redis = memory_allocate_zeroed(sizeof *redis);
    if (redis == NULL) {
        return false;
    }
    redis_encode_init(&redis->encode);
    redis->is_copy_enough = replica->is_copy_enough;
    redis->input_bytes = replica->session->input_bytes;
    redis->ping_at_ms = feed->server->clock.monotonic_ms;
    feed_place_of(replica)->redis = redis;
    replica->is_redis = true;
    return true;
}

void feed_redis_leave(struct feed_place *place) {
    if (place->redis != NULL) {
        redis_encode_deinit(&place->redis->encode);
        memory_free(place->redis);
        place->redis = NULL;
    }
}

/* Each copy is a history of its own: nobody can go on in it. */
void feed_redis_answer(struct feed *feed, const struct replica *replica, bool is_old,
                       struct reply *reply) {
    char id[REPLICATION_ID_SIZE + 1];
    char text[sizeof "FULLRESYNC  0" + REPLICATION_ID_SIZE];
    const struct session *session = replica->session;
    replication_make_id(feed->server, id);
    if (!is_old) {
        snprintf(text, sizeof text, "FULLRESYNC %s 0", id);
        reply_simple(reply, text);
    }
    log_write(
        LOG_NOTICE,
        "a Redis wants a full copy: it needs the module, or it will refuse it; settings and users "
        "stay here id=%llu addr=%s port=%u",
        (unsigned long long)session->id, session->address, replica->port);
}

bool feed_redis_is_idle(const struct feed_place *place) {
    return place->redis == NULL || redis_encode_is_idle(&place->redis->encode);
}

/* ---- the stream ---- */

/* If there are too many to be kept, the last one stands for what follows: an acknowledgement then counts later. */
static void mark(struct feed_redis *redis) {
    const struct redis_encode *encode = &redis->encode;
    uint32_t last = (redis->mark_first + redis->mark_count - 1) % FEED_REDIS_MARKS_MAX;
    if (redis->mark_count > 0 && redis->marks[last].group == encode->group) {
        return;
    }
    if (redis->mark_count < FEED_REDIS_MARKS_MAX) {
        last = (redis->mark_first + redis->mark_count++) % FEED_REDIS_MARKS_MAX;
    }
    redis->marks[last] = (struct feed_redis_mark){.offset = encode->offset, .group = encode->group};
}

bool feed_redis_encode(struct feed *feed, struct replica *replica, uint64_t budget_ns) {
    struct feed_redis *redis = feed_place_of(replica)->redis;
    size_t unsent = feed_unsent(replica);
    size_t size_max = unsent < FEED_UNSENT_MAX ? FEED_UNSENT_MAX - unsent : 0;
    if (!redis_encode_step(&redis->encode, feed_output(feed, replica), size_max, budget_ns)) {
        feed_give_up(feed, replica, "no memory for what it is sent");
        return false;
    }
    if (redis_encode_is_between(&redis->encode)) {
        mark(redis);
    }
    return true;
}

void feed_take_bytes_ack(struct feed *feed, struct replica *replica, uint64_t offset) {
    struct feed_place *place = feed_place_of(replica);
    struct feed_redis *redis = place->redis;
    uint64_t group = 0;
    if (redis->awaits_ack) {
        redis->awaits_ack = false;
        place->is_streaming = true;
        group = place->online_from;
        feed->wake(feed->context);
    }
    while (redis->mark_count > 0 && redis->marks[redis->mark_first].offset <= offset) {
        group = redis->marks[redis->mark_first].group;
        redis->mark_first = (redis->mark_first + 1) % FEED_REDIS_MARKS_MAX;
        redis->mark_count--;
    }
    replication_take_ack(feed->server, replica, group, 0);
}

/* ---- keeping the connection ---- */

static void put(struct feed *feed, struct replica *replica, const char *const *words,
                uint32_t count) {
    const struct feed_place *place = feed_place_of(replica);
    struct redis_encode *encode = &place->redis->encode;
    if (place->is_streaming && redis_encode_is_between(encode) &&
        feed_unsent(replica) < FEED_UNSENT_MAX) {
        redis_encode_put(encode, feed_output(feed, replica), words, count);
    }
}

void feed_redis_ask(struct feed *feed, struct replica *replica) {
    put(feed, replica, (const char *const[]){"REPLCONF", "GETACK", "*"}, 3);
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
        buffer_append(feed_output(feed, replica), "\n", 1);
    }
    if (now_ms - redis->ping_at_ms >=
        feed->server->settings.repl_ping_replica_period_s * SECOND_MS) {
        redis->ping_at_ms = now_ms;
        put(feed, replica, (const char *const[]){"PING"}, 1);
    }
}
