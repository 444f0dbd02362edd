/* See failover.h. */
#include "server/replication/failover.h"

#include <stdio.h>

#include "server/dispatch/settings_file.h"
#include "server/replication/hub.h"
#include "server/replication/replication.h"
#include "server/sessions/server.h"
#include "server/system/log.h"

enum {
    HANDOVER_MS =
        1000,        /* so long a replica that is to be master waits for its master to hand over */
    HEARD_MS = 2000, /* a master that is there was heard within this time: it pings once a second */
};

enum event {
    EVENT_BEGUN,
    EVENT_READY,  /* the target has caught up, or is not waited for any more */
    EVENT_AGREED, /* the target is master */
    EVENT_ABORTED,
    EVENTS,
};

/* The next state. What is not here cannot occur. */
#define NEXT(state) (1 + (state))
static const uint8_t transitions[REPLICATION_FAILOVERS][EVENTS] = {
    [REPLICATION_FAILOVER_NONE] = {[EVENT_BEGUN] = NEXT(REPLICATION_FAILOVER_WAITS)},
    [REPLICATION_FAILOVER_WAITS] = {[EVENT_READY] = NEXT(REPLICATION_FAILOVER_SHIFTS),
                                    [EVENT_ABORTED] = NEXT(REPLICATION_FAILOVER_NONE)},
    [REPLICATION_FAILOVER_SHIFTS] = {[EVENT_AGREED] = NEXT(REPLICATION_FAILOVER_NONE),
                                     [EVENT_ABORTED] = NEXT(REPLICATION_FAILOVER_NONE)},
};

static void failover_advance(struct server *server, enum event event) {
    struct replication *replication = &server->replication;
    uint8_t next = transitions[replication->failover.state][event];
    CHECK(next != 0);
    replication->failover.state = (enum replication_failover)(next - 1);
    if (replication->failover.state == REPLICATION_FAILOVER_NONE) {
        replication->failover.host[0] = '\0';
        replication->failover.port = 0;
        replication->failover.is_ordered = false;
        server->has_news = true; /* clients that wait for keys are served again */
    }
}

static const char *failover_target_of(const struct replication *replication) {
    return replication->failover.host[0] != '\0' ? replication->failover.host : "any";
}

/* By the name that Sentinels give their connections. */
static bool failover_is_sentinel(const struct session *session) {
    static const char prefix[] = "sentinel-";
    return session->name != NULL && strncmp(session->name, prefix, sizeof prefix - 1) == 0;
}

static const char *failover_check(const struct server *server, const struct session *caller,
                                  const struct failover_options *options) {
    const struct replication *replication = &server->replication;
    if (replication->failover.state != REPLICATION_FAILOVER_NONE) {
        return "ERR FAILOVER already in progress.";
    }
    if (replication_is_replica(replication) || replication->is_promoting) {
        return "ERR FAILOVER is not valid when server is a replica.";
    }
    const struct replica *able = replication->replicas;
    while (able != NULL && able->is_redis) {
        able = able->next; /* it does not take over by a handshake */
    }
    if (able == NULL) {
        return "ERR FAILOVER requires connected replicas.";
    }
    /* By the channel through which Sentinels meet. */
    if (caller != NULL && !failover_is_sentinel(caller) &&
        subscription_subscriber_count(&server->subscriptions, SUBSCRIPTION_CHANNEL,
                                      BYTES("__sentinel__:hello")) > 0) {
        return "ERR FAILOVER is refused because a Sentinel watches this server, and would not "
               "follow. Send it SENTINEL FAILOVER <master name>.";
    }
    if (options->is_forced && (options->timeout_ms == 0 || options->host.at == NULL)) {
        return "ERR FAILOVER with force option requires both a timeout and target HOST and IP.";
    }
    if (options->host.at == NULL) {
        return NULL;
    }
    const struct replica *replica =
        replication_find_replica(replication, options->host, options->port);
    if (replica == NULL) {
        return "ERR FAILOVER target HOST and PORT is not a replica.";
    }
    if (replica->is_redis) {
        return "ERR FAILOVER target replica is a Redis: send it REPLICAOF NO ONE.";
    }
    return replica->state == REPLICA_ONLINE ? NULL : "ERR FAILOVER target replica is not online.";
}

const char *failover_begin(struct server *server, const struct session *caller,
                           const struct failover_options *options) {
    struct replication *replication = &server->replication;
    const char *why = failover_check(server, caller, options);
    if (why != NULL) {
        return why;
    }
    int64_t until_ms = INT64_MAX;
    if (options->timeout_ms > 0 &&
        __builtin_add_overflow(server->clock.monotonic_ms, options->timeout_ms, &until_ms)) {
        until_ms = INT64_MAX;
    }
    replication->failover.host[0] = '\0';
    if (options->host.at != NULL) {
        replication_print_address(
            replication_find_replica(replication, options->host, options->port),
            replication->failover.host);
    }
    replication->failover.port = (uint16_t)options->port;
    replication->failover.is_forced = options->is_forced;
    replication->failover.until_ms = until_ms;
    failover_advance(server, EVENT_BEGUN);
    log_write(LOG_NOTICE, "failover begun, writes wait target=\"%s %u\" group=%llu",
              failover_target_of(replication), replication->failover.port,
              (unsigned long long)replication->group);
    replicator_ask_acks(replication->replicator);
    return NULL;
}

/* A replica that may take over, and has everything; NULL: none. */
static const struct replica *failover_find_ready(const struct replication *replication) {
    struct bytes host = bytes_from_text(replication->failover.host);
    if (host.size > 0) {
        const struct replica *target =
            replication_find_replica(replication, host, replication->failover.port);
        return target != NULL && !target->is_redis && target->state == REPLICA_ONLINE &&
                       target->ack_group >= replication->group
                   ? target
                   : NULL;
    }
    for (const struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        if (replica->state == REPLICA_ONLINE && replica->port != 0 && !replica->is_redis &&
            replica->ack_group >= replication->group) {
            return replica;
        }
    }
    return NULL;
}

static void failover_shift(struct server *server) {
    struct replication *replication = &server->replication;
    failover_advance(server, EVENT_READY);
    log_write(LOG_NOTICE, "failover: asking the target to become master target=\"%s %u\"",
              replication->failover.host, replication->failover.port);
    if (!replication_follow(server, bytes_from_text(replication->failover.host),
                            replication->failover.port)) {
        (void)failover_abort(server, "out of memory");
    }
}

/* ---- ordered by a Sentinel ---- */

bool failover_ask(struct server *server, const struct session *caller) {
    struct replication *replication = &server->replication;
    int64_t silent_ms = server->clock.monotonic_ms - replication->heard_at_ms;
    if (!failover_is_sentinel(caller) || !replication_is_replica(replication) ||
        !replication_is_up(replication) || silent_ms > HEARD_MS ||
        !replicator_ask_handover(replication->replicator)) {
        return false;
    }
    /* Already now, as the file of settings is written next. */
    CHECK(setting_value_set_master(&server->settings, BYTES(""), 0)); /* needs no memory */
    replication->failover.asked_until_ms = server->clock.monotonic_ms + HANDOVER_MS;
    log_write(LOG_NOTICE, "failover: asking the master to hand over master=\"%s %u\"",
              replication->master_host, replication->master_port);
    return true;
}

void failover_take_order(struct server *server, const struct replica *replica) {
    char address[REPLICATION_HOST_MAX + 1];
    replication_print_address(replica, address);
    const struct failover_options options = {
        .host = bytes_from_text(address), .port = replica->port, .timeout_ms = HANDOVER_MS};
    const char *why = failover_begin(server, NULL, &options);
    if (why != NULL) {
        log_write(
            LOG_WARNING,
            "failover: not handed over to a replica that is to be master addr=%s reason=\"%s\"",
            replica->session->address, why);
    }
    server->replication.failover.is_ordered |= why == NULL;
}

/* ---- steps ---- */

void failover_step(struct server *server, bool has_waiting_answers) {
    struct replication *replication = &server->replication;
    int64_t until_ms = replication->failover.asked_until_ms;
    if (until_ms != 0 &&
        (server->clock.monotonic_ms >= until_ms || !replication_is_up(replication))) {
        log_write(LOG_WARNING, "failover: the master has not handed over, and is replaced");
        replication_promote(server);
    }
    if (replication->failover.state != REPLICATION_FAILOVER_WAITS) {
        return;
    }
    /* With sync-replicas, answers that wait would be lost with the term. Otherwise they wait for this server's
     * disk, and go on doing so. */
    bool is_held = has_waiting_answers && sync_holds_answers(&replication->sync);
    const struct replica *ready = is_held ? NULL : failover_find_ready(replication);
    if (ready != NULL) {
        char address[REPLICATION_HOST_MAX + 1];
        replication_print_address(ready, address);
        memcpy(replication->failover.host, address, sizeof address);
        replication->failover.port = ready->port;
        failover_shift(server);
    } else if (server->clock.monotonic_ms >= replication->failover.until_ms) {
        if (replication->failover.is_forced) {
            failover_shift(server);
        } else {
            (void)failover_abort(server, "no replica caught up before the timeout");
        }
    }
}

int64_t failover_due_ms(const struct server *server) {
    const struct replication *replication = &server->replication;
    if (replication->failover.asked_until_ms != 0) {
        return replication->failover.asked_until_ms;
    }
    return replication->failover.state == REPLICATION_FAILOVER_WAITS
               ? replication->failover.until_ms
               : INT64_MAX;
}

bool failover_abort(struct server *server, const char *reason) {
    struct replication *replication = &server->replication;
    enum replication_failover state = replication->failover.state;
    if (state == REPLICATION_FAILOVER_NONE) {
        return false;
    }
    log_write(LOG_WARNING, "failover aborted target=\"%s %u\" state=%s reason=\"%s\"",
              failover_target_of(replication), replication->failover.port,
              replication_failover_name(state), reason);
    failover_advance(server, EVENT_ABORTED);
    if (state == REPLICATION_FAILOVER_SHIFTS) {
        replication_promote(server);
    }
    return true;
}

void failover_end(struct server *server, bool is_agreed) {
    struct replication *replication = &server->replication;
    if (replication->failover.state != REPLICATION_FAILOVER_SHIFTS) {
        return;
    }
    if (!is_agreed) {
        (void)failover_abort(server, "the target has refused");
        return;
    }
    log_write(LOG_NOTICE, "failover done target=\"%s %u\"", replication->failover.host,
              replication->failover.port);
    if (replication->failover.is_ordered) {
        /* What Sentinel orders of a master that it has replaced. */
        char error[SETTING_ERROR_MAX];
        if (server->settings.file_path != NULL && !settings_file_write(server, error)) {
            log_write(LOG_WARNING, "settings not written error=\"%s\"", error);
        }
        for (struct session *session = server->sessions.first; session != NULL;
             session = session->next) {
            if (!session_is_replica(session) && !failover_is_sentinel(session)) {
                server_kill_session(server, session);
            }
        }
    }
    failover_advance(server, EVENT_AGREED);
}
