/* Local midnights are counted as days since 1970; every week and month begins at one of them. */
#include "codec/period.h"

#include "codec/date.h"

#define MS_PER_MINUTE INT64_C(60000)
#define MS_PER_DAY    (24 * 60 * MS_PER_MINUTE)

enum {
    DAYS_PER_WEEK = 7,
    MONTHS_PER_YEAR = 12,
    /* 1970-01-01 was a Thursday, three days after a Monday. */
    MONDAY_OFFSET = 3,
};

static int64_t local_day(int zone_minutes, int64_t time_ms) {
    CHECK(zone_minutes >= PERIOD_ZONE_MIN);
    CHECK(zone_minutes <= PERIOD_ZONE_MAX);
    time_ms = time_ms < -PERIOD_TIME_MAX ? -PERIOD_TIME_MAX : time_ms;
    time_ms = time_ms > PERIOD_TIME_MAX ? PERIOD_TIME_MAX : time_ms;
    return date_floor_divide(time_ms + zone_minutes * MS_PER_MINUTE, MS_PER_DAY);
}

static int64_t first_of_month(int64_t day, uint32_t months_later) {
    struct date date = date_from_days(day);
    int64_t month = date.month - 1 + (int64_t)months_later;
    return date_to_days((struct date){
        .year = date.year + month / MONTHS_PER_YEAR,
        .month = (int)(month % MONTHS_PER_YEAR) + 1,
        .day = 1,
    });
}

/* The first day of the period that is count periods after the one containing this day. */
static int64_t first_day(enum period_unit unit, int64_t day, uint32_t count) {
    switch (unit) {
    case PERIOD_NONE:
        break;
    case PERIOD_DAY:
        return day + count;
    case PERIOD_WEEK: {
        int64_t week = date_floor_divide(day + MONDAY_OFFSET, DAYS_PER_WEEK);
        return (week + count) * DAYS_PER_WEEK - MONDAY_OFFSET;
    }
    case PERIOD_MONTH:
        return first_of_month(day, count);
    }
    check_failed("a period is a day, a week or a month", __FILE__, __LINE__);
}

int64_t period_start_after(enum period_unit unit, int zone_minutes, int64_t time_ms,
                           uint32_t count) {
    CHECK(count <= PERIOD_COUNT_MAX + 1);
    int64_t day = first_day(unit, local_day(zone_minutes, time_ms), count);
    return day * MS_PER_DAY - zone_minutes * MS_PER_MINUTE;
}

int64_t period_start(enum period_unit unit, int zone_minutes, int64_t time_ms) {
    return period_start_after(unit, zone_minutes, time_ms, 0);
}

int64_t period_longest_ms(enum period_unit unit) {
    int days = unit == PERIOD_DAY ? 1 : unit == PERIOD_WEEK ? DAYS_PER_WEEK : 31;
    return days * MS_PER_DAY;
}

/* ---- text ---- */

size_t period_print_date(char *out, enum period_unit unit, int zone_minutes, int64_t time_ms) {
    struct date date = date_from_days(first_day(unit, local_day(zone_minutes, time_ms), 0));
    return (size_t)(date_print(out, date) - out);
}

/* Two digits; -1: not digits. */
static int two_digits(const char *at) {
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
    int hours = two_digits(text.at + 1);
    int minutes = two_digits(text.at + 4);
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

void period_print_zone(char *out, int zone_minutes) {
    int minutes = zone_minutes < 0 ? -zone_minutes : zone_minutes;
    *out++ = zone_minutes < 0 ? '-' : '+';
    out = date_print_number(out, minutes / 60, 2);
    *out++ = ':';
    date_print_number(out, minutes % 60, 2);
}

static const char *const unit_names[] = {
    [PERIOD_NONE] = "NONE",
    [PERIOD_DAY] = "DAY",
    [PERIOD_WEEK] = "WEEK",
    [PERIOD_MONTH] = "MONTH",
};

enum period_unit period_parse_unit(struct bytes text) {
    for (unsigned unit = PERIOD_DAY; unit <= PERIOD_MONTH; unit++) {
        if (bytes_is(text, unit_names[unit])) {
            return (enum period_unit)unit;
        }
    }
    return PERIOD_NONE;
}

const char *period_unit_name(enum period_unit unit) {
    return unit_names[unit];
}
