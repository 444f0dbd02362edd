/* A disk whose nth call fails, as server/system/disk.h would have it. All calls are counted but
 * close, by whatever thread. */
#ifndef TESTS_SUPPORT_FAILING_DISK_H
#define TESTS_SUPPORT_FAILING_DISK_H

#include "server/system/disk.h"

enum failure {
    FAILURE_NONE,
    FAILURE_EIO,
    FAILURE_ENOSPC,
    FAILURE_EINTR,
    FAILURE_SHORT, /* a write or read of half the bytes; other calls succeed */
    FAILURE_CRASH, /* a write of half the bytes; then this and all further calls fail */
    FAILURE_FULL,  /* ENOSPC, but only of writes, new files and new directories; if more than one
                    * call fails and the nth is a write, that one writes half the bytes */
};

enum failing_call {
    FAILING_NOTHING,
    FAILING_OPEN,
    FAILING_WRITE,
    FAILING_READ,
    FAILING_SYNC_CONTENTS,
    FAILING_SYNC,
    FAILING_TRUNCATE,
    FAILING_RENAME,
    FAILING_UNLINK,
    FAILING_MAKE_DIRECTORY,
    FAILING_SIZE,
    FAILING_LOCK,
    FAILING_LIST,
    FAILING_WRITE_BACK,
};

/* Put the disk in place; nth 1 is the next call. Begin anew at any time when no other thread uses
 * it. */
void failing_disk_begin(enum failure failure, uint64_t nth);
/* The same where count calls fail, from the nth on. */
void failing_disk_begin_for(enum failure failure, uint64_t nth, uint64_t count);
/* No further call fails; they are counted as before. By any thread. */
void failing_disk_heal(void);
/* The disk below it again. Returns the calls since it began. */
uint64_t failing_disk_end(void);

/* The nth call, if it came before the disk was healed. */
enum failing_call failing_disk_hit(void);
/* Syncs of files and directories since it began. */
uint64_t failing_disk_syncs(void);

/* From now on this process knows of these what those know that it forks. */
void failing_disk_share(void);

/* The system's disk, on which syncs are done at once: the death of a process loses nothing that was
 * written. Calls of the failing one that go on are then its calls, too. */
void quick_disk_begin(void);

#endif
