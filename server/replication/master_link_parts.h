/* Private to master_link*.c:
 *
 *     master_link.c           states, the socket, input and output, what ends an attempt
 *     master_link_connect.c   name, address, socket, TLS
 *     master_link_greet.c     the handshake's lines
 *     master_link_stream.c    the messages behind it: copies and groups
 *     master_link_redis.c     what is said to a Redis, and what comes of it
 *
 * Whatever fails calls master_link_fail or master_link_lose, which close the connection: behind it, nothing of
 * the attempt is there any more, and the caller returns. */
#ifndef SERVER_MASTER_LINK_PARTS_H
#define SERVER_MASTER_LINK_PARTS_H

#include "server/replication/hub.h"
#include "server/replication/master_link.h"

static inline struct replication *replication_of(const struct master_link *link) {
    return &link->server->replication;
}

/* The full copy that comes. */
static inline struct received *master_link_received(const struct master_link *link) {
    return persistence_received(link->server->persistence);
}

/* Let the tick run: something has come. */
static inline void master_link_wake(const struct master_link *link) {
    replicator_wake(replication_of(link)->replicator);
}

/* Whom it is to. */
static inline const char *master_link_host(const struct master_link *link) {
    return link->pull_port != 0 ? link->pull_host : replication_of(link)->master_host;
}
static inline uint16_t master_link_port(const struct master_link *link) {
    return link->pull_port != 0 ? link->pull_port : replication_of(link)->master_port;
}

/* ---- master_link.c ---- */

/* Another state, by the table of transitions. */
void master_link_move(struct master_link *link, enum master_link_event event);
/* The attempt, or the link, has failed, for link->reason; the next attempt comes by itself. */
void master_link_lose(struct master_link *link);
__attribute__((format(printf, 2, 3))) void master_link_fail(struct master_link *link,
                                                            const char *format, ...);
/* "what: answer" */
void master_link_fail_with_answer(struct master_link *link, const char *what, struct bytes answer);
/* The next attempt is to come at once. */
void master_link_hurry(struct master_link *link);
/* What has come, and is not applied, is not wanted any more. */
void master_link_drop_groups(struct master_link *link);
/* Wait for input, unless there is enough, and for room for output. */
void master_link_watch(struct master_link *link);
/* Send what is in output, as far as the socket takes it. false: the link is lost. */
MUST_CHECK bool master_link_send(struct master_link *link);
/* Send one command of so many texts. The link may be lost by it. */
void master_link_say(struct master_link *link, const char *const *texts, unsigned count);
bool master_link_may_read(const struct master_link *link);
void master_link_take_input(struct master_link *link);
/* The events of its socket. */
void master_link_on_ready(uv_poll_t *poll, int status, int events);

/* ---- master_link_connect.c ---- */

void master_link_attempt(struct master_link *link);
/* The resolver's answer is not wanted any more. */
void master_link_drop_question(struct master_link *link);
/* The socket is connected, or cannot be. */
void master_link_take_connection(struct master_link *link);
/* Go on with the handshake of TLS. */
void master_link_shake(struct master_link *link);

/* ---- master_link_greet.c ---- */

/* Begin: the first line. */
void master_link_greet(struct master_link *link);
/* Take the lines that have come. true: what follows is messages. */
MUST_CHECK bool master_link_take_lines(struct master_link *link);

/* ---- master_link_stream.c ---- */

void master_link_continue(struct master_link *link, struct bytes id);
void master_link_begin_copy(struct master_link *link);
/* REPLCONF ACK; group 0: the keys here are not those of the master yet. */
void master_link_say_ack(struct master_link *link, uint64_t group);

/* ---- master_link_redis.c ---- */

/* Is the other end of this connection a Redis? */
static inline bool master_link_is_redis(const struct master_link *link) {
    return link->line >= LINK_SAYS_REDIS_VERSION;
}
/* Is this what a Redis answers to REPLCONF leaderboard, an option that it does not know? Any other
 * error may be that of a leaderboard server, too: one that is loading, or has too many clients. */
bool master_link_redis_is_refusal(struct bytes answer);
void master_link_redis_found(struct master_link *link);
void master_link_redis_say_version(struct master_link *link);
void master_link_redis_say_psync(struct master_link *link);
void master_link_redis_take_answer(struct master_link *link, struct bytes answer);
/* What has come behind it. false: link->reason. */
MUST_CHECK bool master_link_redis_parse(struct master_link *link);
bool master_link_redis_is_full(const struct master_link *link);
void master_link_redis_second(struct master_link *link);

#endif
