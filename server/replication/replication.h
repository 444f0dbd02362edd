/* How this room works: the journal's groups of effects are the stream. A master's feed (feed.h)
 * keeps the latest of them in a backlog and sends each replica what follows its position, or first
 * a full copy. A replica's link (master_link.h) receives them, apply.h applies them to the keys,
 * and the same groups go into its own journal. An id in the keys says which history the
 * numbers are of; an id is a term (term.h), so ids also say which is the newer one. With
 * sync-replicas the quorum (quorum.h, its decisions: term.h) lets a master open only with
 * enough votes, and answer only what enough replicas have. replicator.c holds these parts, and is
 * called by the tick and by commands; FAILOVER hands the master's place over.
 *
 * This header is what changes the state (state.h), and what commands ask of it. The replicator
 * opens connections, copies and applies, and keeps the state up to date; it is told what is asked
 * for by what stands last here. Without one (tests of handlers, the module) both ends work, and nothing is connected.
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

struct buffer;
struct registry;
struct reply;
struct server;
struct uv_loop_s;

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

/* ---- FAILOVER ----
 *
 * This master hands its place to one of its replicas, and loses no write.
 *
 *     NONE --begin--> WAITS: writes are held back until the target has acknowledged the last group, and
 *                            every write that was made before is answered
 *                     WAITS --caught up, or forced after the timeout--> SHIFTS: this server becomes a
 *                                                 replica of the target, which becomes master by that
 *                     WAITS --aborted, or timeout--> NONE: as before
 *                     SHIFTS --the target has agreed--> NONE: writes go on, and are refused READONLY
 *                     SHIFTS --aborted, or refused--> NONE: a master again, with a new id
 *
 * Redis's command and names.
 *
 * Sentinel promotes without asking the master: SLAVEOF NO ONE to a replica. A replica whose master is there passes
 * that on, and the master hands over to it:
 *
 *     replica   <-- SLAVEOF NO ONE          replication_failover_ask
 *               REPLCONF HANDOVER -->       replication_failover_take_order: as FAILOVER TO that replica
 *               <-- LB.SYNC .. FAILOVER     it is master. Without that, after HANDOVER_MS, by itself
 *
 * Then the old master does what Sentinel orders of one that it has replaced: its file says whose replica it is, and its
 * clients are closed, so that they ask Sentinel. */

struct failover_options {
    struct bytes host; /* at NULL: whichever replica catches up first */
    int64_t port;
    bool is_forced;     /* after the timeout, whether it has caught up or not */
    int64_t timeout_ms; /* 0: none */
};

/* Why it cannot begin, Redis's text; NULL: it has begun. caller: who asks for it; NULL: a replica. Where a Sentinel watches, that
 * must be one: a Sentinel that has not ordered the change takes this server for a master that has failed, some 20
 * s later, and promotes whom it likes. */
MUST_CHECK const char *replication_failover_begin(struct server *server,
                                                  const struct session *caller,
                                                  const struct failover_options *options);
/* In every tick: has somebody caught up, or is the time over? has_waiting_answers: some wait for the disk or
 * for replicas. */
void replication_failover_step(struct server *server, bool has_waiting_answers);
/* When replication_failover_step has something to do by itself, monotonic; INT64_MAX: never. */
int64_t replication_failover_due_ms(const struct server *server);
/* false: there is none. reason: for the log. */
bool replication_failover_abort(struct server *server, const char *reason);
/* SLAVEOF NO ONE: true: it is passed on to the master, and the promotion follows. false: not now; promote. */
MUST_CHECK bool replication_failover_ask(struct server *server, const struct session *caller);
/* REPLCONF HANDOVER, of a replica: hand over to it. What forbids that is logged: the replica does not wait for long. */
void replication_failover_take_order(struct server *server, const struct replica *replica);
/* The machinery: the target has answered. No-op if no FAILOVER shifts. */
void replication_failover_end(struct server *server, bool is_agreed);

/* ---- what moves replication: replicator.c ----
 *
 * One feed for replicas (feed.h), one link to a master (master_link.h), with sync-replicas a quorum (quorum.h), and what
 * happens to them when the role changes.
 *
 *     tick    replicator_begin_tick: what has come of a master is applied, before commands run
 *             ... commands ...; their group ends
 *             replicator_end_tick: groups go to replicas, acknowledgements to the master
 *
 * The history is opened, which means written into the keys, when the first replica comes, and anew at each promotion of a
 * master and with its first change after each start: an id stands for what one server wrote in one life. */

/* server->replication.replicator is it from now on. wake lets the tick run. NULL: out of memory, or
 * libuv failed. */
MUST_CHECK struct replicator *replicator_create(struct server *server, struct uv_loop_s *loop,
                                                void (*wake)(void *context), void *context);
/* Close handles; the loop turns once more before replicator_destroy. */
void replicator_stop(struct replicator *replicator);
/* Persistence has stopped, with everything up to this group on disk (sync-replicas: the next start
 * has lost nothing). */
void replicator_end_cleanly(struct replicator *replicator, uint64_t last_group);
void replicator_destroy(struct replicator *replicator);

/* Before the first command, before the tick's group is complete, and when it is. true: there is
 * more to do at once. */
bool replicator_begin_tick(struct replicator *replicator);
void replicator_close_tick(struct replicator *replicator);
bool replicator_end_tick(struct replicator *replicator);
void replicator_second(struct replicator *replicator);

/* ---- what is asked of the replicator ----
 *
 * By commands and by the parts of this room. Tests of handlers put another one in its place
 * (tests/support/noted_replicator.h): no part knows more of it than this.
 *
 * For commands, between the effects of two of them: all return at once; anything that takes time goes on in the loop.
 * Without a replicator (NULL) they do nothing. */

/* replication_follow: the role, host or port is new. Drop the old link and begin one. What was
 * received already of the old master stays. is_failover: a FAILOVER shifts: let the
 * server at master_host become master, by a handshake that ends in LB.SYNC ... FAILOVER;
 * replication_failover_end is told its answer. */
void replicator_follow(struct replicator *replicator, bool is_failover);
/* replication_promote: the role is MASTER now. Drop the link, and apply what was received. true:
 * that is done, and `group` is right: a new id begins behind it as soon as this returns. It is to
 * be on disk before a write is answered. false: it goes on in steps, and replication_open
 * follows. */
MUST_CHECK bool replicator_promote(struct replicator *replicator);
/* The rest of it at once: then replication_open was called. */
void replicator_finish_promotion(struct replicator *replicator);
/* The ids are new (after replicator_promote, and by replication_change_id): the keys are to say
 * so. */
void replicator_write_history(struct replicator *replicator);
/* LB.SYNC, PSYNC: answer it, and send the session what it asks for. */
void replicator_sync(struct replicator *replicator, struct replica *replica,
                     const struct replication_wish *wish, struct reply *reply);
/* The session's replica is gone, one in REPLICA_HANDSHAKE, too; free what `feed` points to. */
void replicator_leave(struct replicator *replicator, struct replica *replica);
/* All replicas that are online are to acknowledge soon (WAIT, FAILOVER). */
void replicator_ask_acks(struct replicator *replicator);
/* A replica: ask the master to hand over to this server. false: it cannot be asked. */
MUST_CHECK bool replicator_ask_handover(struct replicator *replicator);
/* REPLCONF PRESENT, and ACK ... PROBE (quorum.h). */
void replicator_register(struct replicator *replicator, struct replica *replica,
                         const struct sync_registration *said, struct reply *reply);
void replicator_acknowledge(struct replicator *replicator, struct replica *replica, uint64_t acked,
                            uint64_t probe);
/* REPLCONF ACK of a Redis: how many bytes of its stream it has. */
void replicator_acknowledge_bytes(struct replicator *replicator, struct replica *replica,
                                  uint64_t offset);
/* CLIENT KILL TYPE master: drop the link, and connect anew. */
void replicator_drop_link(struct replicator *replicator);
/* Following a Redis: INFO's lines about it, "name:value\r\n". */
void replicator_print_source(struct replicator *replicator, struct buffer *out);

/* ---- for the quorum, the feed and the link ---- */

/* Let the tick run. */
void replicator_wake(struct replicator *replicator);
/* Close all replicas: they come again. */
void replicator_drop_replicas(struct replicator *replicator, const char *reason);
/* A master's full copy has replaced the keys: replicas begin anew. */
void replicator_note_copy(struct replicator *replicator);
/* Take over what that server has; the role stays master. */
void replicator_pull(struct replicator *replicator, const char *host, uint16_t port);
void replicator_end_pull(struct replicator *replicator);
/* Has the pull got further since it was asked last? */
MUST_CHECK bool replicator_pull_advances(struct replicator *replicator);
/* Begin the history of this id, behind the last group: the server changes its keys itself now.
 * false: no memory, nothing changed. */
MUST_CHECK bool replicator_open_term(struct replicator *replicator, const struct term *id);
/* It does not any more. */
void replicator_close_term(struct replicator *replicator);

#endif
