/* Eight digits are packed at a time, in a word, and sixteen unpacked; no branch depends on a digit. */
#include "codec/name.h"

enum {
    HEX_MAX = 2 * NAME_FORM_MAX, /* digits */
    ODD_MAX = 19,
    BEHIND_MAX = HEX_MAX - 4, /* digits behind a prefix */
    HEX_BEHIND_MIN = 16,      /* hexadecimal ones: fewer may be a word */
    LETTERS_MAX = 41,         /* in NAME_FORM_MAX - 1 bytes */
    LETTERS_SAVED_MIN = 4, /* bytes; to save fewer is not worth the time it takes to write them */
    ENDING_BEHIND_THREE = NAME_ENDINGS, /* added where three letters are left, not four */
};
_Static_assert(LETTERS_MAX + NAME_ENDING_MAX <= NAME_SIZE_MAX, "so has that of letters");

_Static_assert(NAME_PREFIX_MAX + HEX_MAX <= NAME_SIZE_MAX, "any packed name's text has room");

#define EACH(byte)   (UINT64_C(0x0101010101010101) * (byte))
#define EACH16(word) (UINT64_C(0x0001000100010001) * (word))
#define EACH32(word) (UINT64_C(0x0000000100000001) * (word))

/* ---- words ---- */

/* Up to eight bytes at an offset of a text, 0 behind its end. */
static inline uint64_t name_load(struct bytes text, size_t offset) {
    size_t left = text.size - offset;
    if (left >= 8) {
        return bytes_get_u64(text.at + offset);
    }
    if (left == 0) {
        return 0;
    }
    if (text.size >= 8) {
        return bytes_get_u64(text.at + text.size - 8) >> (64 - 8 * left);
    }
    /* Two words that overlap, or three bytes that do. */
    if (left >= 4) {
        return bytes_get_u32(text.at) | (uint64_t)bytes_get_u32(text.at + left - 4)
                                            << (8 * left - 32);
    }
    size_t half = left / 2;
    return (uint8_t)text.at[0] | (uint64_t)(uint8_t)text.at[half] << 8 * half |
           (uint64_t)(uint8_t)text.at[left - 1] << (8 * left - 8);
}

/* ---- digits ---- */

/* Eight characters to the values of hexadecimal digits. letters: a bit for each that is no decimal one. false:
 * not all are digits. */
static inline bool name_values(uint64_t text, uint64_t *values, uint64_t *letters) {
    /* The highest bit of each byte: it is at least '0', above '9', and so on. */
    uint64_t from_0 = text + EACH(0x80 - '0');
    uint64_t above_9 = text + EACH(0x80 - '9' - 1);
    uint64_t from_a = text + EACH(0x80 - 'a');
    uint64_t above_f = text + EACH(0x80 - 'f' - 1);
    *letters = from_a & ~above_f & EACH(0x80);
    uint64_t digits = from_0 & ~above_9 & EACH(0x80);
    *values = (text & EACH(15)) + (*letters >> 7) * 9;
    return (text & EACH(0x80)) == 0 && (*letters | digits) == EACH(0x80);
}

/* Eight values to four bytes. */
static inline uint32_t name_join(uint64_t values) {
    values = (values << 4 | values >> 8) & UINT64_C(0x00ff00ff00ff00ff);
    values = (values | values >> 8) & UINT64_C(0x0000ffff0000ffff);
    return (uint32_t)(values | values >> 16);
}

/* Digits; behind an odd number 15 follows. Writes four bytes for every eight begun. has_letters: some are not
 * decimal. false: not all are digits. */
static inline bool name_pack_digits(struct bytes text, char *to, bool *has_letters) {
    uint64_t all_letters = 0;
    for (size_t offset = 0; offset < text.size; offset += 8, to += 4) {
        size_t left = text.size - offset;
        uint64_t word = name_load(text, offset);
        uint64_t values;
        uint64_t letters;
        if (left < 8) {
            word |= EACH('0') << 8 * left;
        }
        if (!name_values(word, &values, &letters)) {
            return false;
        }
        if (left < 8) {
            values |= UINT64_C(15) << 8 * left; /* the second half of the last byte, or behind it */
        }
        all_letters |= letters;
        bytes_put_u32(to, name_join(values));
    }
    *has_letters = all_letters != 0;
    return true;
}

#if !defined(__SSE2__)
void name_write_16_in_words(char *to, uint64_t bytes) {
    for (int i = 0; i < 2; i++, bytes >>= 32, to += 8) {
        uint64_t values = bytes & UINT32_MAX;
        values = (values | values << 16) & UINT64_C(0x0000ffff0000ffff);
        values = (values | values << 8) & UINT64_C(0x00ff00ff00ff00ff);
        values = (values >> 4 | values << 8) & EACH(15);
        uint64_t letters = (values + EACH(0x80 - 10)) >> 7 & EACH(1);
        bytes_put_u64(to, values + EACH('0') + letters * ('a' - '0' - 10));
    }
}
#endif

/* ---- UUIDs ---- */

static bool name_pack_uuid(const char *text, char *to) {
    char digits[32];
    bool has_letters;
    memcpy(digits, text, 8);
    memcpy(digits + 8, text + 9, 4);
    memcpy(digits + 12, text + 14, 4);
    memcpy(digits + 16, text + 19, 4);
    memcpy(digits + 20, text + 24, 12);
    return text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' &&
           name_pack_digits((struct bytes){.at = digits, .size = sizeof digits}, to, &has_letters);
}

#if !defined(__SSE2__)
void name_write_uuid_in_words(char *to, const char *from) {
    char digits[32];
    name_write_16(digits, bytes_get_u64(from));
    name_write_16(digits + 16, bytes_get_u64(from + 8));
    memcpy(to, digits, 8);
    to[8] = '-';
    memcpy(to + 9, digits + 8, 4);
    to[13] = '-';
    memcpy(to + 14, digits + 12, 4);
    to[18] = '-';
    memcpy(to + 19, digits + 16, 4);
    to[23] = '-';
    memcpy(to + 24, digits + 20, 12);
}
#endif

/* ---- prefixes ---- */

#define PREFIX(literal)                                                                            \
    { "" literal, sizeof(literal) - 1 }

/* By their first character. A name's form is in no file, so this list may change. */
const struct name_prefix name_prefixes[NAME_PREFIXES] = {
    PREFIX("0x"),       PREFIX("G"),       PREFIX("Guest"),   PREFIX("P"),       PREFIX("Player"),
    PREFIX("Player_"),  PREFIX("U"),       PREFIX("User"),    PREFIX("User_"),   PREFIX("a:"),
    PREFIX("account:"), PREFIX("bot"),     PREFIX("c:"),      PREFIX("char:"),   PREFIX("clan:"),
    PREFIX("guest"),    PREFIX("guest-"),  PREFIX("guest:"),  PREFIX("guest_"),  PREFIX("guild:"),
    PREFIX("id:"),      PREFIX("item:"),   PREFIX("m:"),      PREFIX("member"),  PREFIX("member-"),
    PREFIX("member:"),  PREFIX("member_"), PREFIX("p"),       PREFIX("p:"),      PREFIX("p_"),
    PREFIX("player"),   PREFIX("player-"), PREFIX("player:"), PREFIX("player_"), PREFIX("post:"),
    PREFIX("team:"),    PREFIX("tg:"),     PREFIX("u"),       PREFIX("u:"),      PREFIX("u_"),
    PREFIX("uid:"),     PREFIX("user"),    PREFIX("user-"),   PREFIX("user:"),   PREFIX("user_"),
};
/* For each character: which prefixes begin with it. */
struct name_range {
    uint8_t first, end;
};
static const struct name_range name_ranges[UINT8_MAX + 1] = {
    ['0'] = {0, 1},   ['G'] = {1, 3},   ['P'] = {3, 6},   ['U'] = {6, 9},   ['a'] = {9, 11},
    ['b'] = {11, 12}, ['c'] = {12, 15}, ['g'] = {15, 20}, ['i'] = {20, 22}, ['m'] = {22, 27},
    ['p'] = {27, 35}, ['t'] = {35, 37}, ['u'] = {37, 45},
};

/* An even number of digits, an odd one of decimal digits, or a UUID; its code, or 0. Of fewer than hex_min digits
 * none is a letter. */
static inline uint8_t name_pack_rest(struct bytes text, size_t hex_min, char *to) {
    bool has_letters;
    if (text.size == NAME_UUID_TEXT && text.at[8] == '-') {
        return name_pack_uuid(text.at, to) ? NAME_UUID_CODE : 0;
    }
    bool is_odd = text.size % 2 == 1;
    if (text.size > (is_odd ? ODD_MAX : HEX_MAX) || !name_pack_digits(text, to, &has_letters) ||
        (has_letters && (is_odd || text.size < hex_min))) {
        return 0;
    }
    return (uint8_t)((is_odd ? NAME_ODD_CODE : NAME_HEX_CODE) + (text.size + 1) / 2 - 1);
}

static inline bool name_is_digit(char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

/* Pack what is behind a prefix; its code, or 0. */
static uint8_t name_pack_behind(struct bytes text, uint8_t prefix, char *to) {
    uint8_t code = name_is_digit(text.at[0]) && text.size <= BEHIND_MAX
                       ? name_pack_rest(text, HEX_BEHIND_MIN, to + 1)
                       : 0;
    if (code == 0) {
        return 0;
    }
    enum name_rest rest = code == NAME_UUID_CODE  ? NAME_REST_UUID
                          : code >= NAME_ODD_CODE ? NAME_REST_ODD
                                                  : NAME_REST_EVEN;
    to[0] = (char)(prefix + NAME_PREFIXES * rest);
    return (uint8_t)(NAME_PREFIX_CODE + name_stored_size(code));
}

/* ---- letters ----
 *
 *     nora.lopez+17@gmail.com     a byte for @gmail.com, then three bytes for each four of: nora .lop ez+1 7
 *
 * The 64 letters are, in this order, ' ' to '?', '@', 'a' to '~', and '_'. The first one of four is in the lowest bits.
 * Three take as many bytes as four do: a bit beside the ending says that they are three. */

/* Widespread ones first. A name's form is in no file, so this list may change. */
#define ENDING(literal)                                                                            \
    { "" literal, sizeof(literal) - 1 }
const struct name_ending name_endings[NAME_ENDINGS] = {
    ENDING(""),
    ENDING("@gmail.com"),
    ENDING("@hotmail.com"),
    ENDING("@yahoo.com"),
    ENDING("@outlook.com"),
    ENDING("@icloud.com"),
    ENDING("@qq.com"),
    ENDING("@163.com"),
    ENDING("@mail.ru"),
    ENDING("@aol.com"),
    ENDING("@live.com"),
    ENDING("@msn.com"),
    ENDING("@gmx.de"),
    ENDING("@web.de"),
    ENDING("@gmx.net"),
    ENDING("@yandex.ru"),
    ENDING("@googlemail.com"),
    ENDING("@protonmail.com"),
    ENDING("@proton.me"),
    ENDING("@t-online.de"),
    ENDING("@naver.com"),
    ENDING("@126.com"),
    ENDING("@hotmail.co.uk"),
    ENDING("@yahoo.co.uk"),
    ENDING("@hotmail.fr"),
    ENDING("@orange.fr"),
    ENDING("@libero.it"),
    ENDING("@example.com"),
    ENDING(".com"),
    ENDING(".net"),
    ENDING(".org"),
    ENDING(".de"),
};

/* Where the last such byte is among the last sixteen, or the text's size. */
static size_t name_find_last(struct bytes text, char byte) {
    const uint64_t low = EACH(0x7f);
    for (size_t behind = 8; behind <= 16; behind += 8) {
        size_t offset = text.size > behind ? text.size - behind : 0;
        uint64_t different = bytes_get_u64(text.at + offset) ^ EACH((uint8_t)byte);
        uint64_t found = ~(((different & low) + low) | different | low);
        if (found != 0) {
            return offset + (unsigned)(63 - __builtin_clzll(found)) / 8;
        }
    }
    return text.size;
}

/* Which ending the text has that begins with this byte; 0: none. */
static unsigned name_ending_of(struct bytes text, char byte) {
    struct bytes ending = bytes_behind(text, name_find_last(text, byte));
    for (unsigned i = 1; ending.size > 0 && i < NAME_ENDINGS; i++) {
        if (ending.size == name_endings[i].size &&
            memcmp(ending.at, name_endings[i].text, ending.size) == 0) {
            return i;
        }
    }
    return 0;
}

/* Eight characters to letters. false: not all are. */
static inline bool name_letters_of(uint64_t text, uint64_t *letters) {
    /* The highest bit of each byte: bits of the text, and whether the five lowest ones are neither 0 nor 31. */
    uint64_t bit_6 = text << 1;
    uint64_t bit_5 = text << 2;
    uint64_t is_inner = (((text & EACH(31)) + EACH(1)) & EACH(30)) + EACH(0x7e);
    *letters = (text & EACH(63)) ^ (~(bit_6 & bit_5) & EACH(0x80)) >> 2;
    return ((text | (bit_6 & (bit_5 ^ is_inner)) | ~(bit_6 | bit_5)) & EACH(0x80)) == 0;
}

/* Eight letters to six bytes. */
static inline uint64_t name_join_letters(uint64_t letters) {
    letters = (letters & EACH16(0x003f)) | (letters & EACH16(0x3f00)) >> 2;
    letters = (letters & EACH32(0x00000fff)) | (letters & EACH32(0x0fff0000)) >> 4;
    return (letters & 0xffffff) | (letters & UINT64_C(0x00ffffff00000000)) >> 8;
}

/* Returns their code, or 0. */
static uint8_t name_pack_letters(struct bytes text, char *to) {
    unsigned ending = name_ending_of(text, '@');
    ending = ending != 0 ? ending : name_ending_of(text, '.');
    struct bytes front = {.at = text.at, .size = text.size - name_endings[ending].size};
    size_t size = 1 + (front.size * 6 + 7) / 8;
    if (front.size == 0 || front.size > LETTERS_MAX || size + LETTERS_SAVED_MIN > text.size) {
        return 0;
    }
    char *at = to + 1;
    for (size_t offset = 0; offset < front.size; offset += 8, at += 6) {
        uint64_t word = name_load(front, offset);
        size_t left = front.size - offset;
        if (left < 8) {
            word |= EACH(' ') << 8 * left; /* the first one, 0 */
        }
        uint64_t letters;
        if (!name_letters_of(word, &letters)) {
            return 0;
        }
        bytes_put_u48(at, name_join_letters(letters));
    }
    to[0] = (char)(NAME_PREFIXES * NAME_REST_LETTERS + ending +
                   (front.size % 4 == 3 ? ENDING_BEHIND_THREE : 0));
    return (uint8_t)(NAME_PREFIX_CODE + size - 1);
}

#if !defined(__SSE2__)
void name_write_letters_16_in_words(uint64_t first, uint64_t second, char *to) {
    for (int i = 0; i < 2; i++, first = second, to += 8) {
        first = (first & 0xffffff) | (first << 8 & UINT64_C(0x00ffffff00000000));
        first = (first & EACH32(0x00000fff)) | (first << 4 & EACH32(0x0fff0000));
        first = (first & EACH16(0x003f)) | (first << 2 & EACH16(0x3f00));
        uint64_t is_behind = (first + EACH(0x80 - 33)) & ~(first + EACH(0x80 - 63)) & EACH(0x80);
        bytes_put_u64(to, first + EACH(' ') + (is_behind >> 2));
    }
}
#endif

/* More than sixteen, or few. What is before their bytes, or above the bits of a word's, is not seen. */
__attribute__((noinline)) static void name_write_long_letters(const char *at, size_t stored,
                                                              char *to) {
    const char *end = at + stored;
    for (at++; at < end; at += 12, to += 16) {
        size_t left = (size_t)(end - at);
        uint64_t last = bytes_get_u64(end - 8);
        name_write_letters_16(left >= 8 ? bytes_get_u64(at) : last >> (64 - 8 * left),
                              left >= 14 ? bytes_get_u64(at + 6) : last >> ((112 - 8 * left) & 63),
                              to);
    }
}

size_t name_letters_write(const char *at, size_t stored, char *to) {
    const struct name_ending *ending = name_ending_in(at);
    size_t count = name_count_letters(at, stored);
    if (name_is_short_letters(stored)) {
        name_write_short_letters(at, stored, to);
    } else {
        name_write_long_letters(at, stored, to);
    }
    memcpy(to + count, ending, sizeof *ending);
    return count + ending->size;
}

__attribute__((noinline)) static bool name_any_letters_are(const char *at, size_t stored,
                                                           struct bytes text) {
    char room[NAME_TEXT_ROOM];
    size_t size = name_letters_write(at, stored, room);
    return bytes_equal((struct bytes){.at = room, .size = size}, text);
}

bool name_letters_are(const char *at, size_t stored, struct bytes text) {
#if defined(__SSE2__)
    /* The same of those that most are. */
    if (name_is_short_letters(stored) && text.size > 16 && text.size <= 32) {
        char room[NAME_TEXT_ROOM];
        const struct name_ending *ending = name_ending_in(at);
        size_t count = name_count_letters(at, stored);
        if (count + ending->size != text.size) {
            return false;
        }
        name_write_short_letters(at, stored, room);
        memcpy(room + count, ending, sizeof *ending);
        return bytes_equal_17_to_32(room, text.at, text.size);
    }
#endif
    return name_any_letters_are(at, stored, text);
}

/* ---- names ---- */

void name_pack(struct bytes text, struct packed_name *form) {
    uint8_t code = 0;
    if (text.size > 1 && text.size <= NAME_SIZE_MAX && name_is_digit(text.at[text.size - 1])) {
        if (name_is_digit(text.at[0])) {
            code = name_pack_rest(text, 0, form->packed);
        }
        if (code == 0) {
            struct name_range range = name_ranges[(uint8_t)text.at[0]];
            uint64_t begin = name_load(text, 0);
            code = 0;
            for (uint8_t i = range.first; i < range.end && code == 0; i++) {
                const struct name_prefix *prefix = &name_prefixes[i];
                uint64_t different = begin ^ bytes_get_u64(prefix->text);
                if (text.size > prefix->size && different << (64 - 8 * prefix->size) == 0) {
                    code = name_pack_behind(bytes_behind(text, prefix->size), i, form->packed);
                }
            }
        }
    }
    if (code == 0 && text.size >= 8 && text.size <= NAME_SIZE_MAX) {
        code = name_pack_letters(text, form->packed);
    }
    form->code = code != 0 ? code : name_text_code(text.size);
}

void name_write_long(const struct name_digits *digits, char *to) {
    const char *at = digits->end - digits->stored;
    memcpy(to, digits->prefix->text, NAME_PREFIX_MAX);
    to += digits->prefix->size;
    if (digits->rest == NAME_REST_UUID) {
        name_write_uuid(to, at);
        return;
    }
    for (; digits->end - at >= 8; at += 8, to += 16) {
        name_write_16(to, bytes_get_u64(at));
    }
    if (at < digits->end) {
        name_write_16(to, bytes_get_u64(digits->end - 8) >> 8 * (8 - (digits->end - at)));
    }
}
