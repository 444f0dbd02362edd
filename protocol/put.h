/* Parts of replies, written where the caller has made room: no checks, no calls, no loops. Used by
 * protocol/reply.c and by loops that write many members. Each put_ function returns the end of its
 * text and may overwrite up to PUT_OVERRUN bytes beyond it. */
#ifndef PROTOCOL_PUT_H
#define PROTOCOL_PUT_H

#include "codec/decimal.h"
#include "codec/name.h"

enum {
    PUT_OVERRUN = 8,
    /* Numbers below this take the fast path. */
    PUT_SMALL_LIMIT = 1000000000,
    /* Largest bulk copied in words, and room for it with its header and line ends. */
    PUT_SHORT_MAX = BYTES_SHORT_MAX,
    PUT_SHORT_ROOM = 8 + PUT_SHORT_MAX + 2 + PUT_OVERRUN,
    /* Room for a member and its score, written by put_next_. */
    PUT_SCORED_ROOM = 4 + 7 + NAME_SIZE_MAX + 6 + 9,
    PUT_HEADER_ROOM = 1 + 20 + 2 + PUT_OVERRUN, /* "*18446744073709551615\r\n" */
    PUT_NUMBER_ROOM = 8 + DECIMAL_TEXT_MAX + 2 + PUT_OVERRUN,
};

/* The texts of 000 to 999, first digit in the lowest byte. Converting three digits at a time takes
 * half the time of two at a time, and the 4 KiB stay in the cache. */
extern const uint32_t put_three_digits[1000];
_Static_assert(NAME_SIZE_MAX < 100, "there is a header of every packed name");
_Static_assert(7 + NAME_PREFIX_MAX <= 16, "a header and a prefix are two words");

/* A line end and the header of a bulk of 0 to 99 bytes, padded to 8 bytes. One more, so that 8 bytes may be
 * read from the header on. */
extern const char put_headers[101][8];
enum { PUT_LINE_END_SIZE = 2, PUT_PAIR_SIZE = 4 };

static inline char *put_line_end(char *out) {
    memcpy(out, "\r\n", 2);
    return out + 2;
}

static inline void put_word(char *out, uint64_t word) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(out, &word, 8);
}

/* value is below a million. In 64 bits, as compilers divide 32 bits and then clear the others. */
static inline uint64_t put_six_digits(uint64_t value) {
    uint64_t head = value * 274877907 >> 38; /* value / 1000 */
    /* The rest of 999,999 is 999, too, which cppcheck does not see. */
    /* cppcheck-suppress arrayIndexOutOfBoundsCond */
    return put_three_digits[head] | (uint64_t)put_three_digits[value - head * 1000] << 24;
}

/* value, below PUT_SMALL_LIMIT, without leading zeros; at most 9 bytes. */
static inline char *put_small(char *out, uint32_t value) {
    uint32_t head = value < 1000000 ? value : value / 1000000;
    uint64_t text = put_six_digits(head);
    /* The lowest set bit among the digits ends the leading zeros; the last digit is always kept. */
    unsigned zero_bits = (unsigned)__builtin_ctzll((text & 0x0f0f0f0f0f) | (uint64_t)1 << 40) & ~7U;
    put_word(out, text >> zero_bits);
    out += 6 - zero_bits / 8;
    if (value >= 1000000) {
        put_word(out, put_six_digits(value % 1000000));
        out += 6;
    }
    return out;
}

/* Exactly nine digits. */
static inline char *put_nine_digits(char *out, uint32_t value) {
    put_word(out, put_three_digits[value / 1000000]);
    put_word(out + 3, put_six_digits(value % 1000000));
    return out + 9;
}

/* value, at least PUT_SMALL_LIMIT; at most 20 bytes. */
char *put_large(char *out, uint64_t value);

static inline char *put_digits(char *out, uint64_t value) {
    return value < PUT_SMALL_LIMIT ? put_small(out, (uint32_t)value) : put_large(out, value);
}

/* A bulk of at most PUT_SHORT_MAX bytes. */
static inline char *put_short_bulk(char *out, struct bytes text) {
    memcpy(out, put_headers[text.size] + PUT_LINE_END_SIZE, 8);
    out += 4 + (text.size >= 10);
    return put_line_end(bytes_copy_short(out, text.at, text.size));
}

/* "<mark><value>\r\n": the header of a bulk or an array, or a complete integer. */
static inline char *put_header(char *out, char mark, uint64_t value) {
    if (value < 100) {
        memcpy(out, put_headers[value] + PUT_LINE_END_SIZE, 8);
        *out = mark;
        return out + 4 + (value >= 10);
    }
    *out = mark;
    return put_line_end(put_digits(out + 1, value));
}

/* Nil. mark: what a RESP2 client takes it for, a bulk or an array. */
static inline char *put_nothing(char *out, char mark, unsigned version) {
    memcpy(out, "_-1\r\n\0\0", 8);
    if (version == 3) {
        return put_line_end(out + 1);
    }
    *out = mark;
    return out + 5;
}

/* Any bulk. Needs PUT_HEADER_ROOM, its bytes and the line end. */
static inline char *put_bulk(char *out, struct bytes text) {
    if (text.size <= PUT_SHORT_MAX) {
        return put_short_bulk(out, text);
    }
    out = put_header(out, '$', text.size);
    memcpy(out, text.at, text.size);
    return put_line_end(out + text.size);
}

/* A decimal as a double or as a bulk. */
char *put_decimal(char *out, struct decimal value, unsigned scale, bool is_double);
/* An integer; above 2^63 - 1 a RESP3 big number, or a bulk in RESP2. */
char *put_integer(char *out, struct decimal value, bool is_resp3);

/* A score below PUT_SMALL_LIMIT, as a double or as a bulk. */
static inline char *put_small_score(char *out, uint32_t value, bool is_double) {
    if (is_double) {
        *out = ',';
        return put_line_end(put_small(out + 1, value));
    }
    char *end = put_small(out + 4, value);
    memcpy(out, put_headers[end - out - 4] + PUT_LINE_END_SIZE, 4);
    return put_line_end(end);
}

/* ---- the values of an array, one after the other ----
 *
 * Each writes the line end of the value before it, and not its own: one store fewer. So the first begins
 * PUT_LINE_END_SIZE bytes before the end of the array's header, and put_line_end follows the last.
 *
 *     out -= PUT_LINE_END_SIZE; ..put_next_bulk_header, name, put_next_score_header, digits..;
 *     out = put_line_end(out); */

/* The header of a pair, in RESP3. */
static inline char *put_next_pair(char *out) {
    memcpy(out, "\r\n*2", PUT_PAIR_SIZE);
    return out + PUT_PAIR_SIZE;
}

/* The header of a bulk of at most 99 bytes, which follow. */
static inline char *put_next_bulk_header(char *out, size_t size) {
    memcpy(out, put_headers[size], 8);
    return out + 6 + (size >= 10);
}

/* Numbers of one count of digits: first .. first + size - 1. Those of a sorted range mostly are, and then
 * nothing has to be counted number by number. */
struct put_digits {
    char header[8]; /* put_headers of the count */
    uint32_t first, size;
    uint32_t factor; /* makes six digits of them, or nine, and zeros at the end are not kept */
    uint8_t count;
};
/* By count less one, 1 to 9. */
extern const struct put_digits put_digits_table[9];

static inline bool put_digits_have(const struct put_digits *digits, uint64_t value) {
    return value - digits->first < digits->size;
}

/* The row that has value, which is below PUT_SMALL_LIMIT. */
static inline const struct put_digits *put_digits_of(uint64_t value) {
    const struct put_digits *digits = put_digits_table;
    while (!put_digits_have(digits, value)) {
        digits++;
    }
    return digits;
}

enum { PUT_SIX_DIGITS = 6, PUT_BULK_SCORE = 6, PUT_DOUBLE_SCORE = 3 };

/* The header of a score of those numbers, as a double or as a bulk. */
static inline char *put_next_score_header(char *out, const struct put_digits *digits,
                                          bool is_double) {
    memcpy(out, is_double ? "\r\n,\0\0\0\0" : digits->header, 8);
    return out + (is_double ? PUT_DOUBLE_SCORE : PUT_BULK_SCORE);
}

/* The digits of such a number times its factor. is_wide: more than PUT_SIX_DIGITS. Behind them some bytes are
 * overwritten. */
static inline void put_score_digits(char *out, uint32_t scaled, bool is_wide) {
    if (is_wide) {
        put_word(out, put_three_digits[scaled / 1000000]);
        put_word(out + 3, put_six_digits(scaled % 1000000));
    } else {
        put_word(out, put_six_digits(scaled));
    }
}

#endif
