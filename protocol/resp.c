/* From input to requests.
 *
 *     "*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"   ->   args[0] = "ECHO", args[1] = "hi"
 *
 * Arrays have two paths. Fast path: the array is complete in the input, and resp_parse_whole_array
 * parses it in one pass, straight into the arena. Slow path: anything else (incomplete, unusual or
 * invalid) goes to resp_parse_array, which keeps its progress in the parser and continues there next
 * time. Both accept the same arrays; only the slow path reports errors.
 *
 * Invariant: line ends are searched only behind parser->searched, and nothing before
 * parser->position is read again until the request is complete. The result for an input depends on
 * its bytes alone, never on how it was split: a limit on a line counts bytes from the line's start,
 * not the bytes that happen to have arrived.
 *
 * As in Redis, the byte after a CR and the two bytes after a bulk are assumed to be its line end
 * without being checked. */
#include "protocol/resp.h"

#include "codec/bytes.h"

enum {
    ARENA_PIECE_MIN = 16 * 1024,
    ARENA_PIECE_MAX = 1024 * 1024, /* for pieces, which double in size; also what a reset keeps */
    SPANS_MIN = 8,
    ARG_SIZE_MIN = 6, /* "$0\r\n\r\n" */
};

/* ---- the arena ---- */

static void resp_arena_free_full(struct resp_arena *arena) {
    while (arena->full != NULL) {
        struct resp_arena *piece = arena->full;
        arena->full = piece->full;
        memory_free(piece);
    }
}

void resp_arena_deinit(struct resp_arena *arena) {
    resp_arena_free_full(arena);
    memory_free(arena->at);
    *arena = (struct resp_arena){0};
}

void resp_arena_reset(struct resp_arena *arena) {
    resp_arena_free_full(arena);
    if (arena->capacity > ARENA_PIECE_MAX) {
        memory_free(arena->at);
        *arena = (struct resp_arena){0};
    } else if (arena->at != NULL) {
        arena->used = sizeof(struct resp_arena);
    }
}

/* Start a new piece with room for size bytes. The first bytes of each piece are reserved for the
 * record that describes it once it is full. */
static char *resp_arena_grow(struct resp_arena *arena, size_t size) {
    size_t capacity = arena->capacity == 0 ? ARENA_PIECE_MIN : arena->capacity * 2;
    if (capacity > ARENA_PIECE_MAX) {
        capacity = ARENA_PIECE_MAX;
    }
    if (capacity - sizeof(struct resp_arena) < size) {
        capacity = size + sizeof(struct resp_arena);
    }
    char *at = memory_allocate(capacity);
    if (at == NULL) {
        return NULL;
    }
    struct resp_arena *full = arena->full;
    if (arena->at != NULL) {
        full = (struct resp_arena *)(void *)arena->at;
        *full = *arena;
    }
    *arena = (struct resp_arena){
        .at = at, .used = sizeof(struct resp_arena), .capacity = capacity, .full = full};
    return at + arena->used;
}

/* Returns room for size bytes; the caller takes it by adding to used. */
static inline char *resp_arena_room(struct resp_arena *arena, size_t size) {
    if (__builtin_expect(arena->capacity - arena->used >= size, 1) && arena->at != NULL) {
        return arena->at + arena->used;
    }
    return resp_arena_grow(arena, size);
}

void *resp_arena_allocate(struct resp_arena *arena, size_t size) {
    CHECK(size <= SIZE_MAX / 4);
    size = (size + 7) & ~(size_t)7;
    char *at = resp_arena_room(arena, size);
    if (at != NULL) {
        arena->used += size;
    }
    return at;
}

/* ---- common to all requests ---- */

/* State of one call. */
struct parse {
    struct resp_parser *parser;
    const char *input;
    size_t size;
    const struct resp_limits *limits;
    struct resp_arena *arena;
    struct request *request;
    size_t *used;
    const char **error;
};

void resp_parser_deinit(struct resp_parser *parser) {
    memory_free(parser->spans);
    *parser = (struct resp_parser){0};
}

static enum resp_status resp_fail(struct parse *parse, const char *error) {
    *parse->error = error;
    resp_parser_deinit(parse->parser);
    return RESP_ERROR;
}

static enum resp_status resp_skip(struct parse *parse, size_t size) {
    *parse->used = size;
    resp_parser_deinit(parse->parser);
    return RESP_SKIP;
}

/* An HTTP client tricked by a web page into talking to us (redis.io/docs, "Security": cross
 * protocol scripting). Few commands begin with these letters, so the comparison is rare. */
static bool resp_is_http(struct bytes name) {
    if (name.size == 4) {
        return (name.at[0] | 0x20) == 'p' && bytes_is(name, "post");
    }
    return name.size == 5 && (name.at[0] | 0x20) == 'h' && bytes_is(name, "host:");
}

static inline enum resp_status resp_finish(struct parse *parse, const struct bytes *args,
                                           uint32_t count, size_t size) {
    *parse->used = size;
    *parse->request = (struct request){.count = count, .args = args, .size = size};
    return resp_is_http(args[0]) ? RESP_CLOSE : RESP_REQUEST;
}

enum line_status { LINE_WHOLE, LINE_UNFINISHED, LINE_TOO_LONG };

/* Search for mark in the line that begins at parser->position; *found is its offset in the
 * input. */
static enum line_status resp_find_mark(struct parse *parse, char mark, size_t *found) {
    struct resp_parser *parser = parse->parser;
    size_t from = parser->searched > parser->position ? parser->searched : parser->position;
    size_t line_size = parse->size - parser->position;
    bool is_too_long = line_size > parse->limits->inline_size_max;
    size_t end = is_too_long ? parser->position + parse->limits->inline_size_max + 1 : parse->size;
    const char *at = end > from ? memchr(parse->input + from, mark, end - from) : NULL;
    if (at == NULL) {
        parser->searched = end;
        return is_too_long ? LINE_TOO_LONG : LINE_UNFINISHED;
    }
    *found = (size_t)(at - parse->input);
    parser->searched = *found;
    return LINE_WHOLE;
}

/* ---- arrays, fast path ---- */

/* Read "<digits>\r\n" at *at, at most nine digits; false: malformed or incomplete. */
static inline bool resp_read_length(const char **at, const char *end, uint32_t *length) {
    const char *digit = *at;
    if (end - digit < 3) {
        return false;
    }
    uint32_t sum = (uint32_t)(unsigned char)digit[0] - '0';
    if (sum > 9) {
        return false;
    }
    if (digit[1] == '\r') {
        *length = sum;
        *at = digit + 3;
        return true;
    }
    if (sum == 0) {
        return false;
    }
    const char *last = end - digit > 10 ? digit + 9 : end - 2;
    for (digit++; digit <= last; digit++) {
        if (*digit == '\r') {
            *length = sum;
            *at = digit + 2;
            return true;
        }
        uint32_t value = (uint32_t)(unsigned char)*digit - '0';
        if (value > 9) {
            return false;
        }
        sum = sum * 10 + value;
    }
    return false;
}

/* Parse a complete array within the limits; false: anything else, and nothing is changed. Memory is
 * taken for arguments that can have arrived, not for those announced. */
static inline bool resp_parse_whole_array(struct parse *parse, const struct bytes **args_found,
                                          uint32_t *count_found, size_t *size_found) {
    const char *at = parse->input + 1;
    const char *end = parse->input + parse->size;
    uint32_t count;
    if (!resp_read_length(&at, end, &count) || count == 0 || count > parse->limits->args_max ||
        (size_t)(end - at) / ARG_SIZE_MIN < count) {
        return false;
    }
    void *room = resp_arena_room(parse->arena, count * sizeof(struct bytes));
    if (room == NULL) {
        return false;
    }
    struct bytes *args = room;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t length;
        if (at == end || *at++ != '$' || !resp_read_length(&at, end, &length) ||
            length > parse->limits->bulk_size_max || (size_t)(end - at) < (size_t)length + 2) {
            return false;
        }
        args[i] = (struct bytes){.at = at, .size = length};
        at += (size_t)length + 2;
    }
    parse->arena->used += count * sizeof(struct bytes);
    *args_found = args;
    *count_found = count;
    *size_found = (size_t)(at - parse->input);
    return true;
}

/* ---- arrays, slow path ---- */

/* The line "<mark><integer>\r\n". */
struct length_line {
    int64_t value;
    bool is_integer;
    size_t end;
};

/* Read this line at the parser's position. RESP_REQUEST: it is complete. */
static enum resp_status resp_read_length_line(struct parse *parse, const char *too_long,
                                              struct length_line *line) {
    size_t found = 0;
    enum line_status status = resp_find_mark(parse, '\r', &found);
    if (status == LINE_TOO_LONG) {
        return resp_fail(parse, too_long);
    }
    if (status == LINE_UNFINISHED || found + 1 == parse->size) {
        return RESP_MORE;
    }
    size_t digits = parse->parser->position + 1;
    struct bytes text = {.at = parse->input + digits, .size = found > digits ? found - digits : 0};
    line->is_integer = bytes_parse_i64(text, &line->value);
    line->end = found + 2;
    return RESP_REQUEST;
}

/* More arguments than allowed: before authentication Redis says so. */
static enum resp_status resp_fail_args_max(struct parse *parse) {
    return resp_fail(parse, parse->limits->is_authenticated
                                ? "ERR Protocol error: invalid multibulk length"
                                : "ERR Protocol error: unauthenticated multibulk length");
}

/* "*<count>\r\n". RESP_REQUEST: continue with its arguments. */
static enum resp_status resp_read_array_header(struct parse *parse) {
    struct length_line line;
    enum resp_status status =
        resp_read_length_line(parse, "ERR Protocol error: too big mbulk count string", &line);
    if (status != RESP_REQUEST) {
        return status;
    }
    if (!line.is_integer || line.value > INT32_MAX) {
        return resp_fail(parse, "ERR Protocol error: invalid multibulk length");
    }
    if (line.value <= 0) {
        return resp_skip(parse, line.end);
    }
    if (line.value > (int64_t)parse->limits->args_max) {
        return resp_fail_args_max(parse);
    }
    parse->parser->args_left = (uint32_t)line.value;
    parse->parser->position = line.end;
    return RESP_REQUEST;
}

/* Redis copies the byte into the text unchanged; a line end would become a space on the wire. */
static enum resp_status resp_fail_expected_dollar(struct parse *parse, unsigned char got) {
    static const char start[] = "ERR Protocol error: expected '$', got '";
    char *text = resp_arena_allocate(parse->arena, sizeof(start) + sizeof("\\x00'"));
    if (text == NULL) {
        return RESP_OUT_OF_MEMORY;
    }
    memcpy(text, start, sizeof(start) - 1);
    char *at = text + sizeof(start) - 1;
    if (got == '\r' || got == '\n') {
        *at++ = ' ';
    } else if (got >= ' ' && got <= '~') {
        *at++ = (char)got;
    } else {
        *at++ = '\\';
        *at++ = 'x';
        bytes_print_hex(got, at);
        at += 2;
    }
    *at++ = '\'';
    *at = '\0';
    return resp_fail(parse, text);
}

/* "$<size>\r\n". RESP_REQUEST: continue with its bytes. */
static enum resp_status resp_read_bulk_header(struct parse *parse) {
    struct length_line line;
    enum resp_status status =
        resp_read_length_line(parse, "ERR Protocol error: too big bulk count string", &line);
    if (status != RESP_REQUEST) {
        return status;
    }
    unsigned char first = (unsigned char)parse->input[parse->parser->position];
    if (first != '$') {
        return resp_fail_expected_dollar(parse, first);
    }
    if (!line.is_integer || line.value < 0) {
        return resp_fail(parse, "ERR Protocol error: invalid bulk length");
    }
    if ((uint64_t)line.value > parse->limits->bulk_size_max) {
        return resp_fail(parse, parse->limits->is_authenticated
                                    ? "ERR Protocol error: invalid bulk length"
                                    : "ERR Protocol error: unauthenticated bulk length");
    }
    parse->parser->bulk_left = (size_t)line.value;
    parse->parser->has_bulk = true;
    parse->parser->position = line.end;
    return RESP_REQUEST;
}

/* The bytes of the announced bulk. RESP_REQUEST: they are now an argument. */
static enum resp_status resp_read_bulk(struct parse *parse) {
    struct resp_parser *parser = parse->parser;
    size_t arrived = parse->size - parser->position;
    if (arrived < 2 || arrived - 2 < parser->bulk_left) {
        return RESP_MORE;
    }
    if (parser->arg_count == parser->span_capacity) {
        uint32_t capacity = parser->span_capacity == 0 ? SPANS_MIN : parser->span_capacity * 2;
        struct resp_span *spans = memory_resize(parser->spans, capacity * sizeof(*spans));
        if (spans == NULL) {
            return RESP_OUT_OF_MEMORY;
        }
        parser->spans = spans;
        parser->span_capacity = capacity;
    }
    parser->spans[parser->arg_count] =
        (struct resp_span){.offset = parser->position, .size = parser->bulk_left};
    parser->arg_count++;
    parser->args_left--;
    parser->position += parser->bulk_left + 2;
    parser->has_bulk = false;
    return RESP_REQUEST;
}

static enum resp_status resp_parse_array(struct parse *parse) {
    struct resp_parser *parser = parse->parser;
    if (parser->position == 0) {
        enum resp_status status = resp_read_array_header(parse);
        if (status != RESP_REQUEST) {
            return status;
        }
    }
    while (parser->args_left > 0) {
        enum resp_status status = parser->has_bulk ? RESP_REQUEST : resp_read_bulk_header(parse);
        if (status == RESP_REQUEST) {
            status = resp_read_bulk(parse);
        }
        if (status != RESP_REQUEST) {
            return status;
        }
    }
    /* All spans have been found: convert them to slices. */
    uint32_t count = parser->arg_count;
    struct bytes *args = resp_arena_allocate(parse->arena, count * sizeof(*args));
    if (args == NULL) {
        return RESP_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) {
        args[i] = (struct bytes){.at = parse->input + parser->spans[i].offset,
                                 .size = parser->spans[i].size};
    }
    size_t size = parser->position;
    resp_parser_deinit(parser);
    return resp_finish(parse, args, count, size);
}

/* ---- inline commands ---- */

/* Split a line that is not blank. */
static enum resp_status resp_split_line(struct parse *parse, struct bytes line, uint32_t words_max,
                                        size_t size) {
    bool has_quotes =
        memchr(line.at, '"', line.size) != NULL || memchr(line.at, '\'', line.size) != NULL;
    struct bytes *args = resp_arena_allocate(parse->arena, words_max * sizeof(*args));
    char *out = has_quotes ? resp_arena_allocate(parse->arena, line.size) : NULL;
    if (args == NULL || (has_quotes && out == NULL)) {
        return RESP_OUT_OF_MEMORY;
    }
    uint32_t count = 0;
    enum bytes_word_status status;
    while ((status = bytes_take_quoted(&line, &out, &args[count])) == BYTES_WORD_TAKEN) {
        count++;
    }
    if (status == BYTES_WORD_UNBALANCED) {
        return resp_fail(parse, "ERR Protocol error: unbalanced quotes in request");
    }
    if (count > parse->limits->args_max) {
        return resp_fail_args_max(parse);
    }
    resp_parser_deinit(parse->parser);
    return resp_finish(parse, args, count, size);
}

static enum resp_status resp_parse_inline(struct parse *parse) {
    size_t found = 0;
    enum line_status status = resp_find_mark(parse, '\n', &found);
    if (status == LINE_UNFINISHED) {
        return RESP_MORE;
    }
    if (status == LINE_TOO_LONG) {
        return resp_fail(parse, "ERR Protocol error: too big inline request");
    }
    bool has_cr = found > 0 && parse->input[found - 1] == '\r';
    struct bytes line = {.at = parse->input, .size = found - has_cr};
    /* An upper bound of the word count: each word begins after a space or at the line's start. */
    uint32_t words_max = 0;
    bool was_space = true;
    for (size_t i = 0; i < line.size; i++) {
        bool is = bytes_is_blank(line.at[i]);
        words_max += was_space && !is;
        was_space = is;
    }
    if (words_max == 0) {
        return resp_skip(parse, found + 1);
    }
    return resp_split_line(parse, line, words_max, found + 1);
}

enum resp_status resp_parse(struct resp_parser *parser, const char *input, size_t size,
                            const struct resp_limits *limits, struct resp_arena *arena,
                            struct request *request, size_t *used, const char **error) {
    if (size == 0) {
        return RESP_MORE;
    }
    struct parse parse = {.parser = parser,
                          .input = input,
                          .size = size,
                          .limits = limits,
                          .arena = arena,
                          .request = request,
                          .used = used,
                          .error = error};
    if (*input != '*') {
        return resp_parse_inline(&parse);
    }
    if (parser->position == 0) {
        const struct bytes *args;
        uint32_t count;
        size_t request_size;
        if (resp_parse_whole_array(&parse, &args, &count, &request_size)) {
            parser->searched = 0;
            return resp_finish(&parse, args, count, request_size);
        }
    }
    return resp_parse_array(&parse);
}
