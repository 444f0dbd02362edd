/* leaderboard-server --check DIR [--fix]: are the files on disk intact?
 *
 * Reads everything the manifest names, as the server does at start: structure, checksums, and the
 * boards themselves, which are built and validated. Reports for each file what it contains or where
 * it is damaged, what a start would make of it, and what to do. Changes nothing without --fix. */
#ifndef SERVER_CHECK_H
#define SERVER_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "codec/check.h"
#include "server/durability/loading.h"

enum check_result {
    CHECK_IS_WHOLE = 0,   /* also after a damaged tail was cut off */
    CHECK_IS_DAMAGED = 1, /* or torn */
    CHECK_IS_UNKNOWN = 2, /* missing, in use, not readable, or no memory */
};

/* directory: the one with the manifest, or its parent if it has the usual name; or a file: a backup
 * (server/tools/tools.h), which is a base alone. With is_fixing a
 * torn or damaged tail of the last journal is cut off if everything before it is intact. The result
 * is the exit status of the program. */
MUST_CHECK enum check_result verify_run(const char *directory, bool is_fixing, FILE *out);
/* Verify every block of a base, without decoding it. This takes fd; path is for messages. false: error
 * (DISK_ERROR_MAX) says what is wrong with it, and where. */
MUST_CHECK bool verify_blocks(int fd, const char *path, struct snapshot_footer *footer,
                              char *error);
/* Load a directory or a backup into an empty registry, as a server does at start. *time_us: the time of
 * its last group. false: error (DISK_ERROR_MAX) says why. */
MUST_CHECK bool verify_load(const char *path, struct registry *registry, uint64_t *time_us,
                            char *error);

#endif
