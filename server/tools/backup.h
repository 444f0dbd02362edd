/* leaderboard-server --backup HOST:PORT FILE: reads LB.SNAPSHOT from a running server into a file.
 *
 * The file is a base (server/durability/snapshot_file.h). It gets its name when it is whole: every
 * block's checksum and the end mark are verified, and it is synced. Until then it is FILE.part-<pid>. */
#ifndef SERVER_BACKUP_H
#define SERVER_BACKUP_H

#include "codec/check.h"

#include <stdbool.h>
#include <stdint.h>

#include "server/tools/link.h"

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
