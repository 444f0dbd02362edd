/* Calendar days in the proleptic Gregorian calendar. 1970-01-01, a Thursday, is day 0. */
#ifndef CODEC_DATE_H
#define CODEC_DATE_H

#include <stdint.h>

struct date {
    int64_t year;
    int month; /* 1 .. 12 */
    int day;   /* 1 .. 31 */
};

/* Limit of the days that both functions accept: about 29 million years either side of 1970. */
#define DATE_DAYS_MAX INT64_C(10000000000)

int64_t date_to_days(struct date date);
struct date date_from_days(int64_t days);
int date_days_in_month(int64_t year, int month);

#endif
