/* Text <-> date and time of day <-> microseconds. */
#include "codec/timestamp.h"

#include "codec/date.h"

#define US_PER_MS     1000LL
#define US_PER_SECOND 1000000LL
#define US_PER_MINUTE (60 * US_PER_SECOND)
#define US_PER_DAY    (24 * 60 * US_PER_MINUTE)
/* 0001-01-01T00:00:00Z and 10000-01-01T00:00:00Z. */
#define FIRST_US (-719162 * US_PER_DAY)
#define LIMIT_US (2932897 * US_PER_DAY)

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

/* Exactly digit_count digits, with a value of low .. high. */
static int timestamp_take_number(struct reader *reader, size_t digit_count, int low, int high) {
    int number = 0;
    for (size_t i = 0; i < digit_count; i++) {
        if (reader->rest.size == 0 || reader->rest.at[0] < '0' || reader->rest.at[0] > '9') {
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

/* The 1 to 6 digits after a decimal point, as microseconds. */
static int timestamp_take_fraction_us(struct reader *reader) {
    int fraction_us = timestamp_take_number(reader, 1, 0, 9) * 100000;
    for (int unit_us = 10000; unit_us > 0; unit_us /= 10) {
        if (reader->rest.size == 0 || reader->rest.at[0] < '0' || reader->rest.at[0] > '9') {
            break;
        }
        fraction_us += timestamp_take_number(reader, 1, 0, 9) * unit_us;
    }
    return fraction_us;
}

static bool timestamp_parse_iso(struct bytes text, int64_t *time_us) {
    struct reader reader = {.rest = text};
    struct date date;
    date.year = timestamp_take_number(&reader, 4, 1, 9999);
    timestamp_take(&reader, '-');
    date.month = timestamp_take_number(&reader, 2, 1, 12);
    timestamp_take(&reader, '-');
    date.day = timestamp_take_number(&reader, 2, 1, date_days_in_month(date.year, date.month));
    timestamp_take(&reader, 'T');
    int hour = timestamp_take_number(&reader, 2, 0, 23);
    timestamp_take(&reader, ':');
    int minute = timestamp_take_number(&reader, 2, 0, 59);
    timestamp_take(&reader, ':');
    int second = timestamp_take_number(&reader, 2, 0, 59);
    int fraction_us = timestamp_take_if(&reader, '.') ? timestamp_take_fraction_us(&reader) : 0;
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
    int64_t time = date_to_days(date) * US_PER_DAY + (hour * 60 + minute) * US_PER_MINUTE +
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
        return bytes_print_i64(out, date_floor_divide(time_us, US_PER_MS));
    }
    int64_t days = date_floor_divide(time_us, US_PER_DAY);
    int64_t of_day_us = time_us - days * US_PER_DAY;
    int64_t fraction_us = of_day_us % US_PER_SECOND;
    char *at = date_print(out, date_from_days(days));
    *at++ = 'T';
    at = date_print_number(at, of_day_us / (60 * US_PER_MINUTE), 2);
    *at++ = ':';
    at = date_print_number(at, of_day_us / US_PER_MINUTE % 60, 2);
    *at++ = ':';
    at = date_print_number(at, of_day_us / US_PER_SECOND % 60, 2);
    if (fraction_us != 0) {
        bool is_in_ms = fraction_us % US_PER_MS == 0;
        *at++ = '.';
        at = date_print_number(at, is_in_ms ? fraction_us / US_PER_MS : fraction_us,
                               is_in_ms ? 3 : 6);
    }
    *at++ = 'Z';
    return (size_t)(at - out);
}
