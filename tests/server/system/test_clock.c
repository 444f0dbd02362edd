/* The clock that never runs backwards, and the counter for durations. */
#include "tests/support/test.h"

#include <time.h>

#include "server/system/clock.h"

#define SECOND INT64_C(1000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)
#define DAY    (24 * HOUR)
/* 2026-11-21T11:00:00Z */
#define START INT64_C(1795258800000000)

/* The clocks of a machine. */
struct machine {
    int64_t wall_us, monotonic_us;
    uint64_t wall_readings, monotonic_readings;
    struct clock clock;
};

static int64_t wall_us(void *context) {
    struct machine *machine = context;
    machine->wall_readings++;
    return machine->wall_us;
}

static int64_t monotonic_us(void *context) {
    struct machine *machine = context;
    machine->monotonic_readings++;
    return machine->monotonic_us;
}

/* Its server has this floor on disk. */
static void boot(struct machine *machine, int64_t wall_at_start_us, int64_t floor_us) {
    *machine = (struct machine){.wall_us = wall_at_start_us, .monotonic_us = 5 * SECOND};
    machine->clock = (struct clock){.wall_us = wall_us, .monotonic_us = monotonic_us};
    machine->clock.context = machine;
    clock_raise(&machine->clock, floor_us);
}

static int64_t now(struct machine *machine) {
    return clock_now_us(&machine->clock);
}

/* Advance the time and read the clock ten times a second. It never runs backwards. */
static void pass(struct machine *machine, int64_t us) {
    while (us > 0) {
        int64_t step = us < SECOND / 10 ? us : SECOND / 10;
        int64_t before_us = machine->clock.latest_us;
        machine->wall_us += step;
        machine->monotonic_us += step;
        us -= step;
        assert_true(now(machine) >= before_us);
        assert_int_equal(machine->clock.read_us, machine->monotonic_us);
    }
}

TEST(time_is_the_wall_clock_while_that_makes_no_steps) {
    struct machine machine;
    boot(&machine, START, 0);
    assert_int_equal(now(&machine), START);
    pass(&machine, 1);
    assert_int_equal(now(&machine), START + 1);
    pass(&machine, DAY);
    assert_int_equal(now(&machine), START + 1 + DAY);
    assert_int_equal(machine.clock.state, CLOCK_FOLLOWS);
    assert_int_equal(machine.clock.step_count, 0);
}

/* The offset says what durations shift by: registry_expiry_set_offset. */
TEST(a_replica_that_leads_takes_the_machines_time_at_once) {
    struct machine machine;
    boot(&machine, START, 0);
    (void)now(&machine);
    clock_follow(&machine.clock, START - 3 * SECOND, false);
    clock_follow_anew(&machine.clock, START - 3 * SECOND);
    pass(&machine, SECOND);
    assert_int_equal(machine.clock.latest_us, START - 2 * SECOND);
    clock_lead(&machine.clock);
    assert_int_equal(now(&machine), START + SECOND);
    clock_update(&machine.clock);
    int64_t offset_ms = clock_offset_ms(&machine.clock);
    pass(&machine, HOUR);
    clock_update(&machine.clock);
    assert_int_equal(clock_offset_ms(&machine.clock), offset_ms);
    assert_int_equal(now(&machine), START + SECOND + HOUR);
}

TEST(set_back_by_more_than_a_minute_time_goes_on_at_its_own_rate) {
    struct machine machine;
    boot(&machine, START, 0);
    machine.wall_us -= 3 * DAY;
    pass(&machine, HOUR);
    assert_int_equal(now(&machine), START + HOUR);
    assert_int_equal(machine.clock.state, CLOCK_AHEAD);
    assert_int_equal(machine.clock.lead_us, 3 * DAY);
    assert_int_equal(machine.clock.step_us, -3 * DAY);
    assert_int_equal(machine.clock.step_at_us, START + SECOND / 10);
    /* Once corrected, it is followed again. */
    machine.wall_us += 3 * DAY;
    pass(&machine, HOUR);
    assert_int_equal(now(&machine), START + 2 * HOUR);
    assert_int_equal(machine.clock.state, CLOCK_FOLLOWS);
    assert_int_equal(machine.clock.step_count, 2);
}

TEST(set_back_by_less_it_runs_a_tenth_slower_until_both_meet) {
    struct machine machine;
    boot(&machine, START, 0);
    machine.wall_us -= 20 * SECOND;
    pass(&machine, SECOND / 10); /* the step is noticed */
    pass(&machine, 100 * SECOND);
    assert_int_equal(now(&machine), START + SECOND / 10 + 90 * SECOND);
    pass(&machine, 100 * SECOND);
    assert_int_equal(now(&machine), machine.wall_us);
    pass(&machine, 100 * SECOND);
    assert_int_equal(now(&machine), machine.wall_us);
    assert_int_equal(machine.clock.step_count, 0);
}

/* Reading more often than a whole part can be lost does not stop the slowdown. */
TEST(read_every_microsecond_it_runs_slower_all_the_same) {
    struct machine machine;
    boot(&machine, START, 0);
    machine.wall_us -= SECOND / 100;
    for (int i = 0; i < 200000; i++) {
        pass(&machine, 1);
    }
    assert_int_equal(now(&machine), machine.wall_us);
}

TEST(a_step_forward_of_less_than_a_minute_is_followed_at_once) {
    struct machine machine;
    boot(&machine, START, 0);
    machine.wall_us += 59 * SECOND;
    pass(&machine, SECOND / 10);
    assert_int_equal(now(&machine), machine.wall_us);
    assert_int_equal(machine.clock.jump_count, 0);
}

TEST(a_larger_one_is_believed_after_a_minute) {
    struct machine machine;
    boot(&machine, START, 0);
    machine.wall_us += HOUR;
    pass(&machine, MINUTE);
    assert_int_equal(now(&machine), START + MINUTE);
    assert_int_equal(machine.clock.state, CLOCK_WAITS);
    assert_int_equal(machine.clock.lead_us, -HOUR);
    pass(&machine, SECOND / 10);
    assert_int_equal(now(&machine), machine.wall_us);
    assert_int_equal(machine.clock.state, CLOCK_FOLLOWS);
    assert_int_equal(machine.clock.jump_count, 1);
    assert_int_equal(machine.clock.step_us, HOUR);
}

TEST(seventy_five_years_for_half_a_second_leave_no_trace) {
    struct machine machine;
    boot(&machine, START, 0);
    pass(&machine, MINUTE);
    machine.wall_us += 75 * 365 * DAY;
    pass(&machine, SECOND / 2);
    assert_int_equal(now(&machine), START + MINUTE + SECOND / 2);
    machine.wall_us -= 75 * 365 * DAY;
    pass(&machine, HOUR);
    assert_int_equal(now(&machine), machine.wall_us);
    assert_int_equal(machine.clock.jump_count, 0);
    assert_int_equal(machine.clock.step_count, 2);
}

/* Each step restarts the minute: otherwise the last one would be trusted at once. */
TEST(a_wall_clock_that_keeps_stepping_is_not_believed) {
    struct machine machine;
    boot(&machine, START, 0);
    for (int i = 0; i < 10; i++) {
        machine.wall_us += HOUR;
        pass(&machine, 50 * SECOND);
    }
    assert_int_equal(now(&machine), START + 500 * SECOND);
    pass(&machine, 11 * SECOND);
    assert_int_equal(now(&machine), machine.wall_us);
}

TEST(a_start_behind_the_floor_goes_on_from_it) {
    struct machine machine;
    boot(&machine, START, START + 3 * DAY);
    assert_int_equal(now(&machine), START + 3 * DAY);
    assert_int_equal(machine.clock.state, CLOCK_AHEAD);
    pass(&machine, HOUR);
    assert_int_equal(now(&machine), START + 3 * DAY + HOUR);
    /* A lower floor changes nothing. */
    clock_raise(&machine.clock, START);
    assert_int_equal(now(&machine), START + 3 * DAY + HOUR);
    clock_reset(&machine.clock);
    assert_int_equal(now(&machine), START + HOUR);
    pass(&machine, HOUR);
    assert_int_equal(now(&machine), START + 2 * HOUR);
}

TEST(a_floor_that_comes_later_raises_a_clock_that_runs) {
    struct machine machine;
    boot(&machine, START, 0);
    pass(&machine, SECOND);
    clock_raise(&machine.clock, START + MINUTE / 2);
    assert_int_equal(now(&machine), START + MINUTE / 2);
    pass(&machine, 10 * SECOND);
    assert_int_equal(now(&machine), START + MINUTE / 2 + 9 * SECOND);
}

TEST(a_reading_costs_one_clock_and_the_wall_clock_once_a_millisecond) {
    struct machine machine;
    boot(&machine, START, 0);
    uint64_t wall_before = machine.wall_readings;
    uint64_t monotonic_before = machine.monotonic_readings;
    for (int i = 0; i < 100000; i++) {
        machine.wall_us += 10;
        machine.monotonic_us += 10;
        now(&machine);
    }
    assert_int_equal(machine.monotonic_readings - monotonic_before, 100000);
    assert_int_equal(machine.wall_readings - wall_before, 1000);
}

TEST(only_a_counter_of_one_rate_that_the_kernel_trusts_is_used) {
    enum { INVARIANT = 1 << 8 };
    assert_true(clock_counter_is_steady(INVARIANT, "tsc kvm-clock \n"));
    assert_true(clock_counter_is_steady(INVARIANT | 1, ""));
    assert_false(clock_counter_is_steady(INVARIANT, "hpet acpi_pm \n"));
    assert_false(clock_counter_is_steady(0, "tsc hpet \n"));
    assert_false(clock_counter_is_steady(~(uint32_t)INVARIANT, ""));
}

TEST(without_a_counter_ticks_are_nanoseconds) {
#if !defined(__x86_64__)
    skip();
#endif
    clock_calibrate();
    bool has_counter = clock_has_counter;
    clock_has_counter = false;
    uint64_t begin_ns = clock_monotonic_ns();
    uint64_t ticks = clock_ticks();
    uint64_t end_ns = clock_monotonic_ns();
    clock_has_counter = has_counter;
    assert_true(begin_ns <= ticks && ticks <= end_ns);
}

TEST(without_a_source_the_system_tells_the_time) {
    struct clock clock = {0};
    int64_t before_us = (int64_t)time(NULL) * 1000000 - 1000000;
    int64_t now_us = clock_now_us(&clock);
    assert_true(now_us > before_us);
    assert_true(clock_now_us(&clock) >= now_us);
}

TEST(ticks_only_grow_and_become_nanoseconds_in_proportion) {
    clock_calibrate();
    uint64_t first = clock_ticks();
    assert_true(clock_ticks() >= first);
    assert_int_equal(clock_ticks_to_ns(0), 0);
    uint64_t million_ns = clock_ticks_to_ns(1000000);
    assert_true(million_ns > 0);
    /* Rounding costs at most one unit in the last place. */
    assert_in_range(clock_ticks_to_ns(10000000) / 10, million_ns, million_ns + 1);
}

TEST(a_count_of_hours_does_not_overflow) {
    clock_calibrate();
    uint64_t hour_ticks = UINT64_C(1) << 43;
    uint64_t hour_ns = clock_ticks_to_ns(hour_ticks);
    assert_true(hour_ns / 2 > clock_ticks_to_ns(hour_ticks / 2) - hour_ns / 1000);
    assert_true(hour_ns / 2 < clock_ticks_to_ns(hour_ticks / 2) + hour_ns / 1000);
}
