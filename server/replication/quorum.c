/* See quorum.h. Names are those of the model (tests/model/protocol.py): promote, present, take_term, prepare, vote,
 * keep_vote, pull, open, take, fill, acknowledge, probe. */
#include "server/replication/quorum.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "server/durability/persistence.h"
#include "server/durability/store.h"
#include "server/replication/replication.h"
#include "server/system/clock.h"
#include "server/system/digest.h"
#include "server/system/log.h"

#define NAME  "leaderboard.promise"
#define TITLE "leaderboard promise 1\n"

static const char *const left_names[VOTE_LEFTS] = {"crashed", "durable", "clean", "released"};

/* ---- the file of votes: as text ---- */

size_t quorum_vote_print(const struct vote *vote, char out[VOTE_TEXT_MAX]) {
    CHECK(vote->left < VOTE_LEFTS);
    int size = snprintf(out, VOTE_TEXT_MAX,
                        TITLE "node %016" PRIx64 "\npromised %s\nleft %s\nboot %s\ngroup %" PRIu64
                              "\nlease %" PRId64 "\n",
                        vote->node, vote->voted.text, left_names[vote->left], vote->boot,
                        vote->group, vote->lease_ms);
    CHECK(size > 0 && size < VOTE_TEXT_MAX - 32);
    return (size_t)size + (size_t)snprintf(out + size, (size_t)(VOTE_TEXT_MAX - size),
                                           "checksum %016" PRIx64 "\n",
                                           (uint64_t)XXH3_64bits(out, (size_t)size));
}

/* The value of the next line, which is to have this name. at NULL: it has not. */
static struct bytes quorum_vote_take_line(struct bytes *text, const char *name) {
    size_t name_size = strlen(name);
    const char *end = memchr(text->at, '\n', text->size);
    if (end == NULL || (size_t)(end - text->at) < name_size + 1 ||
        memcmp(text->at, name, name_size) != 0 || text->at[name_size] != ' ') {
        return (struct bytes){.at = NULL};
    }
    struct bytes value = {.at = text->at + name_size + 1,
                          .size = (size_t)(end - text->at) - name_size - 1};
    text->size -= (size_t)(end + 1 - text->at);
    text->at = end + 1;
    return value;
}

bool quorum_vote_parse(struct bytes text, struct vote *vote) {
    enum { TITLE_SIZE = sizeof TITLE - 1 };
    char printed[VOTE_TEXT_MAX];
    struct bytes rest = text;
    if (text.size < TITLE_SIZE || memcmp(text.at, TITLE, TITLE_SIZE) != 0) {
        return false;
    }
    rest.at += TITLE_SIZE;
    rest.size -= TITLE_SIZE;
    struct bytes node = quorum_vote_take_line(&rest, "node");
    struct bytes voted = quorum_vote_take_line(&rest, "promised");
    struct bytes left = quorum_vote_take_line(&rest, "left");
    struct bytes boot = quorum_vote_take_line(&rest, "boot");
    struct bytes group = quorum_vote_take_line(&rest, "group");
    struct bytes lease = quorum_vote_take_line(&rest, "lease");
    int way = 0;
    while (way < VOTE_LEFTS && !bytes_equal(left, bytes_from_text(left_names[way]))) {
        way++;
    }
    if (node.at == NULL || voted.at == NULL || left.at == NULL || boot.at == NULL ||
        boot.size != VOTE_BOOT_SIZE || group.at == NULL || lease.at == NULL ||
        !term_parse_node(node, &vote->node) || vote->node == 0 ||
        !term_parse(voted, &vote->voted) || way == VOTE_LEFTS ||
        !bytes_parse_u64(group, &vote->group) || !bytes_parse_i64(lease, &vote->lease_ms) ||
        vote->lease_ms < 0) {
        return false;
    }
    vote->left = (enum vote_left)way;
    memcpy(vote->boot, boot.at, VOTE_BOOT_SIZE);
    vote->boot[VOTE_BOOT_SIZE] = '\0';
    /* With its checksum it is what would be written for these values, and nothing else. */
    size_t size = quorum_vote_print(vote, printed);
    return bytes_equal(text, (struct bytes){.at = printed, .size = size});
}

void quorum_vote_read_boot(char boot[VOTE_BOOT_SIZE + 1]) {
    size_t size = 0;
    int fd = disk_open(AT_FDCWD, "/proc/sys/kernel/random/boot_id", O_RDONLY, 0);
    bool is_read = fd >= 0 && disk_read_all(fd, boot, VOTE_BOOT_SIZE, 0, &size) &&
                   size == VOTE_BOOT_SIZE && memchr(boot, '\n', size) == NULL;
    disk_close(fd);
    if (!is_read) {
        digest_random(boot, VOTE_BOOT_SIZE);
    }
    boot[VOTE_BOOT_SIZE] = '\0';
}

/* ---- the file of votes: on disk ---- */

static enum vote_status quorum_vote_file_fail(char *error, enum vote_status status,
                                              const char *directory, const char *reason) {
    snprintf(error, DISK_ERROR_MAX, "%.900s/" NAME ": %.900s", directory, reason);
    return status;
}

enum vote_status quorum_vote_load(const char *directory, struct vote *vote, char *error) {
    char text[VOTE_TEXT_MAX + 1];
    size_t size = 0;
    int folder = disk_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    int fd = folder >= 0 ? disk_open(folder, NAME, O_RDONLY, 0) : -1;
    bool is_read = fd >= 0 && disk_read_all(fd, text, sizeof text, 0, &size);
    int reason = errno;
    disk_close(fd);
    disk_close(folder);
    if (!is_read) {
        return quorum_vote_file_fail(error, reason == ENOENT ? VOTE_MISSING : VOTE_FAILED,
                                     directory, strerror(reason));
    }
    if (!quorum_vote_parse((struct bytes){.at = text, .size = size}, vote)) {
        return quorum_vote_file_fail(
            error, VOTE_DAMAGED, directory,
            "is damaged. Without it, it is not known which term this server has voted for: put a "
            "server with an empty directory in its place");
    }
    return VOTE_OK;
}

bool quorum_vote_save(const char *directory, const struct vote *vote) {
    char text[VOTE_TEXT_MAX];
    size_t size = quorum_vote_print(vote, text);
    int folder = disk_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0);
    bool is_saved = folder >= 0 && store_replace(folder, NAME, text, size) == STORE_SET;
    disk_close(folder);
    return is_saved;
}

static struct replication *quorum_replication(const struct quorum *quorum) {
    return &quorum->server->replication;
}

static struct replicator *quorum_replicator(const struct quorum *quorum) {
    return quorum->server->replication.replicator;
}

static struct sync *quorum_sync(const struct quorum *quorum) {
    return &quorum->server->replication.sync;
}

static const struct settings *quorum_settings(const struct quorum *quorum) {
    return &quorum->server->settings;
}

/* Leases and votes count by the clock that goes on while the machine is suspended. */
static int64_t quorum_now_ms(const struct quorum *quorum) {
    return clock_read_ms(&quorum->server->clock);
}

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

/* May a master open, some time? Not one that has lost durability. */
static bool quorum_may_ever_open(const struct quorum *quorum);
/* Somebody has voted for more than this master's term. */
static void quorum_take_greater_term(struct quorum *quorum, const struct term *voted);

/* After the file of votes could not be written; and how many such tries get one line in the log. */
enum { SAVE_RETRY_MS = 1000, SAVE_FAILURES_A_LINE = 600 };

/* ---- the file of votes: when it is saved ---- */

/* `saved` is what is wanted. */
static bool quorum_is_saved(const struct quorum *quorum) {
    const struct vote *a = &quorum->wanted, *b = &quorum->saved;
    return a->node == b->node && term_compare(&a->voted, &b->voted) == 0 && a->left == b->left &&
           a->group == b->group && a->lease_ms == b->lease_ms &&
           memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

static void quorum_run_save(void *context) {
    struct quorum *quorum = context;
    quorum->is_save_failed = !quorum_vote_save(quorum->directory, &quorum->saving);
}

/* The worker's end of it. */
static void quorum_on_saved(void *context) {
    struct quorum *quorum = context;
    if (quorum->is_save_failed) {
        quorum->retry_ms = quorum_now_ms(quorum) + SAVE_RETRY_MS;
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
        quorum_sync(quorum)->voted = quorum->saved.voted;
    }
    replicator_wake(quorum_replicator(quorum));
}

/* Write `wanted` to disk, unless that is going on. Everything that counts looks at `saved`. */
static void quorum_save(struct quorum *quorum) {
    if (!quorum->worker.is_busy && !quorum_is_saved(quorum) &&
        quorum_now_ms(quorum) >= quorum->retry_ms) {
        quorum->saving = quorum->wanted;
        worker_start(&quorum->worker, quorum_run_save);
    }
}

static void quorum_vote(struct quorum *quorum, const struct term *term) {
    if (term_compare(term, &quorum->wanted.voted) > 0) {
        quorum->wanted.voted = *term;
        quorum_save(quorum);
    }
}

/* It, and nothing greater; on disk. */
static bool quorum_has_voted(const struct quorum *quorum, const struct term *term) {
    return term_compare(&quorum->saved.voted, term) == 0 &&
           term_compare(&quorum->wanted.voted, term) == 0;
}

static uint64_t quorum_random_number(void) {
    char digits[TERM_NODE_SIZE];
    uint64_t number;
    digest_random(digits, sizeof digits);
    CHECK(term_parse_node((struct bytes){.at = digits, .size = sizeof digits}, &number));
    return number;
}

/* ---- what it has ---- */

static uint64_t quorum_last_group(const struct quorum *quorum) {
    return persistence_last_group(quorum->server->persistence);
}

/* Up to where it will still have it, whatever becomes of its process; with sync-replicas-fsync, of
 * its machine. */
static uint64_t quorum_kept_group(const struct quorum *quorum) {
    const struct persistence *persistence = quorum->server->persistence;
    uint64_t group = quorum_replication(quorum)->group;
    uint64_t kept = quorum_settings(quorum)->sync_replicas_fsync
                        ? persistence_synced_group(persistence)
                        : persistence_written_group(persistence);
    return kept < group ? kept : group;
}

static struct term_position quorum_position(const struct quorum *quorum) {
    struct history history;
    struct term_position position = {.term = TERM_NONE, .group = quorum_last_group(quorum)};
    if (replication_read_history(quorum->server->registry, &history)) {
        memcpy(position.term.text, history.id, sizeof history.id);
    }
    return position;
}

/* It has lost durability, or not any more: to be saved. is_released: and its promise was removed. */
static void quorum_set_lost_durability(struct quorum *quorum, bool has_lost_durability,
                                       bool is_released) {
    static const char no_boot[] = "------------------------------------";
    _Static_assert(sizeof no_boot == VOTE_BOOT_SIZE + 1, "as long as a boot");
    struct sync *sync = quorum_sync(quorum);
    const struct settings *settings = quorum_settings(quorum);
    uint32_t nodes = (uint32_t)settings->replication_nodes;
    bool is_durable = settings->sync_replicas_fsync && !has_lost_durability;
    sync->has_lost_durability = has_lost_durability;
    sync->is_released = is_released;
    sync->votes_needed = has_lost_durability
                             ? nodes - 1
                             : term_votes_needed(nodes, (uint32_t)settings->sync_replicas) - 1;
    quorum_replication(quorum)->is_priority_zero = sync_is_unfit(sync);
    quorum->wanted.left = is_durable    ? VOTE_LEFT_DURABLE
                          : is_released ? VOTE_LEFT_RELEASED
                                        : VOTE_LEFT_CRASHED;
    quorum->wanted.group = 0;
    /* Lost durability lasts, whatever happens, until the server is filled. */
    memcpy(quorum->wanted.boot, has_lost_durability ? no_boot : quorum->boot, sizeof no_boot);
}

void quorum_describe(const struct quorum *quorum, struct sync_registration *said) {
    *said = (struct sync_registration){
        .node = quorum->saved.node,
        .voted = quorum->saved.voted,
        .position = quorum_position(quorum),
        .has_lost_durability = quorum_sync(quorum)->has_lost_durability,
        .is_released = quorum_sync(quorum)->is_released,
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
static bool quorum_has_word(struct bytes answer, const char *word, struct term *term) {
    size_t size = strlen(word);
    return answer.size == size + TERM_SIZE && memcmp(answer.at, word, size) == 0 &&
           term_parse((struct bytes){.at = answer.at + size, .size = TERM_SIZE}, term);
}

enum quorum_advice quorum_take_answer(struct quorum *quorum, struct bytes answer, char *reason) {
    struct term term;
    if (quorum_has_word(answer, "+OPEN ", &term)) {
        if (!term_may_take(&term, &quorum->wanted.voted)) {
            snprintf(reason, REPLICATION_ERROR_MAX,
                     "the master is of an older term than this server has voted for: %s",
                     term.text);
            return QUORUM_REFUSES;
        }
        quorum_vote(quorum, &term);
        if (!quorum_has_voted(quorum, &term)) {
            return QUORUM_WAIT; /* for the disk */
        }
        quorum->master_term = term;
        return QUORUM_GO_ON;
    }
    if (quorum_has_word(answer, "+PREPARE ", &term)) {
        const struct sync *sync = quorum_sync(quorum);
        if (term_may_vote(&term, &quorum->wanted.voted, sync->has_lost_durability,
                          sync->is_released, quorum_last_group(quorum), quorum_now_ms(quorum),
                          quorum->held_until_ms)) {
            quorum_vote(quorum, &term);
        }
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
    return sync_is_closed(quorum_sync(quorum)) || term_is_none(&quorum->master_term) ||
           (term_parse(id, &term) && term_compare(&term, &quorum->master_term) == 0);
}

void quorum_take_ping(struct quorum *quorum, const struct wire_probe *probe) {
    if (quorum->fill_group == 0) {
        quorum->fill_group = probe->last_group;
    }
    quorum->probe = probe->number;
    quorum->probe_lease_ms =
        probe->lease_ms <= TERM_LEASE_MAX_MS ? (int64_t)probe->lease_ms : TERM_LEASE_MAX_MS;
}

void quorum_doubt(struct quorum *quorum) {
    quorum_set_lost_durability(quorum, true, false);
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
    if (quorum_sync(quorum)->state != SYNC_REPLICA || term_is_none(&quorum->master_term)) {
        return false;
    }
    /* It has all that the master had when the link was new, and will not forget it again. */
    if (quorum_sync(quorum)->has_lost_durability && quorum->fill_group > 0 &&
        *kept >= quorum->fill_group) {
        quorum_set_lost_durability(quorum, false, false);
        quorum_save(quorum);
        log_write(LOG_NOTICE, "quorum: filled group=%" PRIu64, *kept);
    }
    if (!term_may_ack(&quorum->master_term, &quorum->wanted.voted,
                      quorum_sync(quorum)->has_lost_durability) ||
        !quorum_has_voted(quorum, &quorum->master_term)) {
        return false;
    }
    if (quorum->probe_lease_ms > quorum->wanted.lease_ms) {
        quorum->wanted.lease_ms = quorum->probe_lease_ms;
        quorum_save(quorum);
    }
    quorum->owes_probe = quorum->probe_lease_ms > quorum->saved.lease_ms;
    if (!quorum->owes_probe) { /* a restart will wait for so long */
        int64_t held_ms = term_hold_end(quorum_now_ms(quorum), quorum->probe_lease_ms);
        quorum->held_until_ms = held_ms > quorum->held_until_ms ? held_ms : quorum->held_until_ms;
        *probe = quorum->probe;
    }
    return true;
}

enum {
    PROBES_PER_LEASE = 4,
    /* Between two probes; without a lease they say only how far the master is. */
    PROBE_MS_MAX = 1000,
};

/* ---- votes of others ---- */

static struct quorum_peer *quorum_find_peer(struct quorum *quorum, uint64_t node) {
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        if (quorum->peers[i].said.node == node) {
            return &quorum->peers[i];
        }
    }
    return NULL;
}

/* A node says so again and again; after so long without a word it may be gone. */
enum { HEARD_MS = 5000 };

/* Is it there? A server that begins anew without its promise is another node, and the one that it was is not. */
static bool quorum_is_there(const struct quorum *quorum, const struct quorum_peer *peer) {
    return peer->replica != NULL && quorum_now_ms(quorum) - peer->said_ms < HEARD_MS;
}

/* For one more node. NULL: there are replication-nodes of them. */
static struct quorum_peer *quorum_find_room(struct quorum *quorum) {
    if (quorum->peer_count + 1 < (uint32_t)quorum_settings(quorum)->replication_nodes) {
        return &quorum->peers[quorum->peer_count++];
    }
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        if (!quorum_is_there(quorum, &quorum->peers[i])) {
            return &quorum->peers[i];
        }
    }
    return NULL;
}

void quorum_leave(struct quorum *quorum, const struct replica *replica) {
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        if (quorum->peers[i].replica == replica) {
            quorum->peers[i].replica = NULL;
        }
    }
}

static void quorum_keep_vote(struct quorum *quorum, const struct replica *replica,
                             const struct sync_registration *said) {
    struct quorum_peer *peer = quorum_find_peer(quorum, said->node);
    if (peer == NULL) {
        peer = quorum_find_room(quorum);
        if (peer == NULL) {
            log_write(LOG_WARNING,
                      "quorum: more servers than replication-nodes: the vote of %016" PRIx64
                      " does not count",
                      said->node);
            return;
        }
        log_write(LOG_NOTICE, "quorum: vote node=%016" PRIx64 " term=%s group=%" PRIu64 "%s",
                  said->node, quorum_sync(quorum)->term.text, said->position.group,
                  said->has_lost_durability ? " lost-durability=yes" : "");
    }
    peer->said = *said;
    peer->replica = replica;
    peer->said_ms = quorum_now_ms(quorum);
    replication_print_address(replica, peer->host);
    peer->port = replica->port;
}

/* The votes that count, and who of these has most. */
struct quorum_votes {
    struct term_position positions[TERM_NODES_MAX];
    uint32_t count;
    bool do_all_count; /* those of who has lost durability, too */
    const struct quorum_peer *best;
    uint32_t there_count; /* all, of those that are there; the next one, too */
    uint32_t empty_count; /* those of who has nothing at all */
};

static struct quorum_votes quorum_count_votes(const struct quorum *quorum) {
    const struct sync *sync = quorum_sync(quorum);
    struct quorum_votes votes = {.count = 0};
    uint32_t released_count = 0;
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        const struct sync_registration *said = &quorum->peers[i].said;
        if (quorum_is_there(quorum, &quorum->peers[i])) {
            votes.there_count++;
            released_count += said->is_released;
            votes.empty_count += said->has_lost_durability && said->position.group == 0;
        }
    }
    votes.do_all_count =
        term_all_count(sync->has_lost_durability, sync->is_released, released_count,
                       votes.there_count, (uint32_t)quorum_settings(quorum)->replication_nodes);
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        const struct quorum_peer *peer = &quorum->peers[i];
        if (peer->said.has_lost_durability && !votes.do_all_count) {
            continue;
        }
        votes.positions[votes.count++] = peer->said.position;
        if (votes.best == NULL ||
            term_position_compare(&peer->said.position, &votes.best->said.position) > 0) {
            votes.best = peer;
        }
    }
    return votes;
}

/* ---- what a master is told ---- */

static void quorum_answer_term(struct reply *reply, const char *word, const struct term *term) {
    char text[sizeof "PREPARE " + TERM_SIZE];
    snprintf(text, sizeof text, "%s %s", word, term->text);
    reply_simple(reply, text);
}

void quorum_register(struct quorum *quorum, struct replica *replica,
                     const struct sync_registration *said, struct reply *reply) {
    struct sync *sync = quorum_sync(quorum);
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
    /* Without its promise it may have voted for less than it has. */
    bool has_greater = sync_is_closed(sync) && said->is_released &&
                       term_compare(&said->position.term, &said->voted) > 0;
    const struct term *known = has_greater ? &said->position.term : &said->voted;
    if (term_compare(known, &sync->term) > 0) {
        quorum_take_greater_term(quorum, known);
    }
    if (sync->state == SYNC_OPEN) {
        replica->is_counted = true;
        replica->is_probed = false;
        replica->sync_group = 0;
        replica->answered_ms = 0;
        quorum_answer_term(reply, "OPEN", &sync->term);
    } else if (term_compare(&said->voted, &sync->term) == 0) {
        quorum_keep_vote(quorum, replica, said);
        reply_simple(reply, "CLOSED");
        replicator_wake(quorum_replicator(quorum));
    } else {
        quorum_answer_term(reply, "PREPARE", &sync->term);
    }
}

const char *quorum_find_sync_refusal(const struct quorum *quorum, bool is_pulling,
                                     const struct term *term) {
    const struct sync *sync = quorum_sync(quorum);
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
static bool quorum_counts(const struct replica *replica) {
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

static void quorum_count_acks(struct quorum *quorum) {
    struct sync *sync = quorum_sync(quorum);
    const struct settings *settings = quorum_settings(quorum);
    uint64_t acks[TERM_NODES_MAX];
    int64_t sent_ms[TERM_NODES_MAX];
    uint32_t count = 0, replicas = (uint32_t)settings->sync_replicas;
    for (const struct replica *replica = quorum_replication(quorum)->replicas;
         replica != NULL && count < TERM_NODES_MAX; replica = replica->next) {
        if (quorum_counts(replica)) {
            acks[count] = replica->sync_group;
            sent_ms[count++] = replica->answered_ms;
        }
    }
    uint64_t safe_group = term_safe_group(UINT64_MAX, acks, count, replicas, sync->mark_group);
    bool is_progress = safe_group > sync->safe_group;
    sync->counted = count;
    sync->safe_group = safe_group > sync->safe_group ? safe_group : sync->safe_group;
    int64_t lease_end_ms =
        term_lease_end(sent_ms, count, replicas, settings->sync_replicas_lease_ms);
    sync->lease_end_ms = lease_end_ms > sync->lease_end_ms ? lease_end_ms : sync->lease_end_ms;
    /* For INFO and the metrics. */
    int64_t now = quorum_now_ms(quorum);
    bool is_held = sync->safe_group < quorum_last_group(quorum) ||
                   (sync->has_lease && now >= sync->lease_end_ms);
    if (!is_held) {
        sync->held_since_ms = 0;
    } else if (is_progress || sync->held_since_ms == 0) {
        sync->held_since_ms = now;
    }
}

static int64_t quorum_probe_period_ms(const struct quorum *quorum) {
    int64_t lease_ms = quorum_settings(quorum)->sync_replicas_lease_ms;
    int64_t period_ms = lease_ms > 0 ? lease_ms / PROBES_PER_LEASE : PROBE_MS_MAX;
    return period_ms < 1 ? 1 : period_ms < PROBE_MS_MAX ? period_ms : PROBE_MS_MAX;
}

void quorum_take_ack(struct quorum *quorum, struct replica *replica, uint64_t acked,
                     uint64_t probe) {
    int64_t now = quorum_now_ms(quorum);
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

static void quorum_move(struct quorum *quorum, enum quorum_event event) {
    struct sync *sync = quorum_sync(quorum);
    const struct transition *row = transitions;
    while (row->from != sync->state || row->event != event) {
        row++;
        CHECK(row < transitions + TRANSITIONS);
    }
    log_write(LOG_DEBUG, "quorum: %s", row->text);
    sync->state = row->to;
}

/* ---- a master without votes ---- */

static bool quorum_may_ever_open(const struct quorum *quorum) {
    return !sync_is_unfit(quorum_sync(quorum)) || quorum_last_group(quorum) == 0;
}

/* A term above all that are known; closed until it is voted for. */
static void quorum_take_term(struct quorum *quorum, const struct term *highest) {
    struct sync *sync = quorum_sync(quorum);
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
    if (quorum_sync(quorum)->state == SYNC_PULLING) {
        replicator_end_pull(quorum_replicator(quorum));
    }
}

void quorum_promote(struct quorum *quorum) {
    if (quorum_sync(quorum)->state == SYNC_OFF) {
        return; /* quorum_begin looks at the role */
    }
    quorum_move(quorum, QUORUM_PROMOTED);
    quorum_take_term(quorum, &TERM_NONE);
    /* Who still follows, as after a FAILOVER that was given up, is to come again and register. */
    replicator_drop_replicas(quorum_replicator(quorum), "a new term begins");
}

static void quorum_take_greater_term(struct quorum *quorum, const struct term *voted) {
    bool was_open = quorum_sync(quorum)->state == SYNC_OPEN;
    quorum_end_pull(quorum);
    quorum_move(quorum, QUORUM_TOOK_TERM);
    if (was_open) {
        replicator_close_term(quorum_replicator(quorum));
        replication_begin_epoch(quorum->server);
    }
    quorum_take_term(quorum, voted);
    replicator_drop_replicas(quorum_replicator(quorum), "a new term begins");
}

void quorum_follow(struct quorum *quorum) {
    struct sync *sync = quorum_sync(quorum);
    if (sync->state == SYNC_OFF) {
        return;
    }
    quorum_end_pull(quorum);
    quorum_move(quorum, QUORUM_FOLLOWS);
    sync->safe_group = 0;
    quorum->peer_count = 0;
}

/* ---- opening ---- */

static void quorum_open_term(struct quorum *quorum) {
    struct sync *sync = quorum_sync(quorum);
    uint64_t group = quorum_last_group(quorum);
    if (!replicator_open_term(quorum_replicator(quorum), &sync->term)) {
        return; /* no memory: tried again with the next tick */
    }
    quorum_move(quorum, QUORUM_OPENED);
    sync->mark_group = quorum_last_group(quorum);
    sync->safe_group = 0;
    sync->counted = 0;
    sync->held_since_ms = 0;
    sync->lease_end_ms = 0;
    sync->has_lease = quorum_settings(quorum)->sync_replicas_lease_ms > 0;
    quorum->probed_ms = 0;
    if (sync->has_lost_durability) { /* all have voted, and nobody has more */
        quorum_set_lost_durability(quorum, false, false);
        quorum_save(quorum);
    }
    log_write(LOG_NOTICE, "quorum: open term=%s group=%" PRIu64, sync->term.text, group);
}

static void quorum_step_closed(struct quorum *quorum) {
    struct sync *sync = quorum_sync(quorum);
    const struct settings *settings = quorum_settings(quorum);
    struct term_position own = quorum_position(quorum);
    uint32_t nodes = (uint32_t)settings->replication_nodes;
    uint32_t replicas = (uint32_t)settings->sync_replicas;
    const struct quorum_votes votes = quorum_count_votes(quorum);
    const struct quorum_peer *best = votes.best;
    bool has_lost = sync->has_lost_durability && !votes.do_all_count;
    sync->vote_count = sync->has_lost_durability ? votes.there_count : votes.count;
    if (term_is_none(&sync->term) || !quorum_has_voted(quorum, &sync->term)) {
        return;
    }
    bool is_enough = 1 + votes.count >= term_votes_needed(nodes, replicas);
    if (is_enough && !has_lost && best != NULL &&
        term_position_compare(&best->said.position, &own) > 0) {
        quorum->target = best->said.position;
        quorum->pulled_node = best->said.node;
        quorum->pull_until_ms = quorum_now_ms(quorum) + PULL_MS;
        log_write(LOG_NOTICE,
                  "quorum: pulls what is missing of node=%016" PRIx64 " \"%s %u\" term=%s "
                  "group=%" PRIu64,
                  best->said.node, best->host, (unsigned)best->port, best->said.position.term.text,
                  best->said.position.group);
        replication_begin_epoch(quorum->server);
        quorum_move(quorum, QUORUM_PULLS);
        replicator_pull(quorum_replicator(quorum), best->host, best->port);
        return;
    }
    int64_t now = quorum_now_ms(quorum);
    if (term_may_open(&own, votes.positions, votes.count, nodes, replicas, has_lost, now,
                      quorum->held_until_ms) ||
        term_may_begin(own.group, sync->has_lost_durability, votes.empty_count, nodes, now,
                       quorum->held_until_ms)) {
        quorum_open_term(quorum);
    }
}

static void quorum_step_pulling(struct quorum *quorum) {
    struct term_position own = quorum_position(quorum);
    bool is_whole = term_position_compare(&own, &quorum->target) >= 0;
    if (replicator_pull_advances(quorum_replicator(quorum))) {
        quorum->pull_until_ms = quorum_now_ms(quorum) + PULL_MS;
    }
    if (!is_whole && quorum_now_ms(quorum) < quorum->pull_until_ms) {
        return;
    }
    replicator_end_pull(quorum_replicator(quorum));
    if (!is_whole) {
        log_write(LOG_WARNING, "quorum: what is missing did not come of node=%016" PRIx64,
                  quorum->pulled_node);
        struct quorum_peer *peer = quorum_find_peer(quorum, quorum->pulled_node);
        if (peer != NULL) {
            *peer = quorum->peers[--quorum->peer_count];
        }
    }
    quorum_move(quorum, QUORUM_PULLED);
}

/* ---- ticks ---- */

static int64_t quorum_find_due_ms(const struct quorum *quorum) {
    if (!quorum->worker.is_busy && !quorum_is_saved(quorum)) {
        return quorum->retry_ms;
    }
    switch (quorum_sync(quorum)->state) {
    case SYNC_OPEN:
        return quorum->probed_ms + quorum_probe_period_ms(quorum);
    case SYNC_CLOSED:
        return quorum->held_until_ms > quorum_now_ms(quorum) ? quorum->held_until_ms : INT64_MAX;
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
    if (quorum_sync(quorum)->state == SYNC_PULLING) {
        quorum_step_pulling(quorum);
    }
    if (quorum_sync(quorum)->state == SYNC_CLOSED) {
        quorum_step_closed(quorum);
    }
}

static void quorum_on_timer(uv_timer_t *timer) {
    struct quorum *quorum = timer->data;
    quorum->timer_ms = INT64_MAX;
    replicator_wake(quorum_replicator(quorum));
}

void quorum_end_tick(struct quorum *quorum) {
    if (quorum_sync(quorum)->state == SYNC_OPEN) {
        /* Behind a tick's commands: what is safe, and probes. */
        int64_t now = quorum_now_ms(quorum);
        quorum_count_acks(quorum);
        bool is_due = now - quorum->probed_ms >= quorum_probe_period_ms(quorum);
        const struct wire_probe probe = {
            .last_group = quorum_last_group(quorum),
            .number = (uint64_t)now,
            .lease_ms = (uint64_t)quorum_settings(quorum)->sync_replicas_lease_ms,
        };
        for (struct replica *replica = quorum_replication(quorum)->replicas; replica != NULL;
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
    int64_t due_ms = quorum_find_due_ms(quorum);
    if (due_ms != INT64_MAX && due_ms != quorum->timer_ms) {
        int64_t left_ms = due_ms - quorum_now_ms(quorum);
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
    case VOTE_LEFT_RELEASED:
    case VOTE_LEFTS:
        break;
    }
    return true;
}

bool quorum_begin(struct quorum *quorum, char *error) {
    struct sync *sync = quorum_sync(quorum);
    struct term_position position = quorum_position(quorum);
    quorum_vote_read_boot(quorum->boot);
    enum vote_status status = quorum_vote_load(quorum->directory, &quorum->saved, error);
    bool has_lost_durability = position.group == 0, is_released = false;
    if (status == VOTE_DAMAGED || status == VOTE_FAILED) {
        return false;
    }
    if (status == VOTE_MISSING) {
        is_released = position.group > 0;
        has_lost_durability = true;
        quorum->saved = (struct vote){.voted = TERM_NONE};
        while (quorum->saved.node == 0) {
            quorum->saved.node = quorum_random_number();
        }
    } else {
        has_lost_durability = has_lost_durability || quorum_has_lost(quorum);
        is_released = position.group > 0 && quorum->saved.left == VOTE_LEFT_RELEASED;
    }
    quorum->wanted = quorum->saved;
    sync->node = quorum->saved.node;
    sync->voted = quorum->saved.voted;
    if (quorum->saved.lease_ms > 0) { /* a master may still lean on it */
        quorum->held_until_ms = term_hold_end(quorum_now_ms(quorum), quorum->saved.lease_ms);
    }
    quorum_set_lost_durability(quorum, has_lost_durability, is_released);
    if (!quorum_vote_save(quorum->directory, &quorum->wanted)) {
        snprintf(error, DISK_ERROR_MAX, "%.900s/leaderboard.promise cannot be written: %s",
                 quorum->directory, strerror(errno));
        return false;
    }
    quorum->saved = quorum->wanted;
    if (is_released) {
        log_write(
            LOG_WARNING,
            "quorum: there are boards and no leaderboard.promise: this server counts once all "
            "replication-nodes are there, or an open master has filled it");
    }
    log_write(LOG_NOTICE, "quorum: node=%016" PRIx64 " voted=%s group=%" PRIu64 "%s", sync->node,
              sync->voted.text, position.group, has_lost_durability ? " lost-durability=yes" : "");
    if (replication_is_replica(quorum_replication(quorum))) {
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
    if (quorum == NULL || quorum_sync(quorum)->state == SYNC_OFF ||
        quorum_sync(quorum)->has_lost_durability) {
        return;
    }
    quorum->wanted.left = VOTE_LEFT_CLEAN;
    quorum->wanted.group = group;
    if (!quorum_vote_save(quorum->directory, &quorum->wanted)) {
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
