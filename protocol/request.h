/* One request: a command name and its arguments, as slices of the input; and how one is written. */
#ifndef PROTOCOL_REQUEST_H
#define PROTOCOL_REQUEST_H

#include "codec/buffer.h"

struct request {
    uint32_t count;           /* arguments including the command's name; at least 1 */
    const struct bytes *args; /* args[0] is the name */
    size_t size;              /* bytes on the wire */
};

/* "*3\r\n" or "$5\r\n" */
static inline void request_append_number(struct buffer *out, char kind, uint64_t number) {
    char text[BYTES_INTEGER_TEXT_MAX + 3] = {kind};
    size_t size = 1 + bytes_print_u64(text + 1, number);
    memcpy(text + size, "\r\n", 2);
    buffer_append(out, text, size + 2);
}

/* Append the head of a request with so many arguments. */
static inline void request_append_head(struct buffer *out, uint64_t count) {
    request_append_number(out, '*', count);
}

/* Each of them. */
static inline void request_append_argument(struct buffer *out, struct bytes argument) {
    request_append_number(out, '$', argument.size);
    buffer_append_bytes(out, argument);
    buffer_append(out, "\r\n", 2);
}

#endif
