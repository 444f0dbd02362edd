/* See child.h. Started without fork: that would copy the tables of all pages. */
#include "server/system/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "server/system/disk.h"

#define OWN_PROGRAM "/proc/self/exe" /* the one that runs, also where its file was replaced */

enum { PRIORITY = 10, PATH_SIZE = 64 };

static int child_spawn(struct child *child, const char *const *arguments, const char *directory,
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
static void child_stop_waiting(const struct child *child) {
    if (child->was_ignored) {
        (void)signal(SIGCHLD, SIG_IGN);
        while (waitpid(-1, NULL, WNOHANG) > 0) {}
    }
}

bool child_start(struct child *child, const char *const *arguments, const char *directory,
                 int input, int output) {
    CHECK(child->state == CHILD_NONE);
    /* Ignored, it would leave no status. */
    child->was_ignored = signal(SIGCHLD, SIG_DFL) == SIG_IGN;
    int error = child_spawn(child, arguments, directory, input, output);
    if (error != 0) {
        child_stop_waiting(child);
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

enum child_end child_look(struct child *child) {
    int status = 0;
    if (child->state == CHILD_NONE) {
        return CHILD_FAILED;
    }
    pid_t id = waitpid(child->id, &status, WNOHANG);
    if (id == 0 || (id < 0 && errno == EINTR)) {
        return CHILD_GOES_ON;
    }
    child->state = CHILD_NONE;
    child_stop_waiting(child);
    return id > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CHILD_IS_DONE : CHILD_FAILED;
}

uint64_t child_time_ns(const struct child *child) {
    clockid_t clock;
    struct timespec time;
    if (child->state == CHILD_NONE || clock_getcpuclockid(child->id, &clock) != 0 ||
        clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

void child_kill(struct child *child) {
    if (child->state == CHILD_RUNS) {
        (void)kill(child->id, SIGKILL);
        child->state = CHILD_KILLED;
    }
}
