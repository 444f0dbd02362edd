/* Calendar periods for boards that reset: hours, days, weeks, months and years, or several of them
 * at a time, in a time zone with a fixed offset from UTC or with summer time.
 *
 *       Monday 2026-11-16 00:00 +08:00                 Monday 2026-11-23 00:00 +08:00
 *     --[--------------- the week 2026-11-16 -----------[--------------------------
 *       start: its first millisecond                    end: the start of the next week
 *
 * A period begins when the local clock first shows its beginning or a later time: a wall-clock time
 * that a change of summer time leaves out is at the end of the gap, one that exists twice is the
 * first of the two. So an hour that exists twice is one period of two hours. A period that is left
 * out as a whole has no length, and never contains a time.
 *
 * A period is named after the date on which it begins, and hours after their hour too. Times are
 * unix milliseconds within PERIOD_TIME_MAX of 1970 (a quarter of a million years); times beyond are
 * clamped. */
#ifndef CODEC_PERIOD_H
#define CODEC_PERIOD_H

#include "codec/bytes.h"
#include "codec/zone.h"

/* Files hold these numbers. */
enum period_unit {
    PERIOD_NONE,
    PERIOD_DAY,
    PERIOD_WEEK,
    PERIOD_MONTH,
    PERIOD_HOUR,
    PERIOD_YEAR,
    PERIOD_UNITS
};

enum {
    PERIOD_ZONE_MIN = -12 * 60, /* minutes ahead of UTC */
    PERIOD_ZONE_MAX = 14 * 60,
    PERIOD_ZONE_TEXT_SIZE = 6, /* "+08:00" */
    PERIOD_ZONE_TEXT_MAX = ZONE_NAME_MAX,
    PERIOD_NAME_TEXT_MAX = 16, /* "2026-11-16", "-271821-04-20T05" */
    PERIOD_DATE_TEXT_MAX = 24,
    PERIOD_COUNT_MAX = 1000000, /* limit of the count of period_start_after */
    PERIOD_EVERY_MAX = 1000,
};
#define PERIOD_TIME_MAX INT64_C(8640000000000000)

/* Zeroed: no periods. */
struct period {
    enum period_unit unit;
    uint16_t every;       /* so many units, 1 .. PERIOD_EVERY_MAX */
    uint8_t weekday;      /* of PERIOD_WEEK: the first day, 0 is Monday */
    uint8_t hour;         /* of the day on which it begins, 0 .. 23 */
    int32_t from_day;     /* a period begins with the unit that contains this day since 1970; 0 if
                       * every is 1 */
    int32_t zone_minutes; /* ahead of UTC, if there is no zone */
    const struct zone *zone; /* or NULL; lives as long as the process */
};

bool period_equal(const struct period *a, const struct period *b);
/* Are all fields in their ranges? */
bool period_is_valid(const struct period *period);

/* The first millisecond of the period that contains this time. */
int64_t period_start(const struct period *period, int64_t time_ms);
/* The same for the count-th period after that one; 1 is the next. A time too far away for the
 * calendar is INT64_MAX. */
int64_t period_start_after(const struct period *period, int64_t time_ms, uint32_t count);
/* The longest possible length of such a period. */
int64_t period_longest_ms(const struct period *period);
/* Where a period that ended at this time ends, after an update of tzdata: the nearest end that is
 * after after_ms. */
int64_t period_nearest_end(const struct period *period, int64_t end_ms, int64_t after_ms);

/* Write the name of the period that contains this time, "2026-11-16" or "2026-11-16T05", to out
 * (PERIOD_NAME_TEXT_MAX), without a terminator; returns its size. */
size_t period_print_name(char *out, const struct period *period, int64_t time_ms);

/* Parse "+08:00", "-03:30" or "Z", in the range PERIOD_ZONE_MIN .. PERIOD_ZONE_MAX. false: invalid,
 * and *zone_minutes is left unchanged. */
MUST_CHECK bool period_parse_zone(struct bytes text, int *zone_minutes);
/* Write "+08:00" or the zone's name to out (PERIOD_ZONE_TEXT_MAX), without a terminator; returns
 * its size. */
size_t period_print_zone(char *out, const struct period *period);
/* Parse "DAY" etc., case-insensitive; PERIOD_NONE: not a unit. period_unit_name is the inverse. */
enum period_unit period_parse_unit(struct bytes text);
const char *period_unit_name(enum period_unit unit);
/* Parse "MON" .. "SUN", likewise, or a date of the years 1 to 9999. false: invalid. */
MUST_CHECK bool period_parse_weekday(struct bytes text, uint8_t *weekday);
const char *period_weekday_name(uint8_t weekday);
MUST_CHECK bool period_parse_date(struct bytes text, int32_t *day);
/* Write "2026-11-16" to out (PERIOD_DATE_TEXT_MAX); returns its size. */
size_t period_print_date(char *out, int32_t day);

#endif
