#include "tests/support/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/check.h"

void directory_make(char *path) {
    const char *under = getenv("TMPDIR");
    int size = snprintf(path, DIRECTORY_PATH_MAX, "%s/leaderboard-test-XXXXXX",
                        under != NULL ? under : "/tmp");
    CHECK(size > 0 && size < DIRECTORY_PATH_MAX);
    CHECK(mkdtemp(path) != NULL);
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

void directory_remove(const char *path) {
    CHECK(nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0);
}

unsigned directory_count(const char *path) {
    DIR *listing = opendir(path);
    CHECK(listing != NULL);
    unsigned count = 0;
    for (const struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(listing);
    return count;
}

const char *directory_join(const char *path, const char *name) {
    static char texts[4][2 * DIRECTORY_PATH_MAX];
    static unsigned next;
    char *text = texts[next++ % 4];
    int size = snprintf(text, sizeof texts[0], "%s/%s", path, name);
    CHECK(size > 0 && (size_t)size < sizeof texts[0]);
    return text;
}

bool file_exists(const char *path) {
    return access(path, F_OK) == 0;
}

char *file_read(const char *path, size_t *size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat status;
    CHECK(fd >= 0 && fstat(fd, &status) == 0);
    *size = (size_t)status.st_size;
    char *bytes = malloc(*size + 1);
    CHECK(bytes != NULL);
    CHECK(read(fd, bytes, *size) == (ssize_t)*size);
    close(fd);
    bytes[*size] = '\0';
    return bytes;
}

void file_write(const char *path, const void *bytes, size_t size) {
    /* Cut afterwards: ext4 writes a file that was emptied first to the disk at once. */
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0);
    CHECK(write(fd, bytes, size) == (ssize_t)size);
    CHECK(ftruncate(fd, (off_t)size) == 0);
    close(fd);
}
