/* Two clocks: unix time for what is kept, the processor's own counter for how long things took.
 *
 * The counter is read twice per command, so it must cost a few nanoseconds: the time stamp counter
 * where there is one. Its unit is measured once against CLOCK_MONOTONIC. */
#include "server/clock.h"

/* Durations of less are dominated by the reading of the clocks. */
enum { CALIBRATION_NS = 5000000, READINGS = 5 };
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

/* Both clocks at one moment: of some readings the quickest, for another program may run between the
 * two. */
static void read_both(uint64_t *now_ns, uint64_t *now_ticks) {
    uint64_t quickest_ns = UINT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        uint64_t begin_ns = monotonic_ns();
        uint64_t ticks = clock_ticks();
        uint64_t took_ns = monotonic_ns() - begin_ns;
        if (took_ns < quickest_ns) {
            quickest_ns = took_ns;
            *now_ns = begin_ns;
            *now_ticks = ticks;
        }
    }
}

void clock_calibrate(void) {
    uint64_t begin_ns = 0, begin_ticks = 0, end_ns = 0, end_ticks = 0;
    if (is_calibrated) {
        return;
    }
    read_both(&begin_ns, &begin_ticks);
    do {
        read_both(&end_ns, &end_ticks);
    } while (end_ns - begin_ns < CALIBRATION_NS);
    if (end_ticks > begin_ticks) {
        ticks_multiplier = ((end_ns - begin_ns) << CALIBRATION_SHIFT) / (end_ticks - begin_ticks);
    }
    is_calibrated = true;
}
