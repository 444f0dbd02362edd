/* The request parser: what it accepts, what it refuses, and that splitting the input makes no
 * difference. */
#include "tests/support/test.h"

#include "tests/protocol/naive_resp.h"
#include "tests/protocol/resp_stream.h"
#include "tests/support/random.h"

/* ---- helpers ---- */

#define STREAM_OF(limits, text) stream_whole((limits), BYTES(text))
#define USUAL(text)             STREAM_OF(&limits_usual, text)

/* The transcript as a C string; valid until the next call. */
static const char *stream_whole(const struct resp_limits *limits, struct bytes input) {
    static char kept[64 * 1024];
    struct stream stream;
    stream_begin(&stream, limits);
    stream_feed(&stream, input.at, input.size);
    stream_finish(&stream, input.size);
    assert_true(stream.transcript.size < sizeof kept);
    memcpy(kept, stream.transcript.at, stream.transcript.size);
    kept[stream.transcript.size] = '\0';
    stream_end(&stream);
    return kept;
}

static void assert_same_transcript(const struct buffer *a, const struct buffer *b) {
    assert_int_equal(a->size, b->size);
    if (a->size > 0) {
        assert_memory_equal(a->at, b->at, a->size);
    }
}

/* Feed input split at the given offsets (ascending), and compare with feeding it whole. */
static void assert_cuts_do_not_matter(const struct resp_limits *limits, struct bytes input,
                                      const size_t *cuts, size_t cut_count,
                                      const struct buffer *expected) {
    ENDED_BY(stream_end) struct stream stream;
    stream_begin(&stream, limits);
    for (size_t i = 0; i < cut_count; i++) {
        stream_feed(&stream, input.at, cuts[i]);
    }
    stream_feed(&stream, input.at, input.size);
    stream_finish(&stream, input.size);
    assert_same_transcript(&stream.transcript, expected);
}

/* Whole, split at every byte, byte by byte, and the model: all must agree. */
static void assert_whole_equals_split(const struct resp_limits *limits, struct bytes input) {
    struct stream whole;
    stream_begin(&whole, limits);
    stream_feed(&whole, input.at, input.size);
    stream_finish(&whole, input.size);
    struct buffer model;
    buffer_init(&model, 0);
    naive_transcript(input.at, input.size, limits, &model);
    assert_same_transcript(&whole.transcript, &model);
    for (size_t cut = 1; cut < input.size; cut++) {
        assert_cuts_do_not_matter(limits, input, &cut, 1, &model);
    }
    size_t *every = memory_allocate((input.size + 1) * sizeof *every);
    assert_non_null(every);
    for (size_t i = 0; i < input.size; i++) {
        every[i] = i;
    }
    assert_cuts_do_not_matter(limits, input, every, input.size, &model);
    memory_free(every);
    buffer_deinit(&model);
    stream_end(&whole);
}

/* One parser by itself, for what the transcript does not tell. Zeroed is new. */
struct parsing {
    struct resp_parser parser;
    struct resp_arena arena;
    struct request request;
    size_t used;
    const char *error;
};

static enum resp_status parse(struct parsing *p, const char *input, size_t size) {
    return resp_parse(&p->parser, input, size, &limits_usual, &p->arena, &p->request, &p->used,
                      &p->error);
}

static void parsing_end(struct parsing *p) {
    resp_parser_deinit(&p->parser);
    resp_arena_deinit(&p->arena);
}

/* Several MiB come from here; grown as needed. */
static void append_text(struct buffer *buffer, const char *text) {
    buffer_append(buffer, text, strlen(text));
}

static void append_array_of(struct buffer *buffer, uint32_t count, const char *argument) {
    append_text(buffer, formatted("*%u\r\n", count));
    for (uint32_t i = 0; i < count; i++) {
        append_text(buffer, formatted("$%zu\r\n", strlen(argument)));
        append_text(buffer, argument);
        append_text(buffer, "\r\n");
    }
}

/* ---- what is accepted ---- */

TEST(an_array_becomes_slices_of_the_input) {
    static const char input[] =
        "*3\r\n$4\r\nECHO\r\n$0\r\n\r\n$12\r\nhello\r\nworld\r\n*1\r\n$4\r\n";
    ENDED_BY(parsing_end) struct parsing p = {.used = 0};
    assert_int_equal(parse(&p, input, sizeof input - 1), RESP_REQUEST);
    assert_int_equal(p.used, sizeof input - 1 - 8);
    assert_int_equal(p.request.size, p.used);
    assert_int_equal(p.request.count, 3);
    assert_ptr_equal(p.request.args[0].at, input + 8);
    assert_int_equal(p.request.args[0].size, 4);
    assert_int_equal(p.request.args[1].size, 0);
    assert_ptr_equal(p.request.args[2].at, input + 25);
    assert_int_equal(p.request.args[2].size, 12);
    assert_null(p.parser.spans);
}

TEST(arguments_hold_any_byte) {
    assert_string_equal(USUAL("*2\r\n$3\r\nA\r\n\r\n$4\r\n*1\r\n\r\n"),
                        "request 2 on 23 bytes\n3:A\r\n\n4:*1\r\n\nleft 0 \n");
    static const char input[] = "*1\r\n$3\r\n\0\xff\0\r\n";
    ENDED_BY(stream_end) struct stream stream;
    stream_begin(&stream, &limits_usual);
    stream_feed(&stream, input, sizeof input - 1);
    assert_memory_equal(stream.transcript.at, "request 1 on 13 bytes\n3:\0\xff\0\n", 28);
}

TEST(the_bytes_where_line_ends_belong_are_not_read) {
    assert_string_equal(USUAL("*1\rx$1\ryAzz*1\r\n"), "request 1 on 11 bytes\n1:A\nleft 4 \n");
}

TEST(empty_arrays_and_bare_line_ends_are_skipped) {
    assert_string_equal(USUAL("\r\n\n*0\r\n*-1\r\n*-2147483649\r\n  \t \r\n*1\r\n$1\r\nA\r\n"),
                        "skip 2 \nskip 1 \nskip 4 \nskip 5 \nskip 14 \nskip 6 \n"
                        "request 1 on 11 bytes\n1:A\nleft 0 \n");
}

TEST(inline_commands_split_at_blanks) {
    assert_string_equal(USUAL("PING\r\n"), "request 1 on 6 bytes\n4:PING\nleft 0 \n");
    assert_string_equal(USUAL("PING\n"), "request 1 on 5 bytes\n4:PING\nleft 0 \n");
    assert_string_equal(USUAL(" \t ZADD  board\t3\va ann \r\n"),
                        "request 4 on 25 bytes\n4:ZADD\n5:board\n3:3\va\n3:ann\nleft 0 \n");
    assert_string_equal(USUAL("A\rB\r\r\nC\n"), "request 2 on 6 bytes\n1:A\n1:B\n"
                                                "request 1 on 2 bytes\n1:C\nleft 0 \n");
    assert_string_equal(USUAL("$1\r\n"), "request 1 on 4 bytes\n2:$1\nleft 0 \n");
}

TEST(inline_quotes_are_decoded_as_redis_does) {
    static const struct {
        const char *line;
        const char *arguments;
    } cases[] = {
        {"\"\"\r\n", "request 1 on 4 bytes\n0:\nleft 0 \n"},
        {"'' \"\"\r\n", "request 2 on 7 bytes\n0:\n0:\nleft 0 \n"},
        {"\"a b\" 'c d'\n", "request 2 on 12 bytes\n3:a b\n3:c d\nleft 0 \n"},
        {"\"\\n\\r\\t\\b\\a\\\\\\\"\\q\"\n", "request 1 on 19 bytes\n8:\n\r\t\b\a\\\"q\nleft 0 \n"},
        {"\"\\x41\\xfFz\\x4\\xg0\"\n", "request 1 on 19 bytes\n8:A\xffzx4xg0\nleft 0 \n"},
        {"'\\n\\'\\x41'\n", "request 1 on 11 bytes\n7:\\n'\\x41\nleft 0 \n"},
        {"pre\"fix ed\"\n", "request 1 on 12 bytes\n9:prefix ed\nleft 0 \n"},
        {"a\\\"b c\"\n", "request 1 on 8 bytes\n5:a\\b c\nleft 0 \n"},
        {"\"it's\" 'say \"hi\"'\n", "request 2 on 18 bytes\n4:it's\n8:say \"hi\"\nleft 0 \n"},
        {"\"a\"\fb\n", "request 2 on 6 bytes\n1:a\n1:b\nleft 0 \n"},
        {"\"a\tb\rc\" d\r\n", "request 2 on 11 bytes\n5:a\tb\rc\n1:d\nleft 0 \n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes line = bytes_from_text(cases[i].line);
        assert_string_equal(stream_whole(&limits_usual, line), cases[i].arguments);
        assert_whole_equals_split(&limits_usual, line);
    }
}

TEST(a_million_arguments_are_a_request) {
    struct buffer input;
    struct parsing p = {.used = 0};
    buffer_init(&input, 0);
    append_array_of(&input, 1048576, "a");
    for (int cut = 0; cut < 2; cut++) {
        if (cut == 1) {
            assert_int_equal(parse(&p, input.at, input.size / 2), RESP_MORE);
        }
        assert_int_equal(parse(&p, input.at, input.size), RESP_REQUEST);
        assert_int_equal(p.request.count, 1048576);
        assert_int_equal(p.used, input.size);
        assert_ptr_equal(p.request.args[1048575].at, input.at + input.size - 3);
    }
    buffer_deinit(&input);
    parsing_end(&p);
}

/* ---- what is refused ---- */

struct refusal {
    const char *input;
    const char *error;
};

static void assert_refused(const struct resp_limits *limits, const struct refusal *cases,
                           size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *expected = formatted("error 0 ERR Protocol error: %s\n", cases[i].error);
        struct bytes input = bytes_from_text(cases[i].input);
        assert_string_equal(stream_whole(limits, input), expected);
        assert_whole_equals_split(limits, input);
    }
}

TEST(wrong_requests_are_refused_in_the_words_of_redis) {
    static const struct refusal cases[] = {
        {"*\r\n", "invalid multibulk length"},
        {"*a\r\n", "invalid multibulk length"},
        {"*-0\r\n", "invalid multibulk length"},
        {"* 1\r\n", "invalid multibulk length"},
        {"*1\n\r\n", "invalid multibulk length"},
        {"*1048577\r\n", "invalid multibulk length"},
        {"*2147483648\r\n", "invalid multibulk length"},
        {"*1\r\n$\r\n", "invalid bulk length"},
        {"*1\r\n$-1\r\n", "invalid bulk length"},
        {"*1\r\n$-0\r\n", "invalid bulk length"},
        {"*1\r\n$1x\r\n", "invalid bulk length"},
        {"*1\r\n$67108865\r\n", "invalid bulk length"},
        {"*1\r\n$9223372036854775807\r\n", "invalid bulk length"},
        {"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", "expected '$', got 'f'"},
        {"*1\r\n\r\n", "expected '$', got ' '"},
        {"*1\r\n\n\r\n", "expected '$', got ' '"},
        {"*1\r\n\x01\r\n", "expected '$', got '\\x01'"},
        {"*1\r\n\xfe\r\n", "expected '$', got '\\xfe'"},
        {"*2\r\n$1\r\nA\r\n*1\r\n", "expected '$', got '*'"},
        /* Valid except for one unusual number. */
        {"*01\r\n$1\r\nA\r\n", "invalid multibulk length"},
        {"*00\r\n$1\r\nA\r\n", "invalid multibulk length"},
        {"*+1\r\n$1\r\nA\r\n", "invalid multibulk length"},
        {"*1 \r\n$1\r\nA\r\n", "invalid multibulk length"},
        {"*4294967297\r\n$1\r\nA\r\n", "invalid multibulk length"},
        {"*18446744073709551617\r\n$1\r\nA\r\n", "invalid multibulk length"},
        {"*1\r\n$01\r\nA\r\n", "invalid bulk length"},
        {"*1\r\n$00\r\n\r\n", "invalid bulk length"},
        {"*1\r\n$+1\r\nA\r\n", "invalid bulk length"},
        {"*1\r\n$1 \r\nA\r\n", "invalid bulk length"},
        {"*1\r\n$4294967297\r\nA\r\n", "invalid bulk length"},
        {"*1\r\n$18446744073709551617\r\nA\r\n", "invalid bulk length"},
        {"\"a\r\n", "unbalanced quotes in request"},
        {"'a\r\n", "unbalanced quotes in request"},
        {"\"a\"b\r\n", "unbalanced quotes in request"},
        {"'a'b\r\n", "unbalanced quotes in request"},
        {"\"a\\\r\n", "unbalanced quotes in request"},
        {"\"a\\\"\r\n", "unbalanced quotes in request"},
        {"ok 'a\\'\r\n", "unbalanced quotes in request"},
    };
    assert_refused(&limits_usual, cases, sizeof cases / sizeof *cases);
}

TEST(strangers_get_ten_arguments_of_16_kib) {
    static const struct refusal cases[] = {
        {"*11\r\n", "unauthenticated multibulk length"},
        {"*1000000\r\n", "unauthenticated multibulk length"},
        {"*2147483648\r\n", "invalid multibulk length"},
        {"*1\r\n$16385\r\n", "unauthenticated bulk length"},
        {"*2\r\n$4\r\nAUTH\r\n$500000000\r\n", "unauthenticated bulk length"},
        {"1 2 3 4 5 6 7 8 9 10 11\r\n", "unauthenticated multibulk length"},
    };
    assert_refused(&limits_stranger, cases, sizeof cases / sizeof *cases);
    assert_whole_equals_split(&limits_stranger, BYTES("1 2 3 4 5 6 7 8 9 10\r\n"));

    BUFFER(input, 0);
    append_text(&input, "*10\r\n");
    for (int i = 0; i < 10; i++) {
        append_text(&input, "$16384\r\n");
        char *at = buffer_reserve(&input, 16386);
        assert_non_null(at);
        memset(at, 'a', 16386);
        buffer_commit(&input, 16386);
    }
    ENDED_BY(stream_end) struct stream stream;
    stream_begin(&stream, &limits_stranger);
    stream_feed(&stream, input.at, input.size);
    assert_memory_equal(stream.transcript.at, "request 10 ", 11);
}

TEST(limits_hold_to_the_byte_for_whole_arrays_too) {
    static const struct resp_limits narrow = {
        .args_max = 2, .bulk_size_max = 3, .inline_size_max = 12, .is_authenticated = true};
    static const struct refusal cases[] = {
        {"*1\r\n$4\r\nabcd\r\n", "invalid bulk length"},
        {"*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n", "invalid multibulk length"},
        {"a b c\r\n", "invalid multibulk length"},
    };
    assert_refused(&narrow, cases, sizeof cases / sizeof *cases);
    assert_string_equal(STREAM_OF(&narrow, "*2\r\n$3\r\nabc\r\n$3\r\ndef\r\n"),
                        "request 2 on 22 bytes\n3:abc\n3:def\nleft 0 \n");
    assert_string_equal(STREAM_OF(&narrow, "a b\r\n"), "request 2 on 5 bytes\n1:a\n1:b\nleft 0 \n");
}

/* A prefix, then a line of size bytes filled with one letter. */
static void append_line(struct buffer *input, const char *prefix, char mark, size_t size,
                        const char *end) {
    append_text(input, prefix);
    char *at = buffer_reserve(input, size);
    assert_non_null(at);
    memset(at, '0', size);
    *at = mark;
    buffer_commit(input, size);
    append_text(input, end);
}

static void assert_long_line(const char *prefix, char mark, size_t size, const char *end,
                             const char *expected) {
    BUFFER(input, 0);
    append_line(&input, prefix, mark, size, end);
    char error[160];
    snprintf(error, sizeof error, "error 0 ERR Protocol error: %s\n", expected);
    /* In one piece and in two: where the input is split at the limit must not matter. */
    size_t cuts[] = {strlen(prefix) + 1, 65535, 65536, 65537, 65538, input.size - 1};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        ENDED_BY(stream_end) struct stream stream;
        stream_begin(&stream, &limits_usual);
        stream_feed(&stream, input.at, cuts[i] < input.size ? cuts[i] : input.size);
        stream_feed(&stream, input.at, input.size);
        assert_int_equal(stream.transcript.size, strlen(error));
        assert_memory_equal(stream.transcript.at, error, strlen(error));
    }
}

TEST(lines_of_more_than_64_kib_are_refused) {
    const char *too_big = "too big inline request";
    assert_long_line("", 'a', 65537, "", too_big);
    assert_long_line("", 'a', 65537, "\n", too_big);
    assert_long_line("", 'a', 65536, "\r\n", too_big);
    assert_long_line("", '*', 65537, "", "too big mbulk count string");
    assert_long_line("", '*', 65537, "\r\n", "too big mbulk count string");
    assert_long_line("", '*', 65536, "\r\n", "invalid multibulk length");
    assert_long_line("*1\r\n", '$', 65537, "", "too big bulk count string");
    assert_long_line("*1\r\n", 'x', 65537, "\r\n", "too big bulk count string");
    assert_long_line("*1\r\n", '$', 65536, "\r\n", "invalid bulk length");

    BUFFER(input, 0);
    append_line(&input, "", 'a', 65536, "\n");
    ENDED_BY(stream_end) struct stream stream;
    stream_begin(&stream, &limits_usual);
    stream_feed(&stream, input.at, input.size);
    assert_memory_equal(stream.transcript.at, "request 1 on 65537 bytes\n", 25);
}

TEST(http_clients_are_closed) {
    assert_string_equal(USUAL("POST / HTTP/1.1\r\nHost: a\r\n"), "close 0 \n");
    assert_string_equal(USUAL("post\n"), "close 0 \n");
    assert_string_equal(USUAL("hOST: localhost\r\n"), "close 0 \n");
    assert_string_equal(USUAL("*1\r\n$4\r\nPost\r\n"), "close 0 \n");
    assert_string_equal(USUAL("*2\r\n$5\r\nHOST:\r\n$1\r\na\r\n"), "close 0 \n");
    assert_whole_equals_split(&limits_usual, BYTES("PING\r\nHost: x\r\nPING\r\n"));
    assert_string_equal(USUAL("host\r\nposts\r\n"), "request 1 on 6 bytes\n4:host\n"
                                                    "request 1 on 7 bytes\n5:posts\nleft 0 \n");
}

/* ---- cuts ---- */

TEST(whole_equals_split_at_every_byte) {
    static const struct bytes corpus[] = {
        BYTES_INIT("*4\r\n$4\r\nZADD\r\n$1\r\nb\r\n$2\r\n10\r\n$3\r\nann\r\n"),
        BYTES_INIT("*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING\r\n"),
        BYTES_INIT("*3\r\n$0\r\n\r\n$0\r\n\r\n$11\r\nhello world\r\nPING\r\n"),
        BYTES_INIT("SET a \"b c\" 'd e'\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        BYTES_INIT("*2\r\n$4\r\nECHO\r\n$5\r\n*1\r\n$\r\n*1\r\nx"),
        BYTES_INIT("A\0B \"\0\" '\0'\r\nPING\r\n"),
        BYTES_INIT("\r\n*0\r\nPING\r\n*-1\r\n\r\n*1\r\n$4\r\nPING\r\n\n*0\r\n\r\nECHO hi\n\r\n"),
        BYTES_INIT(
            "*12\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n"
            "$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n$1\r\nk\r\n$1\r\nl\r\n*1\r\n$1\r\nz"),
    };
    for (size_t i = 0; i < sizeof corpus / sizeof *corpus; i++) {
        assert_whole_equals_split(&limits_usual, corpus[i]);
        assert_whole_equals_split(&limits_stranger, corpus[i]);
    }
}

static size_t random_request(struct random *random, char *out) {
    char *at = out;
    if (random_below(random, 4) == 0) {
        static const char *const lines[] = {"PING\r\n",    "\r\n",        "*0\r\n", "*-1\r\n",
                                            "a 'b c' d\n", "\"\\x00\"\n", "\n",     "  x \r\n"};
        return (size_t)sprintf(at, "%s", lines[random_below(random, 8)]);
    }
    uint32_t count = 1 + (uint32_t)random_below(random, 12);
    at += sprintf(at, "*%u\r\n", count);
    for (uint32_t i = 0; i < count; i++) {
        size_t size = (size_t)random_below(random, random_below(random, 8) == 0 ? 300 : 12);
        at += sprintf(at, "$%zu\r\n", size);
        for (size_t j = 0; j < size; j++) {
            *at++ = "\r\n*$0 a\""[random_below(random, 8)];
        }
        at += sprintf(at, "\r\n");
    }
    return (size_t)(at - out);
}

TEST(whole_equals_cut_anywhere_for_random_requests) {
    struct random random = random_begin(__func__);
    int rounds = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 60 : 400;
    static char input[64 * 1024];
    for (int round = 0; round < rounds; round++) {
        size_t size = 0;
        for (uint64_t i = random_below(&random, 8); i > 0; i--) {
            size += random_request(&random, input + size);
        }
        if (round % 2 == 1 && size > 0) {
            input[random_below(&random, size)] ^= (char)(1 + random_below(&random, 255));
        }
        BUFFER(model, 0);
        naive_transcript(input, size, &limits_usual, &model);
        for (int cutting = 0; cutting < 20; cutting++) {
            size_t cuts[40];
            size_t cut_count = 0;
            size_t step = 1 + (size_t)random_below(&random, size / 4 + 2);
            for (size_t cut = 0; cut < size && cut_count < 40; cut_count++) {
                cut += 1 + (size_t)random_below(&random, step);
                cuts[cut_count] = cut < size ? cut : size;
            }
            assert_cuts_do_not_matter(&limits_usual, (struct bytes){input, size}, cuts, cut_count,
                                      &model);
        }
    }
}

static size_t random_soup(struct random *random, char *out) {
    static const char *const pieces[] = {
        "*",    "$",     "\r\n",    "\r",          "\n",          "0",          "1",
        "2",    "3",     "-",       " ",           "\"",          "'",          "\\",
        "\\x4", "a",     "*1\r\n",  "*2\r\n",      "$1\r\na\r\n", "$0\r\n\r\n", "$2\r\n",
        "POST", "Host:", "*-1\r\n", "99999999999", "+",           "\v",         "x"};
    size_t size = 0;
    for (uint64_t i = 1 + random_below(random, 30); i > 0; i--) {
        if (random_below(random, 20) == 0) {
            out[size++] = (char)random_next(random);
        } else {
            const char *piece = pieces[random_below(random, sizeof pieces / sizeof *pieces)];
            memcpy(out + size, piece, strlen(piece));
            size += strlen(piece);
        }
    }
    return size;
}

TEST(any_bytes_are_judged_as_the_model_does) {
    struct random random = random_begin(__func__);
    int rounds = getenv("LEADERBOARD_TEST_SHORT") != NULL ? 1500 : 20000;
    static const struct resp_limits narrow = {
        .args_max = 3, .bulk_size_max = 20, .inline_size_max = 12, .is_authenticated = true};
    static const struct resp_limits *const limits[] = {&limits_usual, &limits_stranger, &narrow};
    char input[1024];
    for (int round = 0; round < rounds; round++) {
        size_t size = random_soup(&random, input);
        assert_whole_equals_split(limits[random_below(&random, 3)], (struct bytes){input, size});
    }
}

/* ---- cost and memory ---- */

/* Feed one request byte by byte without copying it; quadratic work would take for ever. */
static void assert_arrives_byte_by_byte(const struct buffer *input, uint32_t count) {
    ENDED_BY(parsing_end) struct parsing p = {.used = 0};
    size_t position = 0;
    for (size_t size = 0; size < input->size; size++) {
        assert_int_equal(parse(&p, input->at, size), RESP_MORE);
        /* The position never moves back, and stays close behind what has been read. */
        size_t seen = p.parser.searched > p.parser.position ? p.parser.searched : p.parser.position;
        assert_true(seen >= position);
        assert_true(seen + 2 >= size || p.parser.has_bulk);
        position = seen;
    }
    assert_int_equal(parse(&p, input->at, input->size), RESP_REQUEST);
    assert_int_equal(p.request.count, count);
    assert_int_equal(p.used, input->size);
}

TEST(a_request_in_one_byte_steps_costs_linear_time) {
    BUFFER(input, 0);
    append_array_of(&input, 150000, "a");
    assert_true(input.size > 1024 * 1024);
    assert_arrives_byte_by_byte(&input, 150000);

    buffer_clear(&input);
    append_text(&input, "*2\r\n$1\r\na\r\n$1048576\r\n");
    append_line(&input, "", 'x', 1048576, "\r\n");
    assert_arrives_byte_by_byte(&input, 2);

    buffer_clear(&input);
    append_line(&input, "", 'x', 65535, "\r\n");
    assert_arrives_byte_by_byte(&input, 1);
}

TEST(an_announced_length_reserves_nothing) {
    static const char *const inputs[] = {"*1000000\r\n", "*1000000\r\n$60000000\r\n",
                                         "*1000000\r\n$60000000\r\nabc", "*1\r\n$60000000\r\n"};
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        size_t used_before = memory_used();
        struct parsing p = {.used = 0};
        assert_int_equal(parse(&p, inputs[i], strlen(inputs[i])), RESP_MORE);
        assert_true(memory_used() - used_before <= 32 * 1024);
        assert_null(p.parser.spans);
        parsing_end(&p);
        assert_int_equal(memory_used(), used_before);
    }
}

TEST(arguments_of_an_unfinished_request_cost_what_arrived) {
    struct parsing p = {.used = 0};
    BUFFER(input, 0);
    append_text(&input, "*1000000\r\n");
    for (int i = 0; i < 100; i++) {
        append_text(&input, "$1\r\na\r\n");
    }
    size_t used_before = memory_used();
    assert_int_equal(parse(&p, input.at, input.size), RESP_MORE);
    assert_int_equal(p.parser.arg_count, 100);
    assert_true(memory_used() - used_before <= 4096);
    parsing_end(&p);
    assert_int_equal(memory_used(), used_before);
}

TEST(no_memory_leaves_the_request_to_be_tried_again) {
    static const struct bytes inputs[] = {
        BYTES_INIT(
            "*12\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n$1\r\nd\r\n$1\r\ne\r\n$1\r\nf\r\n$1\r\ng\r\n"
            "$1\r\nh\r\n$1\r\ni\r\n$1\r\nj\r\n$1\r\nk\r\n$1\r\nl\r\n"),
        BYTES_INIT("a 'b c' d\r\n"),
        BYTES_INIT("*1\r\nx\r\n"),
    };
    uint64_t failures = 0;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        uint64_t live_before = memory_live_count();
        struct buffer model;
        buffer_init(&model, 0);
        naive_transcript(inputs[i].at, inputs[i].size, &limits_usual, &model);
        for (uint64_t nth = 1; nth <= 5; nth++) {
            for (size_t cut = 0; cut < inputs[i].size; cut++) {
                ENDED_BY(stream_end) struct stream stream;
                stream_begin(&stream, &limits_usual);
                stream.failing_allocation = nth;
                stream_feed(&stream, inputs[i].at, cut);
                stream_feed(&stream, inputs[i].at, inputs[i].size);
                stream_finish(&stream, inputs[i].size);
                assert_same_transcript(&stream.transcript, &model);
                failures += stream.failures;
            }
        }
        buffer_deinit(&model);
        assert_int_equal(memory_live_count(), live_before);
    }
    assert_true(failures > 0);
}

TEST(a_parser_given_up_holds_nothing) {
    static const char input[] = "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\n";
    uint64_t live_before = memory_live_count();
    for (size_t size = 0; size < sizeof input; size++) {
        struct stream stream;
        stream_begin(&stream, &limits_usual);
        stream_feed(&stream, input, size < sizeof input ? size : sizeof input - 1);
        resp_parser_deinit(&stream.parser);
        assert_null(stream.parser.spans);
        assert_int_equal(stream.parser.position, 0);
        stream_end(&stream);
        assert_int_equal(memory_live_count(), live_before);
    }
}

/* ---- the arena ---- */

TEST(the_arena_hands_out_aligned_pieces_that_stay) {
    struct random random = random_begin(__func__);
    ENDED_BY(resp_arena_deinit) struct resp_arena arena = {0};
    enum { PIECES = 2000 };
    static unsigned char *pieces[PIECES];
    static size_t sizes[PIECES];
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < PIECES; i++) {
            sizes[i] = 1 + (size_t)random_below(&random, i % 100 == 0 ? 100000 : 500);
            pieces[i] = resp_arena_allocate(&arena, sizes[i]);
            assert_non_null(pieces[i]);
            assert_int_equal((uintptr_t)pieces[i] % 8, 0);
            memset(pieces[i], i & 0xff, sizes[i]);
        }
        for (int i = 0; i < PIECES; i++) {
            for (size_t j = 0; j < sizes[i]; j++) {
                assert_int_equal(pieces[i][j], i & 0xff);
            }
        }
        resp_arena_reset(&arena);
    }
}

TEST(a_reset_arena_keeps_a_mebibyte_at_most) {
    size_t used_before = memory_used();
    struct resp_arena arena = {0};
    resp_arena_reset(&arena);
    assert_non_null(resp_arena_allocate(&arena, 1000));
    resp_arena_reset(&arena);
    assert_true(memory_used() > used_before);
    void *first = resp_arena_allocate(&arena, 1000);
    resp_arena_reset(&arena);
    assert_ptr_equal(resp_arena_allocate(&arena, 8), first);
    for (int i = 0; i < 40; i++) {
        assert_non_null(resp_arena_allocate(&arena, 100000));
    }
    resp_arena_reset(&arena);
    assert_true(memory_used() - used_before <= 1024 * 1024 + 64);
    assert_non_null(resp_arena_allocate(&arena, 10000000));
    resp_arena_reset(&arena);
    assert_true(memory_used() - used_before <= 1024 * 1024 + 64);
    resp_arena_deinit(&arena);
    assert_int_equal(memory_used(), used_before);
}

TEST(an_arena_without_memory_stays_as_it_was) {
    ENDED_BY(resp_arena_deinit) struct resp_arena arena = {0};
    memory_fail_at(1);
    assert_null(resp_arena_allocate(&arena, 8));
    memory_fail_at(0);
    char *kept = resp_arena_allocate(&arena, 8);
    assert_non_null(kept);
    memcpy(kept, "kept so", 8);
    memory_fail_at(1);
    assert_null(resp_arena_allocate(&arena, 100000));
    memory_fail_at(0);
    assert_non_null(resp_arena_allocate(&arena, 100000));
    assert_string_equal(kept, "kept so");
}
