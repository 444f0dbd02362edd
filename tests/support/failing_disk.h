/* A disk whose nth call fails, as server/disk.h would have it. All calls are counted but close. */
#ifndef TESTS_SUPPORT_FAILING_DISK_H
#define TESTS_SUPPORT_FAILING_DISK_H

#include "server/disk.h"

enum failure {
    FAILURE_NONE,
    FAILURE_EIO,
    FAILURE_ENOSPC,
    FAILURE_EINTR,
    FAILURE_SHORT, /* a write or read of half the bytes; other calls succeed */
    FAILURE_CRASH, /* a write of half the bytes; then this and all further calls fail */
};

/* Put the disk in place; nth 1 is the next call. Begin anew at any time. */
void failing_disk_begin(enum failure failure, uint64_t nth);
/* The system's disk again. Returns the calls since it began. */
uint64_t failing_disk_end(void);

/* Syncs of files and directories since it began. */
uint64_t failing_disk_syncs(void);

#endif
