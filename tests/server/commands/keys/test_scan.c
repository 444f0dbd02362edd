/* KEYS SCAN RANDOMKEY, by bytes in and bytes out. What a walk finds: ../test_scan_values.c;
 * patterns beside Redis: tests/integration/differential.c. */
#include "tests/support/harness.h"

enum { KEYS = 3000 };

static void make_keys(struct harness *h, struct session *s, int first, int end) {
    for (int i = first; i < end; i++) {
        harness_run_format(h, s, "ZADD key:%d 1 m", i);
    }
}

/* ---- KEYS ---- */

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

#define ALL     "*2\r\n$1\r\n0\r\n"
#define SYNTAX  "-ERR syntax error\r\n"
#define INTEGER "-ERR value is not an integer or out of range\r\n"
#define CURSOR  "-ERR invalid cursor\r\n"

/* What each reply begins with. */
SERVER_TEST(scan_filters_by_pattern_and_type_and_refuses_other_words) {
    static const char *const rows[][2] = {
        {"SCAN 0 COUNT 1000", ALL "*50\r\n"},
        {"SCAN 0 COUNT 1000 MATCH key:1? TYPE zset", ALL "*10\r\n"},
        {"SCAN 0 COUNT 1000 TYPE string", ALL "*0\r\n"},
        {"SCAN 0 COUNT 1000 TYPE nonsense", ALL "*0\r\n"},
        {"SCAN 0 COUNT 1000 TYPE ZSET MATCH key:49", ALL "*1\r\n$6\r\nkey:49\r\n"},
        {"SCAN 0 COUNT 9223372036854775807", ALL "*50\r\n"},
        {"SCAN +0 COUNT 4611686018427387903", ALL "*50\r\n"},
        {"SCAN 00 COUNT 100", ALL "*50\r\n"},
        {"SCAN 18446744073709551615", ALL "*0\r\n"},
        {"SCAN x COUNT 0", CURSOR},
        {"SCAN -1", CURSOR},
        {"SCAN 1x", CURSOR},
        {"SCAN \"\"", CURSOR},
        {"SCAN 18446744073709551616", CURSOR},
        {"SCAN 0 COUNT", SYNTAX},
        {"SCAN 0 MATCH", SYNTAX},
        {"SCAN 0 TYPE", SYNTAX},
        {"SCAN 0 FOO bar", SYNTAX},
        {"SCAN 0 COUNT 0", SYNTAX},
        {"SCAN 0 COUNT -9223372036854775808", SYNTAX},
        {"SCAN 0 COUNT x", INTEGER},
        {"SCAN 0 COUNT 9223372036854775808", INTEGER},
    };
    make_keys(h, s, 0, 50);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        harness_expect_prefix(h, s, rows[i][0], rows[i][1]);
    }
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
    OWNED char *stars = malloc(SIZE);
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
}
