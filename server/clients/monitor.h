/* MONITOR: a client receives every command that the server runs, in Redis's line format.
 *
 *     +1339518083.107412 [0 127.0.0.1:60866] "ZADD" "board" "1" "ann"
 *
 * Secrets are never shown. */
#ifndef SERVER_MONITOR_H
#define SERVER_MONITOR_H

#include "protocol/request.h"
#include "server/clients/server.h"

/* Which arguments of a request are replaced by "(redacted)". */
enum monitor_secrets {
    MONITOR_SECRETS_NONE,
    MONITOR_SECRETS_ALL,         /* AUTH: all but the command name */
    MONITOR_SECRETS_BEHIND_AUTH, /* HELLO: the two arguments after each AUTH option, as in Redis */
};

/* Send an executed request to every monitor. */
void monitor_feed(struct server *server, const struct session *session,
                  const struct request *request, enum monitor_secrets secrets);

#endif
