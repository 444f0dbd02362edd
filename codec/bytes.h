/* A borrowed byte string, and integers as text and in little endian. It is not NUL-terminated and may contain any byte
 * value. `at` may be NULL when `size` is 0. */
#ifndef CODEC_BYTES_H
#define CODEC_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "codec/check.h"

struct bytes {
    const char *at;
    size_t size;
};

/* A string literal as bytes. */
#define BYTES(literal) ((struct bytes)BYTES_INIT(literal))
/* The same as a static initialiser. */
#define BYTES_INIT(literal)                                                                        \
    { .at = (literal), .size = sizeof(literal) - 1 }

static inline struct bytes bytes_from_text(const char *text) {
    return (struct bytes){.at = text, .size = strlen(text)};
}

/* Without its first size bytes, of which it has as many. */
static inline struct bytes bytes_behind(struct bytes text, size_t size) {
    return (struct bytes){.at = text.at + size, .size = text.size - size};
}

/* Take the next line from the front of *text, without its line end; false at the end. */
MUST_CHECK static inline bool bytes_take_line(struct bytes *text, struct bytes *line) {
    if (text->size == 0) {
        return false;
    }
    const char *end = (const char *)memchr(text->at, '\n', text->size);
    *line =
        (struct bytes){.at = text->at, .size = end != NULL ? (size_t)(end - text->at) : text->size};
    *text = bytes_behind(*text, line->size + (end != NULL));
    return true;
}

static inline uint64_t bytes_word_difference(const char *a, const char *b) {
    uint64_t word_a;
    uint64_t word_b;
    memcpy(&word_a, a, sizeof word_a);
    memcpy(&word_b, b, sizeof word_b);
    return word_a ^ word_b;
}

#if defined(__SSE2__)
/* Are so many bytes the same, 17 to 32? */
static inline bool bytes_equal_17_to_32(const char *a, const char *b, size_t size) {
    __m128i first, other_first, last, other_last;
    memcpy(&first, a, sizeof first);
    memcpy(&other_first, b, sizeof first);
    memcpy(&last, a + size - 16, sizeof last);
    memcpy(&other_last, b + size - 16, sizeof last);
    return _mm_movemask_epi8(_mm_and_si128(_mm_cmpeq_epi8(first, other_first),
                                           _mm_cmpeq_epi8(last, other_last))) == UINT16_MAX;
}
#endif

/* The part of bytes_equal for more than 32 bytes of equal size. */
bool bytes_equal_long(struct bytes a, struct bytes b);

/* Nearly all names are short, and a call would cost more than comparing them in overlapping
 * words. */
static inline bool bytes_equal(struct bytes a, struct bytes b) {
    size_t size = a.size;
    if (size != b.size) {
        return false;
    }
    if (size < 8) {
        for (size_t i = 0; i < size; i++) {
            if (a.at[i] != b.at[i]) {
                return false;
            }
        }
        return true;
    }
    if (size > 32) {
        return bytes_equal_long(a, b);
    }
#if defined(__SSE2__)
    if (size > 16) {
        return bytes_equal_17_to_32(a.at, b.at, size);
    }
    return (bytes_word_difference(a.at, b.at) |
            bytes_word_difference(a.at + size - 8, b.at + size - 8)) == 0;
#else
    uint64_t difference =
        bytes_word_difference(a.at, b.at) | bytes_word_difference(a.at + size - 8, b.at + size - 8);
    if (size > 16) {
        difference |= bytes_word_difference(a.at + 8, b.at + 8) |
                      bytes_word_difference(a.at + size - 16, b.at + size - 16);
    }
    return difference == 0;
#endif
}

/* Most names and numbers are as short as this. */
enum { BYTES_SHORT_MAX = 64 };

/* Copy up to BYTES_SHORT_MAX bytes in overlapping words, as a call would cost more than the copy. Reads
 * and writes nothing beyond size. Returns the end of the copy. */
static inline char *bytes_copy_short(char *out, const char *from, size_t size) {
    if (size > 16) {
        memcpy(out, from, 16);
        if (size > 32) {
            memcpy(out + 16, from + 16, 16);
            memcpy(out + size - 32, from + size - 32, 16);
        }
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
    return out + size;
}

/* Below 0, 0, above 0: by the bytes, then the shorter one first. */
static inline int bytes_compare(struct bytes a, struct bytes b) {
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size > 0 ? memcmp(a.at, b.at, size) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* Take what is before the next blank, and the blank, from the front of *text. */
static inline struct bytes bytes_take_word(struct bytes *text) {
    const char *blank = text->size > 0 ? (const char *)memchr(text->at, ' ', text->size) : NULL;
    struct bytes word = {.at = text->at,
                         .size = blank != NULL ? (size_t)(blank - text->at) : text->size};
    size_t used = word.size + (blank != NULL);
    *text = (struct bytes){.at = used > 0 ? text->at + used : text->at, .size = text->size - used};
    return word;
}

/* Case-insensitive for ASCII letters only. word may be in either case. */
bool bytes_equal_ignoring_case(struct bytes a, struct bytes b);
/* The same against a C string: bytes_is(argument, "LIMIT"). */
static inline bool bytes_is(struct bytes a, const char *word) {
    /* The compiler knows the size of a literal, and the case usually matches. */
    size_t size = strlen(word);
    return a.size == size &&
           (memcmp(a.at, word, size) == 0 ||
            bytes_equal_ignoring_case(a, (struct bytes){.at = word, .size = size}));
}

/* Is it a name: 1 to size_max letters, digits, '_' and '-'? It needs a letter, so that it cannot be
 * mistaken for a number. */
bool bytes_are_name(struct bytes text, size_t size_max);

/* Lower-case an ASCII letter; every other byte is returned unchanged. */
static inline char bytes_lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
}

/* Of a hexadecimal digit, in either case; -1: it is none. */
static inline int bytes_hex_value(char digit) {
    char lower = bytes_lower(digit);
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10
                                          : -1;
}
/* A byte's two digits, in lower case. */
static inline void bytes_print_hex(unsigned char byte, char out[2]) {
    static const char digits[] = "0123456789abcdef";
    out[0] = digits[byte >> 4];
    out[1] = digits[byte & 15];
}

/* A client's or a user's text made fit for a message: shortened, with '?' for bytes that are not
 * printable ASCII. Terminated. */
enum { BYTES_SHOWN_MAX = 64 };
struct bytes_shown {
    char text[BYTES_SHOWN_MAX + 1];
};
struct bytes_shown bytes_show(struct bytes text);

/* How many letters to add, take away, change or swap with their neighbour make one text of the other: for misspelled
 * words. UINT_MAX: one has more than BYTES_SHOWN_MAX bytes. */
unsigned bytes_distance(struct bytes one, struct bytes other, bool is_case_ignored);

/* For "%.*s": the size, at most size_max. */
static inline int bytes_shown_size(struct bytes text, size_t size_max) {
    return (int)(text.size < size_max ? text.size : size_max);
}

/* Longest text of a 64-bit integer: sign and 20 digits. */
enum { BYTES_INTEGER_TEXT_MAX = 21 };

/* Write the decimal text of value to out (room for BYTES_INTEGER_TEXT_MAX), no terminator;
 * returns its size. */
size_t bytes_print_u64(char *out, uint64_t value);
size_t bytes_print_i64(char *out, int64_t value);

/* As strict as Redis's string2ll: optional '-', no '+', no spaces, no leading zeros (except "0"),
 * in range. Otherwise returns false and leaves *value unchanged. */
MUST_CHECK bool bytes_parse_i64(struct bytes text, int64_t *value);
MUST_CHECK bool bytes_parse_u64(struct bytes text, uint64_t *value);

/* ---- words of a line ----
 *
 * Split as Redis splits inline commands and redis.conf.
 *
 *     board  "weekly:\"eu\":*"  'o\'clock'      ->  [board] [weekly:"eu":*] [o'clock]
 *
 * "Double quotes" take \n \r \t \a \b \xHH and \c, 'single quotes' only \'. Quotes may begin inside
 * a word (a"b c"d is one word), and a closing quote must be followed by a blank or the end of the
 * line. */

enum bytes_word_status { BYTES_WORD_TAKEN, BYTES_WORDS_END, BYTES_WORD_UNBALANCED };

static inline bool bytes_is_blank(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Take the next word from the front of *line. A word without quotes stays in place; another one is
 * decoded to *out, which moves behind it. All words of a line together need at most its size. */
MUST_CHECK enum bytes_word_status bytes_take_quoted(struct bytes *line, char **out,
                                                    struct bytes *word);

/* ---- integers in little endian, as files keep them, at any address ---- */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { BYTES_ARE_SWAPPED = 1 };
#else
enum { BYTES_ARE_SWAPPED = 0 };
#endif

static inline uint32_t bytes_order_32(uint32_t value) {
    return BYTES_ARE_SWAPPED ? __builtin_bswap32(value) : value;
}

static inline uint64_t bytes_order_64(uint64_t value) {
    return BYTES_ARE_SWAPPED ? __builtin_bswap64(value) : value;
}

static inline void bytes_put_u32(char *at, uint32_t value) {
    value = bytes_order_32(value);
    memcpy(at, &value, sizeof value);
}

static inline void bytes_put_u64(char *at, uint64_t value) {
    value = bytes_order_64(value);
    memcpy(at, &value, sizeof value);
}

static inline uint32_t bytes_get_u32(const char *at) {
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return bytes_order_32(value);
}

static inline uint64_t bytes_get_u64(const char *at) {
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return bytes_order_64(value);
}

/* 48 bits. */
static inline void bytes_put_u48(char *at, uint64_t value) {
    bytes_put_u32(at, (uint32_t)value);
    at[4] = (char)(value >> 32);
    at[5] = (char)(value >> 40);
}

static inline uint64_t bytes_get_u48(const char *at) {
    return bytes_get_u32(at) | (uint64_t)(uint8_t)at[4] << 32 | (uint64_t)(uint8_t)at[5] << 40;
}

#endif
