/* JSON, written value by value; commas are set by themselves. What is not UTF-8 is shown with \xNN for its
 * bytes, and its name with _base64 has the bytes themselves. */
#ifndef SERVER_WEB_JSON_H
#define SERVER_WEB_JSON_H

#include "protocol/buffer.h"

struct json {
    struct buffer *out;
    bool needs_comma;
};

/* key NULL: an element of an array, or the whole. */
void json_open(struct json *json, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *json, char bracket);                 /* '}' or ']' */
void json_text(struct json *json, const char *key, struct bytes text);
void json_integer(struct json *json, const char *key, int64_t value);
void json_boolean(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/* With at most three decimals. */
void json_number(struct json *json, const char *key, double value);
/* ISO 8601 in UTC. */
void json_time_ms(struct json *json, const char *key, int64_t unix_ms);
/* Bytes of a client's as key, and as key_base64 if they are not UTF-8. */
void json_bytes(struct json *json, const char *key, struct bytes bytes);
/* A key of a client's, followed by a text or (at NULL) null. */
void json_pair(struct json *json, struct bytes key, struct bytes text);

MUST_CHECK bool json_is_utf8(struct bytes text);

#endif
