/* Of every node: what it has voted, which is on disk, and what it has; of a replica: what its
 * master answers, and what it may acknowledge. See quorum.h. */
#include "server/replication/quorum_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/history.h"
#include "server/system/digest.h"
#include "server/system/log.h"

/* After the file of votes could not be written; and how many such tries get one line in the log. */
enum { SAVE_RETRY_MS = 1000, SAVE_FAILURES_A_LINE = 600 };

/* ---- the file of votes ---- */

static bool quorum_node_is_same(const struct vote *a, const struct vote *b) {
    return a->node == b->node && term_compare(&a->voted, &b->voted) == 0 && a->left == b->left &&
           a->group == b->group && a->lease_ms == b->lease_ms &&
           memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

bool quorum_is_saved(const struct quorum *quorum) {
    return quorum_node_is_same(&quorum->wanted, &quorum->saved);
}

static void quorum_node_run_save(void *context) {
    struct quorum *quorum = context;
    quorum->is_save_failed = !vote_save(quorum->directory, &quorum->saving);
}

void quorum_on_saved(void *context) {
    struct quorum *quorum = context;
    if (quorum->is_save_failed) {
        quorum->retry_ms = now_ms(quorum) + SAVE_RETRY_MS;
        if (quorum->failure_count++ % SAVE_FAILURES_A_LINE == 0) {
            log_write(LOG_WARNING,
                      "quorum: %s/leaderboard.promise cannot be written: tried again each second "
                      "tries=%u",
                      quorum->directory, quorum->failure_count);
        }
    } else {
        if (quorum->failure_count > 0) {
            log_write(LOG_NOTICE, "quorum: %s/leaderboard.promise is written again",
                      quorum->directory);
        }
        quorum->failure_count = 0;
        quorum->saved = quorum->saving;
        sync_of(quorum)->voted = quorum->saved.voted;
    }
    replicator_wake(replicator_of(quorum));
}

void quorum_save(struct quorum *quorum) {
    if (!quorum->worker.is_busy && !quorum_is_saved(quorum) && now_ms(quorum) >= quorum->retry_ms) {
        quorum->saving = quorum->wanted;
        worker_start(&quorum->worker, quorum_node_run_save);
    }
}

void quorum_vote(struct quorum *quorum, const struct term *term) {
    if (term_compare(term, &quorum->wanted.voted) > 0) {
        quorum->wanted.voted = *term;
        quorum_save(quorum);
    }
}

bool quorum_has_voted(const struct quorum *quorum, const struct term *term) {
    return term_compare(&quorum->saved.voted, term) == 0 &&
           term_compare(&quorum->wanted.voted, term) == 0;
}

uint64_t quorum_random_number(void) {
    char digits[TERM_NODE_SIZE];
    uint64_t number;
    digest_random(digits, sizeof digits);
    CHECK(term_parse_node((struct bytes){.at = digits, .size = sizeof digits}, &number));
    return number;
}

/* ---- what it has ---- */

uint64_t quorum_last_group(const struct quorum *quorum) {
    return persistence_last_group(quorum->server->persistence);
}

uint64_t quorum_kept_group(const struct quorum *quorum) {
    const struct persistence *persistence = quorum->server->persistence;
    uint64_t group = replication_of(quorum)->group;
    uint64_t kept = settings_of(quorum)->sync_replicas_fsync
                        ? persistence_synced_group(persistence)
                        : persistence_written_group(persistence);
    return kept < group ? kept : group;
}

struct term_position quorum_position(const struct quorum *quorum) {
    struct history history;
    struct term_position position = {.term = TERM_NONE, .group = quorum_last_group(quorum)};
    if (history_read(quorum->server->registry, &history)) {
        memcpy(position.term.text, history.id, sizeof history.id);
    }
    return position;
}

void quorum_set_lost_durability(struct quorum *quorum, bool has_lost_durability) {
    static const char no_boot[] = "------------------------------------";
    _Static_assert(sizeof no_boot == VOTE_BOOT_SIZE + 1, "as long as a boot");
    bool is_durable = settings_of(quorum)->sync_replicas_fsync && !has_lost_durability;
    sync_of(quorum)->has_lost_durability = has_lost_durability;
    replication_of(quorum)->is_priority_zero = has_lost_durability;
    quorum->wanted.left = is_durable ? VOTE_LEFT_DURABLE : VOTE_LEFT_CRASHED;
    quorum->wanted.group = 0;
    /* Lost durability lasts, whatever happens, until the server is filled. */
    memcpy(quorum->wanted.boot, has_lost_durability ? no_boot : quorum->boot, sizeof no_boot);
}

void quorum_describe(const struct quorum *quorum, struct sync_registration *said) {
    *said = (struct sync_registration){
        .node = quorum->saved.node,
        .voted = quorum->saved.voted,
        .position = quorum_position(quorum),
        .has_lost_durability = sync_of(quorum)->has_lost_durability,
    };
}

/* ---- following a master ---- */

void quorum_begin_link(struct quorum *quorum) {
    quorum->master_term = TERM_NONE;
    quorum->fill_group = 0;
    quorum->probe = 0;
    quorum->probe_lease_ms = 0;
    quorum->owes_probe = false;
}

/* "OPEN <term>": with this word, and a term behind it? */
static bool quorum_node_has_word(struct bytes answer, const char *word, struct term *term) {
    size_t size = strlen(word);
    return answer.size == size + TERM_SIZE && memcmp(answer.at, word, size) == 0 &&
           term_parse((struct bytes){.at = answer.at + size, .size = TERM_SIZE}, term);
}

static enum quorum_advice quorum_node_take_open(struct quorum *quorum, const struct term *term,
                                                char *reason) {
    if (!election_may_take(term, &quorum->wanted.voted)) {
        snprintf(reason, REPLICATION_ERROR_MAX,
                 "the master is of an older term than this server has voted for: %s", term->text);
        return QUORUM_REFUSES;
    }
    quorum_vote(quorum, term);
    if (!quorum_has_voted(quorum, term)) {
        return QUORUM_WAIT; /* for the disk */
    }
    quorum->master_term = *term;
    return QUORUM_GO_ON;
}

static void quorum_node_prepare(struct quorum *quorum, const struct term *term) {
    if (election_may_vote(term, &quorum->wanted.voted, sync_of(quorum)->has_lost_durability,
                          quorum_last_group(quorum), now_ms(quorum), quorum->held_until_ms)) {
        quorum_vote(quorum, term);
    }
}

enum quorum_advice quorum_take_answer(struct quorum *quorum, struct bytes answer, char *reason) {
    struct term term;
    if (quorum_node_has_word(answer, "+OPEN ", &term)) {
        return quorum_node_take_open(quorum, &term, reason);
    }
    if (quorum_node_has_word(answer, "+PREPARE ", &term)) {
        quorum_node_prepare(quorum, &term);
        return QUORUM_WAIT;
    }
    if (bytes_equal(answer, BYTES("+CLOSED"))) {
        return QUORUM_WAIT;
    }
    if (bytes_equal(answer, BYTES("+OFF"))) {
        if (term_is_none(&quorum->wanted.voted)) {
            return QUORUM_GO_ON; /* it has never taken part: the settings are being changed */
        }
        snprintf(reason, REPLICATION_ERROR_MAX,
                 "the master has sync-replicas 0, and this server has voted for terms: the setting "
                 "must be the same on all");
        return QUORUM_REFUSES;
    }
    char text[REPLICATION_ERROR_MAX];
    snprintf(reason, REPLICATION_ERROR_MAX, "the master answers PRESENT: %s",
             log_quote_into(text, sizeof text, answer));
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
static void quorum_node_fill(struct quorum *quorum) {
    if (sync_of(quorum)->has_lost_durability && quorum->fill_group > 0 &&
        quorum_kept_group(quorum) >= quorum->fill_group) {
        quorum_set_lost_durability(quorum, false);
        quorum_save(quorum);
        log_write(LOG_NOTICE, "quorum: filled group=%" PRIu64, quorum_kept_group(quorum));
    }
}

void quorum_doubt(struct quorum *quorum) {
    quorum_set_lost_durability(quorum, true);
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
    quorum_node_fill(quorum);
    if (!election_may_ack(&quorum->master_term, &quorum->wanted.voted,
                          sync_of(quorum)->has_lost_durability) ||
        !quorum_has_voted(quorum, &quorum->master_term)) {
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
