/* Days, weeks and months in any offset, against the C library's calendar and a naive search. */
#include "tests/support/test.h"

#include <time.h>

#include "codec/period.h"
#include "codec/timestamp.h"
#include "tests/support/random.h"

static const enum period_unit units[] = {PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH};

static struct period period_of(enum period_unit unit, int zone_minutes) {
    return (struct period){.unit = unit, .every = 1, .zone_minutes = (int16_t)zone_minutes};
}

static int64_t start_after(enum period_unit unit, int zone_minutes, int64_t time_ms,
                           uint32_t count) {
    struct period period = period_of(unit, zone_minutes);
    return period_start_after(&period, time_ms, count);
}

static int64_t start(enum period_unit unit, int zone_minutes, int64_t time_ms) {
    return start_after(unit, zone_minutes, time_ms, 0);
}

static int64_t longest_ms(enum period_unit unit) {
    struct period period = period_of(unit, 0);
    return period_longest_ms(&period);
}

static size_t print_name(char *out, enum period_unit unit, int zone_minutes, int64_t time_ms) {
    struct period period = period_of(unit, zone_minutes);
    return period_print_name(out, &period, time_ms);
}

static int64_t ms_of(const char *text) {
    int64_t time_us = 0;
    assert_true(timestamp_parse(bytes_from_text(text), &time_us));
    return time_us / 1000 - (time_us % 1000 < 0);
}

static void assert_schedule(struct period period, const char *time, const char *first,
                            const char *end, const char *name) {
    char text[PERIOD_NAME_TEXT_MAX];
    int64_t time_ms = ms_of(time);
    assert_true(period_start(&period, time_ms) == ms_of(first));
    assert_true(period_start_after(&period, time_ms, 1) == ms_of(end));
    assert_true(ms_of(end) - ms_of(first) <= period_longest_ms(&period));
    struct bytes printed = {text, period_print_name(text, &period, time_ms)};
    assert_true(bytes_equal(printed, bytes_from_text(name)));
}

static void assert_period(enum period_unit unit, int zone_minutes, const char *time,
                          const char *first, const char *end, const char *date) {
    assert_schedule(period_of(unit, zone_minutes), time, first, end, date);
}

TEST(a_day_begins_at_midnight) {
    assert_period(PERIOD_DAY, 0, "2026-11-16T12:00:00Z", "2026-11-16T00:00:00Z",
                  "2026-11-17T00:00:00Z", "2026-11-16");
    assert_period(PERIOD_DAY, 0, "2026-12-31T23:59:59.999Z", "2026-12-31T00:00:00Z",
                  "2027-01-01T00:00:00Z", "2026-12-31");
    assert_period(PERIOD_DAY, 480, "2026-11-16T12:00:00+08:00", "2026-11-16T00:00:00+08:00",
                  "2026-11-17T00:00:00+08:00", "2026-11-16");
    assert_period(PERIOD_DAY, -210, "2026-11-16T03:29:59.999Z", "2026-11-15T00:00:00-03:30",
                  "2026-11-16T00:00:00-03:30", "2026-11-15");
    assert_period(PERIOD_DAY, -210, "2026-11-16T03:30:00Z", "2026-11-16T00:00:00-03:30",
                  "2026-11-17T00:00:00-03:30", "2026-11-16");
    assert_period(PERIOD_DAY, 840, "2026-11-15T10:00:00Z", "2026-11-15T10:00:00Z",
                  "2026-11-16T10:00:00Z", "2026-11-16");
    assert_period(PERIOD_DAY, 0, "1969-12-31T23:59:59.999Z", "1969-12-31T00:00:00Z",
                  "1970-01-01T00:00:00Z", "1969-12-31");
}

TEST(a_week_begins_on_monday) {
    assert_period(PERIOD_WEEK, 480, "2026-11-16T00:00:00+08:00", "2026-11-16T00:00:00+08:00",
                  "2026-11-23T00:00:00+08:00", "2026-11-16");
    assert_period(PERIOD_WEEK, 480, "2026-11-22T23:59:59.999+08:00", "2026-11-16T00:00:00+08:00",
                  "2026-11-23T00:00:00+08:00", "2026-11-16");
    assert_period(PERIOD_WEEK, 0, "2027-01-01T12:00:00Z", "2026-12-28T00:00:00Z",
                  "2027-01-04T00:00:00Z", "2026-12-28");
    assert_period(PERIOD_WEEK, 0, "2024-02-29T12:00:00Z", "2024-02-26T00:00:00Z",
                  "2024-03-04T00:00:00Z", "2024-02-26");
    assert_period(PERIOD_WEEK, 0, "1970-01-01T00:00:00Z", "1969-12-29T00:00:00Z",
                  "1970-01-05T00:00:00Z", "1969-12-29");
}

TEST(a_month_begins_on_its_first_day_however_long_it_is) {
    assert_period(PERIOD_MONTH, 0, "2026-02-28T23:59:59.999Z", "2026-02-01T00:00:00Z",
                  "2026-03-01T00:00:00Z", "2026-02-01");
    assert_period(PERIOD_MONTH, 0, "2024-02-29T23:59:59.999Z", "2024-02-01T00:00:00Z",
                  "2024-03-01T00:00:00Z", "2024-02-01");
    assert_period(PERIOD_MONTH, 0, "2100-02-28T23:59:59.999Z", "2100-02-01T00:00:00Z",
                  "2100-03-01T00:00:00Z", "2100-02-01");
    assert_period(PERIOD_MONTH, 0, "2000-02-29T00:00:00Z", "2000-02-01T00:00:00Z",
                  "2000-03-01T00:00:00Z", "2000-02-01");
    assert_period(PERIOD_MONTH, -720, "2027-01-01T11:59:59.999Z", "2026-12-01T00:00:00-12:00",
                  "2027-01-01T00:00:00-12:00", "2026-12-01");
    assert_period(PERIOD_MONTH, 840, "2026-12-31T10:00:00Z", "2026-12-31T10:00:00Z",
                  "2027-01-31T10:00:00Z", "2027-01-01");
    assert_period(PERIOD_MONTH, 0, "2026-04-30T23:59:59.999Z", "2026-04-01T00:00:00Z",
                  "2026-05-01T00:00:00Z", "2026-04-01");
}

TEST(periods_are_counted_from_any_time_in_one) {
    int64_t time_ms = ms_of("2026-11-19T12:00:00Z");
    assert_true(start_after(PERIOD_DAY, 0, time_ms, 45) == ms_of("2027-01-03T00:00:00Z"));
    assert_true(start_after(PERIOD_WEEK, 0, time_ms, 52) == ms_of("2027-11-15T00:00:00Z"));
    assert_true(start_after(PERIOD_MONTH, 0, time_ms, 1) == ms_of("2026-12-01T00:00:00Z"));
    assert_true(start_after(PERIOD_MONTH, 0, time_ms, 2) == ms_of("2027-01-01T00:00:00Z"));
    assert_true(start_after(PERIOD_MONTH, 0, time_ms, 1202) == ms_of("2127-01-01T00:00:00Z"));
}

/* ---- against the C library ---- */

static int64_t library_start(enum period_unit unit, int zone_minutes, int64_t time_ms) {
    int64_t local_ms = time_ms + zone_minutes * INT64_C(60000);
    time_t seconds = local_ms / 1000 - (local_ms % 1000 < 0);
    struct tm tm;
    assert_non_null(gmtime_r(&seconds, &tm));
    tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    if (unit == PERIOD_WEEK) {
        tm.tm_mday -= (tm.tm_wday + 6) % 7;
    } else if (unit == PERIOD_MONTH) {
        tm.tm_mday = 1;
    }
    return timegm(&tm) * INT64_C(1000) - zone_minutes * INT64_C(60000);
}

static void check_time(enum period_unit unit, int zone_minutes, int64_t time_ms) {
    int64_t start_ms = start(unit, zone_minutes, time_ms);
    int64_t end_ms = start_after(unit, zone_minutes, time_ms, 1);
    assert_true(start_ms == library_start(unit, zone_minutes, time_ms));
    assert_true(start_ms <= time_ms);
    assert_true(time_ms < end_ms);
    assert_true(end_ms - start_ms <= longest_ms(unit));
    /* To the millisecond, on both sides of both ends. */
    assert_true(start(unit, zone_minutes, start_ms) == start_ms);
    assert_true(start(unit, zone_minutes, end_ms - 1) == start_ms);
    assert_true(start(unit, zone_minutes, end_ms) == end_ms);
    assert_true(start_after(unit, zone_minutes, start_ms - 1, 1) == start_ms);
    char text[PERIOD_NAME_TEXT_MAX];
    size_t size = print_name(text, unit, zone_minutes, time_ms);
    time_t seconds = start_ms / 1000 + zone_minutes * 60;
    struct tm tm;
    assert_non_null(gmtime_r(&seconds, &tm));
    int64_t year = (int64_t)tm.tm_year + 1900;
    const char *expected =
        formatted("%s%04lld-%02d-%02d", year < 0 ? "-" : "", (long long)(year < 0 ? -year : year),
                  tm.tm_mon + 1, tm.tm_mday);
    assert_true(size <= PERIOD_NAME_TEXT_MAX);
    assert_int_equal(strlen(expected), size);
    assert_memory_equal(text, expected, size);
}

static int pick_zone(struct random *random) {
    return PERIOD_ZONE_MIN + (int)random_below(random, PERIOD_ZONE_MAX - PERIOD_ZONE_MIN + 1);
}

TEST(periods_are_those_of_the_c_library_over_centuries) {
    struct random random = random_begin(__func__);
    int64_t first_ms = ms_of("1600-01-01T00:00:00Z");
    int64_t span_ms = ms_of("2600-01-01T00:00:00Z") - first_ms;
    for (int i = 0; i < 100000; i++) {
        int64_t time_ms = first_ms + (int64_t)random_below(&random, (uint64_t)span_ms);
        check_time(units[i % 3], pick_zone(&random), time_ms);
    }
    /* The ends of the periods are looked at, too: they stay within the limits. */
    const int64_t latest_ms = PERIOD_TIME_MAX - longest_ms(PERIOD_MONTH);
    for (int i = 0; i < 30000; i++) {
        int64_t time_ms = (int64_t)random_below(&random, 2 * (uint64_t)latest_ms) - latest_ms;
        check_time(units[i % 3], pick_zone(&random), time_ms);
    }
}

TEST(every_day_of_eight_centuries_in_the_outermost_zones) {
    static const int zones[] = {PERIOD_ZONE_MIN, 0, 345, PERIOD_ZONE_MAX};
    int64_t time_ms = ms_of("1700-01-01T11:22:33.444Z");
    int64_t end_ms = ms_of("2500-01-01T00:00:00Z");
    for (unsigned day = 0; time_ms < end_ms; day++) {
        for (unsigned i = 0; i < 4; i++) {
            check_time(units[(i + day) % 3], zones[i], time_ms);
        }
        time_ms += 86400000;
    }
}

/* ---- against stepping one by one ---- */

TEST(the_count_th_period_is_reached_one_by_one) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 60; i++) {
        enum period_unit unit = units[i % 3];
        int zone = pick_zone(&random);
        int64_t time_ms = (int64_t)random_below(&random, INT64_C(4000000000000));
        int64_t at_ms = start(unit, zone, time_ms);
        for (uint32_t count = 0; count < 500; count++) {
            assert_true(start_after(unit, zone, time_ms, count) == at_ms);
            at_ms = start_after(unit, zone, at_ms, 1);
        }
    }
}

TEST(times_past_all_dates_are_the_last_ones) {
    for (int i = 0; i < 3; i++) {
        int64_t last_ms = start(units[i], PERIOD_ZONE_MAX, PERIOD_TIME_MAX);
        int64_t first_ms = start(units[i], PERIOD_ZONE_MIN, -PERIOD_TIME_MAX);
        assert_true(start(units[i], PERIOD_ZONE_MAX, INT64_MAX) == last_ms);
        assert_true(start(units[i], PERIOD_ZONE_MIN, INT64_MIN) == first_ms);
        /* They also fit as microseconds. */
        assert_true(last_ms < INT64_MAX / 1000);
        assert_true(first_ms > INT64_MIN / 1000);
        assert_true(start_after(units[i], 0, INT64_MAX, PERIOD_COUNT_MAX + 1) > last_ms);
    }
}

/* ---- text ---- */

TEST(zones_are_hours_and_minutes) {
    static const struct {
        const char *text;
        int minutes;
    } samples[] = {{"+00:00", 0},   {"-00:00", 0},   {"Z", 0},         {"z", 0},
                   {"+08:00", 480}, {"+14:00", 840}, {"-12:00", -720}, {"-03:30", -210},
                   {"+05:45", 345}, {"+13:59", 839}, {"-11:59", -719}};
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        int minutes = 7;
        assert_true(period_parse_zone(bytes_from_text(samples[i].text), &minutes));
        assert_int_equal(minutes, samples[i].minutes);
    }
    static const char *const wrong[] = {"",        "8",      "+8",     "+8:00",  "08:00",
                                        "+14:01",  "-12:01", "+08:60", "+0800",  "+08:0",
                                        "+08:000", "UTC",    "+ 8:00", "+08;00", "+80:00"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        int minutes = 7;
        assert_false(period_parse_zone(bytes_from_text(wrong[i]), &minutes));
        assert_int_equal(minutes, 7);
    }
    for (int zone = PERIOD_ZONE_MIN; zone <= PERIOD_ZONE_MAX; zone++) {
        char text[PERIOD_ZONE_TEXT_SIZE];
        int minutes = 7;
        struct period period = period_of(PERIOD_DAY, zone);
        assert_int_equal(period_print_zone(text, &period), sizeof text);
        assert_true(period_parse_zone((struct bytes){text, sizeof text}, &minutes));
        assert_int_equal(minutes, zone);
    }
}

TEST(units_have_names) {
    assert_int_equal(period_parse_unit(BYTES("week")), PERIOD_WEEK);
    assert_int_equal(period_parse_unit(BYTES("NONE")), PERIOD_NONE);
    assert_int_equal(period_parse_unit(BYTES("DECADE")), PERIOD_NONE);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(period_parse_unit(bytes_from_text(period_unit_name(units[i]))), units[i]);
    }
}

/* ---- hours, years, several at a time, other beginnings ---- */

static int32_t day_of(const char *text) {
    int32_t day = 0;
    assert_true(period_parse_date(bytes_from_text(text), &day));
    return day;
}

TEST(an_hour_is_named_after_its_date_and_hour) {
    struct period hour = period_of(PERIOD_HOUR, 0);
    assert_schedule(hour, "2026-11-16T23:59:59.999Z", "2026-11-16T23:00:00Z",
                    "2026-11-17T00:00:00Z", "2026-11-16T23");
    struct period quarter = {.unit = PERIOD_HOUR, .every = 6, .hour = 5, .zone_minutes = 60};
    assert_schedule(quarter, "2026-11-16T04:59:59.999+01:00", "2026-11-15T23:00:00+01:00",
                    "2026-11-16T05:00:00+01:00", "2026-11-15T23");
    assert_schedule(quarter, "2026-11-16T05:00:00+01:00", "2026-11-16T05:00:00+01:00",
                    "2026-11-16T11:00:00+01:00", "2026-11-16T05");
}

TEST(a_year_begins_in_january) {
    assert_schedule(period_of(PERIOD_YEAR, 480), "2026-11-16T00:00:00Z",
                    "2026-01-01T00:00:00+08:00", "2027-01-01T00:00:00+08:00", "2026-01-01");
    struct period four = {.unit = PERIOD_YEAR, .every = 4, .from_day = day_of("2024-07-26")};
    assert_schedule(four, "2027-12-31T23:59:59.999Z", "2024-01-01T00:00:00Z",
                    "2028-01-01T00:00:00Z", "2024-01-01");
    assert_schedule(four, "2023-12-31T00:00:00Z", "2020-01-01T00:00:00Z", "2024-01-01T00:00:00Z",
                    "2020-01-01");
}

TEST(a_week_begins_on_any_weekday_and_a_day_at_any_hour) {
    struct period friday = {
        .unit = PERIOD_WEEK, .every = 1, .weekday = 4, .hour = 18, .zone_minutes = -300};
    assert_schedule(friday, "2026-11-20T17:59:59.999-05:00", "2026-11-13T18:00:00-05:00",
                    "2026-11-20T18:00:00-05:00", "2026-11-13");
    assert_schedule(friday, "2026-11-20T18:00:00-05:00", "2026-11-20T18:00:00-05:00",
                    "2026-11-27T18:00:00-05:00", "2026-11-20");
    struct period morning = {.unit = PERIOD_DAY, .every = 1, .hour = 5};
    assert_schedule(morning, "2026-11-16T04:59:59.999Z", "2026-11-15T05:00:00Z",
                    "2026-11-16T05:00:00Z", "2026-11-15");
}

TEST(several_are_counted_from_a_date) {
    struct period weeks = {.unit = PERIOD_WEEK, .every = 2, .from_day = day_of("2026-11-18")};
    assert_schedule(weeks, "2026-11-29T00:00:00Z", "2026-11-16T00:00:00Z", "2026-11-30T00:00:00Z",
                    "2026-11-16");
    weeks.from_day += 7;
    assert_schedule(weeks, "2026-11-29T00:00:00Z", "2026-11-23T00:00:00Z", "2026-12-07T00:00:00Z",
                    "2026-11-23");
    struct period quarter = {.unit = PERIOD_MONTH, .every = 3};
    assert_schedule(quarter, "2026-11-29T00:00:00Z", "2026-10-01T00:00:00Z", "2027-01-01T00:00:00Z",
                    "2026-10-01");
    struct period days = {.unit = PERIOD_DAY, .every = 10, .from_day = day_of("2026-11-01")};
    assert_schedule(days, "2026-10-31T00:00:00Z", "2026-10-22T00:00:00Z", "2026-11-01T00:00:00Z",
                    "2026-10-22");
    assert_true(period_start_after(&days, ms_of("2026-11-05T00:00:00Z"), 3) ==
                ms_of("2026-12-01T00:00:00Z"));
}

TEST(a_count_beyond_the_calendar_is_never) {
    struct period period = {.unit = PERIOD_YEAR, .every = PERIOD_EVERY_MAX};
    assert_true(period_start_after(&period, PERIOD_TIME_MAX, PERIOD_COUNT_MAX) == INT64_MAX);
    assert_true(period_start_after(&period, 0, 1) == ms_of("2970-01-01T00:00:00Z"));
}

TEST(periods_that_make_no_sense_are_not_valid) {
    struct period good = {.unit = PERIOD_WEEK, .every = 2, .weekday = 6, .hour = 23, .from_day = 9};
    assert_true(period_is_valid(&good));
    struct period bad[9];
    for (size_t i = 0; i < 9; i++) {
        bad[i] = good;
    }
    bad[0].unit = PERIOD_NONE;
    bad[1].unit = PERIOD_UNITS;
    bad[2].every = 0;
    bad[3].every = PERIOD_EVERY_MAX + 1;
    bad[4].weekday = 7;
    bad[5].unit = PERIOD_DAY;
    bad[6].hour = 24;
    bad[7].every = 1;
    bad[8].zone_minutes = PERIOD_ZONE_MAX + 1;
    for (size_t i = 0; i < 9; i++) {
        assert_false(period_is_valid(&bad[i]));
        assert_false(period_equal(&bad[i], &good));
    }
}

TEST(dates_and_weekdays_have_one_text) {
    static const char *const wrong[] = {"",           "2026-11-1",  "2026-11-31", "2026-13-01",
                                        "2026-00-01", "2026-02-29", "0000-01-01", "2026/11/01",
                                        "2026-11-00", "2O26-11-01", "2026-11-011"};
    int32_t day = 7;
    uint8_t weekday = 9;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(period_parse_date(bytes_from_text(wrong[i]), &day));
        assert_int_equal(day, 7);
    }
    assert_int_equal(day_of("1970-01-01"), 0);
    for (day = -700000; day < 2000000; day += 997) {
        char text[PERIOD_DATE_TEXT_MAX + 1];
        text[period_print_date(text, day)] = '\0';
        assert_int_equal(day_of(text), day);
    }
    assert_false(period_parse_weekday(BYTES("MONDAY"), &weekday));
    assert_true(period_parse_weekday(BYTES("sun"), &weekday));
    assert_int_equal(weekday, 6);
    assert_string_equal(period_weekday_name(0), "MON");
}
