/* Signatures of players' tokens that take long (ed25519), looked at by a thread of their own while the loop goes on.
 *
 *     tick        verifier_begin: the connection is held
 *     thread      jwt_verify, of some at a time
 *     tick        what it found is session.verified; the connection resumes, and its AUTH or HELLO runs
 *
 * Likewise with tickets: what it finds is in player_keys then, and a command with several is held for one after another.
 * The thread begins with the first such token. */
#ifndef SERVER_VERIFIER_H
#define SERVER_VERIFIER_H

#include "server/sessions/server.h"
#include "server/system/worker.h"

struct connection;
struct verifier_item;

/* Zero-initialised: nothing was asked for yet. */
struct verifier {
    struct worker worker;
    struct verifier_item *first, *last; /* those that wait for the thread, oldest first */
    struct verifier_item *running;      /* those that the thread works at */
};

/* Must this token be looked at before the request that has it runs? Then the caller holds the connection, which is
 * resumed. Without memory or threads: no; it is looked at where it is asked for. */
MUST_CHECK bool verifier_begin(struct verifier *verifier, struct connection *connection,
                               struct bytes token);
/* The same for a ticket. */
MUST_CHECK bool verifier_begin_ticket(struct verifier *verifier, struct connection *connection,
                                      struct bytes ticket);
/* The client is gone. */
void verifier_leave(struct connection *connection);
/* Before the loop ends. */
void verifier_stop(struct verifier *verifier);

#endif
