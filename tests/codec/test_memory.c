/* Allocations are counted, fail on request, and a reserve covers critical changes. */
#include "tests/support/test.h"

#include "codec/memory.h"
#include "tests/support/random.h"

/* Every test ends with as much memory as it began with. */
struct held {
    size_t used;
    uint64_t live_count;
};

static struct held held_now(void) {
    return (struct held){.used = memory_used(), .live_count = memory_live_count()};
}

static void assert_held(struct held before) {
    assert_int_equal(memory_used(), before.used);
    assert_int_equal(memory_live_count(), before.live_count);
}

TEST(used_memory_is_the_sum_of_usable_sizes) {
    struct held before = held_now();
    void *small = memory_allocate(1);
    void *large = memory_allocate(100000);
    assert_non_null(small);
    assert_non_null(large);
    assert_true(memory_size(small) >= 1);
    assert_true(memory_size(large) >= 100000);
    assert_int_equal(memory_used(), before.used + memory_size(small) + memory_size(large));
    assert_int_equal(memory_live_count(), before.live_count + 2);
    memory_free(small);
    memory_free(large);
    assert_held(before);
}

TEST(the_peak_stays_when_memory_is_freed) {
    size_t used_before = memory_used();
    void *at = memory_allocate(1 << 20);
    assert_non_null(at);
    size_t used = memory_used();
    assert_true(memory_used_peak() >= used);
    memory_free(at);
    assert_true(memory_used_peak() >= used);
    assert_int_equal(memory_used(), used_before);
}

TEST(zeroed_memory_is_zero_also_when_it_was_used_before) {
    struct held before = held_now();
    for (size_t size = 1; size < 300000; size = size * 3 + 1) {
        unsigned char *dirty = memory_allocate(size);
        assert_non_null(dirty);
        memset(dirty, 0xff, size);
        memory_free(dirty);
        unsigned char *zeroed = memory_allocate_zeroed(size);
        assert_non_null(zeroed);
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(zeroed[i], 0);
        }
        memory_free(zeroed);
    }
    assert_held(before);
}

TEST(a_resized_piece_keeps_its_bytes_and_is_counted_once) {
    struct held before = held_now();
    unsigned char *at = memory_resize(NULL, 10);
    assert_non_null(at);
    memset(at, 7, 10);
    at = memory_resize(at, 200000);
    assert_non_null(at);
    assert_int_equal(memory_used(), before.used + memory_size(at));
    assert_int_equal(memory_live_count(), before.live_count + 1);
    at = memory_resize(at, 5);
    assert_non_null(at);
    assert_int_equal(memory_used(), before.used + memory_size(at));
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(at[i], 7);
    }
    memory_free(at);
    assert_held(before);
}

TEST(freeing_null_does_nothing) {
    struct held before = held_now();
    memory_free(NULL);
    assert_held(before);
}

TEST(only_the_nth_request_from_now_fails) {
    struct held before = held_now();
    uint64_t requests_before = memory_requests();
    memory_fail_at(3);
    void *pieces[5];
    pieces[0] = memory_allocate(8);
    pieces[1] = memory_allocate_zeroed(8);
    pieces[2] = memory_allocate(8);
    pieces[3] = memory_allocate(8);
    pieces[4] = memory_allocate(8);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(pieces[i] == NULL, i == 2);
        memory_free(pieces[i]);
    }
    assert_int_equal(memory_requests(), requests_before + 5);
    assert_held(before);
}

TEST(failing_can_be_switched_off) {
    memory_fail_at(1);
    memory_fail_at(0);
    void *at = memory_allocate(8);
    assert_non_null(at);
    memory_free(at);
}

TEST(each_way_to_allocate_can_fail) {
    struct held before = held_now();
    memory_fail_at(1);
    assert_null(memory_allocate(8));
    memory_fail_at(1);
    assert_null(memory_allocate_zeroed(8));
    memory_fail_at(1);
    assert_null(memory_allocate_lasting(8));
    memory_fail_at(1);
    assert_null(memory_allocate_apart(8));
    memory_fail_at(1);
    assert_null(memory_resize(NULL, 8));
    memory_fail_at(1);
    assert_false(memory_reserve_begin(8));
    assert_held(before);
}

TEST(a_resize_that_fails_leaves_the_old_piece_as_it_was) {
    struct held before = held_now();
    unsigned char *at = memory_allocate(16);
    assert_non_null(at);
    memset(at, 9, 16);
    struct held with_piece = held_now();
    memory_fail_at(1);
    assert_null(memory_resize(at, 1 << 20));
    assert_held(with_piece);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(at[i], 9);
    }
    memory_free(at);
    assert_held(before);
}

TEST(a_reserve_is_counted_and_given_back) {
    struct held before = held_now();
    assert_true(memory_reserve_begin(1 << 20));
    assert_true(memory_used() >= before.used + (1 << 20));
    memory_reserve_end();
    assert_held(before);
    memory_reserve_end();
    assert_held(before);
}

TEST(a_request_that_fails_under_a_reserve_releases_it_and_succeeds) {
    enum { WAYS = 3 };
    for (int way = 0; way < WAYS; way++) {
        struct held before = held_now();
        unsigned char *piece = memory_allocate(8);
        assert_non_null(piece);
        assert_true(memory_reserve_begin(1 << 20));
        uint64_t requests_before = memory_requests();
        memory_fail_at(1);
        unsigned char *at = way == 0   ? memory_allocate(64)
                            : way == 1 ? memory_allocate_zeroed(64)
                                       : memory_resize(piece, 64);
        assert_non_null(at);
        assert_int_equal(memory_requests(), requests_before + 1);
        assert_true(memory_used() < before.used + (1 << 20));
        assert_int_equal(memory_live_count(), before.live_count + (way == 2 ? 1 : 2));
        memory_reserve_end();
        memory_free(at);
        if (way != 2) {
            memory_free(piece);
        }
        assert_held(before);
    }
}

TEST(a_reserve_helps_once_and_then_a_failure_is_a_failure) {
    struct held before = held_now();
    assert_true(memory_reserve_begin(4096));
    memory_fail_at(1);
    void *at = memory_allocate(8);
    assert_non_null(at);
    memory_fail_at(1);
    assert_null(memory_allocate(8));
    memory_free(at);
    assert_true(memory_reserve_begin(4096));
    memory_reserve_end();
    assert_held(before);
}

TEST(counts_hold_over_random_allocations_and_failures) {
    enum { PIECES = 64, STEPS = 20000 };
    struct random random = random_begin(__func__);
    struct held before = held_now();
    void *pieces[PIECES] = {0};
    for (int step = 0; step < STEPS; step++) {
        size_t index = (size_t)random_below(&random, PIECES);
        size_t size = 1 + (size_t)random_below(&random, 2000);
        memory_fail_at(random_below(&random, 4));
        if (pieces[index] == NULL) {
            pieces[index] = memory_allocate(size);
        } else if (random_below(&random, 2) == 0) {
            memory_free(pieces[index]);
            pieces[index] = NULL;
        } else {
            void *moved = memory_resize(pieces[index], size);
            pieces[index] = moved != NULL ? moved : pieces[index];
        }
        size_t used = before.used;
        uint64_t live_count = before.live_count;
        for (size_t i = 0; i < PIECES; i++) {
            used += pieces[i] != NULL ? memory_size(pieces[i]) : 0;
            live_count += pieces[i] != NULL;
        }
        assert_int_equal(memory_used(), used);
        assert_int_equal(memory_live_count(), live_count);
    }
    memory_fail_at(0);
    for (size_t i = 0; i < PIECES; i++) {
        memory_free(pieces[i]);
    }
    assert_held(before);
}

int main(void) {
    /* With malloc alone, then with the pool. */
    int failed = test_run(NULL, NULL);
    memory_init();
    return failed + test_run(NULL, NULL);
}
