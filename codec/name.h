/* The form in which a board keeps a member's name. Names of a few widespread kinds are packed, two digits to a
 * byte, or four letters to three. Every name has exactly one form, so two names are equal if and only if their
 * codes and stored bytes are.
 *
 *     code          the name                                   stored bytes
 *     0 .. 127      any other of code bytes                    the name
 *     128 + n - 1   2n lower-case hexadecimal digits           n <= 32: two digits each, the first in the
 *                                                              high half
 *     160 + n - 1   2n - 1 decimal digits                      n <= 10: the same, and 15 in the last half
 *     160 + 15      a UUID in lower case                       16: its digits
 *     192 + n - 1   a prefix (name.c) and one of these three   n: which of both in a byte, then as above
 *                   letters, and maybe an ending like that     n: which ending in a byte, then six bits a letter
 *                   of an e-mail address (name.c)
 *     255           a name of 128 bytes or more                the name, somewhere else */
#ifndef CODEC_NAME_H
#define CODEC_NAME_H

#include "codec/bytes.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#else
void name_write_16_in_words(char *to, uint64_t bytes);
void name_write_uuid_in_words(char *to, const char *from);
void name_write_letters_16_in_words(uint64_t first, uint64_t second, char *to);
#endif

enum {
    NAME_TEXT_MAX = 127, /* largest name that is stored as it is, in its place */
    NAME_LONG = 255,
    NAME_FORM_MAX = 32, /* most stored bytes of a packed name */
    NAME_LEAD = 8,
    NAME_SIZE_MAX = 72, /* above that of any packed name's text */
    NAME_OVERRUN = 16,  /* bytes that name_write may write behind its text */
    NAME_TEXT_ROOM = NAME_SIZE_MAX + NAME_OVERRUN,
};

/* A name as it is stored, or as it is sought; borrowed. */
struct name {
    const char *at; /* packed: NAME_LEAD bytes before it may be read, too */
    uint32_t size;  /* of what is stored; a long name's whole text */
    uint8_t code;
};

/* A name's form without its text. */
struct packed_name {
    char lead[NAME_LEAD];
    char packed[NAME_FORM_MAX + 7]; /* the stored bytes of a packed name, and what packing writes */
    uint8_t code;
};

static inline bool name_is_packed(uint8_t code) {
    return code > NAME_TEXT_MAX && code != NAME_LONG;
}

/* Stored bytes of a name with this code, which is not NAME_LONG. */
static inline uint32_t name_stored_size(uint8_t code) {
    return code > NAME_TEXT_MAX ? (code & 31U) + 1 : code;
}

static inline uint8_t name_text_code(size_t size) {
    return size <= NAME_TEXT_MAX ? (uint8_t)size : (uint8_t)NAME_LONG;
}

/* The name's form; what is stored is in form, or the text itself. */
void name_pack(struct bytes text, struct packed_name *form);

/* The name of this text and form; borrowed from both. */
static inline struct name name_from(struct bytes text, const struct packed_name *form) {
    bool is_packed = name_is_packed(form->code);
    return (struct name){
        .at = is_packed ? form->packed : text.at,
        .size = is_packed ? name_stored_size(form->code) : (uint32_t)text.size,
        .code = form->code,
    };
}

/* ---- packed names, digit by digit ---- */

enum {
    NAME_HEX_CODE = 128,
    NAME_ODD_CODE = 160,
    NAME_UUID_CODE = 160 + 15,
    NAME_PREFIX_CODE = 192,
    NAME_UUID_TEXT = 36,
    NAME_PREFIX_MAX = 8,
    NAME_PREFIXES = 64,
    NAME_NO_PREFIX = NAME_PREFIXES - 1, /* an empty one */
};

/* What follows a prefix; in the byte that says which one it is, times NAME_PREFIXES. Letters have no prefix: there it
 * says which ending follows them. */
enum name_rest { NAME_REST_EVEN, NAME_REST_ODD, NAME_REST_UUID, NAME_REST_LETTERS };

struct name_prefix {
    char text[NAME_PREFIX_MAX];
    uint8_t size;
};
extern const struct name_prefix name_prefixes[NAME_PREFIXES];

/* A packed name that is not of letters, without its prefix. */
struct name_digits {
    const struct name_prefix *prefix;
    const char *end; /* of the stored bytes */
    uint32_t stored; /* bytes */
    enum name_rest rest;
};

static inline struct name_digits name_digits_of(struct name name) {
    bool has_prefix = name.code >= NAME_PREFIX_CODE;
    unsigned which = has_prefix ? (uint8_t)name.at[0] : NAME_NO_PREFIX;
    unsigned rest = has_prefix                    ? which / NAME_PREFIXES
                    : name.code == NAME_UUID_CODE ? (unsigned)NAME_REST_UUID
                                                  : name.code >= NAME_ODD_CODE;
    return (struct name_digits){
        .prefix = &name_prefixes[which % NAME_PREFIXES],
        .end = name.at + name.size,
        .stored = name.size - has_prefix,
        .rest = (enum name_rest)rest,
    };
}

/* Size of its text. */
static inline size_t name_digits_size(const struct name_digits *digits) {
    return digits->prefix->size +
           (digits->rest == NAME_REST_UUID ? NAME_UUID_TEXT : 2 * digits->stored - digits->rest);
}

/* Sixteen digits. */
#if defined(__SSE2__)
typedef __m128i name_16;
#else
typedef struct {
    char text[16];
} name_16;
#endif

#if defined(__SSE2__)
/* The texts of sixteen values below 16. */
static inline __m128i name_digits_text(__m128i values) {
    __m128i letters = _mm_cmpgt_epi8(values, _mm_set1_epi8(9));
    __m128i text = _mm_add_epi8(values, _mm_set1_epi8('0'));
    return _mm_add_epi8(text, _mm_and_si128(letters, _mm_set1_epi8('a' - '0' - 10)));
}
#endif

/* The digits of eight bytes each, the first in the lowest one, from the bit shift on. */
static inline void name_unpack_two(uint64_t first, uint64_t second, unsigned shift,
                                   name_16 *first_text, name_16 *second_text) {
#if defined(__SSE2__)
    const __m128i half = _mm_set1_epi8(15);
    __m128i packed = _mm_unpacklo_epi64(_mm_cvtsi64_si128((long long)first),
                                        _mm_cvtsi64_si128((long long)second));
    packed = _mm_srl_epi64(packed, _mm_cvtsi32_si128((int)shift));
    __m128i high = name_digits_text(_mm_and_si128(_mm_srli_epi16(packed, 4), half));
    __m128i low = name_digits_text(_mm_and_si128(packed, half));
    *first_text = _mm_unpacklo_epi8(high, low);
    *second_text = _mm_unpackhi_epi8(high, low);
#else
    name_write_16_in_words(first_text->text, first >> shift);
    name_write_16_in_words(second_text->text, second >> shift);
#endif
}

/* The same of one, written. */
static inline void name_write_16(char *to, uint64_t bytes) {
#if defined(__SSE2__)
    const __m128i half = _mm_set1_epi8(15);
    __m128i packed = _mm_cvtsi64_si128((long long)bytes);
    __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), half);
    __m128i text = name_digits_text(_mm_unpacklo_epi8(high, _mm_and_si128(packed, half)));
    memcpy(to, &text, sizeof text);
#else
    name_write_16_in_words(to, bytes);
#endif
}

/* The text of a UUID of these sixteen bytes. Writes some bytes more. */
static inline void name_write_uuid(char *to, const char *from) {
#if defined(__SSE2__)
    __m128i first, second;
    name_unpack_two(bytes_get_u64(from), bytes_get_u64(from + 8), 0, &first, &second);
    uint64_t middle = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(first, first));
    uint64_t next = (uint64_t)_mm_cvtsi128_si64(second);
    __m128i last = _mm_srli_si128(second, 4);
    memcpy(to, &first, 8);
    to[8] = '-';
    bytes_put_u32(to + 9, (uint32_t)middle);
    to[13] = '-';
    bytes_put_u32(to + 14, (uint32_t)(middle >> 32));
    to[18] = '-';
    bytes_put_u32(to + 19, (uint32_t)next);
    to[23] = '-';
    memcpy(to + 24, &last, sizeof last);
#else
    name_write_uuid_in_words(to, from);
#endif
}

/* The text of a UUID, or of more than eight stored bytes, which starts at to; with prefix. */
void name_write_long(const struct name_digits *digits, char *to);

/* Write its text. Writes up to NAME_OVERRUN bytes more. */
static inline void name_digits_write(const struct name_digits *digits, char *to) {
    if (digits->stored > 8) {
        name_write_long(digits, to);
        return;
    }
    memcpy(to, digits->prefix->text, NAME_PREFIX_MAX);
    name_write_16(to + digits->prefix->size,
                  bytes_get_u64(digits->end - 8) >> (64 - 8 * digits->stored));
}

/* ---- letters ---- */

enum { NAME_ENDING_MAX = 15, NAME_ENDINGS = 32 };
struct name_ending {
    char text[NAME_ENDING_MAX];
    uint8_t size;
};
extern const struct name_ending name_endings[NAME_ENDINGS];

/* Of a packed name. */
static inline bool name_has_letters(struct name name) {
    return name.code >= NAME_PREFIX_CODE &&
           (uint8_t)name.at[0] >= NAME_REST_LETTERS * NAME_PREFIXES;
}

/* What follows letters that are stored here, and how many there are in so many bytes. */
static inline const struct name_ending *name_ending_in(const char *at) {
    return &name_endings[(uint8_t)at[0] % NAME_ENDINGS];
}

static inline size_t name_count_letters(const char *at, size_t stored) {
    /* 43 / 32 is 8 / 6, for up to NAME_FORM_MAX bytes. */
    return (stored - 1) * 43 / 32 - ((uint8_t)at[0] / NAME_ENDINGS % 2);
}

static inline size_t name_letters_size(const char *at, size_t stored) {
    return name_count_letters(at, stored) + name_ending_in(at)->size;
}

/* Sixteen letters of twelve bytes, of which the second six are in another word. */
static inline void name_write_letters_16(uint64_t first, uint64_t second, char *to) {
#if defined(__SSE2__)
    __m128i all = _mm_set_epi64x((long long)second, (long long)first);
    all = _mm_or_si128(_mm_and_si128(all, _mm_set1_epi64x(0xffffff)),
                       _mm_and_si128(_mm_slli_epi64(all, 8), _mm_set1_epi64x(0x00ffffff00000000)));
    all = _mm_or_si128(_mm_and_si128(all, _mm_set1_epi32(0x00000fff)),
                       _mm_and_si128(_mm_slli_epi32(all, 4), _mm_set1_epi32(0x0fff0000)));
    all = _mm_or_si128(_mm_and_si128(all, _mm_set1_epi16(0x003f)),
                       _mm_and_si128(_mm_slli_epi16(all, 2), _mm_set1_epi16(0x3f00)));
    /* Those above 32 and below 63 are the least of signed bytes, if 33 was -128. */
    __m128i is_behind =
        _mm_cmpgt_epi8(_mm_set1_epi8(63 - 33 - 128), _mm_add_epi8(all, _mm_set1_epi8(128 - 33)));
    all = _mm_add_epi8(_mm_add_epi8(all, _mm_set1_epi8(' ')),
                       _mm_and_si128(is_behind, _mm_set1_epi8(32)));
    memcpy(to, &all, sizeof all);
#else
    name_write_letters_16_in_words(first, second, to);
#endif
}

/* Does one step write all of them? */
static inline bool name_is_short_letters(size_t stored) {
    return stored - 9 <= 4;
}

/* The text of such letters, without its ending. */
static inline void name_write_short_letters(const char *at, size_t stored, char *to) {
    name_write_letters_16(bytes_get_u64(at + 1),
                          bytes_get_u64(at + stored - 8) >> 8 * (15 - stored), to);
}

/* Of a code: do two, at most, if it is of letters? */
static inline bool name_is_few_letters(uint8_t code) {
    return code >= NAME_PREFIX_CODE && code <= NAME_PREFIX_CODE + 25 - 1;
}

/* The text of few letters with its ending, which begins behind so many. Writes up to NAME_OVERRUN bytes more. Calls nothing:
 * it is for loops. */
__attribute__((always_inline)) static inline void
name_write_few_letters(const char *at, size_t stored, size_t count,
                       const struct name_ending *ending, char *to) {
    if (name_is_short_letters(stored)) {
        name_write_short_letters(at, stored, to);
    } else if (stored < 9) {
        uint64_t all = bytes_get_u64(at + stored - 8) >> (72 - 8 * stored);
        name_write_letters_16(all, all >> 48, to);
    } else {
        /* What is above the bits of a word's bytes is not seen. */
        unsigned left = (unsigned)stored - 13;
        uint64_t last = bytes_get_u64(at + stored - 8);
        name_write_letters_16(bytes_get_u64(at + 1), bytes_get_u64(at + 7), to);
        name_write_letters_16(left >= 8 ? bytes_get_u64(at + 13) : last >> (64 - 8 * left),
                              last >> ((112 - 8 * left) & 63), to + 16);
    }
    memcpy(to + count, ending, sizeof *ending);
}

/* The text of any letters with its ending; its size. As above. */
size_t name_letters_write(const char *at, size_t stored, char *to);
/* Is this their text? */
bool name_letters_are(const char *at, size_t stored, struct bytes text);

/* ---- any name ---- */

/* Write a packed name's text; its size. Writes up to NAME_OVERRUN bytes more. */
static inline size_t name_write(struct name name, char *to) {
    if (name_has_letters(name)) {
        return name_letters_write(name.at, name.size, to);
    }
    struct name_digits digits = name_digits_of(name);
    name_digits_write(&digits, to);
    return name_digits_size(&digits);
}

/* The name's text: in room if it is packed, else where it is stored. */
static inline struct bytes name_text(struct name name, char room[NAME_TEXT_ROOM]) {
    if (!name_is_packed(name.code)) {
        return (struct bytes){.at = name.at, .size = name.size};
    }
    return (struct bytes){.at = room, .size = name_write(name, room)};
}

/* Size of the name's text, without writing it. */
static inline size_t name_size(struct name name) {
    if (!name_is_packed(name.code)) {
        return name.size;
    }
    if (name_has_letters(name)) {
        return name_letters_size(name.at, name.size);
    }
    struct name_digits digits = name_digits_of(name);
    return name_digits_size(&digits);
}

/* The stored bytes: equal ones with equal codes are of equal names. */
static inline struct bytes name_stored(struct name name) {
    return (struct bytes){.at = name.at, .size = name.size};
}

/* Is this its text? Inlined where names are looked up: a call would cost as much as most of it. */
__attribute__((always_inline)) static inline bool name_is(struct name name, struct bytes text) {
    char room[NAME_TEXT_ROOM];
    if (!name_is_packed(name.code)) {
        return bytes_equal(name_stored(name), text);
    }
    if (name_has_letters(name)) {
        return name_letters_are(name.at, name.size, text);
    }
    struct name_digits digits = name_digits_of(name);
    if (name_digits_size(&digits) != text.size) {
        return false;
    }
    name_digits_write(&digits, room);
    return bytes_equal((struct bytes){.at = room, .size = text.size}, text);
}

static inline bool name_equal(struct name a, struct name b) {
    return a.code == b.code && bytes_equal(name_stored(a), name_stored(b));
}

#endif
