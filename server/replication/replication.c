/* What changes the state of replication. See replication.h. */
#include "server/replication/replication.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/dispatch/settings_file.h"
#include "server/sessions/job.h"
#include "server/sessions/server.h"
#include "server/system/log.h"
#include "skiplist/keyspace/registry.h"

const char *replication_link_name(enum replication_link link) {
    static const char *const names[REPLICATION_LINKS] = {
        "none", "connect", "connecting", "handshake", "sync", "connected", "stopped",
    };
    CHECK(link < REPLICATION_LINKS);
    return names[link];
}

const char *replication_replica_state_name(enum replica_state state) {
    static const char *const names[REPLICA_STATES] = {
        "handshake",
        "wait_bgsave",
        "send_bulk",
        "online",
    };
    CHECK(state < REPLICA_STATES);
    return names[state];
}

const char *replication_failover_name(enum replication_failover state) {
    static const char *const names[REPLICATION_FAILOVERS] = {
        "no-failover",
        "waiting-for-sync",
        "failover-in-progress",
    };
    CHECK(state < REPLICATION_FAILOVERS);
    return names[state];
}

const char *replication_sync_state_name(enum sync_state state) {
    static const char *const names[SYNC_STATES] = {"off", "replica", "closed", "pulling", "open"};
    CHECK(state < SYNC_STATES);
    return names[state];
}

uint64_t replication_sync_safe_group(const struct sync *sync, uint64_t disk_group, int64_t now_ms) {
    if (sync->state != SYNC_OPEN) {
        return disk_group;
    }
    if (sync_is_lease_over(sync, now_ms)) {
        return 0;
    }
    return sync->safe_group < disk_group ? sync->safe_group : disk_group;
}

/* ---- the history in the keys ---- */

enum { NUMBER_MAX = 24 };
#define KEY_NAME BYTES("history")

/* Nothing in this database expires. */
#define ANY_TIME INT64_MIN

static bool replication_read_history_id(const struct hash *hash, struct bytes field, char *id) {
    struct bytes value;
    if (!hash_find(hash, field, &value) || !term_is_id(value)) {
        return false;
    }
    memcpy(id, value.at, value.size);
    id[value.size] = '\0';
    return true;
}

bool replication_read_history(struct registry *registry, struct history *history) {
    const struct registry_key *key = registry_peek(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME);
    struct bytes until;
    *history = (struct history){.second_until = 0};
    if (key == NULL || key->kind != REGISTRY_HASH ||
        !replication_read_history_id(registry_hash(key), BYTES("id"), history->id)) {
        return false;
    }
    if (!replication_read_history_id(registry_hash(key), BYTES("second_id"), history->second_id) ||
        !hash_find(registry_hash(key), BYTES("second_until"), &until) ||
        !bytes_parse_u64(until, &history->second_until)) {
        memcpy(history->second_id, REPLICATION_NO_ID, sizeof REPLICATION_NO_ID);
        history->second_until = 0;
    }
    return true;
}

bool replication_take_history(struct registry *registry, struct replication *replication) {
    struct history history;
    if (!replication_read_history(registry, &history)) {
        return false;
    }
    memcpy(replication->id, history.id, sizeof history.id);
    memcpy(replication->second_id, history.second_id, sizeof history.second_id);
    replication->second_until = history.second_until;
    return true;
}

bool replication_write_history(struct registry *registry, const struct history *history) {
    char until[NUMBER_MAX];
    snprintf(until, sizeof until, "%" PRIu64, history->second_until);
    const struct bytes args[] = {
        BYTES("id"),           bytes_from_text(history->id),
        BYTES("second_id"),    bytes_from_text(history->second_id),
        BYTES("second_until"), bytes_from_text(until),
    };
    enum { PAIRS = sizeof args / sizeof args[0] / 2 };
    return registry_hash_put_own(registry, REGISTRY_HISTORY, KEY_NAME, args, PAIRS, ANY_TIME) !=
           NULL;
}

void replication_remove_history(struct registry *registry) {
    struct registry_key *key = registry_find(registry, REGISTRY_HISTORY, KEY_NAME, ANY_TIME);
    if (key != NULL) {
        registry_remove(registry, key);
    }
}

/* ---- role ---- */

void replication_make_id(struct server *server, char id[REPLICATION_ID_SIZE + 1]) {
    struct term before, next;
    if (!term_parse(bytes_from_text(server->replication.id), &before)) {
        before = TERM_NONE;
    }
    if (!term_next(&before, server_random(server), server_random(server), &next)) {
        /* After 2^48 terms they begin anew. */
        CHECK(term_next(&TERM_NONE, server_random(server), server_random(server), &next));
    }
    memcpy(id, next.text, sizeof next.text);
}

static void replication_set_master(struct replication *replication, struct bytes host,
                                   uint16_t port) {
    CHECK(host.size <= REPLICATION_HOST_MAX);
    memcpy(replication->master_host, host.at, host.size);
    replication->master_host[host.size] = '\0';
    replication->master_port = port;
}

static void replication_begin_link(struct server *server) {
    struct replication *replication = &server->replication;
    replication->role = REPLICATION_REPLICA;
    replication->is_promoting = false;
    replication->failover.asked_until_ms = 0;
    replication->link = REPLICATION_LINK_CONNECT;
    replication->link_down_at_ms = server->clock.monotonic_ms;
    replication->error[0] = '\0';
}

void replication_init(struct server *server) {
    struct replication *replication = &server->replication;
    struct replicator *replicator = replication->replicator;
    memset(replication, 0, sizeof *replication);
    replication->replicator = replicator;
    replication_make_id(server, replication->id);
    memcpy(replication->second_id, REPLICATION_NO_ID, sizeof REPLICATION_NO_ID);
    replication->is_whole = true;
    if (server->settings.replicaof_host != NULL) {
        replication_set_master(replication, bytes_from_text(server->settings.replicaof_host),
                               (uint16_t)server->settings.replicaof_port);
        replication_begin_link(server);
    }
}

bool replication_is_following(const struct replication *replication, struct bytes host,
                              uint16_t port) {
    return replication_is_replica(replication) && replication->master_port == port &&
           replication->link != REPLICATION_LINK_STOPPED &&
           replication->failover.asked_until_ms == 0 &&
           bytes_equal_ignoring_case(host, bytes_from_text(replication->master_host));
}

bool replication_follow(struct server *server, struct bytes host, uint16_t port) {
    struct replication *replication = &server->replication;
    if (replication_is_following(replication, host, port)) {
        return true;
    }
    if (!setting_value_set_master(&server->settings, host, port)) {
        return false;
    }
    replication_set_master(replication, host, port);
    replication_begin_link(server);
    server_reads_outdate_all(server);
    replication_begin_epoch(server);
    log_write(LOG_NOTICE, "role: replica master=\"%s %u\" id=%s", replication->master_host,
              (unsigned)port, replication->id);
    replicator_follow(replication->replicator,
                      replication->failover.state == REPLICATION_FAILOVER_SHIFTS);
    return true;
}

void replication_promote(struct server *server) {
    struct replication *replication = &server->replication;
    if (!replication_is_replica(replication)) {
        return;
    }
    CHECK(setting_value_set_master(&server->settings, BYTES(""), 0)); /* needs no memory */
    replication_set_master(replication, BYTES(""), 0);
    replication->role = REPLICATION_MASTER;
    server_reads_outdate_all(server);
    replication->failover.asked_until_ms = 0;
    replication->link = REPLICATION_LINK_NONE;
    replication->is_promoting = !replicator_promote(replication->replicator);
    if (replication->is_promoting) {
        log_write(LOG_NOTICE,
                  "role: master, as soon as what was received is applied group=%llu received=%llu",
                  (unsigned long long)replication->group,
                  (unsigned long long)replication->read_group);
    } else {
        replication_open(server);
    }
}

void replication_finish_promotion(struct server *server) {
    struct replication *replication = &server->replication;
    if (replication->is_promoting) {
        replicator_finish_promotion(replication->replicator);
    }
}

void replication_open(struct server *server) {
    struct replication *replication = &server->replication;
    replication->is_promoting = false;
    if (replication->sync.state != SYNC_OFF) {
        log_write(LOG_NOTICE,
                  "role: master, and closed until enough servers have voted for its term "
                  "group=%llu",
                  (unsigned long long)replication->group);
        return; /* its id begins when it opens */
    }
    replication_change_id(server);
    log_write(LOG_NOTICE, "role: master id=%s second-id=%s group=%llu", replication->id,
              replication->second_id, (unsigned long long)replication->second_until);
}

void replication_begin_epoch(struct server *server) {
    server->replication.epoch++;
    wait_begin_epoch(&server->waits);
    job_list_end_durable(server);
    server->jobs.is_resumed = false;
    server->once.has_begun = false;
}

void replication_note_copy(struct server *server) {
    server->replication.copies++;
    replication_begin_epoch(server);
}

void replication_change_id(struct server *server) {
    struct replication *replication = &server->replication;
    memcpy(replication->second_id, replication->id, sizeof replication->id);
    replication->second_until = replication->group;
    replication_make_id(server, replication->id);
    replicator_write_history(replication->replicator);
}

/* ---- replicas ---- */

struct replica *replication_get_replica(struct session *session) {
    if (session->replica == NULL) {
        session->replica = memory_allocate(sizeof *session->replica);
        if (session->replica != NULL) {
            *session->replica = (struct replica){.session = session, .state = REPLICA_HANDSHAKE};
        }
    }
    return session->replica;
}

void replication_add_replica(struct server *server, struct replica *replica,
                             enum replica_state state) {
    struct replication *replication = &server->replication;
    CHECK(replica->state == REPLICA_HANDSHAKE && state != REPLICA_HANDSHAKE);
    replica->state = state;
    replica->ack_at_ms = server->clock.monotonic_ms;
    replica->next = NULL;
    replica->previous = replication->replicas_last;
    if (replica->previous != NULL) {
        replica->previous->next = replica;
    } else {
        replication->replicas = replica;
    }
    replication->replicas_last = replica;
    replication->replica_count++;
}

void replication_remove_replica(struct server *server, struct session *session) {
    struct replication *replication = &server->replication;
    struct replica *replica = session->replica;
    if (replica == NULL) {
        return;
    }
    if (replica->state != REPLICA_HANDSHAKE) {
        if (replica->previous != NULL) {
            replica->previous->next = replica->next;
        } else {
            replication->replicas = replica->next;
        }
        if (replica->next != NULL) {
            replica->next->previous = replica->previous;
        } else {
            replication->replicas_last = replica->previous;
        }
        CHECK(replication->replica_count > 0);
        replication->replica_count--;
    }
    replicator_leave(replication->replicator, replica);
    session->replica = NULL;
    memory_free(replica);
}

void replication_take_ack(struct server *server, struct replica *replica, uint64_t group) {
    replica->ack_at_ms = server->clock.monotonic_ms;
    if (group > replica->ack_group) {
        replica->ack_group = group;
    }
    server->replication.has_acks = true;
}

void replication_print_address(const struct replica *replica, char out[REPLICATION_HOST_MAX + 1]) {
    const char *address = replica->session->address;
    size_t size = strlen(address);
    const char *colon = strrchr(address, ':');
    if (replica->ip[0] != '\0') {
        memcpy(out, replica->ip, sizeof replica->ip);
        return;
    }
    if (colon != NULL) {
        size = (size_t)(colon - address);
    }
    if (size >= 2 && address[0] == '[') { /* [::1]:50412 */
        address++;
        size -= 2;
    }
    CHECK(size <= REPLICATION_HOST_MAX);
    memcpy(out, address, size);
    out[size] = '\0';
}

/* The replica in the list that is reached there; NULL: there is none. */
static struct replica *replication_find_replica(const struct replication *replication,
                                                struct bytes host, int64_t port) {
    for (struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        char address[REPLICATION_HOST_MAX + 1];
        replication_print_address(replica, address);
        if (replica->port == port && bytes_equal_ignoring_case(host, bytes_from_text(address))) {
            return replica;
        }
    }
    return NULL;
}

uint32_t replication_count_acked(const struct replication *replication, uint64_t group) {
    uint32_t count = 0;
    for (const struct replica *replica = replication->replicas; replica != NULL;
         replica = replica->next) {
        count += replica->state == REPLICA_ONLINE && replica->ack_group >= group;
    }
    return count;
}

uint32_t replication_count_good(const struct server *server) {
    int64_t lag_max_ms = server->settings.min_replicas_max_lag_s * 1000;
    int64_t now_ms = server->clock.monotonic_ms;
    uint32_t count = 0;
    for (const struct replica *replica = server->replication.replicas; replica != NULL;
         replica = replica->next) {
        count += replica->state == REPLICA_ONLINE && now_ms - replica->ack_at_ms <= lag_max_ms;
    }
    return count;
}

void replication_reset_counters(struct replication *replication) {
    replication->counters = (struct replication_counters){.full_syncs = 0};
}

/* ---- refusals ---- */

const char *replication_write_refusal(const struct server *server) {
    const struct settings *settings = &server->settings;
    switch (replication_keys(&server->replication)) {
    case REPLICATION_KEYS_OWN:
    case REPLICATION_KEYS_HELD:
        break;
    case REPLICATION_KEYS_FOLLOWED:
        return "READONLY You can't write against a read only replica.";
    case REPLICATION_KEYS_PROMOTING:
    case REPLICATION_KEYS_CLOSED:
        return replication_read_refusal(server);
    }
    if (settings->min_replicas_to_write > 0 && settings->min_replicas_max_lag_s > 0 &&
        replication_count_good(server) < settings->min_replicas_to_write) {
        return "NOREPLICAS Not enough good replicas to write.";
    }
    return NULL;
}

const char *replication_read_refusal(const struct server *server) {
    const struct replication *replication = &server->replication;
    switch (replication_keys(replication)) {
    case REPLICATION_KEYS_OWN:
    case REPLICATION_KEYS_HELD:
        break;
    case REPLICATION_KEYS_FOLLOWED:
        return replication_is_up(replication) || server->settings.replica_serve_stale_data
                   ? NULL
                   : "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to "
                     "'no'.";
    case REPLICATION_KEYS_PROMOTING:
        return "LOADING What was received from the master is being applied";
    case REPLICATION_KEYS_CLOSED:
        return sync_is_unfit(&replication->sync) ? SYNC_LOST_ERROR : SYNC_CLOSED_ERROR;
    }
    return NULL;
}

bool replication_serves_as_master(const struct server *server) {
    bool is_up = !server->durability.is_loading && !server->ending.retiring.is_begun;
    return is_up && !replication_is_replica(&server->replication) &&
           replication_write_refusal(server) == NULL &&
           !sync_is_lease_over(&server->replication.sync, clock_read_ms(&server->clock));
}

int64_t replication_priority(const struct server *server) {
    const struct replication *replication = &server->replication;
    bool is_unfit = replication->is_priority_zero ||
                    (replication_is_replica(replication) && !replication->is_whole);
    return is_unfit ? 0 : server->settings.replica_priority;
}

/* ---- FAILOVER ---- */

enum {
    HANDOVER_MS =
        1000,        /* so long a replica that is to be master waits for its master to hand over */
    HEARD_MS = 2000, /* a master that is there was heard within this time: it pings once a second */
};

enum failover_event {
    EVENT_BEGUN,
    EVENT_READY,  /* the target has caught up, or is not waited for any more */
    EVENT_AGREED, /* the target is master */
    EVENT_ABORTED,
    EVENTS,
};

/* The next state. What is not here cannot occur. */
#define NEXT(state) (1 + (state))
static const uint8_t failover_transitions[REPLICATION_FAILOVERS][EVENTS] = {
    [REPLICATION_FAILOVER_NONE] = {[EVENT_BEGUN] = NEXT(REPLICATION_FAILOVER_WAITS)},
    [REPLICATION_FAILOVER_WAITS] = {[EVENT_READY] = NEXT(REPLICATION_FAILOVER_SHIFTS),
                                    [EVENT_ABORTED] = NEXT(REPLICATION_FAILOVER_NONE)},
    [REPLICATION_FAILOVER_SHIFTS] = {[EVENT_AGREED] = NEXT(REPLICATION_FAILOVER_NONE),
                                     [EVENT_ABORTED] = NEXT(REPLICATION_FAILOVER_NONE)},
};

static void replication_failover_advance(struct server *server, enum failover_event event) {
    struct replication *replication = &server->replication;
    uint8_t next = failover_transitions[replication->failover.state][event];
    CHECK(next != 0);
    replication->failover.state = (enum replication_failover)(next - 1);
    if (replication->failover.state == REPLICATION_FAILOVER_NONE) {
        replication->failover.host[0] = '\0';
        replication->failover.port = 0;
        replication->failover.is_ordered = false;
        server->has_news = true; /* clients that wait for keys are served again */
    }
}

static const char *replication_failover_target(const struct replication *replication) {
    return replication->failover.host[0] != '\0' ? replication->failover.host : "any";
}

/* By the name that Sentinels give their connections. */
static bool replication_failover_is_sentinel(const struct session *session) {
    static const char prefix[] = "sentinel-";
    return session->name != NULL && strncmp(session->name, prefix, sizeof prefix - 1) == 0;
}

static const char *replication_failover_check(const struct server *server,
                                              const struct session *caller,
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
    if (caller != NULL && !replication_failover_is_sentinel(caller) &&
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

const char *replication_failover_begin(struct server *server, const struct session *caller,
                                       const struct failover_options *options) {
    struct replication *replication = &server->replication;
    const char *why = replication_failover_check(server, caller, options);
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
    replication_failover_advance(server, EVENT_BEGUN);
    log_write(LOG_NOTICE, "failover begun, writes wait target=\"%s %u\" group=%llu",
              replication_failover_target(replication), replication->failover.port,
              (unsigned long long)replication->group);
    replicator_ask_acks(replication->replicator);
    return NULL;
}

/* A replica that may take over, and has everything; NULL: none. */
static const struct replica *
replication_failover_find_ready(const struct replication *replication) {
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

static void replication_failover_shift(struct server *server) {
    struct replication *replication = &server->replication;
    replication_failover_advance(server, EVENT_READY);
    log_write(LOG_NOTICE, "failover: asking the target to become master target=\"%s %u\"",
              replication->failover.host, replication->failover.port);
    if (!replication_follow(server, bytes_from_text(replication->failover.host),
                            replication->failover.port)) {
        (void)replication_failover_abort(server, "out of memory");
    }
}

/* ---- FAILOVER, ordered by a Sentinel ---- */

bool replication_failover_ask(struct server *server, const struct session *caller) {
    struct replication *replication = &server->replication;
    int64_t silent_ms = server->clock.monotonic_ms - replication->heard_at_ms;
    if (!replication_failover_is_sentinel(caller) || !replication_is_replica(replication) ||
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

void replication_failover_take_order(struct server *server, const struct replica *replica) {
    char address[REPLICATION_HOST_MAX + 1];
    replication_print_address(replica, address);
    const struct failover_options options = {
        .host = bytes_from_text(address), .port = replica->port, .timeout_ms = HANDOVER_MS};
    const char *why = replication_failover_begin(server, NULL, &options);
    if (why != NULL) {
        log_write(
            LOG_WARNING,
            "failover: not handed over to a replica that is to be master addr=%s reason=\"%s\"",
            replica->session->address, why);
    }
    server->replication.failover.is_ordered |= why == NULL;
}

/* ---- steps of FAILOVER ---- */

void replication_failover_step(struct server *server, bool has_waiting_answers) {
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
    const struct replica *ready = is_held ? NULL : replication_failover_find_ready(replication);
    if (ready != NULL) {
        char address[REPLICATION_HOST_MAX + 1];
        replication_print_address(ready, address);
        memcpy(replication->failover.host, address, sizeof address);
        replication->failover.port = ready->port;
        replication_failover_shift(server);
    } else if (server->clock.monotonic_ms >= replication->failover.until_ms) {
        if (replication->failover.is_forced) {
            replication_failover_shift(server);
        } else {
            (void)replication_failover_abort(server, "no replica caught up before the timeout");
        }
    }
}

int64_t replication_failover_due_ms(const struct server *server) {
    const struct replication *replication = &server->replication;
    if (replication->failover.asked_until_ms != 0) {
        return replication->failover.asked_until_ms;
    }
    return replication->failover.state == REPLICATION_FAILOVER_WAITS
               ? replication->failover.until_ms
               : INT64_MAX;
}

bool replication_failover_abort(struct server *server, const char *reason) {
    struct replication *replication = &server->replication;
    enum replication_failover state = replication->failover.state;
    if (state == REPLICATION_FAILOVER_NONE) {
        return false;
    }
    log_write(LOG_WARNING, "failover aborted target=\"%s %u\" state=%s reason=\"%s\"",
              replication_failover_target(replication), replication->failover.port,
              replication_failover_name(state), reason);
    replication_failover_advance(server, EVENT_ABORTED);
    if (state == REPLICATION_FAILOVER_SHIFTS) {
        replication_promote(server);
    }
    return true;
}

void replication_failover_end(struct server *server, bool is_agreed) {
    struct replication *replication = &server->replication;
    if (replication->failover.state != REPLICATION_FAILOVER_SHIFTS) {
        return;
    }
    if (!is_agreed) {
        (void)replication_failover_abort(server, "the target has refused");
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
            if (!session_is_replica(session) && !replication_failover_is_sentinel(session)) {
                server_kill_session(server, session);
            }
        }
    }
    replication_failover_advance(server, EVENT_AGREED);
}
