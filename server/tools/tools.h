/* What leaderboard-server does besides serving:
 *
 *     --ping PORT                   is a server ready?
 *     --backup HOST:PORT FILE       a copy of a running server's boards
 *     --restore FILE|DIR TARGET     a directory to start from, also as of an earlier second
 *     --export FILE|DIR OUT         CSV, JSON lines, or commands for Redis
 *     --import IN TARGET            a directory to start from
 *
 * These read and write files that may come from anybody, on one thread, with a registry of their own at most. */
#ifndef SERVER_TOOLS_H
#define SERVER_TOOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/durability/store.h"
#include "server/tools/link.h"
#include "skiplist/keyspace/registry.h"

/* Does the command line name one of these? Then it is done, and *status is the exit status. */
MUST_CHECK bool tools_run(int argc, char **argv, int *status);

/* For the others in this folder: print a line to stderr, behind the program's name. Returns false. */
__attribute__((format(printf, 1, 2))) bool tools_complain(const char *format, ...);
/* Sync the directory that the path is in. false: errno says why. */
MUST_CHECK bool tools_sync_parent(const char *path);
/* The machine's time: microseconds since 1970. */
int64_t tools_now_us(void);
/* Write a registry that no server serves into the store, which is claimed, as its base; returns when that is on disk.
 * false: the reason is in the log. */
MUST_CHECK bool tools_save(struct registry *registry, struct store *store, int64_t now_us);

/* ---- --import dump.rdb [configuration file] [--setting value ...]: import_rdb.c ----
 *
 * Fills the data directory of these settings from a dump of Redis or Valkey (server/rdb/rdb_load.h), and
 * leaves a snapshot that a start with the same settings loads. The directory must not have files of a
 * server yet. An error leaves it as it was. With --format this is another import. */

/* Is it asked for? Then it is done, and *status is the exit status. */
MUST_CHECK bool import_rdb_and_exit(int argc, char **argv, int *status);

/* ---- --backup HOST:PORT FILE: reads LB.SNAPSHOT from a running server into a file: backup.c ----
 *
 * The file is a base (server/durability/snapshot_file.h). It gets its name when it is whole: every
 * block's checksum and the end mark are verified, and it is synced. Until then it is FILE.part-<pid>. */

struct backup_options {
    struct link_options link;
    const char *user, *password; /* NULL: none */
    uint64_t rate;               /* bytes a second; 0: no limit */
};

/* address: HOST:PORT, [IPv6]:PORT, or the path of a unix socket. What was done is printed. false: the
 * error was printed, and there is no file. */
MUST_CHECK bool backup_run(const char *address, const char *path,
                           const struct backup_options *options);

#endif
