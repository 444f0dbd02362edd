/* Makes the random commands that the server and its naive twin are compared with. */
#ifndef TESTS_SUPPORT_TWIN_REQUESTS_H
#define TESTS_SUPPORT_TWIN_REQUESTS_H

#include "tests/support/grammar.h"
#include "tests/support/twin_server.h"

enum { TWIN_REQUESTS_DATABASES = 3 };
/* 2026-01-01T00:00:00Z: some layouts' time begins here, and is full after hours or days. */
#define TWIN_REQUESTS_START_US INT64_C(1767225600000000)

/* The layouts of the keys that appear; the last one is the server's default. */
extern const struct twin_layout twin_requests_layouts[];

struct twin_requests {
    struct random *random; /* borrowed */
    struct grammar grammar;
    struct bytes args[GRAMMAR_WORDS_MAX];
    uint32_t arg_count;
};

/* Prepares the table of commands, too, which a server of the same process may have done. */
void twin_requests_begin(struct twin_requests *requests, struct random *random);
/* Fill in args and arg_count with the next command; they are valid until the next call. */
void twin_requests_make(struct twin_requests *requests);

#endif
