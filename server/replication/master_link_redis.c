/* A Redis as the master: what it is asked, and what comes of it. See master_link.h.
 *
 * It says what Redis 5 to 8 and Valkey 7.2 to 9 expect of a replica. Each connection asks anew what the other end is: a
 * leaderboard server may have taken the Redis's place, or the other way round. */
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

#include "server/migration/redis_receive.h"
#include "server/replication/master_link_parts.h"
#include "server/system/log.h"

/* The one whose copies can be read: RDB version 80. */
#define VALKEY_VERSION "9.0.0"

bool master_link_redis_is_refusal(struct bytes answer) {
    static const char *const refusals[] = {
        "-ERR Unrecognized REPLCONF option", /* every version of Redis and Valkey */
        "-ERR unknown option",
        "-ERR unknown subcommand",
    };
    bool is_refusal = false;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        size_t size = strlen(refusals[i]);
        is_refusal |= answer.size >= size && strncasecmp(answer.at, refusals[i], size) == 0;
    }
    return is_refusal;
}

void master_link_redis_found(struct master_link *link) {
    if (link->has_followed) {
        master_link_fail(
            link, "the master was a leaderboard server, and is a Redis now: what is here stays. "
                  "REPLICAOF NO ONE, and then REPLICAOF again, replaces it with the Redis's keys");
    } else if (link->redis != NULL) {
        master_link_go_on_with_redis(link, link->redis);
    } else {
        link->has_found_redis = true;
        master_link_wake(link);
    }
}

/* To a replica that does not say so Valkey 9 sends RDB version 11, and where that has no room for a value, such
 * as a hash with fields that expire, no copy at all. Others answer with an error, which says nothing. */
void master_link_redis_say_version(struct master_link *link) {
    master_link_say(link, (const char *const[]){"REPLCONF", "version", VALKEY_VERSION}, 3);
}

void master_link_redis_say_psync(struct master_link *link) {
    char offset[REDIS_RECEIVE_OFFSET_SIZE];
    const char *id = redis_receive_print_wish(link->redis, offset);
    master_link_say(link, (const char *const[]){"PSYNC", id, offset}, 3);
}

void master_link_redis_take_answer(struct master_link *link, struct bytes answer) {
    struct redis_receive *redis = link->redis;
    if (!redis_receive_take_answer(redis, answer)) {
        master_link_fail_with_answer(link, "the source answers PSYNC with", answer);
        return;
    }
    bool is_full = redis->state == REDIS_RECEIVE_HEAD;
    log_write(LOG_NOTICE, "replication: %s source=%s:%u id=%s offset=%" PRIu64,
              is_full ? "a full copy of Redis begins" : "Redis goes on", master_link_host(link),
              (unsigned)master_link_port(link), redis->id, redis->received_offset);
    master_link_move(link, is_full ? LINK_COPY_BEGUN : LINK_CONTINUES);
    link->failures = 0;
    replication_of(link)->error[0] = '\0';
    master_link_wake(link);
    master_link_redis_second(link);
}

static void master_link_redis_show_copy(struct master_link *link) {
    struct replication *replication = replication_of(link);
    replication->copy_size = link->redis->copy_size;
    replication->copy_read_size = link->redis->copy_read_size;
    replication->copy_at_ms = link->server->clock.monotonic_ms;
}

bool master_link_redis_parse(struct master_link *link) {
    struct redis_receive *redis = link->redis;
    const struct bytes input = {.at = link->input.at, .size = link->input.size};
    const char *error;
    size_t used;
    if (!redis_receive_take(redis, input, &used, &error)) {
        snprintf(link->reason, sizeof link->reason, "%s: %s", error, bytes_show(input).text);
        return false;
    }
    buffer_drop_front(&link->input, used);
    if (link->state == LINK_COPYING) {
        master_link_redis_show_copy(link);
    }
    if (link->state == LINK_COPYING && redis->state == REDIS_RECEIVE_STREAM) {
        master_link_move(link, LINK_COPY_SPOOLED);
        master_link_redis_second(link);
    }
    return true;
}

bool master_link_redis_is_full(const struct master_link *link) {
    return master_link_is_redis(link) && redis_spool_is_full(link->redis->spool);
}

/* While a copy comes nothing may be sent. */
void master_link_redis_second(struct master_link *link) {
    char offset[REDIS_RECEIVE_OFFSET_SIZE];
    if (link->state == LINK_STREAMING && link->output.size == 0) {
        snprintf(offset, sizeof offset, "%" PRIu64, link->redis->received_offset);
        master_link_say(link, (const char *const[]){"REPLCONF", "ACK", offset}, 3);
    }
}

void master_link_read_on(struct master_link *link) {
    if (link->state >= LINK_COPYING && master_link_may_read(link)) {
        master_link_watch(link);
        if (link->tls != NULL && tls_has_input(link->tls)) {
            master_link_take_input(link);
        }
    }
}
