/* EXPIRE and its family, by bytes in and bytes out. */
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

SERVER_TEST(a_write_to_an_expired_key_begins_anew) {
    harness_run(h, s, "ZADD a 7 m 8 n");
    harness_run(h, s, "PEXPIRE a 1");
    advance_ms(h, 2);
    harness_expect(h, s, "ZINCRBY a 1 m", "$1\r\n1\r\n");
    harness_expect(h, s, "ZCARD a", ":1\r\n");
    harness_expect(h, s, "TTL a", ":-1\r\n");
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

SERVER_TEST(a_changed_board_keeps_its_expiry) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "PEXPIRE a 1000");
    harness_run(h, s, "ZADD a 2 m 3 n");
    harness_run(h, s, "ZREM a m");
    harness_expect(h, s, "PTTL a", ":1000\r\n");
    harness_run(h, s, "ZREM a n");
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "PTTL a", ":-1\r\n");
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

SERVER_TEST(of_a_missing_key_nothing_is_set) {
    harness_expect(h, s, "EXPIRE x 10", ":0\r\n");
    harness_expect(h, s, "PEXPIREAT x 1 XX", ":0\r\n");
    harness_expect(h, s, "PERSIST x", ":0\r\n");
    harness_expect(h, s, "DBSIZE", ":0\r\n");
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

SERVER_TEST(nx_sets_only_without_and_xx_only_with_an_expiry) {
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "EXPIRE a 10 XX", ":0\r\n");
    harness_expect(h, s, "EXPIRE a 10 nx", ":1\r\n");
    harness_expect(h, s, "EXPIRE a 20 NX", ":0\r\n");
    harness_expect(h, s, "TTL a", ":10\r\n");
    harness_expect(h, s, "EXPIRE a 20 xx", ":1\r\n");
    harness_expect(h, s, "TTL a", ":20\r\n");
}

SERVER_TEST(gt_sets_only_later_and_lt_only_earlier_times) {
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "EXPIRE a 10 GT", ":0\r\n");
    harness_expect(h, s, "EXPIRE a 10 LT", ":1\r\n");
    harness_expect(h, s, "EXPIRE a 10 GT", ":0\r\n");
    harness_expect(h, s, "EXPIRE a 10 LT", ":0\r\n");
    harness_expect(h, s, "EXPIRE a 11 LT", ":0\r\n");
    harness_expect(h, s, "EXPIRE a 9 GT", ":0\r\n");
    harness_expect(h, s, "TTL a", ":10\r\n");
    harness_expect(h, s, "EXPIRE a 11 GT", ":1\r\n");
    harness_expect(h, s, "EXPIRE a 5 XX LT", ":1\r\n");
    harness_expect(h, s, "TTL a", ":5\r\n");
    harness_expect(h, s, "EXPIRE a 6 XX GT", ":1\r\n");
    harness_expect(h, s, "EXPIRE a -1 GT", ":0\r\n");
    harness_expect(h, s, "TTL a", ":6\r\n");
    harness_expect(h, s, "EXPIRE a -1 LT", ":1\r\n");
    harness_expect(h, s, "EXISTS a", ":0\r\n");
}

SERVER_TEST(persist_takes_the_expiry_away) {
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "PERSIST a", ":0\r\n");
    harness_run(h, s, "PEXPIRE a 5");
    harness_expect(h, s, "PERSIST a", ":1\r\n");
    harness_expect(h, s, "TTL a", ":-1\r\n");
    advance_ms(h, 10);
    harness_expect(h, s, "EXISTS a", ":1\r\n");
}

/* ---- errors ---- */

static void expect_refused(struct harness *h, struct session *s, const char *line,
                           const char *error) {
    harness_run(h, s, "ZADD a 1 m");
    harness_run(h, s, "EXPIRE a 77");
    harness_expect(h, s, line, error);
    harness_expect(h, s, "TTL a", ":77\r\n");
}

SERVER_TEST(options_that_contradict_are_refused) {
    const char *nx = "-ERR NX and XX, GT or LT options at the same time are not compatible\r\n";
    const char *gt = "-ERR GT and LT options at the same time are not compatible\r\n";
    expect_refused(h, s, "EXPIRE a 10 NX XX", nx);
    expect_refused(h, s, "EXPIRE a 10 GT NX", nx);
    expect_refused(h, s, "PEXPIRE a 10 NX LT", nx);
    expect_refused(h, s, "EXPIREAT a 10 NX GT LT", nx);
    expect_refused(h, s, "PEXPIREAT a 10 GT LT", gt);
    expect_refused(h, s, "EXPIRE a 10 LT XX GT", gt);
    expect_refused(h, s, "EXPIRE a 10 FOO", "-ERR Unsupported option FOO\r\n");
    expect_refused(h, s, "EXPIRE a x FOO", "-ERR Unsupported option FOO\r\n");
    expect_refused(h, s, "EXPIRE a 10 NX XX foo", "-ERR Unsupported option foo\r\n");
    expect_refused(h, s, "EXPIRE missing 10 NX XX", nx);
}

SERVER_TEST(times_are_integers_that_do_not_overflow) {
    const char *integer = "-ERR value is not an integer or out of range\r\n";
    const char *expire = "-ERR invalid expire time in 'expire' command\r\n";
    expect_refused(h, s, "EXPIRE a x", integer);
    expect_refused(h, s, "EXPIRE a 1.5", integer);
    expect_refused(h, s, "EXPIRE a \"\"", integer);
    expect_refused(h, s, "EXPIRE a 9223372036854775808", integer);
    expect_refused(h, s, "PEXPIREAT a -9223372036854775809", integer);
    expect_refused(h, s, "EXPIRE a 9223372036854775807", expire);
    expect_refused(h, s, "EXPIRE a 4611686018427387903", expire);
    expect_refused(h, s, "EXPIRE a -9223372036854775808", expire);
    expect_refused(h, s, "EXPIRE a 9223372036854775", expire);
    expect_refused(h, s, "EXPIRE a -9223372036854776", expire);
    expect_refused(h, s, "EXPIRE missing 9223372036854775807", expire);
    expect_refused(h, s, "PEXPIRE a 9223372036854775807",
                   "-ERR invalid expire time in 'pexpire' command\r\n");
    expect_refused(h, s, "EXPIREAT a 9223372036854775807",
                   "-ERR invalid expire time in 'expireat' command\r\n");
    expect_refused(h, s, "EXPIREAT a -9223372036854775808",
                   "-ERR invalid expire time in 'expireat' command\r\n");
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

SERVER_TEST(the_number_of_arguments_is_checked) {
    static const char *const names[] = {"expire", "pexpire", "expireat", "pexpireat"};
    static const char *const readers[] = {"ttl", "pttl", "expiretime", "pexpiretime", "persist"};
    char error[128];
    for (size_t i = 0; i < 4; i++) {
        snprintf(error, sizeof error, "-ERR wrong number of arguments for '%s' command\r\n",
                 names[i]);
        assert_string_equal(harness_run_format(h, s, "%s a", names[i]), error);
    }
    for (size_t i = 0; i < 5; i++) {
        snprintf(error, sizeof error, "-ERR wrong number of arguments for '%s' command\r\n",
                 readers[i]);
        assert_string_equal(harness_run_format(h, s, "%s", readers[i]), error);
        assert_string_equal(harness_run_format(h, s, "%s a b", readers[i]), error);
    }
}

/* ---- reading ---- */

SERVER_TEST(minus_two_without_a_key_minus_one_without_an_expiry) {
    static const char *const names[] = {"TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME"};
    harness_run(h, s, "ZADD a 1 m");
    for (size_t i = 0; i < 4; i++) {
        assert_string_equal(harness_run_format(h, s, "%s missing", names[i]), ":-2\r\n");
        assert_string_equal(harness_run_format(h, s, "%s a", names[i]), ":-1\r\n");
    }
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

SERVER_TEST(replies_are_the_same_in_resp3) {
    s->protocol = 3;
    harness_run(h, s, "ZADD a 1 m");
    harness_expect(h, s, "EXPIRE a 10", ":1\r\n");
    harness_expect(h, s, "TTL a", ":10\r\n");
    harness_expect(h, s, "TTL missing", ":-2\r\n");
    harness_expect(h, s, "PERSIST a", ":1\r\n");
}
