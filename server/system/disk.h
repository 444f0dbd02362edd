/* The system calls that read and write the server's files, in one table, so that tests can make any
 * of them fail; and helpers for interrupted and partial calls.
 *
 * Everything blocks, and any thread may call it. Nothing here allocates except list. */
#ifndef SERVER_DISK_H
#define SERVER_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "codec/check.h"

typedef void disk_visit_name(void *context, const char *name);

/* As in POSIX: -1 and errno on failure. */
struct disk {
    int (*open_at)(int directory, const char *name, int flags, mode_t mode);
    int (*close)(int fd);
    ssize_t (*write)(int fd, const void *bytes, size_t size);
    ssize_t (*write_at)(int fd, const void *bytes, size_t size, off_t offset);
    ssize_t (*read_at)(int fd, void *bytes, size_t size, off_t offset);
    int (*sync_contents)(int fd); /* fdatasync */
    int (*sync)(int fd);          /* fsync, also for directories */
    int (*truncate)(int fd, off_t size);
    int (*rename_at)(int directory, const char *from, const char *to);
    int (*unlink_at)(int directory, const char *name);
    int (*make_directory_at)(int directory, const char *name, mode_t mode);
    int (*size)(int fd, uint64_t *size);
    int (*lock)(int fd); /* for this open file description; EWOULDBLOCK: another one holds it */
    /* Visit each name in the directory, in any order, without "." and "..". */
    int (*list)(int directory, disk_visit_name *visit, void *context);
    /* Start writing back these bytes, or wait until they are written back, so that a later sync has
     * little left to do. This is not a sync. An error reported here is not reported again by a
     * sync. */
    int (*write_back)(int fd, uint64_t offset, uint64_t size, bool is_waiting);
};

/* The real system calls. */
extern const struct disk disk_system;
/* The table in use; set it while no other thread uses it. */
extern const struct disk *disk;

/* Room for any message about a file. */
enum { DISK_ERROR_MAX = 2048 };

/* Write all bytes, retrying after interruptions and short writes. false: errno says why. */
MUST_CHECK bool disk_write_all(int fd, const void *bytes, size_t size);
/* The same at offset, which the file need not reach; not for a descriptor with O_APPEND. */
MUST_CHECK bool disk_write_all_at(int fd, const void *bytes, size_t size, uint64_t offset);
/* Read up to size bytes at offset; *got is less only at end of file. false: errno says why. */
MUST_CHECK bool disk_read_all(int fd, void *bytes, size_t size, uint64_t offset, size_t *got);
/* Read exactly size bytes. false: errno says why; ENODATA: the file ends before. */
MUST_CHECK bool disk_read_whole(int fd, void *bytes, size_t size, uint64_t offset);
/* open, sync, lock and truncate, retried after interruptions. An error of a sync is final: the
 * kernel may have dropped the pages it could not write, and a second sync of the same file would
 * report success. */
MUST_CHECK int disk_open(int directory, const char *name, int flags, mode_t mode);
MUST_CHECK bool disk_sync_contents(int fd);
MUST_CHECK bool disk_sync(int fd);
MUST_CHECK bool disk_lock(int fd);
/* Reports success on a file system that cannot sync directories. */
MUST_CHECK bool disk_sync_directory(int fd);
MUST_CHECK bool disk_truncate(int fd, uint64_t size);
/* Close a descriptor (-1: nothing to do); errno is kept. */
void disk_close(int fd);

/* A file that is read front to back through one buffer, which the caller owns. */
struct disk_window {
    int fd;
    uint64_t file_size; /* nothing after it is read */
    char *buffer;       /* holds the file's bytes from offset on */
    size_t buffer_size;
    size_t used;
    uint64_t offset;
};

/* Get size bytes (at most buffer_size) that lie before file_size; valid until the next call. Reads
 * ahead up to read_size bytes, as far as there is room. NULL: errno says why; ENODATA: the file has
 * become shorter. */
MUST_CHECK const char *disk_window_get(struct disk_window *window, uint64_t offset, size_t size,
                                       size_t read_size);

/* Read a small file of the system's, such as /proc has: its first bytes, size at most, terminated, without the line
 * end. false: it is empty, or cannot be read; text is then empty. */
MUST_CHECK bool disk_read_text(const char *path, char *text, size_t size);

/* A new file in this directory, for reading and writing, that has no name: nothing is left of it, however the process
 * ends. -1: errno says why. */
int disk_open_unnamed(const char *directory);

/* 64 unpredictable bits. */
uint64_t disk_random_id(void);

#endif
