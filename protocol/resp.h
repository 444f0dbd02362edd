/* The request parser: RESP arrays of bulk strings ("*2\r\n$4\r\nPING\r\n$2\r\nhi\r\n") and inline
 * commands ("PING hi\r\n", with Redis's quoting). Fully incremental: splitting the input anywhere
 * gives the same requests.
 *
 * The caller keeps the input of an unfinished request contiguous from the request's first byte, and
 * calls again with more bytes appended; the input may move in memory. The parser remembers its
 * position, so a request that arrives byte by byte costs linear time. Memory is allocated for what
 * has arrived, never for what was announced. */
#ifndef PROTOCOL_RESP_H
#define PROTOCOL_RESP_H

#include "codec/buffer.h"
#include "codec/memory.h"

/* One request: a command name and its arguments, as slices of the input; and how one is written. */
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

/* ---- parsing ---- */

struct resp_limits {
    uint32_t args_max;      /* 1048576; 10 before authentication; also applies to inline commands */
    size_t bulk_size_max;   /* proto-max-bulk-len; 16 KiB before authentication */
    size_t inline_size_max; /* 65536; also applies to a line that announces a length */
    bool is_authenticated;  /* selects Redis's wording of the error */
};

/* The zeroed state is the start of a request. */
struct resp_parser {
    size_t position;    /* bytes of this request parsed so far; 0: no array has begun */
    size_t searched;    /* bytes of this request already searched for a line end */
    uint32_t args_left; /* arguments of the array still to come */
    uint32_t arg_count; /* arguments found so far */
    size_t bulk_left;   /* size of the announced bulk, if has_bulk */
    bool has_bulk;
    struct resp_span *spans; /* the arguments found so far; allocated only while unfinished */
    uint32_t span_capacity;
};
struct resp_span {
    size_t offset; /* from the request's first byte */
    size_t size;
};

/* A bump allocator for the arguments of finished requests; reset once per tick. The zeroed arena is
 * empty. */
struct resp_arena {
    char *at;
    size_t used;
    size_t capacity;
    struct resp_arena *full; /* filled pieces, newest first */
};

enum resp_status {
    RESP_REQUEST, /* *request is filled; *used bytes were consumed */
    RESP_MORE,    /* unfinished: call again with more input appended to the same bytes */
    RESP_SKIP,  /* *used bytes held no command ("\r\n", "*0\r\n", "*-1\r\n"): continue after them */
    RESP_ERROR, /* cannot continue: reply *error and close */
    RESP_CLOSE, /* "POST ..." or "Host: ...", an HTTP client: close without a reply */
    RESP_OUT_OF_MEMORY, /* nothing was consumed */
};

/* Parse input[0 .. size-1], which begins at the first byte of a request.
 *
 * On RESP_REQUEST the slices point into input, or (quoted inline arguments) into the arena, which
 * also holds request->args. *error begins with "ERR Protocol error: " and is static or in the
 * arena. After RESP_MORE and RESP_OUT_OF_MEMORY the parser is still at the same request; otherwise
 * it is zeroed and holds no memory. input may be NULL when size is 0. */
MUST_CHECK enum resp_status resp_parse(struct resp_parser *parser, const char *input, size_t size,
                                       const struct resp_limits *limits, struct resp_arena *arena,
                                       struct request *request, size_t *used, const char **error);
/* Free the memory of an unfinished request and zero the parser. */
void resp_parser_deinit(struct resp_parser *parser);

void resp_arena_deinit(struct resp_arena *arena);
/* Free all allocations; up to 1 MiB of memory is kept for reuse. */
void resp_arena_reset(struct resp_arena *arena);
/* size bytes, 8-byte aligned; NULL: no memory. */
MUST_CHECK void *resp_arena_allocate(struct resp_arena *arena, size_t size);

#endif
