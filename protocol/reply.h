/* Replies in RESP2 or RESP3, written directly into a client's output buffer.
 *
 * Every function writes one complete value, with one exception: an array, map, set or push writes only
 * its header, and the caller then writes that many values (pairs for a map). In RESP2 a map is
 * an array of twice the length, a set an array, a double a bulk string, a boolean an integer, null
 * a nil bulk, a verbatim string a bulk. Simple strings and errors are sanitised: CR, LF and NUL
 * become spaces, so that an echoed argument cannot break the framing.
 *
 * No function fails; without room the buffer becomes broken (buffer.h). Small values reserve a few
 * bytes more than they write, so a buffer may break just below its limit. */
#ifndef PROTOCOL_REPLY_H
#define PROTOCOL_REPLY_H

#include "codec/buffer.h"
#include "codec/decimal.h"
#include "codec/name.h"

/* Numbers that may exceed 2^53 are bulk strings, whatever the version: CLIENT NUMBERS STRINGS. */
enum { REPLY_STRINGS = 0 };

/* What an error is about, for readers inside the server: they do not read its text. */
enum reply_cause { REPLY_CAUSE_OTHER, REPLY_NO_KEY, REPLY_NO_TAG };

struct reply {
    struct buffer *out;
    uint8_t version;       /* 2 or 3 */
    uint8_t numbers;       /* REPLY_STRINGS, or as the version has them: then equal to it */
    bool is_silent;        /* CLIENT REPLY OFF: nothing is written */
    uint64_t error_count;  /* errors replied so far, including silent ones */
    char error_prefix[32]; /* first word of the last error: "ERR", "WRONGTYPE" (for errorstats) */
    enum reply_cause error_cause;
    uint32_t error_wait_s; /* how long what it refuses is refused; 0: it does not say */
};

/* Will the output be discarded? Writers of long replies stop then. */
static inline bool reply_is_lost(const struct reply *reply) {
    return reply->is_silent || reply->out->is_broken;
}

void reply_init(struct reply *reply, struct buffer *out, uint8_t version);

void reply_ok(struct reply *reply);
void reply_simple(struct reply *reply, const char *text);
/* text begins with the prefix: "ERR syntax error". */
void reply_error(struct reply *reply, const char *text);
/* Add text to the error that was replied when the output had this size: whom it is about. */
void reply_error_extend(struct reply *reply, size_t size_before, const char *text);
__attribute__((format(printf, 2, 3))) void reply_error_format(struct reply *reply,
                                                              const char *format, ...);
void reply_integer(struct reply *reply, int64_t value);
/* An integer that may exceed 2^53. */
void reply_wide_integer(struct reply *reply, int64_t value);
void reply_bulk(struct reply *reply, struct bytes text);
void reply_bulk_text(struct reply *reply, const char *text);
/* An entry of a map: its name and its value. */
static inline void reply_named_text(struct reply *reply, const char *name, const char *text) {
    reply_bulk_text(reply, name);
    reply_bulk_text(reply, text);
}
static inline void reply_named_integer(struct reply *reply, const char *name, int64_t number) {
    reply_bulk_text(reply, name);
    reply_integer(reply, number);
}
__attribute__((format(printf, 2, 3))) void reply_bulk_format(struct reply *reply,
                                                             const char *format, ...);
/* RESP3 "txt:" verbatim; a bulk in RESP2 (INFO, CLIENT LIST, LATENCY DOCTOR). */
void reply_verbatim(struct reply *reply, struct bytes text);
/* A verbatim string whose text the caller appends to reply->out; room for the header is kept, as in
 * reply_array_begin. Write nothing else between the two calls, and nothing at all if
 * reply_is_lost. */
size_t reply_verbatim_begin(struct reply *reply);
void reply_verbatim_end(struct reply *reply, size_t mark);
/* Nil bulk ("$-1", RESP3 "_"), nil array ("*-1", RESP3 "_"). */
void reply_null(struct reply *reply);
void reply_null_array(struct reply *reply);
void reply_boolean(struct reply *reply, bool value); /* RESP2: integer 1 or 0 */
/* A score: exact decimal text; RESP3 double (","), RESP2 and REPLY_STRINGS bulk. */
void reply_decimal(struct reply *reply, struct decimal value, unsigned scale);
/* A score that is already text. */
void reply_decimal_text(struct reply *reply, struct bytes text);
/* A number that is not a score, with at most 17 digits as Redis prints doubles. */
void reply_double(struct reply *reply, double value);
void reply_array(struct reply *reply, uint64_t count);
void reply_map(struct reply *reply, uint64_t pair_count);
void reply_set(struct reply *reply, uint64_t count);
/* The header of a RESP3 push; an array in RESP2. */
void reply_push(struct reply *reply, uint64_t count);

/* Append a copy of out->at[begin .. begin + size - 1], which must be complete values. */
void reply_repeat(struct reply *reply, size_t begin, size_t size);

/* An array whose length is known only at the end; room for the header is kept.
 *
 *     size_t mark = reply_array_begin(reply);  ...values...  reply_array_end(reply, mark, count);
 *
 * Can be nested. Nothing may be dropped from the buffer in between. The end moves the values up to
 * the header, so use reply_array if the length is known. */
size_t reply_array_begin(struct reply *reply);
void reply_array_end(struct reply *reply, size_t mark, uint64_t count);
void reply_map_end(struct reply *reply, size_t mark, uint64_t pair_count);

/* ---- parts of replies ----
 *
 * Written where the caller has made room: no checks, no calls, no loops. Used by reply.c and by loops that write many
 * members. Each reply_put_ function returns the end of its text and may overwrite up to REPLY_PUT_OVERRUN bytes beyond it. */

enum {
    REPLY_PUT_OVERRUN = 8,
    /* Numbers below this take the fast path. */
    REPLY_PUT_SMALL_LIMIT = 1000000000,
    /* Largest bulk copied in words, and room for it with its header and line ends. */
    REPLY_PUT_SHORT_MAX = BYTES_SHORT_MAX,
    REPLY_PUT_SHORT_ROOM = 8 + REPLY_PUT_SHORT_MAX + 2 + REPLY_PUT_OVERRUN,
    /* Room for a member and its score, written by reply_put_next_. */
    REPLY_PUT_SCORED_ROOM = 4 + 7 + NAME_SIZE_MAX + 6 + 9,
    REPLY_PUT_HEADER_ROOM = 1 + 20 + 2 + REPLY_PUT_OVERRUN, /* "*18446744073709551615\r\n" */
    REPLY_PUT_NUMBER_ROOM = 8 + DECIMAL_TEXT_MAX + 2 + REPLY_PUT_OVERRUN,
};

/* The texts of 000 to 999, first digit in the lowest byte. Converting three digits at a time takes
 * half the time of two at a time, and the 4 KiB stay in the cache. */
extern const uint32_t reply_put_three_digits[1000];
_Static_assert(NAME_SIZE_MAX < 100, "there is a header of every packed name");
_Static_assert(7 + NAME_PREFIX_MAX <= 16, "a header and a prefix are two words");

/* A line end and the header of a bulk of 0 to 99 bytes, padded to 8 bytes. One more, so that 8 bytes may be
 * read from the header on. */
extern const char reply_put_headers[101][8];
enum { REPLY_PUT_LINE_END_SIZE = 2, REPLY_PUT_PAIR_SIZE = 4 };

static inline char *reply_put_line_end(char *out) {
    memcpy(out, "\r\n", 2);
    return out + 2;
}

static inline void reply_put_word(char *out, uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(out, &word, 8);
}

/* value is below a million. In 64 bits, as compilers divide 32 bits and then clear the others. */
static inline uint64_t reply_put_six_digits(uint64_t value) {
    uint64_t head = value * 274877907 >> 38; /* value / 1000 */
    /* The rest of 999,999 is 999, too, which cppcheck does not see. */
    /* cppcheck-suppress arrayIndexOutOfBoundsCond */
    return reply_put_three_digits[head] | (uint64_t)reply_put_three_digits[value - head * 1000]
                                              << 24;
}

/* value, below REPLY_PUT_SMALL_LIMIT, without leading zeros; at most 9 bytes. */
static inline char *reply_put_small(char *out, uint32_t value) {
    uint32_t head = value < 1000000 ? value : value / 1000000;
    uint64_t text = reply_put_six_digits(head);
    /* The lowest set bit among the digits ends the leading zeros; the last digit is always kept. */
    unsigned zero_bits = (unsigned)__builtin_ctzll((text & 0x0f0f0f0f0f) | (uint64_t)1 << 40) & ~7U;
    reply_put_word(out, text >> zero_bits);
    out += 6 - zero_bits / 8;
    if (value >= 1000000) {
        reply_put_word(out, reply_put_six_digits(value % 1000000));
        out += 6;
    }
    return out;
}

/* Exactly nine digits. */
static inline char *reply_put_nine_digits(char *out, uint32_t value) {
    reply_put_word(out, reply_put_three_digits[value / 1000000]);
    reply_put_word(out + 3, reply_put_six_digits(value % 1000000));
    return out + 9;
}

/* value, at least REPLY_PUT_SMALL_LIMIT; at most 20 bytes. */
char *reply_put_large(char *out, uint64_t value);

static inline char *reply_put_digits(char *out, uint64_t value) {
    return value < REPLY_PUT_SMALL_LIMIT ? reply_put_small(out, (uint32_t)value)
                                         : reply_put_large(out, value);
}

/* A bulk of at most REPLY_PUT_SHORT_MAX bytes. */
static inline char *reply_put_short_bulk(char *out, struct bytes text) {
    memcpy(out, reply_put_headers[text.size] + REPLY_PUT_LINE_END_SIZE, 8);
    out += 4 + (text.size >= 10);
    return reply_put_line_end(bytes_copy_short(out, text.at, text.size));
}

/* "<mark><value>\r\n": the header of a bulk or an array, or a complete integer. */
static inline char *reply_put_header(char *out, char mark, uint64_t value) {
    if (value < 100) {
        memcpy(out, reply_put_headers[value] + REPLY_PUT_LINE_END_SIZE, 8);
        *out = mark;
        return out + 4 + (value >= 10);
    }
    *out = mark;
    return reply_put_line_end(reply_put_digits(out + 1, value));
}

/* Nil. mark: what a RESP2 client takes it for, a bulk or an array. */
static inline char *reply_put_nothing(char *out, char mark, unsigned version) {
    memcpy(out, "_-1\r\n\0\0", 8);
    if (version == 3) {
        return reply_put_line_end(out + 1);
    }
    *out = mark;
    return out + 5;
}

/* Any bulk. Needs REPLY_PUT_HEADER_ROOM, its bytes and the line end. */
static inline char *reply_put_bulk(char *out, struct bytes text) {
    if (text.size <= REPLY_PUT_SHORT_MAX) {
        return reply_put_short_bulk(out, text);
    }
    out = reply_put_header(out, '$', text.size);
    memcpy(out, text.at, text.size);
    return reply_put_line_end(out + text.size);
}

/* A decimal as a double or as a bulk. */
char *reply_put_decimal(char *out, struct decimal value, unsigned scale, bool is_double);
/* An integer; above 2^63 - 1 a RESP3 big number, or a bulk in RESP2. */
char *reply_put_integer(char *out, struct decimal value, bool is_resp3);

/* A score below REPLY_PUT_SMALL_LIMIT, as a double or as a bulk. */
static inline char *reply_put_small_score(char *out, uint32_t value, bool is_double) {
    if (is_double) {
        *out = ',';
        return reply_put_line_end(reply_put_small(out + 1, value));
    }
    char *end = reply_put_small(out + 4, value);
    memcpy(out, reply_put_headers[end - out - 4] + REPLY_PUT_LINE_END_SIZE, 4);
    return reply_put_line_end(end);
}

/* ---- the values of an array, one after the other ----
 *
 * Each writes the line end of the value before it, and not its own: one store fewer. So the first begins
 * REPLY_PUT_LINE_END_SIZE bytes before the end of the array's header, and reply_put_line_end follows the last.
 *
 *     out -= REPLY_PUT_LINE_END_SIZE; ..reply_put_next_bulk_header, name, reply_put_next_score_header, digits..;
 *     out = reply_put_line_end(out); */

/* The header of a pair, in RESP3. */
static inline char *reply_put_next_pair(char *out) {
    memcpy(out, "\r\n*2", REPLY_PUT_PAIR_SIZE);
    return out + REPLY_PUT_PAIR_SIZE;
}

/* The header of a bulk of at most 99 bytes, which follow. */
static inline char *reply_put_next_bulk_header(char *out, size_t size) {
    memcpy(out, reply_put_headers[size], 8);
    return out + 6 + (size >= 10);
}

/* Numbers of one count of digits: first .. first + size - 1. Those of a sorted range mostly are, and then
 * nothing has to be counted number by number. */
struct reply_put_digits {
    char header[8]; /* reply_put_headers of the count */
    uint32_t first, size;
    uint32_t factor; /* makes six digits of them, or nine, and zeros at the end are not kept */
    uint8_t count;
};
/* By count less one, 1 to 9. */
extern const struct reply_put_digits reply_put_digits_table[9];

static inline bool reply_put_digits_have(const struct reply_put_digits *digits, uint64_t value) {
    return value - digits->first < digits->size;
}

/* The row that has value, which is below REPLY_PUT_SMALL_LIMIT. */
static inline const struct reply_put_digits *reply_put_digits_of(uint64_t value) {
    const struct reply_put_digits *digits = reply_put_digits_table;
    while (!reply_put_digits_have(digits, value)) {
        digits++;
    }
    return digits;
}

enum { REPLY_PUT_SIX_DIGITS = 6, REPLY_PUT_BULK_SCORE = 6, REPLY_PUT_DOUBLE_SCORE = 3 };

/* The header of a score of those numbers, as a double or as a bulk. */
static inline char *reply_put_next_score_header(char *out, const struct reply_put_digits *digits,
                                                bool is_double) {
    memcpy(out, is_double ? "\r\n,\0\0\0\0" : digits->header, 8);
    return out + (is_double ? REPLY_PUT_DOUBLE_SCORE : REPLY_PUT_BULK_SCORE);
}

/* The digits of such a number times its factor. is_wide: more than REPLY_PUT_SIX_DIGITS. Behind them some bytes are
 * overwritten. */
static inline void reply_put_score_digits(char *out, uint32_t scaled, bool is_wide) {
    if (is_wide) {
        reply_put_word(out, reply_put_three_digits[scaled / 1000000]);
        reply_put_word(out + 3, reply_put_six_digits(scaled % 1000000));
    } else {
        reply_put_word(out, reply_put_six_digits(scaled));
    }
}

#endif
