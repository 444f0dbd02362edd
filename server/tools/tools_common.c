/* What the tools share: see tools.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

#include "codec/memory.h"
#include "server/system/disk.h"
#include "server/tools/tools.h"

bool tools_complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "leaderboard-server: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return false;
}

bool tools_sync_parent(const char *path) {
    const char *slash = strrchr(path, '/');
    size_t size = slash != NULL ? (size_t)(slash - path) : 0;
    char *parent = memory_allocate(size + 2);
    if (parent == NULL) {
        errno = ENOMEM;
        return false;
    }
    memcpy(parent, path, size);
    memcpy(parent + size, size > 0 ? "" : slash != NULL ? "/" : ".", size > 0 ? 1 : 2);
    int fd = disk_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0);
    bool is_synced = fd >= 0 && disk_sync_directory(fd);
    disk_close(fd);
    memory_free(parent);
    return is_synced;
}

int64_t tools_now_us(void) {
    struct timeval now;
    gettimeofday(&now, NULL);
    return (int64_t)now.tv_sec * 1000000 + now.tv_usec;
}
