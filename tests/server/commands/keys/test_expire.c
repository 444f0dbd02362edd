/* EXPIRE and its family, by bytes in and bytes out. Random ones: tests/integration/twin.c and
 * differential.c. */
#include "tests/support/harness.h"

static void advance_ms(struct harness *h, int64_t ms) {
    h->wall_us += ms * 1000;
}

/* The wall clock, in no time. */
static void step_clock(struct harness *h, int64_t seconds) {
    h->step_us += seconds * 1000000;
}

/* ---- what it means to expire ---- */

SERVER_TEST(a_key_goes_when_its_time_has_come) {
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "PEXPIRE a 1000", ":1\r\n");
    advance_ms(h, 999);
    harness_expect(h, s, "EXISTS a", ":1\r\n");
    advance_ms(h, 2);
    harness_expect(h, s, "EXISTS a", ":0\r\n");
    harness_expect(h, s, "ZREVRANGE a 0 -1", "*0\r\n");
    assert_int_equal(registry_totals(h->server.registry)->expired, 1);
}

SERVER_TEST(every_command_finds_an_expired_key_gone) {
    static const char *const lines[][2] = {
        {"DEL a", ":0\r\n"},
        {"UNLINK a", ":0\r\n"},
        {"TYPE a", "+none\r\n"},
        {"EXISTS a", ":0\r\n"},
        {"TOUCH a", ":0\r\n"},
        {"TTL a", ":-2\r\n"},
        {"PTTL a", ":-2\r\n"},
        {"PERSIST a", ":0\r\n"},
        {"EXPIRE a 10", ":0\r\n"},
        {"COPY a b", ":0\r\n"},
        {"ZCARD a", ":0\r\n"},
        {"ZSCORE a m", "$-1\r\n"},
        {"EXPIRETIME a", ":-2\r\n"},
        {"ZREM a m", ":0\r\n"},
        {"OBJECT ENCODING a", "$-1\r\n"},
        {"PEXPIRETIME a", ":-2\r\n"},
        {"MEMORY USAGE a", "$-1\r\n"},
        {"RENAME a b", "-ERR no such key\r\n"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        harness_run(h, s, "ZADD a 1 m");
        harness_run(h, s, "PEXPIRE a 1");
        advance_ms(h, 2);
        harness_expect(h, s, lines[i][0], lines[i][1]);
        harness_expect(h, s, "DBSIZE", ":0\r\n");
    }
}

SERVER_TEST(a_clock_set_back_neither_revives_nor_delays) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "ZADD b 1 m");
    harness_run(h, s, "PEXPIRE a 1000");
    harness_run(h, s, "PEXPIRE b 5000");
    advance_ms(h, 2000);
    harness_expect(h, s, "PTTL b", ":3000\r\n");
    step_clock(h, -3600);
    harness_expect(h, s, "EXISTS a", ":0\r\n");
    harness_expect(h, s, "PTTL b", ":3000\r\n");
    advance_ms(h, 1000);
    harness_expect(h, s, "PTTL b", ":2000\r\n");
    step_clock(h, 3600);
    advance_ms(h, 1000);
    harness_expect(h, s, "PTTL b", ":1000\r\n");
    advance_ms(h, 1000);
    harness_expect(h, s, "EXISTS b", ":0\r\n");
}

/* In ten minutes, one of which passes until the step is believed. */
static void let_an_hour_be_jumped(struct harness *h, struct session *s) {
    int64_t before_us = harness_now_us(h);
    step_clock(h, 3600);
    harness_run(h, s, "PING");
    for (int i = 0; i < 600; i++) {
        advance_ms(h, 1000);
        harness_run(h, s, "PING");
    }
    assert_int_equal(harness_now_us(h), before_us + INT64_C(4200000000));
}

SERVER_TEST(a_duration_lasts_though_the_clock_jumps_and_a_time_comes_earlier) {
    harness_run(h, s, "ZADD lasting 1 m");
    harness_run(h, s, "ZADD timed 1 m");
    harness_run(h, s, "EXPIRE lasting 1000");
    harness_run_format(h, s, "EXPIREAT timed %lld", (long long)(h->wall_us / 1000000 + 1000));
    let_an_hour_be_jumped(h, s);
    harness_expect(h, s, "EXISTS timed", ":0\r\n");
    harness_expect(h, s, "TTL lasting", ":400\r\n");
    harness_expect(h, s, "RENAME lasting named", "+OK\r\n");
    harness_expect(h, s, "COPY named copied", ":1\r\n");
    let_an_hour_be_jumped(h, s);
    harness_expect(h, s, "EXISTS named copied", ":0\r\n"); /* 1200 seconds have passed */
}

SERVER_TEST(a_renamed_or_copied_key_keeps_what_its_expiry_is) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "EXPIRE a 2000");
    harness_run(h, s, "RENAME a b");
    harness_run(h, s, "COPY b c DB 3");
    harness_run(h, s, "ZADD d 1 m");
    harness_run(h, s, "LB.ROLL d e EX 2000");
    harness_run(h, s, "ZADD f 1 m");
    harness_run(h, s, "EXPIRE f 2000");
    harness_run_format(h, s, "EXPIREAT f %lld", (long long)(h->wall_us / 1000000 + 10000));
    harness_run(h, s, "ZADD g 1 m");
    harness_run_format(h, s, "EXPIREAT g %lld", (long long)(h->wall_us / 1000000 + 10000));
    harness_run(h, s, "EXPIRE g 2000");
    let_an_hour_be_jumped(h, s);
    harness_expect(h, s, "TTL b", ":1400\r\n");
    harness_expect(h, s, "TTL e", ":1400\r\n");
    harness_expect(h, s, "TTL f", ":5800\r\n");
    harness_expect(h, s, "TTL g", ":1400\r\n");
    harness_run(h, s, "SELECT 3");
    harness_expect(h, s, "TTL c", ":1400\r\n");
    /* After a flush, too. */
    harness_run(h, s, "FLUSHALL");
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "EXPIRE a 2000");
    harness_expect(h, s, "TTL a", ":2000\r\n");
    let_an_hour_be_jumped(h, s);
    harness_expect(h, s, "TTL a", ":1400\r\n");
}

SERVER_TEST(a_clock_that_runs_slower_lets_durations_be) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "EXPIRE a 1000");
    int64_t before_us = harness_now_us(h);
    step_clock(h, -30);
    for (int i = 0; i < 100; i++) {
        advance_ms(h, 1000);
        harness_run(h, s, "PING");
    }
    /* The first second is over when the step is seen, and a tenth is lost from then on. */
    assert_int_equal(harness_now_us(h), before_us + INT64_C(100000000) - 9900000);
    /* What is less than a second does not shift it. */
    int64_t left_ms = harness_run_integer(h, s, "PTTL a");
    assert_in_range(left_ms, 900000 - 1000, 900000 + 1000);
}

/* ---- setting ---- */

SERVER_TEST(the_four_forms_agree) {
    static const char *const lines[] = {
        "EXPIRE a 100",
        "PEXPIRE a 100000",
        "EXPIREAT a 1767225700",
        "PEXPIREAT a 1767225700000",
    };
    harness_run(h, s, "ZADD a 1 m");
    for (size_t i = 0; i < 4; i++) {
        harness_run(h, s, "PERSIST a");
        harness_expect(h, s, lines[i], ":1\r\n");
        harness_expect(h, s, "PEXPIRETIME a", ":1767225700000\r\n");
        harness_expect(h, s, "EXPIRETIME a", ":1767225700\r\n");
        harness_expect(h, s, "TTL a", ":100\r\n");
        harness_expect(h, s, "PTTL a", ":100000\r\n");
    }
}

SERVER_TEST(a_time_that_has_come_removes_the_key_at_once) {
    static const char *const lines[] = {
        "EXPIRE a 0",
        "EXPIRE a -1",
        "EXPIRE a -9223372036854775",
        "PEXPIRE a 0",
        "PEXPIRE a -1",
        "PEXPIRE a -9223372036854775808",
        "EXPIREAT a 0",
        "EXPIREAT a 1767225600",
        "PEXPIREAT a 1767225600000",
        "PEXPIREAT a -1",
        "PEXPIREAT a -9223372036854775808",
        "EXPIRE a -1 NX",
        "EXPIRE a -1 LT",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        harness_run(h, s, "ZADD a 1 m");
        harness_expect(h, s, lines[i], ":1\r\n");
        harness_expect(h, s, "EXISTS a", ":0\r\n");
    }
}

SERVER_TEST(options_say_when_a_time_is_set) {
    static const char *const rows[][2] = {
        {"EXPIRE a 10 XX", ":0\r\n"},   {"EXPIRE a 10 GT", ":0\r\n"},
        {"EXPIRE a 10 LT", ":1\r\n"},   {"EXPIRE a 20 NX", ":0\r\n"},
        {"EXPIRE a 10 GT", ":0\r\n"},   {"EXPIRE a 10 LT", ":0\r\n"},
        {"TTL a", ":10\r\n"},           {"EXPIRE a 11 GT", ":1\r\n"},
        {"EXPIRE a 5 XX LT", ":1\r\n"}, {"EXPIRE a 6 xx gt", ":1\r\n"},
        {"EXPIRE a -1 GT", ":0\r\n"},   {"TTL a", ":6\r\n"},
        {"EXPIRE a -1 LT", ":1\r\n"},   {"EXISTS a", ":0\r\n"},
    };
    harness_run(h, s, "ZADD a 1 m");
    harness_expect_each(h, s, rows);
}

/* ---- errors ---- */

#define NX      "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n"
#define GT_LT   "-ERR GT and LT options at the same time are not compatible\r\n"
#define INTEGER "-ERR value is not an integer or out of range\r\n"
#define EXPIRE  "-ERR invalid expire time in 'expire' command\r\n"

SERVER_TEST(what_contradicts_or_overflows_is_refused_and_changes_nothing) {
    static const char *const rows[][2] = {
        {"EXPIRE a 10 NX XX", NX},
        {"EXPIRE a 10 GT NX", NX},
        {"EXPIREAT a 10 NX GT LT", NX},
        {"EXPIRE missing 10 NX XX", NX},
        {"PEXPIREAT a 10 GT LT", GT_LT},
        {"EXPIRE a 10 LT XX GT", GT_LT},
        {"EXPIRE a x FOO", "-ERR Unsupported option FOO\r\n"},
        {"EXPIRE a 10 NX XX foo", "-ERR Unsupported option foo\r\n"},
        {"EXPIRE a x", INTEGER},
        {"EXPIRE a 1.5", INTEGER},
        {"EXPIRE a \"\"", INTEGER},
        {"EXPIRE a 9223372036854775808", INTEGER},
        {"PEXPIREAT a -9223372036854775809", INTEGER},
        {"EXPIRE a 9223372036854775807", EXPIRE},
        {"EXPIRE a -9223372036854775808", EXPIRE},
        {"EXPIRE a 9223372036854775", EXPIRE},
        {"EXPIRE a -9223372036854776", EXPIRE},
        {"EXPIRE missing 9223372036854775807", EXPIRE},
        {"PEXPIRE a 9223372036854775807", "-ERR invalid expire time in 'pexpire' command\r\n"},
        {"EXPIREAT a 9223372036854775807", "-ERR invalid expire time in 'expireat' command\r\n"},
        {"EXPIREAT a -9223372036854775808", "-ERR invalid expire time in 'expireat' command\r\n"},
    };
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "EXPIRE a 77");
    harness_expect_each(h, s, rows);
    harness_expect(h, s, "TTL a", ":77\r\n");
}

SERVER_TEST(the_largest_times_are_kept) {
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "PEXPIREAT a 9223372036854775807", ":1\r\n");
    harness_expect(h, s, "PEXPIRETIME a", ":9223372036854775807\r\n");
    harness_expect(h, s, "EXPIRETIME a", ":9223372036854776\r\n");
    harness_expect(h, s, "PTTL a", ":9223370269629175807\r\n");
    harness_expect(h, s, "TTL a", ":9223370269629176\r\n");
    harness_expect(h, s, "PEXPIRE a 4611686018427387903", ":1\r\n");
    harness_expect(h, s, "PTTL a", ":4611686018427387903\r\n");
}

SERVER_TEST(seconds_are_rounded_to_the_nearest) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "PEXPIRE a 1499");
    harness_expect(h, s, "TTL a", ":1\r\n");
    harness_run(h, s, "PEXPIRE a 1500");
    harness_expect(h, s, "TTL a", ":2\r\n");
    harness_run(h, s, "PEXPIRE a 499");
    harness_expect(h, s, "TTL a", ":0\r\n");
    harness_run(h, s, "PEXPIREAT a 1767225700499");
    harness_expect(h, s, "EXPIRETIME a", ":1767225700\r\n");
    harness_run(h, s, "PEXPIREAT a 1767225700500");
    harness_expect(h, s, "EXPIRETIME a", ":1767225701\r\n");
}
