/* What is put without checks is what the replies' functions write. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "protocol/put.h"
#include "protocol/reply.h"
#include "tests/support/random.h"

static const char text[] = "a short text of 32 bytes, or less";

static void assert_same(const struct buffer *apart, const char *at, const char *end) {
    assert_int_equal(apart->size, end - at);
    assert_memory_equal(apart->at, at, apart->size);
}

static void a_scored_member_is_its_parts(void **state) {
    (void)state;
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

static void small_numbers_have_all_their_digits(void **state) {
    (void)state;
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

static void bytes_of_every_short_size_are_copied_and_no_more(void **state) {
    (void)state;
    for (size_t size = 0; size <= PUT_SHORT_MAX; size++) {
        char out[PUT_SHORT_MAX + 1];
        memset(out, '?', sizeof out);
        assert_ptr_equal(put_bytes(out, text, size), out + size);
        assert_memory_equal(out, text, size);
        assert_int_equal(out[size], '?');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scored_member_is_its_parts),
        cmocka_unit_test(small_numbers_have_all_their_digits),
        cmocka_unit_test(bytes_of_every_short_size_are_copied_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
