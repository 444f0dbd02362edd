/* See quorum.h.
 *
 * Names are those of the model (tests/model/protocol.py): promote, present, take_term, prepare, promise,
 * keep_promise, pull, open, take, fill, acknowledge, probe. */
#include "server/replication/quorum.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/durability/persistence.h"
#include "server/replication/history.h"
#include "server/system/digest.h"
#include "server/system/log.h"

enum {
    PULL_MS = 5000, /* who has promised is given up as a source when so long nothing is whole */
    SAVE_RETRY_MS = 1000, /* after the file of promises could not be written */
    PROBES_PER_LEASE = 4,
    PROBE_MS_MAX =
        1000, /* between two probes; without a lease they say only how far the master is */
};

static struct replication *replication_of(const struct quorum *quorum) {
    return &quorum->server->replication;
}
static struct sync *sync_of(const struct quorum *quorum) {
    return &quorum->server->replication.sync;
}
static const struct settings *settings_of(const struct quorum *quorum) {
    return &quorum->server->settings;
}
static int64_t now_ms(void) {
    return (int64_t)(clock_monotonic_us() / 1000);
}

/* ---- states ---- */

enum quorum_event {
    QUORUM_BEGUN_AS_MASTER,
    QUORUM_BEGUN_AS_REPLICA,
    QUORUM_PROMOTED,
    QUORUM_TOOK_TERM,
    QUORUM_PULLS,
    QUORUM_PULLED,
    QUORUM_OPENED,
    QUORUM_FOLLOWS,
};

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

static void move(struct quorum *quorum, enum quorum_event event) {
    struct sync *sync = sync_of(quorum);
    const struct transition *row = transitions;
    while (row->from != sync->state || row->event != event) {
        row++;
        CHECK(row < transitions + TRANSITIONS);
    }
    log_write(LOG_DEBUG, "quorum: %s", row->text);
    sync->state = row->to;
}

/* ---- the file of promises ---- */

static bool is_same(const struct promise *a, const struct promise *b) {
    return a->node == b->node && term_compare(&a->promised, &b->promised) == 0 &&
           a->left == b->left && a->group == b->group && a->lease_ms == b->lease_ms &&
           memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

static void run_save(void *context) {
    struct quorum *quorum = context;
    quorum->is_save_failed = !promise_save(quorum->directory, &quorum->saving);
}

static void on_saved(void *context) {
    struct quorum *quorum = context;
    if (quorum->is_save_failed) {
        quorum->retry_ms = now_ms() + SAVE_RETRY_MS;
        log_write(LOG_WARNING, "quorum: %s/leaderboard.promise cannot be written: tried again",
                  quorum->directory);
    } else {
        quorum->saved = quorum->saving;
        sync_of(quorum)->promised = quorum->saved.promised;
    }
    quorum->host.wake(quorum->host.context);
}

/* Everything that counts looks at `saved`. */
static void save(struct quorum *quorum) {
    if (!quorum->worker.is_busy && !is_same(&quorum->wanted, &quorum->saved) &&
        now_ms() >= quorum->retry_ms) {
        quorum->saving = quorum->wanted;
        worker_start(&quorum->worker, run_save);
    }
}

static void promise(struct quorum *quorum, const struct term *term) {
    if (term_compare(term, &quorum->wanted.promised) > 0) {
        quorum->wanted.promised = *term;
        save(quorum);
    }
}

static bool has_promised(const struct quorum *quorum, const struct term *term) {
    return term_compare(&quorum->saved.promised, term) == 0 &&
           term_compare(&quorum->wanted.promised, term) == 0;
}

/* ---- what it has ---- */

static uint64_t last_group(const struct quorum *quorum) {
    return persistence_last_group(quorum->server->persistence);
}

static struct term_position position_of(const struct quorum *quorum) {
    struct history history;
    struct term_position position = {.term = TERM_NONE, .group = last_group(quorum)};
    if (history_read(quorum->server->registry, &history)) {
        memcpy(position.term.text, history.id, sizeof history.id);
    }
    return position;
}

static void set_forgotten(struct quorum *quorum, bool has_forgotten) {
    static const char no_boot[] = "------------------------------------";
    _Static_assert(sizeof no_boot == PROMISE_BOOT_SIZE + 1, "as long as a boot");
    bool is_durable = settings_of(quorum)->sync_replicas_fsync && !has_forgotten;
    sync_of(quorum)->has_forgotten = has_forgotten;
    replication_of(quorum)->is_priority_zero = has_forgotten;
    quorum->wanted.left = is_durable ? PROMISE_LEFT_DURABLE : PROMISE_LEFT_CRASHED;
    quorum->wanted.group = 0;
    /* Who has forgotten has, whatever happens, until it is filled. */
    memcpy(quorum->wanted.boot, has_forgotten ? no_boot : quorum->boot, sizeof no_boot);
}

void quorum_describe(const struct quorum *quorum, struct sync_presented *said) {
    *said = (struct sync_presented){
        .node = quorum->saved.node,
        .promised = quorum->saved.promised,
        .position = position_of(quorum),
        .has_forgotten = sync_of(quorum)->has_forgotten,
    };
}

/* ---- a master without promises ---- */

static bool may_ever_open(const struct quorum *quorum) {
    return !sync_of(quorum)->has_forgotten || last_group(quorum) == 0;
}

static uint64_t random_number(void) {
    char digits[TERM_NODE_SIZE];
    uint64_t number = 0;
    digest_random(digits, sizeof digits);
    for (size_t i = 0; i < sizeof digits; i++) {
        number =
            number << 4 | (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : digits[i] - 'a' + 10);
    }
    return number;
}

/* A term above all that are known; closed until it is promised. */
static void take_term(struct quorum *quorum, const struct term *highest) {
    struct sync *sync = sync_of(quorum);
    struct term_position position = position_of(quorum);
    const struct term *above = highest;
    const uint64_t random = random_number();
    quorum->peer_count = 0;
    sync->promise_count = 0;
    sync->term = TERM_NONE;
    if (!may_ever_open(quorum)) {
        log_write(LOG_WARNING,
                  "quorum: this server is to be master, and may have forgotten what it has "
                  "acknowledged: it stays closed until it is made a replica, and filled");
        return;
    }
    above = term_compare(&quorum->wanted.promised, above) > 0 ? &quorum->wanted.promised : above;
    above = term_compare(&position.term, above) > 0 ? &position.term : above;
    if (!term_next(above, quorum->saved.node, random, &sync->term)) {
        log_write(LOG_WARNING, "quorum: no term is above %s: this server cannot open", above->text);
        sync->term = TERM_NONE;
        return;
    }
    promise(quorum, &sync->term);
    log_write(LOG_NOTICE,
              "quorum: closed, and asks for promises term=%s promises=%u group=%" PRIu64 "%s",
              sync->term.text, sync->promises_needed, position.group,
              sync->has_forgotten ? " may-have-forgotten=yes" : "");
}

static void end_pull(struct quorum *quorum) {
    if (sync_of(quorum)->state == SYNC_PULLING) {
        quorum->host.end_pull(quorum->host.context);
    }
}

void quorum_promote(struct quorum *quorum) {
    const struct term none = TERM_NONE;
    if (sync_of(quorum)->state == SYNC_OFF) {
        return; /* quorum_begin looks at the role */
    }
    move(quorum, QUORUM_PROMOTED);
    take_term(quorum, &none);
}

/* Somebody has promised more than this master's term. */
static void take_greater_term(struct quorum *quorum, const struct term *promised) {
    bool was_open = sync_of(quorum)->state == SYNC_OPEN;
    end_pull(quorum);
    move(quorum, QUORUM_TOOK_TERM);
    if (was_open) {
        quorum->host.close(quorum->host.context);
    }
    take_term(quorum, promised);
    quorum->host.drop_replicas(quorum->host.context, "a new term begins");
}

void quorum_follow(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    if (sync->state == SYNC_OFF) {
        return;
    }
    end_pull(quorum);
    /* What waits for replicas in a term that is over is never safe in it. */
    sync->has_lost_answers = sync->state == SYNC_OPEN;
    move(quorum, QUORUM_FOLLOWS);
    sync->safe_group = 0;
    quorum->peer_count = 0;
}

/* ---- promises of others ---- */

static struct quorum_peer *find_peer(struct quorum *quorum, uint64_t node) {
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        if (quorum->peers[i].said.node == node) {
            return &quorum->peers[i];
        }
    }
    return NULL;
}

static void forget_peer(struct quorum *quorum, uint64_t node) {
    struct quorum_peer *peer = find_peer(quorum, node);
    if (peer != NULL) {
        *peer = quorum->peers[--quorum->peer_count];
    }
}

static void keep_promise(struct quorum *quorum, const struct replica *replica,
                         const struct sync_presented *said) {
    struct quorum_peer *peer = find_peer(quorum, said->node);
    if (peer == NULL) {
        if (quorum->peer_count + 1 >= (uint32_t)settings_of(quorum)->replication_nodes) {
            log_write(LOG_WARNING,
                      "quorum: more servers than replication-nodes: the promise of %016" PRIx64
                      " does not count",
                      said->node);
            return;
        }
        peer = &quorum->peers[quorum->peer_count++];
        log_write(LOG_NOTICE, "quorum: promise node=%016" PRIx64 " term=%s group=%" PRIu64 "%s",
                  said->node, sync_of(quorum)->term.text, said->position.group,
                  said->has_forgotten ? " may-have-forgotten=yes" : "");
    }
    peer->said = *said;
    replication_print_address(replica, peer->host);
    peer->port = replica->port;
}

/* What those that have forgotten nothing have; how many others have nothing at all. */
static uint32_t count_promises(const struct quorum *quorum,
                               struct term_position positions[ELECTION_NODES_MAX],
                               const struct quorum_peer **best, uint32_t *empty_count) {
    uint32_t count = 0;
    *best = NULL;
    *empty_count = 0;
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        const struct quorum_peer *peer = &quorum->peers[i];
        if (peer->said.has_forgotten) {
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

static void pull(struct quorum *quorum, const struct quorum_peer *best) {
    quorum->target = best->said.position;
    quorum->pulled_node = best->said.node;
    quorum->pull_until_ms = now_ms() + PULL_MS;
    log_write(LOG_NOTICE,
              "quorum: pulls what is missing of node=%016" PRIx64 " \"%s %u\" term=%s "
              "group=%" PRIu64,
              best->said.node, best->host, (unsigned)best->port, best->said.position.term.text,
              best->said.position.group);
    sync_of(quorum)->has_lost_answers = true; /* a copy may replace what they wait for */
    move(quorum, QUORUM_PULLS);
    quorum->host.pull(quorum->host.context, best->host, best->port);
}

static void open_term(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    uint64_t group = last_group(quorum);
    if (!quorum->host.open(quorum->host.context, &sync->term)) {
        return; /* no memory: tried again with the next tick */
    }
    move(quorum, QUORUM_OPENED);
    sync->safe_group = 0;
    sync->lease_end_ms = 0;
    sync->has_lease = settings_of(quorum)->sync_replicas_lease_ms > 0;
    quorum->probed_ms = 0;
    if (sync->has_forgotten) { /* it had nothing, as all others: they begin together */
        set_forgotten(quorum, false);
        save(quorum);
    }
    log_write(LOG_NOTICE, "quorum: open term=%s group=%" PRIu64, sync->term.text, group);
}

static void step_closed(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    struct term_position positions[ELECTION_NODES_MAX], own = position_of(quorum);
    const struct quorum_peer *best;
    uint32_t empty_count, nodes = (uint32_t)settings->replication_nodes;
    uint32_t replicas = (uint32_t)settings->sync_replicas;
    sync->promise_count = count_promises(quorum, positions, &best, &empty_count);
    if (term_is_none(&sync->term) || !has_promised(quorum, &sync->term)) {
        return;
    }
    bool is_enough = 1 + sync->promise_count >= election_promises_needed(nodes, replicas);
    if (is_enough && !sync->has_forgotten && best != NULL &&
        term_position_compare(&best->said.position, &own) > 0) {
        pull(quorum, best);
        return;
    }
    int64_t now = now_ms();
    if (election_may_open(&own, positions, sync->promise_count, nodes, replicas,
                          sync->has_forgotten, now, quorum->held_until_ms) ||
        election_may_begin(own.group, sync->has_forgotten, empty_count, nodes, now,
                           quorum->held_until_ms)) {
        open_term(quorum);
    }
}

static void step_pulling(struct quorum *quorum) {
    struct term_position own = position_of(quorum);
    bool is_whole = term_position_compare(&own, &quorum->target) >= 0;
    if (!is_whole && now_ms() < quorum->pull_until_ms) {
        return;
    }
    quorum->host.end_pull(quorum->host.context);
    if (!is_whole) {
        log_write(LOG_WARNING, "quorum: what is missing did not come of node=%016" PRIx64,
                  quorum->pulled_node);
        forget_peer(quorum, quorum->pulled_node);
    }
    move(quorum, QUORUM_PULLED);
}

/* ---- open ---- */

/* A node has one connection that counts: the latest. */
static bool counts(const struct replica *replica) {
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

static void count_acks(struct quorum *quorum) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    uint64_t acks[ELECTION_NODES_MAX];
    int64_t sent_ms[ELECTION_NODES_MAX];
    uint32_t count = 0, replicas = (uint32_t)settings->sync_replicas;
    for (const struct replica *replica = replication_of(quorum)->replicas;
         replica != NULL && count < ELECTION_NODES_MAX; replica = replica->next) {
        if (counts(replica)) {
            acks[count] = replica->sync_group;
            sent_ms[count++] = replica->answered_ms;
        }
    }
    uint64_t safe_group = election_safe_group(UINT64_MAX, acks, count, replicas);
    sync->safe_group = safe_group > sync->safe_group ? safe_group : sync->safe_group;
    int64_t lease_end_ms =
        election_lease_end(sent_ms, count, replicas, settings->sync_replicas_lease_ms);
    sync->lease_end_ms = lease_end_ms > sync->lease_end_ms ? lease_end_ms : sync->lease_end_ms;
}

static int64_t probe_period_ms(const struct quorum *quorum) {
    int64_t lease_ms = settings_of(quorum)->sync_replicas_lease_ms;
    int64_t period_ms = lease_ms > 0 ? lease_ms / PROBES_PER_LEASE : PROBE_MS_MAX;
    return period_ms < 1 ? 1 : period_ms < PROBE_MS_MAX ? period_ms : PROBE_MS_MAX;
}

static struct wire_probe make_probe(const struct quorum *quorum) {
    return (struct wire_probe){
        .last_group = last_group(quorum),
        .number = (uint64_t)now_ms(),
        .lease_ms = (uint64_t)settings_of(quorum)->sync_replicas_lease_ms,
    };
}

static void step_open(struct quorum *quorum) {
    int64_t now = now_ms();
    count_acks(quorum);
    bool is_due = now - quorum->probed_ms >= probe_period_ms(quorum);
    struct wire_probe probe = make_probe(quorum);
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

static int64_t find_due_ms(const struct quorum *quorum) {
    if (!quorum->worker.is_busy && !is_same(&quorum->wanted, &quorum->saved)) {
        return quorum->retry_ms;
    }
    switch (sync_of(quorum)->state) {
    case SYNC_OPEN:
        return quorum->probed_ms + probe_period_ms(quorum);
    case SYNC_CLOSED:
        return quorum->held_until_ms > now_ms() ? quorum->held_until_ms : INT64_MAX;
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
    save(quorum);
    if (sync_of(quorum)->state == SYNC_PULLING) {
        step_pulling(quorum);
    }
    if (sync_of(quorum)->state == SYNC_CLOSED) {
        step_closed(quorum);
    }
}

static void on_timer(uv_timer_t *timer) {
    struct quorum *quorum = timer->data;
    quorum->timer_ms = INT64_MAX;
    quorum->host.wake(quorum->host.context);
}

void quorum_end_tick(struct quorum *quorum) {
    if (sync_of(quorum)->state == SYNC_OPEN) {
        step_open(quorum);
    }
    int64_t due_ms = find_due_ms(quorum);
    if (due_ms != INT64_MAX && due_ms != quorum->timer_ms) {
        int64_t left_ms = due_ms - now_ms();
        quorum->timer_ms = due_ms;
        uv_update_time(quorum->timer.loop);
        (void)uv_timer_start(&quorum->timer, on_timer, left_ms > 0 ? (uint64_t)left_ms : 1, 0);
    }
}

/* ---- what a master is told ---- */

static void answer_term(struct reply *reply, const char *word, const struct term *term) {
    char text[sizeof "PREPARE " + TERM_SIZE];
    snprintf(text, sizeof text, "%s %s", word, term->text);
    reply_simple(reply, text);
}

void quorum_take_present(struct quorum *quorum, struct replica *replica,
                         const struct sync_presented *said, struct reply *reply) {
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
    if (!may_ever_open(quorum)) {
        reply_error(reply,
                    "NOMASTERLINK this server may have forgotten what it has acknowledged, and "
                    "will not open");
        return;
    }
    if (term_compare(&said->promised, &sync->term) > 0) {
        take_greater_term(quorum, &said->promised);
    }
    if (sync->state == SYNC_OPEN) {
        replica->is_counted = true;
        replica->is_probed = false;
        replica->sync_group = 0;
        replica->answered_ms = 0;
        answer_term(reply, "OPEN", &sync->term);
    } else if (term_compare(&said->promised, &sync->term) == 0) {
        keep_promise(quorum, replica, said);
        reply_simple(reply, "CLOSED");
        quorum->host.wake(quorum->host.context);
    } else {
        answer_term(reply, "PREPARE", &sync->term);
    }
}

const char *quorum_find_sync_refusal(const struct quorum *quorum, bool is_pulling,
                                     const struct term *term) {
    const struct sync *sync = sync_of(quorum);
    if (is_pulling) {
        return sync->state == SYNC_REPLICA && has_promised(quorum, term)
                   ? NULL
                   : "NOMASTERLINK that term is not promised here";
    }
    return sync_is_closed(sync) ? "NOMASTERLINK this server is not open yet: it waits for promises"
                                : NULL;
}

void quorum_take_ack(struct quorum *quorum, struct replica *replica, uint64_t acked,
                     uint64_t probe) {
    int64_t now = now_ms();
    if (!replica->is_counted) {
        return;
    }
    if (acked > replica->sync_group && acked <= last_group(quorum)) {
        replica->sync_group = acked;
    }
    if (probe <= (uint64_t)now && (int64_t)probe > replica->answered_ms) {
        replica->answered_ms = (int64_t)probe;
    }
}

/* ---- a replica ---- */

void quorum_begin_link(struct quorum *quorum) {
    const struct term none = TERM_NONE;
    quorum->master_term = none;
    quorum->fill_group = 0;
    quorum->probe = 0;
    quorum->probe_lease_ms = 0;
}

/* "OPEN <term>": with this word, and a term behind it? */
static bool has_word(struct bytes answer, const char *word, struct term *term) {
    size_t size = strlen(word);
    return answer.size == size + TERM_SIZE && memcmp(answer.at, word, size) == 0 &&
           term_parse((struct bytes){.at = answer.at + size, .size = TERM_SIZE}, term);
}

static enum quorum_advice take_open(struct quorum *quorum, const struct term *term, char *reason) {
    if (!election_may_take(term, &quorum->wanted.promised)) {
        snprintf(reason, REPLICATION_ERROR_MAX,
                 "the master is of an older term than this server has promised: %s", term->text);
        return QUORUM_REFUSES;
    }
    promise(quorum, term);
    if (!has_promised(quorum, term)) {
        return QUORUM_WAIT; /* for the disk */
    }
    quorum->master_term = *term;
    return QUORUM_GO_ON;
}

static void prepare(struct quorum *quorum, const struct term *term) {
    if (election_may_promise(term, &quorum->wanted.promised, sync_of(quorum)->has_forgotten,
                             last_group(quorum), now_ms(), quorum->held_until_ms)) {
        promise(quorum, term);
    }
}

enum quorum_advice quorum_take_answer(struct quorum *quorum, struct bytes answer, char *reason) {
    struct term term;
    const struct term none = TERM_NONE;
    if (has_word(answer, "+OPEN ", &term)) {
        return take_open(quorum, &term, reason);
    }
    if (has_word(answer, "+PREPARE ", &term)) {
        prepare(quorum, &term);
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

/* It has all that the master had when the link was new. */
static void fill(struct quorum *quorum) {
    if (sync_of(quorum)->has_forgotten && quorum->fill_group > 0 &&
        replication_of(quorum)->group >= quorum->fill_group) {
        set_forgotten(quorum, false);
        save(quorum);
        log_write(LOG_NOTICE, "quorum: filled group=%" PRIu64, replication_of(quorum)->group);
    }
}

void quorum_doubt(struct quorum *quorum) {
    set_forgotten(quorum, true);
    save(quorum);
}

bool quorum_acknowledge(struct quorum *quorum, uint64_t *probe) {
    *probe = 0;
    if (sync_of(quorum)->state != SYNC_REPLICA || term_is_none(&quorum->master_term)) {
        return false;
    }
    fill(quorum);
    if (!election_may_ack(&quorum->master_term, &quorum->wanted.promised,
                          sync_of(quorum)->has_forgotten) ||
        !has_promised(quorum, &quorum->master_term)) {
        return false;
    }
    if (quorum->probe_lease_ms > quorum->wanted.lease_ms) {
        quorum->wanted.lease_ms = quorum->probe_lease_ms;
        save(quorum);
    }
    if (quorum->probe_lease_ms <= quorum->saved.lease_ms) { /* a restart will wait for so long */
        int64_t held_ms = election_hold_end(now_ms(), quorum->probe_lease_ms);
        quorum->held_until_ms = held_ms > quorum->held_until_ms ? held_ms : quorum->held_until_ms;
        *probe = quorum->probe;
    }
    return true;
}

/* ---- the start and the end ---- */

struct quorum *quorum_create(struct server *server, uv_loop_t *loop, const struct quorum_host *host,
                             char *error) {
    char path[PATH_MAX], absolute[PATH_MAX];
    const struct settings *settings = &server->settings;
    struct quorum *quorum = memory_allocate_zeroed(sizeof *quorum);
    snprintf(path, sizeof path, "%s/%s", settings->dir, settings->appenddirname);
    snprintf(error, DISK_ERROR_MAX, "out of memory");
    if (quorum == NULL) {
        return NULL;
    }
    quorum->server = server;
    quorum->host = *host;
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
    quorum->has_worker = quorum->directory != NULL && uv_timer_init(loop, &quorum->timer) == 0 &&
                         worker_init(&quorum->worker, loop, WORKER_AS_THE_LOOP, on_saved, quorum);
    if (!quorum->has_worker) {
        memory_free(quorum->directory);
        memory_free(quorum);
        return NULL;
    }
    uv_unref((uv_handle_t *)&quorum->timer);
    return quorum;
}

/* What it has may be less than what it has acknowledged: as far as the file says how it ended. */
static bool has_lost(const struct quorum *quorum) {
    switch (quorum->saved.left) {
    case PROMISE_LEFT_CLEAN:
        return quorum->saved.group != last_group(quorum);
    case PROMISE_LEFT_DURABLE:
        return false;
    case PROMISE_LEFT_CRASHED:
        return strcmp(quorum->saved.boot, quorum->boot) != 0;
    case PROMISE_LEFTS:
        break;
    }
    return true;
}

bool quorum_begin(struct quorum *quorum, char *error) {
    struct sync *sync = sync_of(quorum);
    const struct settings *settings = settings_of(quorum);
    const struct term none = TERM_NONE;
    struct term_position position = position_of(quorum);
    promise_read_boot(quorum->boot);
    enum promise_status status = promise_load(quorum->directory, &quorum->saved, error);
    bool has_forgotten = position.group == 0;
    if (status == PROMISE_DAMAGED || status == PROMISE_FAILED) {
        return false;
    }
    if (status == PROMISE_MISSING) {
        quorum->saved = (struct promise){.promised = none};
        while (quorum->saved.node == 0) {
            quorum->saved.node = random_number();
        }
    } else {
        has_forgotten = has_forgotten || has_lost(quorum);
    }
    quorum->wanted = quorum->saved;
    sync->node = quorum->saved.node;
    sync->promised = quorum->saved.promised;
    sync->promises_needed = election_promises_needed((uint32_t)settings->replication_nodes,
                                                     (uint32_t)settings->sync_replicas) -
                            1;
    if (quorum->saved.lease_ms > 0) { /* a master may still lean on it */
        quorum->held_until_ms = election_hold_end(now_ms(), quorum->saved.lease_ms);
    }
    set_forgotten(quorum, has_forgotten);
    if (!promise_save(quorum->directory, &quorum->wanted)) {
        snprintf(error, DISK_ERROR_MAX, "%.900s/leaderboard.promise cannot be written: %s",
                 quorum->directory, strerror(errno));
        return false;
    }
    quorum->saved = quorum->wanted;
    log_write(LOG_NOTICE, "quorum: node=%016" PRIx64 " promised=%s group=%" PRIu64 "%s", sync->node,
              sync->promised.text, position.group, has_forgotten ? " may-have-forgotten=yes" : "");
    if (replication_is_replica(replication_of(quorum))) {
        move(quorum, QUORUM_BEGUN_AS_REPLICA);
    } else {
        move(quorum, QUORUM_BEGUN_AS_MASTER);
        take_term(quorum, &none);
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
    if (quorum == NULL || sync_of(quorum)->state == SYNC_OFF || sync_of(quorum)->has_forgotten) {
        return;
    }
    quorum->wanted.left = PROMISE_LEFT_CLEAN;
    quorum->wanted.group = group;
    if (!promise_save(quorum->directory, &quorum->wanted)) {
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
