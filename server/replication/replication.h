/* How this room works: the journal's groups of effects are the stream. A master's feed (feed.h)
 * keeps the latest of them in a backlog and sends each replica what follows its position, or first
 * a full copy. A replica's link (master_link.h) receives them, apply.h applies them to the keys,
 * and the same groups go into its own journal. An id in the keys says which history the
 * numbers are of; an id is a term (term.h), so ids also say which is the newer one. With
 * sync-replicas the quorum (quorum.h, its decisions: term.h) lets a master open only with
 * enough votes, and answer only what enough replicas have. replicator.h holds these parts, and is
 * called by the tick and by commands; failover.h hands the master's place over.
 *
 * This header is what changes the state (state.h), and what commands ask of it. The replicator
 * opens connections, copies and applies, and keeps the state up to date; it is told what is asked
 * for by hub.h. Without one (tests of handlers, the module) both ends work, and nothing is connected.
 *
 *     MASTER --replication_follow--> REPLICA --replication_promote--> MASTER
 *                                    | replication_follow: another master
 *
 * A position is a group of effects: persistence numbers them from 1 without gaps
 * (persistence_last_group). A replica has its master's numbers. What Redis calls an offset (of
 * master_repl_offset, slave_repl_offset, ROLE, WAIT, REPLCONF ACK) is the number of the last group
 * here.
 *
 * A history is a replication id: 40 hex digits that a server makes when it first opens as a master,
 * and anew at each promotion. Groups up to second_until also belong to second_id, the id before. */
#ifndef SERVER_REPLICATION_H
#define SERVER_REPLICATION_H

#include "server/replication/state.h"

struct registry;
struct server;

/* ---- the history in the keys ----
 *
 * A hash in a database of the server's own.
 *
 *     id            the replication id of the last group
 *     second_id     the one before, "" if there was none
 *     second_until  the last group that belongs to that, too
 *
 * It is changed by effects, so it is in the journal, in snapshots and in the stream to replicas, and what
 * it says is true of the keys as they are, after any crash and any copy. A master writes it when it opens a
 * history: as the first effects behind the last group of the one before. */

struct history {
    char id[REPLICATION_ID_SIZE + 1]; /* "": there is none */
    char second_id[REPLICATION_ID_SIZE + 1];
    uint64_t second_until;
};

#define REPLICATION_NO_ID "0000000000000000000000000000000000000000"

/* What the keys say. false: nothing, or nothing valid. */
MUST_CHECK bool replication_read_history(struct registry *registry, struct history *history);
/* The same, into the ids of the server. false: these stay. */
MUST_CHECK bool replication_take_history(struct registry *registry,
                                         struct replication *replication);
/* Make them say so. false: no memory; try again. */
MUST_CHECK bool replication_write_history(struct registry *registry, const struct history *history);
/* They say nothing any more, as changes have no numbers from here on. */
void replication_remove_history(struct registry *registry);

/* ---- the role ---- */

/* Is this the master that is followed, by a link that goes on? */
bool replication_is_following(const struct replication *replication, struct bytes host,
                              uint16_t port);
/* A master with a new id; or what `replicaof` says: the machinery, once it is there, begins as if
 * `follow` had been called. */
void replication_init(struct server *server);
/* A new id, of 40 hex digits. */
void replication_make_id(struct server *server, char id[REPLICATION_ID_SIZE + 1]);

/* Become a replica of that master, or of another one; settings->replicaof says so, too (CONFIG
 * REWRITE). Clients that wait for a key are answered -UNBLOCKED. No-op if it is that one's already.
 * false: out of memory, nothing changed. */
MUST_CHECK bool replication_follow(struct server *server, struct bytes host, uint16_t port);
/* Become a master: replicator_promote, then a new id; the old one stays as the second. No-op for a
 * master. Where much was received and not applied, that goes on in steps:
 * replication.is_promoting. */
void replication_promote(struct server *server);
/* The machinery has applied what was received. */
void replication_open(struct server *server);
/* The process is about to end: what was received is to be there. */
void replication_finish_promotion(struct server *server);
/* The history under this server's clients has changed, or is not this server's to decide any more:
 * it follows another server, a greater term begins, a closed master takes over the history of
 * another, or a full copy has replaced the keys. Numbers of groups that are known from before mean
 * nothing now.
 *
 *     answers that wait (RESP, HTTP)  are never sent: replication_answer_epoch
 *     BZPOPMIN, WAIT and their kin    end with an error: waiting_disconnect
 *     orders                          the same, and resume where the keys that have them are changed next
 *     replicas, and what is kept for them  begin anew, if the keys were replaced: `copies` */
void replication_begin_epoch(struct server *server);
/* The same: a full copy is in place of the keys. */
void replication_note_copy(struct server *server);
/* The history goes on under a new id; `group` must be right. */
void replication_change_id(struct server *server);

/* ---- replicas ---- */

/* The session's replica, made if it has none (REPLCONF). NULL: out of memory. */
MUST_CHECK struct replica *replication_get_replica(struct session *session);
/* LB.SYNC: put it into the list, in that state. */
void replication_add_replica(struct server *server, struct replica *replica,
                             enum replica_state state);
/* The session ends, or is no replica any more: out of the list, replicator_leave, freed. No-op
 * without one. */
void replication_remove_replica(struct server *server, struct session *session);
/* REPLCONF ACK. Never goes back. */
void replication_take_ack(struct server *server, struct replica *replica, uint64_t group);
/* Where it can be reached: what it has announced, or where its connection comes from. */
void replication_print_address(const struct replica *replica, char out[REPLICATION_HOST_MAX + 1]);
/* The replica in the list that is reached there; NULL: there is none. */
struct replica *replication_find_replica(const struct replication *replication, struct bytes host,
                                         int64_t port);
/* How many replicas that are online have acknowledged this group. */
uint32_t replication_count_acked(const struct replication *replication, uint64_t group);
/* How many were heard within min-replicas-max-lag; min-replicas-to-write wants that many. */
uint32_t replication_count_good(const struct server *server);

/* CONFIG RESETSTAT */
void replication_reset_counters(struct replication *replication);

/* ---- what is refused ---- */

/* The error for a write here and now: "READONLY ...", "NOREPLICAS ..."; NULL: none. */
const char *replication_write_refusal(const struct server *server);
/* The error for a command that needs the boards: "LOADING ...", "MASTERDOWN ..."; NULL: none. */
const char *replication_read_refusal(const struct server *server);
/* Is it a master whose answers to writers, and to readers who must see every write, leave now? Not
 * while files are loaded or the server retires, nor when it is closed or without its lease
 * (sync-replicas), nor without the replicas that min-replicas-to-write wants: then another master
 * may have been made. INFO tells balancers so as serves_as_master. */
bool replication_serves_as_master(const struct server *server);
/* What INFO says, and Sentinel reads, as slave_priority. */
int64_t replication_priority(const struct server *server);

#endif
