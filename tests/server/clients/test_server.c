/* TIME DBSIZE FLUSHDB FLUSHALL, by bytes in and bytes out. INFO: test_info.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/support/harness.h"

static int setup(void **state) {
    *state = harness_create(NULL);
    return 0;
}

static int teardown(void **state) {
    harness_destroy(*state);
    return 0;
}

#define BEGIN                                                                                      \
    struct harness *h = *state;                                                                    \
    struct session *s = harness_connect(h)

static void time_is_seconds_and_microseconds(void **state) {
    BEGIN;
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225600\r\n$1\r\n0\r\n");
    h->wall_us += 1234567;
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225601\r\n$6\r\n234567\r\n");
    harness_expect(h, s, "TIME now", "-ERR wrong number of arguments for 'time' command\r\n");
}

static void time_never_runs_backwards(void **state) {
    BEGIN;
    h->wall_us += 5000000;
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225605\r\n$1\r\n0\r\n");
    h->wall_us -= 3000000;
    harness_expect(h, s, "TIME", "*2\r\n$10\r\n1767225605\r\n$1\r\n0\r\n");
}

static void dbsize_counts_the_keys_of_the_database(void **state) {
    BEGIN;
    harness_expect(h, s, "DBSIZE", ":0\r\n");
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m 2 n");
    harness_expect(h, s, "DBSIZE", ":2\r\n");
    harness_run(h, s, "SELECT 1");
    harness_expect(h, s, "DBSIZE", ":0\r\n");
    harness_expect(h, s, "DBSIZE 1", "-ERR wrong number of arguments for 'dbsize' command\r\n");
}

static void fill_two_databases(struct harness *h, struct session *s) {
    harness_run(h, s, "SELECT 5");
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "SELECT 0");
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m");
    harness_run(h, s, "EXPIRE b 100");
}

static void flushdb_empties_its_database_alone(void **state) {
    BEGIN;
    static const char *const lines[] = {"FLUSHDB", "FLUSHDB SYNC", "flushdb async"};
    for (size_t i = 0; i < 3; i++) {
        fill_two_databases(h, s);
        harness_expect(h, s, lines[i], "+OK\r\n");
        harness_expect(h, s, "DBSIZE", ":0\r\n");
        harness_expect(h, s, "ZSCORE a m", "$-1\r\n");
        harness_run(h, s, "SELECT 5");
        harness_expect(h, s, "DBSIZE", ":1\r\n");
    }
}

static void flushall_empties_every_database(void **state) {
    BEGIN;
    static const char *const lines[] = {"FLUSHALL", "FLUSHALL ASYNC", "flushall sync"};
    for (size_t i = 0; i < 3; i++) {
        fill_two_databases(h, s);
        harness_expect(h, s, lines[i], "+OK\r\n");
        harness_expect(h, s, "DBSIZE", ":0\r\n");
        harness_run(h, s, "SELECT 5");
        harness_expect(h, s, "DBSIZE", ":0\r\n");
    }
    assert_int_equal(registry_next_due(h->server.registry), REGISTRY_NO_EXPIRY);
}

static void flushed_boards_are_buried_and_freed_in_steps(void **state) {
    BEGIN;
    for (int i = 0; i < 100; i++) {
        harness_run_format(h, s, "ZADD %d 1 m 2 n 3 o", i);
    }
    harness_run(h, s, "FLUSHALL");
    assert_true(registry_unfreed_count(h->server.registry) > 0);
    while (registry_free_step(h->server.registry, 10)) {}
    assert_int_equal(registry_unfreed_count(h->server.registry), 0);
    harness_run(h, s, "ZADD 7 1 m");
    harness_expect(h, s, "DBSIZE", ":1\r\n");
}

static void flushing_refuses_other_words_and_changes_nothing(void **state) {
    BEGIN;
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "FLUSHDB NOW", "-ERR syntax error\r\n");
    harness_expect(h, s, "FLUSHDB ASYNC SYNC", "-ERR syntax error\r\n");
    harness_expect(h, s, "FLUSHALL NOW", "-ERR syntax error\r\n");
    harness_expect(h, s, "FLUSHALL SYNC SYNC", "-ERR syntax error\r\n");
    harness_expect(h, s, "DBSIZE", ":1\r\n");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(time_is_seconds_and_microseconds),
        TEST(time_never_runs_backwards),
        TEST(dbsize_counts_the_keys_of_the_database),
        TEST(flushdb_empties_its_database_alone),
        TEST(flushall_empties_every_database),
        TEST(flushed_boards_are_buried_and_freed_in_steps),
        TEST(flushing_refuses_other_words_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
