/* --ping: asks a server whether it is ready, as a health check where there is no redis-cli, such as in
 * a container.
 *
 *     leaderboard-server --ping PORT | HOST:PORT | /path/of/the/socket [--alive]
 *
 * The password is taken from the environment, REDISCLI_AUTH, as redis-cli does. */
#ifndef SERVER_PROBE_H
#define SERVER_PROBE_H

#include <stdbool.h>
#include <stdio.h>

enum { PROBE_LIMIT_MS = 2000 };

/* Connect to target, send PING, and print the answer, or why there is none, within PROBE_LIMIT_MS.
 * true: it is PONG, or, with is_alive, any answer. password: NULL: none. */
bool probe_ping(const char *target, const char *password, bool is_alive, FILE *out);

#endif
