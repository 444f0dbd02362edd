/* The output of one client: growth, its limit, and how it breaks. */
#include "tests/support/test.h"

#include "codec/buffer.h"
#include "tests/support/random.h"

TEST(bytes_come_out_as_they_went_in) {
    struct random random = random_begin(__func__);
    static char model[1 << 20];
    size_t model_from = 0;
    size_t model_to = 0;
    BUFFER(buffer, 0);
    for (int step = 0; step < 4000; step++) {
        size_t size = (size_t)random_below(&random, 200);
        if (random_below(&random, 3) == 0) {
            size_t dropped = (size_t)random_below(&random, buffer.size + 1);
            buffer_drop_front(&buffer, dropped);
            model_from += dropped;
        } else if (model_to + size <= sizeof model) {
            for (size_t i = 0; i < size; i++) {
                model[model_to + i] = (char)random_next(&random);
            }
            buffer_append(&buffer, model + model_to, size);
            model_to += size;
        }
        assert_false(buffer.is_broken);
        assert_int_equal(buffer.size, model_to - model_from);
        if (buffer.size > 0) {
            assert_memory_equal(buffer.at, model + model_from, buffer.size);
        }
    }
}

TEST(reserved_room_counts_once_committed) {
    BUFFER(buffer, 0);
    char *out = buffer_reserve(&buffer, 10000);
    assert_non_null(out);
    memset(out, 'a', 10000);
    assert_int_equal(buffer.size, 0);
    buffer_commit(&buffer, 3);
    assert_int_equal(buffer.size, 3);
    assert_memory_equal(buffer.at, "aaa", 3);
}

TEST(a_cleared_buffer_is_whole_again_and_keeps_its_memory) {
    BUFFER(buffer, 1000);
    buffer_append(&buffer, "0123456789", 10);
    char *at = buffer.at;
    buffer_drop_front(&buffer, 4);
    assert_null(buffer_reserve(&buffer, 2000));
    assert_true(buffer.is_broken);
    buffer_clear(&buffer);
    assert_false(buffer.is_broken);
    assert_int_equal(buffer.size, 0);
    assert_ptr_equal(buffer_reserve(&buffer, 10), at);
}

TEST(dropping_the_front_moves_nothing) {
    BUFFER(buffer, 0);
    enum { SIZE = 1 << 20 };
    char *out = buffer_reserve(&buffer, SIZE);
    assert_non_null(out);
    memset(out, 'a', SIZE);
    buffer_commit(&buffer, SIZE);
    for (size_t i = 1; i < SIZE; i++) {
        buffer_drop_front(&buffer, 1);
        assert_ptr_equal(buffer.at, out + i);
    }
    buffer_drop_front(&buffer, 1);
    assert_ptr_equal(buffer.at, out);
    assert_int_equal(buffer.size, 0);
}

/* A client that always lags a little must not make the buffer grow for ever. */
TEST(a_dropped_front_is_used_again) {
    BUFFER(buffer, 0);
    buffer_append(&buffer, "xx", 2);
    size_t used = 0;
    for (int i = 0; i < 100000; i++) {
        buffer_append(&buffer, "0123456789", 10);
        buffer_drop_front(&buffer, 10);
        if (i == 1000) {
            used = memory_used();
        }
    }
    assert_int_equal(memory_used(), used);
    assert_int_equal(buffer.size, 2);
}

TEST(the_limit_breaks_it_and_nothing_more_is_taken) {
    for (size_t limit = 1; limit < 3000; limit += 37) {
        BUFFER(buffer, limit);
        for (size_t i = 0; i < limit; i++) {
            buffer_append(&buffer, "x", 1);
            assert_false(buffer.is_broken);
        }
        assert_int_equal(buffer.size, limit);
        assert_true(buffer.capacity <= limit);
        buffer_append(&buffer, "y", 1);
        assert_true(buffer.is_broken);
        assert_int_equal(buffer.size, limit);
        assert_null(buffer_reserve(&buffer, 1));
        buffer_drop_front(&buffer, limit);
        assert_null(buffer_reserve(&buffer, 1));
        buffer_append(&buffer, "z", 1);
        assert_int_equal(buffer.size, 0);
    }
}

TEST(what_was_dropped_does_not_count_for_the_limit) {
    BUFFER(buffer, 100);
    buffer_append(&buffer, "01234", 5);
    for (int i = 0; i < 1000; i++) {
        buffer_append(&buffer, "0123456789", 10);
        buffer_drop_front(&buffer, 10);
        assert_false(buffer.is_broken);
        assert_int_equal(buffer.size, 5);
    }
}

TEST(impossible_sizes_break_it) {
    const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 5, SIZE_MAX / 2 + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        BUFFER(buffer, 0);
        buffer_append(&buffer, "0123456789", 10);
        assert_null(buffer_reserve(&buffer, sizes[i]));
        assert_true(buffer.is_broken);
        assert_memory_equal(buffer.at, "0123456789", 10);
    }
}

TEST(a_failed_allocation_breaks_it_and_keeps_what_is_there) {
    BUFFER(buffer, 0);
    memory_fail_at(1);
    buffer_append(&buffer, "lost", 4);
    memory_fail_at(0);
    assert_true(buffer.is_broken);
    buffer_append(&buffer, "too late", 8);
    assert_int_equal(buffer.size, 0);

    buffer_clear(&buffer);
    buffer_append(&buffer, "kept", 4);
    memory_fail_at(1);
    assert_null(buffer_reserve(&buffer, 100000));
    memory_fail_at(0);
    assert_true(buffer.is_broken);
    assert_memory_equal(buffer.at, "kept", 4);
}
