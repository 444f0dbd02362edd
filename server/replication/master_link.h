/* A replica's connection to its master: connecting, the handshake, and what comes.
 *
 *     OFF --begin--> WAITS --> RESOLVING --> CONNECTING [--> SHAKING] --> GREETING --> ASKING
 *     ASKING --+CONTINUE--> STREAMING
 *     ASKING --+FULL--> COPYING --the copy's end--> LOADING --adopted--> STREAMING
 *     any --lost--> WAITS, until the next attempt         any --stop--> OFF
 *
 * The handshake is Redis's, one line answering the other:
 *
 *     PING   [AUTH [user] password]   REPLCONF listening-port   [REPLCONF ip-address]
 *     REPLCONF capa eof capa psync2   REPLCONF leaderboard <version>
 *     [REPLCONF PRESENT ...: quorum.h]   LB.SYNC <id> <first group>
 *
 * What does not know the option leaderboard of REPLCONF is a Redis: the owner is told, and begins to follow it
 * (redis_follow.h). Not if this link has followed a leaderboard server: a copy of a Redis would replace its keys.
 * The link goes on as a replica of a Redis does, and passes on what comes (redis_receive.h):
 *
 *     REPLCONF version <Valkey's>   PSYNC <id> <first byte>
 *     ASKING --+CONTINUE--> STREAMING     ASKING --+FULLRESYNC--> COPYING --the copy's end--> STREAMING
 *
 * Behind it come messages (wire.h). Groups are taken in order, linked ones when all of them have come,
 * and applied by apply.h in bounded steps; while a group is applied in part, nothing is read. When the
 * connection is lost, what has come whole is applied before the next attempt. The link is on the engine's
 * loop. Memory is taken for bytes that have come, never for sizes that are announced, and for groups
 * that are not whole up to client-query-buffer-limit: what is longer comes as a full copy. */
#ifndef SERVER_MASTER_LINK_H
#define SERVER_MASTER_LINK_H

#include <uv.h>

#include "codec/buffer.h"
#include "server/durability/staging.h"
#include "server/network/tls.h"
#include "server/replication/apply.h"
#include "server/replication/quorum.h"
#include "server/replication/wire.h"
#include "server/sessions/server.h"

enum master_link_state {
    LINK_OFF,
    LINK_WAITS, /* for the next attempt */
    LINK_RESOLVING,
    LINK_CONNECTING,
    LINK_SHAKING, /* TLS */
    LINK_GREETING,
    LINK_ASKING,
    LINK_COPYING,
    LINK_LOADING,
    LINK_STREAMING,
    LINK_STATES,
};

enum master_link_event {
    LINK_BEGUN,
    LINK_STOPPED,
    LINK_TRIED,
    LINK_RESOLVED,
    LINK_OPEN,     /* the socket is connected */
    LINK_TLS_OPEN, /* and needs a handshake of TLS */
    LINK_SHAKEN,
    LINK_GREETED,
    LINK_CONTINUES,
    LINK_COPY_BEGUN,
    LINK_COPY_ENDED,
    LINK_ADOPTED,
    LINK_COPY_SPOOLED, /* of a Redis */
    LINK_LOST,
};

/* What the handshake says next. */
enum master_link_line {
    LINK_SAYS_PING,
    LINK_SAYS_AUTH,
    LINK_SAYS_PORT,
    LINK_SAYS_ADDRESS,
    LINK_SAYS_CAPABILITIES,
    LINK_SAYS_VERSION,
    LINK_SAYS_REGISTRATION, /* sync-replicas: until the master is open (quorum.h) */
    LINK_SAYS_SYNC,
    LINK_SAYS_REDIS_VERSION, /* from here on: to a Redis */
    LINK_SAYS_PSYNC,
    LINK_LINES,
};

struct master_link {
    struct server *server;
    uv_loop_t *loop;
    enum master_link_state state;
    struct quorum *quorum; /* NULL: sync-replicas 0 */
    bool wants_failover;   /* LB.SYNC ... FAILOVER */
    bool wants_copy; /* although the master may have what follows: it is too long to be held here */
    /* A closed master takes over what this server has, LB.SYNC ... PULL; port 0: no. */
    char pull_host[REPLICATION_HOST_MAX + 1];
    uint16_t pull_port;
    uint64_t pull_group, pull_best; /* how far it has got: see master_link_advances */
    int fd;                         /* -1: none */
    uv_poll_t *poll;  /* NULL: none; its own memory, as closing takes a turn of the loop */
    int polled;       /* events */
    uv_timer_t timer; /* the next attempt; STREAMING: the next acknowledgement */
    struct master_link_question *question; /* to the resolver; NULL: none */
    struct ssl_ctx_st *tls_context;
    struct tls *tls;
    enum master_link_line line;
    int64_t heard_at_ms; /* monotonic: this attempt's last sign of life */
    uint32_t failures;   /* attempts since it worked last */
    /* What has come: [ taken_size: applied ][ .. whole_size: groups to be applied ][ .. parsed_size:
     * linked groups of which more have to come ][ .. input.size: a part of a message ] */
    struct buffer input;
    size_t taken_size, whole_size, parsed_size;
    size_t wanted_size;  /* of the message at parsed_size; 0: not known */
    uint64_t next_group; /* to come */
    struct buffer output;
    struct apply apply;
    bool is_retrying;            /* there was no memory for a step: it is tried again each second */
    struct redis_receive *redis; /* a Redis is followed, and this takes what comes; NULL: none is */
    /* The other end is a Redis, and none is followed; a leaderboard server, and one is. The link waits for its owner, who
     * clears it. */
    bool has_found_redis, has_found_leaderboard;
    bool has_followed; /* it was STREAMING since it was begun: the master is no Redis */
    bool wants_time;   /* the master's time was not heard on this connection */
    /* REPLCONF ACK: at once where the master has asked, until everything is applied that it had sent then;
     * else what was applied is acknowledged a hundred times a second. */
    bool wants_ack;
    uint64_t asked_group;
    uint64_t acked_group; /* the last one that was acknowledged, */
    int64_t acked_at_ms;  /* and when, monotonic */
    uint64_t kept_group;  /* the last one that was acknowledged as kept */
    uint64_t copy_group;  /* of the copy that is loaded */
    char reason[REPLICATION_ERROR_MAX];
    char logged_reason[REPLICATION_ERROR_MAX]; /* the last one that the log has */
    int64_t logged_at_ms;
};

void master_link_init(struct master_link *link, struct server *server, uv_loop_t *loop);
/* Close its handles; the loop turns once more before the memory may be freed. */
void master_link_deinit(struct master_link *link);

/* Connect to replication.master_host from now on. wants_failover: the master is to be made. */
void master_link_begin(struct master_link *link, bool wants_failover);
/* The same, to take over what a server has that has voted for this one's term. */
void master_link_begin_pull(struct master_link *link, const char *host, uint16_t port);
/* Has it got further since this was asked last? What comes once more, after a failure, does not count. */
MUST_CHECK bool master_link_advances(struct master_link *link);
/* Drop the connection: nothing comes any more. What has come whole stays to be applied (master_link_has_groups): by
 * master_link_stream_apply, or, if a link is begun, before its first attempt. */
void master_link_stop(struct master_link *link);
/* Apply it at once, whatever time that takes. Without memory for it the rest is dropped, and the keys are of no history
 * that anybody knows. */
void master_link_apply_rest(struct master_link *link);
/* What has come whole and is not applied. */
static inline bool master_link_has_groups(const struct master_link *link) {
    return apply_is_going(&link->apply) || link->taken_size < link->whole_size;
}
/* Apply some of it, for about budget_ns. true: there is more to do at once; link->is_retrying: there was no memory. */
bool master_link_stream_apply(struct master_link *link, uint64_t budget_ns);
/* Apply the rest of the group, or of the linked groups, that is applied in part. false: no memory; it is tried again by
 * itself. */
MUST_CHECK bool master_link_stream_finish_group(struct master_link *link);
/* Drop the connection, and try again soon. */
void master_link_drop(struct master_link *link, const char *reason);

/* Apply what has come, or go on with the copy, for about budget_ns: between two ticks' commands. true: there
 * is more to do at once. */
MUST_CHECK bool master_link_stream_step(struct master_link *link, uint64_t budget_ns);
/* At the end of a tick: acknowledge what was applied, now or soon. */
void master_link_stream_acknowledge(struct master_link *link);
/* Ask the master to hand over to this server (server/replication/replication.h). false: it cannot be asked now. */
MUST_CHECK bool master_link_stream_ask_handover(struct master_link *link);
void master_link_second(struct master_link *link);

/* It is a Redis, whose bytes this takes from now on: go on with the handshake. */
void master_link_go_on_with_redis(struct master_link *link, struct redis_receive *redis);
/* Read on where that has stopped as the spool was full. */
void master_link_read_on(struct master_link *link);

/* ---- between master_link.c and master_link_stream.c ----
 *
 * Whatever fails calls master_link_fail or master_link_lose, which close the connection: behind it, nothing of
 * the attempt is there any more, and the caller returns. */

/* The full copy that comes. */
static inline struct staging *master_link_staging(const struct master_link *link) {
    return persistence_staging(link->server->persistence);
}

/* Whom it is to. */
static inline const char *master_link_host(const struct master_link *link) {
    return link->pull_port != 0 ? link->pull_host : link->server->replication.master_host;
}
static inline uint16_t master_link_port(const struct master_link *link) {
    return link->pull_port != 0 ? link->pull_port : link->server->replication.master_port;
}

/* Is the other end of this connection a Redis? */
static inline bool master_link_is_redis(const struct master_link *link) {
    return link->line >= LINK_SAYS_REDIS_VERSION;
}
/* Let the tick run: something has come. */
void master_link_wake(const struct master_link *link);
/* Another state, by the table of transitions. */
void master_link_move(struct master_link *link, enum master_link_event event);
/* The attempt, or the link, has failed, for link->reason; the next attempt comes by itself. */
void master_link_lose(struct master_link *link);
__attribute__((format(printf, 2, 3))) void master_link_fail(struct master_link *link,
                                                            const char *format, ...);
/* What has come, and is not applied, is not wanted any more. */
void master_link_drop_groups(struct master_link *link);
/* Wait for input, unless there is enough, and for room for output. */
void master_link_watch(struct master_link *link);
/* Send one command of so many texts. The link may be lost by it. */
void master_link_say(struct master_link *link, const char *const *texts, unsigned count);
bool master_link_may_read(const struct master_link *link);
void master_link_take_input(struct master_link *link);
void master_link_stream_continue(struct master_link *link, struct bytes id);
void master_link_stream_begin_copy(struct master_link *link);
/* No copy comes any more. One that is whole by then takes the keys' place, and what is asked for next is asked by what
 * these say: another copy, if they do not say which history they are of. */
void master_link_stream_end_copy(struct master_link *link);
/* REPLCONF ACK; group 0: the keys here are not those of the master yet. */
void master_link_stream_say_ack(struct master_link *link, uint64_t group);

/* ---- for tests: bytes as if they had come from the master ---- */

/* false: they are not valid; link->reason says why. */
MUST_CHECK bool master_link_stream_parse(struct master_link *link);

#endif
