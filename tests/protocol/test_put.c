/* The unchecked put_ functions write the same as the reply functions. */
#include "tests/support/test.h"

#include "protocol/reply.h"
#include "tests/support/random.h"

static const char text[] = "a short text of 64 bytes, or less: what is here is never the same as";

static void assert_same(const struct buffer *apart, const char *at, const char *end) {
    assert_int_equal(apart->size, end - at);
    assert_memory_equal(apart->at, at, apart->size);
}

/* The largest number of random digits that is below REPLY_PUT_SMALL_LIMIT. */
static uint32_t random_small(struct random *random) {
    return (uint32_t)(random_below(random, REPLY_PUT_SMALL_LIMIT) >> random_below(random, 30));
}

TEST(values_one_after_the_other_are_those_written_apart) {
    struct random random = random_begin(__func__);
    char together[REPLY_PUT_HEADER_ROOM + REPLY_PUT_SCORED_ROOM + REPLY_PUT_OVERRUN];
    BUFFER(apart, 0);
    for (int i = 0; i < 100000; i++) {
        struct reply reply;
        bool is_pair = random_below(&random, 2) == 1;
        struct bytes member = {text, (size_t)random_below(&random, REPLY_PUT_SHORT_MAX + 1)};
        uint32_t score = random_small(&random);
        buffer_clear(&apart);
        reply_init(&reply, &apart, is_pair ? 3 : 2);
        reply_array(&reply, 2);
        if (is_pair) {
            reply_array(&reply, 2);
        }
        reply_bulk(&reply, member);
        reply_decimal(&reply, (struct decimal){.magnitude = score}, 0);
        memset(together, '?', sizeof together);
        const struct reply_put_digits *digits = reply_put_digits_of(score);
        char *out = reply_put_header(together, '*', 2) - REPLY_PUT_LINE_END_SIZE;
        out = is_pair ? reply_put_next_pair(out) : out;
        out =
            bytes_copy_short(reply_put_next_bulk_header(out, member.size), member.at, member.size);
        out = reply_put_next_score_header(out, digits, is_pair);
        reply_put_score_digits(out, score * digits->factor, digits->count > REPLY_PUT_SIX_DIGITS);
        out = reply_put_line_end(out + digits->count);
        assert_same(&apart, together, out);
        assert_true(out + REPLY_PUT_OVERRUN <= together + sizeof together);
    }
}

TEST(every_small_number_has_the_row_of_its_digits) {
    uint32_t first = 0;
    for (unsigned count = 1; count <= 9; count++) {
        uint32_t last = (count == 1 ? 0 : first) + 9 * (count == 1 ? 1 : first);
        last -= count == 1 ? 0 : 1;
        for (int end = 0; end < 2; end++) {
            const struct reply_put_digits *digits = reply_put_digits_of(end == 0 ? first : last);
            assert_int_equal(digits->count, count);
            assert_true(reply_put_digits_have(digits, first));
            assert_true(reply_put_digits_have(digits, last));
            assert_false(reply_put_digits_have(digits, (uint64_t)last + 1));
            assert_false(reply_put_digits_have(digits, (uint64_t)first - 1));
        }
        first = last + 1;
    }
    assert_int_equal(first, REPLY_PUT_SMALL_LIMIT);
}

TEST(small_numbers_have_all_their_digits) {
    struct random random = random_begin(__func__);
    for (uint32_t value = 0; value < REPLY_PUT_SMALL_LIMIT;
         value += value < 100000 ? 1 : 1 + (uint32_t)random_below(&random, 20000)) {
        char expected[16];
        char written[16 + REPLY_PUT_OVERRUN];
        int size = snprintf(expected, sizeof expected, "%u", value);
        char *end = reply_put_small(written, value);
        assert_int_equal(end - written, size);
        assert_memory_equal(written, expected, (size_t)size);
    }
}

TEST(bytes_of_every_short_size_are_copied_and_no_more) {
    for (size_t size = 0; size <= BYTES_SHORT_MAX; size++) {
        char out[BYTES_SHORT_MAX + 1];
        memset(out, '?', sizeof out);
        assert_ptr_equal(bytes_copy_short(out, text, size), out + size);
        assert_memory_equal(out, text, size);
        assert_int_equal(out[size], '?');
    }
}

static void assert_digits(uint64_t value) {
    char expected[24];
    char written[REPLY_PUT_HEADER_ROOM];
    int size = snprintf(expected, sizeof expected, "%" PRIu64, value);
    char *end = reply_put_digits(written, value);
    assert_int_equal(end - written, size);
    assert_memory_equal(written, expected, (size_t)size);
}

TEST(large_numbers_have_all_their_digits) {
    struct random random = random_begin(__func__);
    for (uint64_t power = 1; power <= UINT64_MAX / 10; power *= 10) {
        assert_digits(power * 10 - 1);
        assert_digits(power * 10);
        assert_digits(power * 10 + 1);
    }
    assert_digits(UINT64_MAX);
    for (int i = 0; i < 20000; i++) {
        assert_digits(random_next(&random) >> random_below(&random, 64));
    }
}

static void assert_put(const char *at, const char *end, const char *expected) {
    assert_int_equal(end - at, strlen(expected));
    assert_memory_equal(at, expected, strlen(expected));
}

TEST(whole_numbers_are_integers_where_they_fit) {
    static const struct {
        struct decimal value;
        const char *resp2, *resp3;
    } numbers[] = {
        {{.magnitude = 0}, ":0\r\n", ":0\r\n"},
        {{.magnitude = 99}, ":99\r\n", ":99\r\n"},
        {{.magnitude = 100}, ":100\r\n", ":100\r\n"},
        {{.magnitude = 1, .is_negative = true}, ":-1\r\n", ":-1\r\n"},
        {{.magnitude = INT64_MAX}, ":9223372036854775807\r\n", ":9223372036854775807\r\n"},
        {{.magnitude = UINT64_C(1) << 63, .is_negative = true},
         ":-9223372036854775808\r\n",
         ":-9223372036854775808\r\n"},
        {{.magnitude = UINT64_C(1) << 63},
         "$19\r\n9223372036854775808\r\n",
         "(9223372036854775808\r\n"},
        {{.magnitude = UINT64_MAX}, "$20\r\n18446744073709551615\r\n", "(18446744073709551615\r\n"},
    };
    char out[REPLY_PUT_NUMBER_ROOM];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_put(out, reply_put_integer(out, numbers[i].value, false), numbers[i].resp2);
        assert_put(out, reply_put_integer(out, numbers[i].value, true), numbers[i].resp3);
    }
}

TEST(decimals_are_bulks_or_doubles) {
    char out[REPLY_PUT_NUMBER_ROOM];
    struct decimal value = {.magnitude = 1230, .is_negative = true};
    assert_put(out, reply_put_decimal(out, value, 2, false), "$5\r\n-12.3\r\n");
    assert_put(out, reply_put_decimal(out, value, 2, true), ",-12.3\r\n");
    value = (struct decimal){.magnitude = UINT64_MAX, .is_negative = true};
    assert_put(out, reply_put_decimal(out, value, 18, false), "$22\r\n-18.446744073709551615\r\n");
}

TEST(decimals_are_those_that_are_printed) {
    struct random random = random_begin(__func__);
    for (int i = 0; i < 100000; i++) {
        /* Any number of digits, and of zeros behind them. */
        struct decimal value = {.magnitude = random_next(&random) >> random_below(&random, 64),
                                .is_negative = random_below(&random, 2) == 1};
        for (uint64_t zeros = random_below(&random, 20); zeros > 0; zeros--) {
            value.magnitude = value.magnitude <= UINT64_MAX / 10 ? value.magnitude * 10 : 0;
        }
        unsigned scale = (unsigned)random_below(&random, DECIMAL_SCALE_MAX + 1);
        char printed[DECIMAL_TEXT_MAX + 1];
        char expected[REPLY_PUT_NUMBER_ROOM];
        char out[REPLY_PUT_NUMBER_ROOM];
        size_t size = decimal_print(printed, value, scale);
        printed[size] = '\0';
        snprintf(expected, sizeof expected, "$%zu\r\n%s\r\n", size, printed);
        assert_put(out, reply_put_decimal(out, value, scale, false), expected);
        snprintf(expected, sizeof expected, ",%s\r\n", printed);
        assert_put(out, reply_put_decimal(out, value, scale, true), expected);
    }
}

TEST(bulks_of_any_size_are_those_of_replies) {
    static char bytes[300];
    static char written[REPLY_PUT_HEADER_ROOM + sizeof bytes + 2];
    memset(bytes, 'x', sizeof bytes);
    BUFFER(out, 0);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct reply reply;
        buffer_clear(&out);
        reply_init(&reply, &out, 2);
        reply_bulk(&reply, (struct bytes){bytes, size});
        assert_same(&out, written, reply_put_bulk(written, (struct bytes){bytes, size}));
    }
}
