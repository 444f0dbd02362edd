/* File calls that fail, lie or kill, for a server that runs with LD_PRELOAD: faults.py builds this
 * and tells it what to do.
 *
 *     server --write()--> here --is it in the directory? the nth call?--> libc
 *                           \--> -1 and errno, a part of it, SIGKILL, or "done" and nothing done
 *
 * $TORTURE_FAULTS is a file of struct control that the harness and this share; what is in it counts
 * at once. Calls are counted when they are on $TORTURE_DIRECTORY or something in it. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { DESCRIPTORS_MAX = 4096, NAME_MAX_SHOWN = 128 };

/* What comes of the calls first_call .. last_call; smaller numbers are those of errno. */
enum fault { FAULT_SHORT = 1000, FAULT_KILL_BEFORE, FAULT_KILL_AFTER, FAULT_KILL_TORN };
enum lie { LIE_FILE_SYNC = 1, LIE_DIRECTORY_SYNC = 2 };
enum call_class {
    CLASS_WRITE = 1,
    CLASS_SYNC = 2,
    CLASS_NAME = 4,
    CLASS_OPEN = 8,
    CLASS_READ = 16
};

/* As faults.py has it. */
struct control {
    _Atomic uint64_t call_count; /* calls so far, of the classes that count */
    uint64_t first_call, last_call;
    _Atomic uint64_t hit_count;
    _Atomic uint64_t lie_count;
    uint32_t fault;
    uint32_t classes; /* that are counted */
    uint32_t lies;
    uint32_t filler;
    char hit_name[NAME_MAX_SHOWN]; /* "fdatasync leaderboard.3.journal": the first one hit */
};

static struct control no_control;
static struct control *control = &no_control;
static char directory[PATH_MAX]; /* a copy: a program may write over its environment */
static _Atomic bool is_inside[DESCRIPTORS_MAX];

#define REAL(function)                                                                             \
    static __typeof__(function) *real;                                                             \
    if (real == NULL) {                                                                            \
        *(void **)&real = dlsym(RTLD_NEXT, #function);                                             \
    }

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("TORTURE_FAULTS");
    const char *inside = getenv("TORTURE_DIRECTORY");
    if (path == NULL || inside == NULL) {
        return;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *shared =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED) {
        perror("TORTURE_FAULTS");
        _exit(99);
    }
    close(fd);
    control = shared;
    snprintf(directory, sizeof directory, "%s", inside);
}

/* ---- what is inside ---- */

static bool is_path_inside(const char *path) {
    size_t size = strlen(directory);
    return size > 0 && strncmp(path, directory, size) == 0 &&
           (path[size] == '/' || path[size] == '\0');
}

static bool is_fd_inside(int fd) {
    return fd >= 0 && fd < DESCRIPTORS_MAX && is_inside[fd];
}

static bool is_name_inside(int at, const char *path) {
    return path[0] == '/' ? is_path_inside(path) : is_fd_inside(at);
}

static void path_of(int fd, char path[PATH_MAX]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size < 0 ? 0 : size] = '\0';
}

static int note_opened(int fd) {
    if (fd >= 0 && fd < DESCRIPTORS_MAX && directory[0] != '\0') {
        int kept = errno;
        char path[PATH_MAX];
        path_of(fd, path);
        is_inside[fd] = is_path_inside(path);
        errno = kept;
    }
    return fd;
}

/* ---- the decision ---- */

static void note_hit(const char *call, int fd, const char *path) {
    char of_fd[PATH_MAX] = "";
    if (path == NULL) {
        path_of(fd, of_fd);
        path = of_fd;
    }
    const char *slash = strrchr(path, '/');
    snprintf(control->hit_name, sizeof control->hit_name, "%s %.90s", call,
             slash != NULL ? slash + 1 : path);
}

/* Count a call on something inside. What is to come of it; 0: nothing. */
static uint32_t decide(enum call_class class, const char *call, int fd, const char *path) {
    if ((control->classes & (uint32_t) class) == 0) {
        return 0;
    }
    uint64_t number = ++control->call_count;
    if (number < control->first_call || number > control->last_call) {
        return 0;
    }
    if (control->hit_count++ == 0) {
        note_hit(call, fd, path);
    }
    if (control->fault == FAULT_KILL_BEFORE) {
        raise(SIGKILL);
    }
    return control->fault;
}

static bool is_error(uint32_t fault) {
    return fault > 0 && fault < FAULT_SHORT;
}

static int fail(uint32_t fault) {
    errno = (int)fault;
    return -1;
}

/* The end of a call that was carried out. */
static void die_after(uint32_t fault) {
    if (fault == FAULT_KILL_AFTER || fault == FAULT_KILL_TORN) {
        raise(SIGKILL);
    }
}

/* How much of a write or read is carried out. */
static size_t share(uint32_t fault, size_t size) {
    return (fault == FAULT_SHORT || fault == FAULT_KILL_TORN) && size > 1 ? size / 2 : size;
}

/* A call that either happens as a whole or not at all. */
#define WHOLE(class, call, fd, path, carry_out)                                                    \
    uint32_t fault = decide(class, call, fd, path);                                                \
    if (is_error(fault)) {                                                                         \
        return fail(fault);                                                                        \
    }                                                                                              \
    int result = carry_out;                                                                        \
    die_after(fault);                                                                              \
    return result

/* ---- opening ---- */

static int open_file(int at, const char *path, int flags, mode_t mode) {
    REAL(openat)
    if (!is_name_inside(at, path) || path[0] == '\0') {
        return note_opened(real(at, path, flags, mode));
    }
    WHOLE(CLASS_OPEN, "open", at, path, note_opened(real(at, path, flags, mode)));
}

static mode_t mode_of(int flags, va_list arguments) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

#define OPEN(name, parameters, at)                                                                 \
    int name parameters {                                                                          \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        mode_t mode = mode_of(flags, arguments);                                                   \
        va_end(arguments);                                                                         \
        return open_file(at, path, flags, mode);                                                   \
    }

OPEN(open, (const char *path, int flags, ...), AT_FDCWD)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD)
OPEN(openat, (int at, const char *path, int flags, ...), at)
OPEN(openat64, (int at, const char *path, int flags, ...), at)

int close(int fd) {
    REAL(close)
    if (fd >= 0 && fd < DESCRIPTORS_MAX) {
        is_inside[fd] = false;
    }
    return real(fd);
}

/* ---- writing and reading ---- */

#define TRANSFER(class, name, carry_out)                                                           \
    REAL(name)                                                                                     \
    uint32_t fault = is_fd_inside(fd) ? decide(class, #name, fd, NULL) : 0;                        \
    if (is_error(fault)) {                                                                         \
        return fail(fault);                                                                        \
    }                                                                                              \
    size = share(fault, size);                                                                     \
    ssize_t result = carry_out;                                                                    \
    die_after(fault);                                                                              \
    return result

ssize_t write(int fd, const void *buffer, size_t size) {
    TRANSFER(CLASS_WRITE, write, real(fd, buffer, size));
}

ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset) {
    TRANSFER(CLASS_WRITE, pwrite, real(fd, buffer, size, offset));
}

ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset) {
    TRANSFER(CLASS_WRITE, pwrite64, real(fd, buffer, size, offset));
}

ssize_t read(int fd, void *buffer, size_t size) {
    TRANSFER(CLASS_READ, read, real(fd, buffer, size));
}

ssize_t pread(int fd, void *buffer, size_t size, off_t offset) {
    TRANSFER(CLASS_READ, pread, real(fd, buffer, size, offset));
}

ssize_t pread64(int fd, void *buffer, size_t size, off64_t offset) {
    TRANSFER(CLASS_READ, pread64, real(fd, buffer, size, offset));
}

/* Cut short: the first piece alone, or half of an only one. */
ssize_t writev(int fd, const struct iovec *pieces, int count) {
    REAL(writev)
    uint32_t fault = is_fd_inside(fd) ? decide(CLASS_WRITE, "writev", fd, NULL) : 0;
    if (is_error(fault)) {
        return fail(fault);
    }
    struct iovec first = count > 0 ? pieces[0] : (struct iovec){0};
    bool is_cut = fault == FAULT_SHORT || fault == FAULT_KILL_TORN;
    if (is_cut && count == 1) {
        first.iov_len = share(fault, first.iov_len);
    }
    ssize_t result = is_cut ? real(fd, &first, 1) : real(fd, pieces, count);
    die_after(fault);
    return result;
}

/* ---- syncing ---- */

/* Is this answered without being done? */
static bool is_lied(int fd) {
    struct stat status;
    if (control->lies == 0 || !is_fd_inside(fd) || fstat(fd, &status) != 0) {
        return false;
    }
    bool is_lie =
        (control->lies & (S_ISDIR(status.st_mode) ? LIE_DIRECTORY_SYNC : LIE_FILE_SYNC)) != 0;
    control->lie_count += is_lie;
    return is_lie;
}

#define SYNC(name)                                                                                 \
    int name(int fd) {                                                                             \
        REAL(name)                                                                                 \
        if (!is_fd_inside(fd)) {                                                                   \
            return real(fd);                                                                       \
        }                                                                                          \
        WHOLE(CLASS_SYNC, #name, fd, NULL, is_lied(fd) ? 0 : real(fd));                            \
    }

SYNC(fsync)
SYNC(fdatasync)

int sync_file_range(int fd, off64_t offset, off64_t size, unsigned flags) {
    REAL(sync_file_range)
    if (!is_fd_inside(fd)) {
        return real(fd, offset, size, flags);
    }
    WHOLE(CLASS_SYNC, "sync_file_range", fd, NULL, is_lied(fd) ? 0 : real(fd, offset, size, flags));
}

/* ---- sizes and names ---- */

#define TRUNCATE(name, offset_type)                                                                \
    int name(int fd, offset_type size) {                                                           \
        REAL(name)                                                                                 \
        if (!is_fd_inside(fd)) {                                                                   \
            return real(fd, size);                                                                 \
        }                                                                                          \
        WHOLE(CLASS_NAME, #name, fd, NULL, real(fd, size));                                        \
    }

TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int fallocate(int fd, int mode, off_t offset, off_t size) {
    REAL(fallocate)
    if (!is_fd_inside(fd)) {
        return real(fd, mode, offset, size);
    }
    WHOLE(CLASS_NAME, "fallocate", fd, NULL, real(fd, mode, offset, size));
}

int renameat(int from_at, const char *from, int to_at, const char *to) {
    REAL(renameat)
    if (!is_name_inside(from_at, from)) {
        return real(from_at, from, to_at, to);
    }
    WHOLE(CLASS_NAME, "rename", from_at, to, real(from_at, from, to_at, to));
}

int rename(const char *from, const char *to) {
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int unlinkat(int at, const char *path, int flags) {
    REAL(unlinkat)
    if (!is_name_inside(at, path)) {
        return real(at, path, flags);
    }
    WHOLE(CLASS_NAME, "unlink", at, path, real(at, path, flags));
}

int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

int mkdirat(int at, const char *path, mode_t mode) {
    REAL(mkdirat)
    if (!is_name_inside(at, path)) {
        return real(at, path, mode);
    }
    WHOLE(CLASS_NAME, "mkdir", at, path, real(at, path, mode));
}

int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

int flock(int fd, int operation) {
    REAL(flock)
    if (!is_fd_inside(fd)) {
        return real(fd, operation);
    }
    WHOLE(CLASS_OPEN, "flock", fd, NULL, real(fd, operation));
}
