/* Sixteen digits at a time are converted, in vectors that the compiler turns into the machine's
 * instructions, or eight in a word; no branch depends on a digit. */
#include "codec/name.h"

enum {
    HEX_CODE = 128,
    NUMBER_CODE = 160,
    UUID_CODE = 160 + 15,
    PREFIX_CODE = 192,
    DIGITS_MAX = 19,
    NUMBER_SIZE = 8,  /* stored bytes */
    NUMBER_ROOM = 24, /* for its digits */
    HEX_MAX = 2 * NAME_FORM_MAX,
    HEX_BEHIND_PREFIX_MIN = 16, /* digits: fewer may be a word */
    UUID_SIZE = 36,
    UUID_STORED = 16,
    PREFIX_MAX = 15,
    PREFIX_IS_HEX = 128,
};

_Static_assert(PREFIX_MAX + 2 * (NAME_FORM_MAX - 1) + 16 <= NAME_TEXT_ROOM, "any name's text has room");

typedef uint8_t name_vector __attribute__((vector_size(16)));
typedef uint16_t name_halves __attribute__((vector_size(16)));

#if defined(__clang__)
#define NAME_SHUFFLE(a, b, ...) __builtin_shufflevector((a), (b), __VA_ARGS__)
#else
#define NAME_SHUFFLE(a, b, ...) __builtin_shuffle((a), (b), (name_vector){__VA_ARGS__})
#endif

static name_vector name_load(const char *from) {
    name_vector vector;
    memcpy(&vector, from, sizeof vector);
    return vector;
}

static void name_store(char *to, name_vector vector) {
    memcpy(to, &vector, sizeof vector);
}

/* ---- hexadecimal digits ---- */

/* Sixteen digits to their values. false: not all are lower-case hexadecimal digits. */
static bool name_hex_values(const char *from, name_vector *values) {
    name_vector text = name_load(from);
    name_vector digit = text - '0';
    name_vector letter = text - 'a';
    name_vector is_digit = (name_vector)(digit < 10);
    name_vector is_letter = (name_vector)(letter < 6);
    *values = (digit & is_digit) | ((letter + 10) & is_letter);
    uint64_t valid[2];
    name_vector both = is_digit | is_letter;
    memcpy(valid, &both, sizeof valid);
    return (valid[0] & valid[1]) == UINT64_MAX;
}

/* 32 values, the higher half of each byte first, to 16 bytes. */
static name_vector name_join(name_vector first, name_vector second) {
    name_vector high = NAME_SHUFFLE(first, second, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26,
                                    28, 30);
    name_vector low = NAME_SHUFFLE(first, second, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27,
                                   29, 31);
    return (high << 4) | low;
}

/* 32 digits. */
static bool name_pack_32(const char *from, char *to) {
    name_vector first;
    name_vector second;
    bool is_hex = name_hex_values(from, &first);
    is_hex = name_hex_values(from + 16, &second) && is_hex;
    name_store(to, name_join(first, second));
    return is_hex;
}

/* An even number of digits, at most HEX_MAX; writes 32 bytes. */
static bool name_pack_hex(struct bytes digits, char *to) {
    char padded[HEX_MAX];
    memset(padded, '0', sizeof padded);
    memcpy(padded, digits.at, digits.size);
    return name_pack_32(padded, to) &&
           (digits.size <= 32 || name_pack_32(padded + 32, to + 16));
}

static name_vector name_hex_digits(name_vector values) {
    return values + '0' + ((name_vector)(values > 9) & ('a' - '0' - 10));
}

/* The 32 digits of 16 bytes. */
static void name_unpack_32(const char *from, char *to) {
    name_vector bytes = name_load(from);
    name_vector high = bytes >> 4;
    name_vector low = bytes & 15;
    name_store(to, name_hex_digits(NAME_SHUFFLE(high, low, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                                6, 22, 7, 23)));
    name_store(to + 16, name_hex_digits(NAME_SHUFFLE(high, low, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28,
                                                     13, 29, 14, 30, 15, 31)));
}

/* At most 32 bytes; to has room for 64 digits. */
static size_t name_unpack_hex(struct bytes from, char *to) {
    char padded[NAME_FORM_MAX] = {0};
    memcpy(padded, from.at, from.size);
    name_unpack_32(padded, to);
    if (from.size > 16) {
        name_unpack_32(padded + 16, to + 32);
    }
    return 2 * from.size;
}

/* ---- UUIDs ---- */

static bool name_pack_uuid(const char *text, char *to) {
    char digits[32];
    if (text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-') {
        return false;
    }
    memcpy(digits, text, 8);
    memcpy(digits + 8, text + 9, 4);
    memcpy(digits + 12, text + 14, 4);
    memcpy(digits + 16, text + 19, 4);
    memcpy(digits + 20, text + 24, 12);
    return name_pack_32(digits, to);
}

static size_t name_unpack_uuid(const char *from, char *to) {
    char digits[32];
    name_unpack_32(from, digits);
    memcpy(to, digits, 8);
    to[8] = '-';
    memcpy(to + 9, digits + 8, 4);
    to[13] = '-';
    memcpy(to + 14, digits + 12, 4);
    to[18] = '-';
    memcpy(to + 19, digits + 16, 4);
    to[23] = '-';
    memcpy(to + 24, digits + 20, 12);
    return UUID_SIZE;
}

/* ---- decimal digits ---- */

/* Number of the first string of so many digits. */
static const uint64_t name_first_number[DIGITS_MAX + 2] = {
    0,
    0,
    10,
    110,
    1110,
    11110,
    111110,
    1111110,
    11111110,
    111111110,
    1111111110,
    11111111110,
    111111111110,
    1111111111110,
    11111111111110,
    111111111111110,
    1111111111111110,
    11111111111111110,
    111111111111111110,
    1111111111111111110,
    11111111111111111110U,
};

/* Eight digits in a word, the first in the lowest byte. false: others are among them. */
static bool name_digits_value(const char *from, uint32_t *value) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--) {
        word = word << 8 | (uint8_t)from[i];
    }
    uint64_t digits = word ^ UINT64_C(0x3030303030303030);
    bool are_digits =
        (((digits + UINT64_C(0x7676767676767676)) | digits) & UINT64_C(0x8080808080808080)) == 0;
    digits = digits * 10 + (digits >> 8); /* pairs, in every other byte */
    digits = ((digits & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064) +
              (digits >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001)) >>
             32;
    *value = (uint32_t)digits;
    return are_digits;
}

/* The number of 1 to DIGITS_MAX digits. */
static bool name_number_of(struct bytes text, uint64_t *number) {
    char padded[24];
    uint32_t parts[3];
    memset(padded, '0', sizeof padded);
    memcpy(padded + sizeof padded - text.size, text.at, text.size);
    bool are_digits = true;
    for (int i = 0; i < 3; i++) {
        are_digits = name_digits_value(padded + 8 * i, &parts[i]) && are_digits;
    }
    *number = (parts[0] * UINT64_C(100000000) + parts[1]) * UINT64_C(100000000) + parts[2] +
              name_first_number[text.size];
    return are_digits;
}

/* Stored bytes of a number. */
static uint32_t name_number_size(uint64_t number) {
    return number == 0 ? 1 : (71 - (uint32_t)__builtin_clzll(number)) / 8;
}

static void name_write_word(char *to, uint64_t word) {
    for (int i = 0; i < 8; i++) {
        to[i] = (char)(word >> 8 * i);
    }
}

static uint64_t name_read_number(struct bytes from) {
    uint64_t number = 0;
    for (size_t i = 0; i < from.size; i++) {
        number |= (uint64_t)(uint8_t)from.at[i] << 8 * i;
    }
    return number;
}

/* Eight digits of value, below 10^8. Two, then four, then eight quotients are found at once, each
 * by a multiplication that is exact for what it may be. */
static void name_write_eight(char *to, uint32_t value) {
    uint64_t fours = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (fours * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    uint64_t twos = hundreds | (fours - 100 * hundreds) << 16;
    uint64_t tens = (twos * 103 >> 10) & UINT64_C(0x000f000f000f000f);
    uint64_t ones = tens | (twos - 10 * tens) << 8;
    name_write_word(to, ones | UINT64_C(0x3030303030303030));
}

/* The last digit of NUMBER_ROOM. Returns how many there are. */
static uint32_t name_write_number(char *room, uint64_t number) {
    /* log10 by the number's bits, too small by one at most. */
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(number | 1);
    uint32_t digits = bits > 4 ? bits * 1233 >> 12 : 1;
    digits += number >= name_first_number[digits + 1];
    uint64_t value = number - name_first_number[digits];
    name_write_eight(room + 16, (uint32_t)(value % 100000000));
    if (digits > 8) {
        value /= 100000000;
        name_write_eight(room + 8, (uint32_t)(value % 100000000));
        name_write_eight(room, (uint32_t)(value / 100000000));
    }
    return digits;
}

/* ---- prefixes ---- */

/* Those that begin alike stand together. A name's form is in no file, so this list may change. */
static const struct bytes name_prefixes[] = {
    BYTES_INIT("0x"), BYTES_INIT("G"), BYTES_INIT("Guest"), BYTES_INIT("P"), BYTES_INIT("Player"),
    BYTES_INIT("Player_"), BYTES_INIT("U"), BYTES_INIT("User"), BYTES_INIT("User_"),
    BYTES_INIT("a:"), BYTES_INIT("account:"), BYTES_INIT("bot"), BYTES_INIT("c:"),
    BYTES_INIT("character:"), BYTES_INIT("clan:"), BYTES_INIT("guild:"), BYTES_INIT("guest"),
    BYTES_INIT("guest_"), BYTES_INIT("guest-"), BYTES_INIT("id:"), BYTES_INIT("item:"),
    BYTES_INIT("m:"), BYTES_INIT("member"), BYTES_INIT("member:"), BYTES_INIT("member_"),
    BYTES_INIT("p"), BYTES_INIT("p:"), BYTES_INIT("p_"), BYTES_INIT("player"),
    BYTES_INIT("player-"), BYTES_INIT("player:"), BYTES_INIT("player_"), BYTES_INIT("post:"),
    BYTES_INIT("team:"), BYTES_INIT("tg:"), BYTES_INIT("u"), BYTES_INIT("u:"), BYTES_INIT("u_"),
    BYTES_INIT("uid:"), BYTES_INIT("user"), BYTES_INIT("user-"), BYTES_INIT("user:"),
    BYTES_INIT("user_"),
};
static const char name_prefix_letters[] = "0GGPPPUUUaabcccggggiimmmmppppppppttuuuuuuuu";
enum { PREFIX_COUNT = sizeof name_prefixes / sizeof *name_prefixes };
_Static_assert((int)PREFIX_COUNT <= (int)PREFIX_IS_HEX, "a byte says which, and what follows");
_Static_assert(sizeof name_prefix_letters == PREFIX_COUNT + 1, "each has its first letter there");

/* Pack what is digits or a UUID; its code, or 0. Writes no more than a form has room for. */
static uint8_t name_pack_short(struct bytes text, char *to) {
    uint64_t number;
    if (text.size <= DIGITS_MAX && name_number_of(text, &number)) {
        name_write_word(to, number);
        return (uint8_t)(NUMBER_CODE + name_number_size(number) - 1);
    }
    if (text.size == UUID_SIZE && name_pack_uuid(text.at, to)) {
        return UUID_CODE;
    }
    return 0;
}

static bool name_may_be_hex(struct bytes text) {
    return text.size % 2 == 0 && text.size <= HEX_MAX;
}

/* Pack what is behind a prefix; its code, or 0. */
static uint8_t name_pack_behind(struct bytes text, uint8_t prefix, char *to) {
    to[0] = (char)prefix;
    uint8_t code = name_pack_short(text, to + 1);
    if (code != 0) {
        return (uint8_t)(PREFIX_CODE + name_stored_size(code));
    }
    if (name_may_be_hex(text) && text.size >= HEX_BEHIND_PREFIX_MIN && text.size < HEX_MAX &&
        name_pack_hex(text, to + 1)) {
        to[0] = (char)(prefix | PREFIX_IS_HEX);
        return (uint8_t)(PREFIX_CODE + text.size / 2);
    }
    return 0;
}

static bool name_ends_in_hex(struct bytes text) {
    char last = text.at[text.size - 1];
    return (last >= '0' && last <= '9') || (last >= 'a' && last <= 'f');
}

static uint8_t name_pack_prefixed(struct bytes text, char *to) {
    const char *letter = memchr(name_prefix_letters, text.at[0], PREFIX_COUNT);
    uint8_t code = 0;
    for (; letter != NULL && *letter == text.at[0] && code == 0; letter++) {
        uint8_t i = (uint8_t)(letter - name_prefix_letters);
        struct bytes prefix = name_prefixes[i];
        if (text.size > prefix.size && memcmp(prefix.at, text.at, prefix.size) == 0) {
            code = name_pack_behind(bytes_behind(text, prefix.size), i, to);
        }
    }
    return code;
}

/* ---- names ---- */

void name_pack(struct bytes text, struct packed_name *form) {
    uint8_t code = 0;
    if (text.size <= PREFIX_MAX + HEX_MAX && text.size > 0 && name_ends_in_hex(text)) {
        code = name_pack_short(text, form->packed);
        if (code == 0 && name_may_be_hex(text) && name_pack_hex(text, form->packed)) {
            code = (uint8_t)(HEX_CODE + text.size / 2 - 1);
        }
        if (code == 0) {
            code = name_pack_prefixed(text, form->packed);
        }
    }
    form->code = code != 0 ? code : name_text_code(text.size);
}

/* The text of digits or a UUID; its size. Writes up to UUID_SIZE bytes. */
static size_t name_unpack_short(struct bytes stored, char *to) {
    if (stored.size > NUMBER_SIZE) {
        return name_unpack_uuid(stored.at, to);
    }
    char digits[2 * NUMBER_ROOM] = {0};
    uint32_t count = name_write_number(digits, name_read_number(stored));
    memcpy(to, digits + NUMBER_ROOM - count, NUMBER_ROOM);
    return count;
}

struct bytes name_unpack(struct name name, char room[NAME_TEXT_ROOM]) {
    struct bytes stored = {.at = name.at, .size = name.size};
    if (name.code < NUMBER_CODE) {
        return (struct bytes){.at = room, .size = name_unpack_hex(stored, room)};
    }
    if (name.code < PREFIX_CODE) {
        return (struct bytes){.at = room, .size = name_unpack_short(stored, room)};
    }
    uint8_t first = (uint8_t)name.at[0];
    struct bytes prefix = name_prefixes[first & (PREFIX_IS_HEX - 1)];
    stored = bytes_behind(stored, 1);
    memcpy(room, prefix.at, prefix.size);
    size_t size = (first & PREFIX_IS_HEX) != 0 ? name_unpack_hex(stored, room + prefix.size)
                                               : name_unpack_short(stored, room + prefix.size);
    return (struct bytes){.at = room, .size = prefix.size + size};
}
