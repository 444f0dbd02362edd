/* The calls by which the server's files are read and written, in one table, so that tests can make
 * any of them fail; and helpers that deal with what a call may do short of failing.
 *
 * Everything blocks, and may be called by any thread. Nothing here allocates but list. */
#ifndef SERVER_DISK_H
#define SERVER_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "codec/check.h"

typedef void disk_visit_name(void *context, const char *name);

/* As the calls of POSIX: -1 and errno when they fail. */
struct disk {
    int (*open_at)(int directory, const char *name, int flags, mode_t mode);
    int (*close)(int fd);
    ssize_t (*write)(int fd, const void *bytes, size_t size);
    ssize_t (*read_at)(int fd, void *bytes, size_t size, off_t offset);
    int (*sync_contents)(int fd); /* fdatasync */
    int (*sync)(int fd);          /* fsync, of directories too */
    int (*truncate)(int fd, off_t size);
    int (*rename_at)(int directory, const char *from, const char *to);
    int (*unlink_at)(int directory, const char *name);
    int (*make_directory_at)(int directory, const char *name, mode_t mode);
    int (*size)(int fd, uint64_t *size);
    int (*lock)(int fd); /* for this open file alone; EWOULDBLOCK: another has it */
    /* Each name in the directory, in no order, without "." and "..". */
    int (*list)(int directory, disk_visit_name *visit, void *context);
    /* Begin to write these bytes back, or wait until they are: so that a sync at the end has little
     * left to do. It is no sync. An error it reports is not reported again by a sync. */
    int (*write_back)(int fd, uint64_t offset, uint64_t size, bool is_waiting);
};

/* The system's. */
extern const struct disk disk_system;
/* The one in use; set while no other thread uses it. */
extern const struct disk *disk;

/* Room for any message about a file. */
enum { DISK_ERROR_MAX = 2048 };

/* All size bytes, over interruptions and short writes. false: errno says why. *written (may be
 * NULL): how many were written, also then. */
MUST_CHECK bool disk_write_all(int fd, const void *bytes, size_t size, size_t *written);
/* Up to size bytes from offset on: *got is less only where the file ends. false: errno says why. */
MUST_CHECK bool disk_read_all(int fd, void *bytes, size_t size, uint64_t offset, size_t *got);
/* open, sync and truncate over interruptions. An error of a sync is final: the kernel may have
 * dropped what it could not write, and a second sync of the same file would say that all is well.
 */
MUST_CHECK int disk_open(int directory, const char *name, int flags, mode_t mode);
MUST_CHECK bool disk_sync_contents(int fd);
MUST_CHECK bool disk_sync(int fd);
/* A file system that cannot sync directories is taken at its word. */
MUST_CHECK bool disk_sync_directory(int fd);
MUST_CHECK bool disk_truncate(int fd, uint64_t size);
/* Close what may have been opened (fd -1: nothing), keep errno. */
void disk_close(int fd);

/* A file that is read from front to back through one buffer of the caller's. */
struct disk_window {
    int fd;
    uint64_t file_size; /* nothing behind it is read */
    char *buffer;       /* the file's bytes from offset on */
    size_t buffer_size;
    size_t used;
    uint64_t offset;
};

/* size bytes (at most buffer_size) of the file, which lie before file_size, valid until the next
 * call. Reads ahead as far as there is room, but not more than read_size. NULL: errno says why,
 * ENODATA when the file has become shorter. */
MUST_CHECK const char *disk_window_get(struct disk_window *window, uint64_t offset, size_t size,
                                       size_t read_size);

/* 64 bits that nobody can guess. */
uint64_t disk_random_id(void);

#endif
