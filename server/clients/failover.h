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
 * Redis's command and names. */
#ifndef SERVER_FAILOVER_H
#define SERVER_FAILOVER_H

#include "server/clients/replication.h"

struct failover_options {
    struct bytes host; /* at NULL: whichever replica catches up first */
    int64_t port;
    bool is_forced;     /* after the timeout, whether it has caught up or not */
    int64_t timeout_ms; /* 0: none */
};

/* Why it cannot begin, Redis's text; NULL: it has begun. caller: who asks for it. Where a Sentinel watches, that
 * must be one: a Sentinel that has not ordered the change takes this server for a master that has failed, some 20
 * s later, and promotes whom it likes. */
MUST_CHECK const char *failover_begin(struct server *server, const struct session *caller,
                                      const struct failover_options *options);
/* In every tick: has somebody caught up, or is the time over? has_waiting_answers: some wait for the disk or
 * for replicas. */
void failover_step(struct server *server, bool has_waiting_answers);
/* When the time is over, monotonic; INT64_MAX: no FAILOVER waits for it. */
int64_t failover_due_ms(const struct server *server);
/* false: there is none. reason: for the log. */
bool failover_abort(struct server *server, const char *reason);
/* The machinery: the target has answered. No-op if no FAILOVER shifts. */
void failover_end(struct server *server, bool is_agreed);

#endif
