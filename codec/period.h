/* Calendar periods for boards that reset: days, weeks and months, in a time zone with a fixed
 * offset from UTC in minutes (no daylight saving).
 *
 *       Monday 2026-11-16 00:00 +08:00                 Monday 2026-11-23 00:00 +08:00
 *     --[--------------- the week 2026-11-16 -----------[--------------------------
 *       start: its first millisecond                    end: the start of the next week
 *
 * A day begins at midnight, a week on Monday, a month on its first day. A period is named after the
 * date on which it begins. Times are unix milliseconds within PERIOD_TIME_MAX of 1970 (a quarter of
 * a million years); times beyond are clamped. */
#ifndef CODEC_PERIOD_H
#define CODEC_PERIOD_H

#include "codec/bytes.h"

enum period_unit { PERIOD_NONE, PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH };

enum {
    PERIOD_ZONE_MIN = -12 * 60, /* minutes ahead of UTC */
    PERIOD_ZONE_MAX = 14 * 60,
    PERIOD_ZONE_TEXT_SIZE = 6,  /* "+08:00" */
    PERIOD_DATE_TEXT_MAX = 16,  /* "2026-11-16", "-271821-04-20" */
    PERIOD_COUNT_MAX = 1000000, /* limit of the count of period_start_after */
};
#define PERIOD_TIME_MAX INT64_C(8640000000000000)

/* The first millisecond of the period that contains this time. */
int64_t period_start(enum period_unit unit, int zone_minutes, int64_t time_ms);
/* The same for the count-th period after that one; 1 is the next. */
int64_t period_start_after(enum period_unit unit, int zone_minutes, int64_t time_ms,
                           uint32_t count);
/* The longest possible length of such a period. */
int64_t period_longest_ms(enum period_unit unit);

/* Write the date on which the period begins, "2026-11-16", to out (PERIOD_DATE_TEXT_MAX), without a
 * terminator; returns its size. */
size_t period_print_date(char *out, enum period_unit unit, int zone_minutes, int64_t time_ms);

/* Parse "+08:00", "-03:30" or "Z", in the range PERIOD_ZONE_MIN .. PERIOD_ZONE_MAX. false: invalid,
 * and *zone_minutes is left unchanged. */
MUST_CHECK bool period_parse_zone(struct bytes text, int *zone_minutes);
/* Write "+08:00" to out, without a terminator. */
void period_print_zone(char *out, int zone_minutes);
/* Parse "DAY" etc., case-insensitive; PERIOD_NONE: not a unit. period_unit_name is the inverse. */
enum period_unit period_parse_unit(struct bytes text);
const char *period_unit_name(enum period_unit unit);

#endif
