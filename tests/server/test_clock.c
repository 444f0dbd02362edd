/* The clock that never runs backwards, and the counter for durations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "server/clock.h"

static int64_t given_wall_us(void *context) {
    return *(const int64_t *)context;
}

static void time_is_the_wall_clock_while_it_runs_forward(void **state) {
    (void)state;
    int64_t wall_us = 1000;
    struct clock clock = {.wall_us = given_wall_us, .context = &wall_us};
    assert_int_equal(clock_now_us(&clock), 1000);
    assert_int_equal(clock_now_us(&clock), 1000);
    wall_us = 1001;
    assert_int_equal(clock_now_us(&clock), 1001);
    assert_int_equal(clock.latest_us, 1001);
}

static void a_wall_clock_set_back_makes_time_stand_still_until_it_has_caught_up(void **state) {
    (void)state;
    int64_t wall_us = 5000000;
    struct clock clock = {.wall_us = given_wall_us, .context = &wall_us};
    assert_int_equal(clock_now_us(&clock), 5000000);
    wall_us = 1000000;
    assert_int_equal(clock_now_us(&clock), 5000000);
    wall_us = -7;
    assert_int_equal(clock_now_us(&clock), 5000000);
    wall_us = 4999999;
    assert_int_equal(clock_now_us(&clock), 5000000);
    wall_us = 5000001;
    assert_int_equal(clock_now_us(&clock), 5000001);
}

static void the_latest_stamp_may_come_from_elsewhere(void **state) {
    (void)state;
    int64_t wall_us = 100;
    struct clock clock = {.latest_us = 900, .wall_us = given_wall_us, .context = &wall_us};
    assert_int_equal(clock_now_us(&clock), 900);
}

static void without_a_source_the_system_tells_the_time(void **state) {
    (void)state;
    struct clock clock = {0};
    int64_t before_us = (int64_t)time(NULL) * 1000000 - 1000000;
    int64_t now_us = clock_now_us(&clock);
    assert_true(now_us > before_us);
    assert_true(clock_now_us(&clock) >= now_us);
}

static void ticks_only_grow_and_become_nanoseconds_in_proportion(void **state) {
    (void)state;
    clock_calibrate();
    uint64_t first = clock_ticks();
    assert_true(clock_ticks() >= first);
    assert_int_equal(clock_ticks_to_ns(0), 0);
    uint64_t million_ns = clock_ticks_to_ns(1000000);
    assert_true(million_ns > 0);
    /* At most a unit in the last place is lost to rounding. */
    assert_in_range(clock_ticks_to_ns(10000000) / 10, million_ns, million_ns + 1);
}

static void a_count_of_hours_does_not_overflow(void **state) {
    (void)state;
    clock_calibrate();
    uint64_t hour_ticks = UINT64_C(1) << 43;
    uint64_t hour_ns = clock_ticks_to_ns(hour_ticks);
    assert_true(hour_ns / 2 > clock_ticks_to_ns(hour_ticks / 2) - hour_ns / 1000);
    assert_true(hour_ns / 2 < clock_ticks_to_ns(hour_ticks / 2) + hour_ns / 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_is_the_wall_clock_while_it_runs_forward),
        cmocka_unit_test(a_wall_clock_set_back_makes_time_stand_still_until_it_has_caught_up),
        cmocka_unit_test(the_latest_stamp_may_come_from_elsewhere),
        cmocka_unit_test(without_a_source_the_system_tells_the_time),
        cmocka_unit_test(ticks_only_grow_and_become_nanoseconds_in_proportion),
        cmocka_unit_test(a_count_of_hours_does_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
