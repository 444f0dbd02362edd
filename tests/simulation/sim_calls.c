/* The system calls and functions of libc that calls.txt lists, as the process whose fiber runs sees
 * them. Each takes a little time of the caller; a sync, and a pipe that is full, make it wait. What a
 * server with the simulator's settings never asks for ends the schedule with its name. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulation/sim_events.h"
#include "tests/simulation/sim_process.h"

/* Declared where the linker looks for them. */
#define CALL(name) __wrap_##name
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* What a call, and a look at the clock with the work around it, cost. */
enum { CALL_NS = 800, CLOCK_NS = 1500, PIPE_CAPACITY = 64 << 10, PIECE_NS_PER_KIB = 100 };

static struct sim_process *sim_calls_enter(void) {
    sim_fiber_spend(CALL_NS);
    return sim_process_current();
}

static struct sim_disk *sim_calls_disk(void) {
    return &sim_calls_enter()->machine->disk;
}

/* As the system reports it: -1 and errno. */
static ssize_t sim_calls_result(ssize_t result) {
    if (result < 0) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static int sim_calls_status(ssize_t result) {
    return (int)sim_calls_result(result);
}

static struct sim_file *sim_calls_file(int fd) {
    return sim_process_file(sim_calls_enter(), fd);
}

static int sim_calls_add(struct sim_file file) {
    struct sim_file *kept = malloc(sizeof *kept);
    *kept = file;
    int fd = sim_process_add_file(sim_process_current(), kept);
    if (fd < 0) {
        free(kept);
        errno = EMFILE;
    }
    return fd;
}

/* ---- files ---- */

static struct sim_node *sim_calls_directory(int fd) {
    struct sim_file *file = fd == AT_FDCWD ? NULL : sim_calls_file(fd);
    return file != NULL ? file->node : NULL;
}

int CALL(openat)(int directory, const char *path, int flags, ...) {
    struct sim_node *node;
    int result =
        sim_disk_open(sim_calls_disk(), sim_calls_directory(directory), path, flags, &node);
    if (result != 0) {
        return sim_calls_status(result);
    }
    return sim_calls_add((struct sim_file){.kind = SIM_FD_FILE, .node = node, .flags = flags});
}

int CALL(open)(const char *path, int flags, ...) {
    return CALL(openat)(AT_FDCWD, path, flags);
}

int CALL(close)(int fd) {
    struct sim_process *process = sim_calls_enter();
    struct sim_file *file = sim_process_file(process, fd);
    if (file == NULL) {
        sim_fail("server %d closes descriptor %d, which is not open", process->machine->index, fd);
    }
    process->files[fd] = NULL;
    sim_file_release(file, false);
    sim_process_poke(process);
    return 0;
}

static ssize_t sim_calls_write_pipe(struct sim_file *file, const char *bytes, size_t size) {
    struct sim_pipe *pipe = file->pipe;
    while (pipe->has_reader && pipe->size == PIPE_CAPACITY) {
        sim_fiber_wait(INT64_MAX);
    }
    if (!pipe->has_reader) {
        return -EPIPE;
    }
    size_t room = PIPE_CAPACITY - pipe->size;
    size = size < room ? size : room;
    memcpy(pipe->bytes + pipe->size, bytes, size);
    pipe->size += size;
    sim_process_poke(sim_process_current());
    return (ssize_t)size;
}

static ssize_t sim_calls_read_pipe(struct sim_file *file, char *bytes, size_t size) {
    struct sim_pipe *pipe = file->pipe;
    if (pipe->size == 0) {
        return pipe->has_writer ? -EAGAIN : 0;
    }
    size = size < pipe->size ? size : pipe->size;
    memcpy(bytes, pipe->bytes, size);
    pipe->size -= size;
    memmove(pipe->bytes, pipe->bytes + size, pipe->size);
    sim_process_poke(sim_process_current());
    return (ssize_t)size;
}

static ssize_t sim_calls_write_file(struct sim_file *file, const void *bytes, size_t size) {
    struct sim_disk *disk = &sim_process_current()->machine->disk;
    if (file->node->kind == SIM_NULL) {
        return (ssize_t)size;
    }
    if ((file->flags & O_APPEND) != 0) {
        file->offset = file->node->seen.size;
    }
    ssize_t written = sim_disk_write(disk, file->node, file->offset, bytes, size);
    file->offset += written > 0 ? (size_t)written : 0;
    return written;
}

ssize_t CALL(write)(int fd, const void *bytes, size_t size) {
    struct sim_file *file = sim_calls_file(fd);
    sim_fiber_spend((int64_t)size / 1024 * PIECE_NS_PER_KIB);
    if (file == NULL) {
        return sim_calls_result(-EBADF);
    }
    switch (file->kind) {
    case SIM_FD_LOG:
        sim_process_log(sim_process_current(), bytes, size);
        return (ssize_t)size;
    case SIM_FD_FILE:
        return sim_calls_result(sim_calls_write_file(file, bytes, size));
    case SIM_FD_SOCKET:
        return sim_calls_result(sim_socket_send(file->socket, bytes, size));
    case SIM_FD_PIPE_IN:
        return sim_calls_result(sim_calls_write_pipe(file, bytes, size));
    case SIM_FD_EVENT:
        file->count++;
        sim_process_poke(sim_process_current());
        return (ssize_t)size;
    case SIM_FD_PIPE_OUT:
        break;
    }
    return sim_calls_result(-EBADF);
}

ssize_t CALL(pwrite)(int fd, const void *bytes, size_t size, off_t offset) {
    struct sim_file *file = sim_calls_file(fd);
    sim_fiber_spend((int64_t)size / 1024 * PIECE_NS_PER_KIB);
    return sim_calls_result(file != NULL && file->kind == SIM_FD_FILE
                                ? sim_disk_write(&sim_process_current()->machine->disk, file->node,
                                                 (size_t)offset, bytes, size)
                                : -EBADF);
}

ssize_t CALL(pread)(int fd, void *bytes, size_t size, off_t offset) {
    struct sim_file *file = sim_calls_file(fd);
    sim_fiber_spend((int64_t)size / 1024 * PIECE_NS_PER_KIB);
    return file != NULL ? sim_disk_read(file->node, (size_t)offset, bytes, size)
                        : sim_calls_result(-EBADF);
}

ssize_t CALL(read)(int fd, void *bytes, size_t size) {
    struct sim_file *file = sim_calls_file(fd);
    ssize_t got = -EBADF;
    if (file != NULL && file->kind == SIM_FD_FILE) {
        got = sim_disk_read(file->node, file->offset, bytes, size);
        file->offset += (size_t)got;
    } else if (file != NULL && file->kind == SIM_FD_SOCKET) {
        got = sim_socket_receive(file->socket, bytes, size, false);
    } else if (file != NULL && file->kind == SIM_FD_PIPE_OUT) {
        got = sim_calls_read_pipe(file, bytes, size);
    } else if (file != NULL && file->kind == SIM_FD_EVENT) {
        got = file->count > 0 ? (ssize_t)sizeof file->count : -EAGAIN;
        memcpy(bytes, &file->count, sizeof file->count);
        file->count = 0;
    }
    return sim_calls_result(got);
}

static int sim_calls_sync(int fd) {
    struct sim_file *file = sim_calls_file(fd);
    struct sim_disk *disk = sim_calls_disk();
    struct sim_sync sync;
    if (file == NULL || file->kind != SIM_FD_FILE) {
        return sim_calls_status(-EBADF);
    }
    sim_disk_begin_sync(file->node, &sync);
    sim_fiber_sleep(sim_fiber_now() + sim_disk_sync_ns(disk));
    return sim_calls_status(sim_disk_end_sync(disk, &sync));
}

int CALL(fsync)(int fd) {
    return sim_calls_sync(fd);
}

int CALL(fdatasync)(int fd) {
    return sim_calls_sync(fd);
}

int CALL(sync_file_range)(int fd, off_t offset, off_t size, unsigned flags) {
    (void)fd;
    (void)offset;
    (void)size;
    (void)flags;
    (void)sim_calls_enter();
    return 0;
}

int CALL(ftruncate)(int fd, off_t size) {
    struct sim_file *file = sim_calls_file(fd);
    return file != NULL ? sim_disk_truncate(file->node, (size_t)size) : sim_calls_status(-EBADF);
}

int CALL(renameat)(int from_directory, const char *from, int to_directory, const char *to) {
    return sim_calls_status(sim_disk_rename(sim_calls_disk(), sim_calls_directory(from_directory),
                                            from, sim_calls_directory(to_directory), to));
}

int CALL(rename)(const char *from, const char *to) {
    return CALL(renameat)(AT_FDCWD, from, AT_FDCWD, to);
}

int CALL(unlinkat)(int directory, const char *path, int flags) {
    (void)flags;
    return sim_calls_status(
        sim_disk_unlink(sim_calls_disk(), sim_calls_directory(directory), path));
}

int CALL(rmdir)(const char *path) {
    struct sim_disk *disk = sim_calls_disk();
    const struct sim_node *node = sim_disk_find(disk, NULL, path);
    return sim_calls_status(
        node != NULL && node->entry_count > 0 ? -ENOTEMPTY : sim_disk_unlink(disk, NULL, path));
}

int CALL(unlink)(const char *path) {
    return CALL(unlinkat)(AT_FDCWD, path, 0);
}

int CALL(mkdirat)(int directory, const char *path, mode_t mode) {
    (void)mode;
    return sim_calls_status(
        sim_disk_make_directory(sim_calls_disk(), sim_calls_directory(directory), path));
}

int CALL(flock)(int fd, int operation) {
    struct sim_file *file = sim_calls_file(fd);
    (void)operation;
    if (file->node->locked_by != NULL && file->node->locked_by != file) {
        return sim_calls_status(-EWOULDBLOCK);
    }
    file->node->locked_by = file;
    return 0;
}

static void sim_calls_describe(const struct sim_node *node, struct stat *status) {
    memset(status, 0, sizeof *status);
    status->st_dev = 1;
    status->st_ino = node != NULL ? node->number : 0;
    status->st_mode = node != NULL && node->kind == SIM_DIRECTORY ? S_IFDIR | 0755 : S_IFREG | 0644;
    status->st_size = node != NULL ? (off_t)node->seen.size : 0;
    status->st_nlink = 1;
}

int CALL(fstat)(int fd, struct stat *status) {
    struct sim_file *file = sim_calls_file(fd);
    if (file == NULL) {
        return sim_calls_status(-EBADF);
    }
    sim_calls_describe(file->node, status);
    return 0;
}

int CALL(fstatat)(int directory, const char *path, struct stat *status, int flags) {
    struct sim_node *node = sim_disk_find(sim_calls_disk(), sim_calls_directory(directory), path);
    (void)flags;
    if (node == NULL) {
        return sim_calls_status(-ENOENT);
    }
    sim_calls_describe(node, status);
    return 0;
}

int CALL(stat)(const char *path, struct stat *status) {
    return CALL(fstatat)(AT_FDCWD, path, status, 0);
}

int CALL(lstat)(const char *path, struct stat *status) {
    return CALL(fstatat)(AT_FDCWD, path, status, 0);
}

/* A listing is the file of its directory; the entry that is shown lies in one place, as libc's does. */
DIR *CALL(fdopendir)(int fd) {
    struct sim_file *file = sim_calls_file(fd);
    file->listed = 0;
    return (DIR *)(intptr_t)(fd + 1);
}

struct dirent *CALL(readdir)(DIR *listing) {
    static struct dirent entry;
    struct sim_file *file = sim_calls_file((int)(intptr_t)listing - 1);
    if (file->listed >= file->node->entry_count) {
        return NULL;
    }
    snprintf(entry.d_name, sizeof entry.d_name, "%s", file->node->entries[file->listed++].name);
    return &entry;
}

int CALL(closedir)(DIR *listing) {
    return CALL(close)((int)(intptr_t)listing - 1);
}

int CALL(pipe2)(int ends[2], int flags) {
    struct sim_pipe *pipe = calloc(1, sizeof *pipe);
    (void)sim_calls_enter();
    pipe->bytes = malloc(PIPE_CAPACITY);
    pipe->has_reader = pipe->has_writer = true;
    ends[0] =
        sim_calls_add((struct sim_file){.kind = SIM_FD_PIPE_OUT, .pipe = pipe, .flags = flags});
    ends[1] =
        sim_calls_add((struct sim_file){.kind = SIM_FD_PIPE_IN, .pipe = pipe, .flags = flags});
    return ends[0] < 0 || ends[1] < 0 ? -1 : 0;
}

int CALL(eventfd)(unsigned count, int flags) {
    (void)sim_calls_enter();
    return sim_calls_add((struct sim_file){.kind = SIM_FD_EVENT, .count = count, .flags = flags});
}

int CALL(fcntl)(int fd, int command, ...) {
    struct sim_process *process = sim_calls_enter();
    struct sim_file *file = sim_process_file(process, fd);
    if (file == NULL) {
        return sim_calls_status(-EBADF);
    }
    if (command == F_GETFL) {
        return file->flags;
    }
    return command == F_DUPFD_CLOEXEC ? sim_process_add_file(process, file) : 0;
}

int CALL(access)(const char *path, int mode) {
    (void)mode;
    return sim_calls_status(sim_disk_find(sim_calls_disk(), NULL, path) != NULL ? 0 : -ENOENT);
}

char *CALL(realpath)(const char *path, char *out) {
    (void)sim_calls_enter();
    return out != NULL ? strcpy(out, path) : strdup(path);
}

int CALL(poll)(struct pollfd *fds, nfds_t count, int timeout_ms) {
    (void)timeout_ms;
    (void)sim_calls_enter();
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = fds[i].events;
    }
    return (int)count;
}

/* ---- sockets: machine i has the address 10.0.0.i+1 ---- */

static int sim_calls_machine(const struct sockaddr *address) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    return (int)(ntohl(v4->sin_addr.s_addr) & 0xff) - 1;
}

static int sim_calls_put_address(int machine, int port, struct sockaddr *out, socklen_t *size) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(0x0a000001U + (uint32_t)machine);
    if (out != NULL) {
        memcpy(out, &address, *size < sizeof address ? *size : sizeof address);
        *size = sizeof address;
    }
    return 0;
}

static int sim_calls_add_socket(struct sim_process *process, struct sim_socket *socket) {
    socket->on_change = sim_process_poke_loop;
    socket->context = process;
    int fd = sim_calls_add((struct sim_file){.kind = SIM_FD_SOCKET, .socket = socket});
    if (fd < 0) {
        sim_socket_close(socket, false);
    }
    return fd;
}

int CALL(socket)(int family, int type, int protocol) {
    struct sim_process *process = sim_calls_enter();
    (void)type;
    (void)protocol;
    if (family != AF_INET) {
        return sim_calls_status(-EAFNOSUPPORT);
    }
    return sim_calls_add_socket(process, sim_socket_create(process->machine->index));
}

static struct sim_socket *sim_calls_socket(int fd) {
    struct sim_file *file = sim_calls_file(fd);
    if (file == NULL || file->kind != SIM_FD_SOCKET) {
        sim_fail("descriptor %d is no socket", fd);
    }
    return file->socket;
}

int CALL(bind)(int fd, const struct sockaddr *address, socklen_t size) {
    (void)size;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    sim_calls_socket(fd)->port = ntohs(v4->sin_port);
    return 0;
}

int CALL(listen)(int fd, int backlog) {
    struct sim_socket *socket = sim_calls_socket(fd);
    (void)backlog;
    return sim_calls_status(sim_socket_listen(socket, socket->port));
}

int CALL(connect)(int fd, const struct sockaddr *address, socklen_t size) {
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
    int machine = sim_calls_machine(address);
    (void)size;
    if (machine < 0 || machine >= SIM_MACHINES_MAX) {
        return sim_calls_status(-ENETUNREACH);
    }
    return sim_calls_status(sim_socket_connect(sim_calls_socket(fd), machine, ntohs(v4->sin_port)));
}

int CALL(accept4)(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    struct sim_process *process = sim_calls_enter();
    struct sim_socket *accepted = sim_socket_accept(sim_calls_socket(fd));
    (void)flags;
    if (accepted == NULL) {
        return sim_calls_status(-EAGAIN);
    }
    (void)sim_calls_put_address(accepted->peer_machine, accepted->peer_port, address, size);
    return sim_calls_add_socket(process, accepted);
}

int CALL(getsockname)(int fd, struct sockaddr *address, socklen_t *size) {
    const struct sim_socket *socket = sim_calls_socket(fd);
    return sim_calls_put_address(socket->machine, socket->port, address, size);
}

int CALL(getsockopt)(int fd, int level, int option, void *value, socklen_t *size) {
    struct sim_socket *socket = sim_calls_socket(fd);
    int number = 0;
    if (level == SOL_SOCKET && option == SO_ERROR) {
        number = socket->error;
        socket->error = 0;
    }
    memcpy(value, &number, *size < sizeof number ? *size : sizeof number);
    return 0;
}

int CALL(setsockopt)(int fd, int level, int option, const void *value, socklen_t size) {
    (void)fd;
    (void)level;
    (void)option;
    (void)value;
    (void)size;
    return 0;
}

ssize_t CALL(send)(int fd, const void *bytes, size_t size, int flags) {
    (void)flags;
    return sim_calls_result(sim_socket_send(sim_calls_socket(fd), bytes, size));
}

ssize_t CALL(recv)(int fd, void *bytes, size_t size, int flags) {
    return sim_calls_result(
        sim_socket_receive(sim_calls_socket(fd), bytes, size, (flags & MSG_PEEK) != 0));
}

int CALL(shutdown)(int fd, int how) {
    (void)how;
    sim_socket_shut(sim_calls_socket(fd));
    return 0;
}

/* ---- clocks and chance ---- */

int CALL(clock_gettime)(clockid_t clock, struct timespec *out) {
    const struct sim_machine *machine = sim_process_current()->machine;
    sim_fiber_spend(CLOCK_NS);
    int64_t ns = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE
                     ? sim_machine_wall(machine)
                 : clock == CLOCK_BOOTTIME ? sim_machine_boottime(machine)
                                           : sim_machine_monotonic(machine);
    out->tv_sec = ns / SIM_S;
    out->tv_nsec = ns % SIM_S;
    return 0;
}

int CALL(gettimeofday)(struct timeval *out, void *zone) {
    (void)zone;
    struct timespec now;
    (void)CALL(clock_gettime)(CLOCK_REALTIME, &now);
    *out = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t CALL(time)(time_t *out) {
    struct timespec now;
    (void)CALL(clock_gettime)(CLOCK_REALTIME, &now);
    if (out != NULL) {
        *out = now.tv_sec;
    }
    return now.tv_sec;
}

int CALL(nanosleep)(const struct timespec *wanted, struct timespec *left) {
    (void)left;
    sim_fiber_sleep(sim_fiber_now() + wanted->tv_sec * SIM_S + wanted->tv_nsec);
    return 0;
}

ssize_t CALL(getrandom)(void *bytes, size_t size, unsigned flags) {
    struct random *random = &sim_calls_enter()->machine->random;
    (void)flags;
    for (size_t done = 0; done < size; done += sizeof(uint64_t)) {
        uint64_t word = random_next(random);
        size_t part = size - done < sizeof word ? size - done : sizeof word;
        memcpy((char *)bytes + done, &word, part);
    }
    return (ssize_t)size;
}

int CALL(RAND_bytes)(unsigned char *bytes, int size) {
    (void)CALL(getrandom)(bytes, (size_t)size, 0);
    return 1;
}

/* ---- the process ---- */

void CALL(abort)(void) {
    sim_fail("server %d aborts: a CHECK has failed, see above",
             sim_process_current()->machine->index);
}

void CALL(_exit)(int code) {
    sim_process_exit(code);
}

pid_t CALL(getpid)(void) {
    return (pid_t)sim_process_current()->number;
}

char *CALL(getenv)(const char *name) {
    (void)name;
    return NULL;
}

long CALL(sysconf)(int name) {
    return name == _SC_PAGESIZE ? 4096 : name == _SC_PHYS_PAGES ? 1 << 20 : 2;
}

int CALL(getrlimit)(int resource, struct rlimit *limit) {
    limit->rlim_cur = limit->rlim_max = resource == RLIMIT_NOFILE ? 65536 : RLIM_INFINITY;
    return 0;
}

int CALL(getrusage)(int who, struct rusage *usage) {
    (void)who;
    memset(usage, 0, sizeof *usage);
    return 0;
}

int CALL(uname)(struct utsname *name) {
    memset(name, 0, sizeof *name);
    strcpy(name->sysname, "Simulated");
    strcpy(name->machine, "none");
    return 0;
}

/* Without its pool the server takes its memory from malloc. */
void *CALL(mmap)(void *at, size_t size, int protection, int flags, int fd, off_t offset) {
    (void)at;
    (void)size;
    (void)protection;
    (void)flags;
    (void)fd;
    (void)offset;
    errno = ENOMEM;
    return (void *)-1;
}

/* What has no meaning here, and what is never asked for. long: some return an int, some an ssize_t. */
#define SUCCEEDS(name)                                                                             \
    long CALL(name)(void) {                                                                        \
        return 0;                                                                                  \
    }
#define FAILS(name)                                                                                \
    long CALL(name)(void) {                                                                        \
        errno = ENOSYS;                                                                            \
        return -1;                                                                                 \
    }
#define ENDS(name)                                                                                 \
    void CALL(name)(void) {                                                                        \
        sim_fail("server calls %s, which is not simulated", #name);                                \
    }
SUCCEEDS(alarm)
SUCCEEDS(fchmod)
SUCCEEDS(fchown)
SUCCEEDS(chmod)
SUCCEEDS(getpriority)
SUCCEEDS(madvise)
SUCCEEDS(munmap)
SUCCEEDS(prctl)
SUCCEEDS(pthread_sigmask)
SUCCEEDS(sched_setscheduler)
SUCCEEDS(sched_yield)
SUCCEEDS(setpriority)
SUCCEEDS(setrlimit)
SUCCEEDS(sigaction)
SUCCEEDS(sigaltstack)
SUCCEEDS(sigprocmask)
SUCCEEDS(signal)
FAILS(fallocate)
FAILS(readlink)
FAILS(sched_getaffinity)
ENDS(dup2)
ENDS(fopen)
ENDS(fork)
ENDS(kill)
ENDS(mkdir)
ENDS(mkostemp)
ENDS(pause)
ENDS(posix_spawn)
ENDS(pthread_create)
ENDS(raise)
ENDS(remove)
ENDS(setsid)
ENDS(waitpid)
