/* leaderboard-server --check DIR [--fix]: is what lies on disk whole?
 *
 * Reads everything the manifest names as the server would at its start: structure, checksums, and
 * the boards themselves, which are built and validated. Says of each file what is in it or where it
 * is damaged, what a start would make of that, and what to do. Changes nothing without --fix. */
#ifndef SERVER_CHECK_H
#define SERVER_CHECK_H

#include <stdbool.h>
#include <stdio.h>

#include "codec/check.h"

enum check_result {
    CHECK_IS_WHOLE = 0,   /* also after what was not has been cut off */
    CHECK_IS_DAMAGED = 1, /* or torn */
    CHECK_IS_UNKNOWN = 2, /* not there, in use, not readable, no memory */
};

/* directory: the one with the manifest, or the one above with the usual name for it. With is_fixing
 * a torn or damaged tail of the last journal is cut off, if everything before it is whole. The
 * result is the program's exit status. */
MUST_CHECK enum check_result check_run(const char *directory, bool is_fixing, FILE *out);

#endif
