/* leaderboard-server --restore FILE|DIR TARGET: makes a directory that a server starts from, of a backup,
 * or of a server's directory and the files that it has kept (appendonly-keep-days).
 *
 *     bases and journals found --> the youngest base that is not after --until, and the journals
 *                                  behind it, up to the last group that is not after it
 *
 * Files are copied as they are, and the last journal is cut between two ticks. Every checksum of the copies is
 * verified; nothing is loaded. Where a base is damaged, an earlier one and the journals may hold the same; otherwise a
 * damaged file fails the restore, also one that was not needed but could hold later changes. The manifest is written last:
 * a restore that breaks off leaves no directory that a server would start from. */
#ifndef SERVER_RESTORE_H
#define SERVER_RESTORE_H

#include "codec/check.h"

#include <stdbool.h>
#include <stdint.h>

struct restore_options {
    int64_t until_us;     /* INT64_MAX: all that there is */
    const char *journals; /* another directory with kept files; NULL: none */
};

/* What was done is printed. false: the error was printed, and the target is as it was. */
MUST_CHECK bool restore_run(const char *source, const char *target,
                            const struct restore_options *options);

/* A target: a directory that does not exist, or is empty. *is_made: it was made. false: the error was
 * printed. */
MUST_CHECK bool restore_begin_target(const char *target, bool *is_made);

#define RESTORE_DIRECTORY "appendonlydir" /* inside the target */

#endif
