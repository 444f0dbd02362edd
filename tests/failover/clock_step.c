/* Loaded before libc (LD_PRELOAD): the wall clock of one process, moved by as many microseconds as
 * stand in the file CLOCK_STEP_FILE, which the harness changes while the process runs. The monotonic
 * clock stays as it is. If there is a second number in the file, no clock runs but by it: CLOCK_BOOTTIME
 * is that many microseconds, and the wall clock both numbers together. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic(const _Atomic int64_t *) step_us;

static int64_t step(int number) {
    const _Atomic int64_t *at = atomic_load(&step_us);
    return at == NULL ? 0 : atomic_load(at + number);
}

__attribute__((constructor)) static void map_step(void) {
    const char *path = getenv("CLOCK_STEP_FILE");
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    void *mapped = mmap(NULL, 2 * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) {
        atomic_store(&step_us, mapped);
    }
}

static int real_clock(clockid_t clock, struct timespec *now) {
    static _Atomic(int (*)(clockid_t, struct timespec *)) known;
    int (*real)(clockid_t, struct timespec *) = atomic_load(&known);
    if (real == NULL) {
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
        atomic_store(&known, real);
    }
    return real(clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = real_clock(clock, now);
    bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int64_t stands_us = step(1);
    if (status == 0 && stands_us != 0 && (is_wall || clock == CLOCK_BOOTTIME)) {
        now->tv_sec = (time_t)(stands_us / 1000000);
        now->tv_nsec = (long)(stands_us % 1000000) * 1000;
    }
    if (status == 0 && is_wall) {
        int64_t us = (int64_t)now->tv_sec * 1000000 + now->tv_nsec / 1000 + step(0);
        now->tv_sec = (time_t)(us / 1000000);
        now->tv_nsec = (long)(us % 1000000) * 1000 + now->tv_nsec % 1000;
    }
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec at;
    int status = clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return status;
}

time_t time(time_t *now) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (now != NULL) {
        *now = at.tv_sec;
    }
    return at.tv_sec;
}
