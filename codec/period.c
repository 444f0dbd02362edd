/* Units are counted from 1970 in local time, and periods from from_day:
 *
 *     time --local time--> unit --every--> period --first unit--> local time --zone--> start */
#include "codec/period.h"

#include "codec/timestamp.h"

#define MS_PER_S      INT64_C(1000)
#define S_PER_MINUTE  60
#define S_PER_HOUR    3600
#define S_PER_DAY     INT64_C(86400)
#define HOURS_PER_DAY 24

enum {
    DAYS_PER_WEEK = 7,
    MONTHS_PER_YEAR = 12,
    /* 1970-01-01 was a Thursday, three days after a Monday. */
    MONDAY_OFFSET = 3,
};

/* ---- units ---- */

/* The unit that contains a local time, counted from the beginning of its day. */
static int64_t period_unit_of(const struct period *period, int64_t local_s) {
    int64_t day = timestamp_floor_divide(local_s, S_PER_DAY);
    struct date date;
    switch (period->unit) {
    case PERIOD_NONE:
    case PERIOD_UNITS:
        break;
    case PERIOD_HOUR:
        return timestamp_floor_divide(local_s, S_PER_HOUR);
    case PERIOD_DAY:
        return day;
    case PERIOD_WEEK:
        return timestamp_floor_divide(day + MONDAY_OFFSET - period->weekday, DAYS_PER_WEEK);
    case PERIOD_MONTH:
        date = timestamp_date_of(day);
        return date.year * MONTHS_PER_YEAR + date.month - 1;
    case PERIOD_YEAR:
        return timestamp_date_of(day).year;
    }
    check_failed("a period has a unit", __FILE__, __LINE__);
}

/* The local time at which a unit begins. */
static int64_t period_unit_start(const struct period *period, int64_t unit) {
    struct date date = {.year = unit, .month = 1, .day = 1};
    switch (period->unit) {
    case PERIOD_HOUR:
        return unit * S_PER_HOUR;
    case PERIOD_DAY:
        return unit * S_PER_DAY;
    case PERIOD_WEEK:
        return (unit * DAYS_PER_WEEK - MONDAY_OFFSET + period->weekday) * S_PER_DAY;
    case PERIOD_MONTH:
        date.year = timestamp_floor_divide(unit, MONTHS_PER_YEAR);
        date.month = (int)(unit - date.year * MONTHS_PER_YEAR) + 1;
        break;
    case PERIOD_NONE:
    case PERIOD_UNITS:
    case PERIOD_YEAR:
        break;
    }
    return timestamp_days_of(date) * S_PER_DAY;
}

/* ---- periods, by number ---- */

static int64_t period_anchor_unit(const struct period *period) {
    return period_unit_of(period, period->from_day * S_PER_DAY);
}

/* The local time at which the period with this number begins. */
static int64_t period_local_start(const struct period *period, int64_t number) {
    int64_t unit = period_anchor_unit(period) + number * period->every;
    return period_unit_start(period, unit) + (int64_t)period->hour * S_PER_HOUR;
}

static int64_t period_start_of(const struct period *period, int64_t number) {
    int64_t local_s = period_local_start(period, number);
    if (local_s > TIMESTAMP_DAYS_MAX * S_PER_DAY) {
        return INT64_MAX;
    }
    int64_t time_s = period->zone != NULL ? zone_reach_s(period->zone, local_s)
                                          : local_s - period->zone_minutes * S_PER_MINUTE;
    return time_s * MS_PER_S;
}

/* The number of the period that contains this time: the last that has begun. The local clock shows
 * which, unless it was set back. */
static int64_t period_number_of(const struct period *period, int64_t time_ms) {
    CHECK(period_is_valid(period));
    time_ms = time_ms < -PERIOD_TIME_MAX ? -PERIOD_TIME_MAX : time_ms;
    time_ms = time_ms > PERIOD_TIME_MAX ? PERIOD_TIME_MAX : time_ms;
    int64_t time_s = timestamp_floor_divide(time_ms, MS_PER_S);
    int64_t offset_s = period->zone != NULL ? zone_offset_s(period->zone, time_s)
                                            : period->zone_minutes * S_PER_MINUTE;
    int64_t local_s = time_s + offset_s - (int64_t)period->hour * S_PER_HOUR;
    int64_t number = timestamp_floor_divide(
        period_unit_of(period, local_s) - period_anchor_unit(period), period->every);
    while (period->zone != NULL && period_start_of(period, number + 1) <= time_ms) {
        number++;
    }
    return number;
}

bool period_equal(const struct period *a, const struct period *b) {
    return a->unit == b->unit && a->every == b->every && a->weekday == b->weekday &&
           a->hour == b->hour && a->from_day == b->from_day && a->zone_minutes == b->zone_minutes &&
           a->zone == b->zone;
}

bool period_is_valid(const struct period *period) {
    return period->unit > PERIOD_NONE && period->unit < PERIOD_UNITS && period->every >= 1 &&
           period->every <= PERIOD_EVERY_MAX && period->weekday < DAYS_PER_WEEK &&
           (period->weekday == 0 || period->unit == PERIOD_WEEK) && period->hour < HOURS_PER_DAY &&
           (period->from_day == 0 || period->every > 1) &&
           period->zone_minutes >= PERIOD_ZONE_MIN && period->zone_minutes <= PERIOD_ZONE_MAX &&
           (period->zone == NULL || period->zone_minutes == 0);
}

int64_t period_start_after(const struct period *period, int64_t time_ms, uint32_t count) {
    CHECK(count <= PERIOD_COUNT_MAX + 1);
    return period_start_of(period, period_number_of(period, time_ms) + count);
}

int64_t period_start(const struct period *period, int64_t time_ms) {
    return period_start_after(period, time_ms, 0);
}

int64_t period_longest_ms(const struct period *period) {
    static const int hours[PERIOD_UNITS] = {
        [PERIOD_HOUR] = 1,
        [PERIOD_DAY] = HOURS_PER_DAY,
        [PERIOD_WEEK] = DAYS_PER_WEEK * HOURS_PER_DAY,
        [PERIOD_MONTH] = 31 * HOURS_PER_DAY,
        [PERIOD_YEAR] = 366 * HOURS_PER_DAY,
    };
    int64_t setback_s = period->zone != NULL ? zone_setback_s(period->zone) : 0;
    return ((int64_t)hours[period->unit] * S_PER_HOUR * period->every + setback_s) * MS_PER_S;
}

int64_t period_nearest_end(const struct period *period, int64_t end_ms, int64_t after_ms) {
    int64_t before_ms = period_start(period, end_ms);
    int64_t later_ms = period_start_after(period, end_ms, 1);
    if (before_ms > after_ms && end_ms - before_ms <= later_ms - end_ms) {
        return before_ms;
    }
    return later_ms > after_ms ? later_ms : period_start_after(period, after_ms, 1);
}

/* ---- text ---- */

size_t period_print_name(char *out, const struct period *period, int64_t time_ms) {
    int64_t local_s = period_local_start(period, period_number_of(period, time_ms));
    int64_t day = timestamp_floor_divide(local_s, S_PER_DAY);
    char *end = timestamp_print_date(out, timestamp_date_of(day));
    if (period->unit == PERIOD_HOUR) {
        *end++ = 'T';
        end = timestamp_print_number(end, (local_s - day * S_PER_DAY) / S_PER_HOUR, 2);
    }
    return (size_t)(end - out);
}

/* Two digits; -1: not digits. */
static int period_two_digits(const char *at) {
    bool are_digits = at[0] >= '0' && at[0] <= '9' && at[1] >= '0' && at[1] <= '9';
    return are_digits ? (at[0] - '0') * 10 + (at[1] - '0') : -1;
}

bool period_parse_zone(struct bytes text, int *zone_minutes) {
    if (bytes_is(text, "Z")) {
        *zone_minutes = 0;
        return true;
    }
    if (text.size != PERIOD_ZONE_TEXT_SIZE || (text.at[0] != '+' && text.at[0] != '-') ||
        text.at[3] != ':') {
        return false;
    }
    int hours = period_two_digits(text.at + 1);
    int minutes = period_two_digits(text.at + 4);
    if (hours < 0 || minutes < 0 || minutes > 59) {
        return false;
    }
    int zone = (text.at[0] == '-' ? -1 : 1) * (hours * 60 + minutes);
    if (zone < PERIOD_ZONE_MIN || zone > PERIOD_ZONE_MAX) {
        return false;
    }
    *zone_minutes = zone;
    return true;
}

size_t period_print_zone(char *out, const struct period *period) {
    if (period->zone != NULL) {
        struct bytes name = bytes_from_text(zone_name(period->zone));
        memcpy(out, name.at, name.size);
        return name.size;
    }
    int minutes = period->zone_minutes < 0 ? -period->zone_minutes : period->zone_minutes;
    *out++ = period->zone_minutes < 0 ? '-' : '+';
    out = timestamp_print_number(out, minutes / 60, 2);
    *out++ = ':';
    timestamp_print_number(out, minutes % 60, 2);
    return PERIOD_ZONE_TEXT_SIZE;
}

static const char *const unit_names[PERIOD_UNITS] = {
    [PERIOD_NONE] = "NONE",   [PERIOD_DAY] = "DAY",   [PERIOD_WEEK] = "WEEK",
    [PERIOD_MONTH] = "MONTH", [PERIOD_HOUR] = "HOUR", [PERIOD_YEAR] = "YEAR",
};

enum period_unit period_parse_unit(struct bytes text) {
    for (unsigned unit = PERIOD_DAY; unit < PERIOD_UNITS; unit++) {
        if (bytes_is(text, unit_names[unit])) {
            return (enum period_unit)unit;
        }
    }
    return PERIOD_NONE;
}

const char *period_unit_name(enum period_unit unit) {
    return unit_names[unit];
}

static const char *const weekday_names[DAYS_PER_WEEK] = {
    "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN",
};

bool period_parse_weekday(struct bytes text, uint8_t *weekday) {
    for (unsigned i = 0; i < DAYS_PER_WEEK; i++) {
        if (bytes_is(text, weekday_names[i])) {
            *weekday = (uint8_t)i;
            return true;
        }
    }
    return false;
}

const char *period_weekday_name(uint8_t weekday) {
    return weekday_names[weekday];
}

bool period_parse_date(struct bytes text, int32_t *day) {
    if (text.size != 10 || text.at[4] != '-' || text.at[7] != '-') {
        return false;
    }
    int century = period_two_digits(text.at);
    int year = period_two_digits(text.at + 2);
    struct date date = {.month = period_two_digits(text.at + 5),
                        .day = period_two_digits(text.at + 8)};
    if (century < 0 || year < 0 || century + year == 0 || date.month < 1 ||
        date.month > MONTHS_PER_YEAR) {
        return false;
    }
    date.year = century * 100 + year;
    if (date.day < 1 || date.day > timestamp_days_in_month(date.year, date.month)) {
        return false;
    }
    *day = (int32_t)timestamp_days_of(date);
    return true;
}

size_t period_print_date(char *out, int32_t day) {
    return (size_t)(timestamp_print_date(out, timestamp_date_of(day)) - out);
}
