/* Server time, the monotonic clock, and the processor's counter.
 *
 * Invariant: clock_now_us never decreases, except after clock_reset.
 *
 * The counter is read twice per command, so reading must cost only a few nanoseconds: it is the
 * time stamp counter if that runs at a constant rate, otherwise CLOCK_MONOTONIC. Its unit is
 * measured once. */
#include "server/system/clock.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "server/system/disk.h"
#include "server/system/log.h"

/* In a shorter interval, the cost of reading the clocks dominates. */
enum { CALIBRATION_NS = 5000000, READINGS = 5 };
/* ns = ticks * multiplier / 2^shift; 2^24 keeps seven digits of the ratio. */
enum { CALIBRATION_SHIFT = 24 };
/* AMD64 Architecture Programmer's Manual, volume 3, "TscInvariant"; Intel has the same. */
#define CPUID_POWER 0x80000007U
enum { CPUID_INVARIANT_TSC = 1 << 8 };

bool clock_has_counter;
static uint64_t ticks_multiplier = 1U << CALIBRATION_SHIFT;
static bool is_calibrated;

/* ---- sources ---- */

static int64_t clock_system_us(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t clock_read_wall(const struct clock *clock) {
    return clock->wall_us != NULL ? clock->wall_us(clock->context)
                                  : clock_system_us(CLOCK_REALTIME);
}

static int64_t clock_read_monotonic(const struct clock *clock) {
#ifdef CLOCK_BOOTTIME
    const clockid_t id = CLOCK_BOOTTIME;
#else
    const clockid_t id = CLOCK_MONOTONIC;
#endif
    return clock->monotonic_us != NULL ? clock->monotonic_us(clock->context) : clock_system_us(id);
}

uint64_t clock_monotonic_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- server time ---- */

static double clock_seconds(int64_t us) {
    return (double)us / 1e6;
}

const char *clock_state_name(enum clock_state state) {
    static const char *const names[] = {"follows", "waits", "ahead"};
    return names[state];
}

static void clock_log_state(const struct clock *clock, enum clock_state before) {
    double lead_s = clock_seconds(clock->lead_us);
    switch (clock->state) {
    case CLOCK_FOLLOWS:
        log_write(LOG_NOTICE,
                  "clock: the machine's clock is within a minute of the server's time again, which "
                  "%s lead_seconds=%.3f",
                  before == CLOCK_WAITS ? "has not followed it" : "follows it from now on", lead_s);
        break;
    case CLOCK_WAITS:
        log_write(LOG_WARNING,
                  "clock: the machine's clock is ahead of the server's time: it is believed if it "
                  "stays so for a minute; until then the server's time goes on as before "
                  "lead_seconds=%.3f",
                  lead_s);
        break;
    case CLOCK_AHEAD:
        log_write(LOG_WARNING,
                  "clock: the machine's clock is behind the server's time, which never runs "
                  "backwards and goes on at its own rate lead_seconds=%.3f " CLOCK_RESET_ADVICE,
                  lead_s);
        break;
    }
}

static enum clock_state clock_state_of_lead(int64_t lead_us) {
    if (lead_us > CLOCK_STEP_US) {
        return CLOCK_AHEAD;
    }
    return lead_us < -CLOCK_STEP_US ? CLOCK_WAITS : CLOCK_FOLLOWS;
}

/* Compare server time with the wall clock. */
static void clock_compare(struct clock *clock) {
    int64_t wall_us = clock_read_wall(clock);
    int64_t offset_us = wall_us - clock->read_us;
    int64_t step_us = offset_us - clock->wall_offset_us;
    enum clock_state before = clock->state;
    clock->compared_us = clock->read_us;
    clock->wall_offset_us = offset_us;
    clock->lead_us = clock->latest_us - wall_us;
    clock->slow_us = 0;
    if (step_us > CLOCK_STEP_US || step_us < -CLOCK_STEP_US) {
        clock->step_count++;
        clock->step_us = step_us;
        clock->step_at_us = clock->latest_us;
        clock->waits_since_us = clock->read_us;
        log_write(LOG_WARNING, "clock: the machine's clock has stepped step_seconds=%.3f",
                  clock_seconds(step_us));
    }
    clock->state = clock_state_of_lead(clock->lead_us);
    if (clock->state != before) {
        clock->waits_since_us = clock->read_us;
        clock_log_state(clock, before);
    }
    if (clock->state == CLOCK_WAITS &&
        clock->read_us - clock->waits_since_us >= CLOCK_STEP_LASTS_US) {
        log_write(LOG_WARNING,
                  "clock: the machine's clock has been ahead for a minute and is believed: stamps, "
                  "TIME, periods and EXPIREAT follow it; what was set to last for a while (EXPIRE) "
                  "lasts as long as before step_seconds=%.3f",
                  clock_seconds(-clock->lead_us));
        clock->latest_us -= clock->lead_us;
        clock->lead_us = 0;
        clock->jump_count++;
        clock->state = CLOCK_FOLLOWS;
    } else if (clock->state == CLOCK_FOLLOWS && clock->lead_us <= 0) {
        clock->latest_us = wall_us;
        clock->lead_us = 0;
    } else if (clock->state == CLOCK_FOLLOWS) {
        clock->slow_us = clock->lead_us;
    }
}

/* Start at this time, without comparing it with earlier readings. */
static void clock_start_from(struct clock *clock, int64_t wall_us) {
    clock->read_us = clock_read_monotonic(clock);
    clock->compared_us = clock->read_us;
    clock->wall_offset_us = wall_us - clock->read_us;
    clock->lead_us = clock->latest_us - wall_us;
    clock->state = clock_state_of_lead(clock->lead_us);
    clock->waits_since_us = clock->read_us;
    clock->slow_us = clock->state == CLOCK_FOLLOWS ? clock->lead_us : 0;
    clock->is_started = true;
}

int64_t clock_now_us(struct clock *clock) {
    if (!clock->is_started) {
        clock_raise(clock, clock->latest_us);
        return clock->latest_us;
    }
    int64_t read_us = clock_read_monotonic(clock);
    int64_t elapsed_us = read_us - clock->read_us;
    if (clock->is_following) {
        clock->read_us = read_us;
        int64_t now_us = read_us + clock->follow_offset_us;
        clock->latest_us = now_us > clock->latest_us ? now_us : clock->latest_us;
        return clock->latest_us;
    }
    if (elapsed_us > 0) {
        clock->read_us = read_us;
        clock->latest_us += elapsed_us;
        if (clock->slow_us != 0) {
            /* Some of it is skipped, to let the wall clock catch up. */
            int64_t sum_us = clock->slow_rest_us + elapsed_us;
            int64_t lost_us = sum_us / CLOCK_SLOW_PART;
            clock->slow_rest_us = sum_us % CLOCK_SLOW_PART;
            lost_us = lost_us < clock->slow_us ? lost_us : clock->slow_us;
            clock->slow_us -= lost_us;
            clock->latest_us -= lost_us;
        }
        if (read_us - clock->compared_us >= CLOCK_COMPARE_US) {
            clock_compare(clock);
        }
    }
    return clock->latest_us;
}

void clock_update(struct clock *clock) {
    clock->now_us = clock_now_us(clock);
    int64_t rest_us = clock->now_us % 1000;
    clock->now_ms = clock->now_us / 1000 - (rest_us < 0 ? 1 : 0);
    clock->monotonic_ms = clock->read_us / 1000;
}

int64_t clock_read_ms(const struct clock *clock) {
    return clock_read_monotonic(clock) / 1000;
}

void clock_raise(struct clock *clock, int64_t floor_us) {
    if (!clock->is_started) {
        int64_t wall_us = clock_read_wall(clock);
        clock->latest_us = wall_us > floor_us ? wall_us : floor_us;
        clock_start_from(clock, wall_us);
    } else if (clock_now_us(clock) < floor_us) {
        clock->latest_us = floor_us;
        clock_start_from(clock, clock_read_wall(clock));
    }
}

void clock_follow(struct clock *clock, int64_t master_us, bool is_floor) {
    enum { DRIFT_PART = 8 };
    int64_t offset_us = master_us - clock_read_monotonic(clock);
    if (!clock->is_following) {
        clock->is_following = true;
        clock->is_started = true;
        clock->follow_offset_us = offset_us;
    } else if (offset_us > clock->follow_offset_us) {
        clock->follow_offset_us = offset_us;
    } else if (!is_floor) {
        clock->follow_offset_us -= (clock->follow_offset_us - offset_us) / DRIFT_PART;
    }
}

void clock_follow_anew(struct clock *clock, int64_t master_us) {
    clock->is_following = false;
    clock->latest_us = master_us;
    clock_follow(clock, master_us, true);
}

void clock_lead(struct clock *clock) {
    if (clock->is_following) {
        (void)clock_now_us(clock);
        clock->is_following = false;
        clock_start_from(clock, clock_read_wall(clock));
        if (clock->state == CLOCK_FOLLOWS && clock->lead_us < 0) {
            clock->latest_us -= clock->lead_us;
            clock->lead_us = 0;
            clock->slow_us = 0;
        }
    }
}

void clock_reset(struct clock *clock) {
    int64_t wall_us = clock_read_wall(clock);
    clock->latest_us = wall_us;
    clock->jump_count++;
    clock_start_from(clock, wall_us);
}

/* ---- ticks ---- */

uint64_t clock_ticks_to_ns(uint64_t ticks) {
    /* Past 2^40 ticks (minutes) the product would not fit: give up the fraction. */
    if (ticks >> 40 != 0) {
        return (ticks >> CALIBRATION_SHIFT) * ticks_multiplier;
    }
    return (ticks * ticks_multiplier) >> CALIBRATION_SHIFT;
}

bool clock_counter_is_steady(uint32_t power_edx, const char *clock_sources) {
    /* The kernel removes a counter from its list when it finds it unreliable. */
    return (power_edx & CPUID_INVARIANT_TSC) != 0 &&
           (clock_sources[0] == '\0' || strstr(clock_sources, "tsc") != NULL);
}

/* Read both clocks at the same moment: the fastest of several readings, because the thread may be
 * preempted between the two. */
static void clock_read_both(uint64_t *now_ns, uint64_t *now_ticks) {
    uint64_t quickest_ns = UINT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        uint64_t begin_ns = clock_monotonic_ns();
        uint64_t ticks = clock_ticks();
        uint64_t took_ns = clock_monotonic_ns() - begin_ns;
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
    is_calibrated = true;
#if defined(__x86_64__)
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
    char clock_sources[256];
    (void)!disk_read_text("/sys/devices/system/clocksource/clocksource0/available_clocksource",
                          clock_sources, sizeof clock_sources);
    clock_has_counter = __get_cpuid(CPUID_POWER, &eax, &ebx, &ecx, &edx) != 0 &&
                        clock_counter_is_steady(edx, clock_sources);
    if (!clock_has_counter) {
        return; /* one tick is one nanosecond */
    }
#endif
    clock_read_both(&begin_ns, &begin_ticks);
    do {
        clock_read_both(&end_ns, &end_ticks);
    } while (end_ns - begin_ns < CALIBRATION_NS);
    if (end_ticks > begin_ticks) {
        ticks_multiplier = ((end_ns - begin_ns) << CALIBRATION_SHIFT) / (end_ticks - begin_ticks);
    }
}
