/* What the files of quorum.h share. Names are those of the model (tests/model/protocol.py):
 * promote, present, take_term, prepare, vote, keep_vote, pull, open, take, fill, acknowledge,
 * probe.
 *
 *     quorum.c         states; terms, opening, pulling; what is done in a tick; the start and the end
 *     quorum_node.c    of every node: what it has voted for and has; of a replica: what it acknowledges
 *     quorum_master.c  of a master: what others have voted for; once it is open: the commit wait */
#ifndef SERVER_QUORUM_PARTS_H
#define SERVER_QUORUM_PARTS_H

#include "server/replication/hub.h"
#include "server/replication/quorum.h"
#include "server/system/clock.h"

static inline struct replication *replication_of(const struct quorum *quorum) {
    return &quorum->server->replication;
}

static inline struct replicator *replicator_of(const struct quorum *quorum) {
    return quorum->server->replication.replicator;
}

static inline struct sync *sync_of(const struct quorum *quorum) {
    return &quorum->server->replication.sync;
}

static inline const struct settings *settings_of(const struct quorum *quorum) {
    return &quorum->server->settings;
}

/* Leases and votes count by the clock that goes on while the machine is suspended. */
static inline int64_t now_ms(const struct quorum *quorum) {
    return clock_read_ms(&quorum->server->clock);
}

/* ---- quorum.c ---- */

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
void quorum_move(struct quorum *quorum, enum quorum_event event);
/* May a master open, some time? Not one that has lost durability. */
bool quorum_may_ever_open(const struct quorum *quorum);
/* A term above all that are known; closed until it is voted for. */
void quorum_take_term(struct quorum *quorum, const struct term *highest);
/* Somebody has voted for more than this master's term. */
void quorum_take_greater_term(struct quorum *quorum, const struct term *voted);

/* ---- quorum_node.c ---- */

/* Write `wanted` to disk, unless that is going on. Everything that counts looks at `saved`. */
void quorum_save(struct quorum *quorum);
/* The worker's end of it. */
void quorum_on_saved(void *context);
/* `saved` is what is wanted. */
bool quorum_is_saved(const struct quorum *quorum);
void quorum_vote(struct quorum *quorum, const struct term *term);
/* It, and nothing greater; on disk. */
bool quorum_has_voted(const struct quorum *quorum, const struct term *term);
uint64_t quorum_last_group(const struct quorum *quorum);
/* Up to where it will still have it, whatever becomes of its process; with sync-replicas-fsync, of
 * its machine. */
uint64_t quorum_kept_group(const struct quorum *quorum);
struct term_position quorum_position(const struct quorum *quorum);
/* It has lost durability, or not any more: to be saved. */
void quorum_set_lost_durability(struct quorum *quorum, bool has_lost_durability);
uint64_t quorum_random_number(void);

/* ---- quorum_master.c ---- */

/* What those that have not lost durability have; how many others have nothing at all. */
uint32_t quorum_count_votes(const struct quorum *quorum,
                            struct term_position positions[ELECTION_NODES_MAX],
                            const struct quorum_peer **best, uint32_t *empty_count);
void quorum_drop_peer(struct quorum *quorum, uint64_t node);

/* Behind a tick's commands: what is safe, and probes. */
void quorum_step_open(struct quorum *quorum);
int64_t quorum_probe_period_ms(const struct quorum *quorum);

#endif
