/* Days are counted in 400-year eras that begin on 1 March, so that the leap day is the last day of
 * a year and of an era. Source: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms". */
#include "codec/date.h"

#include "codec/bytes.h"

enum { DAYS_PER_ERA = 146097, YEARS_PER_ERA = 400, DAYS_TO_1970 = 719468 };

int64_t date_to_days(struct date date) {
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t era = date_floor_divide(year, YEARS_PER_ERA);
    int64_t year_of_era = year - era * YEARS_PER_ERA;
    int month_from_march = date.month > 2 ? date.month - 3 : date.month + 9;
    int day_of_year = (153 * month_from_march + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * DAYS_PER_ERA + day_of_era - DAYS_TO_1970;
}

struct date date_from_days(int64_t days) {
    CHECK(days >= -DATE_DAYS_MAX);
    CHECK(days <= DATE_DAYS_MAX);
    int64_t era = date_floor_divide(days + DAYS_TO_1970, DAYS_PER_ERA);
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

int date_days_in_month(int64_t year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && is_leap ? 29 : days[month - 1];
}

char *date_print_number(char *out, int64_t number, size_t digit_count) {
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

char *date_print(char *out, struct date date) {
    if (date.year < 0) {
        *out++ = '-';
    }
    out = date_print_number(out, date.year < 0 ? -date.year : date.year, 4);
    *out++ = '-';
    out = date_print_number(out, date.month, 2);
    *out++ = '-';
    return date_print_number(out, date.day, 2);
}
