/* Writing requests. See request.h. */
#include "protocol/request.h"

/* "*3\r\n" or "$5\r\n" */
static void request_append_number(struct buffer *out, char kind, uint64_t number) {
    char text[BYTES_INTEGER_TEXT_MAX + 3] = {kind};
    size_t size = 1 + bytes_print_u64(text + 1, number);
    memcpy(text + size, "\r\n", 2);
    buffer_append(out, text, size + 2);
}

void request_append_head(struct buffer *out, uint64_t count) {
    request_append_number(out, '*', count);
}

void request_append_argument(struct buffer *out, struct bytes argument) {
    request_append_number(out, '$', argument.size);
    buffer_append_bytes(out, argument);
    buffer_append(out, "\r\n", 2);
}
