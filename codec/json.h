/* JSON: written value by value, where commas are set by themselves, and read from texts that may be damaged in
 * any way. Neither allocates, and texts are written without locks or printf: also from a signal handler. */
#ifndef CODEC_JSON_H
#define CODEC_JSON_H

#include "codec/buffer.h"

/* ---- writing ---- */

struct json {
    void (*append)(void *out, const char *at, size_t size); /* buffer_put: out is a struct buffer */
    void *out;
    /* For a page: nothing that ends a script or a string in HTML stands for itself, and bytes that are no UTF-8 are
     * shown as \xNN. Otherwise those become U+FFFD, and control characters '?'. */
    bool is_for_page;
    bool needs_comma;
};

/* key NULL: an element of an array, the whole, or what json_end_key was called for. */
void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */
void json_text(struct json *json, const char *key, struct bytes text);
void json_integer(struct json *json, const char *key, int64_t value);
void json_boolean(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/* With at most three decimals. */
void json_number(struct json *json, const char *key, double value);
/* What is JSON already, such as the text of a number. */
void json_verbatim(struct json *json, const char *key, struct bytes text);
/* The same without a comma: marks and names, in the middle of a value; needs_comma stays. */
static inline void json_raw(struct json *json, struct bytes text) {
    if (text.size == 0) {
        return;
    }
    char *at = json->append == buffer_put ? buffer_reserve(json->out, text.size) : NULL;
    if (at != NULL) {
        memcpy(at, text.at, text.size);
        buffer_commit(json->out, text.size);
    } else {
        json->append(json->out, text.at, text.size);
    }
}
/* ISO 8601 in UTC. */
void json_time_ms(struct json *json, const char *key, int64_t unix_ms);
/* Bytes of a client's as key, and as key_base64 if they are not UTF-8. */
void json_bytes(struct json *json, const char *key, struct bytes bytes);
/* A key of a client's, followed by a text or (at NULL) null. */
void json_pair(struct json *json, struct bytes key, struct bytes text);

/* A text in parts. */
void json_begin_text(struct json *json, const char *key);
void json_add_text(struct json *json, struct bytes text);
void json_end_text(struct json *json);
/* In place of json_end_text: the text is the key of the value that follows. */
void json_end_key(struct json *json);

/* ---- characters: UTF-8, by table 3-7 of the Unicode Standard ---- */

enum { JSON_UTF8_SIZE_MAX = 4 };

/* Bytes of the character that a text, which is not empty, begins with; 0: it is none. */
size_t json_utf8_size(struct bytes text);
MUST_CHECK bool json_utf8_is_valid(struct bytes text);
/* Write the character of this code, below 0x110000 (room for JSON_UTF8_SIZE_MAX); returns its size. */
size_t json_utf8_print(char *out, uint32_t code);

/* ---- reading ---- */

/* What is left of the text. Each step passes over blanks first. */
struct json_reader {
    const char *at, *end;
    bool takes_controls; /* control characters may stand in strings as they are */
};

/* Take this mark: one of {}[]:, . false: it is not there, and nothing but blanks was taken. */
MUST_CHECK bool json_take(struct json_reader *reader, char mark);
/* Take a string, decoded into out, which has room for size_max bytes; what is no longer than the rest of the input
 * always fits. false: there is none, it is damaged or too long; the reader is then of no more use. */
MUST_CHECK bool json_take_text(struct json_reader *reader, char *out, size_t size_max,
                               size_t *size);
/* Take a number as it is written; any text of its characters is one. */
MUST_CHECK bool json_take_number(struct json_reader *reader, struct bytes *text);
/* Is nothing left but blanks? */
MUST_CHECK bool json_is_over(struct json_reader *reader);

#endif
