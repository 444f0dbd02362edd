/* Feeds input to the parser as a server would, and records the results as text, so that two ways of
 * feeding can be compared. Every call gets its bytes in an allocation of exactly their size, at a
 * new address each time: the address sanitizer detects reads past the end and pointers kept from an
 * earlier call. */
#ifndef TESTS_PROTOCOL_RESP_STREAM_H
#define TESTS_PROTOCOL_RESP_STREAM_H

#include <stdio.h>

#include "codec/buffer.h"
#include "protocol/resp.h"

static const struct resp_limits limits_usual = {.args_max = 1048576,
                                                .bulk_size_max = 64 * 1024 * 1024,
                                                .inline_size_max = 65536,
                                                .is_authenticated = true};
static const struct resp_limits limits_stranger = {
    .args_max = 10, .bulk_size_max = 16384, .inline_size_max = 65536, .is_authenticated = false};

/* "request 2\n4:ECHO\n2:hi\n" */
static inline void transcript_request(struct buffer *transcript, const struct request *request) {
    char line[64];
    int size =
        snprintf(line, sizeof line, "request %u on %zu bytes\n", request->count, request->size);
    buffer_append(transcript, line, (size_t)size);
    for (uint32_t i = 0; i < request->count; i++) {
        size = snprintf(line, sizeof line, "%zu:", request->args[i].size);
        buffer_append(transcript, line, (size_t)size);
        buffer_append(transcript, request->args[i].at, request->args[i].size);
        buffer_append(transcript, "\n", 1);
    }
}

static inline void transcript_line(struct buffer *transcript, const char *word, size_t size,
                                   const char *text) {
    char line[128];
    int line_size = snprintf(line, sizeof line, "%s %zu %s\n", word, size, text);
    CHECK(line_size > 0 && (size_t)line_size < sizeof line);
    buffer_append(transcript, line, (size_t)line_size);
}

struct stream {
    const struct resp_limits *limits;
    struct resp_parser parser;
    struct resp_arena arena;
    struct buffer transcript;
    size_t begun; /* offset of the unfinished request in the whole input */
    bool has_ended;
    uint64_t failing_allocation; /* of each call of resp_parse; 0: none */
    uint64_t failures;           /* calls that had to be repeated */
};

static inline void stream_begin(struct stream *stream, const struct resp_limits *limits) {
    *stream = (struct stream){.limits = limits};
    stream->arena = (struct resp_arena){0};
    buffer_init(&stream->transcript, 0);
}

static inline void stream_end(struct stream *stream) {
    resp_parser_deinit(&stream->parser);
    resp_arena_deinit(&stream->arena);
    buffer_deinit(&stream->transcript);
}

/* One call of resp_parse on a copy of input[begun .. size-1]; false: it needs more input, or has
 * ended. After a failed allocation the call is repeated. */
static inline bool stream_step(struct stream *stream, const char *input, size_t size) {
    size_t left = size - stream->begun;
    char *copy = left > 0 ? memory_allocate(left) : NULL;
    if (left > 0) {
        CHECK(copy != NULL);
        memcpy(copy, input + stream->begun, left);
    }
    struct request request;
    size_t used = 0;
    const char *error = "";
    enum resp_status status;
    memory_fail_at(stream->failing_allocation);
    while ((status = resp_parse(&stream->parser, copy, left, stream->limits, &stream->arena,
                                &request, &used, &error)) == RESP_OUT_OF_MEMORY) {
        CHECK(used == 0);
        stream->failures++;
    }
    memory_fail_at(0);
    CHECK(used <= left);
    if (status == RESP_REQUEST) {
        CHECK(request.size == used);
        transcript_request(&stream->transcript, &request);
    } else if (status == RESP_SKIP) {
        transcript_line(&stream->transcript, "skip", used, "");
    } else if (status == RESP_ERROR) {
        transcript_line(&stream->transcript, "error", 0, error);
    } else if (status == RESP_CLOSE) {
        transcript_line(&stream->transcript, "close", 0, "");
    }
    memory_free(copy);
    stream->begun += used;
    stream->has_ended = status == RESP_ERROR || status == RESP_CLOSE;
    return status == RESP_REQUEST || status == RESP_SKIP;
}

/* input[0 .. size-1] has arrived. */
static inline void stream_feed(struct stream *stream, const char *input, size_t size) {
    while (!stream->has_ended && stream_step(stream, input, size)) {}
}

/* What is left when the input ends: the same however it was split. */
static inline void stream_finish(struct stream *stream, size_t size) {
    if (!stream->has_ended) {
        transcript_line(&stream->transcript, "left", size - stream->begun, "");
    }
    resp_parser_deinit(&stream->parser);
}

#endif
