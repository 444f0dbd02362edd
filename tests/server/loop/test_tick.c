/* What the loop does when no client sends anything. It runs on a clock that the test sets, any time
 * ahead of the real one. */
#include <time.h>

#include "server/loop/tick.h"
#include "tests/support/harness.h"

struct fixture {
    struct harness *harness;
    struct session *session;
    uv_loop_t loop;
    struct tick tick;
    int64_t ahead_us;   /* of the real clock */
    int64_t stopped_us; /* what a clock that stands still shows; 0: it goes on */
    int64_t sleeps_us;  /* once, when the clock is read, so in a tick; 0: not */
    int64_t works_us;   /* the same: until the thread has had a processor for so long */
};

static int64_t real_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int64_t thread_cpu_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void delay(struct fixture *fixture) {
    int64_t end_us = thread_cpu_us() + fixture->works_us;
    const struct timespec sleep = {.tv_nsec = fixture->sleeps_us * 1000};
    while (fixture->works_us > 0 && thread_cpu_us() < end_us) {}
    nanosleep(&sleep, NULL);
    fixture->works_us = fixture->sleeps_us = 0;
}

/* And the monotonic one: what is set forward is time that passes. */
static int64_t wall_us(void *context) {
    struct fixture *fixture = context;
    delay(fixture);
    return fixture->stopped_us != 0 ? fixture->stopped_us : real_us() + fixture->ahead_us;
}

static void set_clock(struct fixture *fixture, int64_t now_us) {
    fixture->stopped_us = 0;
    fixture->ahead_us = now_us - real_us();
}

/* The clock shows this time, however long the test is delayed, until it is set again. */
static void stop_clock(struct fixture *fixture, int64_t now_us) {
    fixture->stopped_us = now_us;
}

static void stop_listening(void *context) {
    (void)context;
}

static void begin(struct fixture *fixture) {
    *fixture = (struct fixture){.harness = harness_create(NULL)};
    struct server *server = &fixture->harness->server;
    server->clock.wall_us = wall_us;
    server->clock.monotonic_us = wall_us;
    server->clock.context = fixture;
    set_clock(fixture, HARNESS_START_US);
    clock_reset(&server->clock);
    fixture->session = harness_connect(fixture->harness);
    fixture->tick.stop_listening = stop_listening;
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    assert_true(tick_init(&fixture->tick, &fixture->loop, server));
}

static void end(struct fixture *fixture) {
    tick_shutdown(&fixture->tick, true);
    assert_int_equal(uv_run(&fixture->loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    tick_deinit(&fixture->tick);
    harness_destroy(fixture->harness);
}

/* Before the loop turns: its clients are connections, which the harness's is not, and it looks at
 * them once a second. */
static void let_client_go(struct fixture *fixture) {
    harness_disconnect(fixture->harness, fixture->session);
    fixture->session = NULL;
}

static const struct registry *registry_of(const struct fixture *fixture) {
    return fixture->harness->server.registry;
}

/* Turn the loop, which may sleep until its timers wake it, until so many boards have rolled. */
static void turn_until_rolled(struct fixture *fixture, uint64_t count) {
    for (int64_t until_us = real_us() + 60000000;
         registry_totals(registry_of(fixture))->rolled < count && real_us() < until_us;) {
        uv_run(&fixture->loop, UV_RUN_ONCE);
    }
    assert_int_equal(registry_totals(registry_of(fixture))->rolled, count);
}

TEST(the_loop_wakes_up_for_the_end_of_a_period) {
    ENDED_BY(end) struct fixture fixture;
    begin(&fixture);
    struct harness *h = fixture.harness;
    harness_expect(h, fixture.session, "LB.CREATE k PERIOD DAY", "+OK\r\n");
    harness_expect(h, fixture.session, "ZADD k 5 ann", ":1\r\n");
    let_client_go(&fixture);
    /* 20 ms before midnight; no client sends anything from here on. */
    int64_t late_us = HARNESS_START_US + INT64_C(86400000000) - 20000;
    stop_clock(&fixture, late_us);
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    assert_int_equal(registry_totals(registry_of(&fixture))->rolled, 0);
    set_clock(&fixture, late_us);
    turn_until_rolled(&fixture, 1);
    assert_non_null(
        registry_peek(registry_of(&fixture), 0, BYTES("k@2026-01-01"), h->server.clock.now_ms));
    /* And then, once what is removed is freed, it sleeps until the next one. */
    for (int turns = 0; fixture.tick.is_idle_active && turns < 1000; turns++) {
        uv_run(&fixture.loop, UV_RUN_NOWAIT);
    }
    assert_false(fixture.tick.is_idle_active);
    assert_true(fixture.tick.wake_at_ms == (HARNESS_START_US + 2 * INT64_C(86400000000)) / 1000);
}

TEST(the_processor_time_of_a_long_tick_is_told_from_its_wall_time) {
    enum { LONG_US = 30000, LESS_US = 25000 };
    ENDED_BY(end) struct fixture fixture;
    begin(&fixture);
    struct stats *stats = &fixture.harness->server.stats;
    fixture.harness->server.settings.latency_monitor_threshold_ms = 20;
    let_client_go(&fixture);
    fixture.sleeps_us = LONG_US;
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    assert_int_equal(stats->long_tick_count, 1);
    assert_true(stats->long_tick_wall_ns >= LONG_US * UINT64_C(1000));
    assert_true(stats->long_tick_cpu_ns + LESS_US * UINT64_C(1000) <= stats->long_tick_wall_ns);
    assert_true(stats->tick_longest_us >= LONG_US);
    assert_int_equal(stats->tick_longest_cpu_us, stats->long_tick_cpu_ns / 1000);
    uint64_t slept_cpu_ns = stats->long_tick_cpu_ns;
    fixture.works_us = LONG_US;
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    assert_int_equal(stats->long_tick_count, 2);
    assert_true(stats->long_tick_cpu_ns - slept_cpu_ns >= LONG_US * UINT64_C(1000));
    assert_true(stats->long_tick_cpu_ns <= stats->long_tick_wall_ns);
    assert_true(stats->tick_busiest_us >= LONG_US);
    assert_in_range(stats->tick_busy_count, 1, 2);
    const struct latency *latency = &fixture.harness->server.latency;
    assert_non_null(stats_latency_find(latency, BYTES("tick")));
    assert_non_null(stats_latency_find(latency, BYTES("tick-cpu")));
    assert_true(stats_latency_find(latency, BYTES("tick-cpu"))->longest_ms >= LONG_US / 1000);
    assert_int_equal(stats->ticks.count, 2);
    assert_true(stats->ticks.total_ns >= stats->long_tick_wall_ns);
}

TEST(thousands_of_boards_begin_anew_over_many_turns) {
    ENDED_BY(end) struct fixture fixture;
    begin(&fixture);
    enum { BOARDS = 20000 };
    for (int i = 0; i < BOARDS; i++) {
        harness_run_format(fixture.harness, fixture.session, "LB.CREATE b%d PERIOD WEEK", i);
        harness_run_format(fixture.harness, fixture.session, "ZADD b%d 5 ann", i);
    }
    let_client_go(&fixture);
    set_clock(&fixture, HARNESS_START_US + 7 * INT64_C(86400000000));
    uint64_t ticks_before = fixture.harness->server.stats.ticks.count;
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    uint64_t rolled_at_once = registry_totals(registry_of(&fixture))->rolled;
    assert_in_range(rolled_at_once, 1, BOARDS - 1);
    assert_true(fixture.tick.is_idle_active);
    turn_until_rolled(&fixture, BOARDS);
    printf("%d boards in %llu turns, the longest %llu us\n", BOARDS,
           (unsigned long long)(fixture.harness->server.stats.ticks.count - ticks_before),
           (unsigned long long)fixture.harness->server.stats.tick_longest_us);
    assert_int_equal(registry_count(registry_of(&fixture), 0), 2 * BOARDS);
}

TEST(without_memory_the_loop_tries_again_and_does_not_spin) {
    ENDED_BY(end) struct fixture fixture;
    begin(&fixture);
    harness_expect(fixture.harness, fixture.session, "LB.CREATE k PERIOD DAY", "+OK\r\n");
    harness_expect(fixture.harness, fixture.session, "ZADD k 5 ann", ":1\r\n");
    let_client_go(&fixture);
    set_clock(&fixture, HARNESS_START_US + INT64_C(86400000000));
    uv_timer_stop(&fixture.tick.second); /* which may need memory, too */
    memory_fail_at(1);
    uv_run(&fixture.loop, UV_RUN_NOWAIT);
    memory_fail_at(0);
    assert_int_equal(registry_totals(registry_of(&fixture))->rolled, 0);
    assert_false(fixture.tick.is_idle_active);
    turn_until_rolled(&fixture, 1);
}
