/* Eight digits are packed at a time, in a word, and sixteen unpacked; no branch depends on a digit. */
#include "codec/name.h"

enum {
    HEX_MAX = 2 * NAME_FORM_MAX, /* digits */
    ODD_MAX = 19,
    BEHIND_MAX = HEX_MAX - 4, /* digits behind a prefix */
    HEX_BEHIND_MIN = 16,      /* hexadecimal ones: fewer may be a word */
};

_Static_assert(NAME_PREFIX_MAX + HEX_MAX <= NAME_SIZE_MAX, "any packed name's text has room");

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* ---- words ---- */

/* Up to eight bytes at an offset of a text, 0 behind its end. */
static inline uint64_t name_load(struct bytes text, size_t offset) {
    size_t left = text.size - offset;
    if (left >= 8) {
        return little_get_u64(text.at + offset);
    }
    if (left == 0) {
        return 0;
    }
    if (text.size >= 8) {
        return little_get_u64(text.at + text.size - 8) >> (64 - 8 * left);
    }
    /* Two words that overlap, or three bytes that do. */
    if (left >= 4) {
        return little_get_u32(text.at) | (uint64_t)little_get_u32(text.at + left - 4)
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
        little_put_u32(to, name_join(values));
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
        little_put_u64(to, values + EACH('0') + letters * ('a' - '0' - 10));
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
    name_write_16(digits, little_get_u64(from));
    name_write_16(digits + 16, little_get_u64(from + 8));
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
                uint64_t different = begin ^ little_get_u64(prefix->text);
                if (text.size > prefix->size && different << (64 - 8 * prefix->size) == 0) {
                    code = name_pack_behind(bytes_behind(text, prefix->size), i, form->packed);
                }
            }
        }
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
        name_write_16(to, little_get_u64(at));
    }
    if (at < digits->end) {
        name_write_16(to, little_get_u64(digits->end - 8) >> 8 * (8 - (digits->end - at)));
    }
}
