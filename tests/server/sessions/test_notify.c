/* Events of keys as messages: what only we have, what needs a clock, and who pays for it. */
#include "tests/server/sessions/listener.h"

#define CHANNELS                    "__keyspace@0__:k __keyspace@3__:k"
#define NOTIFY_TEST(name, settings) LISTENER_TEST(name, settings, CHANNELS)
#define EVENT(name, size)                                                                          \
    "*3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$" #size "\r\n" name "\r\n"
#define EVENTS "notify-keyspace-events KEAn\n"

NOTIFY_TEST(nothing_is_sent_by_default, NULL) {
    harness_run(h, s, "ZADD k 1 a");
    harness_run(h, s, "DEL k");
    assert_string_equal(harness_output(listener), "");
}

NOTIFY_TEST(a_key_that_expires_is_told_once_however_that_is_found_out, EVENTS) {
    for (int i = 0; i < 2; i++) {
        harness_run(h, s, "ZADD k 1 a");
        harness_run(h, s, "PEXPIRE k 5");
        assert_string_equal(harness_output(listener),
                            EVENT("new", 3) EVENT("zadd", 4) EVENT("expire", 6));
        h->wall_us += 5000;
        if (i == 0) {
            harness_expect(h, s, "ZCARD k", ":0\r\n");
        } else {
            server_update_time(&h->server);
            assert_int_equal(
                registry_expiry_remove_due(h->server.registry, h->server.clock.now_ms, 10), 1);
        }
        assert_string_equal(harness_output(listener), EVENT("expired", 7));
        harness_expect(h, s, "ZCARD k", ":0\r\n");
        assert_string_equal(harness_output(listener), "");
    }
}

NOTIFY_TEST(boards_have_the_events_of_sorted_sets, EVENTS) {
    harness_run(h, s, "LB.ADD k 5 m");
    assert_string_equal(harness_output(listener), EVENT("new", 3) EVENT("zadd", 4));
    harness_run(h, s, "LB.ADD k INCR 5 m");
    assert_string_equal(harness_output(listener), EVENT("zincr", 5));
    harness_run(h, s, "ZPOPMIN k");
    assert_string_equal(harness_output(listener), EVENT("zpopmin", 7) EVENT("del", 3));
    /* A board that LB.CREATE made stays. */
    harness_expect(h, s, "LB.CREATE k LAYOUT default", "+OK\r\n");
    harness_run(h, s, "LB.ADD k 5 m");
    harness_run(h, s, "ZREM k m");
    assert_string_equal(harness_output(listener), EVENT("zadd", 4) EVENT("zrem", 4));
}

NOTIFY_TEST(whoever_waited_causes_the_events_of_a_pop, EVENTS) {
    struct session *waiter = harness_connect(h);
    harness_expect(h, waiter, "BZPOPMAX k 0", "");
    harness_run(h, s, "ZADD k 1 a");
    assert_string_equal(harness_output(listener),
                        EVENT("new", 3) EVENT("zadd", 4) EVENT("zpopmax", 7) EVENT("del", 3));
}

NOTIFY_TEST(keys_of_any_size_have_events, "notify-keyspace-events KEAmn\n") {
    static char name[REGISTRY_KEY_MAX + 1];
    memset(name, 'x', sizeof name);
    struct bytes add[] = {
        BYTES("ZADD"), {.at = name, .size = REGISTRY_KEY_MAX}, BYTES("1"), BYTES("m")};
    struct bytes card[] = {BYTES("ZCARD"), {.at = name, .size = sizeof name}};
    harness_run(h, listener, "UNSUBSCRIBE");
    harness_run(h, listener, "SUBSCRIBE __keyevent@0__:zadd __keyevent@0__:keymiss");
    assert_string_equal(harness_run_args(h, s, add, 4), ":1\r\n");
    assert_in_range(listener->output.size, REGISTRY_KEY_MAX, REGISTRY_KEY_MAX + 100);
    assert_string_equal(harness_run_args(h, s, card, 2), ":0\r\n");
    assert_in_range(listener->output.size, 2 * REGISTRY_KEY_MAX, 2 * REGISTRY_KEY_MAX + 200);
}

/* The archive's name comes with it, however it is found out that the period is over. */
NOTIFY_TEST(a_board_that_rolls_over_is_told_with_its_archive,
            "board daily default PERIOD DAY ARCHIVE 3\nnotify-board-events yes\n") {
    harness_run(h, listener, "RESET");
    harness_run(h, listener, "PSUBSCRIBE __board@*");
    harness_run(h, s, "ZADD daily 1 a");
    h->wall_us += INT64_C(86400) * 1000000;
    harness_expect(h, s, "ZCARD daily", ":0\r\n");
    assert_string_equal(harness_output(listener),
                        "*4\r\n$8\r\npmessage\r\n$9\r\n__board@*\r\n$17\r\n__board@0__:daily\r\n"
                        "$23\r\nrolled daily@2026-01-01\r\n");
    harness_run(h, s, "ZADD daily 1 a");
    harness_run(h, s, "CONFIG SET notify-board-events no");
    h->wall_us += INT64_C(86400) * 1000000;
    harness_expect(h, s, "ZCARD daily", ":0\r\n");
    assert_string_equal(harness_output(listener), "");
    harness_run(h, s, "CONFIG SET notify-board-events yes");
    harness_expect(h, s, "LB.CREATE empty PERIOD DAY", "+OK\r\n");
    h->wall_us += INT64_C(86400) * 1000000;
    harness_expect(h, s, "ZCARD empty", ":0\r\n");
    assert_non_null(strstr(harness_output(listener), "\r\n__board@0__:empty\r\n$6\r\nrolled\r\n"));
}
