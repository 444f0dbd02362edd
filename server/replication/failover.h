/* FAILOVER: this master hands its place to one of its replicas, and loses no write.
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
 *     replica   <-- SLAVEOF NO ONE          failover_ask
 *               REPLCONF HANDOVER -->       failover_take_order: as FAILOVER TO that replica
 *               <-- LB.SYNC .. FAILOVER     it is master. Without that, after HANDOVER_MS, by itself
 *
 * Then the old master does what Sentinel orders of one that it has replaced: its file says whose replica it is, and its
 * clients are closed, so that they ask Sentinel. */
#ifndef SERVER_FAILOVER_H
#define SERVER_FAILOVER_H

#include "server/replication/state.h"

struct server;

struct failover_options {
    struct bytes host; /* at NULL: whichever replica catches up first */
    int64_t port;
    bool is_forced;     /* after the timeout, whether it has caught up or not */
    int64_t timeout_ms; /* 0: none */
};

/* Why it cannot begin, Redis's text; NULL: it has begun. caller: who asks for it; NULL: a replica. Where a Sentinel watches, that
 * must be one: a Sentinel that has not ordered the change takes this server for a master that has failed, some 20
 * s later, and promotes whom it likes. */
MUST_CHECK const char *failover_begin(struct server *server, const struct session *caller,
                                      const struct failover_options *options);
/* In every tick: has somebody caught up, or is the time over? has_waiting_answers: some wait for the disk or
 * for replicas. */
void failover_step(struct server *server, bool has_waiting_answers);
/* When failover_step has something to do by itself, monotonic; INT64_MAX: never. */
int64_t failover_due_ms(const struct server *server);
/* false: there is none. reason: for the log. */
bool failover_abort(struct server *server, const char *reason);
/* SLAVEOF NO ONE: true: it is passed on to the master, and the promotion follows. false: not now; promote. */
MUST_CHECK bool failover_ask(struct server *server, const struct session *caller);
/* REPLCONF HANDOVER, of a replica: hand over to it. What forbids that is logged: the replica does not wait for long. */
void failover_take_order(struct server *server, const struct replica *replica);
/* The machinery: the target has answered. No-op if no FAILOVER shifts. */
void failover_end(struct server *server, bool is_agreed);

#endif
