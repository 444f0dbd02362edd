/* See json.h. */
#include "codec/json.h"

#include <stdio.h>

#include "codec/timestamp.h"

/* ---- characters ---- */

static bool json_utf8_is_between(char byte, unsigned low, unsigned high) {
    return (unsigned char)byte >= low && (unsigned char)byte <= high;
}

size_t json_utf8_size(struct bytes text) {
    unsigned first = (unsigned char)text.at[0];
    if (first < 0x80) {
        return 1;
    }
    size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || text.size < size) {
        return 0;
    }
    /* No longer form than needed, no surrogates, nothing beyond the last code. */
    unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    bool is_fine = json_utf8_is_between(text.at[1], low, high);
    for (size_t i = 2; i < size; i++) {
        is_fine = is_fine && json_utf8_is_between(text.at[i], 0x80, 0xbf);
    }
    return is_fine ? size : 0;
}

bool json_utf8_is_valid(struct bytes text) {
    while (text.size > 0) {
        uint64_t word = 0;
        if (text.size >= sizeof word) { /* most are ASCII */
            memcpy(&word, text.at, sizeof word);
        }
        bool is_ascii = text.size >= sizeof word && (word & UINT64_C(0x8080808080808080)) == 0;
        size_t size = is_ascii ? sizeof word : json_utf8_size(text);
        if (size == 0) {
            return false;
        }
        text = (struct bytes){.at = text.at + size, .size = text.size - size};
    }
    return true;
}

size_t json_utf8_print(char *out, uint32_t code) {
    static const unsigned char marks[JSON_UTF8_SIZE_MAX + 1] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = size; i-- > 1; code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)(marks[size] | code);
    return size;
}

/* ---- writing ---- */

static void json_put(struct json *json, const char *at, size_t size) {
    json_raw(json, (struct bytes){.at = at, .size = size});
}

/* ,"key": and mark, which may be '\0' for none, then value and end, likewise. There are more of these than of all else:
 * they are written where they will stand, or in pieces where that is no buffer. */
static void json_begin_with(struct json *json, struct bytes key, char mark, struct bytes value,
                            char end) {
    enum { MARKS_MAX = 6 };
    char piece[MARKS_MAX];
    char *begin = json->append == buffer_put
                      ? buffer_reserve(json->out, key.size + value.size + MARKS_MAX)
                      : NULL;
    char *at = begin != NULL ? begin : piece;
    if (json->needs_comma) {
        *at++ = ',';
    }
    if (key.at != NULL) {
        *at++ = '"';
        if (begin != NULL) {
            memcpy(at, key.at, key.size);
            at += key.size;
        } else {
            json->append(json->out, piece, (size_t)(at - piece));
            json->append(json->out, key.at, key.size);
            at = piece;
        }
        *at++ = '"';
        *at++ = ':';
    }
    *at = mark;
    at += mark != '\0';
    if (begin != NULL && value.size > 0) {
        memcpy(at, value.at, value.size);
        at += value.size;
    } else if (begin == NULL) {
        json->append(json->out, piece, (size_t)(at - piece));
        if (value.size > 0) {
            json->append(json->out, value.at, value.size);
        }
        at = piece;
    }
    *at = end;
    at += end != '\0';
    if (begin != NULL) {
        buffer_commit(json->out, (size_t)(at - begin));
    } else {
        json->append(json->out, piece, (size_t)(at - piece));
    }
    json->needs_comma = true;
}

static struct bytes json_key(const char *key) {
    return key != NULL ? bytes_from_text(key) : (struct bytes){.at = NULL};
}

static void json_begin(struct json *json, const char *key, char mark) {
    json_begin_with(json, json_key(key), mark, (struct bytes){.at = NULL}, '\0');
}

void json_open(struct json *json, const char *key, char bracket) {
    json_begin(json, key, bracket);
    json->needs_comma = false;
}

void json_close(struct json *json, char bracket) {
    json_put(json, &bracket, 1);
    json->needs_comma = true;
}

/* Sets of bytes from ' ' to '\x7f', a bit each: they do not stand for themselves, ever or in a page. */
#define JSON_BIT(byte) (UINT64_C(1) << ((byte)&63))
static const uint64_t json_odd[2][2] = {
    {JSON_BIT('"'), JSON_BIT('\\') | JSON_BIT('\x7f')},
    {JSON_BIT('"') | JSON_BIT('<') | JSON_BIT('>') | JSON_BIT('&'),
     JSON_BIT('\\') | JSON_BIT('\x7f')},
};

static bool json_is_plain(const struct json *json, char byte) {
    unsigned code = (unsigned char)byte;
    return code - 0x20 < 0x60 && (json_odd[json->is_for_page][code >> 6] >> (code & 63) & 1) == 0;
}

#define JSON_EACH(byte) (UINT64_C(0x0101010101010101) * (byte))
/* Has any byte the value 0? Of the marks below only the lowest is certain, which is enough. */
#define JSON_HAS_ZERO(word) (((word)-JSON_EACH(1)) & ~(word)&JSON_EACH(0x80))

/* How many bytes from the first on are plain. Eight at a time are looked at as one word: below ' ', '\x7f' or above, a
 * quotation mark or & (which differ in a bit), a backslash, < or > (likewise). */
static size_t json_count_plain(const struct json *json, struct bytes text) {
    size_t size = 0;
    for (uint64_t word; text.size - size >= sizeof word; size += sizeof word) {
        memcpy(&word, text.at + size, sizeof word);
        uint64_t odd = (word | (word + JSON_EACH(1)) | (word - JSON_EACH(0x20))) & JSON_EACH(0x80);
        odd |= JSON_HAS_ZERO((word & ~JSON_EACH(4)) ^ JSON_EACH('"'));
        odd |= JSON_HAS_ZERO(word ^ JSON_EACH('\\'));
        odd |= JSON_HAS_ZERO((word & ~JSON_EACH(2)) ^ JSON_EACH('<'));
        if (odd != 0) {
            break; /* one of them may be odd: byte by byte */
        }
    }
    while (size < text.size && json_is_plain(json, text.at[size])) {
        size++;
    }
    return size;
}

void json_begin_text(struct json *json, const char *key) {
    json_begin(json, key, '"');
}

void json_add_text(struct json *json, struct bytes text) {
    while (text.size > 0) {
        size_t size = json_count_plain(json, text);
        if (size > 0) {
            json_put(json, text.at, size);
        }
        if (size == 0) {
            size = json_utf8_size(text);
            /* One that is not plain; size: of the character, 0: it is none. */
            const char *at = text.at;
            if (size > 1) {
                json_put(json, at, size);
            } else if (json->is_for_page) {
                const char *mark = size == 0 ? "\\\\x" : "\\u00";
                char hex[2];
                bytes_print_hex((unsigned char)*at, hex);
                json_put(json, mark, strlen(mark));
                json_put(json, hex, sizeof hex);
            } else if (size == 0) {
                json_put(json, "\xef\xbf\xbd", 3);
            } else if ((unsigned char)*at < 0x20) {
                json_put(json, "?", 1);
            } else {
                json_put(json, "\\", *at == '"' || *at == '\\');
                json_put(json, at, 1);
            }
            size += size == 0;
        }
        text = (struct bytes){.at = text.at + size, .size = text.size - size};
    }
}

void json_end_text(struct json *json) {
    json_put(json, "\"", 1);
}

void json_end_key(struct json *json) {
    json_put(json, "\":", 2);
    json->needs_comma = false;
}

void json_text(struct json *json, const char *key, struct bytes text) {
    if (json_count_plain(json, text) == text.size) {
        json_begin_with(json, json_key(key), '"', text, '"');
        return;
    }
    json_begin_text(json, key);
    json_add_text(json, text);
    json_end_text(json);
}

void json_verbatim(struct json *json, const char *key, struct bytes text) {
    json_begin_with(json, json_key(key), '\0', text, '\0');
}

void json_integer(struct json *json, const char *key, int64_t value) {
    char text[BYTES_INTEGER_TEXT_MAX];
    json_verbatim(json, key, (struct bytes){.at = text, .size = bytes_print_i64(text, value)});
}

void json_boolean(struct json *json, const char *key, bool value) {
    json_verbatim(json, key, value ? BYTES("true") : BYTES("false"));
}

void json_null(struct json *json, const char *key) {
    json_verbatim(json, key, BYTES("null"));
}

void json_number(struct json *json, const char *key, double value) {
    char text[64];
    int size = snprintf(text, sizeof text, "%.3f", value);
    while (size > 1 && text[size - 1] == '0') {
        size--;
    }
    size -= text[size - 1] == '.';
    json_verbatim(json, key, (struct bytes){.at = text, .size = (size_t)size});
}

void json_time_ms(struct json *json, const char *key, int64_t unix_ms) {
    char text[TIMESTAMP_TEXT_MAX];
    const struct bytes time = {.at = text, .size = timestamp_print(text, unix_ms * 1000)};
    json_begin_with(json, json_key(key), '"', time, '"');
}

void json_bytes(struct json *json, const char *key, struct bytes bytes) {
    if (json_count_plain(json, bytes) == bytes.size) {
        json_begin_with(json, json_key(key), '"', bytes, '"');
        return;
    }
    json_text(json, key, bytes);
    if (!json_utf8_is_valid(bytes)) {
        char name[64];
        snprintf(name, sizeof name, "%s_base64", key);
        json_begin(json, name, '"');
        static const char digits[] =
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        for (size_t i = 0; i < bytes.size; i += 3) {
            size_t count = bytes.size - i < 3 ? bytes.size - i : 3;
            unsigned bits = 0;
            for (size_t k = 0; k < 3; k++) {
                bits = bits << 8 | (k < count ? (unsigned char)bytes.at[i + k] : 0U);
            }
            char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63], digits[bits >> 6 & 63],
                            digits[bits & 63]};
            memset(four + 1 + count, '=', 3 - count);
            json_put(json, four, sizeof four);
        }
        json_put(json, "\"", 1);
    }
}

void json_pair(struct json *json, struct bytes key, struct bytes text) {
    if (json_count_plain(json, key) == key.size && text.at != NULL &&
        json_count_plain(json, text) == text.size) {
        json_begin_with(json, key, '"', text, '"');
        return;
    }
    json_begin_text(json, NULL);
    json_add_text(json, key);
    json_end_key(json);
    if (text.at == NULL) {
        json_null(json, NULL);
    } else {
        json_text(json, NULL, text);
    }
}

/* ---- reading ---- */

static void json_skip_blanks(struct json_reader *reader) {
    for (; reader->at < reader->end && *reader->at <= ' '; reader->at++) {
        if (*reader->at != ' ' && *reader->at != '\t' && *reader->at != '\r' &&
            *reader->at != '\n') {
            return;
        }
    }
}

bool json_take(struct json_reader *reader, char mark) {
    json_skip_blanks(reader);
    bool is_there = reader->at < reader->end && *reader->at == mark;
    reader->at += is_there;
    return is_there;
}

bool json_is_over(struct json_reader *reader) {
    json_skip_blanks(reader);
    return reader->at == reader->end;
}

bool json_take_number(struct json_reader *reader, struct bytes *text) {
    json_skip_blanks(reader);
    text->at = reader->at;
    for (char byte; reader->at < reader->end; reader->at++) {
        byte = *reader->at;
        if (!(byte >= '0' && byte <= '9') && (byte == '\0' || strchr("+-.eE", byte) == NULL)) {
            break;
        }
    }
    text->size = (size_t)(reader->at - text->at);
    return text->size > 0;
}

static bool json_take_hex(struct json_reader *reader, uint32_t *unit) {
    *unit = 0;
    for (int i = 0; i < 4; i++, reader->at++) {
        int value = reader->at < reader->end ? bytes_hex_value(*reader->at) : -1;
        if (value < 0) {
            return false;
        }
        *unit = *unit << 4 | (uint32_t)value;
    }
    return true;
}

/* Behind \u: a code, or two that make one. */
static bool json_take_code(struct json_reader *reader, uint32_t *code) {
    enum { HIGH = 0xd800, LOW = 0xdc00, END = 0xe000 };
    uint32_t low;
    if (!json_take_hex(reader, code)) {
        return false;
    }
    if (*code < HIGH || *code >= END) {
        return true;
    }
    if (*code >= LOW || reader->end - reader->at < 2 || memcmp(reader->at, "\\u", 2) != 0) {
        return false;
    }
    reader->at += 2;
    if (!json_take_hex(reader, &low) || low < LOW || low >= END) {
        return false;
    }
    *code = 0x10000 + ((*code - HIGH) << 10 | (low - LOW));
    return true;
}

bool json_take_text(struct json_reader *reader, char *out, size_t size_max, size_t *size) {
    static const char escaped[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    *size = 0;
    if (!json_take(reader, '"')) {
        return false;
    }
    while (reader->at < reader->end && *reader->at != '"') {
        const char *begin = reader->at; /* what stands for itself, as a whole */
        while (reader->at < reader->end && *reader->at != '"' && *reader->at != '\\' &&
               (unsigned char)*reader->at >= 0x20) {
            reader->at++;
        }
        size_t plain = (size_t)(reader->at - begin);
        if (plain > size_max - *size) {
            return false;
        }
        if (plain > 0) {
            memmove(out + *size, begin, plain); /* out may be where the text stands */
            *size += plain;
            continue;
        }
        char taken[JSON_UTF8_SIZE_MAX] = {*reader->at++};
        size_t count = (unsigned char)taken[0] >= 0x20 || reader->takes_controls;
        if (taken[0] == '\\') { /* what stands behind it, or nothing that may */
            char byte = reader->at < reader->end ? *reader->at++ : '\0';
            const char *found = byte != '\0' ? strchr(escaped, byte) : NULL;
            uint32_t code;
            count = found != NULL ? 1 : 0;
            if (found != NULL) {
                taken[0] = meant[found - escaped];
            } else if (byte == 'u' && json_take_code(reader, &code)) {
                count = json_utf8_print(taken, code);
            }
        }
        if (count == 0 || count > size_max - *size) {
            return false;
        }
        memcpy(out + *size, taken, count);
        *size += count;
    }
    return json_take(reader, '"');
}
