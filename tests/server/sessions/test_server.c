/* TIME DBSIZE FLUSHDB FLUSHALL, by bytes in and bytes out. INFO: test_info.c. */
#include "tests/support/harness.h"

SERVER_TEST(time_is_seconds_and_microseconds) {
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225600\r\n$1\r\n0\r\n");
    h->wall_us += 1234567;
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225601\r\n$6\r\n234567\r\n");
}

SERVER_TEST(time_never_runs_backwards) {
    h->wall_us += 5000000;
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225605\r\n$1\r\n0\r\n");
    h->wall_us -= 3000000;
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225605\r\n$1\r\n0\r\n");
}

static void fill_two_databases(struct harness *h, struct session *s) {
    harness_run(h, s, "SELECT 5");
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "SELECT 0");
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m");
    harness_run(h, s, "EXPIRE b 100");
}

SERVER_TEST(flushdb_empties_its_database_and_flushall_every_one) {
    static const char *const lines[] = {"FLUSHDB",  "FLUSHDB SYNC",   "flushdb async",
                                        "FLUSHALL", "FLUSHALL ASYNC", "flushall sync"};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        fill_two_databases(h, s);
        harness_expect(h, s, lines[i], "+OK\r\n");
        harness_expect(h, s, "DBSIZE", ":0\r\n");
        harness_expect(h, s, "ZSCORE a m", "$-1\r\n");
        harness_run(h, s, "SELECT 5");
        harness_expect(h, s, "DBSIZE", i < 3 ? ":1\r\n" : ":0\r\n");
    }
    assert_int_equal(registry_expiry_next_due(h->server.registry), REGISTRY_NO_EXPIRY);
    harness_expect(h, s, "FLUSHDB ASYNC SYNC", "-ERR syntax error\r\n");
    harness_expect(h, s, "FLUSHALL NOW", "-ERR syntax error\r\n");
}

SERVER_TEST(flushed_boards_are_buried_and_freed_in_steps) {
    for (int i = 0; i < 100; i++) {
        harness_run_format(h, s, "ZADD %d 1 m 2 n 3 o", i);
    }
    harness_run(h, s, "FLUSHALL");
    assert_true(registry_totals(h->server.registry)->unfreed > 0);
    while (registry_free_step(h->server.registry, 10)) {}
    assert_int_equal(registry_totals(h->server.registry)->unfreed, 0);
    harness_run(h, s, "ZADD 7 1 m");
    harness_expect(h, s, "DBSIZE", ":1\r\n");
}
