/* Of a replica: what its master answers, and what it may acknowledge. See quorum.h. */
#include "server/replication/quorum_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/system/log.h"

void quorum_begin_link(struct quorum *quorum) {
    const struct term none = TERM_NONE;
    quorum->master_term = none;
    quorum->fill_group = 0;
    quorum->probe = 0;
    quorum->probe_lease_ms = 0;
    quorum->owes_probe = false;
}

/* "OPEN <term>": with this word, and a term behind it? */
static bool quorum_replica_has_word(struct bytes answer, const char *word, struct term *term) {
    size_t size = strlen(word);
    return answer.size == size + TERM_SIZE && memcmp(answer.at, word, size) == 0 &&
           term_parse((struct bytes){.at = answer.at + size, .size = TERM_SIZE}, term);
}

static enum quorum_advice quorum_replica_take_open(struct quorum *quorum, const struct term *term,
                                                   char *reason) {
    if (!election_may_take(term, &quorum->wanted.promised)) {
        snprintf(reason, REPLICATION_ERROR_MAX,
                 "the master is of an older term than this server has promised: %s", term->text);
        return QUORUM_REFUSES;
    }
    quorum_promise(quorum, term);
    if (!quorum_has_promised(quorum, term)) {
        return QUORUM_WAIT; /* for the disk */
    }
    quorum->master_term = *term;
    return QUORUM_GO_ON;
}

static void quorum_replica_prepare(struct quorum *quorum, const struct term *term) {
    if (election_may_promise(term, &quorum->wanted.promised, sync_of(quorum)->has_forgotten,
                             quorum_last_group(quorum), now_ms(quorum), quorum->held_until_ms)) {
        quorum_promise(quorum, term);
    }
}

enum quorum_advice quorum_take_answer(struct quorum *quorum, struct bytes answer, char *reason) {
    struct term term;
    const struct term none = TERM_NONE;
    if (quorum_replica_has_word(answer, "+OPEN ", &term)) {
        return quorum_replica_take_open(quorum, &term, reason);
    }
    if (quorum_replica_has_word(answer, "+PREPARE ", &term)) {
        quorum_replica_prepare(quorum, &term);
        return QUORUM_WAIT;
    }
    if (bytes_equal(answer, BYTES("+CLOSED"))) {
        return QUORUM_WAIT;
    }
    if (bytes_equal(answer, BYTES("+OFF"))) {
        if (term_compare(&quorum->wanted.promised, &none) == 0) {
            return QUORUM_GO_ON; /* it has never taken part: the settings are being changed */
        }
        snprintf(reason, REPLICATION_ERROR_MAX,
                 "the master has sync-replicas 0, and this server has promised terms: the setting "
                 "must be the same on all");
        return QUORUM_REFUSES;
    }
    snprintf(reason, REPLICATION_ERROR_MAX, "the master answers PRESENT: %s",
             log_quote(answer).text);
    return QUORUM_REFUSES;
}

bool quorum_may_take(const struct quorum *quorum, struct bytes id) {
    struct term term;
    return sync_is_closed(sync_of(quorum)) || term_is_none(&quorum->master_term) ||
           (term_parse(id, &term) && term_compare(&term, &quorum->master_term) == 0);
}

void quorum_take_ping(struct quorum *quorum, const struct wire_probe *probe) {
    if (quorum->fill_group == 0) {
        quorum->fill_group = probe->last_group;
    }
    quorum->probe = probe->number;
    quorum->probe_lease_ms =
        probe->lease_ms <= ELECTION_LEASE_MAX_MS ? (int64_t)probe->lease_ms : ELECTION_LEASE_MAX_MS;
}

/* It has all that the master had when the link was new, and will not forget it again. */
static void quorum_replica_fill(struct quorum *quorum) {
    if (sync_of(quorum)->has_forgotten && quorum->fill_group > 0 &&
        quorum_kept_group(quorum) >= quorum->fill_group) {
        quorum_set_forgotten(quorum, false);
        quorum_save(quorum);
        log_write(LOG_NOTICE, "quorum: filled group=%" PRIu64, quorum_kept_group(quorum));
    }
}

void quorum_doubt(struct quorum *quorum) {
    quorum_set_forgotten(quorum, true);
    quorum_save(quorum);
}

bool quorum_owes_ack(const struct quorum *quorum, uint64_t acked) {
    return quorum_kept_group(quorum) > acked;
}

bool quorum_owes_probe(const struct quorum *quorum) {
    return quorum->owes_probe && quorum->probe_lease_ms <= quorum->saved.lease_ms;
}

void quorum_end_hold(struct quorum *quorum, struct bytes id) {
    struct term term;
    if (term_parse(id, &term) && term_compare(&term, &quorum->master_term) == 0) {
        quorum->held_until_ms = 0;
    }
}

bool quorum_acknowledge(struct quorum *quorum, uint64_t *kept, uint64_t *probe) {
    *kept = quorum_kept_group(quorum);
    *probe = 0;
    quorum->owes_probe = false;
    if (sync_of(quorum)->state != SYNC_REPLICA || term_is_none(&quorum->master_term)) {
        return false;
    }
    quorum_replica_fill(quorum);
    if (!election_may_ack(&quorum->master_term, &quorum->wanted.promised,
                          sync_of(quorum)->has_forgotten) ||
        !quorum_has_promised(quorum, &quorum->master_term)) {
        return false;
    }
    if (quorum->probe_lease_ms > quorum->wanted.lease_ms) {
        quorum->wanted.lease_ms = quorum->probe_lease_ms;
        quorum_save(quorum);
    }
    quorum->owes_probe = quorum->probe_lease_ms > quorum->saved.lease_ms;
    if (!quorum->owes_probe) { /* a restart will wait for so long */
        int64_t held_ms = election_hold_end(now_ms(quorum), quorum->probe_lease_ms);
        quorum->held_until_ms = held_ms > quorum->held_until_ms ? held_ms : quorum->held_until_ms;
        *probe = quorum->probe;
    }
    return true;
}
