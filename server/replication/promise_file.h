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
 * The node's number is made once. The file is replaced atomically, as the manifest is, and a promise
 * counts only when the file is on disk. Everything blocks; any thread may call it, one at a time. */
#ifndef SERVER_PROMISE_FILE_H
#define SERVER_PROMISE_FILE_H

#include "server/replication/term.h"
#include "server/system/disk.h"

/* What is known of a server that is found ended, if this is what its file says. */
enum promise_left {
    PROMISE_LEFT_CRASHED, /* it has acknowledged what was written to its journal, and may not be on
                           * its disk: all is there if the machine has not been started anew since */
    PROMISE_LEFT_DURABLE, /* it has acknowledged only what was on its disk */
    PROMISE_LEFT_CLEAN,   /* it has ended cleanly, with `group` as its last */
    PROMISE_LEFTS,
};

enum { PROMISE_BOOT_SIZE = 36 };

struct promise {
    uint64_t node;        /* never 0 */
    struct term promised; /* the highest */
    enum promise_left left;
    char boot[PROMISE_BOOT_SIZE + 1]; /* of the machine, while the server runs: promise_read_boot */
    uint64_t group;
    int64_t lease_ms; /* the longest that it has answered a probe of, or has asked for */
};

enum promise_status {
    PROMISE_OK,
    PROMISE_MISSING, /* there is no file, or no directory */
    PROMISE_DAMAGED,
    PROMISE_FAILED, /* a system call failed */
};

/* Read it. Not OK: error (DISK_ERROR_MAX) says why, with the file's name. */
MUST_CHECK enum promise_status promise_load(const char *directory, struct promise *promise,
                                            char *error);
/* Replace it: on disk when this returns true. false: errno says why; the old or the new one is there. */
MUST_CHECK bool promise_save(const char *directory, const struct promise *promise);

/* What tells one start of the machine from another. Where the system does not say, no two are the
 * same. */
void promise_read_boot(char boot[PROMISE_BOOT_SIZE + 1]);

/* As text. */
enum { PROMISE_TEXT_MAX = 384 };
size_t promise_print(const struct promise *promise, char out[PROMISE_TEXT_MAX]);
/* false: it is not what promise_print writes. */
MUST_CHECK bool promise_parse(struct bytes text, struct promise *promise);

#endif
