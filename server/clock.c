/* Two clocks: unix time for what is kept, the processor's own counter for how long things took.
 *
 * The counter is read twice per command, so it must cost a few nanoseconds: the time stamp counter
 * where there is one. Its unit is measured once against CLOCK_MONOTONIC. */
#include "server/clock.h"

/* Durations of less are dominated by the reading of the clocks. */
enum { CALIBRATION_NS = 5000000 };
/* ns = ticks * multiplier / 2^shift; 2^24 keeps seven digits of the ratio. */
enum { CALIBRATION_SHIFT = 24 };

static uint64_t ticks_multiplier = 1U << CALIBRATION_SHIFT;
static bool is_calibrated;

static int64_t system_wall_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static uint64_t monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

int64_t clock_now_us(struct clock *clock) {
    int64_t wall_us = clock->wall_us != NULL ? clock->wall_us(clock->context) : system_wall_us();
    if (wall_us > clock->latest_us) {
        clock->latest_us = wall_us;
    }
    return clock->latest_us;
}

uint64_t clock_ticks_to_ns(uint64_t ticks) {
    /* Past 2^40 ticks (minutes) the product would not fit: give up the fraction. */
    if (ticks >> 40 != 0) {
        return (ticks >> CALIBRATION_SHIFT) * ticks_multiplier;
    }
    return (ticks * ticks_multiplier) >> CALIBRATION_SHIFT;
}

void clock_calibrate(void) {
    if (is_calibrated) {
        return;
    }
    uint64_t begin_ns = monotonic_ns();
    uint64_t begin_ticks = clock_ticks();
    uint64_t elapsed_ns;
    do {
        elapsed_ns = monotonic_ns() - begin_ns;
    } while (elapsed_ns < CALIBRATION_NS);
    uint64_t elapsed_ticks = clock_ticks() - begin_ticks;
    if (elapsed_ticks > 0) {
        ticks_multiplier = (elapsed_ns << CALIBRATION_SHIFT) / elapsed_ticks;
    }
    is_calibrated = true;
}
