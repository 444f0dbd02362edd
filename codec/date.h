/* Calendar days in the proleptic Gregorian calendar. 1970-01-01, a Thursday, is day 0. */
#ifndef CODEC_DATE_H
#define CODEC_DATE_H

#include <stddef.h>
#include <stdint.h>

struct date {
    int64_t year;
    int month; /* 1 .. 12 */
    int day;   /* 1 .. 31 */
};

/* Limit of the days that both functions accept: about 29 million years either side of 1970. */
#define DATE_DAYS_MAX INT64_C(10000000000)

/* Rounds down, where C rounds towards 0. */
static inline int64_t date_floor_divide(int64_t number, int64_t divisor) {
    return number / divisor - (number % divisor < 0 ? 1 : 0);
}

int64_t date_to_days(struct date date);
struct date date_from_days(int64_t days);
int date_days_in_month(int64_t year, int month);

/* These return the end of the text. Room for a date of any accepted day: 21 bytes. */
char *date_print(char *out, struct date date); /* 2026-11-16 */
/* A number that is not negative, with leading zeros up to digit_count digits. */
char *date_print_number(char *out, int64_t number, size_t digit_count);

#endif
