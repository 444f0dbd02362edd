/* Boards and hashes as text (server/tools/record.h), and back; and as commands for Redis.
 *
 * An export is of a backup or a directory, not of a running server: so it is exact, holds nobody up, and
 * there is one way that sees every key. An import makes a directory to start from: commands could give
 * neither times of arrival nor the order of equals back. Both take as much memory as a server with these
 * boards.
 *
 * What is imported is equal to what was exported: layouts, options, exact scores, times, the order among
 * equals, hashes, expiries, databases, and what the server keeps for itself (bans, in databases from 16
 * on). */
#ifndef SERVER_EXPORT_H
#define SERVER_EXPORT_H

#include <stdio.h>

#include "server/tools/record.h"
#include "skiplist/keyspace/registry.h"

/* Write all keys. false: the error was printed. */
MUST_CHECK bool export_records(const struct registry *registry, enum record_format format,
                               FILE *out);
/* Write them as commands in RESP, for redis-cli --pipe. What Redis cannot hold as it is is counted and
 * said on stderr. */
MUST_CHECK bool export_redis(const struct registry *registry, FILE *out);

/* Fill an empty registry. false: error (IMPORT_ERROR_MAX) says what is wrong, and in which line. */
enum { IMPORT_ERROR_MAX = 1024 };
MUST_CHECK bool import_records(struct registry *registry, enum record_format format, FILE *in,
                               char *error);
/* Write it into a target as restore.h has them: a directory to start from. false: the error was printed. */
MUST_CHECK bool import_save(struct registry *registry, const char *target);

#endif
