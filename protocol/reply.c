/* Replies, byte for byte as Redis writes them.
 *
 * Every function reserves room once, for the maximum it can need, fills it and commits what it
 * wrote. Frequent values (integers, scores, bulks, headers) have a hand-written fast path; the
 * others use general code. When the client is silent or its buffer is broken, no room is returned;
 * that is the only check these functions make. */
#include "protocol/reply.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    HEADER_MAX = REPLY_PUT_HEADER_ROOM,
    DOUBLE_TEXT_MAX = 32, /* "-1.7976931348623157e+308" */
};
/* The mark of an array that is not being written. */
#define NO_MARK SIZE_MAX

void reply_init(struct reply *reply, struct buffer *out, uint8_t version) {
    CHECK(version == 2 || version == 3);
    *reply = (struct reply){.out = out, .version = version, .numbers = version};
}

static inline char *reply_room(struct reply *reply, size_t size) {
    return __builtin_expect(reply->is_silent, 0) ? NULL : buffer_reserve(reply->out, size);
}

/* Fast path: where to write size bytes, or NULL to take the slow path. */
static inline char *reply_short_room(const struct reply *reply, size_t size) {
    const struct buffer *out = reply->out;
    bool has_room = !reply->is_silent && !out->is_broken && out->capacity - out->size >= size;
    return has_room ? out->at + out->size : NULL;
}

static inline void reply_commit_to(struct reply *reply, const char *end) {
    buffer_commit(reply->out, (size_t)(end - (reply->out->at + reply->out->size)));
}

/* Write the bytes of a literal. */
#define REPLY_LITERAL(reply, literal) reply_constant((reply), (literal), sizeof(literal) - 1)
static inline void reply_constant(struct reply *reply, const char *text, size_t size) {
    char *out = reply_room(reply, size);
    if (out != NULL) {
        memcpy(out, text, size);
        buffer_commit(reply->out, size);
    }
}

static inline void reply_header(struct reply *reply, char mark, uint64_t count) {
    char *out = reply_room(reply, HEADER_MAX);
    if (out != NULL) {
        reply_commit_to(reply, reply_put_header(out, mark, count));
    }
}

void reply_ok(struct reply *reply) {
    REPLY_LITERAL(reply, "+OK\r\n");
}

/* ---- simple strings and errors ---- */

static void reply_clean_line(char *at, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (at[i] == '\r' || at[i] == '\n' || at[i] == '\0') {
            at[i] = ' ';
        }
    }
}

static void reply_line(struct reply *reply, char mark, const char *text, size_t size) {
    char *out = reply_room(reply, size + 3);
    if (out == NULL) {
        return;
    }
    *out = mark;
    memcpy(out + 1, text, size);
    reply_clean_line(out + 1, size);
    reply_commit_to(reply, reply_put_line_end(out + 1 + size));
}

void reply_simple(struct reply *reply, const char *text) {
    reply_line(reply, '+', text, strlen(text));
}

static void reply_note_error(struct reply *reply, const char *text) {
    size_t size = 0;
    while (size < sizeof(reply->error_prefix) - 1 && text[size] != '\0' && text[size] != ' ') {
        size++;
    }
    memcpy(reply->error_prefix, text, size);
    reply->error_prefix[size] = '\0';
    reply_clean_line(reply->error_prefix, size);
    reply->error_count++;
    reply->error_cause = REPLY_CAUSE_OTHER;
    reply->error_wait_s = 0;
}

void reply_error(struct reply *reply, const char *text) {
    reply_note_error(reply, text);
    reply_line(reply, '-', text, strlen(text));
}

void reply_error_extend(struct reply *reply, size_t size_before, const char *text) {
    if (reply->out->is_broken || reply->out->size == size_before) {
        return; /* lost, or silent */
    }
    CHECK(reply->out->at[size_before] == '-');
    buffer_cut(reply->out, reply->out->size - 2);
    size_t size = strlen(text);
    char *out = reply_room(reply, size + 2);
    if (out != NULL) {
        memcpy(out, text, size);
        reply_clean_line(out, size);
        reply_commit_to(reply, reply_put_line_end(out + size));
    }
}

/* Size of the text, without its terminator. */
__attribute__((format(printf, 1, 0))) static size_t reply_measure_format(const char *format,
                                                                         va_list arguments) {
    va_list copy;
    va_copy(copy, arguments);
    int size = vsnprintf(NULL, 0, format, copy);
    va_end(copy);
    CHECK(size >= 0);
    return (size_t)size;
}

void reply_error_format(struct reply *reply, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char start[sizeof(reply->error_prefix)];
    va_list copy;
    va_copy(copy, arguments);
    vsnprintf(start, sizeof(start), format, copy);
    va_end(copy);
    reply_note_error(reply, start);
    size_t size = reply_measure_format(format, arguments);
    char *out = reply_room(reply, size + 3);
    if (out != NULL) {
        *out = '-';
        vsnprintf(out + 1, size + 1, format, arguments);
        reply_clean_line(out + 1, size);
        reply_commit_to(reply, reply_put_line_end(out + 1 + size));
    }
    va_end(arguments);
}

/* ---- integers and bulks ---- */

void reply_integer(struct reply *reply, int64_t value) {
    char *out = reply_room(reply, HEADER_MAX);
    if (out == NULL) {
        return;
    }
    if (value >= 0) {
        reply_commit_to(reply, reply_put_header(out, ':', (uint64_t)value));
        return;
    }
    *out = ':';
    reply_commit_to(reply, reply_put_line_end(out + 1 + bytes_print_i64(out + 1, value)));
}

void reply_wide_integer(struct reply *reply, int64_t value) {
    char text[BYTES_INTEGER_TEXT_MAX];
    if (reply->numbers == REPLY_STRINGS) {
        reply_bulk(reply, (struct bytes){.at = text, .size = bytes_print_i64(text, value)});
    } else {
        reply_integer(reply, value);
    }
}

/* Any bulk. Separate, so that the fast path need not save registers for the calls in here. */
__attribute__((noinline)) static void reply_any_bulk(struct reply *reply, struct bytes text) {
    if (text.size > SIZE_MAX - HEADER_MAX - 2) {
        reply->out->is_broken = true;
        return;
    }
    char *out = reply_room(reply, HEADER_MAX + text.size + 2);
    if (out == NULL) {
        return;
    }
    out = reply_put_header(out, '$', text.size);
    if (text.size > 0) {
        memcpy(out, text.at, text.size);
    }
    reply_commit_to(reply, reply_put_line_end(out + text.size));
}

void reply_bulk(struct reply *reply, struct bytes text) {
    char *out =
        text.size <= REPLY_PUT_SHORT_MAX ? reply_short_room(reply, REPLY_PUT_SHORT_ROOM) : NULL;
    if (out != NULL) {
        reply_commit_to(reply, reply_put_short_bulk(out, text));
        return;
    }
    reply_any_bulk(reply, text);
}

void reply_bulk_text(struct reply *reply, const char *text) {
    reply_bulk(reply, bytes_from_text(text));
}

void reply_bulk_format(struct reply *reply, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    size_t size = reply_measure_format(format, arguments);
    char *out = reply_room(reply, HEADER_MAX + size + 2);
    if (out != NULL) {
        out = reply_put_header(out, '$', size);
        vsnprintf(out, size + 1, format, arguments);
        reply_commit_to(reply, reply_put_line_end(out + size));
    }
    va_end(arguments);
}

/* ---- null, booleans, numbers ---- */

void reply_null(struct reply *reply) {
    if (reply->version == 3) {
        REPLY_LITERAL(reply, "_\r\n");
    } else {
        REPLY_LITERAL(reply, "$-1\r\n");
    }
}

void reply_null_array(struct reply *reply) {
    if (reply->version == 3) {
        REPLY_LITERAL(reply, "_\r\n");
    } else {
        REPLY_LITERAL(reply, "*-1\r\n");
    }
}

void reply_boolean(struct reply *reply, bool value) {
    if (reply->version == 3) {
        reply_constant(reply, value ? "#t\r\n" : "#f\r\n", 4);
    } else {
        reply_constant(reply, value ? ":1\r\n" : ":0\r\n", 4);
    }
}

__attribute__((noinline)) static void reply_any_decimal(struct reply *reply, struct decimal value,
                                                        unsigned scale) {
    char *out = reply_room(reply, REPLY_PUT_NUMBER_ROOM);
    if (out != NULL) {
        reply_commit_to(reply, reply_put_decimal(out, value, scale, reply->numbers == 3));
    }
}

void reply_decimal(struct reply *reply, struct decimal value, unsigned scale) {
    /* An integer, as most scores are. */
    char *out = (scale == 0 && value.magnitude < REPLY_PUT_SMALL_LIMIT && !value.is_negative)
                    ? reply_short_room(reply, REPLY_PUT_SHORT_ROOM)
                    : NULL;
    if (out != NULL) {
        reply_commit_to(reply,
                        reply_put_small_score(out, (uint32_t)value.magnitude, reply->numbers == 3));
        return;
    }
    reply_any_decimal(reply, value, scale);
}

void reply_decimal_text(struct reply *reply, struct bytes text) {
    if (reply->numbers != 3) {
        reply_bulk(reply, text);
        return;
    }
    reply_line(reply, ',', text.at, text.size);
}

void reply_double(struct reply *reply, double value) {
    char text[DOUBLE_TEXT_MAX];
    const char *word = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    int size = isfinite(value) ? snprintf(text, sizeof text, "%.17g", value)
                               : snprintf(text, sizeof text, "%s", word);
    CHECK(size > 0 && size < DOUBLE_TEXT_MAX);
    reply_decimal_text(reply, (struct bytes){.at = text, .size = (size_t)size});
}

/* ---- headers of arrays, maps and sets ---- */

void reply_array(struct reply *reply, uint64_t count) {
    reply_header(reply, '*', count);
}

void reply_map(struct reply *reply, uint64_t pair_count) {
    bool is_map = reply->version == 3;
    reply_header(reply, is_map ? '%' : '*', is_map ? pair_count : pair_count * 2);
}

void reply_set(struct reply *reply, uint64_t count) {
    reply_header(reply, reply->version == 3 ? '~' : '*', count);
}

void reply_push(struct reply *reply, uint64_t count) {
    reply_header(reply, reply->version == 3 ? '>' : '*', count);
}

void reply_repeat(struct reply *reply, size_t begin, size_t size) {
    char *copy = reply_room(reply, size); /* growing may move the original too */
    if (copy != NULL) {
        CHECK(begin <= reply->out->size && size <= reply->out->size - begin);
        memcpy(copy, reply->out->at + begin, size);
        buffer_commit(reply->out, size);
    }
}

size_t reply_array_begin(struct reply *reply) {
    if (reply_room(reply, HEADER_MAX) == NULL) {
        return NO_MARK;
    }
    size_t mark = reply->out->size;
    buffer_commit(reply->out, HEADER_MAX);
    return mark;
}

size_t reply_verbatim_begin(struct reply *reply) {
    return reply_array_begin(reply);
}

/* Write the header at mark and close the gap behind it. */
static void reply_end_header(struct reply *reply, size_t mark, char kind, uint64_t count) {
    struct buffer *out = reply->out;
    if (mark == NO_MARK || out->is_broken) {
        return;
    }
    CHECK(mark + HEADER_MAX <= out->size);
    char *values = out->at + mark + HEADER_MAX;
    size_t values_size = out->size - mark - HEADER_MAX;
    char *end = reply_put_header(out->at + mark, kind, count);
    memmove(end, values, values_size);
    out->size = (size_t)(end - out->at) + values_size;
}

void reply_array_end(struct reply *reply, size_t mark, uint64_t count) {
    reply_end_header(reply, mark, '*', count);
}

void reply_map_end(struct reply *reply, size_t mark, uint64_t pair_count) {
    bool is_map = reply->version == 3;
    reply_end_header(reply, mark, is_map ? '%' : '*', is_map ? pair_count : pair_count * 2);
}

void reply_verbatim_end(struct reply *reply, size_t mark) {
    static const char format[] = "txt:";
    enum { FORMAT_SIZE = sizeof format - 1 };
    struct buffer *out = reply->out;
    if (mark == NO_MARK || buffer_reserve(out, FORMAT_SIZE + 2) == NULL) {
        return;
    }
    size_t text_size = out->size - mark - HEADER_MAX;
    if (reply->version == 2) {
        reply_end_header(reply, mark, '$', text_size);
    } else {
        char *text = out->at + mark + HEADER_MAX;
        memmove(text + FORMAT_SIZE, text, text_size);
        memcpy(text, format, FORMAT_SIZE);
        buffer_commit(out, FORMAT_SIZE);
        reply_end_header(reply, mark, '=', text_size + FORMAT_SIZE);
    }
    REPLY_LITERAL(reply, "\r\n");
}

void reply_verbatim(struct reply *reply, struct bytes text) {
    size_t mark = reply_verbatim_begin(reply);
    if (mark != NO_MARK) {
        buffer_append(reply->out, text.at, text.size);
        reply_verbatim_end(reply, mark);
    }
}

/* ---- parts of replies: the tables, and the functions too long to inline ---- */

#define THREE_DIGITS(a, b, c) (('0' + (a)) | ('0' + (b)) << 8 | ('0' + (c)) << 16)
#define TEN_TEXTS(a, b)                                                                            \
    THREE_DIGITS(a, b, 0), THREE_DIGITS(a, b, 1), THREE_DIGITS(a, b, 2), THREE_DIGITS(a, b, 3),    \
        THREE_DIGITS(a, b, 4), THREE_DIGITS(a, b, 5), THREE_DIGITS(a, b, 6),                       \
        THREE_DIGITS(a, b, 7), THREE_DIGITS(a, b, 8), THREE_DIGITS(a, b, 9)
#define HUNDRED_TEXTS(a)                                                                           \
    TEN_TEXTS(a, 0), TEN_TEXTS(a, 1), TEN_TEXTS(a, 2), TEN_TEXTS(a, 3), TEN_TEXTS(a, 4),           \
        TEN_TEXTS(a, 5), TEN_TEXTS(a, 6), TEN_TEXTS(a, 7), TEN_TEXTS(a, 8), TEN_TEXTS(a, 9)
const uint32_t reply_put_three_digits[1000] = {
    HUNDRED_TEXTS(0), HUNDRED_TEXTS(1), HUNDRED_TEXTS(2), HUNDRED_TEXTS(3), HUNDRED_TEXTS(4),
    HUNDRED_TEXTS(5), HUNDRED_TEXTS(6), HUNDRED_TEXTS(7), HUNDRED_TEXTS(8), HUNDRED_TEXTS(9),
};

#define HEADERS_OF_TEN(tens)                                                                       \
    "\r\n$" tens "0\r\n", "\r\n$" tens "1\r\n", "\r\n$" tens "2\r\n", "\r\n$" tens "3\r\n",        \
        "\r\n$" tens "4\r\n", "\r\n$" tens "5\r\n", "\r\n$" tens "6\r\n", "\r\n$" tens "7\r\n",    \
        "\r\n$" tens "8\r\n", "\r\n$" tens "9\r\n"
const char reply_put_headers[101][8] = {
    HEADERS_OF_TEN(""),  HEADERS_OF_TEN("1"), HEADERS_OF_TEN("2"), HEADERS_OF_TEN("3"),
    HEADERS_OF_TEN("4"), HEADERS_OF_TEN("5"), HEADERS_OF_TEN("6"), HEADERS_OF_TEN("7"),
    HEADERS_OF_TEN("8"), HEADERS_OF_TEN("9"),
};

#define DIGITS(number, power, to_six_or_nine)                                                      \
    {                                                                                              \
        .header = "\r\n$" #number "\r\n", .first = (power) == 1 ? 0 : (power),                     \
        .size = (power) == 1 ? 10 : 9 * (power), .factor = (to_six_or_nine), .count = (number)     \
    }
const struct reply_put_digits reply_put_digits_table[9] = {
    DIGITS(1, 1, 100000),    DIGITS(2, 10, 10000),    DIGITS(3, 100, 1000),
    DIGITS(4, 1000, 100),    DIGITS(5, 10000, 10),    DIGITS(6, 100000, 1),
    DIGITS(7, 1000000, 100), DIGITS(8, 10000000, 10), DIGITS(9, 100000000, 1),
};

char *reply_put_large(char *out, uint64_t value) {
    out = reply_put_digits(out, value / REPLY_PUT_SMALL_LIMIT);
    return reply_put_nine_digits(out, (uint32_t)(value % REPLY_PUT_SMALL_LIMIT));
}

/* So many digits, in words. Returns the end of them. */
static inline char *reply_put_copy(char *out, const char *digits, size_t count) {
    for (size_t i = 0; i < count; i += 8) {
        memcpy(out + i, digits + i, 8);
    }
    return out + count;
}

char *reply_put_decimal(char *out, struct decimal value, unsigned scale, bool is_double) {
    /* Zeros, then the digits: a fraction may begin before them. Read and written in words. */
    char text[DECIMAL_TEXT_MAX + DECIMAL_TEXT_MAX + 2 * REPLY_PUT_OVERRUN];
    char *digits = text + DECIMAL_TEXT_MAX;
    memset(text, '0', DECIMAL_TEXT_MAX);
    const char *end = reply_put_digits(digits, value.magnitude);
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
        out = reply_put_header(out, '$', value.is_negative + whole + (fraction > 0) + fraction);
    }
    if (value.is_negative) {
        *out++ = '-';
    }
    out = reply_put_copy(out, begin, whole);
    if (fraction > 0) {
        *out++ = '.';
        out = reply_put_copy(out, point, fraction);
    }
    return reply_put_line_end(out);
}

char *reply_put_integer(char *out, struct decimal value, bool is_resp3) {
    if (value.is_negative) {
        memcpy(out, ":-", 2);
        return reply_put_line_end(reply_put_digits(out + 2, value.magnitude));
    }
    if (value.magnitude <= INT64_MAX) {
        return reply_put_header(out, ':', value.magnitude);
    }
    return is_resp3 ? reply_put_header(out, '(', value.magnitude)
                    : reply_put_decimal(out, value, 0, false);
}
