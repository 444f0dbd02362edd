/* Every kind of reply, in both versions of the protocol, byte for byte. */
#include "tests/support/test.h"

#include <math.h>

#include "protocol/reply.h"
#include "tests/support/random.h"

/* ---- helpers ---- */

struct writer {
    struct buffer out;
    struct reply reply;
};

static struct reply *writer_begin(struct writer *writer, uint8_t version) {
    buffer_init(&writer->out, 0);
    reply_init(&writer->reply, &writer->out, version);
    return &writer->reply;
}

static void assert_wrote(struct writer *writer, struct bytes expected) {
    assert_false(writer->out.is_broken);
    assert_int_equal(writer->out.size, expected.size);
    if (expected.size > 0) {
        assert_memory_equal(writer->out.at, expected.at, expected.size);
    }
    buffer_deinit(&writer->out);
}

/* call is an expression over `reply`. */
#define ASSERT_REPLY(protocol_version, call, text)                                                 \
    do {                                                                                           \
        struct writer writer;                                                                      \
        struct reply *reply = writer_begin(&writer, protocol_version);                             \
        call;                                                                                      \
        assert_wrote(&writer, BYTES(text));                                                        \
    } while (0)
#define ASSERT_REPLIES(call, text_2, text_3)                                                       \
    do {                                                                                           \
        ASSERT_REPLY(2, call, text_2);                                                             \
        ASSERT_REPLY(3, call, text_3);                                                             \
    } while (0)
#define ASSERT_BOTH(call, text) ASSERT_REPLIES(call, text, text)

static struct decimal decimal_of(int64_t value) {
    return (struct decimal){.magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value,
                            .is_negative = value < 0};
}

/* ---- one value each ---- */

TEST(simple_strings_are_one_line) {
    ASSERT_BOTH(reply_ok(reply), "+OK\r\n");
    ASSERT_BOTH(reply_simple(reply, "PONG"), "+PONG\r\n");
    ASSERT_BOTH(reply_simple(reply, ""), "+\r\n");
    ASSERT_BOTH(reply_simple(reply, "a\r\nb"), "+a  b\r\n");
}

TEST(errors_begin_with_their_prefix) {
    ASSERT_BOTH(reply_error(reply, "ERR syntax error"), "-ERR syntax error\r\n");
    ASSERT_BOTH(reply_error_format(reply, "ERR unknown command '%s', with %d", "x", 3),
                "-ERR unknown command 'x', with 3\r\n");
}

TEST(line_ends_and_nul_in_error_texts_become_spaces) {
    ASSERT_BOTH(reply_error(reply, "ERR a\r\nb\nc\rd"), "-ERR a  b c d\r\n");
    ASSERT_BOTH(reply_error_format(reply, "ERR '%s'", "x\r\n+OK\r\n"), "-ERR 'x  +OK  '\r\n");
    ASSERT_BOTH(reply_error_format(reply, "ERR '%c' is not", '\0'), "-ERR ' ' is not\r\n");
    ASSERT_BOTH(reply_error_format(reply, "%s", "A\rB\nC"), "-A B C\r\n");
}

TEST(errors_are_counted_by_their_first_word) {
    struct writer writer;
    struct reply *reply = writer_begin(&writer, 2);
    assert_int_equal(reply->error_count, 0);
    assert_string_equal(reply->error_prefix, "");
    reply_error(reply, "WRONGTYPE Operation against a key");
    assert_int_equal(reply->error_count, 1);
    assert_string_equal(reply->error_prefix, "WRONGTYPE");
    reply_error_format(reply, "ERR %s", "x");
    assert_string_equal(reply->error_prefix, "ERR");
    reply_error(reply, "NOSPACE");
    assert_string_equal(reply->error_prefix, "NOSPACE");
    reply_error_format(reply, "%s", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJKLMNOPQRSTUVWXYZ x");
    assert_string_equal(reply->error_prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDE");
    reply_error(reply, "");
    assert_string_equal(reply->error_prefix, "");
    assert_int_equal(reply->error_count, 5);
    reply->is_silent = true;
    reply_error(reply, "ERR unheard");
    reply_error_format(reply, "NOAUTH %d", 1);
    assert_int_equal(reply->error_count, 7);
    assert_string_equal(reply->error_prefix, "NOAUTH");
    buffer_deinit(&writer.out);
}

TEST(long_texts_are_written_whole) {
    static char text[100001];
    memset(text, 'a', 100000);
    struct writer writer;
    struct reply *reply = writer_begin(&writer, 2);
    reply_error_format(reply, "ERR %s", text);
    reply_bulk_format(reply, "%s:%d", text, 1);
    assert_int_equal(writer.out.size, 7 + 100000 + 9 + 100002 + 2);
    assert_memory_equal(writer.out.at, "-ERR aaa", 8);
    assert_memory_equal(writer.out.at + 100005, "\r\n$100002\r\naaa", 14);
    assert_memory_equal(writer.out.at + writer.out.size - 5, "a:1\r\n", 5);
    buffer_deinit(&writer.out);
}

TEST(integers_are_decimal) {
    ASSERT_BOTH(reply_integer(reply, 0), ":0\r\n");
    ASSERT_BOTH(reply_integer(reply, 9), ":9\r\n");
    ASSERT_BOTH(reply_integer(reply, 10), ":10\r\n");
    ASSERT_BOTH(reply_integer(reply, 99), ":99\r\n");
    ASSERT_BOTH(reply_integer(reply, 100), ":100\r\n");
    ASSERT_BOTH(reply_integer(reply, -1), ":-1\r\n");
    ASSERT_BOTH(reply_integer(reply, INT64_MAX), ":9223372036854775807\r\n");
    ASSERT_BOTH(reply_integer(reply, INT64_MIN), ":-9223372036854775808\r\n");
}

TEST(bulks_hold_any_byte) {
    ASSERT_BOTH(reply_bulk(reply, BYTES("")), "$0\r\n\r\n");
    ASSERT_BOTH(reply_bulk(reply, ((struct bytes){NULL, 0})), "$0\r\n\r\n");
    ASSERT_BOTH(reply_bulk(reply, BYTES("a\r\n\0b")), "$5\r\na\r\n\0b\r\n");
    ASSERT_BOTH(reply_bulk_text(reply, "hello"), "$5\r\nhello\r\n");
    ASSERT_BOTH(reply_bulk_format(reply, "%s=%d", "a", 12), "$4\r\na=12\r\n");
}

TEST(bulks_of_every_size_are_exact) {
    static char text[1200];
    static char expected[1300];
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + i % 23);
    }
    for (size_t size = 0; size < sizeof text; size++) {
        /* An allocation of exactly this size, so that reading past it is detected. */
        char *exact = memory_allocate(size + 1);
        assert_non_null(exact);
        memcpy(exact + 1, text, size);
        struct writer writer;
        struct reply *reply = writer_begin(&writer, 3);
        reply_bulk(reply, (struct bytes){exact + 1, size});
        size_t header = (size_t)snprintf(expected, sizeof expected, "$%zu\r\n", size);
        memcpy(expected + header, text, size);
        memcpy(expected + header + size, "\r\n", 2);
        assert_wrote(&writer, (struct bytes){expected, header + size + 2});
        memory_free(exact);
    }
}

TEST(verbatim_texts_are_bulks_in_version_2) {
    ASSERT_REPLIES(reply_verbatim(reply, BYTES("a\r\nb")), "$4\r\na\r\nb\r\n",
                   "=8\r\ntxt:a\r\nb\r\n");
    ASSERT_REPLIES(reply_verbatim(reply, BYTES("")), "$0\r\n\r\n", "=4\r\ntxt:\r\n");
}

TEST(nothing_has_one_form_in_version_3) {
    ASSERT_REPLIES(reply_null(reply), "$-1\r\n", "_\r\n");
    ASSERT_REPLIES(reply_null_array(reply), "*-1\r\n", "_\r\n");
}

TEST(booleans_are_integers_in_version_2) {
    ASSERT_REPLIES(reply_boolean(reply, true), ":1\r\n", "#t\r\n");
    ASSERT_REPLIES(reply_boolean(reply, false), ":0\r\n", "#f\r\n");
}

TEST(scores_are_exact_decimals) {
    ASSERT_REPLIES(reply_decimal(reply, decimal_of(3), 0), "$1\r\n3\r\n", ",3\r\n");
    ASSERT_REPLIES(reply_decimal(reply, decimal_of(-150), 2), "$4\r\n-1.5\r\n", ",-1.5\r\n");
    ASSERT_REPLIES(reply_decimal(reply, decimal_of(0), 5), "$1\r\n0\r\n", ",0\r\n");
    ASSERT_REPLIES(reply_decimal(reply, decimal_of(4294967295), 0), "$10\r\n4294967295\r\n",
                   ",4294967295\r\n");
    const struct decimal largest = {.magnitude = UINT64_MAX, .is_negative = true};
    ASSERT_REPLIES(reply_decimal(reply, largest, 0), "$21\r\n-18446744073709551615\r\n",
                   ",-18446744073709551615\r\n");
    ASSERT_REPLIES(reply_decimal(reply, largest, 18), "$22\r\n-18.446744073709551615\r\n",
                   ",-18.446744073709551615\r\n");
}

TEST(a_score_may_come_as_text) {
    ASSERT_REPLIES(reply_decimal_text(reply, BYTES("0.000000000000000000000000000000000001")),
                   "$38\r\n0.000000000000000000000000000000000001\r\n",
                   ",0.000000000000000000000000000000000001\r\n");
}

TEST(scores_of_every_length_are_exact) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 200000; i++) {
        uint64_t power = 1;
        for (uint64_t digits = random_below(&random, 20); digits > 0; digits--) {
            power *= 10;
        }
        uint64_t value =
            i % 3 == 0 ? random_next(&random) % power : power - 2 + random_below(&random, 4);
        char digits[24];
        char expected[40];
        int digit_count = snprintf(digits, sizeof digits, "%" PRIu64, value);
        int size = snprintf(expected, sizeof expected, "$%d\r\n%s\r\n", digit_count, digits);
        struct writer writer;
        struct decimal score = {.magnitude = value};
        reply_decimal(writer_begin(&writer, 2), score, 0);
        assert_wrote(&writer, (struct bytes){expected, (size_t)size});
        size = snprintf(expected, sizeof expected, ",%s\r\n", digits);
        reply_decimal(writer_begin(&writer, 3), score, 0);
        assert_wrote(&writer, (struct bytes){expected, (size_t)size});
    }
}

TEST(doubles_have_17_digits_at_most) {
    ASSERT_REPLIES(reply_double(reply, 1.5), "$3\r\n1.5\r\n", ",1.5\r\n");
    ASSERT_REPLIES(reply_double(reply, 3), "$1\r\n3\r\n", ",3\r\n");
    ASSERT_REPLIES(reply_double(reply, 0.1), "$19\r\n0.10000000000000001\r\n",
                   ",0.10000000000000001\r\n");
    ASSERT_REPLIES(reply_double(reply, (double)INFINITY), "$3\r\ninf\r\n", ",inf\r\n");
    ASSERT_REPLIES(reply_double(reply, -(double)INFINITY), "$4\r\n-inf\r\n", ",-inf\r\n");
    ASSERT_REPLIES(reply_double(reply, (double)NAN), "$3\r\nnan\r\n", ",nan\r\n");
    ASSERT_REPLIES(reply_double(reply, -(double)NAN), "$3\r\nnan\r\n", ",nan\r\n");
    ASSERT_REPLIES(reply_double(reply, -1.7976931348623157e308),
                   "$24\r\n-1.7976931348623157e+308\r\n", ",-1.7976931348623157e+308\r\n");
}

/* ---- several values ---- */

TEST(headers_say_how_many_values_follow) {
    ASSERT_BOTH(reply_array(reply, 0), "*0\r\n");
    ASSERT_BOTH(reply_array(reply, 100), "*100\r\n");
    ASSERT_BOTH(reply_array(reply, UINT64_MAX), "*18446744073709551615\r\n");
    ASSERT_REPLIES(reply_map(reply, 6), "*12\r\n", "%6\r\n");
    ASSERT_REPLIES(reply_set(reply, 6), "*6\r\n", "~6\r\n");
}

static void write_array(struct reply *reply, uint64_t count) {
    size_t mark = reply_array_begin(reply);
    for (uint64_t i = 0; i < count; i++) {
        reply_integer(reply, (int64_t)i);
    }
    reply_array_end(reply, mark, count);
}

static void write_nested(struct reply *reply) {
    reply_ok(reply);
    size_t outer = reply_array_begin(reply);
    write_array(reply, 2);
    size_t map = reply_array_begin(reply);
    reply_bulk_text(reply, "k");
    reply_set(reply, 1);
    reply_integer(reply, 7);
    reply_map_end(reply, map, 1);
    reply_array_end(reply, outer, 2);
    reply_ok(reply);
}

TEST(an_array_may_be_counted_at_its_end) {
    ASSERT_BOTH(write_array(reply, 0), "*0\r\n");
    ASSERT_BOTH(write_array(reply, 3), "*3\r\n:0\r\n:1\r\n:2\r\n");
    ASSERT_REPLIES(write_nested(reply),
                   "+OK\r\n*2\r\n*2\r\n:0\r\n:1\r\n*2\r\n$1\r\nk\r\n*1\r\n:7\r\n+OK\r\n",
                   "+OK\r\n*2\r\n*2\r\n:0\r\n:1\r\n%1\r\n$1\r\nk\r\n~1\r\n:7\r\n+OK\r\n");
}

TEST(an_array_counted_at_its_end_equals_one_counted_before) {
    for (uint64_t count = 0; count < 12000; count = count * 3 + 1) {
        struct writer late;
        struct writer early;
        write_array(writer_begin(&late, 2), count);
        struct reply *reply = writer_begin(&early, 2);
        reply_array(reply, count);
        for (uint64_t i = 0; i < count; i++) {
            reply_integer(reply, (int64_t)i);
        }
        assert_wrote(&late, (struct bytes){early.out.at, early.out.size});
        buffer_deinit(&early.out);
    }
}

/* ---- silence and lack of memory ---- */

/* One reply of every kind. */
static void write_all(struct reply *reply) {
    reply_ok(reply);
    reply_simple(reply, "simple");
    reply_error(reply, "ERR x");
    reply_error_format(reply, "ERR %d", 1);
    reply_integer(reply, 1);
    reply_integer(reply, -1);
    reply_bulk(reply, BYTES("a longer text than fits into a small buffer, perhaps"));
    reply_bulk(reply, BYTES("exactly the longest short text.."));
    reply_bulk_text(reply, "seventeen letters");
    reply_bulk_text(reply, "text");
    reply_bulk_format(reply, "%d", 1);
    reply_integer(reply, 999999999);
    reply_integer(reply, INT64_MIN);
    reply_verbatim(reply, BYTES("verbatim"));
    reply_null(reply);
    reply_null_array(reply);
    reply_boolean(reply, true);
    reply_decimal(reply, decimal_of(1), 0);
    reply_double(reply, 1.5);
    reply_array(reply, 1);
    reply_map(reply, 1);
    reply_set(reply, 1);
    write_nested(reply);
}

TEST(a_silent_reply_writes_nothing) {
    struct writer writer;
    struct reply *reply = writer_begin(&writer, 3);
    reply->is_silent = true;
    write_all(reply);
    assert_int_equal(writer.out.size, 0);
    assert_int_equal(reply->error_count, 2);
    reply->is_silent = false;
    reply_ok(reply);
    assert_wrote(&writer, BYTES("+OK\r\n"));
}

TEST(a_broken_buffer_takes_nothing_more) {
    for (uint8_t version = 2; version <= 3; version++) {
        struct writer whole;
        write_all(writer_begin(&whole, version));
        for (size_t limit = 1; limit < whole.out.size; limit++) {
            struct writer writer;
            buffer_init(&writer.out, limit);
            reply_init(&writer.reply, &writer.out, version);
            write_all(&writer.reply);
            assert_true(writer.out.is_broken);
            assert_true(writer.out.size <= limit);
            size_t size = writer.out.size;
            write_all(&writer.reply);
            assert_int_equal(writer.out.size, size);
            buffer_deinit(&writer.out);
        }
        buffer_deinit(&whole.out);
    }
}

TEST(a_failed_allocation_breaks_the_buffer_at_any_point) {
    uint64_t nth = 1;
    bool has_failed = true;
    for (; has_failed; nth++) {
        struct writer writer;
        struct reply *reply = writer_begin(&writer, 3);
        memory_fail_at(nth);
        for (int i = 0; i < 100; i++) {
            write_all(reply);
        }
        memory_fail_at(0);
        has_failed = writer.out.is_broken;
        buffer_deinit(&writer.out);
    }
    assert_true(nth > 4);
}

TEST(a_buffer_that_breaks_inside_an_array_stays_broken) {
    struct writer writer;
    buffer_init(&writer.out, 200);
    reply_init(&writer.reply, &writer.out, 2);
    size_t outer = reply_array_begin(&writer.reply);
    for (int i = 0; i < 100; i++) {
        write_array(&writer.reply, 3);
    }
    assert_true(writer.out.is_broken);
    size_t size = writer.out.size;
    reply_array_end(&writer.reply, outer, 100);
    assert_int_equal(writer.out.size, size);
    assert_true(size <= 200);
    buffer_deinit(&writer.out);
}
