/* Replies, value by value. See host_reply.h.
 *
 * The host has a function for each type of RESP. Aggregates are their headers alone, so one loop over
 * the bytes does it. */
#include "server/module/host_reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_MAX = 1024 };

/* The line from at on, without its end; *next: behind it. */
static struct bytes read_line(const char *at, const char *end, const char **next) {
    const char *stop = memchr(at, '\r', (size_t)(end - at));
    CHECK(stop != NULL);
    *next = stop + 2;
    return (struct bytes){.at = at, .size = (size_t)(stop - at)};
}

static const char *copy_text(struct bytes text, char *out) {
    size_t size = text.size < TEXT_MAX - 1 ? text.size : TEXT_MAX - 1;
    memcpy(out, text.at, size);
    out[size] = '\0';
    return out;
}

/* Does a double say as many digits? Any double has 15. */
static bool fits_double(const char *text, double value) {
    enum { DOUBLE_DIGITS = 15 };
    char again[TEXT_MAX];
    int digits = 0;
    for (const char *at = text; *at != '\0'; at++) {
        digits += *at >= '0' && *at <= '9';
    }
    snprintf(again, sizeof again, "%.*g", digits - (text[strspn(text, "-")] == '0'), value);
    return digits <= DOUBLE_DIGITS || strcmp(text, again) == 0;
}

/* A number of RESP3. The host writes integers below 2^64 exactly if they come as long double, and other
 * numbers with 17 digits; what has more goes as a string. */
static void reply_decimal_of(struct host_context *ctx, struct bytes text) {
    char copy[TEXT_MAX];
    int64_t number;
    uint64_t magnitude;
    bool is_integer = bytes_parse_i64(text, &number) || bytes_parse_u64(text, &magnitude);
    double value = strtod(copy_text(text, copy), NULL);
    if (is_integer) {
        host_ReplyWithLongDouble(ctx, strtold(copy, NULL));
    } else if (!isfinite(value) || fits_double(copy, value)) {
        host_ReplyWithDouble(ctx, value);
    } else {
        host_ReplyWithStringBuffer(ctx, text.at, text.size);
    }
}

static void reply_verbatim(struct host_context *ctx, struct bytes text) {
    enum { HEAD_SIZE = 4 }; /* "txt:" */
    host_ReplyWithVerbatimString(ctx, text.at + HEAD_SIZE, text.size - HEAD_SIZE);
}

/* Nearly all values of long replies are strings. The text is our own, so it is right. */
static const char *reply_plain_string(struct host_context *ctx, const char *at) {
    size_t size = 0;
    for (at++; *at != '\r'; at++) {
        size = 10 * size + (size_t)(*at - '0');
    }
    at += 2;
    host_ReplyWithStringBuffer(ctx, at, size);
    return at + size + 2;
}

/* Returns where the next value begins. */
static const char *reply_value(struct host_context *ctx, const char *at, const char *end) {
    char type = *at;
    char copy[TEXT_MAX];
    const char *next;
    if (type == '$' && at[1] != '-') {
        return reply_plain_string(ctx, at);
    }
    struct bytes line = read_line(at + 1, end, &next);
    int64_t number = 0;
    bool is_number = bytes_parse_i64(line, &number);
    switch (type) {
    case '$':
        host_ReplyWithNull(ctx);
        return next;
    case '=':
        reply_verbatim(ctx, (struct bytes){.at = next, .size = (size_t)number});
        return next + number + 2;
    case ':':
        CHECK(is_number);
        host_ReplyWithLongLong(ctx, number);
        return next;
    case '*':
        if (number < 0) {
            host_ReplyWithNullArray(ctx);
        } else {
            host_ReplyWithArray(ctx, (long)number);
        }
        return next;
    case '%':
        host_ReplyWithMap(ctx, (long)number);
        return next;
    case '~':
        host_ReplyWithSet(ctx, (long)number);
        return next;
    case '+':
        host_ReplyWithSimpleString(ctx, copy_text(line, copy));
        return next;
    case '-':
        host_ReplyWithError(ctx, copy_text(line, copy));
        return next;
    case '_':
        host_ReplyWithNull(ctx);
        return next;
    case ',':
        reply_decimal_of(ctx, line);
        return next;
    case '(':
        host_ReplyWithBigNumber(ctx, line.at, line.size);
        return next;
    default:
        CHECK(type == '#');
        host_ReplyWithBool(ctx, line.at[0] == 't');
        return next;
    }
}

void host_reply(struct host_context *ctx, const struct buffer *output) {
    if (output->is_broken) {
        host_ReplyWithError(ctx, "OOM out of memory");
        return;
    }
    const char *at = output->at;
    const char *end = at + output->size;
    while (at < end) {
        at = reply_value(ctx, at, end);
    }
}
