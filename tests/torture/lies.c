/* Syncs that are answered and not done, for a server that runs with LD_PRELOAD: powercut.py builds this. The
 * first byte of the file $TORTURE_LIES says at any time whose: 1 of files, 2 of directories. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LIE_FILE_SYNC = 1, LIE_DIRECTORY_SYNC = 2 };

static const volatile unsigned char *lies;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TORTURE_LIES");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *shared = fd < 0 ? MAP_FAILED : mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        perror("TORTURE_LIES");
        _exit(99);
    }
    close(fd);
    lies = shared;
}

static bool is_lied(int fd) {
    struct stat status;
    return fstat(fd, &status) == 0 &&
           (*lies & (S_ISDIR(status.st_mode) ? LIE_DIRECTORY_SYNC : LIE_FILE_SYNC)) != 0;
}

int fsync(int fd) {
    return is_lied(fd) ? 0 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
    return is_lied(fd) ? 0 : (int)syscall(SYS_fdatasync, fd);
}

int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
    return is_lied(fd) ? 0 : (int)syscall(SYS_sync_file_range, fd, offset, size, flags);
}
