/* Of a master: what others have promised (REPLCONF PRESENT). See quorum.h. */
#include "server/replication/quorum_parts.h"

#include <inttypes.h>
#include <stdio.h>

#include "server/system/log.h"

/* ---- promises of others ---- */

static struct quorum_peer *quorum_present_find_peer(struct quorum *quorum, uint64_t node) {
    for (uint32_t i = 0; i < quorum->peer_count; i++) {
        if (quorum->peers[i].said.node == node) {
            return &quorum->peers[i];
        }
    }
    return NULL;
}

void quorum_forget_peer(struct quorum *quorum, uint64_t node) {
    struct quorum_peer *peer = quorum_present_find_peer(quorum, node);
    if (peer != NULL) {
        *peer = quorum->peers[--quorum->peer_count];
    }
}

static void quorum_present_keep_promise(struct quorum *quorum, const struct replica *replica,
                                        const struct sync_presented *said) {
    struct quorum_peer *peer = quorum_present_find_peer(quorum, said->node);
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

uint32_t quorum_count_promises(const struct quorum *quorum,
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

/* ---- what a master is told ---- */

static void quorum_present_answer_term(struct reply *reply, const char *word,
                                       const struct term *term) {
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
    if (!quorum_may_ever_open(quorum)) {
        reply_error(reply,
                    "NOMASTERLINK this server may have forgotten what it has acknowledged, and "
                    "will not open");
        return;
    }
    if (term_compare(&said->promised, &sync->term) > 0) {
        quorum_take_greater_term(quorum, &said->promised);
    }
    if (sync->state == SYNC_OPEN) {
        replica->is_counted = true;
        replica->is_probed = false;
        replica->sync_group = 0;
        replica->answered_ms = 0;
        quorum_present_answer_term(reply, "OPEN", &sync->term);
    } else if (term_compare(&said->promised, &sync->term) == 0) {
        quorum_present_keep_promise(quorum, replica, said);
        reply_simple(reply, "CLOSED");
        quorum->host.wake(quorum->host.context);
    } else {
        quorum_present_answer_term(reply, "PREPARE", &sync->term);
    }
}

const char *quorum_find_sync_refusal(const struct quorum *quorum, bool is_pulling,
                                     const struct term *term) {
    const struct sync *sync = sync_of(quorum);
    if (is_pulling) {
        return sync->state == SYNC_REPLICA && quorum_has_promised(quorum, term)
                   ? NULL
                   : "NOMASTERLINK that term is not promised here";
    }
    return sync_is_closed(sync) ? "NOMASTERLINK this server is not open yet: it waits for promises"
                                : NULL;
}
