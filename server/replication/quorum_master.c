/* Of a master: which nodes have registered, and what they have voted; once it is open,
 * acknowledgements, probes and the lease say up to where answers may leave. See quorum.h. */
#include "server/replication/quorum_parts.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/replication/replication.h"
#include "server/system/log.h"

enum {
    PROBES_PER_LEASE = 4,
    /* Between two probes; without a lease they say only how far the master is. */
    PROBE_MS_MAX = 1000,
};

/* ---- votes of others ---- */

static struct quorum_peer *quorum_master_find_peer(struct quorum *quorum, uint64_t node) {
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        if (quorum->peers[i].said.node == node) {
            return &quorum->peers[i];
        }
    }
    return NULL;
}

void quorum_drop_peer(struct quorum *quorum, uint64_t node) {
    struct quorum_peer *peer = quorum_master_find_peer(quorum, node);
    if (peer != NULL) {
        *peer = quorum->peers[--quorum->peer_count];
    }
}

static void quorum_master_keep_vote(struct quorum *quorum, const struct replica *replica,
                                    const struct sync_registration *said) {
    struct quorum_peer *peer = quorum_master_find_peer(quorum, said->node);
    if (peer == NULL) {
        if (quorum->peer_count + 1 >= (uint32_t)settings_of(quorum)->replication_nodes) {
            log_write(LOG_WARNING,
                      "quorum: more servers than replication-nodes: the vote of %016" PRIx64
                      " does not count",
                      said->node);
            return;
        }
        peer = &quorum->peers[quorum->peer_count++];
        log_write(LOG_NOTICE, "quorum: vote node=%016" PRIx64 " term=%s group=%" PRIu64 "%s",
                  said->node, sync_of(quorum)->term.text, said->position.group,
                  said->has_lost_durability ? " lost-durability=yes" : "");
    }
    peer->said = *said;
    replication_print_address(replica, peer->host);
    peer->port = replica->port;
}

uint32_t quorum_count_votes(const struct quorum *quorum,
                            struct term_position positions[ELECTION_NODES_MAX],
                            const struct quorum_peer **best, uint32_t *empty_count) {
    uint32_t count = 0;
    *best = NULL;
    *empty_count = 0;
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        const struct quorum_peer *peer = &quorum->peers[i];
        if (peer->said.has_lost_durability) {
            *empty_count += peer->said.position.group == 0;
            continue;
        }
        positions[count++] = peer->said.position;
        if (*best == NULL ||
            term_position_compare(&peer->said.position, &(*best)->said.position) > 0) {
            *best = peer;
        }
    }
    return count;
}

/* ---- what a master is told ---- */

static void quorum_master_answer_term(struct reply *reply, const char *word,
                                      const struct term *term) {
    char text[sizeof "PREPARE " + TERM_SIZE];
    snprintf(text, sizeof text, "%s %s", word, term->text);
    reply_simple(reply, text);
}

void quorum_register(struct quorum *quorum, struct replica *replica,
                     const struct sync_registration *said, struct reply *reply) {
    struct sync *sync = sync_of(quorum);
    replica->node = said->node;
    replica->is_counted = false;
    if (sync->state == SYNC_OFF || sync->state == SYNC_REPLICA) {
        reply_error(reply, "NOMASTERLINK this server is no master, and with sync-replicas all "
                           "follow the master itself");
        return;
    }
    if (said->node == quorum->saved.node) {
        reply_error(reply,
                    "ERR the replica is the same node: its directory is a copy of this one's");
        return;
    }
    if (!quorum_may_ever_open(quorum)) {
        reply_error(reply, "NOMASTERLINK this server may have lost what it has acknowledged, and "
                           "will not open");
        return;
    }
    if (term_compare(&said->voted, &sync->term) > 0) {
        quorum_take_greater_term(quorum, &said->voted);
    }
    if (sync->state == SYNC_OPEN) {
        replica->is_counted = true;
        replica->is_probed = false;
        replica->sync_group = 0;
        replica->answered_ms = 0;
        quorum_master_answer_term(reply, "OPEN", &sync->term);
    } else if (term_compare(&said->voted, &sync->term) == 0) {
        quorum_master_keep_vote(quorum, replica, said);
        reply_simple(reply, "CLOSED");
        replicator_wake(replicator_of(quorum));
    } else {
        quorum_master_answer_term(reply, "PREPARE", &sync->term);
    }
}

const char *quorum_find_sync_refusal(const struct quorum *quorum, bool is_pulling,
                                     const struct term *term) {
    const struct sync *sync = sync_of(quorum);
    if (is_pulling) {
        return sync->state == SYNC_REPLICA && quorum_has_voted(quorum, term)
                   ? NULL
                   : "NOMASTERLINK this server has not voted for that term";
    }
    return sync_is_closed(sync) ? "NOMASTERLINK this server is not open yet: it waits for votes"
                                : NULL;
}

/* ---- the commit wait ---- */

/* A node has one connection that counts: the latest. */
static bool quorum_master_counts(const struct replica *replica) {
    if (!replica->is_counted || replica->is_failed) {
        return false;
    }
    for (const struct replica *later = replica->next; later != NULL; later = later->next) {
        if (later->is_counted && later->node == replica->node) {
            return false;
        }
    }
    return true;
}

/* For INFO and the metrics. */
static void quorum_master_note_held(struct quorum *quorum, bool is_progress) {
    struct sync *sync = sync_of(quorum);
    int64_t now = now_ms(quorum);
    bool is_held = sync->safe_group < quorum_last_group(quorum) ||
                   (sync->has_lease && now >= sync->lease_end_ms);
    if (!is_held) {
        sync->held_since_ms = 0;
    } else if (is_progress || sync->held_since_ms == 0) {
        sync->held_since_ms = now;
    }
}

static void quorum_master_count_acks(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    uint64_t acks[ELECTION_NODES_MAX];
    int64_t sent_ms[ELECTION_NODES_MAX];
    uint32_t count = 0, replicas = (uint32_t)settings->sync_replicas;
    for (const struct replica *replica = replication_of(quorum)->replicas;
         replica != NULL && count < ELECTION_NODES_MAX; replica = replica->next) {
        if (quorum_master_counts(replica)) {
            acks[count] = replica->sync_group;
            sent_ms[count++] = replica->answered_ms;
        }
    }
    uint64_t safe_group = election_safe_group(UINT64_MAX, acks, count, replicas, sync->mark_group);
    bool is_progress = safe_group > sync->safe_group;
    sync->counted = count;
    sync->safe_group = safe_group > sync->safe_group ? safe_group : sync->safe_group;
    int64_t lease_end_ms =
        election_lease_end(sent_ms, count, replicas, settings->sync_replicas_lease_ms);
    sync->lease_end_ms = lease_end_ms > sync->lease_end_ms ? lease_end_ms : sync->lease_end_ms;
    quorum_master_note_held(quorum, is_progress);
}

int64_t quorum_probe_period_ms(const struct quorum *quorum) {
    int64_t lease_ms = settings_of(quorum)->sync_replicas_lease_ms;
    int64_t period_ms = lease_ms > 0 ? lease_ms / PROBES_PER_LEASE : PROBE_MS_MAX;
    return period_ms < 1 ? 1 : period_ms < PROBE_MS_MAX ? period_ms : PROBE_MS_MAX;
}

void quorum_step_open(struct quorum *quorum) {
    int64_t now = now_ms(quorum);
    quorum_master_count_acks(quorum);
    bool is_due = now - quorum->probed_ms >= quorum_probe_period_ms(quorum);
    const struct wire_probe probe = {
        .last_group = quorum_last_group(quorum),
        .number = (uint64_t)now,
        .lease_ms = (uint64_t)settings_of(quorum)->sync_replicas_lease_ms,
    };
    for (struct replica *replica = replication_of(quorum)->replicas; replica != NULL;
         replica = replica->next) {
        bool is_new = replica->answered_ms == 0 && !replica->is_probed;
        if (replica->is_counted && !replica->is_failed && (is_due || is_new) &&
            (replica->state == REPLICA_ONLINE || replica->state == REPLICA_COPIES)) {
            struct session *session = replica->session;
            session->output.size_max = server_output_room(quorum->server, session);
            replica->is_probed = true;
            wire_put_probe(&session->output, &probe);
        }
    }
    quorum->probed_ms = is_due ? now : quorum->probed_ms;
}

void quorum_take_ack(struct quorum *quorum, struct replica *replica, uint64_t acked,
                     uint64_t probe) {
    int64_t now = now_ms(quorum);
    if (!replica->is_counted) {
        return;
    }
    if (acked > replica->sync_group && acked <= quorum_last_group(quorum)) {
        replica->sync_group = acked;
    }
    if (probe <= (uint64_t)now && (int64_t)probe > replica->answered_ms) {
        replica->answered_ms = (int64_t)probe;
    }
}
