/* KEYS SCAN RANDOMKEY, by bytes in and bytes out. What a walk finds: ../test_scan_values.c. */
#include "tests/support/harness.h"

enum { KEYS = 3000 };

static void make_keys(struct harness *h, struct session *s, int first, int end) {
    for (int i = first; i < end; i++) {
        harness_run_format(h, s, "ZADD key:%d 1 m", i);
    }
}

/* One step of a scan: the keys ("key:7") that it names are counted; returns the next cursor. */
static uint64_t scan_step(struct harness *h, struct session *s, uint64_t cursor,
                          const char *options, unsigned *seen) {
    const char *reply =
        harness_run_format(h, s, "SCAN %llu %s", (unsigned long long)cursor, options);
    assert_int_equal(strncmp(reply, "*2\r\n$", 5), 0);
    const char *at = strchr(reply + 5, '\n') + 1;
    uint64_t next = strtoull(at, NULL, 10);
    for (at = strstr(at, "key:"); at != NULL; at = strstr(at + 1, "key:")) {
        int number = atoi(at + 4);
        assert_in_range(number, 0, KEYS - 1);
        seen[number]++;
    }
    return next;
}

/* ---- KEYS ---- */

SERVER_TEST(keys_lists_what_matches_a_pattern) {
    harness_expect(h, s, "KEYS *", "*0\r\n");
    harness_run(h, s, "ZADD day:1 1 m");
    harness_run(h, s, "ZADD day:2 1 m");
    harness_run(h, s, "ZADD week:1 1 m");
    harness_expect(h, s, "KEYS w*", "*1\r\n$6\r\nweek:1\r\n");
    harness_expect(h, s, "KEYS day:[13]", "*1\r\n$5\r\nday:1\r\n");
    harness_expect(h, s, "KEYS day:[^1]", "*1\r\n$5\r\nday:2\r\n");
    harness_expect(h, s, "KEYS ?eek:1", "*1\r\n$6\r\nweek:1\r\n");
    harness_expect(h, s, "KEYS DAY:1", "*0\r\n");
    harness_expect_prefix(h, s, "KEYS *", "*3\r\n");
    harness_expect_prefix(h, s, "KEYS day:?", "*2\r\n");
    harness_run(h, s, "SELECT 1");
    harness_expect(h, s, "KEYS *", "*0\r\n");
}

SERVER_TEST(expired_keys_are_not_listed) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m");
    harness_run(h, s, "PEXPIRE a 5");
    h->wall_us += 6000;
    harness_expect(h, s, "KEYS *", "*1\r\n$1\r\nb\r\n");
    harness_expect(h, s, "SCAN 0", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\nb\r\n");
    for (int i = 0; i < 20; i++) {
        harness_expect(h, s, "RANDOMKEY", "$1\r\nb\r\n");
    }
}

/* ---- SCAN ---- */

SERVER_TEST(scan_filters_by_pattern_and_type) {
    unsigned seen[KEYS] = {0};
    make_keys(h, s, 0, 50);
    uint64_t cursor = 0;
    do {
        cursor = scan_step(h, s, cursor, "MATCH key:1? TYPE zset", seen);
    } while (cursor != 0);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(seen[i], i / 10 == 1);
    }
    harness_expect(h, s, "SCAN 0 COUNT 1000 TYPE string", "*2\r\n$1\r\n0\r\n*0\r\n");
    harness_expect(h, s, "SCAN 0 COUNT 1000 TYPE nonsense", "*2\r\n$1\r\n0\r\n*0\r\n");
    harness_expect(h, s, "SCAN 0 COUNT 1000 TYPE ZSET MATCH key:49",
                   "*2\r\n$1\r\n0\r\n*1\r\n$6\r\nkey:49\r\n");
}

SERVER_TEST(a_cursor_is_an_unsigned_number) {
    const char *invalid = "-ERR invalid cursor\r\n";
    static const char *const bad[] = {"x",
                                      "-1",
                                      "1x",
                                      "\"\"",
                                      "\" 0\"",
                                      "18446744073709551616",
                                      "99999999999999999999",
                                      "+",
                                      "-9223372036854775808"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_string_equal(harness_run_format(h, s, "SCAN %s", bad[i]), invalid);
    }
    assert_string_equal(harness_run(h, s, "SCAN x COUNT 0"), invalid);
    static const char *const good[] = {
        "0", "00", "+0", "9223372036854775807", "4611686018427387903", "18446744073709551615"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_string_equal(harness_run_format(h, s, "SCAN %s", good[i]),
                            "*2\r\n$1\r\n0\r\n*0\r\n");
    }
}

SERVER_TEST(scan_refuses_bad_options) {
    harness_run(h, s, "ZADD a 1 m");
    const char *syntax = "-ERR syntax error\r\n";
    const char *integer = "-ERR value is not an integer or out of range\r\n";
    const char *all = "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n";
    harness_expect(h, s, "SCAN 0 COUNT", syntax);
    harness_expect(h, s, "SCAN 0 MATCH", syntax);
    harness_expect(h, s, "SCAN 0 TYPE", syntax);
    harness_expect(h, s, "SCAN 0 FOO bar", syntax);
    harness_expect(h, s, "SCAN 0 COUNT 0", syntax);
    harness_expect(h, s, "SCAN 0 COUNT -1", syntax);
    harness_expect(h, s, "SCAN 0 COUNT -9223372036854775808", syntax);
    harness_expect(h, s, "SCAN 0 COUNT x", integer);
    harness_expect(h, s, "SCAN 0 COUNT 9223372036854775808", integer);
    harness_expect(h, s, "SCAN 0 COUNT 9223372036854775807", all);
    harness_expect(h, s, "SCAN 0 COUNT 4611686018427387903", all);
}

SERVER_TEST(a_silent_client_is_answered_nothing) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "CLIENT REPLY OFF");
    harness_expect(h, s, "SCAN 0", "");
    harness_expect(h, s, "KEYS *", "");
}

/* ---- RANDOMKEY ---- */

SERVER_TEST(randomkey_draws_every_key) {
    unsigned seen[10] = {0};
    for (int i = 0; i < 10; i++) {
        harness_run_format(h, s, "ZADD %d 1 m", i);
    }
    for (int i = 0; i < 2000; i++) {
        seen[harness_run(h, s, "RANDOMKEY")[4] - '0']++;
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(seen[i], 100, 400); /* 200 expected, deviation 13 */
    }
}

SERVER_TEST(randomkey_removes_few_of_many_keys_that_have_expired) {
    make_keys(h, s, 0, KEYS);
    for (int i = 1; i < KEYS; i++) {
        harness_run_format(h, s, "PEXPIRE key:%d 5", i);
    }
    h->wall_us += 6000;
    harness_expect(h, s, "RANDOMKEY", "$5\r\nkey:0\r\n");
    assert_in_range(registry_totals(h->server.registry)->expired, 1, 100);
    harness_run(h, s, "DEL key:0");
    harness_expect(h, s, "RANDOMKEY", "$-1\r\n");
    assert_in_range(registry_totals(h->server.registry)->expired, 1, 200);
}

SERVER_TEST(randomkey_of_an_empty_database_is_nil) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "SELECT 2");
    harness_expect(h, s, "RANDOMKEY", "$-1\r\n");
    s->protocol = 3;
    harness_expect(h, s, "RANDOMKEY", "_\r\n");
}

/* ---- patterns ---- */

/* Each command's last word is a pattern of so many stars. */
SERVER_TEST(every_command_refuses_a_pattern_of_more_than_1024_bytes) {
    static const struct bytes commands[][5] = {
        {BYTES_INIT("KEYS")},
        {BYTES_INIT("SCAN"), BYTES_INIT("0"), BYTES_INIT("MATCH")},
        {BYTES_INIT("ZSCAN"), BYTES_INIT("key:1"), BYTES_INIT("0"), BYTES_INIT("MATCH")},
        {BYTES_INIT("CONFIG"), BYTES_INIT("GET"), BYTES_INIT("port")},
        {BYTES_INIT("COMMAND"), BYTES_INIT("LIST"), BYTES_INIT("FILTERBY"), BYTES_INIT("PATTERN")},
    };
    enum { SIZE = 1000000 };
    char *stars = malloc(SIZE);
    assert_non_null(stars);
    memset(stars, '*', SIZE);
    make_keys(h, s, 0, 20);
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        struct bytes args[6];
        uint32_t count = 0;
        while (count < 5 && commands[i][count].at != NULL) {
            args[count] = commands[i][count];
            count++;
        }
        args[count] = (struct bytes){.at = stars, .size = 1024};
        assert_int_equal(harness_run_args(h, s, args, count + 1)[0], '*');
        args[count].size = 1025;
        assert_string_equal(harness_run_args(h, s, args, count + 1),
                            "-ERR pattern is too long: at most 1024 bytes\r\n");
        args[count].size = SIZE;
        assert_string_equal(harness_run_args(h, s, args, count + 1),
                            "-ERR pattern is too long: at most 1024 bytes\r\n");
    }
    free(stars);
}
