/* What leaderboard-server does besides serving:
 *
 *     --ping PORT                   is a server ready?
 *     --backup HOST:PORT FILE       a copy of a running server's boards
 *     --restore FILE|DIR TARGET     a directory to start from, also as of an earlier second
 *     --export FILE|DIR OUT         CSV, JSON lines, or commands for Redis
 *     --import IN TARGET            a directory to start from
 *
 * These read and write files of strangers, on one thread, with a registry of their own at most. */
#ifndef SERVER_TOOLS_H
#define SERVER_TOOLS_H

#include "codec/check.h"

#include <stdbool.h>
#include <stdint.h>

/* Does the command line name one of these? Then it is done, and *status is the exit status. */
MUST_CHECK bool tools_run(int argc, char **argv, int *status);

/* For the others in this folder: print a line to stderr, behind the program's name. Returns false. */
__attribute__((format(printf, 1, 2))) bool tools_complain(const char *format, ...);
/* Sync the directory that the path is in. false: errno says why. */
MUST_CHECK bool tools_sync_parent(const char *path);
/* The machine's time: microseconds since 1970. */
int64_t tools_now_us(void);

#endif
