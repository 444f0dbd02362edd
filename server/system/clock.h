/* Three clocks.
 *
 *     server time   unix time: stamps, TIME, periods, EXPIREAT. It never runs backwards
 *     monotonic     for durations: EXPIRE, pauses, timeouts, save points
 *     ticks         a cheap counter for how long a command took
 *
 * Server time advances at the rate of the monotonic clock. It is corrected by the machine's clock
 * (the wall clock), which is read once a millisecond at most. The correction depends on the
 * difference. The wall clock is
 *
 *     up to a minute ahead       server time follows it at once
 *     up to a minute behind      server time runs a tenth slower until both meet
 *     more than a minute behind  server time continues at its own rate. Only clock_reset brings it
 *                                back, because later stamps must not be lower than earlier ones
 *     more than a minute ahead   it must stay so for a minute without another step of more than a
 *                                minute. Then server time jumps to it
 *
 * So a wall clock that is wrong for a few seconds has no effect, while a clock set by NTP after
 * boot, or a host resuming a paused guest, is followed a minute later. At start the wall clock is
 * trusted at once: there is nothing to compare it with but the floor, the latest stamp on disk, and
 * server time is never below that.
 *
 * The monotonic clock is CLOCK_BOOTTIME, which continues while the machine is suspended, as the
 * wall clock does: a key with a minute to live has expired after an hour of suspend. Where that is
 * missing it is CLOCK_MONOTONIC. */
#ifndef SERVER_CLOCK_H
#define SERVER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
    CLOCK_STEP_US = 60 * 1000000,       /* a larger difference is a step */
    CLOCK_STEP_LASTS_US = 60 * 1000000, /* how long a step must last to be trusted */
    CLOCK_COMPARE_US = 1000,            /* between two reads of the wall clock */
    CLOCK_SLOW_PART = 10,               /* server time loses 1 part in this many */
};

enum clock_state {
    CLOCK_FOLLOWS, /* within a minute of the wall clock */
    CLOCK_WAITS,   /* the wall clock is far ahead, and must stay so for a minute */
    CLOCK_AHEAD,   /* the wall clock is far behind */
};

/* A replica's server time is its master's: what that said last, plus the monotonic time since. The wall
 * clock does not count until clock_lead. */

/* Must be zeroed except for the sources. */
struct clock {
    /* Set by clock_update: server time (milliseconds: rounded down), and monotonic time. */
    int64_t now_us, now_ms;
    int64_t monotonic_ms;
    bool is_to_be_reset; /* --reset-clock: applied once everything is loaded */
    int64_t latest_us;   /* the latest stamp given; 0 at first */
    /* Source of wall time; NULL: the system. Tests set their own. */
    int64_t (*wall_us)(void *context);
    /* Source of monotonic time, in microseconds since any origin. */
    int64_t (*monotonic_us)(void *context);
    void *context;
    enum clock_state state;
    bool is_started;
    int64_t read_us;        /* monotonic time of the latest reading */
    int64_t compared_us;    /* monotonic time of the latest comparison with the wall clock */
    int64_t wall_offset_us; /* wall time minus monotonic time, at that comparison */
    int64_t lead_us;        /* server time minus wall time, at that comparison */
    int64_t slow_us;        /* still to be lost by running slower */
    int64_t slow_rest_us;   /* elapsed time not yet applied: less than CLOCK_SLOW_PART */
    int64_t waits_since_us; /* monotonic; in CLOCK_WAITS */
    /* Steps of the wall clock by more than a minute; the size of the latest, and when it was
     * noticed. */
    bool is_following;        /* a master's time: clock_follow */
    int64_t follow_offset_us; /* that minus monotonic time */
    uint64_t step_count;
    uint64_t jump_count; /* of server time; not counting the start */
    int64_t step_us, step_at_us;
};

/* The time now, in unix microseconds; recorded as the latest stamp. Sets clock->read_us to the
 * monotonic time of the same moment. */
int64_t clock_now_us(struct clock *clock);
/* Read the clock into now_us, now_ms and monotonic_ms. Called before the first command of every
 * tick. */
void clock_update(struct clock *clock);
/* The monotonic time as it is now, of the same origin as monotonic_ms: for what must not be older than what
 * has just been done, as leases. Any thread. */
int64_t clock_read_ms(const struct clock *clock);
/* Server time minus monotonic time, at the latest reading. */
static inline int64_t clock_offset_ms(const struct clock *clock) {
    return (clock->now_us - clock->read_us) / 1000;
}
/* From now on server time is at least this. */
void clock_raise(struct clock *clock, int64_t floor_us);
/* Set server time to the wall clock, even if that is earlier. */
void clock_reset(struct clock *clock);
/* The master's time was this when it was sent; it is at least that now. Of two such times the later one
 * counts, unless it is not is_floor, and then time runs a little slower until both meet. */
void clock_follow(struct clock *clock, int64_t master_us, bool is_floor);
/* The same for keys that have just come whole from a master: earlier stamps do not count, and time may
 * run backwards once. */
void clock_follow_anew(struct clock *clock, int64_t master_us);
/* A replica has become a master: time goes on from here, and follows the machine's clock. What that is ahead,
 * up to a minute, counts at once: it is the other clock, and no time that has passed meanwhile, and so
 * durations (registry_expiry_set_offset) do not shift by it. */
void clock_lead(struct clock *clock);
/* For log lines that report that server time is ahead. */
#define CLOCK_RESET_ADVICE                                                                         \
    "advice=\"if the machine's clock is right, start once with --reset-clock: stamps from then "   \
    "on "                                                                                          \
    "are earlier than those of before\""
/* "follows", "waits", "ahead" */
const char *clock_state_name(enum clock_state state);

/* Does the processor's counter run at a constant rate, in all cores and in all power states? Set by
 * clock_calibrate. */
extern bool clock_has_counter;
/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t clock_monotonic_ns(void);
static inline uint64_t clock_monotonic_us(void) {
    return clock_monotonic_ns() / 1000;
}

/* A cheap monotonic counter for durations; clock_ticks_to_ns converts it. */
static inline uint64_t clock_ticks(void) {
#if defined(__x86_64__)
    return __builtin_expect(clock_has_counter, 1) ? __builtin_ia32_rdtsc() : clock_monotonic_ns();
#elif defined(__aarch64__)
    /* The architecture guarantees a constant rate. */
    uint64_t count;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return clock_monotonic_ns();
#endif
}
uint64_t clock_ticks_to_ns(uint64_t ticks);
/* Choose the counter and measure its unit (a few milliseconds, once at start, before the first use
 * of clock_ticks). */
void clock_calibrate(void);
/* Is the time stamp counter usable? power_edx: EDX of CPUID leaf 0x80000007; clock_sources: the
 * kernel's list of usable clock sources, "" if it cannot be read. */
bool clock_counter_is_steady(uint32_t power_edx, const char *clock_sources);

/* ---- how long ----
 *
 * How often something happened, and how long it took: a count, a sum, and buckets of powers of two
 * microseconds. Adding one costs a few instructions. */

enum { DURATIONS_BUCKETS = 32 }; /* bucket i: up to 2^i microseconds, the last one: any */

struct durations {
    uint64_t count;
    uint64_t total_ns;
    uint64_t buckets[DURATIONS_BUCKETS];
};

static inline void durations_add(struct durations *durations, uint64_t elapsed_ns) {
    uint64_t us = elapsed_ns / 1000;
    unsigned bucket = us <= 1 ? 0 : 64U - (unsigned)__builtin_clzll(us - 1);
    durations->count++;
    durations->total_ns += elapsed_ns;
    durations->buckets[bucket < DURATIONS_BUCKETS ? bucket : DURATIONS_BUCKETS - 1]++;
}

#endif
