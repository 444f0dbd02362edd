/* Effects on keys and boards when server time jumps, across a restart, and when it is reset. */
#include "tests/support/test.h"

#include "tests/support/directory.h"
#include "tests/support/durable_server.h"

#define DAY_US INT64_C(86400000000)

/* What is put on disk with a clock that jumps by an hour, and found after a restart. */
static void assert_kept(const char *settings) {
    char directory[DIRECTORY_PATH_MAX];
    struct durable_server durable;
    directory_make(directory);
    durable_start(&durable, directory, settings);
    struct harness *h = durable.harness;
    struct session *s = harness_connect(h);
    harness_expect(h, s, "ZADD plasting 1 m", ":1\r\n");
    harness_expect(h, s, "EXPIRE plasting 10000", ":1\r\n");
    harness_expect(h, s, "ZADD ptimed 1 m", ":1\r\n");
    harness_run_format(h, s, "EXPIREAT ptimed %lld", (long long)(h->wall_us / 1000000 + 10000));
    durable_end_tick(&durable);
    h->step_us += INT64_C(3600000000);
    for (int i = 0; i < 70; i++) {
        durable_second(&durable);
    }
    assert_int_equal(durable.server->clock.jump_count, 1);
    assert_true(durable_settle(&durable));
    assert_int_equal(durable_describe(&durable).save_count, 1);
    harness_expect(h, s, "TTL plasting", ":9930\r\n");
    harness_expect(h, s, "TTL ptimed", ":6330\r\n");
    durable_second(&durable); /* and no other */
    assert_true(durable_settle(&durable));
    assert_int_equal(durable_describe(&durable).save_count, 1);
    int64_t stopped_us = durable.server->clock.now_us;
    durable_stop(&durable);

    durable_start(&durable, directory, settings);
    h = durable.harness;
    s = harness_connect(h);
    int64_t gone_us = durable.server->clock.now_us - stopped_us;
    assert_in_range(gone_us + 2000000, 0, 2000000);
    int64_t left_s = harness_run_integer(h, s, "TTL plasting");
    assert_in_range(left_s, 9928, 9931);
    assert_int_equal(harness_run_integer(h, s, "TTL ptimed"), left_s - 3600);
    durable_stop(&durable);
    directory_remove(directory);
}

TEST(after_a_jump_a_snapshot_keeps_what_durations_have_left) {
    assert_kept("appendonly yes\n");
    assert_kept("save 100000 100000\n");
}

SERVER_TEST(a_refusal_for_a_time_too_late_offers_the_reset) {
    clock_raise(&h->server.clock, INT64_C(4133980800000000)); /* 2101 */
    const char *reply = harness_run(h, s, "ZADD b 1 m");
    assert_non_null(strstr(reply, "-ERR time 2101-01-01T00:00:00Z is out of range: "));
    assert_non_null(strstr(reply, "; the server's clock is 2366755200 s ahead of the machine's, "
                                  "restart it with --reset-clock to correct it\r\n"));
    reply = harness_run(h, s, "LB.ADD b 1 m");
    assert_non_null(strstr(reply, "--reset-clock"));
}

HARNESS_TEST(boards_ahead_of_a_reset_begin_anew_in_the_present_period,
             "board day:* default PERIOD DAY\n") {
    h->wall_us += 3 * DAY_US;
    harness_expect(h, s, "LB.CREATE made PERIOD DAY", "+OK\r\n");
    harness_expect(h, s, "ZADD made 1 ann", ":1\r\n");
    harness_expect(h, s, "EXPIRE made 5000", ":1\r\n");
    harness_expect(h, s, "LB.CREATE empty PERIOD WEEK", "+OK\r\n");
    harness_expect(h, s, "LB.CREATE month PERIOD MONTH", "+OK\r\n");
    harness_expect(h, s, "ZADD month 9 eve", ":1\r\n");
    for (int i = 0; i < 100; i++) {
        harness_run_format(h, s, "ZADD day:%d 2 bob", i);
    }
    harness_set_clock(h, HARNESS_START_US);
    server_update_time(&h->server);
    struct registry *registry = h->server.registry;
    /* Only those of days: the week and the month have begun. */
    assert_int_equal(registry_roll_ahead(registry, h->server.clock.now_ms), 101);
    harness_expect(h, s, "ZCARD made", ":0\r\n");
    harness_expect(h, s, "ZCARD made@2026-01-04", ":1\r\n");
    harness_expect(h, s, "TTL made", ":5000\r\n");
    harness_expect(h, s, "ZADD made 3 cid", ":1\r\n");
    harness_expect(h, s, "ZCARD month", ":1\r\n");
    harness_expect(h, s, "EXISTS day:7 day:7@2026-01-04", ":1\r\n");
    harness_expect(h, s, "ZADD day:7 3 cid", ":1\r\n");
    h->wall_us += DAY_US;
    harness_expect(h, s, "EXISTS made made@2026-01-01", ":0\r\n"); /* expired before */
    harness_expect(h, s, "ZCARD day:7@2026-01-01", ":1\r\n");
    assert_int_equal(registry_roll_ahead(registry, h->server.clock.now_ms), 0);
}
