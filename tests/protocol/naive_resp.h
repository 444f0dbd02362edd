/* The model of resp.c: the protocol, implemented as simply as possible. It takes the whole input,
 * starts over each time, and shares no code with resp.c. */
#ifndef TESTS_PROTOCOL_NAIVE_RESP_H
#define TESTS_PROTOCOL_NAIVE_RESP_H

#include <ctype.h>
#include <stdlib.h>

#include "tests/protocol/resp_stream.h"

enum { NAIVE_ARGS_MAX = 4096 };

struct naive {
    const char *input;
    size_t size;
    size_t at;
    const struct resp_limits *limits;
    char error[80];
    struct bytes args[NAIVE_ARGS_MAX];
    uint32_t count;
    char *decoded;
};

static inline enum resp_status naive_error(struct naive *naive, const char *text) {
    snprintf(naive->error, sizeof naive->error, "ERR Protocol error: %s", text);
    return RESP_ERROR;
}

static inline enum resp_status naive_too_many(struct naive *naive, const char *what) {
    char text[60];
    snprintf(text, sizeof text, "%s %s length",
             naive->limits->is_authenticated ? "invalid" : "unauthenticated", what);
    return naive_error(naive, text);
}

/* A line's text up to the first CR, with at least one byte behind that. */
static inline enum resp_status naive_line(struct naive *naive, const char *too_big, char *text,
                                          size_t text_max) {
    for (size_t i = 0; i <= naive->limits->inline_size_max; i++) {
        if (naive->at + i >= naive->size) {
            return RESP_MORE;
        }
        if (naive->input[naive->at + i] == '\r') {
            if (naive->at + i + 1 >= naive->size) {
                return RESP_MORE;
            }
            size_t kept = i < text_max - 1 ? i : text_max - 1;
            memcpy(text, naive->input + naive->at, kept);
            memset(text + kept, 0, text_max - kept);
            if (memchr(text, 0, kept) != NULL) {
                text[1] = 'x';
            }
            naive->at += i + 2;
            return RESP_REQUEST;
        }
    }
    return naive_error(naive, too_big);
}

/* An integer that prints as the text it came from. */
static inline bool naive_integer(const char *text, long long *value) {
    char again[32];
    *value = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", *value);
    return strcmp(again, text) == 0;
}

static inline enum resp_status naive_array(struct naive *naive) {
    char line[64];
    long long value;
    enum resp_status status = naive_line(naive, "too big mbulk count string", line, sizeof line);
    if (status != RESP_REQUEST) {
        return status;
    }
    if (!naive_integer(line + 1, &value) || value > 2147483647) {
        return naive_error(naive, "invalid multibulk length");
    }
    if (value <= 0) {
        return RESP_SKIP;
    }
    if (value > (long long)naive->limits->args_max) {
        return naive_too_many(naive, "multibulk");
    }
    for (long long left = value; left > 0; left--) {
        size_t start = naive->at;
        status = naive_line(naive, "too big bulk count string", line, sizeof line);
        if (status != RESP_REQUEST) {
            return status;
        }
        unsigned char first = (unsigned char)naive->input[start];
        if (first != '$') {
            char text[60];
            const char *format = first == '\r' || first == '\n' ? "expected '$', got ' '"
                                 : first >= 32 && first <= 126  ? "expected '$', got '%c'"
                                                                : "expected '$', got '\\x%02x'";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            snprintf(text, sizeof text, format, first);
#pragma GCC diagnostic pop
            return naive_error(naive, text);
        }
        if (!naive_integer(line + 1, &value) || value < 0) {
            return naive_error(naive, "invalid bulk length");
        }
        if ((unsigned long long)value > naive->limits->bulk_size_max) {
            return naive_too_many(naive, "bulk");
        }
        if (naive->size - naive->at < (size_t)value + 2) {
            return RESP_MORE;
        }
        CHECK(naive->count < NAIVE_ARGS_MAX);
        naive->args[naive->count++] =
            (struct bytes){.at = naive->input + naive->at, .size = (size_t)value};
        naive->at += (size_t)value + 2;
    }
    return RESP_REQUEST;
}

/* sdssplitargs of Redis 7, for a line with a length. */
static inline bool naive_split(struct naive *naive, const char *line, size_t size) {
    size_t i = 0;
    size_t out = 0;
#define NAIVE_AT(n) ((n) < size ? (unsigned char)line[n] : 256)
    while (true) {
        while (i < size && isspace((unsigned char)line[i])) {
            i++;
        }
        if (i >= size) {
            return true;
        }
        size_t start = out;
        int quote = 0;
        bool is_done = false;
        while (!is_done) {
            int c = NAIVE_AT(i);
            if (quote == '"' && c == '\\' && NAIVE_AT(i + 1) == 'x' && NAIVE_AT(i + 2) < 256 &&
                isxdigit(NAIVE_AT(i + 2)) && NAIVE_AT(i + 3) < 256 && isxdigit(NAIVE_AT(i + 3))) {
                char hex[3] = {line[i + 2], line[i + 3], 0};
                naive->decoded[out++] = (char)strtol(hex, NULL, 16);
                i += 3;
            } else if (quote == '"' && c == '\\' && i + 1 < size) {
                i++;
                const char *names = "nrtba";
                const char *values = "\n\r\t\b\a";
                const char *name = line[i] != 0 ? strchr(names, line[i]) : NULL;
                naive->decoded[out++] = name != NULL ? values[name - names] : line[i];
            } else if (quote == '\'' && c == '\\' && NAIVE_AT(i + 1) == '\'') {
                i++;
                naive->decoded[out++] = '\'';
            } else if (quote != 0 && c == quote) {
                if (i + 1 < size && !isspace((unsigned char)line[i + 1])) {
                    return false;
                }
                is_done = true;
            } else if (quote != 0 && c == 256) {
                return false;
            } else if (quote == 0 &&
                       (c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == 256)) {
                is_done = true;
            } else if (quote == 0 && (c == '"' || c == '\'')) {
                quote = c;
            } else {
                naive->decoded[out++] = line[i];
            }
            if (i < size) {
                i++;
            }
        }
        CHECK(naive->count < NAIVE_ARGS_MAX);
        naive->args[naive->count++] =
            (struct bytes){.at = naive->decoded + start, .size = out - start};
    }
#undef NAIVE_AT
}

static inline enum resp_status naive_inline(struct naive *naive) {
    size_t end = naive->at;
    while (end < naive->size && naive->input[end] != '\n') {
        end++;
    }
    if (end - naive->at > naive->limits->inline_size_max) {
        return naive_error(naive, "too big inline request");
    }
    if (end == naive->size) {
        return RESP_MORE;
    }
    size_t size = end - naive->at;
    if (size > 0 && naive->input[end - 1] == '\r') {
        size--;
    }
    if (!naive_split(naive, naive->input + naive->at, size)) {
        return naive_error(naive, "unbalanced quotes in request");
    }
    naive->at = end + 1;
    if (naive->count > naive->limits->args_max) {
        return naive_too_many(naive, "multibulk");
    }
    return naive->count > 0 ? RESP_REQUEST : RESP_SKIP;
}

/* Write the transcript that a stream over the whole input must give. */
static inline void naive_transcript(const char *input, size_t size,
                                    const struct resp_limits *limits, struct buffer *transcript) {
    static struct naive naive;
    naive.input = input;
    naive.size = size;
    naive.at = 0;
    naive.limits = limits;
    naive.decoded = memory_allocate(size + 1);
    CHECK(naive.decoded != NULL);
    enum resp_status status = RESP_MORE;
    size_t start = 0;
    while (true) {
        start = naive.at;
        naive.count = 0;
        status = start == size         ? RESP_MORE
                 : input[start] == '*' ? naive_array(&naive)
                                       : naive_inline(&naive);
        struct request request = {
            .count = naive.count, .args = naive.args, .size = naive.at - start};
        if (status == RESP_REQUEST &&
            (bytes_is(naive.args[0], "POST") || bytes_is(naive.args[0], "HOST:"))) {
            status = RESP_CLOSE;
        }
        if (status == RESP_REQUEST) {
            transcript_request(transcript, &request);
        } else if (status == RESP_SKIP) {
            transcript_line(transcript, "skip", request.size, "");
        } else {
            break;
        }
    }
    if (status == RESP_ERROR) {
        transcript_line(transcript, "error", 0, naive.error);
    } else if (status == RESP_CLOSE) {
        transcript_line(transcript, "close", 0, "");
    } else {
        transcript_line(transcript, "left", size - start, "");
    }
    memory_free(naive.decoded);
}

#endif
