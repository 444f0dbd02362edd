/* See json.h. */
#include "server/web/json.h"

#include <stdio.h>

#include "codec/timestamp.h"

static void json_put(struct json *json, const char *at, size_t size) {
    buffer_append(json->out, at, size);
}

static void json_begin(struct json *json, const char *key) {
    if (json->needs_comma) {
        json_put(json, ",", 1);
    }
    if (key != NULL) {
        json_put(json, "\"", 1);
        json_put(json, key, strlen(key));
        json_put(json, "\":", 2);
    }
    json->needs_comma = true;
}

void json_open(struct json *json, const char *key, char bracket) {
    json_begin(json, key);
    json_put(json, &bracket, 1);
    json->needs_comma = false;
}

void json_close(struct json *json, char bracket) {
    json_put(json, &bracket, 1);
    json->needs_comma = true;
}

/* Bytes of the character at the beginning of the text; 0: it is none. */
static size_t json_character_size(struct bytes text) {
    static const struct {
        unsigned char low, high, second_low, second_high, size;
    } forms[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    const unsigned char *at = (const unsigned char *)text.at;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (at[0] < forms[i].low || at[0] > forms[i].high) {
            continue;
        }
        if (text.size < forms[i].size ||
            (forms[i].size > 1 && (at[1] < forms[i].second_low || at[1] > forms[i].second_high))) {
            return 0;
        }
        for (size_t more = 2; more < forms[i].size; more++) {
            if ((at[more] & 0xc0) != 0x80) {
                return 0;
            }
        }
        return forms[i].size;
    }
    return 0;
}

bool json_is_utf8(struct bytes text) {
    for (size_t i = 0; i < text.size;) {
        size_t size = json_character_size((struct bytes){.at = text.at + i, .size = text.size - i});
        if (size == 0) {
            return false;
        }
        i += size;
    }
    return true;
}

/* Nothing that ends a script or a string in HTML stands for itself either. */
static bool json_is_plain(char byte) {
    return (unsigned char)byte >= 0x20 && byte != '"' && byte != '\\' && byte != '<' &&
           byte != '>' && byte != '&' && (unsigned char)byte < 0x7f;
}

static void json_put_string(struct json *json, struct bytes text) {
    char escaped[8];
    json_put(json, "\"", 1);
    for (size_t i = 0; i < text.size;) {
        size_t plain = 0;
        while (i + plain < text.size && json_is_plain(text.at[i + plain])) {
            plain++;
        }
        if (plain > 0) {
            json_put(json, text.at + i, plain);
            i += plain;
            continue;
        }
        size_t size = json_character_size((struct bytes){.at = text.at + i, .size = text.size - i});
        if (size > 1) {
            json_put(json, text.at + i, size);
        } else {
            int printed = snprintf(escaped, sizeof escaped, size == 0 ? "\\\\x%02x" : "\\u%04x",
                                   (unsigned)(unsigned char)text.at[i]);
            json_put(json, escaped, (size_t)printed);
        }
        i += size > 0 ? size : 1;
    }
    json_put(json, "\"", 1);
}

void json_text(struct json *json, const char *key, struct bytes text) {
    json_begin(json, key);
    json_put_string(json, text);
}

void json_integer(struct json *json, const char *key, int64_t value) {
    char text[BYTES_INTEGER_TEXT_MAX];
    json_begin(json, key);
    json_put(json, text, bytes_print_i64(text, value));
}

void json_boolean(struct json *json, const char *key, bool value) {
    json_begin(json, key);
    json_put(json, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json *json, const char *key) {
    json_begin(json, key);
    json_put(json, "null", 4);
}

void json_number(struct json *json, const char *key, double value) {
    char text[64];
    json_begin(json, key);
    int size = snprintf(text, sizeof text, "%.3f", value);
    while (size > 1 && text[size - 1] == '0') {
        size--;
    }
    size -= text[size - 1] == '.';
    json_put(json, text, (size_t)size);
}

void json_time_ms(struct json *json, const char *key, int64_t unix_ms) {
    char text[TIMESTAMP_TEXT_MAX];
    size_t size = timestamp_print(text, unix_ms * 1000);
    json_text(json, key, (struct bytes){.at = text, .size = size});
}

static void json_put_base64(struct json *json, struct bytes bytes) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    json_put(json, "\"", 1);
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

void json_bytes(struct json *json, const char *key, struct bytes bytes) {
    json_text(json, key, bytes);
    if (!json_is_utf8(bytes)) {
        char name[64];
        snprintf(name, sizeof name, "%s_base64", key);
        json_begin(json, name);
        json_put_base64(json, bytes);
    }
}

void json_pair(struct json *json, struct bytes key, struct bytes text) {
    json_begin(json, NULL);
    json_put_string(json, key);
    json_put(json, ":", 1);
    if (text.at == NULL) {
        json_put(json, "null", 4);
    } else {
        json_put_string(json, text);
    }
}
