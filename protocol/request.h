/* One request: a command name and its arguments, as slices of the input; and how one is written. */
#ifndef PROTOCOL_REQUEST_H
#define PROTOCOL_REQUEST_H

#include "codec/buffer.h"

struct request {
    uint32_t count;           /* arguments including the command's name; at least 1 */
    const struct bytes *args; /* args[0] is the name */
    size_t size;              /* bytes on the wire */
};

/* Append the head of a request with so many arguments, and each of these. */
void request_append_head(struct buffer *out, uint64_t count);
void request_append_argument(struct buffer *out, struct bytes argument);

#endif
