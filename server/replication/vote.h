/* What a node must not forget of terms: leaderboard.promise, beside the manifest.
 *
 *     leaderboard promise 1
 *     node 5f1c0d2b9a8e7f34
 *     promised 00000000000a5f1c0d2b9a8e7f3491c2d0e4a7b3
 *     left crashed
 *     boot 1f7f5b0a-6c3e-4d2b-9c57-0a1b2c3d4e5f
 *     group 81250
 *     lease 1000
 *     checksum 5f1c0d2b9a8e7f34
 *
 * The node's number is made once. The file is replaced atomically, as the manifest is, and a vote
 * counts only when the file is on disk. Everything blocks; any thread may call it, one at a time. */
#ifndef SERVER_VOTE_H
#define SERVER_VOTE_H

#include "server/replication/term.h"
#include "server/system/disk.h"

/* What is known of a server that is found ended, if this is what its file says. */
enum vote_left {
    VOTE_LEFT_CRASHED, /* it has acknowledged what was written to its journal, and may not be on
                           * its disk: all is there if the machine has not been started anew since */
    VOTE_LEFT_DURABLE, /* it has acknowledged only what was on its disk */
    VOTE_LEFT_CLEAN,   /* it has ended cleanly, with `group` as its last */
    VOTE_LEFTS,
};

enum { VOTE_BOOT_SIZE = 36 };

struct vote {
    uint64_t node;     /* never 0 */
    struct term voted; /* the highest that it has voted for */
    enum vote_left left;
    char boot[VOTE_BOOT_SIZE + 1]; /* of the machine, while the server runs: vote_read_boot */
    uint64_t group;
    int64_t lease_ms; /* the longest that it has answered a probe of, or has asked for */
};

enum vote_status {
    VOTE_OK,
    VOTE_MISSING, /* there is no file, or no directory */
    VOTE_DAMAGED,
    VOTE_FAILED, /* a system call failed */
};

/* Read it. Not OK: error (DISK_ERROR_MAX) says why, with the file's name. */
MUST_CHECK enum vote_status vote_load(const char *directory, struct vote *vote, char *error);
/* Replace it: on disk when this returns true. false: errno says why; the old or the new one is there. */
MUST_CHECK bool vote_save(const char *directory, const struct vote *vote);

/* What tells one start of the machine from another. Where the system does not say, no two are the
 * same. */
void vote_read_boot(char boot[VOTE_BOOT_SIZE + 1]);

/* As text. */
enum { VOTE_TEXT_MAX = 384 };
size_t vote_print(const struct vote *vote, char out[VOTE_TEXT_MAX]);
/* false: it is not what vote_print writes. */
MUST_CHECK bool vote_parse(struct bytes text, struct vote *vote);

#endif
