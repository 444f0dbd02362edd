/* Terms as text. See term.h. */
#include "server/replication/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int term_compare(const struct term *a, const struct term *b) {
    return memcmp(a->text, b->text, TERM_SIZE);
}

int term_position_compare(const struct term_position *a, const struct term_position *b) {
    int by_term = term_compare(&a->term, &b->term);
    return by_term != 0 ? by_term : (a->group > b->group) - (a->group < b->group);
}

/* The digits are valid: term_parse and term_next see to it. */
static uint64_t term_read_digits(const char *at, int count) {
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        value = value << 4 | (uint64_t)bytes_hex_value(at[i]);
    }
    return value;
}

uint64_t term_counter(const struct term *term) {
    return term_read_digits(term->text, TERM_COUNTER_SIZE);
}

bool term_next(const struct term *highest, uint64_t node, uint64_t random, struct term *next) {
    uint64_t counter = term_counter(highest);
    if (counter == TERM_COUNTER_MAX) {
        return false;
    }
    random &= (UINT64_C(1) << (4 * TERM_RANDOM_SIZE)) - 1;
    snprintf(next->text, sizeof next->text, "%012" PRIx64 "%016" PRIx64 "%012" PRIx64, counter + 1,
             node, random);
    return true;
}

static bool term_is_hex(struct bytes text) {
    for (size_t i = 0; i < text.size; i++) {
        char digit = text.at[i];
        if ((digit < '0' || digit > '9') && (digit < 'a' || digit > 'f')) {
            return false;
        }
    }
    return true;
}

bool term_parse_node(struct bytes text, uint64_t *node) {
    if (text.size != TERM_NODE_SIZE || !term_is_hex(text)) {
        return false;
    }
    *node = term_read_digits(text.at, TERM_NODE_SIZE);
    return true;
}

bool term_parse(struct bytes text, struct term *term) {
    if (text.size != TERM_SIZE || !term_is_hex(text)) {
        return false;
    }
    memcpy(term->text, text.at, TERM_SIZE);
    term->text[TERM_SIZE] = '\0';
    return true;
}

/* ---- decisions ---- */

enum {
    /* By how much two monotonic clocks may drift apart: a tenth is far more than any oscillator. */
    DRIFT_DIVISOR = 10,
};

uint32_t term_votes_needed(uint32_t nodes, uint32_t replicas) {
    CHECK(replicas < nodes);
    return nodes - replicas;
}

bool term_may_vote(const struct term *term, const struct term *voted, bool has_lost_durability,
                   bool is_released, uint64_t group, int64_t now_ms, int64_t held_until_ms) {
    return (!has_lost_durability || is_released || group == 0) && term_compare(term, voted) >= 0 &&
           now_ms >= held_until_ms;
}

bool term_may_take(const struct term *term, const struct term *voted) {
    return term_compare(term, voted) >= 0;
}

bool term_may_ack(const struct term *term, const struct term *voted, bool has_lost_durability) {
    return term_compare(term, voted) == 0 && !has_lost_durability;
}

/* The k-th greatest, k from 1. There are a few of them: counted, not sorted. 0: there are fewer. */
static uint64_t term_kth_greatest(const uint64_t *values, uint32_t count, uint32_t k) {
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

uint64_t term_safe_group(uint64_t disk_group, const uint64_t *acks, uint32_t count,
                         uint32_t replicas, uint64_t mark_group) {
    uint64_t acked = replicas > 0 ? term_kth_greatest(acks, count, replicas) : UINT64_MAX;
    uint64_t group = acked < disk_group ? acked : disk_group;
    return group >= mark_group ? group : 0;
}

bool term_all_count(bool has_lost_durability, bool is_released, uint32_t released_count,
                    uint32_t vote_count, uint32_t nodes) {
    return 1 + vote_count >= nodes && (is_released || (!has_lost_durability && released_count > 0));
}

bool term_may_open(const struct term_position *position, const struct term_position *voted,
                   uint32_t count, uint32_t nodes, uint32_t replicas, bool has_lost_durability,
                   int64_t now_ms, int64_t held_until_ms) {
    if (has_lost_durability || now_ms < held_until_ms ||
        1 + count < term_votes_needed(nodes, replicas)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (term_position_compare(&voted[i], position) > 0) {
            return false;
        }
    }
    return true;
}

bool term_may_begin(uint64_t group, bool has_lost_durability, uint32_t empty_count, uint32_t nodes,
                    int64_t now_ms, int64_t held_until_ms) {
    return has_lost_durability && group == 0 && 1 + empty_count >= nodes && now_ms >= held_until_ms;
}

int64_t term_lease_end(const int64_t *sent_ms, uint32_t count, uint32_t replicas,
                       int64_t lease_ms) {
    uint64_t sent[TERM_NODES_MAX];
    CHECK(count <= TERM_NODES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        sent[i] = (uint64_t)sent_ms[i];
    }
    uint64_t newest = replicas > 0 ? term_kth_greatest(sent, count, replicas) : 0;
    return newest > 0 ? (int64_t)newest + lease_ms : 0;
}

int64_t term_hold_end(int64_t answered_ms, int64_t lease_ms) {
    return answered_ms + lease_ms + lease_ms / DRIFT_DIVISOR + 1;
}
