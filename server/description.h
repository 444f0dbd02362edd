/* What the server is, as data: its commands, settings and figures as JSON (leaderboard-server --describe). docs/write
 * reads it, and writes the pages, man pages, completion, leaderboard.conf and the methods of the clients. */
#ifndef SERVER_DESCRIPTION_H
#define SERVER_DESCRIPTION_H

#include <stdio.h>

/* execute_init was called.
 *
 *     version, redis_version
 *     commands   [{name container? group summary complexity since syntax reply flags is_secret runs
 *                 cost? arguments}]
 *     shapes     [{name shape}]                of replies (dispatch/shape.h)
 *     settings   [{name aliases section about type syntax default? example? is_fixed summary}]
 *     uses       [{words summary}]             ways to call the program
 *     errors     [{prefix http_status? meaning advice}]
 *     figures    [{info? metric? kind label? labels? help api?}], those of the metrics in their order
 *
 * An argument is {name type token? is_optional is_multiple is_token_repeated arguments?}. */
void description_write(FILE *file);

#endif
