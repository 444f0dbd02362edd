/* Replies, byte by byte as Redis writes them.
 *
 * Every writer asks for room once, for the most it can need, fills it and commits what it filled.
 * The frequent values (integers, scores, bulks, headers) are laid out by hand; the others take the
 * short way. Nothing is written when the client wants silence or its buffer is broken: then there
 * is no room, and that is the only check the writers make. */
#include "protocol/reply.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    HEADER_MAX = 1 + BYTES_INTEGER_TEXT_MAX + 2, /* "*18446744073709551615\r\n" */
    DOUBLE_TEXT_MAX = 32,                        /* "-1.7976931348623157e+308" */
    SHORT_MAX = 32,                              /* bytes of a bulk that is copied in words */
    SHORT_ROOM = 8 + SHORT_MAX + 2,
};
/* The mark of an array that is not written. */
#define NO_MARK SIZE_MAX

void reply_init(struct reply *reply, struct buffer *out, uint8_t version) {
    CHECK(version == 2 || version == 3);
    *reply = (struct reply){.out = out, .version = version};
}

static inline char *reply_room(struct reply *reply, size_t size) {
    return __builtin_expect(reply->is_silent, 0) ? NULL : buffer_reserve(reply->out, size);
}

/* Where to write size bytes, or NULL: not without the long way. */
static inline char *short_room(const struct reply *reply, size_t size) {
    const struct buffer *out = reply->out;
    bool has_room = !reply->is_silent && !out->is_broken && out->capacity - out->size >= size;
    return has_room ? out->at + out->size : NULL;
}

static inline void commit_to(struct reply *reply, const char *end) {
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

static inline char *put_line_end(char *out) {
    memcpy(out, "\r\n", 2);
    return out + 2;
}

/* The texts of 000 to 999, the first digit in the lowest byte. Cutting a number in threes takes
 * half the time that cutting it in twos does, and 4 KiB stay in the cache. */
#define THREE_DIGITS(a, b, c) (('0' + (a)) | ('0' + (b)) << 8 | ('0' + (c)) << 16)
#define TEN_TEXTS(a, b)                                                                            \
    THREE_DIGITS(a, b, 0), THREE_DIGITS(a, b, 1), THREE_DIGITS(a, b, 2), THREE_DIGITS(a, b, 3),    \
        THREE_DIGITS(a, b, 4), THREE_DIGITS(a, b, 5), THREE_DIGITS(a, b, 6),                       \
        THREE_DIGITS(a, b, 7), THREE_DIGITS(a, b, 8), THREE_DIGITS(a, b, 9)
#define HUNDRED_TEXTS(a)                                                                           \
    TEN_TEXTS(a, 0), TEN_TEXTS(a, 1), TEN_TEXTS(a, 2), TEN_TEXTS(a, 3), TEN_TEXTS(a, 4),           \
        TEN_TEXTS(a, 5), TEN_TEXTS(a, 6), TEN_TEXTS(a, 7), TEN_TEXTS(a, 8), TEN_TEXTS(a, 9)
static const uint32_t three_digits[] = {
    HUNDRED_TEXTS(0), HUNDRED_TEXTS(1), HUNDRED_TEXTS(2), HUNDRED_TEXTS(3), HUNDRED_TEXTS(4),
    HUNDRED_TEXTS(5), HUNDRED_TEXTS(6), HUNDRED_TEXTS(7), HUNDRED_TEXTS(8), HUNDRED_TEXTS(9),
};

static inline void put_word(char *out, uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(out, &word, 8);
}

static inline uint64_t six_digits(uint32_t value) {
    return three_digits[value / 1000] | (uint64_t)three_digits[value % 1000] << 24;
}

/* Numbers below are written without a loop. */
enum { SMALL_LIMIT = 1000000000 };

/* Write value, below SMALL_LIMIT, without leading zeros; returns its size. Needs room for 11
 * bytes, of which 9 at most are the number. */
static inline size_t put_small(char *out, uint32_t value) {
    uint32_t head = value < 1000000 ? value : value / 1000000;
    uint64_t text = six_digits(head);
    /* The lowest bit set in a digit ends the leading zeros; the last digit stays in any case. */
    unsigned zero_bits = (unsigned)__builtin_ctzll((text & 0x0f0f0f0f0f) | (uint64_t)1 << 40) & ~7U;
    put_word(out, text >> zero_bits);
    size_t size = 6 - zero_bits / 8;
    if (value >= 1000000) {
        put_word(out + size, six_digits(value % 1000000));
        size += 6;
    }
    return size;
}

/* The same for any value; room for BYTES_INTEGER_TEXT_MAX. */
static inline size_t put_digits(char *out, uint64_t value) {
    return value < SMALL_LIMIT ? put_small(out, (uint32_t)value) : bytes_print_u64(out, value);
}

/* The headers of short bulks, padded to a word. */
#define HEADERS_OF_TEN(tens)                                                                       \
    "$" tens "0\r\n", "$" tens "1\r\n", "$" tens "2\r\n", "$" tens "3\r\n", "$" tens "4\r\n",      \
        "$" tens "5\r\n", "$" tens "6\r\n", "$" tens "7\r\n", "$" tens "8\r\n", "$" tens "9\r\n"
static const char short_headers[][8] = {
    HEADERS_OF_TEN(""),  HEADERS_OF_TEN("1"), HEADERS_OF_TEN("2"), HEADERS_OF_TEN("3"),
    HEADERS_OF_TEN("4"), HEADERS_OF_TEN("5"), HEADERS_OF_TEN("6"), HEADERS_OF_TEN("7"),
    HEADERS_OF_TEN("8"), HEADERS_OF_TEN("9"),
};

/* "<mark><value>\r\n"; returns its end. */
static inline char *put_header(char *out, char mark, uint64_t value) {
    if (value < 100) {
        memcpy(out, short_headers[value], 8);
        *out = mark;
        return out + 4 + (value >= 10);
    }
    *out = mark;
    return put_line_end(out + 1 + put_digits(out + 1, value));
}

static inline void reply_header(struct reply *reply, char mark, uint64_t count) {
    char *out = reply_room(reply, HEADER_MAX);
    if (out != NULL) {
        commit_to(reply, put_header(out, mark, count));
    }
}

void reply_ok(struct reply *reply) {
    REPLY_LITERAL(reply, "+OK\r\n");
}

/* ---- simple strings and errors ---- */

static void clean_line(char *at, size_t size) {
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
    clean_line(out + 1, size);
    commit_to(reply, put_line_end(out + 1 + size));
}

void reply_simple(struct reply *reply, const char *text) {
    reply_line(reply, '+', text, strlen(text));
}

static void note_error(struct reply *reply, const char *text) {
    size_t size = 0;
    while (size < sizeof(reply->error_prefix) - 1 && text[size] != '\0' && text[size] != ' ') {
        size++;
    }
    memcpy(reply->error_prefix, text, size);
    reply->error_prefix[size] = '\0';
    clean_line(reply->error_prefix, size);
    reply->error_count++;
}

void reply_error(struct reply *reply, const char *text) {
    note_error(reply, text);
    reply_line(reply, '-', text, strlen(text));
}

/* Size of the text, without its terminator. */
__attribute__((format(printf, 1, 0))) static size_t measure_format(const char *format,
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
    note_error(reply, start);
    size_t size = measure_format(format, arguments);
    char *out = reply_room(reply, size + 3);
    if (out != NULL) {
        *out = '-';
        vsnprintf(out + 1, size + 1, format, arguments);
        clean_line(out + 1, size);
        commit_to(reply, put_line_end(out + 1 + size));
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
        commit_to(reply, put_header(out, ':', (uint64_t)value));
        return;
    }
    *out = ':';
    commit_to(reply, put_line_end(out + 1 + bytes_print_i64(out + 1, value)));
}

/* Copy up to SHORT_MAX bytes in words that overlap: most members and numbers are this short, and a
 * call would cost more than the copy. Reads and writes nothing beyond size. */
static inline void put_short(char *out, const char *from, size_t size) {
    if (size > 16) {
        memcpy(out, from, 16);
        memcpy(out + size - 16, from + size - 16, 16);
    } else if (size >= 8) {
        memcpy(out, from, 8);
        memcpy(out + size - 8, from + size - 8, 8);
    } else if (size >= 4) {
        memcpy(out, from, 4);
        memcpy(out + size - 4, from + size - 4, 4);
    } else if (size > 0) {
        out[0] = from[0];
        out[size / 2] = from[size / 2];
        out[size - 1] = from[size - 1];
    }
}

static inline char *put_short_bulk(char *out, struct bytes text) {
    memcpy(out, short_headers[text.size], 8);
    out += 4 + (text.size >= 10);
    put_short(out, text.at, text.size);
    return put_line_end(out + text.size);
}

/* Any bulk; apart, so that the short way saves no registers for the calls in here. */
__attribute__((noinline)) static void reply_any_bulk(struct reply *reply, struct bytes text) {
    if (text.size > SIZE_MAX - HEADER_MAX - 2) {
        reply->out->is_broken = true;
        return;
    }
    char *out = reply_room(reply, HEADER_MAX + text.size + 2);
    if (out == NULL) {
        return;
    }
    out = put_header(out, '$', text.size);
    if (text.size > 0) {
        memcpy(out, text.at, text.size);
    }
    commit_to(reply, put_line_end(out + text.size));
}

void reply_bulk(struct reply *reply, struct bytes text) {
    char *out = text.size <= SHORT_MAX ? short_room(reply, SHORT_ROOM) : NULL;
    if (out != NULL) {
        commit_to(reply, put_short_bulk(out, text));
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
    size_t size = measure_format(format, arguments);
    char *out = reply_room(reply, HEADER_MAX + size + 2);
    if (out != NULL) {
        out = put_header(out, '$', size);
        vsnprintf(out, size + 1, format, arguments);
        commit_to(reply, put_line_end(out + size));
    }
    va_end(arguments);
}

void reply_verbatim(struct reply *reply, struct bytes text) {
    if (reply->version == 2) {
        reply_bulk(reply, text);
        return;
    }
    char *out = reply_room(reply, HEADER_MAX + 4 + text.size + 2);
    if (out == NULL) {
        return;
    }
    out = put_header(out, '=', text.size + 4);
    memcpy(out, "txt:", 4);
    if (text.size > 0) {
        memcpy(out + 4, text.at, text.size);
    }
    commit_to(reply, put_line_end(out + 4 + text.size));
}

/* ---- nothing, true and false, numbers ---- */

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

/* ",<digits>\r\n" or "$<size>\r\n<digits>\r\n". */
static inline char *put_small_score(char *out, uint32_t value, bool is_double) {
    if (is_double) {
        *out++ = ',';
        return put_line_end(out + put_small(out, value));
    }
    size_t size = put_small(out + 4, value);
    memcpy(out, short_headers[size], 4);
    return put_line_end(out + 4 + size);
}

__attribute__((noinline)) static void reply_any_decimal(struct reply *reply, struct decimal value,
                                                        unsigned scale) {
    char text[DECIMAL_TEXT_MAX];
    size_t size = decimal_print(text, value, scale);
    char *out = reply_room(reply, 8 + DECIMAL_TEXT_MAX + 2);
    if (out == NULL) {
        return;
    }
    if (reply->version == 3) {
        *out++ = ',';
    } else {
        out = put_header(out, '$', size);
    }
    memcpy(out, text, sizeof(text));
    commit_to(reply, put_line_end(out + size));
}

/* A whole number, as most scores are. */
static inline bool is_small_score(struct decimal value, unsigned scale) {
    return scale == 0 && value.magnitude < SMALL_LIMIT && !value.is_negative;
}

void reply_decimal(struct reply *reply, struct decimal value, unsigned scale) {
    char *out = is_small_score(value, scale) ? short_room(reply, SHORT_ROOM) : NULL;
    if (out != NULL) {
        commit_to(reply, put_small_score(out, (uint32_t)value.magnitude, reply->version == 3));
        return;
    }
    reply_any_decimal(reply, value, scale);
}

void reply_scored_member(struct reply *reply, struct bytes member, struct decimal score,
                         unsigned scale) {
    bool is_short = member.size <= SHORT_MAX && is_small_score(score, scale);
    char *out = is_short ? short_room(reply, 4 + 2 * SHORT_ROOM) : NULL;
    if (out != NULL) {
        bool is_pair = reply->version == 3;
        if (is_pair) {
            memcpy(out, "*2\r\n", 4);
            out += 4;
        }
        out = put_short_bulk(out, member);
        commit_to(reply, put_small_score(out, (uint32_t)score.magnitude, is_pair));
        return;
    }
    if (reply->version == 3) {
        reply_array(reply, 2);
    }
    reply_bulk(reply, member);
    reply_decimal(reply, score, scale);
}

static size_t print_double(char *out, double value) {
    const char *word = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    int size = isfinite(value) ? snprintf(out, DOUBLE_TEXT_MAX, "%.17g", value)
                               : snprintf(out, DOUBLE_TEXT_MAX, "%s", word);
    CHECK(size > 0 && size < DOUBLE_TEXT_MAX);
    return (size_t)size;
}

void reply_double(struct reply *reply, double value) {
    char text[DOUBLE_TEXT_MAX];
    size_t size = print_double(text, value);
    if (reply->version == 2) {
        reply_bulk(reply, (struct bytes){.at = text, .size = size});
        return;
    }
    reply_line(reply, ',', text, size);
}

/* ---- headers of arrays, maps, sets and pushes ---- */

void reply_array(struct reply *reply, uint64_t count) {
    reply_header(reply, '*', count);
}

void reply_map(struct reply *reply, uint64_t pair_count) {
    if (reply->version == 3) {
        reply_header(reply, '%', pair_count);
    } else {
        reply_header(reply, '*', pair_count * 2);
    }
}

void reply_set(struct reply *reply, uint64_t count) {
    reply_header(reply, reply->version == 3 ? '~' : '*', count);
}

void reply_push(struct reply *reply, uint64_t count) {
    reply_header(reply, reply->version == 3 ? '>' : '*', count);
}

size_t reply_array_begin(struct reply *reply) {
    if (reply_room(reply, HEADER_MAX) == NULL) {
        return NO_MARK;
    }
    size_t mark = reply->out->size;
    buffer_commit(reply->out, HEADER_MAX);
    return mark;
}

/* Write the header at mark and close the gap behind it. */
static void end_header(struct reply *reply, size_t mark, char kind, uint64_t count) {
    struct buffer *out = reply->out;
    if (mark == NO_MARK || out->is_broken) {
        return;
    }
    CHECK(mark + HEADER_MAX <= out->size);
    char *values = out->at + mark + HEADER_MAX;
    size_t values_size = out->size - mark - HEADER_MAX;
    char *end = put_header(out->at + mark, kind, count);
    memmove(end, values, values_size);
    out->size = (size_t)(end - out->at) + values_size;
}

void reply_array_end(struct reply *reply, size_t mark, uint64_t count) {
    end_header(reply, mark, '*', count);
}

void reply_map_end(struct reply *reply, size_t mark, uint64_t pair_count) {
    if (reply->version == 3) {
        end_header(reply, mark, '%', pair_count);
    } else {
        end_header(reply, mark, '*', pair_count * 2);
    }
}

void reply_set_end(struct reply *reply, size_t mark, uint64_t count) {
    end_header(reply, mark, reply->version == 3 ? '~' : '*', count);
}
