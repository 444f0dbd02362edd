/* Calendar days, against a naive count and the C library's calendar. */
#include "tests/support/test.h"

#include <stdbool.h>
#include <time.h>

#include "codec/date.h"
#include "tests/support/random.h"

static void assert_date(int64_t days, int64_t year, int month, int day) {
    struct date date = date_from_days(days);
    assert_true(date.year == year);
    assert_int_equal(date.month, month);
    assert_int_equal(date.day, day);
    assert_true(date_to_days(date) == days);
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
    assert_int_equal(date_days_in_month(date->year, date->month), length);
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
        int64_t days = (int64_t)random_below(&random, 2 * DATE_DAYS_MAX + 1) - DATE_DAYS_MAX;
        assert_true(date_to_days(date_from_days(days)) == days);
    }
    assert_true(date_to_days(date_from_days(DATE_DAYS_MAX)) == DATE_DAYS_MAX);
    assert_true(date_to_days(date_from_days(-DATE_DAYS_MAX)) == -DATE_DAYS_MAX);
}
