/* Replies, value by value. See host_reply.h.
 *
 * The host has a function for each type of RESP. Aggregates are their headers alone, so one loop over
 * the bytes does it. */
#include "server/module/host_reply.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_MAX = 1024,
    /* Replies that go by a call: some dozens of values, of which the call takes the time of about fifteen ... */
    CALLED_MIN = 1024,
    CALLED_MAX = 15 * 1024, /* ... and that fill the buffer of the host's client at most (16 KiB) */
};

#define EXACT_LIMIT (INT64_C(1) << 53) /* a double has all integers below */

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

/* A number of RESP3. The host writes doubles with 17 digits, so integers below 2^53 as they are; larger ones
 * exactly if they come as long double, which takes longer. A fraction with more digits goes as a string. */
static void reply_decimal_of(struct host_context *ctx, struct bytes text) {
    char copy[TEXT_MAX];
    int64_t number;
    uint64_t magnitude;
    bool is_integer = bytes_parse_i64(text, &number);
    if (is_integer && number < EXACT_LIMIT && -EXACT_LIMIT < number) {
        host_ReplyWithDouble(ctx, (double)number);
        return;
    }
    is_integer = is_integer || bytes_parse_u64(text, &magnitude);
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

/* What long replies consist of, from at on: strings, arrays and, in RESP3, integers as doubles, all with numbers
 * of a few digits. Returns where another value begins, or end. The text is our own, so it is right. */
static const char *reply_common(struct host_context *ctx, const char *at, const char *end) {
    enum { DIGITS_MAX = 15 /* a double has all such integers */ };
    while (at < end && (*at == '$' || *at == '*' || *at == ',')) {
        const char *digit = at + 1;
        uint64_t number = 0;
        while (*digit >= '0' && *digit <= '9' && digit - at <= DIGITS_MAX) {
            number = 10 * number + (uint64_t)(*digit++ - '0');
        }
        if (*digit != '\r') {
            return at; /* a fraction, below zero, or longer */
        }
        const char *next = digit + 2;
        if (*at == '$') {
            host_ReplyWithStringBuffer(ctx, next, number);
            next += number + 2;
        } else if (*at == '*') {
            host_ReplyWithArray(ctx, (long)number);
        } else {
            host_ReplyWithDouble(ctx, (double)number);
        }
        at = next;
    }
    return at;
}

/* Returns where the next value begins. */
static const char *reply_value(struct host_context *ctx, const char *at, const char *end) {
    char type = *at;
    char copy[TEXT_MAX];
    const char *next;
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

static void reply_values(struct host_context *ctx, const struct buffer *output) {
    const char *at = output->at;
    const char *end = at + output->size;
    while (at < end) {
        at = reply_common(ctx, at, end);
        if (at < end) {
            at = reply_value(ctx, at, end);
        }
    }
}

/* ---- a long reply by way of a command of ours ---- */

/* What the command replies, while it is called. */
static const struct buffer *called_output;

int host_reply_run(struct host_context *ctx, struct host_string **argv, int argc) {
    (void)argv;
    (void)argc;
    if (called_output == NULL) {
        return host_ReplyWithError(ctx, "ERR LB.REPLY is for the module itself");
    }
    reply_values(ctx, called_output);
    return HOST_OK;
}

/* false: nothing was replied. */
static bool reply_by_call(struct host_context *ctx, const struct buffer *output,
                          unsigned protocol) {
    called_output = output;
    struct host_call_reply *reply = host_Call(ctx, HOST_REPLY_COMMAND, protocol == 3 ? "3" : "");
    called_output = NULL;
    if (reply == NULL) {
        return false;
    }
    bool is_replied = host_ReplyWithCallReply(ctx, reply) == HOST_OK;
    host_FreeCallReply(reply);
    return is_replied;
}

void host_reply_read(struct host_context *ctx, const struct buffer *output, unsigned protocol) {
    bool is_long = !output->is_broken && output->size >= CALLED_MIN && output->size <= CALLED_MAX;
    if (!is_long || strchr("*%~", *output->at) == NULL || !reply_by_call(ctx, output, protocol)) {
        host_reply(ctx, output);
    }
}

void host_reply(struct host_context *ctx, const struct buffer *output) {
    if (output->is_broken) {
        host_ReplyWithError(ctx, "OOM out of memory");
        return;
    }
    reply_values(ctx, output);
}
