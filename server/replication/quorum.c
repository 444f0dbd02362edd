/* States, terms, opening; what is done in a tick; the start and the end. See quorum.h. */
#include "server/replication/quorum_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/replication/replication.h"
#include "server/system/log.h"

/* So long without progress, and a pull from a node that has voted is given up. */
enum { PULL_MS = 5000 };

/* ---- states ---- */

static const struct transition {
    enum sync_state from;
    enum quorum_event event;
    enum sync_state to;
    const char *text;
} transitions[] = {
#define ROW(from, event, to)                                                                       \
    { SYNC_##from, QUORUM_##event, SYNC_##to, #from " " #event " " #to }
    ROW(OFF, BEGUN_AS_MASTER, CLOSED), ROW(OFF, BEGUN_AS_REPLICA, REPLICA),
    ROW(REPLICA, PROMOTED, CLOSED),    ROW(CLOSED, TOOK_TERM, CLOSED),
    ROW(PULLING, TOOK_TERM, CLOSED),   ROW(OPEN, TOOK_TERM, CLOSED),
    ROW(CLOSED, PULLS, PULLING),       ROW(PULLING, PULLED, CLOSED),
    ROW(CLOSED, OPENED, OPEN),         ROW(REPLICA, FOLLOWS, REPLICA),
    ROW(CLOSED, FOLLOWS, REPLICA),     ROW(PULLING, FOLLOWS, REPLICA),
    ROW(OPEN, FOLLOWS, REPLICA),
#undef ROW
};
enum { TRANSITIONS = sizeof transitions / sizeof transitions[0] };

void quorum_move(struct quorum *quorum, enum quorum_event event) {
    struct sync *sync = sync_of(quorum);
    const struct transition *row = transitions;
    while (row->from != sync->state || row->event != event) {
        row++;
        CHECK(row < transitions + TRANSITIONS);
    }
    log_write(LOG_DEBUG, "quorum: %s", row->text);
    sync->state = row->to;
}

/* ---- a master without votes ---- */

bool quorum_may_ever_open(const struct quorum *quorum) {
    return !sync_of(quorum)->has_lost_durability || quorum_last_group(quorum) == 0;
}

void quorum_take_term(struct quorum *quorum, const struct term *highest) {
    struct sync *sync = sync_of(quorum);
    struct term_position position = quorum_position(quorum);
    const struct term *above = highest;
    const uint64_t random = quorum_random_number();
    quorum->peer_count = 0;
    sync->vote_count = 0;
    sync->term = TERM_NONE;
    if (!quorum_may_ever_open(quorum)) {
        log_write(LOG_WARNING,
                  "quorum: this server is to be master, and may lack what it has "
                  "acknowledged: it stays closed until it is made a replica, and filled");
        return;
    }
    above = term_compare(&quorum->wanted.voted, above) > 0 ? &quorum->wanted.voted : above;
    above = term_compare(&position.term, above) > 0 ? &position.term : above;
    if (!term_next(above, quorum->saved.node, random, &sync->term)) {
        log_write(LOG_WARNING, "quorum: no term is above %s: this server cannot open", above->text);
        sync->term = TERM_NONE;
        return;
    }
    quorum_vote(quorum, &sync->term);
    log_write(LOG_NOTICE, "quorum: closed, and asks for votes term=%s votes=%u group=%" PRIu64 "%s",
              sync->term.text, sync->votes_needed, position.group,
              sync->has_lost_durability ? " lost-durability=yes" : "");
}

static void quorum_end_pull(struct quorum *quorum) {
    if (sync_of(quorum)->state == SYNC_PULLING) {
        replicator_end_pull(replicator_of(quorum));
    }
}

void quorum_promote(struct quorum *quorum) {
    if (sync_of(quorum)->state == SYNC_OFF) {
        return; /* quorum_begin looks at the role */
    }
    quorum_move(quorum, QUORUM_PROMOTED);
    quorum_take_term(quorum, &TERM_NONE);
    /* Who still follows, as after a FAILOVER that was given up, is to come again and register. */
    replicator_drop_replicas(replicator_of(quorum), "a new term begins");
}

void quorum_take_greater_term(struct quorum *quorum, const struct term *voted) {
    bool was_open = sync_of(quorum)->state == SYNC_OPEN;
    quorum_end_pull(quorum);
    quorum_move(quorum, QUORUM_TOOK_TERM);
    if (was_open) {
        replicator_close_term(replicator_of(quorum));
        replication_begin_epoch(quorum->server);
    }
    quorum_take_term(quorum, voted);
    replicator_drop_replicas(replicator_of(quorum), "a new term begins");
}

void quorum_follow(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    if (sync->state == SYNC_OFF) {
        return;
    }
    quorum_end_pull(quorum);
    quorum_move(quorum, QUORUM_FOLLOWS);
    sync->safe_group = 0;
    quorum->peer_count = 0;
}

/* ---- opening ---- */

static void quorum_pull(struct quorum *quorum, const struct quorum_peer *best) {
    quorum->target = best->said.position;
    quorum->pulled_node = best->said.node;
    quorum->pull_until_ms = now_ms(quorum) + PULL_MS;
    log_write(LOG_NOTICE,
              "quorum: pulls what is missing of node=%016" PRIx64 " \"%s %u\" term=%s "
              "group=%" PRIu64,
              best->said.node, best->host, (unsigned)best->port, best->said.position.term.text,
              best->said.position.group);
    replication_begin_epoch(quorum->server);
    quorum_move(quorum, QUORUM_PULLS);
    replicator_pull(replicator_of(quorum), best->host, best->port);
}

static void quorum_open_term(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    uint64_t group = quorum_last_group(quorum);
    if (!replicator_open_term(replicator_of(quorum), &sync->term)) {
        return; /* no memory: tried again with the next tick */
    }
    quorum_move(quorum, QUORUM_OPENED);
    sync->mark_group = quorum_last_group(quorum);
    sync->safe_group = 0;
    sync->counted = 0;
    sync->held_since_ms = 0;
    sync->lease_end_ms = 0;
    sync->has_lease = settings_of(quorum)->sync_replicas_lease_ms > 0;
    quorum->probed_ms = 0;
    if (sync->has_lost_durability) { /* it had nothing, as all others: they begin together */
        quorum_set_lost_durability(quorum, false);
        quorum_save(quorum);
    }
    log_write(LOG_NOTICE, "quorum: open term=%s group=%" PRIu64, sync->term.text, group);
}

static void quorum_step_closed(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    struct term_position positions[ELECTION_NODES_MAX], own = quorum_position(quorum);
    const struct quorum_peer *best;
    uint32_t empty_count, nodes = (uint32_t)settings->replication_nodes;
    uint32_t replicas = (uint32_t)settings->sync_replicas;
    sync->vote_count = quorum_count_votes(quorum, positions, &best, &empty_count);
    if (term_is_none(&sync->term) || !quorum_has_voted(quorum, &sync->term)) {
        return;
    }
    bool is_enough = 1 + sync->vote_count >= election_votes_needed(nodes, replicas);
    if (is_enough && !sync->has_lost_durability && best != NULL &&
        term_position_compare(&best->said.position, &own) > 0) {
        quorum_pull(quorum, best);
        return;
    }
    int64_t now = now_ms(quorum);
    if (election_may_open(&own, positions, sync->vote_count, nodes, replicas,
                          sync->has_lost_durability, now, quorum->held_until_ms) ||
        election_may_begin(own.group, sync->has_lost_durability, empty_count, nodes, now,
                           quorum->held_until_ms)) {
        quorum_open_term(quorum);
    }
}

static void quorum_step_pulling(struct quorum *quorum) {
    struct term_position own = quorum_position(quorum);
    bool is_whole = term_position_compare(&own, &quorum->target) >= 0;
    if (replicator_pull_advances(replicator_of(quorum))) {
        quorum->pull_until_ms = now_ms(quorum) + PULL_MS;
    }
    if (!is_whole && now_ms(quorum) < quorum->pull_until_ms) {
        return;
    }
    replicator_end_pull(replicator_of(quorum));
    if (!is_whole) {
        log_write(LOG_WARNING, "quorum: what is missing did not come of node=%016" PRIx64,
                  quorum->pulled_node);
        quorum_drop_peer(quorum, quorum->pulled_node);
    }
    quorum_move(quorum, QUORUM_PULLED);
}

/* ---- ticks ---- */

static int64_t quorum_find_due_ms(const struct quorum *quorum) {
    if (!quorum->worker.is_busy && !quorum_is_saved(quorum)) {
        return quorum->retry_ms;
    }
    switch (sync_of(quorum)->state) {
    case SYNC_OPEN:
        return quorum->probed_ms + quorum_probe_period_ms(quorum);
    case SYNC_CLOSED:
        return quorum->held_until_ms > now_ms(quorum) ? quorum->held_until_ms : INT64_MAX;
    case SYNC_PULLING:
        return quorum->pull_until_ms;
    case SYNC_OFF:
    case SYNC_REPLICA:
    case SYNC_STATES:
        break;
    }
    return INT64_MAX;
}

void quorum_begin_tick(struct quorum *quorum) {
    quorum_save(quorum);
    if (sync_of(quorum)->state == SYNC_PULLING) {
        quorum_step_pulling(quorum);
    }
    if (sync_of(quorum)->state == SYNC_CLOSED) {
        quorum_step_closed(quorum);
    }
}

static void quorum_on_timer(uv_timer_t *timer) {
    struct quorum *quorum = timer->data;
    quorum->timer_ms = INT64_MAX;
    replicator_wake(replicator_of(quorum));
}

void quorum_end_tick(struct quorum *quorum) {
    if (sync_of(quorum)->state == SYNC_OPEN) {
        quorum_step_open(quorum);
    }
    int64_t due_ms = quorum_find_due_ms(quorum);
    if (due_ms != INT64_MAX && due_ms != quorum->timer_ms) {
        int64_t left_ms = due_ms - now_ms(quorum);
        quorum->timer_ms = due_ms;
        uv_update_time(quorum->timer.loop);
        (void)uv_timer_start(&quorum->timer, quorum_on_timer, left_ms > 0 ? (uint64_t)left_ms : 1,
                             0);
    }
}

/* ---- the start and the end ---- */

struct quorum *quorum_create(struct server *server, uv_loop_t *loop, char *error) {
    char path[PATH_MAX], absolute[PATH_MAX];
    const struct settings *settings = &server->settings;
    struct quorum *quorum = memory_allocate_zeroed(sizeof *quorum);
    snprintf(path, sizeof path, "%s/%s", settings->dir, settings->appenddirname);
    snprintf(error, DISK_ERROR_MAX, "out of memory");
    if (quorum == NULL) {
        return NULL;
    }
    quorum->server = server;
    if (realpath(path, absolute) == NULL) {
        snprintf(error, DISK_ERROR_MAX, "%.900s: %s", path, strerror(errno));
        memory_free(quorum);
        return NULL;
    }
    quorum->directory = memory_allocate(strlen(absolute) + 1);
    if (quorum->directory != NULL) {
        memcpy(quorum->directory, absolute, strlen(absolute) + 1);
    }
    quorum->timer.data = quorum;
    quorum->timer_ms = INT64_MAX;
    quorum->has_worker =
        quorum->directory != NULL && uv_timer_init(loop, &quorum->timer) == 0 &&
        worker_init(&quorum->worker, loop, WORKER_AS_THE_LOOP, quorum_on_saved, quorum);
    if (!quorum->has_worker) {
        memory_free(quorum->directory);
        memory_free(quorum);
        return NULL;
    }
    uv_unref((uv_handle_t *)&quorum->timer);
    return quorum;
}

/* What it has may be less than what it has acknowledged: as far as the file says how it ended. */
static bool quorum_has_lost(const struct quorum *quorum) {
    switch (quorum->saved.left) {
    case VOTE_LEFT_CLEAN:
        return quorum->saved.group != quorum_last_group(quorum);
    case VOTE_LEFT_DURABLE:
        return false;
    case VOTE_LEFT_CRASHED:
        return strcmp(quorum->saved.boot, quorum->boot) != 0;
    case VOTE_LEFTS:
        break;
    }
    return true;
}

bool quorum_begin(struct quorum *quorum, char *error) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    struct term_position position = quorum_position(quorum);
    vote_read_boot(quorum->boot);
    enum vote_status status = vote_load(quorum->directory, &quorum->saved, error);
    bool has_lost_durability = position.group == 0;
    if (status == VOTE_DAMAGED || status == VOTE_FAILED) {
        return false;
    }
    if (status == VOTE_MISSING) {
        quorum->saved = (struct vote){.voted = TERM_NONE};
        while (quorum->saved.node == 0) {
            quorum->saved.node = quorum_random_number();
        }
    } else {
        has_lost_durability = has_lost_durability || quorum_has_lost(quorum);
    }
    quorum->wanted = quorum->saved;
    sync->node = quorum->saved.node;
    sync->voted = quorum->saved.voted;
    sync->votes_needed = election_votes_needed((uint32_t)settings->replication_nodes,
                                               (uint32_t)settings->sync_replicas) -
                         1;
    if (quorum->saved.lease_ms > 0) { /* a master may still lean on it */
        quorum->held_until_ms = election_hold_end(now_ms(quorum), quorum->saved.lease_ms);
    }
    quorum_set_lost_durability(quorum, has_lost_durability);
    if (!vote_save(quorum->directory, &quorum->wanted)) {
        snprintf(error, DISK_ERROR_MAX, "%.900s/leaderboard.promise cannot be written: %s",
                 quorum->directory, strerror(errno));
        return false;
    }
    quorum->saved = quorum->wanted;
    log_write(LOG_NOTICE, "quorum: node=%016" PRIx64 " voted=%s group=%" PRIu64 "%s", sync->node,
              sync->voted.text, position.group, has_lost_durability ? " lost-durability=yes" : "");
    if (replication_is_replica(replication_of(quorum))) {
        quorum_move(quorum, QUORUM_BEGUN_AS_REPLICA);
    } else {
        quorum_move(quorum, QUORUM_BEGUN_AS_MASTER);
        quorum_take_term(quorum, &TERM_NONE);
    }
    return true;
}

void quorum_stop(struct quorum *quorum) {
    if (quorum != NULL && quorum->has_worker) {
        uv_close((uv_handle_t *)&quorum->timer, NULL);
        worker_deinit(&quorum->worker);
        quorum->has_worker = false;
    }
}

void quorum_end_cleanly(struct quorum *quorum, uint64_t group) {
    if (quorum == NULL || sync_of(quorum)->state == SYNC_OFF ||
        sync_of(quorum)->has_lost_durability) {
        return;
    }
    quorum->wanted.left = VOTE_LEFT_CLEAN;
    quorum->wanted.group = group;
    if (!vote_save(quorum->directory, &quorum->wanted)) {
        log_write(LOG_WARNING,
                  "quorum: %s/leaderboard.promise cannot be written: the next start is as "
                  "after a crash",
                  quorum->directory);
    }
}

void quorum_destroy(struct quorum *quorum) {
    if (quorum != NULL) {
        memory_free(quorum->directory);
        memory_free(quorum);
    }
}
