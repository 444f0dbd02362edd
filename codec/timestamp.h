/* Timestamps in microseconds since 1970-01-01T00:00:00Z, and their text form.
 *
 * Input: ISO 8601 with an offset ("2029-01-01T00:00:00+08:00", "2022-12-15T13:30:30.250Z", fraction
 * up to 6 digits), or an integer in unix milliseconds. Years 1 to 9999, proleptic Gregorian. Leap
 * seconds are refused, because unix time has none. */
#ifndef CODEC_TIMESTAMP_H
#define CODEC_TIMESTAMP_H

#include "codec/bytes.h"

/* "2022-12-15T13:30:30.250000Z" */
enum { TIMESTAMP_TEXT_MAX = 32 };

/* false: text has neither form or is out of range; *time_us is then left unchanged. */
MUST_CHECK bool timestamp_parse(struct bytes text, int64_t *time_us);

/* Write ISO 8601 in UTC, with a fraction (3 or 6 digits) only if it is not zero. A time outside
 * years 1 to 9999 is written as unix milliseconds, which timestamp_parse accepts. Returns the size,
 * without a terminator. */
size_t timestamp_print(char *out, int64_t time_us);

/* ---- calendar days in the proleptic Gregorian calendar; 1970-01-01, a Thursday, is day 0 ---- */

struct date {
    int64_t year;
    int month; /* 1 .. 12 */
    int day;   /* 1 .. 31 */
};

/* Limit of the days that both functions accept: about 29 million years either side of 1970. */
#define TIMESTAMP_DAYS_MAX INT64_C(10000000000)

/* Rounds down, where C rounds towards 0. */
static inline int64_t timestamp_floor_divide(int64_t number, int64_t divisor) {
    return number / divisor - (number % divisor < 0 ? 1 : 0);
}

int64_t timestamp_days_of(struct date date);
struct date timestamp_date_of(int64_t days);
int timestamp_days_in_month(int64_t year, int month);

/* These return the end of the text. Room for a date of any accepted day: 21 bytes. */
char *timestamp_print_date(char *out, struct date date); /* 2026-11-16 */
/* A number that is not negative, with leading zeros up to digit_count digits. */
char *timestamp_print_number(char *out, int64_t number, size_t digit_count);

#endif
