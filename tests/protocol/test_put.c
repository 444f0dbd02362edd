/* The unchecked put_ functions write the same as the reply functions. */
#include "tests/support/test.h"

#include "protocol/put.h"
#include "protocol/reply.h"
#include "tests/support/random.h"

static const char text[] = "a short text of 32 bytes, or less";

static void assert_same(const struct buffer *apart, const char *at, const char *end) {
    assert_int_equal(apart->size, end - at);
    assert_memory_equal(apart->at, at, apart->size);
}

TEST(a_scored_member_is_its_parts) {
    struct random random = random_begin(__func__);
    struct buffer out;
    char together[PUT_SCORED_ROOM + PUT_OVERRUN];
    buffer_init(&out, 0);
    for (int i = 0; i < 50000; i++) {
        struct reply reply;
        uint8_t version = (uint8_t)(2 + random_below(&random, 2));
        struct bytes member = {text, (size_t)random_below(&random, PUT_SHORT_MAX + 1)};
        uint32_t score =
            (uint32_t)(random_below(&random, PUT_SMALL_LIMIT) >> random_below(&random, 30));
        buffer_clear(&out);
        reply_init(&reply, &out, version);
        if (version == 3) {
            reply_array(&reply, 2);
        }
        reply_bulk(&reply, member);
        reply_decimal(&reply, (struct decimal){.magnitude = score}, 0);
        memset(together, '?', sizeof together);
        char *end = put_scored_member(together, member, score, version == 3);
        assert_same(&out, together, end);
        assert_true(end + PUT_OVERRUN <= together + sizeof together);
    }
    buffer_deinit(&out);
}

TEST(small_numbers_have_all_their_digits) {
    struct random random = random_begin(__func__);
    for (uint32_t value = 0; value < PUT_SMALL_LIMIT;
         value += value < 100000 ? 1 : 1 + (uint32_t)random_below(&random, 20000)) {
        char expected[16];
        char written[16 + PUT_OVERRUN];
        int size = snprintf(expected, sizeof expected, "%u", value);
        char *end = put_small(written, value);
        assert_int_equal(end - written, size);
        assert_memory_equal(written, expected, (size_t)size);
    }
}

TEST(bytes_of_every_short_size_are_copied_and_no_more) {
    for (size_t size = 0; size <= PUT_SHORT_MAX; size++) {
        char out[PUT_SHORT_MAX + 1];
        memset(out, '?', sizeof out);
        assert_ptr_equal(put_bytes(out, text, size), out + size);
        assert_memory_equal(out, text, size);
        assert_int_equal(out[size], '?');
    }
}

static void assert_digits(uint64_t value) {
    char expected[24];
    char written[PUT_HEADER_ROOM];
    int size = snprintf(expected, sizeof expected, "%" PRIu64, value);
    char *end = put_digits(written, value);
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
    char out[PUT_NUMBER_ROOM];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_put(out, put_integer(out, numbers[i].value, false), numbers[i].resp2);
        assert_put(out, put_integer(out, numbers[i].value, true), numbers[i].resp3);
    }
}

TEST(decimals_are_bulks_or_doubles) {
    char out[PUT_NUMBER_ROOM];
    struct decimal value = {.magnitude = 1230, .is_negative = true};
    assert_put(out, put_decimal(out, value, 2, false), "$5\r\n-12.3\r\n");
    assert_put(out, put_decimal(out, value, 2, true), ",-12.3\r\n");
    value = (struct decimal){.magnitude = UINT64_MAX, .is_negative = true};
    assert_put(out, put_decimal(out, value, 18, false), "$22\r\n-18.446744073709551615\r\n");
}

TEST(bulks_of_any_size_are_those_of_replies) {
    struct buffer out;
    static char bytes[300];
    static char written[PUT_HEADER_ROOM + sizeof bytes + 2];
    memset(bytes, 'x', sizeof bytes);
    buffer_init(&out, 0);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        struct reply reply;
        buffer_clear(&out);
        reply_init(&reply, &out, 2);
        reply_bulk(&reply, (struct bytes){bytes, size});
        assert_same(&out, written, put_bulk(written, (struct bytes){bytes, size}));
    }
    buffer_deinit(&out);
}
