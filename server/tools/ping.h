/* --ping: asks a server whether it is ready, as a health check where there is no redis-cli, such as in
 * a container. */
#ifndef SERVER_TOOLS_PING_H
#define SERVER_TOOLS_PING_H

#include <stdio.h>

#include "server/tools/link.h"

enum { PING_LIMIT_S = 2 }; /* for connecting, and for each reply */

struct ping_options {
    struct link_options link;
    const char *user, *password; /* NULL: none */
    bool is_alive;
};

/* Connect to the target, PORT (of this machine), or as link_open has it; send PING, and print the answer, or why
 * there is none. true: it is PONG, or, with is_alive, any answer. The certificate of this machine's port may be
 * for any name. */
bool ping_run(const char *target, const struct ping_options *options, FILE *out);

#endif
