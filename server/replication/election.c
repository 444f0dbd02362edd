/* See election.h. */
#include "server/replication/election.h"

enum {
    /* By how much two monotonic clocks may drift apart: a tenth is far more than any oscillator. */
    DRIFT_DIVISOR = 10,
};

uint32_t election_votes_needed(uint32_t nodes, uint32_t replicas) {
    CHECK(replicas < nodes);
    return nodes - replicas;
}

bool election_may_vote(const struct term *term, const struct term *voted, bool has_lost_durability,
                       uint64_t group, int64_t now_ms, int64_t held_until_ms) {
    return (!has_lost_durability || group == 0) && term_compare(term, voted) >= 0 &&
           now_ms >= held_until_ms;
}

bool election_may_take(const struct term *term, const struct term *voted) {
    return term_compare(term, voted) >= 0;
}

bool election_may_ack(const struct term *term, const struct term *voted, bool has_lost_durability) {
    return term_compare(term, voted) == 0 && !has_lost_durability;
}

/* The k-th greatest, k from 1. There are a few of them: counted, not sorted. 0: there are fewer. */
static uint64_t election_kth_greatest(const uint64_t *values, uint32_t count, uint32_t k) {
    uint64_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at_least = 0;
        for (uint32_t j = 0; j < count; j++) {
            at_least += values[j] >= values[i];
        }
        if (at_least >= k && values[i] > found) {
            found = values[i];
        }
    }
    return found;
}

uint64_t election_safe_group(uint64_t disk_group, const uint64_t *acks, uint32_t count,
                             uint32_t replicas, uint64_t mark_group) {
    uint64_t acked = replicas > 0 ? election_kth_greatest(acks, count, replicas) : UINT64_MAX;
    uint64_t group = acked < disk_group ? acked : disk_group;
    return group >= mark_group ? group : 0;
}

bool election_may_open(const struct term_position *position, const struct term_position *voted,
                       uint32_t count, uint32_t nodes, uint32_t replicas, bool has_lost_durability,
                       int64_t now_ms, int64_t held_until_ms) {
    if (has_lost_durability || now_ms < held_until_ms ||
        1 + count < election_votes_needed(nodes, replicas)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (term_position_compare(&voted[i], position) > 0) {
            return false;
        }
    }
    return true;
}

bool election_may_begin(uint64_t group, bool has_lost_durability, uint32_t empty_count,
                        uint32_t nodes, int64_t now_ms, int64_t held_until_ms) {
    return has_lost_durability && group == 0 && 1 + empty_count >= nodes && now_ms >= held_until_ms;
}

int64_t election_lease_end(const int64_t *sent_ms, uint32_t count, uint32_t replicas,
                           int64_t lease_ms) {
    uint64_t sent[ELECTION_NODES_MAX];
    CHECK(count <= ELECTION_NODES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        sent[i] = (uint64_t)sent_ms[i];
    }
    uint64_t newest = replicas > 0 ? election_kth_greatest(sent, count, replicas) : 0;
    return newest > 0 ? (int64_t)newest + lease_ms : 0;
}

int64_t election_hold_end(int64_t answered_ms, int64_t lease_ms) {
    return answered_ms + lease_ms + lease_ms / DRIFT_DIVISOR + 1;
}
