/* What commands and the parts of this room ask of what holds the parts together. replicator.c does it, and tests of
 * handlers put another one in its place (tests/support/noted_replicator.h): no part knows more of it than this. */
#ifndef SERVER_HUB_H
#define SERVER_HUB_H

#include "server/replication/state.h"

struct buffer;
struct reply;

/* ---- for commands, between the effects of two of them ----
 *
 * All return at once; anything that takes time goes on in the loop. Without a replicator (NULL)
 * they do nothing. */

/* replication_follow: the role, host or port is new. Drop the old link and begin one. What was
 * received already of the old master stays. is_failover: a FAILOVER shifts (failover.h): let the
 * server at master_host become master, by a handshake that ends in LB.SYNC ... FAILOVER;
 * failover_end is told its answer. */
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
/* The session's replica is gone; free what `feed` points to. */
void replicator_leave(struct replicator *replicator, struct replica *replica);
/* All replicas that are online are to acknowledge soon (WAIT, FAILOVER). */
void replicator_ask_acks(struct replicator *replicator);
/* A replica: ask the master to hand over to this server (failover.h). false: it cannot be asked. */
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
