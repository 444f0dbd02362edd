/* Timestamps and their text, and calendar days, against a naive count and the C library's calendar. */
#include "tests/support/test.h"

#include <time.h>

#include "codec/timestamp.h"
#include "tests/support/random.h"

#define FIRST_SECOND (-62135596800LL) /* 0001-01-01T00:00:00Z */
#define LAST_SECOND  253402300799LL   /* 9999-12-31T23:59:59Z */

static void assert_parses(const char *text, int64_t expected_us) {
    int64_t time_us = 77;
    if (!timestamp_parse(bytes_from_text(text), &time_us) || time_us != expected_us) {
        fail_msg("'%s' is %" PRId64 " instead of %" PRId64, text, time_us, expected_us);
    }
}

static void assert_prints(int64_t time_us, const char *expected) {
    char out[TIMESTAMP_TEXT_MAX];
    struct bytes printed = {.at = out, .size = timestamp_print(out, time_us)};
    assert_true(printed.size <= TIMESTAMP_TEXT_MAX);
    if (!bytes_equal(printed, bytes_from_text(expected))) {
        fail_msg("'%.*s' instead of '%s'", (int)printed.size, out, expected);
    }
}

TEST(a_time_is_iso_text_with_an_offset) {
    assert_parses("1970-01-01T00:00:00Z", 0);
    assert_parses("2020-01-01T00:00:00Z", 1577836800000000);
    assert_parses("2029-01-01T00:00:00+08:00", 1861891200000000);
    assert_parses("2023-03-05T23:59:59.000+08:00", 1678031999000000);
    assert_parses("2022-12-15T13:30:30.250Z", 1671111030250000);
    assert_parses("2022-12-15T13:30:30.2Z", 1671111030200000);
    assert_parses("2022-12-15T13:30:30.000001Z", 1671111030000001);
    assert_parses("1969-12-31T23:59:59.999999Z", -1);
    assert_parses("1970-01-01T00:00:00-00:30", 1800000000);
    assert_parses("1970-01-01T00:00:00+23:59", -86340000000);
    assert_parses("2000-02-29T00:00:00Z", 951782400000000);
    assert_parses("0001-01-01T00:00:00Z", FIRST_SECOND * 1000000);
    assert_parses("0001-01-01T00:01:00+00:01", FIRST_SECOND * 1000000);
    assert_parses("9999-12-31T23:59:59.999999Z", LAST_SECOND * 1000000 + 999999);
}

TEST(a_time_is_also_an_integer_of_unix_milliseconds) {
    assert_parses("0", 0);
    assert_parses("1571819021259", 1571819021259000);
    assert_parses("-1", -1000);
    assert_parses("9223372036854775", 9223372036854775000);
    assert_parses("-9223372036854775", -9223372036854775000);
}

TEST(text_that_is_no_time_is_refused_and_changes_nothing) {
    static const struct bytes refused[] = {
        {0},
        BYTES_INIT(""),
        BYTES_INIT("Z"),
        BYTES_INIT("+1"),
        BYTES_INIT("1.5"),
        BYTES_INIT("9223372036854776"),
        BYTES_INIT("-9223372036854776"),
        BYTES_INIT("9223372036854775807"),
        BYTES_INIT("99999999999999999999"),
        BYTES_INIT("2020-01-01"),
        BYTES_INIT("2020-01-01T00:00:00"),
        BYTES_INIT("2020-01-01T00:00Z"),
        BYTES_INIT("2020-01-01 00:00:00Z"),
        BYTES_INIT("2020-01-01t00:00:00Z"),
        BYTES_INIT("2020-01-01T00:00:00z"),
        BYTES_INIT("2020-01-01T00:00:00ZZ"),
        BYTES_INIT("2020-01-01T00:00:00Z\0"),
        BYTES_INIT("2020-01-01T00:00:00.Z"),
        BYTES_INIT("2020-01-01T00:00:00.1234567Z"),
        BYTES_INIT("2020-01-01T00:00:00,5Z"),
        BYTES_INIT("2020-01-01T00:00:00+8"),
        BYTES_INIT("2020-01-01T00:00:00+08"),
        BYTES_INIT("2020-01-01T00:00:00+0800"),
        BYTES_INIT("2020-01-01T00:00:00+24:00"),
        BYTES_INIT("2020-01-01T00:00:00+08:60"),
        BYTES_INIT("2020-01-01T24:00:00Z"),
        BYTES_INIT("2020-01-01T00:60:00Z"),
        BYTES_INIT("2016-12-31T23:59:60Z"),
        BYTES_INIT("2020-00-01T00:00:00Z"),
        BYTES_INIT("2020-13-01T00:00:00Z"),
        BYTES_INIT("2020-01-00T00:00:00Z"),
        BYTES_INIT("2020-01-32T00:00:00Z"),
        BYTES_INIT("2020-04-31T00:00:00Z"),
        BYTES_INIT("2021-02-29T00:00:00Z"),
        BYTES_INIT("1900-02-29T00:00:00Z"),
        BYTES_INIT("0000-01-01T00:00:00Z"),
        BYTES_INIT("10000-01-01T00:00:00Z"),
        BYTES_INIT("-2020-01-01T00:00:00Z"),
        BYTES_INIT("0001-01-01T00:00:00+00:01"),
        BYTES_INIT("9999-12-31T23:59:59-00:01"),
        BYTES_INIT("9999-12-31T23:59:00-00:01"),
    };
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        int64_t time_us = 77;
        if (timestamp_parse(refused[i], &time_us) || time_us != 77) {
            fail_msg("'%.*s' was taken", (int)refused[i].size, refused[i].at);
        }
    }
}

TEST(a_time_prints_with_as_much_fraction_as_it_has) {
    assert_prints(0, "1970-01-01T00:00:00Z");
    assert_prints(1671111030250000, "2022-12-15T13:30:30.250Z");
    assert_prints(1671111030000001, "2022-12-15T13:30:30.000001Z");
    assert_prints(1671111030100000, "2022-12-15T13:30:30.100Z");
    assert_prints(-1, "1969-12-31T23:59:59.999999Z");
    assert_prints(FIRST_SECOND * 1000000, "0001-01-01T00:00:00Z");
    assert_prints(LAST_SECOND * 1000000 + 999999, "9999-12-31T23:59:59.999999Z");
}

TEST(a_time_outside_years_1_to_9999_prints_as_unix_milliseconds) {
    assert_prints((LAST_SECOND + 1) * 1000000, "253402300800000");
    assert_prints(FIRST_SECOND * 1000000 - 1000, "-62135596800001");
    assert_prints(FIRST_SECOND * 1000000 - 1, "-62135596800001");
    assert_prints(INT64_MAX, "9223372036854775");
    assert_prints(INT64_MIN, "-9223372036854776");
}

static void assert_second_is_as_in_libc(int64_t second, int offset_minutes) {
    time_t libc_second = (time_t)second;
    struct tm civil;
    assert_non_null(gmtime_r(&libc_second, &civil));
    const char *expected =
        formatted("%04d-%02d-%02dT%02d:%02d:%02dZ", civil.tm_year + 1900, civil.tm_mon + 1,
                  civil.tm_mday, civil.tm_hour, civil.tm_min, civil.tm_sec);
    assert_prints(second * 1000000, expected);
    assert_parses(expected, second * 1000000);
    if (second - 86400 < FIRST_SECOND || second + 86400 > LAST_SECOND) {
        return;
    }
    libc_second += offset_minutes * 60;
    assert_non_null(gmtime_r(&libc_second, &civil));
    int away = offset_minutes < 0 ? -offset_minutes : offset_minutes;
    assert_parses(formatted("%04d-%02d-%02dT%02d:%02d:%02d%c%02d:%02d", civil.tm_year + 1900,
                            civil.tm_mon + 1, civil.tm_mday, civil.tm_hour, civil.tm_min,
                            civil.tm_sec, offset_minutes < 0 ? '-' : '+', away / 60, away % 60),
                  second * 1000000);
}

TEST(the_calendar_is_that_of_the_c_library) {
    /* First and last seconds of days, 29 days apart, so that all days of a month come up. */
    for (int64_t day = FIRST_SECOND / 86400; day < LAST_SECOND / 86400; day += 29) {
        assert_second_is_as_in_libc(day * 86400, 480);
        assert_second_is_as_in_libc(day * 86400 + 86399, -1);
    }
    struct random random = random_begin(__func__);
    for (int i = 0; i < 50000; i++) {
        uint64_t span = (uint64_t)(LAST_SECOND - FIRST_SECOND + 1);
        int64_t second = FIRST_SECOND + (int64_t)random_below(&random, span);
        assert_second_is_as_in_libc(second, (int)random_below(&random, 2879) - 1439);
    }
}

TEST(what_is_printed_parses_to_the_same) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 100000; i++) {
        int64_t time_us = (int64_t)random_next(&random) >> random_below(&random, 30);
        bool is_in_years =
            time_us >= FIRST_SECOND * 1000000 && time_us <= LAST_SECOND * 1000000 + 999999;
        if (!is_in_years) {
            time_us = time_us / 1000 * 1000;
        }
        char out[TIMESTAMP_TEXT_MAX];
        struct bytes text = {.at = out, .size = timestamp_print(out, time_us)};
        assert_true(text.size <= TIMESTAMP_TEXT_MAX);
        int64_t parsed_us;
        assert_true(timestamp_parse(text, &parsed_us));
        assert_int_equal(parsed_us, time_us);
    }
}

/* ---- calendar days ---- */

static void assert_date(int64_t days, int64_t year, int month, int day) {
    struct date date = timestamp_date_of(days);
    assert_true(date.year == year);
    assert_int_equal(date.month, month);
    assert_int_equal(date.day, day);
    assert_true(timestamp_days_of(date) == days);
}

TEST(known_days_have_their_dates) {
    assert_date(0, 1970, 1, 1);
    assert_date(-1, 1969, 12, 31);
    assert_date(11016, 2000, 2, 29);
    assert_date(20773, 2026, 11, 16);
    assert_date(-719162, 1, 1, 1);
    assert_date(-719163, 0, 12, 31);
    assert_date(-719528, 0, 1, 1);
    assert_date(-719529, -1, 12, 31);
    assert_date(2932896, 9999, 12, 31);
    assert_date(2932897, 10000, 1, 1);
}

/* The following day, using only the lengths of the months. */
static void next_day(struct date *date) {
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = date->year % 400 == 0 || (date->year % 4 == 0 && date->year % 100 != 0);
    int length = lengths[date->month - 1] + (date->month == 2 && is_leap);
    assert_int_equal(timestamp_days_in_month(date->year, date->month), length);
    if (++date->day > length) {
        date->day = 1;
        date->month++;
    }
    if (date->month > 12) {
        date->month = 1;
        date->year++;
    }
}

TEST(two_thousand_years_are_counted_day_by_day) {
    struct date date = {.year = 1000, .month = 1, .day = 1};
    for (int64_t days = -354285; date.year < 3000; days++) {
        assert_date(days, date.year, date.month, date.day);
        next_day(&date);
    }
}

TEST(dates_are_those_of_the_c_library) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 200000; i++) {
        int64_t days = (int64_t)random_below(&random, 200000000) - 100000000;
        time_t seconds = days * 86400;
        struct tm tm;
        assert_non_null(gmtime_r(&seconds, &tm));
        assert_date(days, (int64_t)tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    }
    for (int i = 0; i < 100000; i++) {
        int64_t days =
            (int64_t)random_below(&random, 2 * TIMESTAMP_DAYS_MAX + 1) - TIMESTAMP_DAYS_MAX;
        assert_true(timestamp_days_of(timestamp_date_of(days)) == days);
    }
    assert_true(timestamp_days_of(timestamp_date_of(TIMESTAMP_DAYS_MAX)) == TIMESTAMP_DAYS_MAX);
    assert_true(timestamp_days_of(timestamp_date_of(-TIMESTAMP_DAYS_MAX)) == -TIMESTAMP_DAYS_MAX);
}
