/* Periods of the calendar, for boards that begin anew: days, weeks and months, as a clock shows
 * them that is a fixed number of minutes ahead of UTC (no summer time).
 *
 *       Monday 2026-11-16 00:00 +08:00                 Monday 2026-11-23 00:00 +08:00
 *     --[--------------- the week 2026-11-16 -----------[--------------------------
 *       start, the first millisecond of it              end, the next one's start
 *
 * A day begins at midnight, a week on Monday, a month on its first day. A period is called by the
 * date on which it begins. Times are unix milliseconds within PERIOD_TIME_MAX of 1970, a quarter of
 * a million years; any other is taken for the nearest of them. */
#ifndef CODEC_PERIOD_H
#define CODEC_PERIOD_H

#include "codec/bytes.h"

enum period_unit { PERIOD_NONE, PERIOD_DAY, PERIOD_WEEK, PERIOD_MONTH };

enum {
    PERIOD_ZONE_MIN = -12 * 60, /* minutes ahead of UTC */
    PERIOD_ZONE_MAX = 14 * 60,
    PERIOD_ZONE_TEXT_SIZE = 6,  /* "+08:00" */
    PERIOD_DATE_TEXT_MAX = 16,  /* "2026-11-16", "-271821-04-20" */
    PERIOD_COUNT_MAX = 1000000, /* periods that period_start_after counts */
};
#define PERIOD_TIME_MAX INT64_C(8640000000000000)

/* The first millisecond of the period that holds this time. */
int64_t period_start(enum period_unit unit, int zone_minutes, int64_t time_ms);
/* The same of the count-th period after that one; 1 is the next. */
int64_t period_start_after(enum period_unit unit, int zone_minutes, int64_t time_ms,
                           uint32_t count);
/* The longest that a period can be. */
int64_t period_longest_ms(enum period_unit unit);

/* The date on which the period begins, "2026-11-16", into out (PERIOD_DATE_TEXT_MAX); returns its
 * size, no terminator. */
size_t period_print_date(char *out, enum period_unit unit, int zone_minutes, int64_t time_ms);

/* "+08:00", "-03:30", "Z": PERIOD_ZONE_MIN .. PERIOD_ZONE_MAX. false: it is none of them, and
 * *zone_minutes is left unchanged. */
MUST_CHECK bool period_parse_zone(struct bytes text, int *zone_minutes);
/* "+08:00" into out; no terminator. */
void period_print_zone(char *out, int zone_minutes);
/* "DAY", any case; PERIOD_NONE: it is none. And back. */
enum period_unit period_parse_unit(struct bytes text);
const char *period_unit_name(enum period_unit unit);

#endif
