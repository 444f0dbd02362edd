/* The server's clock: unix time that never runs backwards.
 *
 * now = max(wall clock, latest stamp given). A wall clock set back makes the clock stand still
 * until the wall has caught up; then equal scores keep their arrival order. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct clock {
    int64_t latest_us; /* the latest stamp given; 0 at first */
    /* Where the wall time comes from; NULL: the system. Tests put their own here. */
    int64_t (*wall_us)(void *context);
    void *context;
};

/* The time now, unix microseconds; remembered as the latest stamp. */
int64_t clock_now_us(struct clock *clock);

/* A cheap monotonic count for measuring durations, and its unit in nanoseconds. */
uint64_t clock_ticks(void);
uint64_t clock_ticks_to_ns(uint64_t ticks);
/* Measure the unit (some milliseconds, once at start). */
void clock_calibrate(void);

#endif
