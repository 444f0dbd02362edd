/* Text <-> date and time of day <-> microseconds. */
#include "codec/timestamp.h"

#define US_PER_MS     1000LL
#define US_PER_SECOND 1000000LL
#define US_PER_MINUTE (60 * US_PER_SECOND)
#define US_PER_DAY    (24 * 60 * US_PER_MINUTE)
/* 0001-01-01T00:00:00Z and 10000-01-01T00:00:00Z. */
#define FIRST_US (-719162 * US_PER_DAY)
#define LIMIT_US (2932897 * US_PER_DAY)

/* ---- days ---- */

enum { DAYS_PER_ERA = 146097, YEARS_PER_ERA = 400, DAYS_TO_1970 = 719468 };

int64_t timestamp_days_of(struct date date) {
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t era = timestamp_floor_divide(year, YEARS_PER_ERA);
    int64_t year_of_era = year - era * YEARS_PER_ERA;
    int month_from_march = date.month > 2 ? date.month - 3 : date.month + 9;
    int day_of_year = (153 * month_from_march + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

struct date timestamp_date_of(int64_t days) {
    CHECK(days >= -TIMESTAMP_DAYS_MAX);
    CHECK(days <= TIMESTAMP_DAYS_MAX);
    int64_t era = timestamp_floor_divide(days + DAYS_TO_1970, DAYS_PER_ERA);
    int day_of_era = (int)(days + DAYS_TO_1970 - era * DAYS_PER_ERA);
    int year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int month_from_march = (5 * day_of_year + 2) / 153;
    struct date date = {
        .year = year_of_era + era * YEARS_PER_ERA,
        .month = month_from_march < 10 ? month_from_march + 3 : month_from_march - 9,
        .day = day_of_year - (153 * month_from_march + 2) / 5 + 1,
    };
    if (date.month <= 2) {
        date.year++;
    }
    return date;
}

int timestamp_days_in_month(int64_t year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && is_leap ? 29 : days[month - 1];
}

static char *timestamp_print_two(char *out, uint32_t number, char behind) {
    out[0] = (char)('0' + number / 10);
    out[1] = (char)('0' + number % 10);
    out[2] = behind;
    return out + 3;
}

char *timestamp_print_number(char *out, int64_t number, size_t digit_count) {
    if (digit_count == 2 && number < 100) {
        out[0] = (char)('0' + number / 10);
        out[1] = (char)('0' + number % 10);
        return out + 2;
    }
    char digits[BYTES_INTEGER_TEXT_MAX];
    size_t size = bytes_print_u64(digits, (uint64_t)number);
    for (; digit_count > size; digit_count--) {
        *out++ = '0';
    }
    memcpy(out, digits, size);
    return out + size;
}

char *timestamp_print_date(char *out, struct date date) {
    if (date.year < 0) {
        *out++ = '-';
    }
    out = timestamp_print_number(out, date.year < 0 ? -date.year : date.year, 4);
    *out++ = '-';
    out = timestamp_print_number(out, date.month, 2);
    *out++ = '-';
    return timestamp_print_number(out, date.day, 2);
}

/* ---- texts ---- */

/* Reads from the front of a text; is_bad is set on the first mismatch and stays set. */
struct reader {
    struct bytes rest;
    bool is_bad;
};

static bool timestamp_take_if(struct reader *reader, char expected) {
    if (reader->rest.size == 0 || reader->rest.at[0] != expected) {
        return false;
    }
    reader->rest.at++;
    reader->rest.size--;
    return true;
}

static void timestamp_take(struct reader *reader, char expected) {
    if (!timestamp_take_if(reader, expected)) {
        reader->is_bad = true;
    }
}

static bool timestamp_has_digit(const struct reader *reader) {
    return reader->rest.size > 0 && reader->rest.at[0] >= '0' && reader->rest.at[0] <= '9';
}

/* Exactly digit_count digits, with a value of low .. high. */
static int timestamp_take_number(struct reader *reader, size_t digit_count, int low, int high) {
    int number = 0;
    for (size_t i = 0; i < digit_count; i++) {
        if (!timestamp_has_digit(reader)) {
            reader->is_bad = true;
            return low;
        }
        number = number * 10 + (reader->rest.at[0] - '0');
        reader->rest.at++;
        reader->rest.size--;
    }
    if (number < low || number > high) {
        reader->is_bad = true;
        return low;
    }
    return number;
}

static bool timestamp_parse_iso(struct bytes text, int64_t *time_us) {
    struct reader reader = {.rest = text};
    struct date date;
    date.year = timestamp_take_number(&reader, 4, 1, 9999);
    timestamp_take(&reader, '-');
    date.month = timestamp_take_number(&reader, 2, 1, 12);
    timestamp_take(&reader, '-');
    date.day = timestamp_take_number(&reader, 2, 1, timestamp_days_in_month(date.year, date.month));
    timestamp_take(&reader, 'T');
    int hour = timestamp_take_number(&reader, 2, 0, 23);
    timestamp_take(&reader, ':');
    int minute = timestamp_take_number(&reader, 2, 0, 59);
    timestamp_take(&reader, ':');
    int second = timestamp_take_number(&reader, 2, 0, 59);
    int fraction_us = 0;
    if (timestamp_take_if(&reader, '.')) { /* 1 to 6 digits */
        fraction_us = timestamp_take_number(&reader, 1, 0, 9) * 100000;
        for (int unit_us = 10000; unit_us > 0 && timestamp_has_digit(&reader); unit_us /= 10) {
            fraction_us += timestamp_take_number(&reader, 1, 0, 9) * unit_us;
        }
    }
    int64_t offset_us = 0;
    if (!timestamp_take_if(&reader, 'Z')) {
        bool is_west = timestamp_take_if(&reader, '-');
        if (!is_west) {
            timestamp_take(&reader, '+');
        }
        offset_us = timestamp_take_number(&reader, 2, 0, 23) * 60 * US_PER_MINUTE;
        timestamp_take(&reader, ':');
        offset_us += timestamp_take_number(&reader, 2, 0, 59) * US_PER_MINUTE;
        offset_us = is_west ? -offset_us : offset_us;
    }
    if (reader.is_bad || reader.rest.size > 0) {
        return false;
    }
    int64_t time = timestamp_days_of(date) * US_PER_DAY + (hour * 60 + minute) * US_PER_MINUTE +
                   second * US_PER_SECOND + fraction_us - offset_us;
    if (time < FIRST_US || time >= LIMIT_US) {
        return false;
    }
    *time_us = time;
    return true;
}

bool timestamp_parse(struct bytes text, int64_t *time_us) {
    int64_t time_ms;
    if (bytes_parse_i64(text, &time_ms)) {
        int64_t time;
        if (__builtin_mul_overflow(time_ms, US_PER_MS, &time)) {
            return false;
        }
        *time_us = time;
        return true;
    }
    return timestamp_parse_iso(text, time_us);
}

size_t timestamp_print(char *out, int64_t time_us) {
    if (time_us < FIRST_US || time_us >= LIMIT_US) {
        return bytes_print_i64(out, timestamp_floor_divide(time_us, US_PER_MS));
    }
    int64_t days = timestamp_floor_divide(time_us, US_PER_DAY);
    int64_t of_day_us = time_us - days * US_PER_DAY;
    uint32_t of_day_s = (uint32_t)(of_day_us / US_PER_SECOND);
    int64_t fraction_us = of_day_us - of_day_s * US_PER_SECOND;
    struct date date = timestamp_date_of(days);
    uint32_t year = (uint32_t)date.year; /* 1 to 9999 */
    char *at = timestamp_print_two(out, year / 100, '\0') - 1;
    at = timestamp_print_two(at, year % 100, '-');
    at = timestamp_print_two(at, (uint32_t)date.month, '-');
    at = timestamp_print_two(at, (uint32_t)date.day, 'T');
    at = timestamp_print_two(at, of_day_s / 3600, ':');
    at = timestamp_print_two(at, of_day_s / 60 % 60, ':');
    at = timestamp_print_two(at, of_day_s % 60, fraction_us != 0 ? '.' : 'Z');
    if (fraction_us != 0) {
        bool is_in_ms = fraction_us % US_PER_MS == 0;
        at = timestamp_print_number(at, is_in_ms ? fraction_us / US_PER_MS : fraction_us,
                                    is_in_ms ? 3 : 6);
        *at++ = 'Z';
    }
    return (size_t)(at - out);
}
