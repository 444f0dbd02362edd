/* The system calls, and how interrupted and partial calls are handled. See disk.h. */
#include "server/system/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- system calls ---- */

static int disk_system_open_at(int directory, const char *name, int flags, mode_t mode) {
    return openat(directory, name, flags | O_CLOEXEC, mode);
}

static ssize_t disk_system_write(int fd, const void *bytes, size_t size) {
    return write(fd, bytes, size);
}

static ssize_t disk_system_write_at(int fd, const void *bytes, size_t size, off_t offset) {
    return pwrite(fd, bytes, size, offset);
}

static ssize_t disk_system_read_at(int fd, void *bytes, size_t size, off_t offset) {
    return pread(fd, bytes, size, offset);
}

static int disk_system_rename_at(int directory, const char *from, const char *to) {
    return renameat(directory, from, directory, to);
}

static int disk_system_unlink_at(int directory, const char *name) {
    return unlinkat(directory, name, 0);
}

static int disk_system_size(int fd, uint64_t *size) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return -1;
    }
    *size = (uint64_t)status.st_size;
    return 0;
}

static int disk_system_lock(int fd) {
    return flock(fd, LOCK_EX | LOCK_NB);
}

static int disk_system_list(int directory, disk_visit_name *visit, void *context) {
    /* A separate file description, because closedir closes it and listing moves its offset. */
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    if (listing == NULL) {
        disk_close(fd);
        return -1;
    }
    const struct dirent *entry;
    for (errno = 0; (entry = readdir(listing)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            visit(context, entry->d_name);
        }
    }
    int error = errno;
    closedir(listing);
    errno = error;
    return error == 0 ? 0 : -1;
}

static int disk_system_write_back(int fd, uint64_t offset, uint64_t size, bool is_waiting) {
#ifdef SYNC_FILE_RANGE_WRITE
    unsigned waiting = SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WAIT_AFTER;
    return sync_file_range(fd, (off_t)offset, (off_t)size,
                           SYNC_FILE_RANGE_WRITE | (is_waiting ? waiting : 0));
#else
    (void)offset;
    (void)size;
    return is_waiting ? fdatasync(fd) : 0;
#endif
}

const struct disk disk_system = {
    .open_at = disk_system_open_at,
    .close = close,
    .write = disk_system_write,
    .write_at = disk_system_write_at,
    .read_at = disk_system_read_at,
    .sync_contents = fdatasync,
    .sync = fsync,
    .truncate = ftruncate,
    .rename_at = disk_system_rename_at,
    .unlink_at = disk_system_unlink_at,
    .make_directory_at = mkdirat,
    .size = disk_system_size,
    .lock = disk_system_lock,
    .list = disk_system_list,
    .write_back = disk_system_write_back,
};
const struct disk *disk = &disk_system;

/* ---- helpers ---- */

#define DISK_AT_THE_END UINT64_MAX

static bool disk_write(int fd, const char *bytes, size_t size, uint64_t offset) {
    size_t done = 0;
    while (done < size) {
        ssize_t count = offset == DISK_AT_THE_END
                            ? disk->write(fd, bytes + done, size - done)
                            : disk->write_at(fd, bytes + done, size - done, (off_t)(offset + done));
        if (count > 0) {
            done += (size_t)count;
        } else if (count == 0) {
            /* write returned 0 without an error: only a full disk causes that. */
            errno = ENOSPC;
            return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool disk_write_all(int fd, const void *bytes, size_t size) {
    return disk_write(fd, bytes, size, DISK_AT_THE_END);
}

bool disk_write_all_at(int fd, const void *bytes, size_t size, uint64_t offset) {
    return disk_write(fd, bytes, size, offset);
}

bool disk_read_all(int fd, void *bytes, size_t size, uint64_t offset, size_t *got) {
    *got = 0;
    while (*got < size) {
        ssize_t count =
            disk->read_at(fd, (char *)bytes + *got, size - *got, (off_t)(offset + *got));
        if (count == 0) {
            break;
        }
        if (count > 0) {
            *got += (size_t)count;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

bool disk_read_whole(int fd, void *bytes, size_t size, uint64_t offset) {
    size_t got;
    bool is_read = disk_read_all(fd, bytes, size, offset, &got);
    if (is_read && got < size) {
        errno = ENODATA;
    }
    return is_read && got == size;
}

int disk_open(int directory, const char *name, int flags, mode_t mode) {
    int fd;
    do {
        fd = disk->open_at(directory, name, flags, mode);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

static bool disk_is_done(int (*operation)(int fd), int fd) {
    int result;
    do {
        result = operation(fd);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

bool disk_sync_contents(int fd) {
    return disk_is_done(disk->sync_contents, fd);
}

bool disk_sync(int fd) {
    return disk_is_done(disk->sync, fd);
}

bool disk_lock(int fd) {
    return disk_is_done(disk->lock, fd);
}

bool disk_sync_directory(int fd) {
    /* PostgreSQL's fsync_fname_ext ignores the same two errors. */
    return disk_sync(fd) || errno == EINVAL || errno == EBADF;
}

bool disk_truncate(int fd, uint64_t size) {
    int result;
    do {
        result = disk->truncate(fd, (off_t)size);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

void disk_close(int fd) {
    if (fd >= 0) {
        int error = errno;
        disk->close(fd);
        errno = error;
    }
}

const char *disk_window_get(struct disk_window *window, uint64_t offset, size_t size,
                            size_t read_size) {
    uint64_t end = window->offset + window->used;
    if (offset >= window->offset && size <= end - window->offset &&
        offset - window->offset <= window->used - size) {
        return window->buffer + (offset - window->offset);
    }
    CHECK(size <= window->buffer_size && size <= window->file_size - offset);
    size_t kept = offset >= window->offset && offset < end ? (size_t)(end - offset) : 0;
    memmove(window->buffer, window->buffer + (window->used - kept), kept);
    window->offset = offset;
    window->used = kept;
    size_t wanted = size > read_size ? size : read_size;
    wanted = wanted < window->buffer_size ? wanted : window->buffer_size;
    if (wanted > window->file_size - offset) {
        wanted = (size_t)(window->file_size - offset);
    }
    size_t got;
    if (!disk_read_all(window->fd, window->buffer + kept, wanted - kept, offset + kept, &got)) {
        return NULL;
    }
    window->used += got;
    if (window->used < size) {
        errno = ENODATA;
        return NULL;
    }
    return window->buffer;
}

bool disk_read_text(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    while (got > 0 && text[got - 1] == '\n') {
        got--;
    }
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Its name is gone before the first byte. Not every file system has O_TMPFILE. */
int disk_open_unnamed(const char *directory) {
    enum { FILE_MODE = 0600, NAME_SIZE = 64 };
    char name[NAME_SIZE];
    int at = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at < 0) {
        return -1;
    }
    snprintf(name, sizeof name, "spool-%016llx.tmp", (unsigned long long)disk_random_id());
    int fd = disk_open(at, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (fd >= 0) {
        (void)disk->unlink_at(at, name);
    }
    disk_close(at);
    return fd;
}

uint64_t disk_random_id(void) {
    uint64_t id = 0;
    if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id) {
        /* The kernel has no getrandom: use an id that no two files share, though it can be guessed.
         */
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        id = ((uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 16) *
             0x9e3779b97f4a7c15U;
    }
    return id;
}
