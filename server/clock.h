/* The server's clock: unix time that never runs backwards.
 *
 * now = max(wall clock, latest stamp given). A wall clock set back makes the clock stand still
 * until the wall has caught up; then equal scores keep their arrival order. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct clock {
    int64_t latest_us; /* the latest stamp given; 0 at first */
    /* Where the wall time comes from; NULL: the system. Tests put their own here. */
    int64_t (*wall_us)(void *context);
    void *context;
};

/* The time now, unix microseconds; remembered as the latest stamp. */
int64_t clock_now_us(struct clock *clock);

/* A cheap monotonic count for measuring durations, and its unit in nanoseconds. */
static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
#endif
}
uint64_t clock_ticks_to_ns(uint64_t ticks);
/* Measure the unit (some milliseconds, once at start). */
void clock_calibrate(void);

#endif
