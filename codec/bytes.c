/* Byte string comparison, and conversion between 64-bit integers and text. */
#include "codec/bytes.h"

#include <limits.h>

/* Not in the header: with sanitizers gcc would inline it and warn about impossible sizes. */
bool bytes_equal_long(struct bytes a, struct bytes b) {
    return memcmp(a.at, b.at, a.size) == 0;
}

bool bytes_equal_ignoring_case(struct bytes a, struct bytes b) {
    if (a.size != b.size) {
        return false;
    }
    for (size_t i = 0; i < a.size; i++) {
        if (bytes_lower(a.at[i]) != bytes_lower(b.at[i])) {
            return false;
        }
    }
    return true;
}

static bool bytes_is_letter(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

bool bytes_are_name(struct bytes text, size_t size_max) {
    bool has_letter = false;
    if (text.size > size_max) {
        return false;
    }
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.at[i];
        has_letter |= bytes_is_letter(byte);
        if (!bytes_is_letter(byte) && !(byte >= '0' && byte <= '9') && byte != '_' && byte != '-') {
            return false;
        }
    }
    return has_letter;
}

static const uint64_t powers_of_ten[20] = {
    1ULL,
    10ULL,
    100ULL,
    1000ULL,
    10000ULL,
    100000ULL,
    1000000ULL,
    10000000ULL,
    100000000ULL,
    1000000000ULL,
    10000000000ULL,
    100000000000ULL,
    1000000000000ULL,
    10000000000000ULL,
    100000000000000ULL,
    1000000000000000ULL,
    10000000000000000ULL,
    100000000000000000ULL,
    1000000000000000000ULL,
    10000000000000000000ULL,
};

static const char digit_pairs[200] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
    "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
    "8081828384858687888990919293949596979899";

size_t bytes_print_u64(char *out, uint64_t value) {
    /* 1233 / 4096 is slightly above log10(2), accurate enough for 64 bits: the estimate is exact or one too small.
     * Source: Sean Anderson, "Bit Twiddling Hacks", integer log base 10. */
    unsigned bit_count = 64 - (unsigned)__builtin_clzll(value | 1);
    size_t guess = (bit_count * 1233) >> 12;
    size_t size = guess + (value >= powers_of_ten[guess] || guess == 0 ? 1 : 0);
    char *at = out + size;
    while (value >= 100) {
        at -= 2;
        memcpy(at, digit_pairs + 2 * (value % 100), 2);
        value /= 100;
    }
    if (value >= 10) {
        memcpy(out, digit_pairs + 2 * value, 2);
    } else {
        *out = (char)('0' + value);
    }
    return size;
}

size_t bytes_print_i64(char *out, int64_t value) {
    if (value >= 0) {
        return bytes_print_u64(out, (uint64_t)value);
    }
    *out = '-';
    return 1 + bytes_print_u64(out + 1, 0 - (uint64_t)value);
}

bool bytes_parse_u64(struct bytes text, uint64_t *value) {
    if (text.size == 0 || text.size > 20 || (text.at[0] == '0' && text.size > 1)) {
        return false;
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = (unsigned char)text.at[i] - (unsigned)'0';
        if (digit > 9) {
            return false;
        }
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_add_overflow(sum, digit, &sum)) {
            return false;
        }
    }
    *value = sum;
    return true;
}

bool bytes_parse_i64(struct bytes text, int64_t *value) {
    if (text.size == 0) {
        return false;
    }
    bool is_negative = text.at[0] == '-';
    struct bytes digits = {.at = text.at + is_negative, .size = text.size - is_negative};
    uint64_t magnitude;
    if (!bytes_parse_u64(digits, &magnitude)) {
        return false;
    }
    if (is_negative) {
        if (magnitude == 0 || magnitude > (uint64_t)INT64_MAX + 1) {
            return false;
        }
        *value = (int64_t)(0 - magnitude);
        return true;
    }
    if (magnitude > (uint64_t)INT64_MAX) {
        return false;
    }
    *value = (int64_t)magnitude;
    return true;
}

struct bytes_shown bytes_show(struct bytes text) {
    struct bytes_shown shown;
    size_t size = text.size <= BYTES_SHOWN_MAX ? text.size : BYTES_SHOWN_MAX - 3;
    for (size_t i = 0; i < size; i++) {
        char byte = text.at[i];
        shown.text[i] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
    if (size < text.size) {
        memcpy(shown.text + size, "...", 3);
        size += 3;
    }
    shown.text[size] = '\0';
    return shown;
}

/* ---- words of a line ---- */

/* Decode the backslash sequence at *at, inside double quotes. */
static char bytes_read_escape(const char **at, const char *end) {
    static const char letters[] = "nrtab";
    static const char meanings[] = "\n\r\t\a\b";
    const char *p = *at + 1;
    if (end - p >= 3 && p[0] == 'x' && bytes_hex_value(p[1]) >= 0 && bytes_hex_value(p[2]) >= 0) {
        *at = p + 3;
        return (char)(bytes_hex_value(p[1]) * 16 + bytes_hex_value(p[2]));
    }
    *at = p + 1;
    const char *letter = *p != '\0' ? strchr(letters, *p) : NULL;
    return letter != NULL ? meanings[letter - letters] : *p;
}

/* Decode from the quote at *at to the closing quote. false: unbalanced quotes. */
static bool bytes_read_quoted(const char **at, const char *end, char **out) {
    char quote = *(*at)++;
    while (*at < end) {
        const char *p = *at;
        bool has_next = p + 1 < end;
        if (*p == quote) {
            (*at)++;
            return !has_next || bytes_is_blank(p[1]);
        }
        if (*p == '\\' && has_next && quote == '"') {
            *(*out)++ = bytes_read_escape(at, end);
        } else if (*p == '\\' && has_next && p[1] == '\'') {
            *(*out)++ = '\'';
            *at += 2;
        } else {
            *(*out)++ = *p;
            (*at)++;
        }
    }
    return false;
}

enum bytes_word_status bytes_take_quoted(struct bytes *line, char **out, struct bytes *word) {
    const char *at = line->at;
    const char *end = line->at + line->size;
    while (at < end && bytes_is_blank(*at)) {
        at++;
    }
    if (at == end) {
        return BYTES_WORDS_END;
    }
    const char *begin = at;
    while (at < end && (*at == '\0' || strchr(" \t\r\n\"'", *at) == NULL)) {
        at++;
    }
    *word = (struct bytes){.at = begin, .size = (size_t)(at - begin)};
    if (at < end && (*at == '"' || *at == '\'')) {
        char *decoded = *out;
        memcpy(decoded, begin, word->size);
        *out += word->size;
        if (!bytes_read_quoted(&at, end, out)) {
            return BYTES_WORD_UNBALANCED;
        }
        *word = (struct bytes){.at = decoded, .size = (size_t)(*out - decoded)};
    }
    *line = (struct bytes){.at = at, .size = (size_t)(end - at)};
    return BYTES_WORD_TAKEN;
}

unsigned bytes_distance(struct bytes one, struct bytes other, bool is_case_ignored) {
    /* Optimal string alignment; of the table the last three rows are looked at. */
    unsigned rows[3][BYTES_SHOWN_MAX + 1];
    if (one.size > BYTES_SHOWN_MAX || other.size > BYTES_SHOWN_MAX) {
        return UINT_MAX;
    }
    for (size_t j = 0; j <= other.size; j++) {
        rows[0][j] = (unsigned)j;
    }
    char previous_a = '\0';
    for (size_t i = 1; i <= one.size; i++) {
        unsigned *row = rows[i % 3];
        const unsigned *above = rows[(i + 2) % 3];
        char a = is_case_ignored ? bytes_lower(one.at[i - 1]) : one.at[i - 1];
        char previous_b = '\0';
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= other.size; j++) {
            char b = is_case_ignored ? bytes_lower(other.at[j - 1]) : other.at[j - 1];
            unsigned best = above[j - 1] + (a != b);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a == previous_b && b == previous_a &&
                rows[(i + 1) % 3][j - 2] + 1 < best) {
                best = rows[(i + 1) % 3][j - 2] + 1;
            }
            row[j] = best;
            previous_b = b;
        }
        previous_a = a;
    }
    return rows[one.size % 3][other.size];
}
