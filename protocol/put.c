/* The tables, and the functions too long to inline. The rest is in the header. */
#include "protocol/put.h"

#define THREE_DIGITS(a, b, c) (('0' + (a)) | ('0' + (b)) << 8 | ('0' + (c)) << 16)
#define TEN_TEXTS(a, b)                                                                            \
    THREE_DIGITS(a, b, 0), THREE_DIGITS(a, b, 1), THREE_DIGITS(a, b, 2), THREE_DIGITS(a, b, 3),    \
        THREE_DIGITS(a, b, 4), THREE_DIGITS(a, b, 5), THREE_DIGITS(a, b, 6),                       \
        THREE_DIGITS(a, b, 7), THREE_DIGITS(a, b, 8), THREE_DIGITS(a, b, 9)
#define HUNDRED_TEXTS(a)                                                                           \
    TEN_TEXTS(a, 0), TEN_TEXTS(a, 1), TEN_TEXTS(a, 2), TEN_TEXTS(a, 3), TEN_TEXTS(a, 4),           \
        TEN_TEXTS(a, 5), TEN_TEXTS(a, 6), TEN_TEXTS(a, 7), TEN_TEXTS(a, 8), TEN_TEXTS(a, 9)
const uint32_t put_three_digits[1000] = {
    HUNDRED_TEXTS(0), HUNDRED_TEXTS(1), HUNDRED_TEXTS(2), HUNDRED_TEXTS(3), HUNDRED_TEXTS(4),
    HUNDRED_TEXTS(5), HUNDRED_TEXTS(6), HUNDRED_TEXTS(7), HUNDRED_TEXTS(8), HUNDRED_TEXTS(9),
};

#define HEADERS_OF_TEN(tens)                                                                       \
    "\r\n$" tens "0\r\n", "\r\n$" tens "1\r\n", "\r\n$" tens "2\r\n", "\r\n$" tens "3\r\n",        \
        "\r\n$" tens "4\r\n", "\r\n$" tens "5\r\n", "\r\n$" tens "6\r\n", "\r\n$" tens "7\r\n",    \
        "\r\n$" tens "8\r\n", "\r\n$" tens "9\r\n"
const char put_headers[101][8] = {
    HEADERS_OF_TEN(""),  HEADERS_OF_TEN("1"), HEADERS_OF_TEN("2"), HEADERS_OF_TEN("3"),
    HEADERS_OF_TEN("4"), HEADERS_OF_TEN("5"), HEADERS_OF_TEN("6"), HEADERS_OF_TEN("7"),
    HEADERS_OF_TEN("8"), HEADERS_OF_TEN("9"),
};

#define DIGITS(number, power, to_six_or_nine)                                                      \
    {                                                                                              \
        .header = "\r\n$" #number "\r\n", .first = (power) == 1 ? 0 : (power),                     \
        .size = (power) == 1 ? 10 : 9 * (power), .factor = (to_six_or_nine), .count = (number)     \
    }
const struct put_digits put_digits_table[9] = {
    DIGITS(1, 1, 100000),    DIGITS(2, 10, 10000),    DIGITS(3, 100, 1000),
    DIGITS(4, 1000, 100),    DIGITS(5, 10000, 10),    DIGITS(6, 100000, 1),
    DIGITS(7, 1000000, 100), DIGITS(8, 10000000, 10), DIGITS(9, 100000000, 1),
};

char *put_large(char *out, uint64_t value) {
    out = put_digits(out, value / PUT_SMALL_LIMIT);
    return put_nine_digits(out, (uint32_t)(value % PUT_SMALL_LIMIT));
}

/* So many digits, in words. Returns the end of them. */
static inline char *put_copy(char *out, const char *digits, size_t count) {
    for (size_t i = 0; i < count; i += 8) {
        memcpy(out + i, digits + i, 8);
    }
    return out + count;
}

char *put_decimal(char *out, struct decimal value, unsigned scale, bool is_double) {
    /* Zeros, then the digits: a fraction may begin before them. Read and written in words. */
    char text[DECIMAL_TEXT_MAX + DECIMAL_TEXT_MAX + 2 * PUT_OVERRUN];
    char *digits = text + DECIMAL_TEXT_MAX;
    memset(text, '0', DECIMAL_TEXT_MAX);
    const char *end = put_digits(digits, value.magnitude);
    const char *point = end - scale;
    const char *begin = point > digits ? digits : point - 1;
    while (end > point && end[-1] == '0') {
        end--;
    }
    size_t fraction = (size_t)(end - point);
    size_t whole = (size_t)(point - begin);
    if (is_double) {
        *out++ = ',';
    } else {
        out = put_header(out, '$', value.is_negative + whole + (fraction > 0) + fraction);
    }
    if (value.is_negative) {
        *out++ = '-';
    }
    out = put_copy(out, begin, whole);
    if (fraction > 0) {
        *out++ = '.';
        out = put_copy(out, point, fraction);
    }
    return put_line_end(out);
}

char *put_integer(char *out, struct decimal value, bool is_resp3) {
    if (value.is_negative) {
        memcpy(out, ":-", 2);
        return put_line_end(put_digits(out + 2, value.magnitude));
    }
    if (value.magnitude <= INT64_MAX) {
        return put_header(out, ':', value.magnitude);
    }
    return is_resp3 ? put_header(out, '(', value.magnitude) : put_decimal(out, value, 0, false);
}
