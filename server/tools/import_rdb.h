/* leaderboard-server --import dump.rdb [configuration file] [--setting value ...]
 *
 * Fills the data directory of these settings from a dump of Redis or Valkey (server/rdb/rdb_load.h), and
 * leaves a snapshot that a start with the same settings loads. The directory must not have files of a
 * server yet. An error leaves it as it was. With --format this is another import. */
#ifndef SERVER_IMPORT_RDB_H
#define SERVER_IMPORT_RDB_H

#include <stdbool.h>

#include "codec/check.h"

/* Is it asked for? Then it is done, and *status is the exit status. */
MUST_CHECK bool import_rdb_and_exit(int argc, char **argv, int *status);

#endif
