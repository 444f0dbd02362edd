/* Of an open master: acknowledgements, probes and the lease say up to where answers may leave. See quorum.h. */
#include "server/replication/quorum_parts.h"

enum {
    PROBES_PER_LEASE = 4,
    /* Between two probes; without a lease they say only how far the master is. */
    PROBE_MS_MAX = 1000,
};

/* A node has one connection that counts: the latest. */
static bool quorum_gate_counts(const struct replica *replica) {
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
static void quorum_gate_note_held(struct quorum *quorum, bool is_progress) {
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

static void quorum_gate_count_acks(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    uint64_t acks[ELECTION_NODES_MAX];
    int64_t sent_ms[ELECTION_NODES_MAX];
    uint32_t count = 0, replicas = (uint32_t)settings->sync_replicas;
    for (const struct replica *replica = replication_of(quorum)->replicas;
         replica != NULL && count < ELECTION_NODES_MAX; replica = replica->next) {
        if (quorum_gate_counts(replica)) {
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
    quorum_gate_note_held(quorum, is_progress);
}

int64_t quorum_probe_period_ms(const struct quorum *quorum) {
    int64_t lease_ms = settings_of(quorum)->sync_replicas_lease_ms;
    int64_t period_ms = lease_ms > 0 ? lease_ms / PROBES_PER_LEASE : PROBE_MS_MAX;
    return period_ms < 1 ? 1 : period_ms < PROBE_MS_MAX ? period_ms : PROBE_MS_MAX;
}

static struct wire_probe quorum_gate_make_probe(const struct quorum *quorum) {
    return (struct wire_probe){
        .last_group = quorum_last_group(quorum),
        .number = (uint64_t)now_ms(quorum),
        .lease_ms = (uint64_t)settings_of(quorum)->sync_replicas_lease_ms,
    };
}

void quorum_step_open(struct quorum *quorum) {
    int64_t now = now_ms(quorum);
    quorum_gate_count_acks(quorum);
    bool is_due = now - quorum->probed_ms >= quorum_probe_period_ms(quorum);
    struct wire_probe probe = quorum_gate_make_probe(quorum);
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
