/* System calls made once per process. See process.h. */
#include "server/system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "codec/bytes.h"
#include "codec/memory.h"
#include "server/system/disk.h"
#include "server/system/log.h"

/* Listeners, the log, the loop's own descriptors, and a reserve; each further loop has five. */
enum { DESCRIPTORS_OWN = 64, DESCRIPTORS_LOOP = 6 };

static int64_t process_own_descriptors(int64_t io_threads, int64_t viewers) {
    return DESCRIPTORS_OWN + viewers + (io_threads > 1 ? io_threads * DESCRIPTORS_LOOP : 0);
}

bool process_reserve_descriptors(int64_t clients, int64_t io_threads, int64_t viewers,
                                 int64_t *clients_max) {
    struct rlimit limit;
    rlim_t own = (rlim_t)process_own_descriptors(io_threads, viewers);
    rlim_t wanted = (rlim_t)clients + own;
    *clients_max = clients;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) {
        return true;
    }
    struct rlimit raised = {.rlim_cur = wanted, .rlim_max = limit.rlim_max};
    if (raised.rlim_max < wanted) {
        raised.rlim_max = wanted;
    }
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        return true;
    }
    *clients_max = limit.rlim_max > own ? (int64_t)(limit.rlim_max - own) : 1;
    return false;
}

int64_t process_raise_descriptor_limit(int64_t clients, int64_t io_threads, int64_t viewers) {
    int64_t clients_max;
    if (process_reserve_descriptors(clients, io_threads, viewers, &clients_max)) {
        log_write(LOG_NOTICE, "descriptors reserved maxclients=%lld", (long long)clients);
        return clients;
    }
    int64_t allowed = clients_max;
    (void)!process_reserve_descriptors(allowed, io_threads, viewers, &clients_max);
    log_write(LOG_WARNING,
              "maxclients lowered, too few descriptors allowed maxclients=%lld wanted=%lld "
              "advice=\"ulimit -n %lld\"",
              (long long)allowed, (long long)clients,
              (long long)clients + process_own_descriptors(io_threads, viewers));
    return allowed;
}

enum process_side process_daemonize(void) {
    pid_t child = fork();
    if (child != 0) {
        return child < 0 ? PROCESS_FAILED : PROCESS_PARENT;
    }
    setsid();
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return PROCESS_FAILED;
    }
    bool is_done =
        dup2(fd, STDIN_FILENO) >= 0 && dup2(fd, STDOUT_FILENO) >= 0 && dup2(fd, STDERR_FILENO) >= 0;
    close(fd);
    return is_done ? PROCESS_DAEMON : PROCESS_FAILED;
}

void process_leave_orphans(void) {
    if (getpid() == 1) {
        signal(SIGCHLD, SIG_IGN);
    }
}

void process_write_pidfile(const char *path) {
    char text[BYTES_INTEGER_TEXT_MAX + 1];
    size_t size = bytes_print_i64(text, getpid());
    text[size++] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, text, size) != (ssize_t)size) {
        log_write(LOG_WARNING, "cannot write the pidfile path=%s error=\"%s\"", path,
                  strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}

void process_remove_pidfile(const char *path) {
    char text[BYTES_INTEGER_TEXT_MAX + 2];
    int64_t pid = 0;
    if (disk_read_text(path, text, sizeof text) && bytes_parse_i64(bytes_from_text(text), &pid) &&
        pid == getpid()) {
        unlink(path);
    }
}

uint64_t process_memory_size(void) {
    char text[128];
    const char *second =
        disk_read_text("/proc/self/statm", text, sizeof text) ? strchr(text, ' ') : NULL;
    return second != NULL ? strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* ---- what is around it ----
 *
 * A file that cannot be read says nothing: the system has no such limit, or hides it. */

enum { TEXT_MAX = 512, PATH_SIZE = 768 };

static bool process_read_text(const struct surroundings *wanted, const char *path,
                              char text[TEXT_MAX]) {
    char whole[PATH_SIZE];
    snprintf(whole, sizeof whole, "%s%s", wanted->root != NULL ? wanted->root : "", path);
    return disk_read_text(whole, text, TEXT_MAX);
}

static bool process_read_number(const struct surroundings *wanted, const char *path,
                                int64_t *number) {
    char text[TEXT_MAX];
    return process_read_text(wanted, path, text) && bytes_parse_i64(bytes_from_text(text), number);
}

void process_warn(const struct surroundings *wanted) {
    int64_t somaxconn;
    if (process_read_number(wanted, "/proc/sys/net/core/somaxconn", &somaxconn) &&
        somaxconn < wanted->tcp_backlog) {
        log_write(LOG_WARNING,
                  "the system lowers tcp-backlog, clients that connect at once may be refused "
                  "tcp-backlog=%lld somaxconn=%lld advice=\"sysctl net.core.somaxconn=%lld\"",
                  (long long)wanted->tcp_backlog, (long long)somaxconn,
                  (long long)wanted->tcp_backlog);
    }
    char text[TEXT_MAX];
    if (strcmp(memory_allocator(), "pool") == 0 &&
        process_read_text(wanted, "/sys/kernel/mm/transparent_hugepage/enabled", text) &&
        strstr(text, "[never]") != NULL) {
        log_write(LOG_WARNING,
                  "huge pages are off, large boards are about a tenth slower "
                  "advice=\"echo madvise > /sys/kernel/mm/transparent_hugepage/enabled\"");
    }
    /* The pool reserves twice the machine's memory in addresses. */
    struct rlimit limit;
    int64_t overcommit;
    if (strcmp(memory_allocator(), "pool") == 0) {
        /* It could. */
    } else if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        log_write(LOG_WARNING, "the address space is limited, so memory comes from the C library: "
                               "slower, and larger advice=\"ulimit -v unlimited\"");
    } else if (process_read_number(wanted, "/proc/sys/vm/overcommit_memory", &overcommit) &&
               overcommit == 2) {
        log_write(LOG_WARNING,
                  "the system reserves no addresses beyond its memory, so memory comes "
                  "from the C library: slower, and larger "
                  "advice=\"sysctl vm.overcommit_memory=0\"");
    }
    /* Of the server's own control group: "0::/system.slice/leaderboard.service". */
    char path[TEXT_MAX + 64];
    int64_t memory_max;
    bool has_group =
        process_read_text(wanted, "/proc/self/cgroup", text) && strncmp(text, "0::/", 4) == 0;
    text[has_group ? strcspn(text, "\n") : 0] = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max",
             has_group && strcmp(text + 3, "/") != 0 ? text + 3 : "");
    if (has_group && process_read_number(wanted, path, &memory_max) &&
        (wanted->maxmemory == 0 || wanted->maxmemory > (uint64_t)memory_max)) {
        log_write(LOG_WARNING,
                  "the control group allows less memory than maxmemory, beyond it the system kills "
                  "the server memory.max=%lld maxmemory=%llu advice=\"set maxmemory to %lld\"",
                  (long long)memory_max, (unsigned long long)wanted->maxmemory,
                  (long long)memory_max / 5 * 4);
    }
    if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_cur == 0) {
        log_write(LOG_VERBOSE, "a crash would leave no core file advice=\"ulimit -c unlimited\"");
    }
}

/* ---- children: started without fork, which would copy the tables of all pages ---- */

#define OWN_PROGRAM "/proc/self/exe" /* the one that runs, also where its file was replaced */

enum { PRIORITY = 10 };

static int process_spawn(struct child *child, const char *const *arguments, const char *directory,
                         int input, int output) {
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_t actions;
    sigset_t none, all;
    char *const *words = (char *const *)(uintptr_t)arguments; /* which spawn does not change */
    int error = posix_spawnattr_init(&attributes);
    if (error != 0) {
        return error;
    }
    error = posix_spawn_file_actions_init(&actions);
    if (error == 0) {
        sigemptyset(&none);
        sigfillset(&all);
        error = posix_spawnattr_setsigmask(&attributes, &none);
        error = error != 0 ? error : posix_spawnattr_setsigdefault(&attributes, &all);
        error = error != 0 ? error
                           : posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK |
                                                                       POSIX_SPAWN_SETSIGDEF);
        error =
            error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
        error =
            error != 0 ? error : posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        error = error != 0 ? error : posix_spawn_file_actions_addchdir_np(&actions, directory);
        error = error != 0
                    ? error
                    : posix_spawn(&child->id, OWN_PROGRAM, &actions, &attributes, words, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    return error;
}

/* As it was before; orphans that have ended meanwhile go, too. */
static void process_stop_waiting(const struct child *child) {
    if (child->was_ignored) {
        (void)signal(SIGCHLD, SIG_IGN);
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
    }
}

bool process_start_child(struct child *child, const char *const *arguments, const char *directory,
                         int input, int output) {
    CHECK(child->state == CHILD_NONE);
    /* Ignored, it would leave no status. */
    child->was_ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    int error = process_spawn(child, arguments, directory, input, output);
    if (error != 0) {
        process_stop_waiting(child);
        errno = error;
        return false;
    }
    child->state = CHILD_RUNS;
    /* Both are wishes: it does its work without them. */
    char path[PATH_SIZE];
    (void)setpriority(PRIO_PROCESS, (id_t)child->id, PRIORITY);
    snprintf(path, sizeof path, "/proc/%ld/oom_score_adj", (long)child->id);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        disk_close(fd);
    }
    return true;
}

enum child_end process_look_at_child(struct child *child) {
    int status = 0;
    if (child->state == CHILD_NONE) {
        return CHILD_FAILED;
    }
    pid_t id = waitpid(child->id, &status, WNOHANG);
    if (id == 0 || (id < 0 && errno == EINTR)) {
        return CHILD_GOES_ON;
    }
    child->state = CHILD_NONE;
    process_stop_waiting(child);
    return id > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CHILD_IS_DONE : CHILD_FAILED;
}

uint64_t process_child_time_ns(const struct child *child) {
    clockid_t clock;
    struct timespec time;
    if (child->state == CHILD_NONE || clock_getcpuclockid(child->id, &clock) != 0 ||
        clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void process_kill_child(struct child *child) {
    if (child->state == CHILD_RUNS) {
        (void)kill(child->id, SIGKILL);
        child->state = CHILD_KILLED;
    }
}
